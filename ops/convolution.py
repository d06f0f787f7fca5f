"""`conv_general_dilated`: each device convolves its block of the images, and fetches a halo.

The left operand keeps its cores: batch and spatial dims are divided, and so is what the result is
divided along. The kernel is whole on every device. Where the window is larger than the result, as
in the gradient of a kernel, the window is divided instead, and the devices' results are summed; so
is the contracted feature dim, where the result is smaller than the images.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import lax

from gridlayout.grid_layout import GridLayout
from gridlayout.ops import values as v
from gridlayout.ops.algorithms import sum_dtype
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.ports import entering
from gridlayout.ops.report import RULE
from gridlayout.ops.seen import Seen
from gridlayout.ops.values import Context
from gridlayout.ops.windows import (
    Window,
    as_storage,
    blocks,
    in_blocks,
    local_blocks,
    of_results,
    of_window,
    with_halo,
    without_tail,
)
from gridlayout.ops.wires import Axes, Wires
from gridlayout.sharding.device_grid import Placement

Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Dim:
    """A spatial dim: where operands and result have it, its window, and which is divided."""

    left: int
    right: int
    out: int
    window: Window
    by_window: bool


def conv_general_dilated(ctx: Context, eqn: Any, lhs: Any, rhs: Any) -> Any:
    """A convolution of any dimension numbers, strides, padding, dilations and groups."""
    aval, numbers = eqn.outvars[0].aval, eqn.params["dimension_numbers"]
    if 0 in (*aval.shape, *lhs.shape, *rhs.shape):
        return None
    dims = _spatial(eqn, rhs.shape, aval.shape)
    batch, feature = numbers.lhs_spec[:2]
    alone = eqn.params["feature_group_count"] == eqn.params["batch_group_count"] == 1
    extents = {batch: lhs.shape[batch]} if eqn.params["batch_group_count"] == 1 else {}
    extents |= {d.left: d.window.size if d.by_window else aval.shape[d.out] for d in dims}
    if alone and np.prod(aval.shape) < np.prod(lhs.shape):
        extents |= {feature: lhs.shape[feature]}
    layout = blocks(v.layout_of(lhs) or ctx.template, lhs.shape, extents, lhs.dtype)
    out = _run(ctx, eqn, in_blocks(ctx, lhs, layout), v.on_cores(ctx, rhs), dims)
    return RULE, ctx.relayout(out, ctx.choose(aval.shape, aval.dtype, lhs))


def _spatial(eqn: Any, kernel: Shape, out: Shape) -> list[_Dim]:
    p, numbers = eqn.params, eqn.params["dimension_numbers"]
    found = []
    for k, (left, right, at) in enumerate(
        zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], numbers.out_spec[2:], strict=True)
    ):
        low, high = p["padding"][k]
        base, dilation = p["lhs_dilation"][k], p["rhs_dilation"][k]
        window = Window(kernel[right], p["window_strides"][k], low, high, base, dilation)
        found.append(_Dim(left, right, at, window, window.size > out[at]))
    return found


def _run(ctx: Context, eqn: Any, x: GridArray, y: GridArray, dims: list[_Dim]) -> GridArray:
    aval, numbers = eqn.outvars[0].aval, eqn.params["dimension_numbers"]
    (batch, feature), (_, inputs) = numbers.lhs_spec[:2], numbers.rhs_spec[:2]
    assert isinstance(x.layout, GridLayout)
    grid, placed = x.layout.grid, ctx.device.placement(x.layout.grid)
    # The kernel's dims that are divided lie as those of the images do.
    along = {inputs: feature} | {d.right: d.left for d in dims if d.by_window}
    kernel, at = _alike(y, grid, placed, along)
    # The result's dims likewise; devices along the others add up their parts.
    made = {numbers.out_spec[0]: batch} | {d.out: d.left for d in dims if not d.by_window}
    result = GridLayout(
        aval.shape,
        aval.dtype,
        tuple(grid[made[k]] if k in made else 1 for k in range(aval.ndim)),
        collapse=[],
    )
    axes = tuple(placed.axes[made[k]] if k in made else () for k in range(aval.ndim))
    slots = tuple(placed.slots[made[k]] if k in made else 1 for k in range(aval.ndim))
    summed = tuple(a for k in along.values() for a in placed.axes[k])
    kernel_array, port = entering(ctx, y, kernel, at)
    wires, wide = Wires(ctx), sum_dtype(aval.dtype) if summed else aval.dtype
    own = ctx.device.placement(result.grid)
    stays = (own.axes, own.slots) == (axes, slots)

    def convolve(a: jax.Array, b: jax.Array) -> jax.Array:
        a, b = local_blocks(a), local_blocks(port.step(Seen.of(b)).now())
        for dim, k in along.items():
            if grid[k] > 1:
                b = without_tail(b, dim, placed.axes[k], y.shape[dim], 0)
        if grid[feature] > 1:
            a = without_tail(a, feature, placed.axes[feature], x.shape[feature], 0)
        changed = _haloed(wires, x, a, dims, placed, aval.shape, b.shape)
        out = _local(eqn, *changed[1:], changed[0], b, wide)
        out = wires.sum(out, summed) if wires.count(summed) > 1 else out
        out = out.astype(aval.dtype)
        if stays:
            return as_storage(out, own.per_device)
        for k in range(out.ndim):
            out = lax.slice_in_dim(wires.gather(out, axes[k], k), 0, aval.shape[k], axis=k)
        return as_storage(out, (1,) * out.ndim)

    storage = jax.shard_map(
        convolve,
        mesh=ctx.device.fine,
        in_specs=(placed.spec, port.spec),
        out_specs=own.spec if stays else Placement((), ((),) * aval.ndim, (), ()).spec,
        check_vma=False,
    )(x.storage, kernel_array)
    layout = result if stays else result.replace(grid=(1,) * aval.ndim)
    return GridArray(storage, layout, ctx.device)


def _alike(
    y: GridArray, grid: Shape, placed: Placement, along: dict[int, int]
) -> tuple[GridLayout, Placement]:
    """The kernel's layout and place: its dims `along` lie as the given dims of the images."""
    parts: list[Any] = [
        (grid[along[k]], placed.axes[along[k]], placed.slots[along[k]], placed.per_device[along[k]])
        if k in along
        else (1, (), 1, 1)
        for k in range(y.ndim)
    ]
    cores, axes, slots, per_device = (tuple(part[i] for part in parts) for i in range(4))
    layout = GridLayout(y.shape, y.dtype, cores, collapse=[])
    return layout, Placement(cores, axes, slots, per_device)


