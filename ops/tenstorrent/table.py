"""The table of known ops of TTNN and TTIR, and the building of their functions.

A function takes the operands' logical arrays and returns those of the results. 16-bit floats are
computed as float32 and rounded once, when the result is stored, as chips do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.ops.tenstorrent import (
    attention,
    caches,
    elementwise,
    indexing,
    quantizing,
    shapes,
    sums,
    ttir,
    windows,
)
from gridlayout.ops.tenstorrent.chips import BETWEEN, mapped
from gridlayout.ops.tenstorrent.operation import Function, Op
from gridlayout.ops.tenstorrent.quantizing import check_quantized, rounded
from gridlayout.tenstorrent.tensor_type import TensorType

FUNCTIONS: dict[str, Callable[[Op], Function]] = {
    **attention.FUNCTIONS,
    **caches.FUNCTIONS,
    **elementwise.FUNCTIONS,
    **indexing.FUNCTIONS,
    **shapes.FUNCTIONS,
    **sums.FUNCTIONS,
    **windows.FUNCTIONS,
}
DIALECTS = {"ttnn": FUNCTIONS, "ttir": {**FUNCTIONS, **ttir.FUNCTIONS, **quantizing.FUNCTIONS}}
# Ops without results, or whose result is a device; there is only one device here.
WITHOUT_VALUES = ("deallocate", "get_device")


def function_of(op: Op, mesh: Shape) -> Function:
    """Return the op's function of arrays of the stated types; its results are to be `stored`.

    mesh: for several chips, the leading dims of arrays of all chips' tensors; else ().
    `LayoutError` with the op's line for an unknown op, and where shapes do not follow from the
    operands.
    """
    if op.name not in DIALECTS[op.dialect] and op.name not in BETWEEN:
        op.fail("there is no such op in the table of known ops")
    try:
        run = _built(op, mesh)
        arrays = [jax.ShapeDtypeStruct((*mesh, *x.shape), x.dtype) for x in op.inputs]
        follow = [x.shape[len(mesh) :] for x in jax.eval_shape(run, *arrays)]
    except LayoutError as error:
        # The error may be about a part of the text, without a line: add the op's line.
        own = f"line {op.line}: {op.found.name}: "
        op.fail(re.sub(r"^line \d+: ", "", str(error).removeprefix(own)))
    except TypeError as error:
        if "positional argument" not in str(error):
            op.fail(f"its operands and attributes are not compatible: {str(error)[:300]}")
        op.fail(f"it does not take {len(op.inputs)} operands")
    except Exception as error:  # JAX raises several types for incompatible shapes
        op.fail(f"its operands and attributes are not compatible: {str(error)[:300]}")
    stated = [out.shape for out in op.outputs]
    if follow != stated:
        op.fail(f"the shapes {follow} follow from the operands, but the types state {stated}")
    op.check_all_read()
    return run


def _built(op: Op, mesh: Shape) -> Function:
    """Return the op's function of all chips' tensors, before results are stored."""
    if op.name in BETWEEN and mesh:
        return listed(BETWEEN[op.name](op, mesh))
    if op.name in BETWEEN:  # on a mesh of one chip
        between = listed(BETWEEN[op.name](op, (1, 1)))
        return lambda *arrays: [x[0, 0] for x in between(*(x[None, None] for x in arrays))]
    check_quantized(op)
    made = listed(DIALECTS[op.dialect][op.name](op))
    computed = made if op.name in shapes.FUNCTIONS else lambda *xs: made(*map(_wide, xs))
    return mapped(computed, mesh) if mesh else computed


def listed(function: Function) -> Function:
    """Return the function with its results in a list, also if there is only one."""

    def run(*arrays: Any) -> list[Any]:
        found = function(*arrays)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    return run


def _wide(x: Any) -> Any:
    is_narrow = jnp.issubdtype(x.dtype, jnp.floating) and x.dtype.itemsize < 4
    return x.astype(jnp.float32) if is_narrow else x


def stored(x: Any, out: TensorType) -> Any:
    """Return a value as its type stores it."""
    if out.tile_format:  # a value of a block format is exact in bfloat16, so it is rounded once
        x = rounded(x.astype(jnp.float32), out.tile_format)
    return x.astype(out.dtype)
