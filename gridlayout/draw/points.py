"""`Points`: elements of a layout at many positions at once, and what is said and coloured of them.

All of it is read off the layout's index map and its inverse, so every layout system is drawn alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.draw.cells import MIXED, PADDING
from gridlayout.draw.palette import HUES
from gridlayout.errors import LayoutError
from gridlayout.layout import Layout, Shape
from gridlayout.megengine import FORMATS, FormatLayout
from gridlayout.sophon.tensors import LocalLayout, SystemLayout
from gridlayout.tenstorrent.tiles import face_of
from gridlayout.tenstorrent.tt_metal import TensorLayout
from gridlayout.xla import COMBINE, XlaLayout

Ints = NDArray[np.int64]
# A map without a closed inverse is inverted by listing its elements, up to this many.
MAX_LISTED = 1 << 20
LABELS = ("offset", "index", "number", "byte", "core", "none")


@dataclass(frozen=True, eq=False)
class Points:
    """Physical positions of a layout, and the logical index at each where `valid`.

    All arrays have one shape. Where `valid` is False, the position is padding.
    """

    layout: Layout
    logical: tuple[Ints, ...]
    physical: tuple[Ints, ...]
    valid: NDArray[np.bool_]

    @property
    def core(self) -> Ints:
        """The row-major number of each core."""
        cores = number(self.physical[: self.layout.core_rank], self.layout.core_shape)
        return np.broadcast_to(cores, self.valid.shape)

    @property
    def offset(self) -> Ints:
        """The element of each core's buffer."""
        offsets = number(self.physical[self.layout.core_rank :], self.layout.local_shape)
        return np.broadcast_to(offsets, self.valid.shape)


def number(index: Sequence[Any], shape: Shape) -> Ints:
    """Row-major numbers of indices into a shape.

    >>> number((np.array([1, 2]), np.array([0, 3])), (3, 4)).tolist()
    [4, 11]
    """
    total: Any = np.zeros((), np.int64)
    for i, n in zip(index, shape, strict=True):
        total = total * n + i
    return np.asarray(total, np.int64)


def _broadcast(index: Sequence[Ints], shape: Shape) -> tuple[Shape, tuple[Ints, ...]]:
    arrays = [np.asarray(i, np.int64) for i in index]
    shape = np.broadcast_shapes(shape, *(a.shape for a in arrays))
    return shape, tuple(np.broadcast_to(a, shape) for a in arrays)


def from_logical(layout: Layout, index: Sequence[Ints], shape: Shape = ()) -> Points:
    """The elements at logical indices, which broadcast against one another and to `shape`.

    >>> from gridlayout import GridLayout
    >>> row = from_logical(GridLayout((4, 6), grid=(1, 2)), (np.array(2), np.arange(6)))
    >>> row.core.tolist(), row.offset.tolist()
    ([0, 0, 0, 1, 1, 1], [6, 7, 8, 6, 7, 8])
    """
    shape, logical = _broadcast(index, shape)
    physical = tuple(np.broadcast_to(r, shape) for r in layout.index_map(*logical))
    return Points(layout, logical, physical, np.ones(shape, bool))


def from_physical(layout: Layout, index: Sequence[Ints], shape: Shape = ()) -> Points:
    """What lies at physical indices, which broadcast against one another and to `shape`.

    `LayoutError` where the layout has no closed inverse and more elements than can be listed.

    >>> from gridlayout import GridLayout
    >>> from_physical(GridLayout((5,), grid=(2,)), (np.array(1), np.arange(3))).valid.tolist()
    [True, True, False]
    """
    shape, physical = _broadcast(index, shape)
    logical: Sequence[Any]
    if 0 in layout.shape:
        logical, valid = [0] * layout.ndim, np.zeros(shape, bool)
    elif layout.is_scatter:
        places, elements = _listed(layout)
        wanted = number(physical, layout.physical_shape)
        at = np.searchsorted(places, wanted).clip(0, len(places) - 1)
        logical, valid = np.unravel_index(elements[at], layout.shape), places[at] == wanted
    else:
        valid = layout.inverse.domain.contains(*physical)
        logical = layout.inverse.map(*physical)
    spread = tuple(np.broadcast_to(np.asarray(i, np.int64), shape) for i in logical)
    return Points(layout, spread, physical, np.broadcast_to(valid, shape))


