"""The parser of affine maps in MLIR's syntax, without symbols.

    text   = map | "affine_map" "<" map ">"
    map    = ids "->" "(" [result ("," result)*] ")"    ids = "(" [name ("," name)*] ")"
    result = sum | name ("<>" name)+
    sum    = term (("+" | "-") term)*
    term   = factor (("*" | "floordiv" | "ceildiv" | "mod") factor)*
    factor = name | integer | "-" factor | "(" sum ")"

`<>` joins dims by their extents, the major dim first. It is an operator of tt-mlir and needs a
shape.

The text is untrusted. Expressions are parsed with explicit stacks, never by recursion. The sizes of
the stacks, the text and the built expression are limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from gridlayout.affine.expressions import AffineExpr, Exprs, ceildiv, constant, dim
from gridlayout.affine.joins import linearized
from gridlayout.arguments import INT64_MAX, as_shape
from gridlayout.errors import LayoutError

MAX_TEXT = 2**16  # characters
MAX_OPEN = 128  # pending parentheses and operators

_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(?P<number>0x[0-9a-fA-F]+|[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_$.]*)"
    r"|(?P<mark>->|<>|[-+*(),\[\]<>]))"
)
_SPACE = re.compile(r"[ \t\r\n]*")

# Operators by spelling: the precedence of each, and the function that builds the expression.
_OPERATORS: dict[str, tuple[int, Callable[[AffineExpr, AffineExpr], AffineExpr]]] = {
    "+": (1, lambda a, b: a + b),
    "-": (1, lambda a, b: a - b),
    "*": (2, lambda a, b: a * b),
    "floordiv": (2, lambda a, b: a // b),
    "ceildiv": (2, ceildiv),
    "mod": (2, lambda a, b: a % b),
}
_UNARY_BINDS = 3


class Token(NamedTuple):
    """A token of the text. `kind` is number, name, mark or end; columns are counted from 1."""

    kind: str
    text: str
    column: int


def parse_map(text: str, shape: Sequence[int] | None = None) -> tuple[int, Exprs]:
    """Parse the number of dims and the results of a map; see `AffineMap.parse`.

    LayoutError: the text is not a map; the message names the problem and its column.

    >>> parse_map("(d0) -> (d0 / 4)")
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: unexpected character '/'; write floordiv, at column 13
    """
    if not isinstance(text, str):
        raise LayoutError(f"an affine map's text is a str, not {type(text).__name__}, at column 1")
    if len(text) > MAX_TEXT:
        raise LayoutError(
            f"a text of {len(text)} characters is too long; keep to {MAX_TEXT}, "
            f"at column {MAX_TEXT + 1}"
        )
    return _Reader(_tokens(text), shape).map()


def _tokens(text: str) -> list[Token]:
    tokens, at = [], 0
    while match := _TOKEN.match(text, at):
        kind = match.lastgroup or ""
        tokens.append(Token(kind, match[kind], match.start(kind) + 1))
        at = match.end()
    space = _SPACE.match(text, at)
    at = space.end() if space else at
    if at < len(text):
        hint = {"/": "; write floordiv", "%": "; write mod"}.get(text[at], "")
        raise LayoutError(f"unexpected character {text[at]!a}{hint}, at column {at + 1}")
    return [*tokens, Token("end", "", len(text) + 1)]


class _Reader:
    """Reads one map from its tokens, left to right."""

    def __init__(self, tokens: list[Token], shape: Sequence[int] | None) -> None:
        self.tokens = tokens
        self.shape = shape
        self.at = 0
        self.dims: dict[str, int] = {}

    def map(self) -> tuple[int, Exprs]:
        wrapped = self.next.text == "affine_map"
        if wrapped:
            self.take("affine_map")
            self.take("<")
        self.names()
        if self.next.text == "[":
            self.fail("symbols are not supported; make them dims or constants")
        self.take("->")
        results = self.results()
        if wrapped:
            self.take(">")
        if self.next.kind != "end":
            self.fail("the map ends before this")
        return len(self.dims), tuple(results)

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    @property
    def joins(self) -> bool:
        """Whether the next tokens start a join."""
        return self.next.kind == "name" and self.tokens[self.at + 1].text == "<>"

    def take(self, text: str) -> None:
        if self.next.text != text:
            self.fail(f"expected {text!r}")
        self.at += 1

    def fail(self, problem: str, token: Token | None = None) -> NoReturn:
        token = token or self.next
        found = repr(token.text[:40]) if token.kind != "end" else "the end of the text"
        raise LayoutError(f"{problem}, found {found} at column {token.column}")

    def names(self) -> None:
        self.take("(")
        while self.next.text != ")" or self.dims:
            if self.dims:
                self.take(",")
            if self.next.kind != "name":
                self.fail("expected the name of a dim")
            if self.next.text in self.dims:
                self.fail("each dim needs its own name")
            self.dims[self.next.text] = len(self.dims)
            self.at += 1
            if self.next.text == ")":
                break
        self.take(")")

    def results(self) -> list[AffineExpr]:
        self.take("(")
        results: list[AffineExpr] = []
        while self.next.text != ")" or results:
            if results:
                self.take(",")
            results.append(self.join() if self.joins else self.sum())
            if self.next.text == ")":
                break
        self.take(")")
        return results

    def join(self) -> AffineExpr:
        """Reads `d0 <> d1 <> d2`."""
        if self.shape is None:
            self.fail("<> joins dims by their extents: give the shape with the map")
        first = self.next
        try:
            shape = as_shape(self.shape, "shape")
        except LayoutError as error:
            raise LayoutError(f"{error}, at column {first.column}") from None
        found = [self.joined(shape)]
        while self.next.text == "<>":
            self.at += 1
            if self.next.text not in self.dims:
                self.fail("<> joins dims: expected the name of one")
            if self.dims[self.next.text] in found:
                self.fail("<> joins each dim once")
            found.append(self.joined(shape))
        try:
            return linearized(shape, found)
        except LayoutError as error:
            raise LayoutError(f"{error}, at column {first.column}") from None

    def joined(self, shape: tuple[int, ...]) -> int:
        if self.next.text not in self.dims:
            self.fail("no such dim")
        position = self.dims[self.next.text]
        if position >= len(shape):
            self.fail(f"<> joins dims by their extents, and the shape has {len(shape)}")
        self.at += 1
        return position

    def sum(self) -> AffineExpr:
        """Reads up to the comma or parenthesis that ends the expression, by operator precedence.

        `waiting` holds the operators and open parentheses whose right operand is not parsed yet.
        """
        operands: list[AffineExpr] = []
        waiting: list[tuple[int, Token]] = []  # precedence and token; 0 for a parenthesis
        while True:
            self.operand(operands, waiting)
            while self.next.text == ")" and any(binds == 0 for binds, _ in waiting):
                self.fold(operands, waiting, 1)
                waiting.pop()
                self.at += 1
            binds = _OPERATORS.get(self.next.text, (0, None))[0]
            self.fold(operands, waiting, max(binds, 1))
            if not binds:
                if waiting:
                    self.fail("expected ')' or an operator")
                if self.next.text not in (",", ")"):
                    self.fail("expected ',', ')' or an operator")
                return operands.pop()
            waiting.append((binds, self.next))
            self.at += 1

    def operand(self, operands: list[AffineExpr], waiting: list[tuple[int, Token]]) -> None:
        while self.next.text in ("-", "("):
            waiting.append((_UNARY_BINDS if self.next.text == "-" else 0, self.next))
            if len(waiting) > MAX_OPEN:
                self.fail(f"nested too deeply; keep to {MAX_OPEN} levels")
            self.at += 1
        token = self.next
        if token.kind == "number":
            operands.append(self.number(token))
        elif token.kind == "name" and token.text in self.dims:
            operands.append(dim(self.dims[token.text]))
        elif token.kind == "name":
            self.fail("no such dim" if token.text not in _OPERATORS else "expected an expression")
        else:
            self.fail("expected an expression")
        self.at += 1

    def number(self, token: Token) -> AffineExpr:
        base = 16 if token.text.startswith("0x") else 10
        # Python takes quadratic time over long decimals; int64 has at most 19 digits.
        digits = token.text.removeprefix("0x").lstrip("0")
        value = int(digits or "0", base) if len(digits) < 20 else INT64_MAX + 1
        if value > INT64_MAX:
            self.fail("the constant is outside int64", token)
        return constant(value)

    def fold(
        self, operands: list[AffineExpr], waiting: list[tuple[int, Token]], binds: int
    ) -> None:
        """Applies the waiting operators of at least this precedence, up to a parenthesis."""
        while waiting and waiting[-1][0] >= binds:
            tightness, token = waiting.pop()
            right = operands.pop()
            try:
                if tightness == _UNARY_BINDS:
                    operands.append(-right)
                else:
                    operands.append(_OPERATORS[token.text][1](operands.pop(), right))
            except LayoutError as error:
                raise LayoutError(f"{error}, at column {token.column}") from None
