"""The demo from start to end."""

from __future__ import annotations

from time import perf_counter

from gridlayout.demo.progress import Progress

PHASES = 12  # the weights of all phases, from starting JAX to testing


def run(steps: int, full: bool = False) -> int:
    """Train and print what happened; 0 where it learned and plain JAX agrees, else 1."""
    start = perf_counter()
    with Progress(PHASES, 3 * steps) as progress:
        with progress.phase("starting JAX"):
            # Seconds: the bar is to be on the screen before.
            from gridlayout.demo import answer, tables, training
        found = training.measure(steps, progress)
    print()
    for line in answer.lines(found):
        print(line)
    print(f"{perf_counter() - start:.0f} s in all")
    if full:
        tables.show(found)
    if failed := answer.failure(found):
        print(failed)
    return 1 if failed else 0
