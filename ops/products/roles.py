"""The roles of operands' collapsed dims in a product: batch, free, contracted.

Each collapsed dim has one role, and batch dims have the same layout in both operands. Rows of the
result are placed as in the left operand, columns as in the right one.
"""

from __future__ import annotations

from math import prod
from typing import Any

from gridlayout.affine.map import AffineExpr, AffineMap, constant, dim, linearized
from gridlayout.caching import cached
from gridlayout.document.grid_form import as_grid, grouped
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.products.gathered import Product, ResultDim, gathered_cost
from gridlayout.ops.products.inputs import Dims, Roles
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS

Pair = tuple[Dims, Dims]
# Batch dims, by number, that are joined, and the cores that each run of them is divided over.
Runs = tuple[tuple[Dims, int], ...]


def product_of(
    left: Roles, right: Roles, contract: Pair, batch: Pair, order: Dims, shape: Dims, dtype: Any
) -> Product:
    """Return a product of two operands, with the layout of its result before any relayout.

    contract, batch: the dims of each operand. order: of the result's dims. shape, dtype: of the
    result.
    """
    dims = _result_dims(left, right, batch, order)
    return Product(left, right, contract, dims, _natural(left, dims, dtype, shape))


def _roles(layout: Layout, batch: Dims, contract: Dims) -> Roles | None:
    """Return the roles of a layout's collapsed dims; None if the layout does not suit a product.

    That is so if a collapsed dim mixes roles, if one without logical dims has several positions, if
    a logical dim is in no collapsed dim, for rows aligned without tiles, faces, tile formats and
    arrays without elements, and if the layout is no grid layout.
    """
    own = grouped(layout)
    if own is None or own.face or own.tile_format is not None or 0 in own.shape:
        return None
    if own.row_multiple > 1 and own.tile is None:
        return None
    found: dict[str, list[int]] = {"batch": [], "free": [], "contract": [], "empty": []}
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
        found[kinds.pop() if kinds else "empty"].append(k)
    return Roles(own, *(tuple(ks) for ks in found.values()))


def roles_of(b: Builder, x: Value, y: Value, contract: Pair, batch: Pair) -> tuple[Roles, Roles]:
    """Return layouts for both operands with one role per collapsed dim and equal batch dims.

    These are the operands' own layouts, if they meet both conditions.
    """
    assert x.layout is not None
    assert y.layout is not None
    layouts = (x.layout.with_oob(None), y.layout.with_oob(None))
    left = _roles(layouts[0], batch[0], contract[0])
    right = _roles(layouts[1], batch[1], contract[1])
    if left is not None and right is not None and _same_batch(left, right, batch):
        return left, right
    like = as_grid(layouts[0]) or b.env.choose_grid(x.shape, x.dtype, layouts[0])
    if batch[0]:
        return _batched(b.device, layouts, like, contract, batch)
    return (
        left or _arrangement(like, layouts[0], (), (), contract[0], False),
        right or _arrangement(like, layouts[1], (), (), contract[1], True),
    )


def _same_batch(left: Roles, right: Roles, batch: tuple[Dims, Dims]) -> bool:
    """Return whether batch dims have the same joins, grid, tile and order in both operands."""
    if not batch[0]:
        return True
    names = [{d: i for i, d in enumerate(dims)} for dims in batch]

    def rows(roles: Roles, name: dict[int, int]) -> list[Any]:
        layout = roles.layout
        found = []
        for k in roles.batch:
            coefficients, offset = layout.linear.coefficients()[k]
            terms = sorted((name[d], coefficients[d]) for d in layout.groups[k])
            block = (layout.grid[k], layout.shard_shape[k], layout.padded_tile[k])
            found.append((terms, offset, block))
        return found

    return rows(left, names[0]) == rows(right, names[1])


