"""A matrix in blocks of rows or columns with a block-cyclic distribution over the devices.

A factorization goes panel by panel, and the remaining part shrinks. With one block per device, the
first devices have nothing to do at the end. With several blocks in cyclic order, all devices share
the work to the end (Golub and Van Loan, Matrix Computations, "block-cyclic").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.decision import Choice
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import of_replicated
from gridlayout.sharding.collectives import Collectives, own_row, permute
from gridlayout.sharding.limits import LIMITS

# A rule that takes the number of blocks per device too: `(builder, op, *values, slots)`.
Blocked = Callable[..., Any]


@dataclass(frozen=True)
class Panels:
    """Blocks along a dim of a matrix, in cyclic order over the devices along mesh axes.

    dim: 0 for blocks of rows, 1 of columns. slots: blocks per device. width: rows or columns per
    block. extent: the extent of the dim; the last blocks may be beyond its end.
    """

    axes: Axes
    devices: int
    slots: int
    width: int
    extent: int
    dim: int

    @property
    def count(self) -> int:
        """The number of blocks that hold elements."""
        return -(-self.extent // self.width)

    def collectives(self, made: Collectives, width: int) -> Collectives:
        """Add to `made` what `distribute` or `collect` sends. width: bytes per block."""
        for slot in range(self.slots):
            pairs = self._pairs(slot)
            made.permute(self.axes, width, sum(a != b for a, b in pairs))
        return made

    def distribute(self, blocks: Sequence[jax.Array]) -> list[jax.Array]:
        """Return this device's blocks in cyclic order, from its consecutive blocks."""
        if self.slots == 1:
            return list(blocks)
        found = jnp.stack(blocks)
        for slot, block in enumerate(blocks):
            pairs = self._pairs(slot)
            source = {to: at for at, to in pairs}
            places = [(source[d] * self.slots + slot) // self.devices for d in range(self.devices)]
            sent = permute(block, self.axes, pairs)
            place = own_row(np.array(places, np.int32), self.axes)
            found = lax.dynamic_update_index_in_dim(found, sent, place, 0)
        return list(found)

    def collect(self, blocks: Sequence[jax.Array]) -> list[jax.Array]:
        """Return the inverse of `distribute`."""
        if self.slots == 1:
            return list(blocks)
        stacked, found = jnp.stack(blocks), []
        for slot in range(self.slots):
            pairs = [(to, at) for at, to in self._pairs(slot)]
            source = dict(pairs)
            places = [(source[d] * self.slots + slot) // self.devices for d in range(self.devices)]
            place = own_row(np.array(places, np.int32), self.axes)
            block = lax.dynamic_index_in_dim(stacked, place, 0, keepdims=False)
            found.append(permute(block, self.axes, pairs))
        return found

    def _pairs(self, slot: int) -> list[tuple[int, int]]:
        """Return pairs (source, target) of devices for a slot.

        They are a permutation, since the numbers of slots and devices have no common factor.
        """
        devices = range(self.devices)
        return [(d, (d * self.slots + slot) % self.devices) for d in devices]


def in_panels(b: Builder, value: Value, dim: int, slots: int) -> tuple[Value, Panels] | None:
    """Return a matrix relaid out in blocks along `dim` over all devices, or None if impossible.

    Each device gets consecutive blocks; `Panels.distribute` permutes them to cyclic order.
    """
    devices, extent = b.device.size, value.shape[dim]
    if devices == 1 or devices * slots > LIMITS.panels or gcd(devices, slots) > 1:
        return None
    width = -(-extent // (devices * slots))
    grid = tuple(devices if d == dim else 1 for d in range(2))
    shard = tuple(slots * width if d == dim else None for d in range(2))
    layout = GridLayout(value.shape, value.dtype, grid, collapse=[], shard_shape=shard)
    placed = b.placement(layout)
    axes = placed.axes[dim]
    if b.device.count(axes) != devices or placed.per_device[dim] != 1:
        return None
    return b.as_sharded(value, layout), Panels(axes, devices, slots, width, extent, dim)


def slots_of(devices: int) -> tuple[int, ...]:
    """Return the numbers of blocks per device to try: 1, and one coprime to the devices.

    >>> slots_of(8), slots_of(6)
    ((1, 3), (1, 5))
    """
    return 1, next(n for n in range(3, devices + 4) if gcd(n, devices) == 1)


def blocked_or_replicated(
    b: Builder, op: Op, ways: Sequence[Blocked], whole: float, *values: Value
) -> Choice | None:
    """Return the cheapest of some rules, or None if it takes less time replicated.

    whole: seconds that one device computes for the whole op.
    """

    def on_every_device(b: Builder, op: Op, *values: Value) -> Any:
        b.computing = whole
        return of_replicated(b, op, *values)

    found = cheapest_way(b, op, [on_every_device, *ways], *values)
    return None if found is None or found.best is on_every_device else found


def by_slots(b: Builder, op: Op, rule: Blocked, whole: float, *values: Value) -> Choice | None:
    """Return `blocked_or_replicated` of a rule, for several numbers of blocks per device."""
    ways = [partial(rule, slots=slots) for slots in slots_of(b.device.size)]
    return blocked_or_replicated(b, op, ways, whole, *values)


def as_spec(value: Value) -> Sharded:
    """Return the spec of a value that `in_panels` returned."""
    assert isinstance(value.spec, Sharded)
    return value.spec
