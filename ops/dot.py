"""`dot_general` on the grid: per-shard products inside `shard_map`, with explicit collectives.

Each device gathers the contracted dims of its rows of the left operand and of its columns of the
right one, brings them from tiles to logical order (which drops their padding, so nothing needs a
mask), multiplies, and keeps the result in tiles. Rows lie as the left operand's, columns as the
right one's; then the policy's layout, the left operand's grid and tile, if that differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from gridlayout.affine import AffineExpr, AffineMap, constant, dim
from gridlayout.grid_layout import GridLayout
from gridlayout.layout import Layout
from gridlayout.ops import packing
from gridlayout.ops import values as v
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.report import RULE
from gridlayout.ops.shapes import transpose
from gridlayout.ops.values import Context

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Side:
    """One operand's collapsed dims by what the product does with them, each in result order.

    `empty` collapsed dims hold no logical dim: only their position 0 counts.
    """

    layout: GridLayout
    batch: Dims
    free: Dims
    contract: Dims
    empty: Dims


@dataclass(frozen=True)
class Row:
    """A collapsed dim of the result: the operand and the collapsed dim there that it comes from.

    names: pairs (logical dim of the operand, logical dim of the result).
    """

    side: Side
    is_right: bool
    k: int
    names: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Product:
    """All that is static about one product; `natural` is None when the result is a scalar."""

    left: Side
    right: Side
    contract: tuple[Dims, Dims]
    rows: tuple[Row, ...]
    natural: GridLayout | None

    @property
    def first(self) -> int:
        """The collapsed dim of `natural` that is row 0: those before it hold nothing."""
        return 0 if self.natural is None else len(self.natural.grid) - len(self.rows)


def dot_general(
    ctx: Context, eqn: Any, lhs: Any, rhs: Any, follower: Any = None
) -> tuple[str, Any]:
    """The product; `follower`, a transpose of it, is folded in."""
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    if not np.ndim(lhs) or not np.ndim(rhs):
        return RULE, _scaled(ctx, eqn, lhs, rhs, follower)
    like = v.layout_of(lhs) or v.layout_of(rhs)
    x, y = (v.on_cores(ctx, value, like=like) for value in (lhs, rhs))
    left, right, x, y = _arranged(ctx, x, y, (tuple(lc), tuple(rc)), (tuple(lb), tuple(rb)))
    aval = eqn.outvars[0].aval
    order = tuple(range(aval.ndim)) if follower is None else follower.params["permutation"]
    shape = tuple(aval.shape[d] for d in order)
    rows = _rows(left, right, (tuple(lb), tuple(rb)), tuple(order))
    product = Product(
        left, right, (tuple(lc), tuple(rc)), rows, _natural(left, rows, aval.dtype, shape)
    )
    storage = _multiplied(ctx, eqn, product, x, y)
    if product.natural is None:
        return RULE, storage
    out = GridArray(storage, product.natural, ctx.device)
    wanted = ctx.choose(shape, aval.dtype, x.layout)
    if isinstance(wanted, GridLayout) and _blocks(wanted) == _blocks(product.natural):
        return RULE, out
    return RULE, ctx.relayout(out, wanted)


def _scaled(ctx: Context, eqn: Any, lhs: Any, rhs: Any, follower: Any) -> Any:
    """A product with a scalar, which lies as the other operand."""
    scalar, other = (lhs, rhs) if not np.ndim(lhs) else (rhs, lhs)
    dtype = eqn.outvars[0].aval.dtype
    if not np.ndim(other):
        return (v.plain(ctx, scalar) * v.plain(ctx, other)).astype(dtype)
    x = v.on_cores(ctx, other)
    storage = (x.storage.astype(dtype) * v.plain(ctx, scalar).astype(dtype)).astype(dtype)
    out = GridArray(storage, x.layout.with_dtype(dtype), ctx.device)
    return out if follower is None else transpose(ctx, follower, out)[1]


def _blocks(layout: GridLayout) -> Any:
    return layout.grid, layout.padded_tile, layout.face


# -- which collapsed dims take part how ----------------------------------------------------------


def _side(layout: Layout, batch: Dims, contract: Dims) -> Side | None:
    """The roles of a layout's collapsed dims, or None where one mixes roles."""
    if not isinstance(layout, GridLayout) or layout.groups is None or layout.face:
        return None
    if layout.tile_format is not None or 0 in layout.shape:
        return None
    roles: dict[str, list[int]] = {"batch": [], "free": [], "contract": [], "empty": []}
    named = {d for group in layout.groups for d in group}
    if any(d not in named for d in (*batch, *contract)) or any(
        d not in named for d in range(layout.ndim)
    ):
        return None
    for k, group in enumerate(layout.groups):
        kinds = {"batch" if d in batch else "contract" if d in contract else "free" for d in group}
        if len(kinds) > 1:
            return None
        if not kinds and layout.collapsed_shape[k] != 1:
            return None
        roles[kinds.pop() if kinds else "empty"].append(k)
    return Side(layout, *(tuple(ks) for ks in roles.values()))


