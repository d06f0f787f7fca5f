"""`Key`: values that are compared as one, with a hash that is computed once."""

from __future__ import annotations

from collections.abc import Hashable


class Key:
    """A tuple of values, as a key of dicts that is compared often.

    >>> Key("rows", (2, 4)) == Key("rows", (2, 4)), Key("rows") == Key("columns")
    (True, False)
    """

    __slots__ = "_hash", "values"

    def __init__(self, *values: Hashable) -> None:
        self.values = values
        self._hash = hash(values)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Key) and (self._hash, self.values) == (other._hash, other.values)
