"""`Trees`: the structures of a function's arguments and of its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from gridlayout.ops.interpret.static import Results


@dataclass(frozen=True)
class Trees:
    """The structures of a function's arguments and of its results.

    structure: of the tuple of arguments. numbers: those of its leaves that are arrays or numbers.
    """

    structure: Any
    numbers: tuple[int, ...]
    results: Results

    def arguments_of(self, values: Sequence[Any]) -> Any:
        """Return the tree of arguments with a value for each array, and None for other leaves."""
        found = [None] * self.structure.num_leaves
        for k, value in zip(self.numbers, values, strict=True):
            found[k] = value
        return jax.tree.unflatten(self.structure, found)

    def results_of(self, values: Sequence[Any]) -> Any:
        """Return the tree of results with a value for each array, and None for other leaves."""
        return self.results.arrays_alone(values)
