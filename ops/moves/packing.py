"""`pack` and `unpack`: a layout's array program on JAX arrays.

Both are pure functions of an array and a static layout: they jit, differentiate, vmap and donate.
A layout is packed by its program (pad, reshape, transpose). A layout whose map has no program is
packed by a gather whose indices are computed on the device. `path="gather"` selects the gather for
any layout. Tests check that both paths agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap
from gridlayout.arguments import in_short, one_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout, check_layout
from gridlayout.layouts.program import (
    Move,
    PadMove,
    ReshapeMove,
    ReverseMove,
    ScatterMove,
    TransposeMove,
    host_fill,
    moves,
)
from gridlayout.ops.moves.jitted import jitted
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.public import public
from gridlayout.sharding.device_grid import DeviceGrid

Path = Literal["program", "gather"]


@public
def pack(x: Any, layout: Layout, *, path: Path = "program") -> jax.Array:
    """Return the physical array of a logical one.

    x: an array of `layout.shape` and `layout.dtype`. Returns an array of `layout.physical_shape`
    whose padding holds `layout.oob`, or 0 where that is undef. It holds one element per position;
    `gl.to_bytes` gives the bytes for a chip, where several small elements may share a byte.
    `LayoutError` for another shape or dtype, and for a layout that puts two elements in one place.

    >>> import jax.numpy as jnp
    >>> from gridlayout import GridLayout
    >>> pack(jnp.arange(1, 6), GridLayout((5,), "int32", grid=(2,))).tolist()
    [[1, 2, 3], [4, 5, 0]]
    """
    check_layout(layout)
    x = as_logical(x, layout)
    layout.check_invertible()
    return run_pack(x, layout, _as_path(path))


@public
def unpack(physical: Any, layout: Layout, *, path: Path = "program") -> jax.Array:
    """Return the logical array of a physical one, whatever its padding holds.

    physical: an array of `layout.physical_shape` and `layout.dtype`. Returns an array of
    `layout.shape`. `LayoutError` for another shape or dtype.

    >>> import jax.numpy as jnp
    >>> from gridlayout import GridLayout
    >>> unpack(jnp.array([[1, 2, 3], [4, 5, -1]]), GridLayout((5,), "int32", grid=(2,))).tolist()
    [1, 2, 3, 4, 5]
    """
    check_layout(layout)
    physical = as_array(physical, layout.dtype)
    if physical.shape != layout.physical_shape:
        raise LayoutError(
            f"the physical array has shape {physical.shape}, but {layout!r} has physical shape "
            f"{layout.physical_shape}"
        )
    return _unpack(physical, layout, _as_path(path))


def as_array(x: Any, dtype: np.dtype[Any], *, drops_explicit: bool = True) -> jax.Array:
    """Return `x` as a JAX array of `dtype`; data without a dtype is converted, other must have it.

    drops_explicit: whether an array with Explicit mesh axes is copied to a mesh with Auto axes.
    """
    if dtypes.bits(dtype) == 1:  # JAX (0.10 to 0.12) holds 1 bit an element, but computes with 8
        raise LayoutError(
            f"arrays of {dtype.name} can't be moved by JAX: use bool or int8; gl.to_bytes takes it"
        )
    if not hasattr(x, "dtype"):
        x = dtypes.untyped(x, dtype)
    try:
        found = x if isinstance(x, jax.Array) else jnp.asarray(x)
        if drops_explicit or isinstance(found, jax.core.Tracer):
            found = with_auto_axes(found)
    except (TypeError, ValueError) as error:
        raise LayoutError(
            f"{in_short(x)} is no array of numbers that JAX holds, but the layout is of "
            f"{dtype.name}: {error}"
        ) from None
    if found is x and found.dtype == dtype:
        return found
    if jnp.issubdtype(found.dtype, jax.dtypes.prng_key):
        raise LayoutError(
            f"the array holds random keys, {found.dtype}{list(found.shape)}, which have no layout: "
            "lay out jax.random.key_data(keys), uint32 with one dim more, and get keys back by "
            "jax.random.wrap_key_data; functions on the grid take keys as they are"
        )
    given = found.dtype.name
    if np.dtype(x.dtype) != found.dtype:
        given = f"{x.dtype} ({given} to JAX, as jax_enable_x64 is off)"
    if found.dtype != dtype:
        hint = ""
        if dtype.name in ("int64", "uint64", "float64", "complex128"):
            hint = "; 64-bit types need jax.config.update('jax_enable_x64', True)"
        raise LayoutError(
            f"the array is {given}, but the layout {dtype.name}: "
            f"convert one, e.g. x.astype({dtype.name!r}){hint}"
        )
    if x.dtype != found.dtype and dtype.kind in "iu" and np.any(np.asarray(found) != x):
        raise LayoutError(
            f"the array is {given} and holds numbers that {dtype.name} can't represent, from "
            f"{np.min(x)} to {np.max(x)}; give a layout of a wider dtype, with jax_enable_x64 on"
        )
    return found


def as_operand(x: Any, what: str) -> jax.Array:
    """Return `jnp.asarray(x)`; the `LayoutError` for other operands names the operation `what`."""
    try:
        return jnp.asarray(x)
    except (TypeError, ValueError, OverflowError) as error:
        raise LayoutError(f"{what} takes arrays and numbers, not {in_short(x)}: {error}") from None


def with_auto_axes(x: Any, device: DeviceGrid | None = None) -> Any:
    """Return `x` without Explicit mesh axes, for which JAX requires a sharding at every reshape.

    An array that has such axes is replicated on all devices. Inside jit this is a `LayoutError`.
    """
    if not isinstance(x, jax.Array):
        return x
    sharding = jax.typeof(x).sharding
    if AxisType.Explicit not in sharding.mesh.axis_types:
        return x
    if isinstance(x, jax.core.Tracer):
        raise LayoutError(
            f"{x.dtype.name}{list(x.shape)} has Explicit mesh axes inside a traced function: "
            "lay it out outside with gl.put, or use a mesh with Auto axes"
        )
    if device is not None:
        return jax.device_put(x, device.replicated)
    mesh: Any = getattr(x.sharding, "mesh", None)
    auto = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))
    return jax.device_put(x, NamedSharding(auto, PartitionSpec()))


def as_logical(x: Any, layout: Layout, *, drops_explicit: bool = True) -> jax.Array:
    """Return `x` as a JAX array of the layout's shape and dtype; `LayoutError` for any other."""
    found = as_array(x, layout.dtype, drops_explicit=drops_explicit)
    if found.shape != layout.shape:
        raise LayoutError(f"the array has shape {found.shape}, but {layout!r} has {layout.shape}")
    return found


