"""Parser of the MLIR text of compiled programs: functions of operations without regions.

It reads aliases, nested modules and `func.func`. In a function it reads operations in generic form,
`"ttnn.matmul"(%0, %1) <{...}> : (...) -> ...`, and three that print in a custom form: `return`,
calls such as `ttcore.load_cached(@f, [%0])`, and `ttir.empty()`. Types and attributes remain text;
callers parse those that they need.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import Chip
from gridlayout.mlir.aliases import MAX_WRITTEN_PER_CHARACTER, Aliases
from gridlayout.mlir.source import STRING, Source, fields, parts, uncommented

MAX_TEXT = 1 << 28
MAX_RESULTS = 1 << 10

_T = TypeVar("_T")
_NAME = r"%[\w$.-]+(?:#[0-9]{1,4})?"
_SYMBOL = r'@(?:[\w$.-]+|"[^"\n]*")'
_OP = r'"[\w$.-]+"|[A-Za-z_][\w$.-]*'
# What contains no brackets that are nested: strings, comments, arrows.
_NO_BRACKETS = re.compile(rf"{STRING}|//[^\n]*|->")
_MODULES = ("module", "builtin.module", "ttcore.device_module")


def symbols(text: str) -> list[str]:
    """The names of the functions in an attribute.

    >>> symbols("[@first, @second]")
    ['first', 'second']
    """
    return [name[1:].strip('"') for name in re.findall(_SYMBOL, text)]


class Text(NamedTuple):
    """The complete text of a compiler: the name of its source, and the chip that it states."""

    name: str
    text: str
    chip: Chip | None = None


@dataclass(frozen=True)
class Operation:
    """One operation; types and attributes are text.

    line: the line in the text, counted from 1. name: such as `ttnn.matmul`. results, operands: the
    names of values. callee: the name of the called function, or empty.
    """

    line: int
    name: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    attributes: dict[str, str]
    operand_types: tuple[str, ...]
    result_types: tuple[str, ...]
    callee: str = ""

    @property
    def callees(self) -> set[str]:
        """The functions that the operation refers to: the callee, and those in attributes."""
        named = [text for text in self.attributes.values() if text.startswith(("@", "[@"))]
        found = {name for text in named for name in symbols(text)}
        return {*found, *([self.callee] if self.callee else [])}


@dataclass(frozen=True)
class Argument:
    """An argument of a function."""

    name: str
    type: str
    attributes: dict[str, str]


@dataclass(frozen=True)
class Function:
    """A function; `operations` are in order and include the `return`."""

    line: int
    name: str
    arguments: tuple[Argument, ...]
    result_types: tuple[str, ...]
    attributes: dict[str, str]
    operations: tuple[Operation, ...]
    result_attributes: tuple[dict[str, str], ...] = ()


@dataclass
class Module:
    """The functions of a text by name, its attributes and its aliases."""

    aliases: Aliases = field(default_factory=Aliases)
    attributes: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)


def read_module(text: Any) -> Module:
    """Parse an MLIR text; `LayoutError` names the line that cannot be parsed.

    >>> module = read_module('''
    ... func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    ...   %0 = "ttnn.neg"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    ...   return %0 : tensor<4xf32>
    ... }''')
    >>> [(op.line, op.name, op.operands) for op in module.functions["main"].operations]
    [(3, 'ttnn.neg', ('%arg0',)), (4, 'return', ('%0',))]
    """
    if not isinstance(text, str):
        raise LayoutError(f"the program must be MLIR text, a str, not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise LayoutError(f"the text has {len(text)} characters; at most {MAX_TEXT} are supported")
    source, module, depth = Source(text), Module(), 0
    module.aliases.room += MAX_WRITTEN_PER_CHARACTER * len(text)
    while not source.ended:
        if source.peek("#") or source.peek("!"):
            _alias(source, module)
        elif source.take("{-#"):  # the data of dense resources after a module, `{-# ... #-}`
            start, end = source.at - 3, source.text.find("#-}", source.at)
            if end < 0:
                source.fail("'{-#' without '#-}'", start)
            source.at = end + 3
        elif source.take("}"):
            depth -= 1
            if depth < 0:
                source.fail("'}' without an open '{'", source.at - 1)
        else:
            depth += _outside(source, module)
    if depth:
        source.fail("a module is not closed")
    if not module.functions:
        raise LayoutError("the text has no func.func: it is not a compiled program")
    return module


def _alias(source: Source, module: Module) -> None:
    name = source.match(r"[#!][A-Za-z_][\w$.-]*", "an alias")
    source.expect("=")
    start = source.at
    value = source.match(r"[^\n]*", "an attribute")
    plain = _NO_BRACKETS.sub("", value)
    if sum(map(plain.count, "<([{")) > sum(map(plain.count, ">)]}")):  # it has several lines
        source.at = start
        value = source.match(r"[#!]?[\w$.]*", "an attribute") + source.balanced()
    module.aliases.define(name, re.sub(r"\s+", " ", uncommented(value).strip()))


def _outside(source: Source, module: Module) -> int:
    """Read an operation outside functions; return 1 if it opens a nested module, else 0."""
    line, at = source.line, source.at
    name = source.match(_OP, "an operation")
    if name == "func.func":
        found = _function(source, line)
        if found.name in module.functions:
            source.fail(f"function @{found.name} is defined twice", at)
        module.functions[found.name] = found
        return 0
    if name in _MODULES:
        if source.peek("@"):
            source.match(_SYMBOL, "a name")
        if source.take("attributes"):
            module.attributes |= _braced(source)
        source.expect("{")
        return 1
    # Another operation, such as the device's description: skip its line or its block.
    rest = source.match(r"[^\n]*", "an operation")
    if rest.rstrip().endswith("{"):
        source.at = source.text.rindex("{", 0, source.at)
        source.balanced()
    return 0


def _braced(source: Source) -> dict[str, str]:
    at = source.at
    return _divided(fields, source, source.balanced().strip()[1:-1], at)


def _divided(by: Callable[[str], _T], source: Source, text: str, at: int | None = None) -> _T:
    """Return `by(text)`; its errors name the line of `at`, or the current line."""
    try:
        return by(text)
    except LayoutError as error:
        source.fail(re.sub(r"^line \d+: ", "", str(error)), at)


def _function(source: Source, line: int) -> Function:
    source.match(r"(?:(?:public|private|nested)\b)?", "")
    name = _symbol(source)
    source.expect("(")
    arguments = source.listed(")", _argument)
    typed = _typed_results(source) if source.take("->") else []
    results, of_results = tuple(kind for kind, _ in typed), tuple(own for _, own in typed)
    attributes = _braced(source) if source.take("attributes") else {}
    _location(source)
    operations = []
    if source.take("{"):
        while not source.take("}"):
            if source.ended:
                source.fail("a function is not closed")
            operations.append(_operation(source))
    found = (line, name, tuple(arguments), results, attributes, tuple(operations), of_results)
    return Function(*found)


def _symbol(source: Source) -> str:
    return source.match(_SYMBOL, "a function's name")[1:].strip('"')


def _argument(source: Source) -> Argument:
    name = source.match(_NAME, "an argument")
    source.expect(":")
    return Argument(name, *_typed(source))


def _typed(source: Source) -> tuple[str, dict[str, str]]:
    """Read a type, and the attributes that may follow it."""
    kind = source.balanced(",{")
    attributes = _braced(source) if source.peek("{") else {}
    _location(source)
    return _without_location(kind), attributes


def _typed_results(source: Source) -> list[tuple[str, dict[str, str]]]:
    """Read result types: `type`, or `(type, type {...})`."""
    return source.listed(")", _typed) if source.take("(") else [(_one(source), {})]


def _operation(source: Source) -> Operation:
    line, at = source.line, source.at
    results = _result_names(source, at) if source.peek("%") else []
    op = source.match(_OP, "an operation")
    is_generic, name, callee = op.startswith('"'), op.strip('"'), ""
    if is_generic or name == "ttir.empty":
        operands = _values(source, source.balanced())
    elif name in ("return", "func.return"):
        name, operands = "return", _values(source, source.match(r"[^:\n}]*", ""))
    elif name in ("ttcore.load_cached", "func.call", "call"):
        callee, operands = _call(source, name)
    else:
        source.fail(f"operation {name} can't be parsed: its custom form is not supported", at)
    attributes = {}
    if source.take("<{"):
        source.at -= 1
        attributes = _braced(source)
        source.expect(">")
    if source.peek("({"):
        source.fail(f"operation {name} has a region, which is not supported", at)
    if source.peek("{"):
        attributes |= _braced(source)
    if name == "ttcore.composite" and attributes.get("decomposition", "").startswith("@"):
        callee = attributes["decomposition"][1:].strip('"')  # the function that it computes
        name, attributes = "func.call", {}
    before, after = _signature(source, name, is_generic)
    _location(source)
    for what, names, types in (("operands", operands, before), ("results", results, after)):
        if len(names) != len(types):
            source.fail(f"{name} has {len(names)} {what}, but types of {len(types)}", at)
    return Operation(line, name, tuple(results), operands, attributes, before, after, callee)


def _result_names(source: Source, at: int) -> list[str]:
    """Read the names of an op's results: `%a, %b =`, or one name of several: `%0:2 =`."""
    names, packed = [], 0
    while True:
        name = source.match(r"%[\w$.-]+", "a value")
        count = source.number() if source.take(":") else 1
        packed += count if count != 1 else 0
        if not 1 <= count <= MAX_RESULTS or packed > MAX_RESULTS:
            source.fail(
                f"{name} has {count} results; an operation can have {MAX_RESULTS} under names of "
                "several",
                at,
            )
        names += [name] if count == 1 else [f"{name}#{k}" for k in range(count)]
        if not source.take(","):
            source.expect("=")
            return names


