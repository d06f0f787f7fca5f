"""Primitives that are composed of others: the planner plans their implementation instead.

Most primitives of libraries are of this kind. They exist for their derivative and `vmap` rules,
which have been applied before planning, and their implementation is a JAX function.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import jax

from gridlayout.caching import cached
from gridlayout.ops.decisions.env import trace_context
from gridlayout.ops.decisions.jaxprs import equations_of, jaxprs_in
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.primitives.sparse import bcoo_dot_general

# Implementations of primitives whose own `impl` JAX compiles, so that it can't be traced.
_COMPOSITIONS: dict[str, Callable[..., Any]] = {"bcoo_dot_general": bcoo_dot_general}


def composition(op: Op) -> Any:
    """Return the closed jaxpr of an op's implementation; None if JAX can't trace that."""
    try:
        return _cached(op, trace_context())
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
    return _trace(op)


@cached
def _cached(op: Op, context: Hashable) -> Any:
    return _trace(op)


def _trace(op: Op) -> Any:
    run = _implementation(op)
    given = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in op.ins]
    try:
        closed = jax.make_jaxpr(run)(*given)
    except Exception:
        return None  # it needs concrete arrays, such as buffers or the host
    if [(x.shape, x.dtype) for x in closed.out_avals] != [(x.shape, x.dtype) for x in op.outs]:
        return None
    return None if _is_only(closed, op.primitive) else closed


def _implementation(op: Op) -> Callable[..., Any]:
    """Return the implementation of an op as a function of its operands."""
    if (hi := op.params.get("_prim")) is not None:  # a hijax primitive, which takes trees
        return lambda *arrays: jax.tree.leaves(hi.expand(*jax.tree.unflatten(hi.in_tree, arrays)))
    return partial(_COMPOSITIONS.get(op.name) or op.primitive.impl, **op.params)


def _is_only(jaxpr: Any, primitive: Any) -> bool:
    """Whether a jaxpr only applies this primitive, as for those that JAX compiles directly."""
    found = equations_of(jaxpr)
    if len(found) != 1:
        return False
    inner = jaxprs_in(found[0].params)
    return found[0].primitive is primitive or any(_is_only(each, primitive) for each in inner)
