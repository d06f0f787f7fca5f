"""Tiles, faces and block formats of tt-metal, against its table, its formula, exact fractions."""

import json
import struct
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gridlayout as gl
from gridlayout import dtypes
from gridlayout.tenstorrent import bfp, face_of, tensor_layout, tile_map

GOLDEN = json.loads((Path(__file__).parent / "golden" / "tenstorrent.json").read_text())["I_tile"]


def sides(text):
    return tuple(map(int, text.split("x")))


TILES = {sides(tile): sides(face) for tile, face in GOLDEN["tile_to_face"].items()}


# -- faces -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tile", "face"), TILES.items())
def test_faces(tile, face):
    assert face_of(tile) == face


def test_there_are_no_other_tiles():
    assert len(TILES) == 12
    for tile in [(32, 8), (3, 32), (64, 32), (32,), (0, 32), (32, 32, 1)]:
        with pytest.raises(gl.LayoutError, match="is not one of 32x32, 16x32, 8x32"):
            face_of(tile)
    with pytest.raises(gl.LayoutError, match="whole numbers"):
        tile_map((True, 16))
    with pytest.raises(gl.LayoutError, match="tile_order 'nfaces' is not one of faces"):
        tile_map(order="nfaces")


def test_offsets_of_32x32():
    """The golden formula, and its examples."""
    offset = tile_map()
    assert [[r, c, *offset(r, c)] for r, c, _ in GOLDEN["examples"]] == GOLDEN["examples"]
    for r in range(32):
        for c in range(32):
            face = (r // 16) * 2 + c // 16
            assert offset(r, c) == (face * 256 + (r % 16) * 16 + c % 16,)


def in_order(tile, order):
    """The (row, column) pairs of a tile as memory holds them: faces one after another."""
    if order == "swizzled":
        return [(r, c) for r in range(tile[0]) for c in range(tile[1])]
    face = TILES[tile]
    tops, lefts = range(0, tile[0], face[0]), range(0, tile[1], face[1])
    if order == "faces":
        faces = [(top, left) for top in tops for left in lefts]
        return [(t + r, f + c) for t, f in faces for r in range(face[0]) for c in range(face[1])]
    # "faces column-major (F0, F2, F1, F3) and each face transposed"
    faces = [(top, left) for left in lefts for top in tops]
    return [(t + r, f + c) for t, f in faces for c in range(face[1]) for r in range(face[0])]


@pytest.mark.parametrize("order", ["faces", "transposed", "swizzled"])
@pytest.mark.parametrize("tile", TILES)
def test_orders(tile, order):
    assert [tile_map(tile, order)(r, c)[0] for r, c in in_order(tile, order)] == list(
        range(tile[0] * tile[1])
    )


def test_faces_of_a_transposed_tile():
    firsts = {(0, 0): "F0", (0, 16): "F1", (16, 0): "F2", (16, 16): "F3"}
    starts = {tile_map(order="transposed")(*rc)[0]: name for rc, name in firsts.items()}
    assert [starts[k] for k in sorted(starts)] == ["F0", "F2", "F1", "F3"]
    # One column of faces: their order stays, as in the row-major one.
    assert tile_map((32, 16), "transposed")(16, 0) == tile_map((32, 16), "faces")(16, 0) == (256,)


@pytest.mark.few(4)
@pytest.mark.parametrize("order", ["faces", "transposed", "swizzled"])
@pytest.mark.parametrize("tile", [(32, 32), (16, 32), (2, 16)])
def test_host_orders(tile, order):
    """A plane on the host: tiles row-major, each in its order; and plain rows."""
    rows, columns = 2 * tile[0], 3 * tile[1]
    x = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    expected = [
        x[top + r, left + c]
        for top in range(0, rows, tile[0])
        for left in range(0, columns, tile[1])
        for r, c in in_order(tile, order)
    ]
    layout = tensor_layout(x.shape, "int32", tile=tile, tile_order=order)
    for path in ("program", "gather"):
        held = np.asarray(gl.pack(x, layout, path=path))
        np.testing.assert_array_equal(held.ravel(), expected)
        np.testing.assert_array_equal(gl.unpack(held, layout, path=path), x)
    lines = tensor_layout(x.shape, "int32", "row_major")
    np.testing.assert_array_equal(np.asarray(gl.pack(x, lines)).ravel(), x.ravel())


@pytest.mark.parametrize("tile", TILES)
def test_grid_layout_has_the_same_faces(tile):
    """The document model with `face=`, and a page of `tensor_layout`, byte for byte."""
    document = gl.GridLayout(tile, "float32", (1, 1), tile, face=TILES[tile])
    page = tensor_layout(tile, "float32", tile=tile)
    for r, c in in_order(tile, "swizzled"):
        assert document.locate((r, c)).byte == page.locate((r, c)).byte


FORMATS = {"bfp8": "bfp_bf8", "bfp4": "bfp_bf4", "bfp2": "bfp_bf2"}
NAMES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "u16": "uint16", "u8": "uint8"}


