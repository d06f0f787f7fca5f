"""`Prefixes`: what a log prints before each line of a program, such as a time or a level.

    RuntimeTTNN |    DEBUG | Executing operation: %1 = "ttnn.neg"(%0) : ...
    2026-05-27 10:11:12 |   %a = f32[40,70]{1,0} add(%b, %c)

A statement has a form that no prefix has. The words before a statement are its prefix. It is also
cut from following lines that begin with it, where only digits may differ. HLO may be indented as a
whole: computations begin and end at the margin, so an indentation before them is a prefix too.
"""

from __future__ import annotations

import re

_MOST = 512  # characters of a line in which a statement may begin
_STARTS = '%"#!}^/)'  # first characters of lines without a prefix
_DIGIT = re.compile("[0-9]")
_NAMES = r"%[\w$.-]{1,200}(?::[0-9]{1,4})?(?:, %[\w$.-]{1,200}){0,16}"
_STATEMENT = re.compile(
    r"(?<=[\s|\]:>+])(?:"
    rf'{_NAMES} = "?[a-z_]\w{{0,30}}\.[a-z_]'  # of MLIR
    r"|(?:ROOT )?%?[\w.-]{1,200} = \({0,4}[a-z]\w{0,20}\[[0-9,<=]*\]"  # of HLO
    r'|"[a-z_]\w{0,30}\.[a-z_][\w.]{0,60}"\('
    r"|func\.func\b|(HloModule |ENTRY )|(%?[\w.-]{1,200} \(%?[\w.-]{1,200}: )"
    r"|module (?:@|\{|attributes))"
)


class Prefixes:
    """The prefix of the last lines, with its digits as 0; empty if they had none."""

    def __init__(self) -> None:
        self.known = ""

    def cut(self, text: str) -> str:
        """Return a line without its prefix.

        >>> prefixes = Prefixes()
        >>> prefixes.cut('12:09 | func.func @f() {'), prefixes.cut('12:10 | }')
        ('func.func @f() {', '}')
        >>> prefixes.cut('  return %0 : tensor<4xf32>')
        '  return %0 : tensor<4xf32>'
        >>> prefixes.cut("    ENTRY %f () -> f32[] {"), prefixes.cut("    }")
        ('ENTRY %f () -> f32[] {', '}')
        """
        if (rest := without(self.known, text)) is not text:
            return rest
        if text.lstrip()[:1] in _STARTS and not (text[:1].isspace() and text.endswith("{")):
            return text
        if text.startswith("ENTRY "):
            return text
        found = _STATEMENT.search(text, 0, _MOST)
        if found and found[2] and not (text.rstrip().endswith("{") and "->" in text):
            found = None  # no computation begins
        prefix = text[: found.start()] if found else ""
        # A statement precedes its types.
        if not prefix or "tensor<" in prefix or "memref<" in prefix:
            return text
        if prefix.isspace() and not (found and (found[1] or found[2])):
            return text
        self.known = prefix_of(prefix)
        return text[len(prefix) :]


def prefix_of(text: str) -> str:
    """Return a prefix with its digits as 0: they may differ in each line."""
    return _DIGIT.sub("0", text)


def without(prefix: str, text: str) -> str:
    """Return a line without a prefix of `prefix_of`; the same object if it does not begin with it.

    >>> without(prefix_of("12:09 | "), "13:59 |  value"), without("", "a")
    (' value', 'a')
    """
    length = len(prefix)
    return text[length:] if length and prefix_of(text[:length]) == prefix else text
