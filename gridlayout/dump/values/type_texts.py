"""Parses the text of a type: its sizes in bytes and its layout, both cached.

A dump may hold a million types, of which a few are shown. So sizes are computed from the text
alone where possible, and a layout is built only on request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

from gridlayout import dtypes
from gridlayout.arguments import MAX_ELEMENTS, Shape
from gridlayout.caching import cached
from gridlayout.costs import Described
from gridlayout.dump.text.hlo import ARRAY
from gridlayout.dump.values.sizes import Sizes, sizes_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.tenstorrent.allocation import read_allocation
from gridlayout.text import parse

# Longer texts are parsed each time, not cached.
MAX_REMEMBERED = 1 << 10
_NOTHING: Mapping[str, Sizes] = {}


def read(text: str) -> Sizes:
    """Return the sizes of a type, or the reason why it can't be read.

    >>> found = read("f32[3,5]{1,0:T(8,128)}")
    >>> found.nbytes, found.data_bytes, layout_of("f32[3,5]{1,0:T(8,128)}").shape
    (4096, 60, (3, 5))
    """
    return _remembered(text) if len(text) <= MAX_REMEMBERED else _read(text)


def compare_types(
    before: str, after: str, known: Mapping[str, Sizes] = _NOTHING
) -> tuple[Shape, Shape, int, bool] | None:
    """Return both shapes, the data bytes of `before`, and whether the two layouts are equal.

    None if one of the types has no layout. known: sizes of types that are parsed already.

    >>> compare_types("f32[4]{0}", "f32[4]{0:T(128)}"), compare_types("f32[4]{0}", "f32[4]{0:S(0)}")
    (((4,), (4,), 16, False), ((4,), (4,), 16, True))
    """
    one, other = known.get(before) or read(before), known.get(after) or read(after)
    if one.kind is not None and other.kind is not None:
        shapes = (one.shape or (), other.shape or ())
        same = one.kind == other.kind and shapes[0] == shapes[1]
        return *shapes, one.data_bytes, same
    if one.reason or other.reason:
        return None
    first, second = layout_of(before), layout_of(after)
    if not isinstance(first, Layout) or not isinstance(second, Layout):
        return None
    return first.shape, second.shape, first.data_bytes, first == second


def layout_of(text: str) -> Described:
    """Return the layout of a type, or its `Allocation` if it states buffers only.

    Raises `LayoutError` if it states neither.
    """
    return _layout(text)


def _layout_of(text: str) -> Described:
    if "[" in text and "<=" in text:  # a dynamic dim of HLO: memory is allocated for its bound
        text = text.replace("<=", "")
    try:
        return parse(text)
    except LayoutError as error:
        refusal = error
    except Exception as error:  # a bug in a parser must not stop the reading of a dump
        refusal = LayoutError(f"{type(error).__name__} while it was read: {error}")
    try:
        return read_allocation(text)
    except LayoutError:
        raise refusal from None


def _read(text: str) -> Sizes:
    if (found := sizes_of(text)) is not None:
        return found
    try:
        layout = layout_of(text)
    except LayoutError as error:
        return Sizes(reason=re.sub(r"^column \d+: ", "", str(error))[:160] or "no layout")
    held = layout.held
    return Sizes(held.nbytes, layout.data_bytes, tuple(held))


def array_sizes(kind: str) -> list[int]:
    """Return the bytes of each array in an instruction's type, which may be a nested tuple.

    >>> array_sizes("(f32[4]{0}, (s8[3], u32[]))")
    [16, 3, 4]
    """
    return [read(each).nbytes for each in ARRAY.findall(kind)]


def dense_bytes(dims: str, element: str) -> int:
    """Return the bytes of a tensor's elements, without padding; 0 for more than 2**62 elements.

    >>> dense_bytes("3x5x", "bf16"), dense_bytes("4x", "complex<f32>"), dense_bytes("4x", "i1")
    (30, 32, 4)
    """
    size = prod(int(word) for word in dims.split("x") if word)
    if size > MAX_ELEMENTS:
        return 0
    try:
        bits = dtypes.bits(dtypes.as_dtype(element))
    except LayoutError:  # such as f8E4M3B11FNUZ, whose first number is its bits
        found = re.search(r"[0-9]+", element)
        bits = int(found[0]) if found else 8
    return -(-size * bits // 8)


_layout = cached(entries=2048)(_layout_of)
_remembered = cached(entries=1024)(_read)
