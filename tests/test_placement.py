"""Which device holds which core: the bytes are where `DeviceGrid.core_map` says, on any mesh."""

import copy
import io
import itertools
import math
import os
import pickle
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from laid_out import assert_same, packed
from processes import run_alone
from tiers import examples, few

import gridlayout as gl
from gridlayout.ops.array.in_parts import Held

ROOT = Path(__file__).parents[1]
MESHES = [(2, 4), (8,), (4, 2), (2, 2, 2), (1,), (3, 2), (5,), (1, 8, 1)]
GRIDS = [
    *[(1,), (3,), (8,), (64,)],
    *[(1, 1), (3, 2), (2, 4), (4, 2), (8, 8), (1, 64), (5, 7), (7, 1)],
    *[(2, 2, 2), (3, 1, 2), (1, 1, 8)],
    *[(2, 3, 1, 2), (2, 2, 2, 2)],
]


def uneven(grid):
    """A layout on this grid that no dim of more than one core divides evenly."""
    shape = tuple(max(2 * g - 1, 1) for g in grid)
    return gl.GridLayout(shape, "int32", grid, collapse=[])


def numbered(layout):
    return np.arange(1, layout.size + 1, dtype="int32").reshape(layout.shape)


def shards(array):
    return {shard.device: np.asarray(shard.data) for shard in array.addressable_shards}


def assert_placed(x, expected, device):
    """Every core's buffer is on the device that `core_map` names, at the place it names there.

    x: placed; expected: its physical array. Gives the devices that hold a core.
    """
    grid = x.layout.core_shape
    core_map = device.core_map(grid)
    held = shards(x.storage)
    busy = set()
    places = set()
    for core in np.ndindex(*grid):
        place = core_map(*core)
        assert place not in places, f"two cores at {place}"
        places.add(place)
        at, inside = place[: len(device.shape)], place[len(device.shape) :]
        holder = device.mesh.devices[at]
        busy.add(holder)
        np.testing.assert_array_equal(held[holder][inside], expected[core], err_msg=f"core {core}")
    return busy


@pytest.mark.few(4)
@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_every_core_is_on_the_device_that_core_map_names(mesh):
    device = gl.DeviceGrid(mesh)
    assert (device.shape, device.size) == (mesh, math.prod(mesh))
    assert list(device.mesh.devices.flat) == jax.devices()[: device.size]
    for grid in GRIDS:
        layout = uneven(grid)
        x = gl.put(numbered(layout), layout, device)
        expected = packed(numbered(layout), layout, 0)
        assert_placed(x, expected, device)
        assert x.sharding.is_equivalent_to(device.sharding(layout), x.storage.ndim)
        assert x.storage.shape == device.storage_shape(layout)
        assert set(shards(x.storage)) == set(device.mesh.devices.flat)
        # The same map places data that comes from a device, and data laid out elsewhere.
        assert_placed(gl.from_physical(expected, layout, device), expected, device)


