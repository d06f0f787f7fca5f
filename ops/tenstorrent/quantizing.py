"""Ops between floats and quantized numbers, whose types state scales and zero points.

`rounded` rounds to the values that tiles of a block format hold.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.arguments import Shape
from gridlayout.ops.tenstorrent.operation import Function, Op
from gridlayout.tenstorrent.quantized import Quantized
from gridlayout.tenstorrent.tensor_type import TensorType


def _meaning(op: Op, kind: TensorType) -> Quantized:
    """Return what the numbers of a type stand for."""
    found = kind.quantized
    if found is None:
        op.fail("its quantized operand or result has no type !quant.uniform")
    if found.axis is None and len(found.scales) == 1:
        return found
    axis, extents = found.axis, kind.shape
    if axis is None or axis >= len(extents) or len(found.scales) != extents[axis]:
        op.fail(f"{len(found.scales)} scales along dim {axis} do not fit the shape {extents}")
    return found


def _along(values: tuple[float, ...], axis: int | None, shape: Shape) -> Any:
    across = [len(values) if k == axis else 1 for k in range(len(shape))]
    return np.asarray(values, np.float32).reshape(across)


def _numbers(x: Any, zeros: Any, to: Quantized) -> Any:
    """Return floats in units of the scale as numbers: rounded to even, and within the type."""
    low, high = (np.float32(bound) for bound in (to.low, to.high))
    high = np.nextafter(high, np.float32(0)) if float(high) > to.high else high
    return jnp.clip(jnp.round(x) + zeros, low, high)


def _scaled(to: Quantized, shape: Shape) -> tuple[Any, Any]:
    """Return the scales and the zero points that a type states, along the dims of an array."""
    return _along(to.scales, to.axis, shape), _along(to.zeros, to.axis, shape)


def quantize(op: Op) -> Function:
    """round(x / scale) + zero point, within the range of the result's type."""
    to = _meaning(op, op.outputs[0])
    scale, zero = _scaled(to, op.outputs[0].shape)
    return lambda x: _numbers(x / scale, zero, to)


def dequantize(op: Op) -> Function:
    """(x - zero point) * scale."""
    scale, zero = _scaled(_meaning(op, op.inputs[0]), op.inputs[0].shape)
    return lambda x: (x.astype(jnp.float32) - zero) * scale


def requantize(op: Op) -> Function:
    """round((x - zero point) * scale / new scale) + new zero point, within the range."""
    to, shape = _meaning(op, op.outputs[0]), op.outputs[0].shape
    scale, zero = _scaled(_meaning(op, op.inputs[0]), shape)
    new_scale, new_zero = _scaled(to, shape)

    def run(x: Any) -> Any:
        return _numbers((x.astype(jnp.float32) - zero) * (scale / new_scale), new_zero, to)

    return run


def unrolled(op: Op) -> Function:
    """The same with scales and zero points that are operands: one number, or one along `axis`.

    Two operands for each quantized type, first that of the first operand.
    """
    axis = op.axis("axis", None) if op.has("axis") else None
    of, to = op.name != "quantize_unrolled", op.name != "dequantize_unrolled"
    types = [op.inputs[0]] * of + [op.outputs[0]] * to
    kinds = [_meaning(op, kind) for kind in types]
    if len(op.inputs) != 1 + 2 * len(types):
        op.fail(f"it does not take {len(op.inputs)} operands")
    shape = op.inputs[0].shape
    for each in op.inputs[1:]:
        if sum(n != 1 for n in each.shape) > 1 or np.prod(each.shape) not in (
            1,
            1 if axis is None else shape[axis],
        ):
            op.fail(f"an operand of shape {each.shape} is no number, nor one along axis {axis}")

    def run(x: Any, *given: Any) -> Any:
        across = [-1 if k == axis else 1 for k in range(len(shape))]
        values = [
            jnp.reshape(each.astype(jnp.float32), across if each.size > 1 else (1,) * len(shape))
            for each in given
        ]
        if of:
            x = (x.astype(jnp.float32) - values[1]) * values[0]
        return _numbers(x / values[-2], values[-1], kinds[-1]) if to else x

    return run


