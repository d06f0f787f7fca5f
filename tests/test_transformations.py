"""Every transformation of JAX around functions on the grid: what plain JAX gives, from any layout.

The padding of every operand is poisoned, so that whatever reads it is seen.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from devices import turn as device_of
from jax import lax
from jax.experimental import checkify
from laid_out import assert_claim_holds, choices, leaves, poisoned, read, wide

import gridlayout as gl

DEVICE = gl.DeviceGrid((2, 4))
A = np.linspace(-2, 2, 35, dtype="f4").reshape(5, 7)
B = np.linspace(0.5, 1.5, 35, dtype="f4").reshape(5, 7)
STACK = np.stack([A, A * 2 - 1, A * 0 + 0.5])


class Plain:
    """Plain JAX."""

    of = staticmethod(lambda fn: fn)
    put = staticmethod(jnp.asarray)


class Grid:
    """The same on the grid."""

    of = staticmethod(gl.on_grid)

    @staticmethod
    def put(a, device=DEVICE):
        return gl.put(a, gl.GridLayout(a.shape, a.dtype, (2, 4)), device)


def loss(a):
    return jnp.sum(jnp.sin(a) * jnp.tanh(a))


def soft(a):
    return jax.nn.softmax(a, axis=-1)


def ranked(a):
    return a.cumsum(0), jnp.argmax(a, axis=0)


def squares(at):
    """A function with a derivative of its own."""

    @jax.custom_vjp
    def fn(a):
        return at.of(jnp.sin)(a)

    fn.defvjp(lambda a: (fn(a), a), lambda a, ct: (at.of(lambda a, ct: 2 * a * ct)(a, ct),))
    return fn


def tripled(at):
    """A function with a forward-mode derivative of its own."""

    @jax.custom_jvp
    def fn(a):
        return at.of(jnp.sin)(a)

    fn.defjvp(lambda a, t: (fn(*a), at.of(lambda a, t: 3 * a * t)(*a, *t)))
    return fn


def steps(at, a, count=3):
    """A loop whose carry is a GridArray."""
    return lax.scan(
        lambda c, k: (at.of(lambda c, k: jnp.sin(c) * k)(c, k), None), a, jnp.arange(1.0, count + 1)
    )[0]


def either(at):
    """A branch that takes and gives GridArrays."""

    def fn(a):
        return lax.cond(at.of(loss)(a) > 0, at.of(soft), at.of(lambda a: -a), a)

    return fn


def until(at):
    """A loop that asks a GridArray when to stop."""

    def fn(a):
        return lax.while_loop(
            lambda c: at.of(lambda c: jnp.max(jnp.abs(c)))(c) > 0.25, at.of(lambda c: c / 2), a
        )

    return fn


def first_only(a, b):
    return jnp.sum(a * 2)


def stepped(a):
    return jnp.sum(jnp.floor(a))


# Of `at`, which lifts functions or leaves them, and arrays: name -> function.
AROUND = {
    "call": lambda at, a, b: at.of(soft)(a),
    "jit": lambda at, a, b: jax.jit(at.of(soft))(a),
    "grad": lambda at, a, b: jax.grad(at.of(loss))(a),
    "jit of grad": lambda at, a, b: jax.jit(jax.grad(at.of(loss)))(a),
    "value and grad of a tree": lambda at, a, b: jax.value_and_grad(
        lambda p: at.of(loss)(p["a"]) * 2 + at.of(lambda q: jnp.sum(q["a"] * q["b"]))(p)
    )({"a": a, "b": b}),
    "has aux": lambda at, a, b: jax.grad(lambda a: (at.of(loss)(a), at.of(soft)(a)), has_aux=True)(
        a
    ),
    "unused": lambda at, a, b: jax.grad(lambda a, b: at.of(loss)(a), argnums=(0, 1))(a, b),
    "vjp": lambda at, a, b: jax.vjp(at.of(soft), a)[1](b),
    "jvp": lambda at, a, b: jax.jvp(at.of(soft), (a,), (b,)),
    "jit of jvp": lambda at, a, b: jax.jit(lambda a, b: jax.jvp(at.of(soft), (a,), (b,)))(a, b),
    "linearize": lambda at, a, b: jax.linearize(at.of(soft), a)[1](b),
    "linear transpose": lambda at, a, b: jax.linear_transpose(at.of(lambda a: a[::-1] * 3), a)(b),
    "transpose of a jvp": lambda at, a, b: jax.linear_transpose(
        lambda t: jax.jvp(at.of(soft), (a,), (t,))[1], a
    )(b),
    "grad of grad": lambda at, a, b: jax.grad(lambda a: at.of(loss)(jax.grad(at.of(loss))(a)))(a),
    "jvp of grad": lambda at, a, b: jax.jvp(jax.grad(at.of(loss)), (a,), (b,)),
    "jit of jvp of grad": lambda at, a, b: jax.jit(
        lambda a, b: jax.jvp(jax.grad(at.of(loss)), (a,), (b,))
    )(a, b),
    "grad of jvp": lambda at, a, b: jax.grad(lambda a: jax.jvp(at.of(loss), (a,), (b,))[1])(a),
    "integer results": lambda at, a, b: jax.jvp(at.of(ranked), (a,), (b,))[0],
    "grad beside integers": lambda at, a, b: jax.grad(
        lambda a: at.of(lambda r: jnp.sum(r[0] * r[1]))(at.of(ranked)(a))
    )(a),
    "linearize beside integers": lambda at, a, b: jax.linearize(at.of(ranked), a)[1](b)[0],
    "custom_vjp": lambda at, a, b: jax.grad(lambda a: at.of(loss)(squares(at)(a)))(a),
    "jit of custom_vjp": lambda at, a, b: jax.jit(jax.grad(lambda a: at.of(loss)(squares(at)(a))))(
        a
    ),
    "custom_jvp": lambda at, a, b: jax.grad(lambda a: at.of(loss)(tripled(at)(a)))(a),
    "jvp of custom_jvp": lambda at, a, b: jax.jvp(tripled(at), (a,), (b,)),
    "scan": lambda at, a, b: steps(at, a),
    "jit of scan": lambda at, a, b: jax.jit(lambda a: steps(at, a))(a),
    "stack of scan": lambda at, a, b: lax.scan(lambda c, _: (at.of(soft)(c), c), a, length=3),
    "grad of scan": lambda at, a, b: jax.grad(lambda a: at.of(loss)(steps(at, a)))(a),
    "jit of grad of scan": lambda at, a, b: jax.jit(jax.grad(lambda a: at.of(loss)(steps(at, a))))(
        a
    ),
    "fori_loop": lambda at, a, b: jax.jit(
        lambda a: lax.fori_loop(0, 3, lambda i, c: at.of(lambda c: jnp.sin(c) + i)(c), a)
    )(a),
    "while_loop": lambda at, a, b: until(at)(a),
    "jvp of while_loop": lambda at, a, b: jax.jvp(until(at), (a,), (b,)),
    "cond": lambda at, a, b: either(at)(a),
    "jit of cond": lambda at, a, b: jax.jit(either(at))(a),
    "grad of cond": lambda at, a, b: jax.grad(lambda a: at.of(loss)(either(at)(a)))(a),
    "checkpoint": lambda at, a, b: jax.checkpoint(lambda p: {"c": at.of(soft)(p["a"])})({"a": a}),
    "saving checkpoint": lambda at, a, b: jax.checkpoint(
        at.of(soft), policy=jax.checkpoint_policies.everything_saveable
    )(a),
    "grad of checkpoint": lambda at, a, b: jax.grad(
        lambda a: at.of(loss)(jax.checkpoint(lambda a: at.of(soft)(a * 0.5))(a))
    )(a),
    "jvp of checkpoint": lambda at, a, b: jax.jvp(jax.checkpoint(at.of(soft)), (a,), (b,)),
    "vjp of checkpoint": lambda at, a, b: jax.vjp(jax.checkpoint(at.of(soft)), a)[1](b),
    "checkpoint in checkpoint": lambda at, a, b: jax.grad(
        jax.checkpoint(lambda a: at.of(loss)(jax.checkpoint(at.of(soft))(a)))
    )(a),
    "scan of checkpoint": lambda at, a, b: jax.grad(
        lambda a: at.of(loss)(
            lax.scan(lambda c, _: (jax.checkpoint(at.of(soft))(c), None), a, length=3)[0]
        )
    )(a),
    "jit of grad of checkpoint": lambda at, a, b: jax.jit(
        jax.grad(jax.checkpoint(lambda a: at.of(loss)(at.of(soft)(a))))
    )(a),
    "donated": lambda at, a, b: jax.jit(at.of(soft), donate_argnums=0)(at.of(jnp.negative)(a)),
    "lowered": lambda at, a, b: jax.jit(at.of(soft)).lower(a).compile()(a),
    "operators in jit": lambda at, a, b: jax.jit(lambda a, b: (a * b + 1 - 2 * a) @ b.T)(a, b),
    "tree_map in jit": lambda at, a, b: jax.jit(lambda p: jax.tree.map(at.of(soft), p))([a, (b,)]),
    "closed over": lambda at, a, b: jax.jit(lambda: at.of(soft)(a))(),
    "closed over by the function": lambda at, a, b: jax.grad(
        lambda w: at.of(lambda a: jnp.sum(a * w * w))(a)
    )(3.0),
    "put": lambda at, a, b: jax.grad(lambda a: at.of(loss)(at.put(a)))(jnp.asarray(A)),
    "jvp of put": lambda at, a, b: jax.jvp(lambda a: at.of(loss)(at.put(a)), (A,), (B,)),
    "hessian of an array": lambda at, a, b: jax.hessian(lambda a: at.of(loss)(at.put(a)))(
        A[:2, :2]
    ),
    "checkify": lambda at, a, b: checkify.checkify(at.of(loss))(a)[1],
    "inside jacfwd": lambda at, a, b: at.of(jax.jacfwd(soft))(a),
    "inside jacrev": lambda at, a, b: at.of(jax.jacrev(soft))(a),
    "inside hessian": lambda at, a, b: at.of(jax.hessian(loss))(a),
    "inside checkpoint": lambda at, a, b: jax.grad(at.of(jax.checkpoint(lambda a: loss(soft(a)))))(
        a
    ),
    "inside scan": lambda at, a, b: jax.grad(
        at.of(lambda a: lax.scan(lambda c, r: (c + jnp.sin(r), c.sum()), a[0], a)[1].sum())
    )(a),
}

# The same of a stack of three and an array.
MAPPED = {
    "vmap": lambda at, s, b: jax.vmap(at.of(soft))(s),
    "a sum of each": lambda at, s, b: jax.vmap(at.of(loss))(s),
    "another axis": lambda at, s, b: jax.vmap(at.of(lambda a: a.cumsum(0)), in_axes=1)(s),
    "the last axis": lambda at, s, b: jax.vmap(at.of(lambda a: a.cumsum(0)), in_axes=-1)(s),
    "one for all": lambda at, s, b: jax.vmap(at.of(lambda a, b: a @ b.T), in_axes=(0, None))(s, b),
    "jit of vmap": lambda at, s, b: jax.jit(jax.vmap(at.of(soft)))(s),
    "vmap of jit": lambda at, s, b: jax.vmap(jax.jit(lambda a: at.of(loss)(at.of(soft)(a))))(s),
    "vmap of grad": lambda at, s, b: jax.vmap(jax.grad(at.of(loss)))(s),
    "grad of vmap": lambda at, s, b: jax.grad(lambda s: jnp.sum(jax.vmap(at.of(loss))(s)))(s),
    "jit of vmap of grad": lambda at, s, b: jax.jit(jax.vmap(jax.grad(at.of(loss))))(s),
    "vmap of jvp": lambda at, s, b: jax.vmap(lambda a: jax.jvp(at.of(soft), (a,), (a,)))(s),
    "vmap of vmap": lambda at, s, b: jax.vmap(jax.vmap(at.of(lambda a: a - a.mean())))(s),
    "vmap of scan": lambda at, s, b: jax.vmap(lambda a: steps(at, a))(s),
    "vmap of put": lambda at, s, b: jax.vmap(lambda a: at.of(soft)(at.put(a)))(STACK),
    "operators": lambda at, s, b: jax.vmap(lambda a: (a * a).sum(0))(s),
    "grad of a sum": lambda at, s, b: jax.vmap(jax.grad(at.of(jnp.sum)))(s),
    "grad of what is not mapped": lambda at, s, b: jax.vmap(
        jax.grad(at.of(first_only), (0, 1)), (None, 0)
    )(b, s),
    "jit of grad of what is not mapped": lambda at, s, b: jax.jit(
        jax.vmap(jax.grad(at.of(lambda a, b: b.sum())), (0, None))
    )(s, b),
    "grad of an argument that no function takes": lambda at, s, b: jax.vmap(
        jax.grad(lambda a, b: at.of(loss)(a), (0, 1)), (0, None)
    )(s, b),
    "grad of steps": lambda at, s, b: jax.vmap(jax.grad(at.of(stepped)))(s),
    "grad of a constant": lambda at, s, b: jax.vmap(jax.grad(at.of(lambda a: 3.0)))(s),
    "grad with aux": lambda at, s, b: jax.vmap(
        jax.grad(at.of(lambda a, b: (b.sum(), a * 2)), has_aux=True), (0, None)
    )(s, b),
    "grad of checkpoint": lambda at, s, b: jax.vmap(
        jax.grad(jax.checkpoint(at.of(lambda a, b: b.sum()))), (0, None)
    )(s, b),
    "jvp of grad of a sum": lambda at, s, b: jax.vmap(
        lambda a: jax.jvp(jax.grad(at.of(jnp.sum)), (a,), (a,))
    )(s),
    "grad of grad of a sum": lambda at, s, b: jax.vmap(
        jax.grad(lambda a: at.of(jnp.sum)(jax.grad(at.of(jnp.sum))(a)))
    )(s),
    "linearize of steps": lambda at, s, b: jax.vmap(
        lambda a: jax.linearize(at.of(jnp.floor), a)[1](a)
    )(s),
    "vmap of vmap of grad": lambda at, s, b: jax.vmap(
        jax.vmap(jax.grad(at.of(lambda a, b: b.sum())), (0, None)), (None, 0)
    )(s, jnp.stack([A, B]) if at is Plain else Grid.put(np.stack([A, B]), s.device)),
}

# -- lifted functions inside lifted functions, all of whose arguments are plain --------------------


def rooted(at):
    """A root, whose derivative is that of an equation."""
    lifted = at.of(lambda y, a: y * y - a)

    def fn(a):
        total = jnp.sum(a * a)

        def newton(f, y):
            return lax.fori_loop(0, 20, lambda _, y: y - f(y) / (2 * y), y)

        return lax.custom_root(lambda y: lifted(y, total), 1.0, newton, lambda g, y: y / g(1.0))

    return fn


def solved(at):
    """A linear system with a solver of its own."""
    product, solve = at.of(lambda m, v: m @ v), at.of(jnp.linalg.solve)

    def fn(a):
        m, b = a[:, :5] + 5 * jnp.eye(5), a[:, 5]
        return lax.custom_linear_solve(
            partial(product, m), b, lambda _, b: solve(m, b), lambda _, b: solve(m.T, b)
        ).sum()

    return fn


# Of `at`: name -> function of an array.
INSIDE = {
    "custom_vjp": lambda at: lambda a: squares(at)(a).sum(),
    "custom_jvp": lambda at: lambda a: tripled(at)(a).sum(),
    "checkpoint": lambda at: lambda a: jax.checkpoint(lambda a: at.of(soft)(a)[0])(a).sum(),
    "custom_vjp in checkpoint": lambda at: jax.checkpoint(lambda a: squares(at)(a).sum()),
    "custom_vjp in scan": lambda at: (
        lambda a: lax.scan(lambda c, r: (c + squares(at)(r).sum(), None), 0.0, a)[0]
    ),
    "custom_vjp in vmap": lambda at: lambda a: jax.vmap(squares(at))(a).sum(),
    "scan": lambda at: (
        lambda a: lax.scan(at.of(lambda c, r: (jnp.sin(c) * r, c)), a[0], a)[0].sum()
    ),
    "cond": lambda at: lambda a: either(at)(a).sum(),
    "root": rooted,
    "linear solve": solved,
    "grad": lambda at: lambda a: jax.grad(at.of(loss))(a).sum(),
}
DERIVATIVES = {
    "call": lambda lift, fn, a: lift(fn)(a),
    "grad": lambda lift, fn, a: jax.grad(lift(fn))(a),
    "jvp": lambda lift, fn, a: jax.jvp(lift(fn), (a,), (a,)),
    "linearize": lambda lift, fn, a: jax.linearize(lift(fn), a)[1](a),
    "jit of grad of checkpoint": lambda lift, fn, a: jax.jit(jax.grad(jax.checkpoint(lift(fn))))(a),
    "grad inside": lambda lift, fn, a: lift(jax.grad(fn))(a),
    "grad of grad": lambda lift, fn, a: jax.grad(lambda a: lift(jnp.sum)(jax.grad(lift(fn))(a)))(a),
}


def check(fn, arrays, seed, wrap=jax.jit):
    *_, (first, other) = choices([a.shape for a in arrays], 3, seed)
    # A tangent is laid out as its primal, so both are here, where they have one shape.
    chosen = (first, first if arrays[0].shape == arrays[1].shape else other)
    device = device_of(DEVICE, seed)
    laid = [poisoned(a, layout, device) for a, layout in zip(arrays, chosen, strict=True)]
    found, expected = fn(Grid, *laid), wrap(partial(fn, Plain))(*arrays)
    assert len(leaves(found)) == len(leaves(expected))
    for f, w in zip(leaves(found), leaves(expected), strict=True):
        assert (f.shape, f.dtype) == (w.shape, w.dtype)
        got = read(f) if isinstance(f, gl.GridArray) and not f.type.stack else np.asarray(f)
        np.testing.assert_allclose(wide(got), wide(w), rtol=2e-4, atol=2e-5)
        assert_claim_holds(f)


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("seed", "name"),
    tiers.few(
        [each for each in enumerate(AROUND) if tiers.ALL or not each[1].startswith("jit of")], 12
    ),
)
def test_around_the_grid(seed, name):
    # What is compiled for one signature takes no tracers.
    check(AROUND[name], (A, B), seed, wrap=(lambda fn: fn) if name == "lowered" else jax.jit)


@pytest.mark.few(4)
@pytest.mark.parametrize(("seed", "name"), tiers.few(enumerate(MAPPED), 9))
def test_vmap_around_the_grid(seed, name):
    check(MAPPED[name], (STACK, B), seed)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "around"),
    tiers.few(
        [
            (name, around)
            for name in INSIDE
            for around in DERIVATIVES
            if not (name.startswith("custom_vjp") and around in ("jvp", "linearize"))
        ],
        7,
    ),
)
def test_lifted_functions_inside_a_lifted_one(name, around):
    run = DERIVATIVES[around]

    def fn(at, a, _):
        return run(at.of, INSIDE[name](at), a)

    check(fn, (A, B), list(INSIDE).index(name), wrap=lambda fn: fn)


def test_a_tangent_in_another_layout():
    x, t = (
        poisoned(a, gl.GridLayout(A.shape, "float32", g), DEVICE)
        for a, g in ((A, (3, 2)), (B, (8, 1)))
    )
    for found, expected in zip(
        jax.jvp(gl.on_grid(soft), (x,), (t,)), jax.jvp(soft, (A,), (B,)), strict=True
    ):
        np.testing.assert_allclose(read(found), expected, rtol=2e-4, atol=1e-6)
    with pytest.raises((TypeError, ValueError), match=r"grid=\(3, 2\)"):
        jax.vjp(gl.on_grid(soft), x)[1](t)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_gradients_under_an_explicit_mesh(wrap):
    x = poisoned(A, gl.GridLayout(A.shape, "float32", (3, 2)), DEVICE)
    mesh = jax.make_mesh((4, 2), ("p", "q"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        value, found = wrap(jax.value_and_grad(gl.on_grid(loss)))(x)
    np.testing.assert_allclose(value, loss(A), rtol=1e-5)
    np.testing.assert_allclose(read(found), jax.grad(loss)(A), rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(
    jax.__version_info__ < (0, 11), reason="JAX 0.10 holds values of its own lowering of hijax"
)
def test_no_tracer_leaks():
    x = poisoned(A, gl.GridLayout(A.shape, "float32", (3, 2)), DEVICE)
    with jax.checking_leaks():
        found = jax.jit(jax.grad(gl.on_grid(loss)))(x)
    np.testing.assert_allclose(read(found), jax.grad(loss)(A), rtol=1e-5, atol=1e-6)


def test_jaxprs_and_shapes_name_layouts():
    layout = gl.GridLayout(A.shape, "float32", (3, 2))
    x = poisoned(A, layout, DEVICE)
    assert repr(layout) in str(jax.make_jaxpr(gl.on_grid(soft))(x))
    assert jax.eval_shape(gl.on_grid(soft), x).shape == A.shape
    lowered = gl.on_grid(soft).lower(x)
    assert "stablehlo" in lowered.as_text()
    np.testing.assert_allclose(read(lowered.compile()(x)), soft(A), rtol=1e-5)


def test_a_step_is_compiled_once():
    """Counts and keys come back placed as they went in."""
    traced = []

    def step(params, count, key):
        traced.append(1)
        key, new = jax.random.split(key)
        noise = jax.random.normal(new, A.shape) * 0
        return jax.tree.map(lambda p: p * 0.5 + noise, params), count + 1, key

    run = gl.on_grid(step)
    state = (
        {"w": poisoned(A, gl.GridLayout(A.shape, "float32", (3, 2)), DEVICE)},
        0,
        jax.random.key(0),
    )
    for _ in range(4):
        state = run(*state)
    assert len(traced) == 1 or (len(traced) == 2 and isinstance(state[1], jax.Array))
    np.testing.assert_allclose(read(state[0]["w"]), A / 16, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize(
    "fn",
    [
        lambda x, n: x * n,
        lambda x, n: n - x,
        lambda x, n: x % n,
        lambda x, n: n >= x,
        lambda x, n: gl.numpy.maximum(x, n) if isinstance(x, gl.GridArray) else jnp.maximum(x, n),
        lambda x, n: x.clip(1, n),
        lambda x, n: x.at[n].set(n),
        lambda x, n: x[n],
    ],
)
def test_one_program_serves_all_integers(fn, dtype):
    compiled = []

    def heard(name, *_, **__):
        if name == "/jax/core/compile/backend_compile_duration":
            compiled.append(name)

    a = jnp.arange(35).reshape(5, 7).astype(dtype)
    x = poisoned(a, gl.GridLayout(a.shape, dtype, (3, 2)), DEVICE)
    fn(x, 1)
    jax.monitoring.register_event_duration_secs_listener(heard)
    try:
        found = [fn(x, n) for n in (2, 3, 4)]
    finally:
        jax.monitoring.unregister_event_duration_listener(heard)
    assert not compiled
    for n, each in zip((2, 3, 4), found, strict=True):
        assert each.dtype == fn(a, n).dtype
        np.testing.assert_array_equal(read(each), np.asarray(fn(a, n)))


def test_a_checkpoint_outside_of_jit_compiles_its_calls_whole():
    """And not each step of them, which JAX does where it meets a shard_map there."""
    compiled = []

    def heard(name, *_, **__):
        if name.endswith("backend_compile_duration"):
            compiled.append(name)

    x = poisoned(A, gl.GridLayout(A.shape, "float32", (3, 2)), DEVICE)
    jax.monitoring.register_event_duration_secs_listener(heard)
    try:
        found = jax.checkpoint(lambda a: gl.on_grid(soft)(a))(x)
    finally:
        jax.monitoring.unregister_event_duration_listener(heard)
    np.testing.assert_allclose(read(found), soft(A), rtol=1e-5)
    assert len(compiled) < 9


@pytest.mark.few(1)
@pytest.mark.parametrize("fn", [jax.jacfwd, jax.jacrev, jax.hessian])
def test_jacobians_go_inside(fn):
    x = poisoned(A, gl.GridLayout(A.shape, "float32", (3, 2)), DEVICE)
    lifted = gl.on_grid(loss)
    for called in (fn(lifted), jax.jit(fn(lifted))):
        with pytest.raises(AttributeError, match=r"gl\.on_grid\(jax\.jacfwd\(fn\)\)"):
            called(x)
    found = gl.on_grid(fn(lifted))(x)  # as the error says
    np.testing.assert_allclose(np.asarray(found), fn(loss)(jnp.asarray(A)), rtol=1e-5, atol=1e-6)
