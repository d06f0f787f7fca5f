"""`Mover`: records the moves of values to other layouts, or to every device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from gridlayout.dtypes import has_zero
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.place import Place
from gridlayout.ops.decisions.specs import Deferred, Indexed, Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.decisions.writer import Writer
from gridlayout.ops.moves.padding import Padding, has_padding
from gridlayout.ops.moves.relayout import find_move, lay_out, nothing_moves, replicate
from gridlayout.sharding.meshes.placement import Placement


class Mover(Writer):
    """Records relayouts and replications of values, and the setting of their padding."""

    def relayout(self, x: Value, layout: Layout, placement: Placement | None = None) -> Value:
        """Return a sharded value in a layout; its padding may then have any value."""
        spec, after = x.spec, placement or self.placement(layout)
        assert isinstance(spec, Sharded)
        if spec.placement == after and spec.layout.same_physical(layout):
            return x.with_spec(Sharded(layout.with_dtype(x.dtype, spec.layout.oob), after))
        layout = layout.with_dtype(x.dtype, None)
        if spec.placement == after and nothing_moves(spec.layout, layout):
            return x.with_spec(Sharded(layout, after))
        places = (spec.placement, after)
        move = find_move(spec.layout, layout, self.device, *places)
        return self.run_move(x, move, Sharded(layout, after))

    def replicated(self, value: Value) -> Value:
        """Return the value as a logical array that every device holds."""
        spec = value.spec
        if isinstance(spec, Deferred):
            if isinstance(spec.source, Indexed):
                source = self.compute_in(value, Place.replicated(spec.source.shape))
            else:
                source = self.replicated(value.with_spec(spec.source))
            if spec.dims == tuple(range(spec.ndim)):
                return source
            out = Replicated(spec.shape, spec.dtype)
            shape, dims = spec.shape, spec.dims
            return self.fused(
                lambda x: [lax.broadcast_in_dim(jnp.asarray(x, out.dtype), shape, dims)],
                [source],
                [out],
            )[0]
        if isinstance(spec, Sharded):
            move = replicate(spec.layout, self.device, spec.placement)
            return self.run_move(value, move, Replicated(spec.shape, spec.dtype))
        return value

    def laid_out(self, value: Value, layout: Layout, placement: Placement | None = None) -> Value:
        """Return a replicated value in a layout: each device keeps its own part."""
        layout = layout.with_dtype(value.dtype, 0 if has_zero(value.dtype) else None)
        after = placement or self.placement(layout)
        return self.run_move(value, lay_out(layout, self.device, after), Sharded(layout, after))

    def with_padding(self, x: Value, oob: Any, along: Sequence[int] | None = None) -> Value:
        """Return a sharded value with its padding set to `oob`, unless it is known to be `oob`.

        along: set only the padding along these physical dims.
        """
        spec = x.spec
        assert isinstance(spec, Sharded)
        layout, placement = spec.layout, spec.placement
        known = layout.with_oob(oob)
        if repr(layout.oob) == repr(known.oob):
            return x
        new = Sharded(known if along is None else layout.with_oob(None), placement)
        if not has_padding(layout, placement, along):
            return x.with_spec(new) if along is None else x
        dims = None if along is None else tuple(along)
        padding = Padding(layout.with_oob(None), placement, known.oob, dims)
        (out,) = self.fused(
            lambda part: [padding.fill(part)],
            [x],
            [new],
            masks=1,
            sets_padding=padding,
            does=padding,
        )
        return out
