"""The leaves of a call's arguments and results that are not arrays: static, and not changed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import jax
import numpy as np

from gridlayout.arguments import as_int, as_items, one_of, shown
from gridlayout.errors import LayoutError
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.interpret.names import result_names
from gridlayout.public import BY_PLACE

_CONTAINERS = (tuple, list, dict, type(None))


def is_array(x: Any) -> bool:
    """Whether an argument's leaf is an array or a number, and so not static.

    Python's bools are static: models decide with `if` on them, such as Equinox's `inference`.
    """
    if isinstance(x, (GridArray, jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)):
        return True
    return isinstance(x, (int, float, complex)) and not isinstance(x, bool)


class StaticLeaf(NamedTuple):
    """A static leaf of a call's arguments, with its number among all leaves.

    `LayoutError` where two of one type are compared and `==` does not give True or False.
    """

    number: int
    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StaticLeaf) or self.number != other.number:
            return False
        a, b = self.value, other.value
        if a is b or type(a) is not type(b):
            return a is b
        try:
            return bool(a == b)
        except (TypeError, ValueError) as error:
            raise LayoutError(
                f"{a!r} is no array, so it is static, and == of two {type(a).__name__}s must give "
                f"True or False, as the cache of programs requires: {error}. Define __eq__ so, or "
                "register the class as a pytree, whose arrays are operands"
            ) from error

    def __hash__(self) -> int:
        return hash((self.number, self.value))


class Static:
    """The value of an argument that is static: one leaf, whatever it is; 1 differs from True."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return shown(self.value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static) or type(self.value) is not type(other.value):
            return False
        return bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)


def bare(argument: Any) -> Any:
    """Return the argument that the function takes."""
    return argument.value if isinstance(argument, Static) else argument


NUMBERS, NAMES = "static_argnums", "static_argnames"


class StaticArguments(NamedTuple):
    """The arguments of a function that are static as a whole, by place and by name."""

    numbers: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, fn: Callable[..., Any], numbers: Any, names: Any) -> StaticArguments:
        """Return those that the `static_argnums` and `static_argnames` of `jax.jit` state.

        An argument that either of them names is static in both ways that it can be given.

        >>> StaticArguments.of(lambda x, n, axis: x, None, ("axis", "n")).numbers
        frozenset({1, 2})
        """
        if numbers is None and names is None:
            return cls()
        try:
            takes = list(inspect.signature(fn).parameters.values())
        except (TypeError, ValueError):
            raise LayoutError(f"{NUMBERS} and {NAMES}: {shown(fn)} has no signature") from None
        kinds, places = [each.kind for each in takes], [x.name for x in takes if x.kind in BY_PLACE]
        words = (names,) if isinstance(names, str) else _items(names, NAMES, "names")
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            for word in words:
                one_of(word, [each.name for each in takes], NAMES)
        if not all(isinstance(word, str) for word in words):
            raise LayoutError(f"{NAMES} {shown(names)} must be names of arguments")
        given = (numbers,) if isinstance(numbers, int) else _items(numbers, NUMBERS, "ints")
        found = {n + len(places) if n < 0 else n for n in (as_int(n, NUMBERS) for n in given)}
        most = len(places) if inspect.Parameter.VAR_POSITIONAL not in kinds else inf
        if any(not 0 <= n < most for n in found):
            raise LayoutError(f"{NUMBERS} {shown(numbers)}: it takes {len(places)} by position")
        found |= {k for k, name in enumerate(places) if name in words}
        also = {places[n] for n in found if n < len(places)}
        return cls(frozenset(found), frozenset(words) | also)

    def held(self, args: tuple[Any, ...], kwargs: dict[str, Any], first: int = 0) -> Any:
        """Return arguments of which those that are static are one leaf each.

        first: the number of arguments in front, which the user does not give.
        """
        if not self.numbers and not self.names:
            return args, kwargs
        args = as_items(args, "arguments", "arguments")
        places = (k - first in self.numbers for k in range(len(args)))
        placed = tuple(Static(bare(x)) if k else x for k, x in zip(places, args, strict=True))
        return placed, {k: Static(bare(x)) if k in self.names else x for k, x in kwargs.items()}


