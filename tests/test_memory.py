"""The peak of a report against what XLA sets aside for the compiled program."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from processes import run_alone

import gridlayout as gl
from gridlayout.ops.programs import graph
from gridlayout.ops.programs.memory import _Buffer, _set_live_ranges
from gridlayout.ops.programs.row import row_of

SHAPE = (256, 384)
# What XLA sets aside is another number in other versions.
newest = pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="an older XLA")


def layer_norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def mlp(x, up, down):
    return jax.nn.gelu(x @ up) @ down


def positions(x):
    """What no operand is needed for is made where it is read, on each device its part."""
    n, m = x.shape
    return x + jnp.sin(jnp.arange(n, dtype=x.dtype)[:, None] * jnp.arange(m, dtype=x.dtype))


KEY = jax.random.key(0)


def dropout(x, key=KEY):
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x * 2, 0)


def dropped_product(x, up):
    return dropout(jax.nn.relu(x @ up))


def smoothed(x):
    """The gradient of cross entropy with label smoothing."""
    n, m = x.shape
    targets = jax.nn.one_hot(jnp.arange(n) * 7 % m, m) * 0.9 + 0.1 / m
    return jax.nn.softmax(x) - targets


def relative(x):
    """Scores with a bias of relative positions, as T5's buckets are, of a mask besides."""
    n, m = x.shape
    far = jnp.arange(n)[:, None] - jnp.arange(m)
    slow = 8 + (jnp.log(jnp.maximum(jnp.abs(far), 1) / 8) * 4).astype(jnp.int32)
    bias = jnp.where(jnp.abs(far) < 8, jnp.abs(far), jnp.minimum(slow, 15)).astype(x.dtype)
    return jax.nn.softmax(jnp.where(far >= 0, x + bias * 0.1, -1e9))


