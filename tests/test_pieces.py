"""Relayouts in pieces: what is received against what must move, and what arrives."""

import itertools
from collections import Counter
from dataclasses import replace
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import mapped
from hlo import compiled_collectives
from jax.sharding import AbstractMesh
from laid_out import assert_claim_holds, layouts, packed, poisoned, read
from machines import FAST, with_latency
from tiers import few

import gridlayout as gl
from gridlayout.layouts.blocks import find_blocks
from gridlayout.layouts.program import PadMove
from gridlayout.ops.moves.relayout import find_move, offered_moves
from gridlayout.sharding.collectives import total_bytes
from gridlayout.sharding.exchanges import overlaps
from gridlayout.sharding.exchanges.overlaps import find_overlaps
from gridlayout.sharding.exchanges.permuting import Permuting
from gridlayout.sharding.exchanges.pieces import find_pieces
from gridlayout.sharding.exchanges.rounds import Messages, coloured, most_at_one
from gridlayout.sharding.exchanges.windows import find_windows
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machines.default_machine import emulated

N = len(jax.devices())
MESHES = [(1,), (4,), (2, 2), (8,), (2, 4), (2, 2, 2), (16,), (4, 4), (2, 8), (64,), (8, 8)]
MESHES += [(4, 16), (4, 4, 4)]
EVEN = [(64, 64), (128, 64), (8, 16, 32), (256,), (4, 8, 16, 8)]
UNEVEN = [(53, 63), (530, 630), (97,), (7, 20, 33), (12, 20, 31), (64, 64), (100, 36)]


def abstract(mesh):
    return gl.DeviceGrid(without_devices(mesh))


def without_devices(mesh):
    return AbstractMesh(mesh, tuple("xyzw"[: len(mesh)]))


def random_groups(rng, rank, kind):
    """The logical dims that each grid dim divides, in order."""
    if kind == "transposed":
        return [[int(d)] for d in rng.permutation(rank)]
    if kind == "plain" or rank == 1:
        return [[d] for d in range(rank)]
    cut = int(rng.integers(1, rank))
    if rank > 2 and rng.integers(2):
        return [[0], list(range(1, rank))]
    return [list(range(cut)), *([d] for d in range(cut, rank))]


def random_layout(rng, shape, is_even, most):
    """A layout of the shape on a random grid of up to twice `most` cores, tiled or not."""
    kind = ("plain", "plain", "transposed", "collapsed")[rng.integers(4)]
    groups = random_groups(rng, len(shape), kind)
    terms = [
        " + ".join(f"d{d} * {prod(shape[e] for e in group[k + 1 :])}" for k, d in enumerate(group))
        for group in groups
    ]
    extents = [prod(shape[d] for d in group) for group in groups]
    sizes = [1, 2, 4, 8, 16, 64] if is_even else [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16]
    grids = [
        grid
        for grid in (tuple(int(g) for g in rng.choice(sizes, len(extents))) for _ in range(200))
        if prod(grid) <= 2 * most
        and all(g <= n and not (is_even and n % g) for g, n in zip(grid, extents, strict=True))
    ]
    grid = grids[0] if grids else (1,) * len(extents)
    tile = None
    if rng.integers(2):
        tile = tuple(int(t) for t in rng.choice([2, 3, 4, 8, 32], min(len(grid), 2)))
    dims = ", ".join(f"d{d}" for d in range(len(shape)))
    return gl.GridLayout(shape, "float32", grid, tile, linear=f"({dims}) -> ({', '.join(terms)})")


