"""`Gradient`: the gradient of a call by one program, as a guess of what reverse mode asks for.

Outside of `jax.jit`, JAX runs a call before it knows the cotangents. `jax.grad` passes a cotangent
of 1 for a call that returns the loss itself. So the first pass computes the gradient for it, and
two programs with residuals between them become one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.specs import Spec
from gridlayout.ops.interpret.logical_jaxpr import logical_jaxpr
from gridlayout.ops.interpret.operands import (
    applied,
    is_inexact,
    is_nonzero,
    select,
    struct,
    without_facts,
    zeros,
)

Forward = tuple[list[Any], Any, list[bool]]


class Run(Protocol):
    """A call of another jaxpr. program: what is compiled for it."""

    program: Any

    def __call__(self, *operands: Any) -> list[Any]:
        """Run the program."""


class Call(Protocol):
    """What a `Gradient` uses of `grid_call.GridCall`."""

    env: Env
    jaxpr: Any
    specs: tuple[Spec, ...]
    results: tuple[Spec, ...]
    effects: Any

    def with_jaxpr(self, jaxpr: Any, results: Sequence[Spec | None]) -> Run:
        """Return a call of another jaxpr on the same operands."""

    def in_two_passes(self, active: tuple[bool, ...], primals: Sequence[Any]) -> Forward:
        """Return results, the second pass, and which results have tangents."""


def loss_of(call: Call, primals: Sequence[Any]) -> int | None:
    """Return the number of the result that may be a loss; None where two passes are better.

    That is the only real number among the results. A cotangent is read to compare it with 1. On
    other platforms than CPUs that would wait for the program.
    """
    if call.effects or call.env.device.platform != "cpu":
        return None
    if any(isinstance(x, jax.core.Tracer) for x in primals):
        return None
    numbers = [
        k
        for k, spec in enumerate(call.results)
        if not spec.shape and jnp.issubdtype(spec.dtype, np.floating)
    ]
    return numbers[0] if len(numbers) == 1 else None


class Gradient:
    """The results of a call and the gradient of one of them, by one program.

    loss: the number of this result. active: the operands with cotangents. For other cotangents than
    those of the loss itself, two passes are taken then. They would be faster at once if the next
    cotangents were like the last ones; but then what runs would depend on what ran before, and
    processes that do not remember the same would run different programs.
    """

    def __init__(self, call: Call, loss: int, active: tuple[bool, ...]) -> None:
        self.call, self.loss, self.active = call, loss, active
        traced = logical_jaxpr(self._traced, map(struct, call.specs), call.env.device)
        gradient = map(without_facts, select(call.specs, active))
        self.run = call.with_jaxpr(traced, [*call.results, *gradient])
        self.program = self.run.program

    def _traced(self, *given: Any) -> list[Any]:
        logical = applied(self.call.jaxpr, self.active, select(given, self.active, False))
        outs, back = jax.vjp(logical, *select(given, self.active))
        cotangents = list(map(zeros, self.call.results))
        cotangents[self.loss] = jnp.ones((), self.call.results[self.loss].dtype)
        return [*outs, *back(cotangents)]

    def forward(self, primals: Sequence[Any]) -> Forward:
        """Return the results, the second pass, and which results have tangents."""
        found, count = self.run(*primals), len(self.call.results)
        second = jax.tree_util.Partial(self, *found[count:], *primals)
        return found[:count], second, list(map(is_inexact, self.call.results))

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        """Run the second pass. given: the gradient, the primals, the cotangents."""
        counts = sum(self.active), len(self.call.specs)
        primals, cotangents = given[counts[0] : sum(counts)], given[sum(counts) :]
        if self._is_of_loss(cotangents):
            mine = iter(given)
            return tuple(next(mine) if yes else None for yes in self.active)
        found: tuple[Any, ...] = self.call.in_two_passes(self.active, primals)[1](*cotangents)
        return found

    def _is_of_loss(self, cotangents: Sequence[Any]) -> bool:
        loss = cotangents[self.loss]
        if any(is_nonzero(x) != (k == self.loss) for k, x in enumerate(cotangents)):
            return False
        return not isinstance(loss, jax.core.Tracer) and bool(np.asarray(loss) == 1)
