"""Collapse: joins logical dims into the fewer dims that a grid divides (tt-mlir).

This module turns collapse intervals into the affine map `linear`, and this map into the collapsed
shape and the steps that implement it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from gridlayout.affine.map import AffineExpr, AffineMap, constant, linearized
from gridlayout.arguments import Shape, shown
from gridlayout.caching import cached
from gridlayout.errors import LayoutError
from gridlayout.layouts.steps import StepBuilder, nest

_MOST_TERMS = 32  # a sum of this many terms is within the parser's limits


def _intervals(collapse: Any, rank: int) -> list[tuple[int, int]]:
    """Return the sorted nonempty intervals (start, end), end excluded, counted from 0."""
    found = []
    try:
        pairs = [(operator.index(start), operator.index(end)) for start, end in collapse]
    except (TypeError, ValueError):
        raise LayoutError(
            f"collapse {shown(collapse)} must be a list of pairs (start, end) of integers"
        ) from None
    for start, end in pairs:
        low, high = (start + rank if start < 0 else start), (end + rank if end < 0 else end)
        if rank == 0 and (start, end) == (0, -1):
            continue
        if not 0 <= low <= high <= rank:
            raise LayoutError(
                f"collapse interval {shown((start, end))} is not inside the rank {rank}: "
                "0 <= start <= end <= rank, where negative numbers count from the rank"
            )
        if low < high:
            found.append((low, high))
    found.sort()
    for (_, before), (after, _) in pairwise(found):
        if after < before:
            raise LayoutError(f"collapse intervals {pairs} overlap at dim {after}")
    return found


@cached(entries=1024)
def as_printed(linear: AffineMap) -> AffineMap:
    """The map that its own text parses to, so that `parse(str(layout)) == layout`.

    The parser nests sums from the left, and it may simplify them further.

    >>> from gridlayout.affine.map import dims
    >>> d0, d1, d2 = dims(3)
    >>> left, right = AffineMap(3, [(d0 + d1) + d2]), AffineMap(3, [d0 + (d1 + d2)])
    >>> left == right, as_printed(left) == as_printed(right)
    (False, True)
    """
    if all(map(_is_plain_sum, linear.results)):
        return linear
    for _ in range(16):
        try:
            again = AffineMap.parse(str(linear))
        except LayoutError:  # too deep or too long for the parser
            break
        if again == linear:
            break
        linear = again
    return linear


def _is_plain_sum(expr: AffineExpr) -> bool:
    """Whether it is a sum of multiples of distinct dims and a constant, nested from the left.

    Such a sum cannot be simplified, so its text parses to the same expression.
    """
    if expr.lhs is not None and expr.rhs is not None and expr.rhs.kind == "constant":
        expr = expr.lhs
    for _ in range(_MOST_TERMS):
        if expr.lhs is None or expr.rhs is None:
            return _is_term(expr)
        if not _is_term(expr.rhs) or expr.rhs.dims & expr.lhs.dims:
            return False
        expr = expr.lhs
    return False


def _is_term(expr: AffineExpr) -> bool:
    factor = expr.lhs if expr.kind == "mul" else expr
    return factor is not None and factor.kind == "dim"


def collapse_map(shape: Shape, collapse: Any, grid_rank: int) -> AffineMap:
    """The linear map of collapse intervals (tt-mlir, "Dimension Collapsing").

    With fewer collapsed dims than grid dims, the document keeps the last logical dims and replaces
    some of them by joins, as in (d0 * 96 + d1, d1, d2). A tensor of lower rank than the grid gets
    leading zeros, as in (0, d0). `LayoutError` for intervals that do not fit the grid.
    """
    rank = len(shape)
    collapse = [(0, -1)] if collapse is None else collapse
    intervals = _intervals(collapse, rank)
    groups: list[tuple[int, ...]] = []
    at = 0
    for start, end in intervals:
        groups += [(d,) for d in range(at, start)] + [tuple(range(start, end))]
        at = end
    groups += [(d,) for d in range(at, rank)]
    if len(groups) > grid_rank:
        raise LayoutError(
            f"collapse {collapse} leaves {len(groups)} dims of a rank-{rank} tensor, "
            f"but the grid has rank {grid_rank}: join more, or give a grid of rank {len(groups)}"
        )
    if len(groups) == grid_rank or rank < grid_rank:
        zeros = [constant(0)] * (grid_rank - len(groups))
        return AffineMap(rank, (*zeros, *(linearized(shape, dims) for dims in groups)))
    first = rank - grid_rank
    kept: list[tuple[int, ...]] = [(d,) for d in range(first, rank)]
    for start, end in intervals:
        kept[max(start - first, 0)] = tuple(range(start, end))
    lost = set(range(rank)).difference(*kept)
    if lost:
        raise LayoutError(
            f"collapse {collapse} of a rank-{rank} tensor puts dim {min(lost)} in no dim of a "
            f"rank-{grid_rank} grid: give a grid of rank {len(groups)}, or a linear map"
        )
    return AffineMap(rank, tuple(linearized(shape, dims) for dims in kept))


def default_map(shape: Shape, grid_rank: int) -> AffineMap | None:
    """The map of the default interval, or None if it does not fit the grid's rank."""
    try:
        return collapse_map(shape, None, grid_rank)
    except LayoutError:
        return None


