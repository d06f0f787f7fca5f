"""Matrix products by named algorithms, and where each of them places its parts.

R are the mesh axes that divide the result's rows, C those that divide its columns. Devices along
other axes hold copies of the result. The algorithms differ in the axes that divide the contracted
dim K:

* `gathered`: every device gathers its rows of the left operand and its columns of the right one.
  This one is in `gathered.py`.
* `ring`: K is divided over C in the left operand and over R in the right one. The smaller operand
  is gathered; the chunks of the other one rotate around a ring.
* `summa`: K is divided as for `ring`. Its panels are broadcast, one after the other, to the devices
  that need them.
* `cannon`: K is divided as for `ring`, over as many devices in R as in C. After a skew, the chunks
  of both operands rotate.
* `k_split`: K is divided over the same axes in both operands: axes of C or R, all or some of them,
  or the remaining axes. Each device multiplies its part of K. The sums are scattered over the
  columns or the rows, or all-reduced. Meanwhile, rows and columns are not both divided.
* `3d`: as `k_split`, but rows and columns are both divided too.
* `2.5d`: as `3d`, and the part of K is divided further, as for `ring`; its chunks rotate.

`gathered`, `ring` and `summa` receive the same number of bytes; `cannon` also receives a skew.
`ring`, `summa` and `cannon` hold less at a time. `choose.py` chooses between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import lcm, prod
from typing import Any

import numpy as np

from gridlayout.affine.map import AffineMap, linearized
from gridlayout.caching import cached
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.meshes.placement import Placement

Dims = tuple[int, ...]

ALGORITHMS = ("gathered", "ring", "summa", "cannon", "k_split", "2.5d", "3d")


@dataclass(frozen=True)
class Operand:
    """One operand: its layout, and its batch, free and contracted logical dims."""

    layout: Layout
    batch: Dims
    free: Dims
    contract: Dims


@dataclass(frozen=True)
class Matrices:
    """A product as batches of (rows, K) times (K, columns).

    batch, rows, columns: the result's dims of each role. grid: the number of cores along each role.
    is_swapped: whether `left` is the second operand.
    """

    left: Operand
    right: Operand
    shape: Dims
    dtype: np.dtype[Any]
    batch: Dims
    rows: Dims
    columns: Dims
    grid: tuple[int, int, int]
    is_swapped: bool = False

    def swapped(self) -> Matrices:
        """Return the same product with rows and columns, and so the operands, exchanged."""
        batch, rows, columns = self.grid
        return Matrices(
            *(self.right, self.left, self.shape, self.dtype),
            *(self.batch, self.columns, self.rows),
            (batch, columns, rows),
            not self.is_swapped,
        )

    @cached_property
    def k(self) -> int:
        """The number of contracted elements."""
        return prod(self.left.layout.shape[d] for d in self.left.contract)

    @cached_property
    def extents(self) -> tuple[int, int, int]:
        """The numbers of batches, rows and columns."""
        left, right = self.left, self.right
        pairs = ((left, left.batch), (left, left.free), (right, right.free))
        batch, rows, columns = (prod(x.layout.shape[d] for d in dims) for x, dims in pairs)
        return batch, rows, columns

    @cached_property
    def shards(self) -> tuple[int, ...]:
        """The numbers of batches, rows and columns per core."""
        return tuple(-(-n // g) for n, g in zip(self.extents, self.grid, strict=True))


@dataclass(frozen=True)
class Plan:
    """A product, and where its parts are placed.

    mirrored: whether the rows of `matrices` are the columns of the placed result, which applies the
    algorithm to the other operand. placed: the placement of batch, rows and columns. left_k,
    right_k: the mesh axes of K in each operand. layers: those of them that sums are reduced over.
    scattered: whether the sums are scattered over `layers`, which are then the last of the columns'
    axes; otherwise every device along them gets the sums. panels: the number of parts of K.
    """

    name: str
    matrices: Matrices
    mirrored: bool
    device: DeviceGrid
    placed: Placement
    left_k: Axes
    right_k: Axes
    layers: Axes
    scattered: bool
    panels: int

    def count(self, axes: Axes) -> int:
        """Return the number of devices along some axes."""
        return self.device.count(axes)

    def left(self) -> tuple[GridLayout, Placement]:
        """Return the left operand's layout as (batch, rows, K), untiled, and its placement."""
        x, placed = self.matrices.left, self.placed
        slots = (placed.slots[0], placed.slots[1], self.panels)
        return self._operand_layout(
            x, (x.batch, x.free, x.contract), slots, (*placed.axes[:2], self.left_k), (0, 1, None)
        )

    def right(self) -> tuple[GridLayout, Placement]:
        """Return the right operand's layout as (batch, K, columns), untiled, and its placement."""
        x, placed = self.matrices.right, self.placed
        slots = (placed.slots[0], self.panels, placed.slots[2])
        return self._operand_layout(
            x,
            (x.batch, x.contract, x.free),
            slots,
            (placed.axes[0], self.right_k, self.columns),
            (0, None, 2),
        )

    def result(self) -> GridLayout:
        """Return the result's untiled layout (batch, rows, columns); the device grid places it."""
        m = self.matrices.swapped() if self.mirrored else self.matrices
        return _as_matrix(m.shape, m.dtype, (m.batch, m.rows, m.columns), m.grid)

    def _operand_layout(
        self,
        x: Operand,
        roles: tuple[Dims, Dims, Dims],
        slots: tuple[int, int, int],
        axes: tuple[Axes, ...],
        cores: tuple[int | None, ...],
    ) -> tuple[GridLayout, Placement]:
        grid = tuple(self.panels if k is None else self.matrices.grid[k] for k in cores)
        per_device = tuple(n // self.count(a) for n, a in zip(slots, axes, strict=True))
        layout = _as_matrix(x.layout.shape, x.layout.dtype, roles, grid)
        return layout, Placement(grid, axes, slots, per_device)

    @cached_property
    def parts(self) -> tuple[Dims, Dims]:
        """Shapes of one device's parts: (batch, rows, panels, K per panel) and
        (batch, panels, K per panel, columns).
        """
        m, placed, shards = self.matrices, self.placed, self.matrices.shards
        batch, rows = (placed.per_device[k] * shards[k] for k in (0, 1))
        columns = placed.slots[2] // self.count(self.columns) * shards[2]
        width = -(-m.k // self.panels)
        left, right = (self.panels // self.count(axes) for axes in (self.left_k, self.right_k))
        return (batch, rows, left, width), (batch, right, width, columns)

    @cached_property
    def work(self) -> int:
        """The multiplications of one device."""
        (batch, rows, _, width), (*_, columns) = self.parts
        return batch * rows * columns * self.panels * width // self.count(self.layers)

    @cached_property
    def columns(self) -> Axes:
        """The mesh axes that divide the columns during the multiplication."""
        columns = self.placed.axes[2]
        return columns[: len(columns) - len(self.layers)] if self.scattered else columns


def _placed(matrices: Matrices, mirrored: bool, device: DeviceGrid) -> Placement:
    """Return the device grid's placement of the result, as (batch, rows, columns) of `matrices`."""
    if not mirrored:
        return device.placements.inner(matrices.grid)
    found = device.placements.inner(matrices.swapped().grid)
    parts = (found.grid, found.axes, found.slots, found.per_device)
    return Placement(*((b, c, r) for b, r, c in parts))  # type: ignore[arg-type]


@cached
def _as_matrix(
    shape: Dims, dtype: np.dtype[Any], roles: tuple[Dims, Dims, Dims], grid: Dims
) -> GridLayout:
    """Return an untiled layout with the dims of each role joined."""
    linear = AffineMap(len(shape), tuple(linearized(shape, dims) for dims in roles))
    return GridLayout(shape, dtype, grid, linear=linear)


# -- which plan ----------------------------------------------------------------------------------


def plans(name: str, matrices: Matrices, device: DeviceGrid) -> list[Plan]:
    """Return all plans of a product by one algorithm; an empty list where it has none.

    Either operand may be the left one. The free dims of either may be the rows that are placed
    first, which is another plan where the placements differ.
    """
    found = []
    for each in (matrices, matrices.swapped()):
        placed, mirrored = (_placed(each, yes, device) for yes in (False, True))
        found += _PLANS[name](name, each, False, device, placed)
        if mirrored != placed:
            found += _PLANS[name](name, each, True, device, mirrored)
    return found


def _crossed(
    name: str, matrices: Matrices, mirrored: bool, device: DeviceGrid, placed: Placement
) -> list[Plan]:
    """Return the plan that divides K over the other operand's axes: ring, SUMMA, Cannon."""
    _, rows, columns = placed.axes
    down, across = device.count(rows), device.count(columns)
    if name == "cannon" and down != across:
        return []
    panels = lcm(down, across)
    return [Plan(name, matrices, mirrored, device, placed, columns, rows, (), False, panels)]


def _layered(
    name: str, matrices: Matrices, mirrored: bool, device: DeviceGrid, placed: Placement
) -> list[Plan]:
    """Return the plans that divide K over axes of its own: k_split, 3D, 2.5D."""
    _, rows, columns = placed.axes
    used = {axis for axes in placed.axes for axis in axes}
    free = tuple(axis for axis in device.fine.axis_names if axis not in used)
    # (layers, whether they are scattered over the columns, the columns' other axes)
    found = [(columns[at:], True, columns[:at]) for at in range(len(columns))]
    found += [(free, False, columns)] if free else []
    made = []
    for layers, scattered, rest in found:
        panels, down, across = map(device.count, (layers, rows, rest))
        is_3d = down > 1 and across > 1
        if panels == 1 or is_3d == (name == "k_split"):
            continue
        left_k = right_k = layers
        if name == "2.5d":
            left_k, right_k = (*layers, *rest), (*layers, *rows)
            panels *= lcm(across, down)
        ks = (left_k, right_k, layers)
        made.append(Plan(name, matrices, mirrored, device, placed, *ks, scattered, panels))
    return made


_PLANS: dict[str, Callable[[str, Matrices, bool, DeviceGrid, Placement], list[Plan]]] = {
    **dict.fromkeys(("ring", "summa", "cannon"), _crossed),
    **dict.fromkeys(("k_split", "2.5d", "3d"), _layered),
}
