"""Tenstorrent: the chips whose memory a layout can be checked against.

The document model (seed 004) is `gl.GridLayout`.
"""

from __future__ import annotations

from gridlayout.memory import Chip

# Usable L1 is the SRAM less what the firmware reserves; DRAM is channels x bytes.
WORMHOLE = Chip("Wormhole", (8, 8), {"l1": 1499136 - 1024, "dram": 12 * 2**30})
BLACKHOLE = Chip("Blackhole", (10, 13), {"l1": 1572864 - 98304, "dram": 8 * 4278190080})
