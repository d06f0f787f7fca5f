"""Gather and scatter: slices at indices.

Three ways: the dims that are indexed are made whole on each device, and others stay; or the array
stays where it is, and each device takes or writes the slices that it has; or every device gets the
array. The cheapest is taken; results lie alike, whichever it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.decision import Decide
from gridlayout.ops.decisions.flops import Rule, nothing, of_updates
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated, Sharded, known_values
from gridlayout.ops.decisions.value import Value, nbytes
from gridlayout.ops.decisions.views import broadcast, squeezed, transposed
from gridlayout.ops.moves.padding import valid_mask
from gridlayout.ops.rules.along import Shape, of_replicated, run
from gridlayout.ops.rules.parts import replaced
from gridlayout.ops.rules.slices import divided
from gridlayout.ops.rules.slices.in_place import Pieces, Split, taken
from gridlayout.ops.rules.slices.places import at_columns, columns_of, fill, places
from gridlayout.ops.rules.slices.slicing import DROP, brought, known_starts, put_slices, written_to
from gridlayout.ops.rules.unsharded import in_front, rest_layout, stacked, unstack


@dataclass(frozen=True)
class _Slices:
    """Slices of an array: which of its dims they are along, and where dims are in their array.

    place: of dims of the array, where each is among those of the slices. axes: dims that are taken
    in part, or that indices name. indexed: those that columns `columns` of the indices name. stay:
    where the others are in the slices. lead: the dims of the slices in front of these.
    """

    shape: Shape
    sizes: Shape
    place: dict[int, int]
    axes: Shape
    indexed: Shape
    columns: list[int]
    stay: list[int]
    lead: Shape
    mode: Any

    @classmethod
    def of(
        cls,
        op: Op,
        shape: Shape,
        sizes: Shape,
        place: dict[int, int],
        named: Shape,
        batch: Shape,
        dropped: Shape,
        rank: int,
    ) -> _Slices:
        """named: what columns of the indices name. dropped: dims that slices have not."""
        columns = columns_of(op, named, shape, sizes)
        indexed = tuple(named[k] for k in columns)
        some = {*indexed, *dropped}
        taken = [d for d in range(len(shape)) if d in some or sizes[d] != shape[d]]
        axes = tuple(d for d in taken if d not in batch)
        stay = [place[d] for d in range(len(shape)) if d not in axes]
        lead = tuple(k for k in range(rank) if k not in stay)
        mode = op.params["mode"]
        return cls(shape, sizes, place, axes, indexed, columns, stay, lead, mode)

    @classmethod
    def gathered(cls, op: Op, value: Value) -> _Slices:
        """Of a gather."""
        n, rank = op.params["dimension_numbers"], op.out.ndim
        dropped, batch = n.collapsed_slice_dims, n.operand_batching_dims
        place = _places(
            value.ndim, dropped, batch, n.offset_dims, rank, n.start_indices_batching_dims
        )
        sizes, named = tuple(op.params["slice_sizes"]), n.start_index_map
        return cls.of(op, value.shape, sizes, place, named, batch, dropped, rank)

    @classmethod
    def scattered(cls, op: Op, value: Value, updates: Value) -> _Slices:
        """Of a scatter."""
        n, rank = op.params["dimension_numbers"], updates.ndim
        dropped, batch = n.inserted_window_dims, n.operand_batching_dims
        place = _places(
            value.ndim, dropped, batch, n.update_window_dims, rank, n.scatter_indices_batching_dims
        )
        sizes = tuple(updates.shape[place[d]] if d in place else 1 for d in range(value.ndim))
        named = n.scatter_dims_to_operand_dims
        return cls.of(op, value.shape, sizes, place, named, batch, dropped, rank)

    @property
    def in_lead(self) -> tuple[int, ...]:
        """Of the dims of slices along `axes`: where they are in `lead`."""
        return tuple(self.lead.index(self.place[d]) for d in self.axes if d in self.place)

    @property
    def numbered(self) -> Shape:
        """The named dims, as numbers in `axes`."""
        return tuple(map(self.axes.index, self.indexed))

    def named(self, indices: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        """The logical indices along `axes`, and whether slices count; both broadcast to `lead`."""
        here = [d for d in self.axes if d in self.place]
        place = dict(zip(map(self.axes.index, here), self.in_lead, strict=True))
        shape, sizes = (tuple(x[d] for d in self.axes) for x in (self.shape, self.sizes))
        columns = at_columns(indices, self.columns)
        return places(shape, sizes, place, len(self.lead), self.numbered, columns, self.mode)


# -- slices at indices -----------------------------------------------------------------------------


def gather(b: Builder, op: Op, value: Value, indices: Value) -> Any:
    """Slices at indices, such as rows of a table.

    Dims that are taken whole stay where they are, and so do batch dims, in which each slice of the
    array has indices of its own.
    """
    if op.requested is not None:
        return divided.gathered(b, op, op.requested, value, indices)
    numbers = op.params["dimension_numbers"]
    if value.layout is None and not numbers.operand_batching_dims:
        return _from_table(b, op, value, indices)
    slices = _Slices.gathered(op, value)
    if slices.stay != sorted(slices.stay):
        return None
    if numbers.operand_batching_dims:
        if value.layout is None:
            value = _by_batch(b, value, indices, numbers)
        return None if value.layout is None else _gathered_along(b, op, value, indices)
    ways: list[Decide] = [_gathered_along if slices.stay else of_replicated]
    sent = nbytes(indices.shape, indices.dtype) + 2 * nbytes(op.out.shape, op.out.dtype)
    if indices.layout is not None and nbytes(value.shape, value.dtype) <= sent:
        if not slices.stay and (made := _from_table(b, op, value, indices)) is not None:
            return made
        ways.append(_gathered_from_table)
    held = Split.of(b, b.on_cores(value), slices.axes)
    if held is not None:
        ways += [
            partial(_gathered_in_place, along=k)
            for k in held.ways(tuple(op.out.shape[k] for k in slices.lead))
        ]
    return cheapest_way(b, op, ways, value, indices)


def _gathered_along(b: Builder, op: Op, value: Value, indices: Value) -> Any:
    """Dims that are indexed are whole on each device; indices are on all, or lie as batch dims."""
    numbers, sizes = op.params["dimension_numbers"], op.params["slice_sizes"]
    s = _Slices.gathered(op, value)
    changed = lax.GatherDimensionNumbers(
        offset_dims=s.in_lead,
        collapsed_slice_dims=tuple(map(s.axes.index, numbers.collapsed_slice_dims)),
        start_index_map=s.numbered,
    )
    bind = op.bound(dimension_numbers=changed, slice_sizes=tuple(sizes[a] for a in s.axes))

    def fn(x: Any, i: Any) -> Any:
        return bind(x, at_columns(i, s.columns))

    batch, where = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    operands, others = _with_indices(b, value, s.axes, indices, batch, where)
    return run(b, op, [(value, s.axes), *operands], fn, *others, out_axes=[s.lead])


def _gathered_in_place(
    b: Builder, op: Op, value: Value, indices: Value, along: int | None
) -> Value | None:
    """Who has a slice sends it to all devices; or to those that have its piece of dim `along`."""
    s, x = _Slices.gathered(op, value), b.on_cores(value)
    held = Split.of(b, x, s.axes)
    assert held is not None
    pieces = Pieces.of(b, held, tuple(op.out.shape[k] for k in s.lead), along)
    offset = op.params["dimension_numbers"].offset_dims
    rows = [k for k in range(op.out.ndim) if k not in offset]  # the dims of the indices, in order
    starts, shape = None, indices.shape
    if along is not None and s.lead[along] in rows:
        d = rows.index(s.lead[along])
        starts, pieces = pieces.spread_out(b, indices, d, held.busy)
        if pieces.own:
            shape = (*shape[:d], pieces.summed[along], *shape[d + 1 :])
    starts = b.replicated(indices) if starts is None else starts
    given = fill(op.params["fill_value"], op.out.dtype) if s.mode == DROP else None

    def named(indices: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        return s.named(indices.reshape(shape))

    out = taken(b, held, x, named, [starts], pieces, op.out, s.lead, given)
    return brought(b, op, out, value, s.axes, s.lead)


def _from_table(b: Builder, op: Op, table: Value, indices: Value) -> Any:
    """Slices of an array that every device gets: they lie as the indices do."""
    numbers = op.params["dimension_numbers"]
    offset_dims = tuple(range(len(numbers.offset_dims)))
    bind = op.bound(dimension_numbers=numbers._replace(offset_dims=offset_dims))
    return run(
        *(b, op, [(indices, (indices.ndim - 1,))]),
        lambda i, x: bind(x, i),
        b.replicated(table),
        out_axes=[tuple(numbers.offset_dims)],
    )


def _gathered_from_table(b: Builder, op: Op, value: Value, indices: Value) -> Any:
    """Every device gets the array; slices are taken where the indices lie, and brought over."""
    if (made := _from_table(b, op, value, indices)) is None:
        return None
    s = _Slices.gathered(op, value)
    return brought(b, op, made[0], value, s.axes, s.lead)


def _by_batch(b: Builder, value: Value, indices: Value, numbers: Any) -> Any:
    """An array that every device has, each core keeping the batch of the indices that it has."""
    batch, places = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    rest = rest_layout(b, indices, tuple(k for k in range(indices.ndim) if k not in places))
    if rest is None or batch != tuple(sorted(batch)) or places != tuple(sorted(places)):
        return value
    axes = tuple(d for d in range(value.ndim) if d not in batch)
    return b.on_cores(value, stacked(rest, axes, tuple(value.shape[d] for d in axes)))


# -- slices written at indices ---------------------------------------------------------------------


def scatter(b: Builder, op: Op, value: Value, indices: Value, updates: Value) -> Any:
    """Updates written, or added, at indices: the gradient of `gather`.

    Not a function of the user's of what is there, as `x.at[index].apply(fn)` has it.
    """
    if op.name == "scatter" and op.params.get("update_jaxpr") is not None:
        return None
    if op.requested is not None and op.name == "scatter-add":
        return divided.added(b, op, op.requested, value, indices, updates)
    s = _Slices.scattered(op, value, updates)
    if s.stay != sorted(s.stay):
        return None
    if op.params["dimension_numbers"].operand_batching_dims:
        return _scattered_along(b, op, value, indices, updates)
    if not s.stay and (few := _added_to_few(b, op, value, indices, updates)) is not None:
        return few
    ways = [_scattered_there, _scattered_along, _scattered_in_place]
    return cheapest_way(b, op, ways if s.stay else [ways[0], ways[2]], value, indices, updates)


# What an update does to the element that it meets.
_COMBINED: dict[str, Any] = {
    "scatter": lambda _, new: new,
    **{"scatter-add": lax.add, "scatter-sub": lax.sub, "scatter-mul": lax.mul},
    **{"scatter-min": lax.min, "scatter-max": lax.max},
}


def _scattered_there(b: Builder, op: Op, value: Value, indices: Value, updates: Value) -> Any:
    """One slice at a place that is known goes to where its part of the array is."""
    s, named = _Slices.scattered(op, value, updates), known_values(indices.spec)
    order = [s.place[d] for d in sorted(s.place)]
    if named is None or prod(indices.shape[:-1]) != 1 or order != sorted(order):
        return None
    starts = [0] * value.ndim
    for d, start in zip(s.indexed, named.reshape(-1)[s.columns], strict=True):
        starts[d] = int(start)
    fitting = known_starts(value.shape, s.sizes, starts)
    x = written_to(b, op, value, s.axes, updates, s.lead, [indices])
    if fitting != starts and s.mode == DROP:
        return x
    one = broadcast(b, squeezed(b, updates, order), s.sizes, sorted(s.place))
    return replaced(b, x, one, fitting or starts, _COMBINED[op.name])


def _scattered_along(b: Builder, op: Op, value: Value, indices: Value, updates: Value) -> Any:
    """Dims that are indexed are whole on each device; indices are on all, or lie as batch dims."""
    numbers = op.params["dimension_numbers"]
    s = _Slices.scattered(op, value, updates)
    changed = lax.ScatterDimensionNumbers(
        update_window_dims=s.in_lead,
        inserted_window_dims=tuple(map(s.axes.index, numbers.inserted_window_dims)),
        scatter_dims_to_operand_dims=s.numbered,
    )
    bind = op.bound(dimension_numbers=changed)

    def fn(x: Any, u: Any, i: Any) -> Any:
        return bind(x, at_columns(i, s.columns), u)

    batch, where = numbers.operand_batching_dims, numbers.scatter_indices_batching_dims
    more, others = _with_indices(b, value, s.axes, indices, batch, where)
    operands = [(value, s.axes), (updates, s.lead), *more]
    return run(b, op, operands, fn, *others, out_axes=[s.axes])


def _scattered_in_place(
    b: Builder, op: Op, value: Value, indices: Value, updates: Value
) -> Value | None:
    """Every device gets all slices, and takes those for places of its own."""
    s = _Slices.scattered(op, value, updates)

    def write(part: jax.Array, starts: jax.Array, new: jax.Array, numbers: Any) -> jax.Array:
        bind = op.bound(dimension_numbers=numbers, mode=DROP, indices_are_sorted=False)
        out: jax.Array = bind(part, starts, new)[0]
        return out

    return put_slices(b, op, value, s.axes, updates, s.lead, s.named, [indices], write)


def _added_to_few(b: Builder, op: Op, value: Value, indices: Value, updates: Value) -> Any:
    """Elements added to an array that is smaller than they are: each device adds up its own first.

    None where they are not more, or do not lie on cores.
    """
    last = updates.ndim  # the columns of the indices; no slice has dims of its own
    few = 2 * prod(value.shape) < prod(updates.shape) and op.name == "scatter-add"
    if not few or last != indices.ndim - 1 or indices.layout is None:
        return None
    if (rest := rest_layout(b, indices, (last,))) is None:
        return None
    named = unstack(b, indices, (last,), rest)
    new = b.on_cores(updates, rest.with_dtype(updates.dtype))
    dims = op.params["dimension_numbers"].scatter_dims_to_operand_dims
    sizes, mode, cores = (1,) * value.ndim, op.params["mode"], len(rest.grid)
    placed = b.placement(rest)
    over = tuple(axis for axes in placed.axes for axis in axes)

    def kernel(named: jax.Array, new: jax.Array) -> list[jax.Array]:
        columns = jnp.moveaxis(in_front(named, 1, cores), 0, -1)
        index, inside = places(value.shape, sizes, {}, columns.ndim - 1, dims, columns, mode)
        inside = inside & valid_mask(rest, placed)
        at = [jnp.where(inside, k, n) for k, n in zip(index, value.shape, strict=True)]
        own = jnp.zeros(value.shape, new.dtype).at[tuple(at)].add(new, mode="drop")
        return [lax.psum(own, over) if over else own]

    made = b.collectives().all_reduce(over, nbytes(value.shape, updates.dtype))
    (total,) = b.run(kernel, [named, new], [Replicated(value.shape, updates.dtype)], made)
    x = b.on_cores(value, like=indices)
    assert isinstance(x.spec, Sharded)
    added = b.on_cores(total, x.spec.layout)
    return b.run(lambda x, y: [x + y], [x, added], [x.spec.with_oob(None)])[0]


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


INDEXING: dict[str, Rule] = {
    "gather": Rule(gather, nothing),
    "scatter": Rule(scatter, nothing),
    **{f"scatter-{how}": Rule(scatter, of_updates) for how in ("add", "mul", "min", "max", "sub")},
}
