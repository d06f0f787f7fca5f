"""What a first call compiles, in numbers of programs and of kernels."""

import re
import subprocess
import sys
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gridlayout as gl
from gridlayout.ops.primitives import control


def kernels(text):
    """The different kernels of an optimized HLO text: XLA compiles equal ones once."""
    plain = re.sub(r", metadata=\{[^}]*\}", "", text)
    bodies = re.findall(r"^%\S+ \(.*?\) -> [^\n]* \{\n(.*?)^\}", plain, re.M | re.S)
    found = set()
    for body in bodies:
        numbers = {}
        name = lambda match, numbers=numbers: f"%{numbers.setdefault(match[0], len(numbers))}"  # noqa: E731
        found.add(re.sub(r"%[\w.-]+", name, body))
    return found


def layers(count, grid, side=24):
    """The compiled step of gradient descent for some layers whose weights are divided by `grid`."""
    device = gl.DeviceGrid((2, 4))
    layout = gl.GridLayout((side, side), grid=grid)
    weights = [gl.put(np.ones(layout.shape, np.float32), layout, device) for _ in range(count)]
    x = gl.put(np.ones((32, side), np.float32), gl.GridLayout((32, side), grid=(8, 1)), device)

    def loss(weights, x):
        for w in weights:
            x = x + jnp.tanh(x @ w)
        return jnp.mean(x**2)

    def step(weights, x):
        return [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights, x), strict=True)]

    return gl.on_grid(step).lower(weights, x).compile().as_text()


@pytest.mark.few(1)
@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="an older XLA fuses the positions")
@pytest.mark.parametrize("grid", [(1, 1), (8, 1)], ids=["replicated", "by rows"])
def test_more_layers_need_no_other_kernels(grid):
    """Weights are gathered together, gradients summed together: each is cut out by one kernel."""
    few, many = layers(4, grid), layers(8, grid)
    assert many.count(" fusion(") > few.count(" fusion(")
    assert len(kernels(many)) == len(kernels(few))


@pytest.mark.parametrize("shape", [(64, 40), (61, 37)], ids=["even", "uneven"])
def test_an_all_to_all_is_cut_by_one_kernel(shape):
    """XLA for CPUs cuts what devices send; constant positions would be a kernel for each device."""
    rows, columns = (gl.GridLayout(shape, grid=grid) for grid in ((8, 1), (1, 8)))
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x = gl.put(array, rows, gl.DeviceGrid((2, 4)))
    move = jax.jit(lambda x: gl.relayout(x, columns))
    text = move.lower(x).compile().as_text()
    assert len(re.findall(r" all-to-all\(", text)) == 1
    assert not re.findall(r"slice=\{[^}]*\[[1-9]\d*:", text)
    np.testing.assert_array_equal(np.asarray(move(x)), array)


def test_the_best_way_is_recorded_once(monkeypatch):
    """The body of a loop is planned once for each way to lay out its carry, the best one too."""
    planned = []

    def start_body(b, specs, *chosen):
        planned.append(tuple(specs))
        return control_start_body(b, specs, *chosen)

    control_start_body = control.start_body
    monkeypatch.setattr(control, "start_body", start_body)
    xs = gl.GridLayout((16, 72), grid=(1, 8))
    scan = gl.on_grid(lambda xs: jax.lax.scan(lambda c, x: (c + x, c * x), xs[0], xs))
    scan.report(gl.put(jax.ShapeDtypeStruct(xs.shape, xs.dtype), xs, gl.DeviceGrid((2, 4))))
    assert len(planned) == len({*planned}) > 0


_EVENT = "/jax/core/compile/backend_compile_duration"


@contextmanager
def compiled_programs():
    """The seconds of each program that is compiled inside."""
    found, own = [], [True]

    def listen(event, seconds, **_):
        if event == _EVENT and own:
            found.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield found
    own.clear()


def poisoned(x):
    """The same array with NaN in its padding."""
    storage = np.array(x.storage)
    mask = np.ones(storage.shape, bool)
    mask[tuple(map(slice, x.layout.physical_shape))] = x.layout.padding_mask()
    storage[mask] = np.nan
    return gl.GridArray(jax.device_put(storage, x.storage.sharding), x.layout, x.device)


