"""Objects: what `explain` and `compare` are given that is no text: functions, trees, plans.

JAX compiles functions with their arguments; what lists trees of arrays, and what puts plans side by
side, stands on the third floor. They are imported when such an object comes.
"""

from __future__ import annotations

import io
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import Chip

if TYPE_CHECKING:
    from gridlayout.ops.planning.comparison import TimeComparison as TimeComparison
    from gridlayout.ops.trees.summary import TreeSummary

_PROGRAMS = ("as_text", "runtime_executable")  # what jax.jit lowers and compiles has these
_TEXTS = (str, bytes, bytearray, memoryview, os.PathLike, io.IOBase)


def is_text(source: Any) -> bool:
    """Whether the source is a text or lines of it, a path to one, or a program that has a text.

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
    """What a function is called.

    >>> name_of(len)
    'len'
    """
    return str(getattr(function, "__name__", None) or repr(function))[:80]


def compiled(function: Any, arguments: tuple[Any, ...]) -> Any:
    """What JAX compiles of a function for those arguments: a `jax.stages.Compiled`.

    `LayoutError` for what is no function, and for one that can't be compiled for them.
    """
    if not callable(function) or isinstance(function, type):
        raise LayoutError(
            f"{str(function)[:60]!r} is no function, but has arguments after it: "
            "explain(function, *arguments) takes a function and what it is called with"
        )
    import jax

    called = function
    try:
        if not callable(getattr(function, "lower", None)):
            known = isinstance(function, Hashable)  # jax.jit takes no others
            function = jax.jit(function if known else lambda *given: called(*given))
        return function.lower(*arguments).compile()
    except LayoutError:
        raise
    except Exception as error:  # whatever the function, or a backend, raises
        raise LayoutError(
            f"{name_of(called)} can't be compiled for these arguments: "
            f"{type(error).__name__}: {str(error)[:400]}"
        ) from error


def is_timed(program: Any) -> bool:
    """Whether a program has a time: a plan, a simulation or a compiled program that was loaded.

    >>> is_timed("module {}")
    False
    """
    return any(hasattr(program, name) for name in ("simulation", "simulated", "equations"))


def in_time(programs: Sequence[Any], names: Any, function: str | None) -> TimeComparison:
    """Plans, simulations and compiled programs side by side, priced by the plan's machine.

    programs: those, or `Text`s of compiled ones. function: which of theirs is meant.
    """
    from gridlayout.ops.tenstorrent.timing import in_time

    return in_time(programs, names, function)


def tree_of(source: Any, chip: Chip | None, plan: bool) -> TreeSummary | None:
    """The table of a tree's arrays and layouts; None for what is no tree, or has none of them.

    `LayoutError` for a dict of neither, a function without arguments, and where a plan is wanted.
    """
    from gridlayout.ops.trees.summary import summary

    found = summary(source, chip)
    if not found.rows and isinstance(source, Mapping):
        raise LayoutError(f"{type(source).__name__} without arrays or layouts: nothing to explain")
    if not found.rows and callable(source):
        raise LayoutError(
            f"function {name_of(source)} is explained for what it is called with: "
            "explain(function, *arguments)"
        )
    if found.rows and plan:
        raise LayoutError(
            "plan is for a dump, a layout or a GridArray: give a tree's leaves singly"
        )
    return found if found.rows else None
