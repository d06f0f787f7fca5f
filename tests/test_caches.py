"""What the library caches: its bound in bytes, what is dropped first, and that nothing else stays.

Compiled programs, plans and tables are asked for here by what calls return and by weak references,
never by the entries of one cache.
"""

import gc
import json
import tracemalloc
import weakref
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers

import gridlayout as gl
from gridlayout import caching
from gridlayout.caching import Kept, array_bytes, cached

MIB = 1 << 20
pytestmark = pytest.mark.usefixtures("frozen")


@pytest.fixture
def limit():
    """Sets the limit of the caches; they are empty before, and have the old limit afterwards."""
    before = gl.caches.limit()
    gl.caches.clear()
    yield gl.caches.limit
    gl.caches.limit(before)
    gl.caches.clear()


@pytest.fixture
def device():
    return gl.DeviceGrid(tuple(n for n in (2, len(jax.devices()) // 2) if n))


def counted(**stated):
    """A cached function, and the arguments with which its body ran."""
    ran = []

    @cached(**stated)
    def fn(n, *, twice=False):
        ran.append(n)
        return n * (1 + twice)

    return fn, ran


def laid_out(shape, device, value=1.0):
    layout = gl.GridLayout(shape, "float32", grid=(2, 4), tile=(8, 8))
    return gl.put(np.full(shape, value, np.float32), layout, device)


class Held:
    def __init__(self, held_bytes):
        self.held_bytes = held_bytes


# -- results ---------------------------------------------------------------------------------------


def test_a_result_is_computed_once_for_equal_arguments(limit):
    fn, ran = counted()
    assert [fn(3), fn(3), fn(3, twice=True), fn(3, twice=True), fn(4)] == [3, 3, 6, 6, 4]
    assert ran == [3, 3, 4]


def test_keywords_are_not_mistaken_for_positional_arguments(limit):
    limit(16 * 50)  # every result is an older one at once

    @cached(size=100)
    def fn(*args, **kwargs):
        return args, kwargs

    for _ in range(3):
        assert fn(1, 2, a=3) == ((1, 2), {"a": 3})
        assert fn((1, 2), ("a", 3)) == (((1, 2), ("a", 3)), {})


def test_results_that_are_used_stay_and_others_are_dropped_beyond_the_limit(limit):
    limit(32 * 16 * 100)  # half of a sixteenth holds 16 entries of 100 bytes
    fn, ran = counted(size=100)
    for n in range(1, 200):
        fn(0)
        fn(n)
        assert gl.caches.nbytes() <= limit() // 16 + 100
    assert ran == list(range(200))  # 0 was computed once, though 199 others came after it
    fn(1)
    assert ran[-1] == 1  # this one was dropped


def test_the_arrays_of_a_result_count(limit):
    @cached(size=array_bytes)
    def table(n):
        return np.zeros(n), (n, np.zeros(n))

    table(1000)
    assert 16_000 <= gl.caches.nbytes() <= 20_000


def test_results_can_be_bounded_by_their_number(limit):
    fn, ran = counted(entries=2)
    assert [fn(n) for n in (1, 2, 3, 1)] == [1, 2, 3, 1]
    assert ran == [1, 2, 3, 1]
    gl.caches.clear()
    fn(1)
    assert ran == [1, 2, 3, 1, 1]


def test_arguments_without_a_hash_are_refused_as_by_lru_cache():
    fn, _ = counted()
    with pytest.raises(TypeError, match="unhashable"):
        fn([])


def test_errors_are_not_remembered(limit):
    fn, ran = counted()
    for _ in range(2):
        with pytest.raises(TypeError):
            fn(None, twice=True)
    assert ran == [None, None]


# -- programs --------------------------------------------------------------------------------------


def test_the_least_recently_used_value_of_all_dicts_is_dropped_first(limit):
    limit(8 * MIB)  # 7.5 MiB for dicts
    one, two = Kept(), Kept()
    for n in range(3):
        one.add(n, n, Held(MIB))
        two.add(n, -n, Held(MIB))
    assert one.get(0) == 0  # now the last used of all
    two.add(3, -3, Held(3 * MIB))
    assert [one.get(n) for n in range(3)] == [0, None, 2]
    assert [two.get(n) for n in range(4)] == [None, -1, -2, -3]
    assert gl.caches.nbytes() <= limit()


def test_what_several_values_hold_counts_once(limit):
    limit(8 * MIB)
    kept, held = Kept(), Held(4 * MIB)
    for n in range(5):
        kept.add(n, n, held)
    assert len(kept) == 5
    assert gl.caches.nbytes() == 4 * MIB


def test_the_last_value_is_kept_whatever_it_takes(limit):
    limit(MIB)
    kept = Kept()
    for n in range(3):
        kept.add(n, n, Held(100 * MIB))
        assert kept.get(n) == n
        assert len(kept) == 1


def test_values_live_no_longer_than_their_dict(limit):
    kept, value = Kept(), Held(MIB)
    kept.add(1, value, value)
    seen = weakref.ref(value)
    assert gl.caches.nbytes() == MIB
    del kept, value
    gc.collect()
    assert seen() is None
    assert gl.caches.nbytes() == 0


@pytest.mark.parametrize("given", [0, -1, True, 2.5, "x", 2**100])
def test_the_limit_is_a_positive_number_of_bytes(given, limit):
    before = limit()
    with pytest.raises(gl.LayoutError, match="limit of the caches"):
        limit(given)
    assert limit() == before


def test_a_smaller_limit_takes_effect_at_once(limit, device):
    fn = gl.on_grid(lambda x: x + 1)
    for n in range(3):
        fn(laid_out((8 + n, 8), device))
    assert gl.caches.nbytes() > MIB
    limit(MIB)
    assert gl.caches.nbytes() <= 2 * MIB  # the program used last
    assert np.asarray(fn(laid_out((8, 8), device)))[0, 0] == 2


def test_a_smaller_limit_drops_recent_results_too(limit):
    fn, ran = counted(size=MIB)
    for n in range(20):
        fn(n)
    limit(MIB)
    assert gl.caches.nbytes() <= MIB // 16
    assert fn(3) == 3
    assert ran[20:] == [3]


def test_a_value_replaces_the_one_that_was_asked_for_last(limit):
    kept = Kept()
    kept.add("key", 1, Held(1))
    assert kept.get("key") == 1
    kept.add("key", 2, Held(1))
    assert kept.get("key") == 2


# -- a program with new shapes ---------------------------------------------------------------------


def loss(x):
    return jnp.tanh(x @ x.T).sum()


def test_new_shapes_stay_within_the_limit_and_compute_the_same(limit, device):
    limit(4 * MIB)
    most = 0
    gradient = jax.grad(gl.on_grid(loss))
    for k in range(40 if tiers.ALL else 4):
        shape = (3 + k, 5 + 2 * k)
        found = gradient(laid_out(shape, device, 0.1))
        expected = jax.jit(jax.grad(loss))(jnp.full(shape, 0.1))
        np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-5, atol=1e-6)
        moved = gl.relayout(found, gl.GridLayout(shape, "float32", grid=(4, 2)))
        np.testing.assert_array_equal(np.asarray(moved), np.asarray(found))
        most = max(most, gl.caches.nbytes())
    assert 2 * MIB < most <= 4 * MIB + 2 * MIB


def test_a_program_in_use_is_not_compiled_again(limit, device):
    limit(12 * MIB)
    traced = []

    def fn(x):
        traced.append(x.shape)
        return x * 2

    lifted = gl.on_grid(fn)
    for k in range(12):
        lifted(laid_out((8, 8), device))
        lifted(laid_out((9 + k, 8), device))
    assert traced.count((8, 8)) == 1
    lifted(laid_out((9, 8), device))
    assert traced.count((9, 8)) == 2  # not used for long, so it was dropped


def test_the_estimate_is_near_what_clearing_frees(limit, device):
    # Of Python's objects alone: tracemalloc does not see XLA's executables.
    tracemalloc.start()
    try:
        gl.on_grid(jax.grad(loss)).report(laid_out((33, 50), device))
        gc.collect()
        estimate, before = gl.caches.nbytes(), tracemalloc.get_traced_memory()[0]
        gl.caches.clear()
        freed = before - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert freed / 3 <= estimate <= 3 * freed


# -- nothing else stays ----------------------------------------------------------------------------


class Marker:
    """An object that a function closes over."""


def used(k, device):
    """Use a new function and new layouts in all the ways there are; return weak references."""
    shape = (3 + k % 37, 2 + k % 11 + k // 37)
    captured, marker = jnp.full(shape, 0.5), Marker()

    def fn(x):
        assert marker is not None
        return (x * captured + k).sum()

    x = laid_out(shape, device)
    way = k % 4
    if way == 0:
        gl.on_grid(fn)(x)
    elif way == 1:
        jax.grad(gl.on_grid(fn))(x)
    elif way == 2:
        jax.jit(jax.value_and_grad(gl.on_grid(fn)))(x)
    else:
        y = gl.relayout(x, gl.GridLayout(shape, "float32", grid=(4, 2), tile=(4, 4)))
        gl.on_grid(fn).report(y)
    return [weakref.ref(each) for each in (fn, captured, marker, x.storage)]


def alive(references):
    gc.collect()
    return sum(ref() is not None for ref in references)


def test_functions_and_arrays_that_are_dropped_leave_nothing_alive(limit, device):
    used(0, device)
    gc.collect()
    before = len(jax.live_arrays())
    references = [ref for k in range(1000 if tiers.ALL else 8) for ref in used(k, device)]
    assert not alive(references)
    assert len(jax.live_arrays()) <= before


def objects():
    """How many objects of the library are alive, apart from classes and functions."""
    gc.collect()
    own = (type(x).__module__ or "" for x in gc.get_objects())
    return sum(str(module).startswith("gridlayout") for module in own)


def test_clearing_leaves_no_plans_and_layouts(limit, device):
    gc.unfreeze()  # conftest.py hides what is there from the collector
    try:
        used(0, device), used(1, device), used(2, device), used(3, device)
        gl.caches.clear()
        before = objects()
        for k in range(400 if tiers.ALL else 6):
            used(k, device)
        assert objects() > before + 50
        gl.caches.clear()
        jax.clear_caches()  # of the function that was jitted
        assert objects() <= before + 50
    finally:
        gc.freeze()


# -- clearing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
def test_jax_clear_caches_empties_those_of_the_library(times, limit, device):
    for _ in range(times):
        gl.on_grid(lambda x: x + 1)(laid_out((5, 7), device))
        gl.relayout(laid_out((5, 7), device), gl.GridLayout((5, 7), "float32", grid=(4, 2)))
        assert gl.caches.nbytes() > MIB
        jax.clear_caches()
        assert gl.caches.nbytes() == 0


def test_everything_runs_again_after_clearing(limit, device):
    x = laid_out((5, 7), device)
    gradient = jax.grad(gl.on_grid(loss))
    step = jax.jit(gl.on_grid(lambda x: x * 2))
    first = np.asarray(gradient(x)), np.asarray(step(x)), np.asarray(x)
    for clear in (gl.caches.clear, jax.clear_caches):
        clear()
        again = np.asarray(gradient(x)), np.asarray(step(x)), np.asarray(x)
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b)


def test_clearing_drops_a_lifted_functions_programs(limit, device):
    fn = gl.on_grid(lambda x: x + 1)
    x = laid_out((5, 7), device)
    fn(x)
    assert len(fn._function.known) == 1
    gl.caches.clear()
    assert len(fn._function.known) == 0
    assert caching.nbytes() == 0
    fn(x)
    assert len(fn._function.known) == 1


# -- the stored long run ---------------------------------------------------------------------------


def test_the_page_states_the_stored_long_run():
    root = Path(__file__).parents[1]
    found = json.loads((root / "benchmarks" / "long.json").read_text())
    page = (root / "docs" / "long-run.md").read_text()
    rss = [f"{n / MIB:,.0f} MiB" for n in found["rss"]]
    assert f"{rss[0]} to {rss[1]}: {found['rises']['rss']:+.0%}".replace("%", " %") in page
    assert f"{found['minutes']:.0f} minutes on {found['when']}" in page
    assert f"It made {found['steps']:,} steps" in page
    assert f"losses of the {found['repeated']} repeated steps" in page
    for theme in ("light", "dark"):
        drawn = (root / "docs" / "static" / f"long-{theme}.svg").read_text()
        assert f"{found['steps']} steps" in drawn
