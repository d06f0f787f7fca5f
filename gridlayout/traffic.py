"""`Traffic`: how many elements each core of one layout holds for each core of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from gridlayout.affine import AffineMap, constant, dim
from gridlayout.affine_search import components
from gridlayout.errors import LayoutError
from gridlayout.layout import Layout

Ints = NDArray[np.int64]
CHUNK = 1 << 20  # indices evaluated at once
MAX_INDICES = 1 << 28  # listed for one group of dims
MAX_PAIRS = 1 << 22  # pairs of cores


@dataclass(frozen=True, eq=False)
class Traffic:
    """Elements by pair of cores: row `k` says that `counts[k]` elements lie in both cores `k`.

    before, after: coordinates in the core grids, one row a pair. Each logical element counts once.
    """

    before: Ints
    after: Ints
    counts: Ints


def traffic(a: Layout, b: Layout) -> Traffic:
    """The traffic between two layouts of one logical shape.

    `LayoutError` where too many indices would have to be listed: core coordinates that read
    logical dims of more than 2**28 indices together.

    >>> from gridlayout import GridLayout
    >>> found = traffic(GridLayout((6,), grid=(2,)), GridLayout((6,), grid=(3,)))
    >>> for row in zip(found.before.tolist(), found.after.tolist(), found.counts.tolist()):
    ...     print(row)
    ([0], [0], 2)
    ([0], [1], 1)
    ([1], [1], 1)
    ([1], [2], 2)
    """
    results = (*a.index_map.results[: a.core_rank], *b.index_map.results[: b.core_rank])
    rank = len(results)
    rows, counts = np.zeros((1, rank), np.int64), np.ones(1, np.int64)
    if 0 in a.shape:
        return Traffic(rows[:0, : a.core_rank], rows[:0, a.core_rank :], counts[:0])
    reads = AffineMap(a.ndim, results).used_dims()
    silent = set(range(a.ndim)).difference(*reads)
    counts *= prod(a.shape[d] for d in silent)
    for dims, members in components(frozenset(dims) for dims in reads):
        own = AffineMap(a.ndim, [results[k] for k in members])
        found, times = _histogram(own, a.shape, sorted(dims))
        if len(rows) * len(found) > MAX_PAIRS:
            raise LayoutError(
                f"{a!r} and {b!r} have more than {MAX_PAIRS} pairs of cores that share data"
            )
        rows = np.repeat(rows, len(found), axis=0)
        rows[:, list(members)] = np.tile(found, (len(counts), 1))
        counts = np.outer(counts, times).reshape(-1)
    return Traffic(rows[:, : a.core_rank], rows[:, a.core_rank :], counts)


def _histogram(cores: AffineMap, shape: tuple[int, ...], dims: list[int]) -> tuple[Ints, Ints]:
    """The distinct results of a map that reads `dims` alone, and how often each occurs."""
    extents = tuple(shape[d] for d in dims)
    if prod(extents) > MAX_INDICES:
        raise LayoutError(
            f"the cores of {cores} depend on dims {dims}, of {prod(extents)} indices together; "
            f"up to {MAX_INDICES} can be listed"
        )
    exprs = [dim(dims.index(d)) if d in dims else constant(0) for d in range(len(shape))]
    inner = cores.compose(AffineMap(len(dims), exprs))
    if not dims:
        return np.array([inner()], np.int64), np.ones(1, np.int64)
    total: dict[tuple[int, ...], int] = {}
    for index in _chunks(extents):
        values = [np.broadcast_to(np.asarray(r, np.int64), index[0].shape) for r in inner(*index)]
        found, times = np.unique(np.stack(values, axis=1), axis=0, return_counts=True)
        for row, count in zip(map(tuple, found.tolist()), times.tolist(), strict=True):
            total[row] = total.get(row, 0) + count
    rows = sorted(total)
    return np.array(rows, np.int64), np.array([total[row] for row in rows], np.int64)


def _chunks(extents: tuple[int, ...]) -> Iterator[tuple[Ints, ...]]:
    """All indices of a box, row-major, a chunk at a time: one array a dim."""
    for start in range(0, prod(extents), CHUNK):
        flat = np.arange(start, min(start + CHUNK, prod(extents)))
        yield tuple(np.asarray(i, np.int64) for i in np.unravel_index(flat, extents))
