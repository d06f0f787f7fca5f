"""`LocalMove`: the program by which one device relays out its part of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from gridlayout.key import Key
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.layouts.program import ReshapeMove, host_fill
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.sends import Phases
from gridlayout.ops.moves.workspace import Workspace
from gridlayout.sharding.collectives import Collective
from gridlayout.sharding.exchanges.exchange import Exchange
from gridlayout.sharding.exchanges.pieces import Pieces
from gridlayout.sharding.machines.machine import Machine


@dataclass(frozen=True)
class LocalMove:
    """A relayout: its collectives and one device's program, for use in `shard_map`.

    key: the way to move, the layouts and the devices, by which moves are compared. workspace: what
    it holds on a device meanwhile. exchange: set where it follows a route. pieces: set where boxes
    are sent from device to device. phases: the program as a generator of its collectives, which can
    be joined with those of other moves. sends: the mesh axes of each of these, in order. how: the
    way to move, where it has a name of its own. reordered: the bytes that a device only reorders,
    before or after what other moves between these layouts do too.
    """

    key: Key
    collectives: tuple[Collective, ...] = field(compare=False)
    run: Callable[[LazyView], LazyView] = field(compare=False)
    workspace: Callable[[], Workspace] = field(default=Workspace, compare=False)
    exchange: Exchange | None = field(default=None, compare=False)
    pieces: Pieces | None = field(default=None, compare=False)
    phases: Callable[[LazyView], Phases] | None = field(default=None, compare=False)
    sends: tuple[Axes, ...] = field(default=(), compare=False)
    how: str = field(default="", compare=False)
    reordered: int = field(default=0, compare=False)

    @property
    def is_view(self) -> bool:
        """Whether the data stays as it is in memory, and only its shape changes."""
        way = self.exchange
        if way is None or way.gathers or way.transfers or way.final or way.slices:
            return False
        return all(isinstance(move, ReshapeMove) for move in (*way.first, *way.last))

    def seconds(self, machine: Machine) -> float:
        """Return the seconds of its collectives, and of what devices only reorder."""
        return machine.seconds(self.collectives) + machine.work_seconds(nbytes=self.reordered)

    @property
    def reads_by_device(self) -> bool:
        """Whether a device reads its part at other positions than others do."""
        way = self.exchange
        return way is None or bool(way.slices) or any(each.is_slice for each in way.transfers)

    @property
    def is_gathered(self) -> bool:
        """Whether the new part is a gather of pieces, which XLA does not compute twice."""
        return self.pieces is not None and self.pieces.order is not None


def move_of(
    key: Key,
    collectives: Sequence[Collective],
    run: Callable[..., LazyView],
    new: Layout,
    workspace: Callable[[], Workspace],
    exchange: Exchange | None = None,
) -> LocalMove:
    """Return a move to `new`; run: a function of a part and of the value of padding."""
    fill, keeps = host_fill(new), new.oob is None

    def moved(x: LazyView) -> LazyView:
        return as_bits(run, x if keeps else x.exact, fill)

    return LocalMove(key, tuple(collectives), moved, cache(workspace), exchange)


def as_bits(run: Callable[..., LazyView], x: LazyView, fill: Any) -> LazyView:
    """Return `run` of a part, as bits where the dtype has to be moved so."""
    if x.array.dtype.name not in packing.AS_BITS:
        return run(x, fill)
    moved = packing.bitwise(
        lambda a, f: run(LazyView.of(a), f).materialize(), x.materialize(), fill
    )
    return LazyView.of(moved)
