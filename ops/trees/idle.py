"""The warning of `gl.put` for a grid with more cores along a dim than the tensor has elements."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutWarning


def warn_of_idle_cores(layout: Any, stacklevel: int) -> None:
    """Emit a `LayoutWarning` where cores of a layout's grid can hold no element at all.

    stacklevel: the caller's, as `warnings.warn` takes it.

    >>> warn_of_idle_cores(GridLayout((16,), grid=(1, 8)), 1)
    """
    if not isinstance(layout, GridLayout) or 0 in layout.shape:
        return
    grid, sizes = layout.grid, layout.collapsed_shape
    if all(cores <= n for cores, n in zip(grid, sizes, strict=True)):
        return
    used = prod(-(-n // s) for n, s in zip(sizes, layout.shard_shape, strict=True))
    rule = "a core along a dim needs an element of it"
    if len(grid) > layout.ndim:
        rule = f"a grid of rank {len(grid)} has more dims than a tensor of rank {layout.ndim}"
    best = (min(prod(grid), layout.size),) if layout.ndim == 1 else tuple(map(min, grid, sizes))
    warnings.warn(
        f"grid {grid} leaves {prod(grid) - used} of {prod(grid)} cores idle: {rule}, and the shape "
        f"{layout.shape} is collapsed to {sizes}; give grid={best}",
        LayoutWarning,
        stacklevel=stacklevel + 1,
    )
