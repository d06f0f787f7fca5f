"""`Traffic`: how many elements each core of one layout shares with each core of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from gridlayout.affine.map import AffineMap, constant, dim
from gridlayout.affine.search import components
from gridlayout.arguments import Ints
from gridlayout.errors import LayoutError

CHUNK = 1 << 20  # indices evaluated at a time
MAX_INDICES = 1 << 28  # indices enumerated for one group of dims
MAX_PAIRS = 1 << 22  # pairs of cores


@dataclass(frozen=True, eq=False)
class Traffic:
    """The number of elements for each pair of a core in one layout and a core in another.

    before, after: the coordinates of the two cores, one row per pair. counts: the number of
    elements that are on both cores of the pair. Each logical element counts once.
    """

    before: Ints
    after: Ints
    counts: Ints


def core_traffic(
    shape: tuple[int, ...],
    before: AffineMap,
    after: AffineMap,
    max_indices: int = MAX_INDICES,
    max_pairs: int = MAX_PAIRS,
) -> Traffic:
    """The traffic between two maps from an index in `shape` to the coordinates of a core.

    max_indices: the largest number of indices of dims that a group of core coordinates reads; these
    are enumerated. max_pairs: the largest number of pairs of cores. `LayoutError` for more.

    >>> maps = [AffineMap.parse(text) for text in ("(d0) -> (d0 floordiv 3)", "(d0) -> (d0)")]
    >>> core_traffic((6,), *maps).counts.tolist()
    [1, 1, 1, 1, 1, 1]
    """
    results = (*before.results, *after.results)
    rank, split = len(results), len(before.results)
    rows, counts = np.zeros((1, rank), np.int64), np.ones(1, np.int64)
    if 0 in shape:
        return Traffic(rows[:0, :split], rows[:0, split:], counts[:0])
    reads = AffineMap(len(shape), results).used_dims()
    unused = set(range(len(shape))).difference(*reads)
    counts *= prod(shape[d] for d in unused)
    for dims, members in components(frozenset(dims) for dims in reads):
        own = AffineMap(len(shape), [results[k] for k in members])
        found, times = _histogram(own, shape, sorted(dims), max_indices)
        if len(rows) * len(found) > max_pairs:
            raise LayoutError(f"more than {max_pairs} pairs of cores share data")
        rows = np.repeat(rows, len(found), axis=0)
        rows[:, list(members)] = np.tile(found, (len(counts), 1))
        counts = np.outer(counts, times).reshape(-1)
    return Traffic(rows[:, :split], rows[:, split:], counts)


def _histogram(
    cores: AffineMap, shape: tuple[int, ...], dims: list[int], max_indices: int
) -> tuple[Ints, Ints]:
    """The distinct results of a map that reads only `dims`, and how often each occurs."""
    extents = tuple(shape[d] for d in dims)
    if prod(extents) > max_indices:
        raise LayoutError(
            f"the cores of {cores} depend on dims {dims}, which have {prod(extents)} indices "
            f"together; at most {max_indices} can be enumerated"
        )
    exprs = [dim(dims.index(d)) if d in dims else constant(0) for d in range(len(shape))]
    inner = cores.compose(AffineMap(len(dims), exprs))
    if not dims:
        return np.array([inner()], np.int64), np.ones(1, np.int64)
    total: dict[tuple[int, ...], int] = {}
    for index in _chunks(extents):
        values = [np.broadcast_to(np.asarray(r, np.int64), index[0].shape) for r in inner(*index)]
        for row, count in _counted(values):
            total[row] = total.get(row, 0) + count
    rows = sorted(total)
    return np.array(rows, np.int64), np.array([total[row] for row in rows], np.int64)


def _counted(columns: list[Ints]) -> Iterator[tuple[tuple[int, ...], int]]:
    """The distinct rows of some columns, and how often each occurs."""
    lows = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low + 1 for column, low in zip(columns, lows, strict=True)]
    if prod(spans) >= 2**63:
        distinct, times = np.unique(np.stack(columns), axis=1, return_counts=True)
        yield from zip(map(tuple, distinct.T.tolist()), times.tolist(), strict=True)
        return
    numbers = np.zeros(columns[0].shape, np.int64)  # rows as single numbers, which sort fast
    for column, low, span in zip(columns, lows, spans, strict=True):
        numbers = numbers * span + (column - low)
    if prod(spans) <= 4 * len(numbers):
        times = np.bincount(numbers)
        found = np.flatnonzero(times)
        times = times[found]
    else:
        found, times = np.unique(numbers, return_counts=True)
    digits = np.unravel_index(found, spans)
    rows = zip(*(d.tolist() for d in digits), strict=True)
    for row, count in zip(rows, times.tolist(), strict=True):
        yield tuple(d + low for d, low in zip(row, lows, strict=True)), count


def _chunks(extents: tuple[int, ...]) -> Iterator[tuple[Ints, ...]]:
    """All indices of a box in row-major order, chunk by chunk: one array per dim."""
    for start in range(0, prod(extents), CHUNK):
        flat = np.arange(start, min(start + CHUNK, prod(extents)))
        yield tuple(np.asarray(i, np.int64) for i in np.unravel_index(flat, extents))
