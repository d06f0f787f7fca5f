"""Tenstorrent: the chips whose memory a layout can be checked against.

The document model (seed 004) is `gl.GridLayout`; the models of today's compilers are here: `metal`
(tt-mlir's metal_layout) and `ttnn` (its ttnn_layout). `compare` lays them side by side.
"""

from __future__ import annotations

from gridlayout.memory import Chip
from gridlayout.tenstorrent.compare import Comparison, compare
from gridlayout.tenstorrent.metal import (
    MetalLayout,
    grid_aware_alignments,
    host_strides,
    metal,
    tile_alignments,
)
from gridlayout.tenstorrent.ttnn import (
    MeshLowering,
    TtnnLayout,
    from_document,
    interleaved_shard_shape,
    lower_to_mesh,
    ttnn,
)

__all__ = [
    "BLACKHOLE",
    "WORMHOLE",
    "Comparison",
    "MeshLowering",
    "MetalLayout",
    "TtnnLayout",
    "compare",
    "from_document",
    "grid_aware_alignments",
    "host_strides",
    "interleaved_shard_shape",
    "lower_to_mesh",
    "metal",
    "tile_alignments",
    "ttnn",
]

# Usable L1 is the SRAM less what the firmware reserves; DRAM is channels x bytes.
WORMHOLE = Chip("Wormhole", (8, 8), {"l1": 1499136 - 1024, "dram": 12 * 2**30})
BLACKHOLE = Chip("Blackhole", (10, 13), {"l1": 1572864 - 98304, "dram": 8 * 4278190080})
