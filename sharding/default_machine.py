"""Machines of devices that state none: emulated ones, known kinds, others with fast links."""

from __future__ import annotations

from gridlayout.layouts.memory import Chip
from gridlayout.sharding.chips import Figure, Links, Rates
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


def _latency(kind: str, group: int, devices: int) -> float:
    return _PERMUTE * devices if kind == PERMUTE else _EACH * devices + _IN_GROUP * group


_KINDS = {"TPU v5 lite": "v5e 4x4", "TPU v5": "v5p 4x4x4", "TPU v5p": "v5p 4x4x4"}


def default_machine(platform: str, kind: str, devices: int) -> Machine:
    """The machine of devices of a kind: the ready one, or that of emulated ones on a CPU."""
    if platform == "cpu":
        return emulated(devices)
    name = _KINDS.get(kind, "h100" if "H100" in kind else None)
    return FAST if name is None else Machine(name).on(None)
