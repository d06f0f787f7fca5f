"""A line parser of MLIR text: aliases, operands, results, types and transfers.

This module only cuts the types out; `values/type_texts.py` parses them. Aliases name attributes
(`#layout1 = ...`) and types (`!tile = ...`), indented or not. Of an op with a region, the operands
precede it, and the types follow it:

%2 = "stablehlo.all_reduce"(%1) <{replica_groups = ...}> ({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  ...
}) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gridlayout.arguments import Shape
from gridlayout.dump.text.lines import Line
from gridlayout.dump.text.statements import Mention, Result, Statement, Transfer, reordering
from gridlayout.mlir.aliases import MAX_WRITTEN_PER_CHARACTER, Aliases
from gridlayout.mlir.source import closing

_ALIAS_LINE = re.compile(r"\s*([#!][\w$.-]{1,200})\s*=\s*(.*)", re.DOTALL)
# Longer names and ops are not recognized, so that memory is bounded.
_ARGUMENT = re.compile(r"(%[\w$.-]{1,200}):\s*$")
_OP = re.compile(
    r'\s*(?:(%[\w$.-]{1,200})[^="]*=\s*)?"?(?!(?:tensor|memref)<)'
    r"([A-Za-z_]\w{0,99}(?:\.[\w$]{1,99}){0,5})"
)
_SHARDING_ALIAS = re.compile(r"(?<=\bsharding = )#(?!sdy\.)[A-Za-z_][\w$.-]{0,200}")
_MAX_OPEN = 64  # most nested ops with a region
_WITH_REGION = re.compile(
    r'\s*(?:%[^="]{0,400}=\s*)?"?(?:sdy\.manual_computation|\w{1,20}\.(?:all_reduce|reduce_scatter))\b'
)
_RESULT_NAMES = re.compile(r"\s*(%[^=]*)=")
_VALUE = re.compile(r"%[\w$.-]{1,200}(?:#[1-9][0-9]{0,4})?")  # `%0#0` is `%0`
_ADDRESS = re.compile(r"\baddress = ([0-9]{1,18}) : i64")
_SWAP = re.compile(r"dim0 = (-?[0-9]{1,3})\b.{0,40}?dim1 = (-?[0-9]{1,3})\b")
# Ops that only copy data from one layout into another.
_MOVERS = frozenset(
    [
        *("to_layout", "to_memory_config", "to_device", "from_device", "to_host", "permute"),
        *("transpose", "reshard", "copy", "tilize", "untilize", "interleaved_to_sharded"),
        *("sharded_to_interleaved", "enqueue_read_buffer", "enqueue_write_buffer"),
    ]
)
_FREES = frozenset(("deallocate", "dealloc", "deallocate_buffer"))
_VIEWS = frozenset(
    ["view_layout", "stream_layout", "subview", "cast", "reinterpret_cast", "collapse_shape"]
)
_EMPTIES = frozenset(("empty", "alloc"))
_DIALECTS = ("#tt", "!tt", "#sdy", "#d2m", "#tpu")


def defines_alias(text: str, aliases: Aliases) -> bool:
    """Record an alias such as `#name = #tt...`; return whether the line defines one.

    An alias of another dialect leaves the name undefined.

    >>> aliases = Aliases()
    >>> defines_alias("  #l = #ttnn.ttnn_layout<...>", aliases), aliases.texts
    (True, {'#l': '#ttnn.ttnn_layout<...>'})
    """
    found = _ALIAS_LINE.match(text)
    if not found:
        return False
    value = found[2].strip()
    aliases.room += MAX_WRITTEN_PER_CHARACTER * len(text)
    aliases.define(found[1], value if value.startswith(_DIALECTS) else "")
    return True


def with_shardings(text: str, aliases: Aliases) -> str:
    """Return a line in which aliases of shardings are written out.

    >>> aliases = Aliases(texts={"#s": '#sdy.sharding<@m, [{"x"}]>'})
    >>> with_shardings("tensor<4xf32> {sdy.sharding = #s}", aliases)
    'tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}'
    """
    if "sharding = #" not in text or not aliases.texts:
        return text
    return _SHARDING_ALIAS.sub(lambda found: aliases.resolve(found[0]), text)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each type; a type that is not closed ends with the text."""
    tensor, memref = _next(text, "tensor<", 0), _next(text, "memref<", 0)
    while (start := min(tensor, memref)) < len(text):
        end = min(closing(text, start, "<>") + 1, len(text))
        yield start, end
        tensor = tensor if tensor >= end else _next(text, "tensor<", end)
        memref = memref if memref >= end else _next(text, "memref<", end)


def _next(text: str, word: str, start: int) -> int:
    """Return where a type begins with the word, the text's length if none. Faster than a regex."""
    at = text.find(word, start)
    while at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_"):
        at = text.find(word, at + 1)
    return at if at >= 0 else len(text)


