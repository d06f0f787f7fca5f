"""A product on the devices: gather, multiply, back into tiles, inside `shard_map`.

Each device gathers the contracted dims of its rows of the left operand and of its columns of the
right one, brings them from tiles to logical order (which drops their padding, so nothing needs a
mask), multiplies, and keeps the result in tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.affine.map import AffineMap, dim, embedding
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Local, Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.relayout import moved_bytes
from gridlayout.ops.moves.workspace import Chain, Workspace, of_moves
from gridlayout.sharding.collectives import Collectives, total_bytes
from gridlayout.sharding.device_grid import DeviceGrid, Placement

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


@dataclass(frozen=True)
class Gather:
    """One dim of contracted positions that a device gathers over mesh axes.

    shape: of its part as it is then, which the dim is dim `at` of.
    """

    axes: tuple[str, ...]
    n: int
    shape: Dims
    at: int
    itemsize: int

    def collectives(self, made: Collectives) -> None:
        """What the devices send."""
        made.all_gather(self.axes, prod(self.shape) * self.itemsize)

    def run(self, view: LazyView) -> LazyView:
        """All devices' parts along the dim, in one dim."""
        at, n, axes = self.at, self.n, self.axes
        rows, here, inner = view.shape[:at], view.shape[at], view.shape[at + 1 :]
        if prod(rows) == 1:
            part = view.reshape(here, *inner).materialize()
            found = LazyView.of(lax.all_gather(part, axes, tiled=True))
        else:
            found = LazyView.of(lax.all_gather(view.materialize(), axes)).moved(0, at)
        return found.reshape(*rows, n * here, *inner)


@dataclass(frozen=True)
class Entry:
    """How one operand enters the kernel: where it lies, and what is gathered there.

    contract_first: whether contracted dims come before the free ones in the matrix. They do where
    they do in the part; and where XLA gathers them on CPUs, since it copies blocks whole along the
    first dim, but along a later one it transposes all that is gathered.
    """

    side: Side
    spec: Sharded
    contract_first: bool
    gathers: tuple[tuple[int, Gather], ...]

    def collectives(self, made: Collectives) -> None:
        """What the devices send in the kernel."""
        for _, gather in self.gathers:
            gather.collectives(made)

    @property
    def layout(self) -> GridLayout:
        """The layout in which it enters."""
        assert isinstance(self.spec.layout, GridLayout)
        return self.spec.layout

    @property
    def shape(self) -> Dims:
        """The part as a matrix of chunks, without the padding of contracted tiles."""
        return _extents(self.side, self.spec.placement, self.contract_first)

    def matrix_shape(self, contract: Dims) -> Dims:
        """(batch, free, contracted), or with the last two exchanged; one batch is no batch dim."""
        batch, *inner = self.shape
        k = prod(self.spec.layout.shape[d] for d in contract)
        matrix = (k, inner[-1]) if self.contract_first else (inner[0], k)
        return matrix if batch == 1 else (batch, *matrix)

    @property
    def kept(self) -> dict[int, Dims]:
        """The local shape of each collapsed dim that the product keeps."""
        side, shape = self.side, self.spec.local_shape
        dims = self.layout.axis_dims
        return {k: tuple(shape[d] for d in dims(k)) for k in side.batch + side.free}

    @property
    def order(self) -> list[int]:
        """The part's dims as the matrix has them: empty, batch, then contracted and free ones."""
        side, dims = self.side, self.layout.axis_dims
        empty, batch, contract, free = (
            [d for k in ks for d in dims(k)]
            for ks in (side.empty, side.batch, side.contract, side.free)
        )
        return [*empty, *batch, *(contract + free if self.contract_first else free + contract)]


