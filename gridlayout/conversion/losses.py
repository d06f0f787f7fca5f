"""`Loss`: a property of one layout that another layout of the same tensor does not have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout import dtypes
from gridlayout.affine.search import components
from gridlayout.arguments import INT64_MAX, Shape
from gridlayout.layouts.buffers import Buffers
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import size
from gridlayout.layouts.reader import dims_text
from gridlayout.sophon.tensors import Tensor

# The most elements that are compared by enumeration, per group of independent dims.
MAX_COMPARED = 1 << 22
# Arguments of one system that change neither places nor bytes, and their defaults.
_EXTRAS = {
    **{"index_type": None, "pointer_type": None, "splits": (), "metadata_bytes": 0},  # XLA
    "capacity": None,  # MLI
}
# The memory of a layout that states none; 0 is XLA's default.
_DEFAULT_MEMORY = (None, "memory 0")


@dataclass(frozen=True)
class Loss:
    """One lost property. what: format, cores, places, bytes, memory, pages, fields or oob.

    The loss of "places" means that some element is on another core or at another byte; otherwise
    every element keeps its place. If the number of cores changes, places count in the concatenation
    of the cores' buffers. "fields" are arguments that only the system of the source has, such as
    XLA's splits and the capacity of an MLI tensor.
    """

    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.what}: {self.text}"


def losses(before: Layout, after: Layout) -> tuple[Loss, ...]:
    """Return the properties of `before` that `after` does not have; both have the same shape.

    >>> from gridlayout import GridLayout, xla
    >>> for loss in losses(GridLayout((4, 6), grid=(2, 1)), xla.layout((4, 6))):
    ...     print(loss)
    cores: 2x1 cores become one buffer that concatenates theirs
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
        end = " that concatenates theirs" if after.num_cores == 1 else ""
        yield "cores", f"{dims_text(before.core_shape) or '1'} cores become {cores}{end}"
    if (where := moved_text(before, after)) is not None:
        yield "places", where
    if before.nbytes != after.nbytes:
        yield "bytes", f"{size(before.nbytes)} in total become {size(after.nbytes)}"
    if before.memory not in _DEFAULT_MEMORY and before.memory != after.memory:
        is_stated = after.memory not in _DEFAULT_MEMORY
        change = f"becomes {after.memory}" if is_stated else "has no equivalent"
        yield "memory", f"{before.memory} {change}"
    if before.is_interleaved and not after.is_interleaved:
        yield "pages", "interleaved over all banks, which has no equivalent"
    if fields := [name for name, plain in _EXTRAS.items() if getattr(before, name, plain) != plain]:
        yield "fields", f"{', '.join(fields)} {'has' if len(fields) == 1 else 'have'} no equivalent"
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
    """The text of an element whose place differs; None if all elements keep their place.

    Too many elements to compare, and buffers that are too large, count as moved; the text says so.
    """
    if not before.size:
        return None
    if max(map(_end_bit, (before, after))) > INT64_MAX:
        return "places beyond 2**63 bits are too far apart to compare"
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
            return f"{count:,} elements are too many to compare"
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


def _end_bit(layout: Layout) -> int:
    """The end of all cores' buffers in a row, in bits; in Sophon's memories, with the address."""
    return ((layout.byte_of(0) or 0) + layout.nbytes) * 8


def _is_linear(layout: Layout) -> bool:
    """Whether bytes are linear in offsets, that is, there are no gaps between pages."""
    return type(layout).byte_of in (Buffers.byte_of, Tensor.byte_of)


def _groups(before: Layout, after: Layout) -> list[Shape]:
    """Independent groups of dims: places are sums of one term per group in both layouts."""
    reads = [*before.index_map.used_dims(), *after.index_map.used_dims()]
    return [tuple(sorted(dims)) for dims, _ in components(reads) if dims]


def _places(
    before: Layout, after: Layout, index: tuple[Any, ...], by_core: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places in both layouts: the core's number, and the bit in its buffer.

    Without by_core, the core is 0 and the bit counts in the concatenation of all buffers. If one
    layout has a block format, elements count instead of bits.
    """
    in_elements = before.tile_format is not None or after.tile_format is not None
    found = []
    for layout in (before, after):
        core, place = _place(layout, index, in_elements)
        if not by_core:
            length = layout.bytes_per_core * 8
            if in_elements:
                length = int(np.prod(layout.local_shape, dtype=object))
            core, place = core * 0, core * length + place
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
    texts = []
    for layout, at in ((before, here), (after, there)):
        core = f"core {at.core} " if layout.core_rank else ""
        place = f"byte {at.byte}" + (f", bit {at.bit}" if at.bit else "")
        if None in (here.byte, there.byte):
            place = f"offset {at.offset}"
        texts.append(f"{core}{place}")
    return f"element {index} moves from {texts[0]} to {texts[1]}"
