"""Draws the halo of a core: the positions around its block that a stencil on the block reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gridlayout.arguments import Ints, as_index, as_int
from gridlayout.document.grid_form import grouped
from gridlayout.draw.colourings import Members, by_numbers
from gridlayout.draw.logical import MAX_PANELS, drawn, tensor_text
from gridlayout.draw.points import Points, tuple_text
from gridlayout.errors import LayoutError
from gridlayout.svg import Drawing

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout

# The keys of a drawing, in order.
_NAMES = ("its block", "its halo, from other cores", "what it does not read")


def draw_halo(
    layout: Layout,
    *,
    width: int | Sequence[int] = 1,
    core: Sequence[int] | None = None,
    wraps: bool = False,
) -> Drawing:
    """Draw what a core holds and the halo that it receives for a stencil, corners included.

    width: how many positions before and after its block it reads, along every divided dim or along
    each dim. core: its coordinates; by default a core in the middle of the grid. wraps: whether
    positions before the first one are the last ones, as on a torus. Raises `LayoutError` for a
    layout whose cores hold no blocks.
    """
    grid = layout.core_shape
    blocks = _blocks(layout)
    widths = [width] * layout.ndim if isinstance(width, int) else list(width)
    sizes = [as_int(n, "width") for n in widths]
    if len(sizes) != layout.ndim or min(sizes, default=0) < 0:
        raise LayoutError(f"width {width!r} must be a number >= 0, or one for each dim")
    middle = tuple(n // 2 for n in grid)
    at = middle if core is None else as_index(core, grid, "core")

    def near(d: int, index: Ints) -> Any:
        n, block, number = layout.shape[d], *blocks[d]
        first = at[number] * block if number is not None else 0
        end = min(first + block, n) if number is not None else n
        reach = sizes[d] if number is not None and grid[number] > 1 else 0
        moved = [index + turn for turn in ((0, -n, n) if wraps else (0,))]
        return np.any([(first - reach <= i) & (i < end + reach) for i in moved], axis=0)

    def key(points: Points) -> Ints:
        own = np.ravel_multi_index(at, grid) if grid else 0
        read = np.ones(points.valid.shape, bool)
        for d, index in enumerate(points.logical):
            read = read & near(d, index)
        return np.where(points.core == own, 0, np.where(read, 1, 2))

    by = by_numbers(key, Members("", "", (len(_NAMES),), plain=True))
    colours = replace(by, name=_NAMES.__getitem__, label=lambda k: "", entry=_NAMES.__getitem__)
    title = f"{tensor_text(layout)}: halo of core {tuple_text(at)}"
    return drawn(layout, "core", "none", layout.shape[-2:], [], MAX_PANELS, colours, None, title)


def _blocks(layout: Layout) -> list[tuple[int, int | None]]:
    """Return for each dim the extent of its blocks, and the dim of the grid that divides it."""
    if layout.num_cores == 1:
        return [(n, None) for n in layout.shape]
    own = grouped(layout)
    found: list[tuple[int, int | None]] = [(n, None) for n in layout.shape]
    for k, group in enumerate(own.groups if own is not None else ()):
        assert own is not None
        wide = [d for d in group if layout.shape[d] > 1]
        inner = prod(layout.shape[d] for d in wide[1:])
        if own.grid[k] > 1 and (not wide or own.shard_shape[k] % inner):
            own = None
            break
        if wide:
            found[wide[0]] = own.shard_shape[k] // inner, k
    if own is None or own.core_shape != own.grid:
        raise LayoutError(f"{layout!r} has no halo: its cores hold no blocks of the tensor")
    return found
