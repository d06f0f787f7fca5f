"""Reductions over windows, and their derivatives, each on blocks with halos from neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from typing import Any

import jax
import numpy as np
from jax import lax

from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.decisions.blocks import as_blocks, block_shape, block_spec, equal_blocks
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.factors import NEAR, SHIFTED, THROUGH, Factors, FactorsOf, Numbering
from gridlayout.ops.decisions.flops import Flops, of_window, per_operand
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Borders, Decide, Record
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import mapped
from gridlayout.ops.primitives.overlapping import Reads, overlapping
from gridlayout.ops.primitives.reductions import NEUTRAL
from gridlayout.ops.primitives.windows import (
    Window,
    as_storage,
    blocks,
    for_results,
    halos_of,
    local_blocks,
)
from gridlayout.sharding.meshes.placement import Placement

Pairs = Sequence[tuple[int, int]]
# The most positions of a window that CPUs read position by position: at 64, XLA's scatter of a
# gradient is as fast.
_POSITIONS = 49
# The reduction of each primitive, whose neutral element pads the array, and its function.
REDUCTIONS = {"reduce_window_sum": "reduce_sum", "reduce_window_max": "reduce_max"}
REDUCTIONS |= {"reduce_window_min": "reduce_min"}
_COMBINE = {"reduce_sum": lax.add, "reduce_max": lax.max, "reduce_min": lax.min}


def reduce_window(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for a sum, minimum or maximum over windows, or a reduction by the user's function.

    values: the arrays, all of one shape. If the function is the user's, they are followed by one
    initial number per array, which pads the array too.
    """
    aval, is_custom = op.out, op.name not in REDUCTIONS
    arrays = values[: len(values) // 2] if is_custom else values
    starts = [b.replicated(x) for x in values[len(arrays) :]]
    if 0 in (*aval.shape, *arrays[0].shape):
        return None
    first = next(x for x in arrays if x.layout is not None)
    if op.requested is not None:
        return _pooled(b, op, op.requested.made.placement, arrays, starts)
    layout = blocks(first.layout, first.shape, dict(enumerate(aval.shape)), first.dtype)
    outs = _pooled(b, op, b.placement(layout), arrays, starts)
    return [
        b.relayout(out, b.choose(each.shape, each.dtype, first))
        for out, each in zip(outs, op.outs, strict=True)
    ]


def _pooled(
    b: Builder, op: Op, placed: Placement, arrays: Sequence[Value], starts: Sequence[Value]
) -> list[Value]:
    """Append a reduction over windows of arrays, in blocks by a placement."""
    windows = _windows(op.params)
    specs = [block_spec(x.shape, x.dtype, placed) for x in arrays]
    made = [block_spec(each.shape, each.dtype, placed) for each in op.outs]
    operands = [b.as_spec(x, spec) for x, spec in zip(arrays, specs, strict=True)]
    reaches = {
        k: for_results(w, block_shape(made[0])[k])
        for k, w in enumerate(windows)
        if placed.grid[k] > 1 and not w.is_trivial
    }
    sent = b.collectives()
    with sent.of(0):
        halos = halos_of(b, sent, specs[0], reaches, [x.dtype for x in arrays])
    sent.compute()
    own = list(windows)
    for k, halo in halos:
        low, high = halo.padding
        own[k] = replace(own[k], low=low, high=high, base=halo.dilation)
    kinds = [] if starts else [np.dtype(x.dtype) for x in arrays]
    neutral = [np.asarray(NEUTRAL[REDUCTIONS[op.name]](kind), kind) for kind in kinds]
    is_by_position = _is_by_position(b, windows)
    is_joined = any(not halo.border.is_local for _, halo in halos)

    def pool(*parts: jax.Array) -> list[jax.Array]:
        local = [local_blocks(part) for part in parts[: len(arrays)]]
        outside: Sequence[Any] = neutral or parts[len(arrays) :]
        for k, halo in halos:
            local = [halo.run(a, k, fill) for a, fill in zip(local, outside, strict=True)]
        pooled = _reduced(op, own, local, outside, is_by_position, is_joined)
        return [as_storage(out, placed.per_device) for out in pooled]

    return b.run(pool, [*operands, *starts], made, sent)


def _reduced(
    op: Op,
    windows: Sequence[Window],
    arrays: list[jax.Array],
    outside: Sequence[Any],
    is_by_position: bool,
    is_joined: bool,
) -> Sequence[jax.Array]:
    """Return the reductions over windows of arrays. outside: the numbers around each of them.

    is_joined: whether the arrays are joined from what devices have and receive.
    """
    is_custom = op.name not in REDUCTIONS
    is_apart = is_by_position and not is_custom and all(w.base == 1 for w in windows)
    if any(w.stride < w.size if is_apart else 1 < w.base < w.size for w in windows):
        arrays, windows = _padded_before([*zip(arrays, outside, strict=True)], windows)
    elif is_apart and is_joined:  # XLA would set what is outside again for each position
        arrays = lax.optimization_barrier(arrays)
    if is_apart:
        combine = _COMBINE[REDUCTIONS[op.name]]
        pairs = zip(arrays, outside, strict=True)
        return [reduce(combine, _at_positions(x, windows, fill)) for x, fill in pairs]
    padding = tuple((w.low, w.high) for w in windows)
    given, holes = outside if is_custom else (), tuple(w.base for w in windows)
    return op.bind(*arrays, *given, padding=padding, base_dilation=holes)


def _padded_before(
    arrays: Sequence[tuple[jax.Array, Any]], windows: Sequence[Window]
) -> tuple[list[jax.Array], list[Window]]:
    """Return arrays with padding and holes, and the windows over these; each with its fill.

    XLA on CPUs makes padding and holes again for each window that reads them. So those that several
    windows read are made before.
    """
    wide = [(w.low, w.high, w.base - 1) for w in windows]
    found = lax.optimization_barrier([lax.pad(x, fill, wide) for x, fill in arrays])
    return found, [replace(w, low=0, high=0, base=1) for w in windows]


def select_and_scatter_add(b: Builder, op: Op, source: Value, operand: Value) -> Any:
    """Rule for the derivative of a maximum or minimum over windows."""
    if op.requested is None:
        return cheapest_way(b, op, [_scattered, mapped], source, operand)
    out = op.requested.out
    pairs = zip((source, operand), op.requested.ins, strict=True)
    values = [x if spec is None else b.as_spec(x, spec) for x, spec in pairs]
    found = _scattered(b, op, *values) or mapped(b, op, *values)
    return None if found is None else [b.as_spec(found[0], out)]


def _scattered(b: Builder, op: Op, source: Value, operand: Value) -> list[Value] | None:
    """Rule by blocks of the operand, which begin where windows do.

    A device sees all windows that touch its block.
    """
    found, p = as_blocks(operand.spec, b.device), op.params
    spec = found and equal_blocks(found)
    if spec is None or spec.placement.slots != spec.placement.grid or 0 in source.shape:
        return None
    block, places = list(block_shape(spec)), spec.placement
    of_operand: dict[int, Reads] = {}
    of_source: dict[int, Reads] = {}
    for k, (size, stride, (low, _)) in enumerate(
        zip(p["window_dimensions"], p["window_strides"], p["padding"], strict=True)
    ):
        if places.grid[k] == 1 or (size, stride) == (1, 1):
            continue
        block[k] = -(-block[k] // stride) * stride
        # The first and the last window that touch the block, counted from its first own one.
        first = min(-((size - 1 - low) // stride), low // stride)
        last = max((block[k] - 1 + low) // stride, -((size - low - block[k]) // stride))
        at, count = first * stride - low, (last - first) * stride + size
        of_operand[k] = Reads(at, block[k], count)
        of_source[k] = Reads(first, block[k] // stride, last - first + 1)
    least = NEUTRAL["reduce_max" if p["select_prim"] is lax.ge_p else "reduce_min"]
    there = b.device.placed(places.grid, places.axes)
    shown = [
        overlapping(b, source, there, of_source, 0),
        overlapping(b, operand, there, of_operand, least(np.dtype(operand.dtype))),
    ]
    shapes = [block_shape(x.spec) for x in shown if isinstance(x.spec, Sharded)]
    padding = tuple((0, 0) if k in of_operand else pair for k, pair in enumerate(p["padding"]))
    own = spec.layout.with_oob(None)
    assert isinstance(own, GridLayout)
    made = Sharded(own.replace(shard_shape=block), places)
    scatter = _selected if _is_by_position(b, _windows(p)) else _scattered_by_xla

    is_moved = tuple(block) != block_shape(spec)

    def kernel(x: jax.Array, y: jax.Array) -> list[jax.Array]:
        out = scatter(op, padding, x.reshape(shapes[0]), y.reshape(shapes[1]))
        # XLA would store each position's part for all that reads their sum: what is sent and kept.
        out = lax.optimization_barrier(out) if is_moved else out
        for k, reads in of_operand.items():
            out = lax.slice_in_dim(out, -reads.first, block[k] - reads.first, axis=k)
        return [out.reshape(made.local_shape)]

    (out,) = b.run(kernel, shown, [made])
    return [b.relayout(out, b.choose(out.shape, out.dtype, operand))]


def _scattered_by_xla(op: Op, padding: Pairs, source: jax.Array, operand: jax.Array) -> jax.Array:
    found: jax.Array = op.bind(source, operand, padding=padding)[0]
    return found


def _selected(op: Op, padding: Pairs, source: jax.Array, operand: jax.Array) -> jax.Array:
    """Return what `op` does, position by position of the windows.

    XLA on CPUs reduces five arrays over windows, and scatters. Here each position of the windows is
    compared with the extremes of those before it, of all windows at once; then the source is added
    where it is selected.
    """
    # XLA would compute what makes these for each position.
    source, operand = lax.optimization_barrier((source, operand))
    p, reduction = op.params, "reduce_max" if op.params["select_prim"] is lax.ge_p else "reduce_min"
    size, stride = p["window_dimensions"], p["window_strides"]
    spans = [(n - 1) * step + 1 for n, step in zip(source.shape, stride, strict=True)]
    shape = operand.shape
    rows = zip(spans, size, stride, shape, padding, strict=True)
    windows = [
        Window(n, step, low, span + n - 1 - extent - low)
        for span, n, step, extent, (low, _) in rows
    ]
    dtype = operand.dtype
    neutral, zero = np.asarray(NEUTRAL[reduction](dtype), dtype), np.zeros((), dtype)
    if any(w.stride < w.size for w in windows):
        (operand,), windows = _padded_before([(operand, neutral)], windows)
    best, *others = _at_positions(operand, windows, neutral)
    chosen = lax.full(source.shape, 0, np.int32)
    for k, new in enumerate(others, 1):
        stays = p["select_prim"].bind(best, new)
        best = lax.select(stays, best, new)
        chosen = lax.select(stays, chosen, lax.full(source.shape, k, np.int32))
    chosen = lax.optimization_barrier(chosen)
    found = lax.full(shape, 0, dtype)
    for k, start in enumerate(np.ndindex(*size)):
        part = lax.select(chosen == k, source, lax.full(source.shape, 0, dtype))
        first_at = [a - low for a, (low, _) in zip(start, padding, strict=True)]
        dims = zip(first_at, spans, shape, stride, strict=True)
        put = [(a, n - a - span, step - 1) for a, span, n, step in dims]
        found += lax.pad(part, zero, put)
    return found


def _is_by_position(b: Builder, windows: Sequence[Window]) -> bool:
    """Whether windows are read position by position, of all windows at once.

    XLA on CPUs reads windows one by one, and fuses nothing that it reads or writes with them.
    """
    return b.device.platform == "cpu" and prod(w.size for w in windows) <= _POSITIONS


def _at_positions(x: jax.Array, windows: Sequence[Window], fill: Any) -> Iterator[jax.Array]:
    """Yield what all windows read of an array at each of their positions, `fill` outside of it."""
    for position in np.ndindex(*(w.size for w in windows)):
        starts, limits, outside = [], [], []
        for k, n, w in zip(position, x.shape, windows, strict=True):
            count, at = w.positions(n), k * w.dilation - w.low
            first = min(max(-(at // w.stride), 0), count)
            last = min(max((n - 1 - at) // w.stride + 1, first), count)
            starts.append(at + first * w.stride if first < last else 0)
            limits.append(at + (last - 1) * w.stride + 1 if first < last else 0)
            outside.append((first, count - last, 0))
        part = lax.slice(x, starts, limits, [w.stride for w in windows])
        yield lax.pad(part, fill, outside) if any(map(any, outside)) else part


def _windows(p: Mapping[str, Any]) -> list[Window]:
    """Return the window along each dim."""
    ones = (1,) * len(p["window_dimensions"])
    return [
        Window(size, stride, low, high, base, dilation)
        for size, stride, (low, high), base, dilation in zip(
            *(p["window_dimensions"], p["window_strides"], p["padding"]),
            *(p.get("base_dilation", ones), p.get("window_dilation", ones)),
            strict=True,
        )
    ]


def _near(params: Any, wide: Shape, few: Shape) -> list[tuple[int, int] | None]:
    """Return how far windows over an array of shape `wide` read from their results, or None."""
    rows = zip(_windows(params), wide, few, strict=True)
    return [window.near(n, results) for window, n, results in rows]


def _of_reduction(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Any:
    """Return the `Record.borders` of a reduction over windows."""
    return [_near(params, ins[0], outs[0])] * len(outs)


def _of_derivative(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Any:
    """Return the `Record.borders` of its derivative: of the source, and of the operand."""
    near = _near(params, ins[1], ins[0])
    return [[each and ((1, 1) if any(each) else (0, 0)) for each in near], near]


def _factors(borders: Borders | None = None) -> FactorsOf:
    """Return the factors of windows: those of which blocks read near themselves are `near`."""

    def of(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
        made, shapes = Numbering(ins, outs), [*ins, *outs]
        near = borders(params, ins, outs)[-1] if borders else [None] * len(outs[0])
        for d, window in enumerate(_windows(params)):
            places = [(k, d) for k, shape in enumerate(shapes) if shape]
            kind = SHIFTED if near[d] is None else NEAR
            made.add(THROUGH if window.is_trivial else kind, *places)
        return made.factors()

    return of


def _record(rule: Decide, flops: Flops, borders: Borders) -> Record:
    return Record((rule,), flops, _factors(borders), borders=borders, of_blocks=True)


POOLING: dict[str, Record] = {
    **dict.fromkeys(
        (*REDUCTIONS, "reduce_window"), _record(reduce_window, of_window, _of_reduction)
    ),
    "select_and_scatter_add": _record(select_and_scatter_add, per_operand, _of_derivative),
    "select_and_gather_add": Record((mapped,), of_window, _factors()),
    "select_and_scatter": Record((), per_operand, _factors()),
}
