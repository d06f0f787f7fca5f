"""Side-by-side timing: candidates take turns, and medians are compared as ratios."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

import jax


@dataclass(frozen=True)
class Result:
    """One comparison: seconds of each candidate, the ratio to reach, and whether it was reached."""

    name: str
    ours: float
    theirs: float
    against: str
    target: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    def row(self) -> tuple[str, ...]:
        verdict = "yes" if self.ratio <= self.target else "NO"
        return (
            self.name,
            seconds(self.ours),
            seconds(self.theirs),
            self.against,
            f"{self.ratio:.2f}x",
            f"<= {self.target:.2f}x",
            verdict,
        )


def seconds(value: float) -> str:
    """`value` seconds, in a unit that reads well."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g} s"


def medians(
    candidates: dict[str, Callable[[], Any]], rounds: int = 15, clock: bool = True
) -> dict[str, float]:
    """Median seconds of each candidate; they take turns, so that noise hits all alike.

    clock: False where a candidate gives its own seconds.
    """
    for run in candidates.values():
        jax.block_until_ready(run())
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, run in candidates.items():
            start = perf_counter()
            found = jax.block_until_ready(run())
            times[name].append(perf_counter() - start if clock else found)
    return {name: median(values) for name, values in times.items()}


_HEAD = ("what", "gridlayout", "other", "other is", "ratio", "target", "reached")


def table(rows: list[tuple[str, ...]], head: tuple[str, ...] = _HEAD) -> str:
    """The rows as a Markdown table."""
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]

    def line(cells: tuple[str, ...]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


def cpu_seconds(fn: Callable[[], Any]) -> float:
    """CPU seconds of a call; what earlier ones left is collected before."""
    gc.collect()
    start = process_time()
    fn()
    return process_time() - start
