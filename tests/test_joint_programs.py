"""Programs, numbers and keys of several processes are compared before they run."""

import json
import threading
import time

import numpy as np
import pytest
from processes import CASES, run_together

from gridlayout.sharding.processes.elements import Elements, Several
from gridlayout.sharding.processes.fair_lock import FairLock
from gridlayout.sharding.processes.jaxprs import jaxpr_lines

# Both processes try each case and print the errors, which are compared here.
PROGRAM = """
import tempfile

device = gl.DeviceGrid((2, 2))
layout = gl.GridLayout((5, 7), grid=(3, 2), tile=(2, 2))
a = np.arange(35, dtype=np.float32).reshape(5, 7)
x = gl.put(a, layout, device)

times = gl.on_grid(lambda x, s: x * s)
rate, ones = 2.0 + RANK, np.full(7, 1 + RANK, np.float32)
case("operator", lambda: x * rate)
case("argument", lambda: times(x, rate))
case("whole number", lambda: times(x, 2 + RANK))
case("NumPy's number", lambda: times(x, np.float32(rate)))
case("JAX's number", lambda: times(x, jnp.float32(rate)))
case("zero", lambda: times(x, (0.0, -0.0)[RANK]))
case("NumPy's array", lambda: times(x, ones))
case("JAX's array", lambda: times(x, jnp.asarray(ones)))
noise = gl.on_grid(lambda x, k: x + jax.random.normal(k, (7,)))
case("key", lambda: noise(x, jax.random.key(RANK)))
case("gradient", lambda: jax.grad(gl.on_grid(lambda x, s: (x * s).sum()))(x, rate))
case("shard", lambda: gl.map_shards(lambda s, t: s * t, x, rate, out=layout))
case("leaf of a tree", lambda: gl.put({"w": a, "rate": np.float32(rate)}, device))
case("leaf of a move", lambda: gl.relayout({"b": jnp.float32(rate), "w": x}, None, device))
case("unchecked", lambda: gl.put(jnp.asarray(a + RANK), layout, device, check=False))
folder = os.environ["FOLDER"]
case("saved number", lambda: gl.save(folder, {"x": x, "step": 3 + RANK}))
case("saved text", lambda: gl.save(folder, {"x": x, "name": "ab"[RANK]}))
inner, mine = jax.jit(lambda x: x * ones), jax.random.key(RANK)
case("captured number", lambda: gl.on_grid(lambda x: x * rate)(x))
case("captured array", lambda: gl.on_grid(lambda x: x * ones)(x))
case("captured key", lambda: gl.on_grid(lambda x: x + jax.random.normal(mine, (7,)))(x))
twice = lambda x: jax.lax.scan(lambda c, _: (inner(c), None), x, length=2)[0]
case("captured inside", lambda: gl.on_grid(twice)(x))


# The processes describe the call equally, and make another program of it.
def policy(shape, dtype, template, device):
    return gl.GridLayout(shape, dtype, grid=((2, 2), (4, 1))[RANK])


case("program", lambda: gl.on_grid(lambda x: (x @ x.T) @ x, policy=policy)(x))

# All is well after that, with what is the same in both.
total = gl.on_grid(lambda x, s: (x * s).sum())
same = {
    "number": lambda: times(x, 2.0),
    "NaN": lambda: times(x, jnp.float32(np.nan)),
    "array": lambda: times(x, np.arange(7, dtype=np.float32)),
    "put": lambda: gl.put(jnp.asarray(a), layout, device),
    "gradient": lambda: jax.grad(gl.on_grid(lambda x, s: (x * s * x).sum()))(x, 2.0),
    "vmap": lambda: jax.vmap(lambda s: total(x, s))(jnp.arange(3.0)),
    "shard": lambda: gl.map_shards(lambda s, t: s * t, x, 3.0, out=layout),
}
key, legacy = jax.random.key(3), jax.random.PRNGKey(3)
noisy = lambda x, k: x + jax.random.normal(k, x.shape)
keys = {
    "argument": lambda: gl.on_grid(noisy)(x, key),
    "captured": lambda: gl.on_grid(lambda x: noisy(x, key))(x),
    "legacy": lambda: gl.on_grid(noisy)(x, legacy),
    "returned": lambda: gl.on_grid(noisy)(x, gl.on_grid(lambda x, k: (x, k))(x, key)[1]),
    "jit": lambda: jax.jit(gl.on_grid(noisy))(x, key),
    "gradient": lambda: jax.grad(gl.on_grid(lambda x, k: (noisy(x, k) ** 2 / 2).sum()))(x, key),
}
found = {name: np.asarray(fn()).tolist() for name, fn in same.items()}
found["keys"] = {name: np.asarray(fn()).tolist() for name, fn in keys.items()}
found["split"] = np.asarray(
    jax.random.key_data(gl.on_grid(lambda x, k: (x, jax.random.split(k)))(x, key)[1])
).tolist()
print(json.dumps([told, found]), flush=True)
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What each of two processes was told, case by case, and what it computed."""
    found = []
    folder = str(tmp_path_factory.mktemp("saved") / "step")
    for ended in run_together(CASES + PROGRAM, count=2, devices=2, FOLDER=folder):
        assert ended.code == 0, ended.out[-2000:] + ended.err[-3000:]
        found.append(json.loads(ended.out.splitlines()[-1]))
    return found


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("operator", ["process 0: array 1: data[] = 2.0", "process 1: array 1: data[] = 3.0"]),
        ("argument", ["process 0: array 1: data[] = 2.0"]),
        ("whole number", ["process 0: array 1: data[] = 2 "]),
        ("NumPy's number", ["process 1: array 1: data[] = 3.0 (bytes 00004040)"]),
        ("JAX's number", ["process 1: array 1: data[] = 3.0 (bytes 00004040)"]),
        ("zero", ["process 1: array 1: data[] = -0.0"]),
        ("NumPy's array", ["process 1: array 1: data[0] = 2.0"]),
        ("JAX's array", ["process 1: array 1: data[0] = 2.0"]),
        ("key", ["process 0: array 1: data[1] = 0", "process 1: array 1: data[1] = 1"]),
        ("gradient", ["under a transformation of JAX", "data[] = 3.0"]),
        ("shard", ["gl.map_shards", "process 0: array 1: data[] = 2.0"]),
        ("leaf of a tree", ["process 0: array 0: data[] = 2.0"]),
        ("leaf of a move", ["gl.relayout", "process 0: array 0: data[] = 2.0"]),
        ("saved number", ["gl.save", "process 1: leaf 'step' (int): data[] = 4"]),
        ("saved text", ["gl.save", "process 1: leaf 'name' (str): data[] = b"]),
        ("captured number", ["mul a 2.0:f32[]", "mul a 3.0:f32[]"]),
        ("captured array", ["process 0: constant float32[7] of digest"]),
        ("captured key", ["of digest"]),
        ("captured inside", ["process 0: constant float32[7] of digest"]),
        ("program", ["process 0: lowered program: ", "planned or lowered another program"]),
    ],
)
def test_what_differs_is_told_to_all(both, name, words):
    zero, one = (told[name] for told, _ in both)
    assert zero.split(": the processes differ")[1] == one.split(": the processes differ")[1]
    for word in words:
        assert word in zero


