"""`Colouring`: assigns keys, fills and names to the cells of a drawing.

A colour has one meaning in a drawing. If more members (cores, tiles, ...) are drawn than there are
colours, each colour is that of a group of neighbours in their grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gridlayout.arguments import Ints, Shape
from gridlayout.draw.cells import MIXED, PADDING, Cell, Span, find_cells
from gridlayout.draw.points import Points
from gridlayout.errors import LayoutError
from gridlayout.palette import HUES

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout

_ANY = 1 << 62  # bound of the numbers that a user's function may return


@dataclass(frozen=True)
class Members:
    """The members of a grid of `shape`, or groups of them of `sizes` along each dim.

    one, many: the names of one member and of several. plain: whether they are a range rather than a
    grid. cores: the number of leading dims that are the coordinates of a member's core.
    """

    one: str
    many: str
    shape: Shape
    sizes: Shape = ()
    plain: bool = False
    cores: int = 0

    @property
    def groups(self) -> Shape:
        """The shape of the grid of groups; keys are row-major numbers in it."""
        sizes = self.sizes or (1,) * len(self.shape)
        return tuple(-(-n // size) for n, size in zip(self.shape, sizes, strict=True))

    def spans(self, key: int) -> list[Span]:
        """Return the span of indices of a member or a group along each dim."""
        index, sizes = np.unravel_index(key, self.groups), self.sizes or (1,) * len(self.shape)
        triples = zip(map(int, index), sizes, self.shape, strict=True)
        return [(i * size, min((i + 1) * size, n)) for i, size, n in triples]

    def place(self, key: int) -> str:
        """Return the index of a member or a group as text: `(0, 2:4)`, or `4..7` in a range."""
        if not self.shape:
            return ""
        spans = self.spans(key)
        if self.plain:
            low, high = spans[0]
            return f"{low:,}..{high - 1:,}" if high > low + 1 else f"{low:,}"
        texts = [
            str(low) if high == low + 1 else ":" if high - low == n else f"{low}:{high}"
            for (low, high), n in zip(spans, self.shape, strict=True)
        ]
        if not self.cores:
            return _in_brackets(texts)
        core = "cores" if self.sizes else "core"
        inside, outside = texts[self.cores :], texts[: self.cores]
        return f"{_in_brackets(inside)} of {core} {_in_brackets(outside)}"

    def name(self, key: int) -> str:
        """Return the name of a member or a group."""
        return f"{self.many if self.sizes else self.one} {self.place(key)}".strip()

    def grouped(self, keys: Ints) -> Members:
        """Return groups so large that the keys are in at most `HUES`; the last dims grow first."""
        index, sizes = np.unravel_index(keys, self.groups), [1] * len(self.groups)
        for d in reversed(range(len(sizes))):
            while sizes[d] < self.groups[d] and len(index[d]) > HUES:
                halved = [i // 2 if k == d else i for k, i in enumerate(index)]
                numbers = np.unique(np.ravel_multi_index(halved, self.groups))
                index, sizes[d] = np.unravel_index(numbers, self.groups), sizes[d] * 2
        before = self.sizes or (1,) * len(self.shape)
        return replace(self, sizes=tuple(n * m for n, m in zip(sizes, before, strict=True)))

    def into(self, groups: Members, key: Ints) -> Ints:
        """Return the number of each member, or of each group, among larger groups."""
        before = self.sizes or (1,) * len(self.shape)
        index = np.unravel_index(key, self.groups)
        triples = zip(index, before, groups.sizes, strict=True)
        return np.ravel_multi_index([i * a // b for i, a, b in triples], groups.groups)


def _in_brackets(texts: Sequence[str]) -> str:
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"


@dataclass(frozen=True, eq=False)
class Colouring:
    """The colours of a drawing. key: maps points to keys; the other functions take a key.

    fill: the CSS class. name: the text on hover. label: the text in a cell. entry: the meaning of
    the fill, for the legend. members: the grid of the drawn things, in which `member` maps a key to
    a number. coarse: the colouring by groups, if fills are those of groups. renumber: in a coarse
    colouring, maps the keys of the original one to its own.
    """

    key: Callable[[Points], Ints]
    fill: Callable[[int], str]
    name: Callable[[int], str]
    label: Callable[[int], str]
    entry: Callable[[int], str]
    members: Members | None = None
    member: Callable[[Any], Any] = lambda key: key
    coarse: Colouring | None = None
    renumber: Callable[[Ints], Ints] = lambda keys: keys


def colouring(layout: Layout, color: Any) -> Colouring:
    """Return the colouring by "core", "tile", "offset", a logical dim or a function of the index.

    Raises `LayoutError` for anything else, and for tiles of a layout without tiles.
    """
    word = color if isinstance(color, str) else ""
    if word == "core":
        return by_numbers(lambda p: p.core, Members("core", "cores", layout.core_shape))
    if word == "tile":
        return tile_colouring(layout, outer_block(layout))
    if word == "offset":
        return _by_offset(layout)
    is_number = isinstance(color, (int, np.integer)) and not isinstance(color, bool)
    if is_number and 0 <= color < layout.ndim:
        members = Members(f"d{color} =", f"d{color} =", (max(layout.shape[color], 1),), plain=True)
        return by_numbers(lambda p: p.logical[color], members)
    if callable(color):
        return by_numbers(
            lambda p: _user_keys(color, p), Members("colour", "colours", (_ANY,), plain=True)
        )
    raise LayoutError(
        f"color {color!r} must be 'core', 'tile', 'offset', a logical dim below {layout.ndim}, or "
        "a function of the index"
    )


def _by_offset(layout: Layout) -> Colouring:
    total = max(prod(layout.local_shape), 1)
    # Edges are between blocks, so that a block has one colour.
    block = layout.blocks[0] if layout.blocks and layout.blocks[0] * HUES <= total else 1
    blocks = -(-total // block)
    edges = [min(-(-blocks * k // HUES) * block, total) for k in range(HUES + 1)]

    def name(k: int) -> str:
        first, last = edges[k], edges[k + 1] - 1
        return f"offset {first:,}" if first == last else f"offsets {first:,}..{last:,}"

    def key(p: Points) -> Ints:
        return _known(p, np.searchsorted(edges, p.offset, side="right") - 1)

    return Colouring(key, lambda k: f"s{k}", name, lambda k: "", name)


def _user_keys(color: Callable[..., Any], points: Points) -> Ints:
    """Return the keys that a user's function gives the points: whole numbers >= 0.

    The function gets indices within the shape only: padding has index 0, and its key is not used.
    """
    if not points.valid.any():
        return np.zeros(points.valid.shape, np.int64)
    keys = np.asarray(color(*(np.where(points.valid, i, 0) for i in points.logical)))
    if keys.dtype.kind not in "bui" or (keys.size and keys.min() < 0):
        raise LayoutError(f"color gave {keys.dtype} numbers; it must give whole numbers >= 0")
    if keys.size and keys.max() >= _ANY:
        raise LayoutError(f"color gave {keys.max()}; it must give numbers below 2**62")
    try:
        return np.broadcast_to(keys, points.valid.shape).astype(np.int64)
    except ValueError:
        raise LayoutError(
            f"color gave {keys.shape} numbers for {points.valid.shape} indices; it must give one "
            "for each"
        ) from None


def tile_colouring(layout: Layout, inner: int) -> Colouring:
    """Return the colouring by tile, with one key per block of `inner` elements in a tile."""
    outer, total = outer_block(layout), prod(layout.local_shape)
    cores = layout.core_shape if layout.num_cores > 1 else ()
    shape = (*cores, *_outer_shape(layout, outer))
    members = Members("tile", "tiles", shape, cores=len(cores))
    tiles, inners = -(-total // outer), -(-total // inner)

    def of(key: int) -> int:
        core, block = divmod(key, inners)
        return core * tiles + block * inner // outer

    return by_numbers(lambda p: p.core * inners + p.offset // inner, members, of)


def _known(points: Points, keys: Ints) -> Ints:
    return np.where(points.valid, keys, PADDING)


def by_numbers(
    key: Callable[[Points], Ints], members: Members, of: Callable[[Any], Any] = lambda key: key
) -> Colouring:
    """Return the colouring by members of a grid. of: maps a key to the number of its member."""

    def name(k: int) -> str:
        return members.name(of(k))

    return Colouring(
        lambda p: _known(p, key(p)),
        lambda k: f"c{of(k) % HUES}",
        name,
        lambda k: members.place(of(k)),
        name,
        members,
        of,
    )


def with_fills(colours: Colouring, keys: Iterable[int]) -> Colouring:
    """Return the colouring with one fill per drawn member, or per group if there are many.

    >>> from gridlayout import GridLayout
    >>> cores = colouring(GridLayout((9, 9), grid=(9, 9)), "core")
    >>> few, many = with_fills(cores, [3, 11]), with_fills(cores, range(81))
    >>> few.fill(3), few.fill(11), many.entry(0), many.fill(80)
    ('c0', 'c1', 'cores (0:2, :)', 'c4')
    """
    shown = np.unique(np.fromiter(keys, np.int64))
    shown = shown[shown >= 0]
    members, of = colours.members, colours.member
    things = np.unique(of(shown))
    if members is None or len({colours.fill(k) for k in shown.tolist()}) == len(things):
        return colours
    if len(things) <= HUES:
        numbers = {thing: n for n, thing in enumerate(things.tolist())}
        return replace(colours, fill=lambda k: f"c{numbers[int(of(k))]}")
    groups = members.grouped(things)

    def group(k: Any) -> Any:
        return members.into(groups, of(k))

    def renumber(keys: Ints) -> Ints:
        found = colours.renumber(keys)
        return np.where(found >= 0, group(found.clip(0)), found)

    def key(p: Points) -> Ints:
        found = colours.key(p)
        return np.where(found >= 0, group(found.clip(0)), found)

    coarse = replace(by_numbers(key, groups), renumber=renumber)
    coarse = with_fills(coarse, np.unique(group(shown)).tolist())
    fine = replace(colours, fill=lambda k: coarse.fill(int(group(k))))
    return replace(fine, entry=lambda k: coarse.entry(int(group(k))), coarse=coarse)


@dataclass(frozen=True, eq=False)
class Field:
    """A table of positions. key: maps a colouring, rows and columns to keys."""

    rows: int
    columns: int
    key: Callable[[Colouring, Ints, Ints], Ints]


def find_coloured(
    fields: Sequence[Field], colours: Colouring, budget: int
) -> tuple[list[list[Cell]], Colouring]:
    """Return the cells of each field, and the colouring with which they are drawn.

    If cells would contain several members, the colouring is by groups.
    """
    every = [
        find_cells(field.rows, field.columns, partial(field.key, colours), budget)
        for field in fields
    ]
    colours = with_fills(colours, {key for cells in every for c in cells for key in c.found})
    mixed = any(cell.key == MIXED for cells in every for cell in cells)
    if colours.coarse is None or not mixed:
        return every, colours
    return find_coloured(fields, colours.coarse, budget)


def fill(colours: Colouring, key: int) -> str:
    """Return the CSS class of a key: its fill, or the hatching of padding or of several keys."""
    return {PADDING: "pad", MIXED: "mix"}.get(key) or colours.fill(key)


def legend(colours: Colouring, keys: Iterable[int]) -> list[tuple[str, str]]:
    """Return (fill, meaning) of each fill that is drawn."""
    drawn = set(keys)
    entries = dict.fromkeys((colours.fill(k), colours.entry(k)) for k in sorted(drawn) if k >= 0)
    special = {PADDING: ("pad", "padding"), MIXED: ("mix", "several: hover to see which")}
    return [*entries, *(entry for key, entry in special.items() if key in drawn)]


def outer_block(layout: Layout) -> int:
    """Return the elements of the outermost block; raise `LayoutError` if there are no blocks."""
    if not layout.blocks:
        raise LayoutError(f"{layout!r} has no tiles, faces or lanes to draw")
    return layout.blocks[0]


def _outer_shape(layout: Layout, block: int) -> Shape:
    """Return the shape of the blocks in a core's buffer; one dim if no dims are that shape."""
    local = layout.local_shape
    for k in range(len(local) + 1):
        if prod(local[k:]) == block:
            return local[:k]
    return (-(-prod(local) // block),)
