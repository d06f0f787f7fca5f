"""`jitted`: `jax.jit` for functions of layouts, whose programs count towards `gl.caches.limit`.

`jax.jit` keeps one program per value of its static arguments, up to thousands, however large. The
functions move numbers, padding included, so they run without JAX's checks of numbers.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from contextlib import nullcontext
from functools import update_wrapper
from typing import Any

import jax

from gridlayout.caching import Kept, drop_all
from gridlayout.sharding.number_checks import without_number_checks
from gridlayout.sharding.processes.programs import AgreedJit

# The bytes on the host of one such program with its executable, measured on emulated devices.
_PROGRAM = 1 << 19


class Program:
    """A jitted function with its static arguments. held_bytes: an estimate of its host memory."""

    held_bytes = _PROGRAM

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run


def jitted(*static: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function to run under `jax.jit`, one program per values of static arguments.

    static: the positions of these arguments. All arguments are positional.

    >>> import jax.numpy as jnp
    >>> @jitted(1)
    ... def power(x, n):
    ...     return x**n
    >>> power(jnp.arange(3), 2).tolist()
    [0, 1, 4]
    """

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        known: Kept[Hashable, Program] = Kept()

        def call(*args: Any) -> Any:
            key = tuple(args[k] for k in static)
            program = known.get(key)
            if program is None:
                arm()
                program = Program(_with_static(fn, dict(zip(static, key, strict=True))))
                known.add(key, program, program)
            arrays = [x for k, x in enumerate(args) if k not in static]
            with without_number_checks(nullcontext()):
                return program.run(*arrays)

        return update_wrapper(call, fn)

    return decorate


def _with_static(fn: Callable[..., Any], static: dict[int, Any]) -> Callable[..., Any]:
    def run(*arrays: Any) -> Any:
        rest = iter(arrays)
        count = len(static) + len(arrays)
        return fn(*(static[k] if k in static else next(rest) for k in range(count)))

    # Inlined where it is traced: calls of one program would be lowered once, and those of a program
    # that was dropped between them and made again, twice.
    named = update_wrapper(run, fn, assigned=("__name__", "__qualname__"), updated=())
    return AgreedJit(jax.jit(named, inline=True))


# -- jax.clear_caches() ----------------------------------------------------------------------------


class _Token:
    """An object that only JAX's caches hold."""


class _Carrier:
    """A pytree without leaves whose structure holds a token."""

    def __init__(self, token: _Token) -> None:
        self.token = token


jax.tree_util.register_pytree_node(
    _Carrier, lambda carrier: ((), carrier.token), lambda token, _: _Carrier(token)
)


@jax.jit
def _carried() -> _Carrier:
    # Runs only if JAX has no trace of it, so JAX's cache of traces then holds this token.
    token = _Token()
    weakref.finalize(token, drop_all).atexit = False
    return _Carrier(token)


def arm() -> None:
    """Let `jax.clear_caches()` drop what the library caches from now on, too.

    JAX has no hook for it. It drops the trace of `_carried`, and so the last reference to a token.
    """
    jax.eval_shape(_carried)
