"""`gl.plan`: planned programs equal JAX's, are what was planned, and cost what the plan says."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hlo import OURS, compiled_collectives
from laid_out import assert_same
from tiers import few

import gridlayout as gl

COUNT = len(jax.devices())
needs_8 = pytest.mark.skipif(COUNT < 8, reason="the plans are run on 8 devices")


def shaped(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def array(shape, seed):
    made = np.random.default_rng(seed).standard_normal(shape)
    return (made / np.sqrt(shape[-1] if len(shape) > 1 else 1)).astype(np.float32)


def mlp(x, w1, w2):
    return jax.nn.relu(x @ w1) @ w2


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


def step(params, x, y):
    grads = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda w, g: w - 0.1 * g, params, grads)


def attention(x, qkv, out):
    q, k, v = (part.reshape(2, -1, 4, x.shape[1] // 4) for part in jnp.split(x @ qkv, 3, -1))
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(x.shape) @ out


def scanned(x, stack):
    return jax.lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum(0)), x, stack)


def power(a, v):
    return jax.lax.fori_loop(0, 5, lambda _, v: (a @ v) / jnp.linalg.norm(a @ v), v)


def embedding(table, ids, head):
    return jax.nn.log_softmax(table[ids] @ head)


def branches(x, w):
    return jax.lax.cond(x.sum() > 0, lambda x: x @ w, lambda x: -x @ w, x)


PARAMS = {"w1": (30, 64), "b1": (64,), "w2": (64, 10)}
# A function, and the shapes of its arguments.
PROGRAMS = {
    "product": (lambda x, w: x @ w, [(24, 20), (20, 36)]),
    "mlp": (mlp, [(100, 30), (30, 64), (64, 10)]),
    "tall mlp": (mlp, [(3, 64), (64, 256), (256, 64)]),
    "training step": (step, [PARAMS, (100, 30), (100, 10)]),
    "attention": (attention, [(64, 32), (32, 96), (32, 32)]),
    "gradient of attention": (
        lambda *a: jax.grad(lambda *a: jnp.sum(attention(*a) ** 2), argnums=(0, 1, 2))(*a),
        [(64, 32), (32, 96), (32, 32)],
    ),
    "scan": (scanned, [(64, 32), (4, 32, 32)]),
    "gradient of a scan": (
        jax.grad(lambda x, stack: jnp.sum(scanned(x, stack)[0] ** 2), argnums=(0, 1)),
        [(64, 32), (4, 32, 32)],
    ),
    "power iteration": (power, [(64, 64), (64,)]),
    "gather": (lambda t, h: embedding(t, jnp.arange(12) % 7, h), [(40, 16), (16, 24)]),
    "branches": (branches, [(24, 16), (16, 8)]),
    "sort": (lambda x, w: jnp.sort(x @ w, -1), [(24, 16), (16, 40)]),
    "convolution": (
        lambda x, k: jax.lax.conv(x, k, (1, 1), "SAME"),
        [(8, 3, 8, 8), (16, 3, 3, 3)],
    ),
}
MESHES = {"8": (8,), "2x4": (2, 4), "2x2x2": (2, 2, 2)}


def arguments(shapes):
    leaves, structure = jax.tree.flatten(shapes, is_leaf=lambda x: isinstance(x, tuple))
    return jax.tree.unflatten(structure, [array(s, k) for k, s in enumerate(leaves)])


def emulated(mesh):
    """A machine of emulated devices in a mesh."""
    return gl.DeviceGrid(mesh).machine.on(mesh)


@needs_8
@pytest.mark.parametrize(
    ("name", "mesh"), few([(name, mesh) for name in PROGRAMS for mesh in MESHES], 15)
)
def test_planned_programs_are_jaxs(name, mesh):
    fn, shapes = PROGRAMS[name]
    args = arguments(shapes)
    plan = gl.plan(fn, *args, machine=emulated(MESHES[mesh]))
    assert 0 < plan.bound <= plan.time
    assert plan.time == pytest.approx(sum(e.seconds for e in plan.simulation.equations))
    made = plan.run(*args)
    assert_same(made, jax.jit(fn)(*args), rtol=1e-3, atol=1e-4)
    # Every layout is the one that was planned.
    placed = jax.tree.leaves(plan.put(args), is_leaf=lambda x: isinstance(x, gl.GridArray))
    for x, layout in zip(placed, plan.layouts.values(), strict=True):
        assert x.layout == layout
    outs = jax.tree.leaves(made, is_leaf=lambda x: isinstance(x, gl.GridArray))
    for x, layout in zip(outs, plan.results.values(), strict=True):
        assert layout is None or x.layout.with_oob(None) == layout.with_oob(None)
    # On the grid by the plan as a policy, plain arrays as they are.
    by_policy = gl.on_grid(fn, device=plan.devices, policy=plan)(*args)
    assert_same(by_policy, jax.jit(fn)(*args), rtol=1e-3, atol=1e-4)


@needs_8
@pytest.mark.parametrize("name", few(list(PROGRAMS), 6))
def test_collectives_of_plans_are_those_of_the_compiled_program(name):
    fn, shapes = PROGRAMS[name]
    args = arguments(shapes)
    plan = gl.plan(fn, *args, machine=emulated((2, 4)))
    told, made = Counter(), Counter()
    for each in (c for e in plan.simulation.equations for c in e.collectives):
        told[each.kind] += each.total_bytes
    lowered = gl.on_grid(fn, policy=plan).lower(*plan.put(args))
    for kind, _, nbytes in compiled_collectives(lowered.compile().as_text(), 8):
        made[OURS[kind]] += nbytes
    for kind in told | made:
        assert told[kind] == pytest.approx(made[kind], rel=0.02), kind
