"""Reductions over windows: each device reduces its block, with a halo from its neighbours.

The gradient of a maximum goes back to where it came from; there the windowed dims are
unsharded.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.flops import Rule, of_window, per_operand
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.rules.along import run
from gridlayout.ops.rules.reductions import NEUTRAL
from gridlayout.ops.rules.windows import (
    Window,
    as_storage,
    blocks,
    halos_of,
    local_blocks,
    of_results,
)

# What a window finds outside of the array.
OUTSIDE = {"reduce_window_sum": "reduce_sum", "reduce_window_max": "reduce_max"}
OUTSIDE |= {"reduce_window_min": "reduce_min"}


def reduce_window(b: Builder, op: Op, *values: Value) -> Any:
    """What each place of a window reduces to: a sum, an extreme, or by a function of one's own.

    values: the arrays, all of one shape, then where the function is one's own as many numbers that
    it starts with; these are also what is outside of the arrays.
    """
    aval, p = op.out, op.params
    own = op.name not in OUTSIDE
    arrays = values[: len(values) // 2] if own else values
    starts = [b.replicated(x) for x in values[len(arrays) :]]
    if 0 in (*aval.shape, *arrays[0].shape):
        return None
    windows = _windows(op)
    first = next(x for x in arrays if x.layout is not None)
    layout = blocks(first.layout, first.shape, dict(enumerate(aval.shape)), first.dtype)
    entered = [b.on_cores(x, layout.with_dtype(x.dtype)) for x in arrays]
    placed = b.placement(layout)
    reaches = {
        k: of_results(w, placed.per_device[k] * -(-aval.shape[k] // layout.grid[k]))
        for k, w in enumerate(windows)
        if layout.grid[k] > 1 and not w.is_trivial
    }
    sent = b.collectives()
    halos = halos_of(b, sent, layout, reaches, [x.dtype.itemsize for x in arrays])
    kept = {
        "padding": tuple((0, 0) if k in reaches else pair for k, pair in enumerate(p["padding"])),
        "base_dilation": tuple(1 if k in reaches else n for k, n in enumerate(p["base_dilation"])),
    }
    neutral = [] if own else [NEUTRAL[OUTSIDE[op.name]](np.dtype(x.dtype)) for x in arrays]

    def pool(*parts: jax.Array) -> list[jax.Array]:
        given = parts[len(arrays) :]
        local = [local_blocks(part) for part in parts[: len(arrays)]]
        for k, halo in halos:
            outside = given if own else neutral
            local = [halo.run(a, k, fill) for a, fill in zip(local, outside, strict=True)]
        return [as_storage(out, placed.per_device) for out in op.bind(*local, *given, **kept)]

    made = [
        Sharded(GridLayout(each.shape, each.dtype, layout.grid, collapse=[]), placed)
        for each in op.outs
    ]
    outs = b.run(pool, [*entered, *starts], made, sent)
    return [
        b.relayout(out, b.choose(each.shape, each.dtype, first))
        for out, each in zip(outs, op.outs, strict=True)
    ]


def _windows(op: Op) -> list[Window]:
    """The window along each dim."""
    p = op.params
    return [
        Window(size, stride, low, high, base, dilation)
        for size, stride, (low, high), base, dilation in zip(
            *(p["window_dimensions"], p["window_strides"], p["padding"]),
            *(p["base_dilation"], p["window_dilation"]),
            strict=True,
        )
    ]


def select_and_scatter_add(b: Builder, op: Op, source: Value, operand: Value) -> Any:
    """The gradient of a maximum: each window's cotangent goes to the element it chose."""
    return _whole(b, op, source, operand)


def select_and_gather_add(b: Builder, op: Op, tangent: Value, operand: Value) -> Any:
    """The tangent of a maximum: each window's is that of the element it chose."""
    return _whole(b, op, tangent, operand)


def _whole(b: Builder, op: Op, *values: Value) -> Any:
    """The primitive with the dims whole that windows move along."""
    given = {name: op.params[name] for name in _PER_DIM if name in op.params}
    windows = list(zip(*given.values(), strict=True))
    trivial = tuple(_PER_DIM[name] for name in given)
    axes = tuple(k for k, window in enumerate(windows) if window != trivial)
    short = {name: tuple(sizes[k] for k in axes) for name, sizes in given.items()}
    operands = [(x, axes) for x in values]
    return run(b, op, operands, op.bound(**short), on_blocks=op.bound())


# What a window's parameters say along a dim that it does not move along.
_PER_DIM: dict[str, Any] = {
    "window_dimensions": 1,
    "window_strides": 1,
    "padding": (0, 0),
    "base_dilation": 1,
    "window_dilation": 1,
}

POOLING: dict[str, Rule] = {
    **{name: Rule(reduce_window, of_window) for name in OUTSIDE},
    "reduce_window": Rule(reduce_window, of_window),
    "select_and_scatter_add": Rule(select_and_scatter_add, per_operand),
    "select_and_gather_add": Rule(select_and_gather_add, of_window),
}
