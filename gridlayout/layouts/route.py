"""`Route`: from the physical dims of one layout straight to those of another.

Both layouts are lists of steps from the same logical dims. Steps that do the same to the same axis
cancel: what they make is *shared*, the same index in both. Of what is left, the first list is
undone and the second done; an axis that both split, differently, is regrouped digit by digit, and
so are axes that one of them joins before it splits. So a change of tiles stays inside each core,
and the logical tensor appears only as far as the two layouts disagree about it.

Padding at the high end tells no axes apart: the index is the same, only the extents differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod

from gridlayout.affine.map import embedding
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import Move, Numbered, moves_of, numbered
from gridlayout.layouts.steps import Flip, Join, Pad, Split, Step, StepBuilder, Unit

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Route:
    """Steps from the physical dims `0, 1, ...` of one layout to the dims `order` of another."""

    shape: Shape
    steps: tuple[Step, ...]
    order: Shape

    @property
    def is_identity(self) -> bool:
        """Whether every physical dim of one layout is the same dim of the other."""
        return not self.steps and self.order == tuple(range(len(self.shape)))

    @property
    def unchanged_dims(self) -> tuple[tuple[int, int], ...]:
        """Pairs (dim before, dim after) that no step touches: one extent, one index."""
        rank = len(self.shape)
        return tuple((axis, k) for k, axis in enumerate(self.order) if axis < rank)

    def steps_before_splits(self, parts: Set[int], wanted: Set[int]) -> list[Numbered]:
        """The steps before the splits that make the dims `wanted`, if they read none of `parts`.

        parts: dims before of which a device may have a part only. So these steps are what each
        device can do to its own part first.
        """
        steps = numbered(self.shape, self.steps)
        maker = {axis: done for done in steps for axis in done.makes}

        def above(axes: Sequence[int]) -> list[Numbered]:
            made = [maker[axis] for axis in axes if axis in maker]
            return [each for done in made for each in (done, *above(done.reads))]

        found = []
        for split in above([self.order[k] for k in wanted]):
            before = above(split.reads) if isinstance(split.step, Split) else []
            if all(done.reads and not parts & set(done.reads) for done in before):
                found += before
        return [done for done in steps if done in found]

    def moves(self, extents: Mapping[int, int]) -> tuple[Move, ...]:
        """The array program, on an array where kept dims have other `extents`, by dim before.

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


@lru_cache(maxsize=4096)
def find_route(a: Layout, b: Layout) -> Route | None:
    """The route between two layouts of one logical shape, or None.

    There is none for a tensor without elements, and for affine maps that are no digits, which move
    by gather.
    """
    if 0 in a.shape or a.is_scatter or b.is_scatter:
        return None
    return _Finder(*_without_units(a, b)).route()


def _without_units(a: Layout, b: Layout) -> tuple[Layout, Layout]:
    """The same data without the dims of extent 1: two layouts may join these to different dims."""
    x, y = _squeezed(a), _squeezed(b)
    return (a, b) if x is None or y is None else (x, y)


@lru_cache(maxsize=4096)
def _squeezed(layout: Layout) -> Layout | None:
    """The layout without its dims of extent 1; None where it has none, or no others."""
    kept = [d for d, n in enumerate(layout.shape) if n > 1]
    own = layout.as_grid
    if len(kept) in (0, layout.ndim) or own is None:
        return None
    shape = tuple(layout.shape[d] for d in kept)
    return own.replace(shape=shape, linear=own.linear.compose(embedding(layout.ndim, kept)))


