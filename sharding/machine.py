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
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.sharding import Mesh

from gridlayout.arguments import Shape, positive
from gridlayout.errors import LayoutError
from gridlayout.layouts.buffers import Buffers
from gridlayout.layouts.memory import Chip
from gridlayout.sharding.chips import BOARDS, Figure, Links, Rates, board_of, rates_of
from gridlayout.sharding.collectives import Collective
from gridlayout.sharding.measure import measured
from gridlayout.sharding.placement import MeshAxes
from gridlayout.sharding.sending import Sending
from gridlayout.sharding.topology import Topology, hosts_of, stated_hosts, stated_links

if TYPE_CHECKING:
    from gridlayout.sharding.device_grid import DeviceGrid

_FORMAT, _VERSION, _READ = "gridlayout machine", 2, (1, 2)


@dataclass(frozen=True)
class Machine(Sending):
    """A mesh of chips and their links: seconds and bytes.

    chip: a `gl.Chip`, or the name of a ready machine (`Machine.names()`), which brings its mesh,
    links and rates along. mesh: how many devices there are along each axis; None for any mesh.
    links: one `gl.Links` for all axes, one an axis, or by the axes' names, a dict. rates: what one
    device does in a second; without them, computing on a chip of which nothing is known takes no
    time. figures: what collectives were measured to take, instead of what the links say. axes: the
    names of the mesh's axes, by default those of `links`, or of `gl.DeviceGrid`.

    hosts: how many hosts there are along each axis, as numbers or by names; host_links: what joins
    them, of one device: its share of what its host sends. Devices of a host are consecutive along
    an axis: of `mesh=(8,), hosts=(2,)` the first four are of one. `LayoutError` where figures are
    impossible, an axis has no links, or hosts do not divide an axis.

    >>> import gridlayout as gl
    >>> machine = gl.Machine("n150", mesh=(4, 8), links=gl.Links(12.5e9, latency=711e-9))
    >>> gather = Collective("all_gather", ("y",), 8, 7 * 2**20, 32)
    >>> f"{machine.seconds([gather]) * 1e6:.0f} us"
    '592 us'
    >>> links = {"host": gl.Links(1e9), "device": gl.Links(10e9)}
    >>> apart = gl.Machine("n150", mesh=(2, 4), links=links)
    >>> for axes, n in [(("device",), 4), (("host",), 2), (("host", "device"), 8)]:
    ...     print(f"{apart.once(Collective('all_reduce', axes, n, 2**20, 8)) * 1e6:.0f} us")
    105 us
    1049 us
    240 us
    """

    chip: Chip
    mesh: Shape | None
    links: tuple[Links, ...]
    rates: Rates | None
    figures: tuple[Figure, ...]
    axis_names: tuple[str, ...]
    hosts: Shape
    host_links: Links | None

    def __init__(
        self,
        chip: Chip | str,
        mesh: Sequence[int] | None = None,
        links: Links | Sequence[Links] | Mapping[str, Links] | None = None,
        *,
        rates: Rates | None = None,
        figures: Sequence[Figure] = (),
        axes: Sequence[str] | None = None,
        hosts: Sequence[int] | Mapping[str, int] | None = None,
        host_links: Links | None = None,
    ) -> None:
        chip, board = board_of(chip)
        if board is not None:
            rates = board.rates if rates is None else rates
            links = board.links if links is None else links
            mesh = board.mesh if mesh is None else mesh
        rates = rates_of(chip) if rates is None else rates
        if rates is not None and not isinstance(rates, Rates):
            raise LayoutError(f"rates {rates!r} must be a gl.Rates")
        sizes = None if mesh is None else positive(mesh, "mesh")
        given, named = stated_links(links, sizes, axes)
        if not isinstance(figures, Sequence) or not all(isinstance(x, Figure) for x in figures):
            raise LayoutError(f"figures {figures!r} must be a sequence of measured figures")
        names = _default_names(len(sizes or given)) if named is None else named
        counts = stated_hosts(hosts, sizes, names)
        if host_links is not None and not isinstance(host_links, Links):
            raise LayoutError(f"host_links {host_links!r} must be a gl.Links")
        if (host_links is None) != (not counts) and not any(x.between_hosts for x in figures):
            raise LayoutError(
                f"hosts {hosts!r} and host_links {host_links!r} go together: give how many hosts "
                "there are along each axis, such as hosts=(2, 1), and the gl.Links between them"
            )
        values = (chip, sizes, given, rates, tuple(figures), names, counts, host_links)
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
        Medians of a few runs, all groups of devices at the same time: groups of devices of one host
        and groups over several hosts apart, where the mesh has several (of CPUs each process is
        one). Every process calls it then, and all use what the first one measured. `LayoutError`
        where there are no devices.
        """
        if device is not None:
            if not hasattr(device, "check_has_devices"):
                raise LayoutError(f"device {device!r} must be a gl.DeviceGrid, or None for all")
            device.check_has_devices("gl.Machine.measure")
        every = np.array(jax.devices())
        factors = MeshAxes.of(("x",), every.shape)
        mesh = Mesh(every.reshape(factors.sizes), factors.names) if device is None else device.fine
        names = tuple(map(str, device.mesh.axis_names)) if device is not None else ()
        shape = None if device is None else device.shape
        hosts = () if shape is None else hosts_of(mesh.devices, shape)
        figures, rates = measured(mesh, Topology(shape, names, (), hosts).crosses)
        links = Links(max((each.bandwidth for each in figures), default=1e9))
        chip = Chip(str(mesh.devices.flat[0].device_kind), (1, 1))
        if device is None:
            return Machine(chip, None, links, rates=rates, figures=figures)
        return Machine(*(chip, shape, links), rates=rates, figures=figures, axes=names, hosts=hosts)

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
            hosts=(*self.hosts, *[1] * len(chip.grid)) if self.hosts else None,
            host_links=self.host_links,
        )

    @property
    def core_axes(self) -> tuple[str, ...]:
        """The axes of the mesh along which its devices are cores of one chip."""
        mesh = self.mesh or ()
        return (
            self.axis_names[len(mesh) - len(self.chip.grid) : len(mesh)] if self.has_cores else ()
        )

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
        return sent + self.work_seconds(flops, nbytes, elements)

    @property
    def combines(self) -> bool:
        """Whether all-reduces that XLA combines pay one latency, without a copy of their operands.

        On a CPU each operand is reduced by itself.
        """
        return self.rates is None or not self.rates.packs

    def after(self, work: float) -> Machine:
        """The same for a program that computes for so many seconds before each collective.

        Where devices share the cores of a host, one finishes later than another: a collective waits
        for the last one.
        """
        if not work or not any(each.wait for each in self.figures):
            return self
        return self._with(figures=self._figures.after(work))

    def on(self, mesh: Shape | None) -> Machine:
        """The same chips and links in another mesh, or in any.

        A host has as many devices as before, the last axes' first.
        """
        names = self.axis_names if mesh is not None and len(self.axis_names) >= len(mesh) else None
        hosts = self.topology.hosts_on(mesh)
        links = self.host_links if hosts else None
        return self._with(mesh=mesh, axes=names, hosts=hosts, host_links=links)

    def named(self, axes: Sequence[str]) -> Machine:
        """The same with other names of the mesh's axes."""
        alike = len(self.links) <= 1 and not self.hosts
        if alike or tuple(axes) == self.axis_names:
            return self
        return self._with(axes=axes)

    def _with(self, **changes: Any) -> Machine:
        """The same with other arguments."""
        given: dict[str, Any] = {
            **{"mesh": self.mesh, "links": self.links, "rates": self.rates},
            **{"figures": self.figures, "axes": self.axis_names},
            **{"hosts": self.hosts, "host_links": self.host_links},
        }
        return Machine(self.chip, **(given | changes))

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
            "version": _VERSION,
            "chip": asdict(self.chip),
            "mesh": self.mesh,
            "links": [asdict(each) for each in self.links],
            "rates": None if self.rates is None else asdict(self.rates),
            "axes": self.axis_names,
            "figures": [asdict(each) for each in self.figures],
            "hosts": self.hosts,
            "host_links": None if self.host_links is None else asdict(self.host_links),
        }

    @classmethod
    def of_record(cls, record: Any) -> Machine:
        """The machine of a record; any error where it is none."""
        if record["format"] != _FORMAT or record["version"] not in _READ:
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
            hosts=tuple(record.get("hosts", ())),
            host_links=None if (between := record.get("host_links")) is None else Links(**between),
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
        mesh += f", hosts={self.hosts}" if self.hosts else ""
        how = ", measured" if self.figures else ""
        return f"Machine({self.chip.name}{mesh}{how})"


def _default_names(rank: int) -> tuple[str, ...]:
    """The axes as `gl.DeviceGrid` names them by default."""
    return tuple("xyzw"[:rank]) if rank <= 4 else tuple(f"a{i}" for i in range(rank))
