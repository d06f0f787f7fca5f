"""The rules: how each lax primitive runs on storage, per shard, with padding carried as a fact.

A rule is a function `(ctx, eqn, *values) -> (how, result)`, or `-> None` where it knows none for
these values. To add one, write it in the module of its kind and name it here; users add theirs with
`def_rule`. Primitives without a rule fall back, and the report says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax.extend import core

from gridlayout.errors import LayoutError
from gridlayout.ops import values as v
from gridlayout.ops.along import ALONG
from gridlayout.ops.convolution import conv_general_dilated
from gridlayout.ops.dot import dot_general
from gridlayout.ops.elementwise import ELEMENTWISE, barrier, elementwise, key
from gridlayout.ops.fourier import fft
from gridlayout.ops.indexing import INDEXING
from gridlayout.ops.linalg import LINALG
from gridlayout.ops.pooling import POOLING
from gridlayout.ops.reductions import NEUTRAL, bitwise, own_function, reduction
from gridlayout.ops.report import RULE, Cost
from gridlayout.ops.shapes import (
    broadcast_in_dim,
    identity,
    reshape,
    squeeze,
    transpose,
    with_layout,
)
from gridlayout.ops.values import Context
from gridlayout.ops.vectors import VECTORS

RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(NEUTRAL, reduction),
    "reduce_xor": bitwise,
    "reduce": own_function,
    **ALONG,
    **VECTORS,
    **INDEXING,
    **POOLING,
    **LINALG,
    "conv_general_dilated": conv_general_dilated,
    "dot_general": dot_general,
    "fft": fft,
    "broadcast_in_dim": broadcast_in_dim,
    "transpose": transpose,
    "squeeze": squeeze,
    "reshape": reshape,
    **dict.fromkeys(("reshard", "sharding_constraint", "mesh_cast", "device_put"), identity),
    "optimization_barrier": barrier,
    **dict.fromkeys(("random_seed", "random_wrap", "random_fold_in"), key),
    "with_layout": with_layout,
}

# Grows with every rule a user adds, so that no program compiled before is taken for one of now.
_added = 0


def rules_version() -> int:
    """A number that changes when a rule is added."""
    return _added


def def_rule(
    primitive: core.Primitive | str, cost: Callable[..., Cost] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a lax primitive a rule, in place of the one it has or of the fallback.

    primitive: a `jax.extend.core.Primitive`, or its name. The decorated function is called as
    `rule(eqn, *values)`: the equation of the jaxpr (`eqn.params`; `eqn.outvars[0].aval` has shape
    and dtype), and its operands, `GridArray`s or, where no core holds them, plain arrays. It
    returns the result, a `GridArray` or an array, or a list of them if the primitive has several;
    or None, and the primitive runs as it would without this rule. `gl.map_shards`, `gl.relayout`
    and `gl.numpy` are there to write it with. cost: `cost(eqn, *layouts) -> gl.Cost`, what the
    report says of it. Derivatives are taken of the primitive, not of the rule. `LayoutError` for
    what is no primitive, and where a result has another shape or dtype than the primitive's.

    >>> import jax, numpy as np
    >>> from gridlayout import DeviceGrid, GridLayout, map_shards, on_grid, put
    >>> before = RULES["ceil"]
    >>> @def_rule("ceil")
    ... def rule(eqn, x):
    ...     return map_shards(lambda shard: -jax.numpy.floor(-shard), x, out=x.layout)
    >>> x = put(np.float32([0.25, 1.5]), GridLayout((2,), grid=(2,)), DeviceGrid((1,)))
    >>> on_grid(jax.lax.ceil)(x).to_logical().tolist()
    [1.0, 2.0]
    >>> RULES["ceil"] = before
    """
    name = primitive.name if isinstance(primitive, core.Primitive) else primitive
    if not isinstance(name, str) or not name:
        raise LayoutError(f"def_rule takes a primitive or its name, not {primitive!r}")
    if cost is not None and not callable(cost):
        raise LayoutError(f"def_rule: cost must be a function of (eqn, *layouts), not {cost!r}")

    def define(rule: Callable[..., Any]) -> Callable[..., Any]:
        global _added
        if not callable(rule):
            raise LayoutError(f"def_rule: the rule of {name} must be a function, not {rule!r}")
        RULES[name] = _UserRule(name, rule, cost, RULES.get(name))
        _added += 1
        return rule

    return define


class _UserRule:
    """A user's function as a rule."""

    def __init__(self, name: str, rule: Any, cost: Any, before: Any) -> None:
        self.name, self.rule, self.cost, self.before = name, rule, cost, before

    def __call__(self, ctx: Context, eqn: Any, *values: Any) -> Any:
        operands = [
            v.on_cores(ctx, x) if v.layout_of(x) is not None else v.plain(ctx, x) for x in values
        ]
        found = self.rule(eqn, *operands)
        if found is None:
            return None if self.before is None else self.before(ctx, eqn, *values)
        outs = list(found) if eqn.primitive.multiple_results else [found]
        if len(outs) != len(eqn.outvars):
            raise LayoutError(
                f"the rule of {self.name} returns {len(outs)} results, the primitive "
                f"{len(eqn.outvars)}"
            )
        for out, var in zip(outs, eqn.outvars, strict=True):
            if (jnp.shape(out), jnp.result_type(out)) != (var.aval.shape, var.aval.dtype):
                raise LayoutError(
                    f"the rule of {self.name} returns {out!r}, but the primitive gives {var.aval}"
                )
        if self.cost is not None:
            ctx.stated = self.cost(eqn, *map(v.layout_of, values))
        return RULE, outs if eqn.primitive.multiple_results else outs[0]
