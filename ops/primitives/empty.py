"""Rules for primitives some of whose operands or results have no elements.

They leave these out and decide the primitive on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.specs import Replicated
from gridlayout.ops.decisions.value import Value


def without_elements(b: Builder, avals: Sequence[Aval], like: Value) -> list[Value]:
    """Return arrays without elements, laid out like `like`; nothing is communicated."""
    outs = [Replicated(aval.shape, aval.dtype) for aval in avals]
    made = b.run(lambda: [jnp.zeros(out.shape, out.dtype) for out in outs], [], outs)
    return [b.as_sharded(out, like=like) for out in made]


def concatenate(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for a concatenation of only the arrays that have elements."""
    some = [x for x in values if 0 not in x.shape]
    if len(some) == 1:
        return b.as_sharded(some[0], like=next(x for x in values if x.layout is not None))
    return b.call(Op.made(op.primitive, op.params, *some), *some)


def split(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a split into only the parts that have elements."""
    full = [aval for aval in op.outs if 0 not in aval.shape]
    made = [value]
    if len(full) > 1:
        sizes = tuple(aval.shape[op.params["axis"]] for aval in full)
        made = b.call(Op.made(op.primitive, {**op.params, "sizes": sizes}, value), value)
    parts = iter(made)
    return [
        without_elements(b, [aval], value)[0] if 0 in aval.shape else next(parts)
        for aval in op.outs
    ]


def unchanged(b: Builder, op: Op, value: Value, *others: Value) -> Any:
    """Return the array itself if the update has no elements; None otherwise.

    Otherwise only the indices are empty, as they name no dim.
    """
    new = others[0] if op.name == "dynamic_update_slice" else others[1]
    if 0 not in new.shape:
        return None
    return b.as_sharded(value, like=next(x for x in (value, *others) if x.layout is not None))
