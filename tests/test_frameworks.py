"""Equinox, Flax NNX and optax as their users write them: what runs, and what is refused."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from laid_out import is_grid

import gridlayout as gl

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2)) if COUNT > 1 else gl.DeviceGrid((1,))
X = np.random.default_rng(0).standard_normal((10, 7)).astype("f4")


def laid(x):
    return gl.put(x, gl.GridLayout(x.shape, x.dtype, grid=(4, 2), collapse=[]), DEVICE)


def assert_close(found, wanted):
    found, wanted = (
        [x for x in jax.tree.leaves(tree, is_leaf=is_grid) if hasattr(x, "shape")]
        for tree in (found, wanted)
    )
    assert len(found) == len(wanted) > 0
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


# -- Equinox ---------------------------------------------------------------------------------------

MLP = eqx.nn.MLP(in_size=7, out_size=5, width_size=13, depth=2, key=jax.random.key(1))


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


@pytest.mark.parametrize("name", EQUINOX)
def test_equinox_on_the_grid(name):
    fn, plain = EQUINOX[name]
    assert_close(gl.on_grid(fn)(gl.put(MLP, DEVICE), laid(X)), plain(MLP, X))


def test_a_step_of_equinox_and_optax_on_arrays_alone():
    arrays, rest = eqx.partition(MLP, eqx.is_array)
    optimizer = optax.adamw(1e-2)

    def step(arrays, state, x):
        grads = jax.grad(lambda a: loss(eqx.combine(a, rest), x))(arrays)
        updates, state = optimizer.update(grads, state, arrays)
        return eqx.apply_updates(arrays, updates), state

    state = optimizer.init(arrays)
    found = gl.on_grid(step)(gl.put(arrays, DEVICE), gl.put(state, DEVICE), laid(X))
    assert_close(found, step(arrays, state, X))


def test_equinox_serialises_grid_arrays():
    file, model = io.BytesIO(), gl.put(MLP, DEVICE)
    eqx.tree_serialise_leaves(file, model)
    file.seek(0)
    assert_close(eqx.tree_deserialise_leaves(file, model), MLP)


def test_filters_around_the_grid_take_no_grid_array_for_an_array():
    # Equinox asks isinstance(x, jax.Array): the page on models says to put gl.on_grid outside.
    assert not eqx.is_array(laid(X))
    with pytest.raises(ValueError, match="Non-hashable static"):
        eqx.filter_jit(gl.on_grid(forward))(gl.put(MLP, DEVICE), laid(X))


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


@pytest.mark.parametrize("name", NNX)
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
