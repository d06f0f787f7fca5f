"""`best_plan`: the best plan that is found before a time limit, or an interrupt."""

from __future__ import annotations

from typing import Any

from gridlayout.ops.planning.clock import Clock
from gridlayout.ops.planning.on_cores import on_cores
from gridlayout.ops.planning.on_devices import on_devices
from gridlayout.ops.planning.plan import Plan
from gridlayout.ops.planning.traced import Traced
from gridlayout.ops.solver.solve import Unsolved


def best_plan(traced: Traced, trips: int | None, seconds: float, progress: Any) -> Plan | None:
    """Return the best plan found in time; None if no plan fits the memory.

    Raises Unsolved if no plan that fits is known in the end. Raises KeyboardInterrupt at a second
    interrupt, or at a first one if no plan is known by then.
    """
    search = on_cores if traced.device.machine.has_cores else on_devices
    clock = Clock(seconds)
    try:
        return clock.through(lambda: search(traced, trips, clock, progress))
    except Unsolved as error:
        if clock.interrupted:
            raise KeyboardInterrupt from error
        raise Unsolved(
            f"no plan that fits the memory was found in {seconds:g} seconds: give more, seconds=, "
            "or plan for more devices, or for devices with more memory"
        ) from error