def _values(source: Source, text: str) -> tuple[str, ...]:
    names = _divided(parts, source, text.strip().removeprefix("(").removesuffix(")"))
    for name in names:
        if not re.fullmatch(_NAME, name):
            source.fail(f"operand {name[:40]!r} is not a value, such as %0")
    return tuple(names)


def _call(source: Source, name: str) -> tuple[str, tuple[str, ...]]:
    """Read the callee and operands of a call: `(@f, [%0])` if cached, otherwise `@f(%0)`."""
    is_cached = name == "ttcore.load_cached"
    if is_cached:
        source.expect("(")
    callee = _symbol(source)
    if is_cached:
        source.expect(",")
    text = source.balanced()
    operands = _values(source, text[1:-1] if is_cached else text)
    if is_cached:
        source.expect(")")
    return callee, operands


def _signature(
    source: Source, name: str, is_generic: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read the types of operands and of results."""
    if not source.take(":"):
        return (), ()
    if name == "ttir.empty" and not is_generic:
        return (), (_one(source),)
    if name == "return":
        found = [_one(source)]
        while source.take(","):
            found.append(_one(source))
        return tuple(found), ()
    types = _divided(parts, source, source.balanced().strip()[1:-1])
    before = tuple(map(_without_location, types))
    source.expect("->")
    return before, tuple(kind for kind, _ in _typed_results(source))


def _one(source: Source) -> str:
    return source.match(r"[!\w$.]+", "a type") + (source.balanced() if source.peek("<") else "")


def _location(source: Source) -> None:
    if source.take("loc("):
        source.at -= 1
        source.balanced()


def _without_location(text: str) -> str:
    return text.split(" loc(", 1)[0].strip()
