"""Ops whose operands hold indices."""

from __future__ import annotations

from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np

from gridlayout.ops.tenstorrent.operation import Function, Op


def embedding(op: Op) -> Function:
    """The rows of the second operand that the indices in the first select."""
    shape = op.outputs[0].shape

    def run(indices: Any, table: Any) -> Any:
        rows = jnp.reshape(table, table.shape[-2:])
        return jnp.reshape(jnp.take(rows, indices.astype(jnp.int32), 0, mode="clip"), shape)

    return run


def embedding_backward(op: Op) -> Function:
    """Rows of the gradient, summed into the rows of the table that the indices select."""
    shape = op.outputs[0].shape

    def run(indices: Any, table: Any, gradient: Any) -> Any:
        rows = jnp.reshape(gradient, (-1, gradient.shape[-1]))
        places = jnp.ravel(indices).astype(jnp.int32)
        return jnp.reshape(jnp.zeros(shape[-2:], gradient.dtype).at[places].add(rows), shape)

    return run


def gather(op: Op) -> Function:
    """Elements along `dim`, selected by one index each."""
    axis = op.axis("dim")
    op.facts["dims"] = (axis,)
    return lambda x, indices: jnp.take_along_axis(x, indices.astype(jnp.int32), axis)


def index_select(op: Op) -> Function:
    """`length` elements along `dim` from `begin`, and again every `stride` elements.

    As tt-mlir decomposes it (TTIRToTTIRDecomposition.cpp, `IndexSelectOp`).
    """
    axis, begin, length = op.axis("dim"), op.integer("begin"), op.integer("length")
    extent = op.inputs[0].shape[axis]
    stride = op.integer("stride", 0) or extent
    if begin < 0 or length < 1 or stride < length or begin + length > extent:
        op.fail(
            f"{length} elements from {begin}, every {stride}, of {extent} along dim {axis}: begin "
            "must be >= 0, and length from 1 to the stride and to what is left"
        )
    count = -(-(extent - begin) // stride)
    last = begin + (count - 1) * stride
    if last + length > extent:
        op.fail(f"the last {length} elements from {last} end after {extent}, the extent")
    op.facts["dims"] = (axis,)
    before, after = op.inputs[0].shape[:axis], op.inputs[0].shape[axis + 1 :]

    def run(x: Any) -> Any:
        x = jnp.moveaxis(x, axis, 0)[begin : last + length]
        x = jnp.pad(x, [(0, stride - length), *[(0, 0)] * (x.ndim - 1)])
        parts = jnp.reshape(x, (count, stride, *before, *after))[:, :length]
        return jnp.moveaxis(jnp.reshape(parts, (count * length, *before, *after)), 0, axis)

    return run


def index(op: Op) -> Function:
    """Elements along `dim` from `begin` to `end`, every `step`th; negative ones from the end."""
    axis, step = op.axis("dim"), op.integer("step")
    if step < 1:
        op.fail(f"step {step} must be 1 or more")
    op.facts["dims"] = (axis,)
    part = slice(op.integer("begin"), op.integer("end"), step)
    return lambda x: x[(slice(None),) * axis + (part,)]


_WAYS = {"invalid": "set", "sum": "add", "max": "max", "min": "min", "prod": "multiply"}


def scatter(op: Op) -> Function:
    """Elements written, or reduced, along `dim` at one index each; indices outside are dropped."""
    axis, how = op.axis("dim"), op.word("scatter_reduce_type", "invalid")
    op.facts["dims"] = (axis,)
    if how not in _WAYS:
        op.fail(f"scatter_reduce_type = {how} is not known")

    def run(x: Any, indices: Any, values: Any) -> Any:
        places: list[Any] = list(np.indices(indices.shape, sparse=True))
        places[axis] = jnp.where(indices < 0, x.shape[axis], indices)
        return getattr(x.at[tuple(places)], _WAYS[how])(values.astype(x.dtype), mode="drop")

    return run


class _Windows:
    """Windows of data at given indices.

    sizes: the extents of the indexed dims. windows: those of a window. The data is (batch, indexed
    dims as one dim, *row); with `column`, a row is one element. Indices are (batch or 1, number of
    indexed dims, number of windows).
    """

    def __init__(self, op: Op) -> None:
        self.sizes, self.windows = op.integers("sizes"), op.integers("windows")
        shape, indices = op.inputs[0].shape, op.inputs[1].shape
        if len(self.sizes) != len(self.windows) or min(self.windows) < 1:
            op.fail(
                f"sizes {self.sizes} and windows {self.windows} must have the same length, windows "
                "from 1 on"
            )
        if len(indices) != 3 or indices[1] != len(self.sizes):
            op.fail(
                f"indices of shape {indices} must have shape (batch, {len(self.sizes)}, number of "
                "windows)"
            )
        counted = prod(self.sizes)
        self.row: tuple[int, ...]
        if op.flag("column"):
            self.batch, self.row = prod(shape) // max(1, counted), ()
        else:
            self.batch, self.row = shape[0], shape[2:]
        if prod(shape) != self.batch * counted * prod(self.row):
            op.fail(f"data of shape {shape} does not have indexed dims {self.sizes}")
        self.shape = (self.batch, counted, *self.row)

    def places(self, indices: Any, is_clamped: bool) -> Any:
        """Return (batch or 1, elements): positions in the indexed dims; past the end if outside.

        The elements of one window are consecutive.
        """
        starts = indices.astype(jnp.int32)
        within = np.indices(self.windows).reshape(len(self.windows), -1).astype(np.int32)
        places: Any = 0
        outside: Any = False
        for k, (size, window) in enumerate(zip(self.sizes, self.windows, strict=True)):
            start = starts[:, k, :, None]
            if is_clamped:
                start = jnp.clip(start, 0, size - window)
            outside = outside | (start < 0) | (start > size - window)
            places = places * size + start + within[k]
        found = jnp.where(outside, prod(self.sizes), places)
        return jnp.reshape(found, (starts.shape[0], -1))


def rows_gather(op: Op) -> Function:
    """The rows of the data that indices select.

    Indices outside are clamped; with `fill_out_of_bounds` they give zeros.
    """
    windows, shape = _Windows(op), op.outputs[0].shape
    is_filled = op.flag("fill_out_of_bounds", False)
    is_column = op.flag("column")
    op.facts["window"] = None if is_column else prod(windows.windows)
    op.facts["batch"] = windows.batch

    def run(data: Any, indices: Any) -> Any:
        data = jnp.reshape(data, windows.shape)
        places = windows.places(indices, not is_filled)
        how = {"mode": "fill", "fill_value": 0} if is_filled else {"mode": "clip"}
        if places.shape[0] == 1:
            made = jnp.take(data, places[0], 1, **how)
        else:
            places = jnp.reshape(places, places.shape + (1,) * len(windows.row))
            made = jnp.take_along_axis(data, places, 1, **how)
        return jnp.reshape(made, shape)

    return run


def rows_scatter(op: Op) -> Function:
    """The data with rows written, or reduced, at indices; indices outside are dropped."""
    windows, shape, how = _Windows(op), op.outputs[0].shape, op.word("reduce", "invalid")
    if how not in _WAYS:
        op.fail(f"reduce = {how} is not known")

    def run(data: Any, indices: Any, rows: Any) -> Any:
        data = jnp.reshape(data, windows.shape)
        places = windows.places(indices, False)
        places = jnp.broadcast_to(places, (windows.batch, places.shape[-1]))
        rows = jnp.reshape(rows, (windows.batch, places.shape[-1], *windows.row))
        target = data.at[jnp.arange(windows.batch)[:, None], places]
        made = getattr(target, _WAYS[how])(rows.astype(data.dtype), mode="drop")
        return jnp.reshape(made, shape)

    return run


FUNCTIONS = {
    "embedding": embedding,
    "embedding_bw": embedding_backward,
    "gather": gather,
    "index": index,
    "index_select": index_select,
    "rows_gather": rows_gather,
    "rows_scatter": rows_scatter,
    "scatter": scatter,
}
