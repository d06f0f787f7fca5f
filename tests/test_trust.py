"""What is not lifted to the grid gives the logical result or says what to do, never the padding.

The padding of every array is 1e6: a result that read it is far off.
"""

import os
import subprocess
import sys
from pathlib import Path

import flax.linen as nn
import flax.serialization
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.flatten_util import ravel_pytree
from laid_out import poisoned

import gridlayout as gl

DEVICE = gl.DeviceGrid((2, 4))
A = np.linspace(-1, 1, 35, dtype="f4").reshape(5, 7)
DENSE = nn.Dense(3)
VARIABLES = DENSE.init(jax.random.key(0), A)


def laid(tree):
    def one(a):
        grid = (2, 3) if a.ndim > 1 else (3,)
        return poisoned(a, gl.GridLayout(a.shape, a.dtype, grid), DEVICE, 1e6)

    return jax.tree.map(one, tree)


def updated(make):
    """An optimizer's first update, of gradients like the parameters."""

    def run(params):
        optimizer = make()
        return optimizer.update(params, optimizer.init(params), params)[0]

    return run


# Functions of a tree of parameters that nobody lifted.
UNLIFTED = {
    "norm of a tree": lambda p: optax.tree.norm(p),
    "clip_by_global_norm": updated(lambda: optax.clip_by_global_norm(0.1)),
    "clip": updated(lambda: optax.clip(0.1)),
    "adaptive_grad_clip": updated(lambda: optax.adaptive_grad_clip(0.1)),
    "apply_updates": lambda p: optax.apply_updates(p, p),
    "add_decayed_weights": updated(lambda: optax.add_decayed_weights(0.1)),
    "ema": updated(lambda: optax.ema(0.9)),
    "sgd": updated(lambda: optax.sgd(0.1, momentum=0.9)),
    "adam": updated(lambda: optax.adam(0.1)),
    "adam's state": lambda p: optax.adam(0.1).init(p),
    "incremental_update": lambda p: optax.incremental_update(p, p, 0.1),
    "tree zeros_like": lambda p: optax.tree.zeros_like(p),
    "tree vdot": lambda p: optax.tree.vdot(p, p),
    "tree sum": lambda p: optax.tree.sum(p),
    "mean of each": lambda p: jax.tree.map(jnp.mean, p),
    "sizes": lambda p: sum(x.size for x in jax.tree.leaves(p)),
    "shapes": lambda p: [np.asarray(x.shape) for x in jax.tree.leaves(p)],
    "ravel_pytree": lambda p: ravel_pytree(p)[0],
    "sin": lambda p: jnp.sin(p["w"]),
    "jit of sin": lambda p: jax.jit(jnp.sin)(p["w"]),
    "lax.sin": lambda p: jax.lax.sin(p["w"]),
    "jit of lax.sin": lambda p: jax.jit(jax.lax.sin)(p["w"]),
    "np.sin": lambda p: np.sin(p["w"]),
    "np.mean": lambda p: np.mean(p["w"]),
    "np.asarray": lambda p: np.asarray(p["w"]),
    "jnp.asarray": lambda p: jnp.asarray(p["w"]),
    "relu": lambda p: jax.nn.relu(p["w"]),
    "softmax": lambda p: jax.nn.softmax(p["w"]),
    "dot": lambda p: jnp.dot(p["w"], p["b"]),
    "einsum": lambda p: jnp.einsum("ij,j->i", p["w"], p["b"]),
    "stack": lambda p: jnp.stack([p["w"], p["w"]]),
    "where": lambda p: jnp.where(np.ones(7, bool), p["w"], 0),
    "norm": lambda p: jnp.linalg.norm(p["w"]),
    "zeros_like": lambda p: jnp.zeros_like(p["w"]),
    "jit of ones_like": lambda p: jax.jit(jnp.ones_like)(p["w"]),
    "jacfwd": lambda p: jax.jacfwd(lambda w: jnp.sum(w))(p["w"]),
    "grad": lambda p: jax.grad(lambda w: jnp.sum(w * w))(p["w"]),
    "vmap": lambda p: jax.vmap(jnp.sum)(p["w"]),
    "scan": lambda p: jax.lax.scan(lambda c, x: (c + x.sum(), None), 0.0, p["w"], length=5)[0],
    "checkpoint": lambda p: jax.checkpoint(lambda w: w)(p["w"]),
    "checkpoint of sin": lambda p: jax.checkpoint(jnp.sin)(p["w"]),
    "checkpoint_name": lambda p: checkpoint_name(p["w"], "w"),
    "jit of checkpoint_name": lambda p: jax.jit(lambda w: checkpoint_name(w, "w"))(p["w"]),
    "stop_gradient": lambda p: jax.lax.stop_gradient(p["w"]),
    "jit of stop_gradient": lambda p: jax.jit(jax.lax.stop_gradient)(p["w"]),
    "optimization_barrier": lambda p: jax.lax.optimization_barrier(p["w"]),
    "reduce_precision": lambda p: jax.lax.reduce_precision(p["w"], 8, 23),
    "associative_scan": lambda p: jax.lax.associative_scan(jnp.add, p["w"]),
    "device_put": lambda p: jax.device_put(p["w"], jax.devices()[0]),
    "pure_callback": lambda p: jax.pure_callback(
        np.sin, jax.ShapeDtypeStruct(A.shape, A.dtype), p["w"]
    ),
    "vectorize": lambda p: jnp.vectorize(lambda x: x + 1)(p["w"]),
    "no attribute": lambda p: p["w"].real.nosuch,
    "Flax's apply": lambda p: DENSE.apply(VARIABLES, p["w"]),
    "device_get": jax.device_get,
    "operators": lambda p: p["w"] * 2 + p["w"],
    "Python's sum": lambda p: sum(p["w"]),
    "state dict": flax.serialization.to_state_dict,
}


