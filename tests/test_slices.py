"""Slices taken and written: every way to do it gives JAX's results, and sends what it says.

Indices are out of bounds too, at both ends, and what lies in padding is poison, theirs as well.
"""

import itertools
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from deciding import every_way
from devices import turn as device_of
from hlo import OURS, compiled_collectives
from jax import lax
from jax.sharding import AbstractMesh
from laid_out import assert_same, choices, poisoned, read
from tiers import few, together

import gridlayout as gl
from gridlayout.ops.decisions.specs import Replicated

COUNT = len(jax.devices())
MESHES = [mesh for mesh in [(2, 4), (8,), (2, 2, 2), (4, 4), (3,), (1,)] if np.prod(mesh) <= COUNT]
FILL, CLIP = lax.GatherScatterMode.FILL_OR_DROP, lax.GatherScatterMode.CLIP
A, C, V = (5, 7), (3, 4, 5), (11,)
FEW = np.array([[3], [-2], [8], [1]], np.int32)
MANY = np.array([[[1], [2], [-1]], [[4], [0], [9]]], np.int32)
PAIRS = np.array([[1, 2], [4, 0], [2, 6], [-1, 3], [3, 3]], np.int32)


def numbers(shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def gather(dims, sizes, dropped=(), behind=None, mode=FILL):
    """Slices of `sizes` at indices of dims `dims`, their dims being the last ones of the result."""

    def fn(x, i):
        kept = x.ndim - len(dropped)
        offset = behind or tuple(range(i.ndim - 1, i.ndim - 1 + kept))
        how = lax.GatherDimensionNumbers(offset, dropped, dims)
        return lax.gather(x, i, how, sizes, mode=mode)

    return fn


def scatter(dims, dropped, how=lax.scatter, behind=None, mode=FILL):
    """Updates at indices of dims `dims`, the dims of a slice being their last ones."""

    def fn(x, i, u):
        window = behind or tuple(range(i.ndim - 1, u.ndim))
        return how(x, i, u, lax.ScatterDimensionNumbers(window, dropped, dims), mode=mode)

    return fn


TAKEN = {
    "rows": (gather((0,), (1, 7), (0,)), [A, MANY]),
    "rows, clipped": (gather((0,), (1, 7), (0,), mode=CLIP), [A, FEW]),
    "columns": (gather((1,), (5, 1), (1,), behind=(0,)), [A, FEW]),
    "planes": (gather((1,), (3, 1, 5), (1,), behind=(0, 2)), [C, FEW]),
    "rows of planes": (gather((2, 0), (1, 4, 1), (0, 2)), [C, PAIRS]),
    "one row": (gather((0,), (1, 7), (0,)), [A, FEW[:1]]),
    "runs of rows": (gather((0,), (2, 7), mode=CLIP), [A, FEW]),
    "boxes of planes": (gather((2, 0), (2, 4, 3)), [C, PAIRS]),
    "elements": (gather((0,), (1,), (0,)), [V, MANY]),
    "elements of rows": (gather((0, 1), (1, 1), (0, 1)), [A, PAIRS]),
    "boxes": (gather((0, 1), (2, 3)), [A, PAIRS]),
}
WRITTEN = {
    "rows": (scatter((0,), (0,)), [A, np.array([[3], [9], [0]], np.int32), (3, 7)]),
    "rows, added": (scatter((0,), (0,), lax.scatter_add), [A, MANY, (2, 3, 7)]),
    "rows, least": (scatter((0,), (0,), lax.scatter_min, mode=CLIP), [A, FEW, (4, 7)]),
    "columns, added": (scatter((1,), (1,), lax.scatter_add, (0,)), [A, FEW, (5, 4)]),
    "planes, multiplied": (
        scatter((1,), (1,), lax.scatter_mul, (0, 2)),
        [C, FEW, (3, 4, 5)],
    ),
    "runs of rows, added": (scatter((0,), (), lax.scatter_add), [A, FEW, (4, 2, 7)]),
    "elements, added": (scatter((0,), (0,), lax.scatter_add), [V, FEW, (4,)]),
    "boxes, greatest": (scatter((0, 1), (), lax.scatter_max), [A, PAIRS, (5, 2, 3)]),
}


def at(*starts):
    """Starts of a slice, moved to where it fits."""
    return [np.array(start, np.int32) for start in starts]


def dynamic(sizes=None):
    if sizes is None:
        return lambda x, u, *starts: lax.dynamic_update_slice_p.bind(x, u, *starts)
    return lambda x, *starts: lax.dynamic_slice_p.bind(x, *starts, slice_sizes=sizes)


MOVED = {
    "a part of rows": (dynamic((2, 7)), [A, *at(3, 0)]),
    "a part of columns": (dynamic((5, 3)), [A, *at(0, 9)]),
    "a part of planes": (dynamic((2, 4, 1)), [C, *at(-1, 0, 3)]),
    "a box": (dynamic((2, 3)), [A, *at(3, 2)]),
    "a run": (dynamic((6,)), [V, *at(3)]),
    "update rows": (dynamic(), [A, (2, 7), *at(3, 0)]),
    "update columns": (dynamic(), [A, (5, 3), *at(0, 3)]),
    "update a box": (dynamic(), [A, (2, 3), *at(-3, 3)]),
    "update a run": (dynamic(), [V, (4,), *at(27)]),
}
ONE = np.array(1.5, np.float32)
PARTS = {
    "rows of it": (lambda x: lax.slice(x, (1, 0), (4, 7)), [A]),
    "a slice of both": (lambda x: lax.slice(x, (1, 2), (5, 6)), [A]),
    "every other one": (lambda x: lax.slice(x, (0, 1, 0), (3, 4, 5), (2, 2, 1)), [C]),
    "a slice of a vector": (lambda x: lax.slice(x, (2,), (11,), (3,)), [V]),
    "uneven split": (lambda x: lax.split(x, (1, 4, 2), 1), [A]),
    "split of a vector": (lambda x: lax.split(x, (5, 2, 4)), [V]),
    "reversed rows": (lambda x: lax.rev(x, (0,)), [A]),
    "all reversed": (lambda x: lax.rev(x, (0, 1, 2)), [C]),
    "padded": (lambda x, c: lax.pad(x, c, ((1, 2, 0), (0, 0, 0))), [A, ONE]),
    "padded between": (lambda x, c: lax.pad(x, c, ((0, 0, 0), (2, 1, 2))), [A, ONE]),
    "padded and cropped": (lambda x, c: lax.pad(x, c, ((-1, 3, 0), (2, -2, 0))), [A, ONE]),
    "cropped between": (lambda x, c: lax.pad(x, c, ((-2, 1, 1), (0, 0, 0))), [A, ONE]),
    "joined": (lambda x, y: lax.concatenate([x, y, x], 0), [A, (2, 7)]),
    "joined across": (lambda x, y: lax.concatenate([y, x], 2), [C, (3, 4, 1)]),
    "joined vectors": (lambda x, y: lax.concatenate([x, y], 0), [V, (6,)]),
}
CASES = PARTS | TAKEN | {f"write {name}": case for name, case in WRITTEN.items()} | MOVED


def physical(spec):
    """Where a result is, whatever describes it."""
    if isinstance(spec, Replicated):
        return None
    every = itertools.product(*map(range, spec.shape))
    return spec.placement, *(spec.layout.index_map(*index) for index in every)


def check(fn, given, seed):
    """Every way for operands that lie somewhere, against JAX, and what it says against XLA."""
    device = device_of(gl.DeviceGrid(MESHES[seed % len(MESHES)]), seed)
    arrays = [x if isinstance(x, np.ndarray) else numbers(x) for x in given]
    expected = jax.jit(fn)(*arrays)
    (layouts,) = choices([x.shape for x in arrays if x.ndim], 1, seed)
    places = iter(layouts)
    operands = [poisoned(x, next(places), device) if x.ndim else x for x in arrays]
    ways = list(every_way(fn, operands))
    for way, text, made in ways:
        where = f"{device}, {layouts}, {way.collectives}"
        assert way.how != "fallback", where
        for x, y in zip(made, jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6, err_msg=where)
        ours, theirs = Counter(), Counter()
        for each in way.collectives:
            ours[each.kind] += each.total_bytes
            theirs[each.kind] += each.receivers - 1  # bytes of a device are rounded up
        for kind, _, nbytes in compiled_collectives(text, device.size):
            theirs[OURS[kind]] += nbytes
        assert not ours - theirs, where  # the test besides makes the result whole
    places = {tuple(physical(spec) for spec in way.results) for way, *_ in ways}
    plain = not any("linear=" in repr(each) for each in layouts)
    if plain and all(sum(map(len, each.groups)) == len(each.shape) for each in layouts):
        assert len(places) == 1, f"{where}: ways place the results differently"
    return ways


@pytest.mark.few(14)
@pytest.mark.parametrize("seed", few(range(30), 1))
@pytest.mark.parametrize("case", CASES)
def test_every_way_to_take_and_to_write(case, seed):
    fn, given = CASES[case]
    assert check(fn, given, 7 * seed + list(CASES).index(case))


def test_a_dim_that_the_map_leaves_out_is_indexed():
    device = gl.DeviceGrid((min(COUNT, 8),))
    x = gl.put(numbers((1, 7)), gl.GridLayout((1, 7), grid=(4,), linear="(d0, d1) -> (d1)"), device)
    i = gl.put(FEW, gl.GridLayout(FEW.shape, "int32", grid=(2, 1)), device)
    fn = gather((0,), (1, 7), (0,))
    for way, _, (found,) in every_way(fn, [x, i]):
        expected = fn(jnp.asarray(np.asarray(x)), FEW)
        np.testing.assert_array_equal(found, expected, str(way.collectives))


# -- how little is sent ----------------------------------------------------------------------------

ROWS = gl.GridLayout((64, 32), grid=(8, 1))
BOTH = gl.GridLayout((64, 32), grid=(2, 4))
ROW, COLUMN = 32 * 4, 64 * 4  # bytes


@pytest.mark.parametrize(
    ("fn", "layout", "least"),
    [
        (lambda x: x[::2], ROWS, 0),
        (lambda x: x[32:], ROWS, 4 * 8 * ROW),
        (lambda x: x.at[1:-1].set(x[2:] + x[:-2]), ROWS, 7 * 2 * ROW),
        (lambda x: jnp.roll(x, 1, 0), ROWS, 8 * ROW),
        (lambda x: jnp.diff(x, axis=0), BOTH, ROW),
        (lambda x: x[1:, 1:] - x[:-1, :-1], BOTH, ROW + 3 * COLUMN),
        (lambda x: jnp.pad(x, ((0, 0), (1, 0))), BOTH, 3 * COLUMN),
    ],
)
def test_a_stencil_sends_what_lies_across_the_edges(fn, layout, least):
    """Not the array: what devices send is at most what their results are made of and they lack."""
    device = gl.DeviceGrid(AbstractMesh((2, 4), ("x", "y")))
    report = gl.on_grid(fn, device).report(layout)
    assert not report.fallbacks
    assert report.bytes_moved <= 2.5 * least


@pytest.mark.parametrize("mesh", few([(32, 16), (256, 128)], 1), ids=str)
def test_neighbours_of_many_devices_send_what_lies_across_the_edges(mesh):
    rows, columns = mesh
    device = gl.DeviceGrid(AbstractMesh(mesh, ("x", "y")))
    vector = gl.GridLayout((64 * device.size,), grid=(device.size,))
    report = gl.on_grid(lambda x: x[1:] - x[:-1], device).report(vector)
    assert report.bytes_moved == (device.size - 1) * 4
    matrix = gl.GridLayout((rows * 64, columns * 64), grid=mesh)
    report = gl.on_grid(lambda x: jnp.roll(x, 1, 0), device).report(matrix)
    assert report.bytes_moved == rows * columns * 64 * 4


V_, D_, T_ = 4096, 64, 128


@pytest.mark.parametrize(
    ("mesh", "table", "tokens", "least"),
    [
        # The indices to all, and to each its slices of the sum.
        ((8,), (8, 1), (8,), 7 * T_ * 4 + 7 * T_ * D_ * 4),
        # Columns stay where they are.
        ((2, 4), (2, 4), (8,), 7 * T_ * 4 + T_ * D_ * 4),
        ((8,), (1, 8), (8,), 7 * T_ * 4),
        # Indices stay spread over the devices that hold copies of the table.
        ((2, 4), (4, 1), (2,), 3 * T_ * D_ * 4 + 4 * T_ * D_ * 4),
    ],
)
def test_rows_of_a_table_are_sent_and_not_the_table(mesh, table, tokens, least):
    device = gl.DeviceGrid(AbstractMesh(mesh, ("x", "y")[: len(mesh)]))
    layouts = gl.GridLayout((V_, D_), grid=table), gl.GridLayout((T_,), "int32", tokens)

    def taken(table, tokens):
        return jnp.take(table, tokens, axis=0)

    def gradient(table, tokens):
        return jax.grad(lambda t: (taken(t, tokens) ** 2).sum())(table)

    for fn in (taken, gradient):
        rows = gl.on_grid(fn, device).report(*layouts).rows
        for name in ("gather", "scatter-add"):
            for row in (row for row in rows if row.primitive == name):
                assert row.how == "rule"
                assert row.bytes_moved <= least < V_ * D_ * 4


def test_both_parts_of_complex_slices_are_counted():
    """They are summed as floats, each part by a collective of its own."""
    device = gl.DeviceGrid(AbstractMesh((8,), ("x",)))
    layouts = gl.GridLayout((V_, D_), "complex64", (8, 1)), gl.GridLayout((T_,), "int32", (8,))
    report = gl.on_grid(lambda x, i: jnp.take(x, i, axis=0), device).report(*layouts)
    sums = [c for row in report.rows for c in row.collectives if c.kind == "reduce_scatter"]
    assert [each.received_bytes for each in sums] == [7 * T_ // 8 * D_ * 4] * 2


def test_a_cache_is_updated_where_it_lies():
    """One position of a sequence that is spread over devices, written and read back."""
    device = gl.DeviceGrid(AbstractMesh((2, 4), ("x", "y")))
    cache = gl.GridLayout((4, 512, 16), grid=(1, 8, 1), collapse=[])
    new = gl.GridLayout((4, 1, 16), grid=(1, 1, 1), collapse=[])

    def step(cache, new, i):
        cache = jax.lax.dynamic_update_slice_in_dim(cache, new, i, 1)
        return cache, jax.lax.dynamic_slice_in_dim(cache, i, 1, 1)

    index = jax.ShapeDtypeStruct((), np.int32)
    report = gl.on_grid(step, device).report(cache, new, index)
    assert report.bytes_moved <= 4 * 8 * new.nbytes


@pytest.mark.few(5)
@pytest.mark.parametrize(("shape", "grid"), [((1, 5), (1, 4)), ((8, 1), (8, 1)), ((9, 2), (4, 1))])
@pytest.mark.parametrize("fn", ["add", "set", "max", "get"])
def test_indices_out_of_bounds_of_a_dim_are_clipped_or_dropped_as_in_jax(shape, grid, fn):
    x = np.random.default_rng(0).normal(size=shape).astype("f4")
    laid = gl.put(x, gl.GridLayout(shape, "float32", grid, collapse=[]), gl.DeviceGrid((2, 4)))
    index = jnp.array([0, 1, 1, -1, 7, 50, -60])

    def run(x, dim, mode):
        where = (slice(None),) * dim + (index,)
        if fn == "get":
            return jax.grad(lambda x: (x.at[where].get(mode=mode) ** 2).sum())(x)
        return getattr(x.at[where], fn)(0.5, mode=mode)

    modes = ("promise_in_bounds", "clip", "drop" if fn != "get" else "fill")
    for ways in together(itertools.product((0, 1), modes), 6):

        def every(x, ways=ways):
            return {way: run(x, *way) for way in ways}

        found, expected = gl.on_grid(every)(laid), jax.jit(every)(jnp.asarray(x))
        for way in ways:
            assert_same(found[way], expected[way], rtol=1e-5)


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (0, 2)])
def test_an_array_that_is_broadcast_is_overwritten_as_a_whole(dims):
    shape = tuple((6, 5, 4)[d] for d in dims)
    x = np.random.default_rng(0).normal(size=shape).astype("f4")
    grid = tuple(min(n, 3) for n in shape)
    laid = gl.put(x, gl.GridLayout(shape, "float32", grid, collapse=[]), gl.DeviceGrid((2, 4)))

    def fn(x):
        wide = lax.broadcast_in_dim(x, (6, 5, 4), dims)
        return lax.dynamic_update_slice(wide, 2 * wide, (0, 0, 0)), wide

    for made, expected in zip(gl.on_grid(fn)(laid), fn(x), strict=True):
        assert (np.asarray(made) == np.asarray(expected)).all()


