"""Ops of TTIR that differ from TTNN's ops of the same name. TTIR has no layouts yet."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.arguments import Shape
from gridlayout.ops.tenstorrent import windows
from gridlayout.ops.tenstorrent.elementwise import gelu_of
from gridlayout.ops.tenstorrent.operation import Function, Op
from gridlayout.ops.tenstorrent.windows import Pairs


def broadcast(op: Op) -> Function:
    """Dims of extent 1 broadcast to the result's shape."""
    op.integers("broadcast_dimensions")
    shape = op.outputs[0].shape
    return lambda x: jnp.broadcast_to(x, shape)


def reverse(op: Op) -> Function:
    """The elements along `dimensions` in reverse order."""
    op.facts["dims"] = dims = op.integers("dimensions")
    return lambda x: jnp.flip(x, dims)


def pad(op: Op) -> Function:
    """The operand with `padding` elements added before and after each dim; negative ones cut."""
    padding, value = op.integers("padding"), op.number("value", 0)
    pairs = [(low, high, 0) for low, high in zip(padding[::2], padding[1::2], strict=True)]
    return lambda x: lax.pad(x, jnp.asarray(np.asarray(value).astype(x.dtype)), pairs)


def arange(op: Op) -> Function:
    """Numbers from `start` to `end`, exclusive, along one dim; the same along the other dims."""
    start, end, step = op.integer("start"), op.integer("end"), op.integer("step")
    out, axis = op.outputs[0], op.integer("arange_dimension")
    if not 0 <= axis < len(out.shape) or len(range(start, end, step or 1)) != out.shape[axis]:
        op.fail(f"{start} to {end} in steps of {step} do not fill dim {axis} of {out.shape}")
    shape = [n if k == axis else 1 for k, n in enumerate(out.shape)]

    def run() -> Any:
        line = jnp.reshape(jnp.arange(start, end, step, dtype=out.dtype), shape)
        return jnp.broadcast_to(line, out.shape)

    return run


def truths(op: Op) -> Function:
    """Whether any, or all, of the truth values along `dim_arg` are true."""
    function = {"reduce_or": jnp.any, "reduce_and": jnp.all}[op.name]
    op.facts["dims"] = axes = op.axes("dim_arg")
    keep = op.flag("keep_dim", False)
    return lambda x: function(x, axis=axes, keepdims=keep)


def argument(op: Op) -> Function:
    """The index of the largest, or smallest, element along the dims `dim_arg`, in row-major order.

    Of equal elements, that of the first.
    """
    function = {"argmax": jnp.argmax, "argmin": jnp.argmin}[op.name]
    op.facts["dims"] = axes = tuple(sorted(set(op.axes("dim_arg"))))
    keep = op.flag("keep_dim", False)
    if len(axes) in (1, len(op.inputs[0].shape)):
        axis = axes[0] if len(axes) == 1 else None
        return lambda x: function(x, axis=axis, keepdims=keep)

    def run(x: Any) -> Any:
        last = jnp.moveaxis(x, axes, range(-len(axes), 0))
        found = function(jnp.reshape(last, (*last.shape[: x.ndim - len(axes)], -1)), axis=-1)
        return jnp.expand_dims(found, axes) if keep else found

    return run


def dimension_size(op: Op) -> Function:
    """The extent of the dim `dimension`."""
    size, shape = op.inputs[0].shape[op.axis("dimension")], op.outputs[0].shape
    return lambda x: jnp.full(shape, size, jnp.int32)


