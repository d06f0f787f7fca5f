"""`Blocks`: a layout without its tiles, as linear axes that the cores divide into intervals.

Most layouts first form linear axes from the logical dims (by joining, padding and reversing), then
divide these among cores, and only then tile each core's part. Before tiling, a core holds an
interval of positions of each axis. Relayouts compare these intervals of two layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from gridlayout.arguments import Shape
from gridlayout.caching import cached
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import Move, Numbered, numbered
from gridlayout.layouts.route import find_route
from gridlayout.layouts.steps import Flip, Join, Pad, Split, StepBuilder, Unit

# The linear form of an axis: the stride of each logical dim, and an offset.
Form = tuple[dict[int, int], int]


@dataclass(frozen=True)
class Block:
    """A linear axis; the position on it is `offset` plus the sum of stride * index over its terms.

    terms: pairs (logical dim, stride), the largest |stride| first, without dims of extent 1. core:
    the core dim that divides the axis, or None. size: positions per core; without a core dim, all.
    """

    terms: tuple[tuple[int, int], ...]
    offset: int
    core: int | None
    size: int


@dataclass(frozen=True, eq=False)
class Blocks:
    """A layout as blocks.

    flat: the same layout without tiles; its dims are the core dims and one dim per block.
    """

    layout: Layout
    flat: Layout
    blocks: tuple[Block, ...]

    @property
    def joined_order(self) -> list[int]:
        """The dims of `flat` in joined order: for each block its core dim, then its positions."""
        rank = self.flat.core_rank
        pairs = [(block.core, rank + k) for k, block in enumerate(self.blocks)]
        return [d for pair in pairs for d in pair if d is not None]

    def moves_to_flat(self, per_device: Sequence[int]) -> tuple[Move, ...]:
        """The moves from a device's part of the layout to its part of `flat`.

        per_device: the number of cores per device along each core dim.
        """
        return self._moves(self.layout, self.flat, per_device)

    def moves_from_flat(self, per_device: Sequence[int]) -> tuple[Move, ...]:
        """The moves from a device's part of `flat` to its part of the layout."""
        return self._moves(self.flat, self.layout, per_device)

    def _moves(self, a: Layout, b: Layout, per_device: Sequence[int]) -> tuple[Move, ...]:
        route = find_route(a, b)
        assert route is not None
        return route.moves(dict(enumerate(per_device)))


@cached
def find_blocks(layout: Layout) -> Blocks | None:
    """The blocks of a layout, or None if its cores do not divide linear axes.

    >>> from gridlayout import GridLayout
    >>> found = find_blocks(GridLayout((4, 6, 8), grid=(3, 2), tile=(4, 4)))
    >>> found.blocks[0], found.flat.physical_shape
    (Block(terms=((0, 6), (1, 1)), offset=0, core=0, size=8), (3, 2, 8, 4))
    """
    if layout.is_scatter or 0 in layout.shape:
        return None
    steps = numbered(layout.shape, layout.steps)
    producer = {axis: done for done in steps for axis in done.makes}
    cut = [_divided(axis, producer) for axis in layout.order[: layout.core_rank]]
    needed = _producers([axis for axis, _ in cut if axis is not None], producer)
    needed_steps = [done for done in steps if done in needed]
    forms = _forms(layout.shape, needed_steps)
    if forms is None or any(axis is not None and axis not in forms for axis, _ in cut):
        return None
    found = _Flat(layout, needed_steps, forms).blocks(cut)
    route = find_route(layout, found.flat)
    core_dims = {(k, k) for k in range(layout.core_rank)}
    return found if route is not None and core_dims <= set(route.unchanged_dims) else None


def _divided(core: int, producer: Mapping[int, Numbered]) -> tuple[int | None, int]:
    """The axis that a core dim divides, and the positions per core; no axis for a unit dim."""
    done = producer.get(core)
    if done is None or not isinstance(done.step, (Split, Unit)):
        return core, 1
    if isinstance(done.step, Unit):
        return None, 1
    return (done.reads[0], prod(done.sizes[1:])) if done.makes[0] == core else (core, 1)


def _producers(axes: Sequence[int], producer: Mapping[int, Numbered]) -> list[Numbered]:
    """All steps that produce the given axes, directly or through other axes."""
    found: list[Numbered] = []
    waiting = list(axes)
    while waiting:
        done = producer.get(waiting.pop())
        if done is not None and done not in found:
            found.append(done)
            waiting += done.reads
    return found


def _forms(shape: Shape, steps: Sequence[Numbered]) -> dict[int, Form] | None:
    """The linear form of each axis; None if a step splits an axis into digits."""
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
    """Builds the untiled layout: the steps up to the core dims, then one split per axis."""

    def __init__(
        self, layout: Layout, steps: Sequence[Numbered], forms: Mapping[int, Form]
    ) -> None:
        self.layout, self.forms = layout, forms
        self.builder = StepBuilder(layout.shape)
        self.at = {d: d for d in range(layout.ndim)}  # axis of the layout -> axis of the builder
        for done in steps:
            done.repeat(self.builder, self.at)

    def blocks(self, cut: Sequence[tuple[int | None, int]]) -> Blocks:
        builder, cores, inner, blocks = self.builder, [], [], []
        for k, (axis, size) in enumerate(cut):
            grid = self.layout.physical_shape[k]
            if axis is None or axis == self.layout.order[k]:  # one position per core
                core = builder.unit() if axis is None else self.at.pop(axis)
                rest = builder.unit()
            else:
                core, rest = builder.split(self.at.pop(axis), (grid, size))
            cores.append(core)
            inner.append(rest)
            blocks.append(self._block(axis, k, size))
        for axis, here in self.at.items():  # axes that no core dim divides
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