def test_data_is_not_compared_if_the_user_says_so(both):
    assert [told["unchecked"] for told, _ in both] == ["nothing", "nothing"]


def test_what_is_the_same_runs(both):
    a = np.arange(35, dtype=np.float32).reshape(5, 7)
    for _, found in both:
        np.testing.assert_array_equal(found["number"], a * 2)
        assert np.isnan(np.array(found["NaN"], float)).all()
        np.testing.assert_array_equal(found["array"], a * np.arange(7))
        np.testing.assert_array_equal(found["put"], a)
        np.testing.assert_array_equal(found["gradient"], a * 4)
        np.testing.assert_array_equal(found["vmap"], a.sum() * np.arange(3))
        np.testing.assert_array_equal(found["shard"], a * 3)


def test_random_keys_are_arguments_constants_and_results(both):
    import jax

    a = np.arange(35, dtype=np.float32).reshape(5, 7)
    noisy = a + np.asarray(jax.random.normal(jax.random.key(3), a.shape))
    for _, found in both:
        for name, values in found["keys"].items():
            np.testing.assert_allclose(values, noisy, rtol=1e-5, atol=1e-5, err_msg=name)
        split = jax.random.key_data(jax.random.split(jax.random.key(3)))
        np.testing.assert_array_equal(found["split"], split)


# -- one process -----------------------------------------------------------------------------------


def test_several_arrays_are_compared_one_after_another():
    arrays = {"x": np.arange(3, dtype=np.int8), "none": np.zeros(0), "y": np.float32(0.5)}
    found = Several(arrays)
    assert len(found) == 4
    assert [found.unit(k) for k in (0, 3, 4)] == [
        "x: data[0] = 0 (bytes 00)",
        "y: data[] = 0.5 (bytes 0000003f)",
        "no more",
    ]
    other = Several({**arrays, "y": np.float32(0.25)})
    same = [found.prefix(k) == other.prefix(k) for k in (0, 1, 3, 4, None)]
    assert same == [True, True, True, False, False]
    assert Elements(np.zeros(0)).prefix(0) == Elements(np.zeros(0)).prefix(None)


def test_threads_get_a_lock_in_the_order_in_which_they_ask():
    lock, order, threads = FairLock(), [], []

    def ask(number):
        lock.acquire()
        order.append(number)
        lock.release()

    lock.acquire()
    for number in range(8):
        threads.append(threading.Thread(target=ask, args=(number,)))
        threads[-1].start()
        while len(lock._waiting) <= number:
            time.sleep(0.001)
    lock.release()
    for each in threads:
        each.join()
    assert order == list(range(8))
    lock.acquire()  # it is free again


def constants(fn, *args):
    import jax

    return [line for line in jaxpr_lines(jax.make_jaxpr(fn)(*args)) if "of digest" in line]


@pytest.mark.parametrize("where", ["outside", "jit", "scan", "cond", "vjp"])
def test_lines_of_a_jaxpr_have_the_values_of_its_constants(where):
    import jax
    import jax.numpy as jnp

    def lines(table):
        inner = jax.jit(lambda x: x * table)
        derived = jax.custom_vjp(inner)
        derived.defvjp(lambda x: (inner(x), x), lambda x, ct: (ct,))
        fn = {
            "outside": lambda x: x * table,
            "jit": inner,
            "scan": lambda x: jax.lax.scan(lambda c, _: (inner(c), None), x, length=2)[0],
            "cond": lambda x: jax.lax.cond(x[0] > 0, inner, jnp.sin, x),
            "vjp": derived,
        }[where]
        return constants(fn, np.ones(2000, np.float32))

    table = np.ones(2000, np.float32)
    other = table.copy()
    other[1000] += 1
    assert lines(table)
    assert lines(table) == lines(table.copy()) != lines(other)
