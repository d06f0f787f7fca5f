"""One matrix in blocks of rows, or of columns, that are dealt to the devices in turn.

A factorization goes panel by panel, and what is left gets smaller: with one block on each device
the first ones have nothing to do at the end. With several, dealt in turn, all have their share to
the end (Golub and Van Loan, Matrix Computations, "block-cyclic").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.decision import Choice
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.rules.along import of_replicated
from gridlayout.sharding.collectives import Axes, Collectives, index_of, permute
from gridlayout.sharding.limits import LIMITS

# How a rule writes a decision down with so many blocks on each device.
Blocked = Callable[..., Any]


@dataclass(frozen=True)
class Panels:
    """Blocks along a dim of a matrix, dealt in turn to devices along mesh axes.

    dim: 0 for blocks of rows, 1 of columns. slots: blocks of each device; width: rows or columns of
    a block. extent: of the dim, which the last blocks may be beyond.
    """

    axes: Axes
    devices: int
    slots: int
    width: int
    extent: int
    dim: int

    @property
    def count(self) -> int:
        """Blocks that hold something."""
        return -(-self.extent // self.width)

    def sent(self, made: Collectives, width: int) -> Collectives:
        """What the devices send to deal, or to bring blocks back; width: bytes of one."""
        for slot in range(self.slots):
            pairs = self._pairs(slot)
            made.permute(self.axes, width, sum(a != b for a, b in pairs))
        return made

    def dealt(self, blocks: Sequence[jax.Array]) -> list[jax.Array]:
        """This device's blocks, of which it has one after another, as dealt: slot by slot."""
        if self.slots == 1:
            return list(blocks)
        found = jnp.stack(blocks)
        for slot, block in enumerate(blocks):
            pairs = self._pairs(slot)
            source = {to: at for at, to in pairs}
            places = [(source[d] * self.slots + slot) // self.devices for d in range(self.devices)]
            sent = permute(block, self.axes, pairs)
            place = jnp.asarray(places)[index_of(self.axes)]
            found = lax.dynamic_update_index_in_dim(found, sent, place, 0)
        return list(found)

    def back(self, blocks: Sequence[jax.Array]) -> list[jax.Array]:
        """The inverse of `dealt`."""
        if self.slots == 1:
            return list(blocks)
        held, found = jnp.stack(blocks), []
        for slot in range(self.slots):
            pairs = [(to, at) for at, to in self._pairs(slot)]
            source = dict(pairs)
            places = [(source[d] * self.slots + slot) // self.devices for d in range(self.devices)]
            place = jnp.asarray(places)[index_of(self.axes)]
            block = lax.dynamic_index_in_dim(held, place, 0, keepdims=False)
            found.append(permute(block, self.axes, pairs))
        return found

    def _pairs(self, slot: int) -> list[tuple[int, int]]:
        """Pairs (from, to) of the devices for a slot: a permutation, as slots share no factor."""
        devices = range(self.devices)
        return [(d, (d * self.slots + slot) % self.devices) for d in devices]


def in_panels(b: Builder, value: Value, dim: int, slots: int) -> tuple[Value, Panels] | None:
    """A matrix in blocks of rows or columns, on all devices; None where these can't have them so.

    Each device has its blocks one after another: `Panels.dealt` deals them.
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
    return b.on_cores(value, layout), Panels(axes, devices, slots, width, extent, dim)


def slots_of(devices: int) -> tuple[int, ...]:
    """How many blocks a device may have: one, or some that share no factor with the devices.

    >>> slots_of(8), slots_of(6)
    ((1, 3), (1, 5))
    """
    return 1, next(n for n in range(3, devices + 4) if gcd(n, devices) == 1)


def blocked_or_whole(
    b: Builder, op: Op, ways: Sequence[Blocked], whole: float, *values: Value
) -> Choice | None:
    """The cheapest of some ways; None where every device does all of it in less time.

    whole: seconds that a device computes for all of it.
    """

    def on_all(b: Builder, op: Op, *values: Value) -> Any:
        b.computing = whole
        return of_replicated(b, op, *values)

    found = cheapest_way(b, op, [on_all, *ways], *values)
    return None if found is None or found.best is on_all else found


def by_slots(b: Builder, op: Op, rule: Blocked, whole: float, *values: Value) -> Choice | None:
    """`blocked_or_whole` of a rule that takes how many blocks each device has."""
    ways = [partial(rule, slots=slots) for slots in slots_of(b.device.size)]
    return blocked_or_whole(b, op, ways, whole, *values)


def as_spec(value: Value) -> Sharded:
    """The spec of a value that `in_panels` made."""
    assert isinstance(value.spec, Sharded)
    return value.spec
