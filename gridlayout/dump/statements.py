"""Statements: what a line of a dump says of layouts. The op, its name, the types it mentions.

Types are cut out here and read by `gl.parse` alone. MLIR: `tensor<...>` with an encoding, in which
aliases stand for attributes (`#layout1 = ...`). HLO: `f32[8,128]{1,0:T(8,128)}`. Also a line that
is the text of one layout and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gridlayout.arguments import Shape
from gridlayout.constructor import starts_call
from gridlayout.dump.lines import Line
from gridlayout.text import MAX_TEXT

# What is remembered at most; a dump may define more than it ever uses.
MAX_ALIASES, MAX_ALIAS_CHARACTERS = 1 << 14, 1 << 22
MAX_NAMES, MAX_NAMED = 1 << 12, 1 << 10  # names, and characters of one's type

_ALIAS_LINE = re.compile(r"(#[\w$.-]+)\s*=\s*(.*)", re.DOTALL)
_ALIAS = re.compile(r"#[A-Za-z_][\w$.-]*")
_BRACKET = re.compile(r"->|[<>]")
_SHORT = re.compile(r"tensor<[^<>-]*(?:<[^<>-]*>[^<>-]*)*>")
# Names and ops longer than these are none: what is kept of a dump is bounded.
_ARGUMENT = re.compile(r"(%[\w$.-]{1,200}):\s*$")
_MLIR_OP = re.compile(
    r'\s*(?:(%[\w$.-]{1,200})[^="]*=\s*)?"?(?!tensor<)([A-Za-z_]\w{0,99}(?:\.[\w$]{1,99}){0,5})'
)
_HLO_TYPE = re.compile(r"\b[A-Za-z][A-Za-z0-9]*\[[0-9,<=]*\]\{[^{}]*\}")
_BARE_TYPE = re.compile(r"\s*[A-Za-z][A-Za-z0-9]*\[[0-9, ]*\]\s*")
_HLO_NAME = re.compile(r"\s*(?:ROOT\s+)?%?([\w.-]{1,200})\s*=\s")
_HLO_OP = re.compile(r"[\])}] ([a-z][a-z0-9-]{0,99})\(")
_HLO_OPERAND = re.compile(r"\(\s*%?([\w.-]+)\s*\)")
_HLO_MOVERS = ("copy", "copy-start", "transpose")
_PERMUTATION = re.compile(r"(?:dimensions=\{|permutation = array<i64: ?)([0-9, ]+)[}>]")
_SWAP = re.compile(r"dim0 = (-?[0-9]{1,3})\b.{0,40}?dim1 = (-?[0-9]{1,3})\b")


class Mention(NamedTuple):
    """A type's text in a line, aliases resolved; `name` is the result or argument that has it."""

    line: int
    op: str
    name: str
    text: str


class Flow(NamedTuple):
    """Data that goes from one type to another: the operand's text and the result's.

    permutation: dim k of the result is dim `permutation[k]` of the operand; empty where dims stay.
    swap: instead, two dims that change places, negative ones counted from the rank.
    """

    before: str
    after: Mention
    permutation: Shape = ()
    swap: Shape = ()


@dataclass
class Context:
    """What earlier lines said that later ones refer to: aliases, and the types of HLO names."""

    aliases: dict[str, str] = field(default_factory=dict)
    alias_characters: int = 0
    types: dict[str, str] = field(default_factory=dict)
    # Types with aliases, resolved, until an alias changes.
    resolved: dict[str, str] = field(default_factory=dict)


def read_line(line: Line, context: Context) -> tuple[list[Mention], Flow | None]:
    """The types that a line mentions, and the flow between two of them if it is one.

    >>> context = Context()
    >>> read_line(Line(1, True, "#l = #ttnn.ttnn_layout<...>"), context)
    ([], None)
    >>> mentions, flow = read_line(Line(2, True, '%1 = "a.b"(%0) : tensor<4xf32, #l>'), context)
    >>> mentions
    [Mention(line=2, op='a.b', name='%1', text='tensor<4xf32, #ttnn.ttnn_layout<...>>')]
    """
    text = line.text
    if text.startswith("#"):
        _define(text, context)
        return [], None
    if "tensor<" in text:
        return _read_mlir(line, context) if "#" in text else ([], None)
    if "]{" in text:
        return _read_hlo(line, context)
    if text.endswith("{") and not text.startswith(" "):
        context.types.clear()  # a computation begins, and names only its own values
    if line.first and (starts_call(text) or _BARE_TYPE.fullmatch(text)):
        return [Mention(line.number, "", "", text.strip())], None
    return [], None


# -- MLIR ------------------------------------------------------------------------------------------


