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

from gridlayout.dump.lines import Line
from gridlayout.dump.statements import Flow, Made, Mention, Statement, reordering

MAX_NAMES, MAX_NAMED = 1 << 12, 1 << 10  # names whose type is remembered, and its characters

TYPE = re.compile(r"\b[A-Za-z][A-Za-z0-9]*\[[0-9,<=\s]*\]\{[^{}]*\}")
BARE_TYPE = re.compile(r"\s*[A-Za-z][A-Za-z0-9]*\[[0-9, ]*\]\s*")
_NAME = re.compile(r"\s*(ROOT\s+)?%?([\w.-]{1,200})\s*=\s")
_OP = re.compile(r"[\])}] ([a-z][a-z0-9-]{0,99})\(")
_OPERAND = re.compile(r"%([\w.-]{1,200})|\(\s*([\w.-]{1,200})\s*\)")
_BRACKET = re.compile(r"[()]")
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

    at: where its operands begin in the line.
    """

    name: str
    is_root: bool
    kind: str
    op: str
    operands: tuple[str, ...]
    attributes: str
    at: int = 0


@dataclass
class HloContext:
    """The types of recent names, of one computation."""

    types: dict[str, str] = field(default_factory=dict)


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
    named = _NAME.match(text)
    found = _OP.search(text, named.end() - 1) if named else None
    if not named or not found:
        return None
    end = _closing(text, found.end() - 1)
    inside = text[found.end() - 1 : end + 1]
    operands = tuple(a or b for a, b in _OPERAND.findall(inside))
    kind = text[named.end() : found.start() + 1]
    rest = text[end + 1 :]
    return Instruction(named[2], named[1] is not None, kind, found[1], operands, rest, found.end())


def _closing(text: str, start: int) -> int:
    depth = 0
    for found in _BRACKET.finditer(text, start):
        depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.start()
    return len(text)


def read_hlo(line: Line, context: HloContext, found: Instruction | None) -> Statement:
    """What a line of HLO makes, reads and mentions.

    >>> line = "%a = f32[8]{0} copy(f32[8]{0:T(256)} %b)"
    >>> read_hlo(Line(1, True, line), HloContext(), instruction_of(line)).flow[:2]
    ('f32[8]{0:T(256)}', Mention(line=1, name='a', text='f32[8]{0}'))
    """
    text, number = line.text, line.number
    if found is None:
        first = text.split(None, 1)[0] if line.first and text.strip() else ""
        op = first if first in ("HloModule", "ENTRY") else ""
        mentions = tuple(Mention(number, "", kind) for kind in TYPE.findall(text))
        return Statement(number, op, (), mentions)
    own = TYPE.findall(found.kind)
    mentions = tuple(Mention(number, found.name, kind) for kind in own)
    if "]{" in text[found.at : -1]:
        mentions += tuple(Mention(number, "", kind) for kind in TYPE.findall(text, found.at))
    flow = _flow(line, context, found, own)
    if len(own) == 1 and not found.kind.startswith("(") and len(own[0]) <= MAX_NAMED:
        if len(context.types) >= MAX_NAMES:
            context.types.pop(next(iter(context.types)))  # the oldest
        context.types[found.name] = own[0]
    is_view = found.op in VIEWS
    names = [f"{found.name}#{k}" if k else found.name for k in range(len(own))]
    made = tuple(Made(name, kind, number) for name, kind in zip(names, own, strict=True))
    return Statement(number, found.op, found.operands, mentions, flow, made, is_view=is_view)


def _flow(line: Line, context: HloContext, found: Instruction, own: list[str]) -> Flow | None:
    if found.op not in _MOVERS or not own:
        return None
    # Newer XLA prints operands by name alone, older XLA with their types.
    inside = TYPE.search(line.text, found.at)
    before = inside[0] if inside else None
    if before is None and found.operands:
        before = context.types.get(found.operands[0])
    if before is None:
        return None
    permutation = reordering(found.attributes) if found.op == "transpose" else ()
    return Flow(before, Mention(line.number, found.name, own[0]), permutation)
