"""`replaced`: calls a layout's constructor again with some arguments changed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from gridlayout.errors import LayoutError


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
