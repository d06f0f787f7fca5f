"""A line parser of HLO text: computations, instructions, their types and operands.

HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, ...
%fused (p: f32[4]) -> f32[4] {
  ROOT %a.1 = f32[4]{0} add(%p, %p)
}
ENTRY %main (x: f32[4]) -> f32[4] { ... }
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

from gridlayout.dump.text.lines import Line
from gridlayout.dump.text.statements import Instruction, Result, Statement, Transfer, reordering
from gridlayout.mlir.source import closing

MAX_NAMES, MAX_NAMED = 1 << 12, 1 << 10  # names with a cached type; most characters of such a type

_Array = TypeVar("_Array")
_new = tuple.__new__  # takes a third of the time of calling the class: a dump has a million lines
ARRAY = re.compile(r"\b[A-Za-z][A-Za-z0-9]*\[[0-9,<=\s]*\](?:\{[^{}]*\})?")
TYPE = re.compile(r"\b[A-Za-z][A-Za-z0-9]*\[[0-9,<=\s]*\]\{[^{}]*\}")
BARE_TYPE = re.compile(r"\s*[A-Za-z][A-Za-z0-9]*\[[0-9, ]*\]\s*")
_ONE_TYPE = r"([A-Za-z][A-Za-z0-9]*\[[0-9,<=]*\]\{[^{} ]*\})"
# The start of an instruction, and if its type is one array, that and the op: the usual form.
_START = re.compile(
    rf"\s*(ROOT\s+)?%?([\w.-]{{1,200}})\s*=\s(?:{_ONE_TYPE} ([a-z][a-z0-9-]{{0,99}})\()?"
)
_ONE = re.compile(rf"{_ONE_TYPE} %([\w.-]{{1,200}})\)")  # the only operand: found faster so
_OP = re.compile(r"[\])}] ([a-z][a-z0-9-]{0,99})\(")
# A name, or a part of a tuple: XLA's short form writes `state#1` for a get-tuple-element.
_NAME = r"([\w.-]{1,200}(?:#[0-9]{1,6}){0,8})"
_OPERAND = re.compile(f"%{_NAME}")
# Operands without `%`, as XLA prints them in its short form: the last word before each comma.
_LAST = re.compile(rf"{_NAME}\s*,")
_NESTED = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|\([^()]*\)")
# What XLA's partitioner appends to the names of computations, maybe before a number or `.clone`.
_PARTITIONED = re.compile(r"_spmd(?:\.|$)")
_BRACES = re.compile(r"\{[^{}]*\}")
CALLS = re.compile(r"\bcalls=%?([\w.-]+)")
INDEX = re.compile(r"\bindex=([0-9]{1,6})")  # of a get-tuple-element
_MOVERS = ("copy", "copy-start", "transpose")
_COMPUTATION = re.compile(r"(ENTRY\s+)?%?([\w.-]{1,200})\s*(?:\([^\n]*->[^\n]*)?\{\s*$")
# Ops whose results own no memory: they alias their operands. So do the ends of async ops.
_VIEWS = frozenset(
    [
        *("bitcast", "tuple", "get-tuple-element", "while", "opt-barrier", "optimization-barrier"),
        *("after-all", "add-dependency", "domain", "partition-id", "replica-id"),
    ]
)


def is_view(op: str) -> bool:
    """Return whether the results of an op own no memory, because they alias its operands.

    >>> is_view("tuple"), is_view("all-gather-done"), is_view("add")
    (True, True, False)
    """
    return op in _VIEWS or op.endswith(("-done", "-update"))


def new_arrays(op: str, operands: int, arrays: Sequence[_Array]) -> Sequence[_Array]:
    """Return those arrays of a result's type that are new buffers, not aliases of the operands.

    The type of an async op consists of its operands, its results and contexts; that of `copy-start`
    of the copy, the operand and a context.

    >>> new_arrays("all-gather-start", 1, ["f32[4]", "f32[8]"]), new_arrays("add", 2, ["f32[4]"])
    (['f32[8]'], ['f32[4]'])
    """
    if op == "copy-start":
        return arrays[:1]
    is_async = op == "send" or (op.endswith("-start") and op != "all-reduce-start")
    return arrays[operands:] if is_async and len(arrays) > operands else arrays


def computation_of(text: str) -> tuple[str, bool] | None:
    """Return the name of the computation that a line begins, and whether it is the entry.

    None if the line begins none.

    >>> computation_of("ENTRY %main (x: f32[4]) -> f32[4] {"), computation_of("  %a = f32[4] b()")
    (('main', True), None)
    """
    if not text.rstrip().endswith("{") or text.startswith((" ", "HloModule")):
        return None
    found = _COMPUTATION.match(text)
    return (found[2], found[1] is not None) if found else None


def is_partitioned(name: str) -> bool:
    """Return whether a computation has the name of one that XLA's partitioner made.

    >>> is_partitioned("main.2_spmd"), is_partitioned("region_0.7_spmd.clone"), is_partitioned("f")
    (True, True, False)
    """
    return _PARTITIONED.search(name) is not None


def instruction_of(text: str) -> Instruction | None:
    """Return the parts of an instruction's line; None if the line is no instruction.

    >>> instruction_of("  ROOT %a.1 = f32[4]{0} add(%p, %q), metadata={}")[1:5]
    (True, 'f32[4]{0}', 'add', ('p', 'q'))
    """
    start = _START.match(text)
    if start is None:
        return None
    root, name, kind, op = start.groups()
    at = start.end()
    own: tuple[str, ...] = (kind,)
    if op is None:
        found = _OP.search(text, at - 1)
        if found is None:
            return None
        kind, op, at = text[at : found.start() + 1], found[1], found.end()
        own = tuple(TYPE.findall(kind))
    one = _ONE.match(text, at)
    end = one.end() if one else closing(text, at - 1, "()") + 1
    operands = (one[2],) if one else _operands(text[at - 1 : end])
    if one and text.find("]{", end) < 0:
        others: tuple[str, ...] = (one[1],)
    else:
        others = tuple(TYPE.findall(text, at)) if text.find("]{", at) >= 0 else ()
    return _new(Instruction, (name, root is not None, kind, op, operands, text[end:], own, others))


def _operands(inside: str) -> tuple[str, ...]:
    """Return the names in an op's parentheses, which are part of the text.

    >>> _operands("(%a, f32[2]{0} %b)"), _operands("(a, f32[2,3]{1,0} b#1)"), _operands("({1, 2})")
    (('a', 'b'), ('a', 'b#1'), ())
    """
    if "%" in inside:
        return tuple(_OPERAND.findall(inside))
    if inside.startswith("({"):  # the elements of a constant
        return ()
    return tuple(_LAST.findall(_NESTED.sub("", inside[1:-1]) + ","))


def called_by(found: Instruction) -> str | None:
    """Return the name of the computation that a fusion consists of; None if it states none."""
    called = CALLS.search(found.attributes)
    return called[1] if called else None


def braced(text: str, word: str) -> str:
    """Return the text inside the braces that follow a word, empty if there are none.

    >>> braced("a, sharding={{replicated}}, b={}", "sharding=")
    '{replicated}'
    """
    at = text.find(word)
    start = at + len(word)
    if at < 0 or text[start : start + 1] != "{":
        return ""
    end = closing(text, start, "{}")
    return text[start + 1 : end] if end < len(text) else ""


def read_hlo(line: Line, types: dict[str, str], found: Instruction | None) -> Statement:
    """Return a line of HLO as a `Statement`: its results, operands, types and transfer.

    types: those of recently defined names of the computation, to which its results are added.

    >>> line = "%a = f32[8]{0} copy(f32[8]{0:T(256)} %b)"
    >>> found = read_hlo(Line(1, True, line), {}, instruction_of(line))
    >>> found.transfer.before, found.transfer.after.text
    ('f32[8]{0:T(256)}', 'f32[8]{0}')
    """
    text, number = line.text, line.number
    if found is None:
        first = text.split(None, 1)[0] if line.first and text.strip() else ""
        op = first if first in ("HloModule", "ENTRY") else ""
        mentions = tuple([(number, kind) for kind in TYPE.findall(text)])
        return Statement(number, op, mentions=mentions, text=text)
    name, _, kind, op, operands, _, own, others = found
    results: tuple[Result, ...]
    if len(own) == 1 and own[0] == kind:
        results = (_new(Result, (name, kind, number, None)),)
    else:
        arrays = new_arrays(op, len(operands), ARRAY.findall(kind))
        pairs = [(f"{name}#{k}" if k else name, each) for k, each in enumerate(arrays)]
        results = tuple([Result(*pair, number) for pair in pairs if pair[1].endswith("}")])
    if len(kind) <= MAX_NAMED:
        if len(types) >= MAX_NAMES:
            for old in [*islice(types, MAX_NAMES // 2)]:
                del types[old]
        types[name] = kind
    mentions = tuple([(number, each) for each in own + others])
    transfer = _transfer(types, found, results[0]) if op in _MOVERS and results else None
    view = is_view(op)
    return _new(
        Statement,
        (number, op, operands, mentions, transfer, results, (), view, False, text, found),
    )


def type_of(name: str, types: dict[str, str]) -> str | None:
    """Return the type of an array, which may be a part of a tuple; None if it is not known.

    >>> types = {"a": "f32[2]{0}", "t": "(s32[], f32[3]{0})"}
    >>> type_of("a", types), type_of("t#1", types), type_of("t", types)
    ('f32[2]{0}', 'f32[3]{0}', None)
    """
    name, _, index = name.partition("#")
    kind = types.get(name)
    if kind is None or not kind.startswith("("):
        return kind
    if not index.isdecimal() or "(" in _BRACES.sub("", kind[1:]):
        return None
    arrays = ARRAY.findall(kind)
    found = arrays[int(index)] if int(index) < len(arrays) else ""
    return found if found.endswith("}") else None


def _transfer(types: dict[str, str], found: Instruction, result: Result) -> Transfer | None:
    # Newer XLA prints operands without types, older XLA with them.
    before = found.others[0] if found.others else None
    if before is None and found.operands:
        before = type_of(found.operands[0], types)
    if before is None:
        return None
    return Transfer(before, result, reordering(found.attributes) if found.op == "transpose" else ())
