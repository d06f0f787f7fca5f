"""Names that users try first: replicated, locate, at, padding of kernels, and what errors name."""

import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from laid_out import assert_same, poisoned
from tiers import few

import gridlayout as gl

ROOT = Path(__file__).parent.parent
COUNT = len(jax.devices())
MESH = (2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,)
DEVICE = gl.DeviceGrid(MESH)
LAYOUT = gl.GridLayout((5, 7), grid=(2, 3), tile=(2, 2))
X = np.arange(35, dtype=np.float32).reshape(5, 7)


def laid(device=DEVICE):
    return poisoned(X, LAYOUT, device)


def is_replicated(x):
    return x.sharding.is_fully_replicated and set(x.layout.core_shape) <= {1}


# -- replicated ------------------------------------------------------------------------------------


def test_replicated_is_a_word_for_trees_patterns_and_arrays():
    tree = {"a": {"w": X, "b": X[0]}, "count": np.int32(3), "name": 4}
    whole = gl.put(tree, DEVICE, "replicated")
    assert is_replicated(whole["a"]["w"])
    assert is_replicated(whole["a"]["b"])
    assert isinstance(whole["count"], jax.Array)
    assert whole["name"] == 4
    np.testing.assert_array_equal(np.asarray(whole["a"]["w"]), X)
    some = gl.put(
        tree, DEVICE, {"*/w": "replicated", "*/b": lambda s, d: gl.GridLayout(s, d, (2,))}
    )
    assert is_replicated(some["a"]["w"])
    assert some["a"]["b"].layout.grid == (2,)
    prefix = gl.put(tree, DEVICE, {"a": "replicated", "count": None, "name": None})
    assert is_replicated(prefix["a"]["b"])
    assert is_replicated(gl.put(X, "replicated", DEVICE))
    moved = gl.relayout({"x": laid()}, "replicated")["x"]
    assert is_replicated(moved)
    np.testing.assert_array_equal(np.asarray(moved), X)
    dram = gl.put(X, LAYOUT.replace(memory_space="dram"), DEVICE)
    assert gl.relayout(dram, "replicated").layout.memory == "dram"


def test_with_layout_takes_replicated():
    fn = gl.on_grid(lambda x: gl.with_layout(x * 2, "replicated"))
    assert is_replicated(fn(laid()))
    assert_same(fn(laid()), X * 2)
    assert_same(gl.on_grid(lambda x: gl.with_layout(x.sum(), "replicated"))(laid()), X.sum())
    assert is_replicated(gl.with_layout(laid(), "replicated"))
    assert gl.with_layout(X, "replicated").shape == X.shape
    grad = jax.grad(lambda x: gl.numpy.sum(fn(x) ** 2))(laid())
    assert_same(grad, 8 * X)


def test_other_words_are_refused_with_the_one_there_is():
    for call in (
        lambda: gl.put({"w": X}, DEVICE, "whole"),
        lambda: gl.put({"w": X}, DEVICE, {"w": "whole"}),
        lambda: gl.on_grid(lambda x: gl.with_layout(x, "whole"))(laid()),
    ):
        with pytest.raises(gl.LayoutError, match=r"'whole'.*replicated"):
            call()


# -- where an element is ---------------------------------------------------------------------------


@pytest.mark.parametrize("grid", few([(2, 3), (1, 1), (5, 2), (1, 7)], 3))
def test_locate_names_the_device_that_holds_an_element(grid):
    x = gl.put(X, LAYOUT.replace(grid=grid), DEVICE)
    for index in np.ndindex(*X.shape):
        found, own = x.locate(index), x.layout.locate(index)
        assert (found.core, found.local, found.offset, found.byte) == (
            *(own.core, own.local, own.offset, own.byte),
        )
        assert found.devices[0] is DEVICE.mesh.devices[found.device]
        shards = {s.device: s for s in x.storage.addressable_shards}
        for device in found.devices:
            shard = shards[device]
            first = [part.start or 0 for part in shard.index[: x.layout.core_rank]]
            at = tuple(c - f for c, f in zip(found.core, first, strict=True))
            assert np.asarray(shard.data)[(*at, *found.local)] == X[index]
        assert DEVICE.core_map(grid)(*found.core)[: len(MESH)] == found.device
    inside = []
    jax.jit(lambda x: (inside.append(x.locate((1, 2))), x)[1])(x)
    assert inside[0].core == x.layout.locate((1, 2)).core
    with pytest.raises(gl.LayoutError, match="outside"):
        x.locate((5, 0))


def test_locate_needs_no_devices():
    abstract = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    x = gl.put(jax.ShapeDtypeStruct((5, 7), "float32"), LAYOUT, abstract)
    assert x.locate((4, 6)).devices == ()
    assert x.locate((4, 6)).device == tuple(abstract.core_map((2, 3))(1, 2)[:2])


# -- updates ---------------------------------------------------------------------------------------

