"""`dot_general`: which collapsed dims are batch, free or contracted, and how the result lies.

Rows lie as the left operand's, columns as the right one's; where that is not the policy's layout
for the result (the left operand's grid and tile), the result moves there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import Any

import jax
import numpy as np

from gridlayout.affine import AffineExpr, AffineMap, constant, dim
from gridlayout.collapse import joined
from gridlayout.grid_layout import GridLayout
from gridlayout.layout import Layout
from gridlayout.ops import values as v
from gridlayout.ops.algorithms import Matrices, Operand, Plan, choose
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.policy import same_grid_and_tile
from gridlayout.ops.product import (
    Dims,
    Params,
    Product,
    Row,
    Side,
    gathered_bytes,
    multiplied,
)
from gridlayout.ops.report import RULE
from gridlayout.ops.schedules import multiplied as by_plan
from gridlayout.ops.shapes import transpose
from gridlayout.ops.values import Context
from gridlayout.sharding.device_grid import DeviceGrid

Pair = tuple[Dims, Dims]
# Batch dims, by number, that are joined, and the cores that each run of them is divided over.
Runs = tuple[tuple[Dims, int], ...]


def dot_general(
    ctx: Context, eqn: Any, lhs: Any, rhs: Any, follower: Any = None
) -> tuple[str, Any]:
    """The product; `follower`, a transpose of it, is folded in."""
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    if not np.ndim(lhs) or not np.ndim(rhs):
        return RULE, _scaled(ctx, eqn, lhs, rhs, follower)
    like = v.layout_of(lhs) or v.layout_of(rhs)
    x, y = (v.on_cores(ctx, value, like=like) for value in (lhs, rhs))
    contract, batch = (tuple(lc), tuple(rc)), (tuple(lb), tuple(rb))
    left, right = _sides(ctx, x, y, contract, batch)
    aval = eqn.outvars[0].aval
    order = tuple(range(aval.ndim)) if follower is None else follower.params["permutation"]
    shape = tuple(aval.shape[d] for d in order)
    product = _product(left, right, contract, batch, tuple(order), shape, aval.dtype)
    layouts = (x.layout, y.layout)
    matrices = _matrices(product, layouts, batch, tuple(order), shape, aval.dtype)
    wanted = ctx.choose(shape, aval.dtype, left.layout)
    if product.natural is not None and isinstance(wanted, GridLayout) and wanted.face is None:
        have, want = _blocks(product.natural), _blocks(wanted)
        # Batch, rows and columns stay apart; which of the grid's dims each takes is left open.
        if have == want or (batch[0] and sorted(have) == sorted(want)):
            wanted = product.natural
    received = gathered_bytes(ctx.device, product, layouts)
    plan = choose(ctx.algorithm, matrices, ctx.device, wanted, received)
    ctx.note = "gathered" if plan is None else plan.name
    params = tuple((name, eqn.params[name]) for name in ("precision", "preferred_element_type"))
    run, done = _program(ctx.device, plan or product, layouts, wanted, params)
    storage = run(x.storage, y.storage)
    ctx.moved += done.moved
    ctx.masks += done.masks
    ctx.held += done.held
    if not shape:
        return RULE, storage
    return RULE, GridArray(storage, wanted.with_dtype(aval.dtype), ctx.device)


@lru_cache(maxsize=4096)
def _program(
    device: DeviceGrid,
    job: Product | Plan,
    layouts: tuple[Layout, Layout],
    wanted: Layout,
    params: Params,
) -> tuple[Callable[[jax.Array, jax.Array], jax.Array], Context]:
    """A product on storages as a function that is traced once, and what it counted then."""
    done = Context(device, same_grid_and_tile, None)

    @partial(jax.jit, inline=True)
    def product(*storages: jax.Array) -> jax.Array:
        done.moved = done.masks = done.held = 0
        x, y = (GridArray(a, layout, device) for a, layout in zip(storages, layouts, strict=True))
        if isinstance(job, Product):
            out = multiplied(done, params, job, x, y, wanted)
        else:
            out = by_plan(done, params, job, x, y, wanted)
        return out.storage if isinstance(out, GridArray) else out

    return product, done


def _product(
    left: Side, right: Side, contract: Pair, batch: Pair, order: Dims, shape: Dims, dtype: Any
) -> Product:
    rows = _rows(left, right, batch, order)
    return Product(left, right, contract, rows, _natural(left, rows, dtype, shape))


def _matrices(
    product: Product,
    layouts: tuple[Layout, Layout],
    batch: Pair,
    order: Dims,
    shape: Dims,
    dtype: Any,
) -> Matrices:
    """The product as `algorithms.py` takes it, rows from the left operand."""
    at, found = len(batch[0]), []
    sides = (product.left, product.right)
    for side, layout, own, contract in zip(sides, layouts, batch, product.contract, strict=True):
        free = tuple(d for d in range(side.layout.ndim) if d not in own and d not in contract)
        names = tuple(order.index(at + i) for i in range(len(free)))
        cores = prod(side.layout.grid[k] for k in side.free)
        found.append((Operand(layout, own, free, contract), names, cores))
        at += len(free)
    (left, rows, down), (right, columns, across) = found
    names = tuple(order.index(i) for i in range(len(batch[0])))
    grid = (prod(product.left.layout.grid[k] for k in product.left.batch), down, across)
    return Matrices(left, right, shape, dtype, names, rows, columns, grid)


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


def _blocks(layout: GridLayout) -> list[tuple[int, int]]:
    """Cores and tile of each collapsed dim."""
    return list(zip(layout.grid, layout.padded_tile, strict=True))


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


def _sides(
    ctx: Context, x: GridArray, y: GridArray, contract: Pair, batch: Pair
) -> tuple[Side, Side]:
    """Layouts for both operands: one role for each collapsed dim, and batch dims alike in both.

    Their own, where these are so.
    """
    left = _side(x.layout, batch[0], contract[0])
    right = _side(y.layout, batch[1], contract[1])
    if left is not None and right is not None and _same_batch(left, right, batch):
        return left, right
    like = x.layout if isinstance(x.layout, GridLayout) else ctx.choose(x.shape, x.dtype, x.layout)
    assert isinstance(like, GridLayout)
    if batch[0]:
        return _batched(ctx.device, (x.layout, y.layout), like, contract, batch)
    return (
        left or _arrangement(like, x.layout, (), (), contract[0], False),
        right or _arrangement(like, y.layout, (), (), contract[1], True),
    )


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
def _batched(
    device: DeviceGrid,
    layouts: tuple[Layout, Layout],
    like: GridLayout,
    contract: Pair,
    batch: Pair,
) -> tuple[Side, Side]:
    """Layouts for both operands, batch dims alike in both, for which the fewest bytes move.

    Batch dims may lie as either operand holds them, or joined, over all cores or over all but those
    of the last grid dim. What leaves a device a quarter more to multiply than need be is no choice.
    """
    joint = tuple(range(len(batch[0])))
    found = []
    for runs in (
        *(_held(layout, dims) for layout, dims in zip(layouts, batch, strict=True)),
        ((joint, prod(like.grid)),),
        ((joint, prod(like.grid[:-1])),),
    ):
        left = _arrangement(like, layouts[0], runs, batch[0], contract[0], False)
        right = _arrangement(like, layouts[1], runs, batch[1], contract[1], True)
        x, y = left.layout, right.layout
        shape = [x.shape[d] for d in batch[0]]
        shape += [x.shape[d] for d in range(x.ndim) if d not in (*batch[0], *contract[0])]
        shape += [y.shape[d] for d in range(y.ndim) if d not in (*batch[1], *contract[1])]
        order = tuple(range(len(shape)))
        product = _product(left, right, contract, batch, order, tuple(shape), x.dtype)
        assert product.natural is not None
        cores = prod(device.placement(product.natural.grid).per_device)
        moved = gathered_bytes(device, product, layouts)
        found.append((cores * prod(product.natural.local_shape), moved, (left, right)))
    least = min(work for work, _, _ in found)
    return min((each for each in found if 4 * each[0] <= 5 * least), key=lambda each: each[1])[2]


def _held(layout: Layout, batch: Dims) -> Runs:
    """Each batch dim by itself, over the cores of the grid dims where it is the outermost."""
    cores = dict.fromkeys(batch, 1)
    if isinstance(layout, GridLayout) and layout.groups is not None:
        for k, group in enumerate(layout.groups):
            strides = layout.linear.coefficients()[k][0]
            first = max(group, key=lambda d: (layout.shape[d] > 1, abs(strides[d])), default=None)
            if first in cores:
                cores[first] *= layout.grid[k]
    return tuple(((i,), cores[d]) for i, d in enumerate(batch))


@lru_cache(maxsize=4096)
def _arrangement(
    like: GridLayout, layout: Layout, runs: Runs, batch: Dims, contract: Dims, is_right: bool
) -> Side:
    """The batch dims in `runs`, then free and contracted dims each joined into one collapsed dim.

    Without batch dims, left rows go down the grid's first dims and right columns along its last
    one. Cores that the batch dims leave go along the last dim of either operand.
    """
    shape = layout.shape
    free = tuple(d for d in range(len(shape)) if d not in batch and d not in contract)
    rows, columns = prod(like.grid[:-1]), like.grid[-1]
    if batch:
        rows, columns = 1, max(prod(like.grid) // prod(cores for _, cores in runs), 1)
    tall, wide = like.padded_tile[-2:] if len(like.grid) > 1 else (1, like.padded_tile[-1])
    roles = [(tuple(batch[i] for i in run), cores, 1) for run, cores in runs]
    pair = (contract, free) if is_right else (free, contract)
    roles += [(pair[0], rows, tall), (pair[1], columns, wide)]
    found = GridLayout(
        shape,
        layout.dtype,
        tuple(g for _, g, _ in roles),
        tuple(t for _, _, t in roles) if like.tile else None,
        linear=AffineMap(len(shape), tuple(joined(shape, dims) for dims, _, _ in roles)),
        memory_space=like.memory_space,
    )
    side = _side(found, batch, contract)
    assert side is not None
    return side


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
