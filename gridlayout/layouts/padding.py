"""Padding: the physical positions that hold no logical element, as a mask, boxes or counts.

Padding is not always a rectangle at the end, because collapsed dims have gaps inside. The logical
and physical dims of the index map form independent *groups*: no dim belongs to two of them. A
position holds an element if it does in every group. So a small mask per group suffices, and the
mask of all positions is built only on request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from gridlayout.affine.map import AffineMap
from gridlayout.affine.search import components
from gridlayout.caching import array_bytes, cached
from gridlayout.errors import LayoutError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gridlayout.layouts.mapped import Mapped

Box = tuple[slice, ...]
# The largest mask in bytes, one per element; a request for a larger one is probably a mistake.
MAX_MASK = 2**32
_CHUNK = 1 << 20


@dataclass(frozen=True)
class DimGroup:
    """Logical and physical dims of a layout that depend on each other and on no other dims."""

    logical: tuple[int, ...]
    physical: tuple[int, ...]


def dim_groups(layout: Mapped) -> tuple[DimGroup, ...]:
    """The independent groups of a layout's dims, in the order of their first physical dim.

    >>> from gridlayout import GridLayout
    >>> layout = GridLayout((53, 63), "f4", grid=(3, 2), tile=(16, 16))
    >>> [group.physical for group in dim_groups(layout)]
    [(0, 2, 4), (1, 3, 5)]
    """
    # A logical dim that no result reads has extent 1, or all its indices share one position. A
    # physical dim that reads no logical dim is a group by itself.
    groups = components(layout.index_map.used_dims())
    found = [DimGroup(tuple(sorted(dims)), physical) for dims, physical in groups]
    return tuple(sorted(found, key=lambda group: group.physical))


# Masks of up to this many bytes are cached; a larger one would displace many other results.
_MAX_CACHED = 1 << 17


def _valid(layout: Mapped) -> tuple[tuple[DimGroup, NDArray[np.bool_]], ...]:
    """Each group, and the mask of its valid positions over the group's physical dims."""
    sizes = (prod(layout.physical_shape[k] for k in group.physical) for group in dim_groups(layout))
    return (_cached_masks if sum(sizes) <= _MAX_CACHED else _masks)(layout)


def _masks(layout: Mapped) -> tuple[tuple[DimGroup, NDArray[np.bool_]], ...]:
    if 0 in layout.shape:
        everything = tuple(range(len(layout.physical_shape)))
        return ((DimGroup((), everything), np.zeros(_mask_shape(layout, everything), bool)),)
    return tuple((group, _group_mask(layout, group)) for group in dim_groups(layout))


_cached_masks = cached(size=array_bytes)(_masks)


def _mask_shape(layout: Mapped, dims: tuple[int, ...]) -> tuple[int, ...]:
    return _check_mask(tuple(layout.physical_shape[k] for k in dims))


def _check_mask(shape: tuple[int, ...]) -> tuple[int, ...]:
    if prod(shape) > MAX_MASK:
        raise LayoutError(
            f"the padding mask of dims {shape} would take {prod(shape)} bytes, more than "
            f"{MAX_MASK}; use layout.logical_index(...) for single positions"
        )
    return shape


def _group_mask(layout: Mapped, group: DimGroup) -> NDArray[np.bool_]:
    results = tuple(layout.index_map.results[k] for k in group.physical)
    return image(AffineMap(layout.ndim, results), layout.shape, _mask_shape(layout, group.physical))


