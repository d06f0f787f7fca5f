"""What is not lifted to the grid gives the logical result or says what to do, never the padding.

The padding of every array is 1e6: a result that read it is far off.
"""

import copy
import io
import operator
import os
import pickle
import subprocess
import sys
import weakref
from pathlib import Path

import flax.linen as nn
import flax.serialization
import jax
import jax.custom_batching
import jax.experimental.checkify
import jax.experimental.sparse
import jax.extend.core.primitives
import jax.numpy as jnp
import jax.scipy.sparse.linalg
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


def seen_by(call):
    """What a callback on the host is given."""
    found = []
    call(lambda x: found.append(np.asarray(x)))
    jax.effects_barrier()
    return found


@jax.custom_vjp
def doubled(x):
    return x * 2


doubled.defvjp(lambda x: (x * 2, x), lambda x, ct: (ct * jnp.cos(x),))


@jax.custom_batching.custom_vmap
def sine(x):
    return jnp.sin(x)


@sine.def_vmap
def _(size, batched, x):
    return jnp.sin(x), batched[0]


def through(file_of):
    """The array that NumPy reads back."""
    file = io.BytesIO()
    file_of(file)
    file.seek(0)
    return np.load(file)


LIKE_A = jax.ShapeDtypeStruct(A.shape, A.dtype)
ONE = jax.sharding.SingleDeviceSharding(jax.devices()[0])
MESH = jax.make_mesh((2, 4), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
WHOLE = jax.sharding.NamedSharding(MESH, jax.sharding.PartitionSpec())
P = jax.extend.core.primitives

# The same of what moves, calls back, closes over, binds, copies and reads buffers.
MORE_UNLIFTED = {
    "leaves with path": lambda p: [x for _, x in jax.tree_util.tree_leaves_with_path(p)],
    "reduce": lambda p: jax.tree.reduce(operator.add, [p["w"], p["w"]]),
    "Partial": lambda p: jax.jit(lambda f: f(1.0))(jax.tree_util.Partial(operator.mul, p["w"])),
    "custom_vmap": lambda p: sine(p["w"]),
    "vmap of custom_vmap": lambda p: jax.vmap(sine)(p["w"]),
    "jit of pure_callback": lambda p: jax.jit(lambda w: jax.pure_callback(np.sin, LIKE_A, w))(
        p["w"]
    ),
    "io_callback": lambda p: jax.experimental.io_callback(np.sin, LIKE_A, p["w"]),
    "debug.callback": lambda p: seen_by(lambda see: jax.debug.callback(see, p["w"])),
    "jit of debug.callback": lambda p: seen_by(
        lambda see: jax.jit(lambda w: jax.debug.callback(see, w))(p["w"])
    ),
    "array from callback": lambda p: jax.make_array_from_callback(
        A.shape, ONE, lambda index: np.asarray(p["w"])[index]
    ),
    "array from process": lambda p: jax.make_array_from_process_local_data(ONE, p["w"]),
    "array from devices": lambda p: jax.make_array_from_single_device_arrays(
        A.shape, ONE, [jax.device_put(p["w"], ONE)]
    ),
    "put on a mesh": lambda p: jax.device_put(p["w"], WHOLE),
    "put where it is": lambda p: jax.device_put(p["w"], p["w"].sharding),
    "constraint": lambda p: jax.jit(lambda w: jax.lax.with_sharding_constraint(w, WHOLE))(p["w"]),
    "out_shardings": lambda p: jax.jit(lambda w: w * 2, out_shardings=WHOLE)(p["w"]),
    "zeros in its sharding": lambda p: jnp.zeros(A.shape, device=p["w"].sharding),
    "block_until_ready": lambda p: jax.block_until_ready(p["w"]),
    "donated": lambda p: jax.jit(lambda w: w * 2, donate_argnums=0)(p["w"] + 0),
    "closed over": lambda p: jax.jit(lambda: p["w"] * 2)(),
    "sin, closed over": lambda p: jax.jit(lambda: jnp.sin(p["w"]))(),
    "while, closed over": lambda p: jax.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + p["w"].sum()), (0, 0.0)
    )[1],
    "rows in a loop": lambda p: jax.lax.fori_loop(0, 5, lambda i, c: c + p["w"][i].sum(), 0.0),
    "switch": lambda p: jax.lax.switch(1, [lambda w: w, lambda w: w * 3], p["w"]),
    "custom_vjp": lambda p: jax.grad(lambda w: doubled(w).sum())(p["w"]),
    "custom_root": lambda p: jax.lax.custom_root(
        lambda x: x - p["w"], p["w"], lambda f, x: x - f(x), lambda g, y: y
    ),
    "custom_linear_solve": lambda p: jax.lax.custom_linear_solve(
        lambda x: x * 2, p["w"], lambda matvec, b: b / 2
    ),
    "cg": lambda p: jax.scipy.sparse.linalg.cg(lambda x: x * 2, p["w"])[0],
    "jvp of a plain tangent": lambda p: jax.jvp(lambda w: w * w, (p["w"],), (jnp.asarray(A),)),
    "linear_transpose": lambda p: jax.linear_transpose(lambda w: w * 2, p["w"])(p["w"]),
    "jaxpr of a plain array": lambda p: jax.extend.core.jaxpr_as_fun(
        jax.make_jaxpr(lambda w: jnp.sin(w) * 2)(A)
    )(p["w"]),
    "closure_convert": lambda p: (lambda f, c: f(1.0, *c))(
        *jax.closure_convert(lambda x: x * p["w"], 1.0)
    ),
    "sin_p": lambda p: P.sin_p.bind(p["w"], accuracy=None),
    "add_p": lambda p: P.add_p.bind(p["w"], p["w"]),
    "copy_p": lambda p: P.copy_p.bind(p["w"]),
    "lax.reshape to its shape": lambda p: jax.lax.reshape(p["w"], A.shape),
    "lax.convert_element_type": lambda p: jax.lax.convert_element_type(p["w"], A.dtype),
    "lax.concatenate of one": lambda p: jax.lax.concatenate([p["w"]], 0),
    "vmap's index": lambda p: jax.vmap(
        lambda w: w + jax.lax.axis_index("i"), axis_name="i", out_axes=0
    )(p["w"]),
    "stack of a scan": lambda p: jax.lax.scan(lambda c, _: (c, p["w"] * 2), 0.0, length=2)[1],
    "size of a stack": lambda p: np.asarray(
        jax.lax.scan(lambda c, _: (c, p["w"] * 2), 0.0, length=2)[1].shape
    ),
    "checkify": lambda p: jax.experimental.checkify.checkify(lambda w: w * 2)(p["w"])[1],
    "dlpack": lambda p: np.from_dlpack(p["w"]),
    "__jax_array__": lambda p: p["w"].__jax_array__(),
    "__array_interface__": lambda p: p["w"].__array_interface__,
    "np.where": lambda p: np.where(np.ones(A.shape, bool), p["w"], 0),
    "np.concatenate": lambda p: np.concatenate([p["w"], p["w"]]),
    "np.linalg.norm": lambda p: np.linalg.norm(p["w"]),
    "np.add, out": lambda p: np.add(A, A, out=p["w"]),
    "into a NumPy array": lambda p: (
        operator.setitem(found := np.empty_like(A), ..., p["w"]) or found
    ),
    "into a jax.Array": lambda p: jnp.zeros(A.shape).at[:].set(p["w"]),
    "np.save": lambda p: through(lambda file: np.save(file, p["w"])),
    "an array on the left": lambda p: jnp.asarray(A) * p["w"],
    "NumPy's on the left": lambda p: A - p["w"],
    "rows": lambda p: list(p["w"]),
    "copy": lambda p: copy.copy(p["w"]),
    "weakref": lambda p: weakref.ref(p["w"])(),
    **{
        f"pickle {k}": lambda p, k=k: pickle.loads(pickle.dumps(p["w"], k))
        for k in range(pickle.HIGHEST_PROTOCOL + 1)
    },
    "permutation": lambda p: jax.random.permutation(jax.random.key(0), p["w"]),
    "one_hot": lambda p: jax.nn.one_hot(p["w"].astype(int), 3),
    "resize": lambda p: jax.image.resize(p["w"], (3, 3), "linear"),
    "BCOO": lambda p: jax.experimental.sparse.BCOO.fromdense(p["w"]).todense(),
    "in a shard_map": lambda p: jax.shard_map(
        lambda x: x + p["w"].sum(), mesh=MESH, in_specs=WHOLE.spec, out_specs=WHOLE.spec
    )(jnp.ones(3)),
}


