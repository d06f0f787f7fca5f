"""JAX's jaxprs, where its versions differ: all that rules and the interpreter know of them."""

from __future__ import annotations

from typing import Any

from jax.extend import core

# A class of its own up to JAX 0.11; then a `Jaxpr` may hold its constants itself.
ClosedJaxpr: Any = vars(core)["ClosedJaxpr"]
