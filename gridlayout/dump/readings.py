"""Readings: a type's text to its layout and what it holds; each text is read once. Bytes.

A dump may hold a million types, of which the worst are shown. So sizes are taken from the text
first, and its layout is made where it is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from gridlayout import dtypes
from gridlayout.arguments import MAX_ELEMENTS, Shape
from gridlayout.dump.findings import Described
from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import Held
from gridlayout.tenstorrent.allocation import read_allocation
from gridlayout.text import parse

# Longer texts are read again each time rather than remembered.
_MAX_REMEMBERED = 1 << 10
_HLO = re.compile(
    r"([a-z]+[0-9]*)\[([0-9,]{0,99})\]\{([0-9,]{0,99})(?::(?:T\(([0-9,]{1,40})\))?(?:S\(([0-9])\))?)?\}"
)
_ELEMENT = r"(!ttcore\.tile<[0-9]{1,4}x[0-9]{1,4}, \w{1,12}>|[a-z]\w{0,15})"
_TTNN = re.compile(
    rf"tensor<((?:[0-9]{{1,18}}x)*)([a-z]\w{{0,15}}), #ttnn\.ttnn_layout<\([^<>]*-> \([^<>]*\), "
    rf"<([0-9]{{1,9}}x[0-9]{{1,9}})>, memref<((?:[0-9]{{1,18}}x)+){_ELEMENT}, "
    r"#ttnn\.buffer_type<(\w{1,20})>>(?:, <(\w{1,20})>)?"
)
_SPACES = {"l1_small": "l1", "system_memory": "system"}
_BITS = {name: dtypes.bits(dtypes.as_dtype(dtype)) for name, dtype in dtypes.FROM_XLA.items()}


@dataclass(frozen=True)
class Reading:
    """What is known of a text: its sizes, and its `layout`; or why it has none."""

    text: str
    held: Held | None = None
    data_bytes: int = 0
    reason: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes that all buffers take."""
        return self.held.nbytes if self.held else 0

    @property
    def layout(self) -> Described | None:
        """The layout, or the buffers alone; None where there is a reason."""
        return layout_of(self.text) if self.held else None


def read(text: str) -> Reading:
    """What a text states.

    >>> found = read("f32[3,5]{1,0:T(8,128)}")
    >>> found.nbytes, found.data_bytes, found.layout.shape
    (4096, 60, (3, 5))
    """
    return _remembered(text) if len(text) <= _MAX_REMEMBERED else _read(text)


def layout_of(text: str) -> Described:
    """The layout of a text, or its buffers alone; `LayoutError` where it states neither."""
    return _layout(text)


def _layout_of(text: str) -> Described:
    if "[" in text and "<=" in text:  # a dynamic dim of HLO: memory is for its bound
        text = text.replace("<=", "")
    try:
        return parse(text)
    except LayoutError as error:
        refusal = error
    except Exception as error:  # a slip in a reader must not end the reading of a dump
        refusal = LayoutError(f"{type(error).__name__} while it was read: {error}")
    try:
        return read_allocation(text)
    except LayoutError:
        raise refusal from None


def _read(text: str) -> Reading:
    if quick := (_of_hlo(text) if text[-1:] == "}" else _of_ttnn(text) or _of_metal(text)):
        return quick
    try:
        layout = layout_of(text)
    except LayoutError as error:
        return Reading(text, reason=re.sub(r"^column \d+: ", "", str(error))[:160])
    return Reading(text, layout.held, layout.data_bytes)


def _of_ttnn(text: str) -> Reading | None:
    """What a ttnn_layout holds, by the memref that it states."""
    found = _TTNN.match(text)
    if found is None or "oob" in text or "row_alignment" in text:
        return None
    dims, element, grid, counts, stored, space, word = found.groups()
    unit = _unit_of(stored)
    is_dealt = word in (None, "interleaved")
    if unit is None or _unit_of(element) is None or (is_dealt and grid != "1x1"):
        return None
    bits, elements, pages = unit[0], unit[1], _product(counts)
    size, cores = _product(dims), _product(grid)
    if max(size, pages * cores * elements) > MAX_ELEMENTS:
        return None
    per_core = -(-pages * bits // 8)
    memory = _SPACES.get(space, space)
    held = Held(memory, cores, per_core, max(pages, 1) if is_dealt else 0)
    return Reading(text, held, -(-size * bits // (8 * elements)))


def _of_metal(text: str) -> Reading | None:
    """What a metal_layout holds, by the device's shape; any text that states one."""
    if "#ttcore.metal_layout<logical_shape" not in text or "oob" in text:
        return None
    try:
        found = read_allocation(text)
    except LayoutError:
        return None
    return Reading(text, found.held, found.data_bytes) if found.kind == "metal" else None


@lru_cache(maxsize=256)
def _unit_of(element: str) -> tuple[int, int] | None:
    """Bits of a tile, or of an element alone, and its elements."""
    try:
        found = read_allocation(f"memref<1x1x{element}, #ttcore.memory_space<l1>>")
    except LayoutError:
        return None
    return 8 * found.bytes_per_core if found.tile else found.stored_bits, prod(found.local_shape)


def _product(dims: str) -> int:
    found = 1
    for word in dims.split("x"):
        if word:
            found *= int(word)
    return found


def _of_hlo(text: str) -> Reading | None:
    """What an array of HLO takes, if its layout is but an order of dims and one tile."""
    found = _HLO.fullmatch(text)
    bits = _BITS.get(found[1], 0) if found else 0
    if found is None or bits < 8:
        return None
    shape = _numbers(found[2])
    order, tile = _numbers(found[3]), _numbers(found[4] or "")
    if sorted(order) != list(range(len(shape))) or len(tile) > len(shape) or 0 in tile:
        return None
    padded = [shape[d] for d in order]
    for k, side in enumerate(reversed(tile)):
        padded[k] = -(-padded[k] // side) * side
    if prod(padded) > MAX_ELEMENTS:
        return None
    held = Held(found[5] or "", 1, prod(padded) * bits // 8)
    return Reading(text, held, prod(shape) * bits // 8)


def _numbers(text: str) -> Shape:
    return tuple(map(int, text.split(","))) if text and text.strip(",") == text else ()


_layout = lru_cache(maxsize=2048)(_layout_of)
_remembered = lru_cache(maxsize=8192)(_read)
