"""`Points`: elements of a layout at many positions, and texts that describe them.

Everything is computed from the layout's index map and its inverse, so all layout systems are drawn
in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.arguments import Ints, Shape, one_of
from gridlayout.caching import cached
from gridlayout.errors import LayoutError

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout

# The most elements that are listed to invert a map without a closed-form inverse.
MAX_LISTED = 1 << 20
LABELS = ("offset", "index", "number", "byte", "core", "none")


@dataclass(frozen=True, eq=False)
class Points:
    """Physical positions of a layout, and the logical index at each.

    All arrays have one shape. Where `valid` is False, the position is padding and has no logical
    index.
    """

    layout: Layout
    logical: tuple[Ints, ...]
    physical: tuple[Ints, ...]
    valid: NDArray[np.bool_]

    @property
    def core(self) -> Ints:
        """The row-major number of each position's core."""
        cores = number(self.physical[: self.layout.core_rank], self.layout.core_shape)
        return np.broadcast_to(cores, self.valid.shape)

    @property
    def offset(self) -> Ints:
        """The offset of each position in its core's buffer, in elements."""
        offsets = number(self.physical[self.layout.core_rank :], self.layout.local_shape)
        return np.broadcast_to(offsets, self.valid.shape)


def number(index: Sequence[Any], shape: Shape) -> Ints:
    """Return the row-major numbers of indices into a shape.

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
    """Return the elements at logical indices, which broadcast against each other and to `shape`.

    >>> from gridlayout import GridLayout
    >>> row = from_logical(GridLayout((4, 6), grid=(1, 2)), (np.array(2), np.arange(6)))
    >>> row.core.tolist(), row.offset.tolist()
    ([0, 0, 0, 1, 1, 1], [6, 7, 8, 6, 7, 8])
    """
    shape, logical = _broadcast(index, shape)
    physical = tuple(np.broadcast_to(r, shape) for r in layout.index_map(*logical))
    return Points(layout, logical, physical, np.ones(shape, bool))


def from_physical(layout: Layout, index: Sequence[Ints], shape: Shape = ()) -> Points:
    """Return the points at physical indices, which broadcast against each other and to `shape`.

    Raises `LayoutError` if the layout has no closed-form inverse and too many elements to list.

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
        numbers = number(physical, layout.physical_shape)
        at = np.searchsorted(places, numbers).clip(0, len(places) - 1)
        logical, valid = np.unravel_index(elements[at], layout.shape), places[at] == numbers
    else:
        valid = layout.inverse_in_bounds.domain.contains(*physical)
        logical = layout.inverse.map(*physical)
    spread = tuple(np.broadcast_to(np.asarray(i, np.int64), shape) for i in logical)
    return Points(layout, spread, physical, np.broadcast_to(valid, shape))


@cached(entries=8)
def _listed(layout: Layout) -> tuple[Ints, Ints]:
    """Return the physical positions of all elements, sorted, and the first element at each.

    Both are row-major numbers.
    """
    if layout.size > MAX_LISTED:
        raise LayoutError(
            f"the map {layout.index_map} has no closed-form inverse, and {layout.size} elements "
            f"are too many to list: views of memory support up to {MAX_LISTED}; use view='logical'"
        )
    every = np.unravel_index(np.arange(layout.size), layout.shape) if layout.shape else ()
    places = number(from_logical(layout, every).physical, layout.physical_shape)
    return np.unique(places.reshape(-1), return_index=True)


# -- in words --------------------------------------------------------------------------------------


def tuple_text(index: Sequence[Any]) -> str:
    """Return an index as Python writes it: `(3,)`, `(3, 4)`."""
    return str(tuple(map(int, index)))


def core_text(layout: Layout, core: int) -> str:
    """Return the coordinates of a core, given by its row-major number."""
    return tuple_text(np.unravel_index(core, layout.core_shape) if layout.core_rank else ())


def at(points: Points, k: tuple[int, ...]) -> tuple[Shape, Shape, Shape]:
    """Return logical index, core and index inside the core of point `k`."""
    logical, physical = ([int(i[k]) for i in axes] for axes in (points.logical, points.physical))
    rank = points.layout.core_rank
    return tuple(logical), tuple(physical[:rank]), tuple(physical[rank:])


def hover(points: Points, k: tuple[int, ...]) -> str:
    """Return the hover text of a point, such as
    `logical (3, 4) -> core (1, 0), local (0, 1, 4), byte 12`.
    """
    logical, core, local = at(points, k)
    layout = points.layout
    offset = int(number(local, layout.local_shape))
    byte, bit = layout.byte_of(offset), layout.bit_of(offset)
    place = f"core {core}, local {local}, offset {offset}"
    place += "" if byte is None else f", byte {byte}"
    place += f", bit {bit}" if bit else ""
    return f"logical {logical} -> {place}" if points.valid[k] else f"padding: {place}"


def cell_label(points: Points, k: tuple[int, ...], kind: str) -> str:
    """Return the text in the cell of a point; empty for padding."""
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
    byte = points.layout.byte_of(offset)
    return "" if byte is None else str(byte)


def as_label(kind: Any) -> str:
    """Return `kind` if it is one of `LABELS`, else raise `LayoutError`."""
    return one_of(kind, LABELS, "label")
