"""`gl.to_bytes`: the bytes of each core, against bytes that are put one by one where `locate` says.

The judge shares no code with the library but `locate`, and `byte_of` for what holds no element.
"""

import subprocess
import sys
from math import prod

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from core_layouts import BITS, SHAPE, TOY, bits_of_elements, example, systems
from hypothesis import given
from hypothesis import strategies as st
from laid_out import indices

import gridlayout as gl
from gridlayout.dtypes import BLOCK_FORMATS, MLIR_NAMES
from gridlayout.layouts.bits import pack_bits, unpack_bits
from gridlayout.tenstorrent import bfp

TILE_FORMATS = tuple(BLOCK_FORMATS)

pytestmark = pytest.mark.filterwarnings("ignore:format .* is made for:gridlayout.LayoutWarning")


def brute(x, layout):
    """The bytes of each core, by hand: padding everywhere, and then each element."""
    width, start = layout.stored_bits, layout.byte_of(0)

    def put(held, byte, bit, value):
        byte -= start
        if width % 8 == 0:
            held[byte : byte + width // 8] = value.ljust(width // 8, b"\0")
        else:
            held[byte] = held[byte] & ~((1 << width) - 1 << bit) | value[0] << bit

    fill = np.asarray(0 if layout.oob is None else layout.oob).astype(layout.dtype).tobytes()
    empty = bytearray(layout.bytes_per_core)
    for offset in range(prod(layout.local_shape)):
        put(empty, layout.byte_of(offset), layout.bit_of(offset), fill)
    cores = {core: bytearray(empty) for core in indices(layout.core_shape)}
    for index in indices(layout.shape):
        where = layout.locate(index)
        put(cores[where.core], where.byte, where.bit, x[index].tobytes())
    return cores


@pytest.mark.few(8)
@pytest.mark.parametrize("dtype", MLIR_NAMES)
def test_bytes_lie_where_elements_are_said_to(dtype):
    for name, layout in systems(dtype).items():
        x = example(SHAPE, dtype)
        held = gl.to_bytes(x, layout)
        assert held.dtype == np.uint8, name
        assert held.shape == (*layout.core_shape, layout.bytes_per_core), name
        for core, expected in brute(x, layout).items():
            assert bytes(held[core]) == expected, (name, core)
        found = gl.from_bytes(held, layout)
        assert (found.shape, found.dtype) == (x.shape, x.dtype), name
        assert found.tobytes() == x.tobytes(), name


@pytest.mark.parametrize("dtype", ["bool", "int2", "uint4", "float4_e2m1fn", "int8", "bfloat16"])
def test_what_is_no_element_is_never_read(dtype):
    for name, layout in systems(dtype).items():
        x = example(SHAPE, dtype)
        mask = bits_of_elements(layout, dtype)
        poisoned = gl.to_bytes(x, layout) | ~mask
        assert gl.from_bytes(poisoned, layout).tobytes() == x.tobytes(), name


# -- sub-byte types --------------------------------------------------------------------------------


def test_nchw64_of_int4_has_two_elements_a_byte():
    """ "NCHW32和NCHW64分别针对int8和int4数据类型": 64 channels of 4 bits, 32 bytes."""
    layout = gl.megengine.format((1, 64, 1, 1), "NCHW64", "int4")
    x = (np.arange(64) % 16 - 8).astype("int4").reshape(layout.shape)
    held = gl.to_bytes(x, layout)
    assert layout.nbytes == 32
    assert held.shape == (32,)
    for c in range(64):
        where = layout.locate((0, c, 0, 0))
        assert (where.byte, where.bit) == (c // 2, c % 2 * 4)
        nibble = held[c // 2] >> (c % 2 * 4) & 15
        assert nibble == int(x[0, c, 0, 0]) % 16


def test_odd_rows_of_four_bits_begin_at_whole_bytes():
    # MegEngine packs a row's elements a, b as a + (b << 4), and fills up the row's last byte.
    layout = gl.megengine.format((1, 1, 2, 3), "NCHW", "uint4")
    held = gl.to_bytes(np.array([1, 2, 3, 4, 5, 6], "uint4").reshape(layout.shape), layout)
    assert held.tolist() == [1 + (2 << 4), 3, 4 + (5 << 4), 6]


@pytest.mark.parametrize("dtype", sorted(name for name in BITS if BITS[name] > 1))
def test_jax_joins_small_elements_in_the_same_order(dtype):
    per_byte = 8 // BITS[dtype]
    layout = gl.GridLayout((4, 8), dtype, grid=(2, 2))
    x = example((4, 8), dtype)
    physical = gl.pack(x, layout).reshape(2, 2, -1, per_byte)
    expected = jax.lax.bitcast_convert_type(physical, jnp.uint8)
    np.testing.assert_array_equal(gl.to_bytes(x, layout), expected)


def test_xla_gives_small_elements_a_byte_unless_e_says_less():
    x = np.array([[-1, 2, -3]], "int4")
    assert gl.to_bytes(x, gl.parse("s4[1,3]{1,0}")).tolist() == [0x0F, 0x02, 0x0D]
    assert gl.to_bytes(x, gl.parse("s4[1,3]{1,0:E(4)}")).tolist() == [0x2F, 0x0D]
    truth = np.array([[True, False, True, True, False, False, False, False, True]])
    assert gl.to_bytes(truth, gl.parse("pred[1,9]{1,0:E(1)}")).tolist() == [0b1101, 1]
    assert gl.to_bytes(truth, gl.parse("pred[1,9]{1,0}")).tolist() == truth[0].astype(int).tolist()


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 12, 16, 24, 64])
@given(data=st.data())
def test_elements_of_any_width(width, data):
    size = data.draw(st.integers(-(-width // 8), 8))
    lead, count = data.draw(st.sampled_from([(), (2,), (1, 3)])), data.draw(st.integers(0, 9))
    seed = data.draw(st.integers(0, 99))
    values = np.random.default_rng(seed).integers(0, 1 << width, (*lead, count), np.uint64)
    if data.draw(st.booleans()):  # elements of one byte in wider words
        values, size = values % np.uint64(1 << min(width, 8)), 1
    fields = values.view(np.uint8).reshape(*lead, count, 8)[..., :size]
    found = pack_bits(fields, width)
    assert found.shape == (*lead, -(-count * width // 8))
    for place in indices(lead):
        number = sum(int(v) << (k * width) for k, v in enumerate(values[place]))
        assert bytes(found[place]) == number.to_bytes(-(-count * width // 8), "little")
    np.testing.assert_array_equal(unpack_bits(found, width, count, size), fields)


# -- block formats ---------------------------------------------------------------------------------


def tiles_of(x, grid, fill):
    """The document's reading: the grid divides first, then 32x32 tiles; each core's, by rows."""
    rows, columns = (-(-n // g) for n, g in zip(x.shape, grid, strict=True))
    found = {}
    for i, j in indices(grid):
        part = x[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]
        down, across = -(-rows // 32), -(-columns // 32)
        whole = np.full((down * 32, across * 32), fill, x.dtype)
        whole[: part.shape[0], : part.shape[1]] = part
        found[i, j] = [
            whole[r * 32 : r * 32 + 32, c * 32 : c * 32 + 32] for r, c in indices((down, across))
        ]
    return found


@pytest.mark.parametrize("tile_format", TILE_FORMATS)
@pytest.mark.parametrize("face", [None, (16, 16), (32, 16), (8, 4)])
def test_tiles_of_block_formats_are_encoded(tile_format, face):
    x = np.random.default_rng(0).normal(size=(53, 70)).astype("bfloat16")
    for oob in (None, 2.5):
        layout = gl.GridLayout(
            *(x.shape, "bfloat16", (2, 1), (32, 32)), face=face, tile_format=tile_format, oob=oob
        )
        held = gl.to_bytes(x, layout)
        assert held.shape == (2, 1, 3 * BLOCK_FORMATS[tile_format])
        expected = tiles_of(x, (2, 1), oob or 0)
        for core, tiles in expected.items():
            assert bytes(held[core]) == b"".join(bytes(bfp.encode(t, tile_format)) for t in tiles)
        found = gl.from_bytes(held, layout)
        assert (found.shape, found.dtype.name) == (x.shape, "bfloat16")
        decoded = [bfp.decode(bfp.encode(t, tile_format), tile_format) for t in expected[0, 0]]
        np.testing.assert_array_equal(
            found[:27].astype(np.float32), np.concatenate(decoded, 1)[:27, :70]
        )


@pytest.mark.parametrize("tile_format", TILE_FORMATS)
def test_every_system_with_tiles_encodes_them(tile_format):
    x = np.random.default_rng(1).normal(size=(64, 96)).astype(np.float32)
    tiles = tiles_of(x, (1, 1), 0)[0, 0]
    size = BLOCK_FORMATS[tile_format]
    expected = [bytes(bfp.encode(tile, tile_format)) for tile in tiles]
    options = {"tile": (32, 32), "tile_format": tile_format}
    for layout in (
        gl.tenstorrent.metal(x.shape, "float32", **options),
        gl.tenstorrent.ttnn(x.shape, "float32", **options),
        gl.tenstorrent.tensor_layout(x.shape, "float32", tile_format=tile_format),
        gl.tenstorrent.tensor_layout(
            x.shape, "float32", tile_format=tile_format, tile_order="swizzled"
        ),
    ):
        held = gl.to_bytes(x, layout)
        assert bytes(held) == b"".join(expected)
        decoded = bfp.decode(np.frombuffer(expected[4], np.uint8), tile_format)
        np.testing.assert_array_equal(gl.from_bytes(held, layout)[32:, 32:64], decoded)
    # Tiles stored transposed share exponents along columns of the tensor.
    turned = gl.tenstorrent.tensor_layout(
        x.shape, "float32", tile_format=tile_format, tile_order="transposed"
    )
    held = gl.to_bytes(x, turned)
    assert bytes(held) == b"".join(bytes(bfp.encode(tile.T, tile_format)) for tile in tiles)
    # A bank aligns pages: each tile begins at a multiple of 512 bytes.
    aligned = gl.tenstorrent.tensor_layout(
        x.shape, "float32", tile_format=tile_format, page_alignment=512, shard_shape=(32, 96)
    )
    held = gl.to_bytes(x, aligned)
    assert held.shape == (2, aligned.bytes_per_core)
    pitch = -(-size // 512) * 512
    for k, tile in enumerate(expected):
        page = bytes(held[k // 3, k % 3 * pitch :][:pitch])
        assert page == tile + bytes(pitch - size)
    metal = gl.tenstorrent.metal(x.shape, "float32", **options)
    np.testing.assert_array_equal(
        gl.from_bytes(held, aligned), gl.from_bytes(b"".join(expected), metal)
    )


# -- ways in and out -------------------------------------------------------------------------------


def test_arrays_of_any_kind():
    layout = gl.GridLayout((3, 5), "int16", grid=(2, 2), oob=-1)
    x = np.arange(15, dtype=np.int16).reshape(3, 5)
    held = gl.to_bytes(x, layout)
    assert bytes(held[1, 1]) == np.array([13, 14, -1, -1, -1, -1], "<i2").tobytes()
    laid = gl.put(x, layout, gl.DeviceGrid((len(jax.devices()),)))
    for other in (jnp.asarray(x), x.tolist(), x.astype(">i2"), laid):
        np.testing.assert_array_equal(gl.to_bytes(other, layout), held)
    for data in (
        *(held, held.ravel(), bytes(held), bytearray(held), memoryview(held), jnp.asarray(held)),
        *(b"".join(bytes(held[core]) for core in indices(layout.core_shape)), held[::-1][::-1]),
    ):
        found = gl.from_bytes(data, layout)
        np.testing.assert_array_equal(found, x)
        found[0, 0] = 9  # a copy that may be written to
        assert held[0, 0, 0] == 0


def test_one_core_is_its_buffer():
    layout = gl.parse("f32[3,5]{1,0:T(2,2)}")
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    held = gl.to_bytes(x, layout)
    assert held.shape == (layout.nbytes,)
    where = layout.locate((2, 3))
    assert bytes(held[where.core][where.byte :][:4]) == np.float32(13).tobytes()
    assert gl.to_bytes(x, gl.GridLayout((3, 5))).tobytes() == x.tobytes()


def test_the_buffer_in_local_memory_begins_where_the_tensor_does():
    layout = gl.sophon.local((1, 5, 1, 3), "int8", strides=(8, 4, 3, 1), start=128, chip=TOY)
    held = gl.to_bytes(np.arange(15).reshape(1, 5, 1, 3).tolist(), layout)
    assert held.shape == (4, layout.bytes_per_core)
    assert held[0].tolist() == [0, 1, 2, 0, 12, 13, 14, 0]
    assert layout.locate((0, 4, 0, 0)).byte - layout.byte_of(0) == 4
    assert gl.from_bytes(held, layout).ravel().tolist() == list(range(15))


def test_broadcasts_are_read_and_never_written():
    view = gl.megengine.strided((3, 2), (0, 1), "int8")
    assert gl.from_bytes(b"\x07\x08", view).tolist() == [[7, 8]] * 3
    with pytest.raises(gl.LayoutError, match="read-only view"):
        gl.to_bytes(np.zeros((3, 2), np.int8), view)


@pytest.mark.parametrize("shape", [(0, 5), (0,), (3, 0)])
def test_nothing(shape):
    for layout in (
        gl.GridLayout(shape, "int4", grid=(2,) * len(shape)),
        gl.xla.layout(shape, "int4", element_bits=4),
    ):
        held = gl.to_bytes(np.zeros(shape, "int4"), layout)
        assert held.shape == (*layout.core_shape, layout.bytes_per_core)
        assert gl.from_bytes(held, layout).shape == shape
    if len(shape) == 2:
        blocks = gl.GridLayout(shape, "bfloat16", tile=(32, 32), tile_format="bfp_bf8")
        held = gl.to_bytes(np.zeros(shape, "bfloat16"), blocks)
        assert held.shape == (1, 1, blocks.bytes_per_core)
        assert gl.from_bytes(held, blocks).shape == shape


def test_scalars():
    layout = gl.xla.layout((), "float32")
    assert bytes(gl.to_bytes(1.0, layout)) == b"\x00\x00\x80\x3f"
    assert gl.from_bytes(b"\x00\x00\x80\x3f", layout) == 1.0


def test_a_byte_that_is_not_0_is_true_and_high_bits_are_no_part_of_a_small_element():
    assert gl.from_bytes(b"\x00\x02\x01", gl.parse("pred[3]{0}")).tolist() == [False, True, True]
    found = gl.from_bytes(b"\xf1\x2f", gl.parse("s4[2]{0}"))
    assert found.tolist() == [1, -1]
    assert (found == np.array([1, -1], "int4")).all()
    ragged = np.array([0xF1, 0x2F], np.uint8).view("int4")
    assert gl.to_bytes(ragged, gl.GridLayout((2,), "int4", grid=(1,))).tolist() == [[0xF1]]


def test_no_jax_is_needed():
    program = (
        "import sys, gridlayout as gl;"
        "layout = gl.megengine.format((1, 64, 1, 1), 'NCHW64', 'int4');"
        "x = [[[[1]]] * 64]; held = gl.to_bytes(x, layout); gl.from_bytes(held, layout);"
        "assert held.tolist() == [0x11] * 32; assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


# -- refusals --------------------------------------------------------------------------------------

GRID = gl.GridLayout((2, 3), "int8", grid=(2, 1))
REFUSED = {
    "no layout": (lambda: gl.to_bytes([1], "f32[1]"), "layout must be a gl.Layout.*not str"),
    "no layout, back": (lambda: gl.from_bytes(b"", None), "layout must be a gl.Layout"),
    "shape": (lambda: gl.to_bytes(np.zeros((3, 2), np.int8), GRID), r"has shape \(3, 2\)"),
    "dtype": (
        lambda: gl.to_bytes(np.zeros((2, 3)), GRID),
        r"is float64, but the layout is int8: convert one, e.g. x.astype\('int8'\)",
    ),
    "objects": (lambda: gl.to_bytes(np.array([[None] * 3] * 2), GRID), "dtype 'object'"),
    "ragged": (lambda: gl.to_bytes([[1, 2], [3]], GRID), r"list \[\[1, 2\], \[3\]\] can't be read"),
    "ragged, back": (lambda: gl.from_bytes([[1, 2], [3]], GRID), r"list .* must be an array of u"),
    "too large": (lambda: gl.to_bytes([[1, 2, 300], [3, 4, 5]], GRID), "array of int8.*300"),
    "too large for 4 bits": (
        lambda: gl.to_bytes([9, 1], gl.GridLayout((2,), "int4")),
        r"list \[9, 1\] holds numbers that int4, the layout's dtype, can't represent",
    ),
    "a fraction": (lambda: gl.to_bytes([[1, 2, 2.5], [3, 4, 5]], GRID), "2.5.*can't represent"),
    "neither 0 nor 1": (
        lambda: gl.to_bytes([2, 1], gl.GridLayout((2,), "bool")),
        "can't represent",
    ),
    "digits": (lambda: gl.to_bytes(["1", "2"], gl.GridLayout((2,), "float32")), "are no numbers"),
    "None": (lambda: gl.to_bytes(None, gl.GridLayout((), "float32")), "None .*are no numbers"),
    "E too small": (
        lambda: gl.to_bytes([1.0], gl.parse("f32[1]{0:E(16)}")),
        "an element takes 16 bits, but float32 has 32",
    ),
    "E too small, back": (
        lambda: gl.from_bytes(b"0", gl.parse("s4[1]{0:E(2)}")),
        "an element takes 2 bits, but int4 has 4",
    ),
    "bytes missing": (
        lambda: gl.from_bytes(bytes(5), GRID),
        r"data of shape \(5,\) must be of shape \(2, 1, 3\), or 6 consecutive bytes",
    ),
    "cores in another shape": (
        lambda: gl.from_bytes(np.zeros((2, 3), np.uint8), GRID),
        r"data of shape \(2, 3\) must be of shape \(2, 1, 3\)",
    ),
    "words": (lambda: gl.from_bytes(np.zeros(6, np.int8), GRID), "dtype int8 must be uint8"),
    "text": (lambda: gl.from_bytes("abc", GRID), "must be uint8"),
    "infinite block": (
        lambda: gl.to_bytes(
            np.full((32, 32), np.inf, np.float32),
            gl.GridLayout((32, 32), tile=(32, 32), tile_format="bfp_bf8"),
        ),
        "infinities or NaN",
    ),
    "whole block": (
        lambda: gl.to_bytes(
            np.zeros((32, 32), np.int32),
            gl.GridLayout((32, 32), "int32", tile=(32, 32), tile_format="bfp_bf8"),
        ),
        "tiles of dtype int32",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    make, words = REFUSED[name]
    with pytest.raises(gl.LayoutError, match=words):
        make()


def test_small_types_are_ml_dtypes():
    # What the tests above call "int4" is the type that JAX has.
    for name in BITS:
        assert np.dtype(name) == np.dtype(getattr(ml_dtypes, name)) == jnp.dtype(name)
