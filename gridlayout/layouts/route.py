"""`Route`: the steps from the physical dims of one layout directly to those of another.

Both layouts are lists of steps from the same logical dims. Equal steps on the same axis cancel; the
axes that they make are *shared*, that is, they have the same index in both layouts. The remaining
steps of the first layout are undone, and those of the second are applied. An axis that both layouts
split in different ways is regrouped digit by digit; so are axes that one of them joins before it
splits them. A change of tiles therefore stays inside each core, and the route rebuilds only those
logical dims for which the two layouts differ.

Padding at the high end of an axis does not matter here: indices are equal, only extents differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import Move, Numbered, moves_of, numbered
from gridlayout.layouts.steps import Flip, Join, Pad, Split, Step, StepBuilder, Unit


@dataclass(frozen=True)
class Route:
    """The steps from the physical dims of one layout to those of another.

    shape: the physical shape of the first layout, whose dims are the axes `0, 1, ...`. order: the
    axes after the steps, in the order of the second layout's physical dims.
    """

    shape: Shape
    steps: tuple[Step, ...]
    order: Shape

    @property
    def is_identity(self) -> bool:
        """Whether every physical dim is the same dim in both layouts."""
        return not self.steps and self.order == tuple(range(len(self.shape)))

    @property
    def unchanged_dims(self) -> tuple[tuple[int, int], ...]:
        """Pairs (dim before, dim after) of dims that no step reads: same extent, same index."""
        rank = len(self.shape)
        return tuple((axis, k) for k, axis in enumerate(self.order) if axis < rank)

    def steps_before_splits(self, parts: Set[int], requested: Set[int]) -> list[Numbered]:
        """The steps on which splits into `requested` depend, if those read no dim of `parts`.

        parts: dims of the first layout that devices divide. requested: dims of the second layout.
        The steps read only undivided dims, so each device can run them on its own part first.
        """
        steps = numbered(self.shape, self.steps)
        producer = {axis: done for done in steps for axis in done.makes}

        def above(axes: Sequence[int]) -> list[Numbered]:
            made = [producer[axis] for axis in axes if axis in producer]
            return [each for done in made for each in (done, *above(done.reads))]

        found = []
        for split in above([self.order[k] for k in requested]):
            before = above(split.reads) if isinstance(split.step, Split) else []
            if all(done.reads and not parts & set(done.reads) for done in before):
                found += before
        return [done for done in steps if done in found]

    def moves(self, extents: Mapping[int, int]) -> tuple[Move, ...]:
        """The array program of the route.

        extents: other extents of unchanged dims, by their dim in the first layout.

        >>> from gridlayout import GridLayout
        >>> a, b = (GridLayout((8, 6), grid=(2, 1), tile=tile) for tile in [(4, 2), (2, 2)])
        >>> for move in find_route(a, b).moves({0: 1}):
        ...     print(move)
        ReshapeMove(before=(1, 1, 1, 3, 4, 2), after=(1, 1, 1, 3, 2, 2, 2))
        TransposeMove(order=(0, 1, 2, 4, 3, 5, 6))
        ReshapeMove(before=(1, 1, 1, 2, 3, 2, 2), after=(1, 1, 2, 3, 2, 2))
        """
        shape = tuple(extents.get(k, n) for k, n in enumerate(self.shape))
        return moves_of(shape, self.steps, self.order)


@cached
def find_route(a: Layout, b: Layout) -> Route | None:
    """The route between two layouts of one logical shape, or None.

    There is no route for a tensor without elements, for a layout with a `Scatter`, which is relaid
    out by a gather, and to a layout of physical rank 0 from one that has dims.
    """
    if 0 in a.shape or a.is_scatter or b.is_scatter:
        return None
    return _Finder(*_without_units(a, b)).route()


def _without_units(a: Layout, b: Layout) -> tuple[Layout, Layout]:
    """Both layouts without dims of extent 1, which they may join to different dims."""
    x, y = _squeezed(a), _squeezed(b)
    return (a, b) if x is None or y is None else (x, y)


@cached
def _squeezed(layout: Layout) -> Layout | None:
    return layout.squeezed()


class _Remaining:
    """The remaining steps of one layout, and the user and the extent of every axis."""

    def __init__(self, layout: Layout) -> None:
        self.steps = [*numbered(layout.shape, layout.steps)]
        self.order = layout.order
        self.user = {axis: done for done in self.steps for axis in done.reads}
        self.extent = dict(enumerate(layout.shape))
        for done in self.steps:
            self.extent.update(zip(done.makes, done.sizes, strict=True))

    def index(self, axes: Sequence[int]) -> tuple[Shape, list[Numbered]]:
        """The digits of the number that axes form, the major first, and the steps that make them.

        Remaining steps that join the first axes are followed, because a join does not change the
        number. A pad at the end of the joined axis does not change it either.
        """
        digits: list[int] = []
        steps: list[Numbered] = []
        while axes:
            axis, taken, done = axes[0], 1, self._next(axes[0])
            if (
                done
                and isinstance(done.step, Join)
                and done.reads == tuple(axes[: len(done.reads)])
            ):
                steps.append(done)
                axis, taken, done = done.makes[0], len(done.reads), self._next(done.makes[0])
                while not digits and done and isinstance(done.step, Pad) and done.step.low == 0:
                    steps.append(done)
                    axis, done = done.makes[0], self._next(done.makes[0])
            found = self._split(axis)
            digits += found[0]
            steps += found[1]
            axes = axes[taken:]
        return tuple(digits), steps

    def _next(self, axis: int) -> Numbered | None:
        done = self.user.get(axis)
        return done if done in self.steps else None

    def _split(self, axis: int) -> tuple[Shape, list[Numbered]]:
        """The digits of an axis after the remaining splits, the major first, and these splits."""
        done = self._next(axis)
        if done is None or not isinstance(done.step, Split):
            return (axis,), []
        inner = [self._split(made) for made in done.makes]
        digits = tuple(digit for found, _ in inner for digit in found)
        return digits, [done, *(step for _, steps in inner for step in steps)]


class _Finder:
    """Finds the route from layout `a` to layout `b`."""

    def __init__(self, a: Layout, b: Layout) -> None:
        self.a, self.b = _Remaining(a), _Remaining(b)
        self.before = a.physical_shape
        # Shared axes, as axis of `a` -> axis of `b`: the last ones after the steps that cancel.
        self.shared: dict[int, int] = {axis: axis for axis in range(a.ndim)}

    def route(self) -> Route | None:
        while any(self._cancel(x, y) for x, y in list(self.shared.items())) or self._cancel_unit():
            pass
        regroupings = [found for xs in self._numbers() if (found := self._group(xs))]
        builder = StepBuilder(self.before)
        at = {axis: k for k, axis in enumerate(self.a.order)}  # axis of `a` -> axis of the route
        to: dict[int, int] = {}  # axis of `b` -> axis of the route
        units = _undo(builder, self.a, at)
        for found in regroupings:
            own = [at.pop(axis) for axis in found.before]
            to.update(zip(found.after, found.run(builder, own), strict=True))
        for x, y in self.shared.items():
            to[y] = builder.resize(at.pop(x), self.b.extent[y])
        _redo(builder, self.b, to, units)
        if units:  # dims of extent 1 that `b` lacks are joined to another axis
            axis = next(iter(to), None)
            if axis is None:
                return None
            to[axis] = builder.join((*units, to[axis]))
        return Route(self.before, tuple(builder.steps), tuple(to[axis] for axis in self.b.order))

    def _cancel(self, x: int, y: int) -> bool:
        """Remove the next step after a shared axis if its results are shared too."""
        p, q = self.a.user.get(x), self.b.user.get(y)
        if p is not None and isinstance(p.step, Pad) and p.step.low == 0:
            return self._share(p, None, (x,), {p.makes[0]: y})
        if q is not None and isinstance(q.step, Pad) and q.step.low == 0:
            return self._share(None, q, (x,), {x: q.makes[0]})
        if p is None or q is None or [self.shared.get(axis) for axis in p.reads] != list(q.reads):
            return False
        match p.step, q.step:
            case Pad(_, low, _), Pad(_, other, _):
                same = low == other
            case Flip(), Flip():
                same = self.a.extent[x] == self.b.extent[y]
            case Split(_, sizes), Split(_, others):
                same = sizes[1:] == others[1:]
            case Join(axes), Join(others):
                inner = [self.a.extent[axis] for axis in axes[1:]]
                same = inner == [self.b.extent[axis] for axis in others[1:]]
            case _:
                same = False
        if not same:
            return False
        return self._share(p, q, p.reads, dict(zip(p.makes, q.makes, strict=True)))

    def _cancel_unit(self) -> bool:
        """Share one new unit axis of each layout, if both have one."""
        p, q = (
            next((done for done in program.steps if isinstance(done.step, Unit)), None)
            for program in (self.a, self.b)
        )
        if p is None or q is None:
            return False
        return self._share(p, q, (), {p.makes[0]: q.makes[0]})

    def _share(
        self, p: Numbered | None, q: Numbered | None, old: Shape, new: dict[int, int]
    ) -> bool:
        """Replace the shared axes `old` by `new`; remove steps `p` of `a` and `q` of `b`."""
        for x in old:
            del self.shared[x]
        self.shared.update(new)
        for program, done in ((self.a, p), (self.b, q)):
            if done is not None:
                program.steps.remove(done)
        return True

    def _numbers(self) -> list[Shape]:
        """Candidates for regrouping, as axes of `a`: those that a join reads, and single axes."""
        joins = [
            tuple(names.get(axis, -1) for axis in done.reads)
            for program, names in (
                (self.a, {x: x for x in self.shared}),
                (self.b, {y: x for x, y in self.shared.items()}),
            )
            for done in program.steps
            if isinstance(done.step, Join)
        ]
        joins = sorted((xs for xs in joins if -1 not in xs), key=len, reverse=True)
        return [*joins, *((x,) for x in self.shared)]

    def _group(self, xs: Shape) -> Regrouping | None:
        """The regrouping of a number that both layouts split; removes its axes and steps."""
        if any(x not in self.shared for x in xs):
            return None
        ys = [self.shared[x] for x in xs]
        (before, undone), (after, redone) = self.a.index(xs), self.b.index(ys)
        inner = zip(xs[1:], ys[1:], strict=True)
        if (
            len(before) == 1
            or len(after) == 1
            or any(self.a.extent[x] != self.b.extent[y] for x, y in inner)
        ):
            return None
        sizes = tuple(self.a.extent[axis] for axis in before)
        others = tuple(self.b.extent[axis] for axis in after)
        bounds = digit_bounds(sizes, others)
        if bounds is None:
            return None
        for program, steps in ((self.a, undone), (self.b, redone)):
            program.steps = [done for done in program.steps if done not in steps]
        for x in xs:
            del self.shared[x]
        return Regrouping(before, after, sizes, others, bounds)


def _undo(builder: StepBuilder, program: _Remaining, at: dict[int, int]) -> list[int]:
    """Undo the remaining steps of the first layout; return the axes that were units."""
    units = []
    for done in reversed(program.steps):
        match done.step:
            case Pad(axis, low, high):
                at[axis] = builder.pad(at.pop(done.makes[0]), -low, -high)
            case Flip(axis):
                at[axis] = builder.flip(at.pop(done.makes[0]))
            case Split(axis, _):
                at[axis] = builder.join([at.pop(made) for made in done.makes])
            case Join(axes):
                sizes = [program.extent[axis] for axis in axes]
                at.update(zip(axes, builder.split(at.pop(done.makes[0]), sizes), strict=True))
            case Unit():
                units.append(at.pop(done.makes[0]))
    return units


def _redo(builder: StepBuilder, program: _Remaining, to: dict[int, int], units: list[int]) -> None:
    """Apply the remaining steps of the second layout, with axes from `units` as its units."""
    for done in program.steps:
        match done.step:
            case Pad(axis, low, high):
                to[done.makes[0]] = builder.pad(to.pop(axis), low, high)
            case Flip(axis):
                to[done.makes[0]] = builder.flip(to.pop(axis))
            case Split(axis, sizes):
                to.update(zip(done.makes, builder.split(to.pop(axis), sizes), strict=True))
            case Join(axes):
                to[done.makes[0]] = builder.join([to.pop(axis) for axis in axes])
            case Unit():
                to[done.makes[0]] = units.pop() if units else builder.unit()


# -- digits ----------------------------------------------------------------------------------------


def digit_bounds(before: Shape, after: Shape) -> Shape | None:
    """The weights of the finest common digits of two groupings of one index, the largest first.

    before, after: the extents of each grouping's digits, the major first. Returns None if these
    weights do not divide one another.

    >>> digit_bounds((2, 64, 32), (4, 64, 16)), digit_bounds((4, 2), (4, 3))
    ((2048, 1024, 32, 16, 1), None)
    """
    weights = {prod(sizes[k:]) for sizes in (before, after) for k in range(1, len(sizes) + 1)}
    bounds = tuple(sorted(weights, reverse=True))
    return None if any(high % low for high, low in pairwise(bounds)) else bounds


@dataclass(frozen=True)
class Regrouping:
    """Two groupings of one index into digits."""

    before: Shape  # the axes of the first grouping
    after: Shape  # the axes of the second grouping
    sizes: Shape  # the extents of `before`
    others: Shape  # the extents of `after`
    bounds: Shape  # the weights of the common digits, see `digit_bounds`

    def run(self, builder: StepBuilder, axes: Sequence[int]) -> list[int]:
        """Turn the axes `before` into the axes `after`: split into the finest digits, then join."""
        fine: list[int] = []
        for k, axis in enumerate(axes):
            size, low = self.sizes[k], prod(self.sizes[k + 1 :])
            digits = self._digits(size, low, k == 0)
            if k == 0:
                axis = builder.resize(axis, prod(digits))
            if digits:
                fine += builder.split(axis, digits)
            else:  # of extent 1
                fine[-1] = builder.join((fine[-1], axis))
        fine[0] = builder.resize(
            fine[0], self._digits(self.others[0], prod(self.others[1:]), True)[0]
        )
        made = []
        for k, size in enumerate(self.others):
            count = len(self._digits(size, prod(self.others[k + 1 :]), k == 0))
            axis = builder.join(fine[:count]) if count else builder.unit()
            made.append(builder.resize(axis, size))
            fine = fine[count:]
        return made

    def _digits(self, size: int, low: int, is_major: bool) -> list[int]:
        """The extents of the finest digits inside a digit of weight `low`."""
        high = self.bounds[0] if is_major else size * low
        within = [bound for bound in self.bounds if low <= bound <= high]
        inner = [a // b for a, b in pairwise(within)]
        return [-(-size * low // high), *inner] if is_major else inner
