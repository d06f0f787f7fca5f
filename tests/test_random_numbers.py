"""Random numbers on the grid: each device draws what it has, bit for bit what JAX draws."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import FAST, with_latency
from random_layouts import cases
from tiers import examples, few

import gridlayout as gl
from gridlayout.ops.primitives import sorting
from gridlayout.ops.primitives.threefry import flat_index, threefry

KEY = jax.random.key(7)
eight = pytest.mark.skipif(len(jax.devices()) < 8, reason="a grid of 8 devices")
COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")


def poisoned(array, layout, device):
    """An array laid out, its padding NaN."""
    return gl.put(array, layout.replace(oob=float("nan")), device)


def numbers(shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 2, shape).astype(np.float32)


def same(found, expected):
    """Whether arrays have the same bits."""
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        one = one.to_logical() if isinstance(one, gl.GridArray) else one
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


# -- the hash --------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 2**20), min_size=1, max_size=3).filter(
        lambda shape: np.prod(np.array(shape, object)) < 2**63
    ),
    st.data(),
)
@settings(max_examples=examples(50))
def test_an_index_is_counted_in_two_words(shape, data):
    index = [data.draw(st.integers(0, n - 1)) for n in shape]
    flat = 0
    for n, k in zip(shape, index, strict=True):
        flat = flat * n + k
    with jax.disable_jit():
        high, low = flat_index([jnp.int32(k) for k in index], shape)
    assert (int(high) << 32) + int(low) == flat


def test_the_hash_is_that_of_jax_where_both_words_count():
    words = np.random.default_rng(0).integers(0, 2**32, (4, 100), dtype=np.uint32)
    primitive = jax.extend.random.threefry2x32_p
    same(threefry((words[0], words[1]), (words[2], words[3])), primitive.bind(*words))


# -- what each device draws ------------------------------------------------------------------------

DRAWS = {
    "normal": lambda k, s: jax.random.normal(k, s),
    "bfloat16": lambda k, s: jax.random.normal(k, s, "bfloat16"),
    "float16": lambda k, s: jax.random.uniform(k, s, "float16"),
    "uniform": lambda k, s: jax.random.uniform(k, s, minval=-3, maxval=5),
    "bernoulli": lambda k, s: jax.random.bernoulli(k, 0.3, s),
    "gumbel": lambda k, s: jax.random.gumbel(k, s),
    "exponential": lambda k, s: jax.random.exponential(k, s),
    "laplace": lambda k, s: jax.random.laplace(k, s),
    "truncated": lambda k, s: jax.random.truncated_normal(k, -1.0, 2.0, s),
    "rademacher": lambda k, s: jax.random.rademacher(k, s),
    "cauchy": lambda k, s: jax.random.cauchy(k, s),
    "bits 8": lambda k, s: jax.random.bits(k, s, "uint8"),
    "bits 16": lambda k, s: jax.random.bits(k, s, "uint16"),
    "bits 32": lambda k, s: jax.random.bits(k, s),
    "integers": lambda k, s: jax.random.randint(k, s, -9, 90),
    "split": lambda k, s: jax.random.normal(jax.random.split(k, 3)[1], s),
    "fold_in": lambda k, s: jax.random.uniform(jax.random.fold_in(k, 5), s),
    "old keys": lambda k, s: jax.random.uniform(jax.random.PRNGKey(3), s),
    "of keys": lambda k, s: jax.vmap(lambda k: jax.random.normal(k, s[1:]))(
        jax.random.split(k, s[0])
    ),
    "of keys of keys": lambda k, s: jax.vmap(
        lambda k: jax.vmap(lambda k: jax.random.uniform(k))(jax.random.split(k, s[-1]))
    )(jax.random.split(k, s[0])).reshape(s[0], *(1,) * (len(s) - 2), s[-1]),
}
LAYOUTS = {
    "grid": gl.GridLayout((16, 24), grid=(2, 4)),
    "uneven": gl.GridLayout((13, 35), grid=(3, 5)),
    "tiles": gl.GridLayout((13, 35), grid=(2, 3), tile=(4, 8)),
    "collapse": gl.GridLayout((3, 5, 14), grid=(4, 2), tile=(2, 4)),
    "apart": gl.GridLayout((3, 5, 14), grid=(2, 2, 2), collapse=[]),
    "vectors": gl.GridLayout((7, 11), grid=(8,), collapse=[(0, 2)]),
    "linear": gl.GridLayout((13, 35), grid=(2, 4), linear="(d0, d1) -> (d1, d0 * 2)"),
    "turned": gl.GridLayout((13, 35), grid=(2, 4), linear="(d0, d1) -> (-d0 + 12, -d1 + 34)"),
    "rows": gl.GridLayout((13, 35), grid=(4, 2), row_alignment=16),
}


def every(x, names=tuple(DRAWS)):
    """Draws of all kinds beside an array, of its layout."""
    keys = jax.random.split(KEY, len(names))
    return [
        jnp.where(x > 0, draw, draw + x.astype(draw.dtype))
        for k, name in zip(keys, names, strict=True)
        for draw in [DRAWS[name](k, x.shape)]
    ]


@pytest.mark.few(1)
@eight
@pytest.mark.parametrize("name", few(LAYOUTS, 2))
def test_each_device_draws_what_jax_draws_at_its_indices(name):
    layout, turn = LAYOUTS[name], list(LAYOUTS).index(name) // 4 % 2
    x = poisoned(numbers(layout.shape), layout, gl.DeviceGrid((2, 4)))
    names = tuple(DRAWS) if tiers.ALL else tuple(DRAWS)[turn::2]
    fn = gl.on_grid(partial(every, names=names))
    same(fn(x), jax.jit(partial(every, names=names))(x.to_logical()))
    report = fn.report(x)
    assert report.bytes_moved == 0
    assert not [row for row in report.rows if row.how == "fallback"]
    assert not any(row.collectives for row in report.rows)


# The document's default collapse, whatever it wastes, is among what is tested here.
@eight
@pytest.mark.filterwarnings("ignore:the default collapse:gridlayout.LayoutWarning")
@given(cases(stated=False), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(40))
def test_random_layouts_are_filled_with_what_jax_draws(case, seed):
    _, arguments = case
    layout = gl.GridLayout(**arguments | {"dtype": "float32"})
    if layout.ndim == 0 or layout.is_scatter or 0 in layout.shape:
        return

    def fn(x):
        key = jax.random.key(seed)
        mask = jnp.arange(x.shape[-1]) % 3 != 1
        return x * 0 + jnp.where(mask, jax.random.normal(key, x.shape), 4)

    x = poisoned(numbers(layout.shape), layout, gl.DeviceGrid((2, 4)))
    same(gl.on_grid(fn)(x), jax.jit(fn)(x.to_logical()))


@eight
def test_nothing_is_sent_for_what_each_device_draws():
    x = gl.put(numbers((64, 96)), gl.GridLayout((64, 96), grid=(2, 4)), gl.DeviceGrid((2, 4)))
    # Keys are on every device: not one for each element.
    names = [name for name in DRAWS if name != "of keys of keys"]
    fn = gl.on_grid(lambda x: every(x, names))
    text = jax.jit(lambda x: fn(x)).lower(x).compile().as_text()
    assert not [name for name in COLLECTIVES if name in text]
    assert "[64,96]" not in text  # nor has a device all of it


@eight
def test_all_of_a_distribution_of_parameters_on_the_grid():
    alpha, keys = numbers((6, 10)), jax.random.split(KEY, 6)
    x = poisoned(alpha, gl.GridLayout((6, 10), grid=(4, 2)), gl.DeviceGrid((2, 4)))

    def fn(x):
        mapped = jax.vmap(lambda k: jax.random.gamma(k, x[0]))(keys)  # the array is not mapped
        return jax.random.gamma(KEY, x), mapped, jax.vmap(jax.random.gamma)(keys, x)

    made = gl.on_grid(fn)
    same(made(x), jax.jit(fn)(alpha))
    rows = [row for row in made.report(x).rows if row.primitive == "random_gamma"]
    assert len(rows) == 3
    assert {row.how for row in rows} == {"rule"}
    assert not any(row.collectives for row in rows[1:])  # the first brings a row to all cores


@eight
def test_a_mapped_function_draws_for_each_key_of_an_array_that_is_not_mapped():
    alpha, keys = numbers((6, 10)), jax.random.split(KEY, 3)
    x = gl.put(alpha, gl.GridLayout((6, 10), grid=(2, 2)), gl.DeviceGrid((2, 4)))
    mapped = jax.vmap(gl.on_grid(jax.random.gamma), in_axes=(0, None))
    same(mapped(keys, x), jax.jit(jax.vmap(jax.random.gamma, in_axes=(0, None)))(keys, alpha))


@eight
def test_large_arrays_of_nothing_but_keys_are_laid_out():
    size = 1 << 15
    x = gl.put(numbers((8,)), gl.GridLayout((8,), grid=(8,)), gl.DeviceGrid((2, 4)))

    def fn(x, key):
        drawn = jax.random.normal(key, (size // 64, 64))
        return x * drawn.sum(), jax.random.permutation(key, size)

    made = gl.on_grid(fn)
    found, expected = made(x, KEY), jax.jit(fn)(numbers((8,)), KEY)
    np.testing.assert_allclose(found[0].to_logical(), expected[0], rtol=1e-4)
    same(found[1], expected[1])
    rows = made.report(x, KEY).rows
    assert next(row for row in rows if row.primitive == "erf_inv").outputs[0].num_cores == 8
    # Merging blocks takes less time than sorting all of the vector on each device.
    assert all(row.collectives for row in rows if row.primitive == "sort")


# -- many keys -------------------------------------------------------------------------------------

MANY = 8192  # of 8 bytes: more than is made whole


def split(key, shape=(MANY,)):
    return jax.random.split(key, shape)


# Those of which each device makes its own.
MANY_KEYS = {
    "a number each": lambda k: jax.vmap(jax.random.normal)(split(k)),
    "rows": lambda k: jax.vmap(lambda k: jax.random.normal(k, (3,)))(split(k)),
    "keys of keys": lambda k: jax.vmap(jax.vmap(jax.random.uniform))(
        jax.vmap(lambda k: split(k, (3,)))(split(k))
    ),
    "second halves": lambda k: jax.vmap(lambda k: jax.random.bits(split(k, (2,))[1], (3,)))(
        split(k)
    ),
    "fold_in": lambda k: jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(k, i), (3,)))(
        jnp.arange(MANY)
    ),
    "fold_in of keys": lambda k: jax.vmap(lambda k, i: jax.random.bits(jax.random.fold_in(k, i)))(
        split(k), jnp.arange(MANY)
    ),
    "old keys": lambda k: jax.vmap(lambda k: jax.random.bits(k, (3,)))(
        split(jax.random.PRNGKey(3))
    ),
    "seeds": lambda k: jax.vmap(lambda i: jax.random.bits(jax.random.key(i)))(jnp.arange(MANY)),
    "words": lambda k: jax.random.key_data(split(k)),
    "two dims": lambda k: jax.vmap(jax.vmap(jax.random.bits))(split(k, (MANY // 64, 64))),
    "transposed": lambda k: jax.vmap(jax.vmap(jax.random.bits))(split(k, (MANY // 64, 64)).T),
    "reshaped": lambda k: jax.vmap(jax.vmap(jax.random.bits))(split(k).reshape(-1, 64)),
    "a part": lambda k: jax.vmap(jax.random.bits)(split(k)[5 : MANY - 3 : 2]),
}
# Those that every device makes all of.
ALL_KEYS = {
    "results": split,
    "transposed results": lambda k: split(k, (MANY // 64, 64)).T,
    "one of them": lambda k: jax.random.bits(split(k)[17], (9,)),
    "indexed": lambda k: jax.vmap(jax.random.bits)(split(k)[jnp.arange(0, MANY, 3)]),
    "joined": lambda k: jax.vmap(jax.random.bits)(jnp.concatenate([split(k), split(k, (5,))])),
    "a loop over them": lambda k: jax.lax.map(jax.random.bits, split(k)),
    "gamma": lambda k: jax.vmap(lambda k: jax.random.gamma(k, 2.0))(split(k)),
    "permutations": lambda k: jax.vmap(lambda k: jax.random.permutation(k, 5))(split(k)),
}


def plain(x):
    """An array, of keys their words."""
    x = x.to_logical() if isinstance(x, gl.GridArray) else x
    is_key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(x) if is_key else x)


@pytest.mark.few(1)
@eight
@pytest.mark.parametrize("name", few(MANY_KEYS, 3))
def test_each_device_makes_its_own_of_many_keys(name):
    fn = MANY_KEYS[name]
    made = gl.on_grid(fn, device=gl.DeviceGrid((2, 4)))
    compiled = made.lower(KEY).compile()
    found, expected = made(KEY), jax.jit(fn)(KEY)
    same(found, expected)
    assert found.layout.num_cores == 8
    assert not [each for each in COLLECTIVES if each in compiled.as_text()]
    # A device's keys and its words of them, keys of keys more, but never all of MANY.
    most = 6 if name == "keys of keys" else 1
    assert compiled.memory_analysis().temp_size_in_bytes <= most * MANY + 64
    assert made.report(KEY).peak_bytes < 8 * MANY


@pytest.mark.few(1)
@eight
@pytest.mark.parametrize("name", few(ALL_KEYS, 2))
def test_all_of_many_keys_where_they_are_wanted_so(name):
    fn = ALL_KEYS[name]
    found = gl.on_grid(fn, device=gl.DeviceGrid((2, 4)))(KEY)
    expected = plain(jax.jit(fn)(KEY))
    if name == "gamma":  # JAX 0.10 rounds logarithms otherwise in arrays of another size
        np.testing.assert_allclose(plain(found), expected, rtol=2e-6)
    else:
        np.testing.assert_array_equal(plain(found), expected)


@pytest.mark.few(1)
@eight
@pytest.mark.parametrize("layout", few(["rows", "tiles", "columns", "turned"], 2))
def test_many_keys_beside_an_array_in_any_layout(layout):
    shape = (5003, 5)
    layouts = {
        "rows": gl.GridLayout(shape, grid=(8, 1)),
        "tiles": gl.GridLayout(shape, grid=(3, 2), tile=(32, 4)),
        "columns": gl.GridLayout(shape, grid=(2, 4)),
        "turned": gl.GridLayout(shape, grid=(2, 4), linear="(d0, d1) -> (-d0 + 5002, -d1 + 4)"),
    }

    def fn(x, key):
        def row(key, x):
            return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0)

        return jax.vmap(row)(split(key, x.shape[:1]), x)

    array = numbers(shape)
    made, x = gl.on_grid(fn), poisoned(array, layouts[layout], gl.DeviceGrid((2, 4)))
    same(made(x, KEY), jax.jit(fn)(array, KEY))
    report = made.report(x, KEY)
    assert report.bytes_moved == 0
    assert not report.fallbacks


# -- loops, and what is sorted by random numbers ---------------------------------------------------

TALL = (256, 130)  # more than is made whole


def over(step, start, key):
    return jax.lax.scan(step, start, jax.random.split(key, 4))


def drawn_while(key):
    def body(state):
        number, key, total = state
        key, own = jax.random.split(key)
        return number + 1, key, total + jax.random.uniform(own, TALL).max()

    return jax.lax.while_loop(lambda state: state[0] < 5, body, (0, key, 0.0))[2]


def beside(key):
    big = jax.random.normal(key, TALL)  # which the loop closes over: made once, before it
    return over(lambda c, k: (c + jax.random.bits(k, TALL) * (big > 0), None), jnp.zeros(TALL), key)


LOOPS = {
    "map": lambda key: jax.lax.map(lambda k: jax.random.normal(k, TALL), jax.random.split(key, 4)),
    "scan": lambda key: over(
        lambda c, k: (c + jax.random.normal(k, TALL), c[0]), jnp.zeros(TALL), key
    ),
    "a number": lambda key: over(
        lambda c, k: (jnp.maximum(c, jax.random.uniform(k, TALL).max()), None), 0.0, key
    ),
    "fori_loop": lambda key: jax.lax.fori_loop(
        0,
        5,
        lambda i, x: x + jax.random.uniform(jax.random.fold_in(key, i), TALL),
        jnp.zeros(TALL),
    ),
    "while_loop": drawn_while,
    "cond": lambda key: jax.lax.cond(
        jax.random.bernoulli(key),
        lambda k: jax.random.normal(k, TALL),
        lambda k: jax.random.uniform(k, TALL),
        key,
    ),
    "closes over": beside,
    "many keys": lambda key: over(
        lambda c, k: (c + jax.vmap(jax.random.bits)(jax.random.split(k, MANY)).max(), None),
        jnp.uint32(0),
        key,
    ),
}


@pytest.mark.few(1)
@eight
@pytest.mark.parametrize("name", few(LOOPS, 3))
def test_loops_that_no_array_goes_into_draw_on_each_device(name):
    fn = LOOPS[name]
    made = gl.on_grid(fn, device=gl.DeviceGrid((2, 4)))
    compiled = made.lower(KEY).compile()
    same(made(KEY), jax.jit(fn)(KEY))
    assert "[256,130]" not in compiled.as_text()  # nor has a device all of it
    assert not made.report(KEY).fallbacks


@eight
def test_a_loop_over_arrays_on_the_grid_closes_over_drawn_numbers():
    def fn(x, key):
        big = jax.random.uniform(key, TALL)
        return jax.lax.scan(lambda c, i: (jnp.where(big > i / 4, c + 1, c), None), x, jnp.arange(3))

    array = numbers(TALL)
    x = poisoned(array, gl.GridLayout(TALL, grid=(4, 2)), gl.DeviceGrid((2, 4)))
    same(gl.on_grid(fn)(x, KEY)[0], jax.jit(fn)(array, KEY)[0])


SIZE = 1 << 14
SHUFFLES = {
    "permutation": lambda x, k: jax.random.permutation(k, SIZE),
    "of a vector": lambda x, k: jax.random.permutation(k, jnp.arange(SIZE) * 3 % 1001),
    "of an array on the grid": lambda x, k: jax.random.permutation(k, x, independent=True),
    "choice": lambda x, k: jax.random.choice(k, SIZE, (5000,), replace=False),
    "rows": lambda x, k: jax.random.permutation(k, jnp.stack([x, x + 1], 1)),
}


@eight
@pytest.mark.parametrize("name", few(SHUFFLES, 1))
def test_what_is_shuffled_is_sorted_in_blocks(name, monkeypatch):
    force = lambda b, op, ways, whole, *values: ways[0](b, op, *values)  # noqa: E731
    monkeypatch.setattr(sorting, "blocked_or_replicated", force)
    fn, device = SHUFFLES[name], gl.DeviceGrid((2, 4), machine=FAST)
    x = poisoned(numbers((SIZE,)), gl.GridLayout((SIZE,), grid=(8,)), device)
    made = gl.on_grid(fn)
    compiled = made.lower(x, KEY).compile()
    same(compiled(x, KEY), jax.jit(fn)(numbers((SIZE,)), KEY))
    rows = [row for row in made.report(x, KEY).rows if row.primitive == "sort"]
    assert rows
    assert all("merged in" in row.note for row in rows)
    if name == "permutation":
        # No device has all of the numbers, nor of the order.
        assert f"[{SIZE}]" not in compiled.as_text()


def test_the_machine_says_whether_what_is_shuffled_is_sorted_in_blocks():
    def shuffled(machine, count):
        mesh = jax.sharding.AbstractMesh((8, 8), ("x", "y"))
        device = gl.DeviceGrid(mesh, machine=machine)
        fn = gl.on_grid(lambda x, k: x.sum() + jax.random.permutation(k, count), device)
        rows = fn.report(gl.GridLayout((640,), grid=(64,)), KEY).rows
        return next(row for row in rows if row.primitive == "sort")

    fast = shuffled(FAST, 1 << 20)
    assert "merged in" in fast.note
    assert sum(each.received_bytes for each in fast.collectives) < 8 * (1 << 20)
    # Each device makes all of it: nothing is sent, however slow that would be.
    slow = shuffled(with_latency(1.0), 1 << 20)
    assert (slow.how, slow.note, slow.collectives) == ("rule", "", ())


# -- other keys ------------------------------------------------------------------------------------


@pytest.mark.few(1)
@eight
@pytest.mark.parametrize("kind", ["rbg", "unsafe_rbg", "original"])
def test_other_keys_draw_on_every_device_and_are_counted(kind):
    key = jax.random.key(3) if kind == "original" else jax.random.key(3, impl=kind)
    x = gl.put(numbers((16, 24)), LAYOUTS["grid"], gl.DeviceGrid((2, 4)))

    def fn(x, key):
        return x + jax.random.uniform(key, x.shape)

    with jax.threefry_partitionable(kind != "original"):
        made = gl.on_grid(fn)
        same(made(x, key), jax.jit(fn)(numbers((16, 24)), key))
        report = made.report(x, key)
    row = next(row for row in report.rows if row.primitive == "random_bits")
    assert row.outputs == (None,)
    assert report.peak_bytes > 16 * 24 * 4  # every device draws all of it


# -- what the report says --------------------------------------------------------------------------


@eight
def test_the_report_has_a_row_for_each_step_of_what_is_drawn():
    x = gl.put(numbers((16, 24)), LAYOUTS["grid"], gl.DeviceGrid((2, 4)))

    def dropout(x, key):
        return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0)

    rows = {row.primitive: row for row in gl.on_grid(dropout).report(x, KEY).rows}
    assert rows["random_bits"].outputs == (LAYOUTS["grid"].with_dtype("uint32"),)
    assert rows["random_bits"].peak_bytes >= 16 * 24 * 4 // 8
    assert rows["lt"].outputs == (LAYOUTS["grid"].with_dtype("bool"),)
    assert all(row.how == "rule" for row in (rows["random_bits"], rows["lt"], rows["sub"]))


@eight
@pytest.mark.parametrize(
    ("fn", "primitive"),
    [
        (lambda x: x + jnp.arange(24), "iota"),
        (lambda x: x * jax.nn.one_hot(jnp.arange(16) % 24, 24), "eq"),
        (lambda x: jnp.where(jnp.tri(16, 24, dtype=bool), x, 0), "ge"),
        (lambda x: x - jnp.abs(jnp.arange(16)[:, None] - jnp.arange(24)), "abs"),
    ],
    ids=["iota", "one-hot", "mask", "relative positions"],
)
def test_what_is_computed_of_indices_has_rows(fn, primitive):
    x = gl.put(numbers((16, 24)), LAYOUTS["grid"], gl.DeviceGrid((2, 4)))
    made = gl.on_grid(fn)
    assert primitive in {row.primitive for row in made.report(x).rows}
    same(made(x), jax.jit(fn)(numbers((16, 24))))


@eight
def test_random_bits_are_drawn_once_for_all_kernels_that_read_them():
    x = gl.put(numbers((64, 64)), gl.DeviceGrid((2, 4)))

    def drop(x, key):
        kept = jax.random.bernoulli(key, 0.5, x.shape)
        return jnp.where(kept, jnp.roll(x, 1, 0), 0), jnp.where(kept, x * x, 0)

    text = jax.jit(gl.on_grid(drop)).lower(x, KEY).compile().as_text()
    drawn = [some for some in text.split("\n\n") if some.count("shift-left(") >= 20]
    assert len(drawn) == 1
    assert "concatenate(" not in drawn[0]
    assert "select(" not in drawn[0]


@eight
def test_dropout_of_a_large_array_holds_no_more_than_its_shards():
    shape = (2048, 2048)
    device = gl.DeviceGrid((2, 4))
    x = gl.put(np.ones(shape, np.float32), gl.GridLayout(shape, grid=(2, 4)), device)

    def dropout(x, key):
        return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0)

    made = gl.on_grid(dropout)
    compiled = jax.jit(lambda x, k: made(x, k)).lower(x, KEY).compile()
    shard = 4 * 2048 * 2048 // 8
    assert compiled.memory_analysis().temp_size_in_bytes <= shard + 1024  # the random bits
    assert made.report(x, KEY).peak_bytes <= 3 * shard + 1024


def test_an_op_of_indices_is_decided_without_devices():
    # What is deferred is planned on a mesh that nobody has.
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((4, 4), ("x", "y")))
    layout = gl.GridLayout((1 << 10, 1 << 10), grid=(4, 4))
    fn = gl.on_grid(lambda x, key: x + jax.random.normal(key, x.shape), device=device)
    report = fn.report(layout, KEY)
    assert report.bytes_moved == 0
    assert report.peak_bytes < 3 * 4 << 17
