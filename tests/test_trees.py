"""Trees of arrays: `gl.put(tree, device)`, `gl.relayout`, `gl.zeros_like` and `gl.summary`."""

import dataclasses
import math
import subprocess
import sys
from functools import partial
from html import escape
from typing import Any, NamedTuple

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from flax.core import freeze
from hypothesis import given
from hypothesis import strategies as st
from laid_out import is_grid, leaves, read

import gridlayout as gl

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,))
ABSTRACT = gl.DeviceGrid(jax.sharding.AbstractMesh((16, 8), ("x", "y")))
ROWS = partial(gl.GridLayout, grid=(2, 1))
WEIGHTS = {
    "dense": {
        "kernel": np.arange(35, dtype="f4").reshape(5, 7),
        "bias": np.arange(7, dtype="f4"),
    },
    "out": {"kernel": np.arange(21, dtype="f4").reshape(7, 3), "bias": np.arange(3, dtype="f4")},
}


def paths(tree):
    """Each leaf by its path."""
    found = jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_grid)[0]
    return {jax.tree_util.keystr(p, simple=True, separator="/"): leaf for p, leaf in found}


def layouts(tree):
    return {path: x.layout for path, x in paths(tree).items() if is_grid(x)}


def assert_holds(laid, tree):
    """The same tree, each array of rank 1 and more a `GridArray`, with the same elements."""
    assert jax.tree.structure(laid, is_leaf=is_grid) == jax.tree.structure(tree)
    for found, expected in zip(leaves(laid), jax.tree.leaves(tree), strict=True):
        assert is_grid(found) == (np.ndim(expected) > 0)
        np.testing.assert_array_equal(read(found), expected)


