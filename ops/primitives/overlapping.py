"""`overlapping`: blocks that overlap, of which each device reads positions around its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridlayout.ops.decisions.blocks import block_spec
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.shifted import Row, Run, Shifted
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.views import bordered
from gridlayout.sharding.meshes.placement import Placement


@dataclass(frozen=True)
class Reads:
    """What devices read along a dim: `count` positions, from first + i * step on device i on.

    wraps: whether positions outside of the array are those around it.
    """

    first: int
    step: int
    count: int
    wraps: bool = False


def overlapping(
    b: Builder, value: Value, placement: Placement, reads: Mapping[int, Reads], fill: Any
) -> Value:
    """Return an array of which devices have blocks that overlap, where they read the value.

    reads: for some dims, what each device reads; other dims are divided as they are. fill: the
    elements outside of the array.
    """
    rows, shape = [], list(value.shape)
    for d, n in enumerate(value.shape):
        runs = [Run(n, 0)]
        if d in reads:
            runs = [run for i in range(placement.grid[d]) for run in _inside(reads[d], i, n)]
            shape[d] = placement.grid[d] * reads[d].count
        rows.append(Row(d, tuple(runs)))
    bits = np.asarray(fill, value.dtype).tobytes()
    has_fill = any(row.has_fill for row in rows)
    view = Shifted(tuple(shape), tuple(rows), bits if has_fill else None)
    spec = block_spec(value.shape, value.dtype, placement)
    found = bordered(b, [view], b.as_spec(value, spec), exact=True)
    assert found is not None
    return found[0]


def _inside(reads: Reads, i: int, n: int) -> list[Run]:
    """Return what device `i` reads of `n` positions, and how many before and after them."""
    first = reads.first + i * reads.step
    if reads.wraps:
        found, at = [], first
        while at < first + reads.count:
            count = min(n - at % n, first + reads.count - at)
            found.append(Run(count, at % n))
            at += count
        return found
    start, end = min(max(first, 0), n), min(max(first + reads.count, 0), n)
    before = min(max(-first, 0), reads.count)
    runs = [Run(before, -1, 0), Run(end - start, start), Run(reads.count, -1, 0)]
    runs[2] = Run(reads.count - before - runs[1].count, -1, 0)
    return [run for run in runs if run.count]
