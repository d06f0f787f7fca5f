"""`jax.debug_nans` and `jax.debug_infs` on the grid: elements are reported, padding is not.

The padding of every operand is poisoned with what the checks report.
"""

import copy
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from devices import turn as device_of
from jax import lax
from laid_out import assert_claim_holds, layouts, leaves, padding, poisoned, read

import gridlayout as gl
from gridlayout.sharding.number_checks import number_checks

DEVICE = gl.DeviceGrid((2, 4))
A = np.linspace(1, 3, 35, dtype="f4").reshape(5, 7)
LAYOUT = gl.GridLayout(A.shape, "float32", (3, 3), (2, 2))
OTHER = gl.GridLayout(A.shape, "float32", (2, 3))
pytestmark = pytest.mark.usefixtures("few_programs")
CHECKS = {"nans": (True, False), "infs": (False, True), "both": (True, True)}


@contextmanager
def checking(nans, infs):
    """A context in which JAX's checks are on."""
    with jax.debug_nans(nans), jax.debug_infs(infs):
        yield


def ones(x):
    return x / x


def loss(x):
    return jnp.sum(jnp.log(x) / x)


def looped(x):
    return lax.scan(lambda c, row: (c / c * row, c / row), x[0], x)


# What makes numbers in padding that the checks report, from an array: name -> function.
FINE = {
    "operators": lambda x: x / x - 1 / x,
    "on_grid": lambda x: gl.on_grid(lambda x: (x - x.mean(1, keepdims=True)) / x.std(1).max())(x),
    "several results": lambda x: gl.on_grid(lambda x: (ones(x).sum(1), (1 / x).max(0), x[1:]))(x),
    "idle slots": lambda x: gl.on_grid(lambda x: gl.with_layout(ones(x), OTHER))(x),
    "jit": lambda x: jax.jit(lambda x: (gl.on_grid(ones)(x), x))(x),
    "grad": lambda x: jax.grad(gl.on_grid(loss))(x),
    "jit of grad": lambda x: jax.jit(jax.grad(gl.on_grid(loss)))(x),
    "a sum of gradients": lambda x: jax.grad(lambda x: gl.numpy.sum(x / x) + gl.numpy.sum(1 / x))(
        x
    ),
    "jvp": lambda x: jax.jvp(gl.on_grid(ones), (x,), (x,)),
    "linearize": lambda x: jax.linearize(gl.on_grid(ones), x)[1](x),
    "vmap": lambda x: jax.vmap(gl.on_grid(lambda r: r / r.sum()))(x),
    "jit of vmap of grad": lambda x: jax.jit(jax.vmap(jax.grad(gl.on_grid(loss))))(x),
    "checkpoint": lambda x: jax.grad(lambda x: gl.numpy.sum(jax.checkpoint(gl.on_grid(ones))(x)))(
        x
    ),
    "a loop inside": lambda x: gl.on_grid(looped)(x),
    "a branch inside": lambda x: gl.on_grid(lambda x: lax.cond(x[0, 0] > 0, ones, jnp.log, x))(x),
    "a loop": lambda x: lax.scan(lambda c, _: (gl.on_grid(ones)(c), c), x, length=2)[0],
    "a while loop": lambda x: lax.while_loop(
        gl.on_grid(lambda c: c.max() > 1), gl.on_grid(ones), x
    ),
    "jit of a branch": lambda x: jax.jit(
        lambda x: lax.cond(gl.on_grid(jnp.sum)(x) > 0, gl.on_grid(ones), lambda x: x, x)
    )(x),
    "map_shards": lambda x: gl.map_shards(ones, x, out=LAYOUT).to_logical(),
    "jit of map_shards": lambda x: jax.jit(lambda x: gl.map_shards(ones, x, out=LAYOUT))(x),
    "grad of map_shards": lambda x: jax.grad(
        lambda x: gl.numpy.sum(gl.map_shards(lambda s: jnp.log(s) / s, x, out=LAYOUT))
    )(x),
    "a known padding": lambda x: x.with_oob(np.inf) - x.with_oob(np.nan),
    "a known padding from a function": lambda x: gl.on_grid(jnp.log)(x.with_oob(0)),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("checks", CHECKS if tiers.ALL else ["both"])
@pytest.mark.parametrize("name", tiers.few(FINE, 8))
def test_padding_is_not_reported(name, checks):
    expected = FINE[name](gl.put(A, LAYOUT, DEVICE))
    for fill in (np.nan, np.inf, 0) if tiers.ALL else (np.nan, np.inf):
        with checking(*CHECKS[checks]):
            found = FINE[name](poisoned(A, LAYOUT, DEVICE, fill))
        for x, other in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(read(x), read(other), rtol=1e-5, atol=1e-6)
            assert_claim_holds(x)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", tiers.few(layouts(A.shape), 6))
def test_results_hold_numbers_in_every_padding(name):
    layout = layouts(A.shape)[name]
    with checking(nans=True, infs=True):
        for x in (poisoned(A, layout, device_of(DEVICE, 1)), gl.put(A, layout, DEVICE)):
            found = gl.on_grid(lambda x: (x / x, 1 / x, jnp.log(x)))(x)
            for made in found:
                assert np.isfinite(np.asarray(made.storage)).all()
                assert_claim_holds(made)


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e8m0fnu", "complex64"]
)
def test_every_element_type_has_a_number_for_padding(dtype):
    x = poisoned(np.ones((5, 7), jnp.dtype(dtype)), LAYOUT, DEVICE)
    with checking(nans=True, infs=True):
        found = gl.on_grid(lambda x: x[::-1])(x)
        assert (np.asarray(found) == np.asarray(x)).all()
        assert number_checks().name_in(found.storage) is None


