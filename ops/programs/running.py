"""Running steps on one device's parts; repeated runs of steps, such as layers, are traced once.

Two steps are the same if their functions are: those of equal decisions, whether or not they come
from a cache. A repeated run of steps, with the same data flow inside, becomes one jitted function
that is called each time. XLA inlines it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import groupby
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout.ops.decisions.decision import Step
from gridlayout.ops.moves.lazy_view import LazyView

Scoped = tuple[Step, str]
# The fewest steps of a run, and the fewest steps that its calls save, for it to become a function.
_LEAST, _SPARED = 8, 32
# The most positions that are compared with a run.
_PLACES = 256


def run_steps(steps: Sequence[Scoped], held: dict[int, Any]) -> None:
    """Run steps, each in its `jax.named_scope`, on the arrays in registers."""
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
    """Return the array in a register, materialized if it is a view, or the constant `at`."""
    if not isinstance(at, int):
        return at
    if isinstance(array := held[at], LazyView):
        array = held[at] = array.materialize()
    return array


def with_calls(steps: Sequence[Scoped], needed: Sequence[int]) -> list[Scoped]:
    """Return the steps with repeated runs as calls; needed: registers that are read afterwards."""
    numbers: dict[Any, int] = {}
    names = [
        numbers.setdefault((n if step.kernel is None else step.kernel, scope), len(numbers))
        for n, (step, scope) in enumerate(steps)
    ]
    if len(names) - len(numbers) < _SPARED:
        return list(steps)
    places: dict[Any, list[int]] = {}
    for n in range(len(names) - _LEAST + 1):
        places.setdefault(tuple(names[n : n + _LEAST]), []).append(n)
    consumers: dict[int, list[int]] = {k: [len(steps)] for k in needed}
    for n, (step, _) in enumerate(steps):
        for k in step.reads:
            if isinstance(k, int):
                consumers.setdefault(k, []).append(n)
    found: list[Scoped] = []
    calls: dict[int, tuple[int, Step]] = {}  # by its start: the run's length, and its call
    n = 0
    while n < len(names):
        if n not in calls and len(again := places.get(tuple(names[n : n + _LEAST]), ())) > 1:
            length, starts = _longest(names, n, [at for at in again if at > n], calls)
            if length * (len(starts) - 1) >= _SPARED:
                shape = _shape(steps[n : n + length])
                starts = [at for at in starts if _shape(steps[at : at + length]) == shape]
            if length * (len(starts) - 1) >= _SPARED:
                runs = [(at, steps[at : at + length]) for at in starts]
                for at, call in zip(starts, _calls(runs, consumers), strict=True):
                    calls[at] = length, call
        length, step = calls[n] if n in calls else (1, steps[n][0])
        found.append((step, "" if n in calls else steps[n][1]))
        n += length
    return found


def _longest(
    names: Sequence[Any], n: int, later: Sequence[int], calls: dict[int, tuple[int, Step]]
) -> tuple[int, list[int]]:
    """Return the length and the starts of the run from `n` on whose calls save the most steps."""
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
    """Return how many steps from `n` on are equal to those from `at` on."""
    end = 0
    while n + end < at and at + end < len(names) and names[n + end] == names[at + end]:
        if n + end in taken or at + end in taken:
            break
        end += 1
    return end


def _shape(run: Sequence[Scoped]) -> list[Any]:
    """Return the data flow of a run: the values that its steps read, numbered by first use."""
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


def constant_key(x: Any) -> Hashable:
    """Return a key of a constant: equal for arrays of equal bits, and of equal random keys."""
    if jnp.issubdtype(x.dtype, jax.dtypes.extended):
        return x.dtype, constant_key(np.asarray(jax.random.key_data(x)))
    return x.dtype, x.shape, np.asarray(x).tobytes()


def _calls(
    runs: Sequence[tuple[int, Sequence[Scoped]]], consumers: dict[int, list[int]]
) -> list[Step]:
    """Return a call for each of several runs that do the same; runs: with their starts."""
    written, reads, needed = [], [], set()
    for at, run in runs:
        made = [k for step, _ in run for k in step.writes]
        inside = range(at, at + len(run))
        needed |= {
            i for i, k in enumerate(made) if any(n not in inside for n in consumers.get(k, ()))
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
