"""Running steps on one device's parts; those that come again, as layers do, are traced once.

Steps do the same where they run the same function, which decisions that are remembered share. A run
of them that comes again, its values used alike, becomes one jitted function that is called each
time; XLA inlines it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import jax
import numpy as np

from gridlayout.ops.decisions.decision import Step
from gridlayout.ops.moves.lazy_view import LazyView

Scoped = tuple[Step, str]
# Shorter runs, and those that spare fewer steps, are not worth a call.
_LEAST, _SPARED = 8, 32
# Places where a run may come again that are looked at.
_PLACES = 256


def run_steps(steps: Sequence[Scoped], held: dict[int, Any]) -> None:
    """Run steps, each in its `jax.named_scope`, on the arrays held in registers."""
    for scope, some in groupby(steps, lambda pair: pair[1]):
        if scope:
            with jax.named_scope(scope):
                run_steps([(step, "") for step, _ in some], held)
            continue
        for step, _ in some:
            if step.is_lazy:
                views: list[Any] = [
                    held[k] if isinstance(k, int) else np.asarray(k) for k in step.reads
                ]
                made = step.run(*(v if isinstance(v, LazyView) else LazyView.of(v) for v in views))
            else:
                made = step.run(*(array_at(held, k) for k in step.reads))
            held.update(zip(step.writes, made, strict=True))


def array_at(held: dict[int, Any], at: Any) -> Any:
    """The array in a register, made if it is a view, or the known number."""
    if not isinstance(at, int):
        return at
    if isinstance(array := held[at], LazyView):
        array = held[at] = array.materialize()
    return array


def with_calls(steps: Sequence[Scoped], wanted: Sequence[int]) -> list[Scoped]:
    """The steps, runs that come again made calls; wanted: registers that are read after all."""
    numbers: dict[Any, int] = {}
    names = [numbers.setdefault((step.run, scope), len(numbers)) for step, scope in steps]
    if len(names) - len(numbers) < _SPARED:
        return list(steps)
    places: dict[Any, list[int]] = {}
    for n in range(len(names) - _LEAST + 1):
        places.setdefault(tuple(names[n : n + _LEAST]), []).append(n)
    readers: dict[int, list[int]] = {k: [len(steps)] for k in wanted}
    for n, (step, _) in enumerate(steps):
        for k in step.reads:
            if isinstance(k, int):
                readers.setdefault(k, []).append(n)
    found: list[Scoped] = []
    calls: dict[int, tuple[int, Step]] = {}  # by where it starts: its length, and the call
    n = 0
    while n < len(names):
        if n not in calls and len(again := places.get(tuple(names[n : n + _LEAST]), ())) > 1:
            length, starts = _longest(names, n, [at for at in again if at > n], calls)
            shape = _shape(steps[n : n + length])
            starts = [at for at in starts if _shape(steps[at : at + length]) == shape]
            if length * (len(starts) - 1) >= _SPARED:
                runs = [(at, steps[at : at + length]) for at in starts]
                for at, call in zip(starts, _calls(runs, readers), strict=True):
                    calls[at] = length, call
        length, step = calls[n] if n in calls else (1, steps[n][0])
        found.append((step, "" if n in calls else steps[n][1]))
        n += length
    return found


def _longest(
    names: Sequence[Any], n: int, later: Sequence[int], calls: dict[int, tuple[int, Step]]
) -> tuple[int, list[int]]:
    """Of runs from `n` on, the one that spares the most steps: its length, and its starts."""
    taken = {k for at, (length, _) in calls.items() for k in range(at, at + length)}
    ends = {at: _common(names, n, at, taken) for at in later[:_PLACES]}
    best = 0, [n]
    for length in {end for end in ends.values() if end >= _LEAST}:
        starts = [n]
        for at, end in ends.items():
            if end >= length and at >= starts[-1] + length:
                starts.append(at)
        best = max(best, (length, starts), key=lambda run: run[0] * (len(run[1]) - 1))
    return best


def _common(names: Sequence[Any], n: int, at: int, taken: set[int]) -> int:
    """How many steps from `n` on are those from `at` on."""
    end = 0
    while n + end < at and at + end < len(names) and names[n + end] == names[at + end]:
        if n + end in taken or at + end in taken:
            break
        end += 1
    return end


def _shape(run: Sequence[Scoped]) -> list[Any]:
    """What each step of a run reads: values by number, the first that is read being 0."""
    numbers: dict[int, int] = {}
    found: list[Any] = []
    for step, _ in run:
        for k in step.reads:
            if isinstance(k, int):
                found.append(numbers.setdefault(k, len(numbers)))
            else:
                found.append(constant_key(k))
        for k in step.writes:
            numbers[k] = len(numbers)
    return found


def constant_key(x: Any) -> Any:
    """What is equal in known numbers of the same bits; of any other constant, which one it is."""
    is_number = isinstance(x, (np.ndarray, np.generic)) and not x.ndim
    return (x.dtype, x.tobytes()) if is_number else id(x)


def _calls(
    runs: Sequence[tuple[int, Sequence[Scoped]]], readers: dict[int, list[int]]
) -> list[Step]:
    """A call for each of some runs that do the same, by where they start."""
    written, reads, needed = [], [], set()
    for at, run in runs:
        made = [k for step, _ in run for k in step.writes]
        inside = range(at, at + len(run))
        needed |= {
            i for i, k in enumerate(made) if any(n not in inside for n in readers.get(k, ()))
        }
        outer = dict.fromkeys(k for step, _ in run for k in step.reads if isinstance(k, int))
        written.append(made)
        reads.append(tuple(k for k in outer if k not in set(made)))
    outs = sorted(needed)

    def repeated(*arrays: Any) -> list[Any]:
        held = dict(zip(reads[0], arrays, strict=True))
        run_steps(runs[0][1], held)
        return [array_at(held, written[0][i]) for i in outs]

    call = jax.jit(repeated)
    return [
        Step(mine, tuple(made[i] for i in outs), call)
        for mine, made in zip(reads, written, strict=True)
    ]
