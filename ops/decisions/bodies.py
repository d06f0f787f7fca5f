"""`BodyPlanner`: what rules of loops and branches ask for the programs of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.decision import Inner
from gridlayout.ops.decisions.specs import Spec
from gridlayout.ops.decisions.value import Value


class BodyPlanner(Protocol):
    """A program that is being planned, on operands of given specs."""

    @property
    def operands(self) -> list[Value]:
        """The program's operands."""

    def apply(self, fn: Callable[..., Value], value: Value, *args: Any) -> Value:
        """Append the steps of `fn(builder, value, *args)`, a relayout, and return its result."""

    def evaluate(
        self,
        closed: Any,
        values: Sequence[Value],
        result_layouts: Sequence[Layout | None] = (),
        has_choices: bool = True,
    ) -> list[Value]:
        """Append a closed jaxpr applied to values, and return its results.

        result_layouts: the layouts that the caller requests of the results later, if known.
        has_choices: whether the choices of the body are for this jaxpr.
        """

    def program(self, outs: Sequence[Value], result_specs: Sequence[Spec | None] = ()) -> Inner:
        """Return the program that returns these values, in `result_specs` where not None."""


class PlanBody(Protocol):
    """The class of planners, as rules know it."""

    def __call__(self, env: Any, operands: Sequence[Spec], chosen: Any = None, /) -> BodyPlanner:
        """Start the program of a body; chosen: its choices, None to make them."""

    def graph(self, closed: Any, /) -> Any:
        """Return the graph of a closed jaxpr."""
