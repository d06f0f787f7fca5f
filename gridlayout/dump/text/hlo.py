"""HLO: what a line of a module's text says, and which computation it is in.

HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, ...
%fused (p: f32[4]) -> f32[4] {
  ROOT %a.1 = f32[4]{0} add(%p, %p)
}
ENTRY %main (x: f32[4]) -> f32[4] { ... }
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from gridlayout.dump.text.lines import Line
from gridlayout.dump.text.statements import Flow, Made, Statement, reordering

MAX_NAMES, MAX_NAMED = 1 << 12, 1 << 10  # names whose type is remembered, and its characters

_new = tuple.__new__  # of a million lines: a third of the time that calling the class takes
TYPE = re.compile(r"\b[A-Za-z][A-Za-z0-9]*\[[0-9,<=\s]*\]\{[^{}]*\}")
BARE_TYPE = re.compile(r"\s*[A-Za-z][A-Za-z0-9]*\[[0-9, ]*\]\s*")
_START = r"\s*(ROOT\s+)?%?([\w.-]{1,200})\s*=\s"
_NAME = re.compile(_START)
_PLAIN_TYPE = r"([A-Za-z][A-Za-z0-9]*\[[0-9,<=]*\]\{[^{} ]*\})"
# As nearly all lines are: one array, of operands with brackets in their types at most.
_PLAIN = re.compile(
    rf"{_START}{_PLAIN_TYPE} ([a-z][a-z0-9-]{{0,99}})"
    rf"\((?:{_PLAIN_TYPE} %([\w.-]{{1,200}})|(?:[^()]++|\([^()]*+\))*+)\)"
)
_OP = re.compile(r"[\])}] ([a-z][a-z0-9-]{0,99})\(")
_OPERAND = re.compile(r"%([\w.-]{1,200})")
_ALONE = re.compile(r"\(\s*([\w.-]{1,200})\s*\)")
_MOVERS = ("copy", "copy-start", "transpose")
_COMPUTATION = re.compile(r"(ENTRY\s+)?%?([\w.-]{1,200})\s*(?:\([^\n]*->[^\n]*)?\{\s*$")
# What has no memory of its own: other names of what is there.
VIEWS = frozenset(
    [
        "bitcast",
        "tuple",
        "get-tuple-element",
        "while",
        "opt-barrier",
        "optimization-barrier",
        "after-all",
        "add-dependency",
        "domain",
        "all-reduce-done",
        "all-gather-done",
        "collective-permute-done",
        "copy-done",
        "async-done",
        "async-update",
        "send-done",
        "recv-done",
        "partition-id",
        "replica-id",
    ]
)


class Instruction(NamedTuple):
    """One instruction: its type's text, its operands' names, and what follows them.

    own: the arrays with a layout in its type; others: those in what follows the op's name.
    """

    name: str
    is_root: bool
    kind: str
    op: str
    operands: tuple[str, ...]
    attributes: str
    own: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass
class HloContext:
    """The types of recent names, of one computation: the last ones, and those before them."""

    types: dict[str, str] = field(default_factory=dict)
    older: dict[str, str] = field(default_factory=dict)

    def clear(self) -> None:
        """Another computation begins."""
        self.types.clear()
        self.older.clear()

    def name(self, name: str, kind: str) -> None:
        """Remember the type of a name."""
        if len(self.types) >= MAX_NAMES // 2:
            self.types, self.older = {}, self.types
        self.types[name] = kind

    def type_of(self, name: str) -> str | None:
        """The type of a name, unless that was long ago."""
        return self.types.get(name) or self.older.get(name)


def computation_of(text: str) -> tuple[str, bool] | None:
    """The computation that a line begins, and whether it is the module's entry.

    >>> computation_of("ENTRY %main (x: f32[4]) -> f32[4] {"), computation_of("  %a = f32[4] b()")
    (('main', True), None)
    """
    if not text.rstrip().endswith("{") or text.startswith((" ", "HloModule")):
        return None
    found = _COMPUTATION.match(text)
    return (found[2], found[1] is not None) if found else None


def instruction_of(text: str) -> Instruction | None:
    """The parts of an instruction's line; None where it is none.

    >>> instruction_of("  ROOT %a.1 = f32[4]{0} add(%p, %q), metadata={}")[1:5]
    (True, 'f32[4]{0}', 'add', ('p', 'q'))
    """
    found = _PLAIN.match(text)
    if found is None:
        return _unusual(text)
    root, name, kind, op, other, operand = found.groups()
    end, at = found.end(), found.end(4)
    attributes = text[end:]
    operands = (operand,) if operand else _operands(text[at:end])
    others = (other,) if operand and "]{" not in attributes else _types(text, at)
    return _new(
        Instruction, (name, root is not None, kind, op, operands, attributes, (kind,), others)
    )


def _unusual(text: str) -> Instruction | None:
    named = _NAME.match(text)
    found = _OP.search(text, named.end() - 1) if named else None
    if not named or not found:
        return None
    start, at = found.span()
    end = _closing(text, at - 1) + 1
    root, name = named.groups()
    kind = text[named.end() : start + 1]
    operands, own = _operands(text[at - 1 : end]), tuple(TYPE.findall(kind))
    return Instruction(
        *(name, root is not None, kind, found[1], operands, text[end:], own, _types(text, at))
    )


def _operands(inside: str) -> tuple[str, ...]:
    """The names in an op's parentheses."""
    return tuple((_OPERAND if "%" in inside else _ALONE).findall(inside))


