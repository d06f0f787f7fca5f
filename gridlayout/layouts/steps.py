"""The few invertible steps every layout is built from.

A layout is a list of steps on *axes*. The logical dims are axes 0, 1, ...; a step takes some axes
away and adds new ones, numbered in order of creation; `order` names the axes that are left, as the
physical dims. From that one list follow, by composition, the affine map from a logical index to a
physical one, its inverse with the predicate that says where it holds (both here), and the array
program pad-reshape-transpose that moves the data (`gridlayout.ops.moves.packing`).

| step | index | array |
|---|---|---|
| `Pad(axis, low, high)` | `e + low` | pad; a negative `high` trims padding |
| `Flip(axis)` | `n - 1 - e` | reverse |
| `Split(axis, sizes)` | the digits of `e` | reshape |
| `Join(axes)` | digits to one number | transpose, reshape |
| `Unit()` | `0` | a new dim of extent 1 |
| `Scatter(map, sizes)` | `map(e0, e1, ...)` | gather and scatter: for maps with no such program |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from gridlayout.affine.expressions import MAX_DEPTH, MAX_NODES
from gridlayout.affine.map import AffineExpr, AffineMap, constant, dim


@dataclass(frozen=True)
class Pad:
    """`low` positions before and `high` after; a negative `high` drops padding."""

    axis: int
    low: int
    high: int


@dataclass(frozen=True)
class Flip:
    """Reverse the axis."""

    axis: int


@dataclass(frozen=True)
class Split:
    """One axis into its digits, the major first; the product of `sizes` is the axis's extent."""

    axis: int
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Join:
    """Several axes, the major first, into one."""

    axes: tuple[int, ...]


@dataclass(frozen=True)
class Unit:
    """A new axis of extent 1."""


@dataclass(frozen=True)
class Scatter:
    """All axes, in their order, through an affine map into new axes of extents `sizes`."""

    map: AffineMap
    sizes: tuple[int, ...]


Step = Pad | Flip | Split | Join | Unit | Scatter


def renamed(step: Step, axes: Sequence[int]) -> Step:
    """The step on other axes, in the order in which it reads them.

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
    """Builds steps one after another, keeping each live axis's extent and logical expression.

    Axes are numbered as they are made; next_axis: the number of the next one.
    Expressions are made when they are first asked for: many builders only count.
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
        """The logical expression of each live axis."""
        return _expressions(self._shape, self.steps)

    def pad(self, axis: int, low: int, high: int) -> int:
        """The axis with `low` and `high` more positions; the same axis when both are 0."""
        if low == high == 0:
            return axis
        self.steps.append(Pad(axis, low, high))
        return self._add(self.extent.pop(axis) + low + high)

    def resize(self, axis: int, extent: int) -> int:
        """The axis padded, or trimmed, at its end to `extent`."""
        return self.pad(axis, 0, extent - self.extent[axis])

    def flip(self, axis: int) -> int:
        """The axis reversed."""
        self.steps.append(Flip(axis))
        return self._add(self.extent.pop(axis))

    def split(self, axis: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """The digits of the axis, major first; the same axis when there is one digit."""
        if len(sizes) == 1:
            return (axis,)
        self.steps.append(Split(axis, tuple(sizes)))
        del self.extent[axis]
        return tuple(map(self._add, sizes))

    def join(self, axes: Sequence[int]) -> int:
        """One axis of the given ones, major first."""
        if len(axes) == 1:
            return axes[0]
        self.steps.append(Join(tuple(axes)))
        return self._add(prod([self.extent.pop(axis) for axis in axes]))

    def strided(self, terms: Sequence[tuple[int, int]], offset: int, extent: int) -> int:
        """One axis of `extent` out of (stride, axis) terms that `nest`.

        Its index is `offset + sum(stride * index)`; what no index reaches is padding.
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
        """A new axis of extent 1."""
        self.steps.append(Unit())
        return self._add(1)

    def scatter(self, map: AffineMap, sizes: Sequence[int]) -> tuple[int, ...]:
        """All live axes, in order, through `map`; only as the first step."""
        self.steps.append(Scatter(map, tuple(sizes)))
        self.extent.clear()
        return tuple(self._add(size) for size in sizes)

    def run(self, steps: Sequence[Step]) -> StepBuilder:
        """Replay `steps`; axes get the same numbers as when the steps were first built."""
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
    """The expression of each axis that is live after the steps."""
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


def is_small(rank: int, steps: Sequence[Step]) -> bool:
    """Whether the expressions of the steps are surely within the limits of `AffineExpr`.

    An upper bound of their sizes, much cheaper than the expressions.

    >>> is_small(1, [Split(0, (2, 2))]), is_small(1, [Flip(k) for k in range(99)])
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
    """(stride, axis) terms from the minor to the major, or None where they don't nest.

    Strides nest when each is at least as large as all that lies below it spans: `d0 * 32 + d1` with
    8 columns. An axis of extent 1 adds nothing, whatever its stride; it joins as it stands.

    >>> nest([(32, 0), (1, 1)], {0: 2, 1: 8}), nest([(4, 0), (1, 1)], {0: 2, 1: 8})
    ([(1, 1), (32, 0)], None)
    """
    ordered = [(stride if extent[axis] != 1 else 1, axis) for stride, axis in terms]
    # An axis of extent 0 comes first among equals: nothing is laid out at all.
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
    """The way back: an expression for each logical dim, and `0 <= expr < bound` for validity."""

    logical: tuple[AffineExpr, ...]
    bounds: tuple[tuple[AffineExpr, int], ...]
    equal: tuple[AffineExpr, ...]


def inverse_exprs(
    shape: Sequence[int], steps: Sequence[Step], order: Sequence[int]
) -> InverseExprs:
    """The inverse of the steps as expressions in the physical dims, with the validity bounds.

    A physical index is the image of a logical one exactly where every bound holds and every
    expression in `equal` is 0. `LayoutError` from `Scatter` maps that have no closed inverse.
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
