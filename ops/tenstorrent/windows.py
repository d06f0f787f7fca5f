"""Convolutions and pooling. TTNN's images are rows: (1, 1, batch * height * width, channels)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.arguments import Shape
from gridlayout.ops.tenstorrent.elementwise import activation
from gridlayout.ops.tenstorrent.operation import Function, Op

Pairs = list[tuple[int, int]]

# For one, two and three dims that windows move along: attributes, and JAX's dimension numbers.
_EXTENTS = {
    1: ("input_length",),
    2: ("input_height", "input_width"),
    3: ("input_depth", "input_height", "input_width"),
}
_NUMBERS = {
    1: ("NWC", "OIW", "NWC"),
    2: ("NHWC", "OIHW", "NHWC"),
    3: ("NDHWC", "OIDHW", "NDHWC"),
}


def each(op: Op, key: str, rank: int, default: Any = 1) -> Shape:
    """Read one number for each dim that windows move along, or one for all of them."""
    found = op.integers(key, (default,))
    if len(found) not in (1, rank) or min(found) < 0:
        op.fail(f"{key} = {found} must be one number or {rank}, >= 0")
    return tuple(found) if len(found) == rank else tuple(found) * rank


def _padding(op: Op, rank: int) -> Pairs:
    """Read `padding`, before and after each dim: (height, width) or (above, below, ...)."""
    found = op.integers("padding", (0,))
    if len(found) == 2 * rank:
        return list(zip(found[::2], found[1::2], strict=True))
    return [(n, n) for n in each(op, "padding", rank, 0)]


def _image(op: Op, channels: int, rank: int = 2) -> Callable[[Any], Any]:
    """Return a function from rows to images (batch, height, width, channels)."""
    shape = (op.integer("batch_size"), *(op.integer(key) for key in _EXTENTS[rank]), channels)
    return lambda x: jnp.reshape(x, shape)


def _kernel(shape: Shape, block: int) -> Callable[[Any], Any]:
    """Return a function to weights (out, in, rows, columns), from prepared or plain weights."""
    out, inside, *size = shape

    def read(weights: Any) -> Any:
        if len(size) == 1 or weights.shape == shape:
            return jnp.reshape(weights, shape)
        padded, width = weights.shape[-2] // prod(size), weights.shape[-1]
        channels = block or padded
        whole = jnp.reshape(weights, (padded // channels, *size, channels, width))
        whole = jnp.moveaxis(whole, (-1, 0, -2), (0, 1, 2))
        return jnp.reshape(whole, (width, padded, *size))[:out, :inside]

    return read


def prepare_weights(op: Op) -> Function:
    """Weights (out, in, rows, columns) as the matrix that convolutions take, padded with zeros.

    Its rows are (rows, columns, in); with `c_in_block`, a block of input channels is outermost.
    """
    _conv_facts(op)
    op.integer("alignment", 1)
    (out, inside, *size), (height, width) = op.inputs[0].shape, op.outputs[0].shape[-2:]
    padded = height // prod(size)
    block = op.integer("c_in_block", 0) or padded
    if padded * prod(size) != height or padded < inside or width < out or padded % block:
        op.fail(f"weights {op.inputs[0].shape} do not fit into {op.outputs[0].shape}")
    if len(size) == 3 and op.integer("groups", 1) != 1:
        op.fail("groups of a convolution of three dims are not known")
    pads = [(0, width - out), (0, padded - inside), *[(0, 0) for _ in size]]

    def run(x: Any) -> Any:
        whole = jnp.reshape(jnp.pad(x, pads), (width, padded // block, block, *size))
        return jnp.reshape(jnp.moveaxis(whole, (0, 1, 2), (-1, 0, -2)), op.outputs[0].shape)

    return run


def prepare_bias(op: Op) -> Function:
    """A bias as `conv2d` takes it, padded with zeros to the width of the result."""
    _conv_facts(op)
    missing = op.outputs[0].shape[-1] - op.inputs[0].shape[-1]
    if missing < 0 or prod(op.outputs[0].shape[:-1]) != 1:
        op.fail(f"a bias {op.inputs[0].shape} does not fit into {op.outputs[0].shape}")
    return lambda x: jnp.reshape(jnp.pad(jnp.ravel(x), (0, missing)), op.outputs[0].shape)


def _conv_facts(op: Op) -> None:
    """Mark the attributes of the convolution as read; the types have all that is needed."""
    for key in (
        *("batch_size", "input_height", "input_width", "in_channels", "out_channels", "groups"),
        *("kernel_size", "stride", "padding", "dilation"),
    ):
        op.integers(key, None)
    op.config("conv2d_config")


def _fused(op: Op) -> Function:
    """Return the activation that the config fuses with the op."""
    config = op.config("conv2d_config")
    return activation(op, config["activation"]) if "activation" in config else lambda x: x


def convolution(op: Op) -> Function:
    """A convolution of rows, with plain or prepared weights, a bias and a fused activation."""
    rank = {"conv1d": 1, "conv2d": 2, "conv3d": 3}[op.name]
    inside, out, groups = _channels(op)
    size, stride, dilation = (each(op, k, rank) for k in ("kernel_size", "stride", "dilation"))
    image, padding, last = _image(op, inside, rank), _padding(op, rank), _fused(op)
    block = int(op.config("conv3d_config").get("c_in_block", 0))
    kernel, shape = _kernel((out, inside // groups, *size), block), op.outputs[0].shape
    if op.word("padding_mode", "zeros") != "zeros":
        op.fail(f"padding_mode = {op.text('padding_mode')} is not known")

    def run(x: Any, weights: Any, *bias: Any) -> Any:
        made = lax.conv_general_dilated(
            *(image(x), kernel(weights), stride, padding),
            rhs_dilation=dilation,
            dimension_numbers=_NUMBERS[rank],
            feature_group_count=groups,
        )
        for value in bias:
            made = made + jnp.ravel(value)[:out]
        return jnp.reshape(last(made), shape)

    return run


def _channels(op: Op) -> tuple[int, int, int]:
    """Return the numbers of input channels, of output channels, and of groups."""
    return op.integer("in_channels"), op.integer("out_channels"), op.integer("groups")


def conv_transpose2d(op: Op) -> Function:
    """A transposed convolution; weights are (in, out, rows, columns)."""
    inside, out, groups = _channels(op)
    size, stride, dilation = (each(op, key, 2) for key in ("kernel_size", "stride", "dilation"))
    image, last, extra = _image(op, inside), _fused(op), each(op, "output_padding", 2, 0)
    if groups != 1:
        op.fail(f"groups = {groups} of a transposed convolution is not known")
    found = op.integers("padding", (0, 0))
    top, left, bottom, right = found if len(found) == 4 else (*found, *found)
    padding = transposed([(top, bottom), (left, right)], size, dilation, extra)

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


def transposed(padding: Pairs, size: Shape, dilation: Shape, extra: Shape) -> Pairs:
    """Return the padding of the plain convolution that computes a transposed one with `padding`."""
    reach = [(n - 1) * d for n, d in zip(size, dilation, strict=True)]
    ends = zip(padding, reach, extra, strict=True)
    return [(most - low, most - high + more) for (low, high), most, more in ends]


def pool(op: Op) -> Function:
    """The largest element of each window, or the mean; windows may begin in the padding."""
    extents = op.integer("input_height"), op.integer("input_width")
    image = _image(op, op.integer("channels"))
    return pooled(op, each(op, "kernel_size", 2), _padding(op, 2), extents, image)


def pooled(op: Op, size: Shape, padding: Pairs, extents: Shape, image: Function) -> Function:
    """Return `pool` of images (batch, height, width, channels), which `image` makes of operands."""
    stride, dilation = each(op, "stride", 2), each(op, "dilation", 2)
    shape, whole = op.outputs[0].shape, padding
    if op.flag("ceil_mode", False):
        whole = _ceiled(extents, padding, size, stride, dilation)

    def window(x: Any, start: Any, function: Any, pads: Pairs = whole) -> Any:
        pads = [(0, 0), *pads, (0, 0)]
        steps = ((1, *size, 1), (1, *stride, 1), pads, (1, 1, 1, 1), (1, *dilation, 1))
        return lax.reduce_window(x, start, function, *steps)

    if op.name == "max_pool2d":
        return lambda x: jnp.reshape(window(image(x), -jnp.inf, lax.max), shape)
    if op.name == "max_pool2d_with_indices":
        return lambda x: [jnp.reshape(v, shape) for v in _with_places(image(x), window)]
    divisor, counted = op.integer("divisor_override", None), op.flag("count_include_pad", True)
    if divisor is None and counted and whole == padding:
        divisor = prod(size)
    inside = padding if counted else [(0, 0), (0, 0)]
    pairs = zip(whole, inside, strict=True)
    outside = [(low - before, high - after) for (low, high), (before, after) in pairs]

    def mean(x: Any) -> Any:
        x = image(x)
        made = window(x, 0.0, lax.add)
        if divisor is not None:
            return jnp.reshape(made / divisor, shape)
        # A window at the end is divided by its elements in the image and in the stated padding.
        sizes = [n + low + high for n, (low, high) in zip(extents, inside, strict=True)]
        ones = jnp.ones((x.shape[0], *sizes, x.shape[3]), x.dtype)
        return jnp.reshape(made / window(ones, 0.0, lax.add, outside), shape)

    return mean


def _with_places(x: Any, window: Function) -> tuple[Any, Any]:
    """Return the largest of each window, and its row-major place in the image, first of equals."""
    rows, columns = x.shape[1:3]
    place = jnp.reshape(jnp.arange(rows * columns), (1, rows, columns, 1))

    def larger(one: Any, other: Any) -> Any:
        is_other = (other[0] > one[0]) | ((other[0] == one[0]) & (other[1] < one[1]))
        return tuple(jnp.where(is_other, b, a) for a, b in zip(one, other, strict=True))

    places = jnp.broadcast_to(place, x.shape)
    first = (jnp.asarray(-jnp.inf, x.dtype), jnp.asarray(rows * columns, places.dtype))
    return window((x, places), first, larger)


def _ceiled(extents: Shape, padding: Pairs, size: Any, stride: Any, dilation: Any) -> Pairs:
    """Return the padding extended for a last window that is not full."""
    made = []
    for n, (low, high), k, s, d in zip(extents, padding, size, stride, dilation, strict=True):
        over = n + low + high - d * (k - 1) - 1
        count = -(-over // s)
        if count * s >= n + low:  # that window would begin in the padding after the image
            count -= 1
        made.append((low, high + max(0, count * s - over)))
    return made


def upsample(op: Op) -> Function:
    """Images (batch, height, width, channels), each pixel repeated, or interpolated linearly."""
    factors, mode = each(op, "scale_factor", 2), op.word("mode", "nearest")
    if not op.flag("channel_last", True):
        op.fail("channels that are not the last dim are not known")
    n, height, width, channels = op.inputs[0].shape
    shape = (n, height * factors[0], width * factors[1], channels)
    if mode not in ("nearest", "bilinear"):
        op.fail(f"mode = {mode} is neither nearest nor bilinear")
    if mode == "bilinear":  # pixels are at half numbers; beyond the outermost ones, nothing changes
        return lambda x: jax.image.resize(x, shape, "linear", antialias=False)
    return lambda x: jnp.repeat(jnp.repeat(x, factors[0], 1), factors[1], 2)


def global_mean(op: Op) -> Function:
    """The mean of each channel over height and width."""
    return lambda x: jnp.mean(x, (1, 2), keepdims=True)


FUNCTIONS = {
    "avg_pool2d": pool,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), convolution),
    "conv_transpose2d": conv_transpose2d,
    "global_avg_pool2d": global_mean,
    "upsample": upsample,
    **dict.fromkeys(("max_pool2d", "max_pool2d_with_indices"), pool),
    "prepare_conv2d_bias": prepare_bias,
    **dict.fromkeys(("prepare_conv2d_weights", "prepare_conv3d_weights"), prepare_weights),
}