def multiplied(b: Builder, op: Op, product: Product, x: Value, y: Value, wanted: Layout) -> Value:
    """The product in the layout that is wanted, or the scalar that it is."""
    entries, natural = _entries(b.device, product), product.natural
    matrices = [
        _entered(b, value, entry, dims)
        for value, entry, dims in zip((x, y), entries, product.contract, strict=True)
    ]
    left_kept, right_kept = (entry.kept for entry in entries)
    first = (entries[0].contract_first, entries[1].contract_first)

    def kernel(left: LazyView, right: LazyView) -> list[LazyView]:
        out = _times(left.materialize(), right.materialize(), first, op)
        if natural is None:
            return [LazyView.of(out).reshape()]
        return [_in_tiles(out, left_kept, right_kept, product)]

    spec = Replicated((), op.out.dtype) if natural is None else b.sharded(natural)
    workspace = cache(partial(_workspace, entries, product, op.out.dtype))
    (out,) = b.run(kernel, matrices, [spec], is_lazy=True, workspace=workspace)
    return out if natural is None else b.relayout(out, wanted)


def _entered(b: Builder, value: Value, entry: Entry, contract: Dims) -> Value:
    """An operand as a matrix on each device; another product that takes the same one shares it."""
    part = b.relayout(value, entry.spec.layout, entry.spec.placement)
    made = b.collectives()
    entry.collectives(made)
    (out,) = b.run(
        lambda part: [_matrix(part, entry, contract)],
        [part],
        [Local(entry.matrix_shape(contract), value.dtype)],
        made,
        is_lazy=True,
        workspace=cache(partial(_entered_workspace, entry, contract)),
        does=(entry, contract),
    )
    return out


@lru_cache(maxsize=4096)
def gathered_cost(
    device: DeviceGrid, product: Product, layouts: tuple[Layout, Layout], wanted: Layout | None
) -> tuple[int, int]:
    """Multiplications of a device, and bytes that all receive, if each gathers K whole and at once.

    layouts: those that the operands come in. wanted: where the result goes.
    """
    made, total = Collectives(device), 0
    entries = _entries(device, product)
    for old, entry in zip(layouts, entries, strict=True):
        total += moved_bytes(old, entry.spec.layout, device, None, entry.spec.placement)
        entry.collectives(made)
    if product.natural is not None and wanted is not None:
        total += moved_bytes(product.natural, wanted, device)
    left, right = (_extents(entry.side, entry.spec.placement, False) for entry in entries)
    batch, free, columns = left[0], left[1], right[1]
    k = prod(product.left.layout.shape[d] for d in product.contract[0])
    return batch * free * columns * k, total + total_bytes(made.found)


@lru_cache(maxsize=4096)
def _entries(device: DeviceGrid, product: Product) -> tuple[Entry, Entry]:
    """Rows enter as the result wants them; contracted dims keep the mesh axes left over."""
    where: dict[tuple[bool, int], tuple[tuple[str, ...], int]] = {}
    if product.natural is not None:
        placement = device.placement(product.natural.grid)
        for i, row in enumerate(product.rows, product.first):
            where[row.is_right, row.k] = (placement.axes[i], placement.slots[i])
        for a, b in zip(product.left.batch, product.right.batch, strict=True):
            where[True, b] = where[False, a]
    return _entry(device, product.left, False, where), _entry(device, product.right, True, where)


