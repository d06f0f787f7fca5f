"""`Value`: a value in a decision. It has a spec and no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.dtypes import Scalar
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.specs import Deferred, Spec, fact, layout_of


@dataclass(frozen=True, eq=False)
class Value:
    """A value in a decision. at: the register that holds its array, or the constant itself."""

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
        """The value's layout, or that of its source; None if no core holds it."""
        return layout_of(self.spec)

    @property
    def own_layout(self) -> Layout | None:
        """The value's layout; None if it is replicated, or broadcast from a laid-out source."""
        is_broadcast = isinstance(self.spec, Deferred) and not self.spec.is_unbroadcast
        return None if is_broadcast else self.layout

    @property
    def fact(self) -> Scalar | None:
        """The known value of its padding, or of a known number itself; else None."""
        return fact(self.spec)

    def with_spec(self, spec: Spec) -> Value:
        """Return a value of the same array that represents another logical array, by `spec`."""
        return Value(spec, self.at)
