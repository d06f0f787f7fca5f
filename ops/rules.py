"""The rules: how each lax primitive runs on storage, per shard, with padding carried as a fact.

A rule is a function `(ctx, eqn, *values) -> (how, result)`. Elementwise rules run the primitive on
storage; reductions set padding to their neutral element when its value is not known to be that
already; shape rules find the layout that describes the same data under the new shape, and move
data only when there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.affine import AffineExpr, AffineMap, constant, dim
from gridlayout.grid_layout import GridLayout
from gridlayout.ops import values as v
from gridlayout.ops.dot import dot_general
from gridlayout.ops.grid_array import GridArray, place
from gridlayout.ops.masking import fill_padding, has_padding
from gridlayout.ops.report import RULE, VIEW
from gridlayout.ops.values import Context, Spread

ELEMENTWISE = """
abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp
clz complex conj convert_element_type copy copy_p cos cosh digamma div eq eq_to erf erf_inv erfc exp
exp2 expm1 floor ge gt igamma igamma_grad_a igammac imag integer_pow is_finite le le_to lgamma log
log1p logistic lt lt_to max min mul name ne neg nextafter not optimization_barrier or polygamma
population_count pow real reduce_precision regularized_incomplete_beta rem round rsqrt select_n
shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub
tan tanh xor zeta
""".split()


def elementwise(ctx: Context, eqn: Any, *values: Any) -> tuple[str, Any]:
    """The primitive on storage. The result lies as the first operand that has the result's shape."""
    aval = eqn.outvars[0].aval
    if aval.ndim == 0:
        return RULE, _bind(eqn, [v.plain(ctx, value) for value in values])
    if (spread := _over_sources(ctx, eqn, values)) is not None:
        return VIEW, spread
    values = tuple(_grown(ctx, value, aval.shape) for value in values)
    layout = next((x.layout for x in values if isinstance(x, GridArray)), None)
    if layout is None:
        like = next(value for value in values if v.layout_of(value) is not None)
        layout = ctx.choose(aval.shape, aval.dtype, like)
    operands = [v.operand(ctx, value, layout) for value in values]
    shape = ctx.device.storage_shape(layout)
    arrays = [_full(a, shape, eqn) for a, _ in operands]
    out = _bind(eqn, arrays)
    oob = known(eqn, [f for _, f in operands], [a.dtype for a in arrays])
    return RULE, GridArray(out, layout.with_dtype(aval.dtype, oob), ctx.device)


def _bind(eqn: Any, arrays: Sequence[Any]) -> Any:
    out = eqn.primitive.bind(*arrays, **eqn.params)
    return out[0] if eqn.primitive.multiple_results else out


def _grown(ctx: Context, value: Any, shape: tuple[int, ...]) -> Any:
    """The value broadcast where it has extents of 1; scalars stay scalars."""
    if np.ndim(value) == 0 or tuple(value.shape) == tuple(shape):
        return value
    return v.broadcast(ctx, value, tuple(shape), range(len(shape)))


def _full(array: Any, shape: tuple[int, ...], eqn: Any) -> Any:
    """Scalars stay scalars only where the primitive takes them beside arrays."""
    array = jnp.asarray(array) if not hasattr(array, "dtype") else array
    if jnp.ndim(array) == 0 and eqn.primitive.name in ("select_n", "clamp"):
        return array
    return jnp.broadcast_to(array, shape)


def _over_sources(ctx: Context, eqn: Any, values: Sequence[Any]) -> Any:
    """A spread result, when all operands are scalars or spread alike: work on the small sources."""
    spread = [value for value in values if isinstance(value, Spread)]
    others = [value for value in values if not isinstance(value, Spread) and np.ndim(value) > 0]
    if not spread or others or eqn.primitive.name in ("select_n", "clamp"):
        return None
    first = spread[0]
    if any((s.dims, s.shape) != (first.dims, first.shape) for s in spread):
        return None
    sources = [value.source if isinstance(value, Spread) else value for value in values]
    if first.shape != eqn.outvars[0].aval.shape or all(v.layout_of(s) is None for s in sources):
        return None
    small = _Small(eqn, tuple(first.source.shape))
    return Spread(elementwise(ctx, small, *sources)[1], first.dims, first.shape)


class _Small:
    """An elementwise equation seen with another shape."""

    def __init__(self, eqn: Any, shape: tuple[int, ...]) -> None:
        self.primitive, self.params = eqn.primitive, eqn.params
        aval = jax.ShapeDtypeStruct(shape, eqn.outvars[0].aval.dtype)
        self.outvars = [_Var(aval)]


class _Var:
    def __init__(self, aval: Any) -> None:
        self.aval = aval


# -- facts about padding -----------------------------------------------------------------------


