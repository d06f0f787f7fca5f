"""Types of 2 and 4 bits that JAX has beside int4: what works with them, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from laid_out import equations, packed

import gridlayout as gl

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


@pytest.mark.parametrize("dtype", ["int2", "uint2", "float4_e2m1fn"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_packing_moves_every_value(dtype, layout):
    layout, x = layout.with_dtype(dtype), values(dtype)
    for path in PATHS:
        found = np.asarray(jax.jit(lambda x, p=path: gl.pack(x, layout, path=p))(x))
        assert found.tobytes() == packed(x, layout, np.zeros((), dtype)[()]).tobytes()
        assert np.asarray(gl.unpack(found, layout, path=path)).tobytes() == x.tobytes()


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
