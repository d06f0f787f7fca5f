"""gridlayout: tensors on grids of cores. `import gridlayout as gl`.

Three floors: `gridlayout` says what goes where (NumPy only), `gridlayout.sharding` which device
holds it, `gridlayout.ops` moves and computes. This module is the one front door to all three; what
needs JAX is imported when it is first asked for, so that describing a layout costs no JAX start-up.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from gridlayout import megengine, mli, sophon, strided, tenstorrent, xla
from gridlayout.affine.integer_set import AffineSet
from gridlayout.affine.map import AffineExpr, AffineMap
from gridlayout.caching import cache_limit, cached_bytes, clear_caches
from gridlayout.document.grid_layout import GridLayout
from gridlayout.draw import draw as _draw
from gridlayout.errors import LayoutError, LayoutWarning
from gridlayout.images import from_image, image
from gridlayout.layouts.layout import Layout, register_drawer
from gridlayout.layouts.location import Location
from gridlayout.layouts.memory import Chip, Fit
from gridlayout.layouts.summary import Summary
from gridlayout.safetensors import open_safetensors
from gridlayout.text import parse

if TYPE_CHECKING:
    from gridlayout.conversion.convert import Conversion, convert
    from gridlayout.dump.compare import compare
    from gridlayout.dump.comparing.comparison import Comparison
    from gridlayout.dump.explanation import Explanation, explain
    from gridlayout.explorer.page import Explorer, explore
    from gridlayout.image_files.opened import ImageFile, load_image, open_image
    from gridlayout.image_files.saving import save_image
    from gridlayout.ops.array.cores import all_gather, core_index, pmax, pmin, psum, shift
    from gridlayout.ops.array.grid_array import GridArray
    from gridlayout.ops.array.map_shards import map_shards
    from gridlayout.ops.array.placing import from_physical
    from gridlayout.ops.array.policy import fill_devices
    from gridlayout.ops.array.put_local import put_local
    from gridlayout.ops.array.relayout_plan import RelayoutPlan, relayout_plan
    from gridlayout.ops.checkpoints.restoring import restore
    from gridlayout.ops.checkpoints.saving import Saving, save
    from gridlayout.ops.interpret.on_grid import OnGrid, on_grid
    from gridlayout.ops.interpret.with_layout import with_layout
    from gridlayout.ops.moves.packing import pack, unpack
    from gridlayout.ops.planning.comparison import TimeComparison
    from gridlayout.ops.planning.making import plan, simulate
    from gridlayout.ops.planning.plan import Plan
    from gridlayout.ops.planning.saved import load_plan
    from gridlayout.ops.planning.scaled import scaling
    from gridlayout.ops.planning.scaling import Scaling
    from gridlayout.ops.planning.simulation import Simulation
    from gridlayout.ops.primitives.user_rules import def_rule
    from gridlayout.ops.products.algorithms import ALGORITHMS
    from gridlayout.ops.programs.report import Report
    from gridlayout.ops.trees.arrays import put, relayout, zeros_like
    from gridlayout.ops.trees.summary import TreeSummary, summary
    from gridlayout.ops.user import nn, numpy
    from gridlayout.ops.user.ring_attention import ring_attention
    from gridlayout.ops.user.slices import Slices, slices
    from gridlayout.sharding.cost import Cost
    from gridlayout.sharding.device_grid import DeviceGrid
    from gridlayout.sharding.machines.chips import Links, Rates
    from gridlayout.sharding.machines.machine import Machine
    from gridlayout.sharding.meshes.emulate import emulate_devices

register_drawer(_draw)  # `Layout.draw`: the views know layouts, layouts do not know the views

# Where the names that need JAX live, and those that few programs ask for.
_LAZY = {
    "Conversion": "conversion.convert",
    "convert": "conversion.convert",
    "Comparison": "dump.comparing.comparison",
    "compare": "dump.compare",
    "Explanation": "dump.explanation",
    "explain": "dump.explanation",
    "Explorer": "explorer.page",
    "explore": "explorer.page",
    "ImageFile": "image_files.opened",
    "load_image": "image_files.opened",
    "open_image": "image_files.opened",
    "save_image": "image_files.saving",
    "DeviceGrid": "sharding.device_grid",
    "emulate_devices": "sharding.meshes.emulate",
    "GridArray": "ops.array.grid_array",
    "put": "ops.trees.arrays",
    "put_local": "ops.array.put_local",
    "from_physical": "ops.array.placing",
    "pack": "ops.moves.packing",
    "unpack": "ops.moves.packing",
    "relayout": "ops.trees.arrays",
    "zeros_like": "ops.trees.arrays",
    "save": "ops.checkpoints.saving",
    "Saving": "ops.checkpoints.saving",
    "restore": "ops.checkpoints.restoring",
    "summary": "ops.trees.summary",
    "TreeSummary": "ops.trees.summary",
    "fill_devices": "ops.array.policy",
    "relayout_plan": "ops.array.relayout_plan",
    "RelayoutPlan": "ops.array.relayout_plan",
    "on_grid": "ops.interpret.on_grid",
    "OnGrid": "ops.interpret.on_grid",
    "with_layout": "ops.interpret.with_layout",
    "ALGORITHMS": "ops.products.algorithms",
    "map_shards": "ops.array.map_shards",
    "core_index": "ops.array.cores",
    "shift": "ops.array.cores",
    "psum": "ops.array.cores",
    "pmax": "ops.array.cores",
    "pmin": "ops.array.cores",
    "all_gather": "ops.array.cores",
    "ring_attention": "ops.user.ring_attention",
    "slices": "ops.user.slices",
    "Slices": "ops.user.slices",
    "def_rule": "ops.primitives.user_rules",
    "Cost": "sharding.cost",
    "Links": "sharding.machines.chips",
    "Machine": "sharding.machines.machine",
    "Rates": "sharding.machines.chips",
    "Report": "ops.programs.report",
    "plan": "ops.planning.making",
    "simulate": "ops.planning.making",
    "scaling": "ops.planning.scaled",
    "Scaling": "ops.planning.scaling",
    "load_plan": "ops.planning.saved",
    "Plan": "ops.planning.plan",
    "Simulation": "ops.planning.simulation",
    "TimeComparison": "ops.planning.comparison",
    "numpy": "ops.user.numpy",
    "nn": "ops.user.nn",
}

__all__ = [
    "ALGORITHMS",
    "AffineExpr",
    "AffineMap",
    "AffineSet",
    "Chip",
    "Comparison",
    "Conversion",
    "Cost",
    "DeviceGrid",
    "Explanation",
    "Explorer",
    "Fit",
    "GridArray",
    "GridLayout",
    "ImageFile",
    "Layout",
    "LayoutError",
    "LayoutWarning",
    "Links",
    "Location",
    "Machine",
    "OnGrid",
    "Plan",
    "Rates",
    "RelayoutPlan",
    "Report",
    "Saving",
    "Scaling",
    "Simulation",
    "Slices",
    "Summary",
    "TimeComparison",
    "TreeSummary",
    "all_gather",
    "cache_limit",
    "cached_bytes",
    "clear_caches",
    "compare",
    "convert",
    "core_index",
    "def_rule",
    "emulate_devices",
    "explain",
    "explore",
    "fill_devices",
    "from_image",
    "from_physical",
    "image",
    "load_image",
    "load_plan",
    "map_shards",
    "megengine",
    "mli",
    "nn",
    "numpy",
    "on_grid",
    "open_image",
    "open_safetensors",
    "pack",
    "parse",
    "plan",
    "pmax",
    "pmin",
    "psum",
    "put",
    "put_local",
    "relayout",
    "relayout_plan",
    "restore",
    "ring_attention",
    "save",
    "save_image",
    "scaling",
    "shift",
    "simulate",
    "slices",
    "sophon",
    "strided",
    "summary",
    "tenstorrent",
    "unpack",
    "with_layout",
    "xla",
    "zeros_like",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":  # kept in pyproject.toml alone
        return version("gridlayout")
    if name not in _LAZY:
        raise AttributeError(f"module 'gridlayout' has no attribute {name!r}")
    if _LAZY[name].startswith("ops."):
        # Waits until another thread that imports the floor has given GridArray its operators.
        import_module("gridlayout.ops")
    module = import_module(f"gridlayout.{_LAZY[name]}")
    value = module if name in ("numpy", "nn") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), "__version__", *__all__]