def _arranged(
    ctx: Context, x: GridArray, y: GridArray, contract: tuple[Dims, Dims], batch: tuple[Dims, Dims]
) -> tuple[Side, Side, GridArray, GridArray]:
    """Both operands in layouts whose collapsed dims each have one role, batch dims alike in both."""
    left = _side(x.layout, batch[0], contract[0])
    right = _side(y.layout, batch[1], contract[1])
    if left is not None and right is not None and _same_batch(left, right, batch):
        return left, right, x, y
    like = x.layout if isinstance(x.layout, GridLayout) else ctx.choose(x.shape, x.dtype, x.layout)
    assert isinstance(like, GridLayout)
    if left is None or batch[0]:
        x = ctx.relayout(x, _canonical(like, x.shape, x.dtype, batch[0], contract[0], False))
        left = _side(x.layout, batch[0], contract[0])
    if right is None or batch[0]:
        y = ctx.relayout(y, _canonical(like, y.shape, y.dtype, batch[1], contract[1], True))
        right = _side(y.layout, batch[1], contract[1])
    assert left is not None
    assert right is not None
    return left, right, x, y


def _same_batch(left: Side, right: Side, batch: tuple[Dims, Dims]) -> bool:
    """Whether the batch dims lie alike in both: the same joins, grid and tile, in one order."""
    if not batch[0]:
        return True
    names = [{d: i for i, d in enumerate(dims)} for dims in batch]

    def rows(side: Side, name: dict[int, int]) -> list[Any]:
        layout = side.layout
        found = []
        for k in side.batch:
            coefficients, offset = layout.linear.coefficients()[k]
            terms = sorted((name[d], coefficients[d]) for d in layout.groups[k])  # type: ignore[index]
            found.append((terms, offset, layout.grid[k], layout.padded_tile[k]))
        return found

    return rows(left, names[0]) == rows(right, names[1])


@lru_cache(maxsize=4096)
def _canonical(
    like: GridLayout, shape: Dims, dtype: Any, batch: Dims, contract: Dims, is_right: bool
) -> GridLayout:
    """Batch, free and contracted dims each joined into one collapsed dim.

    Batch and left rows go down the grid's first dim (batch dims first), right columns along its
    last one.
    """
    free = tuple(d for d in range(len(shape)) if d not in batch and d not in contract)
    rows, columns = prod(like.grid[:-1]), like.grid[-1]
    tall, wide = like.padded_tile[-2:] if len(like.grid) > 1 else (1, like.padded_tile[-1])
    if is_right:
        roles = [(contract, 1 if batch else rows, tall), (free, columns, wide)]
    else:
        roles = [(free, 1 if batch else rows, tall), (contract, columns, wide)]
    if batch:
        roles.insert(0, (batch, rows, 1))
    return GridLayout(
        shape,
        dtype,
        tuple(g for _, g, _ in roles),
        tuple(t for _, _, t in roles) if like.tile else None,
        linear=AffineMap(len(shape), tuple(_joined(shape, dims) for dims, _, _ in roles)),
        memory_space=like.memory_space,
    )


def _joined(shape: Dims, dims: Dims) -> AffineExpr:
    expr, stride = constant(0), 1
    for d in reversed(dims):
        expr, stride = dim(d) * stride + expr, stride * shape[d]
    return expr


