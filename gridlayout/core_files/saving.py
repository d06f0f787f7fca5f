"""`save_bytes`: writes each core's bytes to files in small pieces, and then the sidecar."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridlayout.arguments import Shape, as_flag, check_progress
from gridlayout.core_bytes import TILE, Bytes, as_logical, check_stored, encoded
from gridlayout.core_files import windows
from gridlayout.core_files.sidecar import (
    MAX_CORES,
    Place,
    as_path,
    is_sidecar_file,
    sidecar_of,
    text_of,
    text_of_sidecar,
)
from gridlayout.core_files.staged import Staged, staged
from gridlayout.core_files.windows import consecutive, physical_windows
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.public import public

Progress = Callable[[int], None]


@public
def save_bytes(
    x: Any,
    layout: Layout | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    per_core: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write the bytes of each core, as `gl.to_bytes` returns them, to files.

    x: an array of `layout.shape` and `layout.dtype`: a NumPy array, possibly memory-mapped, a
    `jax.Array` or a `gl.GridArray`. layout: None means the layout of the `gl.GridArray`. path: a
    file for the bytes of all cores in row-major order. per_core: whether `path` is instead a folder
    of one file per core, named by coordinates, such as `core_0_1.bin`. The JSON file `PATH.json`
    describes the bytes: the layout's text, shape, dtype, byte order, cores, bytes per core, and the
    sha256 of each core's bytes. progress: called with the number of bytes of every piece written,
    `layout.nbytes` in total.

    Padding and unused bytes are those of `gl.to_bytes`. The tensor is read in pieces of 2**17
    elements, so a tensor larger than memory can be saved from `np.load(..., mmap_mode="r")`. Only a
    layout without a closed inverse is packed in memory. All files are written under temporary names
    and renamed at the end, the sidecar last. So what was there is unchanged
    after an error. Only files with such a sidecar, or what is empty, are replaced. A link at
    one of the names is replaced, but not its target.

    `LayoutError`: what `gl.to_bytes` refuses; no path; an array that is distributed over several
    processes; a layout without a text, or with more than 2**19 cores; a path that holds other
    files; a file that can't be written.

    >>> import gridlayout as gl, tempfile
    >>> layout = gl.GridLayout((4, 6), "int16", grid=(2, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gl.save_bytes(np.arange(24, dtype="int16").reshape(4, 6), layout, f"{folder}/x.bin")
    ...     gl.load_bytes(f"{folder}/x.bin")[1].tolist(), gl.open_bytes(f"{folder}/x.bin")
    ([6, 7, 8, 9, 10, 11], BytesFile('...x.bin', int16[4,6], 4 cores of 12 B))
    """
    if isinstance(x, str | os.PathLike):
        raise LayoutError("the array comes first, the path last: save_bytes(x, layout, path)")
    if path is None:
        raise LayoutError("save_bytes needs a path: save_bytes(x, layout, path)")
    layout = _layout_of(x) if layout is None else layout
    check_stored(layout)
    place = Place(as_path(path), as_flag(per_core, "per_core"))
    check_progress(progress, "a number of bytes")
    if layout.num_cores > MAX_CORES:
        raise LayoutError(
            f"{layout!r} has {layout.num_cores} cores; files of bytes hold at most {MAX_CORES}"
        )
    text = text_of(layout)
    _check_is_here(x)
    array = as_logical(x, layout)
    try:
        _check_free(place, layout)
        _write(array, layout, text, place, progress or (lambda count: None))
    except OSError as error:
        raise LayoutError(
            f"{str(place.path)!r} can't be written: {error.strerror or error}"
        ) from error


def _layout_of(x: Any) -> Layout:
    layout = getattr(x, "layout", None)
    if not isinstance(layout, Layout):
        raise LayoutError(
            f"{type(x).__name__} has no layout: call save_bytes(x, layout, path), or give a "
            "gl.GridArray, which has one"
        )
    return layout


def _check_is_here(x: Any) -> None:
    """Raise `LayoutError` if other processes hold parts of the array."""
    storage = getattr(x, "storage", x)
    is_here = getattr(storage, "is_fully_addressable", True)
    if not is_here and (storage is not x or not getattr(x, "is_fully_replicated", False)):
        raise LayoutError(
            "this process holds only a part of the array, but the bytes of all cores are saved "
            "together: call full = x.to_logical() in every process (for a jax.Array, "
            "jax.experimental.multihost_utils.process_allgather), and gl.save_bytes(full, "
            "x.layout, path) in the process with jax.process_index() == 0"
        )


