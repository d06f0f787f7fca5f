"""Reductions over windows: each device reduces its block, with a halo from its neighbours.

The derivatives of a maximum over windows run with the windowed dims unsharded.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.factors import SHIFTED, along
from gridlayout.ops.decisions.flops import of_window, per_operand
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import mapped
from gridlayout.ops.primitives.reductions import NEUTRAL
from gridlayout.ops.primitives.windows import (
    Window,
    as_storage,
    blocks,
    for_results,
    halos_of,
    local_blocks,
)

Shape = tuple[int, ...]
# The reduction of each primitive, whose neutral element pads the array.
REDUCTIONS = {"reduce_window_sum": "reduce_sum", "reduce_window_max": "reduce_max"}
REDUCTIONS |= {"reduce_window_min": "reduce_min"}


def reduce_window(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for a sum, minimum or maximum over windows, or a reduction by the user's function.

    values: the arrays, all of one shape. If the function is the user's, they are followed by one
    initial number per array, which pads the array too.
    """
    aval, p = op.out, op.params
    is_custom = op.name not in REDUCTIONS
    arrays = values[: len(values) // 2] if is_custom else values
    starts = [b.replicated(x) for x in values[len(arrays) :]]
    if 0 in (*aval.shape, *arrays[0].shape):
        return None
    windows = _windows(op)
    first = next(x for x in arrays if x.layout is not None)
    layout = blocks(first.layout, first.shape, dict(enumerate(aval.shape)), first.dtype)
    operands = [b.as_sharded(x, layout.with_dtype(x.dtype)) for x in arrays]
    placed = b.placement(layout)
    reaches = {
        k: for_results(w, placed.per_device[k] * -(-aval.shape[k] // layout.grid[k]))
        for k, w in enumerate(windows)
        if layout.grid[k] > 1 and not w.is_trivial
    }
    sent = b.collectives()
    with sent.of(0):
        halos = halos_of(b, sent, layout, reaches, [x.dtype for x in arrays])
    sent.compute()
    kept = {
        "padding": tuple((0, 0) if k in reaches else pair for k, pair in enumerate(p["padding"])),
        "base_dilation": tuple(1 if k in reaches else n for k, n in enumerate(p["base_dilation"])),
    }
    neutral = [] if is_custom else [NEUTRAL[REDUCTIONS[op.name]](np.dtype(x.dtype)) for x in arrays]

    def pool(*parts: jax.Array) -> list[jax.Array]:
        given = parts[len(arrays) :]
        local = [local_blocks(part) for part in parts[: len(arrays)]]
        for k, halo in halos:
            outside = given if is_custom else neutral
            local = [halo.run(a, k, fill) for a, fill in zip(local, outside, strict=True)]
        return [as_storage(out, placed.per_device) for out in op.bind(*local, *given, **kept)]

    made = [
        Sharded(GridLayout(each.shape, each.dtype, layout.grid, collapse=[]), placed)
        for each in op.outs
    ]
    outs = b.run(pool, [*operands, *starts], made, sent)
    return [
        b.relayout(out, b.choose(each.shape, each.dtype, first))
        for out, each in zip(outs, op.outs, strict=True)
    ]


def _windows(op: Op) -> list[Window]:
    """Return the window along each dim."""
    p = op.params
    return [
        Window(size, stride, low, high, base, dilation)
        for size, stride, (low, high), base, dilation in zip(
            *(p["window_dimensions"], p["window_strides"], p["padding"]),
            *(p["base_dilation"], p["window_dilation"]),
            strict=True,
        )
    ]


# The parameters of a window along a dim that it does not move along.
_PER_DIM: dict[str, Any] = {
    "window_dimensions": 1,
    "window_strides": 1,
    "padding": (0, 0),
    "base_dilation": 1,
    "window_dilation": 1,
}


def _moved(params: Any, shape: Shape) -> dict[int, str]:
    given = [(params[name], trivial) for name, trivial in _PER_DIM.items() if name in params]
    return {
        d: SHIFTED
        for d in range(len(shape))
        if any(sizes[d] != trivial for sizes, trivial in given)
    }


_of_windows = along(_moved)
POOLING: dict[str, Record] = {
    **dict.fromkeys(
        (*REDUCTIONS, "reduce_window"),
        Record((reduce_window,), of_window, _of_windows, reads_more=True),
    ),
    "select_and_scatter_add": Record((mapped,), per_operand, _of_windows),
    "select_and_gather_add": Record((mapped,), of_window, _of_windows),
    "select_and_scatter": Record((), per_operand, _of_windows),
}
