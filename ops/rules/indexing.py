"""Gather and scatter: slices at indices. Dims that are indexed are unsharded, others stay.

Indices that every slice of the operand shares are on every device; those that differ along batch
dims lie as the operand does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import lax

from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.flops import Rule, nothing, of_updates
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.value import Value, nbytes
from gridlayout.ops.decisions.views import broadcast, transposed
from gridlayout.ops.rules.along import Shape, rest_layout, run, stacked
from gridlayout.ops.rules.elements import add_to_few, elements, put_elements


def gather(b: Builder, op: Op, value: Value, indices: Value) -> Any:
    """Slices at indices, such as rows of a table: dims that are taken whole stay where they are.

    So do batch dims, in which each slice of the operand has indices of its own.
    """
    numbers, sizes = op.params["dimension_numbers"], op.params["slice_sizes"]
    if value.layout is None:
        if not numbers.operand_batching_dims:
            return _from_table(b, op, value, indices)
        value = _by_batch(b, value, indices, numbers)
    aval, batch = op.out, numbers.operand_batching_dims
    rank = aval.ndim
    dropped, places = numbers.collapsed_slice_dims, numbers.start_indices_batching_dims
    place = _places(value.ndim, dropped, batch, numbers.offset_dims, rank, places)
    columns = _columns(op, numbers.start_index_map, value.shape, sizes)
    indexed = tuple(numbers.start_index_map[k] for k in columns)
    axes = _indexed(value.shape, sizes, batch, indexed, dropped)
    gone = [place[d] for d in range(value.ndim) if d not in axes]
    if not gone and not batch:
        sent = nbytes(indices.shape, indices.dtype) + 2 * nbytes(aval.shape, aval.dtype)
        made = None
        if indices.layout is not None and nbytes(value.shape, value.dtype) <= sent:
            made = _from_table(b, op, b.replicated(value), indices)
        return made or elements(b, op, value, indices, place)
    if gone != sorted(gone) or value.layout is None:
        return None
    out_axes = tuple(k for k in range(rank) if k not in gone)
    changed = lax.GatherDimensionNumbers(
        offset_dims=tuple(out_axes.index(place[d]) for d in axes if d in place),
        collapsed_slice_dims=tuple(map(axes.index, dropped)),
        start_index_map=tuple(map(axes.index, indexed)),
    )
    bind = op.bound(dimension_numbers=changed, slice_sizes=tuple(sizes[a] for a in axes))

    def fn(x: Any, i: Any) -> Any:
        return bind(x, _at(i, columns))

    operands, others = _with_indices(b, value, axes, indices, batch, places)
    return run(b, op, [(value, axes), *operands], fn, *others, out_axes=[out_axes])


def _from_table(b: Builder, op: Op, table: Value, indices: Value) -> Any:
    """Slices of an array that every device has: they lie as the indices do."""
    numbers = op.params["dimension_numbers"]
    offset_dims = tuple(range(len(numbers.offset_dims)))
    bind = op.bound(dimension_numbers=numbers._replace(offset_dims=offset_dims))
    return run(
        *(b, op, [(indices, (indices.ndim - 1,))]),
        lambda i, x: bind(x, i),
        b.replicated(table),
        out_axes=[tuple(numbers.offset_dims)],
    )


def _by_batch(b: Builder, value: Value, indices: Value, numbers: Any) -> Any:
    """An array that every device has, each core keeping the batch of the indices that it has."""
    batch, places = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    rest = rest_layout(b, indices, tuple(k for k in range(indices.ndim) if k not in places))
    if rest is None or batch != tuple(sorted(batch)) or places != tuple(sorted(places)):
        return value
    axes = tuple(d for d in range(value.ndim) if d not in batch)
    return b.on_cores(value, stacked(rest, axes, tuple(value.shape[d] for d in axes)))


def scatter(b: Builder, op: Op, value: Value, indices: Value, updates: Value) -> Any:
    """Updates written, or added, at indices: the gradient of `gather`."""
    numbers = op.params["dimension_numbers"]
    rank, batch = updates.ndim, numbers.operand_batching_dims
    dropped, places = numbers.inserted_window_dims, numbers.scatter_indices_batching_dims
    place = _places(value.ndim, dropped, batch, numbers.update_window_dims, rank, places)
    sizes = [updates.shape[place[d]] if d in place else 1 for d in range(value.ndim)]
    columns = _columns(op, numbers.scatter_dims_to_operand_dims, value.shape, sizes)
    indexed = tuple(numbers.scatter_dims_to_operand_dims[k] for k in columns)
    axes = _indexed(value.shape, sizes, batch, indexed, dropped)
    gone = [place[d] for d in range(value.ndim) if d not in axes]
    if not gone and not batch:
        few = add_to_few(b, op, value, indices, updates)
        return few or put_elements(b, op, value, indices, updates, place)
    if gone != sorted(gone):
        return None
    own = tuple(k for k in range(rank) if k not in gone)
    changed = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(own.index(place[d]) for d in axes if d in place),
        inserted_window_dims=tuple(map(axes.index, dropped)),
        scatter_dims_to_operand_dims=tuple(map(axes.index, indexed)),
    )
    bind = op.bound(dimension_numbers=changed)

    def fn(x: Any, u: Any, i: Any) -> Any:
        return bind(x, _at(i, columns), u)

    more, others = _with_indices(b, value, axes, indices, batch, places)
    operands = [(value, axes), (updates, own), *more]
    return run(b, op, operands, fn, *others, out_axes=[axes])


def _places(
    ndim: int, dropped: Shape, batch: Shape, window: Shape, rank: int, places: Shape
) -> dict[int, int]:
    """Dims of a gather's operand: where each is in the result, or of a scatter's, in the updates.

    dropped: dims that have none. window: where the dims of a slice are. places: the dims of the
    indices that `batch` goes with.
    """
    sliced = [d for d in range(ndim) if d not in dropped and d not in batch]
    rest = [k for k in range(rank) if k not in window]
    return dict(zip(sliced, window, strict=True)) | {
        d: rest[k] for d, k in zip(batch, places, strict=True)
    }


def _with_indices(
    b: Builder, value: Value, axes: Shape, indices: Value, batch: Shape, places: Shape
) -> tuple[list[tuple[Value, Shape]], list[Value]]:
    """The indices as an operand and its unsharded dims, or as an array every device has.

    Where they differ along batch dims they lie as the operand does along all dims but `axes`.
    """
    if not batch:
        return [], [b.replicated(indices)]
    rest = [d for d in range(value.ndim) if d not in axes]
    own = [k for k in range(indices.ndim) if k not in places]
    along = {rest.index(d): k for d, k in zip(batch, places, strict=True)}
    order = [along[k] for k in sorted(along)] + own
    front = transposed(b, b.on_cores(indices), tuple(order))
    shape = (*(value.shape[d] for d in rest), *(indices.shape[k] for k in own))
    behind = tuple(range(len(rest), len(shape)))
    return [(broadcast(b, front, shape, (*sorted(along), *behind)), behind)], []


def _columns(op: Op, named: Shape, shape: Shape, sizes: Sequence[int]) -> list[int]:
    """Which columns of the indices say something, of those for dims `named`.

    A slice as long as its dim starts at 0, unless it is dropped where its index says another place.
    `jax.vmap` of a dynamic slice makes such columns.
    """
    mode = lax.GatherScatterMode
    stays = op.params["mode"] in (mode.CLIP, mode.PROMISE_IN_BOUNDS)
    return [k for k, d in enumerate(named) if not stays or sizes[d] != shape[d]]


def _at(indices: Any, columns: list[int]) -> Any:
    whole = len(columns) == indices.shape[-1]
    return indices if whole else indices[..., np.array(columns, int)]


def _indexed(shape: Shape, sizes: Sequence[int], batch: Shape, *named: Sequence[int]) -> Shape:
    """The dims that are taken in part, or that indices name; none of the batch."""
    some = {d for dims in named for d in dims}
    taken = [d for d in range(len(shape)) if d in some or sizes[d] != shape[d]]
    return tuple(d for d in taken if d not in batch)


INDEXING: dict[str, Rule] = {
    "gather": Rule(gather, nothing),
    "scatter": Rule(scatter, nothing),
    **{f"scatter-{how}": Rule(scatter, of_updates) for how in ("add", "mul", "min", "max", "sub")},
}