def random_pairs(count, seed, meshes=MESHES):
    """Device grids and two layouts of one tensor."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        mesh, is_even = meshes[rng.integers(len(meshes))], bool(rng.integers(2))
        shapes = EVEN if is_even else UNEVEN
        shape = shapes[rng.integers(len(shapes))]
        yield mesh, *(random_layout(rng, shape, is_even, prod(mesh)) for _ in range(2))


def divides(layout, device):
    """Whether all devices have equal parts of the tensor, padding of tiles aside."""
    placed = device.placement(layout.grid)
    shards = zip(layout.grid, layout.shard_shape, strict=True)
    return placed.slots == layout.grid and prod(g * s for g, s in shards) == layout.size


@pytest.mark.parametrize("seed", few(range(4), 1))
def test_little_more_is_received_than_must_move_and_nothing_more_where_parts_are_even(seed):
    ways = Counter()
    for number, (mesh, a, b) in enumerate(random_pairs(250, seed)):
        device = mapped(without_devices(mesh), number, a.grid, b.grid)
        plan = gl.relayout_plan(a, b, device)
        is_even = divides(a, device) and divides(b, device)
        assert plan.moved <= plan.received, (mesh, a, b)
        assert plan.received <= (1.0 if is_even else 1.3) * plan.moved, (mesh, a, b)
        assert plan.received == total_bytes(plan.collectives)
        if plan.pieces is not None:
            assert plan.pieces.moved == plan.moved, (mesh, a, b)
        ways[plan.how, is_even] += 1
    assert min(ways["pieces", True], ways["pieces", False], ways["exchange", True]) > 9


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", few(range(20), 3))
def test_more_is_received_only_where_the_machine_takes_less_time_for_it(seed):
    chosen = Counter()
    for mesh, a, b in random_pairs(50, seed):
        device = abstract(mesh).with_machine(emulated(prod(mesh)))
        plan = gl.relayout_plan(a, b, device)
        if plan.received <= 1.3 * plan.moved:
            continue
        fewer = [x for x in plan.alternatives if x.received <= 1.3 * plan.moved]
        for x in plan.alternatives:  # about as fast, and of more bytes, if it is faster
            assert x.seconds * device.machine.similar >= plan.seconds
            assert x.seconds >= plan.seconds or x.received > plan.received
        assert all(str(x) in str(plan) for x in plan.alternatives)
        chosen[bool(fewer)] += 1
    assert chosen[True] > 10


def by_kind(found):
    """Bytes by kind and group size; of permutes XLA's text does not say the group."""
    total = Counter()
    for kind, size, nbytes in found:
        total[kind, None if kind == "permute" else size] += nbytes
    return +total


KINDS = {"all-gather": "all_gather", "all-to-all": "all_to_all", "collective-permute": "permute"}


def check(a, b, device):
    """Every element arrives from poisoned padding, by what the plan says; gives the plan."""
    x = np.arange(1, 1 + a.size).reshape(a.shape).astype(a.dtype)
    laid = poisoned(x, a, device)
    compiled = jax.jit(lambda x: gl.relayout(x, b)).lower(laid).compile()
    out = compiled(laid)
    np.testing.assert_array_equal(read(out), x, err_msg=f"{a} {b}")
    assert_claim_holds(out)
    plan = gl.relayout_plan(a, b, device)
    ours = by_kind((c.kind, c.group_size, c.total_bytes) for c in plan.collectives)
    text = compiled.as_text()
    theirs = by_kind(
        (KINDS[kind], size, nbytes)
        for kind, size, nbytes in compiled_collectives(text, device.size)
    )
    assert ours == theirs, (a, b, device)
    return plan


HERE = [mesh for mesh in MESHES if 1 < prod(mesh) <= N]


@pytest.mark.parametrize("seed", few(range(4), 1))
def test_values_arrive_by_the_collectives_that_the_plan_names(seed):
    for number, (mesh, a, b) in enumerate(random_pairs(5, 100 + seed, HERE), 3):
        check(a, b, mapped(mesh, number, a.grid, b.grid, machine=FAST))


# Mesh axes by dim before and after, and the collectives that bring one to the other.
PERMUTED = {
    "another axis before": (("y", None), (("x", "y"), None), ["permute"]),
    "another axis leaves": ((("x", "y"), None), ("y", None), ["permute", "all_gather"]),
    "another order": ((("y", "x"), None), (("x", "y"), None), ["permute"]),
    "exchanged": ((("x", "z"), "y"), (("y", "z"), "x"), ["permute"]),
    "in a circle": (("x", ("y", "z")), ("y", ("z", "x")), ["permute"]),
    "no permute": ((("x", "y"), None), ("x", "y"), ["all_to_all"]),
}


