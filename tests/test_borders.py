"""Views: slices, pads, joins and the like of one array, composed and read through borders."""

import operator
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import random_views
import tiers
from hypothesis import example, given
from hypothesis import strategies as st
from jax import lax
from laid_out import assert_same, poisoned

import gridlayout as gl
from gridlayout.ops.decisions.shifted import Shifted
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.primitives.views import of_logical
from gridlayout.sharding.exchanges.borders import OUTSIDE, UNREAD
from gridlayout.sharding.exchanges.slabs import gathered, in_slabs

DEVICE = gl.DeviceGrid((2, 4))
NO_DEVICES = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))


# -- views -----------------------------------------------------------------------------------------


@st.composite
def chains(draw):
    """An array, and a chain of operations on it: each as a view and in NumPy."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 5)))
    made, steps = np.arange(np.prod(shape)).reshape(shape), []
    view, found = Shifted.of(shape), made
    for _ in range(draw(st.integers(1, 5))):
        d = draw(st.integers(0, found.ndim - 1)) if found.ndim else 0
        kind = draw(st.sampled_from(["cut", "pad", "flip", "twice", "turn", "roll", "one"]))
        if kind == "one":
            view, found = view.on_dims([None, *range(found.ndim)]), found[None]
            continue
        if kind == "turn":
            order = draw(st.permutations(range(found.ndim)))
            view, found = view.on_dims(order), found.transpose(order)
            continue
        n = found.shape[d]
        here = (slice(None),) * d
        if kind == "cut":
            start, by = draw(st.integers(0, n - 1)), draw(st.integers(1, 3))
            stop = draw(st.integers(start + 1, n))
            new, after = view.cut(d, start, stop, by), found[(*here, slice(start, stop, by))]
        elif kind == "pad":
            low, high = draw(st.integers(-1, 2)), draw(st.integers(-1, 2))
            if n + low + high < 1 or n + min(low, 0) + min(high, 0) < 1:
                continue
            new = view.padded(d, low, high, 0, np.int64(-7).tobytes())
            after = found[(*here, slice(max(-low, 0), n - max(-high, 0)))]
            widths = [(max(low, 0), max(high, 0)) if k == d else (0, 0) for k in range(found.ndim)]
            after = np.pad(after, widths, constant_values=-7)
        elif kind == "flip":
            new, after = view.reversed(d), np.flip(found, d)
        elif kind == "twice":
            new, after = view.repeated(d, 2), np.concatenate([found] * 2, d)
        else:
            by = draw(st.integers(0, n - 1))
            parts = [view.cut(d, by, n), view.cut(d, 0, by)] if by else [view]
            new = None if None in parts else Shifted.joined(parts, d)
            after = np.roll(found, -by, d)
        if new is not None:
            view, found = new, after
            steps.append(kind)
    return made, view, found, steps


@given(chains())
def test_a_view_of_views_is_what_numpy_makes(case):
    made, view, found, steps = case
    assert view.shape == found.shape, steps
    assert np.array_equal(of_logical(made, view), found), steps


def test_a_join_of_other_arrays_parts_or_fills_is_no_view():
    x = Shifted.of((4, 6))
    assert Shifted.joined([x.cut(0, 0, 2), x.cut(1, 0, 2)], 0) is None
    fill = np.float32(0).tobytes()
    shifted = Shifted.joined([Shifted.filled((1, 6), fill), x.cut(0, 0, 3)], 0)
    assert shifted == x.padded(0, 1, -1, 0, fill)
    zero, one = (x.padded(0, 1, 0, 0, np.float32(n).tobytes()) for n in (0, 1))
    assert Shifted.joined([zero, one], 0) is None
    assert zero.padded(0, 1, 0, 0, np.float32(1).tobytes()) is None
    assert x.padded(0, 0, 0, 1, b"") is None  # a hole after each element


# -- borders ---------------------------------------------------------------------------------------


@st.composite
def reads(draw):
    """A dim in blocks, and the positions that each device reads of it for some views."""
    n, block = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    extent = draw(st.integers(max(n * block - block + 1, 1), n * block))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        count, shift = draw(st.integers(1, extent)), draw(st.integers(-8, 8))
        found.append(read_of(n, extent, count, shift, draw(st.booleans())))
    return n, block, extent, found


def read_of(n, extent, count, shift, wraps):
    """What each of `n` devices reads for `count` positions, that many further on."""
    each = -(-count // n)
    at = np.arange(n * each).reshape(n, each)
    to = (at + shift) % extent if wraps else at + shift
    to = np.where((to >= 0) & (to < extent), to, OUTSIDE)
    return np.where(at < count, to, UNREAD)


# A slab that is written where another one has been: in any order, each device finds what it reads.
WRITTEN_OVER = [
    np.array([[8], [9], [10], [11], [12]]),
    np.array([[6, 7], [8, 9], [10, 11], [12, 0], [UNREAD, UNREAD]]),
    np.array([[0], [1], [UNREAD], [UNREAD], [UNREAD]]),
]


@given(reads())
# A slab that is made wider begins earlier, not to reach beyond its block.
@example((5, 4, 17, [read_of(5, 17, 14, -7, True), read_of(5, 17, 3, 0, False)]))
# Slabs are sent, and written, in another order where some are shared.
@example((4, 6, 21, [read_of(4, 21, 21, 8, True), read_of(4, 21, 20, 0, True)]))
@example((5, 3, 13, WRITTEN_OVER))
def test_what_is_received_is_what_views_read(case):
    n, block, extent, views = case
    if not any((each >= 0).any() for each in views):
        return
    slabs = in_slabs(("x",), n, block, extent, views)
    shared = [border.sharing(k) for border in slabs for k in range(len(border.slabs) + 1)]
    for border in (*shared, gathered(("x",), n, block, views)):
        for d in range(n):
            buffer = np.full(border.length, -9)
            if border.gathered is not None:
                first, last = border.gathered
                blocks = [np.arange(s * block + first, s * block + last) for s in range(n)]
                buffer[:] = np.concatenate(blocks)
            elif border.is_local:
                buffer[:] = np.arange(block) + d * block
            parts = {}
            for slab in (*border.own, *border.every_slab):
                senders, receivers = zip(*slab.pairs, strict=True)
                assert len({*senders}) == len(senders)
                assert len({*receivers}) == len(receivers)
                for sender, receiver in slab.pairs:
                    assert 0 <= slab.starts[sender] <= block - slab.width
                    if receiver == d:
                        start, place = sender * block + slab.starts[sender], slab.places[d]
                        parts[slab] = np.arange(start, start + slab.width)
                        if not border.segments:
                            buffer[place : place + slab.width] = parts[slab]
            at = 0
            for segment in border.segments:
                for slab, devices, starts in segment.slabs:
                    if devices[d]:
                        assert starts[d] >= 0
                        assert (buffer[at : at + segment.width] == -9).all()
                        part = parts[slab][starts[d] : starts[d] + segment.width]
                        buffer[at : at + segment.width] = part
                at += segment.width
            if not border.is_local:
                assert (border.held[d] == (buffer != -9)).all()
            for read, offsets in zip(views, border.offsets, strict=True):
                inside = read[d] >= 0
                assert (buffer[offsets[d][inside]] == read[d][inside]).all()
                assert (offsets[d][~inside] == read[d][~inside]).all()


@pytest.mark.parametrize("extent", [64, 61])
def test_a_device_that_reads_one_block_of_a_part_holds_no_more(extent):
    # The first half of a dim of 8 devices: each reads of its own block, or of one or two others.
    block, count = 8, extent // 2
    to = np.arange(8)[:, None] * 4 + np.arange(4)
    views = [np.where(to < count, to, UNREAD)]
    every = in_slabs(("x",), 8, block, extent, views)
    assert min(border.length for border in every) == 4
    assert all(border.segments for border in every)


def test_what_is_read_both_ways_around_the_array_is_sent_once():
    to = (np.arange(64).reshape(8, 8) + 33) % 64
    for border in in_slabs(("x",), 8, 8, 64, [to]):
        assert sorted(slab.width for slab in border.slabs) == [1, 7]
        assert border.length == 8


# -- programs --------------------------------------------------------------------------------------


def laplacian(x):
    p = jnp.pad(x, 1)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * x


def nine_points(x):
    p, (m, n) = jnp.pad(x, 1, constant_values=2.0), x.shape
    return sum((i + 3 * j) * p[i : i + m, j : j + n] for i in range(3) for j in range(3))


def on_a_torus(x):
    return sum(jnp.roll(x, shift, axis) for axis in (0, 1) for shift in (1, -1)) - 4 * x


def heat(x):
    return lax.fori_loop(0, 3, lambda _, u: u + 0.1 * on_a_torus(u), x)


def gradient(fn):
    return jax.grad(lambda x: jnp.sum(jnp.sin(fn(x))))


FUNCTIONS = {
    "roll by a row": lambda x: jnp.roll(x, 1, 0),
    "roll both": lambda x: jnp.roll(x, (-3, 5), (0, 1)),
    "turned by half": lambda x: jnp.roll(x, [n // 2 for n in x.shape], (0, 1)),
    "laplacian": laplacian,
    "nine points": nine_points,
    "on a torus": on_a_torus,
    "heat": heat,
    "difference": lambda x: x[1:] - x[:-1],
    "gradient of a difference": gradient(lambda x: x[1:] - x[:-1]),
    "gradient of a laplacian": gradient(laplacian),
    "halves": lambda x: x[:, : x.shape[1] // 2] * x[:, -(x.shape[1] // 2) :],
    "the last half": lambda x: x[x.shape[0] // 2 :, x.shape[1] // 2 :],
    "wrapped": lambda x: jnp.pad(x, 2, mode="wrap"),
    "edges": lambda x: jnp.pad(x, 1, mode="edge"),
    "mirrored": lambda x: jnp.pad(x, 2, mode="reflect"),
    "strided": lambda x: x[1::2, :-1][:, ::3],
    "flipped": lambda x: x[::-1][1:],
    "a row": lambda x: x[3:][2],
    "pad of another type": lambda x: jnp.pad(x.astype(jnp.int8), 1)[2:, :-1],
    "holes": lambda x: lax.pad(x, 2.0, ((1, 0, 1), (0, -1, 2))),
    "holes in rows": lambda x: lax.pad(x, jnp.sum(x[0]), ((0, 2, 2), (0, 0, 0))),
    "zeros before": lambda x: jnp.concatenate([jnp.zeros_like(x[:2]), x[:-2]]),
    "windows": lambda x: jnp.stack([x[k : k + 4] for k in range(3)]).sum(0),
}
PLACES = [((13, 7), g) for g in [(2, 4), (8, 1), (1, 8), (2, 1), (1, 3), (3, 2)]]
PLACES += [((16, 24), g) for g in [(2, 4), (8, 1), (1, 4)]]


@pytest.mark.few(5)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_views_are_jaxs_on_any_grid(name):
    fn = FUNCTIONS[name]
    for k, (shape, grid) in enumerate(PLACES):
        if not tiers.ALL and k % 3 != len(name) % 3:
            continue
        x = np.random.default_rng(k).standard_normal(shape).astype(np.float32)
        layout = gl.GridLayout(shape, "float32", grid=grid, collapse=[])
        found = gl.on_grid(fn)(poisoned(x, layout, DEVICE))
        np.testing.assert_allclose(found, jax.jit(fn)(x), rtol=2e-5, atol=2e-5, err_msg=str(grid))


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(60 if tiers.ALL else 6))
def test_random_views_and_their_gradients_are_jaxs(seed):
    fn, shape, grid = random_views.program(seed)
    both = lambda x: (*fn(x), gradient(lambda x: fn(x)[0])(x))  # noqa: E731
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    layout = gl.GridLayout(shape, "float32", grid=grid, collapse=[])
    for a, b in zip(gl.on_grid(both)(poisoned(x, layout, DEVICE)), jax.jit(both)(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.few(1)
@pytest.mark.parametrize("tile", [(4, 4), (8, 2)])
def test_views_of_tiles_are_jaxs(tile):
    x = np.random.default_rng(0).standard_normal((13, 9)).astype(np.float32)
    laid = poisoned(x, gl.GridLayout(x.shape, "float32", grid=(3, 2), tile=tile), DEVICE)
    np.testing.assert_allclose(gl.on_grid(nine_points)(laid), nine_points(x), rtol=2e-5, atol=2e-5)


# -- what is received ------------------------------------------------------------------------------

EVEN = gl.GridLayout((64, 64), "float32", grid=(8, 1), collapse=[])
ROW = 64 * 4


@pytest.mark.parametrize(
    ("name", "rows"),
    [("laplacian", 2), ("on a torus", 2), ("nine points", 2), ("roll by a row", 1)],
)
def test_each_border_is_received_once(name, rows):
    report = gl.on_grid(FUNCTIONS[name], NO_DEVICES).report(EVEN)
    sent = [each for row in report.rows for each in row.collectives]
    assert [each.kind for each in sent] == ["permute"] * rows
    assert [each.received_bytes for each in sent] == [ROW] * rows


def test_only_what_is_read_of_undivided_dims_is_received():
    layout = gl.GridLayout((9, 64, 64), "float32", grid=(1, 8, 1), collapse=[])
    report = gl.on_grid(lambda x: jnp.roll(x[4, :, 8:24], 1, 0), NO_DEVICES).report(layout)
    assert [each.received_bytes for row in report.rows for each in row.collectives] == [16 * 4]


def test_holes_are_made_in_blocks():
    fn = lambda x: lax.pad(x, 1.0, ((0, 0, 1), (0, 0, 0)))  # noqa: E731
    (row,) = gl.on_grid(fn, NO_DEVICES).report(EVEN).rows
    assert (row.bytes_moved, row.masks) == (0, 0)


def test_an_uneven_dim_receives_as_much_as_an_even_one():
    def received(shape):
        layout = gl.GridLayout(shape, "float32", grid=(8, 1), collapse=[])
        report = gl.on_grid(laplacian, NO_DEVICES).report(layout)
        return sum(each.received_bytes for row in report.rows for each in row.collectives)

    assert received((61, 64)) == received((64, 64))


def test_padding_is_read_with_the_block_that_it_follows():
    x = gl.put(np.ones((509, 128), np.float32), gl.GridLayout((509, 128), grid=(8, 1)), DEVICE)
    compiled = gl.on_grid(laplacian).lower(x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 64 * 128 * 4  # a device's part


def test_views_that_read_other_elements_are_apart():
    def fn(x):
        return [x[1:][k : k + 8] for k in range(0, 24, 8)]

    graph = Graph.of(jax.make_jaxpr(fn)(jnp.zeros((32, 4))))
    assert [len(node.outs) for node in graph.nodes if node.name == "views"] == [1] * 3
    for a, b in pairwise(graph.nodes):
        assert operator.ne(a.path, b.path)


def test_a_part_of_a_split_whose_other_parts_are_read_apart_is_made_once():
    def fn(x):
        q, k, v = jnp.split(x, 3, axis=1)
        return q + jnp.roll(q, 1, 1), k, v

    graph = Graph.of(jax.make_jaxpr(fn)(jnp.zeros((8, 12))))
    made = [v for node in graph.nodes for v in node.outs]
    assert len(made) == len({*made})
    x = np.arange(96.0, dtype=np.float32).reshape(8, 12)
    laid = poisoned(x, gl.GridLayout(x.shape, "float32", grid=(2, 4), collapse=[]), DEVICE)
    for a, b in zip(gl.on_grid(fn)(laid), fn(x), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_a_loop_body_reads_is_no_view_of_what_is_outside():
    def fn(x):
        return lax.fori_loop(0, 2, lambda _, u: jnp.roll(u, 1, 0) + jnp.roll(x, 1, 0), x)

    inlined = Graph.of(jax.make_jaxpr(fn)(jnp.zeros((8, 4))), 2)
    x = np.arange(32.0, dtype=np.float32).reshape(8, 4)
    assert [node.name for node in inlined.nodes].count("views") == 2
    laid = gl.put(x, gl.GridLayout(x.shape, "float32", grid=(4, 2), collapse=[]), DEVICE)
    np.testing.assert_allclose(gl.on_grid(fn)(laid), jax.jit(fn)(x))


# -- beside products -------------------------------------------------------------------------------


def shifted_products(x, w, v):
    """Products of an array that is shifted in time, and their gradients."""

    def loss(w, v):
        before = jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        h = jnp.tanh((x + 0.5 * jnp.roll(x, 1, 1) + before) @ w)
        return jnp.sum(((h[:, 1:] - h[:, :-1]) @ v) ** 2)

    return jax.grad(loss, (0, 1))(w, v)


@pytest.mark.few(1)
@pytest.mark.parametrize("grids", [[(2, 4, 1), (1, 1), (1, 1)], [(2, 1, 4), (4, 1), (1, 4)]])
def test_views_beside_products_are_jaxs(grids):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) / 4 for s in ((6, 61, 8), (8, 8), (8, 8))]
    laid = [
        poisoned(x, gl.GridLayout(x.shape, "float32", grid=grid, collapse=[]), DEVICE)
        for x, grid in zip(arrays, grids, strict=True)
    ]
    found, expected = gl.on_grid(shifted_products)(*laid), jax.jit(shifted_products)(*arrays)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_a_plan_divides_dims_that_are_read_near_their_positions():
    machine = gl.Machine("wormhole 2x4")
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")), machine=machine)
    shapes = ((2, 4096, 512), (512, 512), (512, 512))
    grids = ((2, 4, 1), (1, 1), (1, 1))
    layouts = [
        gl.GridLayout(shape, "float32", grid=grid, collapse=[])
        for shape, grid in zip(shapes, grids, strict=True)
    ]
    report = gl.on_grid(shifted_products, device).report(*layouts)
    rows = [row for row in report.rows if row.primitive == "views"]
    assert rows
    for row in rows:
        assert all(each.received_bytes <= 8 * 512 * 4 for each in row.collectives)
        assert all(layout.grid[1] == 4 for layout in row.outputs)


@pytest.mark.skipif(len(jax.devices()) != 8, reason="the mesh has 8 devices")
def test_a_row_that_several_operations_read_is_all_that_is_sent():
    device, random = gl.DeviceGrid((2, 4)), np.random.default_rng(0)
    x = random.standard_normal((130, 126), np.float32)
    laid = poisoned(x, gl.GridLayout(x.shape, grid=(2, 4), collapse=[]), device)

    def without_first(x):
        return x - (x @ x[0])[:, None] * x[0]

    fn = gl.on_grid(without_first)
    assert_same(fn(laid), without_first(x), rtol=1e-4, atol=1e-4)
    received = fn.report(laid).bytes_moved / device.size
    assert received <= 4 * (32 + 2 * 65 * 3)
