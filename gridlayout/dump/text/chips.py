"""Chips of a dump: what `ttcore.system_desc` and `ttcore.device` say of cores and memory."""

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
    """The chip that a line describes, `before` where it describes none. Bytes.

    The first chip of the system; usable L1 is its size less the base below which the firmware
    lives, and usable DRAM what lies between the reserved ends of each bank. A device's worker grid
    is the chip's, less the rows that are not for work.

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
