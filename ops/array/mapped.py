"""The specs of hijax for the dims that `jax.vmap` and `lax.scan` map over GridArrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
from jax.experimental import hijax

from gridlayout.layouts.layout import Layout


@dataclass(frozen=True)
class Stacked(getattr(hijax, "MappingSpec", object)):  # type: ignore[misc]
    """How `lax.scan` splits GridArrays: along the first dim of a stack of storages."""


class Along(int):
    """The logical dim that `jax.vmap` maps, with the layout of one mapped element."""

    layout: Layout

    def __new__(cls, dim: int, layout: Layout) -> Along:
        """Return the dim with the layout of one element."""
        made = super().__new__(cls, dim)
        made.layout = layout.with_oob(None)
        return made

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Along) and other.layout != self.layout:
            return False
        return int(self) == other

    __hash__ = int.__hash__


def along(dim: int, whole: Any, one: Layout) -> int:
    """Return a mapped dim: an int, if `one` has the layout that follows from it, else `Along`."""
    found = jax.typeof(whole).dec_rank(None, dim)
    return dim if found.layout == one.with_oob(None) else Along(dim, one)
