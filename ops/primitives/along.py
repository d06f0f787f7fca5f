"""Primitives that work along some dims: those dims are unsharded, the others stay sharded.

A primitive runs along the unsharded dims of a part (`unsharded.py`). The other dims, the rest, are
a batch: those that are through by its factors. If there are no other dims, the primitive falls
back, except for those in `vectors.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.affine.map import AffineMap, dim
from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.fitting import fitting, most_bytes, spread
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions import tiled_dims
from gridlayout.ops.decisions.blocks import as_blocks, block_shape, blocks_like
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.factors import SHIFTED, THROUGH, Factors, Numbering, along, dim_of
from gridlayout.ops.decisions.flops import nothing
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.shifted import Shifted
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.primitives.elementwise import elementwise
from gridlayout.ops.primitives.unsharded import (
    from_front,
    in_front,
    layout_without,
    rest_spec,
    stacked_spec,
    unstack,
)


def run(
    b: Builder,
    op: Op,
    operands: Sequence[tuple[Value, Shape]],
    fn: Callable[..., Any],
    *others: Value,
    out_axes: Sequence[Shape] | None = None,
    native: bool = False,
    on_blocks: Callable[..., Any] | None = None,
) -> list[Value] | None:
    """Return the results of `fn` along the operands' unsharded dims; None without other dims.

    operands: pairs of a value and its unsharded dims; their other dims must be equal. fn: a
    function of arrays of the unsharded dims. others: replicated values that `fn` takes in addition.
    out_axes: for each result, the dims that `fn` produces, by default those of the first operand.
    native: whether `fn` takes the other dims as one more, last dim; else it is mapped over them.
    on_blocks: a variant of `fn` for blocks with all logical dims in order, if operands and results
    have the same unsharded dims.

    A result has the layout of the first operand, or the policy's for its shape.
    """
    operands = [(in_own_dims(b, value, own), own) for value, own in operands]
    first, axes = next((pair for pair in operands if pair[0].layout), operands[0])
    if on_blocks is not None and (outs := _on_blocks(b, op, operands, on_blocks, others)):
        return outs
    rest = _untiled_rest(b, first, axes)
    if rest is None or (not axes and out_axes is None):
        return None
    inputs = [unstack(b, value, own, rest) for value, own in operands]
    made = [axes] * len(op.outs) if out_axes is None else out_axes
    out_specs = [
        stacked_spec(rest, own, tuple(aval.shape[a] for a in own), aval.dtype)
        for aval, own in zip(op.outs, made, strict=True)
    ]
    mapped = (-1,) * len(inputs) + (None,) * len(others)

    def over_rest(*arrays: Any) -> Any:
        return jax.vmap(fn, in_axes=mapped, out_axes=-1)(*arrays)

    each = fn if native else over_rest
    kernel = _on_whole_dims(
        each, len(rest.placement.grid), [len(own) for _, own in operands], map(len, made)
    )
    run = b.fused if b.record.is_fused else b.run
    outs = run(kernel, [*inputs, *others], out_specs, is_lazy=True)
    return [_in_target_layout(b, *pair, first, axes) for pair in zip(outs, out_specs, strict=True)]


def in_own_dims(b: Builder, value: Value, axes: Shape) -> Value:
    """Return a value in blocks whose layout joins `axes` with other dims, in a grid dim for each.

    Such as of a reshape that splits a dim: on each device the bytes are the same.
    """
    joined = isinstance(value.spec, Sharded) and layout_without(value.spec.layout, axes) is None
    if not axes or not joined or (spec := as_blocks(value.spec, b.device)) is None:
        return value
    return b.as_spec(value, spec)


def _on_blocks(
    b: Builder,
    op: Op,
    operands: Sequence[tuple[Value, Shape]],
    fn: Callable[..., Any],
    others: Sequence[Value],
) -> list[Value] | None:
    """Return `run`'s results if the first operand's blocks are unsharded along `axes`."""
    first, axes = next((pair for pair in operands if pair[0].layout), operands[0])
    spec = as_blocks(first.spec, b.device)
    if spec is None or any(spec.placement.axes[a] or spec.placement.grid[a] > 1 for a in axes):
        return None
    inputs = [
        b.as_spec(value, blocks_like(spec, value.shape, value.dtype)) for value, _ in operands
    ]
    out_specs = [blocks_like(spec, aval.shape, aval.dtype) for aval in op.outs]
    writes_part = b.record.writes_part
    shapes = [block_shape(value.spec) for value in inputs]  # type: ignore[arg-type]

    def kernel(*parts: Any) -> list[Any]:
        blocks = [part.reshape(n) for part, n in zip(parts, shapes, strict=False)]
        if writes_part:
            # XLA would update a copy for each shape in which the array or the result is read.
            blocks[0] = lax.optimization_barrier(blocks[0])
            made = lax.optimization_barrier(fn(*blocks, *parts[len(shapes) :]))
        else:
            made = fn(*blocks, *parts[len(shapes) :])
        return [out.reshape(own.local_shape) for out, own in zip(made, out_specs, strict=True)]

    run = b.fused if b.record.is_fused else b.run
    outs = run(kernel, [*inputs, *others], out_specs)
    return [_in_target_layout(b, *pair, first, axes) for pair in zip(outs, out_specs, strict=True)]


def _in_target_layout(b: Builder, out: Value, made: Sharded, first: Value, axes: Shape) -> Value:
    """Return a result in its target layout."""
    ways = target_layouts(b, made.layout, first, axes)
    return b.nearest(out, [layout.with_dtype(made.dtype) for layout in ways])


def _untiled_rest(b: Builder, first: Value, axes: Shape) -> Sharded | None:
    """Return `rest_spec`, untiled if the value is relaid out, which saves work on padding."""
    rest = rest_spec(b, first, axes)
    if rest is None or (
        isinstance(first.spec, Sharded) and layout_without(first.spec.layout, axes)
    ):
        return rest
    return Sharded(rest.layout.replace(tile=None, face=None, row_alignment=None), rest.placement)


def result_layouts(
    b: Builder, first: Value, axes: Shape, aval: Aval, out_axes: Shape
) -> Sequence[Layout]:
    """Return the layouts that a result of `run` may have, the target layout first."""
    if (rest := _untiled_rest(b, first, axes)) is None:
        return [b.choose(aval.shape, aval.dtype, first)]
    found = stacked_spec(rest, out_axes, tuple(aval.shape[a] for a in out_axes), aval.dtype).layout
    return [each.with_dtype(aval.dtype) for each in target_layouts(b, found, first, axes)]


def _on_whole_dims(
    fn: Callable[..., Any], cores: int, read: Sequence[int], made: Iterable[int]
) -> Callable[..., list[LazyView]]:
    """Return a kernel of parts of `stacked` that calls `fn` of arrays (unsharded dims ..., rest).

    cores: grid dims of the rest. read, made: the number of unsharded dims of each operand and
    result. The shape of a part is a 1 per unsharded dim, the rest's cores, the unsharded dims and
    the rest's shard.
    """
    counts = tuple(made)

    def kernel(*parts: LazyView) -> list[LazyView]:
        arrays: list[Any] = []
        around: Shape = ()
        inner: Shape = ()
        for view, count in zip(parts, read, strict=False):
            whole, around = view.shape[count + cores :][:count], view.shape[count:][:cores]
            inner = view.shape[2 * count + cores :]
            view = view.reshape(*around, *whole, -1).transpose(_exchanged(cores, count))
            arrays.append(view.reshape(*whole, -1).materialize())
        outs, found = fn(*arrays, *(view.materialize() for view in parts[len(read) :])), []
        for count, out in zip(counts, outs, strict=True):
            whole = out.shape[:-1]
            view = LazyView.of(out).reshape(*whole, *around, -1).transpose(_exchanged(count, cores))
            found.append(view.reshape(*(1,) * count, *around, *whole, *inner))
        return found

    return kernel


def _exchanged(first: int, second: int) -> list[int]:
    """Return the permutation that moves `second` dims before `first` dims; one dim stays last."""
    both = first + second
    return [*range(first, both), *range(first), both]


def target_layout(b: Builder, found: Layout, first: Value, axes: Shape) -> Layout:
    """Return the layout of a result: that of the first operand, if it suits the result's shape.

    The grid or the tiles are smaller if the storage would exceed what the policy allows.
    """
    return target_layouts(b, found, first, axes)[0]


def target_layouts(b: Builder, found: Layout, first: Value, axes: Shape) -> Sequence[Layout]:
    """Return the layouts that the result may have, `target_layout` first."""
    layout = _target_layout(b, found, first, axes)
    if (own := as_grid(layout)) is None or b.env.policy is not same_grid_and_tile:
        return [layout]
    like = [] if first.layout is None else [first.layout]
    few = fitting(own, most_bytes(own.data_bytes, like, b.device), b.device)
    few = few if few[0] == own else (*few, spread(own))
    return [b.on_axes_of(first, each) for each in few]


def _target_layout(b: Builder, found: Layout, first: Value, axes: Shape) -> Layout:
    layout = first.layout
    if isinstance(first.spec, Sharded) and layout_without(first.spec.layout, axes):
        own = as_grid(first.spec.layout)
        if own is not None and first.ndim == found.ndim and can_resize(own, found.shape):
            return resized(own, found.shape)
        if axes:
            return found
    if layout is None or layout.shape != found.shape or layout.is_scatter:
        chosen = b.choose(found.shape, found.dtype, layout)
        own = None if layout is None else as_grid(layout)
        # Without tiles, dims that come or go leave the others divided as they are.
        stays = own is not None and not own.tile and own.ndim != found.ndim
        is_spread = stays and found.num_cores >= chosen.num_cores
        return found if is_spread and b.env.policy is same_grid_and_tile else chosen
    return layout


def can_resize(layout: GridLayout, shape: Shape) -> bool:
    """Whether each dim whose extent changes is the only dim of a collapsed dim."""
    changed = {d for d, n in enumerate(layout.shape) if n != shape[d]}
    return all(len(group) == 1 for group in layout.groups if changed & set(group))


@cached
def resized(layout: GridLayout, shape: Shape) -> GridLayout:
    """Return the layout with other extents of dims that are alone in a collapsed dim.

    Flips, gaps and stated shards of those dims are dropped.
    """
    rows, shard = list(layout.linear.results), list(layout.stated_shard)
    for k, group in enumerate(layout.groups):
        if any(shape[d] != layout.shape[d] for d in group):
            rows[k], shard[k] = dim(group[0]), None
    linear = AffineMap(len(shape), tuple(rows))
    return layout.replace(shape=shape, linear=linear, shard_shape=shard, oob=None)


def mapped(b: Builder, op: Op, *values: Value) -> list[Value] | None:
    """Rule that follows from a primitive's factors: it runs on parts along those that are through.

    The operands are relaid out so that all other dims are unsharded; operands without a factor that
    is through are replicated. None if operands and results do not have the same such factors.
    """
    record, shapes = b.record, [value.shape for value in values]
    factors = record.factors(op.params, shapes, [aval.shape for aval in op.outs])
    every = [*factors.ins, *factors.outs]
    through = [
        [d for d, f in enumerate(dims) if f is None or factors.kind(f) == THROUGH] for dims in every
    ]
    rest = [[dims[d] for d in own] for dims, own in zip(every, through, strict=True)]
    axes = [
        tuple(d for d in range(len(dims)) if d not in own)
        for dims, own in zip(every, through, strict=True)
    ]
    parted = [k for k in range(len(values)) if rest[k]]
    order = [*parted, *(k for k in range(len(values)) if not rest[k])]
    used = [*parted, *range(len(values), len(every))]
    if not parted or any(rest[k] != rest[parted[0]] for k in used):
        return None

    def on_part(*arrays: Any) -> list[Any]:
        parts = [array for _, array in sorted(zip(order, arrays, strict=True), key=itemgetter(0))]
        changes = record.of_part and record.of_part(op.params, shapes, [x.shape for x in parts])
        return op.bind(*parts, **(changes or {}))

    def along_axes(*arrays: Any) -> list[Any]:
        wide = [jnp.expand_dims(x, through[k]) for k, x in zip(parted, arrays, strict=False)]
        outs = on_part(*wide, *arrays[len(parted) :])
        return [lax.squeeze(x, own) for x, own in zip(outs, through[len(values) :], strict=True)]

    return run(
        *(b, op, [(values[k], axes[k]) for k in parted], along_axes),
        *(b.replicated(values[k]) for k in order[len(parted) :]),
        out_axes=axes[len(values) :],
        on_blocks=on_part if len({axes[k] for k in used}) == 1 else None,
    )


def mapped_or_replicated(b: Builder, op: Op, *values: Value) -> list[Value]:
    """Rule as `mapped`, or on every device if no factor is through."""
    return mapped(b, op, *values) or of_replicated(b, op, *values)


def of_replicated(b: Builder, op: Op, *values: Value) -> list[Value]:
    """Return the results of an op that each device computes in full; it keeps its own part."""
    first = next((x for x in values if x.layout is not None), values[0])
    outs = [Replicated(aval.shape, aval.dtype) for aval in op.outs]
    made = b.run(op.bound(), list(map(b.replicated, values)), outs)
    return [b.as_sharded(out, like=first) if out.ndim else out for out in made]


def bitcast(b: Builder, op: Op, value: Value) -> Any:
    """Return the bits as another type; for another width, a last dim is removed or added."""
    aval = op.out
    if aval.ndim == value.ndim:
        x = b.as_sharded(value)
        assert isinstance(x.spec, Sharded)
        return elementwise(
            b, op, x.with_spec(x.spec.with_oob(None))
        )  # the bits of a NaN are not known
    kept = min(aval.ndim, value.ndim)
    axes, out_axes = tuple(range(kept, value.ndim)), tuple(range(kept, aval.ndim))
    if (rest := rest_spec(b, value, axes)) is None:
        return None
    cores = len(rest.placement.grid)
    out = stacked_spec(rest, out_axes, tuple(aval.shape[a] for a in out_axes), aval.dtype)

    def kernel(part: jax.Array) -> list[Any]:
        # `run` does not suit: under vmap, JAX would join elements along the mapped dim.
        array = in_front(part, len(axes), cores)
        (made,) = op.bind(array if not axes else jnp.moveaxis(array, 0, -1))
        made = made if not out_axes else jnp.moveaxis(made, -1, 0)
        return [from_front(made, len(out_axes), cores)]

    (made,) = b.run(kernel, [unstack(b, value, axes, rest)], [out])
    return b.relayout(made, out.layout)


def _bits(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of a cast of bits; a dim that is added or removed is whole."""
    made = Numbering(ins, outs)
    for d in range(min(len(ins[0]), len(outs[0]))):
        made.add(THROUGH, (0, d), (1, d))
    return made.factors()


