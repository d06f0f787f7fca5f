"""Steps, and programs, that come again are traced once, and give what they give one by one."""

import gc
import weakref
from collections import Counter
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gridlayout as gl
from gridlayout.caching import drop_all
from gridlayout.ops.interpret import program_cache
from gridlayout.ops.interpret.compiled import Compiled
from gridlayout.ops.programs import regions, running
from gridlayout.ops.programs.program import Program

LAYERS = 6


def layer(w, x):
    h = x @ w
    h = (h - h.mean(-1, keepdims=True)) * jax.lax.rsqrt(h.var(-1, keepdims=True) + 1e-3)
    return x + jnp.tanh(h) * 0.5 - jnp.exp(-jnp.abs(h))


def stack(ws, x):
    for w in ws:
        x = layer(w, x)
    return x


def step(ws, x):
    return jax.value_and_grad(lambda ws: jnp.mean(stack(ws, x) ** 2))(ws)


def operands(tile=None):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((13, 13), np.float32) / 4 for _ in range(LAYERS + 1)]
    device = gl.DeviceGrid((2, 4))
    laid = [gl.put(a, gl.GridLayout(a.shape, grid=(2, 4), tile=tile), device) for a in arrays]
    return arrays, laid


def equations(fn, *args):
    """The equations of a call, with those inside of others."""

    def walked(jaxpr):
        for eqn in jaxpr.eqns:
            yield eqn
            for value in eqn.params.values():
                inner = getattr(value, "jaxpr", value)
                if hasattr(inner, "eqns"):
                    yield from walked(inner)

    # Tests of checkify, which import it, let traces see a call as one primitive.
    with mock.patch.object(Compiled, "is_traced_as_call", False):
        return list(walked(jax.make_jaxpr(lambda: gl.on_grid(fn)(*args))().jaxpr))


def repeated(fn, *args):
    """How often each function of repeated steps is called."""
    calls = [eqn for eqn in equations(fn, *args) if eqn.params.get("name") == "repeated"]
    return sorted(Counter(id(eqn.params["jaxpr"]) for eqn in calls).values())


@pytest.mark.few(2)
@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
@pytest.mark.parametrize("tile", [None, (4, 4)])
@pytest.mark.parametrize("fn", [stack, step])
def test_layers_of_a_stack_are_traced_once(fn, tile):
    (*arrays, x), (*laid, y) = operands(tile)
    counts = repeated(fn, laid, y)
    assert counts
    assert max(counts) >= LAYERS - 2
    found = jax.tree.leaves(
        gl.on_grid(fn)(laid, y), is_leaf=lambda leaf: isinstance(leaf, gl.GridArray)
    )
    for a, b in zip(found, jax.tree.leaves(jax.jit(fn)(arrays, x)), strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=2e-4, atol=2e-5)


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
def test_runs_that_use_their_values_unlike_or_other_numbers_are_told_apart():
    def fn(ws, x):
        for k, w in enumerate(ws):
            # Every other layer adds to what came before the last one, and by another number.
            x, before = layer(w, x) * (1.0 if k % 2 else 2.0), x
            x = x + before if k % 2 else x - before
        return x

    (*arrays, x), (*laid, y) = operands()
    np.testing.assert_allclose(
        np.asarray(gl.on_grid(fn)(laid, y)), fn(arrays, x), rtol=2e-4, atol=2e-5
    )


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
def test_named_scopes_stay_apart(monkeypatch):
    monkeypatch.setattr(running, "_SPARED", 1)

    def fn(ws, x):
        for k, w in enumerate(ws):
            with jax.named_scope(f"layer{k}"):
                x = layer(w, x)
        return x

    (*arrays, x), (*laid, y) = operands()
    assert repeated(fn, laid, y) == []
    np.testing.assert_allclose(
        np.asarray(gl.on_grid(fn)(laid, y)), fn(arrays, x), rtol=2e-4, atol=2e-5
    )


# -- programs of new functions that do what others did ---------------------------------------------


def traces(monkeypatch, *calls):
    """How many programs are planned, how many traced, and the results of the calls."""
    ran, run, made, planned = [], Program.run, [], program_cache.planned
    monkeypatch.setattr(Program, "run", lambda self, arrays: ran.append(1) or run(self, arrays))
    monkeypatch.setattr(program_cache, "planned", lambda *args: made.append(1) or planned(*args))
    drop_all()
    found = [np.asarray(jax.jit(gl.on_grid(fn))(*args)) for fn, *args in calls]
    return len(made), len(ran), found


