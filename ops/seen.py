"""`Seen`: an array and the shape that it is seen with, so that of reshapes in a row one is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import jax
from jax import lax


@dataclass(frozen=True)
class Seen:
    """An array, and another shape of as many elements; made in that shape when it is asked for.

    >>> import jax.numpy as jnp
    >>> seen = Seen(jnp.arange(6), (6,)).reshape(1, 2, 1, 3).transpose((1, 0, 3, 2))
    >>> seen.array.shape, seen.now().tolist()
    ((6,), [[[[0], [1], [2]]], [[[3], [4], [5]]]])
    """

    array: jax.Array
    shape: tuple[int, ...]

    def now(self) -> jax.Array:
        """The array in that shape."""
        return self.array.reshape(self.shape)

    def reshape(self, *shape: int) -> Seen:
        """In another shape; one extent may be -1."""
        known = -prod(shape) if -1 in shape else 1
        size = prod(self.shape)
        return Seen(self.array, tuple(size // max(known, 1) if n == -1 else n for n in shape))

    def transpose(self, order: Sequence[int]) -> Seen:
        """The dims in another order: a reshape where only dims of extent 1 change places."""
        wide = [d for d in order if self.shape[d] != 1]
        shape = tuple(self.shape[d] for d in order)
        if wide == sorted(wide):
            return Seen(self.array, shape)
        return Seen(self.now().transpose(order), shape)

    def first(self, count: int, at: int) -> Seen:
        """The first positions along a dim."""
        if self.shape[at] == count:
            return self
        part = lax.slice_in_dim(self.now(), 0, count, axis=at)
        return Seen(part, part.shape)
