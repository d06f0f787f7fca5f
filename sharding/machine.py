"""`Machine`: what a mesh of devices takes to send, to multiply, to go through memory: seconds.

What is chosen by time, or reported as time, asks this one object: products, relayouts, reports.
What emulated devices share is in their figures: eight devices on two cores do in turns what eight
chips do at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from gridlayout.arguments import Shape, positive
from gridlayout.errors import LayoutError
from gridlayout.layouts.buffers import Buffers
from gridlayout.layouts.memory import CHIPS, Chip
from gridlayout.sharding.chips import BOARDS, Figure, Links, Rates
from gridlayout.sharding.collectives import (
    ALL_REDUCE,
    ALL_TO_ALL,
    COPY,
    PERMUTE,
    REDUCE_SCATTER,
    Collective,
)
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.measure import measured
from gridlayout.sharding.placement import MeshAxes

if TYPE_CHECKING:
    from gridlayout.sharding.device_grid import DeviceGrid

_FORMAT = "gridlayout machine"


@dataclass(frozen=True)
class Machine:
    """A mesh of chips and their links: seconds and bytes.

    chip: a `gl.Chip`, or the name of a ready machine (`Machine.names()`), which brings its mesh,
    links and rates along. mesh: how many devices there are along each axis; None for any mesh.
    links: one `gl.Links` for all axes, or one an axis. rates: what one device does in a second;
    without them, computing on a chip of which nothing is known takes no time. figures: what
    collectives were measured to take, instead of what the links say. axes: the names of the mesh's
    axes, by default those of `gl.DeviceGrid`. `LayoutError` where figures are impossible, or an
    axis has no links.

    >>> import gridlayout as gl
    >>> machine = gl.Machine("n150", mesh=(4, 8), links=gl.Links(12.5e9, latency=711e-9))
    >>> gather = Collective("all_gather", ("y",), 8, 7 * 2**20, 32)
    >>> f"{machine.seconds([gather]) * 1e6:.0f} us"
    '592 us'
    """

    chip: Chip
    mesh: Shape | None
    links: tuple[Links, ...]
    rates: Rates | None
    figures: tuple[Figure, ...]
    axis_names: tuple[str, ...]

    def __init__(
        self,
        chip: Chip | str,
        mesh: Sequence[int] | None = None,
        links: Links | Sequence[Links] | None = None,
        *,
        rates: Rates | None = None,
        figures: Sequence[Figure] = (),
        axes: Sequence[str] | None = None,
    ) -> None:
        if isinstance(chip, str) and chip.lower() in CHIPS:
            chip = CHIPS[chip.lower()]
        if isinstance(chip, str):
            name = chip.lower()
            if name not in BOARDS:
                raise LayoutError(
                    f"machine {chip!r} is none of {', '.join((*BOARDS, *CHIPS))}: give a gl.Chip "
                    "with links= and rates="
                )
            board = BOARDS[name]
            chip, rates = board.chip, board.rates if rates is None else rates
            links = board.links if links is None else links
            mesh = board.mesh if mesh is None else mesh
        if not isinstance(chip, Chip):
            raise LayoutError(f"chip {chip!r} must be a gl.Chip, or one of {', '.join(BOARDS)}")
        if rates is None:
            rates = next((b.rates for b in BOARDS.values() if b.chip == chip), None)
        if rates is not None and not isinstance(rates, Rates):
            raise LayoutError(f"rates {rates!r} must be a gl.Rates")
        sizes = None if mesh is None else positive(mesh, "mesh")
        given: tuple[Any, ...] = tuple(links) if isinstance(links, Sequence) else (links,)
        given = () if links is None else given
        if not all(isinstance(each, Links) for each in given):
            raise LayoutError(f"links {links!r} must be a gl.Links, or one for each axis")
        if sizes is not None and len(given) not in (1, len(sizes)) and prod(sizes) > 1:
            raise LayoutError(
                f"a machine of {sizes} devices has {len(given)} links: give one gl.Links for all "
                f"axes, or {len(sizes)}"
            )
        if not isinstance(figures, Sequence) or not all(isinstance(x, Figure) for x in figures):
            raise LayoutError(f"figures {figures!r} must be a sequence of measured figures")
        listed = axes if isinstance(axes, Sequence) else ()
        names = _default_names(len(sizes or given)) if axes is None else tuple(listed)
        if not all(isinstance(name, str) for name in names) or len(names) < len(sizes or given):
            raise LayoutError(f"axes {axes!r} must be a name for each axis of the mesh {sizes}")
        values = (chip, sizes, given, rates, tuple(figures), names)
        for field, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, field, value)

    @staticmethod
    def names() -> tuple[str, ...]:
        """The ready machines.

        >>> "n300" in Machine.names()
        True
        """
        return tuple(BOARDS)

    @staticmethod
    def measure(device: DeviceGrid | None = None) -> Machine:
        """The machine at hand, as some seconds of its collectives, products and passes tell.

        device: whose mesh is measured; by default all devices that JAX has, for any mesh of them.
        Medians of a few runs, all groups of devices at the same time. `LayoutError` where there
        are no devices.
        """
        if device is not None:
            if not hasattr(device, "check_has_devices"):
                raise LayoutError(f"device {device!r} must be a gl.DeviceGrid, or None for all")
            device.check_has_devices("gl.Machine.measure")
        every = np.array(jax.devices())
        factors = MeshAxes.of(("x",), every.shape)
        mesh = Mesh(every.reshape(factors.sizes), factors.names) if device is None else device.fine
        figures, rates = measured(mesh)
        links = Links(max((each.bandwidth for each in figures), default=1e9))
        chip = Chip(str(mesh.devices.flat[0].device_kind), (1, 1))
        shape = None if device is None else device.shape
        return Machine(chip, shape, links, rates=rates, figures=figures)

    def places(self, layout: Buffers) -> bool:
        """Whether one of the chips has cores and room for a layout: no core gets two shards of it.

        `layout.can_be_on(chip)`, by which `gl.explain(..., plan=True)` proposes layouts too.

        >>> from gridlayout import GridLayout
        >>> grids = (1, 64), (13, 5), (65, 1)
        >>> [Machine("n150").places(GridLayout((512, 64), grid=grid)) for grid in grids]
        [True, False, False]
        """
        if not isinstance(layout, Buffers):
            raise LayoutError(f"layout {layout!r} must be a gl.Layout")
        return layout.can_be_on(self.chip)

    @cached_property
    def by_core(self) -> Machine:
        """The same machine with cores as its devices: their axes, `r` and `c`, come last.

        A core has its share of the chip's rates, and links to its neighbours on the network on the
        chip, which wraps. Itself where chips have one core.

        >>> machine = Machine("wormhole 2x4").by_core
        >>> machine.mesh, machine.axis_names, machine.chip.capacity["l1"]
        ((2, 4, 8, 8), ('x', 'y', 'r', 'c'), 1395296)
        """
        cores = prod(self.chip.grid)
        if cores == 1 or self.rates is None or not self.rates.noc:
            return self
        own, chip = self.rates, self.chip
        shared = {space: n if space == "l1" else n // cores for space, n in chip.capacity.items()}
        core = Chip(f"cores of {chip.name}", (1,) * len(chip.grid), shared, chip.tiles)
        rates = replace(
            own,
            flops=own.flops / cores,
            memory=2 * own.elementwise / cores or own.memory / cores,  # results of two bytes
            elementwise=own.elementwise / cores,
            dram=own.memory / cores,
        )
        mesh = () if self.mesh is None or prod(self.mesh) == 1 else self.mesh
        names = ("r", "c") if len(chip.grid) == 2 else _default_names(len(chip.grid))
        links = [self.links[0 if len(self.links) == 1 else k] for k in range(len(mesh))]
        network = Links(own.noc, latency=own.hop, wrap=True)
        return Machine(
            core,
            (*mesh, *chip.grid),
            [*links, *[network] * len(chip.grid)],
            rates=rates,
            axes=(*self.axis_names[: len(mesh)], *names),
        )

    # -- seconds ---------------------------------------------------------------------------------

    def seconds(
        self,
        collectives: Iterable[Collective] = (),
        flops: float = 0,
        nbytes: float = 0,
        elements: float = 0,
    ) -> float:
        """What one device takes for collectives one after another, products, and memory.

        flops: floating-point operations of its products. nbytes: bytes that it reads or writes.
        elements: results of elementwise functions that take longer than to read them.
        """
        sent = sum(each.count * self.once(each) for each in collectives)
        if self.rates is None:
            return sent
        computed = elements / self.rates.elementwise if elements and self.rates.elementwise else 0.0
        return sent + flops / self.rates.flops + nbytes / self.rates.memory + computed

    def computing(
        self, flops: float, nbytes: float, transposed: float = 0, packs: bool = True
    ) -> dict[str, float]:
        """Seconds of one op on one device by its limit: `products` or `memory`, the other 0.

        flops: operations of its products. nbytes: bytes of its memory that it goes through, of a
        core L1: at the same time, or before where the device packs operands and packs is true.
        transposed: bytes of operands that a product transposes first.

        >>> Machine("n150").by_core.computing(2 * 32**3, 3 * 4096)
        {'products': 0.0, 'memory': 9.6e-08}
        """
        multiplied, passed = self.seconds(flops=flops), self.seconds(nbytes=nbytes)
        if self.rates is None or not flops:
            return {"products": 0.0, "memory": passed}
        if self.rates.transposed:
            passed += transposed / self.rates.transposed
        total = max(multiplied, passed)
        if packs:
            total = self.rates.start + (multiplied + passed if self.rates.packs else total)
        if multiplied >= passed:
            return {"products": total, "memory": 0.0}
        return {"products": 0.0, "memory": total}

    def slicing(self, nbytes: float) -> float:
        """Seconds of a device to take so many bytes out of an array that it has.

        What packs operands copies the part first; others read it where it is.
        """
        return self.seconds(nbytes=2 * nbytes) if self.rates and self.rates.packs else 0.0

    def streaming(self, whole: float, own: float) -> float:
        """Seconds of a core to read bytes of the chip's DRAM, or to write there.

        whole: bytes that all its cores read, what several of them need once, as kernels do that
        read and multicast. own: bytes that one core gets, over the network on the chip.

        >>> core = Machine("n150").by_core
        >>> f"{core.streaming(2**20, 2**14) * 1e6:.2f} {core.streaming(2**20, 2**20) * 1e6:.2f} us"
        '3.93 37.45 us'
        """
        if self.rates is None or not self.has_cores:
            return 0.0
        return max(whole / self._cores / self.rates.dram, own / self.rates.noc)

    def writing(self, whole: float, own: float, parts: int) -> float:
        """Seconds of a core to write bytes to the chip's DRAM that it has own bytes of.

        parts: how many cores have different ones; of those that have copies each writes its share,
        at least a tile of 4,096 bytes.

        >>> core = Machine("n150").by_core
        >>> f"{core.writing(2**20, 2**20, 1) * 1e6:.2f} {core.writing(2**20, 2**14, 64) * 1e6:.2f}"
        '3.93 3.93'
        """
        copies = max(self._cores // max(parts, 1), 1)
        return self.streaming(whole, max(own / copies, min(own, 4096)))

    @property
    def _cores(self) -> int:
        """Devices that are cores of one chip."""
        return prod(self.mesh[len(self.mesh) - len(self.chip.grid) :]) if self.mesh else 1

    def once(self, each: Collective) -> float:
        """Seconds of a collective, done once; of one that goes with others, its share.

        Ring and line formulas as in the scaling book's chapter on sharding; several axes share
        what is sent.
        """
        if each.kind == COPY:
            return self.seconds(nbytes=each.received_bytes)
        if (figure := self._figure(each.kind, each.group_size)) is not None:
            copied = self.seconds(nbytes=2 * each.copied_bytes)
            return figure.latency / each.together + each.received_bytes / figure.bandwidth + copied
        key = each.axes, each.group_size
        if key not in self._known:
            links = self._links(each.axes)
            self._known[key] = links, self._paths(each, len(links))
        links, paths = self._known[key]
        if not links:
            return 0.0
        pairs = zip(links, paths, strict=True)
        time = max(_time(each, link, path, len(links)) for link, path in pairs)
        return max(link.start for link in links) / each.together + time

    def _paths(self, each: Collective, links: int) -> list[_Path]:
        """How a collective goes along each of its axes; of a mesh unknown, from neighbour on."""
        wholes = dict.fromkeys(map(self.whole_axis, each.axes))
        if self.mesh is None or not set(wholes) <= set(self.axis_names[: len(self.mesh)]):
            share = -(-(each.group_size ** (1 / links)) // 1)
            return [_Path(int(share))] * links
        found = []
        for whole in wholes:
            factors = MeshAxes.of((whole,), (self.mesh[self.axis_names.index(whole)],))
            mine = [whole in each.axes or name in each.axes for name in factors.names]
            n = prod(size for size, yes in zip(factors.sizes, mine, strict=True) if yes)
            after = mine.index(True) if True in mine else 0
            rest = zip(factors.sizes[after:], mine[after:], strict=True)
            stride = prod(size for size, yes in rest if not yes)
            found.append(_Path(n, stride, n * stride == prod(factors.sizes)))
        return found

    def padded(self, block: Shape) -> Shape:
        """A device's block of an array in whole tiles that the chip computes with.

        >>> Machine("n150").padded((3, 40, 7)), Machine("v5e 4x4").padded((3, 40, 7))
        ((3, 64, 32), (3, 40, 7))
        """
        if not self.chip.tiles or len(block) < 2:
            return block
        tile = self.chip.tiles[0]
        last = (-(-n // t) * t for n, t in zip(block[-2:], tile, strict=True))
        return (*block[:-2], *last)

    @property
    def has_cores(self) -> bool:
        """Whether its devices are cores of chips, with DRAM behind them (`by_core`)."""
        return self.rates is not None and self.rates.dram > 0

    @property
    def core_axes(self) -> tuple[str, ...]:
        """The axes of the mesh along which its devices are cores of one chip."""
        mesh = self.mesh or ()
        return (
            self.axis_names[len(mesh) - len(self.chip.grid) : len(mesh)] if self.has_cores else ()
        )

    @property
    def device_capacity(self) -> int | None:
        """Bytes that a device can hold in all its memories; None where the chip states none."""
        each, cores = self.chip.capacity, prod(self.chip.grid)
        known = [each[space] * n for space, n in (("l1", cores), ("dram", 1)) if space in each]
        return sum(known) if known else None

    def bytes_seconds(self, received: float) -> float:
        """What a device takes at least to receive so many bytes, by whichever collective."""
        rates = [figure.bandwidth for figure in self.figures]
        rates = rates or [each.bandwidth for each in self.links]
        return received / max(rates) if rates else 0.0

    def least_seconds(self, received: float) -> float:
        """Seconds in which no collectives bring a device more bytes than so many.

        Over the links of all axes at once, both ways round rings; of a machine with a mesh.

        >>> machine = Machine("v5e 16x16")
        >>> gather = Collective("all_gather", ("x", "y"), 256, 255 * 2**20, 256)
        >>> machine.least_seconds(255 * 2**20) < machine.once(gather)
        True
        """
        if self.figures:
            return self.bytes_seconds(received)
        links = self.links * len(self.mesh or ()) if len(self.links) == 1 else self.links
        rate = sum(
            each.bandwidth * (2 if each.wrap and n > 2 else 1)
            for each, n in zip(links, self.mesh or (), strict=False)
            if n > 1
        )
        return received / rate if rate else 0.0

    @property
    def has_latency(self) -> bool:
        """Whether a collective takes time of its own, however little it sends."""
        return bool(self.figures) or any(
            each.latency or each.start or each.reduce_latency for each in self.links
        )

    @property
    def combines(self) -> bool:
        """Whether all-reduces that XLA combines pay one latency, without a copy of their operands.

        On a CPU each operand is reduced by itself.
        """
        return self.rates is None or not self.rates.packs

    def _links(self, axes: Sequence[str]) -> list[Links]:
        """The links of some axes of the mesh, or of its factors."""
        if len(self.links) <= 1:
            return list(self.links) * len({self.whole_axis(axis) for axis in axes})
        names = dict.fromkeys(map(self.whole_axis, axes))
        return [self.links[self.axis_names.index(name)] for name in names]

    def whole_axis(self, axis: str) -> str:
        """The mesh axis that a factor is of: `y` of `y0`."""
        return axis if axis in self.axis_names else axis.rstrip("0123456789") or axis

    def after(self, work: float) -> Machine:
        """The same for a program that computes for so many seconds before each collective.

        Where devices share the cores of a host, one finishes later than another: a collective waits
        for the last one.
        """
        if not work or not any(each.wait for each in self.figures):
            return self
        figures = [
            replace(each, latency=each.latency + min(LIMITS.apart * work, each.wait), wait=0.0)
            for each in self.figures
        ]
        return self._with(figures=figures)

    def on(self, mesh: Shape | None) -> Machine:
        """The same chips and links in another mesh, or in any."""
        has_names = mesh is not None and len(self.axis_names) >= len(mesh)
        return self._with(mesh=mesh, axes=self.axis_names if has_names else None)

    def named(self, axes: Sequence[str]) -> Machine:
        """The same with other names of the mesh's axes."""
        if len(self.links) <= 1 or tuple(axes) == self.axis_names:
            return self
        return self._with(axes=axes)

    def _with(self, **changes: Any) -> Machine:
        """The same with other arguments."""
        given: dict[str, Any] = {
            **{"mesh": self.mesh, "links": self.links, "rates": self.rates},
            **{"figures": self.figures, "axes": self.axis_names},
        }
        return Machine(self.chip, **(given | changes))

    @cached_property
    def _known(self) -> dict[Any, tuple[list[Links], list[_Path]]]:
        """The links and paths of collectives by their axes."""
        return {}

    @cached_property
    def _by_kind(self) -> Mapping[str, list[Figure]]:
        found: dict[str, list[Figure]] = {}
        for figure in sorted(self.figures, key=lambda each: each.group_size):
            found.setdefault(figure.kind, []).append(figure)
        return found

    def _figure(self, kind: str, size: int) -> Figure | None:
        """The measured figure of a group size, between those of its neighbours."""
        known = self._by_kind.get(kind, [])
        if not known:
            return None
        above = next((each for each in known if each.group_size >= size), None)
        below = next((each for each in reversed(known) if each.group_size <= size), None)
        if above is None or below is None or above is below:
            nearest = above or below
            assert nearest is not None
            return nearest
        part = (size - below.group_size) / (above.group_size - below.group_size)
        latency = below.latency + part * (above.latency - below.latency)
        bandwidth = below.bandwidth + part * (above.bandwidth - below.bandwidth)
        wait = below.wait + part * (above.wait - below.wait)
        return Figure(kind, size, latency, bandwidth, wait)

    # -- kept ------------------------------------------------------------------------------------

    def check_mesh(self, mesh: Shape) -> None:
        """`LayoutError` unless it is of a mesh of this shape."""
        if self.mesh is not None and self.mesh != mesh:
            raise LayoutError(
                f"the machine is of a mesh of {self.mesh} devices, the device grid of {mesh}: "
                f"give gl.Machine(..., mesh={mesh}), or measure this one with "
                "gl.Machine.measure(device)"
            )

    @property
    def record(self) -> dict[str, Any]:
        """What `of_record` makes the machine of: numbers, texts, lists and dicts."""
        return {
            "format": _FORMAT,
            "version": 1,
            "chip": asdict(self.chip),
            "mesh": self.mesh,
            "links": [asdict(each) for each in self.links],
            "rates": None if self.rates is None else asdict(self.rates),
            "axes": self.axis_names,
            "figures": [asdict(each) for each in self.figures],
        }

    @classmethod
    def of_record(cls, record: Any) -> Machine:
        """The machine of a record; any error where it is none."""
        if record["format"] != _FORMAT or record["version"] != 1:
            raise KeyError("format")
        chip = dict(record["chip"])
        for name in ("grid", "tiles"):
            chip[name] = tuple(tuple(x) if isinstance(x, list) else x for x in chip[name])
        return cls(
            Chip(**chip),
            record["mesh"],
            [Links(**each) for each in record["links"]],
            rates=None if record["rates"] is None else Rates(**record["rates"]),
            figures=[Figure(**each) for each in record["figures"]],
            axes=record["axes"],
        )

    def save(self, path: str | Path) -> None:
        """Write it to a file, as JSON that people can read."""
        Path(path).write_text(json.dumps(self.record, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Machine:
        """One that `save` has written; `LayoutError` for any other file."""
        try:
            return cls.of_record(json.loads(Path(path).read_text(encoding="utf-8")))
        except LayoutError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise LayoutError(
                f"{str(path)!r} is no machine that gl.Machine.save wrote: {error}"
            ) from error

    def __repr__(self) -> str:
        mesh = "" if self.mesh is None else f", mesh={self.mesh}"
        how = ", measured" if self.figures else ""
        return f"Machine({self.chip.name}{mesh}{how})"


def _default_names(rank: int) -> tuple[str, ...]:
    """The axes as `gl.DeviceGrid` names them by default."""
    return tuple("xyzw"[:rank]) if rank <= 4 else tuple(f"a{i}" for i in range(rank))


class _Path(NamedTuple):
    """Along an axis: how many devices, how far apart, and whether they are all round it."""

    n: int
    stride: int = 1
    is_whole: bool = True


def _time(each: Collective, link: Links, path: _Path, axes: int) -> float:
    """Hops and bytes of a collective along one of several axes, which share the bytes.

    Groups of devices that are not neighbours share the links between them.
    """
    received = each.received_bytes / axes
    n, is_ring = path.n, link.wrap and path.is_whole
    ways = 2 if is_ring and n > 2 else 1
    hops = (n // 2 if is_ring else n - 1) * path.stride
    latency = link.latency / each.together
    bandwidth = ((link.pair_bandwidth if n == 2 else 0) or link.bandwidth) / path.stride
    if each.kind == PERMUTE:
        return latency * path.stride + received / bandwidth
    if each.kind == ALL_TO_ALL:
        # Half of what every device has crosses the middle: of a ring, over two links.
        held = received * n / max(n - 1, 1)
        return hops * latency + held * n / 4 / ways / bandwidth
    passes = 2 if each.kind == ALL_REDUCE else 1
    added = link.reduce_latency / each.together if each.kind in (ALL_REDUCE, REDUCE_SCATTER) else 0
    return hops * (passes * latency + added) + received / ways / bandwidth
