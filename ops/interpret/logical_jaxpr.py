"""Traces of functions on logical shapes, in which a lifted function is called as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import cache
from typing import Any

import jax
from jax.extend import core

_is_tracing: ContextVar[bool] = ContextVar("gridlayout_tracing", default=False)
# Whether a function is being traced for the grid.
is_tracing = _is_tracing.get


def logical_jaxpr(fn: Callable[..., Any], avals: Iterable[Any]) -> Any:
    """Return the closed jaxpr of a function on logical shapes.

    Derivatives run code of users too: the rules of `jax.custom_vjp`, for example.
    """
    token = _is_tracing.set(True)
    try:
        return jax.make_jaxpr(fn)(*avals)
    finally:
        _is_tracing.reset(token)


def is_traced() -> bool:
    """Return whether JAX is tracing, whatever the operands are."""
    return bool(core.get_opaque_trace_state() != _untraced())


@cache
def _untraced() -> Any:
    with jax.core.eval_context():
        return core.get_opaque_trace_state()
