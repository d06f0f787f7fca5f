"""`open_safetensors`: the tensors of a safetensors file where they are, as memory maps.

The format (https://github.com/huggingface/safetensors, "Format"): 8 bytes, little-endian, the
length of the header; the header, JSON; then the tensors' bytes, row-major and little-endian. The
header names each tensor's dtype, shape, and where its bytes are, from the header's end on.
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

# The longest header that the format allows, and the most dims that a NumPy array has.
_MOST_HEADER, _MOST_DIMS = 100_000_000, 64
_DTYPES: dict[str, Any] = {
    **{"BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16},
    **{"U32": np.uint32, "I32": np.int32, "U64": np.uint64, "I64": np.int64},
    **{"F16": np.float16, "F32": np.float32, "F64": np.float64, "C64": np.complex64},
    **{"BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn},
    **{"F8_E5M2": ml_dtypes.float8_e5m2, "F8_E8M0": ml_dtypes.float8_e8m0fnu},
}


def open_safetensors(path: str | os.PathLike[str]) -> dict[str, np.ndarray[Any, Any]]:
    """The tensors of a safetensors file by name, in the order of their bytes, as a memory map.

    Nothing but the header is read, and no more is allocated than the file is long. `gl.put_local`
    reads of each what its process needs. `LayoutError`: a file that is none of the format, or cut
    off; a header that names bytes outside the file, bytes of two tensors, or more or fewer than
    shape and dtype take; an element type that NumPy has not (F4, F6).

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
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, _MOST_HEADER):
                raise _wrong(path, f"its header would be {length:,} bytes of a file of {size:,}")
            text = file.read(length)
    except (OSError, TypeError, ValueError) as error:
        if isinstance(error, LayoutError):
            raise
        raise LayoutError(f"{path!r} can't be read as a safetensors file: {error}") from None
    start = 8 + length
    entries = _entries(path, text, size - start)
    whole = np.memmap(path, np.uint8, "r")
    return {
        name: _view(path, name, whole[start + low : start + high], *of)
        for name, (low, high, *of) in entries.items()
    }


def _entries(path: Path, text: bytes, size: int) -> dict[str, tuple[int, int, Any, Any]]:
    """Of each tensor where it begins and ends, of `size` bytes, its dtype and its shape."""
    try:
        found = json.loads(text.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"its header is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise _wrong(path, "its header is no JSON object")
    found.pop("__metadata__", None)
    made: dict[str, tuple[int, int, Any, Any]] = {}
    end = 0
    spans = {name: _span(path, name, entry) for name, entry in found.items()}
    for name, (low, high) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
        dtype, shape = _type(path, name, found[name])
        if low != end or high > size:
            raise _wrong(
                path,
                f"{name!r} has the bytes {low:,} to {high:,} of {size:,}, where the one before it "
                f"ends at {end:,}; tensors follow each other without gaps",
            )
        if prod(shape) * dtype.itemsize != high - low:
            raise _wrong(path, f"{name!r}, {dtype.name}{list(shape)}, is not {high - low:,} bytes")
        made[name], end = (low, high, dtype, shape), high
    if end != size:
        raise _wrong(path, f"{size - end:,} bytes after the last tensor are none's")
    return made


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _span(path: Path, name: str, entry: Any) -> tuple[int, int]:
    offsets: Any = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _wrong(path, f"{name!r} has no data_offsets [from, to]")
    return offsets[0], offsets[1]


def _type(path: Path, name: str, entry: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    kind, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise _wrong(path, f"{name!r} has the dtype {kind!r}, of which NumPy has none")
    if not _are_counts(shape) or len(shape) > _MOST_DIMS:
        raise _wrong(path, f"{name!r} has no shape of at most {_MOST_DIMS} dims")
    return np.dtype(_DTYPES[kind]), tuple(shape)


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(n) is int and 0 <= n < 2**63 for n in values)


def _view(path: Path, name: str, data: Any, dtype: np.dtype[Any], shape: Any) -> Any:
    try:
        return data.view(dtype.newbyteorder("<")).reshape(shape)
    except ValueError as error:  # dims beyond what NumPy counts, beside one of none
        raise _wrong(path, f"{name!r}, {dtype.name}{list(shape)}: {error}") from None


def _wrong(path: Path, what: str) -> LayoutError:
    return LayoutError(f"{str(path)!r} is no safetensors file: {what}")
