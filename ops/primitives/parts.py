"""Slices, splits and reversals, which take parts of arrays, and concatenations.

There are two ways, and the one that takes less time is chosen:

* By relayout: a part of an array is a view with a layout of its own, in which all other elements
  are padding. A slice is relaid out from that layout to the result's layout; an operand of a
  concatenation is relaid out to the layout of its part of the result.
* Unsharded: the array is relaid out so that the dims to cut are unsharded, and each device cuts its
  own part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import jax
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap, constant, dim
from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions import tiled_dims
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.factors import SHIFTED, along, dim_of, dims_of
from gridlayout.ops.decisions.flops import nothing
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.record import Decide, Record
from gridlayout.ops.decisions.reshapes import relabelled
from gridlayout.ops.decisions.shifted import Shifted
from gridlayout.ops.decisions.specs import Sharded, known_values
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.padding import fill_padding
from gridlayout.ops.primitives import empty, equal_parts
from gridlayout.ops.primitives.along import (
    in_own_dims,
    mapped,
    of_replicated,
    result_layouts,
    target_layouts,
)
from gridlayout.ops.primitives.slices.in_place import SlicedArray, SliceDivision, take_slices
from gridlayout.ops.primitives.views import as_views
from gridlayout.sharding.limits import LIMITS

# The most elements of an array that is tracked as known numbers: enough to index a tensor.
_MAX_KNOWN = 64


@cached
def part_of(layout: Layout, shape: Shape, old: AffineMap) -> GridLayout | None:
    """Return the layout of a part of an array in the array's storage, or None if there is none.

    All other elements are padding of unknown value. old: index in the part -> index in the array.

    >>> part = part_of(GridLayout((8,), grid=(2,)), (5,), AffineMap(1, [dim(0) + 2]))
    >>> part.locate((1,)).core, part.locate((2,)).core
    ((0,), (1,))
    """
    own = as_grid(layout)
    part = None if own is None or own.is_scatter else relabelled(own, shape, old, in_part=True)
    return None if part is None else part.with_oob(None)


def offset_map(starts: Sequence[int]) -> AffineMap:
    """Return the map of an index in a part that begins at `starts` to the index in the array."""
    return AffineMap(len(starts), [dim(d) + n for d, n in enumerate(starts)])


def _offset_along(rank: int, axis: int, start: int) -> AffineMap:
    """Return the `offset_map` of a part that begins at `start` along `axis` and at 0 elsewhere."""
    return offset_map([start if d == axis else 0 for d in range(rank)])


# -- parts -----------------------------------------------------------------------------------------


def slice_(b: Builder, op: Op, value: Value) -> Any:
    """Rule for `lax.slice`."""
    if not _shortened_dims(op, value) and value.layout is not None:
        return value
    ways: list[Decide] = [mapped, _slice_as_view, in_blocks]
    if dtypes.nbytes(op.out.size, op.out.dtype) <= LIMITS.small_bytes:
        ways.append(_slice_and_broadcast)
    return cheapest_way(b, op, ways, value) or of_replicated(b, op, value)


def in_blocks(b: Builder, op: Op, value: Value, *numbers: Value) -> list[Value] | None:
    """Rule for a part of an array in blocks: devices receive the borders of theirs."""
    found, shape = as_views(b, op, value, *numbers), value.shape
    if found is None:
        return None
    axes = tuple(d for d, n in enumerate(found[0].shape) if n != shape[d])
    return [
        b.nearest(out, part_layouts(b, value, axes or tuple(range(value.ndim)), aval))
        for out, aval in zip(found, op.outs, strict=True)
    ]


def _strides(op: Op) -> Shape:
    return tuple(op.params["strides"] or (1,) * op.out.ndim)


def _shortened_dims(op: Op, value: Value) -> Shape:
    """Return the dims that a slice shortens."""
    bounds = zip(op.params["start_indices"], op.params["limit_indices"], _strides(op), strict=True)
    return tuple(d for d, some in enumerate(bounds) if some != (0, value.shape[d], 1))


def _slice_as_view(b: Builder, op: Op, value: Value) -> Any:
    pairs = zip(_strides(op), op.params["start_indices"], strict=True)
    old = AffineMap(value.ndim, [dim(d) * stride + n for d, (stride, n) in enumerate(pairs)])
    return _relaid_out_part(b, value, op.out, old, _shortened_dims(op, value))


def _slice_and_broadcast(b: Builder, op: Op, value: Value) -> Any:
    """Rule for a small slice: the devices that hold it broadcast it along the shortened dims."""
    axes, x = _shortened_dims(op, value), b.as_sharded(value)
    sliced = SlicedArray.of(b, x, axes)
    if sliced is None or max(value.shape) > np.iinfo(np.int32).max or not op.out.size:
        return None
    lead, strides = tuple(op.out.shape[a] for a in axes), _strides(op)

    def index_fn() -> tuple[list[jax.Array], Any]:
        found = []
        for k, a in enumerate(axes):
            along = tuple(n if d == k else 1 for d, n in enumerate(lead))
            at = lax.broadcasted_iota(np.int32, along, k)
            found.append(at * strides[a] + op.params["start_indices"][a])
        return found, True

    out = take_slices(
        b, sliced, x, index_fn, [], SliceDivision.of(b, sliced, lead, None), op.out, axes
    )
    return b.as_sharded(out, part_layouts(b, value, axes, op.out)[0])


def split(b: Builder, op: Op, value: Value) -> Any:
    """Rule for `lax.split`."""
    value = in_own_dims(b, value, (op.params["axis"],))
    ways: list[Decide] = [equal_parts.split, mapped, _split_as_views, in_blocks]
    return cheapest_way(b, op, ways, value) or of_replicated(b, op, value)


def _split_as_views(b: Builder, op: Op, value: Value) -> list[Value] | None:
    axis, found = op.params["axis"], []
    for start, aval in zip(accumulate(op.params["sizes"], initial=0), op.outs, strict=False):
        if (
            part := _relaid_out_part(
                b, value, aval, _offset_along(value.ndim, axis, start), (axis,)
            )
        ) is None:
            return None
        found.append(part)
    return found


def rev(b: Builder, op: Op, value: Value) -> Any:
    """Rule for `lax.rev`."""
    return cheapest_way(b, op, [mapped, _reverse_as_view, in_blocks], value) or of_replicated(
        b, op, value
    )


def _reverse_as_view(b: Builder, op: Op, value: Value) -> Any:
    axes = tuple(sorted(op.params["dimensions"]))
    rows = [constant(n - 1) - dim(d) if d in axes else dim(d) for d, n in enumerate(value.shape)]
    return _relaid_out_part(b, value, op.out, AffineMap(value.ndim, rows), axes)


def _relaid_out_part(
    b: Builder, value: Value, aval: Aval, old: AffineMap, axes: Shape
) -> Value | None:
    """Return a part of a value in a result layout; None if the part has no layout as a view.

    old: index in the part -> index in the value. axes: the dims in which they differ.
    """
    x = b.as_sharded(value)
    assert isinstance(x.spec, Sharded)
    seen = part_of(x.spec.layout, aval.shape, old)
    if seen is None:
        return None
    part = x.with_spec(Sharded(seen, x.spec.placement))
    return b.nearest(part, part_layouts(b, value, axes, aval))


def part_layouts(b: Builder, first: Value, axes: Shape, aval: Aval) -> Sequence[Layout]:
    """Return the layouts for a result that differs from the first operand along `axes`."""
    if len(axes) < first.ndim:
        return result_layouts(b, first, axes, aval, axes)
    found = b.choose(aval.shape, aval.dtype, first)
    return [each.with_dtype(aval.dtype) for each in target_layouts(b, found, first, ())]


# -- concatenations --------------------------------------------------------------------------------


def concatenate(b: Builder, op: Op, *values: Value) -> Any:
    """Rule for `lax.concatenate`."""
    ways = [
        *(equal_parts.concatenate, equal_parts.concatenate_whole_blocks),
        *(mapped, _concatenate_by_relayout),
    ]
    return cheapest_way(b, op, ways, *values) or of_replicated(b, op, *values)


def _concatenate_by_relayout(b: Builder, op: Op, *values: Value) -> Value | None:
    axis, first = op.params["dimension"], next(x for x in values if x.layout is not None)
    if len(values) > LIMITS.concatenated:
        return None
    target = part_layouts(b, first, (axis,), op.out)[0]
    starts = accumulate((x.shape[axis] for x in values), initial=0)
    operands, parts = [], []
    for x, start in zip(values, starts, strict=False):
        if 0 in x.shape:
            continue
        if (part := part_of(target, x.shape, _offset_along(x.ndim, axis, start))) is None:
            return None
        parts.append(part)
        operands.append(b.as_sharded(x, part))
    spec = b.sharded(target.with_oob(None))
    placement = spec.placement

    def kernel(*arrays: jax.Array) -> list[jax.Array]:
        found = arrays[-1]
        for part, array in zip(parts[:-1], arrays[:-1], strict=True):
            found = fill_padding(array, part, placement, found)
        return [found]

    return b.fused(kernel, operands, [spec], masks=len(parts) - 1)[0]


def update_part(
    b: Builder, x: Value, new: Value, starts: Sequence[int], combine: Callable[..., jax.Array]
) -> Value | None:
    """Return a sharded array `x` whose part from `starts` on is combined with `new`.

    new: an array of the same rank, relaid out to the layout of that part. combine: a function of
    the old and the new elements. None if the part has no layout.
    """
    spec = x.spec
    assert isinstance(spec, Sharded)
    part = part_of(spec.layout, new.shape, offset_map(starts))
    if part is None:
        return None
    placement = spec.placement
    operands = b.as_sharded(new, part.with_dtype(new.dtype), placement=placement)

    def kernel(array: jax.Array, new: jax.Array) -> list[jax.Array]:
        return [fill_padding(combine(array, new), part, placement, array)]

    return b.fused(kernel, [x, operands], [spec], masks=1)[0]


# -- records ---------------------------------------------------------------------------------------


def _sliced(params: Any, shape: Shape) -> dict[int, str]:
    strides = params["strides"] or (1,) * len(shape)
    bounds = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return {d: SHIFTED for d, some in enumerate(bounds) if some != (0, shape[d], 1)}


def _of_part(params: Any, shapes: Sequence[Shape], parts: Sequence[Shape]) -> dict[str, Any]:
    rows = zip(params["limit_indices"], shapes[0], parts[0], strict=True)
    return {"limit_indices": tuple(own if end == n else end for end, n, own in rows)}


def _views_sliced(params: Any, views: Sequence[Shifted | bytes | None]) -> list[Shifted | None]:
    """Return a slice as a view; see `Record.of_views`."""
    (x,) = views
    ends = zip(params["start_indices"], params["limit_indices"], strict=True)
    for d, (start, limit) in enumerate(ends):
        if isinstance(x, Shifted):
            x = x.cut(d, start, limit, (params["strides"] or (1,) * len(x.shape))[d])
    return [x if isinstance(x, Shifted) else None]


def _views_split(params: Any, views: Sequence[Shifted | bytes | None]) -> list[Shifted | None]:
    x, ends = views[0], [*accumulate(params["sizes"], initial=0)]
    assert isinstance(x, Shifted)
    return [x.cut(params["axis"], *pair) for pair in pairwise(ends)]


def _views_reversed(params: Any, views: Sequence[Shifted | bytes | None]) -> list[Shifted | None]:
    (x,) = views
    for d in params["dimensions"]:
        x = x.reversed(d) if isinstance(x, Shifted) else None
    return [x if isinstance(x, Shifted) else None]


def _views_joined(params: Any, views: Sequence[Shifted | bytes | None]) -> list[Shifted | None]:
    some = [x for x in views if isinstance(x, Shifted)]
    return [Shifted.joined(some, params["dimension"]) if len(some) == len(views) else None]


def part_record(rule: Decide, axes: Any, **facts: Any) -> Record:
    """Return the record of a primitive that moves elements along some dims, as of `along`."""
    return Record(
        *((rule,), nothing, along(axes)),
        **facts,
        is_fused=True,
        takes_fused=True,
    )


def _concatenated_numbers(b: Builder, op: Op, *values: Value) -> Value | None:
    """Rule for a join of numbers that are known before anything runs."""
    parts = [known_values(value.spec) for value in values]
    some = [part for part in parts if part is not None]
    if len(some) < len(parts) or op.out.size > _MAX_KNOWN:
        return None
    return b.constant(np.concatenate(some, op.params["dimension"]), op.out.dtype)


PARTS: dict[str, Record] = {
    "slice": part_record(
        *(slice_, _sliced),
        of_part=_of_part,
        of_views=_views_sliced,
        of_tiles=tiled_dims.sliced,
    ),
    "split": part_record(
        *(split, dim_of("axis", SHIFTED)),
        of_empty=empty.split,
        of_views=_views_split,
        of_tiles=tiled_dims.split,
    ),
    "rev": part_record(
        rev, dims_of("dimensions", SHIFTED), of_views=_views_reversed, of_tiles=tiled_dims.reversed_
    ),
    "concatenate": part_record(
        *(concatenate, dim_of("dimension", SHIFTED)),
        of_empty=empty.concatenate,
        of_logical=_concatenated_numbers,
        of_views=_views_joined,
        of_tiles=tiled_dims.joined,
    ),
}