# -- the default rule ------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 70), max_size=4),
    st.sampled_from([(2, 4), (8,), (3, 5), (2, 2, 2), (7,), (1,), (16, 8)]),
    st.sampled_from([None, (4, 4), (8,), (32, 32)]),
)
def test_the_default_rule(shape, mesh, tile):
    device = gl.DeviceGrid(jax.sharding.AbstractMesh(mesh, tuple("xyz"[: len(mesh)])))
    like = tile and gl.GridLayout((1,) * len(tile), grid=(1,) * len(tile), tile=tile)
    layout = gl.fill_devices(shape, "bfloat16", like, device)
    assert (layout.shape, layout.dtype, layout.tile) == (tuple(shape), jnp.bfloat16, tile)
    assert set(device.placement(layout.grid).per_device) == {1}  # at most one core a device
    # No core is empty: with one less along any dim, some shard would need one tile more.
    for k, (size, cores) in enumerate(zip(layout.collapsed_shape, layout.grid, strict=True)):
        if cores > 1:
            t = layout.padded_tile[k]
            assert -(-size // (cores - 1)) > layout.tile_counts[k] * t
    # All grids of so many cores: none has a shard smaller by more than an eighth.
    ways = [(n, device.size // n) for n in range(1, device.size + 1) if device.size % n == 0]
    ways = ways if len(layout.grid) == 2 else [(device.size,)]
    sizes = [math.prod(layout.replace(grid=way).local_shape) for way in ways]
    assert math.prod(layout.local_shape) * 8 <= 9 * min(sizes)


def test_the_default_rule_is_a_policy():
    like = gl.GridLayout((1, 1), tile=(4, 4), memory_space="dram")
    x = gl.put(np.ones((5, 7), "f4"), gl.GridLayout((5, 7), grid=(1, 1)), DEVICE)
    total = gl.on_grid(lambda x, y: x @ y, policy=gl.fill_devices)(x, np.ones((7, 30), "f4"))
    np.testing.assert_array_equal(np.asarray(total), np.full((5, 30), 7))
    tiled = partial(gl.fill_devices, like=like, device=DEVICE)
    laid = gl.put(WEIGHTS, DEVICE, tiled)
    assert {(one.tile, one.memory_space) for one in layouts(laid).values()} == {((4, 4), "dram")}


# -- put -------------------------------------------------------------------------------------------


class Point(NamedTuple):
    x: Any
    y: Any


@partial(jax.tree_util.register_dataclass, data_fields=["w", "inner"], meta_fields=["name"])
@dataclasses.dataclass
class Module:
    w: Any
    inner: Any
    name: str = "m"


def array(*shape, dtype="f4"):
    return np.arange(math.prod(shape)).reshape(shape).astype(dtype)


TREES = {
    "one array": array(5, 7),
    "a JAX array": jnp.ones((5, 7)),
    "dicts": WEIGHTS,
    "frozen dicts": freeze(WEIGHTS),
    "a list": [array(5), (array(2, 3, 4), None)],
    "a named tuple": Point(array(3), [np.float32(2.0)]),
    "a dataclass": Module(array(5, 3), Point(array(2), None)),
    "scalars": {"count": jnp.zeros((), "i4"), "rate": np.float32(0.5)},
    "types": [array(6, 5, dtype=t) for t in ("i4", "u1", "bool", "float16", jnp.bfloat16)],
    "no elements": [array(0, 3), array(4, 0)],
    "many dims": array(2, 3, 4, 5),
    "nothing": {"a": None, "b": ()},
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_put_lays_out_every_array_of_a_tree(tree):
    assert_holds(gl.put(tree, DEVICE), tree)


def test_the_default_layouts_fill_the_devices():
    laid = gl.put(array(53, 63), DEVICE)
    assert laid.layout == gl.fill_devices((53, 63), "float32", None, DEVICE)
    if COUNT % 2 == 0:
        assert laid.layout.grid == DEVICE.shape


def test_what_is_no_array_stays_and_scalars_are_on_every_device():
    keys = jax.random.split(jax.random.key(0), 3)
    tree = {"count": np.int32(3), "keys": keys, "fn": jnp.tanh, "n": 4, "on": True, "name": "x"}
    laid = gl.put(tree, DEVICE)
    assert {name: laid[name] for name in ("fn", "n", "on", "name")} == {
        name: tree[name] for name in ("fn", "n", "on", "name")
    }
    for name in ("count", "keys"):
        assert isinstance(laid[name], jax.Array)
        assert laid[name].sharding.is_fully_replicated
        assert len(laid[name].sharding.device_set) == COUNT
    assert (laid["keys"] == keys).all()
    assert laid["count"] == 3


def test_the_forms_of_put():
    layout = ROWS((5, 7))
    x = WEIGHTS["dense"]["kernel"]
    for laid in (
        gl.put(x, layout, DEVICE),
        gl.put(x, layout=layout, device=DEVICE),
        gl.put(array=x, layout=layout, device=DEVICE),
        gl.put(x, DEVICE, layout),
        gl.put(x, DEVICE, layouts=layout),
        gl.put(x, device=DEVICE, layouts=layout),
    ):
        assert laid.layout == layout
        np.testing.assert_array_equal(read(laid), x)


def test_put_inside_jit():
    laid = jax.jit(lambda tree: gl.put(tree, DEVICE))({"w": array(5, 7), "n": 3.0})
    assert_holds(laid, {"w": array(5, 7), "n": np.float32(3)})


def test_put_takes_no_64_bits():
    laid = gl.put({"a": np.arange(3), "b": np.ones(3), "n": np.float64(2)}, DEVICE)
    assert [str(laid[name].dtype) for name in "abn"] == ["int32", "float32", "float32"]
    for big in (np.array([2**40]), np.int64(2**40)):
        with pytest.raises(gl.LayoutError, match=r"leaf 'a' .*numbers that int32 can't represent"):
            gl.put({"a": big}, DEVICE)


# -- layouts of leaves -----------------------------------------------------------------------------


def test_a_rule_is_asked_for_arrays_alone():
    calls = []

    def rule(shape, dtype):
        calls.append((shape, dtype))
        return gl.GridLayout(shape, dtype, grid=(2,) * len(shape))

    tree = {"w": array(5, 7), "b": array(7, dtype="i4"), "n": np.float32(1), "k": 2}
    laid = gl.put({**tree, "key": jax.random.split(jax.random.key(0), 2)}, DEVICE, rule)
    assert calls == [((7,), np.int32), ((5, 7), np.float32)]
    assert [laid[name].layout.grid for name in "wb"] == [(2, 2), (2,)]
    none = gl.put(tree, DEVICE, lambda shape, dtype: None)
    assert layouts(none) == layouts(gl.put(tree, DEVICE))


# patterns: the grids of dense/bias, dense/kernel, out/bias, out/kernel; None for the default.
ONE = lambda shape, dtype: gl.GridLayout(shape, dtype, grid=(1,) * len(shape))  # noqa: E731
TWO = lambda shape, dtype: gl.GridLayout(shape, dtype, grid=(2,) * len(shape))  # noqa: E731
PATTERNS = {
    "any depth": ({"*/kernel": TWO}, [None, (2, 2), None, (2, 2)]),
    "first wins": ({"dense/*": ONE, "*/kernel": TWO}, [(1,), (1, 1), None, (2, 2)]),
    "a whole path": ({"out/kernel": TWO}, [None, None, None, (2, 2)]),
    "a tree above": ({"dense": TWO}, [(2,), (2, 2), None, None]),
    "a leading */ for nothing": ({"*/dense": TWO}, [(2,), (2, 2), None, None]),
    "None is the default": ({"out/*": None, "*": TWO}, [(2,), (2, 2), None, None]),
    "a layout": ({"dense/bias": gl.GridLayout((7,), grid=(2,))}, [(2,), None, None, None]),
    "one character": ({"?ut/[bk]*": TWO}, [None, None, (2,), (2, 2)]),
    "none": ({}, [None] * 4),
}


@pytest.mark.parametrize(("patterns", "grids"), PATTERNS.values(), ids=PATTERNS)
def test_path_patterns(patterns, grids):
    laid = gl.put(WEIGHTS, DEVICE, patterns)
    default = layouts(gl.put(WEIGHTS, DEVICE))
    for (path, layout), grid in zip(layouts(laid).items(), grids, strict=True):
        assert layout.grid == (grid or default[path].grid), path
    assert_holds(laid, WEIGHTS)


def test_patterns_reach_into_an_optimizers_state():
    state = optax.adam(1e-3).init(WEIGHTS)
    laid = gl.put(state, DEVICE, {"*/kernel": ONE})
    assert laid[0].nu["out"]["kernel"].layout.grid == (1, 1)


PREFIXES = {
    "for all": TWO,
    "a part": {"dense": TWO, "out": {"kernel": gl.GridLayout((7, 3), grid=(2, 2)), "bias": TWO}},
    "as deep": jax.tree.map(lambda x: gl.GridLayout(x.shape, grid=(2,) * x.ndim), WEIGHTS),
    "GridArrays for layouts": {
        "dense": TWO,
        "out": {
            "kernel": gl.put(array(7, 3), gl.GridLayout((7, 3), grid=(2, 2)), DEVICE),
            "bias": gl.GridLayout((3,), grid=(2,)),
        },
    },
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_trees_of_layouts(prefix):
    laid = gl.put(WEIGHTS, DEVICE, prefix)
    assert {one.grid for one in layouts(laid).values()} == {(2,), (2, 2)}
    assert_holds(laid, WEIGHTS)


MESH = jax.sharding.AbstractMesh((4, 2), ("data", "model"))
P = jax.sharding.PartitionSpec
KERNELS = {"kernel": P("model", "data"), "bias": P("data")}
BOTH = {"dense": KERNELS, "out": KERNELS}


@pytest.mark.parametrize(
    "specs",
    [
        BOTH,
        jax.tree.map(lambda spec: jax.sharding.NamedSharding(MESH, spec), BOTH),
        {"*/kernel": P("model", "data"), "*/bias": P("data")},
        lambda shape, dtype: gl.GridLayout.of(
            *(shape, jax.sharding.NamedSharding(MESH, P(*("model", "data")[-len(shape) :]))), dtype
        ),
    ],
)
def test_specs_are_layouts_on_a_mesh(specs):
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), WEIGHTS)
    made = gl.put(shapes, MESH, specs)
    for layer in ("dense", "out"):
        kernel, bias = made[layer]["kernel"], made[layer]["bias"]
        assert (kernel.layout.grid, bias.layout.grid) == ((2, 4), (4,))
        assert kernel.device.sizes == {"data": 4, "model": 2}
    again = gl.put(shapes, specs, MESH)
    assert jax.tree.map(lambda x: x.layout, again) == jax.tree.map(lambda x: x.layout, made)


def test_specs_are_put_and_moved_to():
    mesh, whole = DEVICE.mesh, P("x")
    tree = {"a": WEIGHTS["dense"]["kernel"], "count": np.int32(3), "key": jax.random.key(0)}
    made = gl.put(tree, whole, mesh)
    assert (made["a"].layout.grid, made["count"]) == ((DEVICE.shape[0], 1), 3)
    np.testing.assert_array_equal(np.asarray(made["a"]), tree["a"])
    one = gl.put(tree["a"], jax.sharding.NamedSharding(mesh, P(None, "x")))
    assert one.layout.grid == (1, DEVICE.shape[0])
    moved = gl.relayout(one, whole)
    assert moved.layout.grid == (DEVICE.shape[0], 1)
    np.testing.assert_array_equal(np.asarray(moved), tree["a"])
    assert gl.relayout(made, {"a": P(), "count": None, "key": None})["a"].layout.grid == (1, 1)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((P("model"),), r"states no devices: give a mesh after it, as in gl.put\(x, spec, mesh"),
        ((P("modl"), MESH), "names axis 'modl', but the mesh has data, model"),
        ((P("model", "model"), MESH), "names axis 'model' twice"),
        ((P(None, None, "model"), MESH), "3 entries, but shape .5, 7. has 2 dims"),
        ((P(P.UNCONSTRAINED), MESH), "leaves a dim open"),
        ((jax.sharding.NamedSharding(MESH, P("data")), DEVICE), "is of another mesh than"),
        ((jax.sharding.SingleDeviceSharding(jax.devices()[0]),), "must be a .*NamedSharding"),
        (({"a": {"b": P("data")}}, MESH), "another structure"),
    ],
)
def test_specs_that_say_no_layout(args, says):
    x = jax.ShapeDtypeStruct((5, 7), "float32")
    with pytest.raises(gl.LayoutError, match=says):
        gl.put({"a": x}, *args)


def test_none_in_a_tree_of_layouts_is_the_default():
    tree = {"a": [array(5), None], "b": array(6)}
    laid = gl.put(tree, DEVICE, {"a": [None, None], "b": TWO})
    assert laid["a"][0].layout == gl.put(tree, DEVICE)["a"][0].layout
    assert laid["b"].layout.grid == (2,)


# -- optimizers ------------------------------------------------------------------------------------

OPTIMIZERS = {
    "adam": optax.adam(1e-2),
    "adamw in bfloat16": optax.adamw(1e-2, mu_dtype=jnp.bfloat16),
    "chain": optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(1e-2, momentum=0.9)),
    "multi_transform": optax.multi_transform(
        {"kernel": optax.adam(1e-2), "bias": optax.sgd(1e-2)},
        lambda params: jax.tree_util.tree_map_with_path(lambda path, _: path[-1].key, params),
    ),
    "MultiSteps": optax.MultiSteps(optax.adam(1e-2), 2).gradient_transformation(),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_a_state_follows_its_parameters(optimizer):
    params = gl.put(WEIGHTS, DEVICE, {"*/kernel": TWO, "*/bias": ONE})
    state = optimizer.init(WEIGHTS)
    laid = gl.put(state, DEVICE, params)
    assert_holds(laid, state)
    for path, x in paths(laid).items():
        if is_grid(x):
            assert x.layout.grid == ((2, 2) if path.endswith("kernel") else (1,)), path
    described = gl.put(jax.eval_shape(optimizer.init, WEIGHTS), DEVICE, params)
    assert layouts(described) == layouts(laid)
    made = gl.on_grid(optimizer.init)(params)  # by shape, which no two of these share
    assert {p: x.with_oob(None) for p, x in layouts(made).items()} == layouts(laid)


def test_a_state_of_laid_out_parameters_is_laid_out():
    params = gl.put(WEIGHTS, DEVICE, {"*/kernel": TWO})
    state = gl.on_grid(optax.adam(1e-2).init)(params)
    assert layouts(state[0].mu) == layouts(params)
    again = gl.put(state, DEVICE, params)  # what is laid out already stays
    assert again[0].mu["out"]["bias"] is state[0].mu["out"]["bias"]
    assert len(again[0].count.sharding.device_set) == COUNT


def test_what_follows_has_the_shape_of_what_it_follows():
    params = gl.put(WEIGHTS, DEVICE, TWO)
    state = optax.scale_by_factored_rms(min_dim_size_to_factor=2).init(WEIGHTS)
    laid = gl.put(state, DEVICE, params)
    assert_holds(laid, state)
    assert laid.v_row["dense"]["kernel"].shape == (5,)
    assert laid.v["dense"]["bias"].layout == params["dense"]["bias"].layout
    same = gl.put(WEIGHTS, DEVICE, params)
    assert layouts(same) == layouts(params)
    with pytest.raises(gl.LayoutError, match=r"take their layouts from no array.*'dense/bias'"):
        gl.put({"w": array(5, 7)}, DEVICE, params)


def test_training_goes_on_from_what_put_made():
    """With the rule of `put` for a policy, a step gives back what lies as what it was given."""
    optimizer = optax.adam(1e-2)

    def step(params, state, x):
        def loss(params):
            hidden = jnp.tanh(x @ params["dense"]["kernel"] + params["dense"]["bias"])
            return jnp.mean((hidden @ params["out"]["kernel"] + params["out"]["bias"]) ** 2)

        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    x = np.random.default_rng(0).normal(size=(6, 5)).astype("f4")
    params = gl.put(WEIGHTS, DEVICE)
    state = gl.put(optimizer.init(WEIGHTS), DEVICE, params)
    laid, lifted = gl.put(x, DEVICE), jax.jit(gl.on_grid(step, policy=gl.fill_devices))
    first = layouts((params, state))
    plain, plain_step = (WEIGHTS, optimizer.init(WEIGHTS)), jax.jit(step)
    for _ in range(3):
        params, state, value = lifted(params, state, laid)
        *plain, expected = plain_step(*plain, x)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        assert {p: x.with_oob(None) for p, x in layouts((params, state)).items()} == first
    np.testing.assert_allclose(read(params["out"]["bias"]), plain[0]["out"]["bias"], rtol=1e-4)


# -- models ----------------------------------------------------------------------------------------


def test_an_equinox_model_is_put_whole():
    model = eqx.nn.MLP(7, 5, 13, 2, key=jax.random.key(0))
    laid = gl.put(model, DEVICE, {"layers/*/weight": TWO, "*/bias": ONE})
    assert laid.activation is model.activation
    assert laid.layers[0].weight.layout.grid == (2, 2)
    x = np.ones(7, "f4")
    arrays, rest = eqx.partition(laid, is_grid, is_leaf=is_grid)
    y = gl.on_grid(lambda arrays, x: eqx.combine(arrays, rest)(x))(arrays, gl.put(x, DEVICE))
    np.testing.assert_allclose(np.asarray(y), model(x), rtol=1e-5)
    state = optax.adam(1e-2).init(eqx.filter(model, eqx.is_array))
    followed = gl.put(state, DEVICE, laid)
    assert followed[0].mu.layers[1].bias.layout.grid == (1,)


def test_a_flax_model_is_put_in_one_line():
    net = nn.Dense(5)
    x = np.ones((3, 7), "f4")
    params = net.init(jax.random.key(0), x)
    y = gl.on_grid(net.apply)(gl.put(params, DEVICE, {"*/kernel": TWO}), gl.put(x, DEVICE))
    np.testing.assert_allclose(np.asarray(y), net.apply(params, x), rtol=1e-5)


def test_an_nnx_state_is_put_in_one_line():
    model = nnx.Linear(7, 5, rngs=nnx.Rngs(0))
    graph, state = nnx.split(model)
    x = np.ones((3, 7), "f4")
    laid = gl.put(state, DEVICE, {"*/kernel": TWO})
    assert [one.grid for path, one in layouts(laid).items() if "kernel" in path] == [(2, 2)]
    y = gl.on_grid(lambda state, x: nnx.merge(graph, state)(x))(laid, gl.put(x, DEVICE))
    np.testing.assert_allclose(np.asarray(y), model(x), rtol=1e-5)


# -- one leaf after the other ----------------------------------------------------------------------


class Lazy:
    """An array that is read when it is asked for, as one of a file is."""

    def __init__(self, name, data, events):
        self.name, self.data, self.events = name, data, events
        self.shape, self.dtype = data.shape, data.dtype

    def __array__(self, dtype=None, copy=None):
        self.events.append(self.name)
        return self.data if dtype is None else self.data.astype(dtype)


def test_leaves_are_read_when_they_are_placed_and_not_before():
    events = []
    data = {name: array(5, 7) for name in "abc"}
    tree = {name: Lazy(name, data[name], events) for name in "abc"}
    with pytest.raises(gl.LayoutError, match="leaf 'c'"):
        gl.put(tree, DEVICE, {"c": gl.GridLayout((4, 4))})
    assert events == []
    laid = gl.put(tree, DEVICE)
    assert sorted(set(events), key=events.index) == ["a", "b", "c"]
    assert_holds(laid, data)


def test_files_are_put(tmp_path):
    np.save(tmp_path / "w.npy", array(5, 7))
    laid = gl.put({"w": np.load(tmp_path / "w.npy", mmap_mode="r")}, DEVICE)
    np.testing.assert_array_equal(read(laid["w"]), array(5, 7))


# -- refusals --------------------------------------------------------------------------------------

LAID = gl.put(array(5, 7), ROWS((5, 7)), DEVICE)
REFUSED = {
    "another shape": (
        {"a": {"w": array(5, 7)}},
        {"*": gl.GridLayout((5, 8), grid=(1, 1))},
        r"leaf 'a/w' \(float32\[5,7\]\): .*is for shape \(5, 8\): give one for \(5, 7\)",
    ),
    "another dtype": (
        {"w": array(5, 7)},
        gl.GridLayout((5, 7), "int32"),
        r"leaf 'w' .*JAX holds it as float32.*layout\.with_dtype",
    ),
    "64 bits": (
        {"w": np.ones((5, 7))},
        gl.GridLayout((5, 7), "float64"),
        r"leaf 'w' .*JAX holds it as float32.*jax_enable_x64",
    ),
    "a scalar in a layout": (
        {"n": np.float32(1), "w": array(5)},
        gl.GridLayout((5,), grid=(2,)),
        r"leaf 'n' \(float32\[\]\)",
    ),
    "a number in a layout": ({"n": 3}, {"n": gl.GridLayout((5,), grid=(2,))}, r"leaf 'n' \(int\)"),
    "keys": (
        {"k": jax.random.key(0)},
        {"k": gl.GridLayout((), grid=(1,))},
        r"leaf 'k' .*no array of numbers",
    ),
    "objects": ({"o": np.array([None])}, None, r"leaf 'o' .*is no element type of JAX; convert it"),
    "dates": (
        {"o": np.zeros(3, "datetime64[s]")},
        None,
        r"leaf 'o' .*is no element type of JAX; convert it",
    ),
    "two in one place": (
        {"w": array(5, 7)},
        gl.GridLayout((5, 7), grid=(1, 1), linear="(d0, d1) -> (d0, 0)"),
        r"leaf 'w' .*",
    ),
    "2 bits": ({"w": array(5, dtype=jnp.int2)}, None, r"leaf 'w' \(int2\[5\]\)"),
    "no leaf matches": (
        WEIGHTS,
        {"*/kernell": TWO},
        r"pattern '\*/kernell' matches no leaf; paths here are such as .*kernel'",
    ),
    "never first": (
        WEIGHTS,
        {"*": TWO, "*/bias": ONE},
        r"pattern '\*/bias' is never the first to match: '\*' before it takes 'dense/bias'",
    ),
    "another structure": ({"a": array(5), "b": array(3)}, {"a": [TWO]}, "another structure"),
    "words": (WEIGHTS, "x", r"layouts: 'x' must be a gl\.Layout, 'replicated', a rule"),
    "a grid": (WEIGHTS, (2, 4), r"layouts: 2 at '0' must be a gl\.Layout"),
    "words in a tree": (WEIGHTS, {"dense": "x", "out": TWO}, "layouts: 'x' at 'dense' must be"),
    "a rule that fails": ({"w": array(5)}, lambda shape: None, r"leaf 'w' .*the rule <lambda> fai"),
    "a rule of numbers": ({"w": array(5)}, lambda *a: 3, "leaf 'w' .*the rule <lambda> gave 3"),
    "laid out elsewhere": ({"w": LAID}, TWO, r"leaf 'w' .*is laid out already.*gl\.relayout"),
    "lists of numbers": ([[1, 2], [3, 4]], None, r"a list of numbers .*give np\.asarray"),
}


@pytest.mark.parametrize(("tree", "given", "says"), REFUSED.values(), ids=REFUSED)
def test_put_names_the_leaf_and_the_fix(tree, given, says):
    with pytest.raises(gl.LayoutError, match=says):
        gl.put(tree, DEVICE, given)


MISPLACED = {
    "neither": ((WEIGHTS, 3), "second argument 3 is neither a gl.Layout.* nor a gl.DeviceGrid"),
    "an axis": ((WEIGHTS, "x", DEVICE), "layouts: 'x' must be a gl.Layout.*a PartitionSpec"),
    "an axis alone": ((WEIGHTS, "x"), "argument 'x' is neither .* nor a sharding of JAX"),
    "a spec first": ((P("x"), WEIGHTS, DEVICE), r"first argument P\('x',\) is no array"),
    "nothing": ((WEIGHTS,), "no devices are given and no mesh is set"),
    "an array twice": ((array(5, 7), array(5, 7)), r"argument ndarray float32\[5,7\] is neither"),
    "arrays": (
        (array(5, 7), [array(5, 7)], DEVICE),
        r"ndarray float32\[5,7\] at '0' must be a gl.Layout",
    ),
    "swapped": (
        (ROWS((5, 7)), array(5, 7), DEVICE),
        "first argument GridLayout.*array comes first",
    ),
    "a device first": (
        (DEVICE, WEIGHTS),
        "first argument DeviceGrid.*gl.put.tree, device, layouts",
    ),
    "an array as layouts": (
        (array(5, 7), DEVICE, array(5, 7)),
        r"layouts: ndarray float32\[5,7\] m",
    ),
    "an array as a device": (
        (array(5, 7), ROWS((5, 7)), array(5, 7)),
        r"device ndarray float32\[5,7",
    ),
    "huge": ((WEIGHTS, 10**5000), r"second argument \(int with a number too long to print\)"),
    "a tree in a layout": ((WEIGHTS, ROWS((5, 7)), DEVICE), r"gl\.put\(tree, device, layouts\)"),
    "no device": (
        (array(5, 7), ROWS((5, 7))),
        "no devices are given and no mesh is set: give a gl.DeviceGrid",
    ),
}


@pytest.mark.parametrize(("args", "says"), MISPLACED.values(), ids=MISPLACED)
def test_put_tells_its_forms_apart(args, says):
    with pytest.raises(gl.LayoutError, match=says):
        gl.put(*args)


def test_put_takes_layouts_once():
    with pytest.raises(gl.LayoutError, match="takes layouts once, not twice"):
        gl.put(WEIGHTS, DEVICE, TWO, layouts=TWO)
    with pytest.raises(gl.LayoutError, match="layouts are for trees"):
        gl.put(array(5, 7), ROWS((5, 7)), DEVICE, TWO)


def test_put_on_another_device_grid_is_told():
    other = gl.DeviceGrid((COUNT,), core_map="(d0) -> (0, d0)")
    with pytest.raises(
        gl.LayoutError,
        match=r"leaf 'w' .*it is on DeviceGrid.*gl\.relayout\(x, x\.layout, device\)",
    ):
        gl.put({"w": LAID}, other)


# -- without data ----------------------------------------------------------------------------------


def test_shapes_are_put_without_devices():
    tree = {
        "w": jax.ShapeDtypeStruct((500, 700), jnp.bfloat16),
        "n": jax.ShapeDtypeStruct((), "i4"),
    }
    laid = gl.put(tree, ABSTRACT, {"w": partial(gl.fill_devices, like=None, device=ABSTRACT)})
    assert laid["w"].layout.grid == (16, 8)
    assert laid["n"] == tree["n"]
    report = gl.on_grid(lambda t: t["w"] * 2 + t["n"]).report(laid)
    assert not report.fallbacks
    assert "w     bf16[500,700]  16x8" in str(gl.summary(laid))
    assert gl.zeros_like(laid)["w"].layout == laid["w"].layout.with_oob(0)
    with pytest.raises(gl.LayoutError, match=r"leaf 'w' .*needs devices"):
        gl.put({"w": array(5, 7)}, ABSTRACT)
    with pytest.raises(gl.LayoutError, match=r"leaf 'n' .*needs devices"):
        gl.put({"n": np.float32(3)}, ABSTRACT)


# -- relayout and zeros_like -----------------------------------------------------------------------


def test_relayout_of_a_tree():
    tree = {**WEIGHTS, "n": np.float32(2), "name": "x"}
    params = gl.put(tree, DEVICE)
    moved = gl.relayout(params, TWO)
    assert {one.grid for one in layouts(moved).values()} == {(2,), (2, 2)}
    some = gl.relayout(params, {"*/kernel": ROWS})
    assert some["dense"]["bias"] is params["dense"]["bias"]
    assert some["out"]["kernel"].layout.grid == (2, 1)
    back = gl.relayout(some, params)
    assert layouts(back) == layouts(params)
    for one in (moved, some, back):
        assert one["name"] == "x"
        assert_holds({k: one[k] for k in WEIGHTS}, WEIGHTS)
    assert gl.relayout(LAID, TWO).layout.grid == (2, 2)


RELAYOUTS = {
    "no array": ({"n": 3}, TWO, "relayout takes a GridArray or a tree of them, not dict; gl.put"),
    "to None": ({"w": LAID}, None, "relayout to None"),
    "a plain array": ({"w": LAID, "v": array(5)}, TWO, r"leaf 'v' .*is no GridArray; gl\.put"),
    "another shape": (
        {"w": LAID},
        gl.GridLayout((7, 5)),
        r"leaf 'w' .*relayout keeps shape and dtype",
    ),
    "no leaf": ({"w": LAID}, {"v": TWO}, "pattern 'v' matches no leaf"),
}


@pytest.mark.parametrize(("tree", "given", "says"), RELAYOUTS.values(), ids=RELAYOUTS)
def test_relayout_names_the_leaf_and_the_fix(tree, given, says):
    with pytest.raises(gl.LayoutError, match=says):
        gl.relayout(tree, given)


def test_zeros_like():
    tree = {
        **{str(t): gl.put(array(5, 7, dtype=t), DEVICE) for t in ("f4", "bool", "c8")},
        "far": gl.put(
            array(5, 7), gl.GridLayout((5, 7), grid=(2, 2), memory_space="system"), DEVICE
        ),
        "plain": jnp.ones(3),
        "numpy": np.ones(3, "i4"),
        "rest": (3, jnp.tanh, jax.random.key(0), None),
    }
    made = gl.zeros_like(tree)
    for name in ("f4", "bool", "c8", "far"):
        assert made[name].layout == tree[name].layout.with_oob(0)
        assert made[name].sharding == tree[name].sharding
        assert not np.asarray(made[name].storage).any()  # padding and idle slots too
        assert made[name].storage.shape == tree[name].storage.shape
    assert made["plain"].tolist() == made["numpy"].tolist() == [0, 0, 0]
    assert made["numpy"].dtype == np.int32
    assert made["rest"] == tree["rest"]
    inside = jax.jit(lambda x: gl.zeros_like(x) + 1)(LAID)
    np.testing.assert_array_equal(read(inside), np.ones((5, 7)))


# -- summary ---------------------------------------------------------------------------------------


def test_a_summary_counts_bytes():
    tree = {
        "w": gl.put(array(53, 63), gl.GridLayout((53, 63), grid=(2, 2), tile=(32, 32)), DEVICE),
        "far": gl.GridLayout((64,), "int8", grid=(2,), memory_space="dram"),
        "n": jnp.zeros((), "i4"),
        "key": jax.random.key(0),
        "name": "x",
    }
    chip = gl.Chip("toy", (2, 2), {"l1": 4096, "dram": 32})
    found = gl.summary(tree, chip)
    assert [row.path for row in found.rows] == ["far", "key", "n", "w"]
    rows = {row.path: row for row in found.rows}
    assert (rows["w"].bytes_per_core, rows["w"].nbytes) == (32 * 32 * 4, 4 * 32 * 32 * 4)
    assert rows["w"].padding_share == pytest.approx(1 - 53 * 63 / 64 / 64)
    assert (rows["n"].bytes_per_core, rows["n"].padding_share, rows["n"].nbytes) == (None, None, 4)
    assert found.data_bytes == 53 * 63 * 4 + 64
    assert found.nbytes == 4 * 4096 + 64
    assert found.bytes_per_core == 4096 + 32
    assert {fit.space: (fit.needed, bool(fit)) for fit in found.fits} == {
        "l1": (4096, True),
        "dram": (64, False),
    }
    text = str(found)
    assert "w     f32[53,63]  2x2   32x32   4.0 KiB    18.5%  l1, 0 B free" in text
    assert (
        "2 arrays on cores: 13.1 KiB of data in 16.1 KiB, 18.4% padding, 4.0 KiB per core" in text
    )
    assert "all at once on toy: NO: dram, 32 B over; l1, 0 B free" in text
    assert "2 arrays without a layout" in text
    assert "fits" not in str(gl.summary(tree))
    assert gl.summary(tree, "wormhole").chip.grid == (8, 8)


def test_a_summary_is_at_most_100_columns_wide():
    layout = gl.GridLayout((3, 4, 5, 6, 7, 8), grid=(1, 2, 2, 3, 1, 2), collapse=[])
    tree = {"a" * 90: {"kernel": layout}, "b": gl.GridLayout((64, 64), tile=(4, 4))}
    for chip in (None, "wormhole"):
        lines = str(gl.summary(tree, chip)).splitlines()
        assert max(map(len, lines)) <= 100
        assert any(line.startswith("…") and "a/kernel" in line for line in lines)


def test_a_summary_in_a_notebook():
    tree = {"<b>": gl.GridLayout((5, 7), grid=(2, 2), tile=(4, 4))}
    html = gl.summary(tree, "wormhole")._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    cell = '<td class="number share" style="--share: 45.3%" data-n="0.453125"'
    assert f'{cell} data-name="padding">45.3%</td>' in html
    assert "1 array on cores" in html
    assert gl.summary({})._repr_html_().count("<table") == 0
    assert str(gl.summary({"n": 3})) == "no arrays"


@pytest.mark.filterwarnings("ignore:The chararray class:DeprecationWarning")  # treescope's own
def test_treescope_folds_a_tree_of_arrays():
    treescope = pytest.importorskip("treescope")
    layout = gl.GridLayout((5, 7), "float32", grid=(2, 2))
    x = gl.put(np.ones((5, 7), np.float32), layout, gl.DeviceGrid((1,)))
    tree = {"dense": {"<kernel>": x}, "count": 3}
    folded = treescope.render_to_text(tree)
    assert f"'<kernel>': {x!r}" in folded
    assert "padding" not in folded
    page = treescope.render_to_html(tree, compressed=False)
    for line in str(layout.summary()).splitlines():
        assert escape(line) in page


def test_nobody_imports_treescope_for_it():
    code = (
        "import sys, gridlayout as gl\n"
        "x = gl.put([[1.0, 2.0]], gl.GridLayout((1, 2), grid=(1, 2)), gl.DeviceGrid((1,)))\n"
        "x._repr_html_()\n"
        "assert 'treescope' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


GRIDS_BY_NAME = {"b": (8,), "rows": (8, 1), "*": (2, 4)}  # rows: as the user stores them


def test_small_arrays_are_sent_together(monkeypatch):
    """One call of JAX for all arrays of one sharding, in memory that is not the user's."""
    device, calls = gl.DeviceGrid((2, 4)), []
    device_put = jax.device_put

    def counted(arrays, sharding):
        calls.append(len(arrays) if isinstance(arrays, list) else 1)
        return device_put(arrays, sharding)

    rng = np.random.default_rng(0)
    tree = {f"w{k}": rng.standard_normal((8 + k % 3, 12), np.float32) for k in range(20)}
    tree |= {"b": rng.standard_normal(7, np.float32), "jax": jnp.arange(96.0).reshape(8, 12)}
    tree["rows"] = rng.standard_normal((8, 12), np.float32)
    wanted = {name: np.array(x) for name, x in tree.items()}
    monkeypatch.setattr(jax, "device_put", counted)
    rules = {name: partial(gl.GridLayout, grid=grid) for name, grid in GRIDS_BY_NAME.items()}
    made = gl.put(tree, device, rules)
    jax.block_until_ready(made)
    for name in wanted:
        if isinstance(tree[name], np.ndarray):
            tree[name][...] = np.nan
    assert sorted(calls) == [1, 1, 21]
    for name, x in made.items():
        np.testing.assert_array_equal(np.asarray(x), wanted[name])
        assert len({shard.device for shard in x.storage.addressable_shards}) == 8


def test_a_rule_is_asked_once_for_each_shape_and_dtype():
    asked = []

    def rule(shape, dtype):
        asked.append((shape, dtype.name))
        return gl.GridLayout(shape, dtype, grid=(2,))

    tree = [np.ones(4, np.float32), np.ones(4, np.int32), np.ones(4, np.float32)]
    gl.put(tree, gl.DeviceGrid((2,)), rule)
    assert asked == [((4,), "float32"), ((4,), "int32")]


def test_put_of_a_plan_names_the_plans_own():
    x = array(16, 8)
    plan = gl.plan(lambda x: x @ x.T, jax.ShapeDtypeStruct(x.shape, x.dtype), machine="v5e 4x4")
    for rest in ((plan,), (DEVICE, plan)):
        with pytest.raises(gl.LayoutError, match=r"plan\.put\(args\) takes all arguments"):
            gl.put((x,), *rest)


def test_a_rule_may_give_a_spec_or_a_sharding():
    tree = {"kernel": array(5, 7), "bias": array(7)}
    by_rule = gl.put(tree, DEVICE, lambda shape, dtype: P(*("x", None)[: len(shape)]))
    by_spec = gl.put(tree, {"kernel": P("x", None), "bias": P("x")}, DEVICE)
    for name in tree:
        assert by_rule[name].layout == by_spec[name].layout
    moved = gl.relayout(by_rule, lambda shape, dtype: P())
    assert moved["kernel"].layout == gl.put(tree, P(), DEVICE)["kernel"].layout
    with pytest.raises(gl.LayoutError, match=r"gave 'x'; it must give a gl\.Layout, or a sharding"):
        gl.put(tree, DEVICE, lambda shape, dtype: "x")