@pytest.mark.few(5)
@pytest.mark.parametrize("grid", [(8, 1), (5, 1), (2, 3)])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int32"])
def test_one_row_is_replaced_wherever_a_start_of_any_type_says(grid, dtype):
    x, row = (
        np.random.default_rng(k).normal(size=(n, 6)).astype("f4") for k, n in enumerate((300, 1))
    )
    laid = gl.put(x, gl.GridLayout(x.shape, "float32", grid, collapse=[]), gl.DeviceGrid((2, 4)))
    bounds = np.iinfo(dtype)

    def fn(x, start):
        return lax.dynamic_update_slice(x, jnp.asarray(row), (start, jnp.zeros_like(start)))

    on_grid = gl.on_grid(fn)
    for start in (0, 7, 120, 255, 299, 1000):
        if start <= bounds.max:  # NumPy judges: XLA of JAX 0.10 clamps narrow starts wrongly
            expected = x.copy()
            expected[min(start, 299)] = row[0]
            assert (np.asarray(on_grid(laid, np.array(start, dtype))) == expected).all(), start


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32"])
def test_starts_of_any_integer_type_are_clipped_in_that_type(dtype):
    x = numbers((16, 4))
    laid = gl.put(x, gl.GridLayout(x.shape, "float32", grid=(8, 1)), gl.DeviceGrid((2, 4)))
    bounds = np.iinfo(dtype)
    starts = np.array([2, 16, bounds.max, bounds.min], dtype)
    expected = x[np.clip(starts.astype(int), 0, 15)]
    found = gl.on_grid(gather((0,), (1, 4), (0,), mode=CLIP))(laid, starts[:, None])
    np.testing.assert_array_equal(np.asarray(found), expected)
    row = gl.on_grid(lambda x, at: lax.dynamic_slice(x, (at, jnp.zeros_like(at)), (1, 4)))
    for at, one in zip(starts, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(row(laid, at)), one[None])


