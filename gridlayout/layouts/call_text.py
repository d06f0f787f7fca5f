"""Calls of layouts' constructors: their text, and the same call with some arguments changed.

The call is the text form of layouts whose system has none, such as `sophon.local((2, 3, 4, 5),
'float32', layout='compact')`. `gridlayout.constructor` parses this form.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from gridlayout.dtypes import OOB_NAMES, Scalar, number_code, oob_text
from gridlayout.errors import LayoutError


def call_text(name: str, *args: Any, **kwargs: Any) -> str:
    """The text of a call. Arguments print as their repr; infinities print as `float('inf')`.

    >>> call_text("mli.tensor", (4, 5, 3), "HWC", "int8", mem_stride=None)
    "mli.tensor((4, 5, 3), 'HWC', 'int8', mem_stride=None)"
    """
    arguments = [_text(a) for a in args] + [f"{k}={_text(v)}" for k, v in kwargs.items()]
    return f"{name}({', '.join(arguments)})"


def _text(value: Any) -> str:
    return number_code(value) if isinstance(value, (float, complex)) else repr(value)


def oob_argument(oob: Scalar | None) -> dict[str, Any]:
    """The `oob` argument of a layout's constructor call, as a dict; empty for undef padding."""
    if oob is None:
        return {}
    word = oob_text(oob)
    return {"oob": word if word in OOB_NAMES else oob}


def replaced(
    made: Callable[..., Any],
    now: Mapping[str, Any],
    changes: Mapping[str, Any],
    either: Sequence[Sequence[str]] = (),
) -> Any:
    """Return `made(**now)` with some arguments changed.

    made: the constructor. now: its current arguments. either: groups of mutually exclusive
    arguments; a changed one removes the others. `LayoutError` for names that are not arguments.

    >>> replaced(dict, {"shape": (2,)}, {"tile": (4,)})
    {'shape': (2,), 'tile': (4,)}
    """
    known = _parameters(made)
    if known and (unknown := [name for name in changes if name not in known]):
        near = get_close_matches(unknown[0], known, 1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise LayoutError(
            f"replace: {unknown[0]!r} is not an argument of {made.__name__}, which takes "
            f"{', '.join(known)}{meant}"
        )
    dropped = {name for names in either if changes.keys() & set(names) for name in names}
    return made(**{**{name: x for name, x in now.items() if name not in dropped}, **changes})


@cache
def _parameters(made: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a constructor's arguments; empty if its signature is unavailable."""
    try:
        return tuple(inspect.signature(made).parameters)
    except ValueError:
        return ()
