"""`on_grid` against JAX itself: every function on laid-out arrays is the function on plain ones.

Padding is poisoned with NaN before every operation, or holds a known number that the result's
layout must then tell the truth about.
"""

import collections
import functools
import gc
import itertools
import operator
import pickle
import re
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tiers
from deciding import Compiled, Traced
from devices import turn as device_of
from hlo import collectives, operations
from jax import lax
from laid_out import (
    assert_claim_holds,
    assert_same,
    choices,
    is_grid,
    layouts,
    leaves,
    padding,
    poisoned,
    wide,
)
from tiers import few, together

import gridlayout as gl
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions.facts import EXACT

DEVICE = gl.DeviceGrid((2, 4))
TURNS = 4
pytestmark = pytest.mark.usefixtures("few_programs")


A, B, C, V, T, U, R, K = (5, 7), (5, 7), (7, 3), (7,), (2, 5, 7), (2, 7, 3), (1, 7), (5, 1)


@functools.cache
def example(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def examples(shapes):
    return tuple(jnp.asarray(example(shape, seed)) for seed, shape in enumerate(shapes))


# -- the functions ----------------------------------------------------------------------------


def layer_norm(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(q, k, v):
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) / 2.0, axis=-1) @ v


@jax.custom_jvp
def cube(x):
    return x * x * x


cube.defjvp(lambda p, t: (cube(*p), 3 * p[0] ** 2 * t[0]))


@jax.custom_vjp
def strange_sine(x):
    return jnp.sin(x)


# Not the derivative of the sine: a rule that is dropped shows.
strange_sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * 2 * jnp.cos(x),))

AXES = [0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2)]

# name: (function, shapes of its arguments). `GRAD` names those whose derivative is compared too.
ELEMENTWISE = {
    "add": (lambda x, y: x + y, (A, B)),
    "subtract a column": (lambda x, y: x - y, (A, K)),
    "multiply by a row": (lambda x, y: x * y, (A, V)),
    "divide by a row of rank 2": (lambda x, y: x / (3 + y), (A, R)),
    "row times column": (lambda x, y, z: x * y + z, (R, K, A)),
    "rank 3 and rank 2": (lambda x, y: x + y, (T, A)),
    "rank 2 and rank 3": (lambda x, y: jnp.maximum(x, y), (A, T)),
    "rank 3 and rank 1": (lambda x, y: x * y, (T, V)),
    "a plain constant": (lambda x: x * np.arange(7.0, dtype="f4") + 1, (A,)),
    "iota": (lambda x: x * jnp.arange(7.0) + jnp.arange(5.0)[:, None], (A,)),
    "exp": (jnp.exp, (A,)),
    "sine and tanh": (lambda x: jnp.tanh(jnp.sin(x)), (V,)),
    "log1p": (lambda x: jnp.log1p(jnp.abs(x)), (T,)),
    "power": (lambda x: x**3 + jnp.abs(x) ** 1.5, (A,)),
    "atan2 and hypot": (lambda x, y: jnp.atan2(x, y) + jnp.hypot(x, y), (A, B)),
    "erf": (lambda x: lax.erf(x) + lax.rsqrt(x * x + 1), (A,)),
    "where": (lambda x, y: jnp.where(x > 0, x, y), (A, B)),
    "where with a scalar": (lambda x: jnp.where(x > 0, x, 0.0), (A,)),
    "where with a row": (lambda x, y: jnp.where(y > 0, x, -1.0), (A, V)),
    "select of three": (
        lambda x, y: lax.select_n((x > 0).astype("int32") + (y > 0), x, y, x * y),
        (A, B),
    ),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.5), (A,)),
    "clamp between arrays": (lambda x, y: lax.clamp(x - 1, y, x + 1), (A, B)),
    "relu silu gelu": (lambda x: jax.nn.relu(x) + jax.nn.silu(x) * jax.nn.gelu(x), (A,)),
    "complex": (lambda x: (lax.complex(x, x * 2) * 1j).real, (A,)),
}
NUMBERS = {
    "casts": (lambda x: (x * 10).astype("int8").astype("bfloat16"), (A,)),
    "bool and back": (lambda x: (x > 0).astype("float32") + x.astype(bool), (A,)),
    "integers": (lambda x: (x * 9).astype("int32") // 2 % 3 << 1 & 7 ^ 1, (A,)),
    "floor and rint": (lambda x: jnp.floor(x * 3) + jnp.rint(x * 7) + jnp.sign(x), (A,)),
    "comparisons": (lambda x, y: (x < y) | (x == y) & ~(x >= 2), (A, B)),
    "bits": (lambda x: lax.population_count(lax.bitcast_convert_type(x, jnp.uint32)), (A,)),
    "one_hot": (lambda x: jax.nn.one_hot(jnp.argmax(x, 1), 7), (A,)),
    "one_hot of all": (lambda x: jax.nn.one_hot((jnp.abs(x) * 3).astype("int32"), 4), (A,)),
    "any and all": (lambda x: ((x > 0).any(0), (x > -9).all(1), (x > 9).any()), (A,)),
    "counting": (lambda x: (x > 0).astype("int32").sum((0, 1)), (A,)),
    "bitwise reductions": (
        lambda x: (
            jnp.bitwise_and.reduce((x * 50).astype("int32"), axis=0),
            jnp.bitwise_or.reduce((x * 50).astype("int32"), axis=1),
        ),
        (A,),
    ),
    "unsigned extremes": (
        lambda x: (jnp.abs(x * 50).astype("uint8").min(0), (x * 50).astype("int8").max((0, 1))),
        (A,),
    ),
    **{
        f"argmax {axis}": (
            lambda x, axis=axis: (jnp.argmax(x, axis), jnp.argmin(x, axis, keepdims=True)),
            (T,),
        )
        for axis in (0, 1, 2, None)
    },
    "argmax of ties": (lambda x: (jnp.argmax(x * 0, 1), jnp.argmin(x > 9, 0)), (A,)),
    "argmax of infinities": (lambda x: jnp.argmax(jnp.where(x > 9, x, -jnp.inf), 1), (A,)),
}
REDUCTIONS = {
    **{
        f"sum, extremes over {axis}": (
            lambda x, axis=axis: (x.sum(axis), x.max(axis), x.min(axis), x.mean(axis)),
            (T,),
        )
        for axis in AXES
    },
    "product": (lambda x: (x.prod(0), x.prod((1, 2))), (T,)),
    "product of the last": (lambda x: x.prod(1), (A,)),
    "keepdims": (lambda x: x - x.sum(1, keepdims=True), (A,)),
    "centred": (lambda x: x - x.mean(0), (A,)),
    "variance": (lambda x: x.var(1, keepdims=True) + x, (T,)),
    "sums of sums": (lambda x: x.sum(1).sum(0) + x.sum(0).max(), (T,)),
    "sum of exp": (lambda x: jnp.exp(x - 1).sum(1) * x.sum(1), (A,)),
    "norm": (lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True), (A,)),
    "softmax": (jax.nn.softmax, (A,)),
    "softmax over the first": (lambda x: jax.nn.softmax(x, 0), (T,)),
    "log_softmax": (lambda x: jax.nn.log_softmax(x, 1), (T,)),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, (0, 2)), (T,)),
    "layer norm": (layer_norm, (T,)),
    "a mean of a broadcast": (lambda x: jnp.broadcast_to(x[:, None], (7, 5)).max(0), (V,)),
    "a sum of a broadcast": (lambda x: jnp.broadcast_to(x, (4, 7)).sum(0), (V,)),
    "an outer product's sum": (lambda x, y: (x[:, None] * y[None]).sum(0), (V, V)),
}
SHAPES = {
    "flatten": (lambda x: x.reshape(35), (A,)),
    "join the first": (lambda x: x.reshape(10, 7), (T,)),
    "join the last": (lambda x: x.reshape(2, 35), (T,)),
    "other digits": (lambda x: x.reshape(5, 14) * 2, (T,)),
    "reshape after transpose": (lambda x: lax.reshape(x, (7, 5), (1, 0)), (A,)),
    "transpose": (lambda x: x.T, (A,)),
    "transpose of rank 3": (lambda x: x.transpose(2, 0, 1) + 1, (T,)),
    "newaxis": (lambda x: x[:, None, :] * x[None], (A,)),
    "squeeze": (lambda x: jnp.squeeze(x) + 1, (R,)),
    "squeeze a column": (lambda x: x[..., 0], (K,)),
    "expand": (lambda x: jnp.expand_dims(x, (0, 3)), (A,)),
    "slice": (lambda x: x[1:4, 2:], (A,)),
    "strided and reversed": (lambda x: x[::2, ::-1], (A,)),
    "one row": (lambda x: x[2], (A,)),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (5, 2, 7)), (A,)),
    "broadcast, transposed": (lambda x, y: jnp.broadcast_to(x, (5, 7)).T + y.T, (V, A)),
    "broadcast, reshaped": (lambda x: jnp.broadcast_to(x, (4, 7)).reshape(28)[3:], (V,)),
    "interior padding": (lambda x: lax.pad(x, 0.0, ((0, 0, 1), (1, 0, 0))), (A,)),
}
PRODUCTS = {
    "matmul": (lambda x, y: x @ y, (A, C)),
    "x.T @ y": (lambda x, y: x.T @ y, (A, B)),
    "x @ y.T": (lambda x, y: x @ y.T, (A, B)),
    "(x @ y).T": (lambda x, y: (x @ y).T, (A, C)),
    "matrix and vector": (lambda x, y: x @ y, (A, V)),
    "vector and matrix": (lambda x, y: x @ y, (V, C)),
    "vectors": (lambda x, y: x @ y, (V, V)),
    "outer": (jnp.outer, (V, V)),
    "batched": (lambda x, y: x @ y, (T, U)),
    "one side batched": (lambda x, y: x @ y, (T, C)),
    "other side batched": (lambda x, y: x @ y, (A, U)),
    "two contracted": (lambda x, y: jnp.einsum("abc,dbc->ad", x, y), (T, T)),
    "two contracted to a vector": (lambda x, y: jnp.einsum("abc,bc->a", x, y), (T, A)),
    "batch moved": (lambda x, y: jnp.einsum("abc,acd->dab", x, y), (T, U)),
    "batch in the middle": (lambda x, y: jnp.einsum("abc,abc->b", x, y), (T, T)),
    "all batch": (lambda x, y: jnp.einsum("ab,ab->ba", x, y), (A, B)),
    "all contracted": (lambda x, y: jnp.tensordot(x, y, 2), (A, B)),
    "none contracted": (lambda x, y: jnp.einsum("ab,cd->adbc", x, y), (R, K)),
    "with a constant": (lambda x: x @ jnp.eye(7) + 1, (A,)),
    "constants alone, transposed": (
        lambda x: x[:4, :2] + (jnp.arange(6.0).reshape(2, 3) @ jnp.arange(12.0).reshape(3, 4)).T,
        (A,),
    ),
    "ones of one side": (lambda x: jnp.einsum("abc,abd->cd", x, jnp.ones((2, 5, 3))), (T,)),
    "with a broadcast": (lambda x, y: jnp.broadcast_to(x, (5, 7)) @ y, (V, C)),
    "narrow": (lambda x, y: x.astype("bfloat16") @ y.astype("bfloat16"), (A, C)),
    "integers": (lambda x, y: (x * 9).astype("int32") @ (y * 9).astype("int32"), (A, C)),
    "attention": (attention, (T, T, T)),
}
CALLS = {
    "jit inside": (lambda x: jax.jit(lambda y: y.sum(0) * 2)(x) + x, (A,)),
    "remat": (jax.checkpoint(lambda x: jnp.sin(x @ x.T)), (A,)),
    "custom_jvp": (lambda x: cube(x) + 1, (A,)),
    "custom_vjp": (lambda x: strange_sine(x) * 2, (A,)),
    "vmap inside": (lambda x: jax.vmap(lambda row: row * row.sum())(x), (A,)),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(7), x), (A,)),
    "while": (
        lambda x: lax.while_loop(lambda c: c.sum() < 1e3, lambda c: jnp.abs(c) * 2 + 1, x),
        (A,),
    ),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, x), (A,)),
    "cumsum": (lambda x: jnp.cumsum(x, 1) * 2, (A,)),
    "sort": (lambda x: jnp.sort(x, 0) + x, (A,)),
    "gather": (lambda x: x[jnp.array([0, 2, 2]), 1:3], (A,)),
    "index that is computed": (lambda x, y: x[jnp.argmax(y) % 5], (A, V)),
    "scatter": (lambda x: jnp.asarray(x).at[1].set(0.0).at[:, 2].add(x[:, 0]), (A,)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y], 0).sum(0), (A, B)),
    "stack and pad": (lambda x, y: jnp.pad(jnp.stack([x, y], 1), 1), (A, B)),
    "top_k": (lambda x: lax.top_k(x, 3), (A,)),
    "tril": (jnp.tril, (A,)),
    "convolution": (lambda x: jnp.convolve(x, jnp.ones(3)), (V,)),
    "random": (lambda x: x * jax.random.bernoulli(jax.random.key(0), 0.5, x.shape), (A,)),
    "no argument is used": (lambda x: jnp.ones((5, 7)) * 2, (A,)),
    "identity": (lambda x: x, (A,)),
    "pytrees": (lambda x, y: {"a": x + 1, "b": [y, x.sum(), None]}, (A, B)),
}
TABLE = {**ELEMENTWISE, **NUMBERS, **REDUCTIONS, **SHAPES, **PRODUCTS, **CALLS}
# Those that are flat almost everywhere, or that reverse-mode can't go through.
NO_GRAD = {*NUMBERS, "while", "no argument is used", "narrow", "integers", "top_k", "pytrees"}
SECOND = {
    *("row times column", "softmax", "product of the last", "strided and reversed", "matmul"),
    *("all contracted", "remat", "custom_vjp", "cumsum"),
}
MAPPED = {
    *("where", "sum, extremes over (0, 2)", "layer norm", "flatten", "newaxis", "matmul"),
    *("batched", "all contracted", "attention", "jit inside", "scan", "sort", "argmax 1"),
}


