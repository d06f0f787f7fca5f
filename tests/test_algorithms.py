"""Matrix products by named algorithms: right on any layout, and the bytes of their formulas."""

import itertools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from devices import STATED, mapped
from hlo import collectives
from laid_out import poisoned
from machines import FAST
from tiers import few

import gridlayout as gl
from gridlayout.ops.products import choose
from gridlayout.sharding.machines.default_machine import emulated

DEVICES = len(jax.devices())
RNG = np.random.default_rng(0)
# Meshes, the operands' grids and tiles: even and uneven, more cores than devices and fewer.
PLACES = [
    ((2, 4), (2, 4), (2, 4), None),
    ((2, 4), (3, 5), (4, 2), (4, 4)),
    ((2, 2), (2, 2), (2, 2), (4, 8)),
    ((8,), (8, 1), (1, 8), None),
    ((2, 2, 2), (2, 2), (2, 2), None),
    ((1,), (2, 3), (3, 2), None),
]
# What an algorithm can't do: Cannon's needs a square, the 3D ones a third axis.
SQUARE = [(2, 2), (2, 2, 2), (1,)]
DEEP = [(2, 4), (2, 2, 2), (1,)]


def operand(shape, grid, tile, device, dtype="float32"):
    layout = gl.GridLayout(shape, dtype, grid=grid, tile=tile)
    return poisoned(RNG.normal(size=shape).astype(dtype), layout, device)


def device_of(mesh, number=0, *grids):
    """The device grid of a case of this number, whose operands are on these grids."""
    if np.prod(mesh) > DEVICES:
        pytest.skip(f"needs {np.prod(mesh)} devices")
    return mapped(mesh, number, *grids)


CASES = list(itertools.product(gl.ALGORITHMS, PLACES))


