"""`dot_general`: the roles of collapsed dims (batch, free, contracted), and the result's layout.

Rows are placed as in the left operand, columns as in the right one. Where that is not the result's
requested layout (the one to which its consumers relay it out, else the policy's), the result is
relaid out to that.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache, partial
from math import prod
from typing import Any

import jax.numpy as jnp

from gridlayout.affine.map import AffineExpr, AffineMap, constant, dim, linearized
from gridlayout.document.grid_layout import GridLayout
from gridlayout.dtypes import has_zero
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.fitting import most_bytes, storage_bytes
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.decision import Choice, Decide
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.decisions.views import transposed
from gridlayout.ops.products import schedules
from gridlayout.ops.products.algorithms import ALGORITHMS, Matrices, Operand, Plan
from gridlayout.ops.products.choose import choose, price
from gridlayout.ops.products.divided import divided
from gridlayout.ops.products.gathered import Product, Row, gathered_cost, multiplied
from gridlayout.ops.products.inputs import Dims, Side
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS

Pair = tuple[Dims, Dims]
# Runs of joined batch dims, by number, and the number of cores that divide each run.
Runs = tuple[tuple[Dims, int], ...]


def dot_general(b: Builder, op: Op, lhs: Value, rhs: Value) -> Any:
    """Return the product, with its dims in the requested order."""
    (lc, rc), (lb, rb) = op.params["dimension_numbers"]
    if not lhs.ndim or not rhs.ndim:
        return _scaled(b, op, lhs, rhs)
    for value in (lhs, rhs):
        if not has_zero(value.dtype):
            raise LayoutError(
                f"dot_general of {value.dtype.name}, which has no zero for the padding: cast it "
                "first, as to bfloat16"
            )
    if op.requested is not None:
        return divided(b, op, op.requested, lhs, rhs)
    like = lhs.layout or rhs.layout
    x, y = (b.on_cores(value, like=like) for value in (lhs, rhs))
    assert x.layout is not None
    assert y.layout is not None
    contract, batch = (tuple(lc), tuple(rc)), (tuple(lb), tuple(rb))
    left, right = _sides(b, x, y, contract, batch)
    shape, dtype = op.out.shape, op.out.dtype
    order = op.permutation or tuple(range(len(shape)))
    product = _product(left, right, contract, batch, order, shape, dtype)
    layouts = (x.layout.with_oob(None), y.layout.with_oob(None))
    matrices = _matrices(product, layouts, batch, order, shape, dtype)
    target = _unmoved(b.wanted(op, left.layout), product.natural, bool(batch[0]))
    target = _cheaper(b, op, product, layouts, target)
    cost = gathered_cost(b.device, product, layouts, target)
    priced = cost[0], price(b.device, cost[1])
    pick = partial(choose, matrices, b.device, target, priced)

    def way(plan: Plan | None) -> Decide:
        def rule(b: Builder, op: Op, lhs: Value, rhs: Value) -> Value:
            x, y = (b.on_cores(value, like=like) for value in (lhs, rhs))
            b.note = "gathered" if plan is None else plan.name
            b.device_flops = 2 * (cost[0] if plan is None else plan.work)
            if plan is None:
                return multiplied(b, op, product, x, y, target)
            return schedules.multiplied(b, op, plan, x, y, target)

        return rule

    least = prod(matrices.extents) * matrices.k  # multiplications, of all devices
    is_least = not cost[1] and cost[0] * b.device.size <= least
    best = None if b.env.algorithm is None and is_least else pick(b.env.algorithm)

    def others() -> list[Decide]:
        found = []
        for name in ALGORITHMS if b.env.algorithm is None else ():
            with suppress(LayoutError):  # the algorithm does not fit the devices
                plan = pick(name)
                if (plan is None) == (name == "gathered") and plan != best:
                    found.append(way(plan))
        return found

    return Choice(way(best), others)


def _unmoved(target: Layout, natural: GridLayout | None, has_batch: bool) -> Layout:
    """Return the natural layout instead of the target where both have equal blocks and cores.

    Batch, rows and columns stay separate; the grid dim of each is left open.
    """
    grid = target.as_grid
    if natural is None or grid is None or grid.face is not None or grid.row_alignment:
        return target
    have, want = _blocks(natural), _blocks(grid)
    is_same = have == want or (has_batch and sorted(have) == sorted(want))
    return natural if is_same else target


def _cheaper(
    b: Builder, op: Op, product: Product, layouts: tuple[Layout, Layout], target: Layout
) -> Layout:
    """Return the natural layout of a vector without a requested layout, if that sends less.

    Grids are made for matrices, so the policy's layout of a vector is only one of several.
    """
    natural = product.natural
    if natural is None or op.layout is not None or len(op.out.shape) != 1:
        return target
    most = most_bytes(natural.data_bytes, layouts, b.device)
    if b.env.policy is not same_grid_and_tile or storage_bytes(natural, b.device) > most:
        return target

    def seconds(layout: Layout) -> float:
        return price(b.device, gathered_cost(b.device, product, layouts, layout)[1])

    return natural if seconds(natural) < seconds(target) else target


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
    """Return the product in the form of `algorithms.py`, with the left operand's rows."""
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