def _types(text: str, start: int) -> tuple[str, ...]:
    return tuple(TYPE.findall(text, start)) if text.find("]{", start) >= 0 else ()


def _closing(text: str, start: int) -> int:
    """Where the bracket at `start` is closed; the text's end where it is not."""
    end, depth = start, 0
    while (found := text.find(")", end)) >= 0:
        depth += text.count("(", end, found) - 1
        if not depth:
            return found
        end = found + 1
    return len(text)


def read_hlo(line: Line, context: HloContext, found: Instruction | None) -> Statement:
    """What a line of HLO makes, reads and mentions.

    >>> line = "%a = f32[8]{0} copy(f32[8]{0:T(256)} %b)"
    >>> found = read_hlo(Line(1, True, line), HloContext(), instruction_of(line))
    >>> found.flow.before, found.flow.after.text
    ('f32[8]{0:T(256)}', 'f32[8]{0}')
    """
    text, number = line.text, line.number
    if found is None:
        first = text.split(None, 1)[0] if line.first and text.strip() else ""
        op = first if first in ("HloModule", "ENTRY") else ""
        return Statement(number, op, (), tuple([(number, kind) for kind in TYPE.findall(text)]))
    name, _, kind, op, operands, _, own, others = found
    made: tuple[Made, ...]
    if len(own) == 1 and own[0] == kind:
        made = (_new(Made, (name, kind, number, None)),)
        if len(kind) <= MAX_NAMED:
            context.name(name, kind)
    else:
        names = (f"{name}#{k}" if k else name for k in range(len(own)))
        made = tuple([Made(*each, number) for each in zip(names, own, strict=True)])
        if op == "copy-start":  # the copy, and beside it what is copied
            made = made[:1]
    mentions = tuple([(number, each) for each in own + others])
    flow = _flow(context, found, made[0]) if op in _MOVERS and made else None
    return _new(Statement, (number, op, operands, mentions, flow, made, (), op in VIEWS, False))


def _flow(context: HloContext, found: Instruction, made: Made) -> Flow | None:
    # Newer XLA prints operands by name alone, older XLA with their types.
    before = found.others[0] if found.others else None
    if before is None and found.operands:
        before = context.type_of(found.operands[0])
    if before is None:
        return None
    return Flow(before, made, reordering(found.attributes) if found.op == "transpose" else ())
