"""Where a user states that cores lie: the bytes are on that device, and computation runs there.

Tensor layout (tt-mlir): "The grid shape here is a virtual grid shape, the `ttcore.device` attribute
will hold an additional affine map that defines how this virtual grid shape maps to a physical one."
"""

import time
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import AbstractMesh
from laid_out import is_grid, packed
from tiers import examples, few

import gridlayout as gl
from gridlayout.ops.primitives.table import RECORDS

TRANSPOSED = "(d0, d1) -> (d1, d0)"
FOLDED = "(d0, d1) -> (d1 floordiv 4, d1 mod 4, d0)"
STAIRCASE = "(d0, d1) -> (d0, (d0 + d1) mod 4, 0)"
MIRRORED = "(d0, d1) -> (-d0 + 1, -d1 + 3)"
BLOCKS = "(d0, d1) -> (d1 floordiv 2, (d0 floordiv 3 + d1 floordiv 2) mod 4, d1 mod 2, d0 mod 3)"
# There and back along rows of four: 0 1 2 3 7 6 5 4.
SNAKE = (
    "(d0) -> (d0 floordiv 4, d0 - (d0 floordiv 4) - ((d0 + 3) floordiv 8) * 2"
    " - ((d0 + 2) floordiv 8) * 2 - ((d0 + 1) floordiv 8) * 2)"
)
ROW_OF_SNAKE = SNAKE.replace("d0", "d1").replace("(d1) ->", "(d0, d1) ->")
DEVICE = """ttcore.device @default_device = <workerGrid = #ttcore.grid<8x8,
  virt_to_physical_map = (d0, d1) -> (d0 floordiv 4, d0 mod 4, d1),
  physical_to_virt_map = (d0, d1, d2) -> (d0 * 4 + d1, d2)>, dramGrid = #ttcore.grid<1x12>,
  l1Map = (d0, d1, d2)[s0] -> (0, d0, d1, d2 + s0), meshShape = 2x4, chipIds = [0, 1, 2, 3]>"""
MAPS = [TRANSPOSED, FOLDED, STAIRCASE, SNAKE, BLOCKS]


def placed(grid, device):
    """An uneven layout on this grid, put: every core's buffer is where the map says."""
    layout = gl.GridLayout(tuple(max(2 * g - 1, 1) for g in grid), "int32", grid, collapse=[])
    values = np.arange(1, layout.size + 1, dtype="int32").reshape(layout.shape)
    x = gl.put(values, layout, device)
    check(x, values)
    return x, values


def check(x, values):
    """`x` holds the values, each core's on the device that its device grid's map names."""
    grid, mesh = x.layout.core_shape, x.device.mesh.devices
    to_place, expected = x.device.core_map(grid), packed(values, x.layout, 0)
    held = {shard.device: shard for shard in x.storage.addressable_shards}
    places = set()
    for core in np.ndindex(*grid):
        place = to_place(*core)
        shard = held[mesh[place[: mesh.ndim]]]
        bounds = [s.indices(n) for s, n in zip(shard.index, x.storage.shape, strict=True)]
        slot = tuple(c - low for c, (low, _, _) in zip(core, bounds, strict=False))
        valid = packed(np.ones(values.shape, bool), x.layout, 0)[core]
        np.testing.assert_array_equal(np.asarray(shard.data)[slot][valid], expected[core][valid])
        places.add(place)
    assert len(places) == len(list(np.ndindex(*grid)))
    np.testing.assert_array_equal(np.asarray(x), values)


STATED = [
    ((2, 4), TRANSPOSED, [(4, 2), (3, 2), (1, 2)]),
    ((2, 4), FOLDED, [(1, 8), (1, 6), (3, 8), (8, 8)]),
    ((2, 4), STAIRCASE, [(2, 4), (2, 3), (1, 4)]),
    ((2, 4), MIRRORED, [(2, 4)]),
    ((2, 4), BLOCKS, [(12, 4), (11, 3), (3, 4)]),
    ((2, 4), SNAKE, [(8,), (5,), (1,)]),
    ((2, 4), ROW_OF_SNAKE, [(1, 8), (1, 5)]),
    ((2, 4), DEVICE, [(8, 8), (7, 3), (1, 1)]),
    ((8,), "(d0, d1, d2) -> (d2 * 4 + d0 * 2 + d1)", [(2, 2, 2), (1, 2, 2)]),
    ((2, 4), "(d0) -> (1, d0)", [(4,), (3,), (1,)]),
    ((8,), "(d0) -> (d0 + 1)", [(7,), (4,), (1,)]),
    ((2, 4), "(d0, d1) -> (1 - d0, 2 - d1)", [(2, 3), (2, 2), (1, 1)]),
    ((8, 1), gl.tenstorrent.device_map((16, 32), mesh=(2, 4)), [(16, 32), (13, 29), (8, 8)]),
    ((4,), gl.tenstorrent.device_map((16, 16), mesh=(2, 2), skew=1), [(16, 16)]),
    ((1,), gl.tenstorrent.device_map((1, 64)), [(1, 64), (1, 40)]),
]


