"""`Value`: a value in a decision, its spec and no data."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gridlayout.dtypes import Scalar
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.specs import Sharded, Spec, fact, layout_of

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Value:
    """A value in a decision: its spec, and the register or known number that holds its array."""

    spec: Spec
    at: Any

    @property
    def shape(self) -> Shape:
        """The logical shape."""
        return self.spec.shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        """The logical rank."""
        return self.spec.ndim

    @property
    def layout(self) -> Layout | None:
        """The layout that it brings along; None for what no core holds."""
        return layout_of(self.spec)

    @property
    def is_sharded(self) -> bool:
        """Whether it is laid out as it is."""
        return isinstance(self.spec, Sharded)

    @property
    def fact(self) -> Scalar | None:
        """What is known of it outside of the logical tensor."""
        return fact(self.spec)

    def seen(self, spec: Spec) -> Value:
        """The same array, standing for another logical one."""
        return Value(spec, self.at)


def nbytes(shape: Shape, dtype: Any) -> int:
    """Bytes of an array."""
    return prod(shape) * int(np.dtype(dtype).itemsize)
