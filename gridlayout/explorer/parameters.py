"""Converts a layout, element types and chips to the parameters of the explorer's page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any, NoReturn

from gridlayout import dtypes, xla
from gridlayout.document.grid_layout import GridLayout
from gridlayout.draw.logical import short
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES, is_word
from gridlayout.sophon.chip import CHIPS, Chip
from gridlayout.sophon.local_memory import LocalLayout, local
from gridlayout.sophon.strides import LAYOUTS, STORAGE
from gridlayout.tenstorrent.metal_layout import (
    ARRANGEMENTS,
    SPACES,
    MetalLayout,
    default_intervals,
    metal,
    tile_alignments,
)
from gridlayout.tenstorrent.ttnn_document import TtnnDocument, ttnn_document
from gridlayout.tenstorrent.ttnn_layout import (
    BUFFER_TYPES,
    MEMORY_LAYOUTS,
    WORKER_COLUMNS,
    TtnnLayout,
    ttnn,
)
from gridlayout.xla import XlaLayout

# The largest whole number that a browser represents exactly.
MAX_EXACT = 2**53 - 1
# The most elements that the page lists for a map with overlapping strides, as in arithmetic.js.
MAX_TABLE = 2**18

Parameters = dict[str, Any]


def parameters_of(layout: Layout) -> Parameters:
    """Return the fields of the page's form for a layout, as whole numbers and names.

    Raises `LayoutError` for a layout that the page does not support, or with too large numbers.

    >>> parameters_of(GridLayout((53, 63), grid=(3, 2)))["rows"]
    [{'strides': [1, 0], 'offset': 0}, {'strides': [0, 1], 'offset': 0}]
    """
    form = _FORMS.get(type(layout))
    found, numbers = form(layout) if form else _refuse(type(layout).__name__)
    bits = max(prod(layout.physical_shape) * dtypes.bits(layout.dtype), layout.nbytes * 8)
    if max(numbers, default=0) > MAX_EXACT or bits > MAX_EXACT:
        raise LayoutError(
            f"{short(repr(layout))} needs numbers over 2**53, which a browser can't represent "
            "exactly: explore a smaller layout"
        )
    if layout.is_scatter and layout.size > MAX_TABLE:
        raise LayoutError(
            f"{short(repr(layout))} has overlapping strides and {layout.size} elements; the page "
            f"supports such layouts with at most {MAX_TABLE} elements"
        )
    return found


def _refuse(what: str) -> NoReturn:
    raise LayoutError(
        f"{short(what)} can't be explored; supported are GridLayouts with a linear map, ttnn, "
        "ttnn_document and metal layouts, XLA layouts without splits, and sophon.local tensors; "
        "layout.draw() draws every layout, and gl.parse makes a layout of a text"
    )


def _grid(layout: GridLayout) -> tuple[Parameters, Iterable[int]]:
    if not layout.linear.is_linear():
        _refuse(f"a GridLayout whose map divides, {layout.linear},")
    rows = layout.linear.coefficients()
    names = ("grid", "tile", "face", "tile_format", "memory_space", "row_alignment")
    found = _shared(layout, "grid", *names) | {
        "collapse": None,
        "rows": [{"strides": [*strides], "offset": offset} for strides, offset in rows],
        "shard": layout.shard_shape if any(layout.stated_shard) else None,
    }
    # Partial sums of terms of mixed signs may exceed the result.
    reach = [
        abs(offset) + sum(abs(s) * n for s, n in zip(strides, layout.shape, strict=True))
        for strides, offset in rows
    ]
    coefficients = [abs(s) for strides, _ in rows for s in strides]
    return found, [*layout.shape, *layout.physical_shape, *reach, *coefficients]


def _shared(layout: Layout, model: str, *names: str) -> Parameters:
    """Return the fields that are constructor arguments of the same names."""
    return {
        "model": model,
        "shape": layout.shape,
        "dtype": layout.dtype.name,
        "oob": dtypes.oob_text(layout.oob),
        **{name: getattr(layout, name) for name in names},
    }


def _ttnn(layout: TtnnLayout) -> tuple[Parameters, Iterable[int]]:
    names = ("grid", "tile", "tile_format", "memory_layout", "buffer_type", "row_alignment")
    found = _shared(layout, "ttnn", *names)
    return found, [*layout.padded_shape, *layout.plane, *layout.physical_shape]


def _document(layout: TtnnDocument) -> tuple[Parameters, Iterable[int]]:
    names = ("grid", "tile", "tile_format", "memory_space", "row_alignment")
    shard, plain = layout.shard_shape, layout.replace(stride=None, shard_shape=None)
    whole = layout.replace(shard_shape=None).shard_shape
    found = _shared(layout, "ttnn_document", *names) | {
        "stride": None if layout.stride == plain.stride else layout.stride,
        "shard": None if shard == whole else shard,
    }
    return found, [*layout.stride, *layout.plane, *layout.physical_shape]


def _metal(layout: MetalLayout) -> tuple[Parameters, Iterable[int]]:
    names = ("grid", "tile", "tile_format", "memory_space", "memory_layout")
    alignments, intervals = layout.dim_alignments, layout.collapsed_intervals
    tiles = tile_alignments(layout.shape, intervals, layout.tile or (32, 32))
    found = _shared(layout, "metal", *names) | {
        "alignments": None if alignments == tiles else alignments,
        "intervals": None if intervals == default_intervals(layout.ndim) else intervals,
    }
    return found, [*layout.dim_alignments, *layout.aligned_shape, *layout.physical_shape]


def _xla(layout: XlaLayout) -> tuple[Parameters, Iterable[int]]:
    if layout.splits:
        _refuse("an XLA layout with splits (SC)")
    names = ("tiles", "tail_alignment", "index_type", "pointer_type", "element_bits")
    found = _shared(layout, "xla", *names, "memory_space", "metadata_bytes")
    numbers = (layout.tail_alignment, layout.memory_space, layout.metadata_bytes)
    order = layout.minor_to_major
    return (
        found | {"order": None if order == tuple(reversed(range(layout.ndim))) else order},
        [*layout.shape, *layout.physical_shape, *numbers, layout.element_bits],
    )


def _sophon(layout: LocalLayout) -> tuple[Parameters, Iterable[int]]:
    if layout.ndim != 4:
        _refuse("a sophon.matrix")
    chip = layout.chip
    found = _shared(layout, "sophon", "layout", "strides", "offset", "storage", "lanes") | {
        "allocation": layout.own_allocation,
        "npu": layout.start_npu,
        "chip": {
            "known": chip.name if chip.name is not None and CHIPS.get(chip.name) == chip else None,
            **_sizes(chip),
            "name": None if chip.name is None else repr(chip.name),
        },
    }
    strides = [stride * layout.lanes for stride in layout.strides]
    memory = chip.npus * chip.npu_bytes + chip.alignment * 8
    return found, [*layout.shape, *strides, memory, layout.lanes * dtypes.bits(layout.dtype)]


def _sizes(chip: Chip) -> Parameters:
    return {name: getattr(chip, name) for name in ("npus", "npu_bytes", "alignment", "banks")}


# The forms of the page, by the class of the layout.
_FORMS: dict[type[Layout], Callable[[Any], tuple[Parameters, Iterable[int]]]] = {
    GridLayout: _grid,
    TtnnLayout: _ttnn,
    TtnnDocument: _document,
    MetalLayout: _metal,
    XlaLayout: _xla,
    LocalLayout: _sophon,
}

# The initial layouts of the page's models, except the model of the given layout.
_STARTS = (
    GridLayout((53, 63), "bfloat16", grid=(3, 2), tile=(32, 32)),
    ttnn((12, 12, 16), "bfloat16", grid=(2, 1), tile=(32, 32)),
    ttnn_document((12, 12, 16), "bfloat16", grid=(2, 1), tile=(32, 32)),
    metal((3, 43, 7), "bfloat16", grid=(6, 1), tile=(32, 32)),
    xla.layout((3, 5), "float32", tiles=[(2, 2)]),
    local((2, 6, 4, 5), "float32", start=1024, chip=Chip(npus=4, npu_bytes=1024, alignment=128)),
)


def facts(layout: Layout) -> Parameters:
    """Return the other data of the page: types, formats, chips, and a layout of each model."""
    own = (layout.memory,) if is_word(layout.memory) and layout.memory not in SPACES else ()
    return {
        "dtypes": {name: _type(name) for name in dtypes.MLIR_NAMES},
        "oob_names": [*dtypes.OOB_NAMES],
        "block_formats": dtypes.BLOCK_FORMATS,
        "memory_spaces": {"metal": SPACES, "": (*MEMORY_SPACES, *own)},
        "memory_layouts": {"metal": ARRANGEMENTS, "": MEMORY_LAYOUTS},
        "buffer_types": BUFFER_TYPES,
        "tile_names": dtypes.TILE_NAMES,
        "worker_columns": WORKER_COLUMNS,
        "xla_names": {dtype: name for name, dtype in xla.ELEMENT_TYPES.items()},
        "layouts": LAYOUTS,
        "storage": STORAGE,
        "chips": {name: _sizes(chip) for name, chip in CHIPS.items()},
        "starts": [parameters_of(start) for start in _STARTS],
        "given": {"oob": dtypes.oob_text(layout.oob), "dtype": layout.dtype.name},
    }


def _type(name: str) -> dict[str, Any]:
    """Return a type's bits, MLIR name, the values of padding names, and its range of integers."""
    dtype = dtypes.as_dtype(name)
    words = [word for word in dtypes.OOB_NAMES if word != "zero" or dtypes.has_zero(dtype)]
    values = {word: dtypes.oob_value(word, dtype) for word in words}
    whole = name.startswith(("int", "uint"))
    return {
        "bits": dtypes.bits(dtype),
        "mlir": dtypes.MLIR_NAMES[name],
        "words": {word: dtypes.oob_text(value) for word, value in values.items()},
        # As text: a browser's numbers can't hold 64 bits.
        "low": str(values["neginf"]) if whole else None,
        "high": str(values["inf"]) if whole else None,
    }
