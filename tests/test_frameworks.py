"""Equinox, Flax NNX and optax as their users write them: what runs, and what is refused."""

import importlib.util
import inspect
import io
import sys
import types

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from laid_out import is_grid
from processes import alone, run_alone
from tiers import few

import gridlayout as gl
from gridlayout.ops.libraries import imported

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2)) if COUNT > 1 else gl.DeviceGrid((1,))
X = np.random.default_rng(0).standard_normal((10, 7)).astype("f4")


def laid(x):
    return gl.put(x, gl.GridLayout(x.shape, x.dtype, grid=(4, 2), collapse=[]), DEVICE)


def assert_close(found, expected):
    found, expected = (
        [x for x in jax.tree.leaves(tree, is_leaf=is_grid) if hasattr(x, "shape")]
        for tree in (found, expected)
    )
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


# -- Equinox ---------------------------------------------------------------------------------------

# Made as one program, as every process of the tests does.
MLP = eqx.filter_jit(lambda key: eqx.nn.MLP(7, 5, width_size=13, depth=2, key=key))(
    jax.random.key(1)
)


def forward(model, x):
    return jax.vmap(model)(x)


def loss(model, x):
    return jnp.mean(forward(model, x) ** 2)


EQUINOX = {
    "a model among the arguments": (forward, forward),
    "filter_jit": (eqx.filter_jit(forward), forward),
    "filter_grad": (eqx.filter_grad(loss), eqx.filter_grad(loss)),
    "filter_value_and_grad": (
        eqx.filter_jit(eqx.filter_value_and_grad(loss)),
        eqx.filter_value_and_grad(loss),
    ),
    "filter_vmap": (lambda m, x: eqx.filter_vmap(m)(x), forward),
    "filter_checkpoint": (eqx.filter_grad(eqx.filter_checkpoint(loss)), eqx.filter_grad(loss)),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", few(EQUINOX, 3))
def test_equinox_on_the_grid(name):
    fn, plain = EQUINOX[name]
    assert_close(gl.on_grid(fn)(gl.put(MLP, DEVICE), laid(X)), eqx.filter_jit(plain)(MLP, X))


class Scaled(eqx.Module):
    inner: eqx.nn.MLP
    scale: float
    kind: str

    def all(self, x):
        return jax.vmap(self.inner)(x) * self.scale

    def turned(self):
        return eqx.tree_at(lambda m: m.scale, self, self.scale * 2), self.kind

    def __call__(self, x):
        return self.all(x)


def test_whole_models_are_called_given_and_returned():
    model = Scaled(MLP, 2.0, "text")
    placed, expected = gl.put(model, DEVICE), model(X)
    for found in (
        gl.on_grid(placed)(laid(X)),
        gl.on_grid(placed.all)(laid(X)),
        gl.on_grid(placed.__call__)(laid(X)),
        jax.vmap(gl.on_grid(placed.inner))(laid(X)) * 2,
        jax.vmap(gl.on_grid(placed.inner.__call__))(laid(X)) * 2,
        gl.on_grid(Scaled.all)(placed, laid(X)),
    ):
        assert_close(found, expected)
    with pytest.raises(gl.LayoutError, match=r"or lift.*jax\.vmap\(gl\.on_grid\(model\)\)"):
        gl.on_grid(jax.vmap(placed.inner))(laid(X))
    assert str(inspect.signature(gl.on_grid(placed.all))) == "(x)"
    again, kind = gl.on_grid(Scaled.turned)(placed)
    assert isinstance(again, Scaled)
    assert kind == again.kind == "text"
    assert again.inner.activation is MLP.activation
    assert_close(gl.on_grid(again)(laid(X)), expected * 2)
    through = eqx.filter_grad(lambda m, x: gl.on_grid(jnp.sum)(gl.on_grid(m.all)(x)))
    assert_close(through(placed, laid(X)), eqx.filter_grad(lambda m, x: m(x).sum())(model, X))


def test_steps_of_whole_models():
    optimizer, compiled = optax.adam(1e-2), []

    def step(model, state, x):
        compiled.append(1)
        value, grads = eqx.filter_value_and_grad(loss)(model, x)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), state, value

    state = optimizer.init(eqx.filter(MLP, eqx.is_inexact_array))
    mine, plain = (*gl.put((MLP, state), DEVICE), None), (MLP, state, None)
    made, layouts = gl.on_grid(step), [x.layout for x in jax.tree.leaves(mine[0]) if is_grid(x)]
    for _ in range(3):
        mine = made(*mine[:2], laid(X))
    assert len(compiled) == 1
    plain_step = eqx.filter_jit(step)
    for _ in range(3):
        plain = plain_step(*plain[:2], X)
    assert_close(mine, plain)
    # New parameters and moments are placed where the old ones were.
    moments = mine[1][0]
    for tree in (mine[0], moments.mu, moments.nu):
        assert [x.layout for x in jax.tree.leaves(tree) if is_grid(x)] == layouts


