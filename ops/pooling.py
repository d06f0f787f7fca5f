"""Reductions over windows: each device reduces its block, with a halo from its neighbours.

The gradient of a maximum goes back to where it came from; there, and for a function of one's own,
the windowed dims lie whole on each core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from gridlayout.grid_layout import GridLayout
from gridlayout.ops import values as v
from gridlayout.ops.along import bound, run
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.reductions import NEUTRAL
from gridlayout.ops.report import RULE
from gridlayout.ops.values import Context
from gridlayout.ops.windows import (
    Window,
    as_storage,
    blocks,
    in_blocks,
    local_blocks,
    of_results,
    with_halo,
)
from gridlayout.ops.wires import Wires

# What a window finds outside of the array.
OUTSIDE = {"reduce_window_sum": "reduce_sum", "reduce_window_max": "reduce_max"}
OUTSIDE |= {"reduce_window_min": "reduce_min"}


def reduce_window(ctx: Context, eqn: Any, value: Any) -> Any:
    """The sum, maximum or minimum of each place of a window."""
    aval = eqn.outvars[0].aval
    if 0 in (*aval.shape, *value.shape):
        return None
    p = eqn.params
    windows = [
        Window(size, stride, low, high, base, dilation)
        for size, stride, (low, high), base, dilation in zip(
            *(p["window_dimensions"], p["window_strides"], p["padding"]),
            *(p["base_dilation"], p["window_dilation"]),
            strict=True,
        )
    ]
    like = v.layout_of(value)
    layout = blocks(like, value.shape, dict(enumerate(aval.shape)), value.dtype)
    x = in_blocks(ctx, value, layout)
    placed, wires = ctx.device.placement(layout.grid), Wires(ctx)
    fill = NEUTRAL[OUTSIDE[eqn.primitive.name]](np.dtype(value.dtype))
    halo = [k for k, w in enumerate(windows) if layout.grid[k] > 1 and not w.is_trivial]
    kept = {
        "padding": tuple((0, 0) if k in halo else pair for k, pair in enumerate(p["padding"])),
        "base_dilation": tuple(1 if k in halo else n for k, n in enumerate(p["base_dilation"])),
    }

    def pool(a: jax.Array) -> jax.Array:
        a = local_blocks(a)
        for k in halo:
            block = placed.per_device[k] * -(-aval.shape[k] // layout.grid[k])
            reach = of_results(windows[k], block)
            a = with_halo(wires, a, k, placed.axes[k], value.shape[k], reach, fill)
        return as_storage(eqn.primitive.bind(a, **{**p, **kept}), placed.per_device)

    spec = placed.spec
    storage = jax.shard_map(
        pool, mesh=ctx.device.fine, in_specs=(spec,), out_specs=spec, check_vma=False
    )(x.storage)
    made = GridLayout(aval.shape, aval.dtype, layout.grid, collapse=[])
    out = GridArray(storage, made, ctx.device)
    return RULE, ctx.relayout(out, ctx.choose(aval.shape, aval.dtype, value))


def select_and_scatter_add(ctx: Context, eqn: Any, source: Any, operand: Any) -> Any:
    """The gradient of a maximum: each window's cotangent goes to the element it chose."""
    return _whole(ctx, eqn, source, operand)


def select_and_gather_add(ctx: Context, eqn: Any, tangent: Any, operand: Any) -> Any:
    """The tangent of a maximum: each window's is that of the element it chose."""
    return _whole(ctx, eqn, tangent, operand)


def own_function(ctx: Context, eqn: Any, *values: Any) -> Any:
    """`lax.reduce_window` by a function of one's own, of one array or of several together."""
    count = len(values) // 2
    return _whole(ctx, eqn, *values[:count], starts=[v.plain(ctx, x) for x in values[count:]])


def _whole(ctx: Context, eqn: Any, *values: Any, starts: Sequence[Any] = ()) -> Any:
    """The primitive with the dims whole that windows move along."""
    given = {name: eqn.params[name] for name in _PER_DIM if name in eqn.params}
    windows = list(zip(*given.values(), strict=True))
    trivial = tuple(_PER_DIM[name] for name in given)
    axes = tuple(k for k, window in enumerate(windows) if window != trivial)
    short = {name: tuple(sizes[k] for k in axes) for name, sizes in given.items()}
    return run(ctx, eqn, [(x, axes) for x in values], bound(eqn, **short), *starts)


# What a window's parameters say along a dim that it does not move along.
_PER_DIM: dict[str, Any] = {
    "window_dimensions": 1,
    "window_strides": 1,
    "padding": (0, 0),
    "base_dilation": 1,
    "window_dilation": 1,
}

POOLING: dict[str, Any] = {
    **dict.fromkeys(OUTSIDE, reduce_window),
    "reduce_window": own_function,
    "select_and_scatter_add": select_and_scatter_add,
    "select_and_gather_add": select_and_gather_add,
}