def cases(names):
    assert set(names) <= set(TABLE)
    return [
        pytest.param(seed, fn, shapes, id=name)
        for seed, (name, (fn, shapes)) in enumerate(TABLE.items())
        if name in names
    ]


TURN = collections.Counter()  # by shape of the first operand: whose turn it is of its layouts


def groups(names, size):
    """(turn, names of functions of the same shapes), for which one program is compiled."""
    assert set(names) <= set(TABLE)
    alike, found = {}, []
    for name in TABLE:
        if name in names:
            alike.setdefault(TABLE[name][1], []).append(name)
    for shapes, every in alike.items():
        for group in together(every, size):
            ends = " to ".join(dict.fromkeys([group[0], group[-1]]))
            found.append(pytest.param(TURN[shapes[0]], group, id=ends))
            TURN[shapes[0]] += 1
    return found


def assert_all_same(names, plain, grid):
    """Functions on the grid, in one program, are the functions."""

    def every(*args):
        return {name: TABLE[name][0](*args) for name in names}

    expected, found = jax.jit(every)(*plain), gl.on_grid(every)(*grid)
    for name in names:
        narrow = any(leaf.dtype == jnp.bfloat16 for leaf in jax.tree.leaves(expected[name]))
        try:
            assert_same(found[name], expected[name], rtol=2e-2 if narrow else 2e-4, atol=1e-5)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def operands(shapes, seed, turn=0):
    """Plain arguments, and the same with poisoned padding in layouts whose turn it is."""
    plain = examples(shapes)
    *_, chosen = choices(shapes, turn + 1, seed)
    device = device_of(DEVICE, seed + turn)
    return plain, [poisoned(a, layout, device) for a, layout in zip(plain, chosen, strict=True)]


ALL = groups(TABLE, 5)
KNOWN = groups({**ELEMENTWISE, **REDUCTIONS, **SHAPES}, 5)


def shapes_of(names):
    (shapes,) = {TABLE[name][1] for name in names}
    return shapes


@pytest.mark.few(13)
@pytest.mark.parametrize(("turn", "names"), ALL)
def test_functions_on_the_grid_are_the_functions(turn, names):
    assert_all_same(names, *operands(shapes_of(names), turn))


@pytest.mark.few(5)
@pytest.mark.parametrize(("turn", "names"), few(KNOWN, 14))
def test_what_results_say_of_their_padding_is_true(turn, names):
    shapes = shapes_of(names)
    facts = itertools.islice(itertools.cycle([0, 1, -np.inf, 2.5, None]), turn, turn + len(shapes))
    plain = examples(shapes)
    (chosen,) = choices(shapes, 1, turn)
    grid = [
        gl.put(np.asarray(a), layout.with_oob(oob), DEVICE)
        for a, layout, oob in zip(plain, chosen, facts, strict=True)
    ]
    assert_all_same(names, plain, grid)


@pytest.mark.parametrize("shape", [A, T])
def test_nothing_is_known_of_padding_that_a_sum_does_not_set(shape):
    for axis in range(len(shape)):
        traced = Traced(lambda x, axis=axis: x.sum(axis), [example(shape)])
        for layout in layouts(shape).values():
            (spec,) = traced.program([layout], DEVICE).results
            assert spec.layout.oob is None or not padding(spec.layout).any(), (axis, layout)


def test_every_layout_has_its_turn():
    used = {
        layout
        for turn, names in (each.values for each in (*ALL, *KNOWN))
        for chosen in choices(shapes_of(names), 1, turn)
        for layout in chosen
    }
    # Those of vectors are in test_along.py too.
    for shape in (A, V, T) if tiers.ALL else (A, T):
        assert set(layouts(shape).values()) <= used


# -- derivatives ------------------------------------------------------------------------------


def total(fn):
    """A scalar of all results, with a different weight for each element."""

    def scalar(*args):
        outs = jax.tree.leaves(fn(*args))
        return sum(
            jnp.sum(jnp.sin(out) * (1 + jnp.arange(out.size).reshape(out.shape))) for out in outs
        )

    return scalar


def gradients(fn, shapes):
    return jax.grad(total(fn), tuple(range(len(shapes))))


