"""Primitives along some dims, against JAX's on plain arrays; what is unsharded does not move."""

import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from deciding import Compiled, Traced
from devices import turn as device_of
from hlo import collectives
from jax import lax
from laid_out import assert_same, choices, poisoned
from machines import FAST
from tiers import few

import gridlayout as gl
from gridlayout.caching import drop_all
from gridlayout.ops.primitives import fourier
from gridlayout.sharding.limits import LIMITS

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,))
A, B, C = (5, 7), (7, 4), (3, 4, 5)
ROWS = np.array([[1, 2, -1], [4, 0, 3]])


def example(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def row_of(k):
    return lambda x: lax.dynamic_index_in_dim(x, jnp.int32(k), 0)


CASES = {
    "cumsum": (lambda x: jnp.cumsum(x, 0), [A]),
    "cumprod": (lambda x: jnp.cumprod(x, 1), [A]),
    "cummax backward": (lambda x: lax.cummax(x, 1, reverse=True), [A]),
    "cummin": (lambda x: lax.cummin(x, 0), [C]),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 2), [C]),
    "sort": (lambda x: jnp.sort(x, 0), [A]),
    "sort pairs": (lambda x, y: lax.sort((x, y), dimension=0, num_keys=1), [A, A]),
    "argsort": (lambda x: jnp.argsort(x, 1, descending=True), [A]),
    "median": (lambda x: jnp.median(x, 0), [A]),
    "top_k": (lambda x: lax.top_k(x, 3), [A]),
    "flip": (lambda x: jnp.flip(x, 0), [A]),
    "flip two of three": (lambda x: jnp.flip(x, (0, 2)), [C]),
    "roll": (lambda x: jnp.roll(x, 2, 1), [A]),
    "concatenate": (lambda x, y: jnp.concatenate([x, y, x], 1), [A, A]),
    "concatenate a constant": (lambda x: jnp.concatenate([x, jnp.ones((2, 7))]), [A]),
    "concatenate a broadcast": (
        lambda x: jnp.concatenate([x, jnp.broadcast_to(x.sum(1)[:, None], (5, 2))], 1),
        [A],
    ),
    "stack": (lambda x, y: jnp.stack([x, y], 1), [A, A]),
    "unstack": (lambda x: jnp.unstack(x, axis=1), [C]),
    "split": (lambda x: jnp.split(x, [2, 3], axis=1), [A]),
    "thirds": (lambda x: jnp.split(x, 3, axis=1), [(5, 12)]),
    "halves of rows": (lambda x: jnp.split(x, 2, axis=1), [(3, 8, 5)]),
    "join equal parts": (lambda x, y: jnp.concatenate([x, y, 2 * x], 1), [(5, 4), (5, 4)]),
    "join with a broadcast": (
        lambda x: jnp.concatenate([x, jnp.broadcast_to(x.sum(1)[:, None], x.shape)]),
        [A],
    ),
    "pad": (lambda x: jnp.pad(x, ((0, 0), (2, 3)), constant_values=4), [A]),
    "pad and crop": (lambda x: lax.pad(x, -1.0, ((-1, 0, 0), (0, 2, 0), (0, 0, 0))), [C]),
    "pad between": (lambda x: lax.pad(x, -1.0, ((1, 0, 2), (0, 0, 0))), [A]),
    "slice": (lambda x: x[:, 1:6:2], [A]),
    "slice two of three": (lambda x: x[1:, :, 2:], [C]),
    "index": (lambda x: x[:, 2], [C]),
    "dynamic slice": (row_of(3), [A]),
    "dynamic slice, clamped": (row_of(9), [A]),
    "dynamic update": (
        lambda x: lax.dynamic_update_slice(x, jnp.full((5, 2), 3.0), (0, jnp.int32(4))),
        [A],
    ),
    "rows of a table": (lambda x: jnp.take(x, ROWS, axis=0), [A]),
    "columns of a table": (lambda x: jnp.take(x, ROWS[0], axis=1), [A]),
    "rows out of bounds": (lambda x: jnp.take(x, jnp.array([0, 99]), axis=0), [A]),
    "rows at computed places": (lambda x, y: x[jnp.argmax(y, 0)], [A, A]),
    "write rows": (lambda x: x.at[jnp.array([0, 2])].set(9.0), [A]),
    "write the inside": (lambda x, y: x.at[1:-1].set(y[2:]), [A, A]),
    "add to the inside": (lambda x, y: x.at[1:-1, 2:].add(y[:3, 1:6]), [A, A]),
    "multiply a row": (lambda x, y: x.at[3].multiply(y[0]), [A, A]),
    "least of a column": (lambda x, y: x.at[:, -1].min(y[:, 0]), [A, A]),
    "write planes": (lambda x: x.at[:, 1].set(2.0).at[:, :, 1:3].max(0.0), [C]),
    "set an element": (lambda x: x.at[2, 3].set(7.0).at[4, 6].subtract(1.0), [A]),
    "write all": (lambda x, y: (x.at[:].max(y), x.at[...].add(y[0]), x.at[:].set(y)), [A, A]),
    "write outside": (lambda x: x.at[9].set(7.0).at[-9, 0].add(1.0), [A]),
    "slice at known places": (lambda x: lax.dynamic_slice(x, (3, 2), (4, 3)), [A]),
    "update at known places": (
        lambda x, y: lax.dynamic_update_slice(x, y[1:4, :2], (3, 6)),
        [A, A],
    ),
    "add to rows": (lambda x: x.at[jnp.array([0, 2, 0])].add(x[1:4]), [A]),
    "largest of rows": (lambda x, y: x.at[jnp.array([1, 1])].max(y[:2]), [A, A]),
    "along an axis": (lambda x, y: jnp.take_along_axis(x, jnp.argsort(y, 1), 1), [A, A]),
    "rows of each": (lambda x: jax.vmap(lambda a, k: a[k])(x, np.array([[1], [0], [3]])), [C]),
    "rows of a table, one by one": (
        lambda x: jax.vmap(jax.vmap(lambda k: lax.dynamic_index_in_dim(x, k, 0, False)))(ROWS % 5),
        [A],
    ),
    "write rows, one by one": (
        lambda x, y: jax.vmap(lambda k: lax.dynamic_update_index_in_dim(x, y[k], k, 0))(ROWS[1]),
        [A, A],
    ),
    "elements": (lambda x: x[jnp.arange(5), jnp.array([3, 0, 6, 1, 3])], [A]),
    "elements of each": (lambda x: x[ROWS % 5, ROWS[:, :1] + 1, 2], [(5, 7, 3)]),
    "elements of a vector": (lambda x: x[ROWS], [(9,)]),
    "elements that are named twice": (lambda x, y: x[jnp.argmax(y, 0) % 3, ROWS[0]], [A, (4, 3)]),
    "elements out of bounds": (lambda x: x.at[jnp.array([4, 5, -9]), 1].get(mode="fill"), [A]),
    "elements, clipped": (lambda x: x.at[jnp.array([4, 5, -9]), 1].get(mode="clip"), [A]),
    "integers out of bounds": (
        lambda x: (x * 9).astype("int8").at[ROWS, 9].get(mode="fill"),
        [A],
    ),
    "bits out of bounds": (lambda x: (x > 0).at[ROWS, ROWS].get(mode="fill"), [A]),
    "complex elements": (lambda x: (x + 1j * x)[ROWS[0], ROWS[0]], [A]),
    "small integers for elements": (
        lambda x: x.at[ROWS[:, 0].astype("uint8"), jnp.uint8(200)].get(mode="clip"),
        [(5, 300)],
    ),
    "a small table": (lambda x, y: x[jnp.argmax(y, 1)], [(9,), (40, 7)]),
    "one element": (lambda x: x[2, jnp.int32(3)] * x, [A]),
    "some elements": (lambda x: lax.dynamic_slice(x, (jnp.int32(5),), (6,)), [(9,)]),
    "write an element": (
        lambda x: lax.dynamic_update_slice(x, jnp.full((1, 1), 2.0), (3, jnp.int32(-1))),
        [A],
    ),
    "all of it": (lambda x: lax.dynamic_slice(x, (jnp.int32(1), jnp.int32(0)), A) * 2, [A]),
    "write all of it": (
        lambda x, y: lax.dynamic_update_slice(x, y, (jnp.int32(1), jnp.int32(-4))),
        [A, A],
    ),
    "at one computed place": (lambda x, y: x[jnp.argmax(y, 1)[:1], jnp.argmin(y, 1)[:1]], [A, A]),
    "pairs at joined places": (
        lambda x, i: lax.gather(
            x,
            (jnp.abs(i) * 4).astype("int32"),
            lax.GatherDimensionNumbers((1,), (), (0,)),
            (8,),
            mode="clip",
        ),
        [(8,), (4, 2, 1)],
    ),
    "write some elements": (
        lambda x: lax.dynamic_update_slice(x, x[:2] * 2, (jnp.int32(5),)),
        [(9,)],
    ),
    "add to elements": (lambda x: x.at[jnp.arange(5), ROWS[0, 0]].add(2.0), [A]),
    "add elements": (lambda x, y: x.at[ROWS[0], ROWS[1]].add(y[0, :3]), [A, A]),
    "add out of bounds": (lambda x: x.at[jnp.array([1, 8, 1]), 2].add(5.0), [A]),
    "write elements": (lambda x: x.at[jnp.arange(5), jnp.arange(5)].set(0), [A]),
    "largest elements": (lambda x, y: x.at[ROWS[:, 0]].max(y[0, :2]), [(9,), A]),
    "a histogram": (lambda x: jnp.zeros(6).at[jnp.argmax(x, 1) % 6].add(1.0), [A]),
    "a histogram of many": (
        lambda x: jnp.zeros((2, 3)).at[jnp.argmax(x, 1) % 3 - 1, jnp.argmax(x, 1) % 4].add(x[:, 0]),
        [(30, 7)],
    ),
    "counts": (lambda x: jnp.bincount(jnp.argmax(x, 1) % 5, length=5), [(61, 7)]),
    "sums of segments": (
        lambda x: jax.ops.segment_sum(x, jnp.arange(40) // 9 % 4, 3, mode="clip"),
        [(40,)],
    ),
    "scale elements": (lambda x: x.at[ROWS].multiply(3.0), [(9,)]),
    "slice all": (lambda x: x[1:4, 2:], [A]),
    "pad all": (lambda x: jnp.pad(x, 1), [A]),
    "tile": (lambda x: lax.tile(x, (1, 3)), [A]),
    "fft": (lambda x: jnp.abs(jnp.fft.rfft(x)), [A]),
    "fft of all": (lambda x: jnp.abs(jnp.fft.fft2(x)), [A]),
    "rfft of all": (lambda x: jnp.abs(jnp.fft.rfftn(x)), [C]),
    "ifft of all": (lambda x: jnp.abs(jnp.fft.ifft2(x + 1j)), [A]),
    "irfft of all": (lambda x: jnp.fft.irfftn(x + 1j * x), [C]),
    "block": (lambda x: lax.dynamic_slice(x, (jnp.int32(2), jnp.int32(6)), (2, 4)), [A]),
    "most of it": (lambda x: lax.dynamic_slice(x, (jnp.int32(2), jnp.int32(1)), (4, 6)), [A]),
    "write a block": (
        lambda x, y: lax.dynamic_update_slice(x, y[:2, 3:], (jnp.int32(9), jnp.int32(1))),
        [A, A],
    ),
    "add to a block": (lambda x: x.at[1:3, 2:5].add(x[:2, :3]), [A]),
    "write columns out of bounds": (
        lambda x: x.at[jnp.array([1, 7])[:, None], jnp.array([2, 3])].set(1.0),
        [A],
    ),
    "one hot": (lambda x: jax.nn.one_hot(jnp.argmax(x, 1), 7) @ x.T, [A]),
}