def matrix(*shape, seed=0):
    """A random matrix in tiles with padding, of NaN, and the same in NumPy."""
    array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    layout = gl.GridLayout(shape, "float32", grid=(2, 4), tile=(8, 8))
    return poisoned(gl.put(array, layout, gl.DeviceGrid((2, 4)))), array


def loss(x):
    return jnp.tanh(x @ x.T).sum()


def same(found, wanted):
    """Whether gradients and losses are those of plain JAX."""
    found, wanted = jax.tree.leaves(found), jax.tree.leaves(wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-4, atol=2e-4)


def test_a_gradient_outside_of_jit_is_one_program():
    jax.grad(gl.on_grid(loss))(matrix(9, 11)[0])  # the cotangent 1 is made by programs too
    for shape in ((13, 21), (34, 6)):
        x, array = matrix(*shape)
        with compiled_programs() as programs:
            found = jax.grad(gl.on_grid(loss))(x)
        assert len(programs) == 1
        same(found, jax.jit(jax.grad(loss))(array))


def test_other_cotangents_take_two_passes():
    lifted = gl.on_grid(loss)
    x, array = matrix(19, 23)
    scaled = lambda fn: lambda x: 0.5 * fn(x) ** 2  # noqa: E731
    half, (wanted, slope) = jax.jit(
        lambda a: (jax.grad(scaled(loss))(a), jax.value_and_grad(loss)(a))
    )(array)
    for _ in range(2):
        same(jax.grad(scaled(lifted))(x), half)
    same(jax.grad(lifted)(x), slope)
    with compiled_programs() as programs:
        same(jax.grad(scaled(lifted))(x), half)
    assert not programs
    value, back = jax.vjp(lifted, x)
    same((value, back(jnp.float32(3))), (wanted, [3 * slope]))
    same(jax.vmap(back)(jnp.arange(2.0))[0], np.stack([0 * array, slope]))
    same(jax.jit(back)(jnp.float32(1)), [slope])


def test_a_gradient_in_one_program_is_that_of_any_function():
    (x, a), (y, b) = matrix(12, 20), matrix(20, 10, seed=1)

    def several(x, y, n):
        made = jnp.tanh(x @ y) * n
        return made.sum(), (made, n + 1)

    lifted = gl.on_grid(several)
    for argnums in (0, 1, (0, 1)):
        grad = lambda fn, k=argnums: jax.value_and_grad(fn, k, has_aux=True)  # noqa: E731
        same(grad(lifted)(x, y, 3), jax.jit(grad(several))(a, b, 3))
    same(
        jax.grad(lambda x: lifted(x, y, 3)[0])(x),
        jax.jit(jax.grad(lambda x: several(x, b, 3)[0]))(a),
    )
    hessian = jax.grad(lambda x: jax.grad(gl.on_grid(loss))(x).to_logical()[0].sum())
    same(hessian(x), jax.jit(jax.grad(lambda x: jax.grad(loss)(x)[0].sum()))(a))


CACHED = """
import collections
import gridlayout as gl
gl.emulate_devices(8)
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_compilation_cache_dir", {cache!r})
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
events = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: events.update([event.split("/")[-1]]))
device = gl.DeviceGrid((2, 4))
tree = {{name: np.ones((9, 9), np.float32) for name in "cab"}}
tree = gl.put(tree, device, lambda shape, dtype: gl.GridLayout(shape, dtype, (2, 4), (2, 2)))

def loss(tree, key):
    x = jnp.tanh(tree["a"] @ tree["b"] + jax.random.normal(key, (9, 9)))
    return jnp.sum(jax.lax.fori_loop(0, 3, lambda _, c: c @ x, tree["c"]))

value, grads = jax.value_and_grad(gl.on_grid(loss))(tree, jax.random.key(0))
rows = gl.GridLayout((9, 9), "float32", (8, 1))
jax.block_until_ready([gl.relayout(x, rows).storage for x in grads.values()])
print(events["compile_requests_use_cache"], events["cache_hits"], float(value))
"""


