"""Words of tables: sizes, numbers, and the dump's own words made safe to print."""

from __future__ import annotations

from collections.abc import Sequence

from gridlayout.layouts.reader import dims_text

WIDTH = 32  # of a cell of the dump's own words
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


def dims(shape: Sequence[int]) -> str:
    """Extents with an x between.

    >>> dims((3, 2)), dims(())
    ('3x2', '-')
    """
    return dims_text(tuple(shape)) or "-"


def size(n: int) -> str:
    """Bytes in binary units.

    >>> size(512), size(4096), size(3 * 2**30)
    ('512 B', '4.0 KiB', '3.0 GiB')
    """
    if abs(n) < 1024:
        return f"{n} B"
    power = min((abs(n).bit_length() - 1) // 10, len(_UNITS))
    return f"{n / 1024**power:,.1f} {_UNITS[power - 1]}"


def number(n: int, noun: str) -> str:
    """A number and its noun.

    >>> number(1, "line"), number(2000, "line")
    ('1 line', '2,000 lines')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def plain(text: str, width: int = 1 << 16) -> str:
    """The dump's own words, made safe to print: control characters escaped, cut to `width`.

    >>> print(plain("a" + chr(27) + "[31m" + chr(0x202E)), plain("abcdef", 4))
    a\\x1b[31m\\u202e abc…
    """
    if len(text) > width:
        text = text[: width - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
