"""`replaced`: a layout's constructor called again, with some of its arguments changed."""

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
    """What a constructor makes of the arguments it had, but for the changed ones.

    either: names of which only one is given; a changed one takes the others' place. `LayoutError`
    for names that are no argument.

    >>> replaced(dict, {"shape": (2,)}, {"tile": (4,)})
    {'shape': (2,), 'tile': (4,)}
    """
    known = _parameters(made)
    if known and (unknown := [name for name in changes if name not in known]):
        near = get_close_matches(unknown[0], known, 1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise LayoutError(
            f"replace: {unknown[0]!r} is no argument of {made.__name__}, which takes "
            f"{', '.join(known)}{meant}"
        )
    gone = {name for names in either if changes.keys() & set(names) for name in names}
    return made(**{**{name: x for name, x in now.items() if name not in gone}, **changes})


@cache
def _parameters(made: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a constructor's arguments; none where Python does not say."""
    try:
        return tuple(inspect.signature(made).parameters)
    except ValueError:
        return ()
