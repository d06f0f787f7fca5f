"""`Region`: steps that run in one `shard_map`, and which steps do.

Steps on one device's parts run inside of `shard_map`, steps on whole storages between two such
regions. XLA's time for a `shard_map` grows with the square of its operands and results: a step
over hundreds of independent arrays, such as an optimizer's, runs in several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gridlayout.ops.moves.local_move import LocalMove
from gridlayout.ops.programs.running import Scoped, array_at, run_steps, with_calls
from gridlayout.sharding.exchanges.pieces import Pieces

# The most operands and results of one `shard_map`, where its steps can be divided: measured.
_VALUES = 256


@dataclass(frozen=True)
class Region:
    """Steps that run together, with the registers that they read and that later steps need.

    is_whole: whether they work on whole storages, outside of `shard_map`.
    """

    steps: list[Scoped]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    is_whole: bool = False

    @property
    def has_many(self) -> bool:
        """Whether XLA would take long for its operands and results in one `shard_map`."""
        return not self.is_whole and len(self.reads) + len(self.writes) > _VALUES

    @property
    def in_pieces(self) -> list[Pieces]:
        """The moves that run in pieces."""
        moves = [step.does for step, _ in self.steps if isinstance(step.does, LocalMove)]
        return [move.pieces for move in moves if move.pieces is not None]

    @property
    def is_global(self) -> bool:
        """Whether the steps can work on whole storages only."""
        return any(step.is_global for step, _ in self.steps)

    def run(self, held: dict[int, Any]) -> tuple[Any, ...]:
        """Run the steps, and return the registers that later steps need."""
        run_steps(self.steps if self.is_global else with_calls(self.steps, self.writes), held)
        return tuple(array_at(held, k) for k in self.writes)


def regions(steps: Sequence[Scoped], needed: set[int], inner: set[int]) -> list[Region]:
    """Return all steps in regions.

    needed: the registers that are read afterwards. inner: those that exist in `shard_map` only.
    """
    runs = [(list(some), is_global) for is_global, some in groupby(steps, _is_global)]
    found = _with_values(runs, needed)
    if not any(region.has_many for region in found):
        return found
    return _with_values([run for region in found for run in _in_runs(region, inner)], needed)


def _is_global(scoped: Scoped) -> bool:
    return scoped[0].is_global


def _with_values(runs: Sequence[tuple[list[Scoped], bool]], needed: set[int]) -> list[Region]:
    """Return a region for each run of steps, with what it reads and what is read after it.

    runs: with whether they work on whole storages.
    """
    needed, found = set(needed), []
    for some, is_whole in reversed(runs):
        writes = dict.fromkeys(k for step, _ in some for k in step.writes)
        reads = dict.fromkeys(k for step, _ in some for k in step.reads if isinstance(k, int))
        outer = tuple(k for k in reads if k not in writes)
        found.append(Region(some, outer, tuple(k for k in writes if k in needed), is_whole))
        needed |= set(outer)
    return found[::-1]


def _in_runs(region: Region, inner: set[int]) -> Iterator[tuple[list[Scoped], bool]]:
    """Yield a region's steps in runs, so that those in a `shard_map` have few values.

    Elementwise steps that only such steps read, as those of an optimizer, work on whole storages.
    """
    if not region.has_many:
        yield region.steps, region.is_whole
        return
    last: list[Scoped] = []
    first: list[Scoped] = []
    read: set[int] = set()  # by steps in `first`
    for step, scope in reversed(region.steps):
        if step.is_elementwise and read.isdisjoint(step.writes):
            last.append((step, scope))
        else:
            first.append((step, scope))
            read.update(k for k in step.reads if isinstance(k, int))
    needed = {*region.writes, *(k for step, _ in last for k in step.reads if isinstance(k, int))}
    for some in _divided(_independent(first[::-1]), needed, inner):
        yield some, False
    if last:
        yield last[::-1], True


def _independent(steps: Sequence[Scoped]) -> list[Scoped]:
    """Return the steps with those together of which one reads, through others, from the other."""
    writer = {k: n for n, (step, _) in enumerate(steps) for k in step.writes}
    first = list(range(len(steps)))

    def root(n: int) -> int:
        while first[n] != n:
            first[n] = first[first[n]]
            n = first[n]
        return n

    for n, (step, _) in enumerate(steps):
        for k in step.reads:
            if isinstance(k, int) and k in writer:
                low, high = sorted((root(writer[k]), root(n)))
                first[high] = low
    return [steps[n] for n in sorted(range(len(steps)), key=lambda n: (root(n), n))]


def _divided(steps: Sequence[Scoped], needed: set[int], inner: set[int]) -> Iterator[list[Scoped]]:
    """Yield the steps in runs of few operands and results; needed: what is read after them."""
    last = {k: n for n, (step, _) in enumerate(steps) for k in step.reads if isinstance(k, int)}
    start = 0
    while start < len(steps):
        end = _end(steps, start, last, needed, inner)
        yield list(steps[start:end])
        start = end


def _end(
    steps: Sequence[Scoped], start: int, last: dict[int, int], needed: set[int], inner: set[int]
) -> int:
    """Return where the run of steps from `start` on ends.

    It has as many steps as few operands and results allow, at least those up to the first place
    where no later step reads a view that it makes, or one of `inner`. last: the last step that
    reads each register.
    """
    operands: set[int] = set()
    made: set[int] = set()
    results: set[int] = set()
    bound: set[int] = set()
    end = len(steps)
    for n in range(start, len(steps)):
        step, _ = steps[n]
        read = {k for k in step.reads if isinstance(k, int)}
        done = {k for k in {*read, *step.writes} if last.get(k, -1) <= n}
        operands |= read - made
        made.update(step.writes)
        results.update(step.writes)
        results -= done - needed
        bound.update(step.writes if step.is_lazy else inner.intersection(step.writes))
        bound -= done
        if end <= n and len(operands) + len(results) > _VALUES:
            return end
        if not bound:
            end = n + 1
    return len(steps)