def turned(x):
    """Rotary positions."""
    n, m = x.shape
    angles = jnp.arange(n)[:, None] / 10000 ** (jnp.arange(m // 2) / (m // 2))
    table = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -1)
    return x * table


def sampled(x):
    return jnp.argmax(x + jax.random.gumbel(KEY, x.shape), -1)


def masked(x):
    """Tokens replaced at random, by random ones."""
    first, second = jax.random.split(KEY)
    chosen = jax.random.bernoulli(first, 0.15, x.shape)
    return jnp.where(chosen, jax.random.normal(second, x.shape), x)


# What is computed of no operand.
PROGRAMS_OF_INDICES = {
    "dropout": (dropout, SHAPE),
    "gradient of dropout": (jax.grad(lambda x: (dropout(x) ** 2).sum()), SHAPE),
    "dropout of a product": (dropped_product, SHAPE, (384, 512)),
    "label smoothing": (smoothed, SHAPE),
    "relative positions": (relative, SHAPE),
    "rotary positions": (turned, SHAPE),
    "gumbel": (sampled, SHAPE),
    "categorical": (lambda x: jax.random.categorical(KEY, x), SHAPE),
    "masked tokens": (masked, SHAPE),
    "noise": (lambda x: x + 0.1 * jax.random.normal(KEY, x.shape), SHAPE),
    "noise and its square": (
        lambda x: (lambda e: (x + e, x * e**2))(jax.random.uniform(KEY, x.shape)),
        SHAPE,
    ),
    "noise without an operand": (lambda x: (x * 2, jax.random.normal(KEY, (512, 512))), SHAPE),
    "random projection": (lambda x: x @ jax.random.normal(KEY, (384, 256)), SHAPE),
    "noise for each key": (
        lambda x: (
            x
            + jax.vmap(lambda k: jax.random.uniform(k, x.shape[1:]))(jax.random.split(KEY, len(x)))
        ),
        SHAPE,
    ),
    "integers": (lambda x: x + jax.random.randint(KEY, x.shape, 0, 9), SHAPE),
    "lower triangle of scores": (
        lambda x: jnp.where(jnp.tri(*x.shape, dtype=bool), x, -jnp.inf),
        SHAPE,
    ),
    "one-hot product": (
        lambda x: jax.nn.one_hot(jnp.arange(256) % 17, 256, dtype=x.dtype) @ x,
        SHAPE,
    ),
    "table of sines": (
        lambda x: x + jnp.sin(jnp.arange(256.0)[:, None] * jnp.arange(384.0)).astype(x.dtype),
        SHAPE,
    ),
    "distances": (
        lambda x: jnp.exp(-jnp.abs(jnp.arange(256.0)[:, None] - jnp.arange(384.0)[None])) * x,
        SHAPE,
    ),
    "stochastic depth": (
        lambda x: x * (jax.random.uniform(KEY, (x.shape[0], 1)) < 0.9),
        SHAPE,
    ),
}


def uneven_rows(x):
    """Each device pads its rows for the mesh: the last relayout goes by one all_to_all."""
    rows, blocks = (gl.GridLayout(x.shape, grid=grid) for grid in [(8, 1), (2, 4)])
    return gl.with_layout(jnp.sin(gl.with_layout(x, rows)), blocks)


def residuals(x, *weights):
    for w in weights:
        x = x + jnp.tanh(layer_norm(x) @ w)
    return x


# name: the function and the shapes of its operands
PROGRAMS = {
    "residuals": (residuals, SHAPE, *[(384, 384)] * 6),
    "add": (lambda x, z: x + z, SHAPE, SHAPE),
    "chain": (lambda x, z: jnp.tanh(x * z + 1) * jnp.exp(-x) - z / 2, SHAPE, SHAPE),
    "where": (lambda x, z: jnp.where(x > 0, x, z), SHAPE, SHAPE),
    "sum of rows": (lambda x: x.sum(1), SHAPE),
    "sum of columns": (lambda x: x.sum(0), SHAPE),
    "argmax": (lambda x: x.argmax(1), SHAPE),
    "softmax": (lambda x: jax.nn.softmax(x, -1), SHAPE),
    "layer norm": (layer_norm, SHAPE),
    "product": (jnp.matmul, SHAPE, SHAPE[::-1]),
    "two products": (lambda x, y: (x @ y) @ x, SHAPE, SHAPE[::-1]),
    "gram": (lambda x: x.T @ x, SHAPE),
    "gram of rows": (lambda x: x @ x.T, SHAPE),
    "mlp": (mlp, SHAPE, (384, 512), (512, 384)),
    "residual": (lambda x, *p: x + mlp(layer_norm(x), *p), SHAPE, (384, 512), (512, 384)),
    "swiglu": (
        lambda x, a, b, c: (jax.nn.silu(x @ a) * (x @ b)) @ c,
        *(SHAPE, (384, 512), (384, 512), (512, 384)),
    ),
    "transpose": (lambda x: x.T * 2, SHAPE),
    "reshape": (lambda x: x.reshape(SHAPE[::-1]) + 1, SHAPE),
    "sort": (lambda x: jnp.sort(x, 1), SHAPE),
    "cumsum": (lambda x: jnp.cumsum(x, 1), SHAPE),
    "concatenate": (lambda x, z: jnp.concatenate([x, z]), SHAPE, SHAPE),
    "concatenate columns": (lambda x, y, z: jnp.concatenate([x, y, z], 1), *[SHAPE] * 3),
    "split columns": (lambda x: jnp.split(x, 3, axis=1), SHAPE),
    "sum of thirds": (lambda x: sum(jnp.split(jnp.tanh(x), 3, axis=1)), SHAPE),
    "slice": (lambda x: x[50:150], SHAPE),
    "lower triangle": (jnp.tril, SHAPE),
    "positions": (positions, SHAPE),
    "causal attention": (
        partial(jax.nn.dot_product_attention, is_causal=True),
        *[(8, 64, 4, 32)] * 3,
    ),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), SHAPE),
    "relayout of uneven rows": (uneven_rows, (256, 383)),
    "relayout": (lambda x: gl.with_layout(x, gl.GridLayout(SHAPE, grid=(4, 2))), SHAPE),
}


def measured(name, tile=None):
    """The bytes on a device by the report, and by the compiled program."""
    fn, *shapes = (PROGRAMS | PROGRAMS_OF_INDICES)[name]
    device, grid = gl.DeviceGrid((2, 4)), (2, 4)
    layouts = [gl.GridLayout(shape, grid=grid, tile=tile) for shape in shapes]
    args = [gl.put(np.ones(layout.shape, np.float32), layout, device) for layout in layouts]
    on_grid = gl.on_grid(fn)
    found = jax.jit(lambda *args: on_grid(*args)).lower(*args).compile().memory_analysis()
    held = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
    return on_grid.report(*args).peak_bytes, held - found.alias_size_in_bytes


@pytest.mark.few(8)
@newest
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_peak_is_within_a_tenth_of_the_compiled_program(name):
    ours, xla = measured(name)
    # XLA multiplies by a matrix that is gathered transposed, of which a copy is counted here. Of a
    # residual block it stores one part of 196,608 B more than is counted, of thirds 32,768 B.
    # Segments of a border, which are counted as one, fit in results.
    near = {"swiglu": 0.11, "residual": 0.14, "sum of thirds": 0.11, "split columns": 0.19}
    assert ours == pytest.approx(xla, rel=near.get(name, 0.1))