def collapsed_shape(linear: AffineMap, shape: Shape, grid: Shape) -> Shape:
    """One more than the largest value of each result (tt-mlir, "Multi-Core"); 0 without elements.

    `LayoutError` if the map does not fit the shape and the grid, or a result is < 0 or too large.
    """
    if linear.num_dims != len(shape):
        raise LayoutError(
            f"linear {linear} takes {linear.num_dims} dims, "
            f"but the shape {shape} has rank {len(shape)}"
        )
    if len(linear.results) != len(grid):
        raise LayoutError(
            f"linear {linear} has {len(linear.results)} results, "
            f"but the grid {grid} has rank {len(grid)}"
        )
    ranges = _ranges(linear, tuple(max(n, 1) for n in shape))
    for result, (low, high) in zip(linear.results, ranges, strict=True):
        if low < 0:
            raise LayoutError(
                f"linear {linear}: {result} reaches {low} on the shape {shape}; a collapsed index "
                f"must be >= 0, so add {-low}"
            )
        if high >= 2**62:
            raise LayoutError(f"linear {linear}: {result} reaches {high}, over 2**62")
    used = linear.used_dims()
    return tuple(
        0 if any(shape[d] == 0 for d in dims) else high + 1
        for dims, (_, high) in zip(used, ranges, strict=True)
    )


def _ranges(linear: AffineMap, shape: Shape) -> Sequence[tuple[int, int]]:
    """`linear.range`, computed directly for a linear map."""
    if not linear.is_linear():
        return linear.range(shape)
    found = []
    for row, offset in linear.coefficients():
        ends = [c * (n - 1) for c, n in zip(row, shape, strict=True)]
        found.append(
            (offset + sum(e for e in ends if e < 0), offset + sum(e for e in ends if e > 0))
        )
    return found


def collapse_steps(
    builder: StepBuilder, linear: AffineMap, shape: Shape, collapsed: Shape
) -> list[int]:
    """Build the steps from logical to collapsed dims: joins if strides nest, else a scatter."""
    plan = _join_plan(linear, shape)
    if plan is None:
        return list(builder.scatter(linear, collapsed))
    return [
        builder.strided(terms, offset, extent)
        for (terms, offset), extent in zip(plan, collapsed, strict=True)
    ]


_Terms = tuple[list[tuple[int, int]], int]


def _join_plan(linear: AffineMap, shape: Shape) -> list[_Terms] | None:
    """For each result, its terms (stride, dim) and its offset; None unless all strides nest.

    Also None if the map divides, if a dim is in two results, or if one is in no result.
    """
    if not linear.is_linear():
        return None
    plan: list[_Terms] = []
    seen = set()
    for coefficients, offset in linear.coefficients():
        terms = []
        for d in range(len(shape)):
            # A dim of extent 1 contributes nothing, so it can be in any result.
            if coefficients[d] and (shape[d] > 1 or d not in seen):
                if d in seen:
                    return None
                seen.add(d)
                terms.append((coefficients[d], d))
        if nest(terms, dict(enumerate(shape))) is None:
            return None
        plan.append((terms, offset))
    missing = [d for d in range(len(shape)) if d not in seen]
    if any(shape[d] != 1 for d in missing):
        return None
    for d in missing:
        plan[0][0].insert(0, (1, d))
    return plan
