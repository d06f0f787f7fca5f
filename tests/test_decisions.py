"""Decisions: made without devices or tracers, and true of what XLA compiles."""

import copy
import html
import itertools
import pickle
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from deciding import every_way
from hlo import OURS, compiled_collectives
from jax import lax
from jax.extend import core
from jax.sharding import AbstractMesh
from tiers import few

import gridlayout as gl
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.interpret.decide import decide
from gridlayout.ops.interpret.grid_call import spec_of, with_constants_as_operands
from gridlayout.ops.interpret.planner import planned
from gridlayout.ops.programs.report import Report

N = len(jax.devices())
SIZES = [(1,), (2, 4), (8,), (2, 2, 2), (4,), (4, 4), (64,), (8, 8)]
MESHES = [mesh for mesh in SIZES if np.prod(mesh) <= N]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def laid(shape, grid, device, seed=0):
    return gl.put(normal(*shape, seed=seed), gl.GridLayout(shape, "float32", grid), device)


def ours(report):
    """Bytes that a device receives, by kind and group size."""
    found = Counter()
    for row in report.rows:
        for each in row.collectives:
            share = each.received_bytes * each.count * each.receivers
            found[each.kind, each.group_size] += share
    return found


def theirs(fn, args, devices):
    """The same, read off what XLA compiles; of permutes the group is not to be seen there."""
    text = jax.jit(lambda *a: fn(*a)).lower(*args).compile().as_text()
    found = Counter()
    for kind, size, nbytes in compiled_collectives(text, devices):
        found[OURS[kind], size] += nbytes
    return found


def merged(found):
    """Permutes without their group."""
    out = Counter()
    for (kind, size), nbytes in found.items():
        out[kind, None if kind == "permute" else size] += nbytes
    return +out


A, B = (40, 48), (48, 64)
# Arrays differ: where one is moved twice, and the ways begin alike, XLA may do with less.
CASES = {
    "exp": (lambda x: jnp.exp(x) * 2, [A]),
    "sum of rows": (lambda x: x.sum(1), [A]),
    "sum of columns": (lambda x: x.sum(0), [A]),
    "sum of all": (lambda x: x.sum(), [A]),
    "max": (lambda x: x.max(1), [A]),
    "any": (lambda x: (x > 0).any(0), [A]),
    "product": (lambda x: x.prod(0), [A]),
    "argmax": (lambda x: jnp.argmax(x, 1), [A]),
    "softmax": (lambda x: jax.nn.softmax(x, -1), [A]),
    "layer norm": (lambda x: (x - x.mean(-1, keepdims=True)) * 2, [A]),
    "matmul": (lambda x, y: x @ y, [A, B]),
    "transposed": (lambda x, y: x.T @ y, [A, (40, 64)]),
    "by a transposed one": (lambda x, y: x @ y.T, [A, (56, 48)]),
    "batched": (lambda x, y: x @ y, [(4, 8, 16), (4, 16, 8)]),
    "cumsum": (lambda x: jnp.cumsum(x, 0), [A]),
    "cumsum of a vector": (lambda x: jnp.cumsum(x), [(96,)]),
    "reverse cumsum": (lambda x: lax.cumsum(x, reverse=True), [(96,)]),
    "sort": (lambda x: jnp.sort(x, 1), [A]),
    "top_k": (lambda x: lax.top_k(x, 3)[0], [A]),
    "top_k of a vector": (lambda x: lax.top_k(x, 3)[0], [(96,)]),
    "slice": (lambda x: x[3:11], [A]),
    "slice of a vector": (lambda x: x[5:77], [(96,)]),
    "concatenate": (lambda x, y: jnp.concatenate([x, y], 1), [A, (40, 16)]),
    "thirds": (lambda x: jnp.split(x, 3, axis=1), [A]),
    "join thirds": (lambda x, y: jnp.concatenate([x, y, x + y], 1), [A, A]),
    "concatenate vectors": (lambda x, y: jnp.concatenate([x, y]), [(96,), (40,)]),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 0))), [A]),
    "reverse": (lambda x: x[::-1], [A]),
    "rows of a table": (lambda x: x[jnp.array([3, 1, 7])], [A]),
    "one element of each row": (lambda x: x[jnp.arange(40), jnp.arange(40)], [A]),
    "scatter": (lambda x: x.at[jnp.array([3, 1])].add(1.0), [A]),
    "reshape": (lambda x: x.reshape(48, 40), [A]),
    "reshape to 3 dims": (lambda x: x.reshape(8, 5, 48), [A]),
    "transpose": (lambda x: x.T + 1, [A]),
    "convolution": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME"),
        [(2, 3, 16, 24), (4, 3, 3, 3)],
    ),
    "strided convolution": (
        lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "VALID"),
        [(2, 3, 16, 24), (4, 3, 3, 3)],
    ),
    "pooling": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (1, 1), "SAME"), [A]),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x, axis=1)), [A]),
    "cholesky of a batch": (lax.linalg.cholesky, [(8, 8, 8)]),
    "a fallback": (lax.linalg.cholesky, [(40, 40)]),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r.sum(), r * c), 0.0, x)[1], [A]),
    "attention": (jax.nn.dot_product_attention, [(2, 16, 4, 8)] * 3),
    "gradient of a layer": (lambda x, y: jax.grad(lambda y: jnp.tanh(x @ y).sum())(y), [A, B]),
}


