"""`Blocks`: a layout without its tiles, as axes that cores divide into blocks of positions.

Most layouts first make linear axes of the logical dims (joined, padded, reversed), divide these by
cores, and only then put what a core has in tiles. Up to there a core holds an interval of positions
of each axis, whatever the tiles: that is what two layouts are compared by, piece by piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import Move, Numbered, numbered
from gridlayout.layouts.route import find_route
from gridlayout.layouts.steps import Flip, Join, Pad, Split, StepBuilder, Unit

Shape = tuple[int, ...]
# Of an axis: (logical dim, stride) and an offset.
Form = tuple[dict[int, int], int]


@dataclass(frozen=True)
class Block:
    """An axis whose position is `offset` and the sum of stride * index over its terms.

    terms: (logical dim, stride), the largest strides first, without dims of extent 1. core: the
    core dim that divides it, None where every core has it whole; size: positions of one core.
    """

    terms: tuple[tuple[int, int], ...]
    offset: int
    core: int | None
    size: int


@dataclass(frozen=True, eq=False)
class Blocks:
    """A layout as blocks. flat: the same one untiled, its dims the cores' and one each block."""

    layout: Layout
    flat: Layout
    blocks: tuple[Block, ...]

    def moves_in(self, per_device: Sequence[int]) -> tuple[Move, ...]:
        """From a device's part of the layout to that of `flat`; it has so many cores a dim."""
        return self._moves(self.layout, self.flat, per_device)

    def moves_out(self, per_device: Sequence[int]) -> tuple[Move, ...]:
        """From a device's part of `flat` to that of the layout."""
        return self._moves(self.flat, self.layout, per_device)

    def _moves(self, a: Layout, b: Layout, per_device: Sequence[int]) -> tuple[Move, ...]:
        route = find_route(a, b)
        assert route is not None
        return route.moves(dict(enumerate(per_device)))


@lru_cache(maxsize=4096)
def find_blocks(layout: Layout) -> Blocks | None:
    """The blocks of a layout; None where its cores divide no linear axes.

    >>> from gridlayout import GridLayout
    >>> found = find_blocks(GridLayout((4, 6, 8), grid=(3, 2), tile=(4, 4)))
    >>> found.blocks[0], found.flat.physical_shape
    (Block(terms=((0, 6), (1, 1)), offset=0, core=0, size=8), (3, 2, 8, 4))
    """
    if layout.is_scatter or 0 in layout.shape:
        return None
    steps = numbered(layout.shape, layout.steps)
    maker = {axis: done for done in steps for axis in done.makes}
    cut = [_divided(axis, maker) for axis in layout.order[: layout.core_rank]]
    needed = _above([axis for axis, _ in cut if axis is not None], maker)
    kept = [done for done in steps if done in needed]
    forms = _forms(layout.shape, kept)
    if forms is None or any(axis is not None and axis not in forms for axis, _ in cut):
        return None
    found = _Flat(layout, kept, forms).blocks(cut)
    route = find_route(layout, found.flat)
    whole = {(k, k) for k in range(layout.core_rank)}
    return found if route is not None and whole <= set(route.unchanged_dims) else None


def _divided(core: int, maker: Mapping[int, Numbered]) -> tuple[int | None, int]:
    """The axis that a core dim divides, and the positions of one core; None of a unit."""
    done = maker.get(core)
    if done is None or not isinstance(done.step, (Split, Unit)):
        return core, 1
    if isinstance(done.step, Unit):
        return None, 1
    return (done.reads[0], prod(done.sizes[1:])) if done.makes[0] == core else (core, 1)


def _above(axes: Sequence[int], maker: Mapping[int, Numbered]) -> list[Numbered]:
    """The steps that axes are made by."""
    found: list[Numbered] = []
    waiting = list(axes)
    while waiting:
        done = maker.get(waiting.pop())
        if done is not None and done not in found:
            found.append(done)
            waiting += done.reads
    return found


def _forms(shape: Shape, steps: Sequence[Numbered]) -> dict[int, Form] | None:
    """The linear form of each axis; None where a step makes digits."""
    extent = dict(enumerate(shape))
    forms: dict[int, Form] = {d: ({d: 1} if n > 1 else {}, 0) for d, n in enumerate(shape)}
    for done in steps:
        extent.update(zip(done.makes, done.sizes, strict=True))
        match done.step:
            case Pad(axis, low, _):
                terms, offset = forms[axis]
                made = (terms, offset + low)
            case Flip(axis):
                terms, offset = forms[axis]
                made = ({d: -s for d, s in terms.items()}, extent[axis] - 1 - offset)
            case Join(axes):
                made = ({}, 0)
                for axis in axes:
                    terms, offset = forms[axis]
                    scaled = {d: s * extent[axis] for d, s in made[0].items()}
                    made = ({**scaled, **terms}, made[1] * extent[axis] + offset)
            case Unit():
                made = ({}, 0)
            case _:
                return None
        forms[done.makes[0]] = made
    return forms


class _Flat:
    """Builds the untiled layout: the steps up to the cores, then one split an axis."""

    def __init__(
        self, layout: Layout, steps: Sequence[Numbered], forms: Mapping[int, Form]
    ) -> None:
        self.layout, self.forms = layout, forms
        self.builder = StepBuilder(layout.shape)
        self.at = {d: d for d in range(layout.ndim)}  # an axis of the layout: its axis here
        for done in steps:
            done.repeat(self.builder, self.at)

    def blocks(self, cut: Sequence[tuple[int | None, int]]) -> Blocks:
        builder, cores, inner, blocks = self.builder, [], [], []
        for k, (axis, size) in enumerate(cut):
            grid = self.layout.physical_shape[k]
            if axis is None or axis == self.layout.order[k]:  # a core has one position
                core = builder.unit() if axis is None else self.at.pop(axis)
                rest = builder.unit()
            else:
                core, rest = builder.split(self.at.pop(axis), (grid, size))
            cores.append(core)
            inner.append(rest)
            blocks.append(self._block(axis, k, size))
        for axis, here in self.at.items():  # what no core divides
            blocks.append(self._block(axis, None, builder.extent[here]))
            inner.append(here)
        layout = self.layout
        flat = Layout(
            *(layout.shape, layout.dtype, builder.steps, cores + inner), core_rank=layout.core_rank
        )
        return Blocks(layout, flat, tuple(blocks))

    def _block(self, axis: int | None, core: int | None, size: int) -> Block:
        terms, offset = ({}, 0) if axis is None else self.forms[axis]
        ordered = sorted(terms.items(), key=lambda term: -abs(term[1]))
        return Block(tuple(ordered), offset, core, size)
