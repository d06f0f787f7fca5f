"""Values of several dumps of one program, matched: which of one is which of another.

Two values are the same if the same op makes them, in the same shape, as the first, second, ... of
such in their function: compilers number values anew at every level, and keep their order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gridlayout.arguments import Shape
from gridlayout.costs import Described
from gridlayout.dump.values.readings import layout_of

Key = tuple[object, ...]
_NUMBERED = re.compile(r"(?:\.[0-9]+)+(?=_spmd$|$)")
_NUMBERS = re.compile("([0-9]+)")


class Value(NamedTuple):
    """A value that owns memory: where it is made, by which op, its type as text, its `layout`."""

    function: str
    name: str
    line: int
    op: str
    text: str

    @property
    def layout(self) -> Described:
        """What its type says."""
        return layout_of(self.text)


@dataclass(frozen=True)
class Match:
    """One value as several programs have it; None in one that does not."""

    op: str
    shape: Shape
    values: tuple[Value | None, ...]

    @property
    def is_changed(self) -> bool:
        """Whether it lies differently in two programs, or is not in all."""
        if None in self.values:
            return True
        texts = {value.text for value in self.values if value is not None}
        return len(texts) > 1 and len({layout_of(text) for text in texts}) > 1


def in_order(values: Iterable[Value]) -> list[Value]:
    """By line, those of one line by their names' numbers."""
    return sorted(values, key=lambda value: (value.line, _natural(value.name)))


def _natural(name: str) -> list[tuple[int, str]]:
    words = _NUMBERS.split(name)
    return [(int(word[:18]) if word.isdecimal() else 0, word) for word in words]


def matched(programs: Sequence[Sequence[Value]]) -> list[Match]:
    """All values, in the first program's order; those that it lacks behind the ones before them.

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
        function = _NUMBERED.sub("", value.function)  # XLA numbers computations anew
        key = (function, value.op, value.layout.shape)
        found[*key, seen[key]] = value
        seen[key] += 1
    return found


def _merged(order: list[Key], more: list[Key]) -> list[Key]:
    """Both orders' keys: those of `more` that `order` lacks stand behind what is before them."""
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
