"""Access to JAX's jaxprs: what rules and the interpreter read, for all supported versions."""

from __future__ import annotations

from typing import Any

from jax.extend import core

# A separate class up to JAX 0.11; later a `Jaxpr` may hold its constants itself.
ClosedJaxpr: Any = vars(core)["ClosedJaxpr"]

# Call primitives, each with the name of the parameter that holds the called jaxpr.
CALLS = {
    **dict.fromkeys(("jit", "pjit", "checkpoint", "remat", "remat2"), "jaxpr"),
    **dict.fromkeys(
        ("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"
    ),
}
# The other parameters of calls that this library reads.
READ_OF_CALLS = ("name", "differentiated", "prevent_cse")


def called(eqn: Any) -> Any:
    """Return the closed jaxpr that an equation calls."""
    inner = eqn.params[CALLS[eqn.primitive.name]]
    return inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())


def jaxprs_in(params: Any) -> list[Any]:
    """Return the jaxprs among the parameters of an equation: called functions, loop bodies."""
    leaves = (
        leaf
        for value in params.values()
        for leaf in (value if isinstance(value, (tuple, list)) else (value,))
    )
    found = (getattr(leaf, "jaxpr", leaf) for leaf in leaves)
    return [each for each in found if hasattr(each, "eqns")]


def scan_parts(params: Any) -> tuple[int, int]:
    """Return (number of constants, number of constants and carried values) of a scan."""
    if "ft_in" not in params:  # JAX 0.10
        return params["num_consts"], params["num_consts"] + params["num_carry"]
    # A tree (constants, carry, scanned).
    consts, carry, _ = params["ft_in"].unpack()
    count = len(consts.vals)
    return count, count + len(carry.vals)


def requested_layouts(jaxpr: Any) -> list[Any]:
    """Return the layouts that `with_layout` requests in a jaxpr, inner jaxprs included."""
    found = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "with_layout":
            found.append(eqn.params["layout"])
        for inner in jaxprs_in(eqn.params):
            found += requested_layouts(inner)
    return found
