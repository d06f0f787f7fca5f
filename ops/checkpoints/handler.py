"""What Orbax calls to save and restore `GridArray`s: a `TypeHandler`, registered by `orbax.py`.

The storage is saved as any `jax.Array`, under a name of its own: whoever reads the array by the
name of its leaf finds nothing, instead of the padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from gridlayout.ops.checkpoints.reading import restored
from gridlayout.ops.checkpoints.record import Recorded, read_records, write_records
from gridlayout.ops.checkpoints.stored import Stored
from gridlayout.sharding.device_grid import DeviceGrid

TYPE = "gridlayout.GridArray"
# Bytes of a chunk: what is read of the files at least.
_CHUNK = 1 << 24
# How many groups of arrays are written one beside the other, and told of when they are.
_GROUPS = 16
Add = Callable[[int], object]


def storage_name(name: str) -> str:
    """The name of a leaf's storage in the files."""
    return f"{name}.gridlayout"


@dataclass
class GridSaveArgs(ocp.SaveArgs):  # type: ignore[misc]
    """`add` is told of bytes that are written."""

    add: Add | None = None


@dataclass
class GridRestoreArgs(ocp.RestoreArgs):  # type: ignore[misc]
    """The layout and the devices that an array is restored to; by default those it was saved on."""

    layout: Layout | None = None
    device: DeviceGrid | None = None
    restore_type: Any = GridArray

    @classmethod
    def of(cls, x: GridArray) -> GridRestoreArgs:
        """Those of an array with data or without."""
        check_no_stack(x)
        return cls(layout=x.layout, device=x.device)


@dataclass
class GridArrayMetadata(metadata.ArrayMetadata):  # type: ignore[misc]
    """What a checkpoint says of a `GridArray`: its logical shape and dtype, and how it lies."""

    recorded: Recorded | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GridArrayMetadata) and self.recorded == other.recorded


class GridArrayHandler(type_handlers.TypeHandler):  # type: ignore[misc]
    """Saves and restores `GridArray`s."""

    def __init__(self) -> None:
        self.arrays = type_handlers.ArrayHandler(enable_write_sharding_file=False)

    def typestr(self) -> str:
        """The name of the type in checkpoints."""
        return TYPE

    async def metadata(self, infos: Sequence[Any]) -> Sequence[GridArrayMetadata]:
        """What is known of saved arrays without reading them."""
        found = _Folders()
        return [
            GridArrayMetadata(
                name=info.name,
                directory=info.parent_dir,
                shape=(recorded := found.record_of(info)).layout.shape,
                sharding=None,
                dtype=recorded.layout.dtype,
                recorded=recorded,
            )
            for info in infos
        ]

    async def serialize(
        self, values: Sequence[GridArray], infos: Sequence[Any], args: Sequence[Any] | None = None
    ) -> Sequence[Any]:
        """Copy the storages to the host, and write them in the background."""
        for value in values:
            check_has_data(value, "a checkpoint")
            check_no_stack(value)
        own = args or [ocp.SaveArgs()] * len(values)
        records = {info.name: Recorded.of(x) for x, info in zip(values, infos, strict=True)}
        found = [
            (writable(x.storage), info, arg)
            for x, info, arg in zip(values, infos, own, strict=True)
            if x.storage.size
        ]
        done: list[Any] = []
        # Of one call Orbax says only when all of it is written. Its limits on bytes in flight hold
        # for one call, as the event loop of each call's thread needs one of its own.
        add = getattr(own[0], "add", None)
        for group in _groups(found, _GROUPS if add else 1):
            arrays, names, wanted = zip(*group, strict=True)
            limiter = _renewed(names[0].byte_limiter)
            done += _counted(
                await self.arrays.serialize(
                    arrays,
                    [
                        info.replace(name=storage_name(info.name), byte_limiter=limiter)
                        for info in names
                    ],
                    [_chunked(arg) for arg in wanted],
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
        """Read what this process's devices are to hold, one array after another."""
        found, made = _Folders(), []
        for info, arg in zip(infos, args or [None] * len(infos), strict=True):
            wanted = arg if isinstance(arg, GridRestoreArgs) else GridRestoreArgs()
            record = found.records(info).get(info.name)
            layout, device = wanted.layout, wanted.device
            if record is None and (layout is None or device is None):
                raise LayoutError(f"{info.name!r} was saved without a layout: say which it gets")
            layout = layout or record.layout  # type: ignore[union-attr]
            device = device or record.device()  # type: ignore[union-attr]
            made.append(restored(found.stored(info, record), layout, device, record))
        return made


class _Folders:
    """The records of the folders that some arrays are in."""

    def __init__(self) -> None:
        self.known: dict[Path, dict[str, Recorded]] = {}

    def records(self, info: Any) -> dict[str, Recorded]:
        folder = Path(info.parent_dir)
        if folder not in self.known:
            self.known[folder] = read_records(folder)
        return self.known[folder]

    def record_of(self, info: Any) -> Recorded:
        found = self.records(info).get(info.name)
        if found is None:
            raise LayoutError(f"{str(info.parent_dir)!r} has no layout of {info.name!r}")
        return found

    def stored(self, info: Any, record: Recorded | None) -> Stored | None:
        return opened(
            Path(info.parent_dir), info.name, record, info.is_ocdbt_checkpoint, info.use_zarr3
        )


def opened(
    folder: Path, name: str, record: Recorded | None, use_ocdbt: bool, use_zarr3: bool
) -> Stored | None:
    """An array in a folder, open to be read; None where it has no elements."""
    if record is None:
        return Stored(folder, name, use_ocdbt=use_ocdbt, use_zarr3=use_zarr3)
    if not np.prod(record.storage):
        return None
    found = Stored(
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
    """Bytes of an array that this process writes, of copies the first."""
    return sum(s.data.nbytes for s in array.addressable_shards if s.replica_id == 0)


def writable(array: jax.Array) -> jax.Array:
    """An array as TensorStore takes it: of an element type that it lacks the bytes."""
    import tensorstore as ts

    try:
        ts.dtype(array.dtype.name)
    except (TypeError, ValueError):
        parts = [
            jax.device_put(np.asarray(s.data).view(np.uint8), s.device)
            for s in array.addressable_shards
        ]
        return jax.make_array_from_single_device_arrays(
            array.shape, array.sharding, parts, dtype=np.uint8
        )
    return array


_One = tuple[jax.Array, Any, Any]


def _groups(found: Sequence[_One], count: int) -> list[list[_One]]:
    """Arrays in about so many groups, of about as many bytes each, or of one array."""
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
    """A limiter of the same bytes in flight; itself, where it has no limit."""
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


async def _write(info: Any, records: dict[str, Recorded]) -> None:
    await info.await_path_creation()
    write_records(Path(info.parent_dir), records)