@pytest.mark.skipif(N < 8, reason="needs 8 devices")
@pytest.mark.parametrize("case", PERMUTED)
def test_mesh_axes_change_places_by_one_permute(case):
    *both, expected = PERMUTED[case]
    mesh = jax.make_mesh((2, 2, 2), ("x", "y", "z"), devices=jax.devices()[:8])
    device = gl.DeviceGrid(mesh, machine=with_latency(0.0))
    count = [[2 ** len(axes or ()) for axes in some] for some in both]
    a, b = (
        gl.GridLayout((16, 24), grid=grid, mesh_axes=axes)
        for grid, axes in zip(count, both, strict=True)
    )
    plan = check(a, b, device)
    assert [each.kind for each in plan.collectives] == expected


@pytest.mark.few(3)
@pytest.mark.skipif(N < 8, reason="needs 8 devices")
@pytest.mark.parametrize("seed", range(12))
def test_mesh_axes_that_change_places_are_those_of_the_plan(seed):
    rng, names = np.random.default_rng(seed), ["x", "y", "z"]
    mesh = jax.make_mesh((2, 2, 2), tuple(names), devices=jax.devices()[:8])

    def layout():
        order, places = rng.permutation(names), rng.integers(0, 4, 3)
        axes = tuple(tuple(map(str, order[places == d])) for d in range(3))
        grid = [2 ** len(own) for own in axes]
        return gl.GridLayout((8, 16, 24), grid=grid, collapse=[], mesh_axes=axes)

    for _ in range(4):
        check(layout(), layout(), gl.DeviceGrid(mesh, machine=with_latency(0.0)))


PAIRS = {
    "rows to blocks": ({"grid": (4, 1)}, {"grid": (2, 2)}),
    "uneven blocks": ({"grid": (3, 2)}, {"grid": (2, 3), "oob": 3}),
    "idle devices": ({"grid": (8, 1)}, {"grid": (7, 1)}),
    "tiles that do not line up": ({"grid": (3, 2), "tile": (4, 4)}, {"grid": (2, 4)}),
    "copies of one core": ({"grid": (5, 1)}, {"grid": (1, 1), "tile": (32, 32)}),
    "copies": ({"grid": (5, 1)}, {"grid": (2, 1)}),
    "from copies": ({"grid": (2, 1)}, {"grid": (7, 1)}),
    "several cores a device": ({"grid": (13, 2), "tile": (2, 2)}, {"grid": (4, 7)}),
    "reversed": ({"grid": (3, 2)}, {"grid": (5, 1), "linear": "(d0, d1) -> (-d0 + 52, d1)"}),
    "gaps": ({"grid": (3, 2)}, {"grid": (4, 2), "linear": "(d0, d1) -> (d0 * 2 + 1, d1)"}),
    "joined with a gap": (
        {"grid": (3, 2)},
        {"grid": (7,), "linear": "(d0, d1) -> (d0 * 66 + d1)", "tile": (8,)},
    ),
    "joined the other way": (
        {"grid": (5,), "linear": "(d0, d1) -> (d0 * 63 + d1)"},
        {"grid": (6,), "linear": "(d0, d1) -> (d1 * 53 + d0)"},
    ),
    "dealt": ({"grid": (8, 1)}, {"grid": (1, 7), "tile": (8, 8)}),
}


@pytest.mark.few(5)
@pytest.mark.skipif(N < 8, reason="needs 8 devices")
@pytest.mark.parametrize("pair", PAIRS)
def test_every_kind_of_piece(pair):
    a, b = (gl.GridLayout((53, 63), "float32", **arguments) for arguments in PAIRS[pair])
    number, ways = list(PAIRS).index(pair), [(a, b), (b, a)]
    device = mapped((2, 4), number + 1, a.grid, b.grid, machine=FAST)
    # Between blocks that begin at the same positions it is the middle part of the move.
    assert {"pieces", "aligned"} & {gl.relayout_plan(*each, device).how for each in ways}
    turn = number % 2
    for each in few(ways[turn:] + ways[:turn], 1):
        check(*each, device)


