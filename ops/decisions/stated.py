"""What a program states about the placement of a value: by `gl.with_layout`, or by JAX's shardings.

A sharding of JAX names mesh axes: `jax.lax.with_sharding_constraint`, `jax.sharding.reshard`. Its
dims may be unconstrained; then they stay divided as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import jax
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding

from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.document.grid_form import grouped
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.blocks import block_spec
from gridlayout.ops.decisions.jaxprs import traced_equation
from gridlayout.ops.decisions.specs import Sharded, Spec, is_of_keys
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.meshes.placement import Placement
from gridlayout.sharding.stated_axes import StatedAxes, stated_axes

WITH_LAYOUT = "with_layout"
# The primitives of JAX that state a sharding, with the parameter that holds it.
CONSTRAINTS = {"sharding_constraint": "sharding", "reshard": "dst_sharding"}
# All primitives that state a placement.
STATED = {WITH_LAYOUT: "layout", **CONSTRAINTS}


def constraint(
    name: str, params: Mapping[str, Any], aval: Any, device: DeviceGrid
) -> StatedAxes | None:
    """Return the axes that an equation of JAX states for the dims of a value.

    None for any other equation, and where it states nothing: see `stated_axes`.
    """
    if name not in CONSTRAINTS or 0 in aval.shape or is_of_keys(aval):
        return None
    return _stated_axes(params[CONSTRAINTS[name]], len(aval.shape), device)


_stated_axes = cached(stated_axes)


def is_of_types(eqn: Any) -> bool:
    """Return whether an equation adapts JAX's type of a value, and does nothing else.

    Derivatives reshard cotangents to the types of arguments, in which Auto axes divide nothing. So
    do `jax.sharding.explicit_axes` with results; its operands, of Auto axes, it states undivided.
    """
    if eqn.primitive.name != "reshard":
        return False
    there, before = eqn.params[CONSTRAINTS["reshard"]], eqn.invars[0].aval.sharding.mesh
    if AxisType.Explicit not in there.mesh.axis_types:
        return True
    return AxisType.Explicit not in before.axis_types and not any(there.spec)


def ignored(sharding: Any) -> str:
    """Return the note of a sharding that states nothing; "" if it leaves all dims open."""
    spec = sharding.spec if isinstance(sharding, NamedSharding) else ()
    return "names axes of no mesh" if any(isinstance(each, (str, tuple)) for each in spec) else ""


def stated_spec(
    name: str, params: Mapping[str, Any], aval: Any, device: DeviceGrid
) -> Sharded | None:
    """Return the spec that an equation states for its result; None if it states none.

    Dims that it leaves open are undivided.
    """
    if name == WITH_LAYOUT:
        layout = params["layout"]
        return Sharded(layout, device.placement(layout))
    axes = constraint(name, params, aval, device)
    return None if axes is None else spec_in(axes, aval.shape, aval.dtype, device)


def stated_by(eqn: Any, device: DeviceGrid) -> Sharded | None:
    """Return the spec that an equation of a jaxpr states for its result; None if it states none."""
    if eqn.primitive.name not in STATED or not eqn.outvars or is_of_types(eqn):
        return None
    return stated_spec(eqn.primitive.name, eqn.params, eqn.outvars[0].aval, device)


def stating_operands(eqn: Any) -> list[Any]:
    """Return equations that state the shardings that a call states for its operands; else Nones.

    Those of `jax.jit(in_shardings=)`.
    """
    found = eqn.params.get("in_shardings", ())
    return [_stating(*each) for each in zip(found, eqn.invars, strict=False)]


def stating_results(eqn: Any) -> list[Any]:
    """Return equations that state the shardings that one states for its results; else Nones.

    Those of `jax.jit(out_shardings=)` and `jax.device_put`, and those that functions which JAX
    traces for Explicit axes have as parameters, `out_sharding=`.
    """
    if eqn.primitive.name in CONSTRAINTS:
        return []
    is_put = eqn.primitive.name == "device_put"
    found = eqn.params.get("devices" if is_put else "out_shardings")
    if found is None:
        own = eqn.params.get("out_sharding", eqn.params.get("sharding"))
        is_one = isinstance(own, NamedSharding) and any(own.spec) and len(eqn.outvars) == 1
        found = (own,) if is_one else ()
    return [_stating(*each) for each in zip(found, eqn.outvars, strict=False)]


def _stating(sharding: Any, atom: Any) -> Any:
    if not isinstance(sharding, NamedSharding) or not atom.aval.shape:
        return None
    return _stating_equation(sharding, atom.aval)


@cached
def _stating_equation(sharding: NamedSharding, aval: Any) -> Any:
    mesh = sharding.mesh
    auto: dict[str, Any] = {"axis_types": (AxisType.Auto,) * len(mesh.axis_names)}
    own: Any = (
        Mesh(mesh.devices, mesh.axis_names, **auto)
        if isinstance(mesh, Mesh)
        else AbstractMesh(tuple(mesh.shape.values()), mesh.axis_names, **auto)
    )
    with jax.sharding.use_abstract_mesh(own.abstract_mesh):
        there = NamedSharding(own, sharding.spec)
        return traced_equation(lambda x: lax.with_sharding_constraint(x, there), [aval])[0]


def spec_in(
    stated: StatedAxes, shape: Shape, dtype: Any, device: DeviceGrid, before: Spec | None = None
) -> Sharded:
    """Return the spec of an untiled array that is divided by these axes.

    before: the spec of the value now; it remains there if it is divided so. Dims that are left open
    are divided as they are now, as far as their axes are free.
    """
    now = axes_of_dims(before) if isinstance(before, Sharded) else None
    used = {axis for axes in stated for axis in axes or ()}
    found: list[Axes] = []
    for d, axes in enumerate(stated):
        own = now[d] if axes is None and now is not None else axes or ()
        found.append(own if axes is not None or not used.intersection(own) else ())
    if isinstance(before, Sharded) and now == tuple(found):
        return before
    grid = tuple(map(device.count, found))
    layout = None if not isinstance(before, Sharded) else before.layout
    space = "l1" if layout is None or layout.memory is None else layout.memory
    return block_spec(shape, dtype, Placement(grid, tuple(found), grid, (1,) * len(grid)), space)


def axes_of_dims(spec: Sharded) -> tuple[Axes, ...] | None:
    """Return the axes that divide each dim into equal blocks, rounded up; None for other parts.

    >>> import gridlayout as gl
    >>> from jax.sharding import AbstractMesh
    >>> device = gl.DeviceGrid(AbstractMesh((2, 4), ("x", "y")))
    >>> axes_of_dims(Sharded(gl.GridLayout((5, 7), grid=(2, 4)), device.placement((2, 4))))
    (('x',), ('y0', 'y1'))
    """
    own, placed = grouped(spec.layout), spec.placement
    if own is None or 0 in spec.shape:
        return None
    found: list[Axes] = [()] * len(spec.shape)
    for k, axes in enumerate(placed.axes):
        if not axes:
            continue
        wide = [d for d in own.groups[k] if spec.shape[d] > 1]
        count = placed.slots[k] // placed.per_device[k]
        block = own.shard_shape[k] * placed.per_device[k]
        if len(wide) != 1 or block != -(-prod(spec.shape[d] for d in wide) // count):
            return None
        found[wide[0]] = axes
    return tuple(found)