def read_mlir(line: Line, aliases: Aliases) -> Statement:
    """Return a line of MLIR as a `Statement`: its results, operands, types and transfer.

    >>> found = read_mlir(Line(2, True, '%1 = "a.b"(%0) : tensor<4xf32, #l>'), Aliases())
    >>> found.op, found.operands, found.mentions
    ('a.b', ('%0',), ((2, 'tensor<4xf32, #l>'),))
    """
    text = line.text
    aliases.room += MAX_WRITTEN_PER_CHARACTER * len(text)
    op = _OP.match(text) if line.first else None
    name, word = (op[1] or "", op[2]) if op else ("", "")
    is_function = word == "func" or word.endswith("func.func")
    names: list[str] | None = [] if is_function else None
    mentions, split, end = _types(line, aliases, names)
    if names is not None:
        arguments = zip(names, mentions, strict=True)
        results = tuple([Result(name, kind, at) for name, (at, kind) in arguments if name])
        return Statement(line.number, word, (), mentions, results=results, text=text)
    operands = tuple(_VALUE.findall(text, op.end() if op else 0))
    last = word.rpartition(".")[2]
    if last in _FREES:
        return Statement(line.number, word, operands, mentions, frees=operands, text=text)
    results, transfer = (), None
    if name:
        results = _results(text, name, mentions[-1:] if split is None else mentions[split:])
        if last in _MOVERS and split and split < len(mentions):
            transfer = _transfer(text[:end], mentions[:split], results)
    return Statement(
        *(line.number, word, operands, mentions, transfer, results, ()),
        last in _VIEWS,
        last in _EMPTIES,
        text,
    )


def _types(
    line: Line, aliases: Aliases, names: list[str] | None
) -> tuple[tuple[Mention, ...], int | None, int]:
    """Return the types with an encoding, how many precede the results, and where the last ends.

    The second is None if no arrow separates operands and results. names: if a list, the name of the
    argument of each type is appended, "" for a type without one.
    """
    text = line.text
    found: list[Mention] = []
    is_joined = "\n" in text
    end = 0
    split: int | None = None
    for start, stop in _spans(text):
        between = text[end:start]
        # Before the first type, an arrow may be that of a map among the attributes.
        arrow = "->" in between if end else between.rstrip(" (").endswith("->")
        if arrow or between.strip() == "into":
            split = len(found)
        kind = text[start:stop]
        end = stop
        if "#" not in kind and "!" not in kind:
            continue
        kind = aliases.resolve(kind)
        if "#" in kind and "#ttnn.trace_id" not in kind:  # the handle of a trace has no layout
            at = line.number + (text.count("\n", 0, start) if is_joined else 0)
            found.append((at, kind))
            if names is not None:
                argument = _ARGUMENT.search(between[-256:])
                names.append(argument[1] if argument else "")
    return tuple(found), split, end


def _results(text: str, name: str, results: tuple[Mention, ...]) -> tuple[Result, ...]:
    stated = _ADDRESS.search(text) if "address" in text else None
    address = int(stated[1]) if stated else None
    names = [name] if len(results) == 1 else result_names(text, len(results))
    values = zip(names, results, strict=True)
    return tuple([Result(name, kind, at, address) for name, (at, kind) in values])


def result_names(text: str, count: int) -> list[str]:
    """Return the names of `count` results: `%a, %b =`, or one name of all: `%0:2 =`.

    >>> result_names('%0:2 = "stablehlo.sort"(%a, %b)', 2), result_names("return %a", 1)
    (['%0', '%0#1'], [''])
    """
    found = _RESULT_NAMES.match(text)
    names = _VALUE.findall(found[1]) if found else []
    if len(names) == count:
        return names
    first = names[0] if names else ""
    return [f"{first}#{k}" if k else first for k in range(count)]


def _transfer(
    text: str, operands: tuple[Mention, ...], results: tuple[Result, ...]
) -> Transfer | None:
    """Return the transfer that an op performs, None if it is no plain copy.

    All results must have one type, and exactly one operand type must differ from it.
    """
    after = results[0]
    before = {kind for _, kind in operands} - {after.text}
    if len(before) != 1 or any(each.text != after.text for each in results):
        return None
    permutation = reordering(text)
    swap: Shape = ()
    if not permutation and (found := _SWAP.search(text)):
        swap = (int(found[1]), int(found[2]))
    return Transfer(before.pop(), after, permutation, swap)


class Regions:
    """The first lines of those ops whose region has not ended yet: collectives and shard_maps."""

    def __init__(self) -> None:
        self._heads: list[tuple[str, Line]] = []  # indentation of the op, and its first line

    def clear(self) -> None:
        """Forget all ops: their function ended."""
        self._heads.clear()

    def join(self, line: Line) -> Line | None:
        """Return the line; the last line of such an op joined to the first; None for the first.

        >>> regions = Regions()
        >>> regions.join(Line(1, True, ' %1 = "stablehlo.all_reduce"(%0) ({'))
        >>> regions.join(Line(4, True, " }) : (tensor<4xf32>) -> tensor<4xf32>")).text[-39:]
        '({}) : (tensor<4xf32>) -> tensor<4xf32>'
        """
        text = line.text
        if text.endswith("{") and ("all_reduce" in text or "_scatter" in text or "manual_" in text):
            if _WITH_REGION.match(text) and len(self._heads) < _MAX_OPEN:
                self._heads.append((_indentation(text), line))
                return None
        elif self._heads and text.lstrip().startswith("}") and " : " in text:
            indentation, head = self._heads[-1]
            if indentation == _indentation(text):
                self._heads.pop()
                return Line(head.number, head.first, head.text + text.lstrip())
        return line


def _indentation(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]