def of_devices(sharding, shape, device):
    """The part of each device, in the mesh's order, by JAX."""
    parts = sharding.devices_indices_map(shape)
    return [parts[d] for d in device.mesh.devices.flat]


@pytest.mark.few(6)
@pytest.mark.parametrize(("mesh", "core_map", "grids"), STATED, ids=str)
def test_cores_are_on_the_devices_that_the_map_names(mesh, core_map, grids):
    device = gl.DeviceGrid(mesh, core_map=core_map)
    for grid in grids:
        x, values = placed(grid, device)
        stated = device.core_map(grid)
        if isinstance(core_map, str) and core_map is not DEVICE:
            assert stated == gl.AffineMap.parse(core_map)
        first = device.first_cores(grid)
        for at, part in zip(first, of_devices(x.sharding, x.storage.shape, device), strict=True):
            starts = [s.indices(n)[0] for s, n in zip(part, x.storage.shape, strict=False)]
            assert list(at) == starts[: len(grid)]
        # Computation runs there: the result's parts are where the operands' are.
        y = gl.on_grid(lambda x: jnp.where(x > 3, x * 2, -x))(x)
        check(y, np.where(values > 3, values * 2, -values))
        assert y.sharding == x.sharding


@pytest.mark.parametrize(("mesh", "core_map", "grids"), STATED[:9], ids=str)
def test_other_grids_are_placed_as_before(mesh, core_map, grids):
    device, plain = gl.DeviceGrid(mesh, core_map=core_map), gl.DeviceGrid(mesh)
    for grid in {(8,), (5,), (16, 2), (3, 5), (2, 2, 2), (2, 1, 4)}:
        if len(grid) != len(grids[0]):
            assert device.placement(grid) == plain.placement(grid)
            if device.fine == plain.fine:
                assert device.core_map(grid) == plain.core_map(grid)
        placed(grid, device)


def test_the_batch_is_divided_between_devices():
    # "the batch dim is evenly divided between 2 devices. Within each device this op runs on a 2x4
    # grid."
    layout = gl.GridLayout((2, 3, 64, 128), grid=(2, 2, 4), tile=(32, 32), collapse=[(1, -1)])
    device = gl.DeviceGrid((2,))
    assert str(device.core_map(layout.grid)) == "(d0, d1, d2) -> (d0, 0, d1, d2)"
    values = np.arange(layout.size, dtype="float32").reshape(layout.shape)
    x = gl.put(values, layout, device)
    check(x, values)
    for shard in x.storage.addressable_shards:
        assert shard.data.shape[:3] == (1, 2, 4)
        batch = values[jax.devices().index(shard.device)]
        np.testing.assert_array_equal(np.sort(np.asarray(shard.data), axis=None), batch.ravel())
    # On more devices than batches the rest divides rows and columns; a plane is divided as before.
    for mesh, expected in [((4,), (1, 2, 2)), ((2, 4), (1, 2, 1)), ((8,), (1, 1, 2))]:
        assert gl.DeviceGrid(mesh).placement((2, 2, 4)).per_device == expected
    assert gl.DeviceGrid((2, 4)).placement((8, 8)).per_device == (4, 2)


