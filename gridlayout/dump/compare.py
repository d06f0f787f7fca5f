"""`compare`: the costs of the layouts of several programs, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gridlayout import objects
from gridlayout.dump import comparing
from gridlayout.dump.comparing.comparison import REPORT, Input, compare_inputs
from gridlayout.dump.explanation import Explanation, explain
from gridlayout.dump.text.sources import text_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import Chip
from gridlayout.public import public
from gridlayout.tables.names import MAX_PROGRAMS, check_count


@public
def compare(
    *programs: Any,
    names: Sequence[str] | None = None,
    chip: Chip | str | None = None,
    pass_name: str | int | None = None,
    function: str | None = None,
) -> comparing.comparison.Comparison | objects.TimeComparison:
    """Compare dumps of one function: the costs of their layouts, and the values that differ.

    programs: 2 to 8 of: dumps, as `gl.explain` takes them; its results; and reports of
    `gl.on_grid(f)`, whose devices count as cores of the chip. Typically one program at several
    levels of optimization. names: one per program; by default the differing parts of their paths.
    chip, pass_name, function: as in `gl.explain`, for all dumps. All sizes are in bytes of one
    chip, counted as `gridlayout.costs.Costs` describes.

    If one program is a plan of `gl.plan` or a `Simulation`, the result is a
    `gl.results.TimeComparison`: all programs are compared by their time on its machine. They may
    then be plans of one machine, results of `gl.simulate`, TTNN dumps, and programs of
    `gl.tenstorrent.load`.

    Raises `LayoutError` for dumps that `gl.explain` refuses or that have no layout, dumps of
    different kinds (HLO and TTNN) or for different chips, and dumps without a common value.

    >>> wide, tall = (f"%a = f32[1000,3]{{{order}:T(8,128)}} add(%b)" for order in ("1,0", "0,1"))
    >>> print(compare([wide], [tall], names=("wide", "tall")))
    wide, tall: 0 values with equal layouts, 1 with different ones
    <BLANKLINE>
                                     wide            tall
    all values                  500.0 KiB   32.0 KiB -94%
    padding of all values  488.3 KiB (98%)  20.3 KiB (63%)
    <BLANKLINE>
    op   tensor       wide            tall
    add  f32[1000,3]  {1,0:T(8,128)}  {0,1:T(8,128)}
    """
    if any(map(objects.is_timed, programs)):
        return _in_time(programs, names, chip, pass_name, function)
    inputs = []
    for k, program in enumerate(programs[: MAX_PROGRAMS + 1], 1):
        found = program
        if not isinstance(program, Explanation) and not hasattr(program, "costs"):
            found = explain(program, chip=chip, pass_name=pass_name, function=function)
        inputs.append(_input_of(found, k))
    return compare_inputs(inputs, names)


def _in_time(
    programs: Sequence[Any],
    names: Sequence[str] | None,
    chip: Chip | str | None,
    pass_name: str | int | None,
    function: str | None,
) -> objects.TimeComparison:
    """Compare programs by their time on the machine of a plan among them."""
    if chip is not None or pass_name is not None:
        raise LayoutError(
            "chip and pass_name apply to dumps only: programs that are compared with a plan are "
            "timed on the machine of the plan, so leave both out"
        )
    check_count(len(programs))
    for k, program in enumerate(programs, 1):
        if not objects.is_timed(program) and not objects.is_text(program):
            raise LayoutError(
                f"program {k} is {type(program).__name__}, which has no time: compare a plan with "
                "plans, simulations, TTNN dumps or programs of gl.tenstorrent.load"
            )
    found = [x if objects.is_timed(x) else text_of(x) for x in programs]
    return objects.in_time(found, names, function)


def _input_of(found: Any, k: int) -> Input:
    if isinstance(found, Explanation):
        return found.comparison_input
    if hasattr(found, "costs"):
        return Input("on_grid", REPORT, found.costs)
    raise LayoutError(
        f"program {k} must be a dump, but it is a {type(found).__name__} of a layout or of arrays; "
        "to compare layouts, use gl.relayout_plan or layout.traffic"
    )
