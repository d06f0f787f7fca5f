"""The records of gathers and scatters, and their factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.ops.decisions.factors import (
    INDEXED,
    SUMMED,
    THROUGH,
    UPDATED,
    Factors,
    FactorsOf,
    Numbering,
)
from gridlayout.ops.decisions.flops import of_updates
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.primitives.empty import unchanged
from gridlayout.ops.primitives.slices.indexing import gather, scatter


def _slices(
    made: Numbering,
    array: Sequence[int],
    indexed: str,
    windows: Sequence[int],
    spans: Mapping[int, bool],
    batch: Mapping[int, int],
    at: str,
) -> Factors:
    """Return the factors of slices, number 2, of arrays at the indices that are operand 1.

    array: the numbers of the arrays. indexed: the kind of their indexed dims of which slices have
    one position. windows: the dims of the slices that are not of the indices. spans: the array's
    dims that these are, in order, and whether slices have their full extent. batch: for dims of the
    indices, the array's dims in step with them. at: the kind of the other dims of the indices.
    """
    of_window, number = dict(zip(windows, spans, strict=True)), 0
    for to in range(len(made.shapes[2])):
        if to in of_window:
            d = of_window[to]
            if spans[d]:
                made.add(THROUGH, *((k, d) for k in array), (2, to))
            else:
                one = made.shapes[2][to] == 1
                made.add(indexed if one else INDEXED, *((k, d) for k in array))
            continue
        own = [(k, batch[number]) for k in array] if number in batch else []
        made.add(THROUGH if own else at, (1, number), *own, (2, to))
        number += 1
    for d in {*range(len(made.shapes[0]))} - {*spans, *batch.values()}:
        made.add(indexed, *((k, d) for k in array))
    return made.factors()


def _gathered(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    own = numbers.operand_batching_dims
    gone = *numbers.collapsed_slice_dims, *own
    spans = {d: sizes[d] == n for d, n in enumerate(ins[0]) if d not in gone}
    batch = dict(zip(numbers.start_indices_batching_dims, own, strict=True))
    # A device that has a block of an indexed dim reads the slices in it, and zeros for others.
    return _slices(Numbering(ins, outs), [0], SUMMED, numbers.offset_dims, spans, batch, THROUGH)


def _scattered(indexed: str, at: str) -> FactorsOf:
    """Return the factors of a scatter: those of the gather that it transposes.

    indexed: the kind of the array's indexed dims. at: that of the indices' dims.
    """

    def of(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
        numbers = params["dimension_numbers"]
        own, windows = numbers.operand_batching_dims, numbers.update_window_dims
        gone = *numbers.inserted_window_dims, *own
        dims = [d for d in range(len(ins[0])) if d not in gone]
        pairs = zip(dims, windows, strict=True)
        spans = {d: ins[2][to] == ins[0][d] for d, to in pairs}
        batch = dict(zip(numbers.scatter_indices_batching_dims, own, strict=True))
        return _slices(Numbering(ins, outs), [0, 3], indexed, windows, spans, batch, at)

    return of


def _one_by_one(op: Op) -> float:
    """Return how many elementwise functions the element of an update takes on CPUs; measured.

    Each slice takes as long as 34 of them, besides its elements.
    """
    numbers = op.params["dimension_numbers"]
    window = prod(op.ins[2].shape[d] for d in numbers.update_window_dims)
    return 2.0 + 34.0 / max(window, 1)


_ADDED = Record(
    *((scatter,), of_updates, _scattered(UPDATED, SUMMED), unchanged),
    of_blocks=True,
    scatters_sums=True,
    cpu_functions=_one_by_one,
)
_CHANGED = Record(
    *((scatter,), of_updates, _scattered(UPDATED, INDEXED), unchanged),
    cpu_functions=_one_by_one,
)
INDEXING: dict[str, Record] = {
    "gather": Record((gather,), factors=_gathered, of_blocks=True, is_fused=True, takes_fused=True),
    "scatter": Record((scatter,), factors=_scattered(UPDATED, INDEXED), of_empty=unchanged),
    "scatter-add": _ADDED,
    **{f"scatter-{how}": _CHANGED for how in ("mul", "min", "max", "sub")},
}