# Ops that only move numbers, whatever one scale they have.
_MOVES = frozenset(
    [
        *("reshape", "permute", "transpose", "broadcast", "squeeze", "unsqueeze", "repeat"),
        *("reverse", "slice_static", "index", "index_select", "concat", "assign", "clone"),
    ]
)


def check_quantized(op: Op) -> None:
    """Raise `LayoutError` for an op on quantized numbers that would compute with the numbers."""
    kinds = [kind.quantized for kind in (*op.inputs, *op.outputs)]
    if not any(kinds) or op.name in FUNCTIONS:
        return
    first = kinds[0]
    same = first is not None and first.axis is None and all(kind == first for kind in kinds)
    if op.name not in _MOVES or not same:
        op.fail(
            "it is known of quantized numbers only if it moves them, with one scale for all: "
            "dequantize them first"
        )


FUNCTIONS = {
    **{"dequantize": dequantize, "quantize": quantize, "requantize": requantize},
    **dict.fromkeys(("dequantize_unrolled", "quantize_unrolled", "requantize_unrolled"), unrolled),
}


_BITS = {"bfp_bf8": 7, "bfp_bf4": 3, "bfp_bf2": 1}
_GROUP = 16


def rounded(x: jax.Array, tile_format: str) -> jax.Array:
    """Return the values that tiles of a block format hold, as `gl.tenstorrent.bfp` encodes them.

    x: float32, float16 or bfloat16. Groups of 16 elements of the last dim share an exponent; each
    group begins at a multiple of 16. Padding of tiles is 0 and does not change the exponent. Values
    that `bfp` refuses are kept: infinities and NaN; finite elements in their group become 0.

    >>> rounded(jnp.asarray([1.0, -0.75, 0.3]), "bfp_bf8").tolist()
    [1.0, -0.75, 0.296875]
    """
    bits = _BITS[tile_format]
    row = x if x.ndim else x[None]
    width = row.shape[-1]
    pads = [(0, 0)] * (row.ndim - 1) + [(0, -width % _GROUP)]
    whole = jnp.pad(row.astype(jnp.float32), pads)
    groups = whole.reshape(*whole.shape[:-1], -1, _GROUP)
    pattern = lax.bitcast_convert_type(groups, jnp.uint32)
    exponent = (pattern >> 23) & 0xFF
    shared = jnp.max(exponent, axis=-1, keepdims=True)
    significand = jnp.where(exponent > 0, (pattern & 0x7FFFFF) | 0x800000, 0)
    aligned = significand >> jnp.minimum(shared - exponent, 31)
    magnitude = jnp.minimum(_nearest_even(aligned, 24 - bits), (1 << bits) - 1)
    # The step 2**(shared - 127 - (bits - 1)) as two factors, each of which is a normal number.
    half = shared.astype(jnp.int32) // 2
    steps = [half - 63, shared.astype(jnp.int32) - half - 63 - bits]
    value = magnitude.astype(jnp.float32)
    for step in steps:
        value = value * _power_of_two(step)
    value = jnp.where((pattern >> 31 > 0) & (magnitude > 0), -value, value)
    value = jnp.where(exponent == 0xFF, groups, jnp.where(shared == 0xFF, 0, value))
    made = value.reshape(whole.shape)[..., :width].astype(x.dtype)
    return made if x.ndim else made[0]


def _nearest_even(values: Any, dropped: int) -> Any:
    odd = (values >> dropped) & 1
    return (values + ((1 << (dropped - 1)) - 1) + odd) >> dropped


def _power_of_two(exponent: Any) -> Any:
    return lax.bitcast_convert_type((exponent + 127) << 23, jnp.float32)