@lru_cache(maxsize=8)
def _listed(layout: Layout) -> tuple[Ints, Ints]:
    """The places of all elements, sorted, and the first element in each, both by number."""
    if layout.size > MAX_LISTED:
        raise LayoutError(
            f"the map {layout.index_map} has no closed inverse, and {layout.size} elements are too "
            f"many to list: memory is drawn of up to {MAX_LISTED}; view='logical' draws any number"
        )
    every = np.unravel_index(np.arange(layout.size), layout.shape) if layout.shape else ()
    places = number(from_logical(layout, every).physical, layout.physical_shape)
    return np.unique(places.reshape(-1), return_index=True)


# -- in words --------------------------------------------------------------------------------------


def tuple_text(index: Sequence[Any]) -> str:
    """An index as Python writes it: `(3,)`, `(3, 4)`."""
    return str(tuple(map(int, index)))


def core_text(layout: Layout, core: int) -> str:
    """The coordinates of a core, given by number."""
    return tuple_text(np.unravel_index(core, layout.core_shape) if layout.core_rank else ())


def at(points: Points, k: tuple[int, ...]) -> tuple[Shape, Shape, Shape]:
    """The logical index, the core, and the index inside it, of one of the points."""
    logical, physical = ([int(i[k]) for i in axes] for axes in (points.logical, points.physical))
    rank = points.layout.core_rank
    return tuple(logical), tuple(physical[:rank]), tuple(physical[rank:])


def hover(points: Points, k: tuple[int, ...]) -> str:
    """One of the points in words: `logical (3, 4) -> core (1, 0), local (0, 1, 4), byte 12`."""
    logical, core, local = at(points, k)
    layout = points.layout
    offset = int(number(local, layout.local_shape))
    byte = layout._byte(offset)
    place = f"core {core}, local {local}, offset {offset}"
    place += "" if byte is None else f", byte {byte}"
    return f"logical {logical} -> {place}" if points.valid[k] else f"padding: {place}"


def label(points: Points, k: tuple[int, ...], kind: str) -> str:
    """The text in the cell of one of the points; nothing for padding."""
    if kind == "none" or not points.valid[k]:
        return ""
    logical, core, local = at(points, k)
    if kind == "index":
        return ",".join(map(str, logical))
    if kind == "core":
        return ",".join(map(str, core))
    if kind == "number":
        return str(number(logical, points.layout.shape))
    offset = int(number(local, points.layout.local_shape))
    if kind == "offset":
        return str(offset)
    byte = points.layout._byte(offset)
    return "" if byte is None else str(byte)


def as_label(kind: Any) -> str:
    """`kind` if it is one of `LABELS`, else a `LayoutError`."""
    if kind not in LABELS:
        raise LayoutError(f"label {kind!r} is not one of {', '.join(LABELS)}")
    return str(kind)


# -- in colours ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Colouring:
    """What tells cells apart: `key` numbers the points, the rest is of a number.

    fill: its class. name: in legends and on hover. label: in cells.
    """

    key: Callable[[Points], Ints]
    fill: Callable[[int], str]
    name: Callable[[int], str]
    label: Callable[[int], str]