# A function whose kinds of steps others have compiled is not compiled; those of indices out of
# bounds are, since kinds do not tell bounds apart.
SEEN = Compiled(together=True)
BEYOND = ("out of", "outside", "clip", "clamp")


@pytest.mark.few(26)
@pytest.mark.parametrize("name", CASES)
def test_they_are_jaxs_on_every_layout(name):
    alone = tiers.ALL or any(part in name for part in BEYOND)
    assert_is_jaxs(name, Compiled() if alone else SEEN)


def assert_is_jaxs(name, compiled):
    """What is decided of a function is sound on every layout, what is compiled gives JAX's."""
    fn, shapes = CASES[name]
    arrays = [example(shape, k) for k, shape in enumerate(shapes)]
    traced = Traced(fn, arrays)
    number = list(CASES).index(name)
    for n, layouts in enumerate(choices(shapes, 20 if tiers.ALL else 4, number)):
        device = device_of(DEVICE, number + n)
        if compiled.is_new(name, traced.kinds(layouts, device, name)):
            laid = [poisoned(a, layout, device) for a, layout in zip(arrays, layouts, strict=True)]
            expected = jax.jit(fn)(*map(jnp.asarray, arrays))
            assert_same(jax.jit(gl.on_grid(fn))(*laid), expected, rtol=2e-5)


