"""Models and optimizers that no one here wrote, trained on the grid as on plain arrays.

Every array has a tile that does not divide it, and NaN in its padding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tiers
from devices import turn as device_of
from flax import nnx
from jax import lax
from laid_out import assert_same, poisoned

import gridlayout as gl

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,))
STEPS = 20


def example(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


@dataclass
class Case:
    """A model as a function of its parameters, what it learns, and how."""

    params: Any
    apply: Callable[..., Any]
    x: np.ndarray
    optimizer: Any
    tile: tuple[int, int] = (8, 8)
    classes: int | None = None

    def targets(self):
        if self.classes is None:
            return None
        return np.arange(len(self.x), dtype="i4") % self.classes

    def loss(self, params, x, labels):
        out = self.apply(params, x)
        if labels is None:
            return jnp.mean(jnp.square(out - jnp.roll(x[..., : out.shape[-1]], 1, -1)))
        return optax.softmax_cross_entropy_with_integer_labels(out, labels).mean()

    def step(self, params, state, x, labels):
        loss, grads = jax.value_and_grad(self.loss)(params, x, labels)
        updates, state = self.optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    @property
    def device(self):
        return device_of(DEVICE, sum(self.x.shape))

    def laid(self, a):
        a = np.asarray(a)
        if a.ndim == 0:
            return a
        layout = gl.GridLayout(a.shape, a.dtype, (2, 4), self.tile)
        assert layout.nbytes > a.nbytes
        return poisoned(a, layout, self.device)


# -- equinox ---------------------------------------------------------------------------------------

KEY = jax.random.key(0)


def of_equinox(model, call, *rest, **more):
    params, static = eqx.partition(model, eqx.is_inexact_array)
    return Case(params, lambda p, x: call(eqx.combine(p, static), x), *rest, **more)


def mlp():
    model = eqx.nn.MLP(29, 5, 37, 2, key=KEY)
    optimizer = optax.adam(1e-2)
    return of_equinox(
        model, lambda m, x: jax.vmap(m)(x), example(13, 29), optimizer, (32, 32), classes=5
    )


def attention():
    model = (eqx.nn.LayerNorm(30), eqx.nn.MultiheadAttention(3, 30, key=KEY))
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(3e-3))

    def call(model, x):
        norm, heads = model
        y = jax.vmap(norm)(x)
        mask = jnp.tril(jnp.ones((13, 13), bool))
        return x + heads(y, y, y, mask)

    return of_equinox(model, call, example(13, 30), optimizer)


def recurrent():
    schedule = optax.exponential_decay(1e-2, 5, 0.5)

    def call(cell, x):
        def one(xs):
            return lax.scan(lambda h, x: (cell(x, h), None), jnp.zeros(19), xs)[0]

        return jax.vmap(one)(x)

    model = eqx.nn.GRUCell(29, 19, key=KEY)
    return of_equinox(model, call, example(5, 7, 29), optax.adam(schedule), classes=3)


def convolution():
    model = eqx.nn.Conv2d(3, 5, 3, key=KEY)
    return of_equinox(
        model,
        lambda m, x: jax.vmap(m)(x).mean((2, 3)),
        example(5, 3, 11, 13),
        optax.sgd(1e-1, momentum=0.9, nesterov=True),
        classes=5,
    )


# -- flax ------------------------------------------------------------------------------------------


class Cnn(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(3, 5, (3, 3), rngs=rngs)
        self.norm = nnx.LayerNorm(5, rngs=rngs)
        self.out = nnx.Linear(90, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.conv(x)))
        x = nnx.avg_pool(x, (2, 2), (2, 2))
        x = nnx.max_pool(x, (2, 2), (1, 1), "SAME")
        return self.out(x.reshape(len(x), -1))


def cnn():
    graph, params = nnx.split(Cnn(nnx.Rngs(0)))
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 5, STEPS)
    return Case(
        params,
        lambda params, x: nnx.merge(graph, params)(x),
        example(5, 6, 13, 3),
        optax.adamw(schedule),
        classes=10,
    )


class Block(nn.Module):
    """A transformer's block."""

    @nn.compact
    def __call__(self, x):
        x = x + nn.MultiHeadDotProductAttention(3, use_bias=False)(nn.LayerNorm()(x))
        hidden = nn.gelu(nn.Dense(41)(nn.LayerNorm()(x)))
        return x + nn.Dense(x.shape[-1])(hidden)


def block():
    x = example(2, 13, 30)
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.linear_schedule(1e-2, 1e-3, STEPS), eps=1e-6),
    )
    return Case(Block().init(KEY, x), Block().apply, x, optimizer)


# -- the tests -------------------------------------------------------------------------------------

MODELS = [mlp, attention, recurrent, convolution, cnn, block]


@pytest.mark.parametrize("model", tiers.few(MODELS[3:] + MODELS[:3], 1))
def test_training_is_jaxs(model):
    case = model()
    x, labels, params = case.x, case.targets(), case.params
    on_grid = jax.tree.map(case.laid, params)
    init = case.optimizer.init
    state, grid_state = init(params), jax.jit(gl.on_grid(init))(on_grid)
    grid_x, grid_labels = case.laid(x), None if labels is None else case.laid(labels)

    if tiers.ALL:  # the losses below are of what the model gives
        expected = jax.jit(case.apply)(params, x)
        assert_same(
            jax.jit(gl.on_grid(case.apply))(on_grid, grid_x), expected, rtol=1e-4, atol=1e-5
        )

    traced = []

    def step(*args):
        traced.append(1)
        return case.step(*args)

    report = gl.on_grid(case.step).report(on_grid, grid_state, grid_x, grid_labels)
    assert not report.fallbacks
    plain_step, grid_step = jax.jit(case.step), jax.jit(gl.on_grid(step))
    losses = []
    before = jax.tree.structure(on_grid)
    for _ in range(STEPS):
        params, state, expected = plain_step(params, state, x, labels)
        on_grid, grid_state, found = grid_step(on_grid, grid_state, grid_x, grid_labels)
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        losses.append(float(expected))
    assert losses[-1] < 0.9 * losses[0]
    assert_same((on_grid, grid_state), (params, state), rtol=1e-3, atol=1e-4)
    # Parameters stay where they lie. The optimizer's state goes where the gradients lie, in the
    # first step: from then on one program runs them all.
    assert jax.tree.structure(on_grid) == before
    assert len(traced) <= 2


def test_an_nnx_step_with_its_own_optimizer_is_jaxs():
    x, labels = example(5, 6, 13, 3), np.arange(5, dtype="i4")
    model = Cnn(nnx.Rngs(0))
    graph, state = nnx.split((model, nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)))

    def loss(model, x, labels):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), labels).mean()

    def step(state, x, labels):
        model, optimizer = nnx.merge(graph, state)
        value, grads = nnx.value_and_grad(loss)(model, x, labels)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), value

    case = cnn()
    on_grid = jax.tree.map(lambda a: case.laid(a) if a.ndim else a, state)
    expected = jax.jit(step)(state, x, labels)
    assert_same(
        jax.jit(gl.on_grid(step))(on_grid, case.laid(x), case.laid(labels)),
        expected,
        rtol=1e-3,
        atol=1e-4,
    )

    # Flax refuses a module of an outer trace, under jit too.
    for lifted in (jax.jit, lambda fn: gl.on_grid(fn, device=DEVICE)):
        with pytest.raises(ValueError, match="different trace level"):
            lifted(lambda x: nnx.value_and_grad(loss)(model, x, labels)[0])(x)