PROGRAMS = {
    "matmul": lambda a, b: a @ b.T,
    "softmax": lambda a, b: jax.nn.softmax(a, axis=-1) * b,
    "columns": lambda a, b: jnp.sort(a, axis=0) - b.sum(axis=0),
    "reshaped": lambda a, b: (a.reshape(-1) * b.T.reshape(-1)).reshape(a.shape[::-1]),
    "shifted": lambda a, b: jnp.concatenate([a[2:], b[:2]]) + jnp.cumsum(b, axis=1),
    "convolved": lambda a, b: jax.scipy.signal.convolve(a, b[:3, :3], mode="same"),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("core_map", few([STAIRCASE, BLOCKS, TRANSPOSED], 1), ids=str)
def test_programs_give_the_same_on_any_map(name, core_map):
    device = gl.DeviceGrid((2, 4), core_map=core_map)
    a, b = np.random.default_rng(0).normal(size=(2, 12, 10)).astype("float32")
    grids = [(4, 2), (1, 8)] if core_map in (TRANSPOSED, FOLDED) else [(2, 4), (3, 2)]
    x = gl.put(a, gl.GridLayout(a.shape, grid=grids[0], tile=(2, 2)), device)
    y = gl.put(b, gl.GridLayout(b.shape, grid=grids[1], tile=(2, 2)), device)
    got = gl.on_grid(PROGRAMS[name])(x, y)
    np.testing.assert_allclose(np.asarray(got), PROGRAMS[name](a, b), rtol=1e-5, atol=1e-5)


@pytest.mark.few(2)
@pytest.mark.parametrize("core_map", MAPS, ids=str)
def test_relayouts_go_to_where_the_map_says(core_map):
    device = gl.DeviceGrid((2, 4), core_map=core_map)
    values = np.arange(384, dtype="int32").reshape(24, 16)
    x = gl.put(values, gl.GridLayout((24, 16), "int32", grid=(4, 2), tile=(2, 2)), device)
    for grid in [(8,), (2, 4), (4, 2), (1, 8), (12, 4)]:
        collapse = [(0, 2)] if len(grid) == 1 else []
        layout = gl.GridLayout((24, 16), "int32", grid=grid, collapse=collapse)
        check(gl.relayout(x, layout), values)
        # Who needs bytes in the new layout is who the map names, or holds a copy.
        needs = set(np.flatnonzero(gl.relayout_plan(x, layout).bytes.sum(axis=0)))
        busy = [device.core_map(grid)(*core)[:2] for core in np.ndindex(*grid)]
        assert set(np.ravel_multi_index(np.transpose(busy), (2, 4))) <= needs


@st.composite
def digit_maps(draw):
    """A mesh, a grid and a map that gives the mesh's axes, factored, to the grid's dims at will."""
    sizes = draw(st.sampled_from([(2, 4), (8,), (2, 2, 2), (4, 2), (6,), (3, 2)]))
    factors = []
    for axis, size in enumerate(sizes):
        left = size
        while left > 1:
            prime = 2 if left % 2 == 0 else left
            left //= prime
            factors.append((axis, left, prime))
    factors = draw(st.permutations(factors))
    cut = draw(st.integers(0, len(factors)))
    per = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    coordinates, grid = ["0"] * len(sizes), []
    for k, mine in enumerate((factors[:cut], factors[cut:])):
        index, count = f"(d{k} floordiv {per[k]})", 1
        for axis, stride, prime in mine:
            coordinates[axis] += f" + (({index} floordiv {count}) mod {prime}) * {stride}"
            count *= prime
        grid.append(draw(st.integers(1, count * per[k])))
    inside = [f"d{k} mod {per[k]}" for k in range(2)]
    return sizes, tuple(grid), f"(d0, d1) -> ({', '.join([*coordinates, *inside])})"


@settings(max_examples=examples(60), deadline=None)
@given(digit_maps())
def test_any_assignment_of_the_meshs_axes_can_be_stated(case):
    sizes, grid, core_map = case
    device = gl.DeviceGrid(sizes, core_map=core_map)
    x, values = placed(grid, device)
    assert device.core_map(grid) == gl.AffineMap.parse(core_map)
    check(gl.relayout(x, x.layout.replace(grid=grid[::-1])), values)


def test_a_permuted_mesh_is_counted_by_its_own_numbers():
    device = gl.DeviceGrid((2, 4), core_map=STAIRCASE)
    assert device.order == (0, 1, 2, 3, 5, 6, 7, 4)
    parts = gl.GridLayout((2, 4), "int32", grid=(2, 4))
    # Core (i, 0) of the new grid is on device (i, 0) for row 0, and on (1, 1), device 5, for row 1.
    # Element (1, 3) is on device (1, 0), number 4; core (1, 0) on device (1, 1), number 5.
    found = gl.relayout_plan(parts, parts.replace(grid=(2, 1)), device).bytes
    assert found[4, 5] == found[5, 5] == 4
    assert found[5, 4] == 4  # the whole row has copies of row 1
    assert found[0, 5] == 0


def test_a_device_grid_with_a_map_is_a_value():
    first, second = (gl.DeviceGrid((2, 4), core_map=m) for m in (STAIRCASE, TRANSPOSED))
    assert first == gl.DeviceGrid((2, 4), core_map=gl.AffineMap.parse(STAIRCASE))
    assert (
        len({first, second, gl.DeviceGrid((2, 4)), gl.DeviceGrid((2, 4), core_map=STAIRCASE)}) == 3
    )
    assert f"core_map='{gl.AffineMap.parse(STAIRCASE)}'" in repr(first)
    x, _ = placed((2, 4), first)
    with pytest.raises(gl.LayoutError, match="DeviceGrid"):
        x + placed((2, 4), gl.DeviceGrid((2, 4)))[0]


def test_a_mesh_without_devices_takes_a_map():
    device = gl.DeviceGrid(AbstractMesh((256, 128), ("x", "y")), core_map=TRANSPOSED)
    assert device.placement((128, 256)).per_device == (1, 1)
    assert str(device.core_map((128, 256))) == "(d0, d1) -> (d1, d0)"
    assert device.placement((256, 256)) == gl.DeviceGrid(device.mesh).placement((256, 256))


def test_a_map_of_many_dims_is_looked_at_for_a_moment_only():
    mesh, dims = AbstractMesh((2**15,), ("x",)), [f"d{k}" for k in range(8)]
    started = time.process_time()
    device = gl.DeviceGrid(mesh, core_map=f"({', '.join(dims)}) -> ({' + '.join(dims)})")
    assert time.process_time() - started < 30
    assert device.placement((8,) + (1,) * 7).per_device == (1,) * 8


@pytest.mark.parametrize(
    ("core_map", "grid", "words"),
    [
        ("(d0) -> (0, d0 mod 2, d0 floordiv 2)", (4,), "no box of consecutive"),
        (
            "(d0, d1) -> ((d0 * 3 + d1) floordiv 4, (d0 * 3 + d1) mod 4)",
            (2, 3),
            "an order that no axes of the mesh have",
        ),
        ("(d0) -> (5, d0)", None, r"core 0 at \(5, 0\), but it must be inside the mesh \(2, 4\)"),
        ("(d0) -> (0)", None, "to a coordinate on each of the 2 mesh axes"),
        ("() -> (0, 0)", None, "must map the dims of a grid"),
        ("(d0) -> (d0", None, "column"),
        ("#ttcore.device<>", None, "no workerGrid"),
        ("#ttcore.device<workerGrid = #ttcore.grid<2x2, (d0) -> (0, 0, d0)>>", None, "rank 2"),
        (7, None, "not int"),
        (gl.tenstorrent.device_map((16, 16), mesh=(4, 4), chip_grid=(4, 4)), None, "16 devices"),
        ("(d0) -> (0, 0, d0)", (1 << 23,), "8388608 cores"),
        (gl.AffineMap(40, (0, 0)), None, "takes 40 grid dims; up to 32"),
    ],
    ids=str,
)
def test_what_a_map_cannot_say(core_map, grid, words):
    with pytest.raises(gl.LayoutError, match=words):
        gl.DeviceGrid((2, 4), core_map=core_map).placement(grid)


def test_a_grid_without_cores_has_a_place_on_any_mesh():
    mesh = jax.sharding.AbstractMesh((2, 4), ("x", "y"))
    for core_map in (None, "(d0, d1) -> (d0, d1)", "(d0, d1) -> (d1 floordiv 4, d1 mod 4, d0)"):
        device = gl.DeviceGrid(mesh, core_map=core_map)
        assert device.placement((0, 2)).slots == (0, 2)
        assert len(device.core_map((0, 2)).results) == 4


def test_a_map_holds_only_where_no_two_cores_meet():
    device = gl.DeviceGrid((2, 4), core_map="(d0, d1) -> (0, (d0 + d1) mod 4)")
    for grid in [(4, 1), (1, 4), (1, 3)]:
        assert device.core_map(grid) == gl.AffineMap.parse("(d0, d1) -> (0, (d0 + d1) mod 4)")
    assert device.placement((2, 2)) == gl.DeviceGrid((2, 4)).placement((2, 2))


def test_the_device_attribute_is_read():
    found = gl.tenstorrent.CoreMap.parse(DEVICE)
    assert (found.grid, found.devices, found.rectangle) == ((8, 8), 8, (4, 8))
    assert str(found.inverse) == "(d0, d1, d2) -> (d0 * 4 + d1, d2)"
    old = gl.tenstorrent.CoreMap.parse(
        "#tt.device<workerGrid = #ttcore.grid<2x3, (d0, d1) -> (0, d1, d0)>>"
    )
    assert (old.devices, old.rectangle, old.inverse(0, 2, 1)) == (1, (3, 2), (1, 2))
    # Without a mesh, tt-mlir prints no sizes.
    alone = DEVICE.replace("2x4", "").replace("d0 floordiv 4, d0 mod 4", "0, d0")
    assert gl.tenstorrent.CoreMap.parse(alone).devices == 1
    # Cores outside the worker grid are on no device.
    device = gl.DeviceGrid(
        (1,), core_map=DEVICE.replace("2x4", "1x1").replace("d0 floordiv 4, d0 mod 4", "0, d0")
    )
    assert device._stated.placement((8, 8)) is not None
    assert device._stated.placement((9, 8)) is None


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("8x8", "0x8", "column 60: workerGrid 0x8 must have 1 to"),
        ("8x8", "8x8x8", "column .*: a worker grid of rank 3 needs a map"),
        ("(d0 * 4 + d1, d2)", "(d0 * 4 + d1)", "column .*: a worker grid of rank 2 .* inverse"),
        ("(d0, d1, d2) -> (d0 * 4 + d1, d2)", "(d0, d1) -> (d0, d1)", "may have its inverse"),
        ("d0 mod 4, d1", "-(d0 mod 4), d1", "column .* must give devices 0 to 7, and rows"),
        ("2x4", "1", "column .* must give devices 0 to 0"),
        ("2x4", f"2x{2**62}", "column .*: meshShape 2x4611686018427387904 must have 1 to"),
        (
            "d0 mod 4, d1),\n  physical_to_virt_map = (d0, d1, d2) -> (d0 * 4 + d1, d2)",
            "d0 mod 4, 0)",
            "column .* is not injective",
        ),
    ],
)
def test_device_attributes_that_are_refused(old, new, rule):
    assert old in DEVICE
    with pytest.raises(gl.LayoutError, match=rule):
        gl.tenstorrent.CoreMap.parse(DEVICE.replace(old, new, 1))