@pytest.mark.parametrize(("name", "size"), GOLDEN["tile_bytes_32x32"].items())
def test_tile_bytes(name, size):
    dtype, tile_format = NAMES.get(name, "float32"), FORMATS.get(name)
    assert tensor_layout((32, 32), dtype, tile_format=tile_format).page_bytes == size
    if tile_format:
        assert bfp.encode(np.zeros((32, 32), dtype), tile_format).shape == (size,)
        assert dtypes.BLOCK_FORMATS[tile_format] == size


# -- block formats -----------------------------------------------------------------------------

BITS = {"bfp_bf8": 7, "bfp_bf4": 3, "bfp_bf2": 1}
any_format = st.sampled_from(list(BITS))
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
# Sixteen numbers whose exponents lie close together, so that the small ones keep some bits.
close = st.integers(-126, 119).flatmap(
    lambda e: st.lists(
        st.builds(
            lambda m, k, s: float(np.float32(s * m * 2.0 ** (e + k - 23))),
            *(st.integers(1 << 23, (1 << 24) - 1), st.integers(0, 8), st.sampled_from([-1, 1])),
        ),
        min_size=16,
        max_size=16,
    )
)
groups = st.one_of(st.lists(finite, min_size=16, max_size=16), close)


def exponent_of(x):
    return struct.unpack("<I", struct.pack("<f", x))[0] >> 23 & 0xFF


def group_by_fractions(values, bits):
    """The module's rule on exact fractions: shared exponent, magnitudes and signs."""
    shared = max(exponent_of(x) for x in values)
    last = Fraction(2) ** (shared - 150)  # the last bit of a significand at the shared exponent
    step = Fraction(2) ** (shared - 127 - (bits - 1))
    out = []
    for x in values:
        exact = abs(Fraction(x)) if exponent_of(x) else Fraction(0)
        kept = exact // last * last
        magnitude = min(round(kept / step), 2**bits - 1)  # Python rounds ties to even
        out.append((magnitude, x < 0 and magnitude > 0))
    return shared, step, out


def tile_of(values):
    tile = np.zeros((32, 32), np.float32)
    tile[5, 16:] = values
    return tile


# Row 5 of face 1.
GROUP = 16 + 5


@given(groups, any_format)
def test_against_fractions(values, tile_format):
    bits = BITS[tile_format]
    shared, step, expected = group_by_fractions(values, bits)
    held = bfp.encode(tile_of(values), tile_format)
    assert held[GROUP] == shared
    # The elements as one little-endian number, the first in the lowest bits.
    width = bits + 1
    number = int.from_bytes(held[64:].tobytes(), "little") >> (16 * GROUP * width)
    for k, (magnitude, negative) in enumerate(expected):
        assert number >> (k * width) & (2**width - 1) == (negative << bits) + magnitude
    back = bfp.decode(held, tile_format)
    assert back.dtype == np.float32
    for x, value, (magnitude, negative) in zip(values, back[5, 16:], expected, strict=True):
        exact = (-1) ** negative * magnitude * step
        assert Fraction(float(value)) == exact
        # The module's error bounds, for everything that is not flushed.
        if exponent_of(x):
            error = abs(Fraction(x) - exact)
            if abs(Fraction(x)) <= (2**bits - Fraction(1, 2)) * step:
                assert error <= step / 2 + Fraction(2) ** (shared - 150)
            else:
                assert error < step
    back[5, 16:] = 0
    assert not back.any()
    assert not np.signbit(back).any()


