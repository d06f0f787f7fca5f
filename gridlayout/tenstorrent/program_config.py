"""Program configs of TTNN's matrix products: the tiles of the result that each core computes."""

from __future__ import annotations

import re

_CONFIG = re.compile(
    r"compute_with_storage_grid_size = #ttnn\.core_coord<([0-9]{1,4}), ([0-9]{1,4})>"
    r".{0,400}?\bper_core_m = ([0-9]{1,6}), per_core_n = ([0-9]{1,6})"
)
Blocks = tuple[int, int, int, int]  # columns and rows of cores, then rows and columns of tiles


def blocks_of(text: str) -> Blocks | None:
    """The grid of cores and the tiles per core of a product's program config; None without one.

    >>> size = "compute_with_storage_grid_size = #ttnn.core_coord<11, 2>"
    >>> blocks_of(f"{size}, in0_block_w = 2, per_core_m = 1, per_core_n = 4")
    (11, 2, 1, 4)
    """
    found = _CONFIG.search(text) if "per_core_m" in text else None
    return (int(found[1]), int(found[2]), int(found[3]), int(found[4])) if found else None
