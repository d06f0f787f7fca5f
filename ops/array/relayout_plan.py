"""`RelayoutPlan`: the data that a relayout moves between devices, and its program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import product
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec, Sharding
from numpy.typing import NDArray

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.draw.flows import draw_device_flows
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.array.relayout import check_relayout
from gridlayout.ops.moves.local_move import LocalMove
from gridlayout.ops.moves.relayout import find_move, nothing_moves, offered_moves
from gridlayout.ops.moves.spaces import as_stored
from gridlayout.public import public
from gridlayout.sharding.collectives import COPY, Collective, Collectives, total_bytes
from gridlayout.sharding.device_argument import as_device
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.exchange import Exchange, local_bytes
from gridlayout.sharding.exchanges.pieces import Pieces
from gridlayout.sharding.logical_sharding import layout_of_spec
from gridlayout.svg import Drawing
from gridlayout.tables.words import duration

# The most devices for which there is a matrix of bytes by pair; it takes 128 MB.
MOST_DEVICES = 4096
# The most collectives of a program that are printed.
MOST_LINES = 8


@dataclass(frozen=True)
class Alternative:
    """Another way to do a relayout: the bytes that devices receive, and the seconds it takes."""

    how: str
    received: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.how}: receives {self.received:,} B in {duration(self.seconds)}"


@public
@dataclass(frozen=True, eq=False)
class RelayoutPlan:
    """The relayout of a tensor from layout `source` to layout `target`.

    how: `nothing`, `copy` (from one memory space to another), `local` (each device by itself),
    `exchange` (whole mesh axes at a time), `pieces` (the boxes that an old and a new part have in
    common are sent), `borders` (blocks of another size on the same devices: neighbours send what
    is missing), `aligned` (whole mesh axes at a time, with borders that make blocks begin at the
    same positions), or `logical` (through the logical array, replicated on every device).
    received: the bytes that devices receive, including padding, what is sliced off afterwards, and
    copies between memory spaces. collectives: what they are sent in. exchange: the program of one
    device, for `local` and `exchange`. pieces: for `pieces`. alternatives: ways that are not faster
    on the device grid's machine; some of them send less. Without a `device` grid, each core is a
    device, numbered row-major, and there is no program.
    """

    source: Layout
    target: Layout
    device: DeviceGrid | None
    how: str
    received: int
    exchange: Exchange | None = None
    collectives: tuple[Collective, ...] = ()
    pieces: Pieces | None = None
    alternatives: tuple[Alternative, ...] = ()

    @property
    def seconds(self) -> float:
        """The seconds of the collectives on the device grid's machine; 0 without a device grid."""
        return 0.0 if self.device is None else self.device.machine.seconds(self.collectives)

    @property
    def devices(self) -> int:
        """The number of devices; without a device grid, of cores."""
        if self.device is None:
            return max(self.source.num_cores, self.target.num_cores)
        return self.device.size

    @cached_property
    def bytes(self) -> NDArray[np.int64]:
        """`bytes[i, j]`: bytes that device `j` needs and device `i` holds, without padding.

        A device that holds a copy of what it needs gets it from itself. `LayoutError` for more than
        4,096 devices: `moved` and `stays` are known for any number.
        """
        if self.devices > MOST_DEVICES:
            raise LayoutError(
                f"the matrix of bytes between {self.devices} devices is too large: it is for up to "
                f"{MOST_DEVICES}; plan.moved and plan.stays are known for any number"
            )
        return device_bytes(self.source, self.target, self.device)

    @cached_property
    def _needed(self) -> tuple[int, int]:
        return needed_bytes(self.source, self.target, self.device)

    @property
    def stays(self) -> int:
        """The bytes that are on a device that needs them already."""
        return self._needed[1]

    @property
    def moved(self) -> int:
        """The bytes that must change device, whatever the program."""
        return self._needed[0]

    def __str__(self) -> str:
        dims = ",".join(map(str, self.source.shape))
        unit = "cores" if self.device is None else "devices"
        lines = [
            f"relayout {self.source.dtype.name}[{dims}] on {self.devices} {unit}: {self.how}",
            f"  from {self.source!r}",
            f"  to   {self.target!r}",
            f"  {self.moved:,} B must move, {self.stays:,} B stay; "
            f"the program receives {self.received:,} B",
            *(f"  {line}" for line in _program_lines(self.exchange, self.collectives)),
        ]
        if self.alternatives:
            lines.append(f"  takes {duration(self.seconds)}; alternatives:")
            lines += [f"    {each}" for each in self.alternatives]
        if self.devices <= 16:
            lines += _matrix_lines(self.bytes)
        return "\n".join(lines)

    __repr__ = __str__

    def draw(self) -> Drawing:
        """Return a drawing of the bytes that go from device to device; `LayoutError` as of `bytes`.

        >>> from gridlayout import GridLayout
        >>> relayout_plan(GridLayout((8,), grid=(2,)), GridLayout((8,), grid=(4,))).draw().title
        'float32[8]: 24 B move, 8 B stay'
        """
        return draw_device_flows(self.source, self.target, self.bytes)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>" if self.devices > MOST_DEVICES else self.draw().svg

    def _repr_svg_(self) -> str | None:
        return None if self.devices > MOST_DEVICES else self.draw()._repr_svg_()


