"""Primitives that work along some dims: these are unsharded, the others stay where they were.

A primitive runs along the unsharded dims of a part (`unsharded.py`), and over the rest like over a
batch. Where no dim is left over, the primitive falls back, but for those in `vectors.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp

from gridlayout.affine.map import AffineMap, dim
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.fitting import fitting, most_bytes, spread
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions.blocks import as_blocks, block_shape, block_spec
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.flops import Rule, nothing, of_sort, per_operand
from gridlayout.ops.decisions.op import Aval, Op
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.rules.elementwise import elementwise
from gridlayout.ops.rules.unsharded import (
    beside,
    from_front,
    in_front,
    rest_layout,
    stacked,
    unstack,
    without,
)

Shape = tuple[int, ...]


# What only cuts and joins: XLA makes it where it is read.
_CUTS = frozenset({"concatenate", "dynamic_slice", "pad", "rev", "slice", "split"})


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
    """`fn` of the operands' unsharded dims, and of other values that every device has.

    native: `fn` itself takes one more dim, the last one, for the rest; else it is mapped over it.
    operands: each with its unsharded dims; in the rest they are alike. out_axes: the dims of
    each result that `fn` makes, by default those of the first operand. on_blocks: the same as `fn`
    of blocks of the logical dims in their order, whose operands and results have the same dims
    unsharded. Results are laid out as the first operand, or as the policy says for their shape.
    None without a rest.
    """
    first, axes = next((pair for pair in operands if pair[0].layout), operands[0])
    if on_blocks is not None and (outs := _on_blocks(b, op, operands, on_blocks, others)):
        return outs
    rest = _untiled_rest(b, first, axes)
    if rest is None or (not axes and out_axes is None):
        return None
    entered = [unstack(b, value, own, rest) for value, own in operands]
    made = [axes] * len(op.outs) if out_axes is None else out_axes
    left = [
        beside(b, rest, own, aval.shape, aval.dtype)
        for aval, own in zip(op.outs, made, strict=True)
    ]
    mapped = (-1,) * len(entered) + (None,) * len(others)

    def over_rest(*arrays: Any) -> Any:
        return jax.vmap(fn, in_axes=mapped, out_axes=-1)(*arrays)

    each = fn if native else over_rest
    kernel = _on_whole_dims(each, len(rest.grid), [len(own) for _, own in operands], map(len, made))
    run = b.fused if op.name in _CUTS else b.run
    outs = run(kernel, [*entered, *others], left, is_lazy=True)
    return [_home(b, *pair, first, axes) for pair in zip(outs, left, strict=True)]


def _on_blocks(
    b: Builder,
    op: Op,
    operands: Sequence[tuple[Value, Shape]],
    fn: Callable[..., Any],
    others: Sequence[Value],
) -> list[Value] | None:
    """`run` where the first operand is in blocks that are whole along `axes`; else None."""
    first, axes = next((pair for pair in operands if pair[0].layout), operands[0])
    spec = as_blocks(first.spec, b.device)
    if spec is None or any(spec.placement.axes[a] or spec.placement.grid[a] > 1 for a in axes):
        return None
    space = spec.layout.memory or "l1"

    def there(shape: Shape, dtype: Any) -> Sharded:
        return block_spec(shape, dtype, spec.placement, space)

    entered = []
    for value, _ in operands:
        own = there(value.shape, value.dtype)
        entered.append(b.on_cores(value, own.layout, placement=own.placement))
    left = [there(aval.shape, aval.dtype) for aval in op.outs]
    shapes = [block_shape(value.spec) for value in entered]  # type: ignore[arg-type]

    def kernel(*parts: Any) -> list[Any]:
        blocks = [part.reshape(n) for part, n in zip(parts, shapes, strict=False)]
        made = fn(*blocks, *parts[len(shapes) :])
        return [out.reshape(own.local_shape) for out, own in zip(made, left, strict=True)]

    run = b.fused if op.name in _CUTS else b.run
    outs = run(kernel, [*entered, *others], left)
    return [_home(b, *pair, first, axes) for pair in zip(outs, left, strict=True)]


def _home(b: Builder, out: Value, made: Sharded, first: Value, axes: Shape) -> Value:
    """A result where it belongs."""
    ways = target_layouts(b, made.layout, first, axes)
    return b.nearest(out, [layout.with_dtype(made.dtype) for layout in ways])


def _untiled_rest(b: Builder, first: Value, axes: Shape) -> GridLayout | None:
    """`rest_layout`, without tiles where the value moves anyway: no work on padding."""
    rest = rest_layout(b, first, axes)
    if rest is None or (isinstance(first.spec, Sharded) and without(first.spec.layout, axes)):
        return rest
    return rest.replace(tile=None, face=None, row_alignment=None)


def result_layouts(
    b: Builder, first: Value, axes: Shape, aval: Aval, out_axes: Shape
) -> Sequence[Layout]:
    """Where `run` puts a result, whichever way it is made: the first, or on the way there."""
    if (rest := _untiled_rest(b, first, axes)) is None:
        return [b.choose(aval.shape, aval.dtype, first)]
    found = stacked(rest.with_dtype(aval.dtype), out_axes, tuple(aval.shape[a] for a in out_axes))
    return [each.with_dtype(aval.dtype) for each in target_layouts(b, found, first, axes)]


def _on_whole_dims(
    fn: Callable[..., Any], cores: int, read: Sequence[int], made: Iterable[int]
) -> Callable[..., list[LazyView]]:
    """`fn`, of arrays (whole dims ..., the rest as one dim), as a kernel of parts of `stacked`.

    cores: grid dims of the rest. read, made: how many dims of each operand and result are whole.
    Parts have a 1 for each whole dim, the rest's cores, the whole dims, the rest's shard.
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
    """The order of dims in which the second few come before the first few; one more stays last."""
    both = first + second
    return [*range(first, both), *range(first), both]


