"""`next_value_layouts`: the layouts of results that are the next values of a program's operands.

A training step returns parameters and moments in the layouts in which it takes them, so that the
next step is the same program. Values that are added to them are relaid out to their layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from jax.extend import core

from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.jaxprs import CALLS, called
from gridlayout.ops.primitives.table import record_of

_Makers = dict[Any, Mapping[Any, Any]]  # for each jaxpr: the equation that defines each value


def next_value_layouts(
    jaxpr: Any, operands: Sequence[Layout | None], nexts: Mapping[int, int]
) -> list[Layout | None]:
    """Return for each result the layout of the operand that it is the next value of, or None.

    operands: the layouts of the jaxpr's operands. nexts: results and the operands that they are the
    next values of, by number, as far as the program's structure states it. Any other result is the
    next value of an operand of its shape and dtype from which elementwise operations make it. If
    there are several such operands in different layouts, it is the one that no other result is made
    from, or the only one left when the other operands have their next values; for instance the
    parameter, when the moments have theirs. A result that depends on a `with_layout` is the next
    value of none.
    """
    laid_out = {
        var: layout
        for var, layout in zip(jaxpr.invars, operands, strict=True)
        if layout is not None
    }
    makers: _Makers = {}
    sources: list[list[Any]] = []
    for number, atom in enumerate(jaxpr.outvars):
        reached = _reached(jaxpr, atom, makers)
        if reached is None:
            reached = []
        elif number in nexts:
            reached = [jaxpr.invars[nexts[number]]]
        sources.append([var for var in reached if var in laid_out and _kind(var) == _kind(atom)])
    found: list[Layout | None] = []
    for own, some in zip(_nexts(sources), sources, strict=True):
        layouts = {laid_out[var].with_oob(None): laid_out[var] for var in reversed(some)}
        if own is not None:
            found.append(laid_out[own])
        else:
            found.append(next(iter(layouts.values())) if len(layouts) == 1 else None)
    return found


def _nexts(sources: Sequence[Sequence[Any]]) -> list[Any]:
    """Return for each result its only remaining operand, or the only one that no other result has.

    None where there are several such operands, or none.

    >>> _nexts([["p", "m", "v"], ["m"], ["v"]]), _nexts([["p", "g"], ["g", "m", "n"], ["g"]])
    (['p', 'm', 'v'], ['p', None, 'g'])
    >>> _nexts([["a", "b"], ["a", "b"]])
    [None, None]
    """
    found: list[Any] = [None] * len(sources)
    left = [dict.fromkeys(some) for some in sources]
    results: dict[Any, set[int]] = {}  # of each operand that is left
    for k, some in enumerate(left):
        for var in some:
            results.setdefault(var, set()).add(k)
    waiting = list(range(len(sources)))  # a heap: the first result is decided first
    while waiting:
        k = heappop(waiting)
        own = [var for var in left[k] if len(left[k]) == 1 or len(results[var]) == 1]
        if len(own) != 1:
            continue
        (found[k],) = own
        changed = results.pop(found[k]) - {k}
        for j in changed:
            del left[j][found[k]]
        for var in left[k].keys() & results.keys():
            results[var].remove(k)
            changed |= results[var] if len(results[var]) == 1 else set()
        left[k] = {}
        for j in changed:
            heappush(waiting, j)
    return found


def _kind(atom: Any) -> tuple[Any, Any]:
    return atom.aval.shape, atom.aval.dtype


def _reached(jaxpr: Any, result: Any, makers: _Makers) -> list[Any] | None:
    """Return the operands of the result's shape that it is made of by elementwise operations.

    They are in order. None where a `with_layout` is among these operations.
    """
    if jaxpr not in makers:
        makers[jaxpr] = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
    seen: dict[Any, None] = {}
    left = [result]
    while left:
        atom = left.pop()
        if isinstance(atom, core.Literal) or atom in seen or atom.aval.shape != result.aval.shape:
            continue
        seen[atom] = None
        eqn = makers[jaxpr].get(atom)
        if eqn is None:
            continue
        name = eqn.primitive.name
        if name == "with_layout":
            return None
        if name in CALLS:
            inner = called(eqn).jaxpr
            own = dict(zip(inner.invars, eqn.invars, strict=True))
            reached = _reached(inner, inner.outvars[eqn.outvars.index(atom)], makers)
            if reached is None:
                return None
            # The others are constants of the called function.
            left += [own[var] for var in reversed(reached) if var in own]
        elif record_of(name).is_elementwise:
            left += reversed(eqn.invars)
    return [atom for atom in seen if atom not in makers[jaxpr]]