def centred(scale):
    """A new function each time, on lines of its own."""
    return lambda x: (x - x.mean(0)) * scale


def called(scale):
    """One with calls, a loop and a branch."""

    def body(c, _):
        return jax.nn.softmax(c, axis=0) * scale, None

    def fn(x):
        x = jax.jit(lambda x: jnp.tanh(x) * 2)(x)
        x, _ = jax.lax.scan(body, x, None, length=3)
        return jax.lax.cond(x.sum() > 0, jax.checkpoint(jnp.sin), lambda x: x - 1, x)

    return fn


@pytest.mark.few(1)
@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
@pytest.mark.parametrize("made", [centred, called])
def test_new_functions_that_do_the_same_are_planned_and_traced_once(monkeypatch, made):
    (a, b, *_), (x, y, *_) = operands((4, 4))
    planned, traced, found = traces(monkeypatch, *((made(2.0), z) for z in (x, y, x)))
    assert (planned, traced) == (1, 1)
    for got, z in zip(found, (a, b, a), strict=True):
        np.testing.assert_allclose(got, made(2.0)(z), rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
def test_functions_that_differ_in_an_array_are_traced_once(monkeypatch):
    (a, *_), (x, *_) = operands()
    tables = [np.arange(13.0, dtype="f4") + k for k in range(3)]
    calls = [(lambda x, t=t: x + t, x) for t in tables]
    planned, traced, found = traces(monkeypatch, *calls)
    assert (planned, traced) == (1, 1)
    for got, table in zip(found, tables, strict=True):
        np.testing.assert_array_equal(got, np.asarray(a) + table)


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
def test_those_that_differ_in_a_bit_are_traced_apart(monkeypatch):
    (a, *_), (x, *_) = operands()
    functions = [
        centred(0.0),
        centred(-0.0),
        centred(np.float32(3)),
        called(2.0),
        called(3.0),
        lambda x: x - x.mean(1),
        lambda x: (x + 1) - x,
        lambda x: x - (x + 1),
        lambda x: x.astype(jnp.int32),
        lambda x: (x > 0.0).astype(jnp.int32),
        lambda x: (x, x + 1)[0],
        lambda x: (x, x + 1)[1],
    ]
    _, laid = operands((4, 4))
    calls = [*((fn, x) for fn in functions), (functions[0], laid[0])]
    planned, traced, found = traces(monkeypatch, *calls)
    assert planned == traced == len(calls)
    for got, fn in zip(found, functions, strict=False):
        expected = np.asarray(fn(jnp.asarray(a)))
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        assert (np.signbit(got) == np.signbit(expected)).all() or fn not in functions[:2]


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
@pytest.mark.parametrize("has_rule", [True, False])
def test_those_that_differ_in_a_parameter_are_traced_apart(monkeypatch, has_rule):
    def signed(x, by):
        return jnp.copysign(x, by[0]) + ["float", "int", "bool"].index(type(by[0]).__name__)

    primitive = jax.extend.core.Primitive(f"signed_{has_rule}")
    primitive.def_abstract_eval(lambda x, by: x)
    if has_rule:

        @gl.def_rule(primitive)
        def rule(eqn, x):
            return gl.map_shards(lambda shard: signed(shard, **eqn.params), x, out=x.layout)

    else:
        primitive.def_impl(signed)

    (a, *_), (x, *_) = operands()
    values = (0.0, -0.0, 1.0, 1, True)
    calls = [(lambda x, value=value: primitive.bind(x, by=(value,)), x) for value in values]
    planned, _, found = traces(monkeypatch, *calls)
    assert planned == len(values)
    for got, value in zip(found, values, strict=True):
        np.testing.assert_array_equal(got, signed(jnp.asarray(a), (value,)))


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
def test_what_calls_the_host_is_traced_each_time():
    (a, *_), (x, *_) = operands()
    struct = jax.ShapeDtypeStruct(a.shape, a.dtype)

    def times(factor):
        return lambda x: jax.pure_callback(lambda a: np.asarray(a) * factor, struct, x)

    for factor in (2.0, 3.0):
        got = np.asarray(jax.jit(gl.on_grid(times(factor)))(x))
        np.testing.assert_array_equal(got, np.asarray(a) * np.float32(factor))


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
def test_a_report_names_the_function_that_it_is_of():
    _, (x, *_) = operands()

    def first(rows):
        return jnp.tanh(rows)

    def second(lines):
        return {"out": jnp.tanh(lines)}

    graphs = [gl.on_grid(fn).report(x).graph for fn in (first, second)]
    found = [(graph.title, graph.names, graph.result_names) for graph in graphs]
    assert found == [("first", ("rows",), ("result",)), ("second", ("lines",), ("result['out']",))]


# -- what else functions are known by --------------------------------------------------------------


class Model:
    def __init__(self, factor):
        self.factor = factor

    def apply(self, x):
        return x * self.factor


def test_equal_functions_are_shared_as_long_as_one_lives():
    model, x = Model(2.0), laid_out(5)
    first, second = gl.on_grid(model.apply), gl.on_grid(model.apply)
    assert first._function is second._function
    del first
    np.testing.assert_array_equal(np.asarray(second(x)), 2 * np.asarray(x))
    for n in range(2, 5):  # another one each time, and other shapes
        again = gl.on_grid(model.apply)
        assert again.report(laid_out(n)).rows
        np.testing.assert_array_equal(np.asarray(again(laid_out(n))), 2 * np.asarray(laid_out(n)))


def laid_out(n):
    return gl.put(np.arange(n, dtype="f4"), gl.GridLayout((n,), grid=(2,)), gl.DeviceGrid((1,)))


def scaled(factor):
    """Its derivative, in both modes of its kind, by what the factor is when it is taken."""

    @jax.custom_vjp
    def fn(x):
        return x * 1

    fn.defvjp(lambda x: (x * 1, None), lambda _, ct: (ct * factor(),))
    return fn


def test_a_function_is_traced_again_in_another_context():
    context = jax.make_user_context(1.0)
    x, read = laid_out(5), scaled(lambda: context.value)
    inside = gl.on_grid(lambda x: x * context.value)
    forward = gl.on_grid(lambda x: (x * context.value).sum())
    backward = gl.on_grid(lambda x: read(x).sum())
    for value in (2.0, 3.0, 2.0):
        with context(value):
            np.testing.assert_array_equal(np.asarray(inside(x)), value * np.asarray(x))
            for fn in (forward, backward):
                np.testing.assert_array_equal(np.asarray(jax.grad(fn)(x)), np.full(5, value, "f4"))


def test_a_function_is_traced_again_under_another_option():
    x = laid_out(5)

    def fn(x):
        return x + jax.random.normal(jax.random.key(0), x.shape)

    lifted, before = gl.on_grid(fn), jax.config.jax_random_seed_offset
    try:
        for offset in (before, before + 5):
            jax.config.update("jax_random_seed_offset", offset)
            np.testing.assert_allclose(np.asarray(lifted(x)), fn(np.asarray(x)), rtol=1e-6)
    finally:
        jax.config.update("jax_random_seed_offset", before)


class Held:
    """What a function closes over."""


def in_a_custom_derivative(held):
    return scaled(lambda: 1.0 if held else 2.0)


def in_a_callback(held):
    shape = jax.ShapeDtypeStruct((5,), np.float32)
    return lambda x: jax.pure_callback(lambda a: a if held else -a, shape, x)


def in_an_effect(held):
    def fn(x):
        jax.debug.callback(lambda _: held, x)
        return x

    return fn


def in_a_policy(held):
    return jax.checkpoint(lambda x: jnp.sin(x), policy=lambda *_, **__: bool(held))


@pytest.mark.few(2)
@pytest.mark.parametrize("make", [in_a_custom_derivative, in_a_callback, in_an_effect, in_a_policy])
def test_what_a_function_closes_over_goes_with_it(make):
    x, refs = laid_out(5), []
    for k in range(4):
        held = Held()
        refs.append(weakref.ref(held))
        made = make(held)
        jax.block_until_ready(gl.on_grid(lambda x, k=k, made=made: made(x) * k)(x).storage)
        if make in (in_a_custom_derivative, in_a_policy):
            jax.grad(gl.on_grid(lambda x, k=k, made=made: (made(x) * k).sum()))(x)
        del made, held
    jax.effects_barrier()
    gc.collect()
    # JAX itself holds the last function that the host was called with.
    assert sum(ref() is not None for ref in refs) <= (make in (in_a_callback, in_an_effect))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, s: s,
        lambda x, s: s * 2,
        lambda x, s: jnp.sin(s),
        lambda x, s: 1.0,
        lambda x, s: -1,
        lambda x, s: 1j,
        lambda x, s: True,
        lambda x, s: np.float32(2) * s,
        lambda x, s: s + x.sum(),
    ],
)
def test_numbers_are_as_weakly_typed_as_jaxs(fn):
    x = laid_out(5)
    expected = jax.jit(fn)(np.asarray(x), 2.0)
    lifted = gl.on_grid(fn)
    for got in (lifted(x, 2.0), jax.jit(lambda x: lifted(x, 2.0))(x)):
        assert (got.weak_type, got.dtype) == (expected.weak_type, expected.dtype)


