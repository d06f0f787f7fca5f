"""One equation for several, and padding that is set once for all that read a value."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from laid_out import poisoned, read

import gridlayout as gl
from gridlayout.ops.graph.graph import Graph

X, Y = (np.random.default_rng(k).normal(size=(13, 7)).astype("f4") for k in range(2))
AT = np.array([[3], [0], [12], [3]], np.int32)


def rows_added(x, at):
    return jnp.zeros_like(x).at[at[:, 0]].add(x[:4])


def in_a_loop(x, at):
    added = rows_added(x, at)
    return jax.lax.fori_loop(0, 3, lambda _, c: c + added, x)


def window(x, size=3, padding="VALID", **dilation):
    return lax.reduce_window(x, 0.0, lax.add, (size, 1), (2, 1), padding, **dilation)


def convolved(x, size=3):
    return lax.conv(x[None, None], np.ones((1, 1, size, 1), "f4"), (2, 1), [(0, 1), (0, 0)])[0, 0]


def padded(x, fill=0.0, *rows):
    return lax.pad(x, np.float32(fill), [*rows, (0, 0, 0)])


def names(fn, *args):
    return [node.name for node in Graph.of(jax.make_jaxpr(fn)(*args)).nodes]


# How often a function has a primitive; one more `add` wraps negative indices.
SIMPLE = {
    "three": (lambda x, at: jnp.sin(x.T).T.T.T, {"transpose": 2}),
    "a result": (lambda x, at: x.T.T, {"transpose": 0}),
    "one": (lambda x, at: jnp.sin(x[None].transpose(1, 0, 2).transpose(2, 0, 1)), {"transpose": 1}),
    "read twice": (lambda x, at: (jnp.sin(x.T), jnp.cos(x.T.T)), {"transpose": 1}),
    "a gradient": (jax.grad(lambda x, at: jnp.tanh(x @ x.T).sum()), {"transpose": 1}),
    "added": (lambda x, at: jnp.sin(x) + rows_added(x, at), {"add": 1, "scatter-add": 1}),
    "added first": (lambda x, at: rows_added(x, at) + x, {"add": 1, "scatter-add": 1}),
    "both": (lambda x, at: rows_added(x, at) + rows_added(2 * x, at + 1), {"scatter-add": 2}),
    "kept": (lambda x, at: ((y := rows_added(x, at)), x + y), {"add": 2, "scatter-add": 1}),
    "a loop": (in_a_loop, {"scatter-add": 1}),
    "all of it": (lambda x, at: jnp.sin(x[:, :7]) + x[0:13], {"slice": 0}),
    "rolled by none": (lambda x, at: jnp.roll(x, 0, 1), {"slice": 0, "concatenate": 0}),
    "with nothing": (lambda x, at: jnp.concatenate([x[:0], x, x[:0]]), {"concatenate": 0}),
    "to a number": (lambda x, at: rows_added(x, at) + 2.0, {"scatter-add": 1}),
    "a window": (lambda x, at: window(padded(x, 0.0, (2, 1, 1))), {"pad": 0}),
    "a padded window": (lambda x, at: window(padded(x, 0.0, (1, 0, 0)), 4, "SAME"), {"pad": 0}),
    "a convolution": (lambda x, at: convolved(jnp.pad(x, ((0, 2), (0, 0)))), {"pad": 0}),
    "a window's gradient": (jax.grad(lambda x, at: (window(x) ** 2).sum()), {"pad": 0}),
    "another fill": (lambda x, at: window(padded(x, 1.0, (1, 1, 1))), {"pad": 1}),
    "cut": (lambda x, at: window(padded(x, 0.0, (-1, 0, 1))), {"pad": 1}),
    "read by others": (lambda x, at: ((y := padded(x, 0.0, (1, 1, 1))), window(y)), {"pad": 1}),
    "dilated twice": (
        lambda x, at: window(padded(x, 0.0, (1, 1, 1)), base_dilation=(2, 1)),
        {"pad": 1},
    ),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_one_equation_stands_for_several(name):
    fn, counts = SIMPLE[name]
    found = names(fn, X, AT)
    assert {each: found.count(each) for each in counts} == counts


@pytest.mark.few(1)
@pytest.mark.skipif(len(jax.devices()) < 8, reason="the mesh has 8 devices")
@pytest.mark.parametrize("grid", [(8, 1), (2, 4), (3, 2)])
def test_what_stands_for_several_gives_the_same(grid):
    def every(x, at):
        return [fn(x, at) for fn, _ in SIMPLE.values()]

    laid = poisoned(X, gl.GridLayout(X.shape, "float32", grid), gl.DeviceGrid((2, 4)))
    made = jax.tree.leaves(gl.on_grid(every)(laid, AT))
    for one, want in zip(made, jax.tree.leaves(jax.jit(every)(X, AT)), strict=True):
        np.testing.assert_allclose(read(one), want, rtol=1e-5, atol=1e-5)


# What reads a value with its padding set and without, and the number that it is set to.
READERS = {
    "a function": (lambda x: (y := jnp.cos(x), y.sum(0), y * 2), 0.0),
    "a function's operand": (lambda x: (y := jnp.exp(x), y.sum(0), y * 2), -np.inf),
    "cheap": (lambda x: (y := x * 3, y.max(0), jnp.sin(y)), -np.inf),
}


@pytest.mark.parametrize("name", READERS)
def test_padding_is_set_once_for_all_that_read_a_value(name):
    fn, number = READERS[name]
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    layout = gl.GridLayout((13, 7), "float32", (2, 4))
    program = gl.on_grid(fn, device).report(layout).program
    setters = [n for n, step in enumerate(program.steps) if step.sets_padding]
    (n,) = setters
    setter = program.steps[n]
    assert setter.sets_padding.value == number
    # It is before all that read the value; none of them reads it as it was.
    others = [step for step in program.steps if step is not setter]
    assert all(k not in step.reads for step in others for k in setter.reads) or n == 0
    readers = [m for m, step in enumerate(program.steps) if setter.writes[0] in step.reads]
    assert readers
    assert min(readers) > n


def test_padding_is_set_for_one_reader_where_it_reads():
    """Nothing is gained where one step reads a value, or where the value is an argument."""
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    layout = gl.GridLayout((13, 7), "float32", (2, 4))
    for fn in (lambda x: jnp.exp(x).sum(0), lambda x: (x.sum(0), x * 2)):
        steps = gl.on_grid(fn, device).report(layout).program.steps
        (setter,) = (step for step in steps if step.sets_padding)
        assert setter.sets_padding.value == 0
        (reader,) = (step for step in steps if setter.writes[0] in step.reads)
        assert not reader.is_fused


@pytest.mark.skipif(len(jax.devices()) < 8, reason="the mesh has 8 devices")
@pytest.mark.parametrize("name", READERS)
def test_values_with_padding_that_is_set_once(name):
    fn = READERS[name][0]
    laid = poisoned(X, gl.GridLayout(X.shape, "float32", (2, 4)), gl.DeviceGrid((2, 4)))
    for one, want in zip(gl.on_grid(fn)(laid), fn(jnp.asarray(X)), strict=True):
        np.testing.assert_allclose(read(one), want, rtol=1e-5, atol=1e-6)


def unread(x):
    jnp.cos(x)
    return jnp.tanh(x @ x.T)


@pytest.mark.parametrize(
    "fn", [unread, jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), in_a_loop]
)
def test_nodes_that_run_are_those_of_the_graph_itself_without_loops(fn):
    closed = jax.make_jaxpr(fn)(*((X, AT) if fn is in_a_loop else (X,)))
    graph = Graph.of(closed)
    found, made = graph.inlined(4), Graph.of(closed, 4)
    rows = ([(n.name, n.path, n.ins, n.outs) for n in each.nodes] for each in (found, made))
    assert next(rows) == next(rows)
    assert ({*found.nodes} <= {*graph.nodes}) == (fn is unread)
    assert found.trips == 4
    assert found.results == made.results
