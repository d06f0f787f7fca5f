"""Formats seconds and bytes in a suitable unit, and computes round numbers for axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, isfinite, log10
from typing import SupportsFloat

from gridlayout.errors import LayoutError

TIMES = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
SIZES = tuple((name, 1024.0**k) for k, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB")))
_ONE = 0.99995  # of a unit: in the next smaller unit it would be rounded to 1,000.0 or 1,024.0
_LONGEST = 1e12  # numbers from this one are written with an exponent

Unit = tuple[str, float]


def amount(value: object, what: str) -> float:
    """Return a number of seconds or bytes as a float; raise `LayoutError` unless finite and >= 0.

    >>> amount(-1.5, "seconds of 'dot'")
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: seconds of 'dot' -1.5 is not a finite number >= 0
    """
    try:
        number = float(value) if isinstance(value, SupportsFloat) else -1.0
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not (isfinite(number) and number >= 0):
        shown = "above 2**1024" if isinstance(value, int) and value.bit_length() > 1024 else value
        raise LayoutError(f"{what} {shown} is not a finite number >= 0")
    return number


def fitting(value: float, units: Sequence[Unit]) -> Unit:
    """Return the largest unit in which a value is written as 1.0 or more, else the smallest.

    >>> fitting(999.96e-6, TIMES), fitting(0, TIMES)
    (('ms', 0.001), ('ns', 1e-09))
    """
    return next((unit for unit in reversed(units) if value / unit[1] >= _ONE), units[0])


def time_text(seconds: float) -> str:
    """Return a time as text, in a suitable unit.

    >>> time_text(12.34e-6), time_text(0.25), time_text(2e-11), time_text(0)
    ('12.3 us', '250.0 ms', '0.02 ns', '0 s')
    """
    return _text(seconds, TIMES) if seconds else "0 s"


def bytes_text(nbytes: float) -> str:
    """Return bytes as text, in a suitable binary unit.

    >>> bytes_text(512), bytes_text(4096), bytes_text(5.25 * 2**30), bytes_text(2**20 - 1)
    ('512 B', '4.0 KiB', '5.2 GiB', '1.0 MiB')
    """
    whole = nbytes < 1023.5 and nbytes == int(nbytes)
    return f"{nbytes:.0f} B" if whole else _text(nbytes, SIZES)


def _text(value: float, units: Sequence[Unit]) -> str:
    name, unit = fitting(value, units)
    short = value / unit < _ONE or value / unit >= _LONGEST
    return f"{value / unit:.2g} {name}" if short else f"{value / unit:,.1f} {name}"


def number_text(value: float, decimals: int) -> str:
    """Return a number with `decimals` decimals, or with an exponent if that would be too long.

    >>> number_text(1234.5, 2), number_text(1e-9, 9), number_text(2e300, 0)
    ('1,234.50', '1e-09', '2e+300')
    """
    if 0 < value < 1e-6 or value >= _LONGEST:
        return f"{value:.3g}"
    return f"{value:,.{min(decimals, 9)}f}"


def round_steps(low: float, high: float, most: int) -> tuple[list[float], int]:
    """Return at most `most` + 1 equally spaced round numbers from low to high, and their decimals.

    >>> round_steps(0, 44, 8), round_steps(0, 0.5, 5)
    (([0.0, 10.0, 20.0, 30.0, 40.0], 0), ([0.0, 0.1, 0.2, 0.30000000000000004, 0.4, 0.5], 1))
    """
    if not high > low:
        return [low], 0
    least = (high - low) / most
    ten = 10.0 ** floor(log10(least))
    step = next((ten * k for k in (1, 2, 5) if ten * k >= least), ten * 10)
    first, last = ceil(low / step - 1e-6), floor(high / step + 1e-6)
    found = [k * step for k in range(first, last + 1)]
    return found or [low], max(0, -floor(log10(step * 1.0001)))


def binary_steps(high: float, most: int) -> list[float]:
    """Return at most `most` + 1 multiples of a power of two bytes, from 0 to high.

    >>> [bytes_text(n) for n in binary_steps(5.5 * 2**30, 6)][-2:]
    ['4.0 GiB', '5.0 GiB']
    """
    step = 1.0
    while high / step > most:
        step *= 2
    return [k * step for k in range(floor(high / step) + 1)]