@pytest.mark.skipif(len(jax.devices()) < 8, reason="8 devices")
@pytest.mark.parametrize("most", [6, 9, 256])
def test_a_shard_map_has_few_operands_and_results_where_its_steps_divide(most):
    # XLA's time for one grows with the square of their number.
    def update(ws, gs, ms, x):
        y = jnp.sort((x.T @ x).T[:1:-1, 2:], axis=0)  # by views, which are not cut from what reads
        for w in ws:
            y = jnp.tanh(y * w)
        ms = [0.9 * m + jnp.sort(g, axis=1) for m, g in zip(ms, gs, strict=True)]
        return y, [w - jnp.flip(m, axis=1) for w, m in zip(ws, ms, strict=True)], ms

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((11, 11), np.float32) for _ in range(18)]
    trees = [arrays[:6], arrays[6:12], arrays[12:], rng.standard_normal((13, 13), np.float32)]
    device = gl.DeviceGrid((2, 4))
    rows = gl.GridLayout((11, 11), "float32", grid=(8, 1))
    laid = gl.put(trees, [[rows] * 6] * 3 + [None], device)
    expected = jax.jit(update)(*trees)
    drop_all()
    with mock.patch.object(regions, "_VALUES", most):
        found = gl.on_grid(update)(*laid)
        calls = equations(update, *laid)
    drop_all()
    found = jax.tree.map(np.asarray, found, is_leaf=lambda x: isinstance(x, gl.GridArray))
    chex.assert_trees_all_close(found, jax.device_get(expected), rtol=1e-4, atol=1e-5)
    shard_maps = [eqn for eqn in calls if eqn.primitive.name == "shard_map"]
    sizes = [len(eqn.invars) + len(eqn.outvars) for eqn in shard_maps]
    if most == 256:
        assert len(sizes) == 1
    else:
        assert len(sizes) > 1
        assert max(sizes) <= most