KINDS = {
    "elementwise": ELEMENTWISE,
    "reductions": REDUCTIONS,
    "shapes": SHAPES,
    "products": PRODUCTS,
    "calls": CALLS,
}
# Of so many functions of a kind a gradient is compiled, once, without `--all-cases`.
COMPILED = {"elementwise": 2, "reductions": 1, "shapes": 1, "products": 1, "calls": 3}


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_jaxs(kind):
    # Every eighth is decided, or each in several layouts; of decisions of one kind one is compiled,
    # and of what has derivatives of its own every function.
    compiled, smooth = Compiled(), [name for name in KINDS[kind] if name not in NO_GRAD]
    chance = few(smooth, COMPILED[kind])
    decided = {*few(smooth, -(-len(smooth) // 8)), *chance}
    for seed, (name, (fn, shapes)) in enumerate(TABLE.items()):
        if name not in decided:
            continue
        traced = Traced(gradients(fn, shapes), examples(shapes))
        for turn, chosen in enumerate(choices(shapes, TURNS if tiers.ALL else 1, seed)):
            device = device_of(DEVICE, seed + turn)
            kinds = traced.kinds(chosen, device, name)
            every = name if kind == "calls" or not tiers.ALL else None
            if name in chance and compiled.is_new(every, kinds):
                assert_gradients_are_jaxs(fn, shapes, chosen, (seed + turn) % 3 > 0, device)


def assert_gradients_are_jaxs(fn, shapes, layouts, around, device=DEVICE):
    """The gradient of a function on the grid, or on the grid the gradient of a function."""
    plain = examples(shapes)
    grid = [poisoned(a, layout, device) for a, layout in zip(plain, layouts, strict=True)]
    every = tuple(range(len(shapes)))
    expected = jax.jit(gradients(fn, shapes))(*plain)
    if around:
        found = jax.jit(jax.grad(gl.on_grid(total(fn)), every))(*grid)
        for f, x in zip(found, grid, strict=True):
            assert f.layout.same_physical(x.layout)
    else:
        found = jax.jit(gl.on_grid(gradients(fn, shapes)))(*grid)
    assert_same(found, expected, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize(("seed", "fn", "shapes"), few(cases(SECOND), 2))
def test_second_derivatives_are_jaxs(seed, fn, shapes):
    plain, grid = operands(shapes, seed, turn=4)
    every = tuple(range(len(shapes)))
    twice = jax.grad(total(gradients(fn, shapes)), every)
    found = gl.on_grid(twice)
    if seed % 2 == 0:
        first = jax.grad(gl.on_grid(total(fn)), every)
        found = jax.grad(lambda *args: gl.on_grid(total(lambda *g: g))(*first(*args)), every)
    assert_same(jax.jit(found)(*grid), jax.jit(twice)(*plain), rtol=2e-3, atol=2e-3)


def test_forward_mode_inside_and_around():
    (x,), (g,) = operands((A,), 3)
    push = lambda x: jax.jvp(lambda y: jnp.sin(y) * y.sum(1, keepdims=True), (x,), (x + 1,))  # noqa: E731
    assert_same(gl.on_grid(push)(g), push(x), rtol=1e-4, atol=1e-5)
    (v,), (h,) = operands((V,), 3)
    hessian = jax.hessian(lambda v: jnp.sum(jnp.sin(v) * v.sum()))
    assert_same(gl.on_grid(hessian)(h), hessian(v), rtol=1e-4, atol=1e-5)
    for found, expected in zip(
        jax.jvp(gl.numpy.sin, (g,), (g,)), jax.jvp(jnp.sin, (x,), (x,)), strict=True
    ):
        assert_same(found, expected, rtol=1e-4, atol=1e-5)


def test_the_gradient_of_a_plain_sum_on_every_layout():
    # Its cotangent is one broadcast number: nothing else says where it is to lie.
    x = example(A)
    every = [*layouts(A).values(), *(gl.GridLayout(A, grid=grid) for grid in ((2, 2), (4, 2)))]
    for layout in few(every[::3], 3):
        found = jax.grad(lambda x: gl.numpy.sum(x * x))(poisoned(x, layout, DEVICE))
        assert_same(found, jnp.asarray(x * 2))


def test_gradients_with_auxiliary_and_integer_results():
    (x,), (g,) = operands((A,), 5)

    def loss(x):
        return jnp.sum(x * x), (jnp.argmax(x, 1), x.mean())

    expected = jax.value_and_grad(loss, has_aux=True)(x)
    assert_same(jax.value_and_grad(gl.on_grid(loss), has_aux=True)(g), expected, atol=1e-5)
    assert_same(gl.on_grid(jax.value_and_grad(loss, has_aux=True))(g), expected, atol=1e-5)


def test_integer_arguments_have_no_part_in_a_gradient():
    (x,), (g,) = operands((A,), 6)
    index = gl.put(np.arange(5, dtype="int32"), gl.GridLayout((5,), "int32", (2,)), g.device)
    loss = lambda x, i: jnp.sum(x * i[:, None])  # noqa: E731
    found = jax.grad(gl.on_grid(loss))(g, index)
    assert_same(found, jax.grad(loss)(x, jnp.arange(5)))


def test_jacobians_around():
    (x,), (g,) = operands((A,), 7)
    found = jax.jacrev(
        lambda x: gl.on_grid(lambda x: jnp.stack([x.sum(), (x * x).sum()]))(
            gl.put(x, g.layout.with_oob(None), DEVICE)
        ).to_logical()
    )(x)
    expected = jax.jacrev(lambda x: jnp.stack([x.sum(), (x * x).sum()]))(x)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


# -- transformations around -------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "fn", "shapes"), few(cases(MAPPED), 3))
def test_vmap_around(seed, fn, shapes):
    plain, _ = operands(shapes, seed)
    stacks = [jnp.stack([a, a * 2 - 1, a * 0 + 0.5]) for a in plain]
    chosen = [
        next(iter(choices([a.shape], 1, seed + k)))[0]
        if a.ndim < 4
        else gl.GridLayout(a.shape, "float32", ((2, 4), (3, 2))[seed % 2], tile=(4, 4))
        for k, a in enumerate(stacks)
    ]
    grid = [poisoned(a, layout, DEVICE) for a, layout in zip(stacks, chosen, strict=True)]
    found = jax.vmap(gl.on_grid(fn))(*grid)
    expected = jax.vmap(fn)(*stacks)
    for f, w in zip(leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(wide(f), wide(w), rtol=3e-4, atol=2e-5)
        assert_claim_holds(f)


def test_gradients_of_a_vmap_around():
    (x, y), _ = operands((A, C), 0)
    xs = jnp.stack([x, x + 1])
    one, two = (
        layouts(xs.shape)["joined across"],
        layouts(C)["grid (2, 4) tile None face None collapse None"],
    )
    grid = poisoned(xs, one, DEVICE)
    w = poisoned(y, two, DEVICE)
    loss = lambda x, w: jnp.sum(jnp.tanh(x @ w))  # noqa: E731
    found = jax.vmap(jax.grad(gl.on_grid(loss), 1), in_axes=(0, None))(grid, w)
    expected = jax.vmap(jax.grad(loss, 1), in_axes=(0, None))(xs, y)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)


def test_jit_around_changes_nothing():
    names = ("softmax", "matmul", "other digits", "cumsum", "scan", "where")
    for seed, name in few(list(enumerate(names)), 3):
        fn, shapes = TABLE[name]
        plain, grid = operands(shapes, seed + 8)
        found = jax.jit(lambda *args, fn=fn: gl.on_grid(fn)(*args))(*grid)
        assert_same(found, fn(*plain), rtol=2e-4, atol=1e-5)


def test_a_donated_grid_array_is_used_up():
    x = gl.put(example(A), layouts(A)["transposed"], DEVICE)
    expected = np.asarray(x) * 2
    y = jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    assert x.storage.is_deleted()
    np.testing.assert_array_equal(np.asarray(y), expected)


def test_claims_do_not_outlive_their_data():
    # The padding of what a function makes is not what the layout said of its argument's.
    x = gl.put(example(A), layouts(A)["gap"].with_oob(1), DEVICE)
    for make in (
        lambda: jax.tree.map(lambda leaf: leaf * 3, x),
        lambda: jax.tree.map(gl.numpy.add, x, x),
        lambda: jax.grad(lambda x: gl.numpy.sum(gl.numpy.exp(x)) + gl.numpy.sum(x * x))(x),
        lambda: jax.jit(lambda k: jax.tree.map(lambda leaf: leaf * k, x))(3.0),
        lambda: jax.jit(lambda k: jax.grad(lambda x: gl.numpy.sum(x * x) * k)(x))(3.0),
        lambda: jax.jit(lambda x: jax.tree.map(lambda leaf: leaf * 3, x))(x),
        lambda: jax.jit(lambda x, y: jax.tree.map(lambda a, b: a - b, x, y))(x, x),
    ):
        assert_claim_holds(make())
    found = jax.jit(lambda k: gl.numpy.prod(jax.tree.map(lambda leaf: leaf * 0 + k, x)))(1.5)
    np.testing.assert_allclose(found, 1.5**35, rtol=1e-5)


# -- tracing and caching ----------------------------------------------------------------------


def test_eager_calls_trace_once():
    traced = []

    def fn(x, y, scale, mode="up"):
        traced.append(mode)
        return x * scale + y

    _, (x, y) = operands((A, B), 1)
    lifted = gl.on_grid(fn)
    for _ in range(3):
        lifted(x, y, 2.0)
    assert traced == ["up"]
    lifted(x + 1, y, 3.0)  # other data, another scalar
    gl.on_grid(fn)(x, y, 2.0)  # lifted again
    assert traced == ["up"]
    lifted(x, y, 2.0, mode="down")
    assert traced == ["up", "down"]
    lifted(y, x, 2.0)  # other layouts
    assert len(traced) == 3


def test_operators_and_lifted_functions_are_traced_once(monkeypatch):
    x = gl.put(example(A), layouts(A)["transposed"], DEVICE)
    traces = []
    counted = lambda x, y: (traces.append(1), jnp.add(x, y))[1]  # noqa: E731
    monkeypatch.setattr(jnp, "an_op", counted, raising=False)
    for k in range(3):
        gl.numpy.an_op(x, float(k))
    assert len(traces) == 1


def test_functions_are_let_go_with_their_programs():
    x = gl.put(example(A), layouts(A)["transposed"], DEVICE)

    def scope():
        fn = lambda x: x * 3  # noqa: E731
        gl.on_grid(fn)(x)
        return weakref.ref(fn)

    gone = scope()
    gc.collect()
    assert gone() is None


# -- reports ----------------------------------------------------------------------------------


def rows(fn, *args):
    return [(row.primitive, row.how) for row in gl.on_grid(fn).report(*args).rows]


def test_reports_tell_rules_from_views_and_fallbacks():
    x = gl.put(example(A), gl.GridLayout(A, "float32", (2, 4), (4, 4)), DEVICE)
    assert rows(jnp.exp, x) == [("exp", "rule")]
    assert rows(lambda x: x.T, x) == [("transpose", "view")]
    assert rows(lambda x: x @ x.T, x)[1:] == [("dot_general", "rule")]
    assert rows(lambda x: jnp.cumsum(x, 1), x) == [("cumsum", "rule")]
    assert rows(lax.linalg.qr, x)[-1] == ("qr", "fallback")
    report = gl.on_grid(lambda x: lax.linalg.qr(x * 2)).report(x)
    assert [row.primitive for row in report.fallbacks] == ["qr"]
    assert report.bytes_moved > 0
    text = str(report)
    assert "qr" in text
    assert f"{len(report.rows)} primitives, 1 fallbacks" in text
    assert "float32[5,7]@2x4" in text


def test_what_lies_right_does_not_move():
    layout = gl.GridLayout((2, 4, 6), "float32", (4, 2), (2, 2))
    x = gl.put(example((2, 4, 6)), layout, DEVICE)
    report = gl.on_grid(lambda x: x.reshape(8, 6) * 2).report(x)
    assert [row.how for row in report.rows] == ["view", "rule"]
    assert report.bytes_moved == report.masks == 0
    same = gl.GridLayout((8, 6), "float32", (4, 2), (2, 2))
    assert gl.on_grid(lambda x: x.reshape(8, 6))(x).layout.same_physical(same)


MASKS = [
    # function, oob of its argument, masks on layouts that reduce where they stand
    (lambda x: x.sum(1), 0, 0),
    (lambda x: x.sum(1), None, 1),
    (lambda x: x.sum(1), 1, 1),
    (lambda x: x.max(0), -np.inf, 0),
    (lambda x: x.max(0), 0, 1),
    (lambda x: x.min(0), np.inf, 0),
    (lambda x: x.prod(0), 1, 0),
    (lambda x: jnp.exp(x).sum(0), 0, 1),
    (lambda x: jnp.exp(x).prod(0), 0, 0),
    (lambda x: jnp.exp(x).sum(0), -np.inf, 0),
    (lambda x: (x * x - x).sum(0), 1, 0),
    (lambda x: jnp.where(x > 0, x, 0.0).sum(0), -np.inf, 0),
    (lambda x: x.astype("int32").sum(), 0, 0),
    (lambda x: jnp.exp(x), None, 0),
    (lambda x: x.T.reshape(35), None, 0),
]


def test_a_gathered_product_leaves_the_padding_of_k_behind():
    x = poisoned(example(A), layouts(A)["gap"], DEVICE)
    assert gl.on_grid(lambda x: x @ x.T, algorithm="gathered").report(x).masks == 0


@pytest.mark.few(5)
@pytest.mark.parametrize(("fn", "oob", "masks"), MASKS)
def test_reductions_mask_only_what_is_not_neutral(fn, oob, masks):
    every = [gl.GridLayout(A, grid=(4, 3), tile=(2, 4)), gl.GridLayout(A, grid=(2, 4))]
    for layout in every:
        assert gl.on_grid(fn, DEVICE).report(layout.with_oob(oob)).masks == masks
    for layout in few(every, 1):
        x = gl.put(example(A), layout.with_oob(oob), DEVICE)
        assert_same(gl.on_grid(fn)(x), fn(jnp.asarray(example(A))), rtol=1e-4, atol=1e-5)


def test_no_padding_no_mask():
    x = gl.put(example((4, 8)), gl.GridLayout((4, 8), "float32", (2, 4)), DEVICE)
    report = gl.on_grid(lambda x: (x.sum(0), x.max(), jnp.argmax(x, 1))).report(x)
    assert report.masks == 0


def test_facts_follow_from_the_operations():
    x = gl.put(example(A), layouts(A)["gap"].with_oob(0), DEVICE)
    y = gl.put(example(A), layouts(A)["gap"].with_oob(2), DEVICE)
    unknown = poisoned(example(A), layouts(A)["gap"], DEVICE)
    for fn, oob in [
        (lambda x, y, u: jnp.exp(x), 1),
        (lambda x, y, u: x + y, 2),
        (lambda x, y, u: x - 3, -3),
        (lambda x, y, u: jnp.log(x), -np.inf),
        (lambda x, y, u: x < y, True),
        (lambda x, y, u: y.astype("int8"), 2),
        (lambda x, y, u: jnp.where(x < y, y, u), 2),
        (lambda x, y, u: x + u, None),
        (lambda x, y, u: x * u, None),  # 0 * NaN
        (lambda x, y, u: y.T, 2),
    ]:
        found = gl.on_grid(fn)(x, y, unknown)
        assert found.layout.oob == oob
        assert_claim_holds(found)
    assert np.isnan(gl.on_grid(lambda x: x / x)(x).layout.oob)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_facts_that_no_device_is_asked_for_are_what_it_computes(dtype):
    for (name, *points), value in EXACT.items():
        fn = jax.jit(getattr(jax.lax, name))
        found = np.asarray(fn(*(jnp.asarray(float(point), dtype) for point in points)))
        assert found.dtype == dtype
        assert repr(float(found)) == repr(float(value)), (name, points)


def test_a_chain_compiles_to_the_program_on_the_padded_arrays():
    """So it is as fast: one loop over the storage."""
    layout = gl.GridLayout((50, 70), "float32", grid=(2, 4), tile=(8, 8))
    x, y = (gl.put(example((50, 70), seed), layout, DEVICE) for seed in (0, 1))

    def fn(x, y):
        return jnp.tanh(x * y + 1) * jnp.exp(-x) - y / 2

    found = operations(lambda x, y: gl.on_grid(fn)(x, y).storage, x, y)
    assert found.count("fusion") == 1
    assert found == operations(fn, x.storage, y.storage)


def test_where_nothing_is_padded_no_program_is_compiled_for_a_fact():
    x = gl.put(example((4, 8)), gl.GridLayout((4, 8), "float32", (2, 4), oob=0.3), DEVICE)
    assert gl.on_grid(jnp.tanh)(x).layout.oob is None
    assert gl.on_grid(lambda x: x + 1)(x).layout.oob == np.float32(1.3)
    zeros = gl.put(example((4, 8)), gl.GridLayout((4, 8), "float32", (2, 4), oob=0), DEVICE)
    for fn in (lambda x: x / 3, lambda x: x**3, lambda x: -x / 7, jnp.tanh):
        assert gl.on_grid(fn)(zeros).layout.oob == 0
    assert gl.on_grid(lambda x: (x + 1) ** 3 / 4)(zeros).layout.oob == 0.25
    assert np.isnan(gl.on_grid(lambda x: x / 0)(zeros).layout.oob)
    scaled = gl.on_grid(lambda x: x * lax.div(jnp.complex64(2j), jnp.complex64(1 + 1j)))(zeros)
    np.testing.assert_allclose(np.asarray(scaled), example((4, 8)) * (1 + 1j), rtol=1e-6)
    padded = gl.put(example((3, 8)), gl.GridLayout((3, 8), "float32", (2, 4), oob=0.3), DEVICE)
    assert gl.on_grid(jnp.tanh)(padded).layout.oob is None  # each backend has its own tanh(0.3)
    found = gl.on_grid(jnp.tanh)(gl.put(example((3, 8)), padded.layout.with_oob(0), DEVICE))
    assert found.layout.oob is not None
    assert_claim_holds(found)


# -- where results lie ------------------------------------------------------------------------


def test_elementwise_results_lie_like_an_operand():
    for one, two in few(choices((A, A), 8, 1), 3):
        x, y = poisoned(example(A, 0), one, DEVICE), poisoned(example(A, 1), two, DEVICE)
        for found in (x + y, y - x, gl.numpy.where(y > 0, x, y)):
            assert any(found.layout.same_physical(like) for like in (one, two))
        assert (x * example(A, 2)).layout.same_physical(one)


def test_new_shapes_keep_grid_and_tile():
    layout = gl.GridLayout((5, 7), "float32", (3, 2), (2, 2))
    x = gl.put(example(A), layout, DEVICE)
    for found in (x @ x.T, x[1:4], gl.numpy.cumsum(x, 1)):
        assert (found.layout.grid, found.layout.tile) == ((3, 2), (2, 2))
    stacked = gl.numpy.stack([x, x])  # each array stays where it is
    assert (stacked.layout.grid, stacked.layout.tile) == ((1, 3, 2), (2, 2))


def test_a_policy_chooses():
    chosen = []

    def policy(shape, dtype, like, device):
        chosen.append((shape, np.dtype(dtype), like, device))
        return gl.GridLayout(shape, dtype, (2,), collapse=[(0, len(shape))])

    x = gl.put(example(A), layouts(A)["transposed"], DEVICE)
    found = gl.on_grid(lambda x: x.reshape(7, 5), policy=policy)(x)
    assert found.layout.grid == (2,)
    assert chosen[0] == ((7, 5), np.float32, x.layout, DEVICE)
    np.testing.assert_array_equal(np.asarray(found), example(A).reshape(7, 5))


@pytest.mark.parametrize("chosen", [5, gl.GridLayout((2, 3))])
def test_a_policy_that_gives_no_layout_of_the_shape_is_named(chosen):
    x = gl.put(example(A), layouts(A)["transposed"], DEVICE)
    fn = gl.on_grid(lambda x: x.reshape(7, 5), policy=lambda *_: chosen)
    with pytest.raises(gl.LayoutError, match=r"the policy gives .* for float32\[7, 5\]: it must"):
        fn(x)


def test_plain_arguments_are_laid_out():
    fn = lambda x, y: x @ y  # noqa: E731
    found = gl.on_grid(fn, device=DEVICE)(example(A), jnp.asarray(example(C)))
    assert found.device == DEVICE
    assert_same(found, jnp.asarray(example(A) @ example(C)), atol=1e-5)
    x = gl.put(example(A), layouts(A)["gap"], DEVICE)
    assert_same(gl.on_grid(fn)(x, example(C)), jnp.asarray(example(A) @ example(C)), atol=1e-5)


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_relayout_between_any_two_layouts(dtype):
    names = list(layouts(A))
    a = (example(A) * 40).astype(dtype)
    pairs = list(zip(names, names[3:] + names[:3], strict=True))
    for one, two in few(pairs[len(dtype) % 3 :: 3], 4):
        x = poisoned(a, layouts(A)[one], DEVICE)
        for oob in (None, 1):
            layout = layouts(A)[two].with_dtype(dtype, oob)
            found = gl.relayout(x, layout)
            assert found.layout == layout
            assert_claim_holds(found)
            np.testing.assert_array_equal(np.asarray(found), a)


def test_relayout_to_the_same_place_is_free():
    layout = layouts(A)["gap"].with_oob(2)
    x = gl.put(example(A), layout, DEVICE)
    assert gl.relayout(x, layout.with_oob(None)).layout.oob is None
    again = gl.relayout(x, layout.with_oob(5))
    assert again.layout.oob == 5
    assert_claim_holds(again)
    unknown = layout.with_oob(None)
    text = jax.jit(lambda x: gl.relayout(x, unknown)).lower(x).as_text()
    assert not any(op in text for op in ("gather", "scatter", "reshape", "transpose", "pad"))


def test_with_layout_inside():
    one, two = layouts(A)["gap"], layouts(A)["grid (3, 2) tile (4, 4) face None collapse None"]
    x = poisoned(example(A), one, DEVICE)

    def fn(x):
        return gl.with_layout(jnp.sin(x), two) * 2

    plain = jnp.asarray(example(A))
    np.testing.assert_array_equal(fn(plain), jnp.sin(plain) * 2)  # an identity on plain arrays
    found = gl.on_grid(fn)(x)
    assert found.layout.same_physical(two)
    assert_same(found, fn(plain))
    assert ("with_layout", "rule") in rows(fn, x)
    assert ("with_layout", "view") in rows(lambda x: gl.with_layout(x, one), x)
    for found in (
        gl.on_grid(jax.grad(lambda x: fn(x).sum()))(x),
        jax.grad(gl.on_grid(lambda x: fn(x).sum()))(x),
    ):
        assert_same(found, jnp.cos(plain) * 2)
    known = gl.on_grid(lambda x: gl.with_layout(x, two.with_oob(7)))(x)
    assert known.layout.oob == 7
    assert_claim_holds(known)
    assert gl.with_layout(x, two).layout == two


# -- operators, methods, gl.numpy and gl.nn ---------------------------------------------------

# All operators between two arrays on the grid, and some with each other kind of operand.
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "divmod"]
INTEGER = ["and_", "or_", "xor", "lshift", "rshift"]
SOME = ["sub", "pow", "matmul", "le", "rshift"]
OTHERS = {
    "grid": lambda a: poisoned(a, layouts(A)["transposed"], DEVICE),
    "jax": jnp.asarray,
    "numpy": np.asarray,
    "row": lambda a: np.asarray(a)[0],
    "scalar": lambda a: 2.0 if a.dtype == np.float32 else 2,
    "numpy scalar": lambda a: np.asarray(a)[0, 0],
}


def apply(name, x, y):
    return divmod(x, y) if name == "divmod" else getattr(operator, name)(x, y)


@pytest.mark.parametrize("kind", OTHERS)
def test_operators(kind):
    a, b = np.abs(example(A, 0)) + 1, np.abs(example(A, 1)) + 1
    i, j = (a * 5).astype("int32"), (b * 2).astype("int32")
    grid = {
        dtype: poisoned(array, layouts(A)["gap"], DEVICE)
        for dtype, array in (("float32", a), ("int32", i))
    }
    names = few(
        {"grid": BINARY + COMPARISONS + INTEGER}.get(kind, SOME), 6 if kind == "grid" else 1
    )
    for name in names:
        left, right = (i, j) if name in INTEGER else (a, b)
        x, y = grid[left.dtype.name], OTHERS[kind](right)
        plain = jnp.asarray(left), (jnp.asarray(right) if kind in ("grid", "jax") else y)
        if name == "matmul":
            if kind not in ("grid", "jax", "numpy"):
                continue
            y, plain = y.T, (plain[0], plain[1].T)
        assert_same(apply(name, x, y), apply(name, *plain), rtol=1e-4, atol=1e-5)
        swapped = apply(name, y, x), apply(name, *plain[::-1])
        assert_same(*swapped, rtol=1e-4, atol=1e-5)


def test_unary_operators_and_attributes():
    a = example(A)
    x, plain = poisoned(a, layouts(A)["twice"], DEVICE), jnp.asarray(a)
    for op in (operator.neg, operator.pos, abs):
        assert_same(op(x), op(plain))
    assert_same(~(x > 0), ~(plain > 0))
    assert_same(x.T, plain.T)
    assert_same(poisoned(example(T), layouts(T)["joined"], DEVICE).mT, jnp.asarray(example(T)).mT)
    assert_same(x.real, plain.real)
    for row, expected in zip(x, plain, strict=True):
        assert_same(row, expected)


def test_an_attribute_of_the_layout_or_the_storage_is_pointed_to():
    x = poisoned(example(A), layouts(A)["twice"], DEVICE)
    for name, where in (
        ("logical_index", "x.layout.logical_index is that of its layout; "),
        ("addressable_shards", "x.storage.addressable_shards is that of its storage; "),
        ("placement", "x.device.placement is that of its device; "),
        ("sumx", "gl.numpy and gl.nn take a GridArray, and x.to_logical()"),
        ("__jax_array__", "gl.numpy and gl.nn take a GridArray, and x.to_logical()"),
    ):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': .*{where}"):
            getattr(x, name)


def test_a_replicated_array_says_so():
    one = gl.put(example(A), gl.GridLayout(A, grid=(1, 1)), DEVICE)
    mesh = "x".join(map(str, DEVICE.shape))
    on = "on" if DEVICE.size == 1 else "replicated on"
    assert repr(one) == f"GridArray(float32[5,7], grid 1x1, {on} {mesh} devices)"


INDICES = {
    "int": 2,
    "negative": -1,
    "slice": slice(1, 4),
    "step": (slice(None, None, 2), slice(None, None, -1)),
    "ellipsis": (..., 0),
    "newaxis": (None, slice(2), None),
    "array": np.array([0, 2, 2]),
    "grid": (slice(None), jnp.array([1, 0])),
    "numpy int": np.int64(1),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_indexing(index):
    x = poisoned(example(A), layouts(A)["flip and gap"], DEVICE)
    assert_same(x[index], jnp.asarray(example(A))[index])


MASKS = {
    "elements": lambda x: x > 0,
    "rows": lambda x: x[:, 0] > 0,
    "a column and rows": lambda x: (x[:, 1] > 0, 2),
    "columns": lambda x: (slice(1, 4), x[0] > 0),
    "after an ellipsis": lambda x: (..., x[2] < 0.5),
    "none": lambda x: x > 1e9,
    "NumPy's": lambda x: np.asarray(x) > 0,
    "JAX's": lambda x: jnp.asarray(x) > 0,
}


@pytest.mark.few(3)
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masks_select_and_update(mask):
    plain = jnp.asarray(example(A))
    for name in few(["flip and gap", "gap"], 1):
        x = poisoned(example(A), layouts(A)[name], DEVICE)
        index, expected = mask(x), plain[mask(plain)]
        assert is_grid(x[index])
        assert_same(x[index], expected)
        assert_same(x.at[index].get(), expected)
        assert_same(x.at[index].set(7), plain.at[mask(plain)].set(7))
        values = jnp.arange(expected.size, dtype="f4").reshape(expected.shape)
        assert_same(x.at[index].add(values), plain.at[mask(plain)].add(values))


def test_masks_are_as_long_as_their_dims_and_known():
    x, plain = poisoned(example(A), layouts(A)["gap"], DEVICE), jnp.asarray(example(A))
    for index in (np.ones(4, bool), (slice(None), np.ones(5, bool)), np.ones((7, 5), bool)):
        with pytest.raises(Exception, match="boolean index did not match") as expected:
            plain[index]
        with pytest.raises(expected.type, match="boolean index did not match"):
            x[index]
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError):
        gl.on_grid(lambda x: x[x > 0])(x)
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError):
        jax.jit(lambda x: x[x > 0])(x)


OF_DATA = {
    "nonzero": (lambda np, x: np.nonzero(x > 0), True),
    "nonzero of a vector": (lambda np, x: np.nonzero(x[0]), True),
    "flatnonzero": (lambda np, x: np.flatnonzero(x), True),
    "argwhere": (lambda np, x: np.argwhere(x > 0), True),
    "where": (lambda np, x: np.where(x > 0), True),
    "nothing": (lambda np, x: np.nonzero(x > 1e9), True),
    "unique": (lambda np, x: np.unique(np.round(x), return_counts=True), True),
    "extract": (lambda np, x: np.extract(x > 0, x), True),
    "a method": (lambda np, x: (x > 0).nonzero(), True),
    "of a stated size": (lambda np, x: np.nonzero(x > 0, size=40, fill_value=-1), False),
    "a choice": (lambda np, x: np.where(x > 0, x, 0), False),
}


@pytest.mark.few(4)
@pytest.mark.parametrize(("fn", "of_data"), OF_DATA.values(), ids=OF_DATA)
def test_shapes_that_depend_on_data_are_known_outside_of_jit(fn, of_data):
    x, plain = poisoned(example(A), layouts(A)["gap"], DEVICE), jnp.asarray(example(A))
    found = fn(gl.numpy, x)
    assert all(map(is_grid, jax.tree.leaves(found, is_leaf=is_grid)))
    assert_same(found, fn(jnp, plain))
    if of_data:
        with pytest.raises(jax.errors.ConcretizationTypeError):
            jax.jit(lambda x: fn(gl.numpy, x))(x)


def test_one_program_serves_all_integers(monkeypatch):
    plain = jnp.asarray(example((11, 7)))
    x = poisoned(np.asarray(plain), layouts((11, 7))["gap"], DEVICE)
    calls = (
        lambda x, i: x[i],
        lambda x, i: x[i, i - 3],
        lambda x, i: x[:, None, i - 4],
        lambda x, i: x.at[i].set(i),
        lambda x, i: x.at[..., i - 9].add(2.5 * i),
        lambda x, i: x.at[i, 2:5].get(),
    )
    for fn in calls:
        fn(x, 0)
    lowered = []
    lower = Compiled.__init__

    def counted(self, *args):
        lowered.append(self)
        lower(self, *args)

    monkeypatch.setattr(Compiled, "__init__", counted)
    for fn in calls:
        for i in (3, -2, 10, -11, np.int64(4), 50, -50):
            assert_same(fn(x, i), fn(plain, i))
    rows = list(x)
    assert len(rows) == 11
    assert_same(rows, list(plain))
    assert not lowered


METHODS = [
    *[
        (name, (), {})
        for name in [
            "sum",
            "mean",
            "max",
            "min",
            "prod",
            "any",
            "all",
            "std",
            "var",
            "argmax",
            "argmin",
        ]
    ],
    *[(name, (1,), {}) for name in ["sum", "mean", "max", "cumsum", "cumprod", "argmin", "sort"]],
    ("sum", (), dict(axis=0, keepdims=True)),
    ("astype", ("bfloat16",), {}),
    ("clip", (-0.5, 0.5), {}),
    ("reshape", (7, 5), {}),
    ("reshape", ((35,),), {}),
    ("transpose", (1, 0), {}),
    ("swapaxes", (0, 1), {}),
    ("ravel", (), {}),
    ("flatten", (), {}),
    ("repeat", (2,), dict(axis=0, total_repeat_length=10)),
    ("take", (np.array([1, 0]),), dict(axis=1)),
    ("round", (1,), {}),
    ("trace", (), {}),
    ("squeeze", (), {}),
    ("conj", (), {}),
    ("dot", (np.ones((7, 2), "f4"),), {}),
]


@pytest.mark.few(2)
@pytest.mark.parametrize("methods", together(METHODS, 9))
def test_methods(methods):
    @jax.jit
    def called(x):
        return [getattr(x, name)(*args, **kwargs) for name, args, kwargs in methods]

    x = poisoned(example(A), layouts(A)["bumped stride"], DEVICE)
    for method, found, expected in zip(methods, called(x), called(example(A)), strict=True):
        try:
            assert_same(found, expected, rtol=1e-4, atol=1e-5)
        except AssertionError as error:
            raise AssertionError(f"{method}: {error}") from error


def test_single_numbers_convert_and_many_refuse_to():
    x = gl.put(example(A), layouts(A)["gap"], DEVICE)
    one = gl.put(np.int32(3), gl.GridLayout((), "int32", (2, 4)), DEVICE)
    assert float(one) == 3.0
    assert int(one) == 3
    assert bool(one) is True
    assert [10, 20, 30, 40][one] == 40
    with pytest.raises(ValueError, match="truth value"):
        bool(x == x)
    with pytest.raises(ValueError, match="truth value"):
        assert x == x
    with pytest.raises(TypeError):
        float(x)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError):
        x + [1, 2]  # noqa: RUF005
    assert (x == None) is False  # noqa: E711


def test_numpy_and_nn_are_jaxs_lifted():
    x, plain = poisoned(example(A), layouts(A)["digits"], DEVICE), jnp.asarray(example(A))
    for found, expected in [
        (gl.numpy.sum(gl.numpy.exp(x), axis=-1), jnp.sum(jnp.exp(plain), axis=-1)),
        (gl.numpy.linalg.norm(x), jnp.linalg.norm(plain)),
        (gl.numpy.einsum("ab,cb->ac", x, x), jnp.einsum("ab,cb->ac", plain, plain)),
        (gl.numpy.where(x > 0, x, 0), jnp.where(plain > 0, plain, 0)),
        (gl.numpy.concatenate([x, plain]), jnp.concatenate([plain, plain])),
        (gl.numpy.split(x, [2], axis=0), jnp.split(plain, [2], axis=0)),
        (gl.numpy.power(x, 2), jnp.power(plain, 2)),
        (gl.numpy.isclose(x, x, rtol=1e-3), jnp.isclose(plain, plain, rtol=1e-3)),
        (gl.numpy.full_like(x, 3.0), jnp.full_like(plain, 3.0)),
        (gl.numpy.broadcast_to(x, (2, 5, 7)), jnp.broadcast_to(plain, (2, 5, 7))),
        (gl.nn.softmax(x, axis=0), jax.nn.softmax(plain, axis=0)),
        (gl.nn.gelu(x, approximate=False), jax.nn.gelu(plain, approximate=False)),
        (gl.nn.one_hot(gl.numpy.argmax(x, 1), 7), jax.nn.one_hot(jnp.argmax(plain, 1), 7)),
        (gl.nn.leaky_relu(x, 0.2), jax.nn.leaky_relu(plain, 0.2)),
    ]:
        assert_same(found, expected, rtol=1e-4, atol=1e-5)
    assert gl.numpy.float32 is jnp.float32
    assert gl.numpy.pi == jnp.pi
    assert gl.numpy.sum is gl.numpy.sum
    assert {"sum", "einsum"} <= set(dir(gl.numpy))
    assert "softmax" in dir(gl.nn)
    with pytest.raises(AttributeError):
        gl.numpy.no_such_function  # noqa: B018
    assert [row.primitive for row in gl.numpy.exp.report(x).rows] == ["exp"]
    # One program for an int, another for a float and for a bool of the same value.
    assert gl.numpy.add(x.astype("int32"), 1).dtype == np.int32
    assert gl.numpy.add(x.astype("int32"), 1.0).dtype == np.float32
    assert gl.numpy.sum(x, keepdims=True).shape == (1, 1)
    assert gl.numpy.sum(x, keepdims=1).shape == (1, 1)


def test_lifted_functions_run_inside_others():
    x, plain = poisoned(example(A), layouts(A)["gap"], DEVICE), jnp.asarray(example(A))
    fn = gl.on_grid(lambda x: gl.numpy.exp(x) + gl.on_grid(jnp.sin)(x))
    assert_same(fn(x), jnp.exp(plain) + jnp.sin(plain))
    # One that states a device grid, and even another one, is a part of the function around it.
    for device in (DEVICE, gl.DeviceGrid((4,))):
        sin = gl.on_grid(jnp.sin, device)
        fn = gl.on_grid(lambda x, sin=sin: jnp.exp(x) + sin(x) + sin(x.sum(0)))
        expected = jnp.exp(plain) + jnp.sin(plain) + jnp.sin(plain.sum(0))
        assert_same(fn(x), expected, rtol=1e-5)
        assert fn(x).device == DEVICE
        assert {row.primitive for row in fn.report(x).rows} >= {"exp", "sin", "reduce_sum"}


def test_a_lifted_function_keeps_what_it_states_when_lifted_again():
    lifted = gl.on_grid(jnp.matmul, DEVICE, algorithm="summa")
    again = gl.on_grid(lifted)
    assert (again.device, again.algorithm) == (DEVICE, "summa")
    again = gl.on_grid(lifted, gl.DeviceGrid((4,)), algorithm="gathered")
    assert (again.device.shape, again.algorithm) == ((4,), "gathered")
    calls = []

    def policy(shape, dtype, like, device):
        calls.append(shape)
        return same_grid_and_tile(shape, dtype, like, device)

    gl.on_grid(gl.on_grid(lambda x: x.reshape(35), DEVICE, policy))(example(A))
    assert (35,) in calls


def test_keywords_alone_make_a_decorator():
    @gl.on_grid(algorithm="ring")
    def product(x, w):
        return x @ w

    x, w = (poisoned(example(shape), layouts(shape)["gap"], DEVICE) for shape in ((6, 8), (8, 7)))
    assert product.algorithm == "ring"
    assert repr(product) == "on_grid(product)"
    assert_same(product(x, w), example((6, 8)) @ example((8, 7)), rtol=1e-5)

    @gl.on_grid(device=DEVICE)
    def double(x):
        return 2 * x

    assert double(example(A)).device == DEVICE
    with pytest.raises(gl.LayoutError, match="algorithm 'rings' is not one of"):
        gl.on_grid(algorithm="rings")
    for other in (None, DEVICE):
        with pytest.raises(gl.LayoutError, match=r"not \w+, which.*decorator.*device=device"):
            gl.on_grid(other)


def test_lifted_functions_are_pickled():
    x, plain = poisoned(example(A), layouts(A)["gap"], DEVICE), jnp.asarray(example(A))
    lifted = gl.on_grid(flagged, DEVICE, algorithm="ring")
    expected = lifted(x, True)  # its programs are not pickled
    again = pickle.loads(pickle.dumps(lifted))
    assert (again.device, again.algorithm, again.fn) == (DEVICE, "ring", flagged)
    assert_same(again(x, True), jnp.asarray(expected))
    cloudpickle = pytest.importorskip("cloudpickle")
    fn = cloudpickle.loads(cloudpickle.dumps(gl.on_grid(lambda x: jnp.sin(x) @ x.T)))
    assert_same(fn(x), jnp.sin(plain) @ plain.T, rtol=1e-5)
    fn = cloudpickle.loads(cloudpickle.dumps(lambda x: gl.numpy.exp(x) + fn(x)[:, :1]))
    assert_same(fn(x), jnp.exp(plain) + (jnp.sin(plain) @ plain.T)[:, :1], rtol=1e-5)


def test_reports_take_arrays_layouts_and_shapes():
    layout, shape = layouts(A)["gap"], jax.ShapeDtypeStruct(A, "float32")
    x = gl.put(example(A), layout, DEVICE)
    expected = gl.on_grid(jnp.exp).report(x).rows
    assert gl.on_grid(jnp.exp, DEVICE).report(layout).rows == expected
    assert gl.on_grid(jnp.exp).report(gl.put(shape, layout, DEVICE)).rows == expected
    # Without a device grid, it is that of all devices, as `gl.simulate` has it.
    for given in (layout, shape, example(A)):
        row = gl.on_grid(jnp.exp).report(given).rows[0]
        assert row == gl.on_grid(jnp.exp, gl.DeviceGrid((8,))).report(given).rows[0]
    lowered = gl.on_grid(jnp.exp, DEVICE).lower(layout)
    assert lowered.as_text() == jax.jit(gl.on_grid(jnp.exp)).lower(x).as_text()
    np.testing.assert_array_equal(np.asarray(lowered.compile()(x)), np.asarray(gl.numpy.exp(x)))


# -- other arguments and results --------------------------------------------------------------


def test_arguments_may_be_trees_statics_and_keywords():
    x, plain = poisoned(example(A), layouts(A)["gap"], DEVICE), jnp.asarray(example(A))

    def fn(tree, *, axis, names=("a",), scale=1):
        return {name: tree["x"].sum(axis) * scale + tree["k"] for name in names}

    found = gl.on_grid(fn)({"x": x, "k": 2}, axis=None, names=("u", "v"), scale=np.float32(3))
    expected = fn({"x": plain, "k": 2}, axis=None, names=("u", "v"), scale=np.float32(3))
    assert found.keys() == expected.keys()
    assert_same(found, expected, rtol=1e-5)
    assert gl.on_grid(lambda x: None)(x) is None


def flagged(x, flag):
    return jnp.where(flag, x, -x) + jax.lax.cond(flag, jnp.sin, jnp.cos, x)


def test_bools_are_static():
    x, plain = poisoned(example(A), layouts(A)["gap"], DEVICE), jnp.asarray(example(A))
    traced = []

    def decided(x, tree):
        traced.append(tree["flag"])
        return (x if tree["flag"] else -x) * tree["scale"], tree["flag"]

    made = gl.on_grid(decided)
    for flag, scale in ((True, 1), (False, 1), (True, 2), (False, 3)):
        found = made(x, {"flag": flag, "scale": scale})
        assert_same(found[1], jnp.asarray(flag))  # as of `jax.jit`
        assert_same(found[0], (plain if flag else -plain) * scale)
    assert traced == [True, False]
    traced.clear()
    for flag in (jnp.bool_(True), np.bool_(False), jnp.bool_(False)):  # arrays, so traced
        assert_same(gl.on_grid(flagged)(x, flag), flagged(plain, flag), rtol=1e-5)


@jax.tree_util.register_pytree_with_keys_class
class Scaled:
    """A model of users, with a bool among its leaves."""

    def __init__(self, scale, flag):
        self.scale, self.flag = scale, flag

    def tree_flatten_with_keys(self):
        keys = map(jax.tree_util.GetAttrKey, ("scale", "flag"))
        return list(zip(keys, (self.scale, self.flag), strict=True)), None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)


