"""Orbax's `TypeHandler` for `GridArray`s, which `orbax.py` registers.

The storage is saved like any `jax.Array`, but not under the name of its leaf. A reader that does
not know layouts then finds no array there; it would take the padding for data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint import future, metadata, type_handlers

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray, check_has_data, check_no_stack
from gridlayout.ops.checkpoints.reading import Add, restore_array
from gridlayout.ops.checkpoints.record import LayoutRecord, read_records, write_records
from gridlayout.ops.checkpoints.stored import StoredArray
from gridlayout.sharding.device_grid import DeviceGrid

TYPE = "gridlayout.GridArray"
# Bytes per chunk of the files, the smallest unit of a read.
_CHUNK = 1 << 24
# The number of groups in which arrays are written, if progress is reported: once per group.
_GROUPS = 16


def storage_name(name: str) -> str:
    """Return the name of a leaf's storage in the files."""
    return f"{name}.gridlayout"


@dataclass
class GridSaveArgs(ocp.SaveArgs):  # type: ignore[misc]
    """Save arguments of a `GridArray`. add: a function called with the number of bytes written."""

    add: Add | None = None


@dataclass
class GridRestoreArgs(ocp.RestoreArgs):  # type: ignore[misc]
    """The layout and devices to restore an array to; by default those that it was saved with."""

    layout: Layout | None = None
    device: DeviceGrid | None = None
    restore_type: Any = GridArray

    @classmethod
    def of(cls, x: GridArray) -> GridRestoreArgs:
        """Return the arguments for the layout and devices of an array, with or without data."""
        check_no_stack(x)
        return cls(layout=x.layout, device=x.device)


@dataclass
class GridArrayMetadata(metadata.ArrayMetadata):  # type: ignore[misc]
    """Metadata of a saved `GridArray`: its logical shape and dtype, and its layout record."""

    record: LayoutRecord | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GridArrayMetadata) and self.record == other.record


class GridArrayHandler(type_handlers.TypeHandler):  # type: ignore[misc]
    """Saves and restores `GridArray`s."""

    def __init__(self) -> None:
        self.arrays = type_handlers.ArrayHandler(enable_write_sharding_file=False)

    def typestr(self) -> str:
        """Return the name of the type in checkpoints."""
        return TYPE

    async def metadata(self, infos: Sequence[Any]) -> Sequence[GridArrayMetadata]:
        """Return the metadata of saved arrays, without reading their elements."""
        found = _Folders()
        return [
            GridArrayMetadata(
                name=info.name,
                directory=info.parent_dir,
                shape=(record := found.record_of(info)).layout.shape,
                sharding=None,
                dtype=record.layout.dtype,
                record=record,
            )
            for info in infos
        ]

    async def serialize(
        self, values: Sequence[GridArray], infos: Sequence[Any], args: Sequence[Any] | None = None
    ) -> Sequence[Any]:
        """Copy the storages to the host and write them in the background; return the futures."""
        for value in values:
            check_has_data(value, "a checkpoint")
            check_no_stack(value)
        own = args or [ocp.SaveArgs()] * len(values)
        records = {info.name: LayoutRecord.of(x) for x, info in zip(values, infos, strict=True)}
        found = [
            (with_stored_dtype(x.storage), info, arg)
            for x, info, arg in zip(values, infos, own, strict=True)
            if x.storage.size
        ]
        done: list[Any] = []
        # Orbax reports only the end of a whole call, and limits the bytes in flight per call. So
        # there is only one call if no progress is reported. Each call needs a limiter of its own,
        # because each runs in its own event loop.
        add = getattr(own[0], "add", None)
        for group in _groups(found, _GROUPS if add else 1):
            arrays, names, group_args = zip(*group, strict=True)
            limiter = _renewed(names[0].byte_limiter)
            done += _counted(
                await self.arrays.serialize(
                    arrays,
                    [
                        info.replace(name=storage_name(info.name), byte_limiter=limiter)
                        for info in names
                    ],
                    [_chunked(arg) for arg in group_args],
                ),
                add,
                sum(map(local_bytes, arrays)),
            )
        if ocp.multihost.is_primary_host(0):
            done.append(
                future.CommitFutureAwaitingContractedSignals(
                    _write(infos[0], records), name="gridlayout layouts"
                )
            )
        return done

    async def deserialize(
        self, infos: Sequence[Any], args: Sequence[Any] | None = None
    ) -> Sequence[GridArray]:
        """Read the parts that this process's devices need, one array after another."""
        found, made = _Folders(), []
        for info, arg in zip(infos, args or [None] * len(infos), strict=True):
            target = arg if isinstance(arg, GridRestoreArgs) else GridRestoreArgs()
            record = found.records(info).get(info.name)
            layout, device = target.layout, target.device
            if record is None and (layout is None or device is None):
                raise LayoutError(
                    f"{info.name!r} was saved without a layout: pass GridRestoreArgs with a layout "
                    "and a device"
                )
            layout = layout or record.layout  # type: ignore[union-attr]
            device = device or record.device()  # type: ignore[union-attr]
            made.append(restore_array(found.stored(info, record), layout, device, record))
        return made


