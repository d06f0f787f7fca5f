"""Core maps: the device, row and column of the physical core of each virtual core.

A mesh divides the virtual grid first: `mesh[k]` devices along grid dim k, numbered row-major. The
virtual cores of one device are also numbered row-major and placed row by row on a rectangle of its
cores. The rectangle is the local grid itself if it has two dims that fit the chip; otherwise it is
the squarest rectangle with the same number of cores (tt-mlir's virtual grids, "Multi-Device").

    (d0, d1, ...) -> (device, y, x)
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt, prod
from typing import Any

from gridlayout.affine.map import AffineExpr, AffineMap, constant, dim
from gridlayout.arguments import MAX_ELEMENTS, Shape, ShapeLike, as_flag, as_int, positive
from gridlayout.document.text import read_map
from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import Reader, dims_text
from gridlayout.public import public

# Rectangles are found by trial division up to the square root of this.
_MAX_CORES = 1 << 32


@public
@dataclass(frozen=True)
class CoreMap:
    """The map from a virtual core to (device, y, x), and its inverse.

    `inverse` is valid on `devices` x `rectangle`.

    >>> m = device_map((1, 40))
    >>> print(m.forward, m.rectangle)
    (d0, d1) -> (0, d1 floordiv 8, d1 mod 8) (5, 8)
    >>> print(m.inverse, m.inverse(0, 4, 7))
    (d0, d1, d2) -> (0, d1 * 8 + d2) (0, 39)
    """

    grid: Shape
    devices: int
    rectangle: Shape
    forward: AffineMap
    inverse: AffineMap

    @staticmethod
    def parse(text: str) -> CoreMap:
        """Parse the map of the worker grid of a `ttcore.device`, as tt-mlir prints it.

        The grid is the worker grid, and the devices are those of the mesh shape. `LayoutError`
        names the column.

        >>> text = (
        ...     "#ttcore.device<workerGrid = #ttcore.grid<8x8, virt_to_physical_map = "
        ...     "(d0, d1) -> (0, d1, d0), physical_to_virt_map = (d0, d1, d2) -> (d2, d1)>, "
        ...     "meshShape = 1x1, chipIds = [0]>"
        ... )
        >>> CoreMap.parse(text).forward(0, 5)
        (0, 5, 0)
        """
        if not isinstance(text, str) or (at := text.find("workerGrid")) < 0:
            raise LayoutError(
                "no workerGrid: expected #ttcore.device<workerGrid = #ttcore.grid<..."
            )
        reader = Reader(text)
        reader.at = at
        reader.expect("workerGrid", "=", "#ttcore.grid", "<")
        grid = _read_sizes(reader, "workerGrid")
        maps = []
        while reader.take(","):
            reader.match(r"([a-z_]+\s*=)?", "a map")
            maps.append(read_map(reader))
        reader.expect(">")
        ranks = [(each.num_dims, len(each.results)) for each in maps[:2]]
        if not ranks or ranks != [(len(grid), 3), (3, len(grid))][: len(ranks)]:
            reader.fail(
                f"a worker grid of rank {len(grid)} needs a map of its dims to (device, y, x), "
                "and may have its inverse",
                at,
            )
        devices = 1
        if (found := text.find("meshShape", reader.at)) >= 0:
            reader.at = found
            reader.expect("meshShape", "=")
            # The shape of a mesh of one device may be empty.
            devices = prod(_read_sizes(reader, "meshShape")) if reader.peek_digit() else 1
        try:
            ranges = maps[0].range(grid)
            back = maps[1] if len(maps) > 1 else maps[0].inverse(grid).map
        except LayoutError as error:
            reader.fail(str(error), at)
        if min(low for low, _ in ranges) < 0 or ranges[0][1] >= devices:
            reader.fail(
                f"the map {maps[0]} must give devices 0 to {devices - 1}, and rows and columns "
                ">= 0",
                at,
            )
        # The rows and columns of cores: up to the largest coordinates that the map takes.
        rectangle = tuple(high + 1 for _, high in ranges[1:])
        return CoreMap(grid, devices, rectangle, maps[0], back)


@public
def device_map(
    grid: ShapeLike,
    mesh: ShapeLike | None = None,
    chip_grid: ShapeLike = (8, 8),
    *,
    transpose: bool = False,
    skew: int = 0,
) -> CoreMap:
    """Return the core map of a virtual grid on a mesh of devices.

    grid: virtual cores along each dim, any rank. mesh: devices along each grid dim, which they must
    divide; None means one device. chip_grid: rows and columns of a device's cores. transpose:
    whether to swap y and x. skew: shifts every row of cores by `skew` columns relative to the row
    above, with wraparound (a staircase).

    `LayoutError` if the cores of a device form no rectangle on the chip.

    >>> print(device_map((16, 32), mesh=(2, 4)).forward)
    (d0, d1) -> ((d0 floordiv 8) * 4 + d1 floordiv 8, d0 mod 8, d1 mod 8)
    >>> print(device_map((8, 8), skew=1).forward)
    (d0, d1) -> (0, d0, (d0 + d1) mod 8)
    """
    grid, chip = positive(grid, "grid"), _as_chip_grid(chip_grid)
    mesh = (1,) * len(grid) if mesh is None else positive(mesh, "mesh")
    if len(mesh) != len(grid) or any(n % m for n, m in zip(grid, mesh, strict=True)):
        raise LayoutError(f"mesh {mesh} must have the rank of the grid {grid} and divide it")
    if prod(grid) > MAX_ELEMENTS:
        raise LayoutError(f"grid {grid} has more than 2**62 cores")
    local = tuple(n // m for n, m in zip(grid, mesh, strict=True))
    rectangle = _rectangle(local, chip[::-1] if as_flag(transpose, "transpose") else chip)
    width, skew = rectangle[1], _as_skew(skew)
    # Forward: split each grid dim into device and core parts, and number devices and cores.
    device = _number([dim(k) // n for k, n in enumerate(local)], mesh)
    core = _number([dim(k) % n for k, n in enumerate(local)], local)
    y, x = core // width, core % width
    forward = [device, y, (x + y * skew) % width]
    # Inverse: undo the same steps, from (device, y, x) = (d0, d1, d2).
    y, x = (dim(2), dim(1)) if transpose else (dim(1), dim(2))
    of_device, of_core = _digits(dim(0), mesh), _digits(y * width + (x - y * skew) % width, local)
    inverse = [d * n + c for d, c, n in zip(of_device, of_core, local, strict=True)]
    if transpose:
        forward[1:] = forward[:0:-1]
        rectangle = rectangle[::-1]
    box = (prod(mesh), *rectangle)
    return CoreMap(
        grid,
        prod(mesh),
        rectangle,
        AffineMap(len(grid), forward).simplify(grid),
        AffineMap(3, inverse).simplify(box),
    )


@public
def physical_grid(cores: int, chip_grid: ShapeLike = (8, 8)) -> Shape:
    """Return the squarest rectangle (rows, columns) of `cores` cores that fits the chip.

    `LayoutError` if there is none, such as for a prime number of cores wider than the chip.

    >>> physical_grid(40), physical_grid(12), physical_grid(26, (10, 13))
    ((5, 8), (3, 4), (2, 13))
    """
    (count,) = positive((cores,), "cores")
    chip = _as_chip_grid(chip_grid)
    if count > min(_MAX_CORES, chip[0] * chip[1]):
        raise LayoutError(f"{count} cores are more than the {chip[0]}x{chip[1]} of the chip")
    for rows in range(isqrt(count), 0, -1):
        for found in ((rows, count // rows), (count // rows, rows)):
            if count % rows == 0 and found[0] <= chip[0] and found[1] <= chip[1]:
                return found
    raise LayoutError(
        f"{count} cores form no rectangle on a chip of {chip[0]}x{chip[1]}: use a number with "
        "factors that fit"
    )


@public
def dram_map(banks: int, page_bytes: int, base: int = 0) -> AffineMap:
    """Return the map from a byte address in an interleaved buffer to (bank, byte in the bank).

    Pages of `page_bytes` bytes are distributed over the banks in turn, starting at byte `base` of
    each bank.

    >>> print(dram_map(12, 2048, 32))
    (d0) -> ((d0 floordiv 2048) mod 12, (d0 floordiv 24576) * 2048 + d0 mod 2048 + 32)
    """
    banks, page_bytes = positive((banks, page_bytes), "banks and page_bytes")
    if (base := as_int(base, "base")) < 0:
        raise LayoutError(f"base {base} must be a whole number of bytes, 0 to 2**62")
    if banks * page_bytes > MAX_ELEMENTS:
        raise LayoutError(f"{banks} banks x pages of {page_bytes} bytes is more than 2**62")
    bank = dim(0) // page_bytes % banks
    row = dim(0) // (page_bytes * banks)
    return AffineMap(1, (bank, row * page_bytes + dim(0) % page_bytes + base))


def _read_sizes(reader: Reader, what: str) -> Shape:
    reader.skip()
    at, sizes = reader.at, reader.dims()
    if 0 in sizes or prod(sizes) > MAX_ELEMENTS:
        reader.fail(f"{what} {dims_text(sizes)} must have 1 to 2**62 places", at)
    return sizes


def _rectangle(local: Shape, chip: Shape) -> Shape:
    if len(local) == 2 and local[0] <= chip[0] and local[1] <= chip[1]:
        return local
    return physical_grid(prod(local), chip)


def _number(digits: Sequence[AffineExpr], sizes: Shape) -> AffineExpr:
    found = constant(0)
    for digit, size in zip(digits, sizes, strict=True):
        found = found * size + digit
    return found


def _digits(number: AffineExpr, sizes: Shape) -> list[AffineExpr]:
    return [number // prod(sizes[k + 1 :]) % size for k, size in enumerate(sizes)]


def _as_chip_grid(chip_grid: Any) -> Shape:
    found = positive(chip_grid, "chip_grid")
    if len(found) != 2:
        raise LayoutError(f"chip_grid {found} must be rows and columns")
    return found


def _as_skew(skew: Any) -> int:
    try:
        found = operator.index(skew)
    except TypeError:
        found = -MAX_ELEMENTS
    if isinstance(skew, bool) or abs(found) >= 1 << 31:
        raise LayoutError(f"skew {skew!r} must be a whole number of columns")
    return found
