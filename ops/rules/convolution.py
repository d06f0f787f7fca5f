"""`conv_general_dilated`: each device convolves its block of the images, and fetches a halo.

The left operand keeps its cores: batch and spatial dims are divided, and so is what the result is
divided along. The kernel is whole on every device. Where the window is larger than the result, as
in the gradient of a kernel, the window is divided instead, and the devices' results are summed; so
is the contracted feature dim, where the result is smaller than the images.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import jax
from jax import lax

from gridlayout.document.grid_layout import GridLayout
from gridlayout.dtypes import sum_dtype
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.products.divided import divided
from gridlayout.ops.rules.windows import (
    Reach,
    Window,
    as_storage,
    blocks,
    halos_of,
    local_blocks,
    of_results,
    of_window,
    without_tail,
)
from gridlayout.sharding.placement import Placement

Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Dim:
    """A spatial dim: where operands and result have it, its window, and which is divided."""

    left: int
    right: int
    out: int
    window: Window
    by_window: bool


def conv_general_dilated(b: Builder, op: Op, lhs: Value, rhs: Value) -> Any:
    """A convolution of any dimension numbers, strides, padding, dilations and groups."""
    aval, numbers = op.out, op.params["dimension_numbers"]
    if 0 in (*aval.shape, *lhs.shape, *rhs.shape):
        return None
    if op.requested is not None:
        return divided(b, op, op.requested, lhs, rhs)
    dims = _spatial(op, rhs.shape, aval.shape)
    batch, feature = numbers.lhs_spec[:2]
    alone = op.params["feature_group_count"] == op.params["batch_group_count"] == 1
    extents = {batch: lhs.shape[batch]} if op.params["batch_group_count"] == 1 else {}
    extents |= {d.left: d.window.size if d.by_window else aval.shape[d.out] for d in dims}
    if alone and prod(aval.shape) < prod(lhs.shape):
        extents |= {feature: lhs.shape[feature]}
    layout = blocks(lhs.layout or b.env.template, lhs.shape, extents, lhs.dtype)
    out = _convolved(b, op, layout, b.on_cores(lhs, layout), rhs, dims)
    return b.relayout(out, b.wanted(op, lhs))


def _spatial(op: Op, kernel: Shape, out: Shape) -> list[_Dim]:
    p, numbers = op.params, op.params["dimension_numbers"]
    found = []
    for k, (left, right, at) in enumerate(
        zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], numbers.out_spec[2:], strict=True)
    ):
        low, high = p["padding"][k]
        base, dilation = p["lhs_dilation"][k], p["rhs_dilation"][k]
        window = Window(kernel[right], p["window_strides"][k], low, high, base, dilation)
        found.append(_Dim(left, right, at, window, window.size > out[at]))
    return found


def _convolved(
    b: Builder, op: Op, layout: GridLayout, x: Value, y: Value, dims: list[_Dim]
) -> Value:
    """The convolution of images that lie in blocks, as `layout` has them."""
    numbers, dtype = op.params["dimension_numbers"], op.out.dtype
    (batch, feature), (_, inputs) = numbers.lhs_spec[:2], numbers.rhs_spec[:2]
    placed = b.placement(layout)
    # The kernel's dims that are divided lie as those of the images do.
    along = {inputs: feature} | {d.right: d.left for d in dims if d.by_window}
    kernel = _alike(y.shape, y.dtype, placed, along)
    if y.is_sharded:
        y = b.relayout(y, kernel.layout, kernel.placement)
    else:
        y = b.laid_out(b.replicated(y), kernel.layout, kernel.placement)
    # The result's dims likewise; devices along the others add up their parts.
    made = {numbers.out_spec[0]: batch} | {d.out: d.left for d in dims if not d.by_window}
    out = _alike(op.out.shape, dtype, placed, made)
    summed = tuple(a for k in along.values() for a in placed.axes[k])
    wide = sum_dtype(dtype) if summed else dtype
    reaches = _reaches(dims, placed, kernel, op.out.shape)
    sent = b.collectives()
    halos = halos_of(b, sent, layout, reaches, [x.dtype.itemsize])
    sent.all_reduce(summed, prod(out.local_shape) * wide.itemsize)
    # What the halos leave to do.
    padding = [(0, 0) if d.left in reaches else (d.window.low, d.window.high) for d in dims]
    dilation = [1 if d.left in reaches else d.window.base for d in dims]

    def convolve(images: jax.Array, weights: jax.Array) -> list[jax.Array]:
        images, weights = local_blocks(images), local_blocks(weights)
        for dim, k in along.items():
            if layout.grid[k] > 1:
                weights = without_tail(weights, dim, placed.axes[k], y.shape[dim], 0)
        if layout.grid[feature] > 1:
            images = without_tail(images, feature, placed.axes[feature], x.shape[feature], 0)
        for k, halo in halos:
            images = halo.run(images, k, 0)
        made = _local(op, padding, dilation, images, weights, wide)
        made = lax.psum(made, summed) if summed else made
        return [as_storage(made.astype(dtype), out.placement.per_device)]

    return b.run(convolve, [x, y], [out], sent)[0]


def _alike(shape: Shape, dtype: Any, placed: Placement, along: dict[int, int]) -> Sharded:
    """The layout and place of an array whose dims `along` lie as the given dims of the images."""
    parts: list[Any] = [
        (placed.grid[k], placed.axes[k], placed.slots[k], placed.per_device[k])
        if (k := along.get(d)) is not None
        else (1, (), 1, 1)
        for d in range(len(shape))
    ]
    cores, axes, slots, per_device = (tuple(part[i] for part in parts) for i in range(4))
    layout = GridLayout(shape, dtype, cores, collapse=[])
    return Sharded(layout, Placement(cores, axes, slots, per_device))


def _reaches(dims: list[_Dim], placed: Placement, kernel: Sharded, out: Shape) -> dict[int, Reach]:
    """What each device needs of the images along their divided dims."""
    found = {}
    for d in dims:
        k = d.left
        if placed.slots[k] == placed.per_device[k] == 1:
            continue
        if d.by_window:
            held = kernel.local_shape[d.right] * kernel.layout.local_shape[d.right]
            found[k] = of_window(d.window, held, out[d.out])
        else:
            results = placed.per_device[k] * -(-out[d.out] // placed.grid[k])
            found[k] = of_results(d.window, results)
    return found


def _local(
    op: Op, padding: list[tuple[int, int]], dilation: list[int], a: Any, b: Any, dtype: Any
) -> jax.Array:
    p = op.params
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
