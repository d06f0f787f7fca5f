"""`Part`: the cores of a layout on one device, and the boxes of the logical tensor that they hold.

If the cores divide linear axes (`gridlayout.layouts.blocks`), a part holds an interval of each
axis, which is a few boxes of logical indices. An array of these positions is read and written box
by box, through strided views with one dim per logical dim. Other layouts are copied element by
element, and their parts are described by one bounding box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from gridlayout.arguments import Shape
from gridlayout.layouts.blocks import Block, Blocks, find_blocks
from gridlayout.layouts.intervals import Box, boxes_between, is_nested
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.program import Move, PadMove, ReshapeMove, host_fill, run_host

Read = Callable[[Box], NDArray[Any]]
Copy = Callable[[Box, NDArray[Any]], object]
# Elements whose physical indices are computed at a time.
_MOST_INDICES = 1 << 18
# Elements that are packed or unpacked at a time if a device has several cores.
_MOST_PACKED = 1 << 22


def sizes_of(box: Box) -> Shape:
    """The extents of a box."""
    return tuple(high - low for low, high in box)


def volume_of(box: Box) -> int:
    """The number of elements of a box."""
    return prod(sizes_of(box))


def intersection(a: Box, b: Box) -> Box | None:
    """The intersection of two boxes, or None if it is empty."""
    found = tuple((max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True))
    return found if all(low < high for low, high in found) else None


def slices_of(box: Box, within: Box | None = None) -> tuple[slice, ...]:
    """The slices of a box, in the full tensor or in the array of the box `within`."""
    starts = (0,) * len(box) if within is None else [low for low, _ in within]
    return tuple(slice(low - s, high - s) for (low, high), s in zip(box, starts, strict=True))


@dataclass(frozen=True)
class Part:
    """A block of cores of a layout: `count` along each core dim, starting at core `first`.

    Some of them may be idle slots, beyond the grid.

    >>> from gridlayout import GridLayout
    >>> part = Part(GridLayout((4, 6), grid=(3,), collapse=[(0, 2)]), (1,), (1,))
    >>> part.boxes, part.is_exact
    ((((1, 2), (2, 6)), ((2, 3), (0, 4))), True)
    """

    layout: Layout
    first: Shape
    count: Shape

    @cached_property
    def _blocks(self) -> Blocks | None:
        found = find_blocks(self.layout)
        if found is not None:
            for block in found.blocks:
                strides, extents = _magnitudes(self.layout, block)
                if not is_nested(strides, extents):
                    return None
        return found

    @property
    def is_exact(self) -> bool:
        """Whether the boxes contain exactly the elements of the part."""
        return self._blocks is not None or not self.layout.size

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """The disjoint boxes of the logical tensor that the part holds, sorted by their corners.

        They are exact if the cores divide linear axes, as in most layouts. Otherwise the only box
        is the bounding box of the part's elements; there is none if the part has no elements.
        """
        if not self.layout.size:
            return ()
        if self._blocks is None:
            return self._bounding_box()
        found = []
        for some in product(*(self._boxes_of(block) for block in self._blocks.blocks)):
            spans = {d: span for one in some for d, span in one.items()}
            found.append(tuple(spans.get(d, (0, 1)) for d in range(self.layout.ndim)))
        return tuple(sorted(found))

    def _interval(self, block: Block) -> tuple[int, int]:
        """The interval of a block's positions in the part: start (included), stop (excluded)."""
        if block.core is None:
            return 0, block.size
        start = self.first[block.core] * block.size
        return start, start + self.count[block.core] * block.size

    def _boxes_of(self, block: Block) -> list[dict[int, tuple[int, int]]]:
        """The part's interval of a block, as boxes of the block's logical dims."""
        strides, extents = _magnitudes(self.layout, block)
        offset = _lowest(self.layout, block)
        low, high = (position - offset for position in self._interval(block))
        top = 1 + sum(s * (n - 1) for s, n in zip(strides, extents, strict=True))
        found = []
        for box in boxes_between(max(low, 0), min(high, top), strides, extents):
            spans = {}
            for (d, stride), (a, b) in zip(block.terms, box, strict=True):
                n = self.layout.shape[d]
                spans[d] = (a, b) if stride > 0 else (n - b, n - a)
            found.append(spans)
        return found

    # -- data ----------------------------------------------------------------------------------

    def fill(self, physical: NDArray[Any], read: Read, copy: Copy | None = None) -> None:
        """Write the part's elements into its physical array; the caller has written the padding.

        physical: contiguous, of shape `(*count, *layout.local_shape)`. read: returns the array of a
        box; it is called with the boxes of the part, or with smaller boxes inside them. copy:
        writes the elements of a box to an array of its shape, without the array that `read` makes.
        """
        copies = copy or (lambda box, out: np.copyto(out, read(box)))
        for part, where in self._subparts():
            if part._blocks is None:
                part._scatter(physical[where], read)
            elif part.boxes:
                part._pack(physical[where], read, copies)

    def copy(self, physical: NDArray[Any], box: Box, out: NDArray[Any]) -> int:
        """Copy the part's elements of a box into the box's array; return how many there are."""
        copied = 0
        for part, where in self._subparts():
            shared = [each for own in part.boxes if (each := intersection(own, box)) is not None]
            if part._blocks is None:
                copied += sum(part._gather(physical[where], each, box, out) for each in shared)
            elif shared:
                flat = part._unpacked(physical[where])
                for each in shared:
                    out[slices_of(each, box)] = part._view(flat, each)
                    copied += volume_of(each)
        return copied

    def _subparts(self) -> Iterator[tuple[Part, tuple[slice, ...]]]:
        """Smaller parts of few elements or one core each, and their slices of the part's array."""
        size = max(prod(self.layout.local_shape), 1)
        cores = [(n, tuple(range(0, n, n))) for n in self.count]
        if self._blocks is not None:
            cores, most = [], max(_MOST_PACKED // size, 1)
            for k, n in enumerate(self.count):
                inner = prod(self.count[k + 1 :])
                step = min(max(most // inner, 1), n)
                cores.append((step, tuple(range(0, n, step))))
        for starts in product(*(starts for _, starts in cores)):
            spans = [
                (start, min(start + step, n))
                for start, (step, _), n in zip(starts, cores, self.count, strict=True)
            ]
            first = tuple(f + low for f, (low, _) in zip(self.first, spans, strict=True))
            part = Part(self.layout, first, sizes_of(tuple(spans)))
            yield (self if part == self else part), slices_of(tuple(spans))

    # -- a part as an array of positions -------------------------------------------------------

    @property
    def _lengths(self) -> Shape:
        """The number of positions of each block in the part."""
        assert self._blocks is not None
        return tuple(b - a for a, b in map(self._interval, self._blocks.blocks))

    def _pack(self, physical: NDArray[Any], read: Read, copy: Copy) -> None:
        assert self._blocks is not None
        moves = self._blocks.moves_from_flat(self.count)
        fill, flat = host_fill(self.layout), self._as_read(read)
        if flat is not None:
            found = self._split(flat)
        else:
            shape = (*self.count, *self._blocks.flat.local_shape)
            grown, inside, rest = _padded_first(self.count, shape, moves)
            if rest is moves:
                flat = filled(self._lengths, fill)
                found = self._split(flat)
            else:  # one core: the positions are dims of the padded array
                found, moves = filled(grown, fill), rest
                flat = self._joined(found[inside])
            for box in self.boxes:
                copy(box, self._view(flat, box))
        if moves and isinstance(moves[-1], ReshapeMove):  # write through the shape before it
            physical, moves = physical.reshape(moves[-1].before), moves[:-1]
        physical[...] = run_host(found, moves, fill)

    def _as_read(self, read: Read) -> NDArray[Any] | None:
        """The array of positions as a view of the array that `read` returns.

        None unless the part is a single box without padding.
        """
        assert self._blocks is not None
        if len(self.boxes) != 1 or volume_of(self.boxes[0]) != prod(self._lengths):
            return None
        found = read(self.boxes[0])
        terms = [term for block in self._blocks.blocks for term in block.terms]
        seen = [d for d, _ in terms]
        rest = [d for d in range(found.ndim) if d not in seen]
        found = found.transpose([*seen, *rest])
        found = found[tuple(slice(None, None, 1 if s > 0 else -1) for _, s in terms)]
        return found.reshape(self._lengths)

    def _unpacked(self, physical: NDArray[Any]) -> NDArray[Any]:
        """The array of positions of a physical array."""
        assert self._blocks is not None
        moves = self._blocks.moves_to_flat(self.count)
        return self._joined(run_host(physical, moves, np.zeros((), physical.dtype)))

    def _joined(self, flat: NDArray[Any]) -> NDArray[Any]:
        """The array of positions of a part of the untiled layout."""
        assert self._blocks is not None
        return flat.transpose(self._blocks.joined_order).reshape(self._lengths)

    def _split(self, flat: NDArray[Any]) -> NDArray[Any]:
        """The part of the untiled layout, as a view of an array of positions."""
        assert self._blocks is not None
        shape = (*self.count, *self._blocks.flat.local_shape)
        order = self._blocks.joined_order
        split = flat.reshape([shape[d] for d in order])
        return split.transpose([order.index(d) for d in range(len(order))])

    def _view(self, flat: NDArray[Any], box: Box) -> NDArray[Any]:
        """A box as a view of the array of positions."""
        assert self._blocks is not None
        start, strides = [0] * flat.ndim, [0] * len(box)
        for k, block in enumerate(self._blocks.blocks):
            start[k] = block.offset - self._interval(block)[0]
            for d, stride in block.terms:
                start[k] += stride * box[d][0]
                strides[d] = stride * flat.strides[k]
        corner = flat[tuple(slice(at, None) for at in start)]
        size = flat.dtype.itemsize
        bits = corner.view(f"u{size}") if size <= 8 else corner  # as_strided rejects float8
        return as_strided(bits, sizes_of(box), strides).view(flat.dtype)

    # -- element by element --------------------------------------------------------------------

    def _owned(self, box: Box) -> Iterator[tuple[Box, NDArray[np.bool_], list[NDArray[Any]]]]:
        """Chunks of a box, a mask of the elements that the part holds, and their indices.

        The indices are physical, relative to the part's first core.
        """
        for chunk in chunks_of(box):
            grid = np.ogrid[slices_of(chunk)] if chunk else []
            shape = sizes_of(chunk)
            index = [np.broadcast_to(r, shape) for r in self.layout.index_map(*grid)]
            mine = np.ones(shape, np.bool_)
            for k, (first, count) in enumerate(zip(self.first, self.count, strict=True)):
                index[k] = index[k] - first
                mine &= (index[k] >= 0) & (index[k] < count)
            yield chunk, mine, [each[mine] for each in index]

    def _bounding_box(self) -> tuple[Box, ...]:
        found: list[Box] = []
        for chunk, mine, _ in self._owned(tuple((0, n) for n in self.layout.shape)):
            if mine.any():
                hits = (mine.any(axis=_other_dims(mine, d)) for d in range(mine.ndim))
                places = [np.flatnonzero(each) for each in hits]
                box = [(int(p[0]), int(p[-1]) + 1) for p in places]
                found.append(
                    tuple((a + c, b + c) for (a, b), (c, _) in zip(box, chunk, strict=True))
                )
        if not found:
            return ()
        columns = list(zip(*found, strict=True))
        return (tuple((min(a for a, _ in c), max(b for _, b in c)) for c in columns),)

    def _scatter(self, physical: NDArray[Any], read: Read) -> None:
        for box in self.boxes:
            found = read(box)
            for chunk, mine, index in self._owned(box):
                physical[tuple(index)] = _view(found, slices_of(chunk, box))[mine]

    def _gather(self, physical: NDArray[Any], box: Box, within: Box, out: NDArray[Any]) -> int:
        copied = 0
        for chunk, mine, index in self._owned(box):
            _view(out, slices_of(chunk, within))[mine] = physical[tuple(index)]
            copied += int(mine.sum())
        return copied


def _view(array: NDArray[Any], where: tuple[slice, ...]) -> NDArray[Any]:
    """A writable view of a part of an array, also for rank 0."""
    index: Any = (*where, ...)
    return array[index]


def _other_dims(array: NDArray[Any], dim: int) -> Shape:
    return tuple(d for d in range(array.ndim) if d != dim)


def chunks_of(box: Box, most: int = _MOST_INDICES) -> Iterator[Box]:
    """Split a box into boxes of at most `most` elements, in row-major order.

    >>> list(chunks_of(((0, 3), (0, 4)), 4))
    [((0, 1), (0, 4)), ((1, 2), (0, 4)), ((2, 3), (0, 4))]
    """
    sizes = sizes_of(box)
    if prod(sizes) <= most:
        yield box
        return
    d = next(k for k, n in enumerate(sizes) if n > 1)
    step = max(most // prod(sizes[d + 1 :]), 1)
    for low in range(box[d][0], box[d][1], step):
        span = (low, min(low + step, box[d][1]))
        yield from chunks_of((*box[:d], span, *box[d + 1 :]), most)


def _magnitudes(layout: Layout, block: Block) -> tuple[Shape, Shape]:
    """The absolute strides of a block's terms, and the extents of their dims."""
    return tuple(abs(s) for _, s in block.terms), tuple(layout.shape[d] for d, _ in block.terms)


def _lowest(layout: Layout, block: Block) -> int:
    """The smallest position of a block."""
    return block.offset + sum(min(s, 0) * (layout.shape[d] - 1) for d, s in block.terms)


def filled(shape: Sequence[int], fill: NDArray[Any]) -> NDArray[Any]:
    """An array filled with one value; for 0, memory pages that are never written stay unused."""
    if not fill.tobytes().strip(b"\0"):
        return np.zeros(shape, fill.dtype)
    return np.full(shape, fill)


def _padded_first(
    count: Shape, shape: Shape, moves: tuple[Move, ...]
) -> tuple[Shape, tuple[slice, ...], tuple[Move, ...]]:
    """Return the padded shape, the slices of the unpadded data in it, and the other moves.

    Applies if the first move pads and the part has one core; otherwise nothing changes.
    """
    full = tuple(slice(None) for _ in shape)
    first = moves[0] if moves else None
    if not isinstance(first, PadMove) or prod(count) > 1 or min(*first.low, *first.high) < 0:
        return shape, full, moves
    grown = tuple(a + n + b for a, n, b in zip(first.low, shape, first.high, strict=True))
    inside = tuple(slice(a, a + n) for a, n in zip(first.low, shape, strict=True))
    return grown, inside, moves[1:]