def test_rows_that_are_aligned_meet_tiles_that_are_not():
    fn, _ = CASES["at one computed place"]
    arrays = [example(A, k) for k in range(2)]
    layouts = (
        gl.GridLayout(A, "float32", grid=(2, 4), row_alignment=16),
        gl.GridLayout(A, "float32", grid=(2, 1), tile=(4, 8), face=(2, 4)),
    )
    laid = [poisoned(a, each, DEVICE) for a, each in zip(arrays, layouts, strict=True)]
    assert_same(gl.on_grid(fn)(*laid), fn(*map(jnp.asarray, arrays)))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("fft of all")])
def test_transforms_of_what_is_not_small(name, monkeypatch):
    # Dim after dim, as of arrays that are too large to be whole on every device.
    monkeypatch.setattr(fourier, "LIMITS", replace(LIMITS, small_bytes=0))
    drop_all()
    try:
        assert_is_jaxs(name, Compiled())
        fn, shapes = CASES[name]
        layout = gl.GridLayout(shapes[0], "float32", grid=(2, 4))
        eight = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
        rows = gl.on_grid(fn, eight).report(layout).rows
        assert [len(row.collectives) > 2 for row in rows if row.primitive == "fft"] == [True]
    finally:
        drop_all()


@pytest.mark.parametrize("tile", [None, (4, 4)])
@pytest.mark.parametrize("parts", [2, 3, 8])
def test_equal_parts_go_in_one_move(parts, tile):
    # What a device has already of its parts does not move; nothing moves twice.
    mesh = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    whole = gl.GridLayout((64, 32 * parts), grid=(2, 4), tile=tile)
    part = gl.GridLayout((64, 32), grid=(2, 4), tile=tile)
    stays = sum(k // parts == k % 4 for k in range(4 * parts)) / (4 * parts)
    cut = gl.on_grid(lambda x: jnp.split(x, parts, axis=1), mesh).report(whole)
    joined = gl.on_grid(lambda *x: jnp.concatenate(x, axis=1), mesh).report(*[part] * parts)
    assert cut.bytes_moved == joined.bytes_moved == 4 * whole.size * (1 - stays)
    (row,), (other,) = cut.rows, joined.rows
    assert [out.same_physical(part) for out in row.outputs] == [True] * parts
    assert other.outputs[0].same_physical(whole)


@pytest.mark.few(32)
@pytest.mark.parametrize("name", CASES)
def test_they_run_by_rules(name):
    fn, shapes = CASES[name]
    laid = [gl.put(example(s), gl.GridLayout(s, grid=(2, 4), tile=(2, 2)), DEVICE) for s in shapes]
    assert gl.on_grid(fn).report(*laid).fallbacks == ()


SMOOTH = ("cumsum", "sort", "concatenate", "pad", "slice", "rows of a table", "add to rows", "roll")
SMOOTH += (
    "rows of a table, one by one",
    "along an axis",
    "rows of each",
    "elements",
    "elements of a vector",
    "elements of each",
    "a small table",
    "add elements",
    "write elements",
    "slice all",
    "pad all",
    "tile",
    "fft",
)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", few(SMOOTH, 5))
def test_their_gradients_are_jaxs(name):
    fn, shapes = CASES[name]
    arrays = [example(shape, k) for k, shape in enumerate(shapes)]

    def loss(*arrays):
        return sum(jnp.sum(jnp.sin(out)) for out in jax.tree.leaves(fn(*arrays)))

    expected = jax.jit(jax.grad(loss))(*map(jnp.asarray, arrays))
    (layouts,) = choices(shapes, 1, list(CASES).index(name))
    laid = [poisoned(a, layout, DEVICE) for a, layout in zip(arrays, layouts, strict=True)]
    assert_same(jax.jit(jax.grad(gl.on_grid(loss)))(*laid), expected, rtol=1e-4, atol=1e-5)


ALONE = [name for name, (_, shapes) in CASES.items() if shapes == [A]]


@pytest.mark.few(12)
@pytest.mark.parametrize("name", ALONE)
def test_what_lies_whole_stays(name):
    # Dim 0 or dim 1 whole on each core, as the case needs it: no byte goes to another device.
    fn, _ = CASES[name]
    parts = ("element", "s out of bounds", "add out of bounds", "of all", "block")
    moves = tuple(name for name in CASES if any(part in name for part in parts))
    moves = tuple(name for name in moves if name != "rows out of bounds")
    moves += (
        "a histogram",
        "most of it",
        "at one computed place",
        "one hot",
        "median",
        "concatenate a broadcast",
        "join with a broadcast",
        "slice at known places",
        "slice all",
        "pad all",
    )
    # Indices, which are laid out too, are gathered.
    moving = r"= (?!s32)\S* (all-gather|all-to-all|all-reduce|collective-permute)\("
    free = []
    for axis, grid in [(0, (1, COUNT)), (1, (1, COUNT))]:
        linear = "(d0, d1) -> (d0, d1)" if axis == 0 else "(d0, d1) -> (d1, d0)"
        layout = gl.GridLayout(A, grid=grid, linear=linear)
        free.append(gl.on_grid(fn, DEVICE).report(layout).bytes_moved == 0)
        if name in few(ALONE, 3) or not (free[-1] or name in moves):
            x = gl.put(example(A), layout, DEVICE)
            text = jax.jit(gl.on_grid(fn)).lower(x).compile().as_text()
            free[-1] = re.search(moving, text) is None
    assert any(free) or name in moves


VECTORS = {
    "cumsum": jnp.cumsum,
    "cumprod backward": lambda x: lax.cumprod(x, reverse=True),
    "cummax": lax.cummax,
    "cummin backward": lambda x: lax.cummin(x, reverse=True),
    "cumlogsumexp": lax.cumlogsumexp,
    "top_k": lambda x: lax.top_k(x, 3),
    "all of top_k": lambda x: lax.top_k(jnp.round(x), 9),
    "slice": lambda x: x[2:8],
    "slice by threes": lambda x: x[1::3],
    "one element": lambda x: x[7:8],
    "split": lambda x: jnp.split(x, [2, 3, 8]),
    "thirds": lambda x: jnp.split(x, 3),
    "pad": lambda x: lax.pad(x, jnp.float32(2), [(3, 1, 0)]),
    "pad inside and drop": lambda x: lax.pad(x, x.max(), [(-2, 4, 2)]),
    "drop both ends": lambda x: lax.pad(x, jnp.float32(0), [(-1, -3, 0)]),
    "concatenate": lambda x: jnp.concatenate([x[3:], x, jnp.arange(4.0), 2 * x[:1]]),
    "rev": lambda x: x[::-1],
    "roll": lambda x: jnp.roll(x, 4),
    "differences": lambda x: jnp.diff(x),
    "tile": lambda x: lax.tile(x, (4,)),
    "bools": lambda x: jnp.where(jnp.concatenate([(x > 0)[1:], (x > 1)[:1]]), x, x[::-1]),
    "write a part": lambda x: x.at[2:6].set(x[:4] * 2),
    "add to a part": lambda x: x.at[1:].add(x[:-1]),
    "parts at indices": lambda x: jax.vmap(lambda k: lax.dynamic_slice(x, (k,), (2,)))(ROWS[0]),
}

SMOOTH_VECTORS = [name for name in VECTORS if "cum" not in name and "top_k" not in name]


def both(fns, x):
    """What functions give of an array, as one program."""
    return jax.jit(lambda x: [fn(x) for fn in fns])(x)


@pytest.mark.few(7)
@pytest.mark.parametrize("name", VECTORS)
def test_along_the_only_dim(name):
    fn = VECTORS[name]
    every = list(choices([(9,)], 3, list(VECTORS).index(name)))
    for (layout,) in every:
        assert gl.on_grid(fn, DEVICE).report(layout).fallbacks == ()
    for (layout,) in few(every, 1):
        x = poisoned(example((9,)), layout, DEVICE)

        def loss(x, fn=fn):
            return sum(jnp.sum(jnp.sin(out)) for out in jax.tree.leaves(fn(x)))

        if name in SMOOTH_VECTORS:
            assert gl.on_grid(jax.grad(loss)).report(x).fallbacks == ()
        fns = [fn, jax.grad(loss)] if name in few(SMOOTH_VECTORS, 8) else [fn]
        around = [gl.on_grid(fn), jax.grad(gl.on_grid(loss))]
        found, expected = both(around[: len(fns)], x), both(fns, example((9,)))
        for f, w, rtol in zip(found, expected, [2e-5, 1e-5][: len(fns)], strict=True):
            assert_same(f, w, rtol=rtol)


@pytest.mark.few(2)
@pytest.mark.parametrize("n", [8, 9, 61, 128])
def test_vectors_are_cut_and_joined_on_grids_of_any_size(n):
    x = np.arange(1.0, n + 1, dtype=np.float32)
    layouts = [
        gl.GridLayout((n,), grid=(4,)),
        gl.GridLayout((n,), grid=(5,)),
        gl.GridLayout((n,), grid=(3, 4)),
        gl.GridLayout((n,), grid=(2, 4), tile=(4, 8)),
        gl.GridLayout((n,), grid=(17,)),
        gl.GridLayout((n,), grid=(2,), linear="(d0) -> (d0 * 3 + 1)"),
    ]

    def fn(x):
        cut = (x[n // 2 :], x[1:-1], x[::2], x[::-1])
        joined = jnp.concatenate([x, x[: n // 3], x])
        return cut, joined, lax.pad(x, jnp.float32(-7), [(n, 3, 1)])

    for layout in layouts:
        assert gl.on_grid(fn, DEVICE).report(layout).fallbacks == ()
    for layout in few(layouts[n % 3 :] + layouts[: n % 3], 1):
        laid = poisoned(x, layout, DEVICE)
        assert_same(jax.jit(gl.on_grid(fn))(laid), fn(jnp.asarray(x)), rtol=0)


def test_a_slice_of_a_vector_asks_the_neighbours_only():
    n = 16 * COUNT
    x = gl.put(
        example((n,)), gl.GridLayout((n,), grid=(COUNT,)), gl.DeviceGrid(DEVICE.mesh, machine=FAST)
    )
    fn = gl.on_grid(lambda x: x[1:])
    assert fn.report(x).bytes_moved == (COUNT - 1) * 4
    text = jax.jit(fn).lower(x).compile().as_text()
    assert sum(moved for _, moved in collectives(text, COUNT)) == (COUNT - 1) * 4


def test_along_the_only_dim_devices_share_totals_and_candidates():
    n = 16 * COUNT
    x = gl.put(example((n,)), gl.GridLayout((n,), grid=(COUNT,)), DEVICE)
    for fn, sent in [(jnp.cumsum, 4), (lambda x: lax.top_k(x, 3), 3 * (4 + 4))]:
        report = gl.on_grid(fn).report(x)
        assert report.bytes_moved == COUNT * (COUNT - 1) * sent
        text = jax.jit(gl.on_grid(fn)).lower(x).compile().as_text()
        assert sum(moved for _, moved in collectives(text, COUNT)) == report.bytes_moved


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int8", "uint8"])
def test_the_greatest_of_a_vector_are_jaxs(kind):
    """Padding is never among them, not even behind the last of all numbers, which it equals."""
    dtype, n = jnp.dtype(kind), 8 * COUNT + 3
    x = np.asarray(np.random.default_rng(0).integers(-3, 4, n), np.int8).astype(dtype)
    if kind in ("int8", "uint8"):
        x[::5] = jnp.iinfo(dtype).min
    else:
        x[::7], x[1::5], x[5], x[6] = np.nan, -0.0, np.inf, -np.inf
        x[2::9] = np.full((), -1, f"i{dtype.itemsize}").view(dtype)  # a negative NaN
    laid = poisoned(x, gl.GridLayout((n,), kind, grid=(COUNT,)), DEVICE)
    for k in (1, 3, n):
        fn = lambda x, k=k: lax.top_k(x, k)  # noqa: E731
        report = gl.on_grid(fn).report(laid)
        assert [row.how for row in report.rows] == ["rule"]
        for found, expected in zip(gl.on_grid(fn)(laid), fn(x), strict=True):
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
    if kind == "float32" and DEVICE.platform == "cpu":
        few_of = gl.on_grid(lambda x: lax.top_k(x, 3))
        assert " sort(" not in few_of.lower(laid).compile().as_text()


def test_elements_at_indices_move_themselves_and_not_their_table():
    shape, n = (4 * COUNT, 4096), 4 * COUNT
    x = gl.put(example(shape), gl.GridLayout(shape, grid=(COUNT, 1)), DEVICE)
    fn = gl.on_grid(lambda x: x[np.arange(n), np.arange(n) % 64])
    assert fn.report(x).rows[-1].bytes_moved <= 2 * (COUNT - 1) * n * 4
    scattered = gl.on_grid(lambda x: x.at[np.arange(n), np.arange(n) % 64].add(1.0))
    assert scattered.report(x).rows[-1].bytes_moved == 0  # all devices have the indices


def test_many_elements_are_added_up_before_they_are_sent():
    n = 64 * COUNT
    x = gl.put(np.arange(n, dtype=np.int32) % 4, gl.GridLayout((n,), "int32", (COUNT,)), DEVICE)
    fn = gl.on_grid(lambda k: jnp.zeros(4, jnp.int32).at[k].add(k))
    assert fn.report(x).rows[-1].bytes_moved == 2 * (COUNT - 1) * 4 * 4
    np.testing.assert_array_equal(fn(x), np.bincount(np.arange(n) % 4, np.arange(n) % 4))


def test_elements_keep_their_bits():
    x = np.array([[-0.0, np.inf], [1e-40, np.nan]], np.float32).repeat(4, 0)
    laid = gl.put(x, gl.GridLayout(x.shape, grid=(4, 2)), DEVICE)
    found = gl.on_grid(lambda x: x[np.arange(8), np.arange(8) % 2])(laid)
    expected = x[np.arange(8), np.arange(8) % 2]
    assert np.asarray(found).tobytes() == expected.tobytes()
