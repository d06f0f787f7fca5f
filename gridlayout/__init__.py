"""gridlayout: tensors on grids of cores. `import gridlayout as gl`.

Three floors: `gridlayout` says what goes where (NumPy only), `gridlayout.sharding` which device
holds it, `gridlayout.ops` moves and computes. This module is the one front door to all three; what
needs JAX is imported when it is first asked for, so that describing a layout costs no JAX start-up.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from sys import modules
from typing import TYPE_CHECKING, Any
from warnings import warn

from gridlayout import caches, megengine, mli, results, sophon, strided, tenstorrent, xla
from gridlayout.affine.map import AffineMap
from gridlayout.core_bytes import from_bytes, to_bytes
from gridlayout.document.grid_layout import GridLayout
from gridlayout.draw import draw as _draw
from gridlayout.errors import LayoutError, LayoutWarning
from gridlayout.layouts.layout import Layout, register_drawer, register_shardings
from gridlayout.layouts.memory import Chip
from gridlayout.lazy import by_name
from gridlayout.lazy import load as _load
from gridlayout.other_words import name_words
from gridlayout.safetensors import open_safetensors
from gridlayout.text import parse

# The one place of the version: pyproject.toml reads it here.
__version__ = "0.2.0"

if TYPE_CHECKING:
    from gridlayout import cores
    from gridlayout.conversion.convert import convert
    from gridlayout.core_files.opened import load_bytes, open_bytes
    from gridlayout.core_files.saving import save_bytes
    from gridlayout.dump.compare import compare
    from gridlayout.dump.explanation import explain
    from gridlayout.explorer.page import explore
    from gridlayout.ops.array.grid_array import GridArray
    from gridlayout.ops.array.map_shards import map_shards
    from gridlayout.ops.array.placing import from_physical
    from gridlayout.ops.array.policy import fill_devices
    from gridlayout.ops.array.put_local import put_local
    from gridlayout.ops.array.relayout_plan import relayout_plan
    from gridlayout.ops.checkpoints.restoring import restore
    from gridlayout.ops.checkpoints.saving import save
    from gridlayout.ops.interpret.on_grid import on_grid
    from gridlayout.ops.interpret.with_layout import with_layout
    from gridlayout.ops.moves.packing import pack, unpack
    from gridlayout.ops.planning.making import plan, simulate
    from gridlayout.ops.planning.saved import load_plan
    from gridlayout.ops.planning.scaled import scaling
    from gridlayout.ops.primitives.user_rules import def_rule
    from gridlayout.ops.products.algorithms import ALGORITHMS
    from gridlayout.ops.trees.arrays import put, relayout, zeros_like
    from gridlayout.ops.trees.summary import summary
    from gridlayout.ops.user import nn, numpy, scipy
    from gridlayout.ops.user.ring_attention import ring_attention
    from gridlayout.ops.user.slices import slices
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
_MODULES = by_name(
    {
        "conversion.convert": "convert",
        "dump.compare": "compare",
        "dump.explanation": "explain",
        "explorer.page": "explore",
        "core_files.opened": "load_bytes open_bytes",
        "core_files.saving": "save_bytes",
        "sharding.device_grid": "DeviceGrid",
        "sharding.meshes.emulate": "emulate_devices",
        "ops.array.grid_array": "GridArray",
        "ops.trees.arrays": "put relayout zeros_like",
        "ops.array.put_local": "put_local",
        "ops.array.placing": "from_physical",
        "ops.moves.packing": "pack unpack",
        "ops.checkpoints.saving": "save",
        "ops.checkpoints.restoring": "restore",
        "ops.trees.summary": "summary",
        "ops.array.policy": "fill_devices",
        "ops.array.relayout_plan": "relayout_plan",
        "ops.interpret.on_grid": "on_grid",
        "ops.interpret.with_layout": "with_layout",
        "ops.products.algorithms": "ALGORITHMS",
        "ops.array.map_shards": "map_shards",
        "ops.user.ring_attention": "ring_attention",
        "ops.user.slices": "slices",
        "ops.primitives.user_rules": "def_rule",
        "sharding.cost": "Cost",
        "sharding.machines.chips": "Links Rates",
        "sharding.machines.machine": "Machine",
        "ops.planning.making": "plan simulate",
        "ops.planning.scaled": "scaling",
        "ops.planning.saved": "load_plan",
    }
)
_SUBMODULES = {
    "cores": "cores",
    "nn": "ops.user.nn",
    "numpy": "ops.user.numpy",
    "scipy": "ops.user.scipy",
}

__all__ = ["AffineMap", "Chip", "GridLayout", "Layout", "LayoutError", "LayoutWarning", "convert"]
__all__ += ["parse"]
__all__ += ["megengine", "mli", "sophon", "strided", "tenstorrent", "xla"]
__all__ += ["from_bytes", "load_bytes", "open_bytes", "open_safetensors", "save_bytes", "to_bytes"]
__all__ += ["caches", "compare", "explain", "explore", "results"]
__all__ += ["DeviceGrid", "Links", "Machine", "Rates", "emulate_devices"]
__all__ += ["GridArray", "fill_devices", "from_physical", "pack", "put", "put_local", "relayout"]
__all__ += ["relayout_plan", "restore", "save", "summary", "unpack", "zeros_like"]
__all__ += ["ALGORITHMS", "Cost", "cores", "def_rule", "map_shards", "nn", "numpy", "on_grid"]
__all__ += ["scipy"]
__all__ += ["ring_attention", "slices", "with_layout"]
__all__ += ["load_plan", "plan", "scaling", "simulate"]

# Names of the last version, and where they are now. Two of them remain, without a warning.
_MOVED = {
    **{name: f"results.{name}" for name in results.__all__ if name != "BytesFile"},
    "ImageFile": "results.BytesFile",
    **{name: f"cores.{name}" for name in ("all_gather", "core_index", "shift")},
    **{name: f"cores.{name}" for name in ("pmax", "pmin", "psum")},
    **{"from_image": "from_bytes", "image": "to_bytes", "open_image": "open_bytes"},
    **{"cache_limit": "caches.limit", "cached_bytes": "caches.nbytes"},
    "clear_caches": "caches.clear",
    **{"load_image": "load_bytes", "save_image": "save_bytes"},
}
_REMAIN = ("load_image", "save_image")


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        if name not in _REMAIN:
            text = f"gl.{name} is called gl.{_MOVED[name]} now"
            warn(f"{text}; the next version drops the old name", DeprecationWarning, stacklevel=2)
        return attrgetter(_MOVED[name])(modules[__name__])
    if name in _MODULES:
        value = _load(_MODULES[name], name)
    elif name in _SUBMODULES:
        value = _load(_SUBMODULES[name])
    else:
        words = "" if name.startswith("_") else name_words(name, __all__)
        raise AttributeError(f"module 'gridlayout' has no attribute {name!r}{words}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), *__all__]