def _rows(left: Side, right: Side, batch: tuple[Dims, Dims], order: Dims) -> tuple[Row, ...]:
    """The result's collapsed dims, by the first result dim each holds.

    So the rows of a transposed product lie along the first grid dim as well.
    """
    at = len(batch[0])
    found = []
    for side, is_right in ((left, False), (right, True)):
        groups = side.layout.groups or ()
        names = {d: i for i, d in enumerate(batch[is_right])}
        contracted = {d for k in side.contract for d in groups[k]}
        for d in range(side.layout.ndim):
            if d not in names and d not in contracted:
                names[d], at = at, at + 1
        for k in side.free if is_right else side.batch + side.free:
            pairs = tuple((d, order.index(names[d])) for d in groups[k])
            found.append(Row(side, is_right, k, pairs))
    return tuple(sorted(found, key=lambda row: min(new for _, new in row.names)))


@lru_cache(maxsize=4096)
def _natural(left: Side, rows: tuple[Row, ...], dtype: Any, shape: Dims) -> GridLayout | None:
    """The result's layout when no data moves after the product: each row as its operand has it."""
    if not shape:
        return None
    missing = max(len(left.layout.grid) - len(rows), 0)
    exprs: list[AffineExpr] = [constant(0)] * missing
    for row in rows:
        layout = row.side.layout
        renamed: list[AffineExpr] = [constant(0)] * layout.ndim
        for old, new in row.names:
            renamed[old] = dim(new)
        line = AffineMap(layout.ndim, (layout.linear.results[row.k],))
        exprs += line.compose(AffineMap(len(shape), tuple(renamed))).results
    tiled = any(row.side.layout.tile for row in rows)
    ones = (1,) * missing
    return GridLayout(
        shape,
        dtype,
        (*ones, *(row.side.layout.grid[row.k] for row in rows)),
        (*ones, *(row.side.layout.padded_tile[row.k] for row in rows)) if tiled else None,
        linear=AffineMap(len(shape), tuple(exprs)),
        memory_space=left.layout.memory_space,
    )


# -- the product -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """How one operand enters the kernel: its spec and slots, and the mesh axes it gathers there."""

    side: Side
    spec: tuple[tuple[str, ...], ...]
    slots: Dims
    gather: tuple[tuple[int, tuple[str, ...]], ...]

    def received(self, sizes: Any, itemsize: int) -> int:
        """Bytes received by the gathers, over all devices."""
        split = prod(sizes[a] for axes in self.spec for a in axes)
        local = prod(self.slots) * prod(self.side.layout.local_shape) // split
        times = prod(sizes[a] for _, axes in self.gather for a in axes)
        return local * itemsize * (times - 1) * prod(sizes.values())


def _multiplied(ctx: Context, eqn: Any, product: Product, x: GridArray, y: GridArray) -> jax.Array:
    """The storage of the product in its natural layout, or the scalar that it is."""
    mesh = ctx.device.fine
    entries = _entries(ctx, product)
    storages = [
        _reslotted(array.storage, entry) for array, entry in zip((x, y), entries, strict=True)
    ]
    for array, entry in zip((x, y), entries, strict=True):
        ctx.moved += entry.received(mesh.shape, array.dtype.itemsize)
    params = {k: eqn.params[k] for k in ("precision", "preferred_element_type")}

    def kernel(a: jax.Array, b: jax.Array) -> jax.Array:
        left, left_shape = _matrix(a, entries[0], product.contract[0])
        right, right_shape = _matrix(b, entries[1], product.contract[1])
        out = _times(left, right, params)
        if product.natural is None:
            return out.reshape(())
        return _in_tiles(out, left_shape, right_shape, product)

    spec = () if product.natural is None else ctx.device.fine_placement(product.natural.grid).spec
    return jax.shard_map(  # type: ignore[no-any-return]
        kernel,
        mesh=mesh,
        in_specs=tuple(PartitionSpec(*(axes or None for axes in e.spec)) for e in entries),
        out_specs=PartitionSpec(*spec),
        check_vma=False,
    )(*storages)


