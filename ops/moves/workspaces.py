"""The workspace of relayouts: the buffers that a device holds while its part is relaid out."""

from __future__ import annotations

from math import prod

import jax

from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import ReshapeMove, TransposeMove
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.pieces import reaches
from gridlayout.ops.moves.workspace import Chain, Workspace, of_chain
from gridlayout.sharding.exchanges.borders import Border
from gridlayout.sharding.exchanges.exchange import Exchange, local_bytes
from gridlayout.sharding.exchanges.pieces import Pieces
from gridlayout.sharding.meshes.placement import Placement

# The most segments of a border that XLA fuses with what reads them.
_FUSED = 4


def gathered_dims(before: Placement) -> list[int]:
    """Return the grid dims to gather, last first: the dims before it are then still small."""
    return [k for k in reversed(range(len(before.axes))) if before.axes[k]]


def exchanged_workspace(
    exchange: Exchange, old: Layout, new: Layout, before: Placement, after: Placement
) -> Workspace:
    """Return the workspace of a move along a route."""
    shape = [*before.per_device, *old.local_shape]
    chain = Chain(local_bytes(old, before))
    for k in exchange.gathers:
        _gather(chain, shape, k, before)
    if exchange.transfers:
        shape = [*exchange.digit_shape]
        if _is_copied(exchange, (*before.per_device, *old.local_shape)):
            chain.view(exchange.padded(chain.nbytes)).make()
    for transfer in exchange.transfers:
        if transfer.pairs:
            chain.materialize().made.append((chain.nbytes, 1))
        elif transfer.source is None:
            chain.view(-(-chain.nbytes // transfer.size))
        elif transfer.parts:
            chain.gather(transfer.size, 1)
            chain.is_view = not transfer.is_in_order(shape)
        elif transfer.target is None:
            chain.gather(transfer.size, prod(shape[: transfer.source]))
        else:
            chain.exchange(transfer.size)
        shape = [*transfer.of(shape)]
    if exchange.slices or any(not isinstance(move, ReshapeMove) for move in exchange.last):
        chain.view()
    if (final := exchange.final) is not None:
        chain.nbytes = -(-local_bytes(new, after) // final.size)
        chain.gather(final.size, 1)
    return of_chain(chain)


def _is_copied(exchange: Exchange, shape: tuple[int, ...]) -> bool:
    """Return whether a part has to be transposed or padded before it is sent."""
    if not all(isinstance(move, (ReshapeMove, TransposeMove)) for move in exchange.first):
        return True
    copied = []

    def moved(part: jax.Array) -> jax.Array:
        view = packing.run_moves(LazyView.of(part), exchange.first, part)
        # A different array means that one of the moves had to copy.
        copied.append(view.array is not part or not view.is_in_order)
        return view.array

    jax.eval_shape(moved, jax.ShapeDtypeStruct(shape, "float32"))
    return copied[0]


def gathered_workspace(old: Layout, before: Placement) -> Workspace:
    """Return the workspace of all-gathering a tensor until it is replicated."""
    shape = [*before.per_device, *old.local_shape]
    chain = Chain(local_bytes(old, before))
    for k in gathered_dims(before):
        _gather(chain, shape, k, before)
    return of_chain(chain.view())


def _gather(chain: Chain, shape: list[int], k: int, before: Placement) -> None:
    """Gather grid dim `k` and drop its idle slots."""
    chain.gather(before.slots[k] // before.per_device[k], prod(shape[:k]))
    shape[k] = before.grid[k]
    if before.grid[k] < before.slots[k]:
        chain.view(-(-chain.nbytes * before.grid[k] // before.slots[k]))


def pieces_workspace(pieces: Pieces, nbytes: int) -> Workspace:
    """Return the workspace of a move in pieces: whole rows, pieces, and the new part."""
    chain, schedule, order = Chain(nbytes), pieces.schedule, pieces.order
    assert schedule is not None
    sizes = [pieces.nbytes(size) for size in schedule.sizes]
    sent = sizes[len(schedule.stays) :]
    cut = [n for n in sent if n < pieces.nbytes(pieces.source.extents)]
    is_wide = any(window.is_wide for window in pieces.source.windows)
    chain.is_apart, chain.copies = True, bool(cut) or is_wide
    if cut and order is not None:  # one gather cuts all pieces, and widens rows as it reads them
        chain.made.append((sum(sizes), 1))
        chain.keeps_first = len(sent) < len(sizes)
    elif is_wide:
        width = prod(window.width for window in pieces.source.windows)
        chain.made.append((pieces.nbytes(width), 1))
    chain.made += [(sum(some), len(some)) for some in (cut, sent) if some]
    is_looped = schedule.all_to_all is not None and order is None
    if is_looped:  # one loop cuts all pieces, another one puts them in, into a copy
        chain.made = [(sum(sent), 1), *chain.made, (sum(sent), 1)]
    out = pieces.nbytes(pieces.target.extents)
    if order is not None:  # the consumer gathers the pieces; only a part cut from them is a buffer
        is_cut = any(window.is_wide for window in pieces.target.windows)
        return Workspace((chain,), (out,) if is_cut else (), is_view=True)
    written = pieces.nbytes(reaches(pieces)[1])
    is_view = bool(pieces.target.blocks.moves_from_flat(pieces.target.placement.per_device))
    together = (written,) * (2 if is_looped else 1)
    return Workspace((chain,), together, is_view or written > out, is_written=True)


def border_workspace(border: Border, width: int, stores: bool) -> Workspace:
    """Return the workspace of receiving a border: slabs, which consumers join with the block.

    XLA writes many segments one by one before it joins them. width: bytes of a position. stores:
    whether segments that devices cut out of what they receive are stored.
    """
    if border.gathered is not None:
        return Workspace()
    written = width * sum(segment.width for segment in border.cut_out) if stores else 0
    if len(border.segments) > _FUSED:
        written = border.length * width
    return Workspace((), (border.sent * width, border.received * width, written), is_view=True)