def _as_path(path: str) -> str:
    return one_of(path, ("program", "gather"), "path")


def fill_value(layout: Layout) -> jax.Array:
    """Return what packing writes into the padding: the layout's oob, or 0 where it is undef.

    NaN for a type without zero (float8_e8m0fnu).
    """
    return jnp.asarray(host_fill(layout))


# XLA may compute these in a wider type, which changes NaN payloads: their bits are moved instead.
AS_BITS = {
    "bfloat16": jnp.uint16,
    **{name: jnp.uint8 for name in dtypes.MLIR_NAMES if name.startswith("float8")},
}


@jitted(1, 2)
def run_pack(x: jax.Array, layout: Layout, path: str) -> jax.Array:
    """Return what `pack` returns, without its checks."""
    packed = _packed_alone if layout.dtype.name in AS_BITS else _packed
    return bitwise(partial(packed, layout=layout, path=path), x, host_fill(layout))


@jitted(1, 2)
def _unpack(physical: jax.Array, layout: Layout, path: str) -> jax.Array:
    undone = _undone_alone if layout.dtype.name in AS_BITS else _undone
    moved = partial(undone, layout=layout, path=path)
    return bitwise(moved, physical, np.zeros((), layout.dtype))


def bitwise(moved: Callable[..., jax.Array], x: jax.Array, fill: Any) -> jax.Array:
    """Return `moved(x, fill)`, a pure data movement.

    For types in `AS_BITS`, the bits are moved; the derivative still moves numbers.
    """
    return _bitwise(moved, x, fill) if x.dtype.name in AS_BITS else moved(x, fill)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _bitwise(moved: Callable[..., jax.Array], x: jax.Array, fill: Any) -> jax.Array:
    kind = AS_BITS[x.dtype.name]
    bits = [lax.bitcast_convert_type(array, kind) for array in (x, fill)]
    # The barriers, and a jit of its own around `moved`, keep XLA from casting back first.
    out = lax.optimization_barrier(moved(*lax.optimization_barrier(bits)))
    if out.dtype == jnp.uint16:
        # LLVM removes both casts where they are in one loop, and then moves bfloat16s through
        # float32 registers, which flushes subnormals. It cannot tell that this xor is with 0: odd
        # squares are 1 modulo 8.
        out ^= lax.square(out | 1) & 4
    return lax.bitcast_convert_type(out, x.dtype)


@_bitwise.defjvp
def _(moved: Callable[..., jax.Array], primals: Any, tangents: Any) -> Any:
    tangent = tangents[0]
    return _bitwise(moved, *primals), moved(tangent, jnp.zeros((), tangent.dtype))


def _packed(x: jax.Array, fill: jax.Array, layout: Layout, path: str) -> jax.Array:
    if path == "gather":
        return _scatter(x, layout.index_map, layout.physical_shape, fill)
    return run_moves(LazyView.of(x), moves(layout), fill).materialize()


