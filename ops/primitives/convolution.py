"""`conv_general_dilated`: each device convolves its block of the images and fetches a halo.

The images and the result are divided along batch and spatial dims, on the cores of the images.
The kernel is replicated. Where the window is larger than the result, as in the gradient of a
kernel, the window is divided instead of the result, and partial sums are all-reduced. If the result
is smaller than the images, the contracted feature dim is divided in the same way. Groups of
features may be divided too, in images, kernel and result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
from jax import lax

from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.dtypes import sum_dtype
from gridlayout.ops.decisions.blocks import block_shape, block_spec
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.factors import NEAR, SHIFTED, SUMMED, THROUGH, Factors, Numbering
from gridlayout.ops.decisions.flops import of_blocks, of_convolution
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.requested import Requested
from gridlayout.ops.decisions.specs import Local, Sharded
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
)
from gridlayout.ops.products.divided import summed
from gridlayout.sharding.meshes.placement import Placement


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
    dims = _spatial(op.params, rhs.shape, aval.shape)
    if op.requested is not None:
        b.note = op.requested.note
        return _convolved(b, op, op.requested, lhs, rhs, dims)
    batch, feature = numbers.lhs_spec[:2]
    alone = op.params["feature_group_count"] == op.params["batch_group_count"] == 1
    extents = {batch: lhs.shape[batch]} if op.params["batch_group_count"] == 1 else {}
    extents |= {d.left: d.window.size if d.divides_window else aval.shape[d.out] for d in dims}
    if alone and prod(aval.shape) < prod(lhs.shape):
        extents |= {feature: lhs.shape[feature]}
    like, groups = lhs.layout or b.env.template, _groups(op.params)
    of_groups = {feature: groups} if groups > 1 else {}
    layout = blocks(like, lhs.shape, extents | of_groups, lhs.dtype)
    if groups % b.placement(layout).slots[feature] and of_groups:
        layout = blocks(like, lhs.shape, extents, lhs.dtype)
    out = _convolved(b, op, _divided_as(b, op, layout, rhs, dims), lhs, rhs, dims)
    return b.relayout(out, b.result_layout(op, lhs))


def _groups(p: Mapping[str, Any]) -> int:
    """Return the number of groups of features that devices may divide."""
    return int(p["feature_group_count"]) if p["batch_group_count"] == 1 else 1


def _spatial(p: Mapping[str, Any], kernel: Shape, out: Shape) -> list[_Dim]:
    """Return the spatial dims of a convolution."""
    numbers, found = p["dimension_numbers"], []
    for k, (left, right, at) in enumerate(
        zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], numbers.out_spec[2:], strict=True)
    ):
        low, high = p["padding"][k]
        base, dilation = p["lhs_dilation"][k], p["rhs_dilation"][k]
        window = Window(kernel[right], p["window_strides"][k], low, high, base, dilation)
        found.append(_Dim(left, right, at, window, window.size > out[at]))
    return found


def _divided_as(
    b: Builder, op: Op, layout: GridLayout, y: Value, dims: Sequence[_Dim]
) -> Requested:
    """Return the placements of a convolution by those of its images, in blocks by `layout`."""
    numbers, placed = op.params["dimension_numbers"], b.placement(layout)
    (batch, feature), (wide, inputs) = numbers.lhs_spec[:2], numbers.rhs_spec[:2]
    has_groups = _groups(op.params) > 1
    # The divided dims of the kernel are divided as the corresponding dims of the images.
    along = {d.right: d.left for d in dims if d.divides_window}
    along |= {} if has_groups else {inputs: feature}
    own = {wide: feature} if has_groups else {}
    kernel = _divided_like(y.shape, y.dtype, placed, along | own)
    # So are those of the result; partial sums along the other mesh axes are added up.
    made = {numbers.out_spec[0]: batch} | {d.out: d.left for d in dims if not d.divides_window}
    made |= {numbers.out_spec[1]: feature} if has_groups else {}
    out = _divided_like(op.out.shape, op.out.dtype, placed, made)
    summed = tuple(a for k in along.values() for a in placed.axes[k])
    return Requested((Sharded(layout, placed), kernel), out, out, summed)


def _convolved(
    b: Builder, op: Op, requested: Requested, lhs: Value, rhs: Value, dims: Sequence[_Dim]
) -> Value:
    """Append the convolution of images and a kernel that are divided as `requested` states."""
    numbers, dtype, (images, kernel) = op.params["dimension_numbers"], op.out.dtype, requested.ins
    assert images is not None
    assert kernel is not None
    layout, out, summing = images.layout, requested.made, requested.summed
    assert isinstance(layout, GridLayout)
    x, y = b.as_spec(lhs, images), b.as_spec(rhs, kernel)
    wide = sum_dtype(dtype) if summing else dtype
    reaches = _reaches(dims, images, kernel, out)
    sent = b.collectives()
    with sent.of(0):
        halos = halos_of(b, sent, images, reaches, [x.dtype], is_filled=True)
    sent.compute()
    # A halo includes padding; along other dims the convolution does it.
    found = dict(halos)
    padding = [
        found[d.left].padding if d.left in found else (d.window.low, d.window.high) for d in dims
    ]
    dilation = [found[d.left].dilation if d.left in found else d.window.base for d in dims]
    # Contracted dims are filled with 0 beyond their end, because the padding is multiplied too.
    window = [d.right for d in dims if d.divides_window]
    x = _with_zeros(b, x, [numbers.lhs_spec[1]])
    y = _with_zeros(b, y, [numbers.rhs_spec[1], *window])
    b.device_flops = of_blocks(op, block_shape(images), block_shape(out), b.device.machine)
    local = block_shape(out) if requested.scattered else out.local_shape
    feature, groups = numbers.lhs_spec[1], op.params["feature_group_count"]
    if groups > 1:
        groups //= images.placement.slots[feature] // images.placement.per_device[feature]

    def convolve(x: jax.Array, y: jax.Array) -> list[jax.Array]:
        x, y = local_blocks(x), local_blocks(y)
        for k, halo in halos:
            x = halo.run(x, k, 0)
        result = _convolve_block(op, padding, dilation, groups, x, y, wide)
        return [as_storage(result, out.placement.per_device).reshape(local)]

    if not summing:
        return b.run(convolve, [x, y], [out], sent)[0]
    (part,) = b.run(convolve, [x, y], [Local(local, wide)], sent)
    return summed(b, part, requested, wide, dtype)


def _with_zeros(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    """Return an array in blocks with zeros beyond the end of divided dims."""
    assert isinstance(x.spec, Sharded)
    layout, placed = x.spec.layout, x.spec.placement
    assert isinstance(layout, GridLayout)
    along = [k for d in dims if placed.grid[d] > 1 for k in layout.axis_dims(d)]
    return b.with_padding(x, 0, along) if along else x


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


def _reaches(
    dims: Sequence[_Dim], images: Sharded, kernel: Sharded, out: Sharded
) -> dict[int, Reach]:
    """Return the range of the images that each device needs, by divided dim of the images."""
    found, placed = {}, images.placement
    for d in dims:
        k = d.left
        if placed.slots[k] == placed.per_device[k] == 1:
            continue
        if d.divides_window:
            found[k] = for_window(d.window, block_shape(kernel)[d.right], out.shape[d.out])
        else:
            found[k] = for_results(d.window, block_shape(out)[d.out])
    return found


def _convolve_block(
    op: Op,
    padding: list[tuple[int, int]],
    dilation: list[int],
    groups: int,
    a: Any,
    b: Any,
    dtype: Any,
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
        feature_group_count=groups,
        batch_group_count=p["batch_group_count"],
        precision=p["precision"],
        preferred_element_type=dtype,
    )


def _factors(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of batch, features and the dims that windows move along."""
    made, numbers, out = Numbering(ins, outs), params["dimension_numbers"], len(ins)
    groups = params["feature_group_count"], params["batch_group_count"]
    (batch, feature), (wide, inner) = numbers.lhs_spec[:2], numbers.rhs_spec[:2]
    if groups[1] == 1:
        made.add(THROUGH, (0, batch), (out, numbers.out_spec[0]))
    if groups == (1, 1):
        made.add(THROUGH, (1, wide), (out, numbers.out_spec[1]))
        made.add(SUMMED, (0, feature), (1, inner))
    elif groups[1] == 1:
        made.add(THROUGH, (0, feature), (1, wide), (out, numbers.out_spec[1]), exact=groups[0])
    for d in _spatial(params, ins[1], outs[0]):
        if _reach_of(d, ins[0], outs[0]) is None:
            made.add(SHIFTED, (0, d.left), (out, d.out))
        elif d.divides_window:
            made.add(SUMMED, (0, d.left), (1, d.right))
        else:
            made.add(NEAR, (0, d.left), (out, d.out))
    return made.factors()


def _reach_of(d: _Dim, images: Shape, out: Shape) -> tuple[int, int] | None:
    if d.divides_window:
        return d.window.near_window(images[d.left], out[d.out])
    return d.window.near(images[d.left], out[d.out])


def _borders(
    params: Any, ins: Sequence[Shape], outs: Sequence[Shape]
) -> list[list[tuple[int, int] | None]]:
    """Return the `Record.borders` of a convolution."""
    found: list[tuple[int, int] | None] = [None] * len(ins[0])
    for d in _spatial(params, ins[1], outs[0]):
        found[d.left] = _reach_of(d, ins[0], outs[0])
    return [found]


CONVOLUTION: dict[str, Record] = {
    "conv_general_dilated": Record(
        *((conv_general_dilated,), of_convolution, _factors),
        borders=_borders,
        multiplies=True,
        of_blocks=True,
        scatters_sums=True,
    )
}
