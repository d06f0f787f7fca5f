"""Functions that compute the same are planned and traced once: of a new one, an earlier's program.

As where a cell of a notebook runs again, a test makes its function anew, or one loss is
differentiated in several places. Two jaxprs are the same if they differ in the names of their
variables alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from jax.extend import core

from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.jaxprs import CALLS, READ_OF_CALLS
from gridlayout.ops.decisions.op import bits_of
from gridlayout.ops.decisions.specs import Spec
from gridlayout.ops.interpret.planner import planned
from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.running import constant_key
from gridlayout.ops.rules.table import rules_version

_MOST = 64  # programs that are remembered
Run = Callable[..., list[Any]]


def program_of(
    env: Env, closed: Any, operands: Sequence[Spec], wanted: Sequence[Spec | None]
) -> tuple[Program, Run]:
    """What is planned for a jaxpr on such operands, and its `run`, jitted.

    wanted: specs that the first results are to have, None for what they come in.
    """
    call = _Call(env, closed, tuple(operands), tuple(wanted))
    make = _made if call.key is None else _remembered
    program, run = make(call)
    return program, run or jax.jit(program.run)


class _Call:
    """A jaxpr on operands, equal to others that do the same; key: None where that is unknown."""

    def __init__(
        self, env: Env, closed: Any, operands: tuple[Spec, ...], wanted: tuple[Spec | None, ...]
    ) -> None:
        self.plan: Callable[[], Program] | None = partial(planned, env, closed, operands, wanted)
        self.key: Hashable | None = None
        self._hash = 0
        if closed.effects:
            return
        with suppress(_Unknown):
            key = env, operands, wanted, rules_version(), _key(closed)
            try:
                self._hash = hash(key)
            except TypeError:  # a parameter that can't be hashed
                return
            self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash


def _made(call: _Call) -> tuple[Program, Run | None]:
    # What a user's function does on whole storages may be another thing each time it is traced.
    plan, call.plan = call.plan, None  # which holds the function's closures
    assert plan is not None
    program = plan()
    return program, jax.jit(program.run) if program.is_local else None


_remembered = lru_cache(maxsize=_MOST)(_made)


class _Unknown(Exception):
    """A jaxpr that holds arrays, or calls the host."""


def _key(closed: Any) -> Hashable:
    """What is equal in jaxprs that say the same."""
    jaxpr = getattr(closed, "jaxpr", closed)
    if getattr(closed, "consts", ()):
        raise _Unknown
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    names = {var: k for k, var in enumerate(inputs)}

    def read(atom: Any) -> Hashable:
        if not isinstance(atom, core.Literal):
            return names[atom]
        aval: Any = atom.aval
        value = np.asarray(atom.val)
        if value.ndim:
            raise _Unknown
        return constant_key(value), aval.dtype, getattr(aval, "weak_type", False)

    found: list[Hashable] = [tuple(var.aval for var in inputs)]
    for eqn in jaxpr.eqns:
        params = eqn.params
        if "callback" in params:  # of the host: another one each time, which is not to be held
            raise _Unknown
        if (called := CALLS.get(eqn.primitive.name)) is not None:
            params = {name: params.get(name) for name in (called, *READ_OF_CALLS)}
        values = tuple(bits_of(value, _key) for value in params.values())
        reads = tuple(map(read, eqn.invars))
        found.append((eqn.primitive, tuple(params), values, reads))
        found.append((eqn.source_info.name_stack, eqn.ctx))
        for var in eqn.outvars:
            names[var] = len(names)
    return tuple(found), tuple(map(read, jaxpr.outvars))