def _program_lines(exchange: Exchange | None, collectives: Sequence[Collective]) -> list[str]:
    if exchange is None:
        more = len(collectives) - MOST_LINES
        lines = [str(each) for each in collectives[:MOST_LINES]]
        return [*lines, f"and {more} more"] if more > 0 else lines
    return [
        *(f"all_gather of dim {k}" for k in exchange.gathers),
        *map(str, exchange.first),
        *map(str, exchange.transfers),
        *map(str, exchange.last),
        *([str(exchange.final)] if exchange.final else []),
        *(f"slice of dim {k}" for k in exchange.slices),
        *(str(each) for each in collectives if each.kind == COPY),
    ]


def _matrix_lines(bytes: NDArray[np.int64]) -> list[str]:
    width = max(len(f"{n:,}") for n in bytes.reshape(-1).tolist()) + 2
    head = "  from \\ to" + "".join(str(j).rjust(width) for j in range(len(bytes)))
    rows = [
        f"{i:>11}" + "".join(f"{n:,}".rjust(width) for n in row)
        for i, row in enumerate(bytes.tolist())
    ]
    return [head, *rows]


def _target(source: Layout, target: Any, device: DeviceGrid | None) -> Layout:
    """Return the layout to move to; `LayoutError` unless it is one, or a sharding, of the array."""
    if isinstance(target, (Sharding, PartitionSpec)) and device is not None:
        target = layout_of_spec(source.shape, source.dtype, target, device)
    check_relayout(source, target)
    found: Layout = target
    return found


@public
def relayout_plan(
    source: GridArray | Layout,
    target: Layout | Sharding | PartitionSpec,
    device: DeviceGrid | None = None,
) -> RelayoutPlan:
    """Return the plan of `gl.relayout(source, target)`; nothing is moved.

    source: the array, or a layout together with the `device` grid that both are placed on. Without
    a device grid, each core counts as a device. target: a layout, or on a device grid a sharding of
    JAX. `LayoutError` for another shape or dtype.

    >>> from gridlayout import DeviceGrid, GridLayout
    >>> a, b = (GridLayout((8, 8), "float32", grid=(2, 1), tile=(t, t)) for t in (4, 2))
    >>> print(relayout_plan(a, b, DeviceGrid((1,))))
    relayout float32[8,8] on 1 devices: local
      from GridLayout((8, 8), 'float32', grid=(2, 1), tile=(4, 4))
      to   GridLayout((8, 8), 'float32', grid=(2, 1), tile=(2, 2))
      0 B must move, 256 B stay; the program receives 0 B
      ReshapeMove(before=(2, 1, 1, 2, 4, 4), after=(2, 1, 1, 2, 2, 2, 2, 2))
      TransposeMove(order=(0, 1, 2, 4, 3, 6, 5, 7))
      ReshapeMove(before=(2, 1, 1, 2, 2, 2, 2, 2), after=(2, 1, 2, 4, 2, 2))
      from \\ to    0
              0  256
    """
    device = None if device is None else as_device(device)
    if isinstance(source, GridArray):
        if device is not None and device != source.device:
            raise LayoutError(f"the array is on {source.device!r}, not on {device!r}")
        array = source
        source, device = array.layout, array.device
    target = _target(source, target, device)
    if device is not None:
        source, target = as_stored(source, device), as_stored(target, device)
    copied = _copied(source, target, device)
    how = "copy" if copied[0] else "nothing"
    staying = RelayoutPlan(source, target, device, how, copied[0], None, copied[1])
    if device is None:
        if nothing_moves(source, target):
            return staying
        moved, _ = needed_bytes(source, target, None)
        how = "exchange" if moved else "local"
        return RelayoutPlan(source, target, None, how, moved + copied[0])
    before, after = (device.placement(layout) for layout in (source, target))
    move = find_move(source, target, device, before, after)
    if move is None:
        return staying
    others = tuple(
        Alternative(_how(x), total_bytes(x.collectives), x.seconds(device.machine))
        for x in offered_moves(source, target, device, before, after)
        if x != move
    )
    received = total_bytes(move.collectives) + copied[0]
    ways = (move.exchange, (*move.collectives, *copied[1]), move.pieces, others)
    return RelayoutPlan(source, target, device, _how(move), received, *ways)


