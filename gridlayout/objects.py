"""The arguments of `explain` and `compare` that are not text: functions, pytrees and plans.

Functions are compiled by JAX for their arguments. `gridlayout.ops` summarizes pytrees of arrays and
compares plans. Both are imported only when such an argument is given.
"""

from __future__ import annotations

import io
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Chip

if TYPE_CHECKING:
    from gridlayout.ops.planning.comparison import TimeComparison as TimeComparison
    from gridlayout.ops.trees.summary import TreeSummary

_PROGRAMS = ("as_text", "runtime_executable")  # attributes of programs that jax.jit lowers
_TEXTS = (str, bytes, bytearray, memoryview, os.PathLike, io.IOBase)


def is_text(source: Any) -> bool:
    """Return whether the source is text, lines of text, a path to a text, or a program with text.

    >>> is_text("a"), is_text(["a", "b"]), is_text(iter([])), is_text({"a": 1}), is_text([1])
    (True, True, True, False, False)
    """
    if isinstance(source, (list, tuple)):
        return not source or isinstance(source[0], (str, bytes))
    if isinstance(source, _TEXTS) or any(hasattr(source, name) for name in _PROGRAMS):
        return True
    is_array = hasattr(source, "shape") and hasattr(source, "dtype")
    return hasattr(source, "__iter__") and not is_array and not isinstance(source, Mapping)


def name_of(function: Any) -> str:
    """Return the name of a function, at most 80 characters.

    >>> name_of(len)
    'len'
    """
    return str(getattr(function, "__name__", None) or repr(function))[:80]


def compiled(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the function compiled by JAX for these arguments, a `jax.stages.Compiled`.

    `LayoutError` if it is not a function or cannot be compiled for these arguments.
    """
    if not callable(function) or isinstance(function, type):
        raise LayoutError(
            f"{str(function)[:60]!r} is not a function, but arguments follow it: "
            "explain(function, *arguments) takes a function and the arguments of the call"
        )
    try:
        return _lowered(function, arguments).compile()
    except LayoutError:
        raise
    except Exception as error:  # anything that the function or a backend raises
        raise LayoutError(
            f"{name_of(function)} can't be compiled for these arguments: "
            f"{type(error).__name__}: {str(error)[:400]}"
        ) from error


def _lowered(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the function as `jax.jit` lowers it for these arguments.

    A function of logical arrays is lifted to the grid if an argument is a layout or a `GridArray`.
    """
    import jax

    from gridlayout.ops.array.grid_array import GridArray
    from gridlayout.ops.interpret.on_grid import OnGrid, on_grid

    def is_laid(x: Any) -> bool:
        return isinstance(x, (Layout, GridArray))

    kinds = set(map(type, filter(is_laid, jax.tree.leaves(arguments, is_leaf=is_laid))))
    if kinds - {GridArray}:
        return on_grid(function).lower(*arguments)
    if callable(getattr(function, "lower", None)):
        plain = function
    else:  # jax.jit takes functions that can be hashed
        called: Any = function if isinstance(function, Hashable) else lambda *x: function(*x)
        plain = jax.jit(called)
    try:
        return plain.lower(*arguments)
    except Exception:  # of a function that is not for GridArrays
        if not kinds or isinstance(function, OnGrid):
            raise
        return on_grid(function).lower(*arguments)


def is_timed(program: Any) -> bool:
    """Return whether a program has a time: a plan, a simulation or a loaded compiled program.

    >>> is_timed("module {}")
    False
    """
    return any(hasattr(program, name) for name in ("simulation", "simulated", "equations"))


def in_time(programs: Sequence[Any], names: Any, function: str | None) -> TimeComparison:
    """Return a comparison of plans, simulations and compiled programs by time.

    All are priced by the plan's machine. programs: these objects, or `Text`s of compiled programs.
    function: the function of the compiled programs to compare.
    """
    from gridlayout.ops.tenstorrent.timing import in_time

    return in_time(programs, names, function)


def tree_of(source: Any, chip: Chip | None, plan: bool) -> TreeSummary | None:
    """Return a table of a pytree's arrays and layouts; None if the source holds none.

    `LayoutError` for a dict without arrays and layouts, for a function given without arguments,
    and if `plan` is true.
    """
    from gridlayout.ops.trees.summary import summary

    found = summary(source, chip)
    if not found.rows and isinstance(source, Mapping):
        raise LayoutError(f"{type(source).__name__} without arrays or layouts: nothing to explain")
    if not found.rows and callable(source):
        raise LayoutError(
            f"function {name_of(source)} is explained for given arguments: "
            "gl.explain(function, *arguments)"
        )
    if found.rows and plan:
        raise LayoutError(
            "plan is for a dump, a layout or a GridArray, not a tree: give its leaves one by one"
        )
    return found if found.rows else None
