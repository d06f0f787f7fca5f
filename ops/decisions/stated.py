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
from jax.sharding import AbstractMesh, AxisType, NamedSharding

from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.document.grid_form import grouped
from gridlayout.ops.decisions.blocks import block_spec
from gridlayout.ops.decisions.jaxprs import traced_equation
from gridlayout.ops.decisions.specs import Sharded, Spec, is_of_keys
from gridlayout.sharding.collectives import Axes
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
    is_of_arrays = 0 not in aval.shape and not is_of_keys(aval)
    if name not in CONSTRAINTS or not is_of_arrays or is_of_types(name, params):
        return None
    return _stated_axes(params[CONSTRAINTS[name]], len(aval.shape), device)


_stated_axes = cached(stated_axes)


def is_of_types(name: str, params: Mapping[str, Any]) -> bool:
    """Return whether an equation adapts JAX's type of a value, and does nothing else.

    Derivatives reshard cotangents to the types of arguments, in which Auto axes divide nothing.
    """
    if name != "reshard":
        return False
    return AxisType.Explicit not in params[CONSTRAINTS[name]].mesh.axis_types


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
        return Sharded(layout, device.placement(layout.core_shape))
    axes = constraint(name, params, aval, device)
    return None if axes is None else spec_in(axes, aval.shape, aval.dtype, device)


def stating_equation(eqn: Any) -> Any:
    """Return an equation that states the sharding that an equation's parameters state; else None.

    Functions that JAX traces for Explicit axes have such parameters: `out_sharding=`.
    """
    if eqn.primitive.name in CONSTRAINTS:
        return None
    found = eqn.params.get("out_sharding", eqn.params.get("sharding"))
    if not isinstance(found, NamedSharding) or not any(found.spec) or len(eqn.outvars) != 1:
        return None
    return _stating_equation(found, eqn.outvars[0].aval)


@cached
def _stating_equation(sharding: NamedSharding, aval: Any) -> Any:
    auto = (AxisType.Auto,) * len(sharding.mesh.axis_names)
    sizes = tuple(sharding.mesh.shape.values())
    mesh = AbstractMesh(sizes, sharding.mesh.axis_names, axis_types=auto)
    with jax.sharding.use_abstract_mesh(mesh):
        there = NamedSharding(mesh, sharding.spec)
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
