"""Borders: what devices receive of a divided dim to read views of it, such as those of a stencil.

A device that computes a block of a view reads a range of the array's positions, which may begin
before its own block, end after it, or be in the blocks of other devices. The positions of other
devices arrive in slabs, each by one permute, for all devices whose neighbours are as far away, or
for any that send and receive one at most; or, where latency is what counts, narrow ones by one
all-gather of all of them; or by an all-gather of the blocks. Positions that wrap around, as in a
roll, come from the neighbour on the other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gridlayout.layouts.mesh_axes import Axes
from gridlayout.sharding.collectives import Collectives
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.machines.machine import Machine

Array = NDArray[np.int64]
# Positions that are outside of the array, and those that nothing is read from. Both are negative.
OUTSIDE, UNREAD = -1, -2


@dataclass(frozen=True, eq=False)
class Slab:
    """`width` positions that some devices receive in one permute, or have in their own blocks.

    pairs: (from, to). starts: for each sender, the first position in its block. places: for each
    receiver, where they go in the buffer, if slabs are written one after another.
    """

    width: int
    pairs: tuple[tuple[int, int], ...]
    starts: Array
    places: Array


@dataclass(frozen=True, eq=False)
class Segment:
    """`width` positions of the buffer, which devices have of different slabs.

    slabs: the slabs; for each of them, which devices have the positions of it, and from where on.
    """

    width: int
    slabs: tuple[tuple[Slab, NDArray[np.bool_], Array], ...]

    @property
    def devices(self) -> NDArray[np.bool_]:
        """The devices that have the positions of any slab."""
        return np.logical_or.reduce([devices for _, devices, _ in self.slabs])


@dataclass(frozen=True, eq=False)
class Border:
    """The buffer of one dim that a device reads views from, and how it is filled.

    axes: the mesh axes of the `n` devices that divide the dim in blocks of `block`. length: of the
    buffer. own: what is of the devices' own blocks. offsets: for each view, of each device and each
    of its positions the place in the buffer; or OUTSIDE, UNREAD. gathered: the positions of each
    block that an all-gather sends; None for slabs. slabs: those that are a permute each. shared:
    those that one all-gather sends to all devices. is_inner: whether the dim is behind others, so
    that a gather along it copies. segments: the buffer in order; () if there would be many, so that
    slabs are written to it one after another.
    """

    axes: Axes
    n: int
    block: int
    length: int
    offsets: tuple[Array, ...]
    own: tuple[Slab, ...] = ()
    slabs: tuple[Slab, ...] = ()
    gathered: tuple[int, int] | None = None
    shared: tuple[Slab, ...] = ()
    is_inner: bool = False
    segments: tuple[Segment, ...] = ()

    @classmethod
    def local(cls, axes: Axes, n: int, block: int, length: int, offsets: Sequence[Array]) -> Border:
        """Return the buffer that a device has without receiving anything."""
        return cls(axes, n, block, length, tuple(offsets))

    @property
    def every_slab(self) -> tuple[Slab, ...]:
        """All slabs that are sent, those of permutes first."""
        return (*self.slabs, *self.shared)

    @property
    def is_local(self) -> bool:
        """Whether nothing is received."""
        return not self.every_slab and self.gathered is None

    @cached_property
    def held(self) -> NDArray[np.bool_]:
        """Of each device, the positions of the buffer that hold elements of the array."""
        if self.segments:
            return np.repeat(
                np.array([segment.devices for segment in self.segments]).T,
                [segment.width for segment in self.segments],
                axis=1,
            )
        found = np.full((self.n, self.length), self.is_local or self.gathered is not None)
        for slab in (*self.own, *self.every_slab):
            for _, d in slab.pairs:
                found[d, slab.places[d] : slab.places[d] + slab.width] = True
        return found

    @property
    def received(self) -> int:
        """The positions that are written, besides the device's own block."""
        if self.gathered is not None:
            return self.length
        return sum(slab.width for slab in self.slabs) + self.n * self.sent_to_all

    @property
    def copied(self) -> int:
        """The positions that are written until the buffer is filled."""
        if self.gathered is not None or self.is_local:
            return self.received
        return self.received + self.length * (1 if self.segments else 2)

    @cached_property
    def cut_out(self) -> tuple[Segment, ...]:
        """The segments that devices cut out of what they receive, each at another place."""
        shared = {id(slab) for slab in self.shared}
        sent = {id(slab) for slab in self.every_slab}
        return tuple(
            segment
            for segment in self.segments
            if (found := {id(slab) for slab, _, _ in segment.slabs}) & sent
            and (found & shared or len(found) > 1 or not segment.devices.all())
        )

    @property
    def sent(self) -> int:
        """The positions of all slabs."""
        return sum(slab.width for slab in self.every_slab)

    @property
    def sent_to_all(self) -> int:
        """The positions of shared slabs."""
        return sum(slab.width for slab in self.shared)

    def sharing(self, count: int) -> Border:
        """Return the same border with the `count` narrowest slabs shared."""
        order = sorted(self.every_slab, key=lambda slab: -slab.width)
        first = len(order) - count
        return replace(self, slabs=tuple(order[:first]), shared=tuple(order[first:]))

    def collectives(self, made: Collectives, width: int) -> Collectives:
        """Add what the devices send to `made`. width: bytes per position."""
        if self.gathered is not None:
            first, last = self.gathered
            return made.all_gather(self.axes, (last - first) * width, int(self.is_inner))
        for slab in self.slabs:
            made.permute(self.axes, slab.width * width, len(slab.pairs))
        return made.all_gather(self.axes, self.sent_to_all * width, int(self.is_inner))


def seconds_of_borders(
    machine: Machine, device: DeviceGrid, axes: Axes, widths: Sequence[int]
) -> float:
    """Return the seconds to receive borders of so many bytes from neighbours along mesh axes."""
    apart, together = Collectives(device), Collectives(device)
    for nbytes in widths:
        apart.permute(axes, nbytes, device.count(axes))
    together.all_gather(axes, sum(widths))
    return min(machine.seconds(apart.found), machine.seconds(together.found))
