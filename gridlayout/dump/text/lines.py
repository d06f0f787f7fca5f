"""Splits a dump into numbered lines, in bounded memory.

A line longer than one MiB (an HLO constant) is split into several pieces; no cut is inside a type.
A type that spans a few lines (as in MLIR written by hand) is joined into one.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from gridlayout.errors import LayoutError
from gridlayout.mlir.source import uncommented
from gridlayout.text import MAX_TEXT

PIECE = 1 << 20  # bytes; longer lines are split into pieces
_BLOCK = 1 << 16  # bytes read at once
_new = tuple.__new__  # takes a third of the time of calling the class: a dump has a million lines
MAX_JOINED = 16  # most lines of one type

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")  # a terminal's escape sequence
_WIDE = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class Line(NamedTuple):
    """A line, several joined lines, or a piece of a long line.

    number: of its first line, from 1. first: whether it is at the beginning of a line.
    """

    number: int
    first: bool
    text: str


def lines_of(
    stream: io.BufferedIOBase, progress: Callable[[int], None] | None = None
) -> Iterator[Line]:
    """Yield the lines of a stream of bytes; invalid UTF-8 becomes the replacement character.

    progress: called with the number of bytes of every block that is read.

    >>> list(lines_of(io.BytesIO(b"a\\r\\nb")))
    [Line(number=1, first=True, text='a'), Line(number=2, first=True, text='b')]
    """
    number, first, rest = 1, True, b""
    for block in _blocks(stream, progress):
        whole, newline, rest = (rest + block if rest else block).rpartition(b"\n")
        if newline:
            text = whole.decode("utf-8", "replace")
            for each in text.split("\n"):
                yield _new(Line, (number, first, each.rstrip("\r")))
                number, first = number + 1, True
        while len(rest) >= PIECE:
            cut = _cut(rest)
            yield Line(number, first, rest[:cut].decode("utf-8", "replace").rstrip("\r"))
            rest, first = rest[cut:], False
    if rest:
        yield Line(number, first, rest.decode("utf-8", "replace").rstrip("\r"))


def _blocks(stream: io.BufferedIOBase, progress: Callable[[int], None] | None) -> Iterator[bytes]:
    """Yield the stream in blocks, UTF-16 (detected by its first bytes) transcoded to UTF-8."""
    decode, start = None, True
    while raw := _read(stream):
        if progress:
            progress(len(raw))
        if start:
            kind = next((name for mark, name in _WIDE.items() if raw.startswith(mark)), None)
            if kind is None and len(raw) > 3 and raw[0] and not raw[1] and raw[2] and not raw[3]:
                kind = "utf-16-le"
            decode = codecs.getincrementaldecoder(kind)("replace").decode if kind else None
            raw, start = raw.removeprefix(codecs.BOM_UTF8), False
        yield decode(raw).encode("utf-8", "replace") if decode else raw


def _read(stream: io.BufferedIOBase) -> bytes:
    try:
        return stream.read(_BLOCK)
    except (OSError, EOFError, ValueError) as error:
        name, why = getattr(stream, "name", stream), getattr(error, "strerror", None) or error
        raise LayoutError(f"{name!r} can't be read: {why}; open it with 'rb'") from None


def lines_of_each(texts: Iterable[str | bytes]) -> Iterator[Line]:
    """Yield the lines of an iterable of lines, such as an open file.

    Raises `LayoutError` for an item that is neither str nor bytes.

    >>> [line.text for line in lines_of_each(["a\\n", b"b"])]
    ['a', 'b']
    """
    try:
        each = iter(texts)
    except TypeError:
        raise LayoutError(
            f"source {texts!r} must be a path, a text, a binary stream, or lines"
        ) from None
    for number, text in enumerate(each, 1):
        if not isinstance(text, (str, bytes)):
            raise LayoutError(f"line {number} of the source is {text!r}, neither str nor bytes")
        data = text.encode("utf-8", "replace") if isinstance(text, str) else text
        for line in lines_of(io.BytesIO(data.rstrip(b"\r\n") or b"\n")):
            yield Line(number, line.first, line.text)


def _cut(data: bytes) -> int:
    """Return where to cut a long line: before a type that may be incomplete, else at a space."""
    near = len(data) - MAX_TEXT
    found = data.rfind(b"tensor<", near)
    # The current metal_layout contains a type: dense<[[0, 2], [2, 3]]> : tensor<2x2xi64>.
    while found > 0 and data.endswith(b"> : ", 0, found):
        found = data.rfind(b"tensor<", near, found)
    memref = data.rfind(b"memref<", near)
    if memref > found and (found < 0 or _balance(data[found:memref].decode("latin-1")) <= 0):
        found = memref  # of no tensor's layout
    found = found if found > 0 else data.rfind(b" ", near)
    return found if found > 0 else len(data)


def without_comments(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines without colours and MLIR comments, except those that announce a pass.

    >>> [line.text for line in without_comments(lines_of_each(["a // b", '  // c', 's="//d"']))]
    ['a', '', 's="//d"']
    """
    for line in lines:
        text = line.text
        if "\x1b" in text:
            text = _COLOUR.sub("", text)
            line = line._replace(text=text)
        if "//" in text and "-----// IR Dump " not in text:
            left = uncommented(text, strict=False)
            yield line if left == text else Line(line.number, line.first, left.rstrip())
        else:
            yield line


def joined(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines; the lines of one MLIR type or alias are joined into one.

    A type that is not closed within `MAX_JOINED` lines is left as it is.

    >>> text = ["%0 : tensor<8xf32,", "  #layout<1>>", "return"]
    >>> [(line.number, line.text) for line in joined(lines_of_each(text))]
    [(1, '%0 : tensor<8xf32,\\n  #layout<1>>'), (3, 'return')]
    """
    source, waiting = iter(lines), deque[Line]()
    while True:
        line = waiting.popleft() if waiting else next(source, None)
        if line is None:
            return
        balance = _balance(line.text) if _may_go_on(line.text) else 0
        if balance <= 0:
            yield line
            continue
        count, length = 0, len(line.text)
        while balance > 0 and count < MAX_JOINED - 1 and length <= MAX_TEXT:
            if count == len(waiting):
                following = next(source, None)
                if following is None:
                    break
                waiting.append(following)
            balance += _balance(waiting[count].text)
            length += len(waiting[count].text)
            count += 1
        if balance <= 0:
            texts = [line.text, *(waiting.popleft().text for _ in range(count))]
            line = Line(line.number, line.first, "\n".join(texts))
        yield line


def _may_go_on(text: str) -> bool:
    return "tensor<" in text or "memref<" in text or text.lstrip()[:1] in ("#", "!")


def _balance(text: str) -> int:
    """Return the number of `<` that the text opens and does not close; `->` closes none."""
    return text.count("<") - text.count(">") + text.count("->")
