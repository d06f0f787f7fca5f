"""Quantized elements: whole numbers that stand for floats, `!quant.uniform<i8:f32, 0.1:3>`.

The float is (number - zero point) * scale. There is one scale for all, or one for each index of a
dim: `!quant.uniform<i8:f32:1, {0.1:0, 0.2:5}>`. Source: MLIR's dialect `quant`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gridlayout.layouts.reader import Reader

_NUMBER = r"-?[0-9]{1,9}(?:\.[0-9]{0,40})?(?:[eE][-+]?[0-9]{1,3})?"
_ONE = re.compile(rf"\s*({_NUMBER})\s*(?::\s*(-?[0-9]{{1,10}})\s*)?")
_TYPE = re.compile(
    r"!quant\.uniform<([iu])(8|16|32)(?:<(-?[0-9]{1,10}):(-?[0-9]{1,10})>)?:[a-z0-9]{2,8}"
    r"(?::([0-9]{1,2}))?\s*,\s*(\{[^{}<>]{0,99999}\}|[^{}<>,]{1,99})>"
)


@dataclass(frozen=True)
class Quantized:
    """What numbers stand for.

    dtype: of the numbers. scales, zeros: for each index of the dim `axis`, or one for all if that
    is None. low, high: the least and the largest number.

    >>> read_quantized(Reader("!quant.uniform<u8:f32, 0.5:3>"))
    Quantized(dtype='uint8', scales=(0.5,), zeros=(3,), axis=None, low=0, high=255)
    """

    dtype: str
    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int | None
    low: int
    high: int


def read_quantized(reader: Reader) -> Quantized:
    """Read the type of quantized elements, where the reader is.

    `LayoutError` for a type of another form, and for a scale that is not positive.
    """
    reader.skip()
    found = _TYPE.match(reader.text, reader.at)
    pairs = _pairs(found[6]) if found else []
    if found is None or not pairs or (found[5] is None) == found[6].startswith("{"):
        reader.fail(
            f"{reader.text[reader.at :][:60]!r} is no type of quantized numbers: expected "
            "!quant.uniform<i8:f32, SCALE:ZERO>, or <i8:f32:DIM, {SCALE:ZERO, ...}>"
        )
    sign, bits, low, high, axis, _ = found.groups()
    least = -(1 << int(bits) - 1) if sign == "i" else 0
    most = least + (1 << int(bits)) - 1
    scales, zeros = zip(*pairs, strict=True)
    if min(scales) <= 0:
        reader.fail(f"scale {min(scales)} must be positive")
    reader.at = found.end()
    return Quantized(
        f"{'' if sign == 'i' else 'u'}int{bits}",
        *(scales, zeros, None if axis is None else int(axis)),
        least if low is None else max(int(low), least),
        most if high is None else min(int(high), most),
    )


def _pairs(text: str) -> list[tuple[float, int]]:
    """Return scales and zero points; none if the text is of another form."""
    found = [_ONE.fullmatch(word) for word in text.strip("{}").split(",")]
    if not all(found):
        return []
    return [(float(each[1]), int(each[2] or 0)) for each in found if each]