@pytest.mark.few(14)
@pytest.mark.parametrize(("algorithm", "place"), CASES, ids=str)
def test_the_product_is_right_or_refused(algorithm, place):
    mesh, first, second, tile = place
    device = device_of(mesh, CASES.index((algorithm, place)) + 2, first, second)
    a, b = operand((23, 37), first, tile, device), operand((37, 29), second, tile, device)
    refused = (algorithm == "cannon" and mesh not in SQUARE) or (
        algorithm in ("2.5d", "3d") and mesh not in DEEP
    )
    fns = [jnp.matmul, lambda a, b: (a @ b).T]
    turn = list(gl.ALGORITHMS).index(algorithm) + PLACES.index(place)
    for fn in few(fns[turn // 2 % 2 :] + fns[: turn // 2 % 2], 1):
        on_grid = gl.on_grid(fn, algorithm=algorithm)
        if refused:
            with pytest.raises(gl.LayoutError, match=f"'{algorithm}' needs .* 'gathered' always"):
                on_grid(a, b)
            continue
        (note,) = {row.note for row in on_grid.report(a, b).rows if row.note}
        assert note == (algorithm if mesh != (1,) else "gathered")
        if tiers.ALL or turn % 2:
            expected = fn(np.asarray(a), np.asarray(b))
            np.testing.assert_allclose(np.asarray(on_grid(a, b)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.few(3)
@pytest.mark.parametrize("algorithm", [a for a in gl.ALGORITHMS if a != "cannon"])
def test_batches_joined_dims_and_several_contracted_ones(algorithm):
    device = device_of((2, 4), gl.ALGORITHMS.index(algorithm), (2, 4))
    x = operand((3, 5, 4, 6), (2, 4), (2, 2), device)
    y = operand((4, 7, 6, 3), (2, 4), None, device)

    def fn(x, y):
        return jnp.einsum("bmkl,knlb->bnm", x, y)

    on_grid = gl.on_grid(fn, algorithm=algorithm)
    expected = fn(np.asarray(x), np.asarray(y))
    if algorithm in ("2.5d", "3d"):
        # Batches lie along the rows' axis here, so there is none for rows.
        with pytest.raises(gl.LayoutError, match="three axes"):
            on_grid(x, y)
        return
    np.testing.assert_allclose(np.asarray(on_grid(x, y)), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.few(3)
@pytest.mark.parametrize("algorithm", gl.ALGORITHMS)
def test_narrow_floats_are_summed_in_float32_and_integers_wrap(algorithm):
    device = device_of((2, 2, 2), gl.ALGORITHMS.index(algorithm) + 1, (2, 2))
    a = operand((9, 64), (2, 2), None, device, jnp.bfloat16)
    b = operand((64, 10), (2, 2), None, device, jnp.bfloat16)
    found = gl.on_grid(jnp.matmul, algorithm=algorithm)(a, b)
    wide = np.asarray(a, np.float64) @ np.asarray(b, np.float64)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(found, np.float64), wide, rtol=2**-8, atol=1e-6)
    i = RNG.integers(-128, 128, (9, 64)).astype(np.int8)
    j = RNG.integers(-128, 128, (64, 10)).astype(np.int8)
    x, y = (poisoned(v, gl.GridLayout(v.shape, "int8", grid=(2, 2)), device) for v in (i, j))
    found = np.asarray(gl.on_grid(jnp.matmul, algorithm=algorithm)(x, y))
    np.testing.assert_array_equal(found, i @ j)


@pytest.mark.few(2)
@pytest.mark.parametrize("algorithm", few(gl.ALGORITHMS, 4))
def test_gradients(algorithm):
    device = device_of((2, 2, 2), gl.ALGORITHMS.index(algorithm) + 4, (2, 2))
    a, b = operand((5, 11), (2, 2), None, device), operand((11, 7), (2, 2), None, device)

    def loss(a, b):
        return jnp.sum(jnp.sin(a @ b))

    found = jax.jit(jax.grad(gl.on_grid(loss, algorithm=algorithm), (0, 1)))(a, b)
    expected = jax.grad(loss, (0, 1))(jnp.asarray(np.asarray(a)), jnp.asarray(np.asarray(b)))
    for each, value in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(each), value, rtol=1e-4, atol=1e-5)


TYPES = list(
    itertools.product(["float8_e4m3fn", "int4", "bool", "complex64"], [None, "ring", "k_split"])
)


@pytest.mark.few(4)
@pytest.mark.parametrize(("dtype", "algorithm"), TYPES)
def test_every_type_has_its_products(dtype, algorithm):
    device = device_of((2, 4), TYPES.index((dtype, algorithm)), (1, 8))
    a, b = (jnp.asarray(RNG.integers(0, 2, (8, 8)), dtype) for _ in range(2))
    dot = lambda a, b: jax.lax.dot_general(a, b, (((1,), (0,)), ((), ())))  # noqa: E731
    x = gl.put(a, gl.GridLayout((8, 8), dtype, grid=(1, 8)), device)
    y = gl.put(b, gl.GridLayout((8, 8), dtype, grid=(8, 1)), device)
    found = gl.on_grid(dot, algorithm=algorithm)(x, y)
    assert found.dtype == a.dtype
    wide = np.complex64 if dtype == "complex64" else np.float32
    np.testing.assert_array_equal(np.asarray(found).astype(wide), dot(a, b).astype(wide))


def test_types_without_a_zero_are_cast_before_they_are_multiplied():
    device, dtype = device_of((2, 4)), "float8_e8m0fnu"
    x = jnp.asarray(2.0 ** RNG.integers(-2, 3, (5, 7)), dtype)
    a = gl.put(x, gl.GridLayout((5, 7), dtype, grid=(2, 4), tile=(2, 2)), device)
    with pytest.raises(gl.LayoutError, match=f"dot_general of {dtype}, which has no zero"):
        gl.on_grid(lambda a: a @ a.T)(a)
    for function in (
        lambda a: a.astype(jnp.bfloat16) @ a.astype(jnp.bfloat16).T,
        lambda a: jnp.sum(a.astype(jnp.float32), 1),
        lambda a: (a + a).reshape(7, 5).astype(jnp.float32),
    ):
        np.testing.assert_array_equal(np.asarray(gl.on_grid(function)(a)), function(x))


def program(fn, *arrays):
    return jax.jit(lambda *x: fn(*x).storage).lower(*arrays).compile().as_text()


# By algorithm, what all devices receive for f32[M, K] @ f32[K, N] on an R x C mesh, both laid out
# R x C, and the kinds of collectives; `a`, `b` and `c` are the bytes of the three matrices.
def all_but_own(size, parts):
    return size * (parts - 1)


FORMULAS = {
    "gathered": lambda a, b, c, r, s: all_but_own(a, s) + all_but_own(b, r),
    "ring": lambda a, b, c, r, s: all_but_own(a, s) + all_but_own(b, r),
    "summa": lambda a, b, c, r, s: all_but_own(a, s) + all_but_own(b, r),
    # One row and one column need no skew.
    "cannon": lambda a, b, c, r, s: (a + b) * (s - 1) + (a + b) * (s - 1) // s,
}
KINDS = {
    "gathered": {"all-gather"},
    "ring": {"collective-permute", "all-gather"},
    "summa": {"collective-permute"},
    "cannon": {"collective-permute"},
    "k_split": {"all-gather", "all-to-all", "reduce-scatter", "collective-permute"},
    "3d": {"all-gather", "all-to-all", "reduce-scatter", "collective-permute"},
    "2.5d": {"all-gather", "all-to-all", "reduce-scatter", "collective-permute"},
}


@pytest.mark.few(6)
@pytest.mark.parametrize("mesh", [(2, 4), (2, 2)])
@pytest.mark.parametrize("algorithm", gl.ALGORITHMS)
def test_the_compiled_program_receives_the_formula_s_bytes(algorithm, mesh):
    device = device_of(mesh)
    rows, columns = mesh
    if algorithm == "cannon" and rows != columns:
        pytest.skip("no square")
    if algorithm in ("2.5d", "3d") and mesh == (2, 2):
        pytest.skip("no third axis")
    m, k, n = 16, 48, 32
    a = gl.put(np.ones((m, k), np.float32), gl.GridLayout((m, k), grid=mesh), device)
    b = gl.put(np.ones((k, n), np.float32), gl.GridLayout((k, n), grid=mesh), device)
    fn = gl.on_grid(jnp.matmul, algorithm=algorithm)
    found = collectives(program(fn, a, b), device.size)
    total = sum(size for _, size in found)
    assert total == fn.report(a, b).bytes_moved
    if algorithm in FORMULAS:
        expected = FORMULAS[algorithm](4 * m * k, 4 * k * n, 4 * m * n, rows, columns)
        # On CPUs the gather of a later dim goes in two steps, which costs a share more.
        share = 4 * m * k * (columns - 1) // columns if algorithm == "gathered" else 0
        assert total in (expected, expected + share)
    kinds = {kind for kind, _ in found}
    assert kinds <= KINDS[algorithm] | ({"all-to-all"} if algorithm == "gathered" else set())
    if algorithm in ("k_split", "2.5d", "3d"):
        assert "reduce-scatter" in kinds or "all-reduce" in kinds


PLACED = [
    (algorithm, device)
    for device, algorithm in itertools.product(STATED, gl.ALGORITHMS)
    if (algorithm != "cannon" or device.shape in SQUARE)
    and (algorithm not in ("2.5d", "3d") or device.shape in DEEP)
]


@pytest.mark.parametrize(("algorithm", "device"), few(PLACED, 4), ids=str)
def test_where_a_map_places_operands_it_receives_what_its_report_says(algorithm, device):
    a = operand((16, 48), (2, 2), None, device)
    b = operand((48, 32), (4, 2), (2, 2), device)
    fn = gl.on_grid(jnp.matmul, algorithm=algorithm)
    found = collectives(program(fn, a, b), device.size)
    assert sum(size for _, size in found) == fn.report(a, b).bytes_moved


def test_what_goes_by_in_panels_is_not_held_whole():
    device = gl.DeviceGrid(device_of((2, 4)).mesh, machine=FAST)
    x = gl.put(np.ones((64, 64), np.float32), gl.GridLayout((64, 64), grid=(2, 4)), device)
    peak = {
        name: gl.on_grid(jnp.matmul, algorithm=name).report(x, x).peak_bytes
        for name in ("gathered", "ring", "summa")
    }
    assert peak["gathered"] > peak["ring"] > peak["summa"]
    # The rows of the left operand, gathered and transposed, the columns of the right one, and both
    # blocks and the result.
    assert peak["gathered"] == 4 * (2 * 32 * 64 + 64 * 16 + 3 * 32 * 16)


def test_the_rule_splits_k_where_that_moves_less_than_half():
    device = device_of((2, 4))
    notes = {}
    for (m, k, n), first, second in [
        ((256, 256, 256), (2, 4), (2, 4)),
        ((8, 4096, 8), (1, 8), (8, 1)),
    ]:
        a = gl.put(np.ones((m, k), np.float32), gl.GridLayout((m, k), grid=first), device)
        b = gl.put(np.ones((k, n), np.float32), gl.GridLayout((k, n), grid=second), device)
        moved = {}
        for algorithm in ("gathered", "k_split", None):
            report = gl.on_grid(jnp.matmul, algorithm=algorithm).report(a, b)
            (note,) = {row.note for row in report.rows}
            moved[algorithm] = report.bytes_moved
        notes[k] = note
        splits = "all-reduced" in note
        assert splits == (2 * moved["k_split"] < moved["gathered"])
        assert moved[None] == moved["k_split" if splits else "gathered"]
    assert notes == {256: "divided", 4096: "divided, all-reduced"}


def test_sums_scattered_along_columns_are_transposed_first():
    device = device_of((2, 4))
    a, b = (
        gl.put(np.ones(shape, np.float32), gl.GridLayout(shape, grid=(2, 4)), device)
        for shape in ((256, 256), (256, 64))
    )
    for algorithm in ("k_split", "3d"):
        (row,) = gl.on_grid(jnp.matmul, algorithm=algorithm).report(a, b).rows
        (sums,) = (c for c in row.collectives if c.kind == "reduce_scatter")
        assert sums.copied_bytes == sums.received_bytes * sums.group_size // (sums.group_size - 1)


@pytest.mark.parametrize(("grid", "turned"), [((2, 4), True), ((1, 8), True), ((8, 1), False)])
def test_operands_in_another_order_are_transposed_once_however_many_rounds(grid, turned):
    """Of a product that is computed transposed: K of both operands, in what a device multiplies."""
    device = device_of((2, 4))
    a, b = (
        gl.put(np.ones((256, 256), np.float32), gl.GridLayout((256, 256), grid=grid), device)
        for _ in "ab"
    )
    (row,) = gl.on_grid(jnp.matmul, algorithm="ring").report(a, b).rows
    copied = sum(each.copied_bytes * each.count for each in row.collectives)
    columns, rows = 256 // grid[1], 256 // grid[0]
    assert copied == turned * 4 * 256 * (columns + rows)


def test_parts_are_turned_before_they_are_gathered():
    if DEVICES != 8:
        pytest.skip("for 2x4 devices")
    device = gl.DeviceGrid((2, 4))
    x = gl.put(np.ones((4096, 256), np.float32), gl.GridLayout((4096, 256), grid=(2, 4)), device)
    text = gl.on_grid(lambda x: x.T @ x).lower(x).compile().as_text()
    (gathered,) = re.findall(r"f32\[(.*?)\][^=]* all-gather\(", text)
    assert gathered == "256,2048"  # the rows of all blocks, one after another


def test_scalars_vectors_and_transposed_products_take_any_algorithm():
    cases = itertools.product(("gathered", "ring", "summa", "k_split"), (jnp.vdot, jnp.matmul))
    for number, (algorithm, fn) in enumerate(cases):
        device = device_of((2, 4), number, (1, 8), (2, 4))
        v, a = operand((37,), (1, 8), None, device), operand((23, 37), (2, 4), None, device)
        given = (v if fn is jnp.vdot else a, v)
        found, expected = gl.on_grid(fn, algorithm=algorithm)(*given), fn(*map(np.asarray, given))
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)


def test_an_unknown_algorithm_is_refused():
    with pytest.raises(gl.LayoutError, match="algorithm 'strassen' is not one of gathered, ring"):
        gl.on_grid(jnp.matmul, algorithm="strassen")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "shapes", [((61, 45), (45, 70)), ((256, 24), (24, 256)), ((7, 999), (999, 9))]
)
@pytest.mark.parametrize("tile", [None, (8, 8)])
def test_bounds_of_plans_are_bounds(monkeypatch, shapes, tile):
    """Plans are dropped by bounds of their time, before the relayouts around them are searched."""
    made, offer = [], choose._offer

    def kept(*args):
        made.append(offer(*args))
        return made[-1]

    monkeypatch.setattr(choose, "_offer", kept)
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    for machine in (emulated(8), gl.Machine("n150", (2, 4), gl.Links(12.5e9, latency=1e-6))):
        placed = device.with_machine(machine)
        layouts = [gl.GridLayout(shape, "float32", grid=(2, 4), tile=tile) for shape in shapes]
        gl.on_grid(jnp.matmul, placed).report(*layouts)
    assert made
    for each in made:
        assert each.bound <= each.price(math.inf) * (1 + 1e-9)


@pytest.mark.parametrize("algorithm", ["gathered", "ring", "summa"])
def test_a_device_receives_what_textbooks_say(algorithm):
    """On p x p devices, of either operand all of p parts but its own one (van de Geijn, Watts)."""
    square, p = 4096, 4
    layout = gl.GridLayout((square, square), "bfloat16", grid=(p, p))
    machine = gl.Machine("v5e 4x4")
    found = gl.simulate(jnp.matmul, layout, layout, machine=machine, algorithm=algorithm)
    assert found.received == 2 * (p - 1) * square**2 // p**2 * 2
