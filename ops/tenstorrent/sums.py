"""Ops along dims: reductions, norms, softmax, sorting; and matrix products."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.ops.tenstorrent.elementwise import activation
from gridlayout.ops.tenstorrent.operation import Function, Op


def _bits(function: Function, start: int) -> Function:
    """Return a reduction of the elements' bits; `start` is its neutral element."""

    def run(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        first = jnp.asarray(start, jnp.int32).astype(x.dtype)
        made = lax.reduce(x, first, function, axis)
        return jnp.expand_dims(made, axis) if keepdims else made

    return run


_REDUCTIONS: dict[str, Function] = {
    "sum": jnp.sum,
    "mean": jnp.mean,
    "max": jnp.max,
    "min": jnp.min,
    "prod": jnp.prod,
    "reduce_bitwise_and": _bits(lax.bitwise_and, -1),
    "reduce_bitwise_or": _bits(lax.bitwise_or, 0),
    "reduce_bitwise_xor": _bits(lax.bitwise_xor, 0),
}
_CUMULATIVE: dict[str, Function] = {
    "sum": lax.cumsum,
    "prod": lax.cumprod,
    "max": lax.cummax,
    "min": lax.cummin,
    "logsumexp": lax.cumlogsumexp,
}


def reduction(op: Op) -> Function:
    """A reduction along the dims `dim_arg`, or along all."""
    function, axes, keep = _REDUCTIONS[op.name], op.axes("dim_arg"), op.flag("keep_dim", False)
    op.facts["dims"] = axes
    return lambda x: function(x, axis=axes, keepdims=keep)


def argument(op: Op) -> Function:
    """The index of the largest or smallest element along `dim`, or in all; the first of equals."""
    function = {"argmax": jnp.argmax, "argmin": jnp.argmin}[op.name]
    axis = op.axis("dim") if op.has("dim") else None
    op.facts["dims"] = range(len(op.inputs[0].shape)) if axis is None else (axis,)
    keep = op.flag("keep_dim", False)
    return lambda x: function(x, axis=axis, keepdims=keep)


def softmax(op: Op) -> Function:
    """The softmax along `dimension`."""
    axis = op.axis("dimension")
    return lambda x: jax.nn.softmax(x, axis)


def cumulative(op: Op) -> Function:
    """A running sum, or other reduction, along `dim`; from the end with `reverse`."""
    axis, back = op.axis("dim"), op.flag("reverse", False)
    how = op.word("reduction") if op.name == "cumulative" else op.name.removeprefix("moreh_cum")
    how = how.removeprefix("cum")
    if how not in _CUMULATIVE:
        op.fail(f"reduction = {how} is not known")
    return lambda x: _CUMULATIVE[how](x, axis, reverse=back)


def norm(op: Op) -> Function:
    """Rows scaled to mean square 1 (`layer_norm`: minus the mean), times a weight, plus a bias.

    A row has the last dims: those of `normalized_shape` in TTIR, one in TTNN.
    """
    shape, centred = op.inputs[0].shape, op.name == "layer_norm"
    epsilon = op.number("epsilon", 1e-5 if op.dialect == "ttir" else 1e-12)
    row = op.integers("normalized_shape", shape[-1:])
    if not row or shape[-len(row) :] != row:
        op.fail(f"normalized_shape {row} is not the end of the shape {shape}")
    has_weight, has_bias = op.present(3)[1:3]
    axes = tuple(range(-len(row), 0))

    def run(x: Any, *rest: Any) -> Any:
        values = list(rest)
        if centred:
            x = x - jnp.mean(x, axes, keepdims=True)
        x = x * lax.rsqrt(jnp.mean(x * x, axes, keepdims=True) + epsilon)
        if has_weight:
            x = x * jnp.reshape(values.pop(0), row)
        return x + jnp.reshape(values.pop(0), row) if has_bias else x

    return run


def group_norm(op: Op) -> Function:
    """Elements of each group of channels scaled to mean 0 and variance 1, times a weight, plus a
    bias. The mask, which says what chips read for a group, changes no value."""
    shape, groups = op.inputs[0].shape, op.integer("num_groups")
    axis, epsilon = op.axis("channel_dim", 3), op.number("epsilon", 1e-12)
    if groups < 1 or shape[axis] % groups:
        op.fail(f"{shape[axis]} channels are no {groups} equal groups")
    has_mask, has_weight, has_bias = op.present(4)[1:]
    grouped = (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
    axes = tuple(k for k in range(1, len(grouped)) if k != axis)
    across = [1] * len(shape)
    across[axis] = -1

    def run(x: Any, *rest: Any) -> Any:
        values = list(rest[has_mask:])
        x = jnp.reshape(x, grouped)
        x = x - jnp.mean(x, axes, keepdims=True)
        x = x * lax.rsqrt(jnp.mean(x * x, axes, keepdims=True) + epsilon)
        x = jnp.reshape(x, shape)
        if has_weight:
            x = x * jnp.reshape(values.pop(0), across)
        return x + jnp.reshape(values.pop(0), across) if has_bias else x

    return run


def sort(op: Op) -> Function:
    """The values along `dim` in order, and their former indices."""
    axis, down = op.axis("dim", -1), op.flag("descending", False)

    def run(x: Any) -> tuple[Any, Any]:
        order = jnp.argsort(x, axis, stable=True, descending=down)
        return jnp.take_along_axis(x, order, axis), order

    return run


def topk(op: Op) -> Function:
    """The `k` largest along `dim` in order, and their former indices."""
    axis, count = op.axis("dim", -1), op.integer("k")
    if not op.flag("largest", True):
        op.fail("the smallest ones, largest = false, are not known")

    def run(x: Any) -> tuple[Any, Any]:
        values, order = lax.top_k(jnp.moveaxis(x, axis, -1), count)
        return jnp.moveaxis(values, -1, axis), jnp.moveaxis(order, -1, axis)

    return run


def matmul(op: Op) -> Function:
    """A matrix product with broadcast batch dims, a bias, and fused activations."""
    op.facts["flips"] = flips = op.flag("transpose_a", False), op.flag("transpose_b", False)
    last = [activation(op, text) for text in _fused(op)]

    def run(x: Any, y: Any, *bias: Any) -> Any:
        x, y = (jnp.swapaxes(v, -1, -2) if f else v for v, f in zip((x, y), flips, strict=True))
        made = jnp.matmul(x, y)
        for value in bias:
            made = made + value
        for function in last:
            made = function(made)
        return made

    return run


def _fused(op: Op) -> list[str]:
    """Return the texts of activations: of the op, and of its program config."""
    found = [text for text in (op.text("activation", ""),) if text]
    config = op.config("matmul_program_config")
    return [*found, *(config[key] for key in ("fused_activation",) if key in config)]


def rotary(op: Op) -> Function:
    """x * cos + (the halves of its last dim swapped, the first one negated) * sin.

    The result may have more rows, which fill a tile: padding of value 0.
    """
    more = op.outputs[0].shape[-2] - op.inputs[0].shape[-2]
    if more < 0 or op.inputs[0].shape[-1] % 2:
        op.fail(f"{op.inputs[0].shape} does not turn into {op.outputs[0].shape}")

    def run(x: Any, cos: Any, sin: Any) -> Any:
        first, last = jnp.split(x, 2, -1)
        made = x * cos + jnp.concatenate([-last, first], -1) * sin
        return jnp.pad(made, [*[(0, 0)] * (made.ndim - 2), (0, more), (0, 0)])

    return run


FUNCTIONS = {
    **dict.fromkeys(_REDUCTIONS, reduction),
    **dict.fromkeys(("argmax", "argmin"), argument),
    **dict.fromkeys(("cumsum", "moreh_cumsum", "cumprod", "cumulative"), cumulative),
    **dict.fromkeys(("layer_norm", "rms_norm"), norm),
    "group_norm": group_norm,
    **dict.fromkeys(("matmul", "linear"), matmul),
    "rotary_embedding": rotary,
    "softmax": softmax,
    "sort": sort,
    "topk": topk,
}
