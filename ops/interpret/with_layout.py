"""`with_layout`: requests a layout inside a function, as a primitive that `on_grid` has a rule for.

Cotangents get the layout too, but in the memory space of the primal value. To know that space, the
primitive of a derivative takes an empty slice of the primal value as a second operand.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
from jax import lax
from jax.extend import core
from jax.interpreters import ad, batching, mlir
from jax.sharding import PartitionSpec, Sharding

from gridlayout.arguments import shown
from gridlayout.errors import LayoutError, LayoutWarning
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import size
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.policy import is_replicated, replicated
from gridlayout.ops.array.relayout import relayout
from gridlayout.ops.interpret.logical_jaxpr import is_tracing
from gridlayout.ops.moves.packing import as_operand
from gridlayout.public import public
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.logical_sharding import layout_of_spec

_with_layout_p = core.Primitive("with_layout")
_with_layout_p.def_impl(lambda x, *like, **params: x)
_with_layout_p.def_abstract_eval(lambda x, *like, **params: x)
mlir.register_lowering(_with_layout_p, lambda ctx, x, *like, **params: [x])


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    (x, *like), tangent = primals, tangents[0]
    out = _with_layout_p.bind(x, *like, **params)
    if type(tangent) is ad.Zero:
        return out, tangent
    if not like and x.ndim:  # an empty slice of x, for its memory space
        like = [lax.slice_in_dim(x, 0, 0)]
    return out, _with_layout_p.bind(tangent, *like, **params)


def _transposed(ct: Any, x: Any, *like: Any, layout: Layout, back: bool) -> list[Any]:
    if type(ct) is not ad.Zero:
        ct = _with_layout_p.bind(ct, *like, layout=layout, back=not back)
    return [ct, *(None for _ in like)]


ad.primitive_jvps[_with_layout_p] = _jvp
ad.primitive_transposes[_with_layout_p] = _transposed


def _no_vmap(args: Any, dims: Any, layout: Layout, back: bool) -> Any:
    raise LayoutError(
        f"with_layout({layout!r}) under jax.vmap: the layout does not include the mapped dim; "
        "call with_layout outside the vmap, with a layout of the whole array"
    )


batching.primitive_batchers[_with_layout_p] = _no_vmap


@public
def with_layout(value: Any, layout: Layout | Sharding | PartitionSpec | str) -> Any:
    """Return `value` relaid out to `layout`, inside a function for `gl.on_grid`.

    layout: a `gl.Layout` of the value's shape and dtype, a `PartitionSpec` on the mesh of the
    device grid or a `NamedSharding` of it, whose parts need not be equal, or "replicated". Plain
    arrays outside of `gl.on_grid` are returned unchanged, a `GridArray` is relaid out. Cotangents
    get the layout too, in the memory space of the primal value. `LayoutError` if shape or dtype
    differ. A `LayoutWarning` if more than half of the storage is padding and the storage is larger
    than a page of 4096 bytes.

    >>> import jax.numpy as jnp
    >>> from gridlayout import GridLayout
    >>> with_layout(jnp.arange(3), GridLayout((3,), "int32", grid=(3,))).tolist()
    [0, 1, 2]
    """
    found = in_layout(value, layout)
    if isinstance(layout, Layout):
        _warn_of_waste(layout)
    return found


def in_layout(value: Any, layout: Layout | Sharding | PartitionSpec | str) -> Any:
    """Return `with_layout` for a layout that the user did not choose, without warnings."""
    if isinstance(layout, (PartitionSpec, Sharding)):
        if not isinstance(value, GridArray):
            value = as_operand(value, "with_layout")
            if not is_tracing():
                return value
        layout = _of_spec(value, layout)
        if not value.ndim:
            return value
    if isinstance(value, GridArray):
        if is_replicated(layout):
            layout = replicated(value.shape, value.dtype, value.layout)
        return relayout(value, layout)  # type: ignore[arg-type]
    if not isinstance(layout, Layout) and not is_replicated(layout):
        raise LayoutError(
            f"with_layout: {shown(layout)} must be a gl.Layout, a PartitionSpec, a NamedSharding, "
            'or "replicated"'
        )
    value = as_operand(value, "with_layout")
    if not isinstance(layout, Layout):
        if not value.ndim:
            return value
        layout = replicated(value.shape, value.dtype)
    if (value.shape, value.dtype) != (layout.shape, layout.dtype):
        raise LayoutError(
            f"with_layout: the value is {value.dtype.name}{list(value.shape)}, but the layout is "
            f"{layout.dtype.name}{list(layout.shape)}"
        )
    return _with_layout_p.bind(value, layout=layout, back=False)


def _of_spec(value: Any, spec: Sharding | PartitionSpec) -> Layout:
    """Return the layout of a value by a spec, inside a function on the mesh that it sees."""
    own = isinstance(value, GridArray)
    device = value.device if own else DeviceGrid(jax.sharding.get_abstract_mesh())
    return layout_of_spec(value.shape, value.dtype, spec, device)


def _warn_of_waste(layout: Layout) -> None:
    """Warn if most of a layout's storage is padding; Python shows this once per call site."""
    if layout.nbytes <= max(2 * layout.data_bytes, LIMITS.page_bytes) or not layout.size:
        return
    warnings.warn(
        f"with_layout: {layout!r} holds {size(layout.nbytes)} for {size(layout.data_bytes)} of "
        "elements; more than half of a layout's storage should be elements. Give a grid and a "
        "tile that are no larger than the tensor, or leave the layout of the value to gl.on_grid",
        LayoutWarning,
        stacklevel=4,
    )
