"""Programs whose divisions are chosen as a whole: JAX's results, few collectives, told truly."""

import itertools
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from devices import STATED, mapped
from hlo import OURS, compiled_collectives
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import AbstractMesh
from laid_out import assert_same, poisoned
from machines import FAST, with_latency
from tiers import few

import gridlayout as gl
from gridlayout.caching import drop_all
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.interpret import planner
from gridlayout.ops.primitives.table import factors_of
from gridlayout.ops.programs.together import joined

COUNT = len(jax.devices())
pytestmark = pytest.mark.skipif(COUNT < 8, reason="textbook placements are of 8 devices")
DEVICE = gl.DeviceGrid((2, 4)) if COUNT >= 8 else None
ABSTRACT = gl.DeviceGrid(AbstractMesh((2, 4), ("x", "y")), machine=with_latency(1e-4))


def array(shape, seed=0):
    return (np.random.default_rng(seed).normal(size=shape) / 4).astype("f4")


def laid(shapes, grids, device=DEVICE, tile=None):
    return [
        gl.put(array(s, k), gl.GridLayout(s, "float32", g, tile, []), device)
        for k, (s, g) in enumerate(zip(shapes, grids, strict=True))
    ]


def residual(x, *weights):
    for w in weights:
        x = x + jnp.tanh(x @ w)
    return x


def mlp(x, *weights):
    *hidden, last = weights
    for w in hidden:
        x = jax.nn.relu(x @ w)
    return x @ last


def step(fn):
    """A step of gradient descent."""

    def run(x, *weights):
        grads = jax.grad(lambda ws: jnp.mean(fn(x, *ws) ** 2))(weights)
        return [w - 0.1 * g for w, g in zip(weights, grads, strict=True)]

    return run


# Four layers, by textbook placement: the grids of rows and weights, and the collectives that a
# textbook gives: of data parallel one sum of all gradients; of fully sharded one gather of all
# weights and one scattered sum; of tensor parallel, weights by columns and by rows in turn, one sum
# a pair of layers, forward and backward, and the loss.
LAYERS, WIDTH = 4, 48
ROW, COLUMN = (8, 1), (1, 8)
TEXTBOOK = {
    "data parallel": ([ROW, *[(1, 1)] * LAYERS], {"all-reduce": 1}),
    "fully sharded": ([ROW, *[ROW] * LAYERS], {"all-gather": 1, "reduce-scatter": 1}),
}


def compiled(fn, operands):
    return gl.on_grid(fn).lower(*operands).compile().as_text()


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_placements_send_what_a_textbook_says(name):
    grids, expected = TEXTBOOK[name]
    shapes = [(256, WIDTH), *[(WIDTH, WIDTH)] * LAYERS]
    operands = laid(shapes, grids)
    found = Counter(
        kind for kind, *_ in compiled_collectives(compiled(step(residual), operands), 8)
    )
    assert found == expected


PLACEMENTS = {
    "2x4": [(2, 4)] * 4,
    "rows": [(8, 1)] * 4,
    "columns": [(1, 8)] * 4,
    "2-D": [(2, 1), (1, 4), (4, 1), (1, 4)],
    "data parallel": [(8, 1), (1, 1), (1, 1), (1, 1)],
    "uneven": [(3, 2), (2, 3), (5, 1), (2, 4)],
}
SIZES = {
    "even": [(32, 16), (16, 64), (64, 64), (64, 8)],
    "odd": [(35, 13), (13, 50), (50, 27), (27, 5)],
}
EVERY = list(itertools.product(PLACEMENTS, SIZES, [None, (4, 4)]))


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "sizes", "tile"), few(EVERY, 5))
def test_steps_are_jaxs_and_their_reports_are_true(name, sizes, tile):
    shapes, grids = SIZES[sizes], PLACEMENTS[name]
    arrays = [array(s, k) for k, s in enumerate(shapes)]
    layouts = [gl.GridLayout(s, "float32", g, tile, []) for s, g in zip(shapes, grids, strict=True)]
    device = mapped((2, 4), EVERY.index((name, sizes, tile)), *grids)
    operands = [poisoned(a, layout, device) for a, layout in zip(arrays, layouts, strict=True)]
    fn = step(mlp)
    program = gl.on_grid(fn).lower(*operands).compile()
    found = program(*operands)
    assert_same(found, jax.jit(fn)(*arrays), rtol=2e-4, atol=2e-5)
    for new, layout in zip(found, layouts[1:], strict=True):
        assert new.layout.same_physical(layout)
        assert new.storage.sharding.is_equivalent_to(new.sharding, new.storage.ndim)
    told = Counter()
    for row in gl.on_grid(fn).report(*operands).rows:
        for each in row.collectives:
            told[each.kind] += each.total_bytes
    made = Counter()
    for kind, _, nbytes in compiled_collectives(program.as_text(), 8):
        made[OURS[kind]] += nbytes
    for kind in told | made:
        assert told[kind] == pytest.approx(made[kind], rel=0.02), kind


