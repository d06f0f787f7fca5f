"""Lines of a dump: any bytes as numbered pieces of text, in bounded memory.

A line over a mebibyte (an HLO constant) comes in several pieces, cut where no type is cut; a type
that goes on over a few lines (as MLIR is written by hand) comes in one.
"""

from __future__ import annotations

import codecs
import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from gridlayout.errors import LayoutError
from gridlayout.text import MAX_TEXT

PIECE = 1 << 20  # bytes of a line from which on it comes in pieces
_BLOCK = 1 << 16  # bytes read at once
_new = tuple.__new__  # of a million lines: a third of the time that calling the class takes
MAX_JOINED = 16  # lines of one type


_WIDE = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class Line(NamedTuple):
    """A line, several lines of one type, or a piece of a long line; `first`: it begins a line."""

    number: int
    first: bool
    text: str


def lines_of(
    stream: io.BufferedIOBase, progress: Callable[[int], None] | None = None
) -> Iterator[Line]:
    """The lines of a stream of bytes; what is not UTF-8 becomes the replacement character.

    progress: called with the bytes of every part that is read.

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
    """The stream in parts of any length, as UTF-8 where it is UTF-16 by its first bytes."""
    decode, start = None, True
    while raw := stream.read(_BLOCK):
        if progress:
            progress(len(raw))
        if start:
            kind = next((name for mark, name in _WIDE.items() if raw.startswith(mark)), None)
            if kind is None and len(raw) > 3 and raw[0] and not raw[1] and raw[2] and not raw[3]:
                kind = "utf-16-le"
            decode = codecs.getincrementaldecoder(kind)("replace").decode if kind else None
            raw, start = raw.removeprefix(codecs.BOM_UTF8), False
        yield decode(raw).encode("utf-8", "replace") if decode else raw


def lines_of_each(texts: Iterable[str | bytes]) -> Iterator[Line]:
    """The lines of an iterable that gives a line at a time, as an open file does.

    >>> [line.text for line in lines_of_each(["a\\n", b"b"])]
    ['a', 'b']
    """
    for number, text in enumerate(_iterator(texts), 1):
        if not isinstance(text, (str, bytes)):
            raise LayoutError(f"line {number} of the source is {text!r}, neither str nor bytes")
        data = text.encode("utf-8", "replace") if isinstance(text, str) else text
        for line in lines_of(io.BytesIO(data.rstrip(b"\r\n") or b"\n")):
            yield Line(number, line.first, line.text)


def _iterator(texts: Any) -> Iterator[Any]:
    try:
        return iter(texts)
    except TypeError:
        raise LayoutError(
            f"source {texts!r} must be a path, a text, a binary stream, or lines"
        ) from None


def _cut(data: bytes) -> int:
    """Where to cut a long line: before a type that may be unfinished, else at a blank."""
    near = len(data) - MAX_TEXT
    found = data.rfind(b"tensor<", near)
    # Today's metal_layout has a type inside it: dense<[[0, 2], [2, 3]]> : tensor<2x2xi64>.
    while found > 0 and data.endswith(b"> : ", 0, found):
        found = data.rfind(b"tensor<", near, found)
    found = found if found > 0 else data.rfind(b" ", near)
    return found if found > 0 else len(data)


def uncommented(lines: Iterable[Line]) -> Iterator[Line]:
    """The same lines without MLIR's comments, but for those that say which pass follows.

    >>> [line.text for line in uncommented(lines_of_each(["a // b", '  // c', 's="//d"']))]
    ['a', '', 's="//d"']
    """
    for line in lines:
        text = line.text
        at = text.find("//")
        if at < 0 or "-----// IR Dump " in text:
            yield line
            continue
        while at >= 0 and (text.count('"', 0, at) % 2 or (at and text[at - 1] not in " \t")):
            at = text.find("//", at + 2)
        yield line if at < 0 else Line(line.number, line.first, text[:at].rstrip())


def joined(lines: Iterable[Line]) -> Iterator[Line]:
    """The same lines, those of an unfinished MLIR type or alias joined with the ones that end it.

    What is not ended within `MAX_JOINED` lines stays as it is.

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
    """Brackets that the text opens and does not close; the arrow of a map closes none."""
    return text.count("<") - text.count(">") + text.count("->")