def test_moves_report_nothing():
    x = poisoned(A, LAYOUT, DEVICE)
    elements = np.where(A > 2, np.nan, A)
    with checking(nans=True, infs=True):
        y = gl.put(elements, LAYOUT.with_oob(np.inf), DEVICE)
        for array, moved in ((A, x), (elements, y)):
            np.testing.assert_array_equal(moved.to_logical(), array)
            np.testing.assert_array_equal(np.asarray(gl.relayout(moved, OTHER)), array)
            np.testing.assert_array_equal(np.asarray(copy.deepcopy(moved)), array)
            assert np.isnan(np.asarray(moved.with_oob(np.nan).physical)[padding(LAYOUT)]).all()
        assert y.layout.oob == np.inf
        assert_claim_holds(y)
        laid = gl.relayout(x, OTHER.with_oob(-np.inf))
        assert laid.layout.oob == -np.inf
        assert_claim_holds(laid)
        packed = gl.pack(A, LAYOUT.with_oob(np.nan))
        np.testing.assert_array_equal(gl.unpack(packed, LAYOUT), A)
        assert_claim_holds(gl.zeros_like(x))


# Elements that are NaN for A, or infinite: (checks, function, the primitive that makes them).
REPORTED = {
    "operator": ("nans", lambda x: (x - 1) / (x - 1), "div"),
    "on_grid": ("nans", lambda x: gl.on_grid(lambda x: jnp.sqrt(x - 2) + 1)(x), "sqrt"),
    "infinity": ("infs", lambda x: gl.on_grid(lambda x: 1 / (x - 1))(x), "div"),
    "a number": ("nans", lambda x: gl.on_grid(lambda x: jnp.sqrt(x - 2).sum())(x), "sqrt"),
    "jit": ("nans", lambda x: jax.jit(gl.on_grid(lambda x: jnp.sqrt(x - 2)))(x), "sqrt"),
    "infinity in jit": ("infs", lambda x: jax.jit(gl.on_grid(lambda x: 1 / (x - 1)))(x), "div"),
    "a call": (
        "nans",
        lambda x: gl.on_grid(lambda x: jax.jit(lambda x: jnp.sqrt(x - 2))(x) * 2)(x),
        "sqrt",
    ),
    "a rule of its own": ("nans", lambda x: gl.on_grid(lambda x: jax.nn.relu(0 * x / 0))(x), "div"),
    "a branch": (
        "nans",
        lambda x: gl.on_grid(lambda x: lax.cond(x[0, 0] > 0, lambda x: jnp.sqrt(x - 2), ones, x))(
            x
        ),
        "sqrt",
    ),
    "a loop": (
        "nans",
        lambda x: gl.on_grid(lambda x: lax.fori_loop(0, 2, lambda _, c: jnp.sqrt(c - 2), x))(x),
        "scan",
    ),
    "a requested layout": (
        "nans",
        lambda x: gl.on_grid(lambda x: gl.with_layout(jnp.sqrt(x - 2), OTHER))(x),
        "sqrt",
    ),
    "grad": ("infs", lambda x: jax.grad(gl.on_grid(lambda x: jnp.sqrt(x - 1).sum()))(x), "div"),
    "jit of grad": (
        "infs",
        lambda x: jax.jit(jax.grad(gl.on_grid(lambda x: jnp.sqrt(x - 1).sum())))(x),
        "div",
    ),
    "vmap": ("nans", lambda x: jax.vmap(gl.on_grid(lambda r: jnp.sqrt(r - 2)))(x), "sqrt"),
    "map_shards": (
        "nans",
        lambda x: gl.map_shards(lambda shard: jnp.sqrt(shard - 2), x, out=LAYOUT),
        "map_shards",
    ),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", REPORTED)
def test_elements_are_reported_with_their_primitive(name):
    checks, fn, primitive = REPORTED[name]
    words = rf"invalid value \({checks[:-1]}\).*{primitive}"
    for fill in (0, np.nan):
        x = poisoned(A, LAYOUT, DEVICE, fill)
        with checking(*CHECKS[checks]), pytest.raises(FloatingPointError, match=words):
            fn(x)


def test_the_line_of_the_users_code_is_named():
    x = gl.put(A, LAYOUT, DEVICE)
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as raised:
        gl.on_grid(ones)(x - x)
    assert any("in ones, " in note and __file__ in note for note in raised.value.__notes__)


def test_a_number_that_comes_in_is_reported_where_it_is_first_used():
    x = gl.put(np.where(A > 2, np.nan, A), LAYOUT, DEVICE)
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=r"\(nan\).* in mul"):
        gl.on_grid(lambda x: x * 2 + 1)(x)


