"""The file beside a checkpoint's arrays that says how each `GridArray` is laid out."""

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
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.text import parse

RECORD = "gridlayout.json"
_FORMAT, _VERSION = "gridlayout layouts", 1


@dataclass(frozen=True)
class Recorded:
    """How a saved `GridArray` lies. storage: the shape in the files; mesh: its sizes and names."""

    layout: Layout
    storage: tuple[int, ...]
    mesh: tuple[tuple[int, ...], tuple[str, ...]]

    @classmethod
    def of(cls, x: GridArray) -> Recorded:
        """That of an array, whose layout has to have a text."""
        names = tuple(map(str, x.device.mesh.axis_names))
        if parse(str(x.layout)) != x.layout:
            raise LayoutError(f"{x.layout!r} has no text that gl.parse reads, so it can't be saved")
        return cls(x.layout, tuple(x.storage.shape), (x.device.shape, names))

    def as_json(self) -> dict[str, Any]:
        """What the file holds."""
        return {
            "layout": str(self.layout),
            "shape": list(self.layout.shape),
            "dtype": self.layout.dtype.name,
            "storage": list(self.storage),
            "mesh": [list(self.mesh[0]), list(self.mesh[1])],
        }

    @classmethod
    def read(cls, held: Any) -> Recorded:
        """What a file holds; `LayoutError`, ValueError, KeyError or TypeError for anything else."""
        layout = parse(held["layout"])
        shape, dtype = as_shape(held["shape"], "shape"), as_dtype(held["dtype"])
        if (layout.shape, layout.dtype) != (shape, dtype):
            raise LayoutError(f"{layout!r} is said to be of {dtype.name}{list(shape)}")
        sizes, names = held["mesh"]
        storage = as_shape(held["storage"], "storage")
        fits = len(storage) == len(layout.physical_shape) and all(
            n >= own for n, own in zip(storage, layout.physical_shape, strict=True)
        )
        if not fits or storage[layout.core_rank :] != layout.local_shape:
            raise LayoutError(f"a storage of {storage} is none of {layout!r}")
        return cls(layout, storage, (as_shape(sizes, "mesh"), tuple(map(str, names))))

    def device(self) -> DeviceGrid:
        """A mesh of the sizes that it was saved on; `LayoutError` where there are fewer devices."""
        sizes, names = self.mesh
        count = int(np.prod(sizes))
        if count > len(jax.devices()):
            raise LayoutError(
                f"it was saved on {'x'.join(map(str, sizes))} devices, and JAX has "
                f"{len(jax.devices())}: say where it goes, gl.restore(path, device)"
            )
        mesh = jax.make_mesh(
            sizes,
            names,
            axis_types=(jax.sharding.AxisType.Auto,) * len(sizes),
            devices=jax.devices()[:count],
        )
        return DeviceGrid(mesh)


def write_records(folder: Path, records: Mapping[str, Recorded]) -> None:
    """Write the file of the records of arrays by their names."""
    arrays = {name: record.as_json() for name, record in records.items()}
    held = {"format": _FORMAT, "version": _VERSION, "arrays": arrays}
    (folder / RECORD).write_text(json.dumps(held, indent=1), encoding="utf-8")


def read_records(folder: Path) -> dict[str, Recorded]:
    """The records in a checkpoint's folder; none where it has no such file.

    `LayoutError`, naming the file, where it is none that this module wrote.
    """
    path = folder / RECORD
    if not path.exists():
        return {}
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        if (held["format"], held["version"]) != (_FORMAT, _VERSION):
            raise KeyError("format")
        return {str(name): Recorded.read(each) for name, each in held["arrays"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LayoutError(
            f"{str(path)!r} is damaged, or of another version of gridlayout: {error!r}"
        ) from error
