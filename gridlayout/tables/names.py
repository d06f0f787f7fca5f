"""Names of compared programs: given by users, or derived from the paths of their sources."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from gridlayout.errors import LayoutError

MAX_PROGRAMS = 8  # drawings have this many colours


def check_count(count: int) -> None:
    """Raise `LayoutError` unless this number of programs can be compared."""
    if not 2 <= count <= MAX_PROGRAMS:
        raise LayoutError(f"2 to {MAX_PROGRAMS} programs are compared, not {count}")


def names_of(sources: Sequence[str]) -> list[str]:
    """Return short names: the parts in which the paths differ, or numbers if they do not.

    >>> names_of(["dumps/mlp.p150.O0.mlir", "dumps/mlp.p150.O2.mlir"]), names_of(["a", "a"])
    (['O0', 'O2'], ['1', '2'])
    """
    if len(sources) == 1:
        return [re.split(r"[/\\]", sources[0])[-1] or "1"]
    parts = [re.split(r"[./\\]+", source) for source in sources]
    while all(len(each) > 1 for each in parts) and len({each[-1] for each in parts}) == 1:
        parts = [each[:-1] for each in parts]
    while all(len(each) > 1 for each in parts) and len({each[0] for each in parts}) == 1:
        parts = [each[1:] for each in parts]
    found = [".".join(filter(None, each)) for each in parts]
    if len(set(found)) == len(found) and all(found):
        return found
    return [str(k) for k in range(1, len(found) + 1)]


def checked_names(names: Any, count: int) -> list[str]:
    """Return `names` as a list; `LayoutError` unless they are `count` distinct strings."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise LayoutError(f"names {names!r} must be a sequence of {count} strings")
    if len(names) != count or not all(isinstance(name, str) and name for name in names):
        raise LayoutError(f"names {list(names)!r} must be {count} strings, one per program")
    if len(set(names)) != len(names):
        raise LayoutError(f"names {list(names)!r} must differ")
    return list(names)
