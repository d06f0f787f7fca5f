"""Primitives that are made of others: what they are made of is planned in their place.

A library's own primitives are mostly this: JAX runs them as functions of its own, and they are
there for what derivatives or `vmap` make of them, which is settled before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, partial
from typing import Any

import jax

from gridlayout.ops.decisions.env import trace_context
from gridlayout.ops.decisions.jaxprs import jaxprs_in
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.rules.sparse import bcoo_dot_general

# Of primitives that JAX itself runs compiled, and so says nothing of what they are made of.
_STATED: dict[str, Callable[..., Any]] = {"bcoo_dot_general": bcoo_dot_general}


def composition(op: Op) -> Any:
    """The closed jaxpr of an op's implementation; None where it is no function of JAX's."""
    try:
        return _remembered(op, trace_context())
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
    return _traced(op)


@lru_cache(maxsize=1 << 12)
def _remembered(op: Op, context: Hashable) -> Any:
    return _traced(op)


def _traced(op: Op) -> Any:
    run = _implementation(op)
    given = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in op.ins]
    try:
        closed = jax.make_jaxpr(run)(*given)
    except Exception:
        return None  # it is one of concrete arrays: of files, of buffers, of the host
    if [(x.shape, x.dtype) for x in closed.out_avals] != [(x.shape, x.dtype) for x in op.outs]:
        return None
    return None if _is_one(closed.jaxpr, op.primitive) else closed


def _implementation(op: Op) -> Callable[..., Any]:
    """What JAX runs for an op, as a function of its operands."""
    if (hi := op.params.get("_prim")) is not None:  # of `jax.experimental.hijax`: of trees
        return lambda *arrays: jax.tree.leaves(hi.expand(*jax.tree.unflatten(hi.in_tree, arrays)))
    return partial(_STATED.get(op.name) or op.primitive.impl, **op.params)


def _is_one(jaxpr: Any, primitive: Any) -> bool:
    """Whether all that a jaxpr does is this primitive: JAX compiles it by itself."""
    if len(jaxpr.eqns) != 1:
        return False
    (eqn,) = jaxpr.eqns
    inner = jaxprs_in(eqn.params)
    return eqn.primitive is primitive or any(_is_one(each, primitive) for each in inner)