UPDATES = {
    "set": lambda x: x.at[1].set(3.0),
    "add": lambda x: x.at[1:4, ::2].add(2.0),
    "max": lambda x: x.at[jnp.array([0, 2]), jnp.array([1, 1])].max(7.0),
    "multiply": lambda x: x.at[..., -1].multiply(2),
    "divide": lambda x: x.at[2].divide(2.0),
    "apply": lambda x: x.at[0].apply(jnp.exp),
    "get": lambda x: x.at[jnp.array([4, 9])].get(mode="fill", fill_value=-1.0),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", UPDATES)
def test_updates_by_at_are_jnps(name):
    assert_same(UPDATES[name](laid()), UPDATES[name](jnp.asarray(X)))


def test_updates_by_at_differentiate_and_say_what_there_is():
    report = gl.on_grid(lambda x: x.at[0].apply(jnp.exp)).report(laid())
    assert [row.primitive for row in report.fallbacks] == ["scatter"]
    fn = lambda x: gl.numpy.sum(x.at[1:3].set(0.0) ** 2)  # noqa: E731
    expected = 2 * X
    expected[1:3] = 0
    assert_same(jax.grad(fn)(laid()), expected)
    assert_same(jax.jit(lambda x: x.at[0, 0].add(1.0))(laid()), jnp.asarray(X).at[0, 0].add(1.0))
    with pytest.raises(AttributeError, match="it has get, apply, set"):
        laid().at[0].put(3)
    with pytest.raises(gl.LayoutError, match="returns a new array"):
        laid().at[0][1] = 3


# -- two device grids ------------------------------------------------------------------------------


def test_the_call_that_brings_an_array_to_another_device_grid_is_named_and_works():
    x, y = laid(), laid(gl.DeviceGrid((COUNT,) if len(MESH) > 1 else (1, COUNT)))
    words = "gl.relayout(y, y.layout, x.device) moves y"
    kernel = lambda a, b: a + b  # noqa: E731
    for call in (lambda: x + y, lambda: gl.map_shards(kernel, x, y, out=LAYOUT)):
        with pytest.raises(gl.LayoutError, match=re.escape(words)):
            call()
    y = gl.relayout(y, y.layout, x.device)
    assert_same(x + y, X + X)


# -- names of parts of mesh axes -------------------------------------------------------------------


def test_names_of_parts_of_mesh_axes_are_explained_where_they_are_printed():
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    layout = gl.GridLayout((4, 4, 4), grid=(2, 2, 2), collapse=[])
    words = "y0, y1: the mesh axis y of 4 devices in its prime factors, 2 x 2, the major first"
    report = gl.on_grid(lambda x: x.sum(1), device).report(layout)
    assert "over y0 " in str(report)
    assert str(report).count(words) == 1
    assert words in str(report.why(0))
    assert words not in str(gl.on_grid(lambda x: x.sum(0), device).report(layout))


# -- padding of kernels ----------------------------------------------------------------------------


def total(shard):
    return jnp.broadcast_to(gl.cores.psum(shard.sum(), (0, 1)), shard.shape)


def masked_total(shard, mask):
    return total(jnp.where(mask, shard, 0))


def test_kernels_get_the_padding_they_ask_for():
    x = laid()
    assert np.isnan(np.asarray(gl.map_shards(total, x, out=LAYOUT))).all()
    for found in (
        gl.map_shards(total, x, out=LAYOUT, padding=0),
        gl.map_shards(total, x + 1, out=LAYOUT, padding=0) - X.size,
        gl.map_shards(masked_total, x, out=LAYOUT, mask=True),
        jax.jit(lambda x: gl.map_shards(total, x + 0, out=LAYOUT, padding=0))(x),
    ):
        np.testing.assert_allclose(np.asarray(found), np.full_like(X, X.sum()))
    held = gl.map_shards(lambda shard: shard, x, out=LAYOUT, padding=7.0)
    physical = np.asarray(held.physical)
    assert (physical[LAYOUT.padding_mask()] == 7).all()


def test_masks_are_of_each_array_on_each_core():
    small = gl.GridLayout((5, 7), grid=(2, 3))
    y = poisoned(X, small, DEVICE)

    def kernel(a, number, b, a_there, b_there):
        assert a_there.dtype == b_there.dtype == bool
        return jnp.where(a_there, 1.0, 0.0) * number, jnp.where(b_there, b, -1)

    ones, held = gl.map_shards(kernel, laid(), 2.0, y, out=(LAYOUT, small), mask=True)
    np.testing.assert_array_equal(np.asarray(ones.physical), 2.0 * ~LAYOUT.padding_mask())
    np.testing.assert_array_equal(
        np.asarray(held.physical), np.asarray(gl.pack(X, small.with_oob(-1)))
    )
    grad = jax.grad(lambda x: gl.numpy.sum(gl.map_shards(masked_total, x, out=LAYOUT, mask=True)))
    assert_same(grad(laid()), np.full_like(X, X.size))


def test_what_is_no_padding_and_no_mask_is_refused():
    x = gl.put(X.astype("int8"), LAYOUT.replace(dtype="int8"), DEVICE)
    with pytest.raises(gl.LayoutError, match="'hole' is not one of"):
        gl.map_shards(lambda s: s, x, out=x.layout, padding="hole")
    with pytest.raises(gl.LayoutError, match="mask"):
        gl.map_shards(lambda s: s, x, out=x.layout, mask="yes")


# -- rules of no primitive -------------------------------------------------------------------------


def test_rules_for_what_is_no_primitive_are_refused_with_the_nearest_names():
    with pytest.raises(gl.LayoutError, match=r"there is no primitive 'cholseky'.*'cholesky'"):
        gl.def_rule("cholseky")
    with pytest.raises(gl.LayoutError, match=r"the jax.extend.core.Primitive itself"):
        gl.def_rule("nothing like it")
    for name in ("pallas_call", "scatter-add", "custom_jvp_call", "cos"):
        gl.def_rule(name)


# -- nothing to decompose --------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["eigh", "svd", "qr", "cholesky"])
def test_decompositions_of_matrices_without_elements_under_vmap(name):
    fn = getattr(jnp.linalg, name)
    for shape, axis in (((3, 0, 0), 0), ((0, 3, 0), 1), ((0, 0, 0), 0)):
        x = np.zeros(shape, np.float32)
        laid_out = gl.put(x, gl.GridLayout(shape, grid=(2, 1, 1), collapse=[]), DEVICE)
        expected = jax.vmap(fn, in_axes=axis)(x)
        assert_same(jax.vmap(gl.on_grid(fn), in_axes=axis)(laid_out), expected)
        assert_same(gl.on_grid(jax.vmap(fn, in_axes=axis))(laid_out), expected)
        assert_same(jax.vmap(gl.on_grid(fn, DEVICE), in_axes=axis)(x), expected)


# -- idle cores ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_a_grid_with_idle_cores_warns_once_where_it_is_put():
    def put(shape, grid):
        return gl.put(np.zeros(shape, "f4"), gl.GridLayout(shape, grid=grid), DEVICE)

    words = (
        r"grid \(2, 4\) leaves 4 of 8 cores idle: a grid of rank 2 .* rank 1, .*; give grid=\(8,\)"
    )
    with pytest.warns(gl.LayoutWarning, match=words) as found:
        x = put((16,), (2, 4))
    gl.numpy.reshape(x + x, (2, 8))  # layouts that operations choose do not warn
    assert len(found) == 1
    assert found[0].filename == __file__
    layout = gl.GridLayout((3, 5), grid=(4, 8))
    with pytest.warns(UserWarning, match=r"leaves 17 of 32 cores idle.*grid=\(3, 5\)") as found:
        gl.put({"a": np.zeros((3, 5), "f4"), "b": np.ones((3, 5), "f4")}, DEVICE, {"*": layout})
    assert [each.filename for each in found] == [__file__]
    for shape, grid in (((16,), (1, 8)), ((5, 7), (5, 7)), ((0, 3), (2, 2)), ((9,), (8,))):
        put(shape, grid)
    gl.put({"a": np.zeros(3, "f4")}, DEVICE)


# -- the vocabulary --------------------------------------------------------------------------------

MISSING = "nothing"
# Names of the last version, and of where each is now.
MOVED = {
    **{name: f"results.{name}" for name in gl.results.__all__ if name != "BytesFile"},
    **{name: f"cores.{name}" for name in gl.cores.__all__},
    **{"cache_limit": "caches.limit", "cached_bytes": "caches.nbytes"},
    "clear_caches": "caches.clear",
    **{"ImageFile": "results.BytesFile", "image": "to_bytes", "from_image": "from_bytes"},
    **{"open_image": "open_bytes", "load_image": "load_bytes", "save_image": "save_bytes"},
}


def test_the_vocabulary_is_small_and_one_table_has_all_of_it():
    text = (ROOT / "docs" / "calls.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `gl\.(\w+)` \| (.+) \|$", text, re.M)
    names = [name for name, _ in rows]
    assert sorted(names) == sorted(gl.__all__)
    assert len(names) <= 60
    assert len({line for _, line in rows}) == len(rows)


@pytest.mark.parametrize("name", MOVED)
def test_names_of_the_last_version_say_where_they_are_now(name):
    now = attrgetter(MOVED[name])(gl)
    assert name not in dir(gl)
    assert name not in gl.__all__
    if name in ("load_image", "save_image"):
        assert getattr(gl, name) is now
        return
    for _ in range(2):  # it warns each time, and stays an alias
        with pytest.warns(DeprecationWarning, match=rf"gl\.{name} is called gl\.{MOVED[name]} now"):
            assert getattr(gl, name) is now
    assert name not in vars(gl)


@pytest.mark.parametrize("door", [gl.caches, gl.cores, gl.results])
def test_modules_of_the_vocabulary_offer_their_names_and_no_others(door):
    assert sorted(name for name in dir(door) if not name.startswith("_")) == sorted(door.__all__)
    with pytest.raises(AttributeError, match=f"'{door.__name__}' has no attribute 'nothing'"):
        getattr(door, MISSING)


def test_describing_results_does_not_start_jax():
    code = "import sys, gridlayout as gl; gl.results.Location; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
