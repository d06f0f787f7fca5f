"""`Allocation`: buffers whose sizes a text states without saying which element lies where.

Memrefs after bufferization (`#ttcore.shard`, `view`, `cb_layout`, `interleaved`), tensors with a
memory space alone, and layouts by hand whose memref does not follow from the shape: the compiler
takes them, and allocates what they say. `gl.parse` refuses them, as they make no map.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import MAX_ELEMENTS, Shape
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
_TTNN = re.compile(
    rf"tensor\s*<\s*{_DIMS}{_ELEMENT}\s*,\s*#ttnn\.ttnn_(?:nd_)?layout\s*<.{{0,2000}}?<\s*([0-9x]{{1,60}})"
    rf"\s*>\s*,\s*memref\s*<\s*{_DIMS}{_ELEMENT}\s*,\s*#ttnn\.buffer_type\s*<(\w{{1,20}})>\s*>"
    r"(?:\s*,\s*<(\w{1,20})>)?",
    re.DOTALL,
)
_METAL = re.compile(
    rf"tensor\s*<\s*{_DIMS}{_ELEMENT}\s*,\s*#ttcore\.metal_layout\s*<\s*logical_shape\s*=\s*"
    r"(\[\s*\]|[0-9x]{1,200})\s*,.{0,2000}?,\s*(\w{1,10})\s*(?:,\s*(sharded|interleaved)[^<>]{0,200})?>\s*>",
    re.DOTALL,
)
_TILE = re.compile(r"!ttcore\.tile<\s*([0-9]+)x([0-9]+)\s*,\s*(\w+)")
_SPACES = {"l1_small": "l1", "system_memory": "system"}
_SIGNED = {f"si{n}": f"int{n}" for n in (2, 4, 8, 16, 32, 64)}
# Accelerators' own formats of a tile; their elements are of the nearest type that NumPy has.
_TILE_FORMATS = {"bfp_f8": "bfp_bf8", "bfp_f4": "bfp_bf4", "bfp_f2": "bfp_bf2"}


@dataclass(frozen=True)
class Allocation(Buffers):
    """Buffers of stated sizes: one of `local_shape` elements on each core of `core_shape`.

    kind: ttnn, metal, shard, interleaved, view, cb_layout or buffer. shape: the logical one where
    the text states it, else all that the buffers hold. buffers: how many of them each core has
    (`cb_layout<..., 2>`). strides: bytes from one index to the next, of a memref. A view, also a
    strided one, holds nothing itself.

    >>> text = "memref<2x4x1x1x!ttcore.tile<32x32, f32>, #ttcore.shard<4096x4096, 1>, {}>"
    >>> found = read_allocation(text.format("#ttcore.memory_space<l1>"))
    >>> found.kind, found.core_shape, found.bytes_per_core, found.nbytes
    ('shard', (2, 4), 4096, 32768)
    """

    lies_in_banks = True

    kind: str
    shape: Shape
    dtype: np.dtype[Any]
    physical_shape: Shape
    core_rank: int
    counts: Shape
    space: str
    tile: Shape | None = None
    tile_format: str | None = None
    memory_layout: str | None = None
    buffers: int = 1
    strides: Shape = ()

    @property
    def ndim(self) -> int:
        """Dims of the shape."""
        return len(self.shape)

    @property
    def tile_counts(self) -> Shape | None:
        """The tiles of one core's buffer; None where there are none."""
        return None if self.tile is None else self.counts

    @property
    def bytes_per_core(self) -> int:
        """Bytes of one core's buffers, in whole pages where they lie in L1."""
        if self.kind == "view":
            return 0
        found = super().bytes_per_core
        if self.strides and self.counts:
            found = self.strides[0] * self.counts[0]
        if (
            self.kind in ("shard", "cb_layout", "metal")
            and self.space == "l1"
            and self.tile is None
        ):
            found = align(found, PAGE * self.stored_bits // 8)
        return found * self.buffers

    @property
    def padding_share(self) -> float:
        """The share of elements beyond the logical ones, 0 to 1."""
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
        return f"{words}: grid {grid}, {held}{tile} a core in {self.space}"


def read_allocation(text: str) -> Allocation:
    """The buffers that a type states, aliases written out; `LayoutError` where it states none.

    >>> read_allocation("memref<4xf32>")
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: column 1: 'memref<4xf32>' states no memory space
    """
    if found := _BUFFER.fullmatch(text.strip()):
        return _of_buffer(*found.groups())
    if found := _TTNN.match(text):
        return _of_ttnn(*found.groups())
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
) -> Allocation:
    kind, sizes = "view" if view else kind, _dims(dims)
    sharded = kind in ("shard", "interleaved", "view")
    if sharded and len(sizes) % 2:
        raise LayoutError(f"column 1: {dims_text(sizes)} must be a grid and a shard of one rank")
    rank = len(sizes) // 2 if sharded else 0
    strides, buffers = _inside(kind, inner or "")
    layout = {"interleaved": "interleaved", "shard": "sharded"}.get(kind or "")
    return _made(
        kind or ("buffer" if word == "memref" else "tensor"),
        *(None, sizes[:rank], sizes[rank:], element, space),
        memory_layout=layout,
        buffers=buffers,
        strides=strides,
    )