# One gradient scattered as grid 4x2 and another as 1x8 or 8x1: over the same axes, by which they
# number the devices in other orders.
SCATTERED = {"uneven": PLACEMENTS["uneven"], "last as 1x8": [(8, 1), (8, 1), (4, 2), (1, 8)]}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SCATTERED)
def test_sums_scattered_over_the_same_axes_in_other_orders_do_not_go_as_one(name):
    # By links, a sum takes half as long where each device gets its part of it only.
    device = gl.DeviceGrid((2, 4), machine=with_latency(1e-9))
    operands, fn = laid(SIZES["even"], SCATTERED[name], device), step(mlp)
    rows = gl.on_grid(fn).report(*operands).rows
    assert "reduce_scatter" in {each.kind for row in rows for each in row.collectives}
    expected = jax.jit(fn)(*map(np.asarray, operands))
    assert_same(gl.on_grid(fn)(*operands), expected, rtol=1e-4, atol=1e-6)


def sent(fn, operands):
    """Bytes, and collectives with joined ones as one, by the report."""
    every = [c for row in gl.on_grid(fn).report(*operands).rows for c in row.collectives]
    return sum(c.total_bytes for c in every), sum(c.count / c.together for c in every)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", PLACEMENTS)
def test_fewer_collectives_are_sent_than_where_bytes_decide(name):
    counts = []
    for machine in (None, FAST):
        device = gl.DeviceGrid((2, 4), machine=machine)
        operands = laid(SIZES["even"], PLACEMENTS[name], device)
        counts.append(sent(step(mlp), operands)[1])
    assert counts[0] <= counts[1]


def test_where_bytes_decide_equations_choose_by_themselves():
    device = gl.DeviceGrid((2, 4), machine=FAST)
    report = gl.on_grid(step(mlp)).report(*laid(SIZES["even"], PLACEMENTS["2x4"], device))
    notes = {row.note for row in report.rows}
    assert not any("divided" in note for note in notes)


def test_policies_and_algorithms_are_obeyed():
    operands = laid(SIZES["even"], PLACEMENTS["2x4"])
    for more in ({"policy": gl.fill_devices}, {"algorithm": "gathered"}):
        report = gl.on_grid(step(mlp), **more).report(*operands)
        assert not any("divided" in row.note for row in report.rows)


def test_products_with_an_update_or_a_factor_that_is_a_number():
    (x,) = laid([(16, 8)], [(2, 4)])

    def fn(x, y):
        one = ((x @ x.T) @ x).ravel().at[3].add(y).reshape(16, 8)
        return one, jnp.tensordot(x @ x.T, y, 0) @ one

    plain = jnp.asarray(array((16, 8)))
    assert_same(gl.on_grid(fn)(x, jnp.float32(3)), fn(plain, jnp.float32(3)), rtol=1e-5, atol=1e-5)


def test_the_same_is_chosen_again():
    layouts = [
        gl.GridLayout(s, grid=g) for s, g in zip(SIZES["odd"], PLACEMENTS["2x4"], strict=True)
    ]
    reports = []
    for _ in range(2):
        drop_all()
        fn = step(mlp)
        reports.append(str(gl.on_grid(lambda *xs, fn=fn: fn(*xs), ABSTRACT).report(*layouts)))
    assert reports[0] == reports[1]


def test_transformations_go_through_it_alike():
    shapes, grids = [(32, 16), (16, 24), (24, 16)], [(2, 4), (2, 4), (4, 2)]
    arrays = [array(s, k) for k, s in enumerate(shapes)]

    def loss(x, a, b):
        return jnp.sum(jnp.sin(jnp.tanh(x @ a) @ b) ** 2)

    every = (0, 1, 2)
    expected = jax.jit(jax.grad(loss, every))(*arrays)
    gradients = (
        gl.on_grid(jax.grad(loss, every)),
        jax.jit(jax.grad(gl.on_grid(loss), every)),
        gl.on_grid(jax.grad(jax.checkpoint(loss), every)),
        gl.on_grid(jax.jit(jax.grad(jax.jit(loss), every))),
    )
    for number, fn in enumerate(gradients):
        operands = laid(shapes, grids, mapped((2, 4), number, *grids))
        for f, w in zip(fn(*operands), expected, strict=True):
            np.testing.assert_allclose(np.asarray(f), w, rtol=1e-4, atol=1e-5)
    batch = np.stack([arrays[0], 2 * arrays[0], -arrays[0]])
    found = jax.vmap(lambda x: gl.on_grid(loss)(x, *operands[1:]))(batch)
    np.testing.assert_allclose(found, jax.vmap(lambda x: loss(x, *arrays[1:]))(batch), rtol=1e-4)


# -- random programs -------------------------------------------------------------------------------

