"""Running a jaxpr on `GridArray`s: one rule a primitive, nested calls followed, the rest recorded.

The derivative of a program on the grid is the derivative of the logical function, on the grid: see
`differentiable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from gridlayout.layout import Layout
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.relayout import relayout
from gridlayout.ops.report import FALLBACK, Row
from gridlayout.ops.rules import RULES
from gridlayout.ops.values import Context, Spread, layout_of, on_cores, plain

_CALLS = {
    **dict.fromkeys(("jit", "pjit"), "jaxpr"),
    **dict.fromkeys(
        ("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"
    ),
}


def evaluate(ctx: Context, closed: core.ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The values of a closed jaxpr's results, for these values of its arguments."""
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, core.Literal) else env[atom]

    skipped = _folded_transposes(jaxpr)
    for number, eqn in enumerate(jaxpr.eqns):
        if number in skipped.values():
            continue
        values = [read(atom) for atom in eqn.invars]
        follower = jaxpr.eqns[skipped[number]] if number in skipped else None
        outs = _equation(ctx, eqn, values, follower)
        env.update(zip((follower or eqn).outvars, outs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _folded_transposes(jaxpr: Any) -> dict[int, int]:
    """Products whose one use is a transpose: {equation of the product: of the transpose}.

    The backward pass of every matmul is made of these; the product then lands transposed at once.
    """
    uses: dict[Any, list[int]] = {}
    for number, eqn in enumerate(jaxpr.eqns):
        for atom in eqn.invars:
            if not isinstance(atom, core.Literal):
                uses.setdefault(atom, []).append(number)
    for atom in jaxpr.outvars:
        if not isinstance(atom, core.Literal):
            uses.setdefault(atom, []).append(-1)
    folded = {}
    for number, eqn in enumerate(jaxpr.eqns):
        if eqn.primitive.name == "dot_general":
            after = uses.get(eqn.outvars[0], [])
            if len(after) == 1 and after[0] >= 0:
                follower = jaxpr.eqns[after[0]]
                if follower.primitive.name == "transpose":
                    folded[number] = after[0]
    return folded


def _equation(ctx: Context, eqn: Any, values: list[Any], follower: Any) -> list[Any]:
    name = eqn.primitive.name
    if all(layout_of(value) is None for value in values):
        return _plainly(ctx, eqn, values)
    if name in _CALLS:
        inner = eqn.params[_CALLS[name]]
        if not isinstance(inner, core.ClosedJaxpr):
            inner = core.ClosedJaxpr(inner, ())
        return evaluate(ctx, inner, values)
    if name in _REBUILT:
        return _REBUILT[name](ctx, eqn, values)
    moved, masks = ctx.moved, ctx.masks
    if name in RULES:
        rule = RULES[name]
        how, out = rule(ctx, eqn, *values) if follower is None else rule(ctx, eqn, *values, follower)
        outs = list(out) if eqn.primitive.multiple_results else [out]
    else:
        how, outs = FALLBACK, _fallback(ctx, eqn, values)
    ctx.rows.append(
        Row(
            *(name, how, tuple(map(layout_of, values)), tuple(map(layout_of, outs))),
            *(ctx.moved - moved, ctx.masks - masks),
        )
    )
    return outs


def _plainly(ctx: Context, eqn: Any, values: list[Any]) -> list[Any]:
    """No core holds any operand: run it as it is; a broadcast waits until it is wanted."""
    if eqn.primitive.name == "broadcast_in_dim" and len(values) == 1:
        value, shape = values[0], tuple(eqn.params["shape"])
        if not isinstance(value, Spread) and shape != jnp.shape(value):
            if jnp.ndim(value) == 0:
                return [Spread(jnp.asarray(value, eqn.outvars[0].aval.dtype), (), shape)]
    return _run_alone(eqn, [plain(ctx, value) for value in values])


def _run_alone(eqn: Any, values: Sequence[Any]) -> list[Any]:
    """One equation on logical arrays, with the derivative rules that it carries."""
    known: dict[Any, Any] = {}
    for atom, value in zip(eqn.invars, values, strict=True):
        if not isinstance(atom, core.Literal):
            key = jnp.issubdtype(atom.aval.dtype, jax.dtypes.extended)
            known[atom] = value if key else jnp.asarray(value, atom.aval.dtype)
    used = [out for out in eqn.outvars if not isinstance(out, core.DropVar)]
    jaxpr = core.Jaxpr((), list(known), used, [eqn], effects=eqn.effects)
    outs = dict(zip(used, core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, ()))(*known.values()), strict=True))
    return [outs.get(out) for out in eqn.outvars]


def _fallback(ctx: Context, eqn: Any, values: list[Any]) -> list[Any]:
    """No rule: every device gets the logical operands, runs the primitive, and keeps its part."""
    like = next(layout for layout in map(layout_of, values) if layout is not None)
    outs = _run_alone(eqn, [plain(ctx, value) for value in values])
    return [_laid_out(ctx, out, like) for out in outs]