@pytest.mark.parametrize("text", ["workerGrid", DEVICE[:80], "", None])
def test_what_is_no_device_attribute(text):
    with pytest.raises(gl.LayoutError):
        gl.tenstorrent.CoreMap.parse(text)


# Functions whose work goes on a grid of another rank than their operands', which the map does not
# place, or the other way round: device grid, shape, grid, function.
OF_OTHER_RANKS = {
    "rows at indices": ((2, 4), MIRRORED, (2,), (2,), lambda x: x[jnp.array([0, 1])]),
    "sorted by indices": ((2, 4), MIRRORED, (24,), (2,), lambda x: x[jnp.argsort(x)]),
    "a map over planes": ((2, 4), TRANSPOSED, (8, 3, 8), (2, 2), lambda x: mapped(x)),
    "over planes, wide": ((2, 4), TRANSPOSED, (8, 3, 8), (2, 4), lambda x: mapped(x)),
    "over planes, folded": (
        *((2, 2), "(d0, d1) -> (d1 floordiv 2, d0, d1 mod 2)", (8, 3, 8), (2, 2)),
        lambda x: mapped(x),
    ),
    "a scan of rows": (
        *((2, 4), TRANSPOSED, (8, 6, 4), (2, 2)),
        lambda x: jax.lax.scan(lambda c, v: (c + v * v.sum(), c[0]), jnp.zeros(x.shape[1:]), x),
    ),
    "written in part": (
        *((2, 4), TRANSPOSED, (6, 4), (2, 4)),
        jax.grad(lambda x: jnp.sum(jnp.sin(x.at[1:3].set(x[:2] * 2)) ** 2)),
    ),
    "sums of batches": ((2, 4), TRANSPOSED, (4, 6, 8), (2, 2), lambda x: (x @ x.mT).sum(0)),
}


