"""Checks of user arguments: shapes, indices, counts and words."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from math import prod
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from gridlayout.errors import LayoutError

Shape = tuple[int, ...]
# A shape, grid or tile as users give it: a number is that of one dim, as in NumPy.
ShapeLike = int | Sequence[int]
_MOST_ITEMS = 8  # of an array or a container, that errors print
Ints = NDArray[np.int64]
# XLA counts elements in int64, and NumPy arrays have at most 64 dims.
MAX_ELEMENTS, MAX_RANK = 2**62, 64
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def int64(value: object, what: str) -> int:
    """Return `value` as a Python int within int64; `what` names it in the LayoutError.

    >>> int64(2**63, "stride")
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: stride 9223372036854775808 is outside int64
    """
    if type(value) is int and INT64_MIN <= value <= INT64_MAX:
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise LayoutError(f"{what} {value!r} is not an integer")
    try:
        number = operator.index(value)
    except TypeError:
        raise LayoutError(f"{what} {value!r} is not an integer") from None
    if not INT64_MIN <= number <= INT64_MAX:
        # Printing a huge int is slow, and Python refuses beyond 4300 digits.
        text = str(number) if number.bit_length() < 128 else f"of {number.bit_length()} bits"
        raise LayoutError(f"{what} {text} is outside int64")
    return number


def shown(value: Any) -> str:
    """Return the repr of an argument, for errors; of an array that is no short list, its shape.

    Python prints no ints of more than 4300 digits.

    >>> shown([10**5000]), shown((3, 2))
    ('(list with a number too long to print)', '(3, 2)')
    >>> shown(np.zeros((5, 7))), shown({"w": np.zeros((5, 7)), "n": 3})
    ('ndarray float64[5,7]', "{'w': ndarray float64[5,7], 'n': 3}")
    """
    if text := _array_text(value):
        return text
    if type(value) in (list, tuple, dict):
        items = value.values() if isinstance(value, dict) else value
        if any(map(_array_text, islice(items, _MOST_ITEMS))):
            return _container_text(value)
    try:
        return repr(value)
    except ValueError:
        return f"({type(value).__name__} with a number too long to print)"


def _array_text(value: Any) -> str:
    """Return the type and the shape of an array, but "" for one of a few elements in a row."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if dtype is None or not isinstance(shape, tuple) or not hasattr(value, "__array__"):
        return ""
    dims = ",".join(map(str, shape))
    kind = type(value).__name__.removesuffix("Impl")  # of JAX's arrays
    return f"{kind} {dtype}[{dims}]" if prod(shape) > _MOST_ITEMS or len(shape) > 1 else ""


def _container_text(value: Any) -> str:
    """Return the text of a list, tuple or dict that holds arrays: of its first items."""
    more = ", ..." if len(value) > _MOST_ITEMS else ""
    if isinstance(value, dict):
        pairs = islice(value.items(), _MOST_ITEMS)
        return f"{{{', '.join(f'{shown(key)}: {shown(item)}' for key, item in pairs)}{more}}}"
    text = ", ".join(map(shown, value[:_MOST_ITEMS])) + more
    if isinstance(value, list):
        return f"[{text}]"
    return f"({text},)" if len(value) == 1 else f"({text})"


def as_shape(shape: Any, what: str) -> Shape:
    """Return `shape` as a tuple of Python ints >= 0; a number is a shape of one dim.

    >>> as_shape([2, 3], "shape"), as_shape(5, "shape")
    ((2, 3), (5,))
    """
    return _whole_numbers(shape, what, 0, "whole numbers >= 0")


def positive(values: Any, what: str) -> Shape:
    """Return `values` as a tuple of at least one int, all >= 1; a number is one of them.

    >>> positive([3, 2], "grid"), positive(np.int64(8), "grid")
    ((3, 2), (8,))
    """
    rule = "whole numbers: at least one number, all >= 1"
    dims = _whole_numbers(values, what, 1, rule)
    if not dims:
        raise LayoutError(f"{what} {dims} must hold {rule}")
    return dims


def _whole_numbers(values: Any, what: str, least: int, rule: str) -> Shape:
    """Return `values` as a tuple of Python ints from `least`; `rule` states this for errors."""
    if getattr(values, "ndim", 1) > 1:
        raise LayoutError(
            f"{what} {shown(values)} must be a sequence of whole numbers, such as the shape of an "
            "array, x.shape"
        )
    if isinstance(values, str):
        raise LayoutError(f"{what} {values!r} must be a sequence of whole numbers, such as (3, 2)")
    is_array, given = hasattr(values, "dtype"), values
    values = as_items(in_sequence(values), what, "whole numbers")
    try:
        dims = tuple(operator.index(n) for n in values)
    except TypeError:
        text = shown(given if is_array else values)
        raise LayoutError(f"{what} {text} must be a sequence of whole numbers") from None
    if any(isinstance(n, (bool, np.bool_)) for n in values) or any(n < least for n in dims):
        raise LayoutError(f"{what} {shown(values)} must hold {rule}")
    if len(dims) > MAX_RANK:
        raise LayoutError(f"{what} has rank {len(dims)}; ranks up to {MAX_RANK} are supported")
    if any(n > MAX_ELEMENTS for n in dims):
        raise LayoutError(f"{what} {shown(dims)} holds a number over 2**62")
    return dims


