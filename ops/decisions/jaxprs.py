"""JAX's jaxprs, where its versions differ: all that rules and the interpreter know of them."""

from __future__ import annotations

from typing import Any

from jax.extend import core

# A class of its own up to JAX 0.11; then a `Jaxpr` may hold its constants itself.
ClosedJaxpr: Any = vars(core)["ClosedJaxpr"]

# Calls, each with the name of the parameter that holds the called jaxpr.
CALLS = {
    **dict.fromkeys(("jit", "pjit", "checkpoint", "remat", "remat2"), "jaxpr"),
    **dict.fromkeys(
        ("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"
    ),
}
# What else is read of a call.
READ_OF_CALLS = ("name", "differentiated", "prevent_cse")


def called(eqn: Any) -> Any:
    """The closed jaxpr that a call is of."""
    inner = eqn.params[CALLS[eqn.primitive.name]]
    return inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())


def jaxprs_in(params: Any) -> list[Any]:
    """The jaxprs, of functions called or gone round, among the parameters of an equation."""
    leaves = (
        leaf
        for value in params.values()
        for leaf in (value if isinstance(value, (tuple, list)) else (value,))
    )
    found = (getattr(leaf, "jaxpr", leaf) for leaf in leaves)
    return [each for each in found if hasattr(each, "eqns")]


def scan_parts(params: Any) -> tuple[int, int]:
    """How many operands of a scan are constants, and how many those and the carry are."""
    if "ft_in" not in params:  # JAX 0.10
        return params["num_consts"], params["num_consts"] + params["num_carry"]
    # Its own kind of tree: (constants, carry, scanned). The leaves of the first two are counted.
    consts, carry, _ = params["ft_in"].unpack()
    count = len(consts.vals)
    return count, count + len(carry.vals)


def asked_layouts(jaxpr: Any) -> list[Any]:
    """The layouts that `with_layout` asks for in a jaxpr, and in those inside."""
    found = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "with_layout":
            found.append(eqn.params["layout"])
        for inner in jaxprs_in(eqn.params):
            found += asked_layouts(inner)
    return found