@pytest.mark.few(1)
@pytest.mark.skipif(len(jax.devices()) < 8, reason="the mesh has 8 devices")
@pytest.mark.parametrize("grid", [(4, 1), (8, 1)])
def test_a_step_of_a_table_of_classes_adds_updates_where_they_fall(grid):
    device = gl.DeviceGrid((2, 4))
    random = np.random.default_rng(0)
    table = random.normal(size=(8191, 48)).astype("f4")
    tokens = random.integers(0, 8191, (8, 65)).astype(np.int32)
    tokens[0, :6] = 0, 8190, 2047, 2048, 1023, 1024  # the ends of blocks

    def step(table, tokens):
        def loss(table):
            scores = jnp.tanh(table[tokens[:, :-1]]) @ table.T
            own = jnp.take_along_axis(scores, tokens[:, 1:, None], -1)[..., 0]
            return (jax.nn.logsumexp(scores, -1) - own).mean()

        return table - 0.5 * jax.grad(loss)(table)

    laid = poisoned(table, gl.GridLayout(table.shape, "float32", grid, collapse=[]), device)
    rows = poisoned(tokens, gl.GridLayout(tokens.shape, "int32", (2, 1)), device)
    fn = gl.on_grid(step)
    expected = jax.jit(step)(table, tokens)
    np.testing.assert_allclose(read(fn(laid, rows)), expected, rtol=1e-5, atol=1e-6)
    # No device receives the scores' gradient: it has those of its own classes.
    rows = [row for row in fn.report(laid, rows).rows if row.primitive == "scatter-add"]
    (added,) = (row for row in rows if len(row.outputs[0].grid) > 2)
    assert added.outputs[0].grid[-1] > 1
    assert added.bytes_moved == 0