class _Side:
    """One layout's steps: which of them are left, who reads an axis, how long it is."""

    def __init__(self, layout: Layout) -> None:
        self.left = numbered(layout.shape, layout.steps)
        self.order = layout.order
        self.reader = {axis: done for done in self.left for axis in done.reads}
        self.extent = dict(enumerate(layout.shape))
        for done in self.left:
            self.extent.update(zip(done.makes, done.sizes, strict=True))

    def index(self, axes: Sequence[int]) -> tuple[Shape, list[Numbered]]:
        """The digits of the number that axes make, the major first, and the steps that make them.

        Steps left that join the axes, or the first few of them, are followed: the number stays the
        same, and so it does when the joined axis is resized.
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
        done = self.reader.get(axis)
        return done if done in self.left else None

    def _split(self, axis: int) -> tuple[Shape, list[Numbered]]:
        """What the splits left make of an axis, the major first, and these splits."""
        done = self._next(axis)
        if done is None or not isinstance(done.step, Split):
            return (axis,), []
        inner = [self._split(made) for made in done.makes]
        digits = tuple(digit for found, _ in inner for digit in found)
        return digits, [done, *(step for _, steps in inner for step in steps)]


class _Finder:
    def __init__(self, a: Layout, b: Layout) -> None:
        self.a, self.b = _Side(a), _Side(b)
        self.before = a.physical_shape
        # Shared axes, by their numbers in `a` and in `b`: the furthest ones along the steps.
        self.shared: dict[int, int] = {axis: axis for axis in range(a.ndim)}

    def route(self) -> Route | None:
        while any(self._cancel(x, y) for x, y in list(self.shared.items())) or self._cancel_unit():
            pass
        regroupings = [found for xs in self._numbers() if (found := self._group(xs))]
        builder = StepBuilder(self.before)
        at = {axis: k for k, axis in enumerate(self.a.order)}  # an axis of `a`: its axis here
        to: dict[int, int] = {}  # an axis of `b`: its axis here
        units = _undo(builder, self.a, at)
        for found in regroupings:
            own = [at.pop(axis) for axis in found.before]
            to.update(zip(found.after, found.run(builder, own), strict=True))
        for x, y in self.shared.items():
            to[y] = builder.resize(at.pop(x), self.b.extent[y])
        _redo(builder, self.b, to, units)
        if units:  # dims of extent 1 that `b` lacks join any other
            axis = next(iter(to), None)
            if axis is None:
                return None
            to[axis] = builder.join((*units, to[axis]))
        return Route(self.before, tuple(builder.steps), tuple(to[axis] for axis in self.b.order))

    def _cancel(self, x: int, y: int) -> bool:
        """Step on from a shared axis, in one layout or in both, if that keeps it shared."""
        p, q = self.a.reader.get(x), self.b.reader.get(y)
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
        p, q = (
            next((done for done in side.left if isinstance(done.step, Unit)), None)
            for side in (self.a, self.b)
        )
        if p is None or q is None:
            return False
        return self._share(p, q, (), {p.makes[0]: q.makes[0]})

    def _share(
        self, p: Numbered | None, q: Numbered | None, old: Shape, new: dict[int, int]
    ) -> bool:
        for x in old:
            del self.shared[x]
        self.shared.update(new)
        for side, done in ((self.a, p), (self.b, q)):
            if done is not None:
                side.left.remove(done)
        return True

    def _numbers(self) -> list[Shape]:
        """Shared axes of `a` that may be split differently: those that a join reads, and each."""
        joins = [
            tuple(names.get(axis, -1) for axis in done.reads)
            for side, names in (
                (self.a, {x: x for x in self.shared}),
                (self.b, {y: x for x, y in self.shared.items()}),
            )
            for done in side.left
            if isinstance(done.step, Join)
        ]
        joins = sorted((xs for xs in joins if -1 not in xs), key=len, reverse=True)
        return [*joins, *((x,) for x in self.shared)]

    def _group(self, xs: Shape) -> Regrouping | None:
        """The digits of a number that both split; its axes and steps are then dealt with."""
        if any(x not in self.shared for x in xs):
            return None
        ys = [self.shared[x] for x in xs]
        (own, gone), (theirs, made) = self.a.index(xs), self.b.index(ys)
        inner = zip(xs[1:], ys[1:], strict=True)
        if (
            len(own) == 1
            or len(theirs) == 1
            or any(self.a.extent[x] != self.b.extent[y] for x, y in inner)
        ):
            return None
        sizes = tuple(self.a.extent[axis] for axis in own)
        others = tuple(self.b.extent[axis] for axis in theirs)
        chain = digit_bounds(sizes, others)
        if chain is None:
            return None
        for side, steps in ((self.a, gone), (self.b, made)):
            side.left = [done for done in side.left if done not in steps]
        for x in xs:
            del self.shared[x]
        return Regrouping(own, theirs, sizes, others, chain)


def _undo(builder: StepBuilder, side: _Side, at: dict[int, int]) -> list[int]:
    """The steps left of the first layout, backward; gives the axes that were units."""
    units = []
    for done in reversed(side.left):
        match done.step:
            case Pad(axis, low, high):
                at[axis] = builder.pad(at.pop(done.makes[0]), -low, -high)
            case Flip(axis):
                at[axis] = builder.flip(at.pop(done.makes[0]))
            case Split(axis, _):
                at[axis] = builder.join([at.pop(made) for made in done.makes])
            case Join(axes):
                sizes = [side.extent[axis] for axis in axes]
                at.update(zip(axes, builder.split(at.pop(done.makes[0]), sizes), strict=True))
            case Unit():
                units.append(at.pop(done.makes[0]))
    return units


def _redo(builder: StepBuilder, side: _Side, to: dict[int, int], units: list[int]) -> None:
    """The steps left of the second layout, forward; takes from `units` what it needs."""
    for done in side.left:
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
    """The weights of the finest digits that two groupings of one index share, the largest first.

    before, after: the extents of each grouping's digits, the major first. None where a weight of
    one grouping divides no weight of the other.

    >>> digit_bounds((2, 64, 32), (4, 64, 16)), digit_bounds((4, 2), (4, 3))
    ((2048, 1024, 32, 16, 1), None)
    """
    weights = {prod(sizes[k:]) for sizes in (before, after) for k in range(1, len(sizes) + 1)}
    bounds = tuple(sorted(weights, reverse=True))
    return None if any(high % low for high, low in pairwise(bounds)) else bounds


@dataclass(frozen=True)
class Regrouping:
    """One index as the digits `before` and as the digits `after`: axes, extents, shared weights."""

    before: Shape
    after: Shape
    sizes: Shape
    others: Shape
    bounds: Shape

    def run(self, builder: StepBuilder, axes: Sequence[int]) -> list[int]:
        """The axes `before` as those `after`: split to the finest digits, join."""
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
        """The extents of the finest digits that a digit of weight `low` is made of."""
        high = self.bounds[0] if is_major else size * low
        within = [bound for bound in self.bounds if low <= bound <= high]
        inner = [a // b for a, b in pairwise(within)]
        return [-(-size * low // high), *inner] if is_major else inner
