"""`Leaf`: one leaf of a pytree, with its path.

A path is its keys joined by slashes, as Flax and t5x write it: `params/Dense_0/kernel`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.errors import LayoutError
from gridlayout.ops.array.grid_array import GridArray

_ARRAYS = (GridArray, jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)


@dataclass(frozen=True)
class Leaf:
    """One leaf of a tree. at: its path, as `jax.tree_util` gives it."""

    at: tuple[Any, ...]
    value: Any

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The names on its path."""
        return keys_of(self.at)

    @property
    def path(self) -> str:
        """The keys joined by slashes; empty where the tree is a single leaf."""
        return "/".join(self.keys)

    @property
    def is_array(self) -> bool:
        """Whether it has a shape and a dtype, also if it only converts to a NumPy array.

        Python's numbers are no arrays: functions on the grid take them as they are.
        """
        if isinstance(self.value, _ARRAYS):
            return not isinstance(self.value, (str, bytes))  # np.str_ and np.bytes_ are both
        known = ("shape", "dtype", "__array__")
        return not isinstance(self.value, type) and all(hasattr(self.value, n) for n in known)

    @property
    def is_number(self) -> bool:
        """Whether it is a Python number."""
        return isinstance(self.value, (bool, int, float, complex)) and not self.is_array

    @property
    def is_operand(self) -> bool:
        """Whether a function on the grid traces it: an array or a number, but no Python bool."""
        return self.is_array or (self.is_number and not isinstance(self.value, bool))

    @property
    def is_key(self) -> bool:
        """Whether it holds random keys, which have no layout."""
        dtype: Any = getattr(self.value, "dtype", None)
        return isinstance(self.value, _ARRAYS) and jnp.issubdtype(dtype, jax.dtypes.prng_key)

    @property
    def has_layout(self) -> bool:
        """Whether it can have a layout: arrays of rank 1 and more, except random keys."""
        return self.is_array and len(self.shape) > 0 and not self.is_key

    @property
    def is_laid_out(self) -> bool:
        """Whether it is a `GridArray`."""
        return isinstance(self.value, GridArray)

    @property
    def shape(self) -> Shape:
        """The logical shape of an array."""
        return tuple(self.value.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type in which JAX holds it: 32 bits wide where jax_enable_x64 is off."""
        given = self.value.dtype
        if not _is_known(given):
            raise LayoutError(f"{given} is no element type of JAX; convert it to a numeric type")
        found: np.dtype[Any] = jax.dtypes.canonicalize_dtype(given)
        return found

    @contextmanager
    def named(self) -> Iterator[None]:
        """Context in which a `LayoutError` names the leaf."""
        try:
            yield
        except LayoutError as error:
            raise LayoutError(f"{self}: {error}") from error

    def __str__(self) -> str:
        name = f"leaf {self.path!r}" if self.keys else "the argument"
        if not self.is_array:
            return f"{name} ({type(self.value).__name__})"
        dtype = getattr(self.value.dtype, "name", self.value.dtype)
        return f"{name} ({dtype}[{','.join(map(str, self.value.shape))}])"


@cached
def _is_known(dtype: Any) -> bool:
    """Return whether JAX has arrays of an element type, or of its 32-bit form for a 64-bit one."""
    try:
        jax.typeof(np.empty(0, dtype))
    except TypeError:
        return False
    return True


def is_grid(x: Any) -> bool:
    """Return whether `x` is a `GridArray`, which counts as one leaf.

    >>> is_grid(3)
    False
    """
    return isinstance(x, GridArray)


def leaves_of(tree: Any) -> tuple[list[Leaf], Any]:
    """Return the leaves of a tree in order, with each `GridArray` as one leaf, and its structure.

    >>> [str(leaf) for leaf in leaves_of({"b": np.zeros(3), "a": [1, None]})[0]]
    ["leaf 'a/0' (int)", "leaf 'b' (float64[3])"]
    """
    try:
        found, structure = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_grid)
    except ValueError as error:  # keys that can't be sorted
        raise LayoutError(f"a {type(tree).__name__} that JAX can't flatten: {error}") from error
    return [Leaf(path, value) for path, value in found], structure


def keys_of(path: Any) -> tuple[str, ...]:
    """Return the names on a path of `jax.tree_util`.

    >>> keys_of((jax.tree_util.DictKey("w"), jax.tree_util.SequenceKey(0)))
    ('w', '0')
    """
    return tuple(jax.tree_util.keystr((key,), simple=True) for key in path)