def mapped(x):
    return jax.lax.map(lambda v: v * v.sum() * 0.1, x)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", OF_OTHER_RANKS)
def test_work_on_a_grid_of_another_rank_is_jaxs(name):
    mesh, core_map, shape, grid, fn = OF_OTHER_RANKS[name]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    laid = gl.put(x, gl.GridLayout(shape, grid=grid), gl.DeviceGrid(mesh, core_map=core_map))
    found, expected = (jax.tree.leaves(each) for each in (gl.on_grid(fn)(laid), jax.jit(fn)(x)))
    for f, w in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(f), w, rtol=1e-5, atol=1e-5)


# -- grids that the library chooses ----------------------------------------------------------------

# Maps that place some grids of their rank as parts of no array; and a grid that each refuses.
ODD = {
    "strides": ((7,), "(d0, d1, d2) -> (d2 * 4 + d1 + d0 * 2)", (1, 3, 2)),
    "rows of three": ((7,), "(d0, d1) -> (d0 * 3 + d1)", (2, 2)),
    "cyclic": ((2, 4), "(d0) -> (0, d0 mod 2, d0 floordiv 2)", (4,)),
    "rows that end": (
        *((2, 4), "(d0, d1) -> ((d0 * 3 + d1) floordiv 4, (d0 * 3 + d1) mod 4)"),
        (2, 3),
    ),
    "one device": ((4,), "(d0) -> (1, d0)", (2,)),
}
CHOOSING = {
    "select": lambda x: jnp.select([x > 0.5, x > 0], [x, x * 2], -1.0),
    "stack": lambda x: jnp.stack([x, x, x]),
    "newaxis": lambda x: x[:, None] * 2,
    "rows": lambda x: x.reshape(-1) * 2,
    "sums": lambda x: (x.sum(0), x.max(1), jax.nn.softmax(x)),
    "transposed": lambda x: jnp.sort(x.T, 0) + 1,
    "products": lambda x: (x @ x.T, jnp.einsum("ij,kj->ikj", x, x), jnp.outer(x[0], x[1])),
    "windows": lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 2), (1, 1), "SAME"),
    "scanned": lambda x: jax.lax.scan(lambda c, v: (c + v, c * v), jnp.zeros(x.shape[1:]), x),
    "gradients": jax.grad(lambda x: jnp.sum(jnp.tanh(x @ x.T) ** 2)),
}