def _entries(ctx: Context, product: Product) -> tuple[Entry, Entry]:
    """Rows enter as the result wants them; contracted dims keep the mesh axes left over."""
    where: dict[tuple[bool, int], tuple[tuple[str, ...], int]] = {}
    if product.natural is not None:
        placement = ctx.device.fine_placement(product.natural.grid)
        for i, row in enumerate(product.rows, product.first):
            where[row.is_right, row.k] = (placement.axes[i], placement.slots[i])
        for a, b in zip(product.left.batch, product.right.batch, strict=True):
            where[True, b] = where[False, a]
    return _entry(ctx, product.left, False, where), _entry(ctx, product.right, True, where)


def _entry(ctx: Context, side: Side, is_right: bool, where: dict[Any, Any]) -> Entry:
    own = ctx.device.fine_placement(side.layout.grid)
    taken = {a for (right, _), (axes, _) in where.items() if right == is_right for a in axes}
    spec, slots, gather = [], [], []
    for k in range(len(side.layout.grid)):
        if k in side.empty:  # one position, which every device gets
            axes, count = (), 1
        elif (is_right, k) in where:
            axes, count = where[is_right, k]
        else:
            axes, count = tuple(a for a in own.axes[k] if a not in taken), own.slots[k]
            gather += [(k, axes)] if axes else []
        spec.append(axes)
        slots.append(count)
    return Entry(side, tuple(spec), tuple(slots), tuple(gather))


def _reslotted(storage: jax.Array, entry: Entry) -> jax.Array:
    """The storage with as many slots in each grid dim as the kernel's spec divides."""
    grid = tuple(
        1 if k in entry.side.empty else g for k, g in enumerate(entry.side.layout.grid)
    )
    if storage.shape[: len(grid)] == entry.slots:
        return storage
    storage = storage[tuple(slice(g) for g in grid)]
    grow = [(0, s - g, 0) for s, g in zip(entry.slots, grid, strict=True)]
    rest = [(0, 0, 0)] * (storage.ndim - len(grid))
    return lax.pad(storage, jnp.zeros((), storage.dtype), grow + rest)


@dataclass(frozen=True)
class _Matrix:
    """(batch, free, contracted), or with the last two exchanged."""

    array: jax.Array
    contract_first: bool


def _matrix(a: jax.Array, entry: Entry, contract: Dims) -> tuple[_Matrix, dict[int, Dims]]:
    """One device's part of an operand as a matrix, its contracted dims gathered whole.

    Batch and free dims stay as they lie in cores and tiles. Contracted dims leave the padding of
    their tiles behind before they are gathered, and come to logical order after. Also gives each
    kept collapsed dim's local shape.
    """
    side, layout = entry.side, entry.side.layout
    shapes = {k: tuple(a.shape[d] for d in layout.axis_dims(k)) for k in side.batch + side.free}
    batch, free = (prod(prod(shapes[k]) for k in ks) for ks in (side.batch, side.free))
    first = bool(side.contract) and (not side.free or min(side.contract) < min(side.free))
    empty, *dims = (
        [d for k in ks for d in layout.axis_dims(k)]
        for ks in (side.empty, side.batch, side.contract, side.free)
    )
    order = [*empty, *dims[0], *(dims[1] + dims[2] if first else dims[2] + dims[1])]
    local = [n for k in side.contract for n in _local(a, layout, k)]
    a = a.transpose(order)[(0,) * len(empty)]
    a = a.reshape((batch, *local, free) if first else (batch, free, *local))
    start = 1 if first else 2
    for i, k in enumerate(side.contract):
        a = lax.slice_in_dim(a, 0, layout.shard_shape[k], axis=start + 2 * i + 1)
    chunks = [
        a.shape[start + 2 * i] * a.shape[start + 2 * i + 1] for i in range(len(side.contract))
    ]
    a = a.reshape((batch, *chunks, free) if first else (batch, free, *chunks))
    for k, axes in entry.gather:
        a = _gathered(a, axes, start + side.contract.index(k))
    for i, k in enumerate(side.contract):
        a = lax.slice_in_dim(a, 0, layout.collapsed_shape[k], axis=start + i)
    a = _in_logical_order(a, side, contract, start)
    return _Matrix(a.reshape((batch, -1, free) if first else (batch, free, -1)), first), shapes