def adamw(op: Op) -> Function:
    """One step of AdamW: the new parameter and moments; with AMSGrad, also the largest moment.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, algorithm 2, whose powers
    of the decay rates are `beta1_pow` and `beta2_pow`.
    """
    names = ("lr", "beta1", "beta2", "beta1_pow", "beta2_pow", "epsilon", "weight_decay")
    rate, decay1, decay2, power1, power2, epsilon, weight = (op.number(name) for name in names)
    if op.flag("stochastic_rounding", False):
        op.fail("stochastic_rounding = true is random")

    def run(x: Any, grad: Any, mean: Any, square: Any, *most: Any) -> Any:
        mean = decay1 * mean + (1 - decay1) * grad
        square = decay2 * square + (1 - decay2) * grad * grad
        most = tuple(jnp.maximum(each, square) for each in most)
        root = jnp.sqrt((most or (square,))[0] / (1 - power2)) + epsilon
        made = x - rate * weight * x - rate * (mean / (1 - power1)) / root
        return (made, mean, square, *most)

    return run


def dot_general(op: Op) -> Function:
    """Products summed along the contracted dims; batch dims come first in the result."""
    contract = op.integers("contract_dims_lhs"), op.integers("contract_dims_rhs")
    batch = op.integers("batch_dims_lhs"), op.integers("batch_dims_rhs")
    op.facts["contract"], op.facts["batch"] = contract, batch
    return lambda x, y: lax.dot_general(x, y, (contract, batch))


def repeat(op: Op) -> Function:
    """The operand repeated `repeat_dimensions` times along each dim."""
    times = op.integers("repeat_dimensions")
    return lambda x: jnp.tile(x, times)


def squeeze(op: Op) -> Function:
    """The operand without `dim`, which has extent 1."""
    axis = op.axis("dim")
    return lambda x: jnp.squeeze(x, axis)


def unsqueeze(op: Op) -> Function:
    """The operand with a dim of extent 1 before `dim`; a negative one counts from the result's."""
    axis = op.integer("dim")
    return lambda x: jnp.expand_dims(x, axis)