def colouring(layout: Layout, color: Any) -> Colouring:
    """The colouring by "core", "tile", "offset", or by a logical dim, given by its number.

    `LayoutError` for anything else, and for tiles of a layout that has none.
    """
    if color == "core":
        return by_numbers(lambda p: p.core, "core", layout.core_shape)
    if color == "tile":
        block = outer_block(layout)
        count = -(-prod(layout.local_shape) // block)
        shape = (*layout.core_shape, *_outer_shape(layout, block))
        return by_numbers(lambda p: p.core * count + p.offset // block, "tile", shape)
    if color == "offset":
        total = max(prod(layout.local_shape), 1)
        edges = [-(-total * k // HUES) for k in range(HUES + 1)]
        return Colouring(
            lambda p: _known(p, np.searchsorted(edges, p.offset, side="right") - 1),
            lambda k: f"s{k}",
            lambda k: f"offsets {edges[k]:,}..{edges[k + 1] - 1:,}",
            lambda k: "",
        )
    if isinstance(color, int) and not isinstance(color, bool) and 0 <= color < layout.ndim:
        return Colouring(
            lambda p: _known(p, p.logical[color]),
            lambda k: f"c{k % HUES}",
            lambda k: f"d{color} = {k}",
            str,
        )
    raise LayoutError(
        f"color {color!r} is not 'core', 'tile', 'offset', or a logical dim below {layout.ndim}"
    )


def tile_colouring(layout: Layout, inner: int) -> Colouring:
    """The colouring by tile, with a key for each block of `inner` elements of a tile."""
    tile, outer = colouring(layout, "tile"), outer_block(layout)
    total = prod(layout.local_shape)
    tiles, inners = -(-total // outer), -(-total // inner)

    def of(key: int) -> int:
        core, block = divmod(key, inners)
        return core * tiles + block * inner // outer

    return Colouring(
        lambda p: _known(p, p.core * inners + p.offset // inner),
        lambda k: tile.fill(of(k)),
        lambda k: tile.name(of(k)),
        lambda k: tile.label(of(k)),
    )


def _known(points: Points, keys: Ints) -> Ints:
    return np.where(points.valid, keys, PADDING)


def by_numbers(key: Callable[[Points], Ints], what: str, shape: Shape) -> Colouring:
    """Colours of the members of a grid such that neighbours differ, also diagonal ones."""

    def hue(k: int) -> int:
        if prod(shape) <= HUES:
            return k
        index = map(int, np.unravel_index(k, shape))
        return sum(w * i for w, i in zip(_weights(len(shape)), index, strict=True)) % HUES

    def place(k: int) -> str:
        return tuple_text(np.unravel_index(k, shape)) if shape else ""

    return Colouring(
        lambda p: _known(p, key(p)),
        lambda k: f"c{hue(k)}",
        lambda k: f"{what} {place(k)}".strip(),
        place,
    )


def _weights(rank: int) -> list[int]:
    return [(2 * k + 1) % HUES for k in reversed(range(rank))]


def fill(colours: Colouring, key: int) -> str:
    """The class of a key: its fill, or the hatches of padding and of several things."""
    return {PADDING: "pad", MIXED: "mix"}.get(key) or colours.fill(key)


# -- tiles -----------------------------------------------------------------------------------------


def blocks(layout: Layout) -> Shape:
    """The nested blocks of a core's buffer, the outer first, in elements: tiles, faces, lanes.

    >>> from gridlayout import parse, GridLayout
    >>> blocks(parse("f32[4,8]{1,0:T(2,4)(2,1)}"))
    (8, 2)
    >>> blocks(GridLayout((64, 64), tile=(32, 32), face=(16, 16)))
    (1024, 256)
    """
    if isinstance(layout, XlaLayout):
        return tuple(prod(n for n in tile if n != COMBINE) for tile in layout.tiles)
    if isinstance(layout, (LocalLayout, SystemLayout)):
        return (layout.lanes,) if layout.lanes > 1 else ()
    if isinstance(layout, FormatLayout):
        return (layout.physical_shape[-1],) if "%" in FORMATS[layout.format][-1] else ()
    tile, face = (getattr(layout, name, None) for name in ("tile", "face"))
    if isinstance(layout, TensorLayout) and tile and layout.tile_order != "swizzled":
        face = face_of(tile)
    return tuple(prod(sizes) for sizes in (tile, face) if sizes)


def outer_block(layout: Layout) -> int:
    """Elements of the outermost block; `LayoutError` for a layout without blocks."""
    found = blocks(layout)
    if not found:
        raise LayoutError(f"{layout!r} has no tiles, faces or lanes to draw")
    return found[0]


def _outer_shape(layout: Layout, block: int) -> Shape:
    """The dims that count blocks of a core's buffer; one number where no dims do."""
    local = layout.local_shape
    for k in range(len(local) + 1):
        if prod(local[k:]) == block:
            return local[:k]
    return (-(-prod(local) // block),)
