"""`open_safetensors`: the tensors of a safetensors file, as memory maps.

The format (https://github.com/huggingface/safetensors, "Format") starts with 8 bytes,
little-endian, for the length of the header. The header follows as JSON. Then come the tensors'
bytes, row-major and little-endian. The header gives each tensor's dtype, shape and byte offsets,
which are relative to the end of the header.
"""

from __future__ import annotations

import json
import os
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.files import opened
from gridlayout.public import public

# The longest header that the format allows, and the most dims of a NumPy array.
_MOST_HEADER, _MOST_DIMS = 100_000_000, 64
_DTYPES: dict[str, Any] = {
    **{"BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16},
    **{"U32": np.uint32, "I32": np.int32, "U64": np.uint64, "I64": np.int64},
    **{"F16": np.float16, "F32": np.float32, "F64": np.float64, "C64": np.complex64},
    **{"BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn},
    **{"F8_E5M2": ml_dtypes.float8_e5m2, "F8_E8M0": ml_dtypes.float8_e8m0fnu},
}


@public
def open_safetensors(path: str | os.PathLike[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the tensors of a safetensors file by name, in file order, as memory maps.

    Only the header is read, and no more memory is allocated than the file's size. `gl.put_local`
    reads only those parts of each tensor that its process needs. `LayoutError`: a file that is not
    of this format or is truncated; byte offsets outside the file, shared by two tensors, or
    inconsistent with shape and dtype; an element type that NumPy lacks (F4, F6).

    >>> import tempfile
    >>> header = b'{"w": {"dtype": "I16", "shape": [2, 2], "data_offsets": [0, 8]}}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "x.safetensors")
    ...     _ = file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(range(8)))
    ...     open_safetensors(file)["w"].tolist()
    [[256, 770], [1284, 1798]]
    """
    try:
        path = Path(path)
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, _MOST_HEADER):
                raise _wrong(path, f"its header has {length:,} bytes, but the file has {size:,}")
            text = file.read(length)
            data = np.memmap(file, np.uint8, "r")
    except (OSError, TypeError, ValueError) as error:
        if isinstance(error, LayoutError):
            raise
        shown = str(path) if isinstance(path, Path) else path
        raise LayoutError(f"{shown!r} can't be read as a safetensors file: {error}") from None
    start = 8 + length
    entries = _entries(path, text, size - start)
    return {
        name: _view(path, name, data[start + low : start + high], dtype, shape)
        for name, (low, high, dtype, shape) in entries.items()
    }


def _entries(path: Path, text: bytes, size: int) -> dict[str, tuple[int, int, Any, Any]]:
    """For each tensor, its first byte, its end, its dtype and its shape; `size` is all bytes."""
    try:
        found = json.loads(text.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"its header is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise _wrong(path, "its header is not a JSON object")
    found.pop("__metadata__", None)
    made: dict[str, tuple[int, int, Any, Any]] = {}
    end = 0
    spans = {name: _span(path, name, entry) for name, entry in found.items()}
    for name, (low, high) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
        dtype, shape = _type(path, name, found[name])
        where = f"{name!r} has the bytes {low:,} to {high:,}"
        if high > size:
            raise _wrong(path, f"{where}, but the file has only {size:,} after its header")
        if low != end:
            raise _wrong(
                path,
                f"{where}, but the tensor before it ends at {end:,}; tensors must follow each "
                "other without gaps",
            )
        if prod(shape) * dtype.itemsize != high - low:
            raise _wrong(path, f"{name!r}, {dtype.name}{list(shape)}, is not {high - low:,} bytes")
        made[name], end = (low, high, dtype, shape), high
    if end != size:
        raise _wrong(path, f"{size - end:,} bytes after the last tensor belong to no tensor")
    return made


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _span(path: Path, name: str, entry: Any) -> tuple[int, int]:
    offsets: Any = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _wrong(path, f"{name!r} has no data_offsets [from, to]")
    return offsets[0], offsets[1]


def _type(path: Path, name: str, entry: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    kind, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise _wrong(path, f"{name!r} has the dtype {kind!r}, which NumPy does not support")
    if not _are_counts(shape) or len(shape) > _MOST_DIMS:
        raise _wrong(path, f"{name!r} has no shape of at most {_MOST_DIMS} dims")
    return np.dtype(_DTYPES[kind]), tuple(shape)


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(n) is int and 0 <= n < 2**63 for n in values)


def _view(path: Path, name: str, data: Any, dtype: np.dtype[Any], shape: Any) -> Any:
    try:
        return data.view(dtype.newbyteorder("<")).reshape(shape)
    except ValueError as error:  # extents beyond NumPy's limits, next to an extent of 0
        raise _wrong(path, f"{name!r}, {dtype.name}{list(shape)}: {error}") from None


def _wrong(path: Path, what: str) -> LayoutError:
    return LayoutError(f"{str(path)!r} is not a safetensors file: {what}")
