"""Tenstorrent: the layouts of its compilers, its chips, and compiled programs on the grid.

The model of tt-mlir's document is `gl.GridLayout`. The models of today's code are here: `metal`
(tt-mlir's metal_layout), `ttnn` (its ttnn_layout) and `tensor_layout` (tt-metal's TensorLayout).
`ttnn_document` is TTNN as tt-mlir's document describes it. `compare` compares these models. `bfp`
encodes and decodes tiles in block formats. `device_map` maps virtual cores to physical cores.
`load` runs a compiled TTNN program; it needs JAX and is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gridlayout.layouts.memory import CHIPS
from gridlayout.tenstorrent import bfp
from gridlayout.tenstorrent.chip_layout import ChipLayout
from gridlayout.tenstorrent.comparison import Comparison, compare
from gridlayout.tenstorrent.core_maps import CoreMap, device_map, dram_map, physical_grid
from gridlayout.tenstorrent.grid_selection import grid_aware_alignments
from gridlayout.tenstorrent.mapping import MeshLowering, from_compiler, from_document, lower_to_mesh
from gridlayout.tenstorrent.metal_layout import MetalLayout, host_strides, metal, tile_alignments
from gridlayout.tenstorrent.sharding import (
    as_2d,
    block_sharded,
    height_sharded,
    sharded_across,
    squeeze_rank,
    width_sharded,
)
from gridlayout.tenstorrent.tiles import face_of, tile_map
from gridlayout.tenstorrent.tt_metal import TensorLayout, tensor_layout
from gridlayout.tenstorrent.ttnn_document import TtnnDocument, ttnn_document
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout, interleaved_shard_shape, ttnn

if TYPE_CHECKING:
    from gridlayout.ops.tenstorrent.program import TtnnProgram, load

__all__ = ["BLACKHOLE", "WORMHOLE", "ChipLayout", "Comparison", "CoreMap", "MeshLowering"]
__all__ += ["MetalLayout", "TensorLayout", "TtnnDocument", "TtnnLayout", "TtnnProgram", "as_2d"]
__all__ += ["bfp", "block_sharded", "compare", "device_map", "dram_map", "face_of", "from_compiler"]
__all__ += ["from_document", "grid_aware_alignments", "height_sharded", "host_strides"]
__all__ += ["interleaved_shard_shape", "load", "lower_to_mesh", "metal", "physical_grid"]
__all__ += ["sharded_across", "squeeze_rank", "tensor_layout", "tile_alignments", "tile_map"]
__all__ += ["ttnn", "ttnn_document", "width_sharded"]

WORMHOLE, BLACKHOLE = CHIPS["wormhole"], CHIPS["blackhole"]


def __getattr__(name: str) -> Any:
    if name not in ("TtnnProgram", "load"):
        raise AttributeError(f"module 'gridlayout.tenstorrent' has no attribute {name!r}")
    value = getattr(import_module("gridlayout.ops.tenstorrent.program"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), *__all__]