def _items(values: Any, what: str, of: str) -> tuple[Any, ...]:
    return () if values is None else as_items(values, what, of)


def check_static(x: Any, name: Callable[[], str]) -> None:
    """Raise `LayoutError` for an argument's static leaf that can't be hashed.

    name: returns the leaf's path.
    """
    try:
        hash(x)
    except TypeError:
        why = "stated to be" if isinstance(x, Static) else "no array, so it is"
        raise LayoutError(
            f"{name()}: {x!r} is {why} static, and a {type(bare(x)).__name__} can't be hashed, as "
            "the cache of programs requires: put a tuple, a frozenset, bytes or a frozen "
            "dataclass there; a whole argument can also be bound with functools.partial"
        ) from None


@dataclass(frozen=True)
class Results:
    """The tree of a call's results without its arrays.

    structure: of the whole tree. static: the leaves that are not arrays, with their numbers.
    """

    structure: Any
    static: tuple[tuple[int, Any], ...] = ()

    @classmethod
    def of(cls, tree: Any) -> tuple[Results, list[Any]]:
        """Return the tree of what a function returned, and the arrays in it.

        A Python bool in a tuple, list or dict is an array, as under `jax.jit`; in a node of another
        class, such as a model, it is static, so that the model can be an argument again.

        >>> results, arrays = Results.of({"a": 1.0, "b": "text", "c": None})
        >>> arrays, results.unflatten([2.0])
        ([1.0], {'a': 2.0, 'b': 'text', 'c': None})
        """
        leaves, structure = jax.tree.flatten(tree)
        flags = _flags(tree)
        static = tuple(
            (k, x) for k, x in enumerate(leaves) if k in flags or not _counts_as_array(x)
        )
        gone = {k for k, _ in static}
        return cls(structure, static), [x for k, x in enumerate(leaves) if k not in gone]

    def unflatten(self, arrays: Iterable[Any]) -> Any:
        """Return the tree with these arrays and the static leaves."""
        if not self.static:
            return self.structure.unflatten(arrays)
        return self._with(arrays, self.static)

    def arrays_alone(self, arrays: Iterable[Any]) -> Any:
        """Return the tree with these arrays, and None in place of each static leaf."""
        return self._with(arrays, [(k, None) for k, _ in self.static])

    @property
    def names(self) -> list[str]:
        """The names of the arrays.

        >>> Results.of({"a": 1.0, "b": "text", "c": 2.0})[0].names
        ["result['a']", "result['c']"]
        """
        count = self.structure.num_leaves - len(self.static)
        return result_names(jax.tree.structure(self.arrays_alone(range(count))))

    def _with(self, arrays: Iterable[Any], others: Iterable[tuple[int, Any]]) -> Any:
        leaves = list(arrays)
        for k, x in others:
            leaves.insert(k, x)
        return self.structure.unflatten(leaves)


def _flags(tree: Any) -> set[int]:
    """Return the numbers of the leaves that are Python's bools in nodes of users' classes."""
    found: set[int] = set()
    first = 0
    for node in jax.tree.leaves(tree, is_leaf=lambda x: not isinstance(x, _CONTAINERS)):
        leaves = jax.tree.leaves(node)
        if not jax.tree_util.all_leaves([node]):
            found.update(first + k for k, x in enumerate(leaves) if isinstance(x, bool))
        first += len(leaves)
    return found


def _counts_as_array(x: Any) -> bool:
    """Whether a leaf counts as an array: JAX accepts it, or rejects it with an error of its own."""
    if isinstance(x, (str, bytes)):  # NumPy's str_ and bytes_ too
        return False
    if isinstance(x, (np.ndarray, np.generic, jax.ShapeDtypeStruct)):
        return True
    try:
        jax.typeof(x)
    except TypeError:
        return False
    except (OverflowError, ValueError):
        return True
    return True