@settings(max_examples=examples(150))
@given(
    st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=3)
    .map(tuple)
    .filter(lambda mesh: math.prod(mesh) <= 8),
    st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple),
)
def test_core_map_gives_each_core_its_own_slot(mesh, grid):
    device = gl.DeviceGrid(mesh)
    placement, core_map = device.placement(grid), device.core_map(grid)
    places = [core_map(*core) for core in np.ndindex(*grid)]
    assert len(set(places)) == math.prod(grid)
    for place in places:
        at, inside = place[: len(mesh)], place[len(mesh) :]
        assert all(0 <= i < n for i, n in zip(at, mesh, strict=True))
        assert all(0 <= i < n for i, n in zip(inside, placement.per_device, strict=True))
    # The slots hold the grid, no device's share of a dim is needlessly large, and nothing beats
    # the fair share.
    along = [s // p for s, p in zip(placement.slots, placement.per_device, strict=True)]
    for g, slots, per_device, n in zip(
        grid, placement.slots, placement.per_device, along, strict=True
    ):
        assert slots == per_device * n >= g
        assert per_device == -(-g // n)
    assert math.prod(along) <= device.size
    assert math.prod(placement.per_device) >= -(-math.prod(grid) // device.size)


SPREAD = [
    # mesh, grid, devices that hold cores, cores on the fullest device, idle slots
    ((2, 4), (3, 2), 6, 1, 2),
    ((2, 4), (2, 4), 8, 1, 0),
    ((2, 4), (4, 2), 8, 1, 0),
    ((2, 4), (8, 8), 8, 8, 0),
    ((2, 4), (1, 64), 8, 8, 0),
    ((2, 4), (64,), 8, 8, 0),
    ((2, 4), (1,), 1, 1, 0),
    ((2, 4), (3,), 3, 1, 1),
    ((2, 4), (2, 2, 2), 8, 1, 0),
    ((8,), (2, 4), 8, 1, 0),
    ((8,), (2, 2, 2), 8, 1, 0),
    ((8,), (3, 2), 6, 1, 2),
    ((8,), (3,), 3, 1, 1),
    ((4, 2), (2, 4), 8, 1, 0),
    ((2, 2, 2), (4, 2), 8, 1, 0),
    ((2, 2, 2), (8,), 8, 1, 0),
    ((1,), (3, 2), 1, 6, 0),
]


@pytest.mark.parametrize(("mesh", "grid", "busy", "cores", "idle"), SPREAD)
def test_grids_spread_over_the_mesh(mesh, grid, busy, cores, idle):
    device = gl.DeviceGrid(mesh)
    layout = uneven(grid)
    x = gl.put(numbered(layout), layout, device)
    assert len(assert_placed(x, packed(numbered(layout), layout, 0), device)) == busy
    # Memory: no device holds more than its cores' buffers, in elements.
    buffer = math.prod(layout.local_shape)
    assert {held.size for held in shards(x.storage).values()} == {cores * buffer}
    slots = math.prod(x.storage.shape) // buffer
    assert slots - math.prod(grid) <= idle


def test_f32_5_7_on_a_2x4_mesh_just_works():
    # What NamedSharding refuses (design, "Who it is for").
    device = gl.DeviceGrid((2, 4))
    a = np.arange(35, dtype="f4").reshape(5, 7)
    with pytest.raises(ValueError, match="should evenly divide"):
        jax.device_put(a, jax.NamedSharding(device.mesh, jax.P("x", "y")))
    x = gl.put(a, gl.GridLayout((5, 7), "float32", (2, 4)), device)
    np.testing.assert_array_equal(np.asarray(x), a)
    assert {held.shape for held in shards(x.storage).values()} == {(1, 1, 3, 2)}
    assert x.nbytes == 2 * 4 * 3 * 2 * 4


# -- what a GridArray is ----------------------------------------------------------------------


@pytest.fixture(name="device")
def fixture_device():
    return gl.DeviceGrid((2, 4))


A = np.arange(35, dtype="f4").reshape(5, 7)
LAYOUT = gl.GridLayout((5, 7), "float32", (3, 2), (2, 2))


@pytest.fixture(name="x")
def fixture_x(device):
    return gl.put(A, LAYOUT, device)


def test_the_parts_of_a_grid_array(x, device):
    assert (x.shape, x.dtype, x.ndim, x.size, len(x)) == ((5, 7), np.float32, 2, 35, 5)
    assert (x.layout, x.device) == (LAYOUT, device)
    assert x.nbytes == LAYOUT.nbytes
    assert x.sharding == x.storage.sharding
    assert repr(x) == "GridArray(float32[5,7], grid 3x2, tile 2x2, on 2x4 devices)"
    physical = x.physical
    assert isinstance(physical, jax.Array)
    assert physical.shape == LAYOUT.physical_shape == (3, 2, 1, 2, 2, 2)
    np.testing.assert_array_equal(physical, packed(A, LAYOUT, 0))
    # One shard a device: 3x2 cores on 2x4 devices leave 2 slots idle.
    assert math.prod(x.storage.shape[:2]) == 8
    logical = x.to_logical()
    assert isinstance(logical, jax.Array)
    assert logical.sharding.is_fully_replicated
    assert len(logical.sharding.device_set) == 8
    np.testing.assert_array_equal(logical, A)


@pytest.mark.few(1)
@pytest.mark.parametrize("grid", few([(3, 2), (2, 4), (7, 1), (4, 2)], 2))
def test_the_logical_array_is_differentiated_and_mapped_over(grid, device):
    layout = gl.GridLayout((5, 7), grid=grid, tile=(2, 2), oob=np.nan)
    weights = np.random.default_rng(0).normal(size=(3, 5, 7)).astype(np.float32)
    x = gl.put(A, layout, device)

    def weighted(x, w):
        return (x.to_logical() * w).sum()

    # Exact, whatever the number of devices.
    np.testing.assert_array_equal(jax.grad(weighted)(x, weights[0]).to_logical(), weights[0])
    many = jax.vmap(lambda w: gl.put(w, layout, device).to_logical())(weights)
    np.testing.assert_array_equal(many, weights)
    value, tangent = jax.jvp(lambda x: x.to_logical(), (x,), (gl.put(weights[0], layout, device),))
    np.testing.assert_array_equal(value, A)
    np.testing.assert_array_equal(tangent, weights[0])


def test_numpy_reads_the_logical_array(x):
    assert np.asarray(x).dtype == np.float32
    np.testing.assert_array_equal(np.asarray(x), A)
    np.testing.assert_array_equal(np.array(x, "int32"), A.astype("int32"))
    with pytest.raises(ValueError, match="copy"):
        np.array(x, copy=False)


def test_idle_slots_and_padding_hold_the_oob(device):
    for oob in (0, 1, -np.inf, 2.5):
        x = gl.put(A, LAYOUT.with_oob(oob), device)
        np.testing.assert_array_equal(x.physical, packed(A, LAYOUT, oob))
        storage = np.array(x.storage)
        storage[tuple(map(slice, LAYOUT.physical_shape))] = oob
        np.testing.assert_array_equal(storage, np.full_like(storage, oob))


def test_what_idle_slots_hold_reaches_no_result(device):
    layout = LAYOUT.with_oob(None)
    x = gl.put(A, layout, device)
    storage = np.full(x.storage.shape, np.nan, "f4")
    storage[tuple(map(slice, layout.physical_shape))] = packed(A, layout, np.nan)
    poisoned = gl.GridArray(jax.device_put(storage, x.sharding), layout, device)
    np.testing.assert_array_equal(np.asarray(poisoned), A)
    assert_same(gl.numpy.sum(poisoned), jnp.sum(A))
    assert_same(gl.numpy.max(poisoned, axis=0), jnp.max(A, axis=0))
    assert_same(poisoned @ poisoned.T, jnp.asarray(A @ A.T))
    other = gl.relayout(poisoned, gl.GridLayout((5, 7), "float32", (2, 4)))
    np.testing.assert_array_equal(np.asarray(other), A)


def test_from_physical_wraps_data_with_any_padding(device):
    for layout in (LAYOUT, LAYOUT.with_oob(0)):
        for garbage in (np.nan, np.inf, -1.0):
            physical = packed(A, layout, garbage)
            for given_physical in (physical, jnp.asarray(physical)):
                x = gl.from_physical(given_physical, layout, device)
                assert x.layout.oob is None
                np.testing.assert_array_equal(x.physical, physical)
                np.testing.assert_array_equal(np.asarray(x), A)
                known = x.with_oob(3)
                assert known.layout.oob == 3
                np.testing.assert_array_equal(known.physical, packed(A, layout, 3))


def test_data_committed_elsewhere_comes_to_the_mesh(device):
    small = gl.DeviceGrid((2,))
    committed = jax.device_put(jnp.asarray(A), jax.devices()[5])
    x = gl.put(committed, LAYOUT, small)
    assert x.sharding.device_set == set(jax.devices()[:2])
    np.testing.assert_array_equal(np.asarray(x), A)
    y = gl.put(x.to_logical(), LAYOUT, device)
    assert y.sharding.device_set == set(jax.devices()[:8])
    np.testing.assert_array_equal(np.asarray(gl.from_physical(x.physical, LAYOUT, device)), A)


REFUSED = {
    "shape": (lambda d: gl.put(A.T, LAYOUT, d), r"\(7, 5\).*\(5, 7\)"),
    "dtype": (lambda d: gl.put(A.astype("int32"), LAYOUT, d), "int32.*float32.*astype"),
    "device dtype": (lambda d: gl.put(jnp.asarray(A, "bfloat16"), LAYOUT, d), "bfloat16.*float32"),
    "layout": (
        lambda d: gl.put(A, (5, 7), d),
        r"layouts: 5 at '0' must be a gl.Layout",
    ),
    "device": (lambda d: gl.put(A, LAYOUT, "cpu"), "device 'cpu' must be a gl.DeviceGrid"),
    "put twice": (lambda d: gl.put(gl.put(A, LAYOUT, d), LAYOUT, d), "gl.relayout"),
    "physical shape": (lambda d: gl.from_physical(A, LAYOUT, d), r"\(5, 7\).*\(3, 2, 1, 2, 2, 2\)"),
    "relayout shape": (
        lambda d: gl.relayout(gl.put(A, LAYOUT, d), gl.GridLayout((7, 5), grid=(1, 1))),
        "relayout keeps shape and dtype.*reshape",
    ),
    "relayout plain": (
        lambda d: gl.relayout(A, LAYOUT),
        "GridArray or a tree of them, not ndarray; gl.put",
    ),
    "too large": (
        lambda d: gl.DeviceGrid((3, 4)),
        r"\(3, 4\) needs 12 devices.*8.*emulate_devices",
    ),
    "two axes of one name": (
        lambda d: gl.DeviceGrid(Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("2", 2))),
        "two axes of the mesh have one name: 2, 2",
    ),
    "empty mesh": (lambda d: gl.DeviceGrid(()), "at least one"),
    "zero": (lambda d: gl.DeviceGrid((2, 0)), ">= 1"),
    "negative": (lambda d: gl.DeviceGrid((-2,)), ">= 0|>= 1"),
    "a float": (lambda d: gl.DeviceGrid((2.0, 4)), "whole numbers"),
    "an int": (lambda d: gl.DeviceGrid(9), "needs 9 devices"),
    "emulate none": (lambda d: gl.emulate_devices(0), "whole number >= 1"),
    "emulate half": (lambda d: gl.emulate_devices(2.5), r"count .* 2\.5 must be a whole number"),
    "emulate True": (lambda d: gl.emulate_devices(True), "count .* True must be a whole number"),
    # said of the devices that are, or, where a test before this one asked, of what it asked for
    "emulate late": (
        lambda d: gl.emulate_devices(7),
        r"(already started, with|earlier call requested) 8 ",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_the_value_and_the_fix(device, call, message):
    with pytest.raises(gl.LayoutError, match=message):
        call(device)


def test_emulating_the_same_count_again_changes_nothing():
    assert gl.emulate_devices(len(jax.devices())) == jax.devices()


# -- meshes of the user's own -----------------------------------------------------------------

AXIS_TYPES = {
    "Auto": (AxisType.Auto, AxisType.Auto),
    "Explicit": (AxisType.Explicit, AxisType.Explicit),
    "mixed": (AxisType.Explicit, AxisType.Auto),
}


def steps(device, mesh):
    """Every way in, through and out; each gives the array that it should be, to compare."""
    layout = gl.GridLayout((5, 7), "float32", (3, 2))
    other = gl.GridLayout((5, 7), "float32", (2, 4))
    even = gl.GridLayout((2, 4), "float32", (2, 2))
    x = gl.put(A, layout, device)
    b = np.arange(8, dtype="f4").reshape(2, 4)
    user = jax.device_put(b, jax.NamedSharding(mesh, jax.P(*mesh.axis_names)))
    y = gl.put(b, even, device)
    stack = gl.put(np.stack([A, A]), gl.GridLayout((2, *A.shape), "float32", layout.grid), device)
    return {
        "asarray": lambda: (x, A),
        "physical": lambda: (x.physical, packed(A, layout, 0)),
        "put numpy": lambda: (gl.put(A, layout, device), A),
        "put jax": lambda: (gl.put(jnp.asarray(A), layout, device), A),
        "put the user's shards": lambda: (gl.put(user, even, device), b),
        "put in jit": lambda: (jax.jit(lambda u: gl.put(u, even, device))(user), b),
        "pack the user's shards": lambda: (gl.pack(user, even), packed(b, even, 0)),
        "from_physical": lambda: (gl.from_physical(x.physical, layout, device), A),
        "relayout": lambda: (gl.relayout(x, other), A),
        "add": lambda: (x + x, A + A),
        "add numpy": lambda: (x + A, A + A),
        "add jax": lambda: (x + jnp.asarray(A), A + A),
        "add the user's shards": lambda: (y + user, b + b),
        "matmul": lambda: (x @ x.T, A @ A.T),
        "sum": lambda: (gl.numpy.sum(x, axis=1), A.sum(1)),
        "fallback": lambda: (gl.numpy.cumsum(x, axis=1), A.cumsum(1)),
        "jit": lambda: (jax.jit(lambda x: x * 2)(x), A * 2),
        "grad": lambda: (jax.grad(lambda x: gl.numpy.sum(x * x))(x), A * 2),
        "jit grad": lambda: (jax.jit(jax.grad(lambda x: gl.numpy.sum(x * x)))(x), A * 2),
        "scan": lambda: (jax.lax.scan(lambda c, _: (c * 2, None), x, None, length=2)[0], A * 4),
        "vmap": lambda: (jax.vmap(lambda x: x * 2)(stack), np.stack([A * 2] * 2)),
        "report": lambda: (np.asarray(len(gl.on_grid(jnp.exp).report(x).rows)), np.asarray(1)),
    }


UNSUPPORTED = ("pack the user's shards",)
STEPS = list(steps(gl.DeviceGrid((2, 4)), gl.DeviceGrid((2, 4)).mesh))


@pytest.mark.few(36)
@pytest.mark.parametrize("is_set", [False, True], ids=["", "set_mesh"])
@pytest.mark.parametrize("types", AXIS_TYPES.values(), ids=AXIS_TYPES)
@pytest.mark.parametrize("step", STEPS)
def test_users_meshes(types, is_set, step):
    mesh = jax.make_mesh((2, 4), ("rows", "columns"), axis_types=types)
    device = gl.DeviceGrid(mesh)
    run = steps(device, mesh)[step]
    explicit = AxisType.Explicit in types
    if explicit and (step == "put in jit" or (is_set and step in UNSUPPORTED)):
        # docs/limits.md: JAX takes no array of another mesh under a set Explicit one.
        with jax.set_mesh(mesh) if is_set else nullcontext(), pytest.raises(ValueError):  # noqa: PT011
            run()
        return
    if is_set:
        with jax.set_mesh(mesh):
            found, expected = run()
            found = np.asarray(found)
    else:
        found, expected = run()
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


@pytest.mark.parametrize("types", AXIS_TYPES.values(), ids=AXIS_TYPES)
def test_other_devices_are_used_while_a_mesh_is_set(types):
    """JAX itself runs no program on devices of another number than those of the mesh set."""
    a = np.arange(35, dtype=np.float32).reshape(5, 7)
    shape = jax.ShapeDtypeStruct((64, 64), "float32")
    with jax.set_mesh(jax.make_mesh((2, 4), ("rows", "columns"), axis_types=types)):
        for device in (gl.DeviceGrid((2, 2)), gl.DeviceGrid(1)):
            x = gl.put(a, gl.GridLayout(a.shape, grid=(3, 1)), device)
            found = gl.on_grid(jax.grad(lambda x: jnp.sum(jnp.exp(x))))(x + 1)
            np.testing.assert_allclose(np.asarray(found), np.exp(a + 1), rtol=1e-6)
        assert gl.simulate(jnp.exp, shape, machine="v5e 4x4").time > 0
        assert gl.plan(jnp.exp, shape, machine="v5e 4x4").layouts
        assert jax.sharding.get_mesh().size == 8


def test_a_users_mesh_places_as_its_axes_say():
    devices = np.array(jax.devices()[:8])[::-1].reshape(4, 2)
    device = gl.DeviceGrid(Mesh(devices, ("data", "model")))
    assert device.shape == (4, 2)
    assert (device.mesh.devices == devices).all()
    for grid in ((4, 2), (2, 4), (3, 2), (8,)):
        layout = uneven(grid)
        x = gl.put(numbered(layout), layout, device)
        assert_placed(x, packed(numbered(layout), layout, 0), device)
    assert repr(device) == "DeviceGrid(data=4, model=2, cpu)"


@pytest.mark.parametrize("types", [AxisType.Auto, AxisType.Explicit])
def test_a_mesh_stands_for_its_device_grid(types, tmp_path):
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(types,) * 2)
    device = gl.DeviceGrid(mesh)
    x = gl.put(A, LAYOUT, mesh)
    made = [
        *(x, gl.put(A, mesh), gl.put({"a": A}, device=mesh)["a"]),
        gl.put_local(lambda box: A[box], LAYOUT, mesh),
        gl.from_physical(np.asarray(x.physical), LAYOUT, mesh),
        gl.relayout(gl.put(A, LAYOUT, gl.DeviceGrid((8,))), LAYOUT, mesh),
        *(gl.on_grid(jnp.copy, mesh)(A), gl.on_grid(device=mesh)(jnp.copy)(A)),
    ]
    gl.save(tmp_path / "step", {"a": x})
    made += [gl.restore(tmp_path / "step", mesh)["a"]]
    for each in made:
        assert each.device == device
        np.testing.assert_array_equal(np.asarray(each), A)
    assert gl.fill_devices((5, 7), "float32", None, mesh) == gl.put(A, device).layout
    rows = gl.GridLayout((5, 7), grid=(4, 1))
    plans = [gl.relayout_plan(LAYOUT, rows, each) for each in (mesh, device)]
    assert str(plans[0]) == str(plans[1])
    assert LAYOUT.draw("fold", device=mesh).svg == LAYOUT.draw("fold", device=device).svg
    assert gl.put(jax.ShapeDtypeStruct((5, 7), "float32"), AbstractMesh((3, 5), ("a", "b"))).shape


# -- shardings of JAX ------------------------------------------------------------------------------

# a mesh, a spec on it, and whether its axes differ in size: then the same axes divide the same dims
SPECS = [
    ((4, 2), P("data", "model"), True),
    ((4, 2), P(None, "data"), True),
    ((4, 2), P("model"), True),
    ((4, 2), P(("data", "model")), True),
    ((2, 2), P("model", "data"), False),
    ((4, 2), P("model", "data"), True),
    ((3, 2), P("data", None), True),
]


@pytest.mark.parametrize(("sizes", "spec", "is_told"), SPECS)
@pytest.mark.parametrize("shape", [(53, 63), (24, 16), (12, 24, 5)])
def test_the_layout_of_a_sharding_and_back(sizes, spec, is_told, shape):
    mesh = Mesh(np.array(jax.devices()[: math.prod(sizes)]).reshape(sizes), ("data", "model"))
    sharding = NamedSharding(mesh, spec)
    layout = gl.GridLayout.of(shape, sharding)
    # Blocks are as JAX's own, of the shape rounded up to the mesh.
    entries = (*spec, *(None,) * (len(shape) - len(spec)))
    parts = [math.prod(mesh.shape[a] for a in ((e,) if isinstance(e, str) else e or ()))
             for e in entries]  # fmt: skip
    assert layout.shard_shape == tuple(-(-n // k) for n, k in zip(shape, parts, strict=True))
    assert layout.core_shape == tuple(parts)
    if any(n % k for n, k in zip(shape, parts, strict=True)):
        with pytest.raises(
            gl.LayoutError, match=r"no NamedSharding on .*(are equal|gives each device one box)"
        ):
            layout.named_sharding(mesh)
        return
    found = layout.named_sharding(mesh)
    assert gl.GridLayout.of(shape, found) == layout
    if is_told:
        assert found.is_equivalent_to(sharding, len(shape))
    array = np.arange(math.prod(shape), dtype="f4").reshape(shape)
    x = gl.put(array, sharding)
    assert x.layout == layout
    assert x.to_logical(found).sharding == found


def held_boxes(layout, device):
    """The logical indices of the elements that each device holds, by loops."""
    to_device, rank = device.core_map(layout.core_shape), len(device.shape)
    found = {}
    for index in np.ndindex(layout.shape):
        place = to_device(*layout.locate(index).core)[:rank]
        found.setdefault(device.mesh.devices[place], set()).add(index)
    return found


@pytest.mark.parametrize(
    "layout",
    [
        gl.GridLayout((4, 3, 8), grid=(2, 4)),
        gl.GridLayout((12, 8), grid=(2, 2), tile=(4, 4)),
        gl.GridLayout((12, 8), grid=(6, 2), tile=(4, 4)),
        gl.GridLayout((8, 16), linear="(d0, d1) -> (d1, d0)", grid=(4, 2)),
        gl.GridLayout((4, 6), grid=(1, 1)),
        gl.GridLayout((16,), grid=(8,)),
        gl.xla.layout((8, 16), "float32", (0, 1)),
    ],
)
@pytest.mark.parametrize("sizes", [(2, 4), (8,), (2, 2, 2), (3,)])
def test_a_named_sharding_gives_each_device_what_it_holds(layout, sizes):
    device = gl.DeviceGrid(sizes)
    held = held_boxes(layout, device)
    try:
        found = layout.named_sharding(device)
    except gl.LayoutError:  # some devices hold more than others, or nothing
        counts = [len(elements) for elements in held.values()]
        assert len(counts) < device.size or len(set(counts)) > 1
        return
    index = found.devices_indices_map(layout.shape)
    for each, elements in held.items():
        ranges = (range(*s.indices(n)) for s, n in zip(index[each], layout.shape, strict=True))
        assert set(itertools.product(*ranges)) == elements


@pytest.mark.parametrize(
    ("layout", "device", "says"),
    [
        (
            gl.GridLayout((5, 8), grid=(2, 4)),
            (2, 4),
            "device 4 holds 2x2 elements and device 0 3x2",
        ),
        (gl.GridLayout((2, 3, 8), grid=(4, 2)), (4, 2), "device 2 holds 2 boxes"),
        (gl.GridLayout((1, 8), grid=(2, 2)), (2, 2), "device 2 holds no boxes of elements"),
    ],
)
def test_layouts_that_have_no_named_sharding_say_why(layout, device, says):
    with pytest.raises(gl.LayoutError, match=says):
        layout.named_sharding(gl.DeviceGrid(device))


def test_a_named_sharding_follows_the_core_map():
    text = "(d0) -> (d0 floordiv 4, (d0 + d0 floordiv 4) mod 4)"
    device, layout = gl.DeviceGrid((2, 4), core_map=text), gl.GridLayout((16,), grid=(8,))
    found = layout.named_sharding(device).devices_indices_map((16,))
    for each, elements in held_boxes(layout, device).items():
        assert {(k,) for k in range(*found[each][0].indices(16))} == elements
    reverse = gl.GridLayout((16,), grid=(8,), linear="(d0) -> (d0 * -1 + 15)")
    with pytest.raises(gl.LayoutError, match="order of no mesh axes"):
        reverse.named_sharding(device)


def test_factors_of_one_axis_are_not_named_as_another_axis():
    for names in (("x", "x0"), ("x0", "x")):
        devices = np.array(jax.devices()[:8]).reshape((4, 2)[:: 1 if names[0] == "x" else -1])
        device = gl.DeviceGrid(Mesh(devices, names))
        assert len({*device.fine.axis_names}) == 3
        for grid in ((8,), (4, 2), (2, 4), (2, 2, 2)):
            layout = uneven(grid)
            x = gl.put(numbered(layout), layout, device)
            assert len(assert_placed(x, packed(numbered(layout), layout, 0), device)) == 8


def test_device_grids_compare_by_their_mesh():
    assert gl.DeviceGrid((2, 4)) == gl.DeviceGrid((2, 4))
    assert hash(gl.DeviceGrid((2, 4))) == hash(gl.DeviceGrid((2, 4)))
    assert gl.DeviceGrid((2, 4)) != gl.DeviceGrid((4, 2))
    assert gl.DeviceGrid((2, 4)) != gl.DeviceGrid((8,))
    mesh = gl.DeviceGrid((2, 4)).mesh
    assert gl.DeviceGrid(mesh) == gl.DeviceGrid((2, 4))
    assert gl.DeviceGrid((2, 4)) != mesh


# -- a GridArray is a value of JAX -------------------------------------------------------------


def test_tree_functions_see_the_logical_array(x):
    doubled = jax.tree.map(lambda leaf: leaf * 2, {"w": x})["w"]
    assert isinstance(doubled, gl.GridArray)
    assert (doubled.layout.with_oob(None), doubled.device) == (x.layout.with_oob(None), x.device)
    np.testing.assert_array_equal(np.asarray(doubled), A * 2)
    (leaf,) = jax.tree.leaves(x)
    assert leaf is x
    assert sum(leaf.size for leaf in jax.tree.leaves({"w": x, "b": x})) == 2 * A.size
    ((path, _),) = jax.tree_util.tree_leaves_with_path({"w": x})
    assert jax.tree_util.keystr(path) == "['w']"
    assert jax.tree.unflatten(jax.tree.structure(x), [leaf]) is x


def test_grid_arrays_go_through_jit_and_keep_their_place(x, device):
    traced = []

    @jax.jit
    def step(tree):
        traced.append(1)
        return {"x": tree["x"], "y": tree["x"] + tree["k"]}

    for k in (1.0, 2.0, 3.0):
        out = step({"x": x, "k": k})
        np.testing.assert_array_equal(np.asarray(out["y"]), A + k)
        assert out["x"].layout == x.layout
        assert out["y"].layout.same_physical(x.layout)
        assert out["y"].sharding.is_equivalent_to(device.sharding(x.layout), x.storage.ndim)
    assert len(traced) == 1
    shapes = jax.eval_shape(step, {"x": x, "k": 1.0})
    assert (shapes["y"].shape, shapes["y"].layout) == (x.shape, x.layout.with_oob(None))
    compiled = step.lower({"x": x, "k": 1.0}).compile()
    np.testing.assert_array_equal(np.asarray(compiled({"x": x, "k": 2.0})["y"]), A + 2)


def test_vmap_maps_a_logical_dim(x, device):
    values = np.stack([A, A * 2, A * 3])
    stack = gl.put(values, gl.GridLayout(values.shape, "float32", (3, 2), (2, 2)), device)
    out = jax.vmap(lambda x: gl.numpy.sum(x * x, axis=1))(stack)
    np.testing.assert_allclose(np.asarray(out), (values * values).sum(2), rtol=1e-6)
    rows = jax.vmap(lambda x: x.shape[0] * x, in_axes=1, out_axes=0)(stack)
    np.testing.assert_array_equal(np.asarray(rows), np.moveaxis(values, 1, 0) * 3)
    product = jax.vmap(lambda a, b: a @ b.T, in_axes=(0, None))(stack, x)
    np.testing.assert_allclose(np.asarray(product)[1], A @ A.T * 2, rtol=1e-6)
    put = jax.vmap(lambda a: gl.put(a, LAYOUT, device))(jnp.stack([A, -A]))
    np.testing.assert_array_equal(np.asarray(put), np.stack([A, -A]))
    assert put.shape == (2, *A.shape)


def test_scan_stacks_grid_arrays(x):
    def step(c, _):
        return c * 2, c

    stack = jax.lax.scan(step, x, length=3)[1]
    assert stack.shape == (3, *A.shape)
    np.testing.assert_array_equal(np.asarray(stack), np.stack([A, A * 2, A * 4]))
    total = jax.lax.scan(lambda c, x: (c + gl.numpy.sum(x), None), 0.0, stack, length=3)[0]
    np.testing.assert_allclose(total, A.sum() * 7, rtol=1e-6)
    for run in (gl.numpy.exp, lambda x: gl.relayout(x, LAYOUT), jax.vmap(lambda x: x * 2)):
        with pytest.raises(gl.LayoutError, match=r"lax\.scan.*gl\.on_grid"):
            run(stack)


@pytest.mark.few(3)
@pytest.mark.parametrize("oob", [None, 0, 1])
@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_grid_arrays_are_carries(device, oob, jit):
    x = gl.put(A, LAYOUT.with_oob(oob), device)

    def run(x):
        scanned, sums = jax.lax.scan(lambda c, k: (c * k + 1, gl.numpy.sum(c)), x, jnp.arange(3.0))
        looped = jax.lax.fori_loop(0, 2, lambda _, c: c + c, x)
        waited = jax.lax.while_loop(lambda c: gl.numpy.sum(c) < 1e4, lambda c: c * 2, x)
        chosen = jax.lax.cond(gl.numpy.sum(x) > 0, lambda c: c - 1, lambda c: c, x)
        return scanned, sums, looped, waited, chosen

    scanned, sums, looped, waited, chosen = (jax.jit(run) if jit else run)(x)
    a = A
    for k, total in zip(range(3), np.asarray(sums), strict=True):
        np.testing.assert_allclose(total, a.sum(), rtol=1e-6)
        a = a * k + 1
    np.testing.assert_array_equal(np.asarray(scanned), a)
    np.testing.assert_array_equal(np.asarray(looped), A * 4)
    np.testing.assert_array_equal(np.asarray(waited), A * 32)
    np.testing.assert_array_equal(np.asarray(chosen), A - 1)


def test_chex_assertions_take_grid_arrays(x, device):
    tree, same = {"w": x}, {"w": gl.put(A.copy(), LAYOUT, device)}
    chex.assert_trees_all_close(tree, same)
    chex.assert_trees_all_equal_structs(tree, same)
    chex.assert_trees_all_equal_shapes_and_dtypes(tree, same)
    with pytest.raises(ValueError, match=r"gl\.numpy\.isfinite"):
        chex.assert_tree_all_finite(tree)
    with pytest.raises(AssertionError):
        chex.assert_trees_all_close(tree, {"w": x + 1})
    # What is compared is the logical tensor, in whatever layout.
    chex.assert_trees_all_close(tree, {"w": gl.relayout(x, gl.GridLayout((5, 7), grid=(2, 4)))})


SHAPES = [(5, 7), (53, 63), (2000,), (7, 300), (8, 301), (30, 3, 40), (0, 4), (1,)]
TYPES = ["int8", "bool", "bfloat16", "complex64"]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [*((shape, "float32") for shape in SHAPES), *(((53, 63), dtype) for dtype in TYPES)],
)
def test_printed_arrays_show_the_values_of_numpys(shape, dtype, device):
    array = np.random.default_rng(0).normal(size=shape) * 9
    array = (array > 0) if dtype == "bool" else array.astype(jnp.dtype(dtype))
    x = gl.put(array, gl.GridLayout(shape, dtype, grid=(3, 2)[-len(shape) :]), device)
    values, _, last = str(x).rpartition("\n")
    assert last == repr(x)
    assert "\n" not in last
    assert values == str(array)
    with np.printoptions(threshold=3, edgeitems=1, precision=2):
        assert str(x) == f"{array}\n{x!r}"


def test_large_arrays_are_printed_from_their_edges(monkeypatch, device):
    x = gl.put(np.ones((600, 500), "f4"), gl.GridLayout((600, 500), grid=(3, 2)), device)
    read = []
    old = Held.read
    monkeypatch.setattr(Held, "read", lambda self, box: read.append(box) or old(self, box))
    assert str(x).startswith("[[1. 1. 1. ... 1. 1. 1.]")
    assert sum(math.prod(high - low for low, high in box) for box in read) == 36
    described = gl.put(jax.ShapeDtypeStruct((600, 500), "float32"), x.layout, device)
    assert str(described) == repr(described)
    assert jax.jit(lambda x: [str(x)] and x)(x).shape == (600, 500)


def test_what_jax_does_not_move_says_what_does(x):
    for call in (lambda: jax.device_put(x), lambda: jax.device_put({"x": x}, jax.devices()[0])):
        with pytest.raises((NotImplementedError, AttributeError), match="device_put") as found:
            call()
        assert "gl.relayout(x, layout, device) moves" in str(found.value)
        assert "x.to_logical(sharding) to a sharding of JAX" in str(found.value)
    rows, spec = gl.put(np.ones((8, 3), "f4"), x.device), jax.sharding.PartitionSpec()
    with pytest.raises((gl.LayoutError, NotImplementedError), match=r"jax\.vmap (maps|instead)"):
        jax.pmap(lambda row: row * 2)(rows)
    mapped = jax.shard_map(lambda x: x, mesh=x.device.mesh, in_specs=spec, out_specs=spec)
    with pytest.raises(gl.LayoutError, match=r"use gl\.map_shards"):
        jax.jit(mapped)(rows)
    with pytest.raises(gl.LayoutError, match=r"jax\.pmap.*or map with jax\.vmap"):
        gl.on_grid(jax.pmap(lambda row: row * 2))(gl.put(np.ones((8, 3), "f4"), x.device))


def test_mismatched_layouts_are_told_in_words(x):
    other = gl.relayout(x, gl.GridLayout((5, 7), "float32", (2, 4)))
    mine, theirs = "GridLayout((5, 7), 'float32', grid=(3, 2), tile=(2, 2))", "grid=(2, 4))"
    for run in (
        lambda: jax.lax.cond(True, lambda: x, lambda: other),
        lambda: jax.lax.scan(lambda c, _: (other, None), x, None, length=2),
    ):
        with pytest.raises((ValueError, TypeError)) as refused:
            run()
        text = str(refused.value)
        assert mine in text
        assert theirs in text
        # What is told is the layouts in one line each, not their steps, maps or arrays.
        assert len(text) < 3000
        assert not re.search(r"0x[0-9a-f]{6}|Pad\(|Split\(", text)


@pytest.mark.parametrize(
    "layout",
    [
        LAYOUT,
        LAYOUT.with_oob(1),
        LAYOUT.with_oob(np.nan),
        gl.GridLayout((5, 7), "bfloat16", (2, 2), linear="(d0, d1) -> (d0 + d1, d1)"),
    ],
    ids=repr,
)
def test_layouts_pickle_and_copy(layout):
    for again in (pickle.loads(pickle.dumps(layout)), copy.copy(layout), copy.deepcopy(layout)):
        assert again == layout
        assert hash(again) == hash(layout)
        assert repr(again) == repr(layout)
        assert again.index_map == layout.index_map
        with pytest.raises(AttributeError, match="frozen"):
            again.oob = 3


@pytest.mark.few(7)
@pytest.mark.parametrize(
    "layout",
    [
        LAYOUT,
        LAYOUT.with_oob(1),
        LAYOUT.replace(memory_space="system"),
        gl.GridLayout((5, 7), "bfloat16", (2, 2), linear="(d0, d1) -> (d0 + d1, d1)"),
        gl.tenstorrent.ttnn((5, 7), "float32", grid=(2, 2)),
        gl.megengine.strided((5, 7), (1, 5), "float32"),
        gl.parse("f32[5,7]{0,1:T(2,4)}"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("core_map", [None, "(d0, d1) -> ((d0 + d1) mod 2, d1 mod 2)"])
def test_arrays_pickle_and_copy(layout, core_map):
    device = gl.DeviceGrid((2, 2), core_map=core_map)
    values = np.linspace(-1, 1, 35).reshape(5, 7).astype(layout.dtype)
    x = gl.put(values, layout, device)
    data = pickle.dumps({"x": x})
    assert len(data) < 2000
    for again in (pickle.loads(data)["x"], copy.deepcopy({"x": x})["x"]):
        assert (again.layout, again.device) == (layout, device)
        assert again.storage is not x.storage
        assert again.sharding.is_equivalent_to(x.sharding, x.storage.ndim)
        np.testing.assert_array_equal(np.asarray(again), values)
        np.testing.assert_array_equal(np.asarray(again + again), values + values)
    # On the host as it is in NumPy.
    np.testing.assert_array_equal(np.asarray(jax.device_get(x)), values)
    file = io.BytesIO()
    np.save(file, np.asarray(jax.device_get(x), "float32"))
    assert copy.deepcopy(device) is device
    assert pickle.loads(pickle.dumps(device)) == device


def test_what_a_pickle_cannot_hold():
    layout = gl.GridLayout((2, 3), grid=(2, 1))
    device = gl.DeviceGrid((2,))
    x = gl.put(np.ones((2, 3), np.float32), layout, device)
    with pytest.raises(gl.LayoutError, match="batch dims"):
        pickle.dumps(gl.GridArray(jnp.stack([x.storage] * 2), layout, device))
    text = run_python(
        "import pickle, gridlayout as gl",
        "gl.emulate_devices(1)",
        "try:",
        f"    pickle.loads({pickle.dumps(x)!r})",
        "except gl.LayoutError as error:",
        "    print(error)",
    )
    assert "device grid (2,) needs 2 devices, but JAX has 1" in text
    again = run_python(
        "import pickle, numpy as np, gridlayout as gl",
        "gl.emulate_devices(4)",
        f"x = pickle.loads({pickle.dumps(x)!r})",
        "print(x.device.size, x.layout, np.asarray(x).sum())",
    )
    assert again.split() == ["2", *str(layout).split(), "6.0"]


# -- other processes --------------------------------------------------------------------------


def run_python(*lines):
    """What a process of its own prints, on CPUs, without flags of XLA."""
    # JAX has read its environment where the process is forked.
    program = ["import jax; jax.config.update('jax_platforms', 'cpu')", *lines]
    done = run_alone("\n".join(program), XLA_FLAGS="")
    assert done.code == 0, done.err[-3000:]
    return done.out


def run_fresh_python(*lines, **environment):
    """What a fresh Python prints, with warnings as errors, those of importing JAX too."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(lines)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_pickled_layout_equals_a_fresh_one_in_another_process():
    # Strings hash differently in every process: a pickled hash would be a wrong one.
    layout = LAYOUT.with_oob(1)
    printed = run_fresh_python(
        "import pickle, gridlayout as gl",
        f"layout = pickle.loads({pickle.dumps(layout)!r})",
        "fresh = gl.GridLayout((5, 7), 'float32', (3, 2), (2, 2), oob=1)",
        "print(layout == fresh, hash(layout) == hash(fresh), layout in {fresh})",
        PYTHONHASHSEED="123",
    )
    assert printed.split() == ["True"] * 3


EMULATE = {
    "twice": ("gl.emulate_devices(3); devices = gl.emulate_devices(3)", "3 3 ok"),
    "one": ("devices = gl.emulate_devices(1)", "1 1 ok"),
    "a number of NumPy": ("import numpy; devices = gl.emulate_devices(numpy.int8(3))", "3 3 ok"),
    "after a start": ("jnp.zeros(3); devices = gl.emulate_devices(3)", "already started"),
    "another count": (
        "gl.emulate_devices(3); devices = gl.emulate_devices(5)",
        "earlier call requested 3 devices",
    ),
}


@pytest.mark.parametrize(("line", "expected"), EMULATE.values(), ids=EMULATE)
def test_emulate_devices(line, expected):
    printed = run_python(
        "import jax, jax.numpy as jnp, gridlayout as gl",
        "try:",
        f"    {line}",
        "    print(len(devices), jax.device_count(), 'ok')",
        "except gl.LayoutError as error:",
        "    print(error)",
    )
    assert expected in printed


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "environment",
    [{}, {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}, {"NPROC": "some"}],
    ids=str,
)
def test_emulate_devices_in_a_fresh_interpreter(environment):
    printed = run_fresh_python(
        "import jax, gridlayout as gl",
        "print(len(gl.emulate_devices(3)), jax.device_count())",
        **{"XLA_FLAGS": "", **environment},
    )
    assert printed.split() == ["3", "3"]


SMALL = """
import warnings, numpy as np, gridlayout as gl
warnings.filterwarnings("ignore", "grid .* cores idle")
count = {count}
devices = gl.emulate_devices(count)
for mesh in {meshes}:
    device = gl.DeviceGrid(mesh)
    a = np.arange(35, dtype="f4").reshape(5, 7)
    for grid in ((3, 2), (8, 8)):
        layout = gl.GridLayout((5, 7), "float32", grid)
        x = gl.put(a, layout, device)
        held = {{s.device: np.asarray(s.data) for s in x.storage.addressable_shards}}
        core_map, physical = device.core_map(grid), np.asarray(gl.pack(a, layout))
        for core in np.ndindex(*grid):
            place = core_map(*core)
            at, inside = place[: len(mesh)], place[len(mesh) :]
            assert (held[device.mesh.devices[at]][inside] == physical[core]).all(), (mesh, core)
        assert (np.asarray(x) == a).all()
    np.testing.assert_allclose(np.asarray(x @ x.T), a @ a.T, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(gl.numpy.sum(x, axis=0)), a.sum(0), rtol=1e-6)
    np.testing.assert_allclose(gl.numpy.sum(x), a.sum(), rtol=1e-6)
try:
    gl.DeviceGrid((count + 1,))
except gl.LayoutError as error:
    assert f"needs {{count + 1}} devices" in str(error)
    print("done")
"""


@pytest.mark.parametrize(
    ("count", "meshes"),
    [
        (1, [(1,), (1, 1)]),
        (4, [(2, 2), (4,)]),
        (16, [(4, 4), (2, 8)]),
        (64, [(8, 8)]),
    ],
)
def test_other_device_counts(count, meshes):
    done = run_alone(SMALL.format(count=count, meshes=meshes))
    assert (done.code, done.out.split()) == (0, ["done"]), done.err[-3000:]


def test_nothing_here_is_vacuous():
    # The tables reach every kind of fold: more cores than devices, fewer, and no even division.
    folds = {
        (math.prod(grid) > math.prod(mesh), math.prod(grid) % math.prod(mesh) == 0)
        for mesh, grid in itertools.product(MESHES, GRIDS)
    }
    assert folds == set(itertools.product([True, False], repeat=2))


def test_a_put_gives_each_device_its_part_and_nothing_else(monkeypatch):
    device_put = jax.device_put

    def checked(arrays, sharding):
        for array in jax.tree.leaves(arrays):
            part = math.prod(sharding.shard_shape(array.shape))
            assert part < 35, "the array must not go whole to any device"
        return device_put(arrays, sharding)

    monkeypatch.setattr(jax, "device_put", checked)
    device = gl.DeviceGrid((2, 4))
    expected = np.arange(35, dtype=np.float32).reshape(5, 7)
    for grid in ((2, 4), (3, 2), (5, 7)):
        layout = gl.GridLayout((5, 7), grid=grid, oob=9)
        for array in (expected, jnp.asarray(expected)):
            x = gl.put(array, layout, device)
            assert {s.data.size for s in x.storage.addressable_shards} == {x.storage.size // 8}
            np.testing.assert_array_equal(np.asarray(x), expected)
            idle = np.ones(x.storage.shape, bool)
            idle[tuple(map(slice, layout.physical_shape))] = layout.padding_mask()
            assert (np.asarray(x.storage)[idle] == 9).all()