def test_bools_of_results_are_static_in_objects_of_users_alone():
    x = poisoned(example(A), layouts(A)["gap"], DEVICE)

    def step(model, x):
        grown = Scaled(model.scale + 1 if model.flag else model.scale, model.flag)
        return {"model": [grown], "flag": model.flag}, (x * grown.scale, False)

    model = Scaled(2.0, True)
    for scale in (3, 4):
        kept, (y, flag) = gl.on_grid(step)(model, x)
        (model,) = kept["model"]
        assert model.flag is True
        assert model.scale == scale
        assert (kept["flag"].dtype, flag.dtype) == (bool, bool)
        assert bool(kept["flag"])
        assert not flag
        assert_same(y, jnp.asarray(example(A)) * scale)


@pytest.mark.few(1)
@pytest.mark.parametrize("flag", [True, False])
def test_bools_under_transformations(flag):
    x, plain = poisoned(example(A), layouts(A)["gap"], DEVICE), jnp.asarray(example(A))
    made, total = gl.on_grid(flagged), lambda fn: lambda x, flag: fn(x, flag).sum()
    assert_same(made(x, flag), flagged(plain, flag), rtol=1e-5)
    summed = gl.on_grid(total(flagged))
    assert_same(jax.grad(summed)(x, flag), jax.grad(total(flagged))(plain, flag), rtol=1e-5)
    assert_same(jax.jit(made)(x, flag), flagged(plain, flag), rtol=1e-5)
    assert_same(jax.jit(made, static_argnums=1)(x, flag), flagged(plain, flag), rtol=1e-5)
    for lifted in (gl.on_grid(jax.vmap(flagged, (0, None))), jax.vmap(made, (0, None))):
        assert_same(lifted(x, flag), flagged(plain, flag), rtol=1e-5)
    plan = gl.plan(flagged, plain, flag, machine=DEVICE.machine)
    assert list(plan.layouts) == ["x"]
    assert_same(plan.run(plain, flag), flagged(plain, flag), rtol=1e-5)