# Pieces of one size in the blocks of a part are cut and put together: the grids, and whether blocks
# are left over, pieces stay, all is dealt at once, all devices cut alike, and put alike.
ALIKE = {
    "all kinds": ((1, 4), (3, 1), None, (True, True, False, False, False)),
    "nothing stays": ((1, 5), (3, 1), None, (True, False, False, False, False)),
    "no gaps": ((2, 4), (4, 1), None, (False, False, False, False, False)),
    "to copies": ((4, 2), (2, 1), None, (False, False, False, True, False)),
    "nothing moves": ((6, 1), (7, 1), None, (True, True, False, True, False)),
    "all stay": ((1, 5), (1, 4), None, (False, True, False, True, False)),
    "dealt": ((1, 8), (8, 1), (4, 4), (False, True, True, False, False)),
    "dealt alike": ((8, 1), (2, 1), (4, 4), (False, True, True, True, False)),
    "put alike": ((2, 2), (4, 2), None, (False, False, False, False, True)),
}


def without_other_ways(monkeypatch):
    """Leave out the ways that are better than pieces for some of these layouts."""
    monkeypatch.setattr("gridlayout.ops.moves.relayout.without_tiles", lambda *_: [])
    monkeypatch.setattr(Permuting, "permute", lambda *_: None)


@pytest.mark.few(4)
@pytest.mark.skipif(N < 8, reason="needs 8 devices")
@pytest.mark.parametrize("pair", ALIKE)
def test_alike_pieces_are_put_together_at_once(pair, monkeypatch):
    without_other_ways(monkeypatch)
    before, after, tile, expected = ALIKE[pair]
    a = gl.GridLayout((24, 16), grid=before)
    b = gl.GridLayout((24, 16), grid=after, tile=tile, oob=3)
    device = gl.DeviceGrid((2, 4), machine=FAST)
    pieces = check(a, b, device).pieces
    schedule, order = pieces.schedule, pieces.order
    cut = schedule.tables[0]
    facts = (
        order.max() == len(schedule.sizes),
        bool(schedule.stays),
        schedule.all_to_all is not None,
    )
    assert expected == (*facts, (cut == cut[0]).all(), (order == order[0]).all())


@pytest.mark.skipif(N < 8, reason="needs 8 devices")
@pytest.mark.parametrize("pair", ["all kinds", "dealt", "put alike"])
def test_large_parts_are_put_piece_by_piece(pair, monkeypatch):
    without_other_ways(monkeypatch)
    monkeypatch.setattr(
        "gridlayout.sharding.exchanges.pieces.LIMITS", replace(LIMITS, gathered_bytes=0)
    )
    before, after, tile, _ = ALIKE[pair]
    a, b = gl.GridLayout((48, 16), grid=before), gl.GridLayout((48, 16), grid=after, tile=tile)
    assert check(a, b, gl.DeviceGrid((2, 4), machine=FAST)).pieces.order is None


# The mesh divides what every device has whole before, once each has padded it.
PADDED = {
    "rows to blocks": ({"grid": (8, 1)}, {"grid": (2, 4)}),
    "rows to columns": ({"grid": (8, 1)}, {"grid": (1, 8), "oob": 3}),
    "columns to rows": ({"grid": (1, 4)}, {"grid": (4, 1)}),
    "to tiles": ({"grid": (8, 1)}, {"grid": (2, 4), "tile": (3, 5)}),
    "transposed": ({"grid": (4, 1)}, {"grid": (4, 1), "linear": "(d0, d1) -> (d1, d0)"}),
    "reversed": ({"grid": (2, 1)}, {"grid": (1, 2), "linear": "(d0, d1) -> (d0, -d1 + 62)"}),
}