def run_moves(x: LazyView, program: Sequence[Move], fill: jax.Array) -> LazyView:
    """Return the result of the moves on `x`; `fill` is written where a move pads.

    If the view can be made with positions of any value after it, these are what a move pads.
    """
    for move in program:
        match move:
            case PadMove(low, high):
                wider = x.padded((*low,), (*high,))
                x = wider or LazyView.of(_padded(x.materialize(), fill, low, high))
            case ReshapeMove(_, after):
                x = x.reshape(*after)
            case TransposeMove(order):
                none = (0,) * len(x.shape)
                is_view = x.wider is None or x.transpose(order).is_in_order
                x = (x if is_view else x.padded(none, none) or x).transpose(order)
            case ReverseMove(dims):
                x = LazyView.of(lax.rev(x.materialize(), dims))
            case ScatterMove(map, _, after):
                x = LazyView.of(_scatter(x.materialize(), map, after, fill))
    return x


def _padded(x: jax.Array, fill: jax.Array, low: Sequence[int], high: Sequence[int]) -> jax.Array:
    """Return `x` with positions added before and after each dim, or removed if the number is < 0.

    They are removed by a slice: XLA's compiler for GPUs ends the process at a pad that removes
    elements of less than a byte.
    """
    if min(*low, *high, 0) < 0:
        ends = (n + min(b, 0) for n, b in zip(x.shape, high, strict=True))
        x = lax.slice(x, [max(-a, 0) for a in low], list(ends))
    pads = [(max(a, 0), max(b, 0), 0) for a, b in zip(low, high, strict=True)]
    return lax.pad(x, fill, pads) if any(a or b for a, b, _ in pads) else x


def undo_moves(x: LazyView, fill: jax.Array, layout: Layout) -> LazyView:
    """Return the logical array of a physical one, by moves alone; leading dims are batch dims.

    fill: a scalar of the dtype, which appears in no result.
    """
    lead = x.shape[: len(x.shape) - len(layout.physical_shape)]
    count = len(lead)
    for move in reversed(moves(layout)):
        match move:
            case PadMove(low, high):
                none = (0,) * count
                less = ((*none, *(-n for n in side)) for side in (low, high))
                x = LazyView.of(_padded(x.materialize(), fill, *less))
            case ReshapeMove(before, _):
                x = x.reshape(*lead, *before)
            case TransposeMove():
                x = x.transpose((*range(count), *(count + k for k in move.inverse)))
            case ReverseMove(dims):
                x = LazyView.of(lax.rev(x.materialize(), [count + k for k in dims]))
            case ScatterMove(map, before, _):
                gather = partial(_gather, map=map, shape=before)
                for _ in lead:
                    gather = jax.vmap(gather)
                x = LazyView.of(gather(x.materialize()))
    return x


def _undone(x: jax.Array, fill: jax.Array, layout: Layout, path: str) -> jax.Array:
    if path == "gather":
        return _gather(x, layout.index_map, layout.shape)
    return undo_moves(LazyView.of(x), fill, layout).materialize()


# One function each, so that equal calls in one program are always lowered once.
_packed_alone = jax.jit(_packed, static_argnames=("layout", "path"))
_undone_alone = jax.jit(_undone, static_argnames=("layout", "path"))


def _x64() -> bool:
    return jnp.dtype(jax.dtypes.canonicalize_dtype(np.int64)) == np.int64


def _indices(map: AffineMap, shape: tuple[int, ...], into: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the map's results at all indices of `shape`, computed on the device."""
    if prod(into) >= 2**31 and not _x64():
        raise LayoutError(
            f"gathering from {into} needs 64-bit indices: jax.config.update('jax_enable_x64', True)"
        )
    kind = jnp.int64 if _x64() else jnp.int32
    rank = len(shape)
    dims = [
        lax.broadcasted_iota(kind, tuple(n if k == d else 1 for k, n in enumerate(shape)), d)
        for d in range(rank)
    ]
    return tuple(jnp.broadcast_to(jnp.asarray(r, kind), shape) for r in map(*dims))


def _scatter(x: jax.Array, map: AffineMap, into: tuple[int, ...], fill: jax.Array) -> jax.Array:
    out = jnp.full(into, fill, x.dtype)
    if x.size == 0:
        return out
    return out.at[_indices(map, x.shape, into)].set(
        x, unique_indices=True, mode="promise_in_bounds"
    )


def _gather(x: jax.Array, map: AffineMap, shape: tuple[int, ...]) -> jax.Array:
    if prod(shape) == 0:
        return jnp.zeros(shape, x.dtype)
    index = _indices(map, shape, x.shape)
    return x.at[index].get(mode="promise_in_bounds")
