"""The operands of a deferred value that is computed in a place, relaid out to that place."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from gridlayout.affine.map import AffineMap, dim
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.specs import Deferred, Indexed, Replicated, is_of_keys
from gridlayout.ops.decisions.value import Value


def number_of(value: Value) -> Value | None:
    """Return the number that a value is, or that it broadcasts; None for any other value."""
    spec = value.spec
    if isinstance(spec, Deferred) and spec.source.ndim == 0:
        assert isinstance(spec.source, Replicated)
        return value.with_spec(spec.source)
    return None if value.ndim else value


def at_place(b: Builder, value: Value, place: Place) -> Value:
    """Return an operand relaid out for a consumer that is computed in a place.

    A number, or a broadcast of one, is returned as the number.
    """
    if (number := number_of(value)) is not None:
        return number
    spec = value.spec
    if place.is_itself and place.shape == value.shape and not is_of_keys(spec):
        if place.layout is None:
            return b.replicated(value)
        return b.as_sharded(value, place.layout, placement=place.placement)
    if isinstance(spec, Deferred):
        place = place.reindexed(AffineMap(spec.ndim, tuple(map(dim, spec.dims))))
        if isinstance(spec.source, Indexed):
            return b.compute_in(value, place)
        value = value.with_spec(spec.source)
    return lookup(b, value, place)


def lookup(b: Builder, value: Value, place: Place) -> Value:
    """Return the elements of a replicated array at the indices of a place."""

    def run(x: Any) -> list[Any]:
        found = jnp.asarray(x).at[tuple(place.index())].get(mode="clip")
        return [jnp.broadcast_to(found, place.local_shape)]

    return b.run(run, [value], [place.spec(value.dtype)], is_fused=True)[0]