def _check_free(place: Place, layout: Layout) -> None:
    """Raise `LayoutError` if files that `save_bytes` did not write would be replaced."""
    path, sidecar = place.path, sidecar_of(place.path)
    is_sidecar = os.path.lexists(sidecar)
    if is_sidecar and not is_sidecar_file(sidecar):
        raise LayoutError(
            f"{str(sidecar)!r} exists and is not a sidecar of gl.save_bytes: give another path"
        )
    if place.per_core and path.is_dir():
        own = {place.file_of(core).name for core in _cores(layout)}
        with os.scandir(path) as entries:
            others = [e.name for e in entries if e.name not in own or e.is_dir()]
        if others:
            raise LayoutError(
                f"the folder {str(path)!r} holds {others[0]!r}, which gl.save_bytes did "
                "not write: remove it, or give another folder"
            )
    elif os.path.lexists(path) and (place.per_core or (path.exists() and not path.is_file())):
        kind = "folder" if place.per_core else "regular file"
        raise LayoutError(f"{str(path)!r} exists and is not a {kind}: give another path")
    if os.path.lexists(path) and not is_sidecar and not _is_empty(path):
        raise LayoutError(
            f"{str(path)!r} exists and gl.save_bytes did not write it, because it has no sidecar "
            f"{sidecar.name!r}: remove it, or give another path"
        )


def _is_empty(path: Path) -> bool:
    """Return whether a path is a folder or file without contents; not so for a link to nothing."""
    if path.is_dir():
        return next(path.iterdir(), None) is None
    return path.is_file() and not path.stat().st_size


def _cores(layout: Layout) -> Iterator[Shape]:
    return product(*map(range, layout.core_shape))


def _write(
    array: NDArray[Any], layout: Layout, text: str, place: Place, progress: Progress
) -> None:
    """Write all files under temporary names, then rename them."""
    sidecar = sidecar_of(place.path)
    with _folder(place), staged() as files:
        output = _Output(place, files)
        cores = _cores(layout)
        for data, is_end in _pieces(array, layout):
            for row in data:
                output.write(row, cores, is_end)
            progress(data.nbytes)
        output.close()
        file = files.open(sidecar)
        file.write(text_of_sidecar(layout, text, place.per_core, output.checksums).encode())
        files.close(file)
        sidecar.unlink(missing_ok=True)  # it describes the bytes that are replaced next
        files.put_in_place()


@contextmanager
def _folder(place: Place) -> Iterator[None]:
    """Create the folder for files per core; remove it again if nothing is written to it."""
    is_made = place.per_core and not place.path.is_dir()
    if is_made:
        place.path.mkdir()
    try:
        yield
    finally:
        if is_made:
            with suppress(OSError):
                place.path.rmdir()


class _Output:
    """Writes the bytes of consecutive cores to one file, or to one file each, with checksums."""

    def __init__(self, place: Place, files: Staged) -> None:
        self.place, self.files = place, files
        self.checksums: list[str] = []
        self._digest: Any = None
        self._file = None if place.per_core else files.open(place.path)

    def write(self, data: Bytes, cores: Iterator[Shape], is_end: bool) -> None:
        """Write a part of a core's bytes; is_end: whether these are the last of that core.

        The first part after the end of a core belongs to the next one of `cores`.
        """
        if self._digest is None:
            self._digest, core = sha256(), next(cores)
            if self._file is None:
                self._file = self.files.open(self.place.file_of(core))
        assert self._file is not None
        self._digest.update(data)
        self._file.write(data)
        if is_end:
            self.checksums.append(self._digest.hexdigest())
            self._digest = None
            if self.place.per_core:
                self.close()

    def close(self) -> None:
        """Close the open file, if any."""
        if self._file is not None:
            self.files.close(self._file)
            self._file = None


def _pieces(array: NDArray[Any], layout: Layout) -> Iterator[tuple[Bytes, bool]]:
    """Pieces of the cores' bytes, (cores, bytes), and whether a piece is the end of a core.

    A piece consists of several complete cores, or of a part of one core. A part starts and ends at
    a byte boundary, and in a block format at a tile boundary; further elements are left for the
    next piece.
    """
    window, total = physical_windows(array, layout), prod(layout.local_shape)
    waiting, first = np.empty((1, 0), layout.dtype), 0
    for box in consecutive(layout.physical_shape, windows.ELEMENTS):
        cores, count = (
            prod(map(len, dims)) for dims in (box[: layout.core_rank], box[layout.core_rank :])
        )
        held = window(box).reshape(cores, count)
        if count == total:
            yield encoded(held, layout), True
            continue
        held = np.concatenate([waiting, held], axis=1) if waiting.size else held
        end = first + held.shape[1]
        cut = _last_cut(layout, end)
        yield encoded(held[:, : cut - first], layout, first), end == total
        waiting, first = held[:, cut - first :], cut % total


def _last_cut(layout: Layout, end: int) -> int:
    """The last element up to `end` at a byte boundary, and in a block format at a tile boundary."""
    if end == prod(layout.local_shape):
        return end
    if layout.tile_format is not None:
        return end - end % TILE
    while layout.bit_of(end):
        end -= 1
    return end