def _haloed(
    wires: Wires,
    x: GridArray,
    a: jax.Array,
    dims: list[_Dim],
    placed: Placement,
    out: Shape,
    kernel: Shape,
) -> tuple[jax.Array, list[tuple[int, int]], list[int]]:
    """A device's images with their halo; the padding and base dilation that are left to do."""
    padding, dilation = [], []
    for d in dims:
        axes: Axes = placed.axes[d.left]
        if placed.slots[d.left] == placed.per_device[d.left] == 1:
            padding.append((d.window.low, d.window.high))
            dilation.append(d.window.base)
            continue
        if d.by_window:
            reach = of_window(d.window, kernel[d.right], out[d.out])
        else:
            cores = placed.grid[d.left]
            reach = of_results(d.window, placed.per_device[d.left] * -(-out[d.out] // cores))
        a = with_halo(wires, a, d.left, axes, x.shape[d.left], reach, 0)
        padding.append((0, 0))
        dilation.append(1)
    return a, padding, dilation


def _local(
    eqn: Any, padding: list[tuple[int, int]], dilation: list[int], a: Any, b: Any, dtype: Any
) -> jax.Array:
    p = eqn.params
    return lax.conv_general_dilated(
        a,
        b,
        p["window_strides"],
        padding,
        lhs_dilation=dilation,
        rhs_dilation=p["rhs_dilation"],
        dimension_numbers=p["dimension_numbers"],
        feature_group_count=p["feature_group_count"],
        batch_group_count=p["batch_group_count"],
        precision=p["precision"],
        preferred_element_type=dtype,
    )
