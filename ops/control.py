"""Control flow: scan, while and cond as JAX has them, their bodies run by the same rules.

What goes round a loop keeps one layout: the one it enters in, its padding undef. Arrays that a scan
takes apart, or stacks, lie with their first dim whole on every core, so that each step's slice is
in place. A linear solve is the function that solves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.grid_layout import GridLayout
from gridlayout.ops import along
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.jaxprs import ClosedJaxpr
from gridlayout.ops.values import Context, layout_of, on_cores, plain

Evaluate = Callable[[Context, ClosedJaxpr, Sequence[Any]], list[Any]]


def scan(evaluate: Evaluate, ctx: Context, eqn: Any, values: Sequence[Any]) -> list[Any]:
    """`lax.scan`: the carry keeps its layouts, slices of what is scanned lie in place."""
    p = eqn.params
    first, second = _parts(eqn)
    consts, carry, scanned = values[:first], values[first:second], values[second:]
    carry = [_made(ctx, value) for value in carry]
    scanned = [_scanned(ctx, value) for value in scanned]
    own = ctx.fresh()
    stacked: list[Any] = []

    def body(carried: Any, slices: Any) -> Any:
        own.rows, own.moved, own.masks = [], 0, 0
        arrays = [_dressed(a, like) for a, like in zip(carried, carry, strict=True)]
        parts = [_dressed(a, like) for a, (_, like) in zip(slices, scanned, strict=True)]
        outs = evaluate(own, p["jaxpr"], [*consts, *arrays, *parts])
        count = len(carry)
        stacked[:] = [_made(own, out) for out in outs[count:]]
        kept = [_as(own, out, like) for out, like in zip(outs[:count], carry, strict=True)]
        return [_bare(v) for v in kept], [_bare(v) for v in stacked]

    final, rows = lax.scan(
        body,
        [_bare(value) for value in carry],
        [array for array, _ in scanned],
        p["length"],
        p["reverse"],
        p["unroll"],
    )
    _add(ctx, own, p["length"])
    outs = [_dressed(a, like) for a, like in zip(final, carry, strict=True)]
    return outs + [_stacked(ctx, a, like) for a, like in zip(rows, stacked, strict=True)]


def _parts(eqn: Any) -> tuple[int, int]:
    """How many operands of a scan are constants, and how many those and the carry are."""
    p = eqn.params
    if "ft_in" not in p:  # JAX 0.10
        return p["num_consts"], p["num_consts"] + p["num_carry"]
    # Its own kind of tree: (constants, carry, scanned). The leaves of the first two are counted.
    consts, carry, _ = p["ft_in"].unpack()
    count = len(consts.vals)
    return count, count + len(carry.vals)


def while_(evaluate: Evaluate, ctx: Context, eqn: Any, values: Sequence[Any]) -> list[Any]:
    """`lax.while_loop`: what goes round keeps its layouts."""
    p = eqn.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    carry = [_made(ctx, value) for value in values[second:]]
    own = ctx.fresh()

    def dressed(carried: Any) -> list[Any]:
        return [_dressed(a, like) for a, like in zip(carried, carry, strict=True)]

    def going(own: Context, carried: Any) -> Any:
        return evaluate(own, p["cond_jaxpr"], [*values[:first], *dressed(carried)])[0]

    def test(carried: Any) -> Any:
        return jnp.any(plain(ctx, going(ctx.fresh(), carried)))

    def body(carried: Any) -> Any:
        own.rows, own.moved, own.masks = [], 0, 0
        before = dressed(carried)
        outs = evaluate(own, p["body_jaxpr"], [*values[first:second], *before])
        if p["cond_jaxpr"].out_avals[0].shape:
            # `jax.vmap` of a test: each row goes round while its own says so.
            outs = evaluate(own, _kept_rows(p), [going(own, carried), *outs, *before])
        return [_bare(_as(own, out, like)) for out, like in zip(outs, carry, strict=True)]

    final = lax.while_loop(test, body, [_bare(value) for value in carry])
    _add(ctx, own, 1)
    return dressed(final)


def _kept_rows(p: Any) -> ClosedJaxpr:
    """What goes round a batched loop: a new row where its test says so, else the old one."""
    (going,), carry = p["cond_jaxpr"].out_avals, p["body_jaxpr"].out_avals

    def kept(going: Any, new: Any, old: Any) -> list[Any]:
        rows = [going.reshape(going.shape + (1,) * (x.ndim - going.ndim)) for x in new]
        return [jnp.where(*row) for row in zip(rows, new, old, strict=True)]

    return jax.make_jaxpr(kept)(going, carry, carry)


def cond(evaluate: Evaluate, ctx: Context, eqn: Any, values: Sequence[Any]) -> list[Any]:
    """`lax.cond` and `lax.switch`: every branch gives its results in the layouts of the first."""
    index, *operands = values
    operands = [value if layout_of(value) is None else on_cores(ctx, value) for value in operands]
    branches = eqn.params["branches"]
    known: list[Any] = []
    own = [ctx.fresh() for _ in branches]

    def run(k: int) -> Callable[..., Any]:
        def branch(*arrays: Any) -> Any:
            own[k].rows, own[k].moved, own[k].masks = [], 0, 0
            args = [_dressed(a, like) for a, like in zip(arrays, operands, strict=True)]
            outs = evaluate(own[k], branches[k], args)
            if not known:
                known[:] = [_made(own[k], out) for out in outs]
            return [_bare(_as(own[k], out, like)) for out, like in zip(outs, known, strict=True)]

        return branch

    outs = lax.switch(
        plain(ctx, index), [run(k) for k in range(len(branches))], *map(_bare, operands)
    )
    for each in own:
        _add(ctx, each, 1)
    return [_dressed(a, like) for a, like in zip(outs, known, strict=True)]


def linear_solve(evaluate: Evaluate, ctx: Context, eqn: Any, values: Sequence[Any]) -> list[Any]:
    """`lax.custom_linear_solve`: its matrix and transpose are for derivatives, taken before."""
    counts, jaxprs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    first = counts.matvec + counts.vecmat
    consts = values[first : first + counts.solve]
    return evaluate(ctx, jaxprs.solve, [*consts, *values[sum(counts) :]])


def _add(ctx: Context, own: Context, times: int) -> None:
    """Record what a body does: a row for each primitive, its bytes, masks and flops every time."""
    ctx.rows += [
        replace(
            row,
            bytes_moved=row.bytes_moved * times,
            masks=row.masks * times,
            flops=row.flops * times,
        )
        for row in own.rows
    ]
    ctx.moved += own.moved * times
    ctx.masks += own.masks * times


def _made(ctx: Context, value: Any) -> Any:
    """The value as it crosses into a body: laid out, or a plain scalar or key."""
    value = value if hasattr(value, "dtype") else jnp.asarray(value)
    if jnp.ndim(value) == 0 or _is_key(value):
        return plain(ctx, value)
    return on_cores(ctx, value, like=layout_of(value))


def _as(ctx: Context, value: Any, like: Any) -> Any:
    """The value in the layout of another one."""
    if not isinstance(like, GridArray):
        value = plain(ctx, value)
        return (
            value
            if jnp.issubdtype(like.dtype, jax.dtypes.extended)
            else jnp.asarray(value, like.dtype)
        )
    return on_cores(ctx, value, like.layout.with_oob(None))


def _bare(value: Any) -> Any:
    return value.storage if isinstance(value, GridArray) else value


def _dressed(array: Any, like: Any) -> Any:
    """The array as what it stands for; of its padding nothing is known any more."""
    if not isinstance(like, GridArray):
        return array
    # Said again on either side of a body: XLA's propagation may lose it there.
    array = lax.with_sharding_constraint(array, like.device.sharding(like.layout))
    return GridArray(array, like.layout.with_oob(None), like.device)


def _scanned(ctx: Context, value: Any) -> tuple[Any, Any]:
    """The slices of a value as one array with a leading dim, and what one slice is like."""
    rest = None if _is_key(value) else along.rest_layout(ctx, value, (0,))
    if rest is None:
        return plain(ctx, value), None
    array = along.unstack(ctx, value, (0,), rest)
    return array, GridArray(array, rest.with_dtype(value.dtype), ctx.device)


def _stacked(ctx: Context, array: Any, like: Any) -> Any:
    """What a scan stacked: laid out like its slices, the first dim whole on each core."""
    if not isinstance(like, GridArray):
        return array
    layout = like.layout
    if isinstance(layout, GridLayout) and 0 not in array.shape and not layout.is_scatter:
        return along.restack(ctx, array, (0,), layout)
    rows = jax.vmap(lambda a: GridArray(a, layout, ctx.device).to_logical())(array)
    return on_cores(ctx, rows, like=layout)


def _is_key(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jax.dtypes.extended))
