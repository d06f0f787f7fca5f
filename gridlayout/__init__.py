"""gridlayout: tensors on grids of cores. `import gridlayout as gl`.

Three floors: `gridlayout` says what goes where (NumPy only), `gridlayout.sharding` which device
holds it, `gridlayout.ops` moves and computes. This module is the one front door to all three; what
needs JAX is imported when it is first asked for, so that describing a layout costs no JAX start-up.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gridlayout import megengine, mli, sophon, strided, tenstorrent, xla
from gridlayout.affine.integer_set import AffineSet
from gridlayout.affine.map import AffineExpr, AffineMap
from gridlayout.caching import cache_limit, cached_bytes, clear_caches
from gridlayout.document.grid_layout import GridLayout
from gridlayout.draw import draw as _draw
from gridlayout.errors import LayoutError, LayoutWarning
from gridlayout.images import from_image, image
from gridlayout.layouts.layout import Layout, register_drawer, register_shardings
from gridlayout.layouts.location import Location
from gridlayout.layouts.memory import Chip, Fit
from gridlayout.layouts.summary import Summary
from gridlayout.safetensors import open_safetensors
from gridlayout.text import parse

# The one place of the version: pyproject.toml reads it here.
__version__ = "0.2.0"

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


def _named_sharding(layout: Layout, device: Any) -> Any:
    argument = import_module("gridlayout.sharding.device_argument")
    found = import_module("gridlayout.sharding.logical_sharding")
    return found.named_sharding(layout, argument.as_device(device))


def _drawn(layout: Layout, view: str, **options: Any) -> Any:
    if hasattr(options.get("device"), "axis_names"):  # a mesh of JAX
        argument = import_module("gridlayout.sharding.device_argument")
        options["device"] = argument.as_device(options["device"])
    return _draw(layout, view, **options)


register_shardings(_named_sharding)
register_drawer(_drawn)  # `Layout.draw`: the views know layouts, layouts do not know the views

# Where the names that need JAX live, and those that few programs ask for.
_NAMES = {
    "conversion.convert": "Conversion convert",
    "dump.comparing.comparison": "Comparison",
    "dump.compare": "compare",
    "dump.explanation": "Explanation explain",
    "explorer.page": "Explorer explore",
    "image_files.opened": "ImageFile load_image open_image",
    "image_files.saving": "save_image",
    "sharding.device_grid": "DeviceGrid",
    "sharding.meshes.emulate": "emulate_devices",
    "ops.array.grid_array": "GridArray",
    "ops.trees.arrays": "put relayout zeros_like",
    "ops.array.put_local": "put_local",
    "ops.array.placing": "from_physical",
    "ops.moves.packing": "pack unpack",
    "ops.checkpoints.saving": "save Saving",
    "ops.checkpoints.restoring": "restore",
    "ops.trees.summary": "summary TreeSummary",
    "ops.array.policy": "fill_devices",
    "ops.array.relayout_plan": "relayout_plan RelayoutPlan",
    "ops.interpret.on_grid": "on_grid OnGrid",
    "ops.interpret.with_layout": "with_layout",
    "ops.products.algorithms": "ALGORITHMS",
    "ops.array.map_shards": "map_shards",
    "ops.array.cores": "core_index shift psum pmax pmin all_gather",
    "ops.user.ring_attention": "ring_attention",
    "ops.user.slices": "slices Slices",
    "ops.primitives.user_rules": "def_rule",
    "sharding.cost": "Cost",
    "sharding.machines.chips": "Links Rates",
    "sharding.machines.machine": "Machine",
    "ops.programs.report": "Report",
    "ops.planning.making": "plan simulate",
    "ops.planning.scaled": "scaling",
    "ops.planning.scaling": "Scaling",
    "ops.planning.saved": "load_plan",
    "ops.planning.plan": "Plan",
    "ops.planning.simulation": "Simulation",
    "ops.planning.comparison": "TimeComparison",
    "ops.user.numpy": "numpy",
    "ops.user.nn": "nn",
}
_LAZY = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["AffineExpr", "AffineMap", "AffineSet", "Chip", "Conversion", "Fit", "GridLayout"]
__all__ += ["Layout", "LayoutError", "LayoutWarning", "Location", "Summary", "convert", "parse"]
__all__ += ["megengine", "mli", "sophon", "strided", "tenstorrent", "xla"]
__all__ += ["ImageFile", "from_image", "image", "load_image", "open_image", "open_safetensors"]
__all__ += ["save_image"]
__all__ += ["Comparison", "Explanation", "Explorer", "compare", "explain", "explore"]
__all__ += ["DeviceGrid", "Links", "Machine", "Rates", "emulate_devices"]
__all__ += ["GridArray", "RelayoutPlan", "Saving", "TreeSummary", "fill_devices", "from_physical"]
__all__ += ["pack", "put", "put_local", "relayout", "relayout_plan", "restore", "save", "summary"]
__all__ += ["unpack", "zeros_like"]
__all__ += ["ALGORITHMS", "Cost", "OnGrid", "Report", "Slices", "all_gather", "core_index"]
__all__ += ["def_rule", "map_shards", "nn", "numpy", "on_grid", "pmax", "pmin", "psum"]
__all__ += ["ring_attention", "shift", "slices", "with_layout"]
__all__ += ["Plan", "Scaling", "Simulation", "TimeComparison", "load_plan", "plan", "scaling"]
__all__ += ["simulate"]
__all__ += ["cache_limit", "cached_bytes", "clear_caches"]


def __getattr__(name: str) -> Any:
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
    return [*(name for name in globals() if name.startswith("__")), *__all__]