def in_sequence(values: Any) -> Any:
    """Return a number in a tuple, as the only one of a shape, grid or tile; others as they are.

    >>> in_sequence(8), in_sequence([3, 2])
    ((8,), [3, 2])
    """
    if isinstance(values, (tuple, list)) or not isinstance(values, SupportsIndex):
        return values
    return values if getattr(values, "ndim", 0) else (values,)


def as_index(index: Any, shape: Shape, what: str) -> Shape:
    """Return `index` as a tuple of Python ints within the bounds of `shape`.

    >>> as_index((1, 2), (2, 3), "index")
    (1, 2)
    """
    dims = as_shape(index, what)
    if len(dims) != len(shape):
        raise LayoutError(
            f"{what} {dims} has rank {len(dims)}, but the shape {shape} has rank {len(shape)}: "
            f"give {len(shape)} numbers"
        )
    if any(i >= n for i, n in zip(dims, shape, strict=True)):
        raise LayoutError(f"{what} {dims} is outside the shape {shape}")
    return dims


def as_int(value: Any, what: str) -> int:
    """Return `value` as a Python int from -2**62 to 2**62; bools are refused.

    >>> as_int(np.int8(-3), "skew")
    -3
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise LayoutError(f"{what} {shown(value)} must be a whole number") from None
    if isinstance(value, (bool, np.bool_)):
        raise LayoutError(f"{what} {shown(value)} must be a whole number, not a bool")
    if abs(number) > MAX_ELEMENTS:
        raise LayoutError(f"{what} {shown(number)} is beyond 2**62")
    return number


def as_count(value: Any, what: str, least: int = 0) -> int:
    """Return `value` as a Python int of at least `least`; otherwise raise `LayoutError`.

    >>> as_count(3, "width", least=1)
    3
    """
    number = as_int(value, what)
    if number < least:
        raise LayoutError(f"{what} {number} must be >= {least}")
    return number


def as_axis(axis: Any, rank: int, what: str) -> int:
    """Return `axis` as one of 0 ... rank - 1; a negative axis counts from the end.

    >>> as_axis(-1, 3, "dims")
    2
    """
    number = as_int(axis, "axis")
    if not -rank <= number < rank:
        raise LayoutError(f"axis {number} is outside the {rank} {what}")
    return number % rank


def as_flag(value: Any, what: str) -> bool:
    """Return `value` as a bool; only True and False, of Python or NumPy, are accepted.

    >>> as_flag(np.True_, "wrap")
    True
    """
    if not isinstance(value, (bool, np.bool_)):
        raise LayoutError(f"{what} {shown(value)} must be True or False")
    return bool(value)


def as_items(values: Any, what: str, of: str) -> tuple[Any, ...]:
    """Return `values` as a tuple. `of` names the items in it.

    Raises `LayoutError` if `values` is not iterable, and for sets and dicts.

    >>> as_items([1, 2], "steps", "steps")
    (1, 2)
    """
    if isinstance(values, (set, frozenset, Mapping)):
        kind = "dict" if isinstance(values, Mapping) else "set"
        raise LayoutError(
            f"{what} {shown(values)} is a {kind}, but the order of the {of} counts: give a "
            "sequence, such as a tuple"
        )
    try:
        return tuple(values)
    except TypeError:
        raise LayoutError(f"{what} {shown(values)} must be a sequence of {of}") from None


def in_short(value: Any) -> str:
    """Return the type and the value of an argument, for errors; a long value is cut.

    >>> in_short([1, 2])
    'list [1, 2]'
    """
    text = " ".join(shown(value).split())
    kind = type(value).__name__
    return f"{kind} {text}" if len(text) <= 60 else f"{kind} {text[:57]}..."


def check_progress(progress: Any, arguments: str) -> None:
    """Raise `LayoutError` unless `progress` is None or callable; `arguments` names what it takes.

    >>> check_progress(print, "a number of bytes")
    """
    if progress is not None and not callable(progress):
        raise LayoutError(f"progress {shown(progress)} must be a function of {arguments}")


def one_of(word: Any, known: Collection[str], what: str) -> str:
    """Return `word` if it is one of `known`; otherwise raise a `LayoutError` that lists them.

    >>> one_of("l1", ("dram", "l1"), "memory_space")
    'l1'
    """
    if not isinstance(word, str) or word not in known:
        raise LayoutError(f"{what} {shown(word)} is not one of {', '.join(known)}")
    return word


def check_size(shape: Shape, physical: Shape) -> None:
    """Raise `LayoutError` if a logical or physical shape has too many dims or elements.

    >>> check_size((2, 3), (2, 4))
    """
    if len(physical) > MAX_RANK:
        raise LayoutError(f"physical rank {len(physical)} of {physical} is over {MAX_RANK}")
    for what, dims in (("shape", shape), ("physical shape", physical)):
        if prod(dims) > MAX_ELEMENTS:
            raise LayoutError(f"{what} {dims} has more than 2**62 elements")
