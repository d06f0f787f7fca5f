"""`python -m benchmarks.sharding FILE... [--seconds 120]`: optimise contest problems of sharding.

The files are those of the ASPLOS 2025 contest on intra-operator parallelism (google/iopddl), JSON
or JSON compressed by gzip: nodes with intervals in which they are live, strategies with costs and
usages; edges with a cost for each pair of strategies; a limit on the usage at any one time. A cost
of 10^18 marks what is impossible.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.ops.solver.problem import Fetch, Problem, Row
from gridlayout.ops.solver.solve import Solution, solve

IMPOSSIBLE = 10**18
MENTIONS = 10**7  # of nodes in rows, which take memory each


def read(path: Path) -> Problem:
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return problem_of(json.loads(text)["problem"])


def problem_of(found: dict[str, Any]) -> Problem:
    """The problem that a file describes."""
    nodes, edges = found["nodes"], found["edges"]
    costs = tuple(map(_costs, nodes["costs"]))
    counts = [len(own) for own in costs]
    fetches = []
    for ends, table in zip(edges["nodes"], edges["costs"], strict=True):
        source, reader = ends
        prices = _costs(table).reshape(counts[source], counts[reader])
        fetches.append(Fetch(source, prices, ((reader, np.arange(counts[reader])),)))
    return Problem(costs, tuple(fetches), tuple(rows_of(nodes, found.get("usage_limit"))))


def rows_of(nodes: dict[str, Any], limit: float | None) -> Iterator[Row]:
    """A row for each set of nodes that are live at once and may use more than the limit."""
    if limit is None:
        return
    usages = [np.asarray(usage, np.float64) for usage in nodes["usages"]]
    most = [float(usage.max(initial=0)) for usage in usages]
    mentions = 0
    for alive in live_sets(nodes["intervals"]):
        if sum(most[v] for v in alive) > limit:
            mentions += len(alive)
            if mentions > MENTIONS:
                raise LayoutError(f"the live sets have more than {MENTIONS} nodes in all")
            yield Row(limit, {v: usages[v] for v in alive if most[v]})


def live_sets(intervals: list[list[int]]) -> Iterator[list[int]]:
    """The sets of nodes live at one time that no other such set contains.

    A node is live from the start of its interval until before its end. A set is maximal when a
    node starts at its time and another ends before the next start.
    """
    starts: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for v, (start, end) in enumerate(intervals):
        if start < end:
            starts.setdefault(start, []).append(v)
            ends.setdefault(end, []).append(v)
    live: dict[int, None] = {}
    grown = False
    for time in sorted(starts.keys() | ends.keys()):
        if grown and time in ends:
            yield sorted(live)
            grown = False
        for v in ends.get(time, ()):
            del live[v]
        for v in starts.get(time, ()):
            live[v] = None
            grown = True


def _costs(values: list[int]) -> np.ndarray:
    found = np.asarray(values, np.float64)
    return np.where(found >= IMPOSSIBLE, np.inf, found)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharding")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=120.0, help="for each file")
    parser.add_argument("--progress", action="store_true", help="print what is found meanwhile")
    asked = parser.parse_args(arguments)
    columns = ("file", "nodes", "edges", "choices", "cost", "bound", "gap", "how", "seconds")
    print("  ".join(columns))
    for path in asked.files:
        began = monotonic()
        try:
            problem = read(path)
            found = solve(problem, asked.seconds, progress=tell if asked.progress else None)
        except LayoutError as error:  # too large, or unsolved
            print(f"{path.name}  {error}", flush=True)
            continue
        counts = len(problem.costs), len(problem.fetches), sum(map(len, problem.costs))
        result = ("infeasible",) if found is None else figures(found)
        row = path.name, *map(str, counts), *result, f"{monotonic() - began:.1f}"
        print("  ".join(row), flush=True)
    return 0


def figures(found: Solution) -> tuple[str, ...]:
    return f"{found.cost:.0f}", f"{found.bound:.0f}", f"{found.gap:.2%}", found.how


def tell(cost: float, bound: float, seconds: float) -> None:
    print(f"  {seconds:.1f} s: cost {cost:.0f}, bound {bound:.0f}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
