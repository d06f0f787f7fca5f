"""The few steps that every layout is built from: invertible, but for some `Scatter`s.

A layout is a list of steps on *axes*. The logical dims are the axes 0, 1, ... A step removes some
axes and adds new ones, numbered in order of creation. `order` lists the axes that remain after the
steps; these are the physical dims. By composition, this list gives the affine map from a logical
index to a physical index and its inverse with the domain where it is valid (both here), and the
pad-reshape-transpose program that moves the data (`gridlayout.layouts.program`).

| step | index | array |
|---|---|---|
| `Pad(axis, low, high)` | `e + low` | pad; negative numbers trim padding |
| `Flip(axis)` | `n - 1 - e` | reverse |
| `Split(axis, sizes)` | the digits of `e` | reshape |
| `Join(axes)` | one number from digits | transpose, reshape |
| `Unit()` | `0` | a new dim of extent 1 |
| `Scatter(map, sizes)` | `map(e0, e1, ...)` | gather and scatter, for maps with no other program |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from gridlayout.affine.expressions import MAX_DEPTH, MAX_NODES
from gridlayout.affine.map import AffineExpr, AffineMap, constant, dim
from gridlayout.caching import cached


@dataclass(frozen=True)
class Pad:
    """Adds `low` positions before and `high` after; negative numbers remove padding."""

    axis: int
    low: int
    high: int


@dataclass(frozen=True)
class Flip:
    """Reverses an axis."""

    axis: int


@dataclass(frozen=True)
class Split:
    """Splits an axis into digits, the major first; the product of `sizes` is its extent."""

    axis: int
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Join:
    """Joins several axes, the major first, into one."""

    axes: tuple[int, ...]


@dataclass(frozen=True)
class Unit:
    """Adds a new axis of extent 1."""


@dataclass(frozen=True)
class Scatter:
    """Sends the index of all axes, in order, through an affine map to axes of extents `sizes`."""

    map: AffineMap
    sizes: tuple[int, ...]


Step = Pad | Flip | Split | Join | Unit | Scatter


def renamed(step: Step, axes: Sequence[int]) -> Step:
    """The same step on other axes, given in the order in which the step reads them.

    >>> renamed(Join((4, 2)), (0, 1))
    Join(axes=(0, 1))
    """
    match step:
        case Join():
            return Join(tuple(axes))
        case Pad() | Flip() | Split():
            return replace(step, axis=axes[0])
        case _:
            return step


class StepBuilder:
    """Builds a list of steps and tracks the extent of each live axis.

    Axes are numbered in order of creation; `next_axis` is the number of the next one. Expressions
    of the axes are computed only on request, because many callers need only extents.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self.steps: list[Step] = []
        self.extent: dict[int, int] = dict(enumerate(shape))
        self._shape = tuple(shape)
        self.next_axis = len(self._shape)

    def _add(self, extent: int) -> int:
        axis, self.next_axis = self.next_axis, self.next_axis + 1
        self.extent[axis] = extent
        return axis

    @property
    def expr(self) -> dict[int, AffineExpr]:
        """The expression of each live axis in the logical dims."""
        return _expressions(self._shape, self.steps)

    def pad(self, axis: int, low: int, high: int) -> int:
        """Pad an axis by `low` and `high` positions; returns the same axis if both are 0."""
        if low == high == 0:
            return axis
        self.steps.append(Pad(axis, low, high))
        return self._add(self.extent.pop(axis) + low + high)

    def resize(self, axis: int, extent: int) -> int:
        """Pad or trim an axis at its end to `extent`."""
        return self.pad(axis, 0, extent - self.extent[axis])

    def flip(self, axis: int) -> int:
        """Reverse an axis."""
        self.steps.append(Flip(axis))
        return self._add(self.extent.pop(axis))

    def split(self, axis: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """Split an axis into digits, major first; returns the same axis for a single digit."""
        if len(sizes) == 1:
            return (axis,)
        self.steps.append(Split(axis, tuple(sizes)))
        del self.extent[axis]
        return tuple(map(self._add, sizes))

    def join(self, axes: Sequence[int]) -> int:
        """Join axes, major first, into one."""
        if len(axes) == 1:
            return axes[0]
        self.steps.append(Join(tuple(axes)))
        return self._add(prod([self.extent.pop(axis) for axis in axes]))

    def strided(self, terms: Sequence[tuple[int, int]], offset: int, extent: int) -> int:
        """Join axes into one axis of `extent`, each with a stride.

        terms: pairs (stride, axis), for which `nest` must succeed. The index on the new axis is
        `offset + sum(stride * index)`; positions that no index reaches are padding.
        """
        ordered = nest(terms, self.extent)
        assert ordered is not None
        current: int | None = None
        for stride, axis in ordered:
            if stride < 0:
                offset += stride * (self.extent[axis] - 1)
                axis = self.flip(axis)
            if current is None and abs(stride) == 1:
                current = axis
                continue
            current = self.unit() if current is None else current
            current = self.join((axis, self.resize(current, abs(stride))))
        current = self.unit() if current is None else current
        return self.resize(self.pad(current, offset, 0), extent)

    def unit(self) -> int:
        """Add an axis of extent 1."""
        self.steps.append(Unit())
        return self._add(1)

    def scatter(self, map: AffineMap, sizes: Sequence[int]) -> tuple[int, ...]:
        """Send all live axes, in order, through `map`; only allowed as the first step."""
        self.steps.append(Scatter(map, tuple(sizes)))
        self.extent.clear()
        return tuple(self._add(size) for size in sizes)

    def run(self, steps: Sequence[Step]) -> StepBuilder:
        """Apply `steps` again; axes get the same numbers as in the builder that made the steps."""
        for step in steps:
            match step:
                case Pad(axis, low, high):
                    self.pad(axis, low, high)
                case Flip(axis):
                    self.flip(axis)
                case Split(axis, sizes):
                    self.split(axis, sizes)
                case Join(axes):
                    self.join(axes)
                case Unit():
                    self.unit()
                case Scatter(map, sizes):
                    self.scatter(map, sizes)
        return self


def _expressions(shape: Sequence[int], steps: Sequence[Step]) -> dict[int, AffineExpr]:
    """The expression of each live axis after the steps, in the logical dims."""
    builder = StepBuilder(shape)
    expr: dict[int, AffineExpr] = {i: dim(i) for i in range(len(shape))}
    for step in steps:
        before, first = dict(builder.extent), builder.next_axis
        builder.run([step])
        made: Sequence[AffineExpr]
        match step:
            case Pad(axis, low, _):
                made = [expr.pop(axis) + low]
            case Flip(axis):
                made = [-expr.pop(axis) + (before[axis] - 1)]
            case Split(axis, sizes):
                made = _digits(expr.pop(axis), sizes)
            case Join(axes):
                made = [_number([expr.pop(a) for a in axes], [before[a] for a in axes])]
            case Unit():
                made = [constant(0)]
            case Scatter(map, _):
                inner = AffineMap(map.num_dims, tuple(expr.pop(a) for a in sorted(before)))
                made = map.compose(inner).results
        expr.update(zip(range(first, builder.next_axis), made, strict=True))
    return expr


@cached
def is_small(rank: int, steps: tuple[Step, ...]) -> bool:
    """Whether the expressions of the steps are certainly within the limits of `AffineExpr`.

    This computes an upper bound of their sizes, which is much cheaper than the expressions.

    >>> is_small(1, (Split(0, (2, 2)),)), is_small(1, tuple(Flip(k) for k in range(99)))
    (True, False)
    """
    size: dict[int, tuple[int, int]] = dict.fromkeys(range(rank), (1, 1))  # nodes and depth
    next_axis = rank
    for step in steps:
        match step:
            case Pad(axis, _, _) | Flip(axis):
                nodes, depth = size.pop(axis)
                made = [(nodes + 4, depth + 2)]
            case Split(axis, sizes):
                nodes, depth = size.pop(axis)
                made = [(nodes + 4, depth + 2)] * len(sizes)
            case Join(axes):
                parts = [size.pop(axis) for axis in axes]
                nodes = sum(nodes for nodes, _ in parts) + 4 * len(parts)
                made = [(nodes, max(depth for _, depth in parts) + 1 + len(parts))]
            case Unit():
                made = [(1, 1)]
            case Scatter():
                return False
        if any(nodes > MAX_NODES or depth > MAX_DEPTH for nodes, depth in made):
            return False
        size.update(zip(range(next_axis, next_axis + len(made)), made, strict=True))
        next_axis += len(made)
    return True


def nest(
    terms: Sequence[tuple[int, int]], extent: Mapping[int, int]
) -> list[tuple[int, int]] | None:
    """The pairs (stride, axis) from the minor to the major axis, or None if they don't nest.

    Strides nest if each is at least the span of all axes with smaller strides, as in
    `d0 * 32 + d1` with 8 columns. An axis of extent 1 nests with any stride, returned as 1.

    >>> nest([(32, 0), (1, 1)], {0: 2, 1: 8}), nest([(4, 0), (1, 1)], {0: 2, 1: 8})
    ([(1, 1), (32, 0)], None)
    """
    ordered = [(stride if extent[axis] != 1 else 1, axis) for stride, axis in terms]
    # Among equal strides, an axis of extent 0 comes first.
    ordered.sort(key=lambda term: (abs(term[0]), extent[term[1]]))
    span = 1
    for stride, axis in ordered:
        if span > abs(stride) and extent[axis] != 1:
            return None
        span += abs(stride) * (extent[axis] - 1)
    return ordered


def _digits(expr: AffineExpr, sizes: Sequence[int]) -> list[AffineExpr]:
    digits = []
    for k, size in enumerate(sizes):
        inner = max(prod(sizes[k + 1 :]), 1)
        digit = expr // inner
        digits.append(digit if k == 0 else digit % max(size, 1))
    return digits


def _number(exprs: Sequence[AffineExpr], extents: Sequence[int]) -> AffineExpr:
    total = constant(0)
    for k, expr in enumerate(exprs):
        total = total + expr * prod(extents[k + 1 :])
    return total


@dataclass(frozen=True)
class InverseExprs:
    """The inverse of some steps, as expressions in the physical dims.

    logical: one expression per logical dim. They are valid where `0 <= expr < bound` for every
    pair of `bounds`, and where every expression of `equal` is 0.
    """

    logical: tuple[AffineExpr, ...]
    bounds: tuple[tuple[AffineExpr, int], ...]
    equal: tuple[AffineExpr, ...]


def inverse_exprs(
    shape: Sequence[int], steps: Sequence[Step], order: Sequence[int]
) -> InverseExprs:
    """The inverse of the steps, as expressions in the physical dims.

    A physical index is the image of a logical index if and only if all bounds hold and every
    expression in `equal` is 0. `LayoutError` for a `Scatter` whose map has no closed inverse.
    """
    forward = StepBuilder(shape)
    expr: dict[int, AffineExpr] = {axis: dim(k) for k, axis in enumerate(order)}
    bounds: list[tuple[AffineExpr, int]] = []
    equal: list[AffineExpr] = []
    made: list[tuple[Step, dict[int, int], tuple[int, ...]]] = []
    for step in steps:
        before = dict(forward.extent)
        forward.run([step])
        made.append((step, before, tuple(a for a in forward.extent if a not in before)))
    for step, before, new in reversed(made):
        match step:
            case Pad(axis, low, _):
                expr[axis] = expr.pop(new[0]) - low
                bounds.append((expr[axis], before[axis]))
            case Flip(axis):
                expr[axis] = -expr.pop(new[0]) + (before[axis] - 1)
            case Split(axis, sizes):
                expr[axis] = _number([expr.pop(a) for a in new], sizes)
            case Join(axes):
                extents = [before[a] for a in axes]
                digits = _digits(expr.pop(new[0]), extents)
                expr.update(zip(axes, digits, strict=True))
            case Unit():
                expr.pop(new[0])
            case Scatter(map, _):
                axes = tuple(sorted(before))
                inverse = map.inverse(tuple(before[a] for a in axes))
                inner = AffineMap(len(order), tuple(expr.pop(a) for a in new))
                expr.update(zip(axes, inverse.map.compose(inner).results, strict=True))
                bounds += [(expr[a], before[a]) for a in axes]
                again = map.compose(AffineMap(len(order), tuple(expr[a] for a in axes)))
                equal += [a - b for a, b in zip(again.results, inner.results, strict=True)]
    logical = tuple(expr[a] for a in range(len(shape)))
    return InverseExprs(logical, tuple(bounds), tuple(equal))
