"""A cache of programs by jaxpr, so that functions that compute the same are planned only once.

Equal jaxprs come up if a notebook cell runs again, if a test defines its function again, or if a
loss is differentiated in several places. Two jaxprs are equal if they differ only in the names of
their variables.

A program that the cache drops is found while a call of it exists. So a function that calls it twice
lowers it once, whatever is planned in between.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from jax.extend import core

from gridlayout.caching import Kept
from gridlayout.key import Key
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.jaxprs import CALLS, READ_OF_CALLS
from gridlayout.ops.decisions.op import bits_of
from gridlayout.ops.decisions.specs import Spec
from gridlayout.ops.interpret.planner import planned
from gridlayout.ops.moves.jitted import arm
from gridlayout.ops.primitives.table import rules_version
from gridlayout.ops.programs.program import Program
from gridlayout.ops.programs.running import constant_key
from gridlayout.sharding.processes.programs import agreed_jit


class Planned:
    """A program, and its jitted `run`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.run: Callable[..., list[Any]] = agreed_jit(program.run, program.device)


_known: Kept[Key, Planned] = Kept()
_alive: WeakValueDictionary[Key, Planned] = WeakValueDictionary()


def planned_for(
    env: Env, closed: Any, operands: Sequence[Spec], result_specs: Sequence[Spec | None]
) -> Planned:
    """Return the program of a jaxpr on operands of these specs.

    result_specs: the specs to return the first results in; None leaves the choice to the planner.
    """
    arm()
    given = env, closed, tuple(operands), tuple(result_specs)
    if (key := _key_of(*given)) is None:
        return Planned(planned(*given))
    if (found := _known.get(key)) is None:
        if (found := _alive.get(key)) is None:
            found = _alive[key] = Planned(planned(*given))
        _known.add(key, found, found.program)
    # A user's function on whole storages may do something else each time it is traced.
    return found if found.program.is_local else Planned(found.program)


def _key_of(
    env: Env, closed: Any, operands: tuple[Spec, ...], result_specs: tuple[Spec | None, ...]
) -> Key | None:
    """Return a key that is equal for equal calls; None for a call that can't be cached."""
    if not closed.effects:
        with suppress(_NoKey):
            key = env, operands, result_specs, rules_version(), _jaxpr_key(closed)
            with suppress(TypeError):  # a parameter that can't be hashed
                return Key(*key)
    return None


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