@pytest.mark.skipif(len(jax.devices()) < 8, reason="the mesh has 8 devices")
def test_a_step_of_a_table_of_classes_holds_its_scores_twice():
    device = gl.DeviceGrid((2, 4))

    def loss(table, tokens):
        scores = jnp.tanh(table[tokens[:, :-1]]) @ table.T
        own = jnp.take_along_axis(scores, tokens[:, 1:, None], -1)[..., 0]
        return (jax.nn.logsumexp(scores, -1) - own).mean()

    table = gl.GridLayout((8191, 48), "float32", (8, 1), collapse=[])
    tokens = gl.GridLayout((8, 65), "int32", (2, 1))
    fn = gl.on_grid(jax.value_and_grad(loss))
    given = [gl.put(np.zeros(x.shape, x.dtype), x, device) for x in (table, tokens)]
    held = fn.lower(*given).compile().memory_analysis().temp_size_in_bytes
    scores = 8 * 64 * 1024 * 4
    assert held < 2.5 * scores


@pytest.mark.skipif(len(jax.devices()) < 8, reason="the mesh has 8 devices")
@pytest.mark.parametrize("grid", [(8, 1), (2, 4)])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_extremes_of_segments_are_combined(grid, dtype):
    """Each device combines its own rows; padding and rows of no segment change nothing."""
    device, random = gl.DeviceGrid((2, 4)), np.random.default_rng(0)
    x = (100 * random.standard_normal((8209, 13))).astype(dtype)
    if dtype == "float32":
        x[7, 2] = np.nan
    own = random.integers(-1, 17, len(x)).astype(np.int32)
    laid = poisoned(x, gl.GridLayout(x.shape, dtype, grid, collapse=[]), device)
    rows = poisoned(own, gl.GridLayout(own.shape, "int32", grid[:1]), device)

    def extremes(x, own):
        start = jnp.full((16, 13), 50, x.dtype)
        return jax.ops.segment_max(x, own, 16), start.at[own].min(x, mode="drop")

    fn = gl.on_grid(extremes)
    assert_same(fn(laid, rows), extremes(x, own))
    received = fn.report(laid, rows).bytes_moved / device.size
    assert received < 5 * 16 * 13 * 4