@cached
def _batched(
    device: DeviceGrid,
    layouts: tuple[Layout, Layout],
    like: GridLayout,
    contract: Pair,
    batch: Pair,
) -> tuple[Roles, Roles]:
    """Return layouts for both operands, with equal batch dims, for which the fewest bytes move.

    Batch dims are placed as in either operand, or joined, over all cores or over all except those
    of the last grid dim. Layouts that give a device a quarter more multiplications than the least
    are excluded.
    """
    joint = tuple(range(len(batch[0])))
    ways = (
        *(_own_runs(layout, dims) for layout, dims in zip(layouts, batch, strict=True)),
        ((joint, prod(like.grid)),),
        ((joint, prod(like.grid[:-1])),),
    )
    found: dict[tuple[Roles, Roles], tuple[int, Product]] = {}
    for runs in dict.fromkeys(ways):
        left = _arrangement(like, layouts[0], runs, batch[0], contract[0], False)
        right = _arrangement(like, layouts[1], runs, batch[1], contract[1], True)
        x, y = left.layout, right.layout
        shape = [x.shape[d] for d in batch[0]]
        shape += [x.shape[d] for d in range(x.ndim) if d not in (*batch[0], *contract[0])]
        shape += [y.shape[d] for d in range(y.ndim) if d not in (*batch[1], *contract[1])]
        order = tuple(range(len(shape)))
        product = product_of(left, right, contract, batch, order, tuple(shape), x.dtype)
        assert product.natural is not None
        cores = prod(device.placements.inner(product.natural.grid).per_device)
        found[left, right] = cores * prod(product.natural.local_shape), product
    least = min(work for work, _ in found.values())
    few = [pair for pair, (work, _) in found.items() if work <= LIMITS.work_ratio * least]
    if len(few) == 1:
        return few[0]

    def cost(pair: tuple[Roles, Roles]) -> float:
        sent = gathered_cost(device, found[pair][1], layouts, None)[1]
        return device.machine.price(sent, device.size)

    return min(few, key=cost)


def _own_runs(layout: Layout, batch: Dims) -> Runs:
    """Return each batch dim alone, with the cores of the grid dims where it is outermost."""
    cores = dict.fromkeys(batch, 1)
    if (own := grouped(layout)) is not None:
        for k, group in enumerate(own.groups):
            strides = own.linear.coefficients()[k][0]
            first = max(group, key=lambda d: (layout.shape[d] > 1, abs(strides[d])), default=None)
            if first in cores:
                cores[first] *= own.grid[k]
    return tuple(((i,), cores[d]) for i, d in enumerate(batch))


@cached
def _arrangement(
    like: GridLayout, layout: Layout, runs: Runs, batch: Dims, contract: Dims, is_right: bool
) -> Roles:
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
    blocks = [(tuple(batch[i] for i in run), cores, 1) for run, cores in runs]
    pair = (contract, free) if is_right else (free, contract)
    blocks += [(pair[0], rows, tall), (pair[1], columns, wide)]
    found = GridLayout(
        shape,
        layout.dtype,
        tuple(g for _, g, _ in blocks),
        tuple(t for _, _, t in blocks) if like.tile else None,
        linear=AffineMap(len(shape), tuple(linearized(shape, dims) for dims, _, _ in blocks)),
        memory_space=like.memory_space,
    )
    roles = _roles(found, batch, contract)
    assert roles is not None
    return roles


def _result_dims(
    left: Roles, right: Roles, batch: tuple[Dims, Dims], order: Dims
) -> tuple[ResultDim, ...]:
    """Return the result's collapsed dims, ordered by the first result dim that each holds.

    This divides the rows of a transposed product over the first grid dim too.
    """
    at = len(batch[0])
    found = []
    for roles, is_right in ((left, False), (right, True)):
        groups = roles.layout.groups
        names = {d: i for i, d in enumerate(batch[is_right])}
        contracted = {d for k in roles.contract for d in groups[k]}
        for d in range(roles.layout.ndim):
            if d not in names and d not in contracted:
                names[d], at = at, at + 1
        for k in roles.free if is_right else roles.batch + roles.free:
            pairs = tuple((d, order.index(names[d])) for d in groups[k])
            found.append(ResultDim(roles, is_right, k, pairs))
    return tuple(sorted(found, key=lambda each: min(new for _, new in each.names)))


@cached
def _natural(
    left: Roles, dims: tuple[ResultDim, ...], dtype: Any, shape: Dims
) -> GridLayout | None:
    """Return the layout of the result before any relayout; None for a scalar.

    Each collapsed dim is divided as in its operand.
    """
    if not shape:
        return None
    missing = max(len(left.layout.grid) - len(dims), 0)
    exprs: list[AffineExpr] = [constant(0)] * missing
    for each in dims:
        layout = each.roles.layout
        renamed: list[AffineExpr] = [constant(0)] * layout.ndim
        for old, new in each.names:
            renamed[old] = dim(new)
        line = AffineMap(layout.ndim, (layout.linear.results[each.k],))
        exprs += line.compose(AffineMap(len(shape), tuple(renamed))).results
    tiled = any(each.roles.layout.tile for each in dims)
    ones = (1,) * missing
    return GridLayout(
        shape,
        dtype,
        (*ones, *(each.roles.layout.grid[each.k] for each in dims)),
        (*ones, *(each.roles.layout.padded_tile[each.k] for each in dims)) if tiled else None,
        linear=AffineMap(len(shape), tuple(exprs)),
        shard_shape=(
            *(None for _ in ones),
            *(each.roles.layout.stated_shard[each.k] for each in dims),
        ),
        memory_space=left.layout.memory_space,
    )
