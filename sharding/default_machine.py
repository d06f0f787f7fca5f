"""Machines of devices that state none: emulated ones, known kinds, others with fast links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from gridlayout.arguments import Shape
from gridlayout.layouts.memory import Chip
from gridlayout.sharding.chips import BETWEEN_NODES, BETWEEN_SLICES, Figure, Links, Rates
from gridlayout.sharding.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    PERMUTE,
    REDUCE_SCATTER,
)
from gridlayout.sharding.machine import Machine

# Of devices without figures of their own: fast links, so that the bytes decide.
FAST = Machine(
    Chip("a device with fast links", (1, 1)),
    links=Links(4e9),
    rates=Rates(3e10, 1e10, 1e10),
)
_HOST = Chip("CPU", (1, 1))
# What `gl.Machine.measure` finds of 2 to 16 devices that share two cores, with JAX 0.12: all groups
# meet in one process, so a collective takes longer the more devices there are, and they share what
# the memory moves in a second. Seconds of a device of the mesh, and of one of the group.
_EACH, _IN_GROUP = 4.5e-6, 1.2e-5
_PERMUTE = 1.8e-5  # of each device of the mesh, in whichever groups
_WAIT = 6e-5  # of each device of the group, after products
_RECEIVED = {  # bytes that all devices receive in a second
    ALL_GATHER: 1.5e10,
    ALL_REDUCE: 2.0e10,
    ALL_TO_ALL: 6.5e9,
    PERMUTE: 1.4e10,
    REDUCE_SCATTER: 9.5e9,
}
_FLOPS, _MEMORY, _ELEMENTWISE = 2.4e11, 3e10, 4e9
# Of processes nothing is measured beforehand: a network of 10 Gb/s is assumed, which the devices of
# a process share. `gl.Machine.measure(device)` finds what it is.
_NETWORK, _NETWORK_LATENCY = 1.25e9, 5e-5
_START = 5.5e-6  # of a product, of each device of the mesh
_TRANSPOSED = 1e10


def emulated(devices: int) -> Machine:
    """So many devices that one process emulates on a CPU.

    Their work is done on the same cores: what each does is paid for as often as there are devices.

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
    """The same devices, of several processes; of collectives between these the network's share."""
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
    """The machine of devices of a kind: the ready one, or that of emulated ones on a CPU.

    mesh, names: its axes, which matter where there are hosts along them.

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
