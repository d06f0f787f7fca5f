"""`dot_general`: the ways to do a product, and where its result is.

Rows are placed as in the left operand, columns as in the right one. Where that is not the result's
requested layout (the one to which its consumers relay it out, else the policy's), the result is
relaid out to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any

import jax.numpy as jnp

from gridlayout.arguments import Shape
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.dtypes import has_zero
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.fitting import most_bytes, storage_bytes
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.decision import Choice
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.factors import SUMMED, THROUGH, Factors, Numbering
from gridlayout.ops.decisions.flops import of_product
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Decide, Record
from gridlayout.ops.decisions.reshapes import transposed
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.products import schedules
from gridlayout.ops.products.algorithms import ALGORITHMS, Matrices, Operand, Plan
from gridlayout.ops.products.choose import choose
from gridlayout.ops.products.divided import divided
from gridlayout.ops.products.gathered import Product, gathered_cost, multiplied
from gridlayout.ops.products.inputs import Dims
from gridlayout.ops.products.roles import Pair, product_of, roles_of
from gridlayout.sharding.collectives import Collective


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
    x, y = (b.as_sharded(value, like=like) for value in (lhs, rhs))
    assert x.layout is not None
    assert y.layout is not None
    contract, batch = (tuple(lc), tuple(rc)), (tuple(lb), tuple(rb))
    left, right = roles_of(b, x, y, contract, batch)
    shape, dtype = op.out.shape, op.out.dtype
    order = op.permutation or tuple(range(len(shape)))
    product = product_of(left, right, contract, batch, order, shape, dtype)
    layouts = (x.layout.with_oob(None), y.layout.with_oob(None))
    target = _unmoved(b.result_layout(op, left.layout), product.natural, bool(batch[0]))
    target = _cheaper(b, op, product, layouts, target)
    cost = gathered_cost(b.device, product, layouts, target)
    matrices = _matrices(product, layouts, batch, order, shape, dtype)
    return _Ways(b.env, product, matrices, target, cost).choice


@dataclass(frozen=True, eq=False)
class _Ways:
    """The ways to do a product: gathered, and by each algorithm.

    cost: of the gathered one, what a device multiplies and what is sent.
    """

    env: Env
    product: Product
    matrices: Matrices
    target: Layout
    cost: tuple[int, Sequence[Collective]]

    @property
    def choice(self) -> Choice:
        """The cheapest; the others are made when they are asked for."""
        least = prod(self.matrices.extents) * self.matrices.k  # multiplications, of all devices
        is_least = not self.cost[1] and self.cost[0] * self.env.device.size <= least
        asked = self.env.algorithm
        best = None if asked is None and is_least else self._pick(asked)
        return Choice(self._way(best), partial(self._others, best))

    def _pick(self, algorithm: str | None) -> Plan | None:
        """The best plan, of an algorithm if one is named; None for the gathered one."""
        return choose(self.matrices, self.env.device, self.target, self._priced, algorithm)

    @cached_property
    def _priced(self) -> tuple[int, float]:
        return self.cost[0], self.env.machine.price(self.cost[1], self.env.device.size)

    def _way(self, plan: Plan | None) -> Decide:
        def rule(b: Builder, op: Op, lhs: Value, rhs: Value) -> Value:
            x, y = (b.as_sharded(value, like=lhs.layout or rhs.layout) for value in (lhs, rhs))
            b.note = "gathered" if plan is None else plan.name
            b.device_flops = 2 * (self.cost[0] if plan is None else plan.work)
            if plan is None:
                return multiplied(b, op, self.product, x, y, self.target)
            return schedules.multiplied(b, op, plan, x, y, self.target)

        return rule

    def _others(self, best: Plan | None) -> list[Decide]:
        found = []
        for name in ALGORITHMS if self.env.algorithm is None else ():
            with suppress(LayoutError):  # the algorithm does not fit the devices
                plan = self._pick(name)
                if (plan is None) == (name == "gathered") and plan != best:
                    found.append(self._way(plan))
        return found


def _unmoved(target: Layout, natural: GridLayout | None, has_batch: bool) -> Layout:
    """Return the natural layout instead of the target if both have equal blocks and cores.

    With batch dims, the order of the grid dims may differ.
    """
    grid = as_grid(target)
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
        sent = gathered_cost(b.device, product, layouts, layout)[1]
        return b.env.machine.price(sent, b.device.size)

    return natural if seconds(natural) < seconds(target) else target


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
    both = (product.left, product.right)
    for roles, layout, own, contract in zip(both, layouts, batch, product.contract, strict=True):
        free = tuple(d for d in range(roles.layout.ndim) if d not in own and d not in contract)
        names = tuple(order.index(at + i) for i in range(len(free)))
        cores = prod(roles.layout.grid[k] for k in roles.free)
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
    x = b.as_sharded(other) if other.ndim else b.replicated(other)
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


def _factors(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of a product: batch, contracted and free dims."""
    made, ((lc, rc), (lb, rb)) = Numbering(ins, outs), params["dimension_numbers"]
    for k, (left, right) in enumerate(zip(lb, rb, strict=True)):
        made.add(THROUGH, (0, left), (1, right), (len(ins), k))
    for left, right in zip(lc, rc, strict=True):
        made.add(SUMMED, (0, left), (1, right))
    to = len(lb)
    for k, taken in enumerate(((*lb, *lc), (*rb, *rc))):
        for d in range(len(ins[k])):
            if d not in taken:
                made.add(THROUGH, (k, d), (len(ins), to))
                to += 1
    return made.factors()


PRODUCTS: dict[str, Record] = {
    "dot_general": Record(
        *((dot_general,), of_product, _factors),
        multiplies=True,
        of_blocks=True,
        scatters_sums=True,
    )
}
