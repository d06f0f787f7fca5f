"""Arrays that change in place, those of `jax.new_ref`: jaxprs that make values instead of them.

JAX does this itself: a write becomes an equation that makes a new value, and loops carry it.
`pallas.run_state` is the public function that runs a program so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core

from gridlayout.ops.decisions.jaxprs import ClosedJaxpr, equations, equations_of, jaxpr_of
from gridlayout.ops.decisions.op import Aval

_MAKERS = ("new_ref", "empty_ref")


def without_references(closed: Any) -> Any:
    """Return a closed jaxpr of the same function in which no array changes in place.

    `LayoutError` if the function is given such an array, by argument or by closure.
    """
    makes = (e.primitive.name in _MAKERS for q in equations_of(closed) for e in equations(q))
    if not closed.effects or not any(makes):
        return closed
    for var in (*closed.jaxpr.constvars, *closed.jaxpr.invars):
        Aval.of(var.aval)
    run = jax.make_jaxpr(lambda *xs: _with_state(closed, xs))(*closed.in_avals)
    state = equations_of(run)[-1]
    avals = [atom.aval for atom in state.invars]
    found = jax.make_jaxpr(lambda *xs: state.primitive.impl(*xs, **state.params))(*avals)
    own = dict(zip(map(id, state.invars), found.jaxpr.invars, strict=True))
    outer, inner = run.jaxpr, found.jaxpr
    eqns, outs = _folded(equations_of(found), inner.outvars[-len(closed.out_avals) :])
    made = core.Jaxpr(
        [*inner.constvars, *(own.get(id(var), var) for var in outer.constvars)],
        [own.get(id(var), var) for var in outer.invars],
        outs,
        eqns,
        inner.effects,
        closed.jaxpr.debug_info,
    )
    return ClosedJaxpr(made, [*found.consts, *run.consts])


def _with_state(closed: Any, xs: Sequence[Any]) -> Any:
    """Run a function by JAX's `run_state`, which discharges references; return its results."""
    from jax.experimental import pallas

    def store(refs: Sequence[Any]) -> None:
        for ref, x in zip(refs, core.jaxpr_as_fun(closed)(*xs), strict=True):
            ref[...] = x

    blank = [jax.lax.empty(aval.shape, aval.dtype) for aval in closed.out_avals]
    return pallas.run_state(store)(blank)


def _folded(eqns: Sequence[Any], outs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the equations that results need, and the results; numbers of literals are literals.

    Indices of reads and writes pass through such equations, and slices at known places are cheaper.
    """
    known: dict[Any, Any] = {}

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, core.Literal) else known.get(atom, atom)

    kept = []
    for eqn in eqns:
        new = eqn.replace(invars=[read(atom) for atom in eqn.invars])
        literals = [atom for atom in new.invars if isinstance(atom, core.Literal)]
        is_known = 0 < len(literals) == len(new.invars) and not new.effects
        if is_known and all(var.aval.shape == () for var in new.outvars):
            with jax.ensure_compile_time_eval():
                values = core.jaxpr_as_fun(jaxpr_of((), [new], new.outvars, new))()
            for var, value in zip(new.outvars, values, strict=True):
                known[var] = core.Literal(np.asarray(value)[()], var.aval)
        else:
            kept.append(new)
    outs = [read(atom) for atom in outs]
    needed, live = set(map(id, outs)), []
    for eqn in reversed(kept):
        if eqn.effects or needed.intersection(map(id, eqn.outvars)):
            needed.update(map(id, eqn.invars))
            live.append(eqn)
    return live[::-1], outs
