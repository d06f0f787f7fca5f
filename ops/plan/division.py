"""`Division`: which parts of a mesh divide which dim of a value, and what it takes to change that.

A mesh is taken in *units*: mesh axes (or prime factors of them) that the operands always use
together. A division names the units along each dim, the major first; along the others devices hold
copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.blocks import block_spec
from gridlayout.ops.decisions.specs import Sharded, Spec
from gridlayout.sharding.collectives import ALL_REDUCE, Axes, Collectives
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.machine import Machine
from gridlayout.sharding.placement import Placement

Shape = tuple[int, ...]
Division = tuple[tuple[int, ...], ...]


class Sent(NamedTuple):
    """What a move or a sum takes: seconds, and how many collectives go by themselves."""

    seconds: float = 0.0
    alone: int = 0


@dataclass(eq=False)
class Units:
    """The units of a device grid, in the mesh's order: their axes of `device.fine`.

    idle: whether up to half of the devices that divide a dim may have nothing of it. work: seconds
    that a device computes before each collective.
    """

    device: DeviceGrid
    axes: tuple[Axes, ...]
    idle: bool = False
    work: float = 0.0
    _moves: dict[Any, Sent] = field(default_factory=dict)
    _sent: dict[Any, Sent] = field(default_factory=dict)
    _counts: dict[tuple[int, ...], int] = field(default_factory=dict)

    @classmethod
    def of(cls, device: DeviceGrid, specs: Iterable[Spec], extents: Iterable[int] = ()) -> Units:
        """The coarsest units of which every dim of these placements takes whole ones.

        Axes with other links, and those between hosts, are units apart. extents: of dims that can
        be divided only evenly; a unit that divides none of one is parted where its first axes do.
        """
        names = [name for name in device.fine.axis_names if device.fine.shape[name] > 1]
        return cls._used(device, names, _by_links(device, names), specs, extents)

    @classmethod
    def apart(cls, device: DeviceGrid, specs: Iterable[Spec] = (), least: int = 3) -> Units:
        """Every mesh axis by itself; parted further, the largest first, up to `least` units.

        So that each may divide another dim, while dims of these placements take whole ones.
        """
        names = [name for name in device.fine.axis_names if device.fine.shape[name] > 1]
        mesh = (device.fine_axes(axis) for axis in device.mesh.axis_names)
        within = ([name for name in axes if name in names] for axes in mesh)
        kinds = _by_links(device, names)
        groups = [[name for name in axes if name in kind] for axes in within for kind in kinds]
        groups = [group for group in groups if group]
        while len(groups) < least and any(len(group) > 1 for group in groups):
            largest = max(groups, key=len)
            at = groups.index(largest)
            first = -(-len(largest) // (least - len(groups) + 1))
            groups[at : at + 1] = [largest[:first], largest[first:]]
        return cls._used(device, names, [set(group) for group in groups], specs, ())

    @classmethod
    def _used(
        cls,
        device: DeviceGrid,
        names: list[str],
        groups: list[set[str]],
        specs: Iterable[Spec],
        extents: Iterable[int],
    ) -> Units:
        for spec in specs:
            for axes in spec.placement.axes if isinstance(spec, Sharded) else ():
                parts = [(group & set(axes), group - set(axes)) for group in groups]
                groups = [part for pair in parts for part in pair if part]
        for extent in set(extents):
            groups = [part for group in groups for part in _parted(device, names, group, extent)]
        ordered = sorted(tuple(n for n in names if n in group) for group in groups)
        ordered.sort(key=lambda axes: names.index(axes[0]))
        return cls(device, tuple(ordered))

    @cached_property
    def machine(self) -> Machine:
        """What they take to send and to compute."""
        return self.device.machine.after(self.work)

    def between(self, flops: float, nbytes: float) -> Units:
        """The same where all devices do so much between two collectives, in equal parts."""
        n, machine = self.device.size, self.device.machine
        return replace(self, work=sum(machine.computing(flops / n, nbytes / n).values()))

    def count(self, units: Iterable[int]) -> int:
        """Devices along some units."""
        key = tuple(units)
        if key not in self._counts:
            self._counts[key] = prod(self.device.count(self.axes[u]) for u in key)
        return self._counts[key]

    def mesh_axes(self, units: Iterable[int]) -> Axes:
        """Their axes, in their order."""
        return tuple(axis for u in units for axis in self.axes[u])

    def parts(self, division: Division) -> int:
        """Devices that have different parts."""
        return self.count(u for units in division for u in units)

    # -- of layouts --------------------------------------------------------------------------------

    def division(self, spec: Spec) -> Division | None:
        """The division of a value, None where its blocks are not those of any."""
        if not isinstance(spec, Sharded):
            return ((),) * len(spec.shape)
        own = spec.layout.grouped
        if own is None or 0 in spec.shape:
            return None
        found: list[tuple[int, ...]] = [()] * len(spec.shape)
        whole = {self.axes[u]: (u,) for u in range(len(self.axes))}
        for k, axes in enumerate(spec.placement.axes):
            units: list[int] = []
            rest = axes
            while rest:
                run = next((a for a in whole if rest[: len(a)] == a), None)
                if run is None:
                    return None
                units += whole[run]
                rest = rest[len(run) :]
            if not units:
                continue
            wide = [d for d in own.groups[k] if spec.shape[d] > 1]
            strides = own.linear.coefficients()[k][0]
            if not wide or any(strides[d] <= 0 for d in wide):
                return None
            first = max(wide, key=lambda d: strides[d])
            if len(wide) > 1 and spec.shape[first] % self.count(units):
                return None
            found[first] = tuple(units)
        return tuple(found)

    def spec(
        self, shape: Shape, dtype: Any, division: Division, memory_space: str = "l1"
    ) -> Sharded:
        """An untiled array in equal blocks, one core a device."""
        axes = tuple(self.mesh_axes(units) for units in division)
        grid = tuple(self.device.count(a) for a in axes)
        placed = Placement(grid, axes, grid, (1,) * len(grid))
        return block_spec(shape, np.dtype(dtype), placed, memory_space)

    def stated(self, layout: Layout, what: str) -> Division:
        """The division of a layout that users state; `LayoutError`, of `what`, without one."""
        placement = self.device.placement(layout.core_shape)
        if (division := self.division(Sharded(layout, placement))) is None:
            raise LayoutError(
                f"{what} divides no dim evenly among mesh axes, which plans need: give a grid "
                f"whose dims are products of axes of the mesh {self.device.shape}"
            )
        return division

    @cached_property
    def chips(self) -> frozenset[int]:
        """The units along which devices are on different chips."""
        cores = set(self.machine.core_axes)
        return frozenset(
            u
            for u, axes in enumerate(self.axes)
            if not cores.intersection(map(self.machine.whole_axis, axes))
        )

    def among_chips(self, division: Division) -> Division:
        """The part of a division that is among chips."""
        return tuple(tuple(u for u in units if u in self.chips) for units in division)

    def is_stated(self, shape: Shape, division: Division) -> bool:
        """Whether a layout states a division: whether its grid is placed so by the device grid."""
        if 0 in shape:
            return not any(division)
        axes = tuple(self.mesh_axes(units) for units in division)
        grid = tuple(self.device.count(a) for a in axes)
        return self.device.placement(grid).axes == axes

    def words(
        self,
        ins: Sequence[Division | None],
        out: Division,
        summed: Sequence[int] = (),
        scattered: bool = False,
    ) -> str:
        """How a node runs, for a person: the mesh axes that divide dims of what it reads and makes.

        >>> import gridlayout as gl
        >>> from jax.sharding import AbstractMesh
        >>> units = Units.apart(gl.DeviceGrid(AbstractMesh((2, 4), ("x", "y"))), least=2)
        >>> units.words([((0,), ()), ((), (1,))], ((0,), (1,)))
        '[x,-] [-,y] -> [x,y]'
        """

        def one(division: Division | None) -> str:
            if division is None:
                return "[]"
            dims = ("*".join(self.device.names(self.mesh_axes(units))) or "-" for units in division)
            return f"[{','.join(dims)}]"

        after = ""
        if summed:
            axes = "*".join(self.device.names(self.mesh_axes(summed)))
            after = f", {'reduce-scattered' if scattered else 'all-reduced'} over {axes}"
        return f"{' '.join(map(one, ins))} -> {one(out)}{after}"

    # -- what moves take ---------------------------------------------------------------------------

    def move(
        self, before: Division | None, after: Division, nbytes: int, joins: bool = False
    ) -> Sent:
        """What it takes to bring a value of so many bytes from one division to another.

        joins: whether its collectives can go with those of others.
        """
        if before == after:
            return Sent()
        key = before, after, nbytes, joins
        if key not in self._moves:
            made = Collectives(self.device)
            if before is None:
                every = self.mesh_axes(range(len(self.axes)))
                made.all_to_all(every, nbytes // self.device.size)
            else:
                self._changes(made, before, after, nbytes)
            sent = self._priced(made, joins)
            if not made.found:  # each takes its part of what it has
                part = nbytes // max(self.parts(after), 1)
                sent = Sent(self.machine.slicing(part))
            self._moves[key] = sent
        return self._moves[key]

    def _changes(self, made: Collectives, before: Division, after: Division, nbytes: int) -> None:
        local = nbytes // max(self.parts(before), 1)
        gathered: list[tuple[int, tuple[int, ...]]] = []
        to = {u: d for d, units in enumerate(after) for u in units}
        leave: set[int] = set()
        for old, new in zip(before, after, strict=True):
            same = 0
            while same < min(len(old), len(new)) and old[same] == new[same]:
                same += 1
            leave |= set(old[same:])
        come = {u for old, new in zip(before, after, strict=True) for u in new if u not in old}
        for d, (old, new) in enumerate(zip(before, after, strict=True)):
            gone = [u for u in old if u in leave]
            if rest := tuple(u for u in gone if u not in come or u in new):
                gathered.append((d, rest))
            for u in gone:
                if u in come and u not in new:
                    made.all_to_all(self.axes[u], local, (to[u], d))
        for d, units in gathered:
            made.all_gather(self.mesh_axes(units), local, d)
            local *= self.count(units)

    def _priced(self, made: Collectives, joins: bool, always: bool = False) -> Sent:
        machine, total = self.machine, self.machine.seconds(made.found)
        count = sum(each.count for each in made.found)
        if not made.found or not (joins or always):
            return Sent(total, count)
        own = sum(machine.once(each.latency_only) for each in made.found)
        if made.found[0].kind == ALL_REDUCE and machine.combines:
            return Sent(total - own)
        copied = machine.seconds(nbytes=2 * sum(each.received_bytes for each in made.found))
        if not joins:  # the first of those that go together
            return Sent(total + copied, count)
        return Sent(total - own + copied) if always or copied < own else Sent(total, count)

    def saved(self, units: Sequence[int], local: int) -> float:
        """What an all-reduce of so many bytes takes less where it goes with another."""
        alone, joined = (self.summed(units, local, False, joins) for joins in (False, True))
        return alone.seconds - joined.seconds

    def latency(self, units: Sequence[int]) -> float:
        """What an all-reduce over units takes, however little it adds up."""
        made = Collectives(self.device)
        made.all_reduce(self.mesh_axes(units), self.count(units))
        return sum(self.machine.once(each.latency_only) for each in made.found)

    def is_joined(self, before: Division | None, after: Division, nbytes: int) -> bool:
        """Whether the collectives of a move go with those of others, should there be any."""
        return self.move(before, after, nbytes, True).alone < self.move(before, after, nbytes).alone

    def is_summed_joined(self, units: Sequence[int], local: int, scattered: bool) -> bool:
        """The same of a sum."""
        by_itself = self.summed(units, local, scattered).alone
        return self.summed(units, local, scattered, True).alone < by_itself

    def summed(
        self,
        units: Sequence[int],
        local: int,
        scattered: bool,
        joins: bool = False,
        always: bool = False,
        dim: int = 0,
    ) -> Sent:
        """What it takes to add up partial results of so many bytes on a device.

        scattered: whether each gets its part, along a dim. joins: whether it can go with another.
        always: whether such do, also where it takes longer.
        """
        key = tuple(units), local, scattered, joins, always, dim
        if key not in self._sent:
            made = Collectives(self.device)
            if scattered:
                made.reduce_scatter(self.mesh_axes(units), local, dim)
            else:
                made.all_reduce(self.mesh_axes(units), local)
            self._sent[key] = self._priced(made, joins, always)
        return self._sent[key]


def scattered_dim(made: Division, out: Division) -> int:
    """The last dim along which a sum is scattered."""
    pairs = enumerate(zip(made, out, strict=True))
    return max((d for d, (old, new) in pairs if len(new) > len(old)), default=0)


def _by_links(device: DeviceGrid, names: Sequence[str]) -> list[set[str]]:
    """Prime factors of the mesh's axes in groups that the same links join."""
    found: dict[Any, set[str]] = {}
    for name in names:
        found.setdefault(device.machine.topology.kind(name), set()).add(name)
    return list(found.values()) or [set()]


def _parted(
    device: DeviceGrid, names: Sequence[str], group: set[str], extent: int
) -> list[set[str]]:
    """A unit's axes in two, where only the first of them divide an extent evenly."""
    axes = [name for name in names if name in group]
    count = len(axes)
    while count and extent % device.count(tuple(axes[:count])):
        count -= 1
    parts = [set(axes[:count]), set(axes[count:])]
    return [part for part in parts if part] if count else [group]
