"""Support for `GridArray`s in Equinox, whose filters then treat them as arrays.

The filters check `isinstance(x, jax.Array)`, which is true for JAX's own arrays only, and for no
type of `jax.experimental.hijax`. So this module changes functions of Equinox, for `GridArray`s
only. It replaces their code, as other modules, default arguments and programs already refer to the
function objects.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import unwrap
from types import FunctionType
from typing import Any

import jax.numpy as jnp
import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.trees.arrays import put
from gridlayout.ops.user import numpy as lifted


@cache
def register(equinox: Any) -> None:
    """Make Equinox's filters, `filter_vmap` and (de)serialisation accept `GridArray`s."""
    is_here: dict[str, Callable[..., Any]] = {
        "is_array": _is_array,
        "is_array_like": _is_array,
        "is_inexact_array": _is_inexact,
        "is_inexact_array_like": _is_inexact,
        "default_serialise_filter_spec": _write,
        "default_deserialise_filter_spec": _read,
    }
    found = {unwrap(getattr(equinox, name)): instead for name, instead in is_here.items()}
    found[unwrap(equinox._vmap_pmap._moveaxis)] = _moved
    for function, instead in found.items():
        _extend(function, instead)


def _extend(function: FunctionType, instead: Callable[..., Any]) -> None:
    """Make a function call `instead` if an argument is a `GridArray`."""
    known = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__
    )
    known.__kwdefaults__ = function.__kwdefaults__
    function.__code__ = _either.__code__
    function.__kwdefaults__ = {"known": known, "instead": instead, "grid": GridArray}
    function.__wrapped__ = known  # type: ignore[attr-defined]


def _either(*args: Any, known: Any, instead: Any, grid: Any, **named: Any) -> Any:
    for x in (*args, *named.values()):
        if isinstance(x, grid):
            return instead(*args, **named)
    return known(*args, **named)


def _is_array(element: GridArray) -> bool:
    return True


def _is_inexact(element: GridArray) -> bool:
    return bool(jnp.issubdtype(element.dtype, np.inexact))


def _moved(array: GridArray, axis: int) -> Any:
    """Return the array with its mapped dim, the first one, at `axis`."""
    return array if axis == 0 else lifted.moveaxis(array, 0, axis)


def _write(f: Any, x: GridArray) -> None:
    """Write the logical array, as Equinox writes an array of JAX."""
    jnp.save(f, np.asarray(x))


def _read(f: Any, x: GridArray) -> GridArray:
    """Return the array in a file, in the layout of `x`; `LayoutError` for another shape or type."""
    array = jnp.load(f)
    if (array.shape, array.dtype) != (x.shape, x.dtype):
        raise LayoutError(
            f"the file has {array.dtype.name}{list(array.shape)} where `like` has {x!r}: give "
            "tree_deserialise_leaves a tree of the shapes and types that were written"
        )
    found: GridArray = put(array, x.layout, x.device)
    return found
