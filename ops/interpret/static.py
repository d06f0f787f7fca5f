"""What is no array among a call's arguments and results: static, and handed on as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.interpret.names import result_names


def is_array(x: Any) -> bool:
    """Whether an argument's leaf is an array or a number, which programs are not made for."""
    if isinstance(x, (GridArray, jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)):
        return True
    return isinstance(x, (bool, int, float, complex))


def check_static(x: Any) -> None:
    """`LayoutError` for an argument's leaf that is no array and can't be hashed."""
    try:
        hash(x)
    except TypeError:
        raise LayoutError(
            f"the argument {x!r} is no array, so it is static, and a {type(x).__name__} can't be "
            "hashed, which programs are remembered by: let the function close over it "
            "(functools.partial), or give a tuple or a frozen dataclass"
        ) from None


@dataclass(frozen=True)
class Results:
    """A tree of results without its arrays.

    structure: of the whole tree. static: the leaves that are no arrays, by their numbers.
    """

    structure: Any
    static: tuple[tuple[int, Any], ...] = ()

    @classmethod
    def of(cls, tree: Any) -> tuple[Results, list[Any]]:
        """What a function gave, and the arrays in it.

        >>> results, arrays = Results.of({"a": 1.0, "b": "text", "c": None})
        >>> arrays, results.unflatten([2.0])
        ([1.0], {'a': 2.0, 'b': 'text', 'c': None})
        """
        leaves, structure = jax.tree.flatten(tree)
        static = tuple((k, x) for k, x in enumerate(leaves) if not _is_taken(x))
        gone = {k for k, _ in static}
        return cls(structure, static), [x for k, x in enumerate(leaves) if k not in gone]

    def unflatten(self, arrays: Iterable[Any]) -> Any:
        """The tree with these arrays."""
        if not self.static:
            return self.structure.unflatten(arrays)
        return self._with(arrays, self.static)

    def arrays_alone(self, arrays: Iterable[Any]) -> Any:
        """The tree with these arrays, and None for each leaf that is none."""
        return self._with(arrays, [(k, None) for k, _ in self.static])

    @property
    def names(self) -> list[str]:
        """What the arrays are called.

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


def _is_taken(x: Any) -> bool:
    """Whether JAX takes it as a result; also what it refuses in words of its own."""
    if isinstance(x, (str, bytes)):  # those of NumPy too
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