def _how(move: LocalMove) -> str:
    """Return the `RelayoutPlan.how` of a move."""
    if move.how:
        return move.how
    if move.exchange is not None:
        return "exchange" if total_bytes(move.collectives) else "local"
    return "logical" if move.pieces is None else "pieces"


def _copied(
    source: Layout, target: Layout, device: DeviceGrid | None
) -> tuple[int, tuple[Collective, ...]]:
    """Return what is copied between memory spaces: total bytes, and a device's collectives."""
    if device is None:
        spaces = {source.memory, target.memory}
        return (target.nbytes if len(spaces & {*MEMORY_SPACES}) > 1 else 0), ()
    nbytes = local_bytes(target, device.placement(target))
    found = Collectives(device).copy(source.memory, target.memory, nbytes).found
    return total_bytes(found), tuple(found)


def needed_bytes(a: Layout, b: Layout, device: DeviceGrid | None) -> tuple[int, int]:
    """Return the bytes that devices need in `b` and do not hold in `a`, and those they hold."""
    found = a.traffic(b)
    if device is None:
        source, target = _numbers(found.before, a.core_shape), _numbers(found.after, b.core_shape)
        total, stay = int(found.counts.sum()), int(found.counts[source == target].sum())
        return dtypes.nbytes(total - stay, a.dtype), dtypes.nbytes(stay, a.dtype)
    sizes = np.array(tuple(device.fine.shape.values()), np.int64)
    before = _coordinates(device, a, found.before)
    after = _coordinates(device, b, found.after)
    # Every device along an axis that `b` leaves free needs a copy. It holds one already if it has a
    # holder's coordinates along the axes that `a` divides. So along an axis that only `b` leaves
    # free, one device does.
    copies = int(sizes[after.free].prod())
    at_home = int(sizes[after.free & before.free].prod())
    fixed = ~after.free & ~before.free
    here = (before.digits[:, fixed] == after.digits[:, fixed]).all(axis=1)
    total, stay = int(found.counts.sum()) * copies, int(found.counts[here].sum()) * at_home
    return dtypes.nbytes(total - stay, a.dtype), dtypes.nbytes(stay, a.dtype)


def device_bytes(a: Layout, b: Layout, device: DeviceGrid | None) -> NDArray[np.int64]:
    """Return the bytes that device `i` holds in `a` and device `j` needs in `b`, at `[i, j]`.

    Without a device grid, by core, numbered row-major.
    """
    found = a.traffic(b)
    bits = dtypes.bits(a.dtype)
    if device is None:
        count = max(a.num_cores, b.num_cores)
        total = np.zeros((count, count), np.int64)
        pairs = (_numbers(found.before, a.core_shape), _numbers(found.after, b.core_shape))
        np.add.at(total, pairs, found.counts)
        return -(-total * bits // 8)
    sizes, order = tuple(device.fine.shape.values()), np.array(device.order, np.int64)
    before = _coordinates(device, a, found.before)
    after = _coordinates(device, b, found.after)
    total = np.zeros((device.size, device.size), np.int64)
    # Every device along an axis that `b` leaves free needs a copy. It gets it from the nearest
    # holder in `a`: along an axis that `a` leaves free, from its own coordinate.
    for copy in product(
        *(range(n) if free else (0,) for n, free in zip(sizes, after.free, strict=True))
    ):
        target = after.digits + np.array(copy, np.int64)
        source = np.where(before.free, target, before.digits)
        pairs = (_numbers(source, sizes), _numbers(target, sizes))
        np.add.at(total, tuple(order[numbers] for numbers in pairs), found.counts)
    return -(-total * bits // 8)


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """Device coordinates along each fine mesh axis, one row per core; `free` axes hold copies."""

    digits: NDArray[np.int64]
    free: NDArray[np.bool_]


def _coordinates(device: DeviceGrid, layout: Layout, cores: NDArray[np.int64]) -> _Coordinates:
    placement = device.placement(layout)
    names = device.fine.axis_names
    digits = np.zeros((len(cores), len(names)), np.int64)
    used = {axis for axes in placement.axes for axis in axes}
    for k, axes in enumerate(placement.axes):
        index = cores[:, k] // placement.per_device[k]
        for axis in reversed(axes):
            digits[:, names.index(axis)] = index % device.fine.shape[axis]
            index = index // device.fine.shape[axis]
    return _Coordinates(digits, np.array([name not in used for name in names]))


def _numbers(rows: NDArray[np.int64], extents: Shape) -> NDArray[np.int64]:
    """Return rows of coordinates as row-major numbers."""
    numbers = np.zeros(len(rows), np.int64)
    for k, extent in enumerate(extents):
        numbers = numbers * extent + rows[:, k]
    return numbers