def test_results_that_are_no_arrays_are_returned_as_they_are():
    x, plain = poisoned(example(A), layouts(A)["gap"], DEVICE), jnp.asarray(example(A))
    traced, thing = [], object()

    def fn(x, kind):
        traced.append(kind)
        results = {"kind": kind, "name": "text", "none": None, "fn": jnp.tanh, "thing": thing}
        return results | {"x": x * 2, "number": 3, "array": np.arange(4)}

    made = gl.on_grid(fn)
    for kind in ("a", "b", "a"):
        found, expected = made(x, kind), fn(plain, kind)
        assert found.keys() == expected.keys()
        for name in ("kind", "name", "none", "fn", "thing"):
            assert found[name] is expected[name]
        for name in ("x", "number", "array"):
            assert_same(found[name], jnp.asarray(expected[name]))
    assert traced == ["a", "a", "b", "b", "a"]  # a program for each, kept: ours, then plain JAX's
    assert gl.on_grid(lambda x: "alone")(x) == "alone"
    names = made.report(x, "a").graph.result_names
    assert set(names) == {"result['x']", "result['number']", "result['array']"}


def test_results_that_are_no_arrays_under_transformations():
    x, plain = poisoned(example(A), layouts(A)["gap"], DEVICE), jnp.asarray(example(A))
    fn = lambda x: (jnp.sum(x**2), {"name": "text", "x": jnp.sin(x)})  # noqa: E731
    made = gl.on_grid(fn)
    (value, aux), grad = jax.value_and_grad(lambda x: made(x), has_aux=True)(x)
    (_, expected), plain_grad = jax.value_and_grad(fn, has_aux=True)(plain)
    assert aux["name"] == "text"
    assert_same((value, aux["x"], grad), (fn(plain)[0], expected["x"], plain_grad), rtol=1e-5)
    with pytest.raises(TypeError, match=r"\['name'\]"):  # as of any function
        jax.jit(made)(x)


