"""Reads the chip from a dump's `ttcore.system_desc` and `ttcore.device`: its cores and memory."""

from __future__ import annotations

import re
from dataclasses import replace

from gridlayout.arguments import MAX_ELEMENTS
from gridlayout.layouts.memory import CHIPS, COMPUTE_TILES, Chip

_ARCH = re.compile(r"\barch = <([a-z0-9_]+)>")
_GRID = re.compile(r"\bgrid = ([0-9]{1,5})x([0-9]{1,5})\b")
_WORKERS = re.compile(r"\bworkerGrid = #ttcore\.grid<([0-9]{1,5})x([0-9]{1,5})\b")
_NUMBERS = ("l1_size", "l1_unreserved_base", "num_dram_channels", "dram_channel_size")
_ENDS = ("base", "end")


def chip_in(text: str, before: Chip | None) -> Chip | None:
    """Return the chip that a line describes, or `before` if it describes none. Sizes in bytes.

    Of a system, the first chip is returned. Usable L1 is the size of L1 minus the base address
    below which the firmware is stored. Usable DRAM is the range of each bank between its reserved
    ends. The worker grid of a device replaces the chip's grid: it lacks the rows that run no work.

    >>> text = ("#s = #ttcore.system_desc<[{role = host}], [{arch = <toy>, grid = 2x4, l1_size = "
    ...         "4096, num_dram_channels = 2, dram_channel_size = 512, l1_unreserved_base = 96}]>")
    >>> chip_in(text, None).grid, chip_in(text, None).capacity
    ((2, 4), {'l1': 4000, 'dram': 1024})
    """
    if "system_desc<" in text and (found := _ARCH.search(text)):
        before = _described(text, found[1]) or before
    if "workerGrid" in text and (found := _WORKERS.search(text)):
        rows, columns = int(found[1]), int(found[2])
        if rows and columns:
            before = replace(before or CHIPS["wormhole"], grid=(rows, columns))
    return before


def _described(text: str, name: str) -> Chip | None:
    grid = _GRID.search(text)
    numbers = [re.search(rf"\b{word} = ([0-9]{{1,19}})\b", text) for word in _NUMBERS]
    if grid is None or not int(grid[1]) or not int(grid[2]):
        return None
    size, base, channels, channel = (int(found[1]) if found else -1 for found in numbers)
    if min(size, base, channels, channel) < 0 or base > size or channels * channel > MAX_ELEMENTS:
        return None
    ends = [re.search(rf"\bdram_unreserved_{word} = ([0-9]{{1,19}})\b", text) for word in _ENDS]
    if all(ends):
        low, high = (int(found[1]) for found in ends if found)
        channel = high - low if low <= high <= channel else channel
    capacity = {"l1": size - base, "dram": channels * channel}
    return Chip(name, (int(grid[1]), int(grid[2])), capacity, COMPUTE_TILES, max(channels, 1))
