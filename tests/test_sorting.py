"""One vector in order: blocks merged by pairs of devices, bit by bit as JAX sorts it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from laid_out import is_grid, leaves, poisoned
from machines import FAST, with_latency
from tiers import few

import gridlayout as gl
from gridlayout.ops.primitives import sorting
from gridlayout.sharding.machines.default_machine import emulated

COUNT = len(jax.devices())
MESH = (2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,)
DEVICE = gl.DeviceGrid(MESH, machine=FAST)
RNG = np.random.default_rng(0)


def example(n, dtype="f4"):
    """Numbers with ties, both zeros, infinities, and NaNs of both signs."""
    x = np.round(RNG.normal(size=n) * 4).astype(dtype)
    if x.dtype.kind in "fc":
        x[::7], x[1::7], x[3::11], x[4::13], x[5] = 0.0, -0.0, np.nan, -np.nan, np.inf
    return x


def laid(x, device=DEVICE):
    return poisoned(x, gl.GridLayout(x.shape, x.dtype, grid=(3,)), device)


@pytest.fixture
def in_blocks(monkeypatch):
    """Vectors are sorted in blocks, whatever that takes."""
    if COUNT == 1:
        pytest.skip("one device has all")
    force = lambda b, op, ways, whole, *values: ways[0](b, op, *values)  # noqa: E731
    monkeypatch.setattr(sorting, "blocked_or_replicated", force)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 8, 13, 16, 31])
def test_rounds_sort_whatever_there_is(n):
    for _ in range(50):
        x = RNG.integers(0, 5, n)
        for pairs in sorting.merge_exchange(n):
            assert len({k for pair in pairs for k in pair}) == 2 * len(pairs)
            for i, j in pairs:
                x[i], x[j] = sorted((x[i], x[j]))
        assert (np.diff(x) >= 0).all()


KINDS = ("bool", "int8", "uint16", "float16", "bfloat16", "float8_e5m2", "float8_e4m3fn")


@pytest.mark.parametrize("kind", KINDS)
def test_padding_has_keys_that_come_last(kind):
    dtype = jnp.dtype(kind)
    every = np.arange(2 if kind == "bool" else 2 ** (8 * dtype.itemsize)).astype("u2")
    every = every.astype(f"u{dtype.itemsize}").view(dtype)
    last = jnp.asarray([sorting.greatest(dtype)])
    kept = lax.sort((jnp.concatenate([last, every]), np.arange(len(every) + 1)), num_keys=1)[0][-1:]
    np.testing.assert_array_equal(kept.astype("f4"), last.astype("f4"))


SORTS = {
    "stable": lambda x, y: (jnp.sort(x), jnp.argsort(x)),
    "several": lambda x, y: lax.sort((x, y, jnp.arange(len(x))), num_keys=2),
    "descending": lambda x, y: jnp.sort(x, descending=True) + 0 * y,
    "integers": lambda x, y: jnp.sort(jnp.nan_to_num(y).astype(int)),
    "greatest": lambda x, y: lax.sort((jnp.where(x > 1, 127, 5).astype("i1"), y), num_keys=1),
    "truth values": lambda x, y: lax.sort((x > 1, y > 1, y), num_keys=2),
    "complex": lambda x, y: lax.sort(lax.complex(x, y)),
    "halves": lambda x, y: lax.sort((y.astype(jnp.bfloat16), x), num_keys=1),
    # An unstable sort may order equal keys in any way: without signs, equal keys have equal bits.
    "unstable": lambda x, y: lax.sort(jnp.abs(y).astype(jnp.bfloat16), is_stable=False),
}


@pytest.mark.few(1)
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("name", few(SORTS, 3))
@pytest.mark.parametrize("n", few([COUNT * 5 + 3, COUNT * 4, COUNT + 1], 1))
def test_one_vector_is_sorted_as_jax_sorts_it(name, n):
    x, y = example(n), example(n)
    fn = gl.on_grid(SORTS[name])
    rows = [row for row in fn.report(laid(x), laid(y)).rows if row.primitive == "sort"]
    assert rows
    assert all(row.how == "rule" and "merged in" in row.note for row in rows)
    found, expected = fn(laid(x), laid(y)), jax.jit(SORTS[name])(x, y)
    for f, w in zip(leaves(found), jax.tree.leaves(expected), strict=True):
        assert is_grid(f)
        assert np.asarray(f).tobytes() == np.asarray(w).tobytes()


@pytest.mark.usefixtures("in_blocks")
def test_a_vector_that_does_not_divide_sends_what_others_do():
    sizes = 100 * COUNT, 100 * COUNT - 3
    rows = [gl.on_grid(jnp.sort).report(laid(np.zeros(n, np.float32))).rows[-1] for n in sizes]
    assert [row.primitive for row in rows] == ["sort", "sort"]
    assert rows[1].bytes_moved <= 1.01 * rows[0].bytes_moved


@pytest.mark.usefixtures("in_blocks")
def test_the_gradient_of_a_sorted_vector_is_jaxs():
    x = RNG.normal(size=4 * COUNT + 1).astype("f4")
    loss = lambda x: (jnp.sort(x) * jnp.arange(len(x))).sum()  # noqa: E731
    found = jax.grad(gl.on_grid(loss))(laid(x))
    np.testing.assert_allclose(np.asarray(found), jax.grad(loss)(x))


def test_the_machine_says_which_vectors_are_sorted_in_blocks():
    many = gl.DeviceGrid(jax.sharding.AbstractMesh((8, 8), ("x", "y")))
    fn = gl.on_grid(jnp.sort, many)
    (row,) = fn.report(gl.GridLayout((1 << 20,), grid=(64,))).rows[-1:]
    assert row.how == "rule"
    assert row.collectives[0].kind == "permute"
    assert sum(c.received_bytes for c in row.collectives) < 4 * (1 << 20)
    slow = gl.DeviceGrid(MESH, machine=with_latency(1.0))
    (row,) = gl.on_grid(jnp.sort).report(laid(example(50), slow)).rows[-1:]
    assert (row.how, row.note) == (
        "fallback",
        "one vector; merging blocks would take longer",
    )


def test_columns_beside_which_devices_have_copies_are_divided_to_be_sorted():
    # Sorting takes longer than moving: no two devices sort the same column.
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")), machine=emulated(8))
    layout = gl.GridLayout((512, 512), "float32", grid=(2, 4), collapse=[])
    report = gl.on_grid(lambda x: jnp.median(x, 0), device).report(layout)
    (row,) = [row for row in report.rows if row.primitive == "sort"]
    assert row.outputs[0].num_cores == 8
