"""Ops of TTIR that differ from TTNN's ops of the same name. TTIR has no layouts yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.ops.tenstorrent import windows
from gridlayout.ops.tenstorrent.operation import Op

Function = Callable[..., Any]
Pairs = list[tuple[int, int]]


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
    """The index of the largest, or smallest, element along `dim_arg`, one dim or all."""
    function = {"argmax": jnp.argmax, "argmin": jnp.argmin}[op.name]
    op.facts["dims"] = axes = op.axes("dim_arg")
    if len(axes) not in (1, len(op.inputs[0].shape)):
        op.fail(f"dim_arg = {axes} must be one dim, or all")
    axis, keep = axes[0] if len(axes) == 1 else None, op.flag("keep_dim", False)
    return lambda x: function(x, axis=axis, keepdims=keep)


def dot_general(op: Op) -> Function:
    """Products summed along the contracted dims; batch dims come first in the result."""
    contract = op.integers("contract_dims_lhs"), op.integers("contract_dims_rhs")
    batch = op.integers("batch_dims_lhs"), op.integers("batch_dims_rhs")
    op.facts["contract"], op.facts["batch"] = contract, batch
    return lambda x, y: lax.dot_general(x, y, (contract, batch))


_SPATIAL = ("depth_dim", "height_dim", "width_dim")


def convolution(op: Op) -> Function:
    """A convolution of images; attributes name their dims.

    Weights are (out, in, *spatial dims); of a transposed convolution, (in, out, *spatial dims).
    """
    is_transposed = op.name == "conv_transpose2d"
    rank = len(op.inputs[0].shape) - 2
    spatial = ("length_dim",) if op.name == "conv1d" else _SPATIAL[-rank:]
    dims = tuple(op.axis(key) for key in ("batch_dim", "channel_dim", *spatial))
    stride, dilation = (windows.each(op, key, rank) for key in ("stride", "dilation"))
    groups, padding = op.integer("groups"), _padding(op, rank)
    if op.word("padding_mode", "zeros") != "zeros" or (is_transposed and groups != 1):
        op.fail("only zeros for padding and, where transposed, one group are known")
    if is_transposed:
        extra = windows.each(op, "output_padding", rank, 0)
        size = op.inputs[1].shape[2:]
        padding = windows.transposed(padding, size, dilation, extra)
    weights = (1, 0) if is_transposed else (0, 1)
    along = tuple(range(2, rank + 2))
    op.facts["image"] = dims[1], weights[0]
    names = lax.ConvDimensionNumbers(dims, (*weights, *along), dims)
    across = [1] * len(dims)
    across[dims[1]] = -1

    def run(x: Any, w: Any, *bias: Any) -> Any:
        made = lax.conv_general_dilated(
            *(x, jnp.flip(w, along) if is_transposed else w),
            *((1,) * rank if is_transposed else stride, padding),
            lhs_dilation=stride if is_transposed else (1,) * rank,
            rhs_dilation=dilation,
            dimension_numbers=names,
            feature_group_count=groups,
        )
        for value in bias:
            made = made + jnp.reshape(value, across)
        return made

    return run


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
    found = windows.pooled(op, size, padding, op.inputs[0].shape[1:3], lambda x: x)
    return lambda x, *buffers: found(x)


FUNCTIONS = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "conv_transpose2d"), convolution),
    **dict.fromkeys(("max_pool2d", "max_pool2d_with_indices", "avg_pool2d"), pool),
    **dict.fromkeys(("reduce_or", "reduce_and"), truths),
    **dict.fromkeys(("argmax", "argmin"), argument),
    "arange": arange,
    "broadcast": broadcast,
    "dot_general": dot_general,
    "pad": pad,
    "reverse": reverse,
}