def image(map: AffineMap, shape: tuple[int, ...], mask_shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """A bool array of `mask_shape`, True at every value that the map takes on the box `shape`.

    >>> image(AffineMap.parse("(d0, d1) -> (d0 * 3 + d1)"), (2, 2), (6,)).astype(int)
    array([1, 1, 0, 1, 1, 0])
    """
    mask = np.zeros(_check_mask(mask_shape), bool)
    if 0 in shape:
        return mask
    used = sorted(frozenset().union(*map.used_dims()))
    extents = tuple(shape[d] for d in used)
    for start in range(0, prod(extents), _CHUNK):
        flat = np.arange(start, min(start + _CHUNK, prod(extents)))
        index: list[NDArray[np.int64] | int] = [0] * len(shape)
        unraveled = np.unravel_index(flat, extents) if extents else ()
        for d, values in zip(used, unraveled, strict=True):
            index[d] = values
        mask[tuple(np.broadcast_to(r, flat.shape) for r in map(*index))] = True
    return mask


def padding_mask(layout: Mapped) -> NDArray[np.bool_]:
    """A bool array of the layout's physical shape, True where the position is padding.

    >>> from gridlayout import GridLayout
    >>> layout = GridLayout((5, 7), "f4", grid=(2, 4))
    >>> padding_mask(layout).sum(), layout.physical_shape
    (np.int64(13), (2, 4, 3, 2))
    """
    rank = len(layout.physical_shape)
    _mask_shape(layout, tuple(range(rank)))
    padding = np.zeros(layout.physical_shape, bool)
    for group, valid in _valid(layout):
        padding |= ~_expanded(valid, group.physical, rank)
    return padding


def _expanded(array: NDArray[np.bool_], dims: tuple[int, ...], rank: int) -> NDArray[np.bool_]:
    shape = [1] * rank
    for d, n in zip(dims, array.shape, strict=True):
        shape[d] = n
    return array.reshape(shape)


def padding_per_core(layout: Mapped) -> NDArray[np.int64]:
    """The number of padding positions of each core's buffer: an array of `core_shape`."""
    rank = layout.core_rank
    valid = np.ones(layout.core_shape, np.int64)
    for group, mask in _valid(layout):
        inside = tuple(i for i, d in enumerate(group.physical) if d >= rank)
        cores = tuple(d for d in group.physical if d < rank)
        count = mask.sum(axis=inside, dtype=np.int64)
        shape = [1] * rank
        for d in cores:
            shape[d] = layout.physical_shape[d]
        valid = valid * count.reshape(shape)
    return np.asarray(prod(layout.local_shape) - valid)


# Up to this many positions, elements are counted by masks, which is fast and takes megabytes.
_MAX_COUNTED = 1 << 22


def elements_per_core(layout: Mapped) -> NDArray[np.int64] | None:
    """The number of positions on each core that hold elements, an array of `core_shape`.

    None if they are too many to count.

    >>> from gridlayout import GridLayout
    >>> elements_per_core(GridLayout((5, 4), grid=(4, 1))).tolist()
    [[8], [8], [4], [0]]
    """
    counted = sum(
        prod(layout.physical_shape[k] for k in group.physical) for group in dim_groups(layout)
    )
    if max(counted, layout.num_cores) > _MAX_COUNTED:
        return None
    return prod(layout.local_shape) - padding_per_core(layout)


def bounded_share(layout: Mapped) -> float:
    """The share of physical positions that are padding, 0 to 1, at bounded cost.

    A layout with a `Scatter` and more than 2**22 positions or elements is not counted: the share
    then assumes that no two elements have the same position.

    >>> from gridlayout import GridLayout
    >>> bounded_share(GridLayout((4, 48), grid=(1, 1), tile=(4, 64)))
    0.25
    """
    total = prod(layout.physical_shape)
    if layout.is_scatter and max(total, layout.size) > _MAX_COUNTED:
        return max(total - layout.size, 0) / total if total else 0.0
    return exact_share(layout)


def exact_share(layout: Mapped) -> float:
    """The share of physical positions that are padding, 0 to 1, at any cost."""
    total = prod(layout.physical_shape)
    if not total:
        return 0.0
    try:
        layout.check_invertible()
    except LayoutError:  # several elements share a place, so count the places
        return int(padding_per_core(layout).sum()) / total
    return (total - layout.size) / total


def padded_regions(layout: Mapped) -> list[Box]:
    """The padding as a list of few disjoint boxes: tuples of slices of the physical array.

    >>> from gridlayout import GridLayout
    >>> for box in padded_regions(GridLayout((5, 8), "f4", grid=(2, 4))):
    ...     print(box)
    (slice(1, 2, None), slice(0, 4, None), slice(2, 3, None), slice(0, 2, None))
    """
    if 0 in layout.physical_shape:
        return []
    split = [(group, _boxes(mask), _boxes(~mask)) for group, mask in _valid(layout)]
    split = [entry for entry in split if entry[2]]
    # Region k is valid in the groups before k, padding in group k, and anything in those after it.
    # Groups with few valid boxes come first, which keeps the products small.
    split.sort(key=lambda entry: (len(entry[1]) - 1) / len(entry[2]))
    full = [slice(0, n) for n in layout.physical_shape]
    regions: list[Box] = []
    for k, (group, _, padding) in enumerate(split):
        choices = [[(p.physical, box) for box in valid] for p, valid, _ in split[:k]]
        choices.append([(group.physical, box) for box in padding])
        for chosen in product(*choices):
            region = list(full)
            for dims, box in chosen:
                for d, side in zip(dims, box, strict=True):
                    region[d] = side
            regions.append(tuple(region))
    return regions


def _boxes(mask: NDArray[np.bool_]) -> list[Box]:
    """Disjoint boxes that cover a mask's True positions: the shorter result of two sweeps."""
    forward = list(_sweep(mask))
    backward = [box[::-1] for box in _sweep(mask.transpose())]
    return min(forward, backward, key=len)


def _sweep(mask: NDArray[np.bool_]) -> Iterator[Box]:
    """Disjoint boxes of the True positions: runs of equal slices, found dim by dim."""
    if mask.ndim == 0:
        if mask:
            yield ()
        return
    if not mask.any():
        return
    rows = mask.reshape(mask.shape[0], -1)
    changes = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
    edges = [0, *changes.tolist(), mask.shape[0]]
    for start, stop in pairwise(edges):
        for box in _sweep(mask[start]):
            yield (slice(start, stop), *box)
