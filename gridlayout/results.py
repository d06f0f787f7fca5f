"""What functions return: classes for annotations and `isinstance`, which no program constructs.

>>> import gridlayout as gl
>>> layout = gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
>>> isinstance(layout.summary(), gl.results.Summary)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gridlayout.lazy import by_name, load

if TYPE_CHECKING:
    from gridlayout.affine.expressions import AffineExpr
    from gridlayout.affine.integer_set import AffineSet
    from gridlayout.conversion.convert import Conversion
    from gridlayout.core_files.opened import BytesFile
    from gridlayout.dump.comparing.comparison import Comparison
    from gridlayout.dump.explanation import Explanation
    from gridlayout.explorer.page import Explorer
    from gridlayout.layouts.location import Location
    from gridlayout.layouts.memory import Fit
    from gridlayout.layouts.summary import Summary
    from gridlayout.ops.array.relayout_plan import RelayoutPlan
    from gridlayout.ops.checkpoints.saving import Saving
    from gridlayout.ops.interpret.on_grid import OnGrid
    from gridlayout.ops.planning.comparison import TimeComparison
    from gridlayout.ops.planning.plan import Plan
    from gridlayout.ops.planning.scaling import Scaling
    from gridlayout.ops.planning.simulation import Simulation
    from gridlayout.ops.programs.report import Report
    from gridlayout.ops.trees.summary import TreeSummary
    from gridlayout.ops.user.slices import Slices

_MODULES = by_name(
    {
        "affine.expressions": "AffineExpr",
        "affine.integer_set": "AffineSet",
        "conversion.convert": "Conversion",
        "dump.comparing.comparison": "Comparison",
        "dump.explanation": "Explanation",
        "explorer.page": "Explorer",
        "core_files.opened": "BytesFile",
        "layouts.location": "Location",
        "layouts.memory": "Fit",
        "layouts.summary": "Summary",
        "ops.array.relayout_plan": "RelayoutPlan",
        "ops.checkpoints.saving": "Saving",
        "ops.interpret.on_grid": "OnGrid",
        "ops.planning.comparison": "TimeComparison",
        "ops.planning.plan": "Plan",
        "ops.planning.scaling": "Scaling",
        "ops.planning.simulation": "Simulation",
        "ops.programs.report": "Report",
        "ops.trees.summary": "TreeSummary",
        "ops.user.slices": "Slices",
    }
)

__all__ = ["AffineExpr", "AffineSet", "BytesFile", "Comparison", "Conversion", "Explanation"]
__all__ += ["Explorer", "Fit", "Location", "OnGrid", "Plan", "RelayoutPlan", "Report", "Saving"]
__all__ += ["Scaling", "Simulation", "Slices", "Summary", "TimeComparison", "TreeSummary"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'gridlayout.results' has no attribute {name!r}")
    globals()[name] = value = load(_MODULES[name], name)
    return value


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), *__all__]