@given(groups, any_format)
def test_encoding_again_changes_nothing(values, tile_format):
    held = bfp.encode(tile_of(values), tile_format)
    once = bfp.decode(held, tile_format)
    again = bfp.decode(bfp.encode(once, tile_format), tile_format)
    np.testing.assert_array_equal(once, again)


@given(st.data(), any_format, st.integers(10, 240))
def test_representable_values_are_exact(data, tile_format, shared):
    bits = BITS[tile_format]
    top = 2 ** (bits - 1)
    whole = data.draw(st.lists(st.integers(-(2 * top - 1), 2 * top - 1), min_size=15, max_size=15))
    values = [float(np.ldexp(m, shared - 127 - (bits - 1))) for m in [top, *whole]]
    back = bfp.decode(bfp.encode(tile_of(values), tile_format), tile_format)
    assert back[5, 16:].tolist() == values


# Rounding as tt-metal's unit test of its packer has it (test_blockfloat_common.cpp).
ROUNDED = [(64.75, 0x41, 65), (65.25, 0x41, 65), (64.5, 0x40, 64), (65.5, 0x42, 66)]


@pytest.mark.parametrize(("x", "byte", "value"), ROUNDED)
@pytest.mark.parametrize("sign", [1, -1])
def test_rounding(x, byte, value, sign):
    tile = np.full((32, 32), sign * x, np.float32)
    held = bfp.encode(tile, "bfp_bf8")
    assert set(held[64:].tolist()) == {byte | (sign < 0) << 7}
    assert (bfp.decode(held, "bfp_bf8") == sign * value).all()


def test_saturation_and_what_falls_out():
    tile = np.zeros((32, 32), np.float32)
    # 255.5 would need an eighth bit. A tie with a bit below the 24 that are kept is a tie.
    tile[0, :3] = 255.5, 3.0, 1.0 + 2.0**-23
    tile[1, :2] = 64.0, 0.5 + 2.0**-17
    held = bfp.encode(tile, "bfp_bf8")
    assert held[64:67].tolist() == [127, 2, 0]
    assert held[80:82].tolist() == [64, 1]
    tile[1, 1] = 0.5 + 2.0**-18
    assert bfp.encode(tile, "bfp_bf8")[81] == 0


def test_zeros_and_subnormals():
    tile = np.zeros((32, 32), np.float32)
    tile[0, :4] = -0.0, 2.0**-149, -(2.0**-127), 2.0**-126
    back = bfp.decode(bfp.encode(tile, "bfp_bf8"), "bfp_bf8")
    assert back[0, :4].tolist() == [0.0, 0.0, 0.0, 2.0**-126]
    assert not np.signbit(back).any()
    # A row whose exponent is 0 is flushed, whatever its elements say.
    held = np.full(1088, 1, np.uint8)
    held[:64] = 0
    assert not bfp.decode(held, "bfp_bf8").any()


@given(any_format, arrays(np.float32, (2, 3, 32, 32), elements=finite))
def test_batches_and_faces(tile_format, tiles):
    held = bfp.encode(tiles, tile_format)
    assert held.shape == (2, 3, dtypes.BLOCK_FORMATS[tile_format])
    np.testing.assert_array_equal(held[1, 2], bfp.encode(tiles[1, 2], tile_format))
    by_face = tiles.reshape(2, 3, 2, 16, 2, 16).swapaxes(3, 4)
    np.testing.assert_array_equal(bfp.encode(by_face, tile_format), held)
    back = bfp.decode(held, tile_format)
    np.testing.assert_array_equal(
        bfp.decode(held, tile_format, faces=True),
        back.reshape(2, 3, 2, 16, 2, 16).swapaxes(3, 4),
    )


def test_the_pages_of_a_layout_are_encoded():
    """A core's buffer in a block format: pack, encode page by page, decode, unpack."""
    x = np.arange(64 * 48, dtype=np.float32).reshape(64, 48) % 31
    layout = tensor_layout(x.shape, cores=3, tile_format="bfp_bf8", oob=0)
    held = np.asarray(gl.pack(x, layout))
    data = bfp.encode(held, "bfp_bf8")
    assert data[0].size == layout.bytes_per_core
    back = bfp.decode(data, "bfp_bf8", faces=True)
    np.testing.assert_array_equal(gl.unpack(back, layout), x)


