"""Parts of a mesh as device grids of their own, and arrays that move between them."""

import pickle
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, Mesh
from processes import run_together

import gridlayout as gl
from gridlayout.sharding.collectives import Collective

COUNT = len(jax.devices())
MESH = (COUNT // 2, 2) if COUNT % 4 == 0 else (COUNT, 1)
ARRAY = np.arange(53 * 7, dtype=np.float32).reshape(53, 7)
LAYOUT = gl.GridLayout((53, 7), "float32", grid=(3, 2), tile=(4, 4))
needs_halves = pytest.mark.skipif(COUNT % 4 != 0, reason="two halves of two devices each")


def ids(device):
    return np.vectorize(lambda each: each.id)(device.mesh.devices)


INDICES = {
    "rows": np.s_[0:2, :],
    "fewer than axes": np.s_[1:3],
    "a row": np.s_[1],
    "a column": np.s_[:, -1],
    "all": np.s_[...],
    "the last axis": np.s_[..., 0:1],
    "every second": np.s_[::2, 1],
    "backwards": np.s_[::-1, :],
    "NumPy's numbers": (np.int64(1), slice(np.int32(0), 1)),
}


@pytest.mark.parametrize("name", INDICES)
def test_parts_are_those_of_an_array_of_devices(name):
    index = INDICES[name]
    abstract = gl.DeviceGrid(AbstractMesh((4, 2), ("data", "model")))
    expected = np.arange(8).reshape(4, 2)[index]
    part = abstract[index]
    assert part.shape == expected.shape
    kept = index if isinstance(index, tuple) else (index,)
    first = not isinstance(kept[0], (int, np.integer))
    last = len(kept) == 1 or not isinstance(kept[-1], (int, np.integer))
    assert part.mesh.axis_names == ("data",) * first + ("model",) * last
    if COUNT == 8:
        device = gl.DeviceGrid(jax.make_mesh((4, 2), ("data", "model")))
        np.testing.assert_array_equal(ids(device[index]), ids(device)[index])
        assert device[index].mesh.axis_names == part.mesh.axis_names
        x = gl.put(ARRAY, LAYOUT, device[index])
        np.testing.assert_array_equal(np.asarray(x), ARRAY)
        on = {shard.device.id for shard in x.storage.addressable_shards}
        assert on == set(ids(device)[index].flat)


REFUSED = {
    "nothing": (np.s_[4:], "selects no device along x"),
    "beyond": (np.s_[:, 2], "selects no device along y"),
    "three axes": (np.s_[0, 0, 0], "more parts than"),
    "no axis": (np.s_[0, 1], "retains no axis"),
    "two ellipses": (np.s_[..., ...], "a whole number or a slice, or one `...`"),
    "a list": (np.s_[[0, 1]], "a whole number or a slice, or one `...`"),
    "a new axis": (np.s_[None], "a whole number or a slice, or one `...`"),
    "a name": ("x", "whole number"),
    "a truth value": (np.s_[True], "not a bool"),
    "a float": (np.s_[0.5:], "whole number"),
    "a step of 0": (np.s_[::0], "step of 0"),
    "an array": (np.array([0, 1]), "whole number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_indices_are_refused(name):
    index, words = REFUSED[name]
    with pytest.raises(gl.LayoutError, match=words):
        gl.DeviceGrid(AbstractMesh((4, 2), ("x", "y")))[index]


def test_a_device_grid_is_no_sequence():
    with pytest.raises(TypeError, match="not iterable"):
        iter(gl.DeviceGrid((1,)))


def test_a_map_is_of_the_whole_mesh():
    mesh = AbstractMesh((2, 2), ("x", "y"))
    device = gl.DeviceGrid(mesh, core_map="(d0, d1) -> (d1, d0)")
    with pytest.raises(gl.LayoutError, match=r"gl\.DeviceGrid\(device\.mesh\)\[\.\.\.\]"):
        device[0]
    assert gl.DeviceGrid(device.mesh)[0].shape == (2,)


def test_a_part_has_the_machine_of_its_devices():
    ring, slow = gl.Links(10e9, wrap=True), gl.Links(1e9)
    chip = gl.Chip("toy", (1, 1))
    machine = gl.Machine(chip, (4, 8), [slow, ring], hosts=(1, 4), host_links=slow)
    device = gl.DeviceGrid(AbstractMesh((4, 8), ("a", "b")), machine=machine)
    row, cut, host = device[0].machine, device[:, 0:4].machine, device[:, 2:4].machine
    assert (row.mesh, row.links, row.hosts, row.axis_names) == ((8,), (ring,), (4,), ("b",))
    assert (cut.hosts, cut.links[0], cut.links[1].wrap) == ((1, 2), slow, False)
    assert (host.hosts, host.host_links) == ((), None)
    assert device[:, 1:4].machine.hosts == (1, 3)  # of unequal parts
    back = device[:, ::-1].machine
    assert (back, back.hosts) == (device.machine, (1, 4))
    assert device[:, 5:1:-1].machine.hosts == (1, 2)
    one = Collective("permute", ("a",), 4, 10**9, 8)
    assert host.once(one) == device.machine.once(one)
    assert device[0:2].with_machine(device[0:2].machine) == device[0:2]
    assert (
        gl.DeviceGrid(AbstractMesh((4,), ("x",)))[:2].machine
        is gl.DeviceGrid(AbstractMesh((2,), ("x",))).machine
    )


# -- arrays between them ---------------------------------------------------------------------------


@needs_halves
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool"])
def test_arrays_move_between_halves(dtype):
    device = gl.DeviceGrid(MESH)
    low, high = device[: MESH[0] // 2], device[MESH[0] // 2 :]
    array = (ARRAY % 120).astype(dtype)
    layout = LAYOUT.with_dtype(dtype)
    x = gl.put(array, layout, low)
    for to in (layout, layout.replace(grid=(5, 1), tile=None), layout.with_oob(0)):
        y = gl.relayout(x, to, high)
        assert (y.layout, y.device) == (to, high)
        np.testing.assert_array_equal(np.asarray(y), array)
        on = {shard.device.id for shard in y.storage.addressable_shards}
        assert on == set(ids(high).flat)
    if dtype == "float32":
        np.testing.assert_array_equal(np.asarray(y + y), 2 * array)
        assert y.layout.oob == 0
        assert (np.asarray(y.physical)[to.padding_mask()] == 0).all()


@needs_halves
@pytest.mark.parametrize("grid", [(3, 2), (1, 1), (COUNT, 1), (5, 3)])
def test_arrays_move_between_meshes_of_other_shapes(grid):
    device, layout = gl.DeviceGrid(MESH), LAYOUT.replace(grid=grid)
    column = device[:, 1]
    line = gl.DeviceGrid(Mesh(device.mesh.devices.ravel()[::-1], ("line",)))
    x = gl.put(ARRAY, LAYOUT, device)
    for to in (device[0], column, line, device[: MESH[0] // 2, :], gl.DeviceGrid((COUNT,))):
        y = gl.relayout(x, layout, to)
        assert y.device == to
        np.testing.assert_array_equal(np.asarray(y), ARRAY)
        back = gl.relayout(y, LAYOUT, device)
        np.testing.assert_array_equal(np.asarray(back.storage), np.asarray(x.storage))


@needs_halves
def test_trees_move():
    device = gl.DeviceGrid(MESH)
    low, high = device[:1], device[1:2]
    tree = gl.put({"w": ARRAY, "count": jnp.int32(3), "name": "n"}, low, {"w": LAYOUT})
    moved = gl.relayout(tree, device=high)
    assert (moved["w"].layout, moved["w"].device, moved["name"]) == (LAYOUT, high, "n")
    assert {each.id for each in moved["count"].devices()} == set(ids(high).flat)
    again = gl.relayout(tree, {"w": LAYOUT.replace(grid=(1, 2))}, high)
    assert (again["w"].layout.grid, again["w"].device) == ((1, 2), high)
    np.testing.assert_array_equal(np.asarray(again["w"]), ARRAY)
    y = gl.on_grid(jnp.matmul)(moved["w"].T, again["w"])
    np.testing.assert_allclose(np.asarray(y), ARRAY.T @ ARRAY, rtol=1e-5)


@needs_halves
def test_arrays_of_two_halves_are_not_mixed():
    device = gl.DeviceGrid(MESH)
    x, y = (gl.put(ARRAY, LAYOUT, half) for half in (device[:1], device[1:2]))
    words = r"different device grids, .* of devices 0, 1 and .* of devices 2, 3; .*gl\.relayout\(y"
    for call in (lambda: x + y, lambda: gl.numpy.matmul(x.T, y), lambda: gl.on_grid(jnp.dot)(x, y)):
        with pytest.raises(gl.LayoutError, match=words):
            call()
    with pytest.raises(gl.LayoutError, match=r"it is on .*devices 0, 1; gl\.relayout"):
        gl.put({"x": x}, device[1:2])
    np.testing.assert_array_equal(np.asarray(x + gl.relayout(y, LAYOUT, x.device)), 2 * ARRAY)


@needs_halves
def test_moves_that_can_not_be():
    device = gl.DeviceGrid(MESH)
    x = gl.put(ARRAY, LAYOUT, device[:1])
    described = gl.DeviceGrid(AbstractMesh((2,), ("x",)))
    with pytest.raises(gl.LayoutError, match="needs devices"):
        gl.relayout(x, LAYOUT, described)
    with pytest.raises(gl.LayoutError, match="keeps shape and dtype"):
        gl.relayout(x, gl.GridLayout((7, 53), grid=(3, 2)), device)
    with pytest.raises(gl.LayoutError, match=r"gl\.DeviceGrid"):
        gl.relayout(x, LAYOUT, "cpu")
    with pytest.raises(gl.LayoutError, match=r"outside of\s+jax\.jit"):
        jax.jit(lambda x: gl.relayout(x, LAYOUT, device))(x)
    shape = gl.put(jax.ShapeDtypeStruct((53, 7), "float32"), LAYOUT, device[:1])
    with pytest.raises(gl.LayoutError, match="needs data"):
        gl.relayout(shape, LAYOUT, device)


@needs_halves
def test_halves_are_pickled_apart():
    device = gl.DeviceGrid(MESH)
    halves = device[:1], device[1:2]
    again = pickle.loads(pickle.dumps(halves))
    assert again == halves
    assert prod(again[1].shape) == 2


# -- processes -------------------------------------------------------------------------------------

APART = """
device = gl.DeviceGrid((2, 2))
low, high = device[:1], device[1:]
array = np.arange(53 * 7, dtype=np.float32).reshape(53, 7)
layout = gl.GridLayout((53, 7), "float32", grid=(3, 2), tile=(4, 4))
x = gl.put(array, layout, low)
print("parts", len(x.storage.addressable_shards), repr(x))


def told(call):
    try:
        return call()
    except gl.LayoutError as error:
        return str(error)


print("read", told(lambda: float(np.asarray(x).sum())))
for kind in ("float32", "bfloat16"):
    w = x.astype(kind)
    y = gl.relayout(w, w.layout.replace(grid=(2, 1)), high)
    print("moved", len(y.storage.addressable_shards), y)
    print("sum", told(lambda: bool((np.asarray(y) == array.astype(kind)).all())))
z = y + y if RANK == 1 else None
back = gl.relayout(y, y.layout, low)
print("back", told(lambda: bool((np.asarray(back) == array.astype(kind)).all())))
print("unequal", told(lambda: gl.relayout(x, layout, device)))
print("differ", told(lambda: gl.relayout(x, layout.replace(tile=(2 + RANK, 4)), high)))
"""


def test_a_process_without_a_part_goes_along():
    every = run_together(APART, 2, 2)
    assert [each.code for each in every] == [0, 0], "\n".join(each.err[-2000:] for each in every)
    first, second = (dict(line.split(" ", 1) for line in each.out.splitlines()) for each in every)
    assert first["parts"].startswith("2 GridArray(float32[53,7]")
    assert second["parts"].startswith("0 GridArray(float32[53,7]")
    assert first["read"] == str(float(ARRAY.sum()))
    assert "process 1 has no part of GridArray" in second["read"]
    assert (first["moved"][0], second["moved"][0]) == ("0", "2")
    assert "process 0 has no part of GridArray" in first["sum"]
    assert (second["sum"], first["back"]) == ("True", "True")
    assert "between processes, parts are sent as they are" in first["unequal"] == second["unequal"]
    assert "the processes differ" in first["differ"]


ALONE = """
whole = gl.DeviceGrid((2, 2))
layout = gl.GridLayout((8, 6), "float32", grid=(1, 2))
x = gl.put(np.arange(48, dtype=np.float32).reshape(8, 6), layout, whole[:1])
y = gl.relayout(x, layout, whole[1:])
if RANK:
    assert float(y.storage.addressable_shards[0].data.sum()) > 0
    try:
        gl.relayout(x, layout, whole[1:])  # the other process has no part of it and goes on
    except gl.LayoutError as error:
        print("REFUSED", error)
"""


def test_a_move_that_one_process_alone_makes_again_is_refused():
    ended = run_together(ALONE, 2, 2, GRIDLAYOUT_AGREEMENT_SECONDS="3")
    refused = [line for each in ended for line in each.out.splitlines() if "REFUSED" in line]
    assert len(refused) == 1
    assert "process 0" in refused[0]
