"""`checked`: values of JSON as those of a type, such as a dataclass that was written as a dict."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import isfinite
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def checked(kind: type[T], value: Any) -> T:
    """Return a value of JSON as one of a type. ValueError, KeyError or TypeError for any other.

    kind: str, bool, int, float; tuples, dicts, frozensets and dataclasses of these, or one of them
    `| None`; or a class with a method `of_record`. Numbers must be 0 or more.

    >>> checked(dict[str, tuple[int, ...]], {"x": [1, 2]})
    {'x': (1, 2)}
    >>> checked(float, -1)
    Traceback (most recent call last):
    ValueError: -1 must be a finite number, 0 or more
    """
    found: T = _checked(kind, value)
    return found


def _checked(kind: Any, value: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        is_valid, what = _PLAIN[kind]
        if (isinstance(value, bool) and kind is not bool) or not is_valid(value):
            raise ValueError(f"{value!r} must be {what}")
        return kind(value)
    if origin in (Union, UnionType):
        return None if value is None else _checked(inner[0], value)
    if origin is dict:
        return {_checked(inner[0], k): _checked(inner[1], each) for k, each in value.items()}
    if origin is frozenset:
        return frozenset(_checked(inner[0], each) for each in value)
    if origin is tuple:
        kinds = inner[:1] * len(value) if inner[1:] == (...,) else inner
        return tuple(_checked(own, each) for own, each in zip(kinds, value, strict=True))
    if hasattr(kind, "of_record"):
        return kind.of_record(value)
    fields = _fields(kind)
    given = value if isinstance(value, dict) else dict(zip(fields, value, strict=True))
    known = fields.keys() & given.keys()
    return kind(**{name: _checked(fields[name], given[name]) for name in known})


_fields = cache(get_type_hints)

_PLAIN: dict[Any, tuple[Callable[[Any], bool], str]] = {
    str: (lambda value: isinstance(value, str), "a text"),
    bool: (lambda value: isinstance(value, bool), "true or false"),
    int: (lambda value: isinstance(value, int) and value >= 0, "a whole number, 0 or more"),
    float: (
        lambda value: isinstance(value, (int, float)) and isfinite(value) and value >= 0,
        "a finite number, 0 or more",
    ),
}