def test_a_step_of_equinox_and_optax_on_arrays_alone():
    arrays, rest = eqx.partition(MLP, eqx.is_array)
    optimizer = optax.adamw(1e-2)

    def step(arrays, state, x):
        grads = jax.grad(lambda a: loss(eqx.combine(a, rest), x))(arrays)
        updates, state = optimizer.update(grads, state, arrays)
        return eqx.apply_updates(arrays, updates), state

    state = optimizer.init(arrays)
    found = gl.on_grid(step)(gl.put(arrays, DEVICE), gl.put(state, DEVICE), laid(X))
    assert_close(found, jax.jit(step)(arrays, state, X))


# Around functions on the grid: how each is written, given what lifts a function.
STACK = np.stack([X, X + 1, X - 1])
MODELS = eqx.filter_jit(eqx.filter_vmap(lambda key: eqx.nn.MLP(7, 5, 13, 2, key=key)))(
    jax.random.split(jax.random.key(2), 3)
)
SECOND = (None, eqx.if_array(0))
AROUND = {
    "filter_jit": lambda lift: (eqx.filter_jit(lift(forward)), (MLP, X)),
    "filter_grad": lambda lift: (eqx.filter_grad(lift(loss)), (MLP, X)),
    "filter_value_and_grad in filter_jit": lambda lift: (
        eqx.filter_jit(eqx.filter_value_and_grad(lift(loss))),
        (MLP, X),
    ),
    "filter_checkpoint": lambda lift: (
        eqx.filter_grad(eqx.filter_checkpoint(lift(loss))),
        (MLP, X),
    ),
    "filter_vjp": lambda lift: (
        lambda m, x: eqx.filter_vjp(lift(loss), m, x)[1](jnp.float32(1)),
        (MLP, X),
    ),
    "filter_vmap": lambda lift: (eqx.filter_vmap(lift(forward), in_axes=SECOND), (MLP, STACK)),
    "filter_vmap in filter_jit": lambda lift: (
        eqx.filter_jit(eqx.filter_vmap(lift(forward), in_axes=SECOND)),
        (MLP, STACK),
    ),
    "filter_vmap along other dims": lambda lift: (
        eqx.filter_vmap(lift(lambda x: jnp.tanh(x).sum(0)), in_axes=2, out_axes=1),
        (STACK,),
    ),
    "filter_vmap of models": lambda lift: (
        eqx.filter_vmap(lift(forward), in_axes=SECOND[::-1]),
        (MODELS, X),
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", few(AROUND, 6))
def test_equinox_around_the_grid(name):
    fn, arguments = AROUND[name](gl.on_grid)
    plain, _ = AROUND[name](lambda fn: fn)
    found = fn(*gl.put(arguments, DEVICE))
    assert any(map(is_grid, jax.tree.leaves(found)))
    assert_close(found, eqx.filter_jit(plain)(*arguments))


def equinox_step(lift, optimizer):
    @eqx.filter_jit
    def step(model, state, x):
        value, grads = eqx.filter_value_and_grad(lift(loss))(model, x)
        own = eqx.filter(model, eqx.is_inexact_array)
        updates, state = lift(optimizer.update)(grads, state, own)
        return eqx.apply_updates(model, updates), state, value

    return step


def test_steps_of_equinox_around_the_grid():
    optimizer = optax.adam(1e-2)
    found = []
    for lift, model, x in ((gl.on_grid, gl.put(MLP, DEVICE), laid(X)), (lambda fn: fn, MLP, X)):
        step = equinox_step(lift, optimizer)
        state = lift(optimizer.init)(eqx.filter(model, eqx.is_inexact_array))
        for _ in range(3):
            model, state, value = step(model, state, x)
        found.append((model, state, value))
    assert_close(*found)
    assert is_grid(found[0][0].layers[0].weight)


def test_what_equinox_takes_for_an_array():
    floats, integers, brain = (
        gl.put(np.ones((5, 7)).astype(dtype), DEVICE) for dtype in ("f4", "i4", jnp.bfloat16)
    )
    asked = eqx.is_array, eqx.is_array_like, eqx.is_inexact_array, eqx.is_inexact_array_like
    for x, is_inexact in ((floats, True), (integers, False), (brain, True)):
        expected = [True, True, is_inexact, is_inexact]
        assert [is_one(x) for is_one in asked] == expected
        traced = []
        jax.jit(lambda x: traced.extend(is_one(x) for is_one in asked))(x)  # noqa: B023
        assert traced == expected
    for x in (1.5, X, jnp.ones(3), np.float32(1), "a", None, jnp.tanh, 3, jax.random.key(0)):
        assert [is_one(x) for is_one in asked] == [is_one.__wrapped__(x) for is_one in asked]
    assert eqx.is_array(element=floats)
    grads = eqx.filter_grad(gl.on_grid(lambda t: (t[0] ** 2).sum()))((brain, integers, "a", None))
    assert is_grid(grads[0])
    assert grads[1:] == (None, None, None)


def test_equinox_serialises_grid_arrays():
    file, model = io.BytesIO(), gl.put(MLP, DEVICE)
    eqx.tree_serialise_leaves(file, model)
    ones = jax.tree.map(lambda x: gl.on_grid(jnp.ones_like)(x) if is_grid(x) else x, model)
    for like in (ones, jax.tree.map(lambda x: jnp.ones(x.shape) if is_grid(x) else x, model)):
        file.seek(0)
        found = eqx.tree_deserialise_leaves(file, like)
        assert_close(found, MLP)
        assert type(found.layers[0].weight) is type(like.layers[0].weight)
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"layers.*weight") as caught:  # Equinox's, of a leaf's
        eqx.tree_deserialise_leaves(file, gl.put(MODELS, DEVICE))
    cause = caught.value.__cause__.__cause__
    assert isinstance(cause, gl.LayoutError)
    assert "the file has float32[13, 7] where `like` has" in str(cause)


ORDER = """
FIRST
import importlib.util, jax, numpy as np
SECOND
gl.emulate_devices(4)
x = gl.put(np.ones((5, 7), "f4"), gl.GridLayout((5, 7), grid=(3, 2)), gl.DeviceGrid((2, 2)))
assert importlib.util.find_spec("equinox")  # asks whether it is installed, and imports nothing
THIRD
assert eqx.__loader__ is eqx.__spec__.loader and not type(eqx.__loader__).__module__.startswith("g")
grad = eqx.filter_jit(eqx.filter_grad(gl.on_grid(lambda x: (x ** 2).sum())))(x)
assert np.all(np.asarray(grad) == 2) and is_array(x)
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("place", few(["FIRST", "THIRD", "SECOND"], 2))
def test_equinox_is_told_wherever_it_is_imported(place):
    names = {"FIRST": "", "SECOND": "import gridlayout as gl", "THIRD": ""}
    program = ORDER
    for name, line in names.items():
        told = "import equinox as eqx; from equinox import is_array" if name == place else ""
        program = program.replace(name, f"{told}\n{line}")
    if place == "FIRST":  # as in no process that is forked, which knows this library
        alone(program)
    else:
        ended = run_alone(program)
        assert ended.code == 0, ended.err[-3000:]


def test_another_version_that_cannot_be_told_says_what_to_write():
    with pytest.warns(RuntimeWarning, match=r"filter_grad returns None for them: use jax\.grad"):
        imported._register(types.ModuleType("equinox"))


class Normed(eqx.Module):
    norm: eqx.nn.BatchNorm
    drop: eqx.nn.Dropout

    def __call__(self, x, state, key):
        x, state = self.norm(x, state)
        return self.drop(x, key=key), state


def normed(model, state, x, key):
    over_batch = {"axis_name": "batch", "in_axes": (0, None, None), "out_axes": (0, None)}
    return jax.vmap(model, **over_batch)(x, state, key)


def normed_step(model, state, x, key):
    def normed_loss(model):
        y, new = normed(model, state, x, key)
        return jnp.mean(y**2), new

    grads, state = eqx.filter_grad(normed_loss, has_aux=True)(model)
    return eqx.apply_updates(model, grads), state


LIFTED = {
    "alone": gl.on_grid,
    "filter_jit around": lambda fn: eqx.filter_jit(gl.on_grid(fn)),
    "filter_jit inside": lambda fn: gl.on_grid(eqx.filter_jit(fn)),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("lift", LIFTED.values(), ids=LIFTED)
def test_models_that_decide_on_bools(lift):
    key = jax.random.key(3)

    def made():
        norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(7, axis_name="batch", mode="batch")
        return Normed(norm, eqx.nn.Dropout(0.5)), state

    mine, plain, plain_step = gl.put(made(), DEVICE), made(), eqx.filter_jit(normed_step)
    for _ in range(2):  # a model that a step returned is taken by the next
        mine, plain = lift(normed_step)(*mine, laid(X), key), plain_step(*plain, X, key)
    assert mine[0].drop.inference is mine[0].norm.inference is False
    assert_close((mine[0].norm, mine[1]), (plain[0].norm, plain[1]))
    ready, expected = (eqx.nn.inference_mode(x[0]) for x in (mine, plain))
    found = lift(normed)(ready, mine[1], laid(X), key)[0]
    assert_close(found, eqx.filter_jit(normed)(expected, plain[1], X, key)[0])


def test_a_model_with_dropout_is_called():
    key = jax.random.key(4)
    model = eqx.nn.Sequential([eqx.nn.Linear(7, 5, key=key), eqx.nn.Dropout(0.5)])
    for each in (model, eqx.nn.inference_mode(model)):
        found = gl.on_grid(gl.put(each, DEVICE))(gl.put(X[0], DEVICE), key=key)
        assert_close(found, each(X[0], key=key))


class Pair(eqx.Module):
    a: jax.Array


def test_a_module_without_call_is_refused():
    with pytest.raises(gl.LayoutError, match="takes a function, not Pair, which can't be called"):
        gl.on_grid(Pair(laid(X)))


class Broken(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        raise ZeroDivisionError

    def method(self, x):
        return x * self.weight


class Inherited(Broken):
    pass


def test_errors_name_the_class_of_a_model():
    lifted = gl.on_grid(Inherited(laid(X)))
    assert repr(lifted) == repr(gl.on_grid(lifted)) == "on_grid(Inherited)"
    assert repr(gl.on_grid(lifted.first[0].method)) == "on_grid(method)"
    assert gl.on_grid(gl.put(MLP, DEVICE)).report(gl.put(X[0], DEVICE)).graph.title == "MLP"
    with pytest.raises(ZeroDivisionError) as caught:
        lifted(laid(X))
    note = "on the grid, Broken was called with\n  self.weight: float32"
    assert any(each.startswith(note) for each in caught.value.__notes__)


def test_the_signature_of_a_model():
    model = gl.put(MLP, DEVICE)
    for lifted in (gl.on_grid(model), gl.on_grid(gl.on_grid(model), DEVICE)):
        assert inspect.signature(lifted) == inspect.signature(model)
        for around in (lifted, eqx.filter_jit(lifted), jax.jit(lifted)):
            assert_close(around(gl.put(X[0], DEVICE)), MLP(X[0]))
            assert_close(around(x=gl.put(X[0], DEVICE)), MLP(X[0]))
        assert_close(jax.vmap(lifted)(laid(X)), forward(MLP, X))
        assert_close(eqx.filter_vmap(lifted)(laid(X)), forward(MLP, X))


# -- Flax NNX --------------------------------------------------------------------------------------


class Net(nnx.Module):
    def __init__(self):
        rngs = nnx.Rngs(0)
        self.up, self.down = nnx.Linear(7, 13, rngs=rngs), nnx.Linear(13, 5, rngs=rngs)

    def __call__(self, x):
        return self.down(nnx.relu(self.up(x)))


def on_device(net):
    nnx.update(net, gl.put(nnx.state(net), DEVICE))
    return net


def apply(net, x):
    return net(x)


def net_loss(net, x):
    return jnp.mean(net(x) ** 2)


NNX = {
    "a module among the arguments": (gl.on_grid(apply), apply),
    "nnx.jit around": (nnx.jit(gl.on_grid(apply)), apply),
    "nnx.jit inside": (gl.on_grid(nnx.jit(apply)), apply),
    "by operators": (apply, apply),
    "nnx.value_and_grad around": (
        nnx.value_and_grad(gl.on_grid(net_loss)),
        nnx.value_and_grad(net_loss),
    ),
    "nnx.value_and_grad inside": (
        gl.on_grid(nnx.value_and_grad(net_loss)),
        nnx.value_and_grad(net_loss),
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", few(NNX, 3))
def test_nnx_on_the_grid(name):
    fn, plain = NNX[name]
    assert_close(fn(on_device(Net()), laid(X)), plain(Net(), X))


# -- optax -----------------------------------------------------------------------------------------

PARAMS = {"w": np.ones((7, 5), "f4"), "b": np.zeros(5, "f4")}
CHAIN = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.masked(optax.add_decayed_weights(0.1), {"w": True, "b": False}),
    optax.multi_transform(
        {"adam": optax.adam(1e-2), "sgd": optax.sgd(1e-1)}, {"w": "adam", "b": "sgd"}
    ),
)


def chain_step(params, state, x):
    grads = jax.grad(lambda p: jnp.mean((x @ p["w"] + p["b"]) ** 2))(params)
    updates, state = CHAIN.update(grads, state, params)
    return optax.apply_updates(params, updates), state


def test_chains_of_masked_and_partitioned_transformations():
    state, params = CHAIN.init(PARAMS), gl.put(PARAMS, DEVICE)
    own = gl.on_grid(CHAIN.init)(params)
    assert_close(own, state)
    for laid_state in (own, gl.put(state, DEVICE)):
        found = gl.on_grid(chain_step)(params, laid_state, laid(X))
        assert_close(found, chain_step(PARAMS, state, X))


@pytest.mark.skipif(COUNT < 2, reason="on one device every array is whole")
def test_an_init_outside_says_to_run_it_on_the_grid():
    x = gl.put(np.ones((7, 5), "f4"), gl.GridLayout((7, 5), grid=(4, 2)), DEVICE)
    with pytest.raises(gl.LayoutError, match=r"gl\.on_grid\(fn\) runs a function"):
        optax.adam(1e-2).init({"w": x})
    with pytest.raises(gl.LayoutError, match=r"gl\.on_grid\(fn\) runs a function"):
        nnx.Optimizer(on_device(Net()), optax.adam(1e-2), wrt=nnx.Param)


def test_finders_of_two_copies_do_not_ask_each_other(monkeypatch):
    unused = "wave"
    assert unused not in sys.modules
    both = [imported._Finder(unused), imported._Finder(unused)]
    monkeypatch.setattr(sys, "meta_path", [*both, *sys.meta_path])
    assert importlib.util.find_spec(unused).origin.endswith("wave.py")
    assert importlib.util.find_spec("no_such_module") is None