def meshes_and_grids(case):
    """What a case is compiled on: meshes and the grids of its operands."""
    _, shapes = CASES[case]
    grids = [(2, 4), (8, 1), (3, 2)] if len(shapes[0]) > 1 else [(8,), (3,), (2,)]
    every = [
        (mesh, grid)
        for mesh in MESHES[:4]
        for grid in grids[: 2 if mesh != (2, 4) else 3]
        if len(MESHES) == 1 or mesh != (1,) or tiers.ALL
    ]
    turn = list(CASES).index(case) % len(every)
    return few(every[turn:] + every[:turn], 1)


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("case", "mesh", "grid"), [(case, *each) for case in CASES for each in meshes_and_grids(case)]
)
def test_the_report_names_the_collectives_that_are_compiled(case, mesh, grid):
    fn, shapes = CASES[case]
    device = gl.DeviceGrid(mesh)
    args = [laid(s, grid[: len(s)], device, seed=k) for k, s in enumerate(shapes)]
    grid_fn = gl.on_grid(fn)
    found = merged(ours(grid_fn.report(*args)))
    made = merged(theirs(grid_fn, args, device.size))
    assert found == made, (case, mesh, grid)


# -- choosing --------------------------------------------------------------------------------------


def products(count, seed):
    """Random products on random grids: (device, layouts of both operands)."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        mesh = [(1,), (2, 2), (4,), (2, 4), (8,), (4, 4), (16,), (8, 8), (64,)][rng.integers(9)]
        device = gl.DeviceGrid(AbstractMesh(mesh, tuple("xyz"[: len(mesh)])))
        m, k, n = (int(v) for v in rng.choice([16, 33, 64, 100, 128, 1000, 2048], 3))
        grids = [
            g for g in itertools.product([1, 2, 3, 4, 8, 16, 64], repeat=2) if np.prod(g) <= 64
        ]
        left, right = (grids[rng.integers(len(grids))] for _ in range(2))
        tile = (None, (8, 8))[rng.integers(2)]
        yield device, gl.GridLayout((m, k), grid=left, tile=tile), gl.GridLayout((k, n), grid=right)


def product(device, a, b, algorithm=None):
    (row,) = (
        row
        for row in gl.on_grid(jnp.matmul, device, algorithm=algorithm).report(a, b).rows
        if row.primitive == "dot_general"
    )
    return row


@pytest.mark.parametrize("seed", few(range(10), 1))
def test_the_choice_receives_no_more_than_the_best_named_algorithm(seed):
    for device, a, b in products(50 if tiers.ALL else 12, seed):
        chosen = product(device, a, b)
        for name in gl.ALGORITHMS:
            try:
                named = product(device, a, b, name)
            except gl.LayoutError:
                continue
            if named.device_flops == chosen.device_flops:
                assert chosen.bytes_moved <= named.bytes_moved, (device, a, b, name)


def test_a_product_of_short_sides_receives_the_lower_bound():
    device = gl.DeviceGrid(AbstractMesh((8, 8), ("x", "y")))
    a, b = gl.GridLayout((256, 16384), grid=(1, 64)), gl.GridLayout((16384, 256), grid=(64, 1))
    assert product(device, a, b).bytes_moved == 64 * 4 * 64_512
    # From blocks of both, where the operands must be dealt out anew first.
    a, b = a.replace(grid=(8, 8)), b.replace(grid=(8, 8))
    assert product(device, a, b).bytes_moved < 64 * 4 * 974_848 / 4


def test_a_policy_and_with_layout_are_obeyed():
    device = gl.DeviceGrid((N,))
    x, y = laid((40, 48), (N, 1), device), laid((48, 64), (1, N), device, seed=1)
    expected = gl.GridLayout((40, 64), grid=(1, 2))
    chosen = gl.on_grid(jnp.matmul, policy=lambda *_: expected)(x, y)
    assert chosen.layout == expected
    assert gl.on_grid(lambda x, y: gl.with_layout(x @ y, expected))(x, y).layout == expected


# -- without devices -------------------------------------------------------------------------------


def block(p, x):
    h = (x - x.mean(-1, keepdims=True)) @ p["qkv"]
    q, k, v = (part.reshape(8, 128, 8, 32) for part in jnp.split(h, 3, axis=-1))
    x = x + jax.nn.dot_product_attention(q, k, v).reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(x @ p["up"]) @ p["down"]


WEIGHTS = {"qkv": (256, 768), "out": (256, 256), "up": (256, 1024), "down": (1024, 256)}


def test_a_mesh_without_devices_reports_what_one_with_devices_does():
    devices = gl.DeviceGrid((N,))
    sizes = AbstractMesh((N,), ("x",))
    abstract = gl.DeviceGrid(sizes, machine=devices.machine)
    layouts = [gl.GridLayout(s, grid=(N, 1)) for s in (*WEIGHTS.values(), (1024, 256))]
    *weights, x = layouts
    there = gl.on_grid(block, devices).report(dict(zip(WEIGHTS, weights, strict=True)), x)
    here = gl.on_grid(block, abstract).report(dict(zip(WEIGHTS, weights, strict=True)), x)
    assert [(r.primitive, r.bytes_moved, r.flops) for r in here.rows] == [
        (r.primitive, r.bytes_moved, r.flops) for r in there.rows
    ]
    structs = [gl.put(jax.ShapeDtypeStruct(a.shape, a.dtype), a, abstract) for a in layouts]
    again = gl.on_grid(block).report(dict(zip(WEIGHTS, structs[:-1], strict=True)), structs[-1])
    assert str(again) == str(here)


@pytest.mark.parametrize(
    "needs_data",
    [
        np.asarray,
        bool,
        jax.block_until_ready,
        lambda x: x.to_logical(),
        lambda x: x.physical,
        lambda x: x.with_oob(0),
        lambda x: gl.relayout(x, x.layout),
        lambda x: gl.relayout([x], x.layout.replace(grid=(1, 2))),
        lambda x: gl.map_shards(lambda shard: shard, x, out=x.layout),
        lambda x: x + 1,
        lambda x: gl.on_grid(jnp.sum)(x),
        lambda x: gl.numpy.sum(x),
    ],
)
@pytest.mark.parametrize("sizes", [(2, 4), AbstractMesh((2, 4), ("x", "y"))])
def test_what_has_a_shape_and_no_data_says_so(sizes, needs_data):
    layout = gl.GridLayout((3, 5), grid=(3, 2))
    device = gl.DeviceGrid(sizes)
    x = gl.put(jax.ShapeDtypeStruct((3, 5), np.float32), layout, device)
    with pytest.raises(gl.LayoutError, match=r"needs (data, and Grid|devices, but Device)"):
        needs_data(x)


def test_what_has_no_data_is_shown_copied_and_pickled():
    layout = gl.GridLayout((3, 5), grid=(3, 2))
    shape = jax.ShapeDtypeStruct((3, 5), np.float32)
    there, here = gl.DeviceGrid((2, 4)), gl.DeviceGrid(AbstractMesh((2, 4), ("x", "y")))
    assert layout.draw("fold", device=here).svg == layout.draw("fold", device=there).svg
    for device in (there, here):
        x = gl.put(shape, layout, device)
        assert repr(x) == "GridArray(float32[3,5], grid 3x2, on 2x4 devices, no data)"
        assert "<svg" in x._repr_html_()
        for again in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert repr(again) == repr(x)
            assert (again.layout, again.device) == (layout, device)


def test_a_mesh_of_32768_devices_places_counts_and_plans():
    device = gl.DeviceGrid(AbstractMesh((256, 128), ("x", "y")))
    assert device.size == 32_768
    assert str(device.core_map((256, 128))) == "(d0, d1) -> (d0, d1, 0, 0)"
    layout = gl.GridLayout((4096, 4096), grid=(256, 128))
    report = gl.on_grid(lambda x: jax.nn.softmax(x, -1), device).report(layout)
    (collective,) = {c for row in report.rows for c in row.collectives}
    assert str(collective) == "all_reduce y:128 127 B"
    plan = gl.relayout_plan(layout, layout.replace(grid=(128, 256)), device)
    assert 0 < plan.moved <= plan.received
    assert plan.received == sum(each.total_bytes for each in plan.collectives)
    assert f"on 32768 devices: {plan.how}" in str(plan)
    assert plan._repr_html_() == f"<pre>{html.escape(str(plan))}</pre>"
    with pytest.raises(gl.LayoutError, match="between 32768 devices is too large"):
        plan.bytes  # noqa: B018
    with pytest.raises(gl.LayoutError, match=r"gl\.put needs devices, but DeviceGrid"):
        gl.put(np.zeros((4096, 4096), np.float32), layout, device)
    with pytest.raises(gl.LayoutError, match="needs devices"):
        gl.on_grid(jnp.exp, device)(np.zeros((8, 8), np.float32))


def test_deciding_asks_no_device_and_traces_nothing(monkeypatch):
    device = gl.DeviceGrid(AbstractMesh((4, 8), ("x", "y")))
    a, b = gl.GridLayout((64, 96), grid=(4, 8)), gl.GridLayout((64, 32), grid=(4, 8))

    def fn(a, b):
        y = jnp.sin(a.T) @ b
        z = lax.scan(lambda c, row: (c + row, row.max()), jnp.zeros(32), y)
        return (
            jax.nn.softmax(y, 0),
            z,
            jnp.sort(a, 1)[::2],
            a[jnp.arange(3)],
            y.reshape(-1).cumsum(),
        )

    traced = jax.make_jaxpr(fn)(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (a, b)))
    jaxpr, consts = with_constants_as_operands(traced)
    specs = [spec_of(jax.typeof(const)) for const in consts]
    specs += [Sharded(x, device.placement(x.grid)) for x in (a, b)]

    def refused(*args, **kwargs):
        raise AssertionError("a decision must not run anything")

    for module, names in [
        (jax, ["shard_map", "eval_shape", "jit", "device_put", "make_jaxpr", "vmap"]),
        (core.Primitive, ["bind"]),
    ]:
        for name in names:
            monkeypatch.setattr(module, name, refused)
    program = planned(Env(device), Graph.of(jaxpr), specs)
    monkeypatch.undo()
    report = Report.of(program)
    assert len(report.rows) == 25
    assert not report.fallbacks


# -- the report ------------------------------------------------------------------------------------


def test_a_loop_counts_its_body_times_its_length_and_a_branch_the_costliest():
    device = gl.DeviceGrid(AbstractMesh((8,), ("x",)))
    x = gl.GridLayout((64, 64), grid=(8, 1))

    def loop(x):
        return lax.scan(lambda c, _: (c + x.sum(0), None), jnp.zeros(64), length=5)[0]

    def branch(x):
        return lax.cond(x[0, 0] > 0, lambda x: x.sum(0), lambda x: x.sum(1), x)

    def trip(x):
        return lax.while_loop(lambda c: c.sum() < 9, lambda c: c + c.sum(0), x)

    (row,) = (r for r in gl.on_grid(loop, device).report(x).rows if r.primitive == "reduce_sum")
    once = 2 * 7 * 64 * 4 // 8
    assert [c.received_bytes for c in row.collectives] == [once]
    assert row.bytes_moved == 5 * 8 * once
    rows = [r for r in gl.on_grid(branch, device).report(x).rows if r.primitive == "reduce_sum"]
    assert [(r.bytes_moved, r.note) for r in rows] == [(8 * once, "the costliest branch")]
    rows = [r for r in gl.on_grid(trip, device).report(x).rows if r.primitive == "reduce_sum"]
    assert [r.note for r in rows] == ["per trip", "per trip"]


@pytest.mark.parametrize(
    ("name", "fn", "shape", "flops"),
    [
        ("cholesky", lax.linalg.cholesky, (3, 8, 8), 3 * 8**3 // 3),
        ("eigh", lax.linalg.eigh, (3, 8, 8), 3 * 9 * 8**3),
        ("fft", jnp.fft.rfft, (4, 64), 4 * 5 * 64 * 6 // 2),
        ("sort", lax.sort, (4, 64), 4 * 64 * 6),
        ("exp", jnp.exp, (4, 64), 256),
        ("cumsum", jnp.cumsum, (64,), 64),
        (
            "reduce_window_sum",
            lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), "SAME"),
            *((4, 8), 96),
        ),
    ],
)
def test_every_primitive_has_its_flops(name, fn, shape, flops):
    device = gl.DeviceGrid(AbstractMesh((2,), ("x",)))
    layout = gl.GridLayout(shape, grid=(2, 1, 1)[: len(shape)], collapse=[])
    rows = [r for r in gl.on_grid(fn, device).report(layout).rows if r.primitive == name]
    assert [row.flops for row in rows] == [flops]


def test_a_fallback_counts_what_every_device_does():
    device = gl.DeviceGrid(AbstractMesh((4,), ("x",)))
    report = gl.on_grid(lax.linalg.eigh, device).report(gl.GridLayout((64, 64), grid=(4, 1)))
    row, *_ = report.fallbacks
    assert row.how == "fallback"
    assert [str(c) for c in row.collectives] == ["all_gather x:4 12,288 B"]
    alone = gl.on_grid(lax.linalg.eigh, gl.DeviceGrid(AbstractMesh((1,), ("x",))))
    (own,) = (r for r in alone.report(gl.GridLayout((64, 64))).rows if r.primitive == row.primitive)
    assert row.flops == 4 * own.flops > 0


def test_rules_offer_every_good_way_and_all_of_them_are_right():
    device = gl.DeviceGrid((2, 4) if N >= 8 else (N,))
    x, y = laid((40, 48), (2, 4), device), laid((48, 64), (2, 4), device, seed=1)
    for fn, arrays, count in [
        (lambda x, y: lax.dot(x, y), (x, y), 4),
        (lambda x: lax.reduce_max(x, (0,)), (x,), 2),
    ]:
        ways = list(every_way(fn, arrays))
        assert len(ways) >= count
        assert len({(way.note, way.collectives) for way, *_ in ways}) == len(ways)
        chosen = decide(ways[0][0].op, ways[0][0].operands, Env(device))
        assert ways[0][0].note == chosen.note
        seconds = [Env(device).machine.seconds(way.collectives) for way, *_ in ways]
        assert seconds[0] == min(seconds)
        expected = fn(*(jnp.asarray(np.asarray(a)) for a in arrays))
        for way, _, (found,) in ways:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=way.note)
