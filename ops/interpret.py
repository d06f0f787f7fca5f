"""Running a jaxpr on `GridArray`s: one rule a primitive, nested calls followed, the rest recorded.

The derivative of a program on the grid is the derivative of the logical function, on the grid: see
`differentiable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from gridlayout.layout import Layout
from gridlayout.ops import control
from gridlayout.ops.control import Evaluate
from gridlayout.ops.cost import flops, held
from gridlayout.ops.dot import dot_general
from gridlayout.ops.elementwise import ELEMENTWISE, on_host
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.jaxprs import ClosedJaxpr
from gridlayout.ops.report import FALLBACK, Cost, Row
from gridlayout.ops.rules import RULES
from gridlayout.ops.values import Context, Spread, layout_of, on_cores, plain, settled

_CALLS = {
    **dict.fromkeys(("jit", "pjit"), "jaxpr"),
    **dict.fromkeys(
        ("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"
    ),
}


def evaluate(ctx: Context, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
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
        with _scope(eqn):
            outs = _equation(ctx, eqn, values, follower)
        env.update(zip((follower or eqn).outvars, outs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _scope(eqn: Any) -> AbstractContextManager[Any]:
    """The `jax.named_scope`s that the equation was traced in, for profiles and dumps."""
    names = str(eqn.source_info.name_stack)
    return jax.named_scope(names) if names else nullcontext()


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
        if eqn.primitive.name == "dot_general" and RULES["dot_general"] is dot_general:
            after = uses.get(eqn.outvars[0], [])
            if len(after) == 1 and after[0] >= 0:
                follower = jaxpr.eqns[after[0]]
                if follower.primitive.name == "transpose":
                    folded[number] = after[0]
    return folded


def _equation(ctx: Context, eqn: Any, values: list[Any], follower: Any) -> list[Any]:
    name = eqn.primitive.name
    if all(layout_of(value) is None for value in values):
        outs = _plainly(ctx, eqn, values)
        return outs if follower is None else _plainly(ctx, follower, outs)
    if name in _CALLS:
        inner = eqn.params[_CALLS[name]]
        if not isinstance(inner, ClosedJaxpr):
            inner = ClosedJaxpr(inner, ())
        return evaluate(ctx, inner, values)
    if name in _REBUILT:
        return _REBUILT[name](evaluate, ctx, eqn, settled(ctx, values))
    moved, masks = ctx.moved, ctx.masks
    ctx.held, ctx.note, ctx.stated = 0, "", None
    empty = any(0 in x.aval.shape for x in (*eqn.invars, *eqn.outvars))
    made = None
    if name in RULES and (not empty or name in ELEMENTWISE):
        made = RULES[name](*(ctx, eqn), *values, *(() if follower is None else (follower,)))
    if made is None:
        how, outs = FALLBACK, _fallback(ctx, eqn, values)
        if follower is not None:
            outs = _fallback(ctx, follower, outs)
    else:
        how, out = made
        outs = list(out) if eqn.primitive.multiple_results else [out]
    if ctx.reports:
        done = Cost(ctx.moved - moved)
        ctx.rows.append(_row(ctx, eqn, how, values, outs, done, ctx.masks - masks))
    return outs


def _row(ctx: Context, eqn: Any, how: str, values: Any, outs: Any, done: Cost, masks: int) -> Row:
    """The report's row of an equation that has been run."""
    before, after = tuple(map(layout_of, values)), tuple(map(layout_of, outs))
    peak = held(before) + held(after) + ctx.held
    cost = ctx.stated or Cost(done.bytes_moved, flops(eqn), peak)
    return Row(
        eqn.primitive.name,
        how,
        before,
        after,
        cost.bytes_moved,
        masks,
        cost.flops,
        cost.peak_bytes,
        ctx.note,
    )


