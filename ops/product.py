"""A product on the devices: gather, multiply, back into tiles, inside `shard_map`.

Each device gathers the contracted dims of its rows of the left operand and of its columns of the
right one, brings them from tiles to logical order (which drops their padding, so nothing needs a
mask), multiplies, and keeps the result in tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from gridlayout.affine import AffineMap, dim
from gridlayout.collapse import embedding
from gridlayout.grid_layout import GridLayout
from gridlayout.layout import Layout
from gridlayout.ops import packing
from gridlayout.ops.exchange import exchange_bytes
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.ports import Port, entering, through
from gridlayout.ops.seen import Seen
from gridlayout.ops.values import Context
from gridlayout.sharding.device_grid import DeviceGrid, Placement

Dims = tuple[int, ...]
Params = tuple[tuple[str, Any], ...]  # of `dot_general`: precision and preferred_element_type


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
class Entry:
    """How one operand enters the kernel: its spec and slots, and the mesh axes it gathers there."""

    side: Side
    spec: tuple[tuple[str, ...], ...]
    slots: Dims
    gather: tuple[tuple[int, tuple[str, ...]], ...]

    def placement(self, device: DeviceGrid) -> Placement:
        """Where the operand lies as it enters."""
        counts = [prod(device.fine.shape[a] for a in axes) for axes in self.spec]
        per_device = tuple(s // n for s, n in zip(self.slots, counts, strict=True))
        return Placement(self.side.layout.grid, self.spec, self.slots, per_device)


def multiplied(
    ctx: Context, params: Params, product: Product, x: GridArray, y: GridArray, wanted: Layout
) -> Any:
    """The product in the layout that is wanted, or the scalar that it is."""
    entries, natural = _entries(ctx.device, product), product.natural
    entered = [_entered(ctx, *pair) for pair in zip((x, y), entries, strict=True)]

    def kernel(a: Seen, b: Seen) -> Seen:
        left, left_shape = _matrix(ctx, a, entries[0], product.contract[0])
        right, right_shape = _matrix(ctx, b, entries[1], product.contract[1])
        ctx.held += left.array.nbytes + right.array.nbytes
        out = _times(left, right, dict(params))
        if natural is None:
            return Seen.of(out).reshape()
        return _in_tiles(out, left_shape, right_shape, product)

    return through(ctx, kernel, entered, natural, wanted)


def gathered_bytes(device: DeviceGrid, product: Product, layouts: tuple[Layout, Layout]) -> int:
    """Bytes that all devices receive, if each gathers K whole and at once.

    layouts: those that the operands come in.
    """
    total = 0
    for old, entry in zip(layouts, _entries(device, product), strict=True):
        layout = entry.side.layout
        total += exchange_bytes(old, layout, device, entry.placement(device))
        over = prod(device.fine.shape[axis] for axes in entry.spec for axis in axes)
        local = prod(entry.slots) * prod(layout.local_shape) // over * layout.dtype.itemsize
        n = prod(device.fine.shape[axis] for _, axes in entry.gather for axis in axes)
        total += device.size * (n - 1) * local
    return total


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
    gather: list[tuple[int, tuple[str, ...]]] = []
    axes: tuple[str, ...]
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


def _entered(ctx: Context, x: GridArray, entry: Entry) -> tuple[jax.Array, Port]:
    """The storage and its port: on the mesh axes and with the slots that the kernel wants."""
    layout = entry.side.layout
    if not entry.side.empty:
        return entering(ctx, x, layout, entry.placement(ctx.device))
    storage = ctx.relayout(x, layout).storage
    grid = tuple(1 if k in entry.side.empty else g for k, g in enumerate(layout.grid))
    spec = PartitionSpec(*(axes or None for axes in entry.spec))
    if storage.shape[: len(grid)] != entry.slots:
        # XLA fails to cut a dim that is sharded here and gathered elsewhere: gather it here too.
        free = PartitionSpec.UNCONSTRAINED
        cut = PartitionSpec(*(None if k in entry.side.empty else free for k in range(len(grid))))
        storage = lax.with_sharding_constraint(storage, NamedSharding(ctx.device.fine, cut))
        storage = storage[tuple(slice(g) for g in grid)]
        grow = [(0, s - g, 0) for s, g in zip(entry.slots, grid, strict=True)]
        grow += [(0, 0, 0)] * (storage.ndim - len(grid))
        storage = lax.pad(storage, jnp.zeros((), storage.dtype), grow)
    return storage, Port(spec, lambda part: part)


@dataclass(frozen=True)
class _Matrix:
    """(batch, free, contracted), or with the last two exchanged; no batch dim for one batch."""

    array: jax.Array
    contract_first: bool


def _matrix(ctx: Context, a: Seen, entry: Entry, contract: Dims) -> tuple[_Matrix, dict[int, Dims]]:
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
    for d in empty:  # one position, that of every device
        a = a.first(1, d)
    seen = a.transpose(order)
    seen = seen.reshape(*((batch, *local, free) if first else (batch, free, *local)))
    start = 1 if first else 2
    for i, k in enumerate(side.contract):
        seen = seen.first(layout.shard_shape[k], start + 2 * i + 1)
    inner = seen.shape[start : start + len(local)]
    chunks = [cores * positions for cores, positions in zip(inner[::2], inner[1::2], strict=True)]
    seen = seen.reshape(*((batch, *chunks, free) if first else (batch, free, *chunks)))
    for k, axes in entry.gather:
        seen = _gathered(ctx, seen, axes, start + side.contract.index(k))
    for i, k in enumerate(side.contract):
        seen = seen.first(layout.collapsed_shape[k], start + i)
    seen = _in_logical_order(seen, side, contract, start)
    lead = () if batch == 1 else (batch,)  # one batch is no batch: XLA's fast product
    seen = seen.reshape(*((*lead, -1, free) if first else (*lead, free, -1)))
    return _Matrix(seen.now(), first), shapes


def _local(a: Seen, layout: GridLayout, k: int) -> tuple[int, int]:
    """Cores of a collapsed dim on this device, and positions in each core."""
    core, *inside = (a.shape[d] for d in layout.axis_dims(k))
    return core, prod(inside)


def _gathered(ctx: Context, seen: Seen, axes: tuple[str, ...], at: int) -> Seen:
    """All devices' parts along dim `at`, in one dim; adds the bytes received to `ctx.moved`.

    XLA on CPUs copies blocks whole along the first dim; along a later one it transposes before
    and after. There, where the rows before `at` divide, each device first collects whole rows (a
    share of them, an all_to_all) and then all rows, so that only its share is put in order here.
    """
    n = prod(ctx.device.fine.shape[axis] for axis in axes)
    rows, here, inner = seen.shape[:at], seen.shape[at], seen.shape[at + 1 :]
    size = seen.array.nbytes
    received = (n - 1) * size
    if prod(rows) == 1:
        found = Seen.of(lax.all_gather(seen.reshape(here, *inner).now(), axes, tiled=True))
    elif ctx.device.mesh.devices.flat[0].platform == "cpu" and prod(rows) % n == 0:
        received += (n - 1) * size // n
        part = seen.reshape(n, -1, here, *inner).now()
        shares = Seen.of(lax.all_to_all(part, axes, 0, 0, tiled=True)).moved(0, 1)
        found = Seen.of(lax.all_gather(shares.now(), axes, tiled=True))
    else:
        found = Seen.of(lax.all_gather(seen.now(), axes)).moved(0, at)
    ctx.moved += received * ctx.device.fine.size
    return found.reshape(*rows, n * here, *inner)


def _in_logical_order(seen: Seen, side: Side, contract: Dims, start: int) -> Seen:
    """Collapsed contracted dims, at `start`, as the logical ones in the order of `contract`."""
    layout = side.layout
    rows = tuple(layout.linear.results[k] for k in side.contract)
    if rows == tuple(dim(d) for d in contract) or not rows:
        return seen
    part, kept = _restricted(layout, side.contract)
    lead, inner = seen.shape[:start], seen.shape[start + len(rows) :]
    seen = seen.reshape(prod(lead), *seen.shape[start : start + len(rows)], prod(inner))
    seen = seen.moved(1 + len(rows), 1).reshape(prod(lead), prod(inner), *part.physical_shape)
    seen = packing.moved_back(seen, jnp.zeros((), layout.dtype), part)
    order = (0, *(2 + kept.index(d) for d in contract), 1)
    return seen.transpose(order).reshape(*lead, -1, *inner)


@lru_cache(maxsize=4096)
def _restricted(layout: GridLayout, ks: Dims) -> tuple[GridLayout, Dims]:
    """A layout of the logical dims of some collapsed dims alone, on one core, and those dims."""
    kept = tuple(sorted(d for k in ks for d in (layout.groups or ())[k]))
    lines = AffineMap(layout.ndim, tuple(layout.linear.results[k] for k in ks))
    shape = tuple(layout.shape[d] for d in kept)
    linear = lines.compose(embedding(layout.ndim, kept))
    return GridLayout(shape, layout.dtype, (1,) * len(ks), linear=linear), kept


def _times(a: _Matrix, b: _Matrix, params: dict[str, Any]) -> jax.Array:
    """(batch, left rows, right rows); no batch dim in the product where there is one batch."""
    batch = tuple(range(a.array.ndim - 2))
    left, right = (len(batch) + (0 if m.contract_first else 1) for m in (a, b))
    return lax.dot_general(a.array, b.array, (((left,), (right,)), (batch, batch)), **params)


def _in_tiles(
    out: jax.Array, left: dict[int, Dims], right: dict[int, Dims], product: Product
) -> Seen:
    """The product's rows and columns as cores and tiles, in the natural layout's order."""
    natural = product.natural
    assert natural is not None
    keys = [(False, k) for k in product.left.batch + product.left.free]
    keys += [(True, k) for k in product.right.free]
    shapes = {key: (right if key[0] else left)[key[1]] for key in keys}
    # Every row has cores, tiles and, if the result is tiled, positions in the tile.
    depth = 3 if natural.tile else 2
    full = {key: (*shape, *(1,) * (depth - len(shape))) for key, shape in shapes.items()}
    seen = Seen.of(out).reshape(*(n for key in keys for n in full[key]))
    start = {key: i * depth for i, key in enumerate(keys)}
    rows = [(row.is_right, row.k) for row in product.rows]
    seen = seen.transpose([start[key] + level for level in range(depth) for key in rows])
    shape = []
    for level in range(depth):
        shape += [1] * product.first + [full[key][level] for key in rows]
    return seen.reshape(*shape)
