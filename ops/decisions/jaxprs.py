"""Access to JAX's jaxprs, for all supported versions, and the collectives in a traced one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
from jax.extend import core

from gridlayout import dtypes
from gridlayout.caching import cached
from gridlayout.sharding.collectives import Collective, Collectives, total_bytes
from gridlayout.sharding.device_grid import DeviceGrid

# A separate class up to JAX 0.11; later a `Jaxpr` may hold its constants itself.
ClosedJaxpr: Any = vars(core)["ClosedJaxpr"]

# Call primitives, each with the name of the parameter that holds the called jaxpr.
CALLS = {
    **dict.fromkeys(("jit", "pjit", "checkpoint", "remat", "remat2"), "jaxpr"),
    **dict.fromkeys(
        ("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"
    ),
}
_SOLVE = "custom_linear_solve"


def closed_of(jaxpr: Any) -> Any:
    """Return a jaxpr with its constants; those of an open one become operands."""
    if isinstance(jaxpr, ClosedJaxpr):
        return jaxpr
    if not jaxpr.constvars:
        return ClosedJaxpr(jaxpr, ())
    operands = [*jaxpr.constvars, *jaxpr.invars]
    return jaxpr_of(operands, jaxpr.eqns, jaxpr.outvars, jaxpr)


def is_call(eqn: Any) -> bool:
    """Return whether an equation calls a function once, on its operands."""
    return eqn.primitive.name in CALLS or eqn.primitive.name == _SOLVE


def called(eqn: Any) -> tuple[Any, list[int]]:
    """Return the closed jaxpr that an equation calls, and the operands that it calls it on."""
    if eqn.primitive.name == _SOLVE:
        # The matrix and its transpose are for derivatives, which have been taken by then.
        counts = eqn.params["const_lengths"]
        first, number = counts.matvec + counts.vecmat, len(eqn.invars)
        own = [*range(first, first + counts.solve), *range(sum(counts), number)]
        return eqn.params["jaxprs"].solve, own
    return closed_of(eqn.params[CALLS[eqn.primitive.name]]), list(range(len(eqn.invars)))


def keeps_apart(eqn: Any) -> bool:
    """Return whether a call computes anew what the forward pass has: it is rematerialized."""
    return bool(eqn.params.get("differentiated") and eqn.params.get("prevent_cse"))


def jaxprs_in(params: Any) -> list[Any]:
    """Return the jaxprs among the parameters of an equation: called functions, loop bodies."""
    leaves = (
        leaf
        for value in params.values()
        for leaf in (value if isinstance(value, (tuple, list)) else (value,))
    )
    found = (getattr(leaf, "jaxpr", leaf) for leaf in leaves)
    return [each for each in found if hasattr(each, "eqns")]


def equations_of(jaxpr: Any) -> list[Any]:
    """Return the equations of a jaxpr, as they are."""
    return list(getattr(jaxpr, "jaxpr", jaxpr).eqns)


def equations(eqn: Any) -> Iterator[Any]:
    """Yield an equation, and those of the jaxprs among its parameters, nested ones too."""
    yield eqn
    yield from inner_equations(eqn.params)


def inner_equations(params: Any) -> Iterator[Any]:
    """Yield the equations of the jaxprs among parameters, nested ones too."""
    for jaxpr in jaxprs_in(params):
        for eqn in equations_of(jaxpr):
            yield from equations(eqn)


def jaxpr_of(operands: Sequence[Any], eqns: Sequence[Any], outs: Sequence[Any], like: Any) -> Any:
    """Return the closed jaxpr of equations; like: a jaxpr or an equation that has its effects."""
    names = ("x",) * len(operands), ("",) * len(outs)
    info = core.DebugInfo("gridlayout", "program", *names)
    return ClosedJaxpr(
        core.Jaxpr((), list(operands), list(outs), list(eqns), like.effects, info), ()
    )


@cached
def equation_of(primitive: Any, params: tuple[tuple[str, Any], ...], *operands: Any) -> Any:
    """Return an equation of a primitive. params: pairs of name and value."""
    closed = jax.make_jaxpr(lambda *xs: primitive.bind(*xs, **dict(params)))(*operands)
    (eqn,) = closed.jaxpr.eqns
    return eqn


def traced_equation(fn: Any, avals: Sequence[Any]) -> tuple[Any, list[int]]:
    """Return the only equation of a function of arrays, and which of these it reads, in order."""
    given = [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in avals]
    closed = jax.make_jaxpr(fn)(*given)
    (eqn,) = closed.jaxpr.eqns
    return eqn, [closed.jaxpr.invars.index(v) for v in eqn.invars if isinstance(v, core.Var)]


def scan_parts(params: Any) -> tuple[int, int]:
    """Return (number of constants, number of constants and carried values) of a scan."""
    if "ft_in" not in params:  # JAX 0.10
        return params["num_consts"], params["num_consts"] + params["num_carry"]
    # A tree (constants, carry, scanned).
    consts, carry, _ = params["ft_in"].unpack()
    count = len(consts.vals)
    return count, count + len(carry.vals)


def traced_collectives(closed: Any, device: DeviceGrid) -> tuple[Collective, ...]:
    """Return the collectives in the `shard_map`s of a closed jaxpr.

    A scan counts its body times its length, a while loop one iteration, a cond the branch that
    sends most bytes.
    """
    return tuple(_collectives_in(closed.jaxpr, device))


def _collectives_in(jaxpr: Any, device: DeviceGrid) -> Iterator[Collective]:
    for eqn in equations_of(jaxpr):
        name, params = eqn.primitive.name, eqn.params
        inner = [_collectives_in(each, device) for each in jaxprs_in(params)]
        if name == "cond":
            yield from max(map(list, inner), key=total_bytes)
        elif inner:
            for found in inner:
                yield from (each.times(params.get("length") or 1) for each in found)
        else:
            yield from _collectives_of(name, params, eqn, device)


def _collectives_of(name: str, params: Any, eqn: Any, device: DeviceGrid) -> list[Collective]:
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
