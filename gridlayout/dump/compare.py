"""`compare`: what several programs' layouts cost, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gridlayout import objects
from gridlayout.dump.comparing.comparison import Comparison
from gridlayout.dump.comparing.sides import REPORT, Side, side_by_side
from gridlayout.dump.explanation import Explanation, explain
from gridlayout.dump.text.sources import text_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import Chip
from gridlayout.tables.names import MAX_PROGRAMS, check_count


def compare(
    *programs: Any,
    names: Sequence[str] | None = None,
    chip: Chip | str | None = None,
    pass_name: str | int | None = None,
    function: str | None = None,
) -> Comparison | objects.TimeComparison:
    """Dumps of one function side by side: what their layouts cost, and which values lie otherwise.

    programs: 2 to 8, each what `gl.explain` takes as a dump, or what it gives, such as one program
    at several levels of optimization; also reports of `gl.on_grid(f)`, whose devices are taken for
    the chip's cores. names: what they are called; by default the parts in which their paths differ.
    chip, pass_name, function: as for `gl.explain`, of those that are dumps. All bytes are one
    chip's; `gridlayout.costs.Costs` says how they are counted.

    With a plan of `gl.plan` or a `Simulation` among them the programs are compared by what they
    take on its machine, as a `gl.TimeComparison`: plans of one machine, `gl.simulate`'s results,
    TTNN dumps, and programs of `gl.tenstorrent.load`.

    Raises `LayoutError` for dumps that `gl.explain` refuses or finds no layout in, of two kinds
    (HLO and TTNN), for other chips, and without one value alike.

    >>> wide, tall = (f"%a = f32[1000,3]{{{order}:T(8,128)}} add(%b)" for order in ("1,0", "0,1"))
    >>> print(compare([wide], [tall], names=("wide", "tall")))
    wide, tall: 0 values lie alike, 1 does not
    <BLANKLINE>
                                    wide            tall
    all values together        500.0 KiB   32.0 KiB -94%
    padding in them      488.3 KiB (98%)  20.3 KiB (63%)
    <BLANKLINE>
    op   tensor       wide            tall
    add  f32[1000,3]  {1,0:T(8,128)}  {0,1:T(8,128)}
    """
    if any(map(objects.is_timed, programs)):
        return _in_time(programs, names, chip, pass_name, function)
    sides = []
    for k, program in enumerate(programs[: MAX_PROGRAMS + 1], 1):
        found = program
        if not isinstance(program, Explanation) and not hasattr(program, "costs"):
            found = explain(program, chip=chip, pass_name=pass_name, function=function)
        sides.append(_side(found, k))
    return side_by_side(sides, names)


def _in_time(
    programs: Sequence[Any],
    names: Sequence[str] | None,
    chip: Chip | str | None,
    pass_name: str | int | None,
    function: str | None,
) -> objects.TimeComparison:
    """By what programs take on the machine of a plan."""
    if chip is not None or pass_name is not None:
        raise LayoutError(
            "chip and pass_name are of dumps alone: beside a plan, its machine prices all programs"
        )
    check_count(len(programs))
    for k, program in enumerate(programs, 1):
        if not objects.is_timed(program) and not objects.is_text(program):
            raise LayoutError(
                f"program {k} is {type(program).__name__}, which has no time: beside a plan give "
                "plans, simulations, TTNN dumps or programs of gl.tenstorrent.load"
            )
    found = [x if objects.is_timed(x) else text_of(x) for x in programs]
    return objects.in_time(found, names, function)


def _side(found: Any, k: int) -> Side:
    if isinstance(found, Explanation):
        return found.side
    if hasattr(found, "costs"):
        return Side("on_grid", REPORT, found.costs)
    raise LayoutError(
        f"program {k} is no dump but {type(found).__name__} of a layout or of arrays: "
        "gl.relayout_plan and layout.traffic compare layouts"
    )
