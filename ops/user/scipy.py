"""`jax.scipy` lifted to the grid: its submodules, whose functions take and return `GridArray`s."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import jax.scipy

from gridlayout.ops.user.lifted import lifted_attribute

_SUBMODULES = (
    *("cluster", "fft", "integrate", "linalg", "ndimage", "optimize", "signal", "sparse"),
    *("special", "stats"),
)


def __getattr__(name: str) -> Any:
    if name not in _SUBMODULES:
        raise AttributeError(f"gl.scipy has {', '.join(_SUBMODULES)}, and no {name!r}")
    import_module(f"jax.scipy.{name}")
    return lifted_attribute(jax.scipy, name)


def __dir__() -> list[str]:
    return [*_SUBMODULES]