@pytest.mark.few(20)
@pytest.mark.parametrize("name", MORE_UNLIFTED)
def test_more_of_jax_and_numpy(name):
    check(MORE_UNLIFTED[name])


@pytest.mark.parametrize("name", UNLIFTED)
def test_the_logical_result_or_what_to_do(name):
    check(UNLIFTED[name])


def check(fn):
    params = {"w": A, "b": A[0]}
    try:
        found = fn(laid(params))
    except Exception as error:  # of whatever library
        assert "gl.on_grid" in str(error)  # noqa: PT017
        assert "gl.numpy" in str(error) or "gl.zeros_like" in str(error)  # noqa: PT017
        return
    expected = fn(jax.tree.map(jnp.asarray, params))
    for f, w in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
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


@pytest.mark.parametrize("made", ["known", "new"])
def test_a_stack_of_scan_is_no_storage(made):
    """Also where shapes fit, and the function has run on one of them."""
    layout = gl.GridLayout((8, 8), "float32", (4, 4))
    x = poisoned(np.ones((8, 8), "f4"), layout, DEVICE, 1e6)
    fn = gl.on_grid(lambda a: jnp.sin(a) + a.sum())
    if made == "known":
        fn(x)
    _, stack = jax.lax.scan(lambda c, _: (c, x * 2), 0.0, length=2)
    assert stack.shape == (2, 8, 8)
    calls = (fn, jax.jit(fn), jax.grad(lambda a: gl.on_grid(jnp.sum)(a)), gl.summary)
    for call in (*calls, lambda a: gl.map_shards(lambda s: s, a, out=layout)):
        with pytest.raises(gl.LayoutError, match="stack"):
            call(stack)
    assert float(jnp.sum(stack.to_logical())) == 2 * 64 * 2
    again = jax.jit(lambda a: a)(x)
    assert (again.shape, (again + again).shape) == ((8, 8), (8, 8))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(),
        lambda x: x.to_logical(),
        lambda x: gl.relayout(x, x.layout.replace(grid=(1, 2))).to_logical(),
        lambda x: jax.jit(gl.on_grid(jnp.sum))(x),
        lambda x: jax.grad(gl.on_grid(jnp.sum))(x).to_logical(),
        lambda x: gl.put(A, x.layout, DEVICE).to_logical(),
    ],
)
def test_nothing_runs_on_the_grid_in_a_shard_map(call):
    x = laid(A)

    def body(ones):
        return ones + call(x).sum()

    mapped = jax.shard_map(body, mesh=MESH, in_specs=WHOLE.spec, out_specs=WHOLE.spec)
    with pytest.raises(gl.LayoutError, match=r"gl\.on_grid, gl\.numpy .* outside"):
        mapped(jnp.ones(3))
    assert float(call(x).sum()) == float(call(x).sum())  # outside it runs
