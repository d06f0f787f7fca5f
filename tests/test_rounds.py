"""Products in rounds: their values, what devices send, and when."""

import json
import re

import jax.numpy as jnp
import numpy as np
import pytest

import gridlayout as gl

RNG = np.random.default_rng(0)


def machine(mesh, bandwidth=1e9, latency=1e-9, overlap=("links",)):
    """A machine on which a product of some hundred rows takes about as long as its messages."""
    links = gl.Links(bandwidth, latency=latency)
    rates = gl.Rates(2e9, 1e12)
    return gl.Machine(gl.Chip("toy", (1, 1)), mesh, links, rates=rates, overlap=overlap)


def grid(shape, cores):
    return gl.GridLayout(shape, "float32", grid=cores, collapse=[])


def product(shape, cores):
    """A product, and its result in this layout."""
    return lambda x, w: gl.with_layout(x @ w, grid(shape, cores))


# The function, the layouts of its operands, and what devices send in rounds. Rows and columns
# differ, and so do the axes of the mesh.
OUT, X, W, LONG, HIGH = (96, 160), (96, 64), (64, 160), (96, 2048), (2048, 160)
CASES = {
    "weights gathered along what is summed": (
        product(OUT, (8, 1)),
        (grid(X, (8, 1)), grid(W, (8, 1))),
        "all_gather",
    ),
    "weights gathered along columns": (
        product(OUT, (8, 1)),
        (grid(X, (8, 1)), grid(W, (1, 8))),
        "all_gather",
    ),
    "rows gathered": (
        product((192, 320), (1, 8)),
        (grid((192, 64), (8, 1)), grid((64, 320), (1, 8))),
        "all_gather",
    ),
    "sums on all devices": (
        product(OUT, (1, 1)),
        (grid(LONG, (1, 8)), grid(HIGH, (8, 1))),
        "all_reduce",
    ),
    "sums scattered along rows": (
        product(OUT, (8, 1)),
        (grid(LONG, (1, 8)), grid(HIGH, (8, 1))),
        "reduce_scatter",
    ),
    "sums scattered along columns": (
        product(OUT, (1, 8)),
        (grid(LONG, (1, 8)), grid(HIGH, (8, 1))),
        "reduce_scatter",
    ),
    "a transposed product": (
        lambda x, w: gl.with_layout((x @ w).T, grid((160, 96), (1, 8))),
        (grid(X, (8, 1)), grid(W, (8, 1))),
        "all_gather",
    ),
    "batches": (
        lambda x, w: gl.with_layout(jnp.einsum("bik,kj->bij", x, w), grid((2, 96, 160), (2, 4, 1))),
        (grid((2, 96, 64), (2, 4, 1)), grid(W, (8, 1))),
        "all_gather",
    ),
    "gathered and summed": (
        product((96, 160), (1, 1)),
        (grid((96, 4096), (1, 8)), grid((4096, 160), (4, 2))),
        "all_reduce",
    ),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", CASES)
def test_products_in_rounds_have_the_values_of_whole_ones_and_take_less_time(name, tmp_path):
    fn, layouts, kind = CASES[name]
    plan = gl.plan(fn, *layouts, machine=machine((2, 4)), overlap=True)
    (product,) = (e for e in plan.simulation.equations if e.name == "dot_general:0")
    assert re.search(r"in [2-8] rounds", product.how)
    (sent,) = (c for c in product.collectives if c.kind == kind)
    assert f"in {sent.count} rounds" in product.how
    at_once = gl.plan(fn, *layouts, machine=machine((2, 4), overlap=()))
    assert not any("rounds" in e.how for e in at_once.simulation.equations)
    assert plan.overlapped < at_once.time <= plan.time
    # Each message is of as many bytes, in parts.
    (whole,) = (c for e in at_once.simulation.equations for c in e.collectives if c.kind == kind)
    assert sent.received_bytes * sent.count == pytest.approx(whole.received_bytes, rel=0.01)
    arrays = [RNG.normal(size=x.shape).astype("f4") for x in layouts]
    np.testing.assert_allclose(plan.run(*arrays), fn(*arrays), rtol=2e-4, atol=2e-4)
    plan.save(tmp_path / "plan.json")
    again = gl.load_plan(tmp_path / "plan.json", fn)
    np.testing.assert_array_equal(again.run(*arrays), plan.run(*arrays))


def test_devices_send_what_rounds_state():
    """The compiled program has a collective for each round, of the bytes that the plan states."""
    fn, layouts, kind = CASES["sums scattered along rows"]
    plan = gl.plan(fn, *layouts, machine=machine((2, 4)), overlap=True)
    arrays = plan.put(tuple(np.ones(x.shape, "f4") for x in layouts))
    compiled = gl.explain(gl.on_grid(fn, policy=plan).lower(*arrays).compile())
    (sent,) = (c for e in plan.simulation.equations for c in e.collectives if c.kind == kind)
    found = [op for op in compiled.collectives if op.kind == kind]
    assert [(op.received_bytes, op.count) for op in found] == [(sent.received_bytes, sent.count)]


def test_one_gather_serves_two_products():
    """An operand that two products read is gathered once, before them."""

    def both(x, a, b):
        rows = grid((96, 160), (8, 1))
        return gl.with_layout(x @ a, rows), gl.with_layout((x * 2) @ a, rows), b

    args = grid(X, (8, 1)), grid(W, (8, 1)), grid(W, (8, 1))
    plan = gl.plan(both, *args, machine=machine((2, 4)), overlap=True)
    products = [e for e in plan.simulation.equations if e.name.startswith("dot_general")]
    assert [e.how for e in products] == ["divided"] * 2
    assert sum(len(e.collectives) for e in products) == 1


def test_few_messages_are_sent_at_once():
    """Where a latency decides, or messages take no time, rounds gain nothing."""
    fn, layouts, _ = CASES["weights gathered along what is summed"]
    for changes in ({"latency": 1e-3}, {"bandwidth": 1e15}):
        plan = gl.plan(fn, *layouts, machine=machine((2, 4), **changes), overlap=True)
        assert not any("rounds" in e.how for e in plan.simulation.equations)


@pytest.mark.parametrize("rounds", [0, 65])
def test_a_file_with_impossible_rounds_is_refused(rounds, tmp_path):
    fn, layouts, _ = CASES["rows gathered"]
    path = tmp_path / "plan.json"
    gl.plan(fn, *layouts, machine=machine((2, 4)), overlap=True).save(path)
    record = json.loads(path.read_text())
    record["choices"][0]["rounds"] = rounds
    path.write_text(json.dumps(record))
    with pytest.raises(gl.LayoutError, match=f"{rounds} rounds must be from 1 to 64"):
        gl.load_plan(path)
