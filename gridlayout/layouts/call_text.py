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

import numpy as np

from gridlayout.dtypes import number_code, oob_code
from gridlayout.errors import LayoutError


def call_text(name: str, arguments: Mapping[str, Any], positional: int, words: bool = True) -> str:
    """The text of a constructor's call with these arguments, the first ones without their names.

    Arguments print as their repr, dtypes as their names, infinities as `float('inf')`, and padding
    as its word if it has one and `words` is True. Undef padding is left out.

    >>> import numpy as np
    >>> arguments = {"shape": (4, 5), "layout": "HW", "dtype": np.dtype("int8"), "oob": 0}
    >>> call_text("mli.tensor", arguments, 3)
    "mli.tensor((4, 5), 'HW', 'int8', oob='zero')"
    """
    named = {key: _text(value) for key, value in arguments.items()}
    if (oob := arguments.get("oob")) is None:
        named.pop("oob", None)
    elif words:
        named["oob"] = oob_code(oob)
    texts = [
        text if k < positional else f"{key}={text}" for k, (key, text) in enumerate(named.items())
    ]
    return f"{name}({', '.join(texts)})"


def _text(value: Any) -> str:
    if isinstance(value, np.dtype):
        return repr(value.name)
    return number_code(value) if isinstance(value, (float, complex)) else repr(value)


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