def _define(text: str, context: Context) -> None:
    """Remember `#name = #tt...`: attributes print before what refers to them.

    What there is no room for, and other dialects' attributes, leave the name undefined.
    """
    found = _ALIAS_LINE.match(text)
    if not found:
        return
    name, value = found[1], found[2].strip()
    value = _resolve(value, context.aliases) if value.startswith("#tt") else ""
    if value == context.aliases.get(name, ""):
        return
    context.resolved.clear()
    context.alias_characters -= len(context.aliases.pop(name, ""))
    room = min(MAX_TEXT, MAX_ALIAS_CHARACTERS - context.alias_characters)
    if value and len(value) <= room and len(context.aliases) < MAX_ALIASES:
        context.aliases[name] = value
        context.alias_characters += len(value)


def _resolve(text: str, aliases: dict[str, str]) -> str:
    """The text with its aliases replaced; as it is where that would be longer than a layout."""
    names = _ALIAS.findall(text)
    if len(text) + sum(len(aliases.get(name, name)) - len(name) for name in names) > MAX_TEXT:
        return text
    return _ALIAS.sub(lambda found: aliases.get(found[0], found[0]), text)


def _resolved(text: str, context: Context) -> str:
    found = context.resolved.get(text)
    if found is None:
        if len(context.resolved) >= MAX_NAMES:
            context.resolved.clear()
        found = _resolve(text, context.aliases)
        if len(found) <= MAX_NAMED:
            context.resolved[text] = found
    return found


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the tensor types are; one that does not end goes to the text's end."""
    start = text.find("tensor<")
    while start >= 0:
        # Most types have an alias: one match is several times faster than counting brackets.
        short = _SHORT.match(text, start)
        end = short.end() if short else _closing(text, start)
        yield start, end
        start = text.find("tensor<", end)


def _closing(text: str, start: int) -> int:
    depth = 0
    for found in _BRACKET.finditer(text, start):
        depth += {"<": 1, ">": -1, "->": 0}[found[0]]
        if depth == 0:
            return found.end()
    return len(text)


def _read_mlir(line: Line, context: Context) -> tuple[list[Mention], Flow | None]:
    text = line.text
    op = _MLIR_OP.match(text) if line.first else None
    name, word = (op[1] or "", op[2]) if op else ("", "")
    found: list[tuple[int, str, str]] = []  # line, name of an argument, text
    end = results = 0
    for start, stop in _spans(text):
        between = text[end:start]
        if "->" in between or between.strip() == "into":
            results = len(found)
        kind = text[start:stop]
        end = stop
        if "#" not in kind:
            continue
        argument = _ARGUMENT.search(between[-256:])
        at = line.number + (text.count("\n", 0, start) if "\n" in text else 0)
        found.append((at, argument[1] if argument else "", _resolved(kind, context)))
    mentions = [
        Mention(at, word, argument or (name if k >= results else ""), kind)
        for k, (at, argument, kind) in enumerate(found)
    ]
    if not 0 < results < len(mentions) or not name:
        return mentions, None
    after = mentions[-1]
    before = {m.text for m in mentions[:results]} - {after.text}
    if len(before) != 1 or any(m.text != after.text for m in mentions[results:]):
        return mentions, None
    return mentions, Flow(before.pop(), after, *_reordering(text[:end]))


def _reordering(text: str) -> tuple[Shape, Shape]:
    if found := _PERMUTATION.search(text):
        dims = [word for word in re.split("[, ]+", found[1]) if word]
        return tuple(int(word) for word in dims if len(word) < 4), ()
    if found := _SWAP.search(text):
        return (), (int(found[1]), int(found[2]))
    return (), ()


# -- HLO -------------------------------------------------------------------------------------------


def _read_hlo(line: Line, context: Context) -> tuple[list[Mention], Flow | None]:
    text = line.text
    types = [(found.start(), found[0]) for found in _HLO_TYPE.finditer(text)]
    named = _HLO_NAME.match(text) if line.first else None
    if not named:
        first = text.split(None, 1)[0] if line.first else ""
        op = first if first in ("HloModule", "ENTRY") else ""
        return [Mention(line.number, op, "", kind) for _, kind in types], None
    found = _HLO_OP.search(text)
    op, name = (found[1] if found else ""), named[1]
    operands = found.start() if found else len(text)
    mentions = [Mention(line.number, op, name if at < operands else "", kind) for at, kind in types]
    if not mentions or not found:
        return mentions, None
    if _HLO_TYPE.match(text, named.end()) and len(mentions[0].text) <= MAX_NAMED:
        if len(context.types) >= MAX_NAMES:
            context.types.pop(next(iter(context.types)))  # the oldest
        context.types[name] = mentions[0].text
    if op not in _HLO_MOVERS:
        return mentions, None
    # Newer XLA prints operands by name alone, older XLA with their types.
    inside = _HLO_TYPE.search(text, found.end())
    operand = _HLO_OPERAND.match(text, found.end() - 1)
    before = inside[0] if inside else context.types.get(operand[1]) if operand else None
    if before is None:
        return mentions, None
    permutation = _reordering(text)[0] if op == "transpose" else ()
    return mentions, Flow(before, mentions[0], permutation)