def test_what_jax_takes_as_a_result_it_takes():
    x = poisoned(example(A), layouts(A)["gap"], DEVICE)
    for result in (
        1,
        2.5,
        np.bool_(True),
        1j,
        np.ones(3),
        np.float32(2),
        jnp.ones(2),
        jax.random.key(0),
    ):
        found = gl.on_grid(lambda x: (x, result))(x)[1]  # noqa: B023
        expected = jax.jit(lambda: result)()  # noqa: B023
        assert found.dtype == expected.dtype
        is_weak = getattr(expected, "weak_type", False)  # keys and GridArrays never are
        assert isinstance(found, gl.GridArray) or getattr(found, "weak_type", False) == is_weak
    for result in (np.array(["a"]), np.ones(3, object)):
        with pytest.raises(TypeError, match=r"not a valid JAX (array )?type"):
            gl.on_grid(lambda x: result)(x)  # noqa: B023


def test_a_tree_of_arrays_that_is_called_is_an_argument():
    x, plain = poisoned(example(A), layouts(A)["gap"], DEVICE), jnp.asarray(example(A))
    partial = jax.tree_util.Partial(jnp.multiply, x)
    for made in (gl.on_grid(partial), gl.on_grid(gl.on_grid(partial))):
        assert_same(made(x), plain * plain)
        assert [row.primitive for row in made.report(x).rows] == ["mul"]
        assert_same(made.lower(x).compile()(x), plain * plain)
        assert_same(jax.jit(made)(x), plain * plain)


def test_keys_and_scalars_stay_as_they_are():
    x, plain = poisoned(example(A), layouts(A)["gap"], DEVICE), jnp.asarray(example(A))
    fn = lambda x, key: (x * jax.random.normal(key, x.shape), jax.random.split(key))  # noqa: E731
    key = jax.random.key(3)
    found, keys = gl.on_grid(fn)(x, key)
    expected, wanted_keys = fn(plain, key)
    assert_same(found, expected)
    assert (jax.random.key_data(keys) == jax.random.key_data(wanted_keys)).all()
    assert isinstance(gl.numpy.sum(x), jax.Array)
    loss = lambda x, key: jnp.sum(x * jax.random.normal(key, x.shape))  # noqa: E731
    assert_same(jax.grad(gl.on_grid(loss))(x, key), jax.grad(loss)(plain, key))


def test_one_element_broadcasts_as_a_number():
    x = gl.put(np.arange(3, 8.0), gl.GridLayout((5,), "float32", (2,), (4,), oob=0), DEVICE)

    def fn(x):
        first = jnp.broadcast_to(x[:1], (5,))
        return x * first, first.sum(), jnp.exp(first).sum()

    expected = fn(jnp.arange(3, 8.0))
    assert_same(gl.on_grid(fn)(x), expected)


def test_a_product_along_a_grid_dim_that_holds_nothing():
    # XLA cut the dim of four cores in two ways, where a loop gathers the same array.
    x = gl.put(example((13,)), gl.GridLayout((13,), grid=(4, 1)), DEVICE)
    y = gl.put(example((5, 7)), gl.GridLayout((5, 7), grid=(5, 2)), DEVICE)

    def fn(x, y):
        return jnp.searchsorted(jnp.sort(x), y), jnp.vdot(x, x)

    assert_same(gl.on_grid(fn)(x, y), fn(*map(jnp.asarray, (example((13,)), example((5, 7))))))


def test_scalar_grid_arrays_take_part():
    scalar = gl.put(np.float32(3), gl.GridLayout((), "float32", (1, 1)), DEVICE)
    x = poisoned(example(A), layouts(A)["gap"], DEVICE)
    for found, expected in [
        (x + scalar, jnp.asarray(example(A)) + 3),
        (scalar * x, 3 * jnp.asarray(example(A))),
        (gl.numpy.exp(scalar), jnp.exp(jnp.float32(3))),
        (gl.numpy.broadcast_to(scalar, (2, 3)), jnp.full((2, 3), 3.0)),
    ]:
        assert_same(found, expected, rtol=1e-6)
    assert float(scalar) == 3.0


