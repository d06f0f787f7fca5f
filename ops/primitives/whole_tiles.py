"""Operations that keep tiles whole: they run on parts in tiles, which need not be untiled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Shape
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.decisions.blocks import untiled
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.factors import THROUGH
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.tiled_dims import TiledDims
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import resized
from gridlayout.ops.primitives.unsharded import stacked_spec


def on_tiles(b: Builder, op: Op, *values: Value) -> list[Value] | None:
    """Rule for an op that moves whole tiles of undivided dims; None for others."""
    spec, of_tiles = values[0].spec, b.record.of_tiles
    own = _plain(spec)
    if own is None or of_tiles is None or not isinstance(spec, Sharded):
        return None
    arrays = [x for x in values if x.ndim]
    at = TiledDims.of(own, spec.placement.per_device)
    params = of_tiles(op.params, [x.shape for x in arrays], at)
    if params is None or any(own.grid[d] > 1 for d in _changed(b, op, values)):
        return None
    outs = [_result(spec, own, op, aval) for aval in op.outs]
    if any(b.in_tiles(untiled(out), own).layout != out.layout for out in outs):
        return None  # results of other ways have other tiles
    there = [Sharded(resized(own, x.shape).with_dtype(x.dtype), spec.placement) for x in arrays]
    given = [b.as_spec(*pair) for pair in zip(arrays, there, strict=True)]
    numbers = [b.replicated(x) for x in values if not x.ndim]

    def kernel(*parts: Any) -> list[Any]:
        made = op.bind(*parts, **params)
        return [x.reshape(out.local_shape) for x, out in zip(made, outs, strict=True)]

    return b.fused(kernel, [*given, *numbers], outs)


def _plain(spec: Any) -> GridLayout | None:
    """Return a layout in tiles with each dim in order in a grid dim of its own, or None."""
    if not isinstance(spec, Sharded) or 0 in spec.shape:
        return None
    own = as_grid(spec.layout)
    if own is None or not own.tile or own.row_alignment or any(own.stated_shard):
        return None
    return own if own.linear == AffineMap.identity(own.ndim) else None


def _changed(b: Builder, op: Op, values: Any) -> list[int]:
    """Return the dims of the first operand that results do not have as they are."""
    factors = b.record.factors(op.params, [x.shape for x in values], [x.shape for x in op.outs])
    return [d for d, f in enumerate(factors.ins[0]) if f is None or factors.kind(f) != THROUGH]


def _result(spec: Sharded, own: GridLayout, op: Op, aval: Aval) -> Sharded:
    """Return the spec of a result, on the devices of the operand."""
    if aval.ndim == own.ndim:
        return replace(spec, layout=resized(own, aval.shape).with_dtype(aval.dtype, None))
    axis: Shape = (op.params["axis"],)
    return stacked_spec(replace(spec, layout=own), axis, (aval.shape[axis[0]],), aval.dtype)