@pytest.mark.few(3)
@pytest.mark.skipif(N < 8, reason="needs 8 devices")
@pytest.mark.parametrize("pair", PADDED)
def test_a_whole_dim_is_padded_where_it_is_and_goes_in_one_collective(pair):
    shape = (63, 64) if pair == "columns to rows" else (64, 63)
    a, b = (gl.GridLayout(shape, "float32", **arguments) for arguments in PADDED[pair])
    plan = check(a, b, gl.DeviceGrid((2, 4), machine=FAST))
    assert plan.how == "exchange"
    assert [c.kind for c in plan.collectives] == ["all_to_all"]
    assert plan.received <= 1.25 * plan.moved
    x = plan.exchange
    assert (x.gathers, x.slices) == ((), ())
    assert any(isinstance(move, PadMove) for move in x.first)
    assert x.padded(prod(x.gathered_shape)) == prod(x.digit_shape) > prod(x.gathered_shape)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("mesh", "before", "after", "ratio"),
    [
        ((32, 32), (32, 32), (32, 31), 1.25),
        ((32, 32), (32, 32), (16, 16), 1),
        ((64, 32), (64, 31), (63, 32), 1.25),
        ((2, 512), (1024, 1), (1, 512), 1),
    ],
)
def test_thousands_of_devices_receive_little_more_than_has_to_move(mesh, before, after, ratio):
    layouts = [gl.GridLayout((1024, 3072), grid=grid) for grid in (before, after)]
    plan = gl.relayout_plan(*layouts, gl.DeviceGrid(AbstractMesh(mesh, ("x", "y"))))
    assert 0 < plan.moved <= plan.received <= ratio * plan.moved


TYPES = ["bool", "int8", "uint16", "bfloat16", "float8_e5m2", "complex64"]


@pytest.mark.few(2)
@pytest.mark.skipif(N < 8, reason="needs 8 devices")
@pytest.mark.parametrize("dtype", TYPES)
def test_pieces_of_any_type(dtype):
    uneven = gl.GridLayout((13, 9), dtype, (3, 2)), gl.GridLayout((13, 9), dtype, (5, 1), (2, 4))
    alike = gl.GridLayout((12, 8), dtype, (1, 4)), gl.GridLayout((12, 8), dtype, (3, 1))
    for a, b in (uneven, alike):
        x = np.random.default_rng(0).integers(0, 2, a.shape).astype(dtype)
        device = mapped((2, 4), TYPES.index(dtype), a.grid, b.grid, machine=FAST)
        out = gl.relayout(poisoned(x, a, device), b)
        np.testing.assert_array_equal(read(out), x)
        np.testing.assert_array_equal(np.asarray(out), x)


@pytest.mark.skipif(N < 8, reason="needs 8 devices")
def test_pieces_of_small_tensors_of_every_layout():
    ways = Counter()
    for shape in [(7,), (5, 7), (3, 4, 5)]:
        table = list(layouts(shape).values())
        pairs = [
            (a, b, mapped((2, 4), number, a.core_shape, b.core_shape, machine=FAST))
            for number, (a, b) in enumerate(zip(table, table[4:] + table[:4], strict=True))
        ]
        for a, b, device in pairs:
            ways[gl.relayout_plan(a, b, device).how] += 1
        for a, b, device in few(pairs, 5):
            x = np.arange(a.size, dtype=np.float32).reshape(shape)
            out = jax.jit(lambda x, b=b: gl.relayout(x, b))(poisoned(x, a, device))
            np.testing.assert_array_equal(read(out), x, err_msg=f"{a} {b}")
    assert ways["pieces"] > 8


