"""Types of 2 and 4 bits that JAX has beside int4: what works with them, and what is refused."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from laid_out import equations, packed
from machines import FAST

import gridlayout as gl
from gridlayout.dtypes import MLIR_NAMES

PATHS = ("program", "gather")
LAYOUTS = (
    gl.GridLayout((6, 8), "int8", grid=(3, 2), tile=(4, 4)),
    gl.GridLayout((6, 8), "int8", grid=(2, 2), linear="(d0, d1) -> (-d0 + 5, d1 * 2)"),
    gl.parse("s8[6,8]{0,1:T(2,4)}"),
)


def values(dtype):
    """Every value of the type."""
    count = 4 if dtype.endswith("int2") else 16
    return (np.arange(48, dtype=np.uint8) % count).view(dtype).reshape(6, 8)


@pytest.mark.few(4)
@pytest.mark.parametrize("dtype", ["int2", "uint2", "float4_e2m1fn"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_packing_moves_every_value(dtype, layout):
    layout, x = layout.with_dtype(dtype), values(dtype)
    for path in PATHS:
        found = np.asarray(jax.jit(lambda x, p=path: gl.pack(x, layout, path=p))(x))
        assert found.tobytes() == packed(x, layout, np.zeros((), dtype)[()]).tobytes()
        assert np.asarray(gl.unpack(found, layout, path=path)).tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [name for name in ("int1", "uint1") if name in MLIR_NAMES])
def test_elements_of_1_bit_are_described_and_refused_by_jax(dtype):
    layout, x = gl.GridLayout((3, 11), dtype, (3, 1)), np.ones((3, 11), dtype)
    assert (layout.bytes_per_core, gl.to_bytes(x, layout).tolist()) == (2, [[[255, 7]]] * 3)
    assert gl.parse(str(layout)) == layout
    for refused in (lambda: gl.pack(x, layout), lambda: gl.put(x, layout, gl.DeviceGrid((1,)))):
        with pytest.raises(gl.LayoutError, match=f"{dtype}.* can't be .*int8"):
            refused()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_pad_removes_elements_of_4_bits(layout):
    """XLA's compiler for GPUs ends the process at such a pad."""
    layout, other = layout.with_dtype("int4"), gl.GridLayout((6, 8), "int4", grid=(2, 3))
    device = gl.DeviceGrid((len(jax.devices()),))
    laid = gl.put(values("int4"), layout, device)
    physical = jnp.zeros(layout.physical_shape, "int4")
    pads = []
    for fn, x in (
        (lambda x: gl.unpack(x, layout), physical),
        (lambda x: gl.relayout(x, other), laid),
        (lambda x: gl.relayout(x, other).to_logical(), laid),
        (gl.on_grid(lambda x: jnp.sort(x.T)[1:]), laid),
    ):
        made = jax.make_jaxpr(fn)(x).jaxpr
        pads += [e.params["padding_config"] for e in equations(made) if e.primitive.name == "pad"]
    assert all(min(low, high) >= 0 for each in pads for low, high, _ in each)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_floats_of_4_bits_are_placed_moved_and_computed_with(layout):
    layout, x = layout.with_dtype("float4_e2m1fn"), values("float4_e2m1fn")
    device = gl.DeviceGrid((len(jax.devices()),))
    laid = gl.put(x, layout, device)
    assert np.asarray(laid).tobytes() == x.tobytes()
    other = gl.GridLayout((6, 8), "float4_e2m1fn", grid=(2, 3))
    assert np.asarray(gl.relayout(laid, other)).tobytes() == x.tobytes()
    found = gl.on_grid(lambda x: x.astype(jnp.float32) * 2)(laid)
    np.testing.assert_array_equal(np.asarray(found), x.astype(np.float32) * 2)


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
def test_slices_of_elements_of_4_bits_are_read_in_place(dtype):
    x = values(dtype)
    device = gl.DeviceGrid((len(jax.devices()),))
    laid = gl.put(x, gl.GridLayout((6, 8), dtype, grid=(6, 1)), device)
    found = gl.on_grid(lambda x, at: jax.lax.dynamic_slice(x, (at, 0), (1, 8)))(laid, np.int32(4))
    assert np.asarray(found).tobytes() == x[4:5].tobytes()


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_sums_of_elements_of_4_bits_are_gathered(dtype):
    """XLA's all-reduces are of whole bytes; gathered parts are added up on every device."""
    device, x = (
        gl.DeviceGrid((2, len(jax.devices()) // 2 or 1)),
        (values(dtype).astype(int) % 2).astype(dtype),
    )
    laid = gl.put(x, gl.GridLayout((6, 8), dtype, grid=(2, 4)), device)

    def total(x):
        return jax.lax.reduce(x, np.zeros((), dtype), jax.lax.add, (0,))

    np.testing.assert_array_equal(
        np.asarray(gl.on_grid(total)(laid)).astype(int), x.astype(int).sum(0)
    )
    kinds = {each.kind for row in gl.on_grid(total).report(laid).rows for each in row.collectives}
    assert kinds == {"all_gather"}


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
def test_a_part_of_half_a_byte_is_not_empty(dtype):
    """One element per device; JAX's value, and bytes that are rounded up."""
    count = len(jax.devices())
    x = (np.arange(count) % 5).astype(dtype)
    for device, layout in (
        (gl.DeviceGrid((count,)), gl.GridLayout((count,), dtype, grid=(count,))),
        (gl.DeviceGrid((1,)), gl.GridLayout((1,), dtype, grid=(1,))),
    ):
        own = x[3 : 3 + layout.size] if layout.size == 1 else x
        laid = gl.put(own, layout, device)
        for fn in (
            lambda x: x.astype(jnp.float32) * 2,
            lambda x: jnp.flip(x),
            lambda x: jnp.concatenate([x, x]),
            lambda x: jnp.arange(8.0)[x.astype(jnp.int32)] + x[0].astype(jnp.float32),
        ):
            found, wanted = gl.on_grid(fn)(laid), jax.jit(fn)(own)
            assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()
        (row,) = gl.on_grid(lambda x: x.astype(jnp.float32)).report(laid).rows
        assert (row.held_bytes, row.peak_bytes) == (4, 5)
        for way in (gl.GridLayout((layout.size,), dtype, grid=(3,)), layout.replace(grid=(1,))):
            assert np.asarray(gl.relayout(laid, way)).tobytes() == own.tobytes()
            if layout.size > 1:
                assert gl.relayout_plan(layout, way, device).moved > 0


@pytest.mark.parametrize("per_device", [1, 2, 3])
def test_collectives_of_half_bytes_are_counted_and_run(per_device):
    """Pieces of an all-to-all and of permutes are rounded up to bytes, and never left out."""
    count = len(jax.devices())
    device = gl.DeviceGrid(gl.DeviceGrid((count,)).mesh, machine=FAST)  # bytes decide
    x = (np.arange(count * count * per_device) % 16 - 8).astype("int4").reshape(count, -1)
    rows, columns = (gl.GridLayout(x.shape, "int4", grid=g) for g in ((count, 1), (1, count)))
    plan = gl.relayout_plan(rows, columns, device)
    part = -(-per_device * 4 // 8)
    assert plan.received == (count - 1) * part * count
    assert np.asarray(gl.relayout(gl.put(x, rows, device), columns)).tobytes() == x.tobytes()


SMALL = [
    *("int4", "uint4", "int8", "uint8", "bool", "float4_e2m1fn"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "bfloat16"),
]


@pytest.mark.few(4)
@pytest.mark.parametrize("source", SMALL)
def test_casts_between_small_types_know_their_padding_or_not(source):
    """NumPy has no casts between some of these types. A known value is that of the data."""
    device = gl.DeviceGrid((1,))
    x = np.ones(3, np.int8).astype(source)
    oob = 1 if source == "float8_e8m0fnu" else 0
    laid = gl.put(x, gl.GridLayout((3,), source, grid=(2,), oob=oob), device)

    def casts(x):
        return [x.astype(each) for each in SMALL]

    for y, expected in zip(gl.on_grid(casts)(laid), jax.jit(casts)(x), strict=True):
        assert np.asarray(y).tobytes() == np.asarray(expected).tobytes()
        if y.layout.oob is not None:
            padding = np.asarray(y.physical)[y.layout.padding_mask()].astype(float)
            np.testing.assert_array_equal(padding, float(y.layout.oob))


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn", "float8_e4m3fn"])
def test_known_padding_of_small_types_goes_through_primitives(dtype):
    """NumPy lacks some functions of these types, such as shifts: then the value is unknown."""
    device = gl.DeviceGrid((1,))
    x, y = (np.array(each, np.int8).astype(dtype) for each in ([1, 0, 1], [1, 1, 0]))
    layout = gl.GridLayout((3,), dtype, grid=(2,), oob=1)
    pair = [gl.put(each, layout, device) for each in (x, y)]
    whole = dtype.endswith("int4")
    fns = [jnp.add, jnp.multiply, jnp.maximum, jnp.less, jnp.equal, jnp.subtract, jnp.negative]
    fns += [jnp.left_shift, jnp.right_shift, jnp.bitwise_and, jnp.bitwise_xor] if whole else []

    def every(x, y):
        return [fn(x) if fn is jnp.negative else fn(x, y) for fn in fns]

    for found, wanted in zip(gl.on_grid(every)(*pair), jax.jit(every)(x, y), strict=True):
        assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()
        if found.layout.oob is not None:
            padding = np.asarray(found.physical)[found.layout.padding_mask()].astype(float)
            np.testing.assert_array_equal(padding, float(found.layout.oob))


def test_bools_of_one_to_four_bits_are_read_from_files(tmp_path):
    """The bits of an element's neighbours in a byte are not its own."""
    for k, (width, x) in enumerate(product((1, 2, 4, 8, 16), ([0, 1, 0, 0], [1, 0, 1, 1]))):
        x, layout = np.array(x, bool), gl.parse(f"pred[4]{{0:E({width})}}")
        gl.save_bytes(x, layout, tmp_path / str(k))
        opened = gl.open_bytes(tmp_path / str(k))
        for found in (gl.load_bytes(tmp_path / str(k)), opened[...], [opened[n] for n in range(4)]):
            np.testing.assert_array_equal(found, x)


def test_plans_count_bits():
    """A weight of 4 bits takes half the bytes of one of 8 bits in a device's memory."""

    def peak(dtype):
        weight = jax.ShapeDtypeStruct((64, 4096), dtype)
        return gl.simulate(lambda w: -w, weight, machine="v5e 4x4").peak_bytes

    assert peak("int4") * 2 == peak("uint4") * 2 == peak("int8")


@pytest.mark.parametrize("dtype", ["int2", "uint2"])
def test_elements_of_2_bits_are_not_placed(dtype):
    device = gl.DeviceGrid((len(jax.devices()),))
    layout = gl.GridLayout((6, 8), dtype, grid=(2, 4))
    words = f"{dtype} can't be stored on devices, .* use int4 or int8"
    wide = gl.put(values(dtype).astype(np.int8), layout.with_dtype("int8"), device)
    for place in (
        lambda: gl.put(values(dtype), layout, device),
        lambda: gl.put(jnp.asarray(values(dtype)), layout, device),
        lambda: gl.put(jax.ShapeDtypeStruct((6, 8), dtype), layout, device),
        lambda: gl.from_physical(gl.pack(values(dtype), layout), layout, device),
        lambda: gl.on_grid(lambda x: x.astype(dtype))(wide),
    ):
        with pytest.raises(gl.LayoutError, match=words):
            place()


def test_two_bits_in_megengine():
    """A row of 2-bit elements fills whole bytes: four elements each."""
    layout = gl.megengine.contiguous((2, 3, 5), "int2")
    assert (layout.strides, layout.nbytes) == ((24, 8, 1), 12)
    where = layout.locate((1, 2, 3))
    assert (where.offset, where.byte, where.bit) == (43, 10, 6)
    with pytest.raises(gl.LayoutError, match="strides of uint2 must be 0, 1 or positive multiples"):
        gl.megengine.strided((2, 3), (6, 1), "uint2")


def test_two_bits_in_local_memory_share_bytes():
    chip = gl.sophon.Chip(npus=2, npu_bytes=64, alignment=16)
    first = gl.sophon.local((1, 2, 1, 6), "int2", strides=(8, 8, 8, 1), chip=chip)
    second = gl.sophon.local((1, 2, 1, 6), "int2", strides=(8, 8, 8, 1), start=1, chip=chip)
    third = gl.sophon.local((1, 2, 1, 6), "int2", strides=(8, 8, 8, 1), start=2, chip=chip)
    assert gl.sophon.overlap(first, second)
    assert not gl.sophon.overlap(first, third)
