"""`Loss`: what one layout says and another of the same tensor does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout import dtypes
from gridlayout.affine.search import components
from gridlayout.arguments import Shape
from gridlayout.layouts.buffers import Buffers
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import size
from gridlayout.layouts.reader import dims_text
from gridlayout.sophon.tensors import Tensor

# Elements that are compared one by one; more only where dims fall into groups that have fewer.
MAX_COMPARED = 1 << 22
# XLA's number of the memory that everything is in where nothing else is said.
_UNSAID = (None, "memory 0")


@dataclass(frozen=True)
class Loss:
    """One thing that could not be kept. what: format, cores, places, bytes, memory, pages or oob.

    places: some element lies elsewhere, in another core or at another byte. Without that loss
    every element lies where it did; where the number of cores is lost, that counts in the cores'
    buffers laid end to end.
    """

    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.what}: {self.text}"


def losses(before: Layout, after: Layout) -> tuple[Loss, ...]:
    """All that `before` says and `after` does not, of one shape.

    >>> from gridlayout import GridLayout, xla
    >>> for loss in losses(GridLayout((4, 6), grid=(2, 1)), xla.layout((4, 6))):
    ...     print(loss)
    cores: 2x1 cores become one buffer, in which theirs lie end to end
    memory: l1 has no equivalent
    """
    return tuple(Loss(what, text) for what, text in _found(before, after))


def _found(before: Layout, after: Layout) -> Iterator[tuple[str, str]]:
    kinds = [_format(layout) for layout in (before, after)]
    if kinds[0] != kinds[1]:
        yield "format", f"{kinds[0]} becomes {kinds[1]}"
    grids = [tuple(n for n in layout.core_shape if n > 1) for layout in (before, after)]
    if grids[0] != grids[1]:
        cores = f"{dims_text(after.core_shape)} cores" if after.num_cores > 1 else "one buffer"
        end = ", in which theirs lie end to end" if after.num_cores == 1 else ""
        yield "cores", f"{dims_text(before.core_shape) or '1'} cores become {cores}{end}"
    if (where := moved_text(before, after)) is not None:
        yield "places", where
    if before.nbytes != after.nbytes:
        yield "bytes", f"{size(before.nbytes)} in all become {size(after.nbytes)}"
    if before.memory not in _UNSAID and before.memory != after.memory:
        said = f"becomes {after.memory}" if after.memory not in _UNSAID else "has no equivalent"
        yield "memory", f"{before.memory} {said}"
    if before.is_interleaved and not after.is_interleaved:
        yield "pages", "interleaved over all banks, which has no equivalent"
    if before.oob is not None and repr(before.oob) != repr(after.oob):
        yield "oob", f"the padding's value, {dtypes.oob_text(before.oob)}, has no equivalent"


def _format(layout: Layout) -> str:
    if layout.tile_format is not None:
        return layout.tile_format
    bits = layout.stored_bits
    wide = "" if bits == max(dtypes.bits(layout.dtype), 1) else f" in {bits} bits"
    return f"{layout.dtype.name}{wide}"


# -- places ----------------------------------------------------------------------------------------


def moved_text(before: Layout, after: Layout) -> str | None:
    """An element that lies elsewhere, in words; None where every one lies where it did.

    Too many elements to compare count as moved, and the words say so.
    """
    if not before.size:
        return None
    by_core = before.num_cores == after.num_cores
    groups = [tuple(range(before.ndim))] if before.ndim else []
    if _is_linear(before) and _is_linear(after):
        groups = _groups(before, after)
    zero = _places(before, after, (0,) * before.ndim, by_core)
    if not np.array_equal(*zero):
        return _words(before, after, (0,) * before.ndim)
    for dims in groups:
        extents = tuple(before.shape[d] for d in dims)
        if (count := int(np.prod(extents, dtype=object))) > MAX_COMPARED:
            return f"{count:,} elements are too many to compare one by one"
        index: list[Any] = [np.zeros((), np.int64)] * before.ndim
        for d, values in zip(dims, np.indices(extents).reshape(len(dims), -1), strict=True):
            index[d] = values
        here, there = _places(before, after, tuple(index), by_core)
        differ = np.flatnonzero((here != there).any(axis=0))
        if differ.size:
            return _words(before, after, _at(index, int(differ[0])))
    return None


def _at(index: list[Any], k: int) -> Shape:
    return tuple(int(values.reshape(-1)[k if values.size > 1 else 0]) for values in index)


def _is_linear(layout: Layout) -> bool:
    """Whether bytes follow offsets in a straight line: no pages with gaps between."""
    return type(layout).byte_of in (Buffers.byte_of, Tensor.byte_of)


def _groups(before: Layout, after: Layout) -> list[Shape]:
    """Dims whose places in both are a sum of one term a group: so each is compared alone."""
    reads = [*before.index_map.used_dims(), *after.index_map.used_dims()]
    return [tuple(sorted(dims)) for dims, _ in components(reads) if dims]


def _places(
    before: Layout, after: Layout, index: tuple[Any, ...], by_core: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """In both layouts: the core's number and the bit in its buffer, or the bit in all of them."""
    in_elements = before.tile_format is not None or after.tile_format is not None
    found = []
    for layout in (before, after):
        core, place = _place(layout, index, in_elements)
        if not by_core:
            whole = layout.bytes_per_core * 8
            if in_elements:
                whole = int(np.prod(layout.local_shape, dtype=object))
            core, place = core * 0, core * whole + place
        found.append(np.stack(np.broadcast_arrays(core, place)).reshape(2, -1))
    return found[0], found[1]


def _place(layout: Layout, index: tuple[Any, ...], in_elements: bool) -> tuple[Any, Any]:
    physical = [np.asarray(i, np.int64) for i in layout.index_map(*index)]
    core = offset = np.zeros((), np.int64)
    for i, n in zip(physical[: layout.core_rank], layout.core_shape, strict=True):
        core = core * n + i
    for i, n in zip(physical[layout.core_rank :], layout.local_shape, strict=True):
        offset = offset * n + i
    if in_elements:
        return core, offset
    if type(layout).byte_of is Buffers.byte_of:
        return core, offset * layout.stored_bits
    return core, layout.byte_of(offset) * 8 + layout.bit_of(offset)  # type: ignore[arg-type, operator]


def _words(before: Layout, after: Layout, index: Shape) -> str:
    here, there = before.locate(index), after.locate(index)
    sides = []
    for layout, at in ((before, here), (after, there)):
        core = f"core {at.core} " if layout.core_rank else ""
        place = f"byte {at.byte}" + (f", bit {at.bit}" if at.bit else "")
        if None in (here.byte, there.byte):
            place = f"place {at.offset}"
        sides.append(f"{core}{place}")
    return f"element {index} goes from {sides[0]} to {sides[1]}"