def _scaled(b: Builder, op: Op, lhs: Value, rhs: Value) -> Value:
    """Return a product with a scalar, in the other operand's layout."""
    scalar, other = (lhs, rhs) if not lhs.ndim else (rhs, lhs)
    dtype, factor = op.out.dtype, b.replicated(scalar)
    x = b.on_cores(other) if other.ndim else b.replicated(other)
    spec: Any = Replicated((), dtype)
    if isinstance(x.spec, Sharded):
        spec = Sharded(x.spec.layout.with_dtype(dtype), x.spec.placement)
    (out,) = b.run(
        lambda x, y: [jnp.asarray(x, dtype) * jnp.asarray(y, dtype)],
        [x, factor],
        [spec],
    )
    return out if op.permutation is None else transposed(b, out, op.permutation)


def _blocks(layout: GridLayout) -> list[tuple[int, int]]:
    """Return the cores and the tile of each collapsed dim."""
    return list(zip(layout.grid, layout.padded_tile, strict=True))


# -- roles of collapsed dims -----------------------------------------------------------------------


def _side(layout: Layout, batch: Dims, contract: Dims) -> Side | None:
    """Return the roles of a layout's collapsed dims, or None where a dim mixes roles."""
    own = layout.grouped
    if own is None or own.face or own.tile_format is not None or 0 in own.shape:
        return None
    if own.row_multiple > 1 and own.tile is None:
        return None
    roles: dict[str, list[int]] = {"batch": [], "free": [], "contract": [], "empty": []}
    named = {d for group in own.groups for d in group}
    if any(d not in named for d in (*batch, *contract)) or any(
        d not in named for d in range(own.ndim)
    ):
        return None
    for k, group in enumerate(own.groups):
        kinds = {"batch" if d in batch else "contract" if d in contract else "free" for d in group}
        if len(kinds) > 1:
            return None
        if not kinds and own.collapsed_shape[k] != 1:
            return None
        roles[kinds.pop() if kinds else "empty"].append(k)
    return Side(own, *(tuple(ks) for ks in roles.values()))


def _sides(b: Builder, x: Value, y: Value, contract: Pair, batch: Pair) -> tuple[Side, Side]:
    """Return layouts for both operands: one role per collapsed dim, and equal batch dims in both.

    These are the operands' own layouts where they are like that.
    """
    assert x.layout is not None
    assert y.layout is not None
    layouts = (x.layout.with_oob(None), y.layout.with_oob(None))
    left = _side(layouts[0], batch[0], contract[0])
    right = _side(layouts[1], batch[1], contract[1])
    if left is not None and right is not None and _same_batch(left, right, batch):
        return left, right
    like = layouts[0].as_grid or b.env.choose_grid(x.shape, x.dtype, layouts[0])
    if batch[0]:
        return _batched(b.device, layouts, like, contract, batch)
    return (
        left or _arrangement(like, layouts[0], (), (), contract[0], False),
        right or _arrangement(like, layouts[1], (), (), contract[1], True),
    )


