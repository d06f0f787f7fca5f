"""gridlayout: tensors on grids of cores. `import gridlayout as gl`.

Three floors: `gridlayout` says what goes where (NumPy only), `gridlayout.sharding` which device
holds it, `gridlayout.ops` moves and computes. This module is the one front door to all three; what
needs JAX is imported when it is first asked for, so that describing a layout costs no JAX start-up.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from gridlayout import megengine, mli, sophon, tenstorrent, xla
from gridlayout.affine import AffineExpr, AffineMap
from gridlayout.affine_solve import AffineSet
from gridlayout.errors import LayoutError
from gridlayout.grid_layout import GridLayout
from gridlayout.layout import Layout, Location
from gridlayout.memory import Chip, Fit
from gridlayout.text import parse

if TYPE_CHECKING:
    from gridlayout.dump.explanation import Explanation, explain
    from gridlayout.explorer.page import Explorer, explore
    from gridlayout.ops import nn, numpy
    from gridlayout.ops.algorithms import ALGORITHMS
    from gridlayout.ops.attention import ring_attention
    from gridlayout.ops.cores import all_gather, core_index, map_shards, pmax, pmin, psum, shift
    from gridlayout.ops.grid_array import GridArray, from_physical, put
    from gridlayout.ops.on_grid import OnGrid, on_grid, with_layout
    from gridlayout.ops.packing import pack, unpack
    from gridlayout.ops.relayout import relayout
    from gridlayout.ops.relayout_plan import RelayoutPlan, relayout_plan
    from gridlayout.ops.report import Cost, Report
    from gridlayout.ops.rules import def_rule
    from gridlayout.sharding.device_grid import DeviceGrid
    from gridlayout.sharding.emulate import emulate_devices

# Where the names that need JAX live, and those that few programs ask for.
_LAZY = {
    "Explanation": "dump.explanation",
    "explain": "dump.explanation",
    "Explorer": "explorer.page",
    "explore": "explorer.page",
    "DeviceGrid": "sharding.device_grid",
    "emulate_devices": "sharding.emulate",
    "GridArray": "ops.grid_array",
    "put": "ops.grid_array",
    "from_physical": "ops.grid_array",
    "pack": "ops.packing",
    "unpack": "ops.packing",
    "relayout": "ops.relayout",
    "relayout_plan": "ops.relayout_plan",
    "RelayoutPlan": "ops.relayout_plan",
    "on_grid": "ops.on_grid",
    "OnGrid": "ops.on_grid",
    "with_layout": "ops.on_grid",
    "ALGORITHMS": "ops.algorithms",
    "map_shards": "ops.cores",
    "core_index": "ops.cores",
    "shift": "ops.cores",
    "psum": "ops.cores",
    "pmax": "ops.cores",
    "pmin": "ops.cores",
    "all_gather": "ops.cores",
    "ring_attention": "ops.attention",
    "def_rule": "ops.rules",
    "Cost": "ops.report",
    "Report": "ops.report",
    "numpy": "ops.numpy",
    "nn": "ops.nn",
}

__all__ = [
    "ALGORITHMS",
    "AffineExpr",
    "AffineMap",
    "AffineSet",
    "Chip",
    "Cost",
    "DeviceGrid",
    "Explanation",
    "Explorer",
    "Fit",
    "GridArray",
    "GridLayout",
    "Layout",
    "LayoutError",
    "Location",
    "OnGrid",
    "RelayoutPlan",
    "Report",
    "all_gather",
    "core_index",
    "def_rule",
    "emulate_devices",
    "explain",
    "explore",
    "from_physical",
    "map_shards",
    "megengine",
    "mli",
    "nn",
    "numpy",
    "on_grid",
    "pack",
    "parse",
    "pmax",
    "pmin",
    "psum",
    "put",
    "relayout",
    "relayout_plan",
    "ring_attention",
    "shift",
    "sophon",
    "tenstorrent",
    "unpack",
    "with_layout",
    "xla",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":  # kept in pyproject.toml alone
        return version("gridlayout")
    if name not in _LAZY:
        raise AttributeError(f"module 'gridlayout' has no attribute {name!r}")
    module = import_module(f"gridlayout.{_LAZY[name]}")
    value = module if name in ("numpy", "nn") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
