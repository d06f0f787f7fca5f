"""Traces of functions on logical shapes, in which a lifted function is called as it is.

A function sees the axes of the mesh that its device grid was made from, as under `jax.set_mesh`.
Names of other axes are of no mesh here. JAX refuses them, so they are added to the mesh that the
function sees, as axes of one device, and what they state is ignored (`axes_of`): as without a
mesh, where Flax reads no annotations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cache
from typing import Any

import jax
from jax.extend import core
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

from gridlayout.errors import LayoutError
from gridlayout.ops.interpret.references import without_references
from gridlayout.sharding.device_grid import DeviceGrid

_is_tracing: ContextVar[bool] = ContextVar("gridlayout_tracing", default=False)
# Whether a function is being traced for the grid.
is_tracing = _is_tracing.get

# JAX's messages: about a spec that names an axis that the mesh has not; about an Auto axis where
# types of arrays state shardings.
_UNKNOWN_AXIS = re.compile(r"Resource axis: (.+?) of (.+?) is not found in mesh: (\(.*\))")
_NEEDS_EXPLICIT = "cannot contain axis names that are of type Auto"
_UNEVEN = re.compile(r"does not evenly divide|implies that array axis \d+ is partitioned")
_EXPLICIT = "passed to with_sharding_constraint can only refer to Auto axes"
_UNBOUND = "unbound axis name"
_HOW_UNBOUND = (
    "a function on the grid sees whole arrays, which x.sum() adds up on all devices: it needs no "
    "jax.lax.psum. gl.map_shards runs code of one core, with the collectives of gl.cores"
)
_HOW_UNEVEN = (
    "JAX checks this before gl.on_grid sees the sharding: where a dim does not divide, state it by "
    "jax.lax.with_sharding_constraint(x, PartitionSpec(...)) instead, which takes all dims"
)
_HOW_EXPLICIT = (
    "inside gl.on_grid, give jax.lax.with_sharding_constraint the PartitionSpec alone, without the "
    "mesh: then its axes may be Explicit, and dims need not divide evenly"
)


def logical_jaxpr(fn: Callable[..., Any], avals: Iterable[Any], device: DeviceGrid) -> Any:
    """Return the closed jaxpr of a function on logical shapes, for this device grid.

    Derivatives run code of users too: the rules of `jax.custom_vjp`, for example. The axes of the
    mesh are Auto; inside, they are Explicit if the function states shardings that JAX takes for
    these only, such as `out_sharding=`. `LayoutError` for a spec that names axes of the mesh and
    others, and for a name that is nearly one of the mesh.
    """
    avals = list(avals)
    added: tuple[str, ...] = ()
    traced, count = fn, len(avals)
    token = _is_tracing.set(True)
    try:
        while True:
            mesh = _mesh(device, added)
            try:
                with device.active(), jax.sharding.use_abstract_mesh(mesh):
                    return without_references(jax.make_jaxpr(traced)(*avals))
            except ValueError as error:
                names = _unknown_axes(error, device, mesh)
                if traced is fn and _NEEDS_EXPLICIT in str(error):
                    traced = jax.sharding.explicit_axes(fn, in_sharding=(PartitionSpec(),) * count)
                elif names:
                    added += names
                else:
                    if _UNEVEN.search(str(error)):
                        error.add_note(_HOW_UNEVEN)
                    if _EXPLICIT in str(error):
                        error.add_note(_HOW_EXPLICIT)
                    raise
            except NameError as error:
                if _UNBOUND in str(error):
                    error.add_note(_HOW_UNBOUND)
                raise
    finally:
        _is_tracing.reset(token)


def _mesh(device: DeviceGrid, added: tuple[str, ...]) -> AbstractMesh:
    names, sizes = (*device.sizes, *added), (*device.shape, *(1 for _ in added))
    return AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(names))


def _unknown_axes(error: ValueError, device: DeviceGrid, mesh: AbstractMesh) -> tuple[str, ...]:
    """Return the axes of no mesh that a spec names, where JAX's error is about such a spec."""
    found = _UNKNOWN_AXIS.search(str(error))
    if found is None or found[3] != str(tuple(mesh.axis_names)):
        return ()
    name, spec, own = found[1], found[2], tuple(device.sizes)
    named = tuple(dict.fromkeys(re.findall(r"'([^']*)'", spec)))
    near = get_close_matches(name, own, 1)
    if near:
        fix = f"it has an axis {near[0]!r}"
    elif set(named) & set(own):
        fix = "name axes of the device grid's mesh alone, or None where a dim is not divided"
    else:
        return tuple(each for each in named if each not in mesh.axis_names)
    raise LayoutError(f"{spec} names an axis {name!r}, which {device!r} does not have: {fix}")


def is_traced() -> bool:
    """Return whether JAX is tracing, whatever the operands are."""
    return bool(core.get_opaque_trace_state() != _untraced())


@cache
def _untraced() -> Any:
    with jax.core.eval_context():
        return core.get_opaque_trace_state()
