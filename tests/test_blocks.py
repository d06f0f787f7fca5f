"""Blocks of uneven sizes: moves between them, reshapes to them, and what uneven arrays receive."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from deciding import every_way
from jax.sharding import AbstractMesh
from laid_out import poisoned, read

import gridlayout as gl
from gridlayout.ops.moves.relayout import find_move, offered_moves
from gridlayout.sharding.collectives import total_bytes
from gridlayout.sharding.machines.default_machine import emulated

N = len(jax.devices())
DEVICE = gl.DeviceGrid((2, N // 2) if N % 2 == 0 else (N,))
ROWS, COLUMNS = (N, 1), (1, N)
BLOCKS = (2, N // 2) if N % 2 == 0 else ROWS


def ways(a, b, device=DEVICE):
    """All moves that are offered between two layouts, by name."""
    places = [device.placement(layout.grid) for layout in (a, b)]
    return {move.how or "other": move for move in offered_moves(a, b, device, *places)}


def moved(x, a, b, way):
    """The array moved in one way, from storage whose padding is poisoned."""
    places = [DEVICE.placement(layout.grid) for layout in (a, b)]
    found = next(m for m in offered_moves(a, b, DEVICE, *places) if m.how == way)
    held = poisoned(x, a, DEVICE)

    def run(part):
        from gridlayout.ops.moves.lazy_view import LazyView

        return found.run(LazyView.of(part)).materialize()

    spread = jax.shard_map(
        run,
        mesh=DEVICE.fine,
        in_specs=DEVICE.sharding(a).spec,
        out_specs=DEVICE.sharding(b).spec,
        check_vma=False,
    )
    return read(gl.GridArray(jax.jit(spread)(held.storage), b, DEVICE))


@pytest.mark.few(2)
@pytest.mark.parametrize(("n", "shard"), [(53, 8), (53, 11), (97, 13), (1000, 126), (64, 9)])
def test_blocks_of_another_size_receive_the_borders(n, shard):
    if N == 1:
        pytest.skip("needs neighbours")
    x = np.arange(n * 5, dtype=np.float32).reshape(n, 5)
    even = gl.GridLayout(x.shape, grid=ROWS)
    stated = even.replace(shard_shape=(max(shard, -(-n // N)) + 1, None))
    for a, b in ((even, stated), (stated, even)):
        if "borders" in ways(a, b):
            np.testing.assert_array_equal(moved(x, a, b, "borders"), x)
        out = gl.relayout(poisoned(x, a, DEVICE), b)
        np.testing.assert_array_equal(read(out), x)


def test_long_dims_are_not_listed():
    device = gl.DeviceGrid(AbstractMesh((256,), ("x",)), machine=emulated(256))
    a = gl.GridLayout((10**9 + 1,), grid=(256,))
    b = a.replace(shard_shape=(a.shard_shape[0] + 3,))
    assert "borders" not in ways(a, b, device)


def test_borders_along_two_dims():
    if N < 4 or N % 2:
        pytest.skip("needs a grid of two dims")
    x = np.arange(53 * 63, dtype=np.int32).reshape(53, 63)
    a = gl.GridLayout(x.shape, "int32", grid=BLOCKS)
    b = a.replace(shard_shape=(a.shard_shape[0] + 2, a.shard_shape[1] + 1))
    for pair in ((a, b), (b, a)):
        np.testing.assert_array_equal(moved(x, *pair, "borders"), x)


PAIRS = [(BLOCKS, ROWS), (ROWS, BLOCKS), (ROWS, (2, 1)), ((2, 1), ROWS), (COLUMNS, (1, 2))]


@pytest.mark.few(4)
@pytest.mark.parametrize(("before", "after"), PAIRS)
@pytest.mark.parametrize("shape", [(109, 115), (101, 77)])
def test_blocks_are_aligned_before_they_move(before, after, shape):
    if N < 4 or N % 2:
        pytest.skip("needs a finer and a coarser division")
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    a, b = (gl.GridLayout(shape, grid=grid) for grid in (before, after))
    if "aligned" in ways(a, b):
        np.testing.assert_array_equal(moved(x, a, b, "aligned"), x)
    np.testing.assert_array_equal(read(gl.relayout(poisoned(x, a, DEVICE), b)), x)


def abstract():
    """A mesh of 2 x 4 devices, priced as the emulated ones."""
    mesh = AbstractMesh((2, 4), ("x", "y"))
    return gl.DeviceGrid(mesh, machine=emulated(8))


@pytest.mark.parametrize(
    ("before", "after"), [((2, 4), (8, 1)), ((8, 1), (2, 4)), ((2, 1), (8, 1)), ((8, 1), (2, 1))]
)
def test_an_uneven_array_receives_little_more_than_an_even_one(before, after):
    device, sent = abstract(), []
    for shape in ((512, 512), (509, 515)):
        a, b = (gl.GridLayout(shape, grid=grid) for grid in (before, after))
        move = find_move(a, b, device, device.placement(before), device.placement(after))
        sent.append(total_bytes(move.collectives))
    assert sent[1] <= 1.2 * sent[0] + 8 * 4096


RESHAPES = [
    ((53, 3, 5), (159, 5)),
    ((159, 5), (53, 3, 5)),
    ((53, 15), (795,)),
    ((795,), (53, 15)),
    ((7, 53, 4), (7, 212)),
    ((101, 6), (101, 2, 3)),
    ((50, 4, 3), (200, 3)),
]


@pytest.mark.parametrize(("shape", "new"), RESHAPES)
@pytest.mark.parametrize("d", [0, 1])
def test_reshapes_by_blocks_near_each_other(shape, new, d):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    if d >= len(shape):
        return
    grid = tuple(N if k == d else 1 for k in range(len(shape)))
    layout = gl.GridLayout(shape, grid=grid, collapse=[])
    out = gl.on_grid(lambda x: jnp.reshape(x, new))(poisoned(x, layout, DEVICE))
    np.testing.assert_array_equal(read(out), x.reshape(new))


@pytest.mark.few(2)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("shape", [(3, 61, 61, 2), (2, 17, 40, 1)])
def test_the_gradient_of_max_pooling_begins_where_windows_do(size, padding, shape):
    window = (1, size, size, 1)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)

    def loss(x):
        made = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, (1, 2, 2, 1), padding)
        return jnp.sum(jnp.sin(made))

    for grid in ((1, *BLOCKS, 1), (1, *ROWS, 1)):
        layout = gl.GridLayout(shape, grid=grid, collapse=[])
        out = gl.on_grid(jax.grad(loss))(poisoned(x, layout, DEVICE))
        np.testing.assert_allclose(read(out), jax.grad(loss)(x), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(N != 8 or DEVICE.platform != "cpu", reason="XLA's kernels for 8 CPUs")
def test_a_gradient_of_pooling_is_summed_once():
    """What is sent of it and what stays are read from one array."""

    def loss(x):
        window = (1, 2, 2, 1)
        return jnp.sum(jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "SAME") ** 2)

    read_bytes = []
    for n in (61, 64):
        x = np.ones((8, n, n, 16), np.float32)
        given = gl.put(x, gl.GridLayout(x.shape, grid=(1, 2, 4, 1), collapse=[]), DEVICE)
        cost = gl.on_grid(jax.grad(loss)).lower(given).compile().cost_analysis()
        read_bytes.append(cost["bytes accessed"])
    assert read_bytes[0] <= 4 * read_bytes[1]


def test_repeated_rows_stay_near():
    device = abstract()
    x = jax.ShapeDtypeStruct((509, 515), jnp.float32)
    for d, grid in ((0, (8, 1)), (1, (1, 8)), (0, (2, 4)), (1, (2, 4))):
        layout = gl.GridLayout(x.shape, grid=grid)
        report = gl.on_grid(lambda x, d=d: jnp.repeat(x, 3, d), device).report(layout)
        # A border of at most `parts` positions in each direction; the array has 1 MB.
        assert report.bytes_moved < 8 * 40_000, (d, grid, str(report))


def test_repeats_of_repeated_rows_send_nothing():
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    for other in (0, 1):
        fn = lambda x, d=other: jnp.repeat(jnp.repeat(x, 2, 0), 3, d)  # noqa: E731
        out = gl.on_grid(fn)(poisoned(x, gl.GridLayout(x.shape, grid=(2, 1)), DEVICE))
        np.testing.assert_array_equal(read(out), fn(x))
        report = gl.on_grid(fn, abstract()).report(gl.GridLayout((509, 515), grid=(2, 4)))
        assert report.bytes_moved == 0, str(report)


def test_rows_of_two_arrays_interleave_in_place():
    device = abstract()
    layout = gl.GridLayout((509, 515), grid=(8, 1))
    fn = lambda x, y: jnp.stack([x, y], 1).reshape(-1, 515)  # noqa: E731
    assert gl.on_grid(fn, device).report(layout, layout).bytes_moved == 0


# -- tiles -----------------------------------------------------------------------------------------


def laplacian(x):
    p = jnp.pad(x, 1)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * x


FUNCTIONS = {
    "roll": lambda x: jnp.roll(x, 1, 0),
    "roll far": lambda x: jnp.roll(x, 30, 1),
    "slice": lambda x: x[3:-5, 10:],
    "strided": lambda x: x[::3],
    "difference": lambda x: x[1:] - x[:-1],
    "pad": lambda x: jnp.pad(x, 1),
    "edges": lambda x: jnp.pad(x, 2, mode="edge"),
    "wrapped": lambda x: jnp.pad(x, 2, mode="wrap"),
    "cut": lambda x: jax.lax.pad(x, 0.0, ((-3, 5, 0), (4, -7, 0))),
    "flip": lambda x: x[::-1, ::-1],
    "stack": lambda x: jnp.stack([x, 2 * x]),
    "stack last": lambda x: jnp.stack([x, 2 * x], -1),
    "concatenate": lambda x: jnp.concatenate([x, 2 * x], 1),
    "repeat rows": lambda x: jnp.repeat(x, 3, 0),
    "repeat columns": lambda x: jnp.repeat(x, 3, 1),
    "tile": lambda x: jnp.tile(x, (2, 3)),
    "broadcast": lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], 4, x.shape[1])),
    "reshape": lambda x: x.reshape(-1),
    "transpose": lambda x: x.T,
    "laplacian": laplacian,
    "gradient": jax.grad(lambda x: jnp.sum(jnp.sin(laplacian(x)))),
    "torus": lambda x: sum(jnp.roll(x, s, d) for d in (0, 1) for s in (1, -1)) - 4 * x,
    "cumsum": lambda x: jnp.cumsum(x, 0),
    "sort": lambda x: jnp.sort(x, 1),
    "rows": lambda x: x[jnp.array([3, 0, 50, 7])],
    "column": lambda x: x[:, 7],
    "update": lambda x: x.at[7].set(1.0),
    "segments": lambda x: jax.ops.segment_sum(x, jnp.arange(x.shape[0]) // 9, 16),
}


def stated(shape, grid):
    """A layout with a few rows and columns more on each core than equal parts have."""
    shard = [-(-n // cores) + 3 for n, cores in zip(shape, grid, strict=True)]
    return gl.GridLayout(shape, grid=grid, collapse=[], shard_shape=shard)


@pytest.mark.few(6)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocks_that_a_layout_states_change_no_value(name):
    x = np.random.default_rng(0).standard_normal((101, 77)).astype(np.float32)
    out = gl.on_grid(FUNCTIONS[name])(poisoned(x, stated(x.shape, BLOCKS), DEVICE))
    np.testing.assert_allclose(read(out), FUNCTIONS[name](jnp.asarray(x)), rtol=1e-4, atol=1e-4)


def largest(x):
    window = (2, 3)
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "SAME")


# What computes on blocks by rules of its own.
ON_BLOCKS = {
    "pooling": largest,
    "pooling, gradient": jax.grad(lambda x: jnp.sum(jnp.sin(largest(x)))),
    "stencil": lambda x: jax.lax.fori_loop(0, 5, lambda _, x: x + jnp.roll(x, 1, 0) / 2, x),
    "holes": lambda x: jax.lax.pad(x, 0.0, ((1, 2, 1), (0, 0, 0))),
    "some": lambda x: jax.lax.dynamic_slice(x, (7, 0), (9, x.shape[1])),
    "one updated": lambda x: x.at[jnp.sum(x > 9).astype(int) + 7, 1:].set(2.0),
    "along": lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1)[:, :3], 1),
    "scattered": lambda x: jnp.zeros((9, x.shape[1])).at[jnp.arange(x.shape[0]) % 9].max(x),
    "largest three": lambda x: jax.lax.top_k(x, 3)[0],
    "joined": lambda x: jnp.concatenate([x, 2 * x, 3 * x], 1),
    "twice": lambda x: jnp.repeat(x, 2, 0).reshape(x.shape[0], 2, -1).sum(1),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ON_BLOCKS)
def test_rules_of_blocks_compute_on_blocks_that_a_layout_states(name):
    x = np.random.default_rng(0).standard_normal((53, 31)).astype(np.float32)
    for grid in (BLOCKS, ROWS, COLUMNS):
        out = gl.on_grid(ON_BLOCKS[name])(poisoned(x, stated(x.shape, grid), DEVICE))
        found = ON_BLOCKS[name](jnp.asarray(x))
        np.testing.assert_allclose(read(out), found, rtol=1e-4, atol=1e-4, err_msg=str(grid))


ROWS_OF = jax.lax.GatherDimensionNumbers((1,), (0,), (0,))
INTO_ROWS = jax.lax.ScatterDimensionNumbers((1,), (0,), (0,))
AT, EACH = np.array([[3], [9], [0]], np.int32), np.arange(13, dtype=np.int32)[:, None]
# Of one operation each, with its other operands.
SINGLE = {
    "join": (lambda x: jax.lax.concatenate([x, x], 0),),
    "join columns": (lambda x: jax.lax.concatenate([x, x, x], 1),),
    "cut": (lambda x: jax.lax.slice(x, (2, 0), (9, 31)),),
    "gather": (lambda x, at: jax.lax.gather(x, at, ROWS_OF, (1, 31)), AT),
    "scatter": (
        lambda x, at, new: jax.lax.scatter_add(x, at, new, INTO_ROWS),
        *(AT, np.ones((3, 31), np.float32)),
    ),
    "scatter rows": (
        lambda x, at, into: jax.lax.scatter_add(into, at, x, INTO_ROWS),
        *(EACH, np.zeros((20, 31), np.float32)),
    ),
    "reshape": (lambda x: jax.lax.reshape(x, (403,)),),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SINGLE)
def test_every_way_computes_on_blocks_that_a_layout_states(name):
    x, (fn, *others) = np.random.default_rng(0).standard_normal((13, 31), np.float32), SINGLE[name]
    for grid in (BLOCKS, COLUMNS):
        laid = poisoned(x, stated(x.shape, grid), DEVICE)
        for way, _, (out,) in every_way(fn, [laid, *others]):
            expected = np.broadcast_to(fn(x, *others), out.shape)
            np.testing.assert_allclose(out, expected, rtol=1e-5, err_msg=str(way))


@pytest.mark.few(9)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocks_that_a_layout_states_receive_about_what_equal_ones_do(name):
    shape, grid = (509, 515), (2, 4)
    layouts = gl.GridLayout(shape, grid=grid, collapse=[]), stated(shape, grid)
    moved = [gl.on_grid(FUNCTIONS[name], abstract()).report(x).bytes_moved for x in layouts]
    # A few rows and columns; a device has 131,580 B.
    assert moved[1] <= 1.2 * moved[0] + 8 * 24_000, moved


@pytest.mark.few(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tiles_change_no_value(name):
    x = np.random.default_rng(0).standard_normal((101, 77)).astype(np.float32)
    for grid in (BLOCKS, (3, 2)):
        layout = gl.GridLayout(x.shape, grid=grid, tile=(8, 8))
        out = gl.on_grid(FUNCTIONS[name])(poisoned(x, layout, DEVICE))
        np.testing.assert_allclose(read(out), FUNCTIONS[name](jnp.asarray(x)), rtol=1e-4, atol=1e-4)


@pytest.mark.few(8)
@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - {"sort", "segments"}))
def test_tiles_receive_no_more(name):
    device = abstract()
    for grid in ((2, 4), (8, 1), (1, 8), (2, 1)):
        plain = gl.GridLayout((512, 512), grid=grid)
        tiled = plain.replace(tile=(32, 32))
        moved = [
            gl.on_grid(FUNCTIONS[name], device).report(layout).bytes_moved
            for layout in (plain, tiled)
        ]
        assert moved[1] <= 1.2 * moved[0] + 8 * 4096, (grid, moved)


def test_results_keep_tiles():
    layout = gl.GridLayout((512, 512), grid=(2, 4), tile=(32, 32))
    for name in ("roll", "slice", "pad", "stack", "repeat columns", "concatenate", "laplacian"):
        (out,) = gl.on_grid(FUNCTIONS[name], abstract()).report(layout).rows[-1].outputs
        assert out.tile == (32, 32), (name, out)


def test_every_pair_of_functions_agrees_on_tiles():
    shape = (61, 45)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    some = ["roll", "pad", "slice", "flip", "transpose", "laplacian"]
    layout = gl.GridLayout(shape, grid=BLOCKS, tile=(4, 8))
    pairs = list(itertools.permutations(some, 2))
    fn = lambda x: [FUNCTIONS[g](FUNCTIONS[f](x)) for f, g in pairs]  # noqa: E731
    for pair, out, expected in zip(
        pairs, gl.on_grid(fn)(poisoned(x, layout, DEVICE)), fn(jnp.asarray(x)), strict=True
    ):
        np.testing.assert_allclose(read(out), expected, rtol=1e-4, atol=1e-4, err_msg=str(pair))


def test_a_batch_of_indices_that_is_divided_and_an_array_that_is_not():
    x = np.arange(70, dtype=np.float32).reshape(2, 5, 7)
    at = np.array([[0, 3, 2], [4, 1, 1]], np.int32)
    fn = jax.vmap(lambda x, i: x[i])
    for tile in (None, (1, 1)):
        whole = gl.GridLayout(x.shape, grid=(1, 1, 1), collapse=[], tile=tile)
        half = gl.GridLayout(at.shape, "int32", grid=(2, 1))
        out = gl.on_grid(fn)(poisoned(x, whole, DEVICE), poisoned(at, half, DEVICE))
        np.testing.assert_array_equal(read(out), fn(x, at))


@pytest.mark.few(2)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("count", [2, 3])
def test_uneven_arrays_are_concatenated_in_whole_blocks(axis, count):
    arrays = [
        np.random.default_rng(k).standard_normal((53, 61)).astype(np.float32) for k in range(count)
    ]
    fn = gl.on_grid(lambda *arrays: jnp.concatenate(arrays, axis))
    for grid in (BLOCKS, ROWS, COLUMNS):
        layout = gl.GridLayout((53, 61), grid=grid)
        out = fn(*(poisoned(x, layout, DEVICE) for x in arrays))
        np.testing.assert_array_equal(read(out), np.concatenate(arrays, axis))


def test_uneven_concatenations_receive_about_what_even_ones_do():
    fn = gl.on_grid(lambda x, y: jnp.concatenate([x, y]), abstract())
    moved = {}
    for n in (512, 509):
        layout = gl.GridLayout((n, 512), grid=(8, 1), collapse=[])
        report = fn.report(layout, layout)
        moved[n] = report.bytes_moved
        # Nor is an array as large as the whole written on each device.
        assert report.peak_bytes <= 4 * 4 * 2 * 512 * 512 // 8 + 16 * 4 * 512
    assert moved[509] <= 1.2 * moved[512]


def test_uneven_operands_are_where_even_ones_would_be():
    """Padding decides no tie: the condition is computed where the value that it selects is."""
    fn = gl.on_grid(lambda x, y: jnp.where(x > y, x, 0), abstract())
    moved = {}
    for n in (512, 509):
        layouts = [gl.GridLayout((n, n), grid=grid, collapse=[]) for grid in ((2, 4), (8, 1))]
        report = fn.report(*layouts)
        moved[n] = report.bytes_moved
        assert [row.bytes_moved > 0 for row in report.rows] == [True, False]
    assert moved[509] <= 1.2 * moved[512]
