"""`Machine`: the time that a mesh of devices takes to communicate and to compute, in seconds.

All choices by time and all reported times use this one class: products, relayouts, reports. Figures
of emulated devices include what they share: eight on two cores run in turns, not at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from gridlayout.arguments import Shape, ShapeLike, as_items, positive
from gridlayout.errors import LayoutError
from gridlayout.files import read_json
from gridlayout.layouts.memory import Chip
from gridlayout.layouts.mesh_axes import MeshAxes
from gridlayout.public import public
from gridlayout.sharding.collectives import Collective
from gridlayout.sharding.machines.chips import (
    BOARDS,
    Figure,
    Links,
    Rates,
    board_of,
    check_figure,
    known_board,
    stated_overlap,
)
from gridlayout.sharding.machines.measure import MeasuredDevices, measured
from gridlayout.sharding.machines.record import arguments_of, record_of
from gridlayout.sharding.machines.sending import Sending
from gridlayout.sharding.machines.topology import (
    Topology,
    check_hosts,
    default_names,
    hosts_of,
    in_order,
    stated_hosts,
    stated_links,
)

_MOST_BYTES = 1 << 24  # of a file


@public
@dataclass(frozen=True)
class Machine(Sending):
    """A mesh of chips, their rates and links. Times are in seconds, sizes in bytes.

    chip: a `gl.Chip`, or the name of a chip (wormhole, blackhole) or of a known machine
    (`Machine.names()`), which also gives the defaults of mesh, links and rates. mesh: the number of
    devices along each axis; None for any mesh. links: one `gl.Links` for all axes, one per axis, or
    a dict by the names of the axes. A mesh of several devices needs them. rates: what one device
    does per second; without rates, and on a chip without known rates, computing takes no time.
    figures: measured times of collectives, which are used instead of the links. axes: the names of
    the mesh axes, by default those of `links`, or of `gl.DeviceGrid`. A device grid matches stated
    names by name, in any order.

    overlap: the resources of a device that work beside all others, of "links", "memory" and
    "compute". With `("links",)`, a device computes while it waits for a collective that it does not
    need yet; with `("links", "memory")`, it also reads what the next operation needs; with `()`, it
    does one thing after another. The default is that of the chip: links on TPUs (scaling book,
    chapter on rooflines), on GPUs (JAX's GPU performance tips) and on Tenstorrent's chips, whose
    cores have processors that only move data (tt-metal, METALIUM_GUIDE); nothing on other chips.

    hosts: the number of hosts along each axis, a sequence or a dict by names. host_links: the links
    between hosts, per device: its share of the bandwidth of its host. The devices of a host are
    consecutive along an axis: with `mesh=(8,), hosts=(2,)`, the first four have one host. Raises
    `LayoutError` for impossible figures, for an axis without links, and for a number of hosts that
    does not divide an axis.

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
    overlap: tuple[str, ...]
    is_named: bool = field(compare=False)  # whether the user states the names of the axes

    def __init__(
        self,
        chip: Chip | str,
        mesh: ShapeLike | None = None,
        links: Links | Sequence[Links] | Mapping[str, Links] | None = None,
        *,
        rates: Rates | None = None,
        figures: Sequence[Figure] = (),
        axes: Sequence[str] | None = None,
        hosts: ShapeLike | Mapping[str, int] | None = None,
        host_links: Links | None = None,
        overlap: Sequence[str] | None = None,
    ) -> None:
        chip, board = board_of(chip)
        if board is not None:
            links = board.links if links is None else links
            mesh = board.mesh if mesh is None else mesh
        known = board or known_board(chip)
        if known is not None:
            rates = known.rates if rates is None else rates
            overlap = known.overlap if overlap is None else overlap
        if rates is not None and not isinstance(rates, Rates):
            raise LayoutError(f"rates {rates!r} must be a gl.Rates")
        sizes = None if mesh is None else positive(mesh, "mesh")
        given, named = stated_links(links, sizes, axes)
        if not isinstance(figures, Sequence) or not all(isinstance(x, Figure) for x in figures):
            raise LayoutError(f"figures {figures!r} must be a sequence of measured figures")
        names = default_names(len(sizes or given)) if named is None else named
        counts = stated_hosts(hosts, sizes, names)
        check_hosts(hosts, counts, host_links, any(x.between_hosts for x in figures))
        own = (chip, sizes, given, rates, tuple(figures), names, counts, host_links)
        values = (*own, stated_overlap(() if overlap is None else overlap), named is not None)
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)

    @staticmethod
    def names() -> tuple[str, ...]:
        """Return the names of the known machines.

        >>> "n300" in Machine.names()
        True
        """
        return tuple(BOARDS)

    @staticmethod
    def measure(device: MeasuredDevices | None = None) -> Machine:
        """Return the machine of JAX's devices, from measured times; this takes some seconds.

        device: the `gl.DeviceGrid` to measure. By default all devices of JAX are measured, and the
        machine is for any mesh of them.

        Collectives, products and passes over memory are timed: medians of a few runs, in which all
        groups of devices run at the same time. `overlap` has the links if products hide most of the
        time of collectives that run beside them. If the mesh has several hosts, groups within a
        host and groups across hosts are measured separately; on CPUs, each process counts as a
        host. All processes must then call this, and all use the times of the first one. Raises
        `LayoutError` if there are no devices.
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
        figures, rates, overlap = measured(mesh, Topology(shape, names, (), hosts).crosses)
        links = Links(max((each.bandwidth for each in figures), default=1e9))
        chip = Chip(str(mesh.devices.flat[0].device_kind), (1, 1))
        if device is None:
            return Machine(chip, None, links, rates=rates, figures=figures, overlap=overlap)
        own: dict[str, Any] = {"rates": rates, "figures": figures, "overlap": overlap}
        return Machine(chip, shape, links, axes=names, hosts=hosts, **own)

    @cached_property
    def by_core(self) -> Machine:
        """The same machine with each core as a device; the axes of cores, `r` and `c`, come last.

        A core has its share of the rates of the chip. Its links are those of the chip's network, in
        which each axis is a ring. The machine itself if its chips have one core, or if no rates of
        their network are known.

        >>> machine = Machine("wormhole 2x4").by_core
        >>> machine.mesh, machine.axis_names, machine.chip.capacity["l1"]
        ((2, 4, 8, 8), ('x', 'y', 'r', 'c'), 1395296)
        """
        cores = prod(self.chip.grid)
        if cores == 1 or self.rates is None or not self.rates.noc:
            return self
        own, chip = self.rates, self.chip
        own_memory = chip.called("l1")
        room = {name: n if name == own_memory else n // cores for name, n in chip.capacity.items()}
        name, grid = f"cores of {chip.name}", (1,) * len(chip.grid)
        core = replace(chip, name=name, grid=grid, capacity=room, banks=1)
        rates = replace(
            own,
            flops=own.flops / cores,
            flops_by_dtype={name: n / cores for name, n in own.flops_by_dtype.items()},
            memory=2 * own.elementwise / cores or own.memory / cores,  # results of two bytes
            elementwise=own.elementwise / cores,
            dram=own.memory / cores,
        )
        mesh = () if self.mesh is None or prod(self.mesh) == 1 else self.mesh
        names = ("r", "c") if len(chip.grid) == 2 else default_names(len(chip.grid))
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
            overlap=self.overlap,
        )

    @property
    def core_axes(self) -> tuple[str, ...]:
        """The mesh axes along which devices are cores of one chip; () if devices are chips."""
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
        dtype: Any = None,
    ) -> float:
        """Return the seconds of one device for collectives in sequence, products and memory.

        flops: the floating-point operations of products. nbytes: the bytes read or written.
        elements: the number of results of elementwise functions that take longer than the access
        to memory. dtype: the element type of the products' operands, if the rates of the machine
        depend on it. Raises `LayoutError` for numbers that are negative or not finite.
        """
        for what, n in (("flops", flops), ("nbytes", nbytes), ("elements", elements)):
            check_figure(n.item() if isinstance(n, np.generic) else n, what, above=False)
        some = as_items(collectives, "collectives", "collectives of a report")
        sent = sum(self.once(each) * each.count for each in some)
        return sent + self.work_seconds(flops, nbytes, elements, dtype)

    @property
    def combines(self) -> bool:
        """Whether all-reduces that XLA combines have one latency, and no copies of operands.

        False on a CPU, where each operand is reduced separately.
        """
        return self.rates is None or not self.rates.packs

    def after(self, work: float) -> Machine:
        """Return this machine for a program that computes before each collective.

        work: the seconds of computation. Devices that share the cores of a host do not finish at
        the same time, and a collective waits for the last one.
        """
        if not work or not any(each.wait for each in self.figures):
            return self
        return self._with(figures=self._figures.after(work))

    def with_slower_figures(self, share: float) -> Machine:
        """Return this machine with measured collectives that take a share of their time more."""
        more = 1 + share
        figures = (
            replace(x, latency=x.latency * more, bandwidth=x.bandwidth / more) for x in self.figures
        )
        return self._with(figures=tuple(figures)) if self.figures else self

    def with_faster_links(self, times: float) -> Machine:
        """Return this machine with messages that take `times` less time, measured ones too."""

        def faster(links: Links) -> Links:
            less = ("latency", "start", "reduce_latency")
            more = {name: getattr(links, name) / times for name in less}
            bandwidth, pair = links.bandwidth * times, links.pair_bandwidth * times
            return replace(links, bandwidth=bandwidth, pair_bandwidth=pair, **more)

        figures = (
            replace(
                x, latency=x.latency / times, bandwidth=x.bandwidth * times, wait=x.wait / times
            )
            for x in self.figures
        )
        between = None if self.host_links is None else faster(self.host_links)
        links = tuple(map(faster, self.links))
        return self._with(links=links, figures=tuple(figures), host_links=between)

    def on(self, mesh: Shape | None) -> Machine:
        """Return the machine of another mesh with the same chips and links; None for any mesh.

        The number of devices per host is unchanged; a host's devices fill the last axes first.
        """
        is_named = self.is_named and mesh is not None and len(self.axis_names) >= len(mesh)
        names = self.axis_names if is_named else None
        hosts = self.topology.hosts_on(mesh)
        between = self.host_links if hosts else None
        is_one = mesh is not None and prod(mesh) == 1 and len(mesh) != len(self.links)
        links = self.links[:1] if is_one else self.links
        return self._with(mesh=mesh, links=links, axes=names, hosts=hosts, host_links=between)

    def named(self, axes: Sequence[str]) -> Machine:
        """Return this machine for a mesh with these axes, in this order.

        Axes that the user named are matched by name, others by position. Raises `LayoutError` for
        other names than the user's, if links or hosts depend on the axis.

        >>> links = {"host": Links(1e9), "device": Links(10e9)}
        >>> machine = Machine("n150", (2, 4), links).named(("device", "host"))
        >>> machine.mesh, [each.bandwidth for each in machine.links]
        ((4, 2), [10000000000.0, 1000000000.0])
        """
        own, axes = self.axis_names[: len(self.mesh or self.axis_names)], tuple(axes)
        if own == axes:
            return self
        if self.is_named and sorted(own) == sorted(axes):
            per_axis = self.mesh, self.links, self.hosts
            mesh, links, hosts = (in_order(values, own, axes) for values in per_axis)
            return self._with(mesh=mesh, links=links, hosts=hosts, axes=axes)
        if len(self.links) <= 1 and not self.hosts:
            return self
        if self.is_named:
            raise LayoutError(
                f"the links and hosts of {self!r} are for the axes {own}, but the device grid has "
                f"the axes {axes}: give both the same names"
            )
        return self._with(axes=axes) if len(own) == len(axes) else self

    def _with(self, **changes: Any) -> Machine:
        """Return this machine with other arguments of the constructor."""
        return Machine(**(self._arguments | changes))

    @property
    def _arguments(self) -> dict[str, Any]:
        return {
            **{"chip": self.chip, "mesh": self.mesh, "links": self.links, "rates": self.rates},
            **{"figures": self.figures, "axes": self._stated_names},
            **{"hosts": self.hosts, "host_links": self.host_links, "overlap": self.overlap},
        }

    @property
    def _stated_names(self) -> tuple[str, ...] | None:
        return self.axis_names if self.is_named else None

    # -- checks and files ------------------------------------------------------------------------

    def check_mesh(self, mesh: Shape) -> None:
        """Raise `LayoutError` unless the machine can be that of a mesh of this shape."""
        if self.mesh is not None and self.mesh != mesh:
            raise LayoutError(
                f"the machine has a mesh of {self.mesh} devices, but the device grid has {mesh}: "
                "for that machine, give the shapes of arrays that are on these devices, "
                "jax.ShapeDtypeStruct(x.shape, x.dtype); for these devices, give "
                f"gl.Machine(..., mesh={mesh}) or gl.Machine.measure(device)"
            )
        if not self.links and prod(mesh) > 1:
            raise LayoutError(
                f"{self!r} has no links, but a mesh of {mesh} devices needs them to communicate: "
                "give gl.Machine(..., links=gl.Links(...))"
            )

    @property
    def record(self) -> dict[str, Any]:
        """The machine as numbers, strings, lists and dicts, for JSON; `of_record` reads it."""
        return record_of(self._arguments)

    @classmethod
    def of_record(cls, record: Any) -> Machine:
        """Return the machine of a record. An invalid record raises an error of any type."""
        return cls(**arguments_of(record))

    def save(self, path: str | Path) -> None:
        """Write the machine to a file, as indented JSON."""
        Path(path).write_text(json.dumps(self.record, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Machine:
        """Return the machine that `save` wrote; raise `LayoutError` for any other file."""
        try:
            return cls.of_record(read_json(Path(path), _MOST_BYTES))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if type(error) is LayoutError:
                raise
            raise LayoutError(f"{str(path)!r} is no file of gl.Machine.save: {error}") from error

    def __repr__(self) -> str:
        mesh = "" if self.mesh is None else f", mesh={self.mesh}"
        mesh += f", hosts={self.hosts}" if self.hosts else ""
        how = ", measured" if self.figures else ""
        return f"Machine({self.chip.name}{mesh}{how})"
