"""The file in a checkpoint that records the layout of each `GridArray`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from gridlayout.arguments import as_shape
from gridlayout.dtypes import as_dtype
from gridlayout.errors import LayoutError
from gridlayout.files import read_json
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.text import parse

RECORD = "gridlayout.json"
_FORMAT, _VERSION = "gridlayout layouts", 1
_MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class LayoutRecord:
    """The layout of a saved `GridArray`.

    storage: the shape of the storage in the files. mesh: the sizes and names of its mesh axes.
    """

    layout: Layout
    storage: tuple[int, ...]
    mesh: tuple[tuple[int, ...], tuple[str, ...]]

    @classmethod
    def of(cls, x: GridArray) -> LayoutRecord:
        """Return the record of an array; `LayoutError` if its layout has no text for `gl.parse`."""
        names = tuple(map(str, x.device.mesh.axis_names))
        if parse(str(x.layout)) != x.layout:
            raise LayoutError(f"{x.layout!r} has no text that gl.parse reads, so it can't be saved")
        return cls(x.layout, tuple(x.storage.shape), (x.device.shape, names))

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {
            "layout": str(self.layout),
            "shape": list(self.layout.shape),
            "dtype": self.layout.dtype.name,
            "storage": list(self.storage),
            "mesh": [list(self.mesh[0]), list(self.mesh[1])],
        }

    @classmethod
    def read(cls, values: Any) -> LayoutRecord:
        """Return the record of JSON values.

        `LayoutError`, ValueError, KeyError or TypeError if `as_json` does not return such values.
        """
        layout = parse(values["layout"])
        shape, dtype = as_shape(values["shape"], "shape"), as_dtype(values["dtype"])
        if (layout.shape, layout.dtype) != (shape, dtype):
            raise LayoutError(f"{layout!r} is recorded for an array {dtype.name}{list(shape)}")
        sizes, names = values["mesh"]
        storage = as_shape(values["storage"], "storage")
        fits = len(storage) == len(layout.physical_shape) and all(
            n >= own for n, own in zip(storage, layout.physical_shape, strict=True)
        )
        if not fits or storage[layout.core_rank :] != layout.local_shape:
            raise LayoutError(f"a storage of shape {storage} does not match {layout!r}")
        return cls(layout, storage, (as_shape(sizes, "mesh"), tuple(map(str, names))))

    def device(self) -> DeviceGrid:
        """Return a device grid like the saved array's; `LayoutError` if JAX has fewer devices."""
        sizes, names = self.mesh
        count = int(np.prod(sizes))
        if count > len(jax.devices()):
            raise LayoutError(
                f"it was saved on {'x'.join(map(str, sizes))} devices, and JAX has "
                f"{len(jax.devices())}: pass the devices, gl.restore(path, device)"
            )
        mesh = jax.make_mesh(
            sizes,
            names,
            axis_types=(jax.sharding.AxisType.Auto,) * len(sizes),
            devices=jax.devices()[:count],
        )
        return DeviceGrid(mesh)


def write_records(folder: Path, records: Mapping[str, LayoutRecord]) -> None:
    """Write the records of arrays by name to the file `RECORD`."""
    arrays = {name: record.as_json() for name, record in records.items()}
    values = {"format": _FORMAT, "version": _VERSION, "arrays": arrays}
    (folder / RECORD).write_text(json.dumps(values, indent=1), encoding="utf-8")


def read_records(folder: Path) -> dict[str, LayoutRecord]:
    """Return the records in a checkpoint's folder by name; empty if it has no file `RECORD`.

    `LayoutError`, naming the file, if it is damaged or of another version.
    """
    path = folder / RECORD
    if not path.exists():
        return {}
    try:
        values = read_json(path, _MOST_BYTES)
        if (values["format"], values["version"]) != (_FORMAT, _VERSION):
            raise KeyError("format")
        return {str(name): LayoutRecord.read(each) for name, each in values["arrays"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LayoutError(
            f"{str(path)!r} is damaged, or of another version of gridlayout: {error!r}"
        ) from error
