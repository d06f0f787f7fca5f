"""`Statement`: one parsed line of a dump, of MLIR or HLO."""

from __future__ import annotations

import re
from typing import NamedTuple

from gridlayout.arguments import Shape

_PERMUTATION = re.compile(r"(?:dimensions=\{|permutation = array<i64: ?)([0-9, ]+)[}>]")


Mention = tuple[int, str]  # the line number of a type, and its text with aliases written out


class Result(NamedTuple):
    """A value that a line defines. text: its type. address: in bytes, if the line states one."""

    name: str
    text: str
    line: int
    address: int | None = None


class Transfer(NamedTuple):
    """A copy of data from one type to another. before: the operand's type. after: the result.

    permutation: dim k of the result is dim `permutation[k]` of the operand; empty for no change.
    swap: alternatively, two dims that are exchanged; negative dims count from the rank.
    """

    before: str
    after: Result
    permutation: Shape = ()
    swap: Shape = ()


class Instruction(NamedTuple):
    """One parsed instruction of HLO.

    kind: the text of its type. operands: their names; `a#1` is part 1 of a tuple. attributes: the
    text after the operands. own: the array types with a layout in its own type. others: those after
    the op's name.
    """

    name: str
    is_root: bool
    kind: str
    op: str
    operands: tuple[str, ...]
    attributes: str
    own: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class Statement(NamedTuple):
    """One line of a dump. line: its number. op: its operation.

    operands: names of the values that it reads. mentions: all types with a layout. transfer: the
    copy that it performs, if any. results: the values that it defines. frees: names of the values
    that it deallocates. is_view: its results own no memory. is_empty: it only allocates a buffer,
    which a later op fills. text: the line. instruction: the parts of a line of HLO.
    """

    line: int
    op: str
    operands: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    transfer: Transfer | None = None
    results: tuple[Result, ...] = ()
    frees: tuple[str, ...] = ()
    is_view: bool = False
    is_empty: bool = False
    text: str = ""
    instruction: Instruction | None = None


def reordering(text: str) -> Shape:
    """Return the permutation that an op states, () if none.

    >>> reordering("permutation = array<i64: 1, 0>")
    (1, 0)
    """
    found = _PERMUTATION.search(text)
    dims = [word for word in re.split("[, ]+", found[1]) if word] if found else []
    return tuple(int(word) for word in dims if len(word) < 4)