def _plainly(ctx: Context, eqn: Any, values: list[Any]) -> list[Any]:
    """No core holds any operand: run it as it is; a broadcast waits until it is wanted."""
    if eqn.primitive.name == "broadcast_in_dim" and len(values) == 1:
        value, shape = values[0], tuple(eqn.params["shape"])
        if not isinstance(value, Spread) and jnp.ndim(value) == 0 and shape:
            # A known number stays one, so that more is known of padding.
            array = jnp if isinstance(value, jax.core.Tracer) else np
            return [Spread(array.asarray(value, eqn.outvars[0].aval.dtype), (), shape)]
    values = [plain(ctx, value) for value in values]
    if values and not eqn.effects and all(map(_is_known_number, values)):
        # A number made of known numbers is known, and so is more of the padding.
        if not any(map(_is_key, values)):
            pairs = zip(eqn.invars, values, strict=True)
            numbers = [np.asarray(value, atom.aval.dtype) for atom, value in pairs]
            if (known := on_host(eqn.primitive.name, numbers)) is not None:
                return [known]
        with jax.ensure_compile_time_eval():
            return _run_alone(eqn, values)
    return _run_alone(eqn, values)


def _is_known_number(value: Any) -> bool:
    return not isinstance(value, jax.core.Tracer) and jnp.ndim(value) == 0


def _run_alone(eqn: Any, values: Sequence[Any]) -> list[Any]:
    """One equation on logical arrays, with the derivative rules that it carries."""
    known: dict[Any, Any] = {}
    for atom, value in zip(eqn.invars, values, strict=True):
        if not isinstance(atom, core.Literal):
            key = jnp.issubdtype(atom.aval.dtype, jax.dtypes.extended)
            known[atom] = value if key else jnp.asarray(value, atom.aval.dtype)
    used = [out for out in eqn.outvars if not isinstance(out, core.DropVar)]
    info = core.DebugInfo("gridlayout", eqn.primitive.name, ("x",) * len(known), ("",) * len(used))
    jaxpr = core.Jaxpr((), list(known), used, [eqn], eqn.effects, info)
    outs = dict(zip(used, core.jaxpr_as_fun(ClosedJaxpr(jaxpr, ()))(*known.values()), strict=True))
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


def _remat(evaluate: Evaluate, ctx: Context, eqn: Any, values: Sequence[Any]) -> list[Any]:
    inner = eqn.params["jaxpr"]
    closed = inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())
    if eqn.params["differentiated"] and eqn.params["prevent_cse"]:
        # The backward pass computes this part again; keep XLA from finding the first result.
        values = lax.optimization_barrier(values)

    def call(*args: Any) -> list[Any]:
        return settled(ctx, evaluate(ctx, closed, args))

    options = {name: eqn.params[name] for name in ("prevent_cse", "policy")}
    return list(jax.checkpoint(call, **options)(*values))


# -- derivatives -------------------------------------------------------------------------------


