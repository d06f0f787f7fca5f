"""`Source`: the scanner of MLIR text; every error names its line."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from typing import NoReturn, TypeVar

from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import Reader

_T = TypeVar("_T")
MAX_DEPTH = 256
_BLANK = re.compile(r"(?:\s+|//[^\n]*)*")
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>()\[\]{},"]')
_CLOSES = {")": "(", "]": "[", "}": "{", ">": "<"}
# A string that is not closed ends with its line: looking for its end again would take long.
STRING = r'"(?:[^"\\\n]|\\.)*+"?'
_COMMENT = re.compile(rf"({STRING})|//[^\n]*")
_COMMENT_AFTER_BLANK = re.compile(rf"({STRING})|(?<!\S)//[^\n]*")


class Source(Reader):
    """A `Reader` of several lines: comments are skipped, and errors name lines, counted from 1.

    >>> source = Source("a // of no use\\n<b>")
    >>> source.take("a"), source.balanced(), source.line
    (True, '<b>', 2)
    """

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def line_of(self, at: int) -> int:
        """The line, counted from 1, of a position."""
        return bisect_right(self._starts, at)

    @property
    def line(self) -> int:
        """The line of the next token."""
        self.skip()
        return self.line_of(self.at)

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise `LayoutError` at the position `at`, or at the current position."""
        raise LayoutError(f"line {self.line_of(self.at if at is None else at)}: {message}")

    def skip(self) -> None:
        """Skip blanks and comments."""
        found = _BLANK.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    @property
    def ended(self) -> bool:
        """Whether only blanks and comments remain."""
        self.skip()
        return self.at == len(self.text)

    def balanced(self, stops: str = "") -> str:
        """Read up to one of `stops`, or an unmatched closing bracket, outside nested brackets.

        The stop itself is not read. Without `stops`, read one bracket and its contents.
        """
        self.skip()
        start = self.at
        opened: list[str] = []
        for found in _TOKEN.finditer(self.text, start):
            token = found[0]
            if not opened and (token in stops or token in _CLOSES):
                self.at = found.start()
                return self.text[start : self.at].strip()
            if token == '"':
                self.fail("a string is not closed", found.start())
            if token in "<([{":
                opened.append(token)
                if len(opened) > MAX_DEPTH:
                    self.fail(f"brackets are nested deeper than {MAX_DEPTH}", found.start())
            elif token in _CLOSES:
                if opened.pop() != _CLOSES[token]:
                    self.fail(f"{token!r} does not match the open bracket", found.start())
                if not opened and not stops:
                    self.at = found.end()
                    return self.text[start : self.at]
        self.fail("a bracket is not closed", start)

    def listed(self, end: str, item: Callable[[Source], _T]) -> list[_T]:
        """Read items between commas, and the `end` behind them."""
        found = []
        while not self.peek(end):
            found.append(item(self))
            if not self.take(","):
                break
        self.expect(end)
        return found


def closing(text: str, start: int, brackets: str) -> int:
    """Return the position of the bracket that closes the first one from `start` on.

    The text's length if none does. An arrow closes none.

    >>> closing("tensor<(d0) -> (d1), <4>>, x", 0, "<>")
    24
    """
    depth, at = 0, start
    while (end := text.find(brackets[1], at)) >= 0:
        depth += text.count(brackets[0], at, end) - (text[end - 1 : end + 1] != "->")
        if not depth:
            return end
        at = end + 1
    return len(text)


def uncommented(text: str, strict: bool = True) -> str:
    """The text without comments; `//` in a string starts none.

    strict: whether `//` starts one anywhere else, as in MLIR, or only after a blank: other texts
    contain addresses.

    >>> uncommented('a, // b'), uncommented("gs://a // b", strict=False)
    ('a, ', 'gs://a ')
    """
    pattern = _COMMENT if strict else _COMMENT_AFTER_BLANK
    return pattern.sub(lambda found: found[1] or "", text) if "//" in text else text


def parts(text: str) -> list[str]:
    """Split a text at commas outside brackets and strings.

    >>> parts("a, <b, c>, [d]")
    ['a', '<b, c>', '[d]']
    """
    source = Source(f"({uncommented(text)})")
    source.at = 1
    found = source.listed(")", lambda source: source.balanced(","))
    if not source.ended:
        source.fail("')' does not match an open bracket", source.at - 1)
    return found


def fields(text: str) -> dict[str, str]:
    """Parse `key = value` pairs into a dict of texts; a key without a value maps to itself.

    >>> fields("dim = 1 : si32, activations = [a, b], inplace")
    {'dim': '1 : si32', 'activations': '[a, b]', 'inplace': 'inplace'}
    """
    made: dict[str, str] = {}
    for part in parts(text):
        key, equals, value = part.partition("=")
        key = key.strip().strip('"')
        if not re.fullmatch(r"[A-Za-z_][\w.$-]*", key):
            raise LayoutError(f"attribute {part[:60]!r} must be written key = value")
        if key in made:
            raise LayoutError(f"attribute {key!r} is given twice")
        made[key] = value.strip() if equals else key
    return made
