"""Parser of the memrefs of Mosaic, the compiler of Pallas kernels for TPUs.

    memref<256x130xf32, #tpu.tiled<(8,128),[2,1]>, #tpu.memory_space<vmem>>

The tiles are those of an XLA layout. The last list has the strides of the first tiles along each
dim, in tiles: [2,1] for rows of two tiles. An XLA layout has the order of its dims only, so the
strides must be those of tiles in rows without gaps.
"""

from __future__ import annotations

from itertools import accumulate

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import Reader
from gridlayout.xla.tiled import XlaLayout, layout

_SPACES = {"any": 0, "hbm": 0, "vmem": 1, "semaphore_mem": 2}  # as `S` counts them


def starts_memref(text: str) -> bool:
    """Return whether the text is a memref of Mosaic."""
    return text.lstrip().startswith("memref") and "#tpu." in text


def read_memref(reader: Reader) -> XlaLayout:
    """Read a memref of Mosaic; `LayoutError` names the column."""
    reader.expect("memref", "<")
    at = reader.here()
    shape = reader.dims_before_element()
    dtype = dtypes.FROM_MLIR[reader.element()]
    tiles: list[Shape] = []
    at_strides, strides = at, tuple[int, ...]()
    if reader.take(",", "#tpu.tiled", "<"):
        while reader.peek("("):
            tiles.append(_numbers(reader, "()"))
            reader.take(",")
        at_strides = reader.here()
        strides = _numbers(reader, "[]")
        reader.expect(">")
    space = 0
    if reader.take(",", "#tpu.memory_space", "<"):
        at_space = reader.here()
        name = reader.word("a memory space")
        if name not in _SPACES:
            reader.fail(f"memory space {name!r} is not one of {', '.join(_SPACES)}", at_space)
        space = _SPACES[name]
        reader.expect(">")
    reader.expect(">")
    reader.end()
    try:
        found = layout(shape, dtype, tiles=tiles, memory_space=space)
    except LayoutError as error:
        raise LayoutError(f"column {at + 1}: {error}") from None
    if tiles:
        _check(reader, found, tiles[0], strides, at_strides)
    return found


def _check(reader: Reader, found: XlaLayout, tile: Shape, strides: Shape, at: int) -> None:
    """Raise `LayoutError` if the strides are not those of tiles in rows."""
    sides = (1,) * (found.ndim - len(tile)) + tile
    counts = [-(-n // max(side, 1)) for n, side in zip(found.shape, sides, strict=False)]
    rows = tuple(accumulate(reversed(counts[1:]), int.__mul__, initial=1))[::-1]
    if strides != rows:
        reader.fail(
            f"strides {list(strides)} of tiles are not {list(rows)}, those of tiles in rows "
            "without gaps: other orders have no XLA layout",
            at,
        )


def _numbers(reader: Reader, brackets: str) -> Shape:
    reader.expect(brackets[0])
    found = []
    while not reader.take(brackets[1]):
        found.append(reader.number())
        if not reader.take(",") and not reader.peek(brackets[1]):
            reader.fail(f"expected ',' or {brackets[1]!r}")
    return tuple(found)