def differentiable(ctx: Context, closed: ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
    """`evaluate`, with the derivative of the logical function for its own.

    The derivative is taken of the jaxpr on logical shapes and evaluated by the same rules: padding
    takes no part in it, custom derivative rules hold, and it may be taken again. It is
    reverse-mode; forward mode goes inside the function.
    """
    # Constants may be tracers of an outer differentiation: they become arguments like the others.
    outer = closed.jaxpr
    jaxpr = ClosedJaxpr(
        core.Jaxpr(
            *((), [*outer.constvars, *outer.invars], outer.outvars, outer.eqns, outer.effects),
            core.DebugInfo(
                *("gridlayout", "program"),
                *(("x",) * (len(outer.constvars) + len(outer.invars)), ("",) * len(outer.outvars)),
            ),
        ),
        (),
    )
    values = [v if hasattr(v, "dtype") else jnp.asarray(v) for v in (*closed.consts, *values)]
    values = settled(ctx, values)
    # Bare arrays cross custom_vjp; what is static about them, here and in the results, stays here.
    known: dict[str, Any] = {}

    @jax.custom_vjp
    def call(*arrays: Any) -> list[Any]:
        args = [_entered(ctx, v) for v in _dressed(arrays, values)]
        outs = [_left(ctx, v) for v in evaluate(ctx, jaxpr, args)]
        known["outs"] = outs
        return _bare(outs)

    def forward(*arrays: Any) -> Any:
        args = _dressed(arrays, values)
        inexact = [_is_inexact(v) for v in args]

        def vjp(*logical_args: Any) -> Any:
            def logical(*x: Any) -> list[Any]:
                mine = iter(x)
                merged = [
                    next(mine) if yes else a for a, yes in zip(logical_args, inexact, strict=True)
                ]
                return list(core.jaxpr_as_fun(jaxpr)(*merged))

            x = [a for a, yes in zip(logical_args, inexact, strict=True) if yes]
            outs, pull = jax.vjp(logical, *x)
            leaves, known["pull"] = jax.tree.flatten(pull)
            known["count"] = len(outs)
            return [*outs, *leaves]

        own = ctx.fresh()
        found = differentiable(own, jax.make_jaxpr(vjp)(*map(_aval, args)), args)
        outs, known["leaves"] = found[: known["count"]], found[known["count"] :]
        # Where the primal has been run, its caller holds these results to lie as those do.
        known.setdefault("outs", outs)
        outs = [_like(own, out, like) for out, like in zip(outs, known["outs"], strict=True)]
        return _bare(outs), (_bare(known["leaves"]), arrays)

    def backward(saved: Any, cotangents: Any) -> Any:
        leaves = _dressed(saved[0], known["leaves"])
        args = _dressed(saved[1], values)
        own = ctx.fresh()
        # An integer result has a cotangent of type float0, which is no array.
        real = [c.dtype != jax.dtypes.float0 for c in cotangents]
        given = [
            _unknown(c)
            for c, yes in zip(_dressed(cotangents, known["outs"]), real, strict=True)
            if yes
        ]

        def pull(*arrays: Any) -> Any:
            mine = iter(arrays[len(leaves) :])
            full = [
                next(mine) if yes else np.zeros(out.shape, jax.dtypes.float0)
                for out, yes in zip(known["outs"], real, strict=True)
            ]
            return list(jax.tree.unflatten(known["pull"], arrays[: len(leaves)])(full))

        operands = [*leaves, *given]
        found = iter(differentiable(own, jax.make_jaxpr(pull)(*map(_aval, operands)), operands))
        return tuple(
            _bare([_like(own, next(found), a)])[0] if _is_inexact(a) else None for a in args
        )

    def under_mesh(step: Callable[..., Any]) -> Callable[..., Any]:
        # JAX runs these later, perhaps where the user has set another mesh.
        def run(*args: Any) -> Any:
            with ctx.device.active():
                return step(*args)

        return run

    call.defvjp(under_mesh(forward), under_mesh(backward))
    return _dressed(call(*_bare(values)), known["outs"])


def _entered(ctx: Context, x: Any) -> Any:
    """An argument as the rules take it: arrays laid out, single numbers plain."""
    if isinstance(x, GridArray):
        return x if x.ndim else x.to_logical()
    return on_cores(ctx, x) if x.ndim and not _is_key(x) else x


def _left(ctx: Context, x: Any) -> Any:
    """A result as the caller gets it: every array laid out where its cores are."""
    if not isinstance(x, (GridArray, Spread)) and (jnp.ndim(x) == 0 or _is_key(x)):
        return jnp.asarray(x) if not hasattr(x, "dtype") else x
    x = on_cores(ctx, x, like=layout_of(x))
    storage = lax.with_sharding_constraint(x.storage, ctx.device.sharding(x.layout))
    return GridArray(storage, x.layout, ctx.device)


def _is_key(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jax.dtypes.extended))


def _bare(values: Sequence[Any]) -> list[Any]:
    return [v.storage if isinstance(v, GridArray) else v for v in values]


def _dressed(arrays: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    return [
        GridArray(a, x.layout, x.device) if isinstance(x, GridArray) else a
        for a, x in zip(arrays, like, strict=True)
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
    """The value placed like another one, for JAX to treat as its cotangent or its equal."""
    if not isinstance(like, GridArray):
        return jnp.asarray(plain(ctx, value), like.dtype)
    return on_cores(ctx, value, like.layout)


# Calls that are made again, around bodies that run on the grid.
_REBUILT: dict[str, Callable[[Evaluate, Context, Any, Sequence[Any]], list[Any]]] = {
    "checkpoint": _remat,
    "remat": _remat,
    "remat2": _remat,
    "scan": control.scan,
    "while": control.while_,
    "cond": control.cond,
    "custom_linear_solve": control.linear_solve,
}