def _laid_out(ctx: Context, out: Any, like: Layout | None) -> Any:
    if out is None or jnp.ndim(out) == 0 or jnp.issubdtype(out.dtype, jax.dtypes.extended):
        return out
    return on_cores(ctx, out, like=like)


def _remat(ctx: Context, eqn: Any, values: list[Any]) -> list[Any]:
    closed = core.ClosedJaxpr(eqn.params["jaxpr"], ())
    values = settled(ctx, values)
    if eqn.params["differentiated"] and eqn.params["prevent_cse"]:
        # The backward pass computes this part again; keep XLA from finding the first result.
        values = lax.optimization_barrier(values)

    def call(*args: Any) -> list[Any]:
        return settled(ctx, evaluate(ctx, closed, args))

    options = {name: eqn.params[name] for name in ("prevent_cse", "policy")}
    return list(jax.checkpoint(call, **options)(*values))


# -- derivatives -------------------------------------------------------------------------------


def differentiable(ctx: Context, closed: core.ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
    """`evaluate`, with the derivative of the logical function for its own.

    The derivative is taken of the jaxpr on logical shapes and evaluated by the same rules: padding
    takes no part in it, custom derivative rules hold, and it may be taken again. It is reverse-mode;
    forward mode goes inside the function.
    """
    # Constants may be tracers of an outer differentiation: they become arguments like the others.
    outer = closed.jaxpr
    jaxpr = core.ClosedJaxpr(
        core.Jaxpr(
            *((), [*outer.constvars, *outer.invars], outer.outvars, outer.eqns, outer.effects),
            outer.debug_info,
        ),
        (),
    )
    values = [v if hasattr(v, "dtype") else jnp.asarray(v) for v in (*closed.consts, *values)]
    structure: dict[str, Any] = {}  # of the logical vjp, a pytree: from forward to backward

    @jax.custom_vjp
    def call(*args: Any) -> list[Any]:
        return settled(ctx, evaluate(ctx, jaxpr, args))

    def forward(*args: Any) -> Any:
        inexact = [_is_inexact(v) for v in args]

        def vjp(*arrays: Any) -> Any:
            def logical(*x: Any) -> list[Any]:
                mine = iter(x)
                merged = [next(mine) if yes else a for a, yes in zip(arrays, inexact, strict=True)]
                return list(core.jaxpr_as_fun(jaxpr)(*merged))

            x = [a for a, yes in zip(arrays, inexact, strict=True) if yes]
            outs, pull = jax.vjp(logical, *x)
            leaves, structure["pull"] = jax.tree.flatten(pull)
            structure["count"] = len(outs)
            return [*outs, *leaves]

        found = differentiable(ctx.fresh(), jax.make_jaxpr(vjp)(*map(_aval, args)), args)
        count = structure["count"]
        return found[:count], (found[count:], args)

    def backward(saved: Any, cotangents: Any) -> Any:
        leaves, args = saved
        # An integer result has a cotangent of type float0, which is no array.
        given = [c for c in cotangents if c.dtype != jax.dtypes.float0]

        def pull(*arrays: Any) -> Any:
            mine = iter(arrays[len(leaves) :])
            full = [c if c.dtype == jax.dtypes.float0 else next(mine) for c in structure["cts"]]
            return list(jax.tree.unflatten(structure["pull"], arrays[: len(leaves)])(full))

        structure["cts"] = [
            np.zeros(c.shape, c.dtype) if c.dtype == jax.dtypes.float0 else c for c in cotangents
        ]
        operands = [*leaves, *map(_unknown, given)]
        own = ctx.fresh()
        found = iter(differentiable(own, jax.make_jaxpr(pull)(*map(_aval, operands)), operands))
        return tuple(_like(own, next(found), a) if _is_inexact(a) else None for a in args)

    call.defvjp(forward, backward)
    return list(call(*values))


def settled(ctx: Context, values: Sequence[Any]) -> list[Any]:
    """The values with every spread one made, fit to cross a JAX call."""
    return [
        v if not isinstance(v, Spread) else on_cores(ctx, v) if layout_of(v) else plain(ctx, v)
        for v in values
    ]


def _is_inexact(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def _aval(value: Any) -> Any:
    weak = not isinstance(value, GridArray) and getattr(value, "weak_type", False)
    return jax.ShapeDtypeStruct(value.shape, value.dtype, weak_type=bool(weak))


def _unknown(value: Any) -> Any:
    """A cotangent: laid out like its primal, but nothing is known of its padding."""
    if not isinstance(value, GridArray):
        return value
    return GridArray(value.storage, value.layout.with_oob(None), value.device)


def _like(ctx: Context, value: Any, like: Any) -> Any:
    """The value in the pytree of `like`: the same layout, its padding as that layout says."""
    if not isinstance(like, GridArray):
        return jnp.asarray(plain(ctx, value), like.dtype)
    value = on_cores(ctx, value, like.layout)
    return relayout(value, like.layout)


_REBUILT: dict[str, Callable[[Context, Any, list[Any]], list[Any]]] = {
    "checkpoint": _remat,
    "remat": _remat,
    "remat2": _remat,
}