def odd(name):
    mesh, core_map, _ = ODD[name]
    return gl.DeviceGrid(mesh, core_map=core_map)


EXPECTED = jax.jit(lambda x: {key: each(x) for key, each in CHOOSING.items()})


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ODD)
def test_what_the_library_chooses_has_a_place_on_any_map(name):
    device = odd(name)
    x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)

    def is_placed(grid):
        with suppress(gl.LayoutError):
            return device.placement(gl.GridLayout(x.shape, grid=grid).core_shape)

    for grid in few(filter(is_placed, [(2, 1), (1, 2), (3, 2), (2,)]), 1):
        laid = gl.put(x, gl.GridLayout(x.shape, grid=grid), device)
        fn = gl.on_grid(lambda x: {key: each(x) for key, each in CHOOSING.items()})
        found = jax.tree.leaves_with_path(fn(laid), is_leaf=is_grid)
        expected = jax.tree.leaves(EXPECTED(x))
        for (path, out), want in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(out), want, 1e-5, 1e-5, err_msg=str(path))
            device.placement(out.layout.core_shape)
        assert not [row.primitive for row in fn.report(laid).fallbacks if "core_map" in row.note]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ODD)
def test_layouts_by_default_have_a_place_on_any_map(name):
    device = odd(name)
    for shape in [(12, 10), (7,), (8, 8), (3, 4, 5), (2,), (1,), (0, 4)]:
        assert device.placement(gl.fill_devices(shape, "float32", None, device).grid)
        x = np.arange(np.prod(shape), dtype="f4").reshape(shape)
        assert (np.asarray(gl.put(x, device)) == x).all()
    x = gl.put(np.ones((6, 4), "f4"), device)
    doubled = jax.vmap(gl.on_grid(lambda v: v * 2 + v.sum()), 1)(x)
    assert (np.asarray(doubled) == 8).all()
    plan = gl.plan(lambda x: jnp.tanh(x @ x.T).sum(0), x, seconds=1)
    np.testing.assert_allclose(np.asarray(plan.run(x)), 6 * np.tanh(4.0), rtol=1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_one_core_has_a_place_on_any_map(rank):
    dims = ", ".join(f"d{k}" for k in range(rank))
    device = gl.DeviceGrid((4,), core_map=f"({dims}) -> (2, {dims})")
    assert device.placement((1,) * rank).axes == ((),) * rank
    x, _ = placed((1,) * rank, device)
    assert {shard.device.id for shard in x.storage.addressable_shards} == {0, 1, 2, 3}


STATED = {
    "placement": lambda x, layout: x.device.placement(layout.grid),
    "put": lambda x, layout: gl.put(np.asarray(x), layout, x.device),
    "a tree": lambda x, layout: gl.put({"a": np.asarray(x)}, x.device, {"a": layout}),
    "relayout": gl.relayout,
    "with_layout": lambda x, layout: gl.on_grid(lambda x: gl.with_layout(x * 2, layout) + 1)(x),
    "with_layout in a loop": lambda x, layout: gl.on_grid(
        lambda x: jax.lax.scan(lambda c, v: (gl.with_layout(c * 2, layout), v), x, x)
    )(x),
    "with_layout of a product": lambda x, layout: gl.on_grid(
        lambda x: gl.with_layout((x @ x.T) @ x, layout)
    )(x),
    "a policy": lambda x, layout: gl.on_grid(
        lambda x: x @ x.T, policy=lambda shape, dtype, like, device: layout
    )(x),
    "a plan": lambda x, layout: gl.plan(lambda x, y: x + y, x, layout),
    "fixed": lambda x, layout: gl.plan(
        lambda x, y: x + y, x, jax.ShapeDtypeStruct(x.shape, x.dtype), fixed={"y": layout}
    ),
}


@pytest.mark.parametrize("name", STATED)
def test_a_grid_that_the_user_states_is_not_replaced(name):
    device, refused = odd("rows of three"), ODD["rows of three"][2]
    x = gl.put(np.ones((6, 6), "f4"), gl.GridLayout((6, 6), grid=(1, 3)), device)
    with pytest.raises(gl.LayoutError, match=r"core_map .*\(2, 2\)"):
        STATED[name](x, gl.GridLayout((6, 6), grid=refused))


def test_a_rule_without_a_place_falls_back_and_the_report_says_so(monkeypatch):
    device, refused = odd("rows of three"), ODD["rows of three"][2]

    def sine(b, op, x):
        b.device.placement(refused)

    monkeypatch.setitem(RECORDS, "sin", replace(RECORDS["sin"], rules=(sine,)))
    x = gl.put(np.ones((6, 7), "f4"), gl.GridLayout((6, 7), grid=(1, 3)), device)
    (row,) = gl.on_grid(lambda x: jnp.sin(x)).report(x).rows
    assert (row.how, row.note) == ("fallback", "the core_map places no grid that its rule needs")
    np.testing.assert_allclose(np.asarray(gl.on_grid(lambda x: jnp.sin(x))(x)), np.sin(1.0), 1e-6)


def test_all_orders_of_four_devices_are_placed_where_they_are_named():
    for order in permutations(range(4)):
        steps = [b - a for a, b in pairwise(order)]
        terms = "".join(f" + ((d0 + {4 - k}) floordiv 4) * {n}" for k, n in enumerate(steps, 1))
        device = gl.DeviceGrid((4,), core_map=f"(d0) -> ({order[0]}{terms} + (d0 floordiv 4) * 9)")
        placed((4,), device)
        assert [device.core_map((4,))(k)[0] for k in range(4)] == list(order)


def test_a_mesh_in_use_has_the_devices_in_the_maps_order():
    device = gl.DeviceGrid((2, 4), core_map="(d0, d1) -> (-d0 + 1, -d1 + 3)")
    x = gl.put(np.arange(64, dtype="f4").reshape(8, 8), gl.GridLayout((8, 8), grid=(2, 4)), device)
    with jax.set_mesh(jax.make_mesh((4, 2), ("p", "q"))):
        for fn in (gl.on_grid(lambda x: x + 1), lambda x: gl.relayout(x, x.layout), gl.nn.relu):
            with pytest.raises(gl.LayoutError, match="in another order"):
                fn(x)
    with jax.set_mesh(jax.sharding.Mesh(device.fine.devices.reshape(4, 2), ("p", "q"))):
        assert (np.asarray(gl.on_grid(lambda x: x + 1)(x)) == np.asarray(x) + 1).all()
