"""`Key`: values that are compared as one, with a hash that is computed once.

No choice depends on a cache, because each process of a mesh plans for itself: what is planned,
lowered and compiled follows from the arguments of a call, the mesh, the machine and JAX's options.
So nothing compares objects that may come from a cache by identity. Moves, the functions of steps
and programs have a `Key` of all that they are made from: equal moves of a value run once, and equal
steps are lowered once. `tests/test_same_program.py` and the claim `plans` of `make prove` check it.
"""

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