@pytest.mark.skipif(len(jax.devices()) < 8, reason="the mesh has 8 devices")
@pytest.mark.parametrize("grid", [(8, 1), (2, 4)])
def test_rows_of_segments_that_are_padding_are_dropped_by_their_indices(grid):
    """So no device writes its rows once more with zeros in their padding."""
    device, random = gl.DeviceGrid((2, 4)), np.random.default_rng(0)
    x, own = random.standard_normal((509, 507), np.float32), random.integers(0, 16, 509, np.int32)
    laid = poisoned(x, gl.GridLayout(x.shape, grid=grid, collapse=[]), device)
    rows = poisoned(own, gl.GridLayout(own.shape, "int32", grid[:1]), device)
    fn = gl.on_grid(lambda x, own: jax.ops.segment_sum(x, own, 16))
    assert_same(fn(laid, rows), jax.ops.segment_sum(x, own, 16))
    held = fn.lower(laid, rows).compile().memory_analysis().temp_size_in_bytes
    assert held < laid.layout.bytes_per_core / 3


@pytest.mark.skipif(len(jax.devices()) < 8, reason="the mesh has 8 devices")
@pytest.mark.parametrize("grid", [(2, 4), (4, 1)])
def test_updates_without_an_index_are_added(grid):
    """All of them to the whole array, and no padding."""
    device, dims = gl.DeviceGrid((2, 4)), lax.ScatterDimensionNumbers((1,), (), ())
    x, new = np.ones(5, np.float32), np.arange(35, dtype=np.float32).reshape(7, 5)
    laid = poisoned(new, gl.GridLayout(new.shape, grid=grid, collapse=[]), device)
    at = np.zeros((7, 0), np.int32)
    fn = gl.on_grid(lambda x, new: lax.scatter_add(x, at, new, dims))
    for given in (x, gl.put(x, gl.GridLayout((5,), grid=(1,)), device)):
        assert_same(fn(given, laid), x + new.sum(0))
