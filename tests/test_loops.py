"""Loops of tiny steps: small arrays whole on every device, where the devices then send less."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax
from laid_out import assert_same
from machines import FAST, with_latency
from test_control import CASES, DEVICE, assert_case_is_jaxs, example
from tiers import few

import gridlayout as gl
from gridlayout.caching import drop_all
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.interpret import loops
from gridlayout.ops.interpret.planner import planned
from gridlayout.sharding.limits import LIMITS

EIGHT = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))


def laid(*shapes):
    return [gl.GridLayout(shape, "float32", grid=(2, 4)) for shape in shapes]


def powers(x, w):
    return lax.fori_loop(0, 5, lambda _, h: h @ w / 8, x)


def bodies(fn, layouts, machine=FAST):
    """The programs of the loops' bodies in a function of arrays in these layouts."""
    device = gl.DeviceGrid(EIGHT.mesh, machine=machine)
    structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in layouts]
    specs = [Sharded(x, device.placement(x.core_shape)) for x in layouts]
    program = planned(
        Env(device, templates=tuple(layouts)),
        Graph.of(jax.make_jaxpr(fn)(*structs)),
        specs,
    )
    return [body.program for step in program.steps for body in step.bodies]


def sent(programs):
    return sum(each.count for program in programs for each in program.collectives)


OFTEN = LIMITS.loop_collectives


@pytest.fixture(autouse=True)
def one_is_often(monkeypatch):
    """One collective a trip is often: loops that fit a test."""
    monkeypatch.setattr(loops, "LIMITS", replace(LIMITS, loop_collectives=1))
    drop_all()
    yield
    drop_all()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", few(CASES, 4))
def test_loops_of_small_arrays_are_jaxs(name):
    assert_case_is_jaxs(name, 2)


def test_a_loop_of_tiny_products_sends_nothing_in_its_body():
    (body,) = bodies(powers, laid((24, 24), (24, 24)))
    assert sent([body]) == 0
    fn, layouts = gl.on_grid(powers, EIGHT), laid((24, 24), (24, 24))
    report = fn.report(*layouts)
    before = [c.kind for row in report.rows for c in row.collectives]
    assert set(before) == {"all_gather"}
    assert len(before) <= 4
    # Every device does the whole of it, and the rows still say what is done.
    (product,) = (row for row in report.rows if row.primitive == "dot_general")
    assert product.flops == product.device_flops == 5 * 2 * 24**3
    assert not report.fallbacks


@pytest.mark.parametrize("products", [1, OFTEN - 2, OFTEN - 1])
def test_a_loop_that_sends_seldom_is_left_as_it_is(products, monkeypatch):
    monkeypatch.setattr(loops, "LIMITS", LIMITS)

    def fn(x, w):
        def body(_, h):
            for _ in range(products):
                h = h @ w / 8
            return h

        return lax.fori_loop(0, 5, body, x)

    (body,) = bodies(fn, laid((24, 24), (24, 24)))
    count = products + 1  # `w` is gathered once
    assert sent([body]) == (count if count < OFTEN else 0)


def test_arrays_that_are_not_small_stay_laid_out_in_a_loop():
    side = int((LIMITS.small_bytes / 4) ** 0.5)
    for n, is_whole in ((side, True), (side + 1, False)):
        (body,) = bodies(powers, laid((n, n), (n, n)))
        assert any(isinstance(spec, Sharded) for spec in body.operands) != is_whole


def test_a_loop_that_sends_nothing_keeps_its_layouts():
    def fn(x):
        return lax.fori_loop(0, 5, lambda _, h: jnp.sin(h) * 2, x)

    (layout,) = laid((8, 8))
    (body,) = bodies(fn, [layout])
    assert layout in [spec.layout for spec in body.operands if isinstance(spec, Sharded)]
    assert gl.on_grid(fn, EIGHT).report(layout).bytes_moved == 0


def test_one_trip_is_no_loop():
    # To gather before the loop sends as often as its body would, once.
    def fn(x):
        return lax.fori_loop(0, 1, lambda _, h: h * h.sum(), x)

    (layout,) = laid((8, 8))
    assert any(isinstance(s, Sharded) for body in bodies(fn, [layout]) for s in body.operands)


