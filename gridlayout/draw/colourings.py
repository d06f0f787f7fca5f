"""Colourings: what tells the cells of a drawing apart, as numbers, as fills and in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gridlayout.arguments import Shape
from gridlayout.draw.cells import MIXED, PADDING, Ints
from gridlayout.draw.palette import HUES
from gridlayout.draw.points import Points, tuple_text
from gridlayout.errors import LayoutError

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout


@dataclass(frozen=True, eq=False)
class Colouring:
    """What tells cells apart: `key` numbers the points, the rest is of a number.

    fill: its class. name: in legends and on hover. label: in cells.
    """

    key: Callable[[Points], Ints]
    fill: Callable[[int], str]
    name: Callable[[int], str]
    label: Callable[[int], str]


def colouring(layout: Layout, color: Any) -> Colouring:
    """The colouring by "core", "tile", "offset", a logical dim's number or a function of the index.

    `LayoutError` for anything else, and for tiles of a layout that has none.
    """
    if color == "core":
        return by_numbers(lambda p: p.core, "core", layout.core_shape)
    if color == "tile":
        block = outer_block(layout)
        count = -(-prod(layout.local_shape) // block)
        shape = (*layout.core_shape, *_outer_shape(layout, block))
        return by_numbers(lambda p: p.core * count + p.offset // block, "tile", shape)
    if color == "offset":
        total = max(prod(layout.local_shape), 1)
        edges = [-(-total * k // HUES) for k in range(HUES + 1)]
        return Colouring(
            lambda p: _known(p, np.searchsorted(edges, p.offset, side="right") - 1),
            lambda k: f"s{k}",
            lambda k: f"offsets {edges[k]:,}..{edges[k + 1] - 1:,}",
            lambda k: "",
        )
    if isinstance(color, int) and not isinstance(color, bool) and 0 <= color < layout.ndim:
        return Colouring(
            lambda p: _known(p, p.logical[color]),
            lambda k: f"c{k % HUES}",
            lambda k: f"d{color} = {k}",
            str,
        )
    if callable(color):
        return Colouring(
            lambda p: _known(p, _told(color, p)),
            lambda k: f"c{k % HUES}",
            lambda k: f"colour {k}",
            str,
        )
    raise LayoutError(
        f"color {color!r} is not 'core', 'tile', 'offset', a logical dim below {layout.ndim}, or a "
        "function of the index"
    )


def _told(color: Callable[..., Any], points: Points) -> Ints:
    """What a user's function says of the points: a whole number >= 0 each."""
    said = np.asarray(color(*points.logical))
    if said.dtype.kind not in "bui" or (said.size and said.min() < 0):
        raise LayoutError(f"color gave {said.dtype} numbers; it must give whole numbers >= 0")
    try:
        return np.broadcast_to(said, points.valid.shape).astype(np.int64)
    except ValueError:
        raise LayoutError(
            f"color gave {said.shape} numbers for {points.valid.shape} indices; it must give one "
            "for each"
        ) from None


def tile_colouring(layout: Layout, inner: int) -> Colouring:
    """The colouring by tile, with a key for each block of `inner` elements of a tile."""
    tile, outer = colouring(layout, "tile"), outer_block(layout)
    total = prod(layout.local_shape)
    tiles, inners = -(-total // outer), -(-total // inner)

    def of(key: int) -> int:
        core, block = divmod(key, inners)
        return core * tiles + block * inner // outer

    return Colouring(
        lambda p: _known(p, p.core * inners + p.offset // inner),
        lambda k: tile.fill(of(k)),
        lambda k: tile.name(of(k)),
        lambda k: tile.label(of(k)),
    )


def _known(points: Points, keys: Ints) -> Ints:
    return np.where(points.valid, keys, PADDING)


def by_numbers(key: Callable[[Points], Ints], what: str, shape: Shape) -> Colouring:
    """Colours of the members of a grid such that neighbours differ, also diagonal ones."""

    def hue(k: int) -> int:
        if prod(shape) <= HUES:
            return k
        index = map(int, np.unravel_index(k, shape))
        return sum(w * i for w, i in zip(_weights(len(shape)), index, strict=True)) % HUES

    def place(k: int) -> str:
        return tuple_text(np.unravel_index(k, shape)) if shape else ""

    return Colouring(
        lambda p: _known(p, key(p)),
        lambda k: f"c{hue(k)}",
        lambda k: f"{what} {place(k)}".strip(),
        place,
    )


def _weights(rank: int) -> list[int]:
    return [(2 * k + 1) % HUES for k in reversed(range(rank))]


def fill(colours: Colouring, key: int) -> str:
    """The class of a key: its fill, or the hatches of padding and of several things."""
    return {PADDING: "pad", MIXED: "mix"}.get(key) or colours.fill(key)


def outer_block(layout: Layout) -> int:
    """Elements of the outermost block; `LayoutError` for a layout without blocks."""
    if not layout.blocks:
        raise LayoutError(f"{layout!r} has no tiles, faces or lanes to draw")
    return layout.blocks[0]


def _outer_shape(layout: Layout, block: int) -> Shape:
    """The dims that count blocks of a core's buffer; one number where no dims do."""
    local = layout.local_shape
    for k in range(len(local) + 1):
        if prod(local[k:]) == block:
            return local[:k]
    return (-(-prod(local) // block),)
