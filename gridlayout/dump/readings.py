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
from gridlayout.dump.findings import Described, Held, data_bytes, held_of
from gridlayout.errors import LayoutError
from gridlayout.tenstorrent.allocation import Allocation, read_allocation
from gridlayout.text import parse

# Longer texts are read again each time rather than remembered.
_MAX_REMEMBERED = 1 << 10
_HLO = re.compile(
    r"([a-z]+[0-9]*)\[([0-9,]{0,99})\]\{([0-9,]{0,99})(?::(?:T\(([0-9,]{1,40})\))?(?:S\(([0-9])\))?)?\}"
)
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
    if quick := (_of_hlo(text) if text[-1:] == "}" else _of_buffers(text)):
        return quick
    try:
        layout = layout_of(text)
    except LayoutError as error:
        return Reading(text, reason=re.sub(r"^column \d+: ", "", str(error))[:160])
    return Reading(text, held_of(layout), data_bytes(layout))


def _of_buffers(text: str) -> Reading | None:
    """What a memref, a ttnn_layout or a metal_layout holds, by the sizes that it states."""
    if "#ttnn.ttnn_layout" not in text and "#ttcore.metal_layout<logical_shape" not in text:
        return None
    try:
        found = read_allocation(text)
    except LayoutError:
        return None
    if "oob" in text or "row_alignment" in text or _is_dealt(found, text):
        return None
    return Reading(text, held_of(found), data_bytes(found))


def _is_dealt(found: Allocation, text: str) -> bool:
    """Whether the memref is a worker's share of pages, so that their number is not stated."""
    return found.is_interleaved and ", <1x1>, memref" not in text and found.kind == "ttnn"


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