@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (lambda x: x.sum(0), [(0, 3)]),
        (lambda x: x.sum(1) * 2, [(0, 3)]),
        (lambda x: x.prod(), [(3, 0)]),
        (lambda x: x.T.reshape(0), [(3, 0)]),
        (lambda x, y: x @ y, [(3, 0), (0, 2)]),
        (lambda x, y: x @ y, [(0, 3), (3, 2)]),
        (lambda x: jnp.cumsum(x, 0), [(0, 3)]),
        (lambda x: x[:0] + 1, [(2, 3)]),
    ],
)
def test_empty_tensors(fn, shapes):
    plain = [jnp.ones(shape) for shape in shapes]
    grid = [gl.put(np.ones(s, "f4"), gl.GridLayout(s, "float32", (2, 4)), DEVICE) for s in shapes]
    assert_same(gl.on_grid(fn)(*grid), fn(*plain))


def test_named_scopes_are_kept():
    def model(x):
        with jax.named_scope("encoder"):
            x = jnp.tanh(x)
            with jax.named_scope("inner"):
                x = x @ x.T
        return jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, length=2)[0]

    x = gl.put(np.ones((5, 7)), gl.GridLayout((5, 7), grid=(2, 4)), DEVICE)
    text = jax.jit(gl.on_grid(model)).lower(x).compile().as_text()
    names = re.findall(r'op_name="(.*?)"', text)
    assert any("encoder/tanh" in name for name in names)
    assert any("encoder/inner" in name and "dot_general" in name for name in names)
    grad = jax.jit(jax.grad(gl.on_grid(lambda x: jnp.sum(model(x))))).lower(x).compile().as_text()
    assert re.search(r'op_name="[^"]*transpose[^"]*encoder', grad)


def test_callbacks_run():
    x = poisoned(example(A), layouts(A)["gap"], DEVICE)
    seen = []

    def fn(x):
        jax.debug.callback(lambda total: seen.append(float(total)), x.sum())
        return x * 2

    assert_same(gl.on_grid(fn)(x), jnp.asarray(example(A)) * 2)
    jax.effects_barrier()
    assert seen
    np.testing.assert_allclose(seen, example(A).sum(), rtol=1e-5)


def test_other_dtypes():
    for dtype in ("bfloat16", "float16", "int8", "uint16", "bool", "complex64"):
        a = (np.abs(example(A)) * 3).astype(dtype)
        x, plain = poisoned(a, layouts(A)["flip and gap"], DEVICE), jnp.asarray(a)
        tolerance = 2e-2 if dtype in ("bfloat16", "float16") else 1e-5
        fn = lambda x: (x + x, x.sum(1), x[1:3].T, x @ x.T)  # noqa: E731
        assert_same(gl.on_grid(fn)(x), jax.jit(fn)(plain), rtol=tolerance, atol=tolerance)


# -- refusals ---------------------------------------------------------------------------------


def grid_array(device=DEVICE):
    return gl.put(example(A), gl.GridLayout(A, "float32", (2, 4)), device)


def closed_over():
    w = grid_array()
    return gl.on_grid(lambda x: x + w)(grid_array())


