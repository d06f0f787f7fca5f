"""A cache of programs by jaxpr, so that functions that compute the same are planned only once.

Equal jaxprs come up if a notebook cell runs again, if a test defines its function again, or if a
loss is differentiated in several places. Two jaxprs are equal if they differ only in the names of
their variables.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.extend import core

from gridlayout.caching import Kept
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.jaxprs import CALLS, READ_OF_CALLS
from gridlayout.ops.decisions.op import bits_of
from gridlayout.ops.decisions.specs import Spec
from gridlayout.ops.interpret.planner import planned
from gridlayout.ops.moves.jitted import arm
from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.running import constant_key
from gridlayout.ops.rules.table import rules_version

Run = Callable[..., list[Any]]
_known: Kept[_Call, tuple[Program, Run | None]] = Kept()


def program_of(
    env: Env, closed: Any, operands: Sequence[Spec], result_specs: Sequence[Spec | None]
) -> tuple[Program, Run]:
    """Return the program of a jaxpr on operands of these specs, and its jitted `run`.

    result_specs: the specs to return the first results in; None leaves the choice to the planner.
    """
    arm()
    call = _Call(env, closed, tuple(operands), tuple(result_specs))
    if (found := None if call.key is None else _known.get(call)) is None:
        found = program, _ = _plan(call)
        if call.key is not None:
            _known.add(call, found, program)
    program, run = found
    return program, run or jax.jit(program.run)


class _Call:
    """A jaxpr on operands, as a cache key. key: None if the call can't be cached."""

    def __init__(
        self,
        env: Env,
        closed: Any,
        operands: tuple[Spec, ...],
        result_specs: tuple[Spec | None, ...],
    ) -> None:
        self.plan: Callable[[], Program] | None = partial(
            planned, env, closed, operands, result_specs
        )
        self.key: Hashable | None = None
        self._hash = 0
        if closed.effects:
            return
        with suppress(_NoKey):
            key = env, operands, result_specs, rules_version(), _jaxpr_key(closed)
            try:
                self._hash = hash(key)
            except TypeError:  # a parameter that can't be hashed
                return
            self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash


def _plan(call: _Call) -> tuple[Program, Run | None]:
    # A user's function on whole storages may do something else each time it is traced: no `run`.
    plan, call.plan = call.plan, None  # the cache must not hold the function's closures
    assert plan is not None
    program = plan()
    return program, jax.jit(program.run) if program.is_local else None


class _NoKey(Exception):
    """Raised for a jaxpr without a key: one that holds arrays or calls the host."""


def _jaxpr_key(closed: Any) -> Hashable:
    """Return a key that is equal for equal jaxprs."""
    jaxpr = getattr(closed, "jaxpr", closed)
    if getattr(closed, "consts", ()):
        raise _NoKey
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    names = {var: k for k, var in enumerate(inputs)}

    def read(atom: Any) -> Hashable:
        if not isinstance(atom, core.Literal):
            return names[atom]
        aval: Any = atom.aval
        value = np.asarray(atom.val)
        if value.ndim:
            raise _NoKey
        return constant_key(value), aval.dtype, getattr(aval, "weak_type", False)

    found: list[Hashable] = [tuple(var.aval for var in inputs)]
    for eqn in jaxpr.eqns:
        params = eqn.params
        if "callback" in params:  # a new function of the host each time, which must not be held
            raise _NoKey
        if (called := CALLS.get(eqn.primitive.name)) is not None:
            params = {name: params.get(name) for name in (called, *READ_OF_CALLS)}
        values = tuple(bits_of(value, _jaxpr_key) for value in params.values())
        reads = tuple(map(read, eqn.invars))
        found.append((eqn.primitive, tuple(params), values, reads))
        found.append((eqn.source_info.name_stack, eqn.ctx))
        for var in eqn.outvars:
            names[var] = len(names)
    return tuple(found), tuple(map(read, jaxpr.outvars))