def _inside(kind: str | None, inner: str) -> tuple[Shape, int]:
    """The strides in bytes, and how many buffers: `16384x4096, 2`."""
    if kind == "view" or not kind:
        return (), 1
    parts = [part.strip() for part in inner.split(",")]
    if not re.fullmatch(r"[0-9]{1,19}(x[0-9]{1,19})*", parts[0]):
        return (), 1
    buffers = parts[1] if len(parts) > 1 and re.fullmatch("[0-9]{1,9}", parts[1]) else "1"
    return _dims(parts[0]), max(int(buffers), 1)


def _of_ttnn(
    dims: str, element: str, grid: str, counts: str, stored: str, space: str, layout: str | None
) -> Allocation:
    tile = _TILE.match(element)
    name = tile[3] if tile else element
    logical = None if tile else _dims(dims)
    cores = _dims(grid)
    if layout in (None, "interleaved"):
        # A worker's share of the pages where the grid is the workers', else all of them.
        held = _dims(counts)
        counts_all = (prod(held) * prod(cores),) if prod(cores) != 1 else held
        cores, sizes = (1,) * len(cores), counts_all
        if tile is None and _TILE.match(stored) and len(sizes) == 1:
            sizes = (1, *sizes)
    else:
        sizes = _dims(counts)
    made = _made("ttnn", logical, cores, sizes, stored, space, layout or "interleaved")
    if _dtype(name) is None:
        raise LayoutError(f"column 1: element type {name!r} is not known")
    return made


def _of_metal(dims: str, element: str, logical: str, space: str, layout: str | None) -> Allocation:
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
    **extras: Any,
) -> Allocation:
    tile = _TILE.match(element)
    sides = (int(tile[1]), int(tile[2])) if tile else ()
    name = tile[3] if tile else element
    form = name if name in dtypes.BLOCK_FORMATS else _TILE_FORMATS.get(name)
    dtype = "bfloat16" if form else _dtype(name)
    if dtype is None:
        raise LayoutError(f"column 1: element type {name!r} is not known")
    local = (*counts[: len(counts) - 2], *_tiled(counts, sides)) if sides else counts
    if prod(grid) * prod(local) * extras.get("buffers", 1) > MAX_ELEMENTS:
        raise LayoutError(f"column 1: {dims_text(grid + local)} is over 2**62 elements")
    if form and sides != (32, 32):
        raise LayoutError(f"column 1: tile {dims_text(sides)} in {form}, whose tiles are 32x32")
    whole = grid + local
    return Allocation(
        kind,
        whole if shape is None else shape,
        dtypes.as_dtype(dtype),
        whole,
        len(grid),
        counts,
        _SPACES.get(space, space),
        sides or None,
        form,
        memory_layout,
        **extras,
    )


def _tiled(counts: Shape, sides: Shape) -> Shape:
    last = (1,) * (2 - len(counts)) + counts[-2:]
    return tuple(n * side for n, side in zip(last, sides, strict=True))


def _dims(text: str) -> Shape:
    found = tuple(int(word) for word in text.replace(" ", "").split("x") if word)
    if any(n > MAX_ELEMENTS for n in found):
        raise LayoutError(f"column 1: {text[:24]} is over 2**62")
    return found


def _dtype(name: str) -> str | None:
    return _SIGNED.get(name) or dtypes.FROM_TILE.get(name) or dtypes.FROM_MLIR.get(name)