def _local(a: jax.Array, layout: GridLayout, k: int) -> tuple[int, int]:
    """Cores of a collapsed dim on this device, and positions in each core."""
    core, *inside = (a.shape[d] for d in layout.axis_dims(k))
    return core, prod(inside)


def _gathered(a: jax.Array, axes: tuple[str, ...], at: int) -> jax.Array:
    """All devices' parts along dim `at`, in one dim.

    XLA gathers along the first dim, one block after another; a transpose then puts them in place.
    """
    blocks = lax.all_gather(a, axes, axis=0, tiled=False)
    blocks = jnp.moveaxis(blocks, 0, at)
    return blocks.reshape(*a.shape[:at], -1, *a.shape[at + 1 :])


def _in_logical_order(a: jax.Array, side: Side, contract: Dims, start: int) -> jax.Array:
    """Collapsed contracted dims, at `start`, as the logical ones in the order of `contract`."""
    layout = side.layout
    rows = tuple(layout.linear.results[k] for k in side.contract)
    if rows == tuple(dim(d) for d in contract) or not rows:
        return a
    part, kept = _restricted(layout, side.contract)
    order = tuple(kept.index(d) for d in contract)
    axes = tuple(range(start, start + len(rows)))
    lead = tuple(d for d in range(a.ndim) if d not in axes)
    blocks = a.transpose(*lead, *axes)
    blocks = blocks.reshape(-1, *part.physical_shape)
    logical = jax.vmap(partial(packing.unpack, layout=part))(blocks)
    logical = logical.transpose(0, *(d + 1 for d in order))
    logical = logical.reshape(*(a.shape[d] for d in lead), -1)
    return jnp.moveaxis(logical, -1, start)


@lru_cache(maxsize=4096)
def _restricted(layout: GridLayout, ks: Dims) -> tuple[GridLayout, Dims]:
    """A layout of the logical dims of some collapsed dims alone, on one core, and those dims."""
    kept = tuple(sorted(d for k in ks for d in (layout.groups or ())[k]))
    exprs: list[AffineExpr] = [constant(0)] * layout.ndim
    for i, d in enumerate(kept):
        exprs[d] = dim(i)
    lines = AffineMap(layout.ndim, tuple(layout.linear.results[k] for k in ks))
    shape = tuple(layout.shape[d] for d in kept)
    linear = lines.compose(AffineMap(len(kept), tuple(exprs)))
    return GridLayout(shape, layout.dtype, (1,) * len(ks), linear=linear), kept


def _times(a: _Matrix, b: _Matrix, params: dict[str, Any]) -> jax.Array:
    """(batch, left rows, right rows); without a batch dim in the product where there is one batch."""
    left, right = (1 if m.contract_first else 2 for m in (a, b))
    if a.array.shape[0] == 1:
        dims = (((left - 1,), (right - 1,)), ((), ()))
        return lax.dot_general(a.array[0], b.array[0], dims, **params)[None]
    return lax.dot_general(a.array, b.array, (((left,), (right,)), ((0,), (0,))), **params)


def _in_tiles(
    out: jax.Array, left: dict[int, Dims], right: dict[int, Dims], product: Product
) -> jax.Array:
    """The product's rows and columns back as cores and tiles, in the order of the natural layout."""
    natural = product.natural
    assert natural is not None
    keys = [(False, k) for k in product.left.batch + product.left.free]
    keys += [(True, k) for k in product.right.free]
    shapes = {key: (right if key[0] else left)[key[1]] for key in keys}
    # Every row has cores, tiles and, if the result is tiled, positions in the tile.
    depth = 3 if natural.tile else 2
    full = {key: (*shape, *(1,) * (depth - len(shape))) for key, shape in shapes.items()}
    out = out.reshape([n for key in keys for n in full[key]])
    start = {key: i * depth for i, key in enumerate(keys)}
    rows = [(row.is_right, row.k) for row in product.rows]
    order = [start[key] + level for level in range(depth) for key in rows]
    out = out.transpose(order)
    shape = []
    for level in range(depth):
        shape += [1] * product.first + [full[key][level] for key in rows]
    return out.reshape(shape)