@pytest.mark.parametrize("name", UNLIFTED)
def test_the_logical_result_or_what_to_do(name):
    params = {"w": A, "b": A[0]}
    try:
        found = UNLIFTED[name](laid(params))
    except Exception as error:  # of whatever library
        assert "gl.on_grid" in str(error)  # noqa: PT017
        assert "gl.numpy" in str(error) or "gl.zeros_like" in str(error)  # noqa: PT017
        return
    wanted = UNLIFTED[name](jax.tree.map(jnp.asarray, params))
    for f, w in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(f), w, rtol=1e-5, atol=1e-6)


def test_laid_out_parameters_in_flax():
    kernel = laid(VARIABLES)
    for apply in (DENSE.apply, gl.on_grid(DENSE.apply)):  # Flax takes logical arrays of them
        found = np.asarray(apply(kernel, A))
        np.testing.assert_allclose(found, DENSE.apply(VARIABLES, A), rtol=1e-5, atol=1e-6)


def test_bytes_of_flax_are_refused_in_words():
    with pytest.raises(TypeError, match="GridArray"):
        flax.serialization.to_bytes({"w": laid(A)})
    plain = jax.device_get({"w": laid(A)})
    again = flax.serialization.from_bytes(plain, flax.serialization.to_bytes(plain))
    np.testing.assert_array_equal(again["w"], A)


def test_numpy_files_keep_the_values(tmp_path):
    np.save(tmp_path / "w.npy", jax.device_get(laid(A)))
    np.testing.assert_array_equal(np.load(tmp_path / "w.npy"), A)


def test_orbax_saves_the_logical_array_or_refuses(tmp_path):
    ocp = pytest.importorskip("orbax.checkpoint")
    saved = laid({"w": A})
    with ocp.StandardCheckpointer() as checkpointer:
        try:
            checkpointer.save(tmp_path / "ck", saved)
            checkpointer.wait_until_finished()
            found = checkpointer.restore(tmp_path / "ck")
        except (ValueError, TypeError) as error:
            assert "gl.on_grid" in str(error)  # noqa: PT017
            return
    np.testing.assert_array_equal(np.asarray(found["w"]), A)


RUN_EXPORTED = """
import sys
from pathlib import Path

import gridlayout as gl

gl.emulate_devices(8)

import jax
import numpy as np

exported = jax.export.deserialize(bytearray(Path(sys.argv[1]).read_bytes()))
array = jax.device_put(np.load(sys.argv[2]), gl.DeviceGrid((2, 4)).replicated)
np.save(sys.argv[2], jax.jit(exported.call)(array))
"""


def test_an_exported_program_takes_and_gives_logical_arrays(tmp_path):
    layout = gl.GridLayout(A.shape, "float32", (2, 3))

    def fn(a):
        return gl.on_grid(jnp.tanh)(gl.put(a, layout, DEVICE)).to_logical()

    exported = jax.export.export(jax.jit(fn))(jax.ShapeDtypeStruct(A.shape, A.dtype))
    program, array = tmp_path / "program", tmp_path / "array.npy"
    program.write_bytes(exported.serialize())
    np.save(array, A)
    command = [sys.executable, "-c", RUN_EXPORTED, program, array]
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    subprocess.run(command, check=True, timeout=120, env=here)
    np.testing.assert_allclose(np.load(array), np.tanh(A), rtol=1e-6)


def test_an_exported_function_of_grid_arrays_takes_none():
    x = laid(A)
    exported = jax.export.export(jax.jit(gl.on_grid(jnp.tanh)))(x)
    with pytest.raises(ValueError, match="structure"):
        exported.call(x)
