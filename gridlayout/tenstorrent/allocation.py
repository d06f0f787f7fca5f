"""`Allocation`: buffers whose sizes a text states, but not the placement of elements.

Examples are memrefs after bufferization (`#ttcore.shard`, `view`, `cb_layout`, `interleaved`),
tensors with only a memory space, and hand-written layouts whose memref does not follow from the
shape. The compiler accepts them and allocates what they state. `gl.parse` refuses them, because
they define no index map.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import MAX_ELEMENTS, Shape
from gridlayout.caching import cached
from gridlayout.errors import LayoutError
from gridlayout.layouts.buffers import Buffers
from gridlayout.layouts.reader import dims_text
from gridlayout.tenstorrent.alignment import PAGE, align

_DIMS = r"((?:[0-9]{1,19}\s*x\s*)*)"
_ELEMENT = r"(!ttcore\.tile<\s*[0-9]{1,4}x[0-9]{1,4}\s*,[^<>]{1,32}>|[A-Za-z][\w]{0,15})"
_BUFFER = re.compile(
    rf"(memref|tensor)\s*<\s*{_DIMS}{_ELEMENT}\s*(?:,\s*#ttcore\.(shard|cb_layout|interleaved|view)"
    r"\s*<([^<>]{0,200})>\s*)?(,\s*(?:#ttcore\.view|strided)\s*<[^<>]{0,200}>\s*)?,\s*#(?:ttcore\.memory_space|ttnn\.buffer_type)\s*<(\w{1,20})>\s*>"
)
_METAL = re.compile(
    rf"tensor\s*<\s*{_DIMS}{_ELEMENT}\s*,\s*#ttcore\.metal_layout\s*<\s*logical_shape\s*=\s*"
    r"(\[\s*\]|[0-9x]{1,200})\s*,.{0,2000}?,\s*(\w{1,10})\s*(?:,\s*(sharded|interleaved)[^<>]{0,200})?>\s*>",
    re.DOTALL,
)


def _ttnn(gap: str, comma: str) -> re.Pattern[str]:
    """The pattern of a TTNN type.

    Its groups are shape, element, map, grid, memref shape, memref element, buffer type, memory
    layout and end. gap, comma: the patterns between two words and between two parts.
    """
    dims = rf"((?:[0-9]{{1,18}}{gap}x{gap})*)"
    tile = rf"!ttcore\.tile<{gap}[0-9]{{1,4}}x[0-9]{{1,4}}{comma}[^<>]{{1,32}}>"
    element = rf"([A-Za-z]\w{{0,15}}|{tile})"
    return re.compile(
        rf"tensor{gap}<{gap}{dims}{element}{comma}#ttnn\.ttnn_(?:nd_)?layout{gap}<{gap}"
        rf"(?:(\([^()]{{0,2000}}\)\s*->\s*\([^()]{{0,2000}}\)){comma})?"
        rf"<{gap}([0-9]{{1,9}}(?:x[0-9]{{1,9}}){{0,7}}){gap}>{comma}memref{gap}<{gap}{dims}{element}"
        rf"{comma}#ttnn\.buffer_type{gap}<(\w{{1,20}})>{gap}>(?:{comma}<(\w{{1,20}})>)?(>>)?"
    )


# The type as compilers print it, and as people write it; the latter takes 1.5 times as long.
TTNN, _TTNN = _ttnn("", ", "), _ttnn(r"\s*", r"\s*,\s*")
_TILE = re.compile(r"!ttcore\.tile<\s*([0-9]+)x([0-9]+)\s*,\s*(\w+)\s*>")
_STRIDES = re.compile(r"[0-9]{1,19}(?:x[0-9]{1,19})*")
_COUNT = re.compile("[0-9]{1,9}")
SPACES = {"l1_small": "l1", "system_memory": "system"}
_IN_PAGES = ("shard", "cb_layout", "metal")
# Tile formats that are treated as the block formats of the same size.
_TILE_FORMATS = {"bfp_f8": "bfp_bf8", "bfp_f4": "bfp_bf4", "bfp_f2": "bfp_bf2"}


@dataclass(frozen=True)
class Allocation(Buffers):
    """Buffers of stated sizes: `local_shape` elements on each core of `core_shape`.

    kind: ttnn, metal, shard, interleaved, view, cb_layout, buffer or tensor. shape: the logical
    shape if the text states it, otherwise that of all buffers together. buffers: the number of
    buffers per core (`cb_layout<..., 2>`). strides: the strides of a memref, in bytes. A view owns
    no memory.

    >>> text = "memref<2x4x1x1x!ttcore.tile<32x32, f32>, #ttcore.shard<4096x4096, 1>, {}>"
    >>> found = read_allocation(text.format("#ttcore.memory_space<l1>"))
    >>> found.kind, found.core_shape, found.bytes_per_core, found.nbytes
    ('shard', (2, 4), 4096, 32768)
    """

    one_bank_per_shard = True

    kind: str
    shape: Shape
    dtype: np.dtype[Any]
    physical_shape: Shape
    core_rank: int
    counts: Shape
    space: str
    per_core: int
    tile: Shape | None = None
    tile_format: str | None = None
    memory_layout: str | None = None
    buffers: int = 1
    strides: Shape = ()

    @property
    def tile_counts(self) -> Shape | None:
        """The tiles of one core's buffer along each dim; None without tiles."""
        return None if self.tile is None else self.counts

    @property
    def bytes_per_core(self) -> int:
        """Bytes of one core's buffers, rounded up to whole pages in L1."""
        return self.per_core

    @property
    def padding_share(self) -> float:
        """The fraction of positions beyond the logical elements, 0 to 1."""
        total = prod(self.physical_shape)
        return max(total - self.size, 0) / total if total else 0.0

    @property
    def memory(self) -> str:
        """The memory space."""
        return self.space

    def __str__(self) -> str:
        grid = dims_text(self.core_shape) or "1"
        held = dims_text(self.counts) or "1"
        tile = f" of {dims_text(self.tile)}" if self.tile else ""
        words = f"{dims_text(self.shape) or 'scalar'} {self.dtype.name} as {self.kind}"
        return f"{words}: grid {grid}, {held}{tile} per core in {self.space}"


