"""Convolutions and pooling. TTNN's images are rows: (1, 1, batch * height * width, channels)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax.numpy as jnp
from jax import lax

from gridlayout.ops.tenstorrent.elementwise import activation
from gridlayout.ops.tenstorrent.operation import Op

Function = Callable[..., Any]
Pairs = list[tuple[int, int]]

_NUMBERS = ("NHWC", "OIHW", "NHWC")


def _pair(op: Op, key: str, default: Any = (1, 1)) -> tuple[int, int]:
    found = op.integers(key, default)
    if len(found) not in (1, 2) or min(found) < 0:
        op.fail(f"{key} = {found} must be one number or two, >= 0")
    return (found[0], found[-1])


def _padding(op: Op, default: Any = (0, 0)) -> Pairs:
    """`padding`: (height, width), or what comes above, below, left and right."""
    found = op.integers("padding", default)
    if len(found) == 2:
        return [(found[0], found[0]), (found[1], found[1])]
    if len(found) != 4:
        op.fail(f"padding = {found} must be two numbers or four")
    return [(found[0], found[1]), (found[2], found[3])]


def _image(op: Op, channels: int) -> Callable[[Any], Any]:
    """The rows as (batch, height, width, channels)."""
    shape = (op.integer("batch_size"), op.integer("input_height"), op.integer("input_width"))
    return lambda x: jnp.reshape(x, (*shape, channels))


def _kernel(shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """Weights (out, in, rows, columns); prepared ones are rows of (rows, columns, in) x out."""
    out, inside, rows, columns = shape

    def read(weights: Any) -> Any:
        if weights.shape == shape:
            return weights
        padded = weights.shape[-2] // (rows * columns)
        whole = jnp.reshape(weights, (rows, columns, padded, weights.shape[-1]))
        return jnp.transpose(whole[:, :, :inside, :out], (3, 2, 0, 1))

    return read


def prepare_weights(op: Op) -> Function:
    """(out, in, rows, columns) as the matrix that `conv2d` takes, zeros where it is larger."""
    _conv_facts(op)
    out, inside, rows, columns = op.inputs[0].shape
    height, width = op.outputs[0].shape[-2:]
    padded = height // (rows * columns)
    if padded * rows * columns != height or padded < inside or width < out:
        op.fail(f"weights {op.inputs[0].shape} do not go into {op.outputs[0].shape}")
    pads = [(0, 0), (0, 0), (0, padded - inside), (0, width - out)]
    return lambda x: jnp.reshape(jnp.pad(jnp.transpose(x, (2, 3, 1, 0)), pads), op.outputs[0].shape)


def prepare_bias(op: Op) -> Function:
    """A bias as `conv2d` takes it: zeros behind it where the result is wider."""
    _conv_facts(op)
    missing = op.outputs[0].shape[-1] - op.inputs[0].shape[-1]
    if missing < 0 or prod(op.outputs[0].shape[:-1]) != 1:
        op.fail(f"a bias {op.inputs[0].shape} does not go into {op.outputs[0].shape}")
    return lambda x: jnp.reshape(jnp.pad(jnp.ravel(x), (0, missing)), op.outputs[0].shape)


def _conv_facts(op: Op) -> None:
    """What is said of the convolution where its weights are prepared; the shapes follow from it."""
    for key in (
        *("batch_size", "input_height", "input_width", "in_channels", "out_channels", "groups"),
        *("kernel_size", "stride", "padding", "dilation"),
    ):
        op.integers(key, None)
    op.config("conv2d_config")


def _fused(op: Op) -> Function:
    """The activation that the config fuses with the op."""
    config = op.config("conv2d_config")
    return activation(op, config["activation"]) if "activation" in config else lambda x: x


def conv2d(op: Op) -> Function:
    """A convolution of rows; weights as they are, or prepared; a bias; a fused activation."""
    inside, out, groups = (op.integer(key) for key in ("in_channels", "out_channels", "groups"))
    size, stride, dilation = (_pair(op, key) for key in ("kernel_size", "stride", "dilation"))
    image, padding, last = _image(op, inside), _padding(op), _fused(op)
    kernel = _kernel((out, inside // groups, *size))
    shape = op.outputs[0].shape

    def run(x: Any, weights: Any, *bias: Any) -> Any:
        made = lax.conv_general_dilated(
            *(image(x), kernel(weights), stride, padding),
            rhs_dilation=dilation,
            dimension_numbers=_NUMBERS,
            feature_group_count=groups,
        )
        for value in bias:
            made = made + jnp.ravel(value)[:out]
        return jnp.reshape(last(made), shape)

    return run


def conv1d(op: Op) -> Function:
    """A convolution of (batch, length, channels)."""
    inside, out, groups = (op.integer(key) for key in ("in_channels", "out_channels", "groups"))
    batch, length, size = (op.integer(key) for key in ("batch_size", "input_length", "kernel_size"))
    stride, dilation, last = op.integer("stride", 1), op.integer("dilation", 1), _fused(op)
    ends, shape = op.integers("padding", (0,)), op.outputs[0].shape

    def run(x: Any, weights: Any, *bias: Any) -> Any:
        made = lax.conv_general_dilated(
            jnp.reshape(x, (batch, length, inside)),
            jnp.reshape(weights, (out, inside // groups, size)),
            *((stride,), [(ends[0], ends[-1])]),
            rhs_dilation=(dilation,),
            dimension_numbers=("NWC", "OIW", "NWC"),
            feature_group_count=groups,
        )
        for value in bias:
            made = made + jnp.ravel(value)[:out]
        return jnp.reshape(last(made), shape)

    return run


def conv_transpose2d(op: Op) -> Function:
    """What a convolution with these weights, (in, out, rows, columns), would come from."""
    inside, out, groups = (op.integer(key) for key in ("in_channels", "out_channels", "groups"))
    size, stride, dilation = (_pair(op, key) for key in ("kernel_size", "stride", "dilation"))
    image, last, extra = _image(op, inside), _fused(op), _pair(op, "output_padding", (0, 0))
    if groups != 1:
        op.fail(f"groups = {groups} of a transposed convolution is not known")
    found = op.integers("padding", (0, 0))
    top, left, bottom, right = found if len(found) == 4 else (*found, *found)
    reach = [(n - 1) * d for n, d in zip(size, dilation, strict=True)]
    padding = [
        (reach[0] - top, reach[0] - bottom + extra[0]),
        (reach[1] - left, reach[1] - right + extra[1]),
    ]

    def run(x: Any, weights: Any, *bias: Any) -> Any:
        weights = jnp.reshape(weights, (inside, out, *size))
        made = lax.conv_general_dilated(
            *(image(x), jnp.flip(weights, (2, 3)), (1, 1), padding),
            lhs_dilation=stride,
            rhs_dilation=dilation,
            dimension_numbers=("NHWC", "IOHW", "NHWC"),
        )
        for value in bias:
            made = made + jnp.ravel(value)[:out]
        return jnp.reshape(last(made), op.outputs[0].shape)

    return run


def pool(op: Op) -> Function:
    """The largest element of each window, or the mean; windows may begin in the padding."""
    size, stride, dilation = (_pair(op, key) for key in ("kernel_size", "stride", "dilation"))
    image, padding = _image(op, op.integer("channels")), _padding(op)
    if op.flag("ceil_mode", False):
        padding = _ceiled(op, padding, size, stride, dilation)
    shape, whole = op.outputs[0].shape, [(0, 0), *padding, (0, 0)]

    def window(x: Any, start: Any, function: Any) -> Any:
        steps = ((1, *size, 1), (1, *stride, 1), whole, (1, 1, 1, 1), (1, *dilation, 1))
        return lax.reduce_window(x, start, function, *steps)

    if op.name == "max_pool2d":
        return lambda x: jnp.reshape(window(image(x), -jnp.inf, lax.max), shape)
    divisor, counted = op.integer("divisor_override", None), op.flag("count_include_pad", True)

    def mean(x: Any) -> Any:
        made = window(image(x), 0.0, lax.add)
        if divisor is not None:
            return jnp.reshape(made / divisor, shape)
        if counted:
            return jnp.reshape(made / prod(size), shape)
        return jnp.reshape(made / window(jnp.ones_like(image(x)), 0.0, lax.add), shape)

    return mean


def _ceiled(op: Op, padding: Pairs, size: Any, stride: Any, dilation: Any) -> Pairs:
    """The padding with what a last window, that is not full, needs behind it."""
    made, extents = [], (op.integer("input_height"), op.integer("input_width"))
    for n, (low, high), k, s, d in zip(extents, padding, size, stride, dilation, strict=True):
        over = n + low + high - d * (k - 1) - 1
        count = -(-over // s)
        if count * s >= n + low:  # that window would begin in the padding behind
            count -= 1
        made.append((low, high + max(0, count * s - over)))
    return made


def global_mean(op: Op) -> Function:
    """The mean of each channel over height and width."""
    return lambda x: jnp.mean(x, (1, 2), keepdims=True)


FUNCTIONS = {
    "avg_pool2d": pool,
    "conv1d": conv1d,
    "conv2d": conv2d,
    "conv_transpose2d": conv_transpose2d,
    "global_avg_pool2d": global_mean,
    "max_pool2d": pool,
    "prepare_conv2d_bias": prepare_bias,
    "prepare_conv2d_weights": prepare_weights,
}
