"""JAX's jaxprs, where its versions differ: all that rules and the interpreter know of them."""

from __future__ import annotations

from typing import Any

from jax.extend import core

# A class of its own up to JAX 0.11; then a `Jaxpr` may hold its constants itself.
ClosedJaxpr: Any = vars(core)["ClosedJaxpr"]


def jaxprs_in(params: Any) -> list[Any]:
    """The jaxprs, of functions called or gone round, among the parameters of an equation."""
    leaves = (
        leaf
        for value in params.values()
        for leaf in (value if isinstance(value, (tuple, list)) else (value,))
    )
    found = (getattr(leaf, "jaxpr", leaf) for leaf in leaves)
    return [each for each in found if hasattr(each, "eqns")]
