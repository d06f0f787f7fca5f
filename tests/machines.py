"""Machines that tests choose by: with fast links, where bytes decide; with a latency; measured."""

import pytest

import gridlayout as gl
from gridlayout.sharding.machines import measure
from gridlayout.sharding.machines.default_machine import FAST


def with_latency(seconds):
    """The machine with fast links, but for the time that a collective takes of its own."""
    return gl.Machine(FAST.chip, links=gl.Links(4e9, start=seconds), rates=FAST.rates)


# What is timed when a machine is measured, so little of it that most of the time is compilation.
_SMALL = {
    **{"ROUNDS": 1, "TIMES": 2, "LARGE": 1 << 12, "PASS": 1 << 12},
    **{"PRODUCT": 64, "LARGEST": 128, "REPEATED": 8},
}


def measured(device, kinds=tuple(measure._COLLECTIVES)):
    """`gl.Machine.measure`, of fewer and smaller runs, and of these collectives alone."""
    some = {kind: measure._COLLECTIVES[kind] for kind in kinds}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**_SMALL, "_COLLECTIVES": some}.items():
            patch.setattr(measure, name, value)
        return gl.Machine.measure(device)


__all__ = ["FAST", "measured", "with_latency"]
