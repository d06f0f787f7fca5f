"""The collectives of a traced jaxpr, such as that of a user's own rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

from gridlayout import dtypes
from gridlayout.ops.decisions.jaxprs import equations_of, jaxprs_in
from gridlayout.sharding.collectives import Collective, Collectives, total_bytes
from gridlayout.sharding.device_grid import DeviceGrid


def traced_collectives(closed: Any, device: DeviceGrid) -> tuple[Collective, ...]:
    """Return the collectives in the `shard_map`s of a closed jaxpr.

    A scan counts its body times its length, a while loop one iteration, a cond the branch that
    sends most bytes.
    """
    return tuple(_of(closed.jaxpr, device))


def _of(jaxpr: Any, device: DeviceGrid) -> Iterator[Collective]:
    for eqn in equations_of(jaxpr):
        name, params = eqn.primitive.name, eqn.params
        inner = [_of(each, device) for each in jaxprs_in(params)]
        if name == "cond":
            yield from max(map(list, inner), key=total_bytes)
        elif inner:
            for found in inner:
                yield from (each.times(params.get("length") or 1) for each in found)
        else:
            yield from _one(name, params, eqn, device)


def _one(name: str, params: Any, eqn: Any, device: DeviceGrid) -> list[Collective]:
    made = Collectives(device)
    axes = params.get("axes", params.get("axis_name"))
    axes = (axes,) if isinstance(axes, str) else tuple(axes or ())
    if not axes or not all(axis in device.fine.shape for axis in axes):
        return []
    nbytes = sum(_nbytes(atom.aval) for atom in eqn.invars)
    if name.startswith(("psum", "pmax", "pmin")):
        made.all_reduce(axes, nbytes)
    elif name.startswith("all_gather"):
        made.all_gather(axes, nbytes)
    elif name == "all_to_all":
        made.all_to_all(axes, nbytes)
    elif name == "ppermute":
        made.permute(axes, nbytes, sum(a != b for a, b in params["perm"]))
    elif name.startswith("reduce_scatter"):
        made.reduce_scatter(axes, nbytes)
    return made.found


def _nbytes(aval: Any) -> int:
    return dtypes.nbytes(aval.shape, jax.numpy.dtype(aval.dtype))