def target_layout(b: Builder, found: Layout, first: Value, axes: Shape) -> Layout:
    """Where a result belongs: as the first operand, if its layout can be said of the shape.

    On a smaller grid, or in smaller tiles, where it would hold more than the policy allows.
    """
    return target_layouts(b, found, first, axes)[0]


def target_layouts(b: Builder, found: Layout, first: Value, axes: Shape) -> Sequence[Layout]:
    """The same, and where it may be on the way there."""
    layout = _target_layout(b, found, first, axes)
    if (own := as_grid(layout)) is None or b.env.policy is not same_grid_and_tile:
        return [layout]
    like = [] if first.layout is None else [first.layout]
    few = fitting(own, most_bytes(own.data_bytes, like, b.device), b.device)
    return few if few[0] is own else (*few, spread(own))


def _target_layout(b: Builder, found: Layout, first: Value, axes: Shape) -> Layout:
    layout = first.layout
    if isinstance(first.spec, Sharded) and without(first.spec.layout, axes):
        own = as_grid(first.spec.layout)
        if own is not None and first.ndim == found.ndim and _can_resize(own, found.shape):
            return resized(own, found.shape)
        if axes:
            return found
    if layout is None or layout.shape != found.shape or layout.is_scatter:
        return b.choose(found.shape, found.dtype, layout)
    return layout


def _can_resize(layout: GridLayout, shape: Shape) -> bool:
    """Whether the dims that are to be longer or shorter each are alone in a collapsed dim."""
    changed = {d for d, n in enumerate(layout.shape) if n != shape[d]}
    return all(len(group) == 1 for group in layout.groups if changed & set(group))


@lru_cache(maxsize=4096)
def resized(layout: GridLayout, shape: Shape) -> GridLayout:
    """The layout with other extents of dims that are alone: flips, gaps and stated shards go."""
    rows, shard = list(layout.linear.results), list(layout.stated_shard)
    for k, group in enumerate(layout.groups):
        if any(shape[d] != layout.shape[d] for d in group):
            rows[k], shard[k] = dim(group[0]), None
    linear = AffineMap(len(shape), tuple(rows))
    return layout.replace(shape=shape, linear=linear, shard_shape=shard, oob=None)