def test_numbers_that_no_result_holds_are_not_reported():
    x = poisoned(A, LAYOUT, DEVICE)
    with checking(nans=True, infs=True):
        found = gl.on_grid(lambda x: jnp.where(x > 2, jnp.log(x - 2), 0.0))(x)
    expected = np.log(np.where(A > 2, A - 2, 1))
    np.testing.assert_allclose(read(found), expected, rtol=1e-5, atol=1e-6)


# -- the checks are turned on and off --------------------------------------------------------------

CALLED = {
    "on_grid": lambda fn, x: fn,
    "jit": lambda fn, x: jax.jit(fn),
    "jit of a loop": lambda fn, x: jax.jit(
        lambda x: lax.scan(lambda c, _: (fn(c), c), x, length=1)[0]
    ),
    "vjp": lambda fn, x: jax.vjp(fn, x)[1],
    "jit of vjp": lambda fn, x: jax.jit(jax.vjp(fn, x)[1]),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CALLED)
def test_checks_between_calls_of_one_function(name):
    x = poisoned(A, LAYOUT, DEVICE)
    # Of an operand 0 the result is NaN, and so is the cotangent of a NaN.
    bad = poisoned(A * (0 if "vjp" not in name else np.nan), LAYOUT, DEVICE)
    call = CALLED[name](gl.on_grid(ones), x)
    expected = read(jax.tree.leaves(call(x))[0])
    for nans, infs in ((True, False), (False, True), (False, False), (True, True), (False, False)):
        with checking(nans, infs):
            np.testing.assert_allclose(read(leaves(call(x))[0]), expected, atol=1e-6)
            if not nans:
                call(bad)
            else:
                with pytest.raises(FloatingPointError, match="nan"):
                    call(bad)


def test_a_repeated_call_is_not_compiled_again_when_checks_change():
    traced = []
    lifted = gl.on_grid(lambda x: traced.append(1) or x / x)
    x = poisoned(A, LAYOUT, DEVICE)
    for nans in (False, True, False, True):
        with jax.debug_nans(nans):
            lifted(x)
    assert len(traced) == 1


def test_the_config_flag():
    x = poisoned(A, LAYOUT, DEVICE)
    jax.config.update("jax_debug_nans", True)
    try:
        np.testing.assert_array_equal(read(x / x), 1)
        with pytest.raises(FloatingPointError, match="div"):
            (x - x) / (x - x)
    finally:
        jax.config.update("jax_debug_nans", False)


def test_without_jit():
    # Each op is a program, so there are few: the mask of a vector.
    layout, device = gl.GridLayout((7,), grid=(3,)), gl.DeviceGrid((2,))
    x, zeros = poisoned(A[0], layout, device), poisoned(np.zeros(7, "f4"), layout, device)
    with checking(nans=True, infs=True), jax.disable_jit():
        np.testing.assert_array_equal(read(gl.on_grid(ones)(x)), 1)
        with pytest.raises(FloatingPointError, match="div"):
            gl.on_grid(ones)(zeros)