def test_elementwise_steps_at_the_end_of_many_run_on_whole_storages():
    # A sum's parts, which differ by device, are made and added up in one `shard_map`.
    def update(ps, gs):
        norm = jnp.sqrt(sum((g * g).sum() for g in gs))
        scale = jnp.minimum(1.0, 1 / norm)
        ps = [p - scale * jnp.tanh(g) for p, g in zip(ps, gs, strict=True)]
        return norm, ps, [p.astype(jnp.bfloat16) for p in ps], [jnp.zeros_like(p) + 1 for p in ps]

    rng = np.random.default_rng(0)
    shapes = [(11, 13), (7,), (9, 4, 3), (1,), (8, 8)]
    trees = [[rng.standard_normal(shape, np.float32) for shape in shapes] for _ in range(2)]
    expected = jax.jit(update)(*trees)
    laid = gl.put(trees, gl.DeviceGrid((2, 4)))
    drop_all()
    with mock.patch.object(regions, "_VALUES", 9):
        found = jax.jit(gl.on_grid(update))(*laid)
        calls = equations(update, *laid)
    drop_all()
    shard_maps = [eqn for eqn in calls if eqn.primitive.name == "shard_map"]
    inside = [inner.primitive.name for eqn in shard_maps for inner in eqn.params["jaxpr"].eqns]
    assert "psum" in " ".join(inside)
    assert "tanh" not in inside
    layouts = [x.layout for x in found[1]]
    assert layouts == [x.layout.with_oob(None) for x in laid[0]]
    assert [x.storage.sharding for x in found[1]] == [x.storage.sharding for x in laid[0]]
    found = jax.tree.map(np.asarray, found, is_leaf=lambda x: isinstance(x, gl.GridArray))
    chex.assert_trees_all_close(found, jax.device_get(expected), rtol=1e-4, atol=1e-5)
