"""Ops between floats and quantized numbers, whose types state scales and zero points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from gridlayout.arguments import Shape
from gridlayout.ops.tenstorrent.operation import Op
from gridlayout.tenstorrent.quantized import Quantized
from gridlayout.tenstorrent.tensor_type import TensorType

Function = Callable[..., Any]


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


def _numbers(x: Any, to: Quantized, shape: Shape) -> Any:
    """Return floats in units of the scale as numbers: rounded to even, and within the type."""
    low, high = (np.float32(bound) for bound in (to.low, to.high))
    high = np.nextafter(high, np.float32(0)) if float(high) > to.high else high
    return jnp.clip(jnp.round(x) + _along(to.zeros, to.axis, shape), low, high)


def quantize(op: Op) -> Function:
    """round(x / scale) + zero point, within the range of the result's type."""
    to, shape = _meaning(op, op.outputs[0]), op.outputs[0].shape
    return lambda x: _numbers(x / _along(to.scales, to.axis, shape), to, shape)


def dequantize(op: Op) -> Function:
    """(x - zero point) * scale."""
    of, shape = _meaning(op, op.inputs[0]), op.inputs[0].shape

    def run(x: Any) -> Any:
        away = x.astype(jnp.float32) - _along(of.zeros, of.axis, shape)
        return away * _along(of.scales, of.axis, shape)

    return run


def requantize(op: Op) -> Function:
    """round((x - zero point) * scale / new scale) + new zero point, within the range."""
    of, to = _meaning(op, op.inputs[0]), _meaning(op, op.outputs[0])
    shape = op.outputs[0].shape
    scales = [_along(each.scales, each.axis, shape) for each in (of, to)]

    def run(x: Any) -> Any:
        away = x.astype(jnp.float32) - _along(of.zeros, of.axis, shape)
        return _numbers(away * (scales[0] / scales[1]), to, shape)

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


FUNCTIONS = {"dequantize": dequantize, "quantize": quantize, "requantize": requantize}
