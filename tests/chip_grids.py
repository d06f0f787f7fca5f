"""Chips x cores as device grids: meshes of three and four axes, and arrays on them against NumPy.

Run as a program too, on more devices than the suite has: `check_all(devices)`.
"""

from math import prod

import jax
import numpy as np

import gridlayout as gl

# Chips along x (and y), rows and columns of cores: square, not square, one chip, one row.
MESHES = {
    8: [(2, 2, 2), (2, 1, 2, 2), (1, 2, 4, 1)],
    12: [(3, 2, 2), (1, 3, 2, 2), (3, 1, 1, 4)],
    16: [(2, 2, 2, 2), (2, 1, 2, 4), (4, 2, 2)],
    64: [(2, 2, 4, 4), (4, 4, 4)],
}
NAMES = "chip_x", "chip_y", "row", "column"
# Layouts of one float32[6,10,22]: grids of rank 2 that are folded over chips and cores, and of
# rank 3 and 4; even, uneven, in tiles, more cores than devices and fewer.
SHAPE = (6, 10, 22)
LAYOUTS = {
    "rows of cores": gl.GridLayout(SHAPE, "float32", grid=(8, 1)),
    "uneven, in tiles": gl.GridLayout(SHAPE, "float32", grid=(5, 3), tile=(4, 8)),
    "fewer cores": gl.GridLayout(SHAPE, "float32", grid=(3, 1)),
    "many cores": gl.GridLayout(SHAPE, "float32", grid=(9, 8), tile=(2, 2)),
    "rank 3": gl.GridLayout(SHAPE, "float32", grid=(2, 3, 2), collapse=[]),
    "rank 3, in tiles": gl.GridLayout(SHAPE, "float32", grid=(3, 2, 4), tile=(4, 4), collapse=[]),
    "rank 4": gl.GridLayout(
        SHAPE,
        "float32",
        grid=(2, 2, 2, 2),
        linear="(d0, d1, d2) -> (d0 floordiv 3, d0 mod 3, d1, d2)",
    ),
    "rank 4, uneven": gl.GridLayout(
        SHAPE,
        "float32",
        grid=(2, 3, 2, 5),
        linear="(d0, d1, d2) -> (d1 floordiv 5, d0, d1 mod 5, d2)",
    ),
}
# By the rank of the mesh: a core of a grid of two dims is on chip (d0 // rows, d1 // columns), or
# reversed; grids of the mesh's rank transposed.
MAPS = {
    (2, 2, 2): ["(d0, d1) -> (d0 floordiv 2, d0 mod 2, d1)", "(d0, d1, d2) -> (d2, d0, d1)"],
    (2, 1, 2, 2): [
        "(d0, d1) -> (d0 floordiv 2, 0, d0 mod 2, d1)",
        "(d0, d1, d2, d3) -> (-d0 + 1, d1, d3, d2)",
    ],
    (2, 2, 2, 2): [
        "(d0, d1) -> (d0 floordiv 2, d1 floordiv 2, d0 mod 2, d1 mod 2)",
        "(d0, d1, d2, d3) -> (d3, d2, d1, d0)",
    ],
}
MAPPED = {
    (2, 2, 2): [(4, 2), (2, 2, 2)],
    (2, 1, 2, 2): [(4, 2), (2, 1, 2, 2)],
    (2, 2, 2, 2): [(4, 4), (2, 2, 2, 2)],
}


def device_of(mesh, core_map=None):
    devices = np.array(jax.devices()[: prod(mesh)]).reshape(mesh)
    names = NAMES if len(mesh) == 4 else (NAMES[0], *NAMES[2:])
    return gl.DeviceGrid(jax.sharding.Mesh(devices, names), core_map=core_map)


def poisoned(array, layout, device):
    """The array laid out, NaN in all padding, which no result may show."""
    physical = np.full(layout.physical_shape, np.nan, np.float32)
    packed = np.asarray(gl.pack(array, layout))
    keep = ~layout.padding_mask()
    physical[keep] = packed[keep]
    return gl.from_physical(physical, layout, device)


def check_placed(x, array):
    """Every device has the cores that the core map says, and these the elements of theirs."""
    layout, device = x.layout, x.device
    grid, core_map = layout.core_shape, device.core_map(layout.core_shape)
    rank = len(device.shape)
    held = {each.device: np.asarray(each.data) for each in x.storage.addressable_shards}
    for index in [(0, 0, 0), (3, 4, 11), (5, 9, 21), (2, 7, 1)]:
        where = layout.locate(index)
        found = core_map(*where.core)
        part = held[device.mesh.devices[tuple(found[:rank])]]
        position = layout.index_map(*index)
        per_device = device.placement(grid).per_device
        own = tuple(c % n for c, n in zip(position[: len(grid)], per_device, strict=True))
        assert part[(*own, *position[len(grid) :])] == array[index]
    described = device.describe(layout)
    assert described.cores.shape == device.shape
    assert described.elements.sum() == layout.size * described.copies
    assert described.draw().svg.startswith("<svg")


def check_computed(layout, other, device):
    """put, elementwise, a sum, a product and relayouts, against NumPy."""
    array = np.arange(prod(SHAPE), dtype=np.float32).reshape(SHAPE) / 100
    x = poisoned(array, layout, device)
    check_placed(x, array)
    np.testing.assert_array_equal(np.asarray(x), array)

    def fn(x, y):
        product = jax.numpy.einsum("bij,bkj->bik", x, y)
        return jax.numpy.exp(-x) + 2, product, y.sum(axis=(0, 2))

    y = gl.relayout(x, other)
    np.testing.assert_array_equal(np.asarray(y), array)
    found = jax.tree.map(np.asarray, gl.on_grid(fn)(x, y))
    expected = np.exp(-array) + 2, np.einsum("bij,bkj->bik", array, array), array.sum((0, 2))
    for one, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, right, rtol=2e-5)
    np.testing.assert_array_equal(np.asarray(gl.relayout(y, layout)), array)


def check_map(mesh, text, grid):
    """A stated map places the grids of its rank, and is what the device grid says of them."""
    device = device_of(mesh, text)
    assert device.core_map(grid) == gl.AffineMap.parse(text)
    placed = {tuple(device.core_map(grid)(*core)[: len(mesh)]) for core in np.ndindex(*grid)}
    assert len(placed) == prod(grid)
    layout = next(each for each in LAYOUTS.values() if each.core_rank == len(grid)).replace(
        grid=grid
    )
    check_computed(layout, LAYOUTS["uneven, in tiles"], device)


def check_all(devices, count):
    """Some layouts on the meshes of so many devices, by the rule and by maps."""
    names = list(LAYOUTS)
    for m, mesh in enumerate(MESHES[devices]):
        for k in range(count):
            at = 3 * m + k
            pair = (LAYOUTS[names[(at + d) % len(names)]] for d in (0, 3))
            check_computed(*pair, device_of(mesh))
        for text, grid in zip(MAPS.get(mesh, []), MAPPED.get(mesh, []), strict=True):
            check_map(mesh, text, grid)