@pytest.mark.skipif(N < 8, reason="needs 8 devices")
def test_derivatives_and_batches_of_pieces():
    device = gl.DeviceGrid((2, 4), machine=FAST)
    a, b = gl.GridLayout((5, 7), grid=(3, 2)), gl.GridLayout((5, 7), grid=(2, 3), tile=(2, 2))
    assert gl.relayout_plan(a, b, device).how == "pieces"
    x, w = (np.random.default_rng(k).standard_normal((5, 7)).astype(np.float32) for k in range(2))
    laid = poisoned(x, a, device)
    found = jax.grad(lambda x: (gl.relayout(x, b).to_logical() * w).sum())(laid)
    np.testing.assert_allclose(np.asarray(found), w, rtol=1e-6)
    # Inside a program too: padding that holds NaN reaches no gradient.
    loss = gl.on_grid(jax.grad(lambda x: (gl.with_layout(jnp.sin(x), b) * w).sum()))
    np.testing.assert_allclose(np.asarray(loss(laid)), np.cos(x) * w, rtol=1e-5)
    many = jax.jit(jax.vmap(lambda k: gl.relayout(gl.put(x * k, a, device), b).to_logical()))
    expected = np.stack([x * k for k in range(3)])
    np.testing.assert_array_equal(np.asarray(many(jnp.arange(3.0))), expected)


# -- choosing --------------------------------------------------------------------------------------


def test_the_machine_chooses_and_all_ways_are_right():
    mesh = AbstractMesh((8,), ("x",))
    device, often, rarely = (
        gl.DeviceGrid(mesh, machine=machine)
        for machine in (FAST, with_latency(1e-9), with_latency(1.0))
    )
    a, b = gl.GridLayout((530, 630), grid=(8, 1)), gl.GridLayout((530, 630), grid=(7, 1))
    places = [device.placement(layout.grid) for layout in (a, b)]
    whole, pieces = offered_moves(a, b, device, *places)
    assert whole.pieces is None
    assert pieces.pieces is not None
    assert len(whole.collectives) < len(pieces.collectives)
    assert total_bytes(whole.collectives) > 10 * total_bytes(pieces.collectives)
    assert find_move(a, b, device, *places).pieces is not None
    # Collectives that take long to begin make few of them better.
    assert find_move(a, b, rarely, *places).pieces is None
    assert find_move(a, b, often, *places).pieces is not None


def test_many_devices_are_counted_without_pieces():
    device = abstract((256, 128))
    a = gl.GridLayout((4096, 4096), grid=(256, 128))
    plan = gl.relayout_plan(a, a.replace(grid=(250, 128)), device)
    assert plan.pieces is None
    assert plan.received >= plan.moved > 0


def test_a_plan_prints_its_permutes():
    device = abstract((8,))
    a, b = gl.GridLayout((530, 630), grid=(8, 1)), gl.GridLayout((530, 630), grid=(7, 1))
    text = str(gl.relayout_plan(a, b, device))
    assert "on 8 devices: pieces" in text
    assert "permute x:8 " in text
    assert "permute x:8 " in str(gl.relayout_plan(a, a.replace(grid=(2, 9)), device))


# -- parts -----------------------------------------------------------------------------------------


def test_rounds_have_one_message_of_each_end_and_keep_the_limit():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n, m = rng.integers(2, 20), rng.integers(1, 80)
        ends, sizes = rng.integers(0, n, (2, m)), rng.integers(1, 9, (m, 2))
        colours = coloured(*ends)
        assert colours.max() < most_at_one(*ends)
        messages = Messages(*ends, sizes)
        limit = 1.3 * messages.volume
        found = [*messages.in_rounds(limit), *(np.flatnonzero(colours == k) for k in set(colours))]
        for rows in found:
            for side in ends:
                assert len(set(side[rows].tolist())) == len(rows)
        rounds = messages.in_rounds(limit)
        assert sorted(np.concatenate(rounds).tolist()) == list(range(m))
        assert sum(len(r) * sizes[r].max(axis=0).prod() for r in rounds) <= limit


def test_rounds_of_large_boxes_take_no_memory_by_their_extents():
    sizes = np.array([[2**40], [2**40 - 1], [1]])
    rounds = Messages(np.array([1, 2, 3]), np.array([0, 1, 2]), sizes).in_rounds(2**41 + 1)
    assert [rows.tolist() for rows in rounds] == [[0, 1], [2]]