def test_other_float_types():
    x = np.linspace(-3, 3, 1024).reshape(32, 32)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        np.testing.assert_array_equal(
            bfp.encode(x.astype(dtype), "bfp_bf4"),
            bfp.encode(x.astype(dtype).astype(np.float32), "bfp_bf4"),
        )
    none = bfp.encode(np.zeros((0, 32, 32), np.float32), "bfp_bf2")
    assert none.shape == (0, 320)
    assert bfp.decode(none, "bfp_bf2").shape == (0, 32, 32)


BAD = [
    (np.zeros((32, 31), np.float32), "bfp_bf8", "must end in .32, 32."),
    (np.float32(1), "bfp_bf8", "must end in .32, 32."),
    (np.zeros((32, 32)), "bfp_bf8", "dtype float64 must be one of float32"),
    (np.zeros((32, 32), int), "bfp_bf8", "dtype int64"),
    ("tile", "bfp_bf8", "must be one of float32"),
    (np.full((32, 32), np.nan, np.float32), "bfp_bf4", "infinities or NaN"),
    (np.full((32, 32), -np.inf, np.float32), "bfp_bf2", "infinities or NaN"),
    (np.zeros((32, 32), np.float32), "bfp8", "tile_format 'bfp8' is not one of bfp_bf8"),
    (np.zeros((32, 32), np.float32), None, "tile_format None"),
]


@pytest.mark.parametrize(("tiles", "tile_format", "rule"), BAD)
def test_what_cannot_be_encoded(tiles, tile_format, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        bfp.encode(tiles, tile_format)


BAD_DATA = [
    (np.zeros(1088, np.int8), "bfp_bf8", "dtype int8 must be uint8"),
    (np.zeros(1024, np.uint8), "bfp_bf8", "must end in the 1088 bytes of a bfp_bf8 tile"),
    (np.uint8(0), "bfp_bf4", "576 bytes"),
    (np.full(320, 255, np.uint8), "bfp_bf2", "exponent of 255"),
    (np.zeros(320, np.uint8), 2, "tile_format 2"),
]


@pytest.mark.parametrize(("data", "tile_format", "rule"), BAD_DATA)
def test_what_cannot_be_decoded(data, tile_format, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        bfp.decode(data, tile_format)


# -- tiles that ops compute with -------------------------------------------------------------------


@pytest.mark.parametrize("chip", [gl.tenstorrent.WORMHOLE, gl.tenstorrent.BLACKHOLE])
def test_constraints_check_that_a_tile_is_compatible_with_ops(chip):
    """TTNN, Terms: "constraints must check that it's compatible with an op's usage"."""
    for tile in (*gl.tenstorrent.tiles.FACES, (64, 32), (4, 4), (32,), (1, 32, 32), None):
        rank = max(len(tile or ()), 2)
        layout = gl.GridLayout((64,) * rank, grid=(1,) * rank, tile=tile, collapse=[])
        fit = layout.fits(chip)
        assert fit  # it is no question of memory
        usable = tile in (None, (32, 32), (16, 32), (32, 16), (16, 16))
        assert fit.unusable_tile == (None if usable else tile)
        assert ("no op of" in str(fit)) is not usable
    assert gl.GridLayout((64, 64), tile=(4, 4)).fits(gl.Chip("toy", (2, 2))).unusable_tile is None


def test_dumps_flag_tiles_that_no_op_computes_with():
    text = str(gl.tenstorrent.ttnn((64, 64), grid=(2, 2), tile=(8, 32)))
    (finding,) = gl.explain(text).findings
    assert finding.fit.unusable_tile == (8, 32)
    assert "free; no op: 8x32" in str(gl.explain(text))
    assert '"unusable_tile": [' in gl.explain(text).to_json()
    assert "no op" not in str(gl.explain(text.replace("8x32", "16x32").replace("4x1x!", "2x1x!")))


@pytest.mark.parametrize("tiles", [((0, 32),), ((),), (3,), ((32, True),)])
def test_a_chips_tiles_are_checked(tiles):
    with pytest.raises(gl.LayoutError, match="tile"):
        gl.Chip("toy", (2, 2), tiles=tiles)
