"""`Place`: where a deferred value is computed, and at which of its indices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Shape
from gridlayout.document.grid_form import as_grid
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.specs import Local, Replicated, Sharded
from gridlayout.ops.moves.padding import positions
from gridlayout.sharding.meshes.placement import Placement


@dataclass(frozen=True)
class Place:
    """A device's part of a layout, or, without a layout, a replicated array of `shape`.

    map: the index in this array -> the index of the deferred value. Where the map is out of the
    value's bounds, and in padding, the elements may be anything.

    >>> from gridlayout.affine.map import AffineMap
    >>> rows = Place((2, 3), AffineMap.parse("(d0, d1) -> (d0)"))
    >>> rows.is_itself, [index.tolist() for index in rows.index()]
    (False, [[[0], [1]]])
    """

    shape: Shape
    map: AffineMap
    layout: Layout | None = None
    placement: Placement | None = None

    @classmethod
    def replicated(cls, shape: Shape) -> Place:
        """Return the place of a replicated array."""
        return cls(shape, AffineMap.identity(len(shape)))

    @classmethod
    def part(cls, layout: Layout, placement: Placement) -> Place:
        """Return the place of a device's part of a layout."""
        identity = AffineMap.identity(layout.ndim)
        return cls(layout.shape, identity, layout.with_oob(None), placement)

    @property
    def is_itself(self) -> bool:
        """Whether the map is the identity."""
        return self.map == AffineMap.identity(len(self.shape))

    @property
    def local_shape(self) -> Shape:
        """The shape of the array that a device computes."""
        if self.layout is None or self.placement is None:
            return self.shape
        return Sharded(self.layout, self.placement).local_shape

    def reindexed(self, old: AffineMap) -> Place:
        """Return the place for another value. old: this value's index -> the other one's index."""
        return replace(self, map=old.compose(self.map))

    @property
    def extents(self) -> Shape:
        """The shape of what a device computes: 1 along dims that the value's index does not use."""
        used = {d for row in self._logical.results for d in row.dims}
        return tuple(n if d in used else 1 for d, n in enumerate(self.local_shape))

    def spec(self, dtype: Any) -> Sharded | Replicated | Local:
        """Return the spec of a value of this dtype that is computed here; keys have no layout."""
        if self.layout is None or self.placement is None:
            return Replicated(self.shape, dtype)
        if jnp.issubdtype(dtype, jax.dtypes.extended):
            return Local(self.extents, dtype)
        return Sharded(self.layout.with_dtype(dtype), self.placement)

    @cached_property
    def _logical(self) -> AffineMap:
        """The map of a physical index of the storage, or of the array, to the value's index."""
        if self.layout is None:
            return self.map
        map = self.map.compose(self.layout.inverse_in_bounds.map)
        return map if 0 in self.layout.physical_shape else map.simplify(self.layout.physical_shape)

    def index(self) -> list[jax.Array]:
        """Return the value's index at each position that a device computes, one array per dim.

        For use inside `shard_map`. Each array has extent 1 along the dims that it does not depend
        on; together they broadcast.
        """
        kind = self._kind()
        local = self.local_shape
        if self.layout is None or self.placement is None:
            at = [
                lax.broadcasted_iota(kind, tuple(n if k == d else 1 for k in range(len(local))), d)
                for d, n in enumerate(local)
            ]
        else:
            at = positions(self.layout, self.placement, kind)
        return [_result(self._logical, k, at, kind) for k in range(len(self._logical.results))]

    def _kind(self) -> Any:
        """Return the integer type that indices are computed in."""
        extents = self.shape if self.layout is None else self.layout.physical_shape
        if self.layout is not None and (own := as_grid(self.layout)) is not None:
            extents = (*extents, *own.collapsed_shape)
        elif self.layout is not None:
            extents = (prod(self.layout.shape),)
        if max(extents, default=0) < 2**31:
            return jnp.int32
        if not jax.config.jax_enable_x64:
            raise LayoutError(
                f"an array of shape {self.shape} needs indices of more than 32 bits in "
                f"{self.layout}: call jax.config.update('jax_enable_x64', True)"
            )
        return jnp.int64


def _result(map: AffineMap, k: int, at: list[jax.Array], kind: Any) -> jax.Array:
    """Return result `k` of a map of index arrays, with extent 1 along unused dims."""
    used = sorted(map.results[k].dims)
    ones = (1,) * len(at)
    if not used:
        (value,) = AffineMap(0, (map.results[k],))()
        return jnp.full(ones, value, kind)
    if map.results[k] == AffineMap.identity(map.num_dims).results[used[0]]:
        return at[used[0]]
    fake = [array if d in used else jnp.zeros(ones, kind) for d, array in enumerate(at)]
    (found,) = AffineMap(map.num_dims, (map.results[k],))(*fake)
    return jnp.asarray(found, kind)