class _Folders:
    """The layout records of the folders of some arrays, read once per folder."""

    def __init__(self) -> None:
        self.known: dict[Path, dict[str, LayoutRecord]] = {}

    def records(self, info: Any) -> dict[str, LayoutRecord]:
        folder = Path(info.parent_dir)
        if folder not in self.known:
            self.known[folder] = read_records(folder)
        return self.known[folder]

    def record_of(self, info: Any) -> LayoutRecord:
        found = self.records(info).get(info.name)
        if found is None:
            raise LayoutError(f"{str(info.parent_dir)!r} has no layout record of {info.name!r}")
        return found

    def stored(self, info: Any, record: LayoutRecord | None) -> StoredArray | None:
        return open_array(
            Path(info.parent_dir), info.name, record, info.is_ocdbt_checkpoint, info.use_zarr3
        )


def open_array(
    folder: Path, name: str, record: LayoutRecord | None, use_ocdbt: bool, use_zarr3: bool
) -> StoredArray | None:
    """Open an array in a folder for reading; None if it has no elements."""
    if record is None:
        return StoredArray(folder, name, use_ocdbt=use_ocdbt, use_zarr3=use_zarr3)
    if not np.prod(record.storage):
        return None
    found = StoredArray(
        folder,
        storage_name(name),
        use_ocdbt=use_ocdbt,
        use_zarr3=use_zarr3,
        layout=record.layout,
        dtype=record.layout.dtype,
    )
    found.check_stores(record.storage)
    return found


def local_bytes(array: jax.Array) -> int:
    """Return the bytes of an array that this process writes: replicas are written once."""
    return sum(s.data.nbytes for s in array.addressable_shards if s.replica_id == 0)


def with_stored_dtype(array: jax.Array) -> jax.Array:
    """Return an array with a dtype of TensorStore: its bytes as uint8 if TensorStore lacks it."""
    import tensorstore as ts

    try:
        ts.dtype(array.dtype.name)
    except (TypeError, ValueError):
        parts = [
            jax.device_put(np.asarray(s.data).view(np.uint8), s.data.sharding)
            for s in array.addressable_shards
        ]
        return jax.make_array_from_single_device_arrays(
            array.shape, array.sharding, parts, dtype=np.uint8
        )
    return array


_One = tuple[jax.Array, Any, Any]


def _groups(found: Sequence[_One], count: int) -> list[list[_One]]:
    """Return arrays in about `count` groups of about equal bytes, each of one array at least."""
    most = sum(array.nbytes for array, _, _ in found) / count
    groups: list[list[_One]] = []
    size = most
    for each in found:
        if size + each[0].nbytes > most:
            groups.append([])
            size = 0
        groups[-1].append(each)
        size += each[0].nbytes
    return groups


def _renewed(limiter: Any) -> Any:
    """Return a new limiter of the same limit on bytes in flight; the same object if it has none."""
    most = getattr(limiter, "max_bytes", None)
    return limiter if most is None else type(limiter)(most)


def _chunked(arg: Any) -> ocp.SaveArgs:
    size = arg.chunk_byte_size or _CHUNK
    return ocp.SaveArgs(dtype=arg.dtype, chunk_byte_size=size, shard_axes=arg.shard_axes)


def _counted(futures: Sequence[Any], add: Add | None, size: int) -> list[Any]:
    if add is None:
        return list(futures)
    waiting = [size]  # Orbax asks for the result more than once

    def tell() -> None:
        if waiting:
            add(waiting.pop())

    return [future.ChainedFuture(futures, tell)]


async def _write(info: Any, records: dict[str, LayoutRecord]) -> None:
    await info.await_path_creation()
    write_records(Path(info.parent_dir), records)
