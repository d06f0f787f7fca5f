"""Matches the values of several dumps of one program.

Two values match if they have the same function, op and shape, and the same position among the
values of that function, op and shape. Compilers renumber values at each level of optimization, but
keep their order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gridlayout.arguments import Shape
from gridlayout.costs import Described
from gridlayout.dump.values.type_texts import layout_of

Key = tuple[object, ...]
_NUMBERED = re.compile(r"(?:\.[0-9]+)+(?=_spmd$|$)")
_NUMBERS = re.compile("([0-9]+)")


class Value(NamedTuple):
    """A value that owns memory. line: where `op` defines it. text: its type."""

    function: str
    name: str
    line: int
    op: str
    text: str

    @property
    def layout(self) -> Described:
        """The layout of its type."""
        return layout_of(self.text)


@dataclass(frozen=True)
class Match:
    """One value in each of several programs; None in a program without it."""

    op: str
    shape: Shape
    values: tuple[Value | None, ...]

    @property
    def is_changed(self) -> bool:
        """Whether two programs have different layouts for it, or one does not have it."""
        if None in self.values:
            return True
        texts = {value.text for value in self.values if value is not None}
        return len(texts) > 1 and len({layout_of(text) for text in texts}) > 1


def in_order(values: Iterable[Value]) -> list[Value]:
    """Return the values sorted by line, then by name, with numbers in names compared as numbers."""
    return sorted(values, key=lambda value: (value.line, _natural(value.name)))


def _natural(name: str) -> list[tuple[int, str]]:
    words = _NUMBERS.split(name)
    return [(int(word[:18]) if word.isdecimal() else 0, word) for word in words]


def matched(programs: Sequence[Sequence[Value]]) -> list[Match]:
    """Return the matches of all values, in the order of the first program.

    A value that the first program lacks follows the value that precedes it in its own program.

    >>> tensor = "f32[8]{{0:T({})}}".format
    >>> a, b = (Value("f", "x", 1, "add", tensor(n)) for n in (8, 128))
    >>> extra = Value("f", "y", 2, "copy", tensor(8))
    >>> [(m.op, m.is_changed) for m in matched([[a], [b, extra]])], len(matched([[a], [a]]))
    ([('add', True), ('copy', True)], 1)
    """
    keyed = [_keyed(values) for values in programs]
    order: list[Key] = []
    for each in keyed:
        order = _merged(order, list(each))
    found = []
    for key in order:
        values = tuple(each.get(key) for each in keyed)
        first = next(value for value in values if value is not None)
        found.append(Match(first.op, first.layout.shape, values))
    return found


def _keyed(values: Iterable[Value]) -> dict[Key, Value]:
    seen: Counter[Key] = Counter()
    found: dict[Key, Value] = {}
    for value in in_order(values):
        function = _NUMBERED.sub("", value.function)  # XLA renumbers computations
        key = (function, value.op, value.layout.shape)
        found[*key, seen[key]] = value
        seen[key] += 1
    return found


def _merged(order: list[Key], more: list[Key]) -> list[Key]:
    """Merge two orders: each new key of `more` is inserted after its predecessor in `more`."""
    known = set(order)
    behind: dict[Key | None, list[Key]] = {}
    last = None
    for key in more:
        if key in known:
            last = key
        else:
            behind.setdefault(last, []).append(key)
    found = list(behind.get(None, ()))
    for key in order:
        found += [key, *behind.get(key, ())]
    return found
