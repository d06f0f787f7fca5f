"""`open_bytes` and `load_bytes`: files, memory-mapped and read in part, or read in full."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.arguments import Shape, as_flag, as_index, check_progress
from gridlayout.core_bytes import Bytes
from gridlayout.core_files import windows
from gridlayout.core_files.elements import elements_at, ranked
from gridlayout.core_files.sidecar import Sidecar, as_path, checksum_of, read_sidecar, sidecar_of
from gridlayout.core_files.windows import Box, Results, parts, weighted
from gridlayout.errors import LayoutError
from gridlayout.files import opened
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.strides import row_major
from gridlayout.public import public

_MAPS = 64  # files of one core that are mapped at a time

Progress = Callable[[int], None]


@public
def open_bytes(path: str | os.PathLike[str], *, check: bool = True) -> BytesFile:
    """Open what `gl.save_bytes` wrote; its bytes are memory-mapped and read on request.

    path: the path that was given to `gl.save_bytes`. check: whether to compare the checksum of a
    core's bytes before they are first read; this reads all bytes of that core. Otherwise only the
    requested bytes are read.

    `LayoutError` names a file that is missing or whose size differs from the sidecar and its
    layout, and contradictions in a sidecar. No memory is allocated by the sidecar's numbers. Bytes
    that were changed, or belong to another tensor, are refused when their core is read.

    >>> import gridlayout as gl, tempfile
    >>> layout = gl.GridLayout((4, 6), "int16", grid=(2, 2), oob=-1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gl.save_bytes(np.arange(24, dtype="int16").reshape(4, 6), layout, f"{folder}/x.bin")
    ...     opened = gl.open_bytes(f"{folder}/x.bin")
    ...     opened.core((0, 1)).view("<i2").tolist(), opened[1:3, 2:4].tolist()
    ([3, 4, 5, 9, 10, 11], [[8, 9], [14, 15]])
    """
    return BytesFile(read_sidecar(as_path(path)), as_flag(check, "check"))


@public
def load_bytes(path: str | os.PathLike[str], *, progress: Progress | None = None) -> NDArray[Any]:
    """Return the logical array that `gl.save_bytes` wrote; padding is ignored.

    path: the path that was given to `gl.save_bytes`. progress: called with the number of bytes of
    every core that was checked and of every piece of the array that was read; the total is
    `layout.nbytes` plus the array's bytes. Returns a NumPy array of the layout's shape and dtype. A
    bool is True if its byte is not 0. Elements in a block format are decoded.

    `LayoutError` as for `gl.open_bytes`; all checksums are compared first.

    >>> import gridlayout as gl, tempfile
    >>> x = np.arange(10, dtype=np.float32).reshape(2, 5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gl.save_bytes(x, gl.parse("f32[2,5]{0,1:T(2,2)}"), f"{folder}/x.bin")
    ...     gl.load_bytes(f"{folder}/x.bin").tolist()
    [[0.0, 1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0, 9.0]]
    """
    check_progress(progress, "a number of bytes")
    found = open_bytes(path)
    found.check(progress)
    return found._read(tuple(map(range, found.shape)), progress)


@public
class BytesFile:
    """The bytes of cores in files, opened by `gl.open_bytes`: memory-mapped and read-only.

    layout: the `gl.Layout` of the tensor. path: the path that was given to `gl.save_bytes`. Slices,
    integers and `...` read a part of the logical array: `opened[2:4, ..., 0]`. Changes to open
    files are not detected; `gl.save_bytes` replaces files and never changes them.
    """

    def __init__(self, sidecar: Sidecar, check: bool) -> None:
        self.layout: Layout = sidecar.layout
        self.path: Path = sidecar.place.path
        self._place, self._checksums = sidecar.place, sidecar.checksums
        self._unchecked = set(range(self.layout.num_cores)) if check else set()
        self._index = Results(self.layout.ndim, self.layout.index_map.results)
        self._mapped = lru_cache(maxsize=_MAPS)(partial(_mapped, sidecar))
        if self._place.per_core:
            for number in range(self.layout.num_cores):
                _check_size(sidecar, self._place.file_of(self._core(number)))
        else:
            self._mapped(self.path)

    # -- properties ----------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """The logical shape."""
        return self.layout.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self.layout.dtype

    @property
    def ndim(self) -> int:
        """The logical rank."""
        return self.layout.ndim

    @property
    def nbytes(self) -> int:
        """The bytes of all cores."""
        return self.layout.nbytes

    def __repr__(self) -> str:
        layout = self.layout
        return (
            f"BytesFile({str(self.path)!r}, {layout.dtype.name}[{','.join(map(str, layout.shape))}]"
            f", {layout.num_cores} cores of {layout.bytes_per_core} B)"
        )

    # -- bytes ---------------------------------------------------------------------------------

    def core(self, coordinates: Any = ()) -> Bytes:
        """Return the bytes of one core as they are in the file, as a read-only uint8 array.

        coordinates: the core's coordinates in the grid, as in `layout.locate(index).core`; `()` for
        a layout without core dims. `LayoutError` for other coordinates, and for bytes with another
        checksum.
        """
        core_shape = self.layout.core_shape
        core = as_index(coordinates, core_shape, "core")
        return self._bytes(int(weighted(core, row_major(core_shape))))

    def check(self, progress: Progress | None = None) -> None:
        """Compare the checksum of every core, including those that were read before.

        progress: called with the number of bytes of every core. `LayoutError` names the file and
        the core whose bytes differ from those that were saved.
        """
        check_progress(progress, "a number of bytes")
        for number in range(self.layout.num_cores):
            self._unchecked.add(number)
            self._bytes(number)
            if progress is not None:
                progress(self.layout.bytes_per_core)

    def _core(self, number: int) -> Shape:
        """The coordinates of a core from its row-major number."""
        return tuple(map(int, np.unravel_index(number, self.layout.core_shape)))

    def _bytes(self, number: int) -> Bytes:
        """The bytes of a core; the checksum is compared once."""
        size, core = self.layout.bytes_per_core, self._core(number)
        file = self._place.file_of(core)
        data = self._mapped(file)
        if not self._place.per_core:
            data = data[number * size : (number + 1) * size]
        if number in self._unchecked:
            if checksum_of(data) != self._checksums[number]:
                raise LayoutError(
                    f"{str(file)!r}: the checksum of the bytes of core {core} differs from that in "
                    f"{str(sidecar_of(self.path))!r}: they were changed, or are of another tensor"
                )
            self._unchecked.discard(number)
        return data

    # -- elements ------------------------------------------------------------------------------

    def read(self, box: Any = ...) -> NDArray[Any]:
        """Return a part of the logical array as a new array; only the part is allocated.

        box: a NumPy index of slices, integers and `...`; by default the full array. `LayoutError`
        for other indices, for indices outside the shape, and for bytes with another checksum in a
        core that holds elements of the part.
        """
        ranges, is_kept = _ranges(box, self.shape)
        shape = [len(each) for each, kept in zip(ranges, is_kept, strict=True) if kept]
        return self._read(ranges, None).reshape(shape)

    def __getitem__(self, box: Any) -> NDArray[Any]:
        return self.read(box)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of the bytes of a 0-d array")
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self.read(i) for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "files of bytes hold no logical array to share: copy=False is not possible"
            )
        array = self.read()
        return array if dtype is None else array.astype(dtype)

    def _read(self, ranges: Box, progress: Progress | None) -> NDArray[Any]:
        out = np.empty(tuple(map(len, ranges)), self.dtype)
        for place, part in parts(ranges, windows.ELEMENTS):
            out[place] = self._part(part)
            if progress is not None:
                progress(out[place].nbytes)
        return out

    def _part(self, box: Box) -> NDArray[Any]:
        """The elements of a small box."""
        layout, rank = self.layout, self.layout.core_rank
        found, shape = self._index(box), tuple(map(len, box))
        core = np.asarray(weighted(found[:rank], row_major(layout.core_shape)))
        offset = np.asarray(weighted(found[rank:], row_major(layout.local_shape)))
        cores, which = ranked(core)
        if not self._place.per_core:
            for number in cores:
                self._bytes(int(number))
            read = elements_at(np.asarray(self._mapped(self.path)), core, offset, layout)
            return np.broadcast_to(read, shape)
        which, offset = np.broadcast_arrays(which, offset)
        read = np.empty(which.size, layout.dtype)
        order = np.argsort(which.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(which.ravel()))
        for number, here in zip(cores, np.split(order, ends[:-1]), strict=True):
            data = np.asarray(self._bytes(int(number)))
            read[here] = elements_at(data, 0, offset.ravel()[here], layout)
        return np.broadcast_to(read.reshape(which.shape), shape)


def _mapped(sidecar: Sidecar, path: Path) -> Bytes:
    """The bytes of one file, memory-mapped."""
    try:
        with opened(path) as file:
            size = _check_size(sidecar, path, file.fileno())
            if size:
                return np.memmap(file, np.uint8, "r", shape=(size,))
    except OSError as error:
        raise LayoutError(_unreadable(path, error)) from error
    empty = np.zeros(0, np.uint8)
    empty.flags.writeable = False
    return empty


def _check_size(sidecar: Sidecar, path: Path, file: int | None = None) -> int:
    """Return the size of a file; `LayoutError` if it differs from the size of its cores.

    file: the descriptor of the file if it is open.
    """
    try:
        size = os.stat(path if file is None else file).st_size
    except OSError as error:
        raise LayoutError(_unreadable(path, error)) from error
    layout = sidecar.layout
    expected = layout.bytes_per_core if sidecar.place.per_core else layout.nbytes
    if size != expected:
        name = sidecar_of(sidecar.place.path)
        raise LayoutError(
            f"{str(path)!r} has {size} B, but the layout in {str(name)!r} takes {expected} B: the "
            "file was truncated, or belongs to another tensor"
        )
    return size


def _unreadable(path: Path, error: OSError) -> str:
    return f"{str(path)!r}, a file of the bytes of cores, can't be read: {error}"


def _ranges(box: Any, shape: Shape) -> tuple[Box, tuple[bool, ...]]:
    """The indices that a NumPy index reads along each dim, and whether it keeps the dim."""
    items = box if isinstance(box, tuple) else (box,)
    dots = [k for k, item in enumerate(items) if item is ...]
    if len(dots) > 1:
        raise LayoutError(f"index {box!r} has several ...: give one at most")
    if len(items) - len(dots) > len(shape):
        raise LayoutError(f"index {box!r} has more parts than the shape {shape} has dims")
    at = dots[0] if dots else len(items)
    rest = (slice(None),) * (len(shape) - len(items) + len(dots))
    items = (*items[:at], *rest, *items[at + 1 :])
    ranges = tuple(_range(item, n, shape) for item, n in zip(items, shape, strict=True))
    return ranges, tuple(isinstance(item, slice) for item in items)


def _range(item: Any, extent: int, shape: Shape) -> range:
    try:
        if isinstance(item, slice):
            return range(extent)[item]
        if isinstance(item, (bool, np.bool_)):
            raise TypeError("a bool")
        index = operator.index(item)
    except (TypeError, ValueError) as error:
        raise LayoutError(
            f"index {item!r} must be a slice, an integer or ... ({error}): read a box, then index "
            "the resulting array"
        ) from None
    if not -extent <= index < extent:
        raise LayoutError(f"index {index} is outside the shape {shape}")
    return range(index % extent, index % extent + 1)