def known(eqn: Any, facts: Sequence[Any], kinds: Sequence[Any]) -> dtypes.Scalar | None:
    """The primitive applied to what is known of its operands' padding; None (undef) if it needs more."""
    name = eqn.primitive.name
    if name == "select_n" and facts[0] is not None:
        facts = [facts[0], *(facts[1 + int(facts[0])],) * (len(facts) - 1)]
    if any(f is None for f in facts):
        return None
    params = tuple(sorted((k, p) for k, p in eqn.params.items() if _hashable(p)))
    key = tuple(repr(f) for f in facts)
    return _known(eqn.primitive, params, tuple(facts), tuple(map(str, kinds)), key)


def _hashable(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, np.dtype, type(None), tuple, type))


@lru_cache(maxsize=4096)
def _known(primitive: Any, params: Any, facts: Any, kinds: Any, key: Any) -> dtypes.Scalar | None:
    with jax.ensure_compile_time_eval():
        args = [jnp.asarray(f, jnp.dtype(kind)) for f, kind in zip(facts, kinds, strict=True)]
        out = primitive.bind(*args, **dict(params))
        out = out[0] if primitive.multiple_results else out
    value = np.asarray(out).item()
    return dtypes.NAN if value != value else value  # type: ignore[no-any-return]


# -- reductions --------------------------------------------------------------------------------


def _least(dtype: Any) -> Any:
    """The least value of a dtype: the neutral element of max."""
    if dtype == np.bool_:
        return False
    return -np.inf if jnp.issubdtype(dtype, jnp.inexact) else int(jnp.iinfo(dtype).min)


def _greatest(dtype: Any) -> Any:
    if dtype == np.bool_:
        return True
    return np.inf if jnp.issubdtype(dtype, jnp.inexact) else int(jnp.iinfo(dtype).max)


NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "reduce_sum": lambda dtype: 0,
    "reduce_prod": lambda dtype: 1,
    "reduce_max": _least,
    "reduce_min": _greatest,
    "reduce_and": lambda dtype: True if dtype == np.bool_ else -1,
    "reduce_or": lambda dtype: 0,
    "reduce_xor": lambda dtype: 0,
    "argmax": _least,
    "argmin": _greatest,
}


