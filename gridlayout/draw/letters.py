"""Estimates the width of text, by the wide DejaVu fonts, so that pictures have room for it.

Letters of Chinese, Japanese and Korean are as wide as high in every font, and emoji are wider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unicodedata import east_asian_width

MONO = 0.615  # width of a monospaced letter, relative to the font size
_LETTER = 0.645
_WIDTHS = {
    **dict.fromkeys("ijl'", 0.28),
    **dict.fromkeys(' ,.;:!|frt()[]-/"', 0.4),
    **dict.fromkeys("mwMW=<>+%→…@", 0.99),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&", 0.77),
}
_WIDE, _EMOJI = 1.0, 1.3


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return an upper estimate of the width in pixels of text in a proportional font.

    size: the font size in pixels.

    >>> text_width("illicit", 10) < text_width("maximum", 10)
    True
    """
    return sum(map(_proportional, text)) * size * (1.1 if bold else 1)


def mono_width(text: str, size: float) -> float:
    """Return the width in pixels of a text in a monospaced font.

    >>> round(mono_width("0" * 10, 11)), round(mono_width("層正規化", 11))
    (68, 44)
    """
    wide = [] if text.isascii() else [width for width in map(_wide, text) if width]
    return MONO * size * (len(text) - len(wide)) + sum(wide) * size


def _proportional(letter: str) -> float:
    return _WIDTHS.get(letter) or _wide(letter) or _LETTER


def _mono(letter: str) -> float:
    return _wide(letter) or MONO


def _wide(letter: str) -> float:
    """Return the width of a letter that is at least as wide as high; 0.0 for all others."""
    if letter.isascii() or east_asian_width(letter) not in "WF":
        return 0.0
    is_emoji = "\u2300" <= letter < "\u2e80" or "\U0001f000" <= letter < "\U00020000"
    return _EMOJI if is_emoji else _WIDE


def lines_of(text: str, room: float, size: float, bold: bool = False) -> Iterator[str]:
    """Yield the lines of a text wrapped to `room` pixels; a longer word is cut.

    >>> list(lines_of("a word or two", 45, 10))
    ['a word', 'or two']
    """
    return _wrapped(text, room / (size * (1.1 if bold else 1)), _proportional)


def mono_lines(text: str, room: float, size: float) -> Iterator[str]:
    """Yield the lines of a text in a monospaced font, wrapped like those of `lines_of`.

    >>> list(mono_lines("a word or two", 45, 10))
    ['a word', 'or two']
    """
    return _wrapped(text, room / size, _mono)


def _wrapped(text: str, room: float, width: Callable[[str], float]) -> Iterator[str]:
    line, used = "", 0.0
    for word in text.split(" "):
        wide = sum(map(width, word))
        if line and used + width(" ") + wide <= room:
            line, used = f"{line} {word}", used + width(" ") + wide
            continue
        if line:
            yield line
        line, used = "", 0.0
        for letter in word:
            if line and used + width(letter) > room:
                yield line
                line, used = "", 0.0
            line, used = line + letter, used + width(letter)
    if line:
        yield line