def _entry(device: DeviceGrid, side: Side, is_right: bool, where: dict[Any, Any]) -> Entry:
    own = device.placement(side.layout.grid)
    taken = {a for (right, _), (axes, _) in where.items() if right == is_right for a in axes}
    spec: list[tuple[str, ...]] = []
    slots: list[int] = []
    gathered: dict[int, tuple[str, ...]] = {}
    axes: tuple[str, ...]
    for k in range(len(side.layout.grid)):
        if k in side.empty:  # one position, which every device gets
            axes, count = (), 1
        elif (is_right, k) in where:
            axes, count = where[is_right, k]
        else:
            axes, count = tuple(a for a in own.axes[k] if a not in taken), own.slots[k]
            gathered |= {k: axes} if axes else {}
        spec.append(axes)
        slots.append(count)
    layout = side.layout
    if side.empty:
        grid = tuple(1 if k in side.empty else g for k, g in enumerate(layout.grid))
        layout = layout.replace(grid=grid)
    per_device = tuple(s // device.count(axes) for s, axes in zip(slots, spec, strict=True))
    placement = Placement(layout.grid, tuple(spec), tuple(slots), per_device)
    first = bool(side.contract) and (not side.free or min(side.contract) < min(side.free))
    first = first or bool(gathered and not side.batch and device.platform == "cpu")
    found = tuple(_gathers(device, side, placement, gathered, first))
    return Entry(side, Sharded(layout.with_oob(None), placement), first, found)


def _extents(side: Side, placement: Placement, contract_first: bool) -> Dims:
    """A part as a matrix: (batch, contracted ..., free) or (batch, free, contracted ...)."""
    layout = side.layout

    def local(k: int) -> int:
        inside = prod(layout.physical_shape[d] for d in layout.axis_dims(k)[1:])
        return placement.per_device[k] * inside

    batch, free = prod(map(local, side.batch)), prod(map(local, side.free))
    chunks = [placement.per_device[k] * layout.shard_shape[k] for k in side.contract]
    return (batch, *chunks, free) if contract_first else (batch, free, *chunks)


def _gathers(
    device: DeviceGrid,
    side: Side,
    placement: Placement,
    gathered: dict[int, tuple[str, ...]],
    contract_first: bool,
) -> Iterator[tuple[int, Gather]]:
    shape = list(_extents(side, placement, contract_first))
    for k, axes in gathered.items():
        at = (1 if contract_first else 2) + side.contract.index(k)
        n = device.count(axes)
        yield k, Gather(axes, n, tuple(shape), at, side.layout.dtype.itemsize)
        shape[at] *= n


def _matrix(a: LazyView, entry: Entry, contract: Dims) -> LazyView:
    """One device's part of an operand as a matrix, its contracted dims gathered whole.

    Batch and free dims stay as they lie in cores and tiles. Contracted dims leave the padding of
    their tiles behind before they are gathered, and come to logical order after.
    """
    side, layout = entry.side, entry.side.layout
    kept, first = entry.kept, entry.contract_first
    batch, free = (prod(prod(kept[k]) for k in ks) for ks in (side.batch, side.free))
    local = [n for k in side.contract for n in _local(a, layout, k)]
    for d in (d for k in side.empty for d in layout.axis_dims(k)):
        a = a.first(1, d)  # one position, that of every device
    view = a.transpose(entry.order)
    view = view.reshape(*((batch, *local, free) if first else (batch, free, *local)))
    start = 1 if first else 2
    for i, k in enumerate(side.contract):
        view = view.first(layout.shard_shape[k], start + 2 * i + 1)
    inner = view.shape[start : start + len(local)]
    chunks = [cores * positions for cores, positions in zip(inner[::2], inner[1::2], strict=True)]
    view = view.reshape(*((batch, *chunks, free) if first else (batch, free, *chunks)))
    for _, gather in entry.gathers:
        view = gather.run(view)
    for i, k in enumerate(side.contract):
        view = view.first(layout.collapsed_shape[k], start + i)
    view = _in_logical_order(view, side, contract, start)
    return LazyView.of(view.reshape(*entry.matrix_shape(contract)).materialize())


def _entered_workspace(entry: Entry, contract: Dims) -> Workspace:
    """What `_matrix` holds."""
    side, layout, shape = entry.side, entry.layout, entry.shape
    chain, itemsize = Chain(entry.spec.device_bytes), layout.dtype.itemsize
    part = jax.ShapeDtypeStruct(entry.spec.local_shape, layout.dtype)
    # A product takes one matrix either way round.
    ways = [entry] if entry.gathers or shape[0] > 1 else [entry, _turned(entry)]
    views = [LazyView.of(part).transpose(way.order) for way in ways]  # type: ignore[arg-type]
    if not any(view.is_in_order for view in views) or prod(shape) * itemsize < chain.nbytes:
        chain.see(prod(shape) * itemsize)
    start = 1 if entry.contract_first else 2
    chunks = list(shape[start : start + len(side.contract)])
    for _, gather in entry.gathers:
        chain.gather(gather.n, prod(gather.shape[: gather.at]))
        chunks[gather.at - start] *= gather.n
    rows = tuple(layout.linear.results[k] for k in side.contract)
    in_order = not rows or rows == tuple(dim(d) for d in contract)
    if not in_order or chunks != [layout.collapsed_shape[k] for k in side.contract]:
        chain.see(prod(entry.matrix_shape(contract)) * itemsize)
    return of_moves(chain.settle())


def _turned(entry: Entry) -> Entry:
    return replace(entry, contract_first=not entry.contract_first)


def _workspace(entries: tuple[Entry, Entry], product: Product, dtype: Any) -> Workspace:
    """The product, which is seen in tiles."""
    left, right = (entry.kept for entry in entries)
    shape = [prod(shape) for shape in left.values()]
    shape += [prod(shape) for k, shape in right.items() if k not in entries[1].side.batch]
    out, is_seen = jax.ShapeDtypeStruct(tuple(shape), dtype), False
    if product.natural is not None:
        is_seen = not _in_tiles(out, left, right, product).is_in_order  # type: ignore[arg-type]
    return Workspace((), (prod(shape) * out.dtype.itemsize,), is_seen)


def _local(a: LazyView, layout: GridLayout, k: int) -> tuple[int, int]:
    """Cores of a collapsed dim on this device, and positions in each core."""
    core, *inside = (a.shape[d] for d in layout.axis_dims(k))
    return core, prod(inside)


def _in_logical_order(view: LazyView, side: Side, contract: Dims, start: int) -> LazyView:
    """Collapsed contracted dims, at `start`, as the logical ones in the order of `contract`."""
    layout = side.layout
    rows = tuple(layout.linear.results[k] for k in side.contract)
    if rows == tuple(dim(d) for d in contract) or not rows:
        return view
    part, kept = _restricted(layout, side.contract)
    lead, inner = view.shape[:start], view.shape[start + len(rows) :]
    view = view.reshape(prod(lead), *view.shape[start : start + len(rows)], prod(inner))
    view = view.moved(1 + len(rows), 1).reshape(prod(lead), prod(inner), *part.physical_shape)
    view = packing.moved_back(view, jnp.zeros((), layout.dtype), part)
    order = (0, *(2 + kept.index(d) for d in contract), 1)
    return view.transpose(order).reshape(*lead, -1, *inner)


@lru_cache(maxsize=4096)
def _restricted(layout: GridLayout, ks: Dims) -> tuple[GridLayout, Dims]:
    """A layout of the logical dims of some collapsed dims alone, on one core, and those dims."""
    kept = tuple(sorted(d for k in ks for d in layout.groups[k]))
    lines = AffineMap(layout.ndim, tuple(layout.linear.results[k] for k in ks))
    shape = tuple(layout.shape[d] for d in kept)
    linear = lines.compose(embedding(layout.ndim, kept))
    return GridLayout(shape, layout.dtype, (1,) * len(ks), linear=linear), kept


def _times(a: jax.Array, b: jax.Array, contract_first: tuple[bool, bool], op: Op) -> jax.Array:
    """(batch, left rows, right rows); no batch dim in the product where there is one batch."""
    batch = tuple(range(a.ndim - 2))
    left, right = (len(batch) + (0 if first else 1) for first in contract_first)
    dimensions = (((left,), (right,)), (batch, batch))
    return lax.dot_general(a, b, dimensions, **precision(op))


def precision(op: Op) -> dict[str, Any]:
    """How precisely `lax.dot_general` is to multiply."""
    return {name: op.params[name] for name in ("precision", "preferred_element_type")}


def _in_tiles(
    out: jax.Array, left: dict[int, Dims], right: dict[int, Dims], product: Product
) -> LazyView:
    """The product's rows and columns as cores and tiles, in the natural layout's order."""
    natural = product.natural
    assert natural is not None
    keys = [(False, k) for k in product.left.batch + product.left.free]
    keys += [(True, k) for k in product.right.free]
    shapes = {key: (right if key[0] else left)[key[1]] for key in keys}
    # Every row has cores, tiles and, if the result is tiled, positions in the tile.
    depth = 3 if natural.tile else 2
    full = {key: (*shape, *(1,) * (depth - len(shape))) for key, shape in shapes.items()}
    view = LazyView.of(out).reshape(*(n for key in keys for n in full[key]))
    start = {key: i * depth for i, key in enumerate(keys)}
    rows = [(row.is_right, row.k) for row in product.rows]
    view = view.transpose([start[key] + level for level in range(depth) for key in rows])
    shape = []
    for level in range(depth):
        shape += [1] * product.first + [full[key][level] for key in rows]
    return view.reshape(*shape)
