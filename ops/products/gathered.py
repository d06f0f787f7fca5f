"""A product by gathering: gather, multiply, and retile the result, inside `shard_map`.

Each device has its rows of the left operand and its columns of the right one as matrices
(`inputs.py`), multiplies them, and keeps the result in tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from typing import Any

import jax
from jax import lax

from gridlayout import dtypes
from gridlayout.caching import cached
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.relayout import sent_between
from gridlayout.ops.moves.workspace import Workspace
from gridlayout.ops.products.inputs import Dims, Gather, KernelInput, Roles, as_matrix, extents
from gridlayout.sharding.collectives import Collective, Collectives
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.meshes.placement import Placement


@dataclass(frozen=True)
class ResultDim:
    """A collapsed dim of the result, and collapsed dim `k` of the operand that it comes from.

    names: pairs (logical dim of the operand, logical dim of the result).
    """

    roles: Roles
    is_right: bool
    k: int
    names: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Product:
    """The static description of one product.

    contract: the contracted logical dims of each operand. dims: the collapsed dims of the result.
    natural: the layout in which the product is computed, before any relayout: rows are divided as
    in the left operand, columns as in the right one. None if the result is a scalar.
    """

    left: Roles
    right: Roles
    contract: tuple[Dims, Dims]
    dims: tuple[ResultDim, ...]
    natural: GridLayout | None

    @property
    def first(self) -> int:
        """The collapsed dim of `natural` that is the first of `dims`; those before it are empty."""
        return 0 if self.natural is None else len(self.natural.grid) - len(self.dims)


def multiplied(b: Builder, op: Op, product: Product, x: Value, y: Value, target: Layout) -> Value:
    """Return the product in the layout `target`, or the scalar that it is."""
    operands, natural = _inputs(b.device, product), product.natural
    matrices = [
        as_matrix(b, value, operand, dims)
        for value, operand, dims in zip((x, y), operands, product.contract, strict=True)
    ]
    left_shapes, right_shapes = (operand.result_shapes for operand in operands)
    first = (operands[0].contract_first, operands[1].contract_first)

    def kernel(left: LazyView, right: LazyView) -> list[LazyView]:
        out = _times(left.materialize(), right.materialize(), first, op)
        if natural is None:
            return [LazyView.of(out).reshape()]
        return [_in_tiles(out, left_shapes, right_shapes, product)]

    spec = Replicated((), op.out.dtype) if natural is None else b.sharded(natural)
    workspace = cache(partial(_workspace, operands, product, op.out.dtype))
    (out,) = b.run(kernel, matrices, [spec], is_lazy=True, workspace=workspace)
    return out if natural is None else b.relayout(out, target)


@cached
def gathered_cost(
    device: DeviceGrid, product: Product, layouts: tuple[Layout, Layout], target: Layout | None
) -> tuple[int, tuple[Collective, ...]]:
    """Return the multiplications of a device and the collectives, if each device gathers all of K.

    layouts: of the operands before. target: the result's layout.
    """
    made = Collectives(device)
    operands = _inputs(device, product)
    for old, operand in zip(layouts, operands, strict=True):
        before = device.placements.inner(old)
        places = before, operand.spec.placement
        made.found += sent_between(old, operand.spec.layout, device, *places)
        operand.collectives(made)
    if (natural := product.natural) is not None and target is not None:
        inner = device.placements.inner
        places = inner(natural), inner(target)
        made.found += sent_between(natural, target, device, *places)
    left, right = (extents(operand.roles, operand.spec.placement, False) for operand in operands)
    batch, free, columns = left[0], left[1], right[1]
    k = prod(product.left.layout.shape[d] for d in product.contract[0])
    return batch * free * columns * k, tuple(made.found)


@cached
def _inputs(device: DeviceGrid, product: Product) -> tuple[KernelInput, KernelInput]:
    """Return both operands: free dims placed as in the result, contracted dims over other axes."""
    where: dict[tuple[bool, int], tuple[tuple[str, ...], int]] = {}
    if product.natural is not None:
        placement = device.placements.inner(product.natural.grid)
        for i, dim in enumerate(product.dims, product.first):
            where[dim.is_right, dim.k] = (placement.axes[i], placement.slots[i])
        for a, b in zip(product.left.batch, product.right.batch, strict=True):
            where[True, b] = where[False, a]
    return _input(device, product.left, False, where), _input(device, product.right, True, where)


def _input(device: DeviceGrid, roles: Roles, is_right: bool, where: dict[Any, Any]) -> KernelInput:
    own = device.placements.inner(roles.layout.grid)
    taken = {a for (right, _), (axes, _) in where.items() if right == is_right for a in axes}
    spec: list[tuple[str, ...]] = []
    slots: list[int] = []
    gathered: dict[int, tuple[str, ...]] = {}
    axes: tuple[str, ...]
    for k in range(len(roles.layout.grid)):
        if k in roles.empty:  # one position, which every device has
            axes, count = (), 1
        elif (is_right, k) in where:
            axes, count = where[is_right, k]
        else:
            axes, count = tuple(a for a in own.axes[k] if a not in taken), own.slots[k]
            gathered |= {k: axes} if axes else {}
        spec.append(axes)
        slots.append(count)
    layout = roles.layout
    if roles.empty:
        keeps = [k not in roles.empty for k in range(len(layout.grid))]
        grid = tuple(g if keep else 1 for g, keep in zip(layout.grid, keeps, strict=True))
        shard = [n if keep else None for n, keep in zip(layout.stated_shard, keeps, strict=True)]
        layout = layout.replace(grid=grid, shard_shape=shard)
    per_device = tuple(s // device.count(axes) for s, axes in zip(slots, spec, strict=True))
    placement = Placement(layout.grid, tuple(spec), tuple(slots), per_device)
    first = bool(roles.contract) and (not roles.free or min(roles.contract) < min(roles.free))
    found = tuple(_gathers(device, roles, placement, gathered, first))
    return KernelInput(roles, Sharded(layout.with_oob(None), placement), first, found)


def _gathers(
    device: DeviceGrid,
    roles: Roles,
    placement: Placement,
    gathered: dict[int, tuple[str, ...]],
    contract_first: bool,
) -> Iterator[tuple[int, Gather]]:
    shape = list(extents(roles, placement, contract_first))
    for k, axes in gathered.items():
        at = (1 if contract_first else 2) + roles.contract.index(k)
        n = device.count(axes)
        yield k, Gather(axes, n, tuple(shape), at, roles.layout.dtype)
        shape[at] *= n


def _workspace(
    operands: tuple[KernelInput, KernelInput], product: Product, dtype: Any
) -> Workspace:
    """Return the workspace: the product, which is a view where it is retiled."""
    left, right = (operand.result_shapes for operand in operands)
    shape = [prod(shape) for shape in left.values()]
    shape += [prod(shape) for k, shape in right.items() if k not in operands[1].roles.batch]
    out, is_view = jax.ShapeDtypeStruct(tuple(shape), dtype), False
    if product.natural is not None:
        is_view = not _in_tiles(out, left, right, product).is_in_order  # type: ignore[arg-type]
    return Workspace((), (dtypes.nbytes(shape, out.dtype),), is_view)


def _times(a: jax.Array, b: jax.Array, contract_first: tuple[bool, bool], op: Op) -> jax.Array:
    """Return a product in the shape (batch, rows, columns); one batch has no dim."""
    batch = tuple(range(a.ndim - 2))
    left, right = (len(batch) + (0 if first else 1) for first in contract_first)
    dimensions = (((left,), (right,)), (batch, batch))
    return lax.dot_general(a, b, dimensions, **precision(op))


def precision(op: Op) -> dict[str, Any]:
    """Return the keywords of `lax.dot_general` that set its precision."""
    return {name: op.params[name] for name in ("precision", "preferred_element_type")}


def _in_tiles(
    out: jax.Array, left: dict[int, Dims], right: dict[int, Dims], product: Product
) -> LazyView:
    """Return the product's rows and columns as cores and tiles, in the natural layout's order."""
    natural = product.natural
    assert natural is not None
    keys = [(False, k) for k in product.left.batch + product.left.free]
    keys += [(True, k) for k in product.right.free]
    shapes = {key: (right if key[0] else left)[key[1]] for key in keys}
    # Every dim has cores, tiles and, if the result is tiled, positions in the tile.
    depth = 3 if natural.tile else 2
    full = {key: (*shape, *(1,) * (depth - len(shape))) for key, shape in shapes.items()}
    view = LazyView.of(out).reshape(*(n for key in keys for n in full[key]))
    start = {key: i * depth for i, key in enumerate(keys)}
    order = [(dim.is_right, dim.k) for dim in product.dims]
    view = view.transpose([start[key] + level for level in range(depth) for key in order])
    shape = []
    for level in range(depth):
        shape += [1] * product.first + [full[key][level] for key in order]
    return view.reshape(*shape)