@newest
@pytest.mark.parametrize(
    ("shape", "before", "after"),
    [((1024, 517), (1, 8), (2, 1)), ((1003, 517), (8, 1), (1, 4)), ((1003, 517), (8, 1), (1, 8))],
)
def test_the_peak_of_relayouts_by_one_all_to_all_is_that_of_the_compiled_program(
    shape, before, after
):
    device = gl.DeviceGrid((2, 4))
    old, new = (gl.GridLayout(shape, grid=grid) for grid in (before, after))
    x = gl.put(np.zeros(shape, np.float32), old, device)
    fn = gl.on_grid(lambda x: gl.with_layout(x, new))
    found = jax.jit(fn).lower(x).compile().memory_analysis()
    held = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
    assert fn.report(x).peak_bytes == pytest.approx(held, rel=0.01)


def test_each_layer_of_a_chain_of_residuals_takes_the_same_time():
    # If sums were computed again in the kernels of all later layers, late layers would take longer.
    machine, seconds = gl.Machine("v5e 4x4"), []
    for layers in (4, 8, 12):
        shapes = [jax.ShapeDtypeStruct((4096, 64), "float32")] + layers * [
            jax.ShapeDtypeStruct((64, 64), "float32")
        ]
        seconds.append(gl.simulate(residuals, *shapes, machine=machine).time)
    assert seconds[2] - seconds[1] == pytest.approx(seconds[1] - seconds[0])


@pytest.mark.few(6)
@newest
@pytest.mark.parametrize("name", PROGRAMS_OF_INDICES)
def test_the_peak_counts_what_is_computed_of_no_operand(name):
    ours, xla = measured(name)
    assert ours == pytest.approx(xla, rel=0.1)


SMOOTHED_LOSS = """
import gridlayout as gl
gl.emulate_devices(8)  # which leaves YNNPACK out
import jax, jax.numpy as jnp, numpy as np

def loss(x):
    n, m = x.shape
    targets = jax.nn.one_hot(jnp.arange(n) * 7 % m, m) * 0.9 + 0.1 / m
    return -(targets * jax.nn.log_softmax(x)).sum(-1).mean()

layout = gl.GridLayout((256, 384), grid=(2, 4))
x = gl.put(np.ones((256, 384), np.float32), layout, gl.DeviceGrid((2, 4)))
made = gl.on_grid(loss)
found = jax.jit(lambda x: made(x)).lower(x).compile().memory_analysis()
held = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
held -= found.alias_size_in_bytes
ours = made.report(x).peak_bytes
assert abs(ours - held) < 0.1 * held, (ours, held)
"""


@newest
def test_the_peak_of_a_loss_with_label_smoothing():
    # With YNNPACK a device holds besides what its kernels do not make: docs/limits.md.
    ended = run_alone(SMOOTHED_LOSS)
    assert ended.code == 0, ended.err[-3000:]


@newest
@pytest.mark.parametrize("name", ["product", "gram", "mlp", "residual", "reshape", "relayout"])
def test_the_peak_counts_tiles(name):
    ours, xla = measured(name, tile=(32, 32))
    assert ours == pytest.approx(xla, rel=0.14 if name == "residual" else 0.1)  # as above


@newest
@pytest.mark.parametrize("tile", [None, (32, 32)])
@pytest.mark.parametrize("grid", [(2, 4), (4, 2), (8, 1)])
def test_making_the_logical_array_holds_no_more_than_gspmd_does(grid, tile):
    device, shape = gl.DeviceGrid(grid), (512, 1024)
    array = np.ones(shape, np.float32)
    x = gl.put(array, gl.GridLayout(shape, grid=grid, tile=tile), device)
    auto = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh(grid, ("x", "y"), axis_types=auto)
    split, whole = (NamedSharding(mesh, spec) for spec in (P("x", "y"), P()))

    def held(fn, x, **shardings):
        found = jax.jit(fn, **shardings).lower(x).compile().memory_analysis()
        return found.output_size_in_bytes + found.temp_size_in_bytes

    gspmd = held(lambda x: x, jax.device_put(array, split), out_shardings=whole)
    # A device's own part without its tiles, which is sent then.
    untiled = array.nbytes // 8 if tile else 0
    assert array.nbytes <= held(lambda x: x.to_logical(), x) <= gspmd + untiled


@newest
def test_what_is_gathered_is_held_while_its_borders_are_received():
    device = gl.DeviceGrid((2, 4))
    few, all_rows = (gl.GridLayout((1003, 64), grid=(n, 1)) for n in (2, 8))
    x = gl.put(np.ones((1003, 64), np.float32), all_rows, device)
    lifted = gl.on_grid(lambda x: gl.with_layout(x, few))
    found = jax.jit(lifted).lower(x).compile().memory_analysis()
    held = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
    assert lifted.report(x).peak_bytes == pytest.approx(held, rel=0.1)