@pytest.mark.few(1)
@pytest.mark.parametrize("shape", [(7,), (5, 7), (3, 4, 5)])
def test_overlaps_are_each_element_once_and_where_it_lies(shape):
    table = [layout for layout in layouts(shape).values() if find_blocks(layout)]
    assert len(table) > 4
    for number, (a, b) in enumerate(itertools.product(table, repeat=2)):
        device = mapped(without_devices((2, 4)), number, a.core_shape, b.core_shape)
        places = [device.placement(layout.core_shape) for layout in (a, b)]
        pieces = find_pieces(a, b, device, *places)
        if pieces is None:
            continue
        windows = find_windows([find_blocks(layout) for layout in (a, b)], places)
        order = tuple(k for window in windows[1] for k in window.atoms)
        rows = pieces.rows
        assert find_overlaps(windows, order, device, len(rows.source) - 1) is None
        # A plan counts devices as the mesh does, pieces as they lie along `fine`.
        expected = gl.relayout_plan(a, b, device).bytes[np.ix_(device.order, device.order)] // 4
        found = np.zeros_like(expected)
        np.add.at(found, (rows.source, rows.target), rows.sizes.prod(axis=1))
        np.testing.assert_array_equal(found, expected, err_msg=f"{a} {b}")


def test_overlaps_found_in_blocks_are_the_same(monkeypatch):
    found = []
    for pairs in (1 << 20, 1, 5):
        monkeypatch.setattr(overlaps, "_BLOCK", pairs)
        for a, b in itertools.permutations(layouts((5, 7)).values(), 2):
            if not (find_blocks(a) and find_blocks(b)):
                continue
            device = abstract((2, 4))
            places = [device.placement(layout.core_shape) for layout in (a, b)]
            if windows := find_windows([find_blocks(layout) for layout in (a, b)], places):
                order = tuple(k for window in windows[1] for k in window.atoms)
                found.append(find_overlaps(windows, order, device, 1 << 20))
    assert len(found) > 60
    for each, other in zip(found, found[len(found) // 3 :], strict=False):
        for name in ("source", "target", "sizes", "sent", "put"):
            np.testing.assert_array_equal(getattr(each, name), getattr(other, name))


def test_too_many_overlaps_are_given_up_before_all_are_found(monkeypatch):
    # Each of 4096 columns meets each of 4096 rows.
    blocks = []
    real = overlaps._blocks
    monkeypatch.setattr(
        overlaps, "_blocks", lambda *args: (blocks.append(1) or each for each in real(*args))
    )
    device = abstract((64, 64))
    a, b = (gl.GridLayout((4096, 4096), grid=grid) for grid in ((4096, 1), (1, 4096)))
    places = [device.placement(layout.core_shape) for layout in (a, b)]
    windows = find_windows([find_blocks(layout) for layout in (a, b)], places)
    order = tuple(k for window in windows[1] for k in window.atoms)
    assert find_overlaps(windows, order, device, 1 << 16) is None
    assert len(blocks) < 9


def test_blocks_are_the_layout_without_its_tiles():
    for shape in [(7,), (5, 7), (3, 4, 5)]:
        for layout in layouts(shape).values():
            found = find_blocks(layout)
            assert (found is None) == layout.is_scatter
            if found is None:
                continue
            x = np.arange(layout.size, dtype=np.float32).reshape(shape)
            flat = packed(x, found.flat, -1)
            for index in itertools.product(*map(range, shape)):
                where = [
                    block.offset + sum(s * index[d] for d, s in block.terms)
                    for block in found.blocks
                ]
                cores = [0] * layout.core_rank
                inner = []
                for block, position in zip(found.blocks, where, strict=True):
                    if block.core is not None:
                        cores[block.core], position = divmod(position, block.size)
                    inner.append(position)
                assert tuple(cores) == layout.locate(index).core
                assert flat[(*cores, *inner)] == x[index]
