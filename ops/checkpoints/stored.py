"""`StoredArray`: an array in a checkpoint, from which any box of the logical array can be read.

Orbax's files hold arrays in the chunks of TensorStore, a `GridArray` as its storage. To read a box,
the buffers of the cores that own elements of it are read and unpacked. If a buffer is much larger
than the box, only the region with the box's elements is read. So a large array
is in memory only in part, unless its map scatters adjacent elements.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.errors import LayoutError
from gridlayout.layouts.blocks import find_blocks
from gridlayout.layouts.intervals import Box
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.parts import Part, chunks_of, intersection, sizes_of, slices_of, volume_of

# The most bytes of core buffers, and the most elements by index, that are read at once.
_MOST_BYTES, _MOST_ELEMENTS = 1 << 25, 1 << 19
# Bytes of the cache for chunks that adjacent boxes read again: one chunk.
_CACHE = 1 << 24


class StoredArray:
    """An array in the folder of a checkpoint, open for reading.

    layout: the layout of a saved `GridArray`; None for a plain array. dtype: the element type, if
    the files hold the elements' bytes as another type.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        use_ocdbt: bool,
        use_zarr3: bool,
        layout: Layout | None = None,
        dtype: np.dtype[Any] | None = None,
    ) -> None:
        self.layout, self.folder, self.name = layout, folder, name
        try:
            self.store = _open_tensorstore(folder, name, use_ocdbt, use_zarr3)
        except Exception as error:  # TensorStore's own
            raise LayoutError(f"{name!r} in {str(folder)!r} can't be read: {error}") from error
        self.dtype = np.dtype(self.store.dtype.numpy_dtype) if dtype is None else dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return tuple(self.store.shape) if self.layout is None else self.layout.shape

    def check_stores(self, shape: tuple[int, ...]) -> None:
        """`LayoutError` unless the files hold an array of this storage shape."""
        if tuple(self.store.shape) != shape:
            raise LayoutError(
                f"{self.name!r} in {str(self.folder)!r} has shape {tuple(self.store.shape)}, and "
                f"the layouts beside it say {shape}: the files are of different checkpoints"
            )

    def region(self, slices: tuple[slice, ...]) -> NDArray[Any]:
        """Read a region of the array in the files: of a `GridArray`, of its storage."""
        try:
            found = np.asarray(self.store[slices].read().result())
        except Exception as error:  # TensorStore's own
            raise LayoutError(
                f"{self.name!r} in {str(self.folder)!r} can't be read; a file is damaged or "
                f"missing: {error}"
            ) from error
        return found if found.dtype == self.dtype else found.view(self.dtype)

    def read(self, box: Box) -> NDArray[Any]:
        """Read a box of the logical array."""
        if self.layout is None:
            return self.region(slices_of(box))
        out = np.empty(sizes_of(box), self.dtype)
        self.copy(box, out)
        return out

    def copy(self, box: Box, out: NDArray[Any]) -> None:
        """Read a box of the logical array into an array of its shape."""
        if self.layout is None:
            out[...] = self.region(slices_of(box))
        elif volume_of(box) and self._reads_cores(volume_of(box)):
            self._copy_cores(self.layout, box, out)
        elif volume_of(box):
            self._gather(self.layout, box, out)

    # -- by cores --------------------------------------------------------------------------------

    @cached_property
    def _core_bytes(self) -> int:
        assert self.layout is not None
        return prod(self.layout.local_shape) * self.dtype.itemsize

    def _reads_cores(self, elements: int) -> bool:
        """Whether whole core buffers are read for a box of `elements` elements.

        They are if the boxes of each core are known, and its buffer has at most 32 MiB, or at most
        twice the bytes of the box.
        """
        layout = self.layout
        assert layout is not None
        most = max(_MOST_BYTES, 2 * elements * self.dtype.itemsize)
        one = Part(layout, (0,) * layout.core_rank, (1,) * layout.core_rank)
        return self._core_bytes <= most and one.is_exact

    def _copy_cores(self, layout: Layout, box: Box, out: NDArray[Any]) -> None:
        copied = 0
        for cores in chunks_of(_cores_of(layout, box), max(_MOST_BYTES // self._core_bytes, 1)):
            part = Part(layout, tuple(low for low, _ in cores), sizes_of(cores))
            if any(intersection(own, box) is not None for own in part.boxes):
                copied += part.copy(self.region(slices_of(cores)), box, out)
        assert copied == volume_of(box)

    # -- element by element ----------------------------------------------------------------------

    def _gather(self, layout: Layout, box: Box, out: NDArray[Any]) -> None:
        for chunk in chunks_of(box, _MOST_ELEMENTS):
            index = list(layout.index_map(*(np.ogrid[slices_of(chunk)] if chunk else [])))
            region = tuple((int(np.min(i)), int(np.max(i)) + 1) for i in index)
            found = self.region(slices_of(region))
            places = [np.asarray(i) - low for i, (low, _) in zip(index, region, strict=True)]
            out[slices_of(chunk, box)] = found[tuple(places)]


def _cores_of(layout: Layout, box: Box) -> Box:
    """Return a box of cores that together hold all elements of a logical box."""
    blocks = find_blocks(layout)
    assert blocks is not None
    found = [(0, n) for n in layout.core_shape]
    for block in blocks.blocks:
        if block.core is not None:
            ends = [sorted((s * box[d][0], s * (box[d][1] - 1))) for d, s in block.terms]
            low = block.offset + sum(a for a, _ in ends)
            high = block.offset + sum(b for _, b in ends)
            found[block.core] = (low // block.size, high // block.size + 1)
    return tuple(found)


def _open_tensorstore(folder: Path, name: str, use_ocdbt: bool, use_zarr3: bool) -> Any:
    """Open the TensorStore of an array that Orbax has written."""
    import tensorstore as ts

    base = f"file://{folder.absolute().as_posix()}/"
    kvstore: Any = f"{base}{name}/"
    if use_ocdbt:
        kvstore = {"driver": "ocdbt", "base": base, "path": f"{name}/"}
    spec = {
        "driver": "zarr3" if use_zarr3 else "zarr",
        "kvstore": kvstore,
        "recheck_cached_data": False,
        "recheck_cached_metadata": False,
        "fill_missing_data_reads": False,
    }
    few = {"limit": 2}  # chunks that are read and decoded at once, each in memory
    limits = {"cache_pool": {"total_bytes_limit": _CACHE}, "file_io_concurrency": few}
    context = ts.Context({**limits, "data_copy_concurrency": few})
    return ts.open(spec, open=True, read=True, context=context).result()