class Unit(NamedTuple):
    """The unit that a memref counts, a tile or one element: its elements and their total bits."""

    tile: Shape | None
    tile_format: str | None
    dtype: np.dtype[Any]
    elements: int
    bits: int


class Stated(NamedTuple):
    """The buffers that a type's text states, with the fields of `Allocation`."""

    kind: str
    shape: Shape | None
    grid: Shape
    counts: Shape
    unit: Unit
    space: str
    memory_layout: str | None
    buffers: int
    strides: Shape

    @property
    def bytes_per_core(self) -> int:
        """Bytes of one core's buffers, rounded up to whole pages in L1."""
        if self.kind == "view":
            return 0
        found = -(-prod(self.counts) * self.unit.bits // 8)
        if self.strides and self.counts:
            found = self.strides[0] * self.counts[0]
        if self.space == "l1" and self.unit.tile is None and self.kind in _IN_PAGES:
            found = align(found, PAGE * self.unit.bits // 8)
        return found * self.buffers


def read_allocation(text: str) -> Allocation:
    """Return the buffers that a type states; `LayoutError` if it states none.

    text: the type, with all aliases resolved.

    >>> read_allocation("memref<4xf32>")
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: column 1: 'memref<4xf32>' states no memory space
    """
    found = stated(text)
    counts, tile = found.counts, found.unit.tile
    physical = found.grid + (_tiled(counts, tile) if tile else counts)
    return Allocation(
        kind=found.kind,
        shape=physical if found.shape is None else found.shape,
        dtype=found.unit.dtype,
        physical_shape=physical,
        core_rank=len(found.grid),
        counts=counts,
        space=found.space,
        per_core=found.bytes_per_core,
        tile=tile,
        tile_format=found.unit.tile_format,
        memory_layout=found.memory_layout,
        buffers=found.buffers,
        strides=found.strides,
    )


def stated(text: str) -> Stated:
    """Return what `read_allocation` reads, without the cost of an `Allocation`.

    >>> stated("memref<2x4x!ttcore.tile<32x32, f32>, #ttcore.memory_space<l1>>").bytes_per_core
    32768
    """
    if found := _BUFFER.fullmatch(text.strip()):
        return _of_buffer(*found.groups())
    if found := _TTNN.match(text):
        return _of_ttnn(found)
    if found := _METAL.match(text):
        return _of_metal(*found.groups())
    raise LayoutError(f"column 1: {text[:48]!r} states no memory space")


def _of_buffer(
    word: str,
    dims: str,
    element: str,
    kind: str | None,
    inner: str | None,
    view: str | None,
    space: str,
) -> Stated:
    kind, sizes = "view" if view else kind, _dims(dims)
    sharded = kind in ("shard", "interleaved", "view")
    if sharded and len(sizes) % 2:
        raise LayoutError(f"column 1: {dims_text(sizes)} must be a grid and a shard of one rank")
    rank = len(sizes) // 2 if sharded else 0
    strides, buffers = _inside(kind, inner or "")
    layout = {"interleaved": "interleaved", "shard": "sharded"}.get(kind or "")
    return _made(
        kind or ("buffer" if word == "memref" else "tensor"),
        *(None, sizes[:rank], sizes[rank:], element, space, layout, buffers, strides),
    )


def _inside(kind: str | None, inner: str) -> tuple[Shape, int]:
    """Return the strides in bytes and the number of buffers of a text such as `16384x4096, 2`."""
    if kind == "view" or not kind:
        return (), 1
    strides, _, rest = inner.partition(",")
    strides, buffers = strides.strip(), rest.partition(",")[0].strip()
    if not _STRIDES.fullmatch(strides):
        return (), 1
    return _dims(strides), max(int(buffers), 1) if _COUNT.fullmatch(buffers) else 1


def _of_ttnn(found: re.Match[str]) -> Stated:
    dims, element, _, grid, counts, stored, space, layout, _ = found.groups()
    unit_of(element)  # LayoutError for an unknown type
    cores = _dims(grid)
    if layout in (None, "interleaved"):
        # The memref counts the pages of one worker if there is a grid of workers, else all pages.
        pages = _dims(counts)
        sizes = (prod(pages) * prod(cores),) if prod(cores) != 1 else pages
        cores = (1,) * len(cores)
        if _TILE.match(stored) and len(sizes) == 1:
            sizes = (1, *sizes)
    else:
        sizes = _dims(counts)
    return _made("ttnn", _dims(dims), cores, sizes, stored, space, layout or "interleaved")


def _of_metal(dims: str, element: str, logical: str, space: str, layout: str | None) -> Stated:
    sizes = _dims(dims)
    if len(sizes) % 2 or not sizes:
        raise LayoutError(f"column 1: {dims_text(sizes)} must be a grid and a shard of one rank")
    half = len(sizes) // 2
    shape = () if logical.startswith("[") else _dims(logical)
    return _made("metal", shape, sizes[:half], sizes[half:], element, space, layout or "sharded")


def _made(
    kind: str,
    shape: Shape | None,
    grid: Shape,
    counts: Shape,
    element: str,
    space: str,
    memory_layout: str | None = None,
    buffers: int = 1,
    strides: Shape = (),
) -> Stated:
    unit = unit_of(element)
    if prod(grid) * prod(counts) * unit.elements * buffers > MAX_ELEMENTS:
        raise LayoutError(f"column 1: {dims_text(grid + counts)} is over 2**62 elements")
    space = SPACES.get(space, space)
    return Stated(kind, shape, grid, counts, unit, space, memory_layout, buffers, strides)


@cached(entries=256)
def unit_of(element: str) -> Unit:
    """Return the unit of a memref with this element type; `LayoutError` for an unknown type.

    >>> unit_of("!ttcore.tile<32x32, bf16>").bits, unit_of("f32").elements
    (16384, 1)
    """
    tile = _TILE.match(element)
    sides = (int(tile[1]), int(tile[2])) if tile else None
    name = tile[3] if tile else element
    form = name if name in dtypes.BLOCK_FORMATS else _TILE_FORMATS.get(name)
    dtype = "bfloat16" if form else dtypes.FROM_ELEMENT.get(name)
    if dtype is None:
        raise LayoutError(f"column 1: element type {name!r} is not known")
    if form and sides != (32, 32):
        has = dims_text(sides or ())
        raise LayoutError(f"column 1: tile {has} in {form}, whose tiles are 32x32")
    if 0 in (sides or ()):
        raise LayoutError(f"column 1: tile {dims_text(sides or ())} has no elements")
    known, elements = dtypes.as_dtype(dtype), prod(sides or ())
    bits = 8 * dtypes.BLOCK_FORMATS[form] if form else elements * dtypes.bits(known)
    return Unit(sides, form, known, elements, bits)


def _tiled(counts: Shape, sides: Shape) -> Shape:
    """The elements of `counts` tiles along each dim; tiles have the last two."""
    rows, columns = (1,) * (2 - len(counts)) + counts[-2:]
    return (*counts[:-2], rows * sides[0], columns * sides[1])


def _dims(text: str) -> Shape:
    found = tuple([int(word) for word in "".join(text.split()).split("x") if word])
    if found and max(found) > MAX_ELEMENTS:
        raise LayoutError(f"column 1: {text[:24]} is over 2**62")
    return found