def reduction(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """Reduce whole collapsed dims on storage; the others keep their place on the grid.

    The result has the operand's grid and tile, a collapsed dim that is reduced away holding one
    element at index 0. Dims that share a collapsed dim with kept ones are moved apart first.
    """
    axes = tuple(sorted(eqn.params["axes"]))
    out_dtype = eqn.outvars[0].aval.dtype
    x = v.on_cores(ctx, value)
    if eqn.primitive.name not in ("argmax", "argmin"):
        # A dim of extent 1 is its own sum, product or extreme.
        x = v.squeezed(ctx, x, [d for d in range(x.ndim) if d not in axes or x.shape[d] > 1])
        axes = tuple(d - sum(value.shape[a] == 1 for a in axes if a < d) for d in axes if value.shape[d] > 1)
    if not axes:
        return VIEW, x if x.ndim else v.plain(ctx, x)
    x, added = _apart(ctx, x, axes)
    layout = x.layout
    assert isinstance(layout, GridLayout) and layout.groups is not None
    reduced = [k for k, group in enumerate(layout.groups) if set(group) & set(axes)]
    along = [d for k in reduced for d in layout.axis_dims(k)]
    neutral = dtypes.oob_value(NEUTRAL[eqn.primitive.name](layout.dtype), layout.dtype)
    storage = x.storage
    # All dims reduced: grid dims that no logical dim feeds must be neutral too.
    everywhere = along if len(axes) < x.ndim else None
    if everywhere is None:
        along = list(range(storage.ndim))
    if repr(layout.oob) != repr(neutral) and has_padding(layout, ctx.device, everywhere):
        storage = fill_padding(storage, layout, ctx.device, neutral, everywhere)
        ctx.masks += 1
    if eqn.primitive.name in ("argmax", "argmin"):
        out = _arg(eqn, storage, layout, ctx, reduced[0], along)
    else:
        out = _bind_axes(eqn, storage, along)
    ctx.moved += _reduced_bytes(ctx, layout, reduced, out)
    if len(axes) == x.ndim:
        return RULE, out
    return RULE, _thin_result(ctx, layout, axes, reduced, out, out_dtype, neutral, added)


def _bind_axes(eqn: Any, storage: jax.Array, along: Sequence[int]) -> jax.Array:
    return eqn.primitive.bind(storage, **{**eqn.params, "axes": tuple(sorted(along))})  # type: ignore[no-any-return]


def _arg(
    eqn: Any, storage: jax.Array, layout: GridLayout, ctx: Context, k: int, along: Sequence[int]
) -> jax.Array:
    """The logical index of the extreme element: positions along one collapsed dim are in order."""
    own = layout.axis_dims(k)
    kept = [d for d in range(storage.ndim) if d not in along]
    rest = [d for d in along if d not in own]
    flat = storage.transpose([*kept, *own, *rest])
    flat = flat[(..., *(0,) * len(rest))] if rest else flat
    flat = flat.reshape(*(storage.shape[d] for d in kept), -1)
    params = {**eqn.params, "axes": (flat.ndim - 1,)}
    at = eqn.primitive.bind(flat, **params)
    inside = int(np.prod([storage.shape[d] for d in own[1:]]))
    return at // inside * layout.shard_shape[k] + at % inside  # type: ignore[no-any-return]


def _reduced_bytes(ctx: Context, layout: GridLayout, reduced: Sequence[int], out: Any) -> int:
    """Bytes an all-reduce over the mesh axes of the reduced grid dims receives, on all devices."""
    placement = ctx.device.placement(layout.grid)
    devices = 1
    for k in reduced:
        devices *= placement.slots[k] // placement.per_device[k]
    return 2 * (devices - 1) * out.size * out.dtype.itemsize


def _thin_result(
    ctx: Context,
    layout: GridLayout,
    axes: tuple[int, ...],
    reduced: Sequence[int],
    out: jax.Array,
    dtype: Any,
    neutral: Any,
    added: int,
) -> GridArray:
    """The reduced storage, without the reduced dims, as an array in the operand's grid and tile."""
    new = _without(layout, axes, dtype, added)
    was_neutral = repr(layout.oob) == repr(neutral) and dtype == layout.dtype
    fill = neutral if was_neutral else 0
    kept = [k for k in range(len(layout.grid)) if k not in reduced]
    others = [d for k in kept for d in layout.axis_dims(k)]
    sure = was_neutral or not has_padding(layout, ctx.device, others)
    gone = [d for k in reduced for d in layout.axis_dims(k)]
    thin = jnp.expand_dims(out, gone)
    dropped = [d for k in range(added) for d in layout.axis_dims(k)]
    stay = [d for d in range(thin.ndim) if d not in dropped]
    thin = thin.reshape([thin.shape[d] for d in stay])
    grow = [
        (0, n - thin.shape[i] if d in gone else 0, 0)
        for i, (d, n) in enumerate(zip(stay, new.physical_shape, strict=True))
    ]
    physical = lax.pad(thin[tuple(slice(n) for n in new.physical_shape)], jnp.asarray(fill, dtype), grow)
    new = new.with_oob(fill if sure else None)
    return GridArray(place(physical, new, ctx.device, fill), new, ctx.device)


@lru_cache(maxsize=4096)
def _without(layout: GridLayout, axes: tuple[int, ...], dtype: Any, added: int) -> GridLayout:
    """The layout of a tensor without dims `axes`, nor the first `added` grid dims that held them."""
    kept = [d for d in range(layout.ndim) if d not in axes]
    exprs: list[AffineExpr] = [constant(0)] * layout.ndim
    for k, d in enumerate(kept):
        exprs[d] = dim(k)
    linear = layout.linear.compose(AffineMap(len(kept), tuple(exprs)))
    gone = {k for k, group in enumerate(layout.groups or ()) if set(group) & set(axes)}
    rows = tuple(constant(0) if k in gone else row for k, row in enumerate(linear.results))
    return layout.replace(
        shape=tuple(layout.shape[d] for d in kept),
        dtype=dtype,
        grid=layout.grid[added:],
        linear=AffineMap(len(kept), rows[added:]),
        oob=None,
        tile_format=None,
    )


def _apart(ctx: Context, x: GridArray, axes: tuple[int, ...]) -> tuple[GridArray, int]:
    """`x` in a layout where no collapsed dim joins reduced and kept dims, and argmax's is plain.

    Also how many leading grid dims were added to get there.
    """
    layout = x.layout
    if not isinstance(layout, GridLayout) or layout.groups is None:
        x = ctx.relayout(x, ctx.choose(x.shape, x.dtype, layout))
        layout = x.layout
    if isinstance(layout, GridLayout) and layout.groups is not None and _is_apart(layout, axes):
        return x, 0
    assert isinstance(layout, GridLayout)
    return ctx.relayout(x, _moved_apart(layout, axes)), len(axes)


def _is_apart(layout: GridLayout, axes: tuple[int, ...]) -> bool:
    """Each collapsed dim is all reduced or all kept; a reduced one is in logical order from 0."""
    groups = layout.groups or ()
    if not set(axes) <= {d for group in groups for d in group}:
        return False
    for k, group in enumerate(groups):
        wide = {d for d in group if layout.shape[d] > 1}
        if set(group) & set(axes) and not set(group) <= set(axes):
            return False
        if set(group) & set(axes) and (len(wide) > 1 or layout.linear.results[k] not in map(dim, group)):
            return len(axes) == layout.ndim and len(axes) > 1
    return True


@lru_cache(maxsize=4096)
def _moved_apart(layout: GridLayout, axes: tuple[int, ...]) -> GridLayout:
    """A leading grid dim of one core for each reduced dim; kept dims joined on the old grid dims."""
    rank = len(layout.grid)
    kept = [d for d in range(layout.ndim) if d not in axes]
    joined = max(len(kept) - rank + 1, 0)
    rows: list[AffineExpr] = [constant(0)] * max(rank - len(kept), 0)
    if joined:
        expr, stride = constant(0), 1
        for d in reversed(kept[:joined]):
            expr, stride = dim(d) * stride + expr, stride * layout.shape[d]
        rows.append(expr)
    rows += [dim(d) for d in kept[joined:]]
    linear = AffineMap(layout.ndim, (*(dim(d) for d in axes), *rows))
    return GridLayout(
        *(layout.shape, layout.dtype, (1,) * len(axes) + layout.grid, layout.tile),
        linear=linear,
        memory_space=layout.memory_space,
        face=layout.face,
    )


# -- shapes ------------------------------------------------------------------------------------


def broadcast_in_dim(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """Dims of extent 1 are a view; a real broadcast waits until a layout is wanted for it."""
    dims = eqn.params["broadcast_dimensions"]
    return VIEW, v.broadcast(ctx, value, tuple(eqn.params["shape"]), dims)


def transpose(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """A view: the linear map with its dims in another order."""
    order = tuple(eqn.params["permutation"])
    shape = tuple(value.shape[d] for d in order)
    if isinstance(value, Spread):
        return VIEW, Spread(value.source, tuple(order.index(d) for d in value.dims), shape)
    old = AffineMap(len(order), tuple(dim(order.index(d)) for d in range(len(order))))
    return _viewed(ctx, value, shape, old, lambda logical: logical.transpose(order))


def squeeze(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """A view: the linear map without the dims of extent 1."""
    gone = {d % len(value.shape) for d in eqn.params["dimensions"]}
    keep = [d for d in range(len(value.shape)) if d not in gone]
    out = v.squeezed(ctx, value, keep)
    return (VIEW, out) if out.shape else (RULE, v.plain(ctx, out))


def reshape(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """A view where the collapsed index of the new dims is an affine map too, else data moves."""
    shape = tuple(eqn.params["new_sizes"])
    if not shape:
        return RULE, v.plain(ctx, value).reshape(())
    x = v.on_cores(ctx, value)
    return _viewed(ctx, x, shape, _reshape_map(shape, x.shape), lambda logical: logical.reshape(shape))


def _viewed(
    ctx: Context, x: GridArray, shape: tuple[int, ...], old: AffineMap | None, change: Any
) -> tuple[str, GridArray]:
    layout = None if old is None else v.relabelled(x.layout, shape, old)
    if layout is not None:
        return VIEW, GridArray(x.storage, layout, ctx.device)
    return RULE, v.moved(ctx, x, shape, change)


@lru_cache(maxsize=4096)
def _reshape_map(new: tuple[int, ...], old: tuple[int, ...]) -> AffineMap | None:
    """New logical index -> old logical index of the same element, row-major; None when empty."""
    if 0 in new:
        return None
    flat, stride = constant(0), 1
    for d in reversed(range(len(new))):
        flat, stride = dim(d) * stride + flat, stride * new[d]
    results, stride = [], 1
    for n in reversed(old):
        results.append(flat // stride % n if n > 1 else constant(0))
        stride *= n
    return AffineMap(len(new), tuple(reversed(results))).simplify(new)


def slice_(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """A slice, laid out by the policy; what is left may move to other cores."""
    params = eqn.params
    start, limit = params["start_indices"], params["limit_indices"]
    if isinstance(value, Spread):
        value = v.on_cores(ctx, value)
    shape = tuple(eqn.outvars[0].aval.shape)
    if shape == value.shape and not params["strides"]:
        return VIEW, value
    return RULE, v.moved(
        ctx, value, shape, lambda logical: lax.slice(logical, start, limit, params["strides"])
    )


def with_layout(ctx: Context, eqn: Any, value: Any) -> tuple[str, Any]:
    """`gl.with_layout`: the value in that layout."""
    layout = eqn.params["layout"]
    before = ctx.moved
    out = v.on_cores(ctx, value, layout)
    return (VIEW if ctx.moved == before else RULE), out


RULES: dict[str, Callable[..., tuple[str, Any]]] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(NEUTRAL, reduction),
    "dot_general": dot_general,
    "broadcast_in_dim": broadcast_in_dim,
    "transpose": transpose,
    "squeeze": squeeze,
    "reshape": reshape,
    "slice": slice_,
    "with_layout": with_layout,
}
