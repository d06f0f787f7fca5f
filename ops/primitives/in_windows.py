"""Reductions of parts whose padding is not set.

To set it, XLA on CPUs stores the whole part once more before it reduces it. Most positions of a dim
hold elements on every device: these are reduced in windows as they are, and only the rest is set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.arguments import Shape
from gridlayout.document.grid_form import grouped
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.moves.padding import Padding, has_padding, padded_groups, valid_mask

# XLA on CPUs reduces longer dims in windows of this many elements, which read a stored operand.
WINDOW = 32

_COMBINE: dict[str, Callable[..., jax.Array]] = {
    "reduce_sum": lax.add,
    "reduce_prod": lax.mul,
    "reduce_max": lax.max,
    "reduce_min": lax.min,
    "reduce_and": lax.bitwise_and,
    "reduce_or": lax.bitwise_or,
}


@dataclass(frozen=True)
class InWindows:
    """A reduction of a device's part along some of its dims, which sets their padding itself.

    axes: the dims, of more than one element each, in the order in which they are reduced; the last
    ones at once. full: positions along the first one that are an element on every device.
    """

    op: Op
    padding: Padding
    axes: Shape
    full: int

    @classmethod
    def of(cls, op: Op, padding: Padding, axes: Shape) -> InWindows | None:
        """Return the reduction along `axes`; None where nothing is saved, or nothing is known."""
        full = _full(padding)
        ordered = op.name == "reduce_sum" or not jnp.issubdtype(op.out.dtype, jnp.complexfloating)
        if full is None or not {*full} <= {*axes} or op.name not in _COMBINE or not ordered:
            return None
        n = (*padding.placement.per_device, *padding.layout.local_shape)[axes[0]]
        least = full.get(axes[0], n)
        return None if least < WINDOW else cls(op, padding, axes, least)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the reduction of a part, in which reduced dims are of one element."""
        first, *rest = self.axes
        x = self._along_first(x, first)
        if rest:
            x = self._set(lax.optimization_barrier(x), rest)
            x = lax.expand_dims(self.op.bind(x, axes=tuple(rest))[0], rest)
        return x

    def _along_first(self, x: jax.Array, d: int) -> jax.Array:
        def reduced(x: jax.Array) -> jax.Array:
            return lax.expand_dims(self.op.bind(x, axes=(d,))[0], [d])

        if self.full == x.shape[d]:
            return reduced(x)
        length = min(range(WINDOW // 2, WINDOW + 1), key=lambda n: (self.full % n, -n))
        end, combine = self.full // length * length, _COMBINE[self.op.name]
        sizes = [length if k == d else 1 for k in range(x.ndim)]
        windows = lax.reduce_window(x, self._value(x), combine, sizes, sizes, "VALID")
        rest = self._set(lax.slice_in_dim(x, end, None, axis=d), [d], end)
        return combine(reduced(lax.slice_in_dim(windows, 0, end // length, axis=d)), reduced(rest))

    def _set(self, x: jax.Array, along: list[int], first: int = 0) -> jax.Array:
        """Return what is left of a part, from position `first` of a dim on, with its padding set.

        along: the dims along which it is set; the first one is that dim.
        """
        d, own = along[0], self.padding.layout
        if not has_padding(own, self.padding.placement, along):
            return x
        mask = valid_mask(own, self.padding.placement, along)
        mask = lax.slice_in_dim(mask, first, None, axis=d) if mask.shape[d] > 1 else mask
        inside = lax.broadcast_in_dim(mask, x.shape, range(x.ndim))
        return lax.select(inside, x, lax.full(x.shape, self._value(x), x.dtype))

    def _value(self, x: jax.Array) -> Any:
        return np.asarray(self.padding.value, x.dtype)


def _full(padding: Padding) -> dict[int, int] | None:
    """Return, for dims of a part with padding, the first positions that are elements everywhere.

    None for padding of another form.
    """
    own, placement, found = grouped(padding.layout), padding.placement, dict[int, int]()
    if own is None or own.tile or padding.along is None:
        return None
    rank = len(own.grid)
    for group in padded_groups(padding.layout, placement, padding.along):
        k, *others = {d % rank for d in group.physical}
        size = prod(own.shape[d] for d in own.groups[k])
        if others or placement.per_device[k] != 1 or own.collapsed_shape[k] != size:
            return None
        n = own.shard_shape[k]
        found[rank + k] = min(max(size - (placement.slots[k] - 1) * n, 0), n)
    return found
