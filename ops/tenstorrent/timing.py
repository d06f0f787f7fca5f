"""`in_time`: the times of plans and compiled programs, all on the plan's machine."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import dims_text
from gridlayout.mlir.program import Text
from gridlayout.ops.planning.comparison import TimeComparison, Timed, compare_times
from gridlayout.ops.planning.plan import Plan
from gridlayout.ops.planning.simulation import Simulation
from gridlayout.ops.tenstorrent.program import TtnnProgram, load
from gridlayout.sharding.machines.machine import Machine
from gridlayout.tables.names import check_count, checked_names, names_of


def in_time(programs: Sequence[Any], names: Any, function: str | None = None) -> TimeComparison:
    """Return the times of several programs on one machine, that of the plans and simulations.

    programs: plans, simulations, compiled programs and `Text`s of such. function: which function of
    a text is the program. `LayoutError` where no program states a machine, where two state
    different ones, for a text for another chip, and for objects without a time.
    """
    check_count(len(programs))
    simulations = [_simulation(x) for x in programs]
    machine = _machine([x for x in simulations if x is not None])
    called = _names(programs) if names is None else checked_names(names, len(programs))
    made = []
    for name, program, known in zip(called, programs, simulations, strict=True):
        if known is not None:
            carried = program.carried if isinstance(program, Plan) else 0.0
            made.append(Timed(name, known, bool(known.in_dram), carried))
            continue
        if isinstance(program, Text):
            _check_chip(name, program, machine)
            program = load(program.text, function=function)
        if not isinstance(program, TtnnProgram):
            raise LayoutError(
                f"{name} is {type(program).__name__}, which has no time: with a plan, give plans, "
                "simulations, TTNN dumps or programs of gl.tenstorrent.load"
            )
        made.append(Timed(name, program.simulated(machine), True))
    return compare_times(made)


def _simulation(program: Any) -> Simulation | None:
    if isinstance(program, Plan):
        return program.simulation
    return program if isinstance(program, Simulation) else None


def _machine(simulations: Sequence[Simulation]) -> Machine:
    """Return the one machine that all simulations state."""
    if not simulations:
        raise LayoutError(
            "compiled programs alone state no machine: give gl.simulate(program, machine=...) of "
            "one, or a plan, or the dumps' texts to compare what their layouts cost"
        )
    first = simulations[0]
    for other in simulations[1:]:
        if (other.machine.record, other.mesh) != (first.machine.record, first.mesh):
            raise LayoutError(
                f"{first.machine!r} on {first.mesh} and {other.machine!r} on {other.mesh} are two "
                "machines: compare times on one"
            )
    return first.machine


def _check_chip(name: str, text: Text, machine: Machine) -> None:
    """Raise `LayoutError` for a text that states a chip with another grid of cores."""
    count = len(machine.core_axes)
    grid = (machine.mesh or ())[-count:] if count else ()
    if text.chip is not None and grid and prod(text.chip.grid) != prod(grid):
        raise LayoutError(
            f"{name} is for a chip of {dims_text(text.chip.grid)} cores, the plan for one of "
            f"{dims_text(grid)}: plan for the dump's chip, such as machine='p150'"
        )


def _names(programs: Sequence[Any]) -> list[str]:
    """Return names: what distinguishes texts' sources, and the kinds of others, with numbers."""
    texts = iter(names_of([x.name for x in programs if isinstance(x, Text)]))
    kinds = {Plan: "plan", Simulation: "simulation", TtnnProgram: "program"}
    given = [
        next(texts) if isinstance(x, Text) else kinds.get(type(x), type(x).__name__)
        for x in programs
    ]
    seen: dict[str, int] = {}
    for k, name in enumerate(given):
        seen[name] = seen.get(name, 0) + 1
        given[k] = f"{name} {seen[name]}" if given.count(name) > 1 or seen[name] > 1 else name
    return given