def test_results_lie_as_they_would():
    x, w = (
        gl.put(example((9, 9), k), layout, DEVICE) for k, layout in enumerate(laid(*[(9, 9)] * 2))
    )

    def fn(x, w):
        h = lax.fori_loop(0, 3, lambda _, h: jnp.tanh(h @ w), x)
        return h, *lax.scan(lambda h, r: (h @ w / 9, h[0] + r), h, x)

    found = gl.on_grid(fn)(x, w)
    assert_same(found, fn(*(jnp.asarray(np.asarray(a)) for a in (x, w))), rtol=2e-5, atol=2e-5)
    *carried, stacked = (a.layout.with_oob(None) for a in found)
    assert carried == [x.layout] * 2
    # The rows of the last one are added on four devices, which takes less than on each.
    rows = gl.GridLayout((9, 9), grid=(1, 2, 4), linear="(d0, d1) -> (d0, 0, d1)")
    assert stacked == rows


def test_what_a_user_says_of_a_loop_stands(monkeypatch):
    (layout,) = laid((8, 8))

    def told(x):
        return lax.fori_loop(0, 5, lambda _, h: gl.with_layout(h @ h, layout), x)

    assert sent(bodies(told, [layout])) > 0
    fn = gl.on_grid(lambda x: lax.fori_loop(0, 5, lambda _, h: h @ h, x), EIGHT, algorithm="ring")
    assert "ring" in {row.note for row in fn.report(layout).rows}
    host = layout.replace(memory_space="dram")
    assert any(
        isinstance(spec, Sharded)
        for body in bodies(lambda x: powers(x, x), [host])
        for spec in body.operands
    )


def test_a_rule_of_the_user_is_asked_in_a_loop():
    from gridlayout.ops.primitives.table import RECORDS

    before, called = RECORDS["erf"], []

    @gl.def_rule("erf")
    def rule(eqn, x):
        called.append(x.layout)
        return gl.map_shards(lambda part: part, x, out=x.layout)

    try:
        x = gl.put(example((8, 8)), laid((8, 8))[0], DEVICE)
        gl.on_grid(lambda x: lax.fori_loop(0, 3, lambda _, h: lax.erf(h @ h), x)).report(x)
    finally:
        RECORDS["erf"] = before
    assert called


def test_a_latency_decides_by_seconds():
    fn, layouts = lambda x: lax.fori_loop(0, 5, lambda _, h: h * h.sum(), x), laid((64, 64))
    for machine in (FAST, with_latency(1e-4)):
        assert sent(bodies(fn, layouts, machine)) == 0
    # Where sending is all that takes time, sixteen kilobytes are more than five numbers.
    assert sent(bodies(fn, layouts, with_latency(1e-12))) > 0


def lbfgs(x, y, w):
    def loss(w):
        return jnp.mean((jnp.tanh(x @ w["in"] + w["bias"]) @ w["out"] - y) ** 2)

    solver = optax.lbfgs(memory_size=3)

    def step(carry, _):
        w, state = carry
        value, grad = optax.value_and_grad_from_state(loss)(w, state=state)
        moved, state = solver.update(grad, state, w, value=value, grad=grad, value_fn=loss)
        return (optax.apply_updates(w, moved), state), value

    (w, _), values = lax.scan(step, (w, solver.init(w)), length=4)
    return w, values


@pytest.mark.all_cases
@pytest.mark.parametrize("rows", [5000, 60])  # 5000 rows of 5 are not small
def test_lbfgs(rows):
    x, y = example((rows, 5)), example((rows, 2), 1)
    w = {"in": example((5, 7), 2) / 3, "bias": np.zeros(7, np.float32), "out": example((7, 2), 3)}
    found = gl.on_grid(lbfgs)(*gl.put((x, y, w), DEVICE))
    assert_same(found, jax.jit(lbfgs)(x, y, w), rtol=1e-3, atol=1e-4)


def test_lbfgs_sends_seldom(monkeypatch):
    monkeypatch.setattr(loops, "LIMITS", LIMITS)
    shapes = [(5000, 5), (5000, 2), {"in": (5, 7), "bias": (7,), "out": (7, 2)}]
    shapes = jax.tree.map(
        lambda s: jax.ShapeDtypeStruct(s, np.float32), shapes, is_leaf=lambda s: type(s) is tuple
    )
    report = gl.on_grid(lbfgs).report(*gl.put(shapes, EIGHT))
    # A trip: the gradient of the data's loss, in the step and in its line search.
    assert sum(c.count for row in report.rows for c in row.collectives) < 4 * 40
    assert not report.fallbacks