def test_operands_that_two_products_gather_are_held_and_sent_once():
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    x, w = gl.GridLayout((64, 128), grid=(2, 4)), gl.GridLayout((128, 64), grid=(2, 4))
    here = {"device": device, "algorithm": "gathered"}
    one = gl.on_grid(lambda x, a, b: x @ a, **here).report(x, w, w)
    both = gl.on_grid(lambda x, a, b: (x @ a) * (x @ b), **here).report(x, w, w)
    first, second = (row for row in both.rows if row.primitive == "dot_general")
    gathered = {str(each) for each in first.collectives} - {str(e) for e in second.collectives}
    assert first.collectives == one.rows[0].collectives
    assert gathered == {"all_gather y:4 12,288 B"}


def test_a_loop_holds_its_body_besides_what_it_carries():
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    x, w = gl.GridLayout((64, 64), grid=(2, 4)), gl.GridLayout((64, 64), grid=(2, 4))

    def loop(x, w):
        return lax.fori_loop(0, 3, lambda _, x: x @ w, x)

    once = gl.on_grid(jnp.matmul, device=device).report(x, w).peak_bytes
    report = gl.on_grid(loop, device=device).report(x, w)
    assert once <= report.peak_bytes <= 2 * once


def test_what_one_kernel_adds_is_held_until_then():
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    x, w = gl.GridLayout((64, 64), grid=(2, 4)), gl.GridLayout((64, 64), grid=(2, 4))

    def added(count):
        def fn(x, w):
            return sum([x @ w for _ in range(count)][1:], x)

        return gl.on_grid(fn, device=device).report(x, w).peak_bytes

    assert added(9) - added(5) == 4 * 64 * 64 * 4 // 8


def test_a_body_that_runs_twice_is_held_as_if_it_ran_once():
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    x, w = gl.GridLayout((64, 64), grid=(2, 4)), gl.GridLayout((64, 64), grid=(2, 4))

    def looped(x, w, count):
        for _ in range(count):
            x = lax.fori_loop(0, 3, lambda _, x: x @ w, x)
        return x

    once, often = (
        gl.on_grid(partial(looped, count=count), device=device).report(x, w) for count in (1, 4)
    )
    assert once.peak_bytes <= often.peak_bytes <= once.peak_bytes + 2 * 64 * 64 * 4 // 8


def test_what_many_pieces_read_is_visited_once():
    class Reads(set):
        visits = 0

        def __iter__(self):
            self.visits += 1
            return super().__iter__()

    one, two = Reads(range(3)), Reads([1, 3, 50])
    found = [_Buffer(8, 8, set()) for _ in range(3)]
    found += [_Buffer(8, 8, one) for _ in range(100)]
    found += [_Buffer(8, 8, two) for _ in range(100)]
    _set_live_ranges(found, [*range(len(found))], {0})
    assert [each.last for each in found[:4]] == [203, 202, 102, 202]
    assert found[50].last == 202
    assert (one.visits, two.visits) == (1, 1)


def columns(x):
    return gl.with_layout(jnp.exp(x), gl.GridLayout(x.shape, x.dtype, grid=(1, 16)))


def test_the_pieces_of_an_exchange_are_counted_together():
    """A program of many layers would have most of its samples in them."""
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((16,), ("x",)))
    report = gl.on_grid(columns, device).report(gl.GridLayout((256, 256), "float32", grid=(16, 1)))
    assert [c.kind for row in report.rows for c in row.collectives] == ["all_to_all"]
    part = 256 * 256 * 4 // 16
    assert len(report.memory.over_time) <= 6
    assert report.peak_bytes == max(each.nbytes for each in report.memory.over_time)
    assert 3 * part <= report.peak_bytes <= 5 * part


def test_equal_decisions_are_priced_once(monkeypatch):
    def chain(x, w, n):
        for _ in range(n):
            x = jnp.tanh(x @ w)
        return x

    priced = []
    monkeypatch.setattr(graph, "row_of", lambda *args: priced.append(args) or row_of(*args))
    laid = gl.GridLayout((256, 256), "float32", grid=(1, 1))
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((4,), ("x",)))
    counts = []
    for n in (4, 12):
        priced.clear()
        report = gl.on_grid(partial(chain, n=n), device).report(laid, laid)
        assert len(report.rows) == 2 * n
        counts.append(len(priced))
    assert counts[1] == counts[0] < 8
