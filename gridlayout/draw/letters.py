"""Estimates the width of text, by the wide DejaVu fonts, so that pictures have room for it."""

from __future__ import annotations

from collections.abc import Iterator

MONO = 0.615  # width of a monospaced letter, relative to the font size
_LETTER = 0.645
_WIDTHS = {
    **dict.fromkeys("ijl'", 0.28),
    **dict.fromkeys(' ,.;:!|frt()[]-/"', 0.4),
    **dict.fromkeys("mwMW=<>+%→…@", 0.99),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&", 0.77),
}


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return an upper estimate of the width in pixels of text in a proportional font.

    size: the font size in pixels.

    >>> text_width("illicit", 10) < text_width("maximum", 10)
    True
    """
    return sum(_WIDTHS.get(letter, _LETTER) for letter in text) * size * (1.1 if bold else 1)


def mono_width(text: str, size: float) -> float:
    """Return the width in pixels of a text in a monospaced font.

    >>> round(mono_width("0" * 10, 11))
    68
    """
    return MONO * size * len(text)


def lines_of(text: str, room: float, size: float, bold: bool = False) -> Iterator[str]:
    """Yield the lines of a text wrapped to `room` pixels; a longer word is cut.

    >>> list(lines_of("a word or two", 45, 10))
    ['a word', 'or two']
    """
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if text_width(longer, size, bold) <= room:
            line = longer
            continue
        if line:
            yield line
        line = word
        while text_width(line, size, bold) > room and len(line) > 1:
            fits = max(
                (k for k in range(1, len(line)) if text_width(line[:k], size, bold) <= room),
                default=1,
            )
            yield line[:fits]
            line = line[fits:]
    if line:
        yield line
