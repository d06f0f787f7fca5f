"""Runs the demo."""

from __future__ import annotations

from time import perf_counter

from gridlayout.demo.progress import Progress

PHASES = 12  # the sum of the weights of all phases, from starting JAX to testing


def run(steps: int, full: bool = False) -> int:
    """Train and print the results; return 0 if accuracy and loss are as required, else 1.

    steps: the number of training steps. full: whether to print all layouts and primitives too.
    """
    start = perf_counter()
    with Progress(PHASES, 3 * steps) as progress:
        with progress.phase("starting JAX"):
            # This import takes seconds, so it follows the first display of the bar.
            from gridlayout.demo import answer, tables, training
        found = training.measure(steps, progress)
    print()
    for line in answer.lines(found):
        print(line)
    print(f"{perf_counter() - start:.0f} s in total")
    if full:
        tables.show(found)
    if failed := answer.failure(found):
        print(failed)
    return 1 if failed else 0
