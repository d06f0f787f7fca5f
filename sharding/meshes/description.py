"""`Description`: what each device of a mesh stores of an array in a layout."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridlayout import dtypes
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import number
from gridlayout.layouts.strides import row_major
from gridlayout.svg import Drawing

if TYPE_CHECKING:
    from gridlayout.draw.fold import Devices

# The most devices that are listed individually.
_LISTED = 16


@dataclass(frozen=True, eq=False)
class Description:
    """What each device of a mesh stores of an array in a layout; see `gl.DeviceGrid.describe`.

    cores: the number of cores of the grid on each device, an array of the shape of the mesh.
    elements: the number of elements of the tensor on each device, an array of that shape. slots:
    the number of cores for which each device has storage; those without a core are idle.
    """

    layout: Layout
    device: Devices
    cores: NDArray[np.int64]
    elements: NDArray[np.int64]
    slots: int

    @classmethod
    def of(cls, layout: Layout, device: Devices) -> Description:
        """Return the description of a layout on a device grid."""
        if not isinstance(layout, Layout):
            raise LayoutError(f"layout {layout!r} must be a gl.Layout")
        placement = device.placement(layout)
        first, grid = device.first_cores(layout), np.array(placement.grid)
        sizes = np.clip(grid - first, 0, placement.per_device)
        # Elements per core, including idle slots, then summed over the cores of each part.
        found, slots = layout.traffic(layout), placement.slots
        by_core = np.zeros(prod(slots), np.int64)
        by_core[found.before @ np.array(row_major(slots), np.int64)] = found.counts
        parts = [s // p for s, p in zip(slots, placement.per_device, strict=True)]
        pairs = zip(parts, placement.per_device, strict=True)
        blocks = by_core.reshape([n for pair in pairs for n in pair])
        totals = blocks.sum(axis=tuple(range(1, blocks.ndim, 2)))
        part = first // np.array(placement.per_device, np.int64)
        elements = totals.ravel()[part @ np.array(row_major(parts), np.int64)]
        return cls(
            layout,
            device,
            sizes.prod(axis=1).reshape(device.shape),
            elements.reshape(device.shape),
            prod(placement.per_device),
        )

    @property
    def idle(self) -> NDArray[np.int64]:
        """The number of slots without a core on each device: an array of the shape of the mesh."""
        return self.slots - self.cores

    @property
    def nbytes(self) -> int:
        """Bytes of storage per device, with padding and idle slots: equal on all devices."""
        return dtypes.nbytes((self.slots, *self.layout.local_shape), self.layout.dtype)

    @property
    def data_bytes(self) -> NDArray[np.int64]:
        """Bytes of the elements on each device: an array of the shape of the mesh."""
        return -(-self.elements * dtypes.bits(self.layout.dtype) // 8)

    @property
    def copies(self) -> float:
        """The mean number of devices that store an element; 0 for a tensor without elements."""
        return int(self.elements.sum()) / self.layout.size if self.layout.size else 0.0

    @property
    def imbalance(self) -> float:
        """The ratio of the most elements on a device to the mean: 1 if all have equally many."""
        mean = float(self.elements.mean())
        return float(self.elements.max()) / mean if mean else 1.0

    def draw(self) -> Drawing:
        """Return the drawing of the cores by device: the view "fold" of the layout."""
        return self.layout.draw("fold", device=self.device)

    def __str__(self) -> str:
        device, layout = self.device, self.layout
        dims, grid = ",".join(map(str, layout.shape)), "x".join(map(str, layout.core_shape))
        mesh = ", ".join(f"{name}={n}" for name, n in device.mesh.shape.items())
        used, idle = int((self.cores > 0).sum()), int(self.idle.sum())
        lines = [
            f"{layout.dtype.name}[{dims}] on grid {grid}, mesh {mesh}",
            f"  each of {self.cores.size:,} devices has {number(self.slots, 'slot')}, "
            f"{self.nbytes:,} B",
            f"  {used:,} devices have cores, {idle:,} slots are idle",
            f"  elements: {int(self.elements.max()):,} at most on a device, "
            f"{self.imbalance:.2f} times the mean; each is on {self.copies:g} of them",
        ]
        if self.cores.size <= _LISTED:
            lines.append("  device      cores  idle  elements     bytes of them")
            lines += [
                f"  {_place(at):10} {int(self.cores[at]):6} {int(self.idle[at]):5} "
                f"{int(self.elements[at]):9,} {int(self.data_bytes[at]):13,} B"
                for at in np.ndindex(*device.shape)
            ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"{self.draw().svg}<pre>{self}</pre>"

    def _repr_svg_(self) -> str:
        return self.draw()._repr_svg_()


def _place(at: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, at))})"