PARTS = {
    "residual": lambda y, w, v, b: y + jnp.tanh(y @ v),
    "layer": lambda y, w, v, b: jax.nn.relu(y @ w + b) @ w.T,
    "centred": lambda y, w, v, b: y - y.mean(-1, keepdims=True),
    "softmax": lambda y, w, v, b: jax.nn.softmax(y, -1),
    "column sums": lambda y, w, v, b: y * y.sum(0),
    "gram": lambda y, w, v, b: (y.T @ y @ y.T).T / 8,
    "planes": lambda y, w, v, b: y.reshape(1, *y.shape).transpose(1, 0, 2).squeeze(1),
    "joined and cut": lambda y, w, v, b: jnp.concatenate([y, 2 * y], 1)[:, : y.shape[1]],
    "reversed sums": lambda y, w, v, b: y[::-1] + jnp.cumsum(y, 0) / 8,
    "einsum": lambda y, w, v, b: jnp.einsum("ij,kj,kl->il", y, y, y) / 8,
    "rows": lambda y, w, v, b: y[jnp.arange(len(y)) // 2],
    "loop": lambda y, w, v, b: jax.lax.fori_loop(0, 2, lambda _, y: jnp.sin(y @ v), y),
    "call": lambda y, w, v, b: jax.jit(lambda y: jnp.exp(-y * y) @ v)(y),
}
DEVICES = [DEVICE, *(gl.DeviceGrid(mesh) for mesh in [(8,), (2, 2, 2), (4, 2)] if COUNT >= 8)]


@settings(max_examples=60 if tiers.ALL else 3)
@given(data=st.data())
def test_random_programs_are_jaxs(data):
    m, k, h = (data.draw(st.sampled_from([1, 3, 5, 8, 16])) for _ in range(3))
    parts = data.draw(st.lists(st.sampled_from(list(PARTS)), min_size=2, max_size=6))
    device = data.draw(st.sampled_from([*DEVICES, *STATED]))
    shapes = [(m, k), (k, h), (k, k), (h,)]
    layouts = []
    for shape in shapes:
        grid = tuple(data.draw(st.sampled_from([1, 2, 3, 4, 8])) for _ in shape)
        tile = data.draw(st.sampled_from([None, (4, 4)])) if len(shape) > 1 else None
        layouts.append(gl.GridLayout(shape, "float32", grid, tile, []))
    arrays = [array(s, n) for n, s in enumerate(shapes)]
    operands = [poisoned(a, layout, device) for a, layout in zip(arrays, layouts, strict=True)]

    def fn(x, w, v, b):
        for part in parts:
            x = jnp.tanh(PARTS[part](x, w, v, b))
        return x

    if data.draw(st.booleans()):
        call = lambda *xs: jax.grad(lambda xs: jnp.sum(fn(*xs) ** 2))(xs)  # noqa: E731
    else:
        call = lambda *xs: (fn(*xs), fn(*xs).sum())  # noqa: E731
    before = planner.choices_for
    # Whichever of both programs is cheaper, the chosen one is right.
    try:
        planner.min = lambda first, second, key: first
        assert_same(gl.on_grid(call)(*operands), jax.jit(call)(*arrays), rtol=2e-3, atol=2e-4)
    finally:
        del planner.min
        assert planner.choices_for is before


def test_a_loop_is_not_divided():
    jaxpr = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y * 2, x))(jnp.ones(4))
    (loop,) = [node for node in Graph.of(jaxpr).nodes if node.name == "scan"]
    assert loop.factors is None
    assert not factors_of(loop.eqn).divisible


# -- joined collectives ----------------------------------------------------------------------------


def test_what_waits_for_another_does_not_go_with_it():
    """A chain of gathers stays one after another; gathers of operands go together."""
    grids = [(8, 1)] * 3
    shapes = [(16, 16)] * 3
    report = gl.on_grid(lambda x, y, z: ((x @ y) @ z).sum(), ABSTRACT).report(
        *(gl.GridLayout(s, grid=g) for s, g in zip(shapes, grids, strict=True))
    )
    gathers = [c for row in report.rows for c in row.collectives if c.kind == "all_gather"]
    assert [c.together for c in gathers] in ([3, 3, 3], [2, 2], [])
    assert joined([], [], FAST) is None


# -- seen ------------------------------------------------------------------------------------------


def test_reports_have_seconds_and_say_what_else_there_was():
    layouts = [
        gl.GridLayout(s, grid=g) for s, g in zip(SIZES["even"], PLACEMENTS["2x4"], strict=True)
    ]
    report = gl.on_grid(step(mlp), ABSTRACT).report(*layouts)
    machine = ABSTRACT.machine
    assert report.seconds == pytest.approx(sum(row.seconds for row in report.rows))
    for row in report.rows:
        sent = sum(each.count * machine.once(each) for each in row.collectives)
        assert row.seconds >= sent
        assert row.limit in ("links", "products", "memory", "")
        assert (row.limit == "links") == (sent > row.seconds / 2)
    product = next(row for row in report.rows if row.primitive == "dot_general")
    why = report.why(product)
    assert why.ways[0].is_chosen
    assert len({way.note for way in why.ways}) > 1
    assert report.why(report.rows.index(product)) == why
    assert "us" in str(why)
    for wrong in (len(report.rows), -1, "dot_general", True, None):
        with pytest.raises(gl.LayoutError, match="no row"):
            report.why(wrong)
