"""`conv_general_dilated`: each device convolves its block of the images and fetches a halo.

The images and the result are divided along batch and spatial dims, on the cores of the images.
The kernel is replicated. Where the window is larger than the result, as in the gradient of a
kernel, the window is divided instead of the result, and partial sums are all-reduced. If the result
is smaller than the images, the contracted feature dim is divided in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
from jax import lax

from gridlayout import dtypes
from gridlayout.document.grid_layout import GridLayout
from gridlayout.dtypes import sum_dtype
from gridlayout.ops.decisions.blocks import block_spec
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.factors import SHIFTED, SUMMED, THROUGH, Factors, Numbering
from gridlayout.ops.decisions.flops import of_convolution
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.windows import (
    Reach,
    Window,
    as_storage,
    blocks,
    for_results,
    for_window,
    halos_of,
    local_blocks,
    zero_tail,
)
from gridlayout.ops.products.divided import divided
from gridlayout.sharding.meshes.placement import Placement

Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Dim:
    """A spatial dim: its number in images, kernel and result, its window, and what is divided.

    divides_window: whether devices divide the window, else the result.
    """

    left: int
    right: int
    out: int
    window: Window
    divides_window: bool


def conv_general_dilated(b: Builder, op: Op, lhs: Value, rhs: Value) -> Any:
    """Rule for a convolution with any dimension numbers, strides, padding, dilations and groups."""
    aval, numbers = op.out, op.params["dimension_numbers"]
    if 0 in (*aval.shape, *lhs.shape, *rhs.shape):
        return None
    if op.requested is not None:
        return divided(b, op, op.requested, lhs, rhs)
    dims = _spatial(op, rhs.shape, aval.shape)
    batch, feature = numbers.lhs_spec[:2]
    alone = op.params["feature_group_count"] == op.params["batch_group_count"] == 1
    extents = {batch: lhs.shape[batch]} if op.params["batch_group_count"] == 1 else {}
    extents |= {d.left: d.window.size if d.divides_window else aval.shape[d.out] for d in dims}
    if alone and prod(aval.shape) < prod(lhs.shape):
        extents |= {feature: lhs.shape[feature]}
    layout = blocks(lhs.layout or b.env.template, lhs.shape, extents, lhs.dtype)
    out = _convolve(b, op, layout, b.as_sharded(lhs, layout), rhs, dims)
    return b.relayout(out, b.result_layout(op, lhs))


def _spatial(op: Op, kernel: Shape, out: Shape) -> list[_Dim]:
    """Return the spatial dims of a convolution."""
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


def _convolve(
    b: Builder, op: Op, layout: GridLayout, x: Value, y: Value, dims: list[_Dim]
) -> Value:
    """Append the convolution of images `x`, in blocks by `layout`, with a kernel `y`."""
    numbers, dtype = op.params["dimension_numbers"], op.out.dtype
    (batch, feature), (_, inputs) = numbers.lhs_spec[:2], numbers.rhs_spec[:2]
    placed = b.placement(layout)
    # The divided dims of the kernel are divided as the corresponding dims of the images.
    along = {inputs: feature} | {d.right: d.left for d in dims if d.divides_window}
    kernel = _divided_like(y.shape, y.dtype, placed, along)
    if y.is_sharded:
        y = b.relayout(y, kernel.layout, kernel.placement)
    else:
        y = b.laid_out(b.replicated(y), kernel.layout, kernel.placement)
    # So are those of the result; partial sums along the other mesh axes are added up.
    made = {numbers.out_spec[0]: batch} | {d.out: d.left for d in dims if not d.divides_window}
    out = _divided_like(op.out.shape, dtype, placed, made)
    summed = tuple(a for k in along.values() for a in placed.axes[k])
    wide = sum_dtype(dtype) if summed else dtype
    reaches = _reaches(dims, placed, kernel, op.out.shape)
    sent = b.collectives()
    with sent.of(0):
        halos = halos_of(b, sent, layout, reaches, [x.dtype])
    sent.compute()
    sent.all_reduce(summed, dtypes.nbytes(out.local_shape, wide))
    # A halo includes padding; along other dims the convolution does it.
    found = dict(halos)
    padding = [
        found[d.left].padding if d.left in found else (d.window.low, d.window.high) for d in dims
    ]
    dilation = [found[d.left].dilation if d.left in found else d.window.base for d in dims]

    def convolve(images: jax.Array, weights: jax.Array) -> list[jax.Array]:
        images, weights = local_blocks(images), local_blocks(weights)
        for dim, k in along.items():
            if layout.grid[k] > 1:
                weights = zero_tail(weights, dim, placed.axes[k], y.shape[dim])
        if layout.grid[feature] > 1:
            images = zero_tail(images, feature, placed.axes[feature], x.shape[feature])
        for k, halo in halos:
            images = halo.run(images, k, 0)
        result = _convolve_block(op, padding, dilation, images, weights, wide)
        result = lax.psum(result, summed) if summed else result
        return [as_storage(result.astype(dtype), out.placement.per_device)]

    return b.run(convolve, [x, y], [out], sent)[0]


def _divided_like(shape: Shape, dtype: Any, placed: Placement, along: dict[int, int]) -> Sharded:
    """Return the spec of an array whose dims are divided like dims of the images.

    along: dim of the array -> dim of the images. Other dims are undivided.
    """
    parts: list[Any] = [
        (placed.grid[k], placed.axes[k], placed.slots[k], placed.per_device[k])
        if (k := along.get(d)) is not None
        else (1, (), 1, 1)
        for d in range(len(shape))
    ]
    return block_spec(shape, dtype, Placement(*zip(*parts, strict=True)))


def _reaches(dims: list[_Dim], placed: Placement, kernel: Sharded, out: Shape) -> dict[int, Reach]:
    """Return the range of the images that each device needs, by divided dim of the images."""
    found = {}
    for d in dims:
        k = d.left
        if placed.slots[k] == placed.per_device[k] == 1:
            continue
        if d.divides_window:
            block = kernel.local_shape[d.right] * kernel.layout.local_shape[d.right]
            found[k] = for_window(d.window, block, out[d.out])
        else:
            results = placed.per_device[k] * -(-out[d.out] // placed.grid[k])
            found[k] = for_results(d.window, results)
    return found


def _convolve_block(
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


def _factors(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of batch and features; windows move along the other dims."""
    made, numbers, out = Numbering(ins, outs), params["dimension_numbers"], len(ins)
    groups = params["feature_group_count"], params["batch_group_count"]
    (batch, feature, *dims), (wide, inner, *_) = numbers.lhs_spec, numbers.rhs_spec
    if groups[1] == 1:
        made.add(THROUGH, (0, batch), (out, numbers.out_spec[0]))
    if groups == (1, 1):
        made.add(THROUGH, (1, wide), (out, numbers.out_spec[1]))
        made.add(SUMMED, (0, feature), (1, inner))
    for d, to in zip(dims, numbers.out_spec[2:], strict=True):
        made.add(SHIFTED, (0, d), (out, to))
    return made.factors()


CONVOLUTION: dict[str, Record] = {
    "conv_general_dilated": Record(
        *((conv_general_dilated,), of_convolution, _factors),
        multiplies=True,
        of_blocks=True,
        scatters_sums=True,
    )
}