def test_a_second_process_finds_every_program_in_the_cache(tmp_path):
    """Keys of JAX's compilation cache are the same in each process."""
    found = []
    for _ in range(2):  # each hashes texts in another way
        line = [sys.executable, "-c", CACHED.format(cache=str(tmp_path))]
        done = subprocess.run(line, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        found.append([float(number) for number in done.stdout.split()])
    (asked, hits, value), (again, all_hits, same_value) = found
    assert hits < asked == again == all_hits
    assert value == same_value


def test_slices_of_one_size_are_one_program():
    values = np.random.default_rng(0).normal(size=(53, 20)).astype("f4")
    layout = gl.GridLayout((53, 20), grid=(3, 2))
    x = poisoned(gl.put(values, layout, gl.DeviceGrid((2, 4))))
    want = [values[i : i + 4, -3:] for i in range(0, 50, 7)]
    first = x[0:4, 2:5]
    with compiled_programs() as found:
        made = [x[i : i + 4, -3:] for i in range(0, 50, 7)] + [x[-4:, 1:4]]
    assert not found
    assert {each.layout for each in made} == {first.layout}
    for each, expected in zip(made, [*want, values[-4:, 1:4]], strict=True):
        np.testing.assert_array_equal(np.asarray(each), expected)


@pytest.mark.few(5)
@pytest.mark.parametrize(
    "index",
    [
        *(np.s_[2:5], np.s_[-3:], np.s_[:2, ...], np.s_[..., 1:4], np.s_[2, 1:3], np.s_[1:3, -1]),
        *(np.s_[1:-1], np.s_[::2], np.s_[4:1], np.s_[-99:2], np.s_[1:2, None], np.s_[0:2, [1, 3]]),
    ],
    ids=str,
)
def test_slices_are_those_of_numpy(index):
    values = np.random.default_rng(0).normal(size=(11, 9)).astype("f4")
    layout = gl.GridLayout((11, 9), grid=(3, 2))
    x = poisoned(gl.put(values, layout, gl.DeviceGrid((2, 4))))
    np.testing.assert_array_equal(np.asarray(x[index]), values[index])
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: x[index])(x)), values[index])


ROWS = np.random.default_rng(1).normal(size=(4, 20)).astype("f4")
PICKED = np.array([[3, 0, 52], [7, 7, 1]])
UPDATES = ("add", "mul", "min", "max", "divide", "power")
# What depends on a start; the size of what it selects does not.
OF_A_START = {
    "most of a dim": lambda x, i: x[i : i + 40],
    "most of two dims": lambda x, i: x[i : i + 37, i : i + 11],
    "steps": lambda x, i: x[i : i + 8 : 2],
    "backwards": lambda x, i: x[i + 9 : i : -3],
    "from the end": lambda x, i: x[-9 - i : -5 - i],
    "new dims": lambda x, i: x[None, i : i + 4, :, None],
    "beside integers": lambda x, i: x[i, i : i + 3],
    "beside arrays": lambda x, i: x[PICKED[i % 2], i : i + 3],
    "set": lambda x, i: x.at[i : i + 4].set(ROWS),
    "set most of a dim": lambda x, i: x.at[i : i + 40].set(ROWS[:1]),
    "set a step": lambda x, i: x.at[i : i + 8 : 2].set(ROWS),
    "set beside an integer": lambda x, i: x.at[i, i : i + 3].set(ROWS[0, :3]),
    "set backwards": lambda x, i: x.at[i + 4 : i : -1].set(ROWS),
    "apply": lambda x, i: x.at[i : i + 4].apply(jnp.sin),
    "get": lambda x, i: x.at[..., i : i + 4].get(),
    **{name: lambda x, i, name=name: getattr(x.at[i : i + 4, 2:5], name)(2.0) for name in UPDATES},
}


@pytest.mark.few(10)
@pytest.mark.parametrize("tile", [None, (4, 4)])
@pytest.mark.parametrize("name", OF_A_START)
def test_accesses_at_all_starts_are_one_program(name, tile):
    fn, values = OF_A_START[name], np.abs(np.random.default_rng(0).normal(size=(53, 20)))
    values = values.astype("f4")
    layout = gl.GridLayout(values.shape, grid=(3, 2), tile=tile)
    x = poisoned(gl.put(values, layout, gl.DeviceGrid((2, 4))))
    fn(x, 1)
    with compiled_programs() as programs:
        found = [fn(x, i) for i in (0, 3, 8)]
    is_update = name.startswith(("set", "apply", *UPDATES))
    assert not programs
    for i, each in zip((0, 3, 8), found, strict=True):
        np.testing.assert_allclose(np.asarray(each), fn(jnp.asarray(values), i), rtol=1e-6)
        assert not is_update or each.layout.with_oob(None) == layout