def _same_batch(left: Side, right: Side, batch: tuple[Dims, Dims]) -> bool:
    """Return whether batch dims have the same joins, grid, tile and order in both operands."""
    if not batch[0]:
        return True
    names = [{d: i for i, d in enumerate(dims)} for dims in batch]

    def rows(side: Side, name: dict[int, int]) -> list[Any]:
        layout = side.layout
        found = []
        for k in side.batch:
            coefficients, offset = layout.linear.coefficients()[k]
            terms = sorted((name[d], coefficients[d]) for d in layout.groups[k])
            block = (layout.grid[k], layout.shard_shape[k], layout.padded_tile[k])
            found.append((terms, offset, block))
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
    """Return layouts for both operands, with equal batch dims, for which the fewest bytes move.

    Batch dims are placed as in either operand, or joined, over all cores or over all except those
    of the last grid dim. Layouts that give a device a quarter more multiplications than the least
    are excluded.
    """
    joint = tuple(range(len(batch[0])))
    ways = (
        *(_held(layout, dims) for layout, dims in zip(layouts, batch, strict=True)),
        ((joint, prod(like.grid)),),
        ((joint, prod(like.grid[:-1])),),
    )
    found: dict[tuple[Side, Side], tuple[int, Product]] = {}
    for runs in dict.fromkeys(ways):
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
        found[left, right] = cores * prod(product.natural.local_shape), product
    least = min(work for work, _ in found.values())
    few = [sides for sides, (work, _) in found.items() if work <= LIMITS.work * least]
    if len(few) == 1:
        return few[0]
    return min(
        few, key=lambda s: price(device, gathered_cost(device, found[s][1], layouts, None)[1])
    )


def _held(layout: Layout, batch: Dims) -> Runs:
    """Return each batch dim alone, with the cores of the grid dims where it is outermost."""
    cores = dict.fromkeys(batch, 1)
    if (own := layout.grouped) is not None:
        for k, group in enumerate(own.groups):
            strides = own.linear.coefficients()[k][0]
            first = max(group, key=lambda d: (layout.shape[d] > 1, abs(strides[d])), default=None)
            if first in cores:
                cores[first] *= own.grid[k]
    return tuple(((i,), cores[d]) for i, d in enumerate(batch))


@lru_cache(maxsize=4096)
def _arrangement(
    like: GridLayout, layout: Layout, runs: Runs, batch: Dims, contract: Dims, is_right: bool
) -> Side:
    """Return the batch dims in `runs`, and free and contracted dims joined into one dim each.

    Without batch dims, left rows are divided over the grid's first dims and right columns over its
    last one. Cores that the batch dims leave divide the last dim of either operand.
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
        linear=AffineMap(len(shape), tuple(linearized(shape, dims) for dims, _, _ in roles)),
        memory_space=like.memory_space,
    )
    side = _side(found, batch, contract)
    assert side is not None
    return side


def _rows(left: Side, right: Side, batch: tuple[Dims, Dims], order: Dims) -> tuple[Row, ...]:
    """Return the result's collapsed dims, ordered by the first result dim that each holds.

    So the rows of a transposed product are divided over the first grid dim as well.
    """
    at = len(batch[0])
    found = []
    for side, is_right in ((left, False), (right, True)):
        groups = side.layout.groups
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
    """Return the result's layout without a relayout: each row as in its operand; None: a scalar."""
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
        shard_shape=(
            *(None for _ in ones),
            *(row.side.layout.stated_shard[row.k] for row in rows),
        ),
        memory_space=left.layout.memory_space,
    )
