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

from gridlayout.caching import Kept
from gridlayout.key import Key
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.jaxprs import closed_of
from gridlayout.ops.decisions.op import bits_of
from gridlayout.ops.decisions.specs import Spec
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.graph.node import Atom
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
    given = env, Graph.of(closed), tuple(operands), tuple(result_specs)
    if (key := _key_of(*given)) is None:
        return Planned(planned(*given))
    if (found := _known.get(key)) is None:
        if (found := _alive.get(key)) is None:
            found = _alive[key] = Planned(planned(*given))
        _known.add(key, found, found.program)
    # A user's function on whole storages may do something else each time it is traced.
    return found if found.program.is_local else Planned(found.program)


def _key_of(
    env: Env, graph: Graph, operands: tuple[Spec, ...], result_specs: tuple[Spec | None, ...]
) -> Key | None:
    """Return a key that is equal for equal calls; None for a call that can't be cached."""
    if not graph.closed.effects:
        with suppress(_NoKey):
            key = env, operands, result_specs, rules_version(), _graph_key(graph)
            with suppress(TypeError):  # a parameter that can't be hashed
                return Key(*key)
    return None


class _NoKey(Exception):
    """Raised for a program without a key: one that holds arrays or calls the host."""


def _jaxpr_key(jaxpr: Any) -> Hashable:
    return _graph_key(Graph.of(closed_of(jaxpr)))


def _graph_key(graph: Graph) -> Hashable:
    """Return a key that is equal for equal graphs."""
    if graph.constants:
        raise _NoKey
    found: list[Hashable] = [tuple(graph.closed.in_avals)]
    for node in graph.nodes:
        params = node.params
        if "callback" in params:  # a new function of the host each time, which must not be held
            raise _NoKey
        values = tuple(bits_of(value, _jaxpr_key) for value in params.values())
        found.append((node.label, node.path, node.call, tuple(params), values))
        found.append((tuple(map(_atom_key, node.atoms)), node.outs))
        if node.eqn is not None:
            found.append((node.eqn.primitive, node.eqn.source_info.name_stack, node.eqn.ctx))
    return tuple(found), tuple(map(_atom_key, graph.results))


def _atom_key(atom: Atom) -> Hashable:
    if isinstance(atom, int):
        return atom
    aval: Any = atom.aval
    value = np.asarray(atom.val)
    if value.ndim:
        raise _NoKey
    return constant_key(value), aval.dtype, getattr(aval, "weak_type", False)
