"""`Wires`: collectives between devices, inside `shard_map`, that count what devices receive."""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.ops.values import Context

Axes = tuple[str, ...]


def index_of(axes: Axes) -> Any:
    """This device's number along mesh axes."""
    return lax.axis_index(axes) if axes else 0


class Wires:
    """Collectives that count the bytes that all devices receive."""

    def __init__(self, ctx: Context) -> None:
        self.ctx, self.sizes, self.devices = ctx, ctx.device.fine.shape, ctx.device.size

    def count(self, axes: Axes) -> int:
        """Devices along some axes."""
        return prod(self.sizes[axis] for axis in axes)

    def gather(self, x: jax.Array, axes: Axes, dim: int) -> jax.Array:
        """All devices' parts, along `dim`."""
        if self.count(axes) == 1:
            return x
        self.ctx.moved += self.devices * (self.count(axes) - 1) * x.nbytes
        self.ctx.held += self.count(axes) * x.nbytes
        return lax.all_gather(x, axes, axis=dim, tiled=True)

    def send(self, x: jax.Array, axes: Axes, pairs: list[tuple[int, int]]) -> jax.Array:
        """Pairs (from, to) along the axes; who is sent nothing gets zeros."""
        if all(a == b for a, b in pairs):
            return x
        groups = self.devices // self.count(axes)
        self.ctx.moved += groups * sum(a != b for a, b in pairs) * x.nbytes
        return lax.ppermute(x, axes, pairs)

    def turn(self, x: jax.Array, axes: Axes) -> jax.Array:
        """Everyone's from the next one, round the ring."""
        n = self.count(axes)
        return self.send(x, axes, [((k + 1) % n, k) for k in range(n)])

    def spread(self, x: jax.Array, axes: Axes, root: int) -> jax.Array:
        """The root's `x` on everyone, by a tree: those that have it send it twice as far."""
        n, reach = self.count(axes), 1
        place = (index_of(axes) - root) % n
        while reach < n:
            pairs = [((root + k) % n, (root + k + reach) % n) for k in range(min(reach, n - reach))]
            x = jnp.where(place < reach, x, self.send(x, axes, pairs))
            reach *= 2
        return x

    def scatter(self, x: jax.Array, axes: Axes, dim: int) -> jax.Array:
        """The sum over the axes, of which each device keeps its part of `dim`."""
        n = self.count(axes)
        self.ctx.moved += self.devices * (n - 1) * x.nbytes // n
        return lax.psum_scatter(x, axes, scatter_dimension=dim, tiled=True)

    def sum(self, x: jax.Array, axes: Axes) -> jax.Array:
        """The sum over the axes, on every device."""
        n = self.count(axes)
        self.ctx.moved += self.devices * 2 * (n - 1) * x.nbytes // n
        return lax.psum(x, axes)
