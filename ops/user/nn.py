"""`jax.nn` lifted to the grid: its functions, taking and returning `GridArray`s."""

from __future__ import annotations

from typing import Any

import jax.nn

from gridlayout.ops.user.lifted import lifted_attribute


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return lifted_attribute(jax.nn, name)


def __dir__() -> list[str]:
    return dir(jax.nn)
