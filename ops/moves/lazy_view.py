"""`LazyView`: an array with pending reshapes and transposes, which are materialized together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import prod
from operator import mul

import jax
from jax import lax

from gridlayout.arguments import Shape
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.sharding.collectives import all_gather


@dataclass(frozen=True)
class LazyView:
    """An array with reshapes and transposes that are not executed yet.

    digits: extents that factor the array's row-major index, major first, without 1s. order: the
    order of these digits in the view, major first. shape: the shape of the view, which joins them.
    wider: returns the array with so many more positions of any value after each dim, or None; set
    where that is made in the kernel that reads it, as XLA on CPUs takes longer to pad or to reorder
    what is cut from others or joined.

    >>> import jax.numpy as jnp
    >>> view = LazyView.of(jnp.arange(6)).reshape(1, 2, 1, 3).transpose((1, 0, 3, 2))
    >>> view.array.shape, view.materialize().tolist()
    ((6,), [[[[0], [1], [2]]], [[[3], [4], [5]]]])
    >>> twice = LazyView.of(jnp.ones((2, 3))).transpose((1, 0)).reshape(3, 2, 1)
    >>> twice = twice.transpose((1, 2, 0))
    >>> twice.reshape(6).materialize() is twice.array
    False
    >>> twice.reshape(2, 3).materialize() is twice.array
    True
    """

    array: jax.Array
    digits: Shape
    order: Shape
    shape: Shape
    wider: Callable[[Shape], jax.Array | None] | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls, array: jax.Array, wider: Callable[[Shape], jax.Array | None] | None = None
    ) -> LazyView:
        """Return a view of the array as it is."""
        digits = tuple(n for n in array.shape if n != 1)
        return cls(array, digits, tuple(range(len(digits))), array.shape, wider)

    @property
    def exact(self) -> LazyView:
        """The view, which is padded only with what is stated."""
        return replace(self, wider=None)

    @property
    def is_in_order(self) -> bool:
        """Whether elements appear in the order in which they are stored."""
        return self.order == tuple(range(len(self.order)))

    def reshape(self, *shape: int) -> LazyView:
        """Return the view in another shape; one extent may be -1."""
        if -1 in shape:
            rest = prod(self.shape) // max(-prod(shape), 1)
            shape = tuple(rest if n == -1 else n for n in shape)
        return LazyView(self.array, self.digits, self.order, shape, self._wider_in(shape))

    def _wider_in(self, shape: Shape) -> Callable[[Shape], jax.Array | None] | None:
        """Return `wider` of the view in another shape: along dims that it has in both."""
        wider, own = self.wider, self.shape
        if wider is None or prod(shape) != prod(own):
            return None
        places = {(prod(own[:d]), n): d for d, n in enumerate(own) if n > 1}
        here = [places.get((prod(shape[:d]), n)) for d, n in enumerate(shape)]

        def after(high: Shape) -> jax.Array | None:
            more = {d: n for d, n in zip(here, high, strict=True) if n}
            if None in more:
                return None
            found = wider(tuple(more.get(d, 0) for d in range(len(own))))
            longer = tuple(map(sum, zip(shape, high, strict=True)))
            return None if found is None else lax.reshape(found, longer)

        return after

    def padded(self, low: Shape, high: Shape) -> LazyView | None:
        """Return the view with positions of any value around it, if that is made in one kernel."""
        if self.wider is None or any(low) or min(high) < 0 or not self.is_in_order:
            return None
        found = self.wider(high)
        return None if found is None else LazyView.of(found)

    def transpose(self, order: Sequence[int]) -> LazyView:
        """Return the view with its dims in another order."""
        shape = tuple(self.shape[d] for d in order)
        if 0 in shape:
            return self.reshape(*shape)
        found = self._split()
        if found is None:  # a dim ends inside a digit that cannot be divided there
            return LazyView.of(self.materialize()).transpose(order)
        digits, dims = found
        return LazyView(self.array, digits, tuple(k for d in order for k in dims[d]), shape)

    def moved(self, dim: int, to: int) -> LazyView:
        """Return the view with one dim moved to another place."""
        order = [d for d in range(len(self.shape)) if d != dim]
        order.insert(to, dim)
        return self.transpose(order)

    def first(self, count: int, at: int) -> LazyView:
        """Return the first `count` positions along dim `at`."""
        if self.shape[at] == count:
            return self
        return LazyView.of(lax.slice_in_dim(self.materialize(), 0, count, axis=at))

    def all_gather(self, axes: Axes, dim: int) -> LazyView:
        """Return all devices' parts joined along a dim; for use inside of `shard_map`."""
        if not axes:
            return self
        lead = self.shape[:dim]
        ones = lead if prod(lead) == 1 else ()
        part = self.reshape(*self.shape[len(ones) :]).materialize()
        whole = all_gather(part, axes, dim - len(ones))
        return LazyView.of(whole).reshape(*ones, *whole.shape)

    def materialize(self) -> jax.Array:
        """Return the array of this view, by at most one transpose, of as few dims as possible.

        But where a dim of the view ends, one of the transpose does: XLA on CPUs finds the elements
        of a dim one by one where it joins parts of several dims.
        """
        if self.is_in_order or 0 in self.shape:
            return lax.reshape(self.array, self.shape)
        runs: list[list[int]] = []  # digits that stay adjacent
        ends, at = set(accumulate(self.shape, mul)), 1
        for k in self.order:
            is_inside, at = at not in ends, at * self.digits[k]
            if runs and runs[-1][-1] == k - 1 and is_inside:
                runs[-1].append(k)
            else:
                runs.append([k])
        extents = [prod(self.digits[k] for k in run) for run in runs]
        places = sorted(range(len(runs)), key=lambda i: runs[i])
        before, after = tuple(extents[i] for i in places), tuple(extents)
        # Include dims of extent 1 in the transpose where that saves a reshape.
        fits = after == _wide(self.shape)
        ones = self.shape.count(1) if fits else 0
        before = self.array.shape if before == _wide(self.array.shape) else (1,) * ones + before
        narrow = [d for d, n in enumerate(before) if n == 1]
        wide = [d for d, n in enumerate(before) if n != 1]
        after = self.shape if fits and len(narrow) == ones else (1,) * len(narrow) + after
        sources = iter(narrow), iter([wide[places.index(i)] for i in range(len(runs))])
        order = [next(sources[n != 1]) for n in after]
        return lax.reshape(lax.transpose(lax.reshape(self.array, before), order), self.shape)

    def _split(self) -> tuple[Shape, list[list[int]]] | None:
        """Return digits split so that each dim consists of full digits, and the digits of each dim.

        None if the digits cannot be split like that.
        """
        pieces: list[list[int]] = [[] for _ in self.digits]  # what each digit is split into
        dims: list[list[tuple[int, int]]] = []  # for each dim: (digit, index of its piece)
        waiting, digit, rest = iter(self.order), -1, 1
        for n in self.shape:
            dims.append([])
            while n > 1:
                if rest == 1:
                    digit = next(waiting)
                    rest = self.digits[digit]
                part = min(n, rest)
                if n % part or rest % part:
                    return None
                dims[-1].append((digit, len(pieces[digit])))
                pieces[digit].append(part)
                n, rest = n // part, rest // part
        start = [sum(map(len, pieces[:k])) for k in range(len(pieces))]
        digits = tuple(n for parts in pieces for n in parts)
        return digits, [[start[digit] + piece for digit, piece in dim] for dim in dims]


def _wide(shape: Shape) -> Shape:
    return tuple(n for n in shape if n != 1)
