"""Machines that tests choose by: with fast links, where bytes decide; with a latency."""

import gridlayout as gl
from gridlayout.sharding.machines.default_machine import FAST


def with_latency(seconds):
    """The machine with fast links, but for the time that a collective takes of its own."""
    return gl.Machine(FAST.chip, links=gl.Links(4e9, start=seconds), rates=FAST.rates)


__all__ = ["FAST", "with_latency"]
