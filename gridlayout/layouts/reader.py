"""`Reader`: the scanner for the text forms of all systems.

`dims_text` prints the form that `Reader.dims` reads.
"""

from __future__ import annotations

import re
from typing import NoReturn

from gridlayout import dtypes
from gridlayout.errors import LayoutError


def dims_text(shape: tuple[int, ...]) -> str:
    """Return sizes as MLIR writes them.

    >>> dims_text((2, 4))
    '2x4'
    """
    return "x".join(map(str, shape))


def shaped_text(shape: tuple[int, ...], element: str) -> str:
    """Return sizes and an element type as MLIR writes them.

    >>> shaped_text((2, 4), "f32"), shaped_text((), "f32")
    ('2x4xf32', 'f32')
    """
    return "".join(f"{n}x" for n in shape) + element


class Reader:
    """A text and a position in it; every error names its column, counted from 1."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise `LayoutError` at the position `at`, or at the current position."""
        column = (self.at if at is None else at) + 1
        raise LayoutError(f"column {column}: {message}")

    def skip(self) -> None:
        """Skip blanks."""
        while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
            self.at += 1

    def here(self) -> int:
        """Skip blanks, and return the position."""
        self.skip()
        return self.at

    def peek(self, word: str) -> bool:
        """Return whether `word` is next, after blanks."""
        self.skip()
        return self.text.startswith(word, self.at)

    def peek_digit(self) -> bool:
        """Return whether a digit is next, after blanks."""
        self.skip()
        return self.text[self.at : self.at + 1] in tuple("0123456789")

    def take(self, *words: str) -> bool:
        """Skip words if they are next, one after another; return whether they were."""
        start = self.here()
        for word in words:
            if not self.peek(word):
                self.at = start
                return False
            self.at += len(word)
        return True

    def expect(self, *words: str, what: str = "") -> None:
        """Skip words, which must be next, one after another; `what` adds to the error."""
        for word in words:
            if not self.take(word):
                found = self.text[self.at : self.at + 12]
                self.fail(
                    f"expected {word!r}{what}, found {found!r}" if found else f"expected {word!r}"
                )

    def word(self, what: str) -> str:
        """Read letters, digits and `_`; `what` names them in the error."""
        return self.match(r"[A-Za-z0-9_]+", what)

    def match(self, pattern: str, what: str) -> str:
        """Read the text that `pattern` matches; `what` names it in the error."""
        self.skip()
        found = re.compile(pattern, re.ASCII).match(self.text, self.at)
        if not found:
            self.fail(f"expected {what}, found {self.text[self.at : self.at + 12]!r}")
        self.at = found.end()
        return found.group()

    def number(self) -> int:
        """Read a decimal number up to 2**62."""
        at = self.here()
        digits = self.match(r"[0-9]+", "a number")
        if len(digits) > 19 or int(digits) > 2**62:
            self.fail(f"{digits[:24]} is over 2**62", at)
        return int(digits)

    def dims(self) -> tuple[int, ...]:
        """Read sizes such as `2x4`: at least one number."""
        found = [self.number()]
        while self.peek("x"):
            self.at += 1
            found.append(self.number())
        return tuple(found)

    def dims_before_element(self) -> tuple[int, ...]:
        """Read the sizes before an element type: `2x3x` in `2x3xf32`; there may be none."""
        found = []
        while self.peek_digit():
            found.append(self.number())
            self.expect("x", what=" between sizes and before the element type")
        return tuple(found)

    def element(self, also: tuple[str, ...] = ()) -> str:
        """Read the MLIR name of an element type, or one of `also`."""
        at = self.here()
        name = self.match(r"complex\s*<\s*f[0-9]+\s*>|[A-Za-z][A-Za-z0-9_]*", "an element type")
        name = "".join(name.split())
        known = (*dtypes.FROM_MLIR, *also)
        if name not in known:
            self.fail(f"element type {name!r} is not one of {', '.join(known)}", at)
        return name

    def end(self) -> None:
        """Raise `LayoutError` unless only blanks follow."""
        self.skip()
        if self.at < len(self.text):
            self.fail(f"unexpected text after the layout: {self.text[self.at :][:12]!r}")
