"""Texts in tables: extents, durations, and foreign text made safe to print."""

from __future__ import annotations

from collections.abc import Sequence

from gridlayout.layouts.reader import dims_text

WIDTH = 32  # characters of a cell with foreign text


def dims(shape: Sequence[int]) -> str:
    """Return extents joined by `x`.

    >>> dims((3, 2)), dims(())
    ('3x2', '-')
    """
    return dims_text(tuple(shape)) or "-"


def plain(text: str, width: int = 1 << 16) -> str:
    """Return foreign text made safe to print: cut to `width`, control characters escaped.

    >>> print(plain("a" + chr(27) + "[31m" + chr(0x202E)), plain("abcdef", 4))
    a\\x1b[31m\\u202e abc…
    """
    if len(text) > width:
        text = text[: width - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def duration(seconds: float) -> str:
    """Return a duration as text, in the largest unit that gives at least 1.

    >>> duration(1.5e-6), duration(0.0123), duration(2e-9), duration(3.0)
    ('1.50 us', '12.30 ms', '2.00 ns', '3.00 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:,.2f} {unit}"
    return f"{seconds / 1e-9:,.2f} ns"


def taken(seconds: float | None) -> str:
    """Return a duration as text; `-` for none."""
    return duration(seconds) if seconds else "-"


def bound_words(seconds: float, bound: float) -> str:
    """Return a lower bound of a time as text, with the excess of the time where that says much.

    >>> bound_words(3e-6, 2e-6), bound_words(3e-6, 0), bound_words(3e-6, 1e-9)
    ('bound 2.00 us, gap 50.0%', 'no bound known, gap unknown', 'bound 1.00 ns, far below that')
    """
    if seconds <= bound:
        return f"bound {duration(bound)}, gap 0.0%"
    if bound <= 0:
        return "no bound known, gap unknown"
    gap = seconds / bound - 1
    return f"bound {duration(bound)}, " + (f"gap {gap:.1%}" if gap < 10 else "far below that")
