"""`find_exchange`: the exchange between two layouts that receives the fewest bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import pairwise, product
from math import prod

from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.layouts.program import Move, Numbered, moves_of, numbered
from gridlayout.layouts.route import Route, find_route
from gridlayout.layouts.steps import Join, Split, StepBuilder
from gridlayout.sharding.collectives import total_bytes
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.exchange import Exchange, Transfer, local_bytes
from gridlayout.sharding.exchanges.permuting import Permuting
from gridlayout.sharding.meshes.placement import Placement


@cached
def find_exchange(
    old: Layout,
    new: Layout,
    device: DeviceGrid,
    after: Placement | None = None,
    before: Placement | None = None,
    at_once: bool = False,
    permuted: bool = False,
) -> Exchange | None:
    """Return the exchange that receives the fewest bytes; None if there is no route.

    before, after: the placements of the two grids; by default those of the device grid. at_once:
    whether the gathers at its end are one collective; None if there are not several. permuted:
    whether mesh axes change their digits with each other by one permute; None if none do.

    >>> from gridlayout import GridLayout
    >>> a, b = (GridLayout((8, 8), grid=(2, 1), tile=(t, t)) for t in (4, 2))
    >>> find_exchange(a, b, DeviceGrid((1,))).transfers
    ()
    """
    route = find_route(old, new)
    if route is None:
        return None
    before = before or device.placement(old)
    after = after or device.placement(new)
    local = local_bytes(old, before), local_bytes(new, after)
    best, least = None, 0
    ways = [_Way.PERMUTED] if permuted else [_Way.TOGETHER, _Way.ALONE]
    for early, way in product(_early_steps(route, before, after), ways):
        found = _Finder(route, before, after, device.fine.shape, way, early).exchange(at_once)
        if found is None or (permuted and not found.is_permuted):
            continue
        received = total_bytes(found.collectives(*local, before, device))
        if best is None or received < least:
            best, least = found, received
        if not least:
            break
    return best


def _early_steps(route: Route, before: Placement, after: Placement) -> Iterator[list[Numbered]]:
    """Yield the steps to perform before digits are split: none, or padding of unsharded dims."""
    yield []
    parts = {k for k, axes in enumerate(before.axes) if axes or before.slots[k] > before.grid[k]}
    if found := route.steps_before_splits(parts, {k for k, axes in enumerate(after.axes) if axes}):
        yield found


class _Way(Enum):
    """How mesh axes are transferred.

    TOGETHER: those with the same source and target at once. ALONE: one after another. PERMUTED: one
    after another, but those that change their digits with each other by one permute.
    """

    TOGETHER = auto()
    ALONE = auto()
    PERMUTED = auto()


class _Finder:
    """Computes one exchange.

    Digits have numbers: first the axes of the route, then the factors that mesh axes split off.
    """

    def __init__(
        self,
        route: Route,
        before: Placement,
        after: Placement,
        sizes: Mapping[str, int],
        way: _Way,
        early: Sequence[Numbered],
    ) -> None:
        self.route, self.before, self.after, self.sizes = route, before, after, sizes
        self.way, self.early = way, early
        self.unmoved = unmoved_dims(route, before, after)
        self.extent = dict(enumerate(route.shape))
        self.parts: dict[int, Shape] = {}  # for each digit that is split, its parts
        self.claimed: set[int] = set()  # digits that mesh axes divide
        self.later: list[Numbered] = []
        roots = list(range(len(route.shape)))
        for done in numbered(route.shape, route.steps):
            if done in early:
                self.extent.update(zip(done.makes, done.sizes, strict=True))
                last = roots.index(done.reads[-1])
                roots[last : last + 1] = done.makes
                roots = [axis for axis in roots if axis not in done.reads]
            elif isinstance(done.step, Split) and done.step.axis in self.extent:
                self.parts[done.step.axis] = done.makes
                self.extent.update(zip(done.makes, done.sizes, strict=True))
            else:
                self.later.append(done)
        self.roots = roots  # the axes after the early steps
        self.route_digits = self._leaves(roots)
        self._next = 1 + max((made for done in self.later for made in done.makes), default=0)
        self._next = max(self._next, *(1 + axis for axis in self.extent), 0)

    def exchange(self, at_once: bool) -> Exchange | None:
        joins = {done.makes[0]: done.reads for done in self.later if isinstance(done.step, Join)}
        source: dict[Axes, int] = {}
        target: dict[Axes, int] = {}
        gathers, slices = [], []
        for k, axes in enumerate(self.before.axes):
            even = self.before.slots[k] == self.before.grid[k]
            stays = not axes or k in self.unmoved
            if not stays and not (even and self._claim([k], axes, source)):
                gathers.append(k)
        for k, axes in enumerate(self.after.axes):
            axis = self.route.order[k]
            own = self._joined(axis, joins)
            even = self.after.slots[k] == self.after.grid[k]
            stays = k in self.unmoved.values() or (not axes and even)
            even = even and all(digit in self.extent for digit in own)
            if not stays and not (even and self._claim(own, axes, target)):
                slices.append(k)
        dims = [leaf for digit in self.route_digits for leaf in self._leaves([digit])]
        final = None if slices or at_once else self._final(dims, joins, source, target)
        late = {} if final is None else final[1]
        moving = {axes: digit for axes, digit in source.items() if axes not in late}
        digits = self._locals(dims, source)
        gathered = self._gathered_shape(gathers)
        transfers = self._transfers(dims, moving, target)
        if at_once:
            transfers = self._gathered_at_once(transfers)
            if not transfers or not transfers[-1].parts:
                return None
        return Exchange(
            # The last dim first: the dims before it are then still small.
            tuple(reversed(gathers)),
            gathered,
            digits,
            tuple(transfers),
            None if final is None else final[0],
            tuple(slices),
            self._is_transposed(dims, {**target, **late}, transfers),
            lambda: self._first(gathered, dict(zip(dims, digits, strict=True))),
            lambda: self._last(dims, self._locals(dims, {**target, **late})),
        )

    def _final(
        self,
        dims: Sequence[int],
        joins: Mapping[int, Sequence[int]],
        source: Mapping[Axes, int],
        target: Mapping[Axes, int],
    ) -> tuple[Transfer, dict[Axes, int]] | None:
        """Return a gather of the leading digits of the result's first dim, and these digits.

        Only digits that have no target are gathered there. None if there are none, or if the gather
        would also send padding, which the result has and the digits do not have.
        """
        extents = self._extents()
        first = next((k for k, n in enumerate(extents) if n > 1), 0)
        targets = target.values()
        gathered = {
            digit: axes
            for axes, digit in source.items()
            if axes not in target and digit not in targets
        }
        found: dict[Axes, int] = {}
        for digit in self._leaves(self._joined(self.route.order[first], joins)):
            if digit in gathered:
                found[gathered[digit]] = digit
            elif self.extent.get(digit) != 1:
                break
        axes = tuple(axis for each in found for axis in each)
        size = prod(self.sizes[axis] for axis in axes)
        sent = prod(self._locals(dims, {**target, **found}))
        if not found or prod(extents) > size * sent:
            return None
        return Transfer(axes, size, first, None), found

    def _extents(self) -> list[int]:
        """Return the extents of a device's part of the result."""
        sizes = {**self.extent}
        for done in self.later:
            sizes.update(zip(done.makes, done.sizes, strict=True))
        extents = [sizes[axis] for axis in self.route.order]
        extents[: len(self.after.axes)] = self.after.per_device
        return extents

    def _joined(self, axis: int, joins: Mapping[int, Sequence[int]]) -> list[int]:
        """Return the digits that are joined into an axis, the major first."""
        if axis in self.extent or axis not in joins:
            return [axis]
        return [digit for read in joins[axis] for digit in self._joined(read, joins)]

    def _leaves(self, digits: Sequence[int]) -> list[int]:
        """Return the parts into which digits are split so far, the major first."""
        return [
            leaf
            for digit in digits
            for leaf in (self._leaves(self.parts[digit]) if digit in self.parts else [digit])
        ]

    def _runs(self, axes: Axes) -> list[Axes]:
        """Return the axes of a dim in runs; axes of one run are consecutive in the other layout."""
        runs: list[Axes] = []
        others = [found for found in (*self.before.axes, *self.after.axes) if found != axes]
        pairs = {pair for found in others for pair in pairwise(found)}
        single = {axis for found in others for axis in found}
        same = [*self.before.axes, *self.after.axes].count(axes) > 1
        for axis in axes:
            last = runs[-1][-1] if runs else None
            apart = last is None or not (same or (last, axis) in pairs or not {last, axis} & single)
            if apart or self.way is not _Way.TOGETHER:
                runs.append((axis,))
            else:
                runs[-1] = (*runs[-1], axis)
        return runs

    def _claim(self, digits: Sequence[int], axes: Axes, into: dict[Axes, int]) -> bool:
        """Assign a digit to each run of mesh axes; return False if a run has none.

        A digit larger than the run is split.
        """
        found: dict[Axes, int] = {}
        queue = self._leaves(digits)
        for run in self._runs(axes):
            size = prod(self.sizes[axis] for axis in run)
            while queue and self.extent[queue[0]] == 1:
                queue.pop(0)
            if not queue or self.extent[queue[0]] % size:
                return False
            digit = queue.pop(0)
            if self.extent[digit] > size:
                if digit in self.claimed:
                    return False
                self.parts[digit] = (self._next, self._next + 1)
                self.extent[self._next] = size
                self.extent[self._next + 1] = self.extent[digit] // size
                digit, self._next = self._next, self._next + 2
                queue.insert(0, digit + 1)
            found[run] = digit
        into.update(found)
        self.claimed.update(found.values())
        return True

    def _locals(self, dims: Sequence[int], claims: Mapping[Axes, int]) -> Shape:
        """Return the extents of the digits on one device. claims: digits that mesh axes divide."""
        unmoved = {k: self.before.per_device[k] for k in self.unmoved}
        return tuple(1 if d in claims.values() else unmoved.get(d, self.extent[d]) for d in dims)

    def _gathered_shape(self, gathers: Sequence[int]) -> Shape:
        """Return the shape of a device's part after the gathers."""
        dims = dict(enumerate(self.before.grid))
        dims |= {k: n for k, n in enumerate(self.before.per_device) if k not in gathers}
        return tuple(dims.get(k, n) for k, n in enumerate(self.route.shape))

    def _first(self, shape: Shape, held: Mapping[int, int]) -> tuple[Move, ...]:
        """Return the moves of the early steps and of the split into digits."""
        builder = StepBuilder(shape)
        at = dict(enumerate(range(len(shape))))
        for done in self.early:
            done.repeat(builder, at)
        order: list[int] = []
        for root in self.roots:
            order += builder.split(at[root], [held[leaf] for leaf in self._leaves([root])])
        return moves_of(shape, builder.steps, order)

    def _transfers(
        self, dims: list[int], source: Mapping[Axes, int], target: Mapping[Axes, int]
    ) -> list[Transfer]:
        """Return the transfers: slices, then all_to_alls, a permute, then gathers.

        If axes wait for each other in a circle, one of them is gathered to break it.
        """
        found = []
        at = dict(source)  # where each mesh axis is now
        done = [axis for axis in reversed(list(source)) if axis not in target]

        def move(axis: Axes, to: int | None) -> None:
            now = at.pop(axis, None)
            source, place = (None if digit is None else dims.index(digit) for digit in (now, to))
            size = prod(self.sizes[name] for name in axis)
            found.append(Transfer(axis, size, source, place))
            if to is not None:
                at[axis] = to

        if self.way is _Way.PERMUTED:
            permuting = Permuting(target, self.sizes, self.extent)
            for axis, digit in permuting.before(at):
                move(axis, digit)
            if (permuted := permuting.permute(at)) is not None:
                permute, at = permuted
                found.append(permute)
        waiting = [axis for axis in target if at.get(axis) != target[axis]]
        while waiting:
            free = [axis for axis in waiting if target[axis] not in at.values()]
            free.sort(key=lambda axis: axis in at)
            if free:
                move(free[0], target[free[0]])
                waiting.remove(free[0])
                continue
            blocking = [axis for axis in (*done, *waiting) if axis in at]
            move(blocking[0], None)
            done = [axis for axis in done if axis != blocking[0]]
        for axis in done:
            move(axis, None)
        return found

    def _gathered_at_once(self, transfers: list[Transfer]) -> list[Transfer]:
        """Return the transfers with the gathers at their end, if there are several, as one.

        Its axes have the mesh's order, so that it can be joined with those of other arrays.
        """
        kept = list(transfers)
        gathers: list[tuple[Transfer, int]] = []
        while kept and kept[-1].target is None and (source := kept[-1].source) is not None:
            gathers.append((kept.pop(), source))
        if len(gathers) < 2:
            return transfers
        order = list(self.sizes)
        gathers.sort(key=lambda each: order.index(each[0].axes[0]))
        axes = tuple(axis for each, _ in gathers for axis in each.axes)
        parts = tuple((source, each.size) for each, source in gathers)
        size = prod(n for _, n in parts)
        return [*kept, Transfer(axes, size, parts[0][0], None, parts)]

    def _is_transposed(
        self, dims: Sequence[int], claims: Mapping[Axes, int], transfers: Sequence[Transfer]
    ) -> bool:
        """Return whether what the last transfer leaves in memory has another order in the result.

        An all_gather leaves its digits first. claims: digits that mesh axes divide in the result.
        """
        gathered = transfers[-1].gathered if transfers else []
        ranked = [*gathered, *(k for k in range(len(dims)) if k not in gathered)]
        rank = {k: (n,) for n, k in enumerate(ranked)}
        places: dict[int, list[tuple[int, ...]]] = {
            digit: [rank[k]] if n > 1 else []
            for k, (digit, n) in enumerate(zip(dims, self._locals(dims, claims), strict=True))
        }
        for digit in self.route_digits:
            places[digit] = [at for leaf in self._leaves([digit]) for at in places[leaf]]
        for done in self.later:
            read = [at for axis in done.reads for at in places[axis]]
            if len(done.makes) == 1:
                places[done.makes[0]] = read
                continue
            for k, (axis, n) in enumerate(zip(done.makes, done.sizes, strict=True)):
                places[axis] = [(*read[0], k)] if read and n > 1 else []
        order = [at for axis in self.route.order for at in places[axis]]
        return order != sorted(order)

    def _last(self, dims: Sequence[int], shape: Shape) -> tuple[Move, ...]:
        """Return the moves that join the digits to the route's axes, and the rest of the route."""
        builder = StepBuilder(shape)
        at: dict[int, int] = dict(zip(dims, range(len(dims)), strict=True))
        for digit in self.route_digits:
            leaves = self._leaves([digit])
            if leaves != [digit]:
                at[digit] = builder.join([at.pop(leaf) for leaf in leaves])
        for done in self.later:
            done.repeat(builder, at)
        return moves_of(shape, builder.steps, [at[axis] for axis in self.route.order])


def unmoved_dims(route: Route, before: Placement, after: Placement) -> dict[int, int]:
    """Return the core dims that keep their devices, as {dim before: dim after}."""
    return {
        i: k
        for i, k in route.unchanged_dims
        if i < len(before.axes)
        and k < len(after.axes)
        and (before.axes[i], before.slots[i]) == (after.axes[k], after.slots[k])
    }