def _one_dim(name: str) -> Callable[..., Any]:
    """The rule of a primitive that works along the one dim that its parameter `name` says."""

    def rule(b: Builder, op: Op, *values: Value) -> Any:
        axis = op.params[name] % values[0].ndim
        operands = [(x, (axis,)) for x in values]
        return run(b, op, operands, op.bound(**{name: 0}), native=True, on_blocks=op.bound())

    return rule


def stack(b: Builder, op: Op, *values: Value) -> Any:
    """Arrays side by side along a new dim."""
    operands = [(x, ()) for x in values]
    return run(b, op, operands, op.bound(axis=0), out_axes=[(op.params["axis"],)])


def unstack_(b: Builder, op: Op, value: Value) -> Any:
    """The slices of an array along a dim, each by itself."""
    out_axes = [()] * len(op.outs)
    return run(b, op, [(value, (op.params["axis"],))], op.bound(axis=0), out_axes=out_axes)


def tile(b: Builder, op: Op, value: Value) -> Any:
    """An array repeated along the dims with more than one repetition."""
    reps = op.params["reps"]
    axes = tuple(d for d, count in enumerate(reps) if count != 1)
    fn = op.bound(reps=tuple(reps[a] for a in axes))
    made = run(b, op, [(value, axes)], fn, on_blocks=op.bound())
    return made or of_replicated(b, op, value)


def of_replicated(b: Builder, op: Op, *values: Value) -> list[Value]:
    """Every device gets the operands, and keeps its part of the results."""
    first = next((x for x in values if x.layout is not None), values[0])
    outs = [Replicated(aval.shape, aval.dtype) for aval in op.outs]
    made = b.run(op.bound(), list(map(b.replicated, values)), outs)
    return [b.on_cores(out, like=first) if out.ndim else out for out in made]


def bitcast(b: Builder, op: Op, value: Value) -> Any:
    """Bits as another type: of another width, a last dim that joins elements, or parts them."""
    aval = op.out
    if aval.ndim == value.ndim:
        x = b.on_cores(value)
        assert isinstance(x.spec, Sharded)
        return elementwise(b, op, x.seen(x.spec.with_oob(None)))  # of a NaN the bits are not known
    kept = min(aval.ndim, value.ndim)
    axes, out_axes = tuple(range(kept, value.ndim)), tuple(range(kept, aval.ndim))
    if (rest := rest_layout(b, value, axes)) is None:
        return None
    cores = len(rest.grid)
    out = beside(b, rest, out_axes, aval.shape, aval.dtype)

    def kernel(part: jax.Array) -> list[Any]:
        # Not by `run`: under vmap, JAX joins elements of the mapped dim.
        array = in_front(part, len(axes), cores)
        (made,) = op.bind(array if not axes else jnp.moveaxis(array, 0, -1))
        made = made if not out_axes else jnp.moveaxis(made, -1, 0)
        return [from_front(made, len(out_axes), cores)]

    (made,) = b.run(kernel, [unstack(b, value, axes, rest)], [out])
    return b.relayout(made, out.layout)


ALONG: dict[str, Rule] = {
    **{n: Rule(_one_dim("axis"), per_operand) for n in ("cumsum", "cumprod", "cummax", "cummin")},
    "cumlogsumexp": Rule(_one_dim("axis"), per_operand),
    "top_k": Rule(_one_dim("axis"), of_sort),
    "sort": Rule(_one_dim("dimension"), of_sort),
    "approx_top_k": Rule(_one_dim("reduction_dimension"), of_sort),
    "bitcast_convert_type": Rule(bitcast, nothing),
    **{"tile": Rule(tile, nothing), "stack": Rule(stack, nothing)},
    "unstack": Rule(unstack_, nothing),
}