def _stacked(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    made, axis = Numbering(ins, outs), params["axis"]
    for d in range(len(outs[0])):
        places = [(k, d - (d > axis)) for k in range(len(ins) if d != axis else 0)]
        made.add(SHIFTED if d == axis else THROUGH, *places, (len(ins), d))
    return made.factors()


def _repeated(params: Any, shape: Shape) -> dict[int, str]:
    return {d: SHIFTED for d, count in enumerate(params["reps"]) if count != 1}


def _views_repeated(params: Any, views: Sequence[Shifted | bytes | None]) -> list[Shifted | None]:
    (x,) = views
    for d, count in enumerate(params["reps"]):
        if count != 1:
            x = x.repeated(d, count) if isinstance(x, Shifted) else None
    return [x if isinstance(x, Shifted) else None]


ALONG: dict[str, Record] = {
    "bitcast_convert_type": Record((bitcast,), factors=_bits, is_fused=True, takes_fused=True),
    "tile": Record(
        (mapped_or_replicated,),
        factors=along(_repeated),
        is_fused=True,
        takes_fused=True,
        of_views=_views_repeated,
        of_tiles=tiled_dims.repeated,
    ),
    "stack": Record(
        (mapped,),
        factors=_stacked,
        is_fused=True,
        takes_fused=True,
        of_tiles=tiled_dims.stacked,
    ),
    "unstack": Record(
        *((mapped,), nothing, along(dim_of("axis", SHIFTED), keeps=False)),
        is_fused=True,
        takes_fused=True,
    ),
}
