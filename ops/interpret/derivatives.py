"""Programs with derivatives: those of the logical function, on the grid.

The derivative is taken of the jaxpr on logical shapes and planned by the same rules: padding takes
no part in it, custom derivative rules hold, and it may be taken again. It is reverse-mode; forward
mode goes inside the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.jaxprs import ClosedJaxpr
from gridlayout.ops.decisions.specs import Replicated, Sharded, Spec
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.interpret.planner import Planner
from gridlayout.ops.programs.program import Program

Pair = tuple[Spec, Any]  # a value at run time: its spec, and the storage or the whole array


def planned(
    env: Env, closed: Any, operands: Sequence[Spec], wanted: Sequence[Spec | None] = ()
) -> Program:
    """The program of a whole call: arrays among its operands and results are laid out."""
    planner = Planner(env, operands)
    entered = [planner.moved(_entered, value) for value in planner.operands]
    outs = planner.closed(closed, entered)
    return planner.program([planner.moved(_left, out) for out in outs], wanted)


def _entered(b: Builder, x: Value) -> Value:
    """An operand as the rules take it: arrays laid out, single numbers on every device."""
    return b.replicated(x) if x.ndim == 0 else _left(b, x)


def _left(b: Builder, x: Value) -> Value:
    """A result as the caller gets it: every array laid out where its cores are."""
    spec = x.spec
    if spec.ndim == 0 or (isinstance(spec, Replicated) and spec.is_key):
        return b.replicated(x)
    return b.on_cores(x)


def with_constants_as_operands(closed: Any) -> tuple[Any, list[Any]]:
    """The jaxpr with its constants as its first operands, and these constants.

    They may be tracers of an outer differentiation.
    """
    outer = closed.jaxpr
    operands = [*outer.constvars, *outer.invars]
    names = ("x",) * len(operands), ("",) * len(outer.outvars)
    info = core.DebugInfo("gridlayout", "program", *names)
    jaxpr = core.Jaxpr((), operands, outer.outvars, outer.eqns, outer.effects, info)
    return ClosedJaxpr(jaxpr, ()), list(closed.consts)


def differentiable(
    env: Env, closed: Any, pairs: Sequence[Pair], wanted: Sequence[Spec | None] = ()
) -> list[Pair]:
    """What a closed jaxpr makes of values, with the derivative of the logical function."""
    jaxpr, consts = with_constants_as_operands(closed)
    pairs = [*(pair_of(const) for const in consts), *pairs]
    specs, arrays = [spec for spec, _ in pairs], [array for _, array in pairs]
    program = planned(env, jaxpr, specs, wanted)
    passes = _Passes(env, jaxpr, specs, list(program.results))

    def under_mesh(step: Callable[..., Any]) -> Callable[..., Any]:
        # JAX runs these later, perhaps where the user has set another mesh.
        def run(*args: Any) -> Any:
            with env.device.active():
                return step(*args)

        return run

    @jax.custom_vjp
    def call(*arrays: Any) -> list[Any]:
        return program.run(arrays)

    call.defvjp(under_mesh(passes.forward), under_mesh(passes.backward))
    arrays = [_as_array(spec, array) for spec, array in zip(specs, arrays, strict=True)]
    return list(zip(program.results, call(*arrays), strict=True))


class _Passes:
    """The forward and the backward pass of one jaxpr: both of the logical function, on the grid."""

    def __init__(self, env: Env, jaxpr: Any, specs: Sequence[Spec], outs: Sequence[Spec]) -> None:
        self.env, self.jaxpr, self.specs, self.outs = env, jaxpr, specs, outs
        self.inexact = [bool(jnp.issubdtype(spec.dtype, jnp.inexact)) for spec in specs]
        # What is static about the backward pass: found when the forward pass is traced.
        self.pull: Any = None
        self.leaves: list[Spec] = []

    def forward(self, *arrays: Any) -> Any:
        """The results, and what the backward pass needs of them."""
        traced = jax.make_jaxpr(self._vjp)(*map(_struct, self.specs))
        pairs = list(zip(self.specs, arrays, strict=True))
        found = differentiable(self.env, traced, pairs, self.outs)
        count = len(self.outs)
        self.leaves = [spec for spec, _ in found[count:]]
        saved = ([array for _, array in found[count:]], arrays)
        return [array for _, array in found[:count]], saved

    def _vjp(self, *given: Any) -> Any:
        """The logical results, and the leaves of the function that pulls cotangents back."""

        def logical(*x: Any) -> list[Any]:
            mine = iter(x)
            merged = [next(mine) if yes else a for a, yes in zip(given, self.inexact, strict=True)]
            return list(core.jaxpr_as_fun(self.jaxpr)(*merged))

        x = [a for a, yes in zip(given, self.inexact, strict=True) if yes]
        made, pull = jax.vjp(logical, *x)
        leaves, self.pull = jax.tree.flatten(pull)
        return [*made, *leaves]

    def backward(self, saved: Any, cotangents: Any) -> Any:
        """The cotangents of the operands; None for those that have none."""
        leaves = list(zip(self.leaves, saved[0], strict=True))
        # An integer result has a cotangent of type float0, which is no array.
        real = [c.dtype != jax.dtypes.float0 for c in cotangents]
        given = [
            (_unknown(spec), c)
            for spec, c, yes in zip(self.outs, cotangents, real, strict=True)
            if yes
        ]

        def pull(*arrays: Any) -> Any:
            mine = iter(arrays[len(leaves) :])
            full = [
                next(mine) if yes else np.zeros(spec.shape, jax.dtypes.float0)
                for spec, yes in zip(self.outs, real, strict=True)
            ]
            return list(jax.tree.unflatten(self.pull, arrays[: len(leaves)])(full))

        operands = [*leaves, *given]
        traced = jax.make_jaxpr(pull)(*(_struct(spec) for spec, _ in operands))
        like = [_unknown(spec) for spec, yes in zip(self.specs, self.inexact, strict=True) if yes]
        found = iter(differentiable(self.env, traced, operands, like))
        return tuple(next(found)[1] if yes else None for yes in self.inexact)


def pair_of(value: Any) -> Pair:
    """A plain array at run time: every device has it."""
    value = value if hasattr(value, "dtype") else jnp.asarray(value)
    weak = bool(getattr(value, "weak_type", False))
    return Replicated(tuple(value.shape), value.dtype, weak), value


def _as_array(spec: Spec, array: Any) -> Any:
    return array if isinstance(array, jax.Array) else lax.convert_element_type(array, spec.dtype)


def _struct(spec: Spec) -> Any:
    weak = isinstance(spec, Replicated) and spec.weak_type
    return jax.ShapeDtypeStruct(spec.shape, spec.dtype, weak_type=weak)


def _unknown(spec: Spec) -> Spec:
    """A cotangent's: laid out like its primal, but nothing is known of its padding."""
    return spec.with_oob(None) if isinstance(spec, Sharded) else spec
