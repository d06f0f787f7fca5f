"""Statements: what one line of a dump says, whatever its language."""

from __future__ import annotations

import re
from typing import NamedTuple

from gridlayout.arguments import Shape

_PERMUTATION = re.compile(r"(?:dimensions=\{|permutation = array<i64: ?)([0-9, ]+)[}>]")


Mention = tuple[int, str]  # the line of a type, and its text with aliases written out


class Made(NamedTuple):
    """A value that a line makes: its name, its type, the address in bytes where it is stated."""

    name: str
    text: str
    line: int
    address: int | None = None


class Flow(NamedTuple):
    """Data that goes from one type to another: the operand's text, and the result.

    permutation: dim k of the result is dim `permutation[k]` of the operand; empty where dims stay.
    swap: instead, two dims that change places, negative ones counted from the rank.
    """

    before: str
    after: Made
    permutation: Shape = ()
    swap: Shape = ()


class Statement(NamedTuple):
    """What a line says. `line` is its number, `op` its operation.

    reads: values that it reads. mentions: all types with a layout. made: the values that it makes,
    and frees: those that it ends. is_view: what it makes has no memory of its own. is_empty: it
    only allocates, for a later op to fill.
    """

    line: int
    op: str
    reads: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    flow: Flow | None = None
    made: tuple[Made, ...] = ()
    frees: tuple[str, ...] = ()
    is_view: bool = False
    is_empty: bool = False


def reordering(text: str) -> Shape:
    """The permutation that an op states, () where it states none.

    >>> reordering("permutation = array<i64: 1, 0>")
    (1, 0)
    """
    found = _PERMUTATION.search(text)
    dims = [word for word in re.split("[, ]+", found[1]) if word] if found else []
    return tuple(int(word) for word in dims if len(word) < 4)
