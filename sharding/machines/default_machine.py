"""Default machines of devices: of emulated devices, of known kinds, and of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from gridlayout.arguments import Shape
from gridlayout.layouts.memory import Chip
from gridlayout.sharding.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    PERMUTE,
    REDUCE_SCATTER,
)
from gridlayout.sharding.machines.chips import BETWEEN_NODES, BETWEEN_SLICES, Figure, Links, Rates
from gridlayout.sharding.machines.machine import Machine

# For devices without known figures: links without latency, so that the bytes decide.
FAST = Machine(
    Chip("a device with fast links", (1, 1)),
    links=Links(4e9),
    rates=Rates(3e10, 1e10, 1e10),
)
_HOST = Chip("CPU", (1, 1))
# Measured by `gl.Machine.measure` with JAX 0.12, for 2 to 16 devices that share two cores. All
# groups run in one process: a collective takes longer the more devices there are, and the devices
# share the bandwidth of the memory. Seconds of latency per device of the mesh, and per device of a
# group.
_EACH, _IN_GROUP = 4.5e-6, 1.2e-5
_PERMUTE = 1.8e-5  # seconds per device of the mesh, for any groups
_WAIT = 6e-5  # seconds per device of a group, after products
_RECEIVED = {  # bytes per second that all devices together receive
    ALL_GATHER: 1.5e10,
    ALL_REDUCE: 2.0e10,
    ALL_TO_ALL: 6.5e9,
    PERMUTE: 1.4e10,
    REDUCE_SCATTER: 9.5e9,
}
_FLOPS, _MEMORY, _ELEMENTWISE = 2.4e11, 3e10, 4e9
# The network between processes is assumed to have 10 Gb/s, which the devices of a process share.
# `gl.Machine.measure(device)` measures it.
_NETWORK, _NETWORK_LATENCY = 1.25e9, 5e-5
_START = 5.5e-6  # seconds of a product per device of the mesh
_TRANSPOSED = 1e10


def emulated(devices: int) -> Machine:
    """Return the machine of devices that one process emulates on a CPU.

    The devices share the cores of the CPU, so the rates of one are divided by their number.

    >>> emulated(16).rates.flops == emulated(8).rates.flops / 2
    True
    """
    sizes = [n for n in range(2, devices + 1) if devices % n == 0]
    figures = [
        Figure(kind, n, _latency(kind, n, devices), rate / devices, _WAIT * n)
        for kind, rate in _RECEIVED.items()
        for n in sizes
    ]
    rates = Rates(
        *(_FLOPS / devices, _MEMORY / devices, _ELEMENTWISE / devices),
        start=_START * devices,
        packs=True,
        transposed=_TRANSPOSED / devices,
    )
    return Machine(_HOST, links=Links(4e9), rates=rates, figures=figures)


def _over_processes(machine: Machine, mesh: Shape, names: Sequence[str], hosts: Shape) -> Machine:
    """Return the machine of devices of several processes, with a network between these."""
    if not hosts:
        return machine
    bandwidth = _NETWORK / (prod(mesh) // prod(hosts))
    between = [
        replace(
            each,
            latency=each.latency + _NETWORK_LATENCY,
            bandwidth=1 / (1 / each.bandwidth + 1 / bandwidth),
            between_hosts=True,
        )
        for each in machine.figures
    ]
    return Machine(
        *(machine.chip, mesh, machine.links),
        rates=machine.rates,
        figures=(*machine.figures, *between),
        axes=names,
        hosts=hosts,
    )


def _latency(kind: str, group: int, devices: int) -> float:
    return _PERMUTE * devices if kind == PERMUTE else _EACH * devices + _IN_GROUP * group


_KINDS = {"TPU v5 lite": "v5e 4x4", "TPU v5": "v5p 4x4x4", "TPU v5p": "v5p 4x4x4"}


def default_machine(
    platform: str, kind: str, mesh: Shape, names: Sequence[str], hosts: Shape = ()
) -> Machine:
    """Return the default machine of devices of a kind: a known one, an emulated one, or `FAST`.

    mesh: the sizes of the axes. names: their names, which matter only if there are several hosts.
    hosts: the number of hosts along each axis; () if there is one host.

    >>> default_machine("gpu", "NVIDIA H100 80GB HBM3", (2, 8), ("x", "y"), (2, 1))
    Machine(H100, mesh=(2, 8), hosts=(2, 1))
    """
    if platform == "cpu":
        return _over_processes(emulated(prod(mesh)), mesh, names, hosts)
    name = _KINDS.get(kind, "h100" if "H100" in kind else None)
    made = FAST if name is None else Machine(name).on(None)
    if not hosts:
        return made
    return Machine(
        *(made.chip, mesh, made.links),
        rates=made.rates,
        axes=names,
        hosts=hosts,
        host_links=BETWEEN_SLICES if platform == "tpu" else BETWEEN_NODES,
    )
