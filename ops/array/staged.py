"""A relayout in pieces as several programs, so that devices hold little more than both layouts.

A single program that sends all pieces holds them all, because XLA starts sends before earlier
pieces are written. Here pieces are cut into blocks; each program sends one block and writes it in
place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec
from numpy.typing import NDArray

from gridlayout.layouts.layout import Layout
from gridlayout.layouts.parts import chunks_of, sizes_of
from gridlayout.layouts.program import host_fill
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.ends import FORGETS_BOUNDS, Ends, cut_box, put_box
from gridlayout.ops.moves.jitted import jitted
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.relayout import find_move
from gridlayout.sharding.collectives import permute, shard_mapped
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.exchange import local_bytes
from gridlayout.sharding.exchanges.pieces import Pieces, Round
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.meshes.placement import Placement
from gridlayout.sharding.processes.programs import agreed_jit

# A block has 1 / `_SMALLER` of the bytes of the smallest large part (`LIMITS.host_bytes`), because
# a device holds three blocks at a time; but at least 1 / `_BLOCKS` of the device's own new part.
_SMALLER, _BLOCKS = 8, 64


def staged_pieces(
    old: Layout, new: Layout, device: DeviceGrid, before: Placement, after: Placement
) -> Pieces | None:
    """Return the pieces of a relayout of parts large enough for stages; None if they are not."""
    if max(local_bytes(old, before), local_bytes(new, after)) < LIMITS.host_bytes:
        return None
    move = find_move(old, new, device, before, after)
    pieces = None if move is None else move.pieces
    if pieces is None or pieces.schedule is None or pieces.schedule.all_to_all is not None:
        return None
    return None if move is None or move.is_gathered else pieces


def run_staged(storage: jax.Array, new: Layout, pieces: Pieces) -> jax.Array:
    """Return the storage of the new layout; padding gets `new.oob`, or 0 where that is undef."""
    dtype = packing.AS_BITS.get(storage.dtype.name)
    fill = host_fill(new)
    if dtype is not None:
        storage, fill = _as(storage, dtype), fill.view(dtype)
    stage = _Stages(pieces, fill)
    held = storage if stage.is_atoms else stage.to_atoms(storage)
    del storage
    out = stage.empty()
    for block in stage.blocks:
        out = stage.sent(out, held, block).block_until_ready()
    del held
    found = stage.from_atoms(out)
    return found if dtype is None else _as(found, new.dtype)


@jitted(1)
def _as(x: jax.Array, dtype: Any) -> jax.Array:
    return lax.bitcast_convert_type(x, dtype)


class _Stages:
    """The programs of a relayout in pieces. Devices' arrays of atoms are parts of one array."""

    def __init__(self, pieces: Pieces, fill: NDArray[Any]) -> None:
        assert pieces.schedule is not None
        self.pieces, self.fill, self.ends = pieces, fill, Ends(pieces, fill)
        self.names = tuple(pieces.device.fine.axis_names)
        self.spec = PartitionSpec(self.names)
        part = prod(pieces.target.extents)
        most = max(LIMITS.host_bytes // fill.dtype.itemsize // _SMALLER, part // _BLOCKS, 1)
        every = (*pieces.schedule.stays, *pieces.schedule.rounds)
        self.blocks = [block for each in every for block in blocks_of(each, most)]
        # If the old part in memory is already the array of atoms, it is not copied.
        self.is_atoms = self.ends.is_atoms

    def _mapped(self, fn: Any, sources: Any, target: Any, **options: Any) -> Any:
        mapped = shard_mapped(fn, self.pieces.device.fine, sources, target)
        return agreed_jit(mapped, self.pieces.device, **options)

    def to_atoms(self, storage: jax.Array) -> jax.Array:
        """Return the old parts as arrays of atoms."""
        source = self.pieces.source.placement.spec

        def run(part: jax.Array) -> jax.Array:
            return self.ends.to_atoms(LazyView.of(part))

        found: jax.Array = self._mapped(run, (source,), self.spec)(storage)
        return found

    def empty(self) -> jax.Array:
        """Return arrays of atoms in which no piece is written yet."""
        extents = self.pieces.target.extents
        shape = (self.pieces.device.size * extents[0], *extents[1:])
        sharding = NamedSharding(self.pieces.device.fine, self.spec)
        made = jax.jit(partial(jnp.full, shape, self.fill), out_shardings=sharding)
        return made()

    def sent(self, out: jax.Array, held: jax.Array, block: Round) -> jax.Array:
        """Return the new arrays with one more block, sent unless it stays on its device."""
        source = self.pieces.source.placement.spec if self.is_atoms else self.spec
        stays = bool((block.rows.source == block.rows.target).all())
        key = (self.pieces, block.size, () if stays else tuple(block.pairs), source)
        if key not in (known := self._known):
            pairs = block.pairs

            def run(out: jax.Array, part: jax.Array, *tables: jax.Array) -> jax.Array:
                x = self.ends.to_atoms(LazyView.of(part)) if self.is_atoms else part
                if FORGETS_BOUNDS:
                    x = lax.optimization_barrier(x)
                starts, ends, counts = (
                    [row[0, d] for d in range(len(block.size))] for row in tables
                )
                piece = cut_box(x, starts, block.size)
                if not stays:
                    piece = permute(piece, self.names, pairs)
                return put_box(out, piece, ends, counts)

            known[key] = self._mapped(
                run, (self.spec, source, *[self.spec] * 3), self.spec, donate_argnums=0
            )
        found: jax.Array = known[key](out, held, *map(self._rows, block.tables))
        return found

    @property
    def _known(self) -> dict[Any, Any]:
        found: dict[Any, Any] = self.__dict__.setdefault("_programs", {})
        return found

    def _rows(self, table: NDArray[np.int64]) -> jax.Array:
        """Return a table with one row per device as an array, with each row on its device."""
        rows, sharding = table.astype(np.uint32), NamedSharding(self.pieces.device.fine, self.spec)
        return jax.make_array_from_callback(rows.shape, sharding, lambda index: rows[index])

    def from_atoms(self, out: jax.Array) -> jax.Array:
        """Return the new parts from arrays of atoms."""

        def run(part: jax.Array) -> jax.Array:
            return self.ends.from_atoms(LazyView.of(part)).materialize()

        found: jax.Array = self._mapped(run, (self.spec,), self.pieces.target.placement.spec)(out)
        return found


def blocks_of(whole: Round, most: int) -> Iterator[Round]:
    """Yield a round as rounds of at most `most` elements, each with pieces of exactly its size.

    So no piece reaches beyond the array that it is cut from or written to.
    """
    for size in np.unique(whole.rows.sizes, axis=0):
        rows = whole.rows.at((whole.rows.sizes == size).all(axis=1))
        for box in chunks_of(tuple((0, int(n)) for n in size), most):
            corner, extents = np.array([low for low, _ in box]), sizes_of(box)
            sizes = np.broadcast_to(np.array(extents), rows.sizes.shape)
            every = replace(rows, sizes=sizes, sent=rows.sent + corner, put=rows.put + corner)
            yield Round(every, np.arange(len(sizes)), extents, whole.devices)
