"""`x.at[index].set(values)` of a `GridArray`: the updates of `jnp.ndarray.at`, on the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gridlayout.errors import LayoutError
from gridlayout.ops.user.indexing import Access, at_index
from gridlayout.public import public

# The methods of `jnp.ndarray.at[index]` that take values.
_WITH_VALUES = ("set", "add", "subtract", "mul", "multiply", "divide", "power", "min", "max")


class At:
    """The value of `x.at` for a `GridArray`; indexing it with a logical index gives `Places`."""

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> Places:
        return Places(self._x, index)

    def __repr__(self) -> str:
        return f"{self._x!r}.at"


@public
class Places:
    """Some elements of a `GridArray`, with the methods of `jnp.ndarray.at[index]`.

    `get` returns the elements, every other method a new `GridArray`; `x` is unchanged. Keywords
    (`mode`, `fill_value`, `unique_indices`, `indices_are_sorted`) are JAX's.
    """

    def __init__(self, x: Any, index: Any) -> None:
        self._x, self._index = x, index

    def __repr__(self) -> str:
        return f"{self._x!r}.at[{self._index!r}]"

    def get(self, **options: Any) -> Any:
        """Return the elements."""
        return self._call("get", options)

    def apply(self, fn: Any, **options: Any) -> Any:
        """Return the array with a function applied to the elements."""
        return self._call("apply", options, fn)

    def __getattr__(self, name: str) -> Any:
        if name not in _WITH_VALUES:
            raise AttributeError(
                f"x.at[index] has no {name!r}: it has get, apply, {', '.join(_WITH_VALUES)}"
            )

        def update(values: Any, **options: Any) -> Any:
            return self._call(name, options, values)

        update.__name__ = name
        return public(update)

    def _call(self, name: str, options: dict[str, Any], *values: Any) -> Any:
        method = _Method(name, tuple(sorted(options.items())))
        access = Access(method, updates=name != "get", overwrites=name == "set")
        return at_index(access, self._x, self._index, *values)

    def __setitem__(self, index: Any, values: Any) -> None:
        raise LayoutError(
            "x.at[index] can't be assigned to: x.at[index].set(values) returns a new array"
        )


@dataclass(frozen=True)
class _Method:
    """A method of `jnp.ndarray.at[index]` with its keywords, which are static."""

    name: str
    options: tuple[tuple[str, Any], ...]

    @property
    def __name__(self) -> str:
        return f"at.{self.name}"

    def __call__(self, x: Any, index: Any, *values: Any) -> Any:
        return getattr(x.at[index], self.name)(*values, **dict(self.options))
