"""`gl.relayout` and its plan on devices: what arrives, what moves, what the program gathers."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from devices import STATED, mapped
from hlo import collectives
from jax.sharding import AbstractMesh, NamedSharding
from laid_out import indices, layouts, optimized, packed, poisoned
from machines import FAST, with_latency
from tiers import few

import gridlayout as gl
from gridlayout.layouts.steps import StepBuilder
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.relayout import find_move
from gridlayout.sharding.collectives import total_bytes
from gridlayout.sharding.exchanges.exchange import local_bytes
from gridlayout.sharding.exchanges.find_exchange import find_exchange
from gridlayout.sharding.meshes.placement import Placement

DEVICES = len(jax.devices())


def device_grid(number=0, *layouts):
    """The device grid of a case of this number, of these layouts."""
    mesh = (2, DEVICES // 2) if DEVICES % 2 == 0 else (DEVICES,)
    return mapped(mesh, number, *(layout.core_shape for layout in layouts), machine=FAST)


def compiled(x, layout):
    return jax.jit(lambda x: gl.relayout(x, layout).storage).lower(x).compile().as_text()


def holders(layout, device):
    """For each device, the elements that lie in its shards, found by value."""
    x = np.arange(1, 1 + np.prod(layout.shape, dtype=int), dtype=np.int32).reshape(layout.shape)
    layout = layout.with_dtype("int32")
    put = gl.from_physical(packed(x, layout, -1), layout, device)
    mask = np.zeros(put.storage.shape, bool)
    for index in indices(layout.shape):
        where = layout.locate(index)
        mask[(*where.core, *where.local)] = True
    found = {}
    for shard in put.storage.addressable_shards:
        found[shard.device.id] = set(np.asarray(shard.data)[mask[shard.index]].tolist())
    return [found[d.id] for d in device.mesh.devices.flat]


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", [(7,), (5, 7), (3, 4, 5)])
def test_the_plan_counts_what_devices_hold_and_need(shape):
    table = list(layouts(shape).values())
    for number, (a, b) in enumerate(zip(table, table[3:] + table[:3], strict=True)):
        device = device_grid(number, a, b)
        plan = gl.relayout_plan(a, b, device)
        have, need = holders(a, device), holders(b, device)
        for t, expected in enumerate(need):
            assert plan.bytes[:, t].sum() == 4 * len(expected), (a, b)
            assert plan.bytes[t, t] == 4 * len(expected & have[t]), (a, b)
            for s, held in enumerate(have):
                assert plan.bytes[s, t] <= 4 * len(held & expected), (a, b)
        assert plan.moved + plan.stays == 4 * sum(map(len, need))


def test_the_plan_of_cores_needs_no_devices():
    a, b = gl.GridLayout((6, 4), grid=(2, 1)), gl.GridLayout((6, 4), grid=(3, 1))
    plan = gl.relayout_plan(a, b)
    assert plan.bytes.tolist() == [[32, 16, 0], [0, 16, 32], [0, 0, 0]]
    assert (plan.stays, plan.moved, plan.how) == (48, 48, "exchange")
    assert "48 B must move, 48 B stay" in str(plan)


PAIRS = [
    ({"grid": (2, 4), "tile": (4, 4)}, {"grid": (2, 4), "tile": (2, 8)}, "local"),
    ({"grid": (2, 4), "tile": (32, 32)}, {"grid": (2, 4)}, "local"),
    ({"grid": (2, 4)}, {"grid": (2, 4), "linear": "(d0, d1) -> (d0, d1)"}, "nothing"),
    ({"grid": (2, 4)}, {"grid": (2, 4), "memory_space": "dram"}, "copy"),
    ({"grid": (2, 4)}, {"grid": (2, 1)}, "exchange"),
    ({"grid": (1, 1)}, {"grid": (2, 4)}, "local"),
    ({"grid": (2, 4)}, {"grid": (4, 2)}, "aligned"),
    ({"grid": (8, 1)}, {"grid": (2, 4)}, "aligned"),
    ({"grid": (4, 4), "tile": (16, 16)}, {"grid": (2, 8), "tile": (8, 4)}, "pieces"),
    ({"grid": (3, 2)}, {"grid": (5, 1)}, "pieces"),
    ({"grid": (2, 4)}, {"grid": (1, 8), "tile": (4, 4)}, "pieces"),
    ({"grid": (3, 3)}, {"grid": (3, 3), "linear": "(d0, d1) -> (d0 + d1, d1)"}, "logical"),
]


def true_plan(a, b, device):
    """The plan of a relayout, which receives what the compiled program gathers."""
    a, b = (gl.GridLayout((53, 63), **arguments) for arguments in (a, b))
    x = gl.put(np.zeros(a.shape, np.float32), a, device)
    plan = gl.relayout_plan(x, b)
    assert plan.received >= plan.moved
    if plan.how == "logical":
        return plan
    found = collectives(compiled(x, b), device.size)
    copied = sum(each.total_bytes for each in plan.collectives if each.kind == "copy")
    assert plan.received - copied == sum(size for _, size in found)
    if plan.how in ("nothing", "copy", "local"):
        assert found == []
    return plan


@pytest.mark.parametrize(("a", "b", "how"), PAIRS)
def test_the_program_gathers_what_the_plan_says(a, b, how):
    plan = true_plan(a, b, device_grid())
    assert plan.how == how or DEVICES != 8


@pytest.mark.parametrize(("pair", "device"), few(itertools.product(PAIRS, STATED), 5), ids=str)
def test_so_it_does_wherever_a_map_places_cores(pair, device):
    true_plan(*pair[:2], device)


def test_a_mesh_axis_moves_from_one_dim_to_another_in_one_all_to_all():
    device = device_grid()
    a = gl.GridLayout((64, 64), grid=(DEVICES, 1), tile=(4, 4))
    b = a.replace(grid=(1, DEVICES), tile=(2, 8))
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    laid = gl.put(x, a, device)
    np.testing.assert_array_equal(np.asarray(gl.relayout(laid, b)), x)
    plan = gl.relayout_plan(laid, b)
    # Nothing goes that does not have to: no padding, nothing thrown away.
    assert plan.received == plan.moved == x.nbytes * (DEVICES - 1) // DEVICES
    assert {kind for kind, _ in collectives(compiled(laid, b), DEVICES)} <= {"all-to-all"}


GATHERED = [
    ({"grid": (2, 4, 1)}, {"grid": (1, 1, 1)}),
    ({"grid": (2, 1, 4), "tile": (2, 4, 4)}, {"grid": (1, 1, 1), "tile": (4, 2, 8)}),
    ({"grid": (4, 2, 1)}, {"grid": (1, 1, 1), "tile": (1, 4, 4)}),
    ({"grid": (1, 4, 2)}, {"grid": (1, 1, 1), "linear": "(d0, d1, d2) -> (d2, -d0 + 7, d1)"}),
    ({"grid": (2, 4), "linear": "(d0, d1, d2) -> (d0 * 16 + d1, d2)"}, {"grid": (1, 1, 1)}),
]


@pytest.mark.few(5)
@pytest.mark.parametrize("dtype", ["float32", "int4"])
@pytest.mark.parametrize(("a", "b"), GATHERED)
def test_dims_are_gathered_at_once_where_collectives_take_long_to_begin(a, b, dtype):
    if DEVICES % 2 or DEVICES == 2:
        pytest.skip("two mesh axes")
    a, b = (
        gl.GridLayout((8, 16, 32), dtype, **({} if "linear" in each else {"collapse": []}), **each)
        for each in (a, b)
    )
    device = gl.DeviceGrid((2, DEVICES // 2), machine=with_latency(1.0))
    x = np.arange(8 * 16 * 32).reshape(a.shape).astype(a.dtype)
    laid = poisoned(x, a, device)
    plan = gl.relayout_plan(laid, b)
    moved = gl.relayout(laid, b)
    assert (np.asarray(moved) == x).all()
    assert moved.layout.with_oob(None) == b
    places = device.placement(a.core_shape), device.placement(b.core_shape)
    divided = sum(bool(axes) for axes in places[0].axes)
    assert len(plan.collectives) == 1
    if divided > 1:
        exchange = find_exchange(a, b, device, *places[::-1], at_once=True)
        (gather,) = exchange.transfers
        assert len(gather.parts) == divided
        assert str(gather) in str(plan)
    if dtype == "float32":
        assert [kind for kind, _ in collectives(compiled(laid, b), DEVICES)] == ["all-gather"]


@pytest.mark.parametrize("seed", few(range(12), 3))
def test_gathers_at_once_of_random_layouts(seed):
    if DEVICES % 2 or DEVICES == 2:
        pytest.skip("two mesh axes")
    device, rng = (
        gl.DeviceGrid((2, DEVICES // 2), machine=with_latency(1.0)),
        np.random.default_rng(seed),
    )
    found = 0
    while found < 3:
        shape = tuple(map(int, rng.choice([3, 4, 5, 8, 12, 16], rng.integers(2, 4))))
        drawn = rng.choice([1, 2, 4], (2, len(shape)))
        grids = [[min(int(g), n) for n, g in zip(shape, row, strict=True)] for row in drawn]
        tile = tuple(map(int, rng.choice([1, 2, 4], len(shape))))
        a = gl.GridLayout(shape, "float32", grids[0], tile, [])
        b = gl.GridLayout(shape, "float32", grids[1] if seed % 2 else [1] * len(shape), None, [])
        places = device.placement(a.core_shape), device.placement(b.core_shape)
        exchange = find_exchange(a, b, device, *places[::-1], at_once=True)
        if exchange is None:
            continue
        found += 1
        x = rng.normal(size=shape).astype("f4")
        laid = poisoned(x, a, device)
        assert (np.asarray(gl.relayout(laid, b)) == x).all()
        sizes = local_bytes(a, places[0]), local_bytes(b, places[1])
        once, plan = exchange.collectives(*sizes, places[0], device), gl.relayout_plan(laid, b)
        assert len(plan.collectives) <= len(once) or plan.received < total_bytes(once)


def test_the_same_buffer_counted_in_other_cores_moves():
    builder = StepBuilder((8, 4))
    whole = gl.Layout((8, 4), "float32", builder.steps, (0, 1), core_rank=0)
    split = gl.Layout((8, 4), "float32", builder.steps, (0, 1), core_rank=1)
    device, x = device_grid(), np.arange(32, dtype=np.float32).reshape(8, 4)
    found = gl.relayout(gl.put(x, whole, device), split)
    np.testing.assert_array_equal(np.asarray(found), x)
    assert found.sharding.is_equivalent_to(device.sharding(split), 2)
    assert gl.relayout_plan(split, whole, device).moved == x.nbytes * (DEVICES - 1)


def test_on_one_device_nothing_is_received():
    a, b = gl.GridLayout((5, 7), grid=(2, 4)), gl.GridLayout((5, 7), grid=(4, 2), tile=(2, 2))
    plan = gl.relayout_plan(a, b, gl.DeviceGrid((1,)))
    assert (plan.moved, plan.received, plan.how) == (0, 0, "local")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e5m2"])
def test_every_bit_arrives(dtype):
    bits = np.dtype(f"uint{gl.GridLayout((1,), dtype, (1,)).dtype.itemsize * 8}")
    values = np.arange(6 * 50, dtype=np.uint64) * 2654435761 % 2 ** (bits.itemsize * 8)
    x = values.astype(bits).reshape(6, 50).view(dtype)  # NaNs of every payload, -0.0, subnormals
    table = [
        gl.GridLayout((6, 50), dtype, grid, tile)
        for grid, tile in [((2, 4), None), ((4, 2), (2, 4)), ((1, 8), (4, 3)), ((1, 1), (8, 8))]
    ]
    for number, (a, b) in enumerate(few(itertools.product(table, table), 3)):
        device = device_grid(number, a, b)
        found = optimized(partial(gl.relayout, layout=b))(gl.put(x, a, device))
        np.testing.assert_array_equal(np.asarray(found).view(bits), x.view(bits))


def test_a_known_padding_is_written_and_an_unknown_one_is_not_trusted():
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    a, b = gl.GridLayout((5, 7), grid=(2, 4)), gl.GridLayout((5, 7), grid=(3, 2), tile=(4, 4))
    device = device_grid()
    found = gl.relayout(poisoned(x, a, device), b.with_oob(3))
    np.testing.assert_array_equal(np.asarray(found.physical), packed(x, b, 3))
    # From a layout whose padding is known to hold the same, the program writes only what is new.
    known = gl.relayout(gl.put(x, a.with_oob(3), device), b.with_oob(3))
    np.testing.assert_array_equal(np.asarray(known.physical), packed(x, b, 3))


def test_derivatives_and_batches_go_through():
    a, b = gl.GridLayout((5, 7), grid=(2, 4)), gl.GridLayout((5, 7), grid=(1, 8), tile=(2, 2))
    device = device_grid()
    x, w = (np.random.default_rng(k).standard_normal((5, 7)).astype(np.float32) for k in range(2))
    laid = poisoned(x, a, device)

    def loss(x):
        return (gl.relayout(x, b).to_logical() * w).sum()

    np.testing.assert_allclose(np.asarray(jax.grad(loss)(laid)), w, rtol=1e-6)
    tangent = gl.put(w, a, device)
    _, moved = jax.jvp(lambda x: gl.relayout(x, b).to_logical(), (laid,), (tangent,))
    np.testing.assert_array_equal(np.asarray(moved), w)
    many = jax.vmap(lambda k: gl.relayout(gl.put(x * k, a, device), b).to_logical())
    np.testing.assert_array_equal(
        np.asarray(many(jnp.arange(3.0))), np.stack([x * k for k in range(3)])
    )


@pytest.mark.skipif(DEVICES < 8, reason="three mesh axes")
@pytest.mark.parametrize("tile", [None, (2, 3)])
def test_between_any_two_placements(tile):
    # The same digit may be divided by other mesh axes before than after, or by none.
    shape, grid = (8, 12), (4, 2)
    device = mapped((2, 2, 2), 2 if tile else 0, grid)
    layout = gl.GridLayout(shape, "int32", grid=grid, tile=tile)
    x = np.arange(1, 97, dtype=np.int32).reshape(shape)
    choices = [(), ("x",), ("y",), ("z",)]
    places = [
        Placement(
            grid, axes, grid, tuple(n // 2 if a else n for n, a in zip(grid, axes, strict=True))
        )
        for axes in itertools.product(choices, choices)
        if axes[0] != axes[1] or not axes[0]
    ]
    expected = packed(x, layout, 0)
    for before in few(places[::3], 2):
        laid = jax.device_put(expected, NamedSharding(device.fine, before.spec))
        moves = [find_move(layout, layout, device, before, after) for after in places]

        found = jax.jit(
            jax.shard_map(
                lambda part, moves=moves: [
                    part if m is None else m.run(LazyView.of(part)).materialize() for m in moves
                ],
                mesh=device.fine,
                in_specs=before.spec,
                out_specs=[after.spec for after in places],
                check_vma=False,
            )
        )(laid)
        for after, each in zip(places, found, strict=True):
            np.testing.assert_array_equal(each, expected, err_msg=f"{before.axes} -> {after.axes}")


def test_a_plan_refuses_what_a_relayout_refuses():
    a = gl.GridLayout((5, 7))
    with pytest.raises(gl.LayoutError, match="keeps shape and dtype"):
        gl.relayout_plan(a, gl.GridLayout((7, 5)))
    with pytest.raises(gl.LayoutError, match=r"give a gl\.Layout"):
        gl.relayout_plan(a, None)
    with pytest.raises(gl.LayoutError, match=r"device \(2, 4\) must be a gl\.DeviceGrid"):
        gl.relayout_plan(a, a, (2, 4))
    x = gl.put(np.zeros((5, 7), np.float32), a, device_grid())
    with pytest.raises(gl.LayoutError, match="the array is on"):
        gl.relayout_plan(x, a, gl.DeviceGrid((1,)))


@pytest.mark.parametrize("mesh", [(2, 4), (8,), (2, 2, 2), (3,)], ids=str)
def test_a_plan_s_totals_are_those_of_its_matrix(mesh):
    mesh = jax.sharding.AbstractMesh(mesh, tuple("xyz"[: len(mesh)]))
    grids = [(2, 4), (4, 2), (8, 1), (1, 1), (3, 2), (1, 3), (5, 5)]
    for number, (first, second) in enumerate(itertools.product(grids, repeat=2)):
        device = mapped(mesh, number, first, second)
        a, b = (gl.GridLayout((12, 20), grid=grid) for grid in (first, second))
        for on in (device, None):
            plan = gl.relayout_plan(a, b, on)
            assert plan.stays == np.trace(plan.bytes)
            assert plan.moved == plan.bytes.sum() - np.trace(plan.bytes)


@pytest.mark.skipif(DEVICES < 4, reason="4 devices")
@pytest.mark.filterwarnings("ignore::gridlayout.errors.LayoutWarning")  # blocks without elements
@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_blocks_change_their_size_wherever_elements_end(rows):
    device = gl.DeviceGrid((2, 2))
    sizes = [None, *(n for n in (2, 3, 4, 6) if 2 * n >= rows)]
    for n, m in itertools.permutations(sizes, 2):
        shape = rows, 6
        old, new = (gl.GridLayout(shape, grid=(2, 2), shard_shape=(k, None)) for k in (n, m))
        x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(gl.relayout(poisoned(x, old, device), new), x)


@pytest.mark.parametrize(
    ("before", "after", "copied"),
    [
        ((8, 1), (1, 1), 0),  # rows are joined as they arrive
        ((1, 8), (1, 1), 1),  # columns are joined row by row
        ((2, 4), (2, 1), 1),
        ((2, 4), (1, 4), 0),
    ],
)
def test_gathers_along_inner_dims_copy_what_they_join(before, after, copied):
    device = gl.DeviceGrid(AbstractMesh((2, 4), ("x", "y")))
    old, new = (gl.GridLayout((64, 64), grid=grid, collapse=[]) for grid in (before, after))
    places = map(device.placement, (old, new))
    (sent,) = find_move(old, new, device, *places).collectives
    whole = 64 * 64 * 4 // np.prod(after)
    assert sent.copied_bytes == copied * whole