OTHER = gl.GridLayout((7, 5), "float32", (2, 4))
REFUSED = {
    "two devices": (
        lambda: grid_array() + grid_array(gl.DeviceGrid((8,))),
        r"different device grids.*x=8",
    ),
    "device and device": (
        lambda: gl.on_grid(jnp.exp, device=gl.DeviceGrid((4, 2)))(grid_array()),
        "different device grids",
    ),
    "no device": (lambda: gl.on_grid(jnp.exp)(example(A)), r"no argument.*gl.put.*device="),
    "no device for numpy": (lambda: gl.numpy.exp(jnp.ones(3)), "no argument.*gl.put"),
    "no function": (lambda: gl.on_grid(3), "takes a function, not int"),
    "an array": (lambda: gl.on_grid(grid_array()), "takes a function, not GridArray.*call the"),
    "a list": (lambda: gl.on_grid([grid_array()]), "takes a function, not list"),
    "a dict": (lambda: gl.on_grid({"a": grid_array()}), "takes a function, not dict"),
    "closed over": (closed_over, "closes over.*argument"),
    "with_layout shape": (
        lambda: gl.on_grid(lambda x: gl.with_layout(x, OTHER))(grid_array()),
        r"float32\[5, 7\].*float32\[7, 5\]",
    ),
    "with_layout dtype": (
        lambda: gl.on_grid(lambda x: gl.with_layout(x > 0, OTHER))(grid_array()),
        "bool.*float32",
    ),
    "with_layout type": (
        lambda: gl.on_grid(lambda x: gl.with_layout(x, (2, 4)))(grid_array()),
        "must be a gl.Layout, a PartitionSpec, a NamedSharding, or",
    ),
    "with_layout on a view": (
        lambda: gl.on_grid(
            lambda x: gl.with_layout(
                x, gl.GridLayout(A, "float32", (1, 2), linear="(d0, d1) -> (0, d1)")
            )
        )(grid_array()),
        "read-only",
    ),
    "with_layout under vmap": (
        lambda: gl.on_grid(
            jax.vmap(lambda row: gl.with_layout(row, gl.GridLayout((7,), "float32", (2,))))
        )(grid_array()),
        "under jax.vmap.*outside",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_the_value_and_the_fix(call, message):
    with pytest.raises(gl.LayoutError, match=message):
        call()


def test_errors_of_the_function_pass_through():
    with pytest.raises(TypeError, match="incompatible shapes"):
        grid_array() + np.ones((3, 2), "f4")
    with pytest.raises(ZeroDivisionError):
        gl.on_grid(lambda x: 1 / 0)(grid_array())
    # A failed trace leaves nothing behind: the next call is on the grid again.
    assert is_grid(gl.numpy.exp(grid_array()))
    with pytest.raises(gl.LayoutError, match="no argument"):
        gl.numpy.exp(example(A))


# -- training ---------------------------------------------------------------------------------


def test_adam_on_the_grid_is_adam():
    rng = np.random.default_rng(0)
    sizes = (7, 11, 3)
    params = [
        {"w": rng.normal(size=(m, n)).astype("f4") / 3, "b": np.zeros(n, "f4")}
        for m, n in itertools.pairwise(sizes)
    ]
    x, labels = rng.normal(size=(13, 7)).astype("f4"), rng.integers(0, 3, 13)
    optimizer = optax.adam(1e-2)

    def loss(params, x, labels):
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        logits = x @ params[-1]["w"] + params[-1]["b"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(params, state, x, labels):
        value, grads = jax.value_and_grad(loss)(params, x, labels)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    def laid(a):
        grid = (3, 2) if a.ndim == 2 else (3,)
        return poisoned(a, gl.GridLayout(a.shape, a.dtype, grid, (4, 4)[: a.ndim]), DEVICE)

    labels = labels.astype("int32")
    on_grid = jax.tree.map(laid, params)
    state, grid_state = optimizer.init(params), gl.on_grid(optimizer.init)(on_grid)
    plain_step, grid_step = jax.jit(step), gl.on_grid(step)
    grid_x, grid_labels = laid(x), laid(labels)
    plain = params
    values = []
    for _ in range(4):
        plain, state, expected = plain_step(plain, state, x, labels)
        on_grid, grid_state, found = grid_step(on_grid, grid_state, grid_x, grid_labels)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        values.append(float(found))
    assert values == sorted(values, reverse=True)
    assert_same(on_grid, plain, rtol=1e-4, atol=1e-5)
    assert_same(grid_state[0].mu, state[0].mu, rtol=1e-3, atol=1e-5)
    # Parameters keep their layouts from step to step, so nothing is compiled again.
    for before, after in zip(params, on_grid, strict=True):
        assert after["w"].layout.same_physical(laid(before["w"]).layout)


@pytest.mark.parametrize(
    ("fn", "kind", "words"),
    [
        (lambda x, y: x + y, ValueError, "Incompatible shapes for broadcasting"),
        (lambda x, y: x @ y, TypeError, "contracting dimensions to have the same shape"),
        (lambda x, y: gl.numpy.concatenate([x, y]), TypeError, "Cannot concatenate"),
        (gl.on_grid(lambda x, y: x.reshape(3, 3) + y), TypeError, "cannot reshape array"),
    ],
)
def test_jax_errors_are_jax_s_and_name_the_layouts(fn, kind, words):
    x = gl.put(np.ones((5, 7)), gl.GridLayout((5, 7), grid=(2, 4), tile=(2, 2)), DEVICE)
    y = gl.put(np.ones(3), gl.GridLayout((3,), grid=(2,)), x.device)
    with pytest.raises(kind, match=words) as caught:
        fn(x, y)
    notes = "\n".join(caught.value.__notes__)
    assert f"float32[5,7] in {x.layout!r}" in notes
    assert f"float32[3] in {y.layout!r}" in notes


def test_jax_errors_name_the_function_its_line_and_its_arrays():
    def step(params, scale):
        if params["w"].sum() > scale:
            return params
        return None

    def scaled(table, *, scale):
        return table if scale > 0 else None

    x = gl.put(np.ones((5, 7)), gl.GridLayout((5, 7), grid=(2, 4)), DEVICE)
    one = jnp.ones(())
    for fn, operands, named, array, known in (
        (step, ({"w": x}, one), "params['w']", "arrays", {}),
        (step, ({"w": x}, 2), "params['w']", "arrays", {}),
        (scaled, (x,), "scale", "scale", {"scale": jnp.ones(())}),
    ):
        with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
            gl.on_grid(fn)(*operands, **known)
        where = f"{fn.__name__} at {__file__}:{fn.__code__.co_firstlineno} "
        assert where in str(caught.value)
        assert re.search(rf"the values? of the arguments? {array}\b", str(caught.value))
        assert f"\n  {named}: float32[" in caught.value.__notes__[0]


def test_what_was_summed_is_not_gathered_again():
    """Every device along the summed dim has the sums: layer norm sends them once, and no more."""
    device = gl.DeviceGrid((2, 4))
    array = np.random.default_rng(5).normal(size=(480, 400)).astype(np.float32)

    def layer_norm(x):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)

    for tile in (None, (8, 8)):
        x = poisoned(array, gl.GridLayout(array.shape, grid=(2, 4), tile=tile), device)
        on_grid = gl.on_grid(layer_norm)
        np.testing.assert_allclose(np.asarray(on_grid(x)), layer_norm(array), rtol=1e-4, atol=1e-5)
        sent = collectives(jax.jit(on_grid).lower(x).compile().as_text(), device.size)
        assert {kind for kind, _ in sent} == {"all-reduce"}
        assert sum(size for _, size in sent) == on_grid.report(x).bytes_moved


def test_a_reduced_value_may_go_anywhere():
    """Out of the function, transposed, reshaped, reduced again, broadcast along another dim."""
    array = np.random.default_rng(6).normal(size=(9, 7)).astype(np.float32)

    def fn(x):
        rows = x.sum(1, keepdims=True)
        return (
            rows,
            rows.T,
            rows.reshape(3, 3),
            jnp.where(rows > 0, rows, -1.0).max(),
            rows + x.sum(0),
            rows.ravel() * x.max(1),
            (rows - rows.T) @ x,
            jnp.concatenate([rows, x], axis=1),
            jax.lax.fori_loop(0, 3, lambda i, r: r * 0.5 + rows, rows),
            rows.astype(jnp.int32).argmin(),
        )

    for grid, tile in few([((3, 2), (4, 4)), ((2, 4), None), ((8, 1), (1, 2)), ((1, 8), None)], 2):
        x = poisoned(array, gl.GridLayout(array.shape, grid=grid, tile=tile), DEVICE)
        for found, expected in zip(gl.on_grid(fn)(x), fn(array), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-4)


def test_the_policy_drops_grid_dims_that_a_shape_has_no_use_for():
    device = gl.DeviceGrid((2, 4))
    like = gl.GridLayout((8, 8, 6, 5), grid=(2, 4, 1, 1), collapse=[])
    for shape, grid in [((48, 40), (2, 4)), ((9,), (8,)), ((4, 5, 6), (2, 4, 1))]:
        assert same_grid_and_tile(shape, np.dtype("float32"), like, device).grid == grid


# -- what rules reach ------------------------------------------------------------------------------


def keys(seed=0):
    return jax.random.split(jax.random.key(seed), 5)


def draws(fn):
    """A function of rows, and of a key for each."""
    return lambda x: jax.random.key_data(jax.vmap(fn)(keys(), x))


REACHED = {
    "a literal bool": (lambda x: jnp.where(jnp.logical_not(True), x, -x), A),
    "a copied bool": (lambda x: jnp.where(jnp.copy(jnp.int32(3) < 1), x, -x), A),
    "a reversal of all dims": (lambda x: x[::-1, ::-1], A),
    "padding by nothing": (lambda x: jnp.pad(x, 0), A),
    "padding of a vector by nothing": (lambda x: jnp.pad(x, 0), (7,)),
    "windows of products": (
        lambda x: lax.reduce_window(x, 1.0, lax.mul, (2, 3), (1, 2), "SAME"),
        A,
    ),
    "windows from another start": (
        lambda x: lax.reduce_window(x, 3.0, lax.add, (2, 2), (1, 1), "VALID"),
        A,
    ),
    "a triangular system": (
        lambda x: jax.scipy.linalg.solve_triangular(jnp.tril(x @ x.T) + 5 * jnp.eye(5), x),
        A,
    ),
    "one from the right": (
        lambda x: lax.linalg.triangular_solve(jnp.tril(x.T @ x) + 5 * jnp.eye(7), x, lower=True),
        A,
    ),
    "greatest elements, approximately": (lambda x: lax.approx_max_k(x, 3), (7,)),
    "least elements, approximately": (lambda x: lax.approx_min_k(x, 3), (7,)),
    "greatest elements beside NaNs": (lambda x: lax.top_k(jnp.log(x - 1), 7)[0], (7,)),
    "collectives over a mapped axis": (
        lambda x: jax.vmap(lambda r: r - lax.pmax(r, "i") + lax.psum(r, "i"), axis_name="i")(x),
        A,
    ),
    "a slice of nothing": (lambda x: lax.dynamic_slice(x[:0], (0, 1), (0, 4)) + 1, A),
    "one element": (lambda x: jnp.take(x, 3) * 2, (7,)),
    "gamma variates": (lambda x: jax.random.gamma(jax.random.key(0), jnp.abs(x) + 1), A),
    "gamma variates of rows": (
        lambda x: jax.vmap(jax.random.gamma)(keys(), jnp.abs(x[:, 0]) + 1),
        A,
    ),
    "keys of a condition": (
        draws(lambda k, r: lax.cond(r[0] > 0, lambda k: k, lambda k: jax.random.fold_in(k, 1), k)),
        A,
    ),
    "keys round a loop": (
        draws(
            lambda k, r: lax.while_loop(
                lambda c: c[1] < r[0], lambda c: (jax.random.fold_in(c[0], 1), c[1] + 1), (k, 0.0)
            )[0]
        ),
        A,
    ),
    "chosen keys": (
        lambda x: jax.random.key_data(jnp.where(x[:, 0] > 0, keys(), keys(1))),
        A,
    ),
    "keys in order": (lambda x: jax.random.key_data(keys()[jnp.argmax(x, 0) % 5]), A),
}


REACH = [
    names
    for shape in (A, (7,))
    for names in together([name for name in REACHED if REACHED[name][1] == shape], 4)
]


@pytest.mark.few(3)
@pytest.mark.parametrize("names", REACH, ids=", ".join)
def test_rules_reach(names):
    def every(x):
        return {name: REACHED[name][0](x) for name in names}

    ((_, shape), *_) = (REACHED[name] for name in names)
    some = list(layouts(shape).values())
    plain = gl.GridLayout(shape, grid=(2, 4)[: len(shape)])
    assert not gl.on_grid(every, DEVICE).report(plain).fallbacks
    for layout in few([some[5 * REACH.index(names) % len(some)], plain], 1):
        x = poisoned(example(shape), layout, DEVICE)
        found, expected = jax.jit(lambda x: gl.on_grid(every)(x))(x), jax.jit(every)(example(shape))
        assert jax.tree.structure(found, is_leaf=is_grid) == jax.tree.structure(expected)
        for name in names:
            for f, w in zip(leaves(found[name]), jax.tree.leaves(expected[name]), strict=True):
                np.testing.assert_allclose(
                    np.asarray(f), np.asarray(w), rtol=2e-5, atol=1e-5, err_msg=name
                )
        assert not gl.on_grid(every).report(x).fallbacks


def test_the_index_of_the_greatest_elements_is_in_range_beside_nans():
    x = jnp.arange(7.0)
    laid = gl.put(x, gl.GridLayout((7,), grid=(4,)), DEVICE)
    fn = lambda x: lax.top_k(jnp.log(x - 1), 7)  # noqa: E731
    for found, expected in zip(gl.on_grid(fn)(laid), fn(x), strict=True):
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("reduce", [jnp.max, jnp.min])
def test_extremes_of_complex_numbers(reduce):
    x = (example((8, 12)) + 1j * example((8, 12), 1)).astype(np.complex64)
    laid = gl.put(x, gl.GridLayout((8, 12), "complex64", grid=(2, 4)), DEVICE)
    for axis in (0, 1, None):
        found = gl.on_grid(lambda x, axis=axis: reduce(x, axis))(laid)
        np.testing.assert_array_equal(np.asarray(found), reduce(jnp.asarray(x), axis))


def test_facts_hold_where_the_backend_flushes_denormals():
    layout = gl.GridLayout((7,), grid=(4,), oob=1e-20)
    x = gl.put(np.ones(7, np.float32), layout, DEVICE)
    assert not gl.on_grid(lambda x: jnp.any(x * x == 0))(x)


def test_no_tracer_leaks():
    x = poisoned(example(A), layouts(A)["gap"], DEVICE)
    with jax.checking_leaks():
        gl.on_grid(lambda a: a + 1)(x)
        jax.grad(lambda x: gl.on_grid(lambda a: jnp.sum(a * a))(x))(x)


def test_products_where_ranks_must_be_alike():
    x = gl.put(example((8, 11)), gl.GridLayout((8, 11), grid=(2, 2)), gl.DeviceGrid((2, 2)))
    y = gl.put(example((11, 6)), gl.GridLayout((11, 6), grid=(2, 2)), gl.DeviceGrid((2, 2)))
    expected = example((8, 11)) @ example((11, 6))
    with jax.numpy_rank_promotion("raise"):
        for name in gl.ALGORITHMS:
            try:
                found = gl.on_grid(jnp.matmul, algorithm=name)(x, y)
            except gl.LayoutError:
                continue
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)


def test_calls_to_the_host_are_made_once(capfd):
    x = poisoned(example(A), layouts(A)["gap"], DEVICE)

    def fn(x):
        jax.debug.print("the sum is {:.3f}", jnp.sum(x))
        doubled = jax.pure_callback(lambda a: 2 * np.asarray(a), jax.ShapeDtypeStruct(A, "f4"), x)
        return lax.scan(lambda c, r: (c + r, r), jnp.zeros(7), doubled)[0]

    np.testing.assert_allclose(
        np.asarray(gl.on_grid(fn)(x)), 2 * example(A).sum(0), rtol=1e-5, atol=1e-6
    )
    jax.effects_barrier()
    assert capfd.readouterr().out == f"the sum is {example(A).sum():.3f}\n"


def test_prints_in_a_function_whose_layouts_are_chosen(capfd):
    # A print has no results, and a program with products has its layouts chosen as a whole.
    device = gl.DeviceGrid((2, 4))
    x, w, v = example((53, 7)), example((7, 13)), example((13, 5))

    def loss(w, v, x):
        hidden = jax.nn.relu(x @ w)
        jax.debug.print("the mean is {:.3f}", hidden.mean())
        jax.debug.print("done")
        return jnp.mean((hidden @ v) ** 2)

    placed = gl.put((w, v, x), device, (None, None, gl.GridLayout((53, 7), grid=(8, 1))))
    found = gl.on_grid(jax.value_and_grad(loss, (0, 1)))(*placed)
    jax.effects_barrier()
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == ["done", f"the mean is {np.maximum(x @ w, 0).mean():.3f}"]
    expected = jax.value_and_grad(loss, (0, 1))(w, v, x)
    for own, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(own), other, rtol=1e-4, atol=1e-5)


def test_constraints_with_explicit_axes_are_explained():
    mesh = jax.make_mesh((2, 4), ("a", "b"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    x, spec = gl.put(example((53, 7)), jax.sharding.PartitionSpec("a"), mesh), ("a", "b")
    spec = jax.sharding.PartitionSpec(*spec)
    place = jax.lax.with_sharding_constraint
    with pytest.raises(ValueError, match="can only refer to Auto axes") as raised:
        gl.on_grid(lambda x: place(x, jax.sharding.NamedSharding(mesh, spec)))(x)
    assert any(
        "give jax.lax.with_sharding_constraint the PartitionSpec alone" in note
        for note in raised.value.__notes__
    )
    assert gl.on_grid(lambda x: place(x, spec))(x).layout.grid == (2, 4)


def test_shard_map_inside_is_refused():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("q",))

    def inner(x):
        spec = jax.sharding.PartitionSpec()
        return jax.shard_map(lambda a: a, mesh=mesh, in_specs=spec, out_specs=spec)(x)

    with pytest.raises(gl.LayoutError, match=r"inner calls jax\.shard_map"):
        gl.on_grid(inner)(poisoned(example(A), layouts(A)["gap"], DEVICE))


@pytest.mark.parametrize("fn", [jnp.sum, jnp.max, jnp.prod, jnp.argmin], ids=lambda fn: fn.__name__)
def test_reductions_of_all_dims_where_a_grid_dim_holds_nothing(fn):
    x = poisoned(example((5,)), gl.GridLayout((5,), grid=(2, 3)), DEVICE)
    np.testing.assert_allclose(gl.on_grid(fn)(x), fn(example((5,))), rtol=1e-5)


@pytest.mark.few(1)
@pytest.mark.parametrize("layout", [((1, 1), (4, 4)), ((2, 4), None), ((3, 2), (4, 4))])
def test_what_is_left_of_one_element_is_a_number(layout):
    x = example((1, 5))
    laid = poisoned(x, gl.GridLayout(x.shape, "float32", *layout), DEVICE)
    for fn in (
        lambda x: jnp.where(x > 0, x, x.var(1)),
        lambda x: x - x.mean(1),
        lambda x: jnp.maximum(x, x.max(1)[:, None]) * x.sum(),
    ):
        assert_same(gl.on_grid(fn)(laid), fn(jnp.asarray(x)))