def batch_norm(op: Op) -> Function:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, for each index of `dimension`."""
    axis, epsilon = op.axis("dimension"), op.number("epsilon")
    across = [1] * len(op.inputs[0].shape)
    across[axis] = -1

    def run(x: Any, *of_channels: Any) -> Any:
        scale, offset, mean, variance = (jnp.reshape(each, across) for each in of_channels)
        return (x - mean) * lax.rsqrt(variance + epsilon) * scale + offset

    return run


def batch_norm_training(op: Op) -> Function:
    """As `batch_norm` with the operand's own mean and variance, which are results too.

    The running mean and variance, the last operands, change no result.
    """
    axis, epsilon = op.axis("dimension"), op.number("epsilon")
    op.number("momentum")
    across = [1] * len(op.inputs[0].shape)
    across[axis] = -1
    others = tuple(k for k in range(len(across)) if k != axis)

    def run(x: Any, scale: Any, offset: Any, *running: Any) -> list[Any]:
        mean = jnp.mean(x, others, keepdims=True)
        variance = jnp.mean((x - mean) ** 2, others, keepdims=True)
        made = (x - mean) * lax.rsqrt(variance + epsilon)
        made = made * jnp.reshape(scale, across) + jnp.reshape(offset, across)
        return [made, jnp.ravel(mean), jnp.ravel(variance)]

    return run


def gelu_backward(op: Op) -> Function:
    """The gradient of GELU at the second operand, times the first."""
    function = gelu_of(op, "none")
    return lambda gradient, x: jax.jvp(function, (x,), (gradient,))[1]


_SPATIAL = ("depth_dim", "height_dim", "width_dim")


def convolution(op: Op) -> Function:
    """A convolution of images; attributes name their dims.

    Weights are (out, in, *spatial dims); of a transposed convolution, (in, out, *spatial dims).
    """
    is_transposed = op.name == "conv_transpose2d"
    rank = len(op.inputs[0].shape) - 2
    spatial = ("length_dim",) if op.name == "conv1d" else _SPATIAL[-rank:]
    # By default, the batch comes first and channels last.
    defaults = 0, rank + 1, *range(1, rank + 1)
    names = ("batch_dim", "channel_dim", *spatial)
    dims = tuple(op.axis(key, at) for key, at in zip(names, defaults, strict=True))
    stride, dilation = (windows.each(op, key, rank) for key in ("stride", "dilation"))
    groups, padding = op.integer("groups"), _padding(op, rank)
    if op.integer("channel_last", 1) != 1:
        op.fail("channels that are not the last dim are stated by channel_dim")
    if op.word("padding_mode", "zeros") != "zeros" or (is_transposed and groups != 1):
        op.fail("only zeros for padding and, where transposed, one group are known")
    if is_transposed:
        extra = windows.each(op, "output_padding", rank, 0)
        size = op.inputs[1].shape[2:]
        padding = windows.transposed(padding, size, dilation, extra)
    weights = (1, 0) if is_transposed else (0, 1)
    along, image, shape = tuple(range(2, rank + 2)), _image(op), op.outputs[0].shape
    op.facts["image"] = dims[1], weights[0]
    numbers = lax.ConvDimensionNumbers(dims, (*weights, *along), dims)
    across = [1] * len(dims)
    across[dims[1]] = -1

    def run(x: Any, w: Any, *bias: Any) -> Any:
        made = lax.conv_general_dilated(
            *(jnp.reshape(x, image), jnp.flip(w, along) if is_transposed else w),
            *((1,) * rank if is_transposed else stride, padding),
            lhs_dilation=stride if is_transposed else (1,) * rank,
            rhs_dilation=dilation,
            dimension_numbers=numbers,
            feature_group_count=groups,
        )
        for value in bias:
            made = made + jnp.reshape(value, across)
        return jnp.reshape(made, shape) if image != op.inputs[0].shape else made

    return run


def _image(op: Op) -> Shape:
    """Return the shape of the images: of the operand, or as `flattened_compat_info` states it.

    With that attribute, operand and result are (1, 1, batch * height * width, channels).
    """
    shape = op.inputs[0].shape
    text = op.text("flattened_compat_info", "")
    if not text:
        return shape
    keys = "batch_size", "input_height", "input_width"
    found = dict(re.findall(r"\b(\w+) = ([0-9]{1,9})\b", text))
    sizes = tuple(int(found.get(key, 0)) for key in keys)
    if prod(sizes) != prod(shape[:-1]) or len(shape) != 4:
        op.fail(f"flattened_compat_info = {text[:100]} does not fit the operand's shape {shape}")
    return (*sizes, shape[-1])


def _padding(op: Op, rank: int) -> Pairs:
    """Read `padding`: elements before each dim, then after each; or the same for both."""
    found = op.integers("padding", (0,))
    if len(found) == 2 * rank:
        return list(zip(found[:rank], found[rank:], strict=True))
    return [(n, n) for n in windows.each(op, "padding", rank, 0)]


def pool(op: Op) -> Function:
    """A pool over windows of images (batch, height, width, channels)."""
    size, padding = windows.each(op, "kernel", 2), _padding(op, 2)
    op.facts["image"] = 3, None
    image = _image(op)
    found = windows.pooled(op, size, padding, image[1:3], lambda x: jnp.reshape(x, image))
    return lambda x, *buffers: found(x)


FUNCTIONS = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "conv_transpose2d"), convolution),
    **dict.fromkeys(("max_pool2d", "max_pool2d_with_indices", "avg_pool2d"), pool),
    **dict.fromkeys(("reduce_or", "reduce_and"), truths),
    **dict.fromkeys(("argmax", "argmin"), argument),
    "adamw": adamw,
    "arange": arange,
    "batch_norm_inference": batch_norm,
    "batch_norm_training": batch_norm_training,
    "broadcast": broadcast,
    "dot_general": dot_general,
    "gelu_bw": gelu_backward,
    "get_dimension_size": dimension_size,
    "pad": pad,
    "repeat": repeat,
    "reverse": reverse,
    "squeeze": squeeze,
    "unsqueeze": unsqueeze,
}
