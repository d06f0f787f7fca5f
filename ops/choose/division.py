"""`Division`: which parts of a mesh divide which dims of a value, and the cost of changing that.

A mesh consists of *units*: mesh axes (or prime factors of them) that the operands always use
together. A division names the units along each dim, major first. Devices along the remaining units
hold copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.document.grid_form import grouped
from gridlayout.errors import LayoutError
from gridlayout.layouts.mesh_axes import Axes, MeshAxes, by_rule
from gridlayout.ops.choose.changes import (
    Joined,
    Sent,
    Share,
    Summed,
    Way,
    ways_to_change,
    without_order,
)
from gridlayout.ops.choose.unit_axes import by_links, unit_axes
from gridlayout.ops.decisions.blocks import block_spec
from gridlayout.ops.decisions.specs import Sharded, Spec
from gridlayout.ops.moves.relayout import find_move
from gridlayout.sharding.collectives import ALL_TO_ALL, PERMUTE, Collective, Collectives
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.machines.machine import Machine
from gridlayout.sharding.meshes.placement import Placement

Division = tuple[tuple[int, ...], ...]
_MUCH = 1 << 30  # bytes, from which the bandwidth of links follows


@dataclass(eq=False)
class Units:
    """The units of a device grid as their axes of `device.fine`, in the order of `unit_axes`.

    idle: whether a dim may have fewer elements than the devices that divide it, if it has more than
    half as many. work: seconds that a device computes before each collective. margin: the share of
    their time that measured collectives are taken to need more. listed: the divisions of arguments
    and results, by shape, once they are known.
    """

    device: DeviceGrid
    axes: tuple[Axes, ...]
    idle: bool = False
    work: float = 0.0
    margin: float = 0.0
    listed: dict[Shape, list[Division]] = field(default_factory=dict, init=False)
    _moves: dict[Any, list[Way]] = field(default_factory=dict, init=False)
    _moved: dict[Any, Sent] = field(default_factory=dict, init=False)
    _rates: dict[Any, tuple[float, float]] = field(default_factory=dict, init=False)
    _summed: dict[Any, Summed] = field(default_factory=dict, init=False)
    _counts: dict[tuple[int, ...], int] = field(default_factory=dict, init=False)
    _extents: dict[Division, tuple[int, ...]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, device: DeviceGrid, specs: Iterable[Spec], extents: Iterable[int] = ()) -> Units:
        """Return the coarsest units such that every dim of these placements uses whole units.

        Axes with different links, and axes between hosts, are separate units. extents: of dims that
        can be divided only evenly. A unit that does not divide one of them evenly is split, if its
        first axes do.
        """
        return cls(device, unit_axes(device, by_links(device), specs, extents))

    @classmethod
    def apart(
        cls, device: DeviceGrid, specs: Iterable[Spec] = (), least: int = 3, together: bool = False
    ) -> Units:
        """Return every mesh axis as its own unit; the largest are split until there are `least`.

        So each of them can divide another dim. Dims of these placements use whole units. together:
        whether axes with equal links begin as one unit, which is split between axes if it can be.
        """
        mesh = [device.fine_axes(axis) for axis in device.mesh.axis_names]
        kinds = by_links(device)
        within = [[name for axes in mesh for name in axes]] if together else mesh
        groups = [[name for name in axes if name in kind] for axes in within for kind in kinds]
        groups = [group for group in groups if group]
        while len(groups) < least and any(len(group) > 1 for group in groups):
            largest = max(groups, key=len)
            at, half = groups.index(largest), -(-len(largest) // (least - len(groups) + 1))
            ends = [k for k in range(1, len(largest)) if any(largest[k] == a[0] for a in mesh)]
            first = min(ends, key=lambda k: abs(k - half)) if ends else half
            groups[at : at + 1] = [largest[:first], largest[first:]]
        return cls(device, unit_axes(device, [set(group) for group in groups], specs))

    @cached_property
    def machine(self) -> Machine:
        """The machine that prices collectives and computation."""
        machine = self.device.machine.after(self.work)
        return machine.with_slower_figures(self.margin) if self.margin else machine

    def between(self, flops: float, nbytes: float) -> Units:
        """Return the same units, with the work of all devices between two collectives.

        flops, nbytes: over all devices, which have equal parts.
        """
        n, machine = self.device.size, self.device.machine
        return replace(self, work=sum(machine.computing(flops / n, nbytes / n).values()))

    def count(self, units: Iterable[int]) -> int:
        """Return the number of devices along some units."""
        if (key := tuple(units)) not in self._counts:
            self._counts[key] = prod(self.device.count(self.axes[u]) for u in key)
        return self._counts[key]

    def counts(self, division: Division) -> tuple[int, ...]:
        """Return the number of devices along each dim of a division."""
        if division not in self._extents:
            self._extents[division] = tuple(map(self.count, division))
        return self._extents[division]

    def mesh_axes(self, units: Iterable[int]) -> Axes:
        """Return the axes of some units, in order."""
        return tuple(axis for u in units for axis in self.axes[u])

    def parts(self, division: Division) -> int:
        """Return the number of different parts of a value."""
        return self.count(u for units in division for u in units)

    # -- of layouts --------------------------------------------------------------------------------

    def division(self, spec: Spec, is_result: bool = False) -> Division | None:
        """Return the division of a placed value; None where its blocks are those of no division.

        is_result: takes a result, of which some devices hold padding alone, as if they had copies.
        """
        if not isinstance(spec, Sharded):
            return ((),) * len(spec.shape)
        own = grouped(spec.layout)
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
            if not wide and is_result:
                continue
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
        """Return the spec of an untiled array in equal blocks, one core per device."""
        axes = tuple(self.mesh_axes(units) for units in division)
        grid = tuple(self.device.count(a) for a in axes)
        placed = Placement(grid, axes, grid, (1,) * len(grid))
        return block_spec(shape, np.dtype(dtype), placed, memory_space)

    def stated(self, spec: Sharded, what: str) -> Division:
        """Return the division of a layout that the user states.

        what: names the layout in the `LayoutError` for one that has no division.
        """
        if (division := self.division(spec)) is None:
            raise LayoutError(
                f"{what} does not divide dims among whole mesh axes, as plans need: give a grid "
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
            if not cores.intersection(map(self.machine.mesh_axis_of, axes))
        )

    def among_chips(self, division: Division) -> Division:
        """Return the part of a division that is over chips."""
        return tuple(tuple(u for u in units if u in self.chips) for units in division)

    def is_by_rule(self, shape: Shape, division: Division, mesh: MeshAxes | None = None) -> bool:
        """Return whether a grid that names no mesh axes is placed like that.

        mesh: another order of the mesh axes, in which the rule takes them.
        """
        if 0 in shape:
            return not any(division)
        axes = tuple(self.mesh_axes(units) for units in division)
        grid = tuple(self.device.count(a) for a in axes)
        if mesh is not None:
            return by_rule(mesh, grid) == axes
        return self.device.placements.has(grid) and self.device.placement(grid).axes == axes

    def are_by_rule(self, values: Iterable[tuple[Shape, Division]]) -> bool:
        """Return whether grids that name no mesh axes are placed like that in one order of axes."""
        values, placements = list(values), self.device.placements
        used = (axis for _, own in values for units in own for axis in self.mesh_axes(units))
        # A map of cores that the user states knows one order.
        mesh = None if placements.stated is not None else placements.axes.first([*used])
        return all(self.is_by_rule(*each, mesh) for each in values)

    def words(
        self,
        ins: Sequence[Division | None],
        out: Division,
        summed: Sequence[int] = (),
        scattered: bool = False,
    ) -> str:
        """Return a text of how a node runs: the mesh axes that divide its operands and its result.

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

    def move(self, before: Division | None, after: Division, nbytes: int) -> Sent:
        """Return the cost of relaying out a value of `nbytes` from one division to another."""
        key = before, after, nbytes
        if key not in self._moved:
            self._moved[key] = self._move(before, after, nbytes)
        return self._moved[key]

    def _move(self, before: Division | None, after: Division, nbytes: int) -> Sent:
        if before == after:
            return Sent()
        ways = self._ways(before, after)
        if not ways:  # each device takes a slice of its own part
            return Sent(self.machine.slicing(nbytes // max(self.parts(after), 1)))
        return min([way.alone(nbytes) for way in ways])

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of devices along each unit."""
        return tuple(map(self.device.count, self.axes))

    def is_local(self, before: Division | None, after: Division | None) -> bool:
        """Return whether each device takes a part of its own to change a division."""
        if before is None or after is None or before == after:
            return False
        return not self._ways(before, after)

    def _ways(self, before: Division | None, after: Division) -> list[Way]:
        """Return the ways to change a division, as functions of bytes, whatever the dims' order."""
        key = before, after
        if key not in self._moves:
            every = tuple(range(len(self.axes)))
            before, after = without_order(before, after)
            if before is None:
                size = self.device.size
                found: list[tuple[Share, ...]] = [
                    (Share(ALL_TO_ALL, every, (size - 1) / size**2, 2 / size),)
                ]
            else:
                found = [*ways_to_change(before, after, self.sizes)]
            self._moves[key] = [self._way(shares) for shares in found if shares]
        return self._moves[key]

    def _way(self, shares: Sequence[Share]) -> Way:
        """Return what some collectives take; times are linear in the bytes."""
        passed = 2 * self.machine.work_seconds(nbytes=1)
        latency = per_byte = received = 0.0
        for each in shares:
            key = each.kind, each.units
            if key not in self._rates:
                n, axes = self.count(each.units), self.device.names(self.mesh_axes(each.units))
                sent = Collective(each.kind, axes, n, 0, self.device.size)
                least = self.machine.once(sent)
                much = self.machine.once(replace(sent, received_bytes=_MUCH))
                self._rates[key] = least, (much - least) / _MUCH
            start, each_byte = self._rates[key]
            latency += start
            per_byte += each_byte * each.received + passed * each.copied
            received += each.received
        kinds = tuple((each.kind, self.device.names(self.mesh_axes(each.units))) for each in shares)
        return Way(latency, per_byte, passed * received, kinds)

    def exact_move(
        self, shape: Shape, dtype: Any, before: Division, after: Division
    ) -> tuple[float, Joined | None]:
        """Return the seconds to relay an array of blocks out, by the collectives that it takes.

        And what the move saves by joining others that send the same; None if nothing.
        """
        old, new = (self.spec(shape, dtype, division) for division in (before, after))
        move = find_move(old.layout, new.layout, self.device, old.placement, new.placement)
        if move is None or not move.collectives:
            return self.move(before, after, dtypes.nbytes(shape, dtype)).seconds, None
        sent, joined = move.collectives, None
        if move.phases is not None and self.machine.saves_joined(sent):
            kinds = tuple((each.kind, each.axes) for each in sent)
            joined = Joined(kinds, self.machine.latency_alone(sent))
        return self.machine.seconds(sent), joined

    def joined_move(self, before: Division | None, after: Division, nbytes: int) -> Joined | None:
        """Return what a move saves by joining others that send the same; None if nothing."""
        ways = self._ways(before, after) if before != after else []
        if not ways:
            return None
        best = min(ways, key=lambda way: way.alone(nbytes))
        if any(kind == PERMUTE for kind, _ in best.kinds):
            return None  # moves in pieces run by themselves
        return Joined(best.kinds, best.latency) if best.copied * nbytes < best.latency else None

    def summed(self, units: tuple[int, ...], local: int, scattered: bool, dim: int = 0) -> Summed:
        """Return the cost of summing partial results of `local` bytes per device.

        scattered: whether each device gets its part of the sum, along `dim`.
        """
        key = units, local, scattered, dim
        if key not in self._summed:
            self._summed[key] = self._sum(*key)
        return self._summed[key]

    def _sum(self, units: tuple[int, ...], local: int, scattered: bool, dim: int) -> Summed:
        axes, machine, sent = self.mesh_axes(units), self.machine, Collectives(self.device)
        if scattered:
            sent.reduce_scatter(axes, local, dim)
        else:
            sent.all_reduce(axes, local)
        is_free = not scattered and machine.combines  # XLA joins all-reduces without a copy
        saves = is_free or machine.saves_joined(sent.found)
        shared = machine.latency_alone(sent.found) if saves else 0.0
        return Summed(machine.seconds(sent.found), shared)
