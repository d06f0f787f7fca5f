"""The text of a `GridLayout`: it reads back what it wrote, and refuses the rest by column."""

import math
import re
import time

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_layouts import cases
from tiers import examples

import gridlayout as gl

# The document's default collapse, whatever it wastes, is among what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:the default collapse:gridlayout.LayoutWarning")

quick = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)

# tt-mlir "Tilized", and each part of the text that can be there: gaps, an offset, a padding value,
# faces, a block format, complex elements, no dims at all.
VALID = [
    "tensor<3x64x128xf32, #ttcore.metal_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), undef, <3x2>, "
    "memref<2x2x!ttcore.tile<32x32, bfp_bf8>, #ttcore.memory_space<l1>>>>",
    "tensor<53x63xbf16, #ttcore.metal_layout<(d0, d1) -> (d0, d1), neginf, <3x2>, "
    "memref<18x32xbf16, #ttcore.memory_space<dram>>>>",
    "tensor<2x3xcomplex<f32>, #ttcore.metal_layout<(d0, d1) -> (d0 * -4 - d1 + 6), (-0+2.5j), <2>, "
    "memref<1x!ttcore.tile<4, complex<f32>, face<2>>, #ttcore.memory_space<system>>>>",
    "tensor<i4, #ttcore.metal_layout<() -> (0, 3), -3, <1x2>, "
    "memref<1x2xi4, #ttcore.memory_space<mmio>>>>",
    "tensor<9xf8E4M3FN, #ttcore.metal_layout<(d0) -> (d0 floordiv 4, d0 mod 4), nan, <1x1>, "
    "memref<3x4xf8E4M3FN, #ttcore.memory_space<l1>>>>",
    "tensor<12x12x16xf32, #ttcore.metal_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), undef, <4x1>, "
    "memref<3x1x!ttcore.tile<32x32, f32>, #ttcore.memory_space<l1>>, shard = 96x16>>",
    "tensor<3x5xbf16, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <1x1>, "
    "memref<4x8xbf16, #ttcore.memory_space<l1>>, shard = 4x7, row_alignment = 16>>",
]


def refusal(text, within=5.0):
    """The message with which a text is refused: a `LayoutError` naming a column, and soon."""
    start = time.perf_counter()
    with pytest.raises(gl.LayoutError, match=r"column \d+") as caught:
        gl.parse(text)
    assert time.perf_counter() - start < within
    return str(caught.value)


def column(message):
    return int(re.search(r"column (\d+)", message).group(1))


# --- round trips ---


@pytest.mark.parametrize("text", VALID)
def test_canonical_text_is_printed_as_it_was_read(text):
    assert str(gl.parse(text)) == text


# dtype, a value, and how it is written. Names are the document's (tt-mlir, `oob_val`).
OOB = [
    *(("float32", None, "undef"), ("float32", 0, "zero"), ("float32", 1.0, "one")),
    *(("float32", math.inf, "inf"), ("float32", -math.inf, "neginf")),
    *(("float32", math.nan, "nan"), ("float32", -0.0, "-0.0"), ("float32", 3.5, "3.5")),
    *(("float32", 7, "7.0"), ("float32", 0.1, "0.10000000149011612")),
    *(("float64", 0.1, "0.1"), ("float64", 1e300, "1e+300"), ("float64", -5e-324, "-5e-324")),
    *(("float16", 1e6, "inf"), ("bfloat16", 3.5, "3.5"), ("bfloat16", -math.nan, "nan")),
    *(("float8_e4m3fn", -math.inf, "-448.0"), ("float8_e5m2", math.inf, "inf")),
    *(("int32", None, "undef"), ("int32", 0, "zero"), ("int32", 1, "one"), ("int32", -7, "-7")),
    *(("int64", -(2**63), "-9223372036854775808"), ("uint64", 2**64 - 1, "18446744073709551615")),
    *(("int4", -8, "-8"), ("uint4", 15, "15"), ("bool", True, "one"), ("bool", False, "zero")),
    *(("complex64", 1j, "1j"), ("complex64", 2.5 - 1j, "(2.5-1j)"), ("complex64", 0, "zero")),
    *(("complex128", complex(-0.0, 0.0), "(-0+0j)"), ("complex128", complex(0.0, -0.0), "-0j")),
    *(("complex128", complex(math.inf, 0), "inf"), ("complex128", complex(0, -math.inf), "-infj")),
]


@pytest.mark.parametrize(("dtype", "oob", "word"), OOB)
def test_padding_value(dtype, oob, word):
    layout = gl.GridLayout((5, 7), dtype, grid=(2, 2), oob=oob)
    text = str(layout)
    assert f"-> (d0, d1), {word}, <2x2>" in text
    again = gl.parse(text)
    assert again == layout
    assert repr(again.oob) == repr(layout.oob)
    assert type(again.oob) is type(layout.oob)


# dtype and its element type in MLIR's text.
ELEMENTS = [
    *(("bool", "i1"), ("int4", "i4"), ("int8", "i8"), ("int16", "i16"), ("int32", "i32")),
    *(("int2", "i2"), ("uint2", "ui2"), ("float4_e2m1fn", "f4E2M1FN")),
    *(("int64", "i64"), ("uint4", "ui4"), ("uint8", "ui8"), ("uint16", "ui16")),
    *(("uint32", "ui32"), ("uint64", "ui64"), ("float8_e4m3fn", "f8E4M3FN")),
    *(
        ("float8_e5m2", "f8E5M2"),
        ("float8_e8m0fnu", "f8E8M0FNU"),
        ("float16", "f16"),
        ("bfloat16", "bf16"),
        ("float32", "f32"),
    ),
    *(("float64", "f64"), ("complex64", "complex<f32>"), ("complex128", "complex<f64>")),
]


@pytest.mark.parametrize(("dtype", "element"), ELEMENTS)
def test_element_type(dtype, element):
    text = (
        f"tensor<5x{element}, #ttcore.metal_layout<(d0) -> (d0), undef, <2>, "
        f"memref<1x!ttcore.tile<4, {element}>, #ttcore.memory_space<l1>>>>"
    )
    layout = gl.parse(text)
    assert layout.dtype == dtype
    assert str(layout) == text


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.complex_numbers(),
    st.sampled_from(["undef", "zero", "one", "inf", "neginf", -0.0, 3.5, complex(-0.0, -0.0)]),
)


def with_value(arguments, oob, space):
    """The layout with that padding value, or with none where its dtype cannot hold it."""
    try:
        return gl.GridLayout(**arguments, oob=oob, memory_space=space)
    except gl.LayoutError as error:
        reason = str(error)
    assert re.search("not a whole number|is complex|oob (nan|zero) is not a value", reason)
    return gl.GridLayout(**arguments, memory_space=space)


spaces = st.sampled_from(["system", "mmio", "dram", "l1"])


@settings(quick, max_examples=examples(800))
@given(cases(), values, spaces)
def test_round_trip(case, oob, space):
    _, arguments = case
    layout = with_value(arguments, oob, space)
    text = str(layout)
    again = gl.parse(text)
    assert again == layout == gl.parse(repr(layout))
    assert hash(again) == hash(layout)
    assert str(again) == text
    assert again.physical_shape == layout.physical_shape
    assert again.nbytes == layout.nbytes
    assert repr(again.oob) == repr(layout.oob)


@st.composite
def written_maps(draw, depth=4):
    """An affine map of 3 dims as a person may write it, and not as it is printed."""

    def expr(depth):
        if not depth or draw(st.integers(0, 3)) == 0:
            return draw(st.sampled_from(["d0", "d1", "d2", "d0", "7", "1"]))
        a, c = expr(depth - 1), draw(st.sampled_from([1, 2, 3, 4]))
        b = expr(depth - 1)
        return draw(
            st.sampled_from(
                [
                    *(f"{a} + ({b})", f"({a} + {b})", f"{c} * ({a})", f"({a}) - ({b}) + 40"),
                    *(f"({a}) floordiv {c}", f"({a}) mod {c}", f"({a}) ceildiv {c}"),
                ]
            )
        )

    return f"(d0, d1, d2) -> ({expr(depth)}, {expr(depth)})"


@settings(quick, max_examples=examples(500))
@given(written_maps())
def test_round_trip_of_a_map_that_is_not_written_as_it_prints(linear):
    index_map = gl.AffineMap.parse(linear)
    assume(all(low >= 0 for low, _ in index_map.range((2, 3, 4))))
    layout = gl.GridLayout((2, 3, 4), linear=linear)
    assert gl.parse(str(layout)) == layout
    assert layout.linear(1, 2, 3) == index_map(1, 2, 3)


def test_round_trip_of_a_map_that_was_built_and_not_read():
    d0, d1, d2 = (gl.AffineMap.identity(3).results[k] for k in range(3))
    for results in (
        [d0 * 12 + (d1 * 4 + d2)],
        [d0 + (d1 + (d2 + 1)) + 2],
        [(d1 + d2 + 1) + (d0 + 2)],
    ):
        layout = gl.GridLayout((2, 3, 4), grid=(2,), linear=gl.AffineMap(3, results))
        assert gl.parse(str(layout)) == layout


def test_round_trip_of_empty_shapes():
    for shape in ((0,), (0, 3), (3, 0), (2, 0, 4), (0, 0), (2, 3, 0)):
        layout = gl.GridLayout(shape, "int8", grid=(2, 2), tile=(2, 2))
        assert gl.parse(str(layout)) == layout
        assert layout.size == 0


# --- blanks ---


def tokens(layout):
    """The text in pieces between which blanks mean nothing."""
    element = re.findall(r"\w+|[<>]", gl.GridLayout((), layout.dtype, (1,)).__str__().split(",")[0])
    element = element[2:]

    def sizes(dims, last):
        return [token for n in dims for token in (str(n), "x")][: None if last else -1]

    word = re.search(r"\), ([^,]*), <", str(layout)).group(1)
    tile = element
    if layout.tile:
        face = [",", "face", "<", *sizes(layout.face, False), ">"] if layout.face else []
        tile = ["!ttcore.tile", "<", *sizes(layout.tile, False), ",", *element, *face, ">"]
    return [
        *("tensor", "<", *sizes(layout.shape, True), *element, ","),
        *("#ttcore.metal_layout", "<", *re.findall(r"->|\w+|[^\w\s]", str(layout.linear)), ","),
        *(word, ",", "<", *sizes(layout.grid, False), ">", ",", "memref", "<"),
        *(*sizes(layout.tile_counts, True), *tile, ",", "#ttcore.memory_space", "<"),
        *(layout.memory_space, ">", ">"),
        *([",", "shard", "=", *sizes(layout.shard_shape, False)] if "shard" in str(layout) else []),
        *([",", "row_alignment", "=", str(layout.row_alignment)] if layout.row_alignment else []),
        *(">", ">"),
    ]


@settings(quick, max_examples=examples(300))
@given(cases(), values, spaces, st.randoms(use_true_random=False))
def test_blanks_mean_nothing(case, oob, space, random):
    _, arguments = case
    layout = with_value(arguments, oob, space)
    pieces = tokens(layout)
    assert "".join(pieces) == "".join(str(layout).split())
    blanks = [" ", "  ", "\n", "\t", "\r\n", " " * 100]
    text = "".join(random.choice(blanks) + piece for piece in pieces) + random.choice(blanks)
    assert gl.parse(text) == layout


# --- what contradicts itself ---

PLAIN = (
    "tensor<53x63xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <3x2>, "
    "memref<18x32xf32, #ttcore.memory_space<l1>>>>"
)

# What is changed in PLAIN, to what, what stands at the column that is named ("" is the end), and
# what the message says.
REFUSED = [
    # A memref that does not follow: the message says which does.
    ("18x32xf32", "17x32xf32", "memref", "memref 17x32 does not .*give 18x32: memref<18x32xf32"),
    ("18x32xf32", "32x18xf32", "memref", "memref 32x18 does not follow .*give 18x32:"),
    ("18x32xf32", "18xf32", "memref", "memref 18 does not follow .*give 18x32:"),
    ("18x32xf32", "f32", "memref", "memref .*does not follow .*give 18x32:"),
    ("18x32xf32", "0x1x!ttcore.tile<32x32, f32>", "memref", "0x1 does not .*give 1x1:"),
    ("<3x2>", "<2x2>", "memref", "18x32 does not follow .*give 27x32:"),
    # A shard that is stated.
    ("l1>>", "l1>>, shard = 17x32", "memref", "3 cores of 17 do not hold the 53 .* give 18 or"),
    ("l1>>", "l1>>, shard = 19x32", "memref", "memref 18x32 does not follow .*give 19x32:"),
    ("l1>>", "l1>>, shard = 18", "memref", r"shard_shape \(18,\) has 1 dims, but the grid"),
    ("l1>>", "l1>>, shards = 18x32", "shards", "'shards' is not one of shard, row_alignment"),
    ("l1>>", "l1>>, row_alignment = 3", "memref", "row_alignment 3 must be a power of 2"),
    ("l1>>", "l1>>, row_alignment = 0", "memref", "row_alignment .* >= 1"),
    ("l1>>", "l1>>, shard = 18x32, shard = 18x32", "shard = 18x32>", "or is repeated"),
    ("l1>>", "l1>>, =", "=", "expected one of shard, row_alignment, mesh_axes, found '=>>'"),
    # Elements.
    ("18x32xf32", "18x32xbf16", "bf16", "the memref holds bf16, but the tensor holds f32"),
    ("18x32xf32", "1x1x!ttcore.tile<32x32, bf16>", "bf16", "holds bf16, but the tensor holds f32"),
    ("53x63xf32", "53x63xf33", "f33", "element type 'f33' is not one of i1, .*complex<f64>"),
    ("53x63xf32", "53x63x", ", #tt", "expected an element type"),
    ("53x63xf32", "53x63f32", "f32", "expected 'x' between sizes and before the element type"),
    ("53x63xf32", "bfp_bf8", "bfp_bf8", "element type 'bfp_bf8' is not one of"),
    ("18x32xf32", "1x1x!ttcore.tile<16x16, bfp_bf8>", "memref", r"'bfp_bf8' needs tile=\(32, 32\)"),
    # Ranks.
    ("<3x2>", "<3>", "memref", r"2 results, but the grid \(3,\) has rank 1"),
    ("53x63xf32", "53xf32", "memref", r"takes 2 dims, but the shape \(53,\) has rank 1"),
    ("18x32xf32", "1x1x!ttcore.tile<2x2x2, f32>", "memref", r"tile \(2, 2, 2\) has rank 3"),
    ("18x32xf32", "1x!ttcore.tile<4x4, f32, face<3x2>>", "memref", r"face \(3, 2\) .* divide"),
    # Values.
    ("<3x2>", "<3 x  5000000000000000000>", "5000", r"5000000000000000000 is over 2\*\*62"),
    ("<3x2>", "<0x2>", "memref", r"grid \(0, 2\) must hold .* >= 1"),
    ("undef", "infinite", "infinite", "'infinite' is not one of undef, .*inf, neginf, nor"),
    ("undef", "1j", "memref", "oob 1j is complex, but the dtype is float32"),
    ("<l1>", "<L1>", "memref", "memory_space 'L1' is not one of system, mmio, dram, l1"),
    # Maps.
    ("-> (d0, d1)", "-> (d0, d2)", "d2", "no such dim, found 'd2'"),
    ("-> (d0, d1)", "-> (d0, d1 - 1)", "memref", "d1 - 1 reaches -1 .* >= 0, so add 1"),
    ("-> (d0, d1)", "-> (d0, d1 * d0)", "* d0", "not affine; one factor must be a constant"),
    ("-> (d0, d1)", "-> (d0, d1 / 4)", "/", "write floordiv"),
    ("-> (d0, d1)", "-> (d0, d1", "(d0", "expected an affine map"),
    # Punctuation, and what is around.
    ("tensor", "tensors", "s<53", "expected '<', found 's<53x63xf32,'"),
    ("tensor", "memref", "memref", "no known layout starts here; known: tensor<"),
    ("#ttcore.metal_layout", "#tt.metal_layout", "#tt", "old dialect of tt-mlir.* #ttcore"),
    ("undef, ", "", "<3x2>", "expected one of undef, .*or a number, found '<3x2>"),
    (">>>>", ">>>", "", "expected '>'"),
    (">>>>", ">>>>, x", ", x", "unexpected text after the layout: ', x'"),
]


@pytest.mark.parametrize(("old", "new", "where", "says"), REFUSED)
def test_contradiction(old, new, where, says):
    text = PLAIN.replace(old, new, 1)
    assert text != PLAIN
    message = refusal(text)
    assert re.search(says, message), message
    assert column(message) == (text.index(where) if where else len(text)) + 1, message


# --- what running systems print ---

CONFIG = (
    "MemoryConfig(memory_layout=TensorMemoryLayout::{},buffer_type=BufferType::L1,shard_spec={},"
    "nd_shard_spec={},created_with_nd_shard_spec=0)"
)
SHARD = (
    "ShardSpec(grid={{{}}},shape={{{}, {}}},orientation=ShardOrientation::{})"  # braces are printed
)
ND = (
    "NdShardSpec(shard_shape=Shape([1, 32, 64]),grid={[(x=0,y=0) - (x=2,y=0)]},"
    "orientation=ShardOrientation::ROW_MAJOR,"
    "shard_distribution_strategy=ShardDistributionStrategy::ROUND_ROBIN_1D)"
)
NO, BOX = "std::nullopt", "[(x=1,y=2) - (x=4,y=3)]"
TILED = (
    "TilePageConfig(tile=Tile(tile_shape={32, 32},face_shape={16, 16},num_faces=4,"
    "partial_face=false))"
)
ROWS = "RowMajorPageConfig(tile=Tile(tile_shape={32, 32},face_shape={16, 16},num_faces=4))"


def spec(shape, dtype, page, config, alignment="[32, 32]"):
    return (
        f"TensorSpec(logical_shape=Shape({shape}),tensor_layout=TensorLayout(dtype=DataType::"
        f"{dtype},page_config=PageConfig(config={page}),memory_config={config},alignment="
        f"Alignment({alignment})))"
    )


def sharded(kind, *shard):
    return CONFIG.format(kind, SHARD.format(*shard), NO)


PRINTED = [
    (
        spec([2, 40, 70], "BFLOAT16", TILED, CONFIG.format("INTERLEAVED", NO, NO)),
        ((2, 40, 70), "bfloat16"),
        {},
    ),
    (
        spec([64, 256], "FLOAT32", TILED, sharded("BLOCK_SHARDED", BOX, 32, 64, "ROW_MAJOR")),
        ((64, 256), "float32", "tile", (32, 64), (2, 4)),
        {"memory_layout": "block_sharded"},
    ),
    (
        spec([256, 64], "UINT16", TILED, sharded("BLOCK_SHARDED", BOX, 64, 32, "COL_MAJOR")),
        ((256, 64), "uint16", "tile", (64, 32), (2, 4)),
        {"memory_layout": "block_sharded", "orientation": "col_major"},
    ),
    (
        spec(
            *([96, 64], "BFLOAT8_B", TILED),
            sharded("HEIGHT_SHARDED", f"{BOX}, [(x=0,y=0) - (x=0,y=0)]", 32, 64, "ROW_MAJOR"),
        ),
        ((96, 64), "bfloat16", "tile", (32, 64), 9),
        {"memory_layout": "height_sharded", "tile_format": "bfp_bf8"},
    ),
    (
        spec([2, 64, 64], "INT32", ROWS, CONFIG.format("ND_SHARDED", NO, ND), "[1]"),
        ((2, 64, 64), "int32", "row_major", (1, 32, 64), (1, 3)),
        {},
    ),
    (
        "ttnn.Tensor([[ 1.00000,  nan, ...]], shape=Shape([1, 40]), dtype=DataType::FLOAT32, "
        "layout=Layout::ROW_MAJOR)",
        ((1, 40), "float32", "row_major"),
        {},
    ),
]


@pytest.mark.parametrize(("text", "arguments", "options"), PRINTED)
def test_what_ttnn_prints(text, arguments, options):
    layout = gl.tenstorrent.tensor_layout(*arguments, **options)
    assert gl.parse(text) == layout
    found = gl.explain([f"12:07 | INFO | spec {text}, {text}"])
    assert [(f.layout, f.values) for f in found.findings] == [(layout, 2)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (CONFIG.format("INTERLEAVED", NO, NO), r"no shape.*tensor_layout\(shape, dtype\)"),
        (sharded("BLOCK_SHARDED", BOX, 32, 64, "ROW_MAJOR"), r"=\(32, 64\), cores=\(2, 4\)"),
        (spec([4, 4], "FLOAT31", TILED, CONFIG.format("INTERLEAVED", NO, NO)), "'FLOAT31' is not"),
        (spec([64, 64], "UINT8", TILED, sharded("WIDTH_SHARDED", BOX, 32, 16, "ROW_MAJOR")), "32"),
        (spec([4, 4], "UINT8", TILED, sharded("WIDTH_SHARDED", "[]", 32, 32, "ROW_MAJOR")), "grid"),
        (spec([4, 4], "UINT8", "Page(a=1)", NO), "Page is not TilePageConfig"),
        ("ttnn.Tensor([1.0])", "expected shape=Shape"),
        ("TensorSpec(logical_shape=Shape([1]))", "states no tensor_layout"),
    ],
)  # fmt: skip
def test_what_ttnn_prints_is_refused_by_its_rule(text, says):
    message = refusal(text)
    assert re.search(says, message.split("\n")[0]), message
    assert gl.explain([text]).all_unknown == (text.startswith(("MemoryC", "TensorS")))


@pytest.mark.parametrize(
    ("text", "type_of"),
    [
        ("memref<256x130xf32, #tpu.tiled<(8,128),[2,1]>, #tpu.memory_space<vmem>>",
         "f32[256,130]{1,0:T(8,128)S(1)}"),
        ("memref<3x17x130xbf16, #tpu.tiled<(8,128)(2,1),[6,2,1]>, #tpu.memory_space<any>>",
         "bf16[3,17,130]{2,1,0:T(8,128)(2,1)}"),
        ("memref<300xi32, #tpu.tiled<(128),[1]>, #tpu.memory_space<hbm>>", "s32[300]{0:T(128)}"),
        ("memref<4x5xf32, #tpu.memory_space<hbm>>", "f32[4,5]{1,0}"),
    ],
)  # fmt: skip
def test_memrefs_of_mosaic(text, type_of):
    assert str(gl.parse(text)) == type_of
    found = gl.explain([f"%0 = tpu.memref_slice %a : {text} -> {text}"])
    assert [str(f.layout) for f in found.findings] == [type_of]


def test_memrefs_of_mosaic_are_refused_by_their_rule():
    text = "memref<256x130xf32, #tpu.tiled<(8,128),[{}]>, #tpu.memory_space<{}>>"
    assert "strides [1, 32] of tiles are not [2, 1]" in refusal(text.format("1,32", "vmem"))
    assert "memory space 'cmem' is not one of" in refusal(text.format("2,1", "cmem"))


# --- hostile text ---


@pytest.mark.parametrize("text", VALID)
def test_truncated_at_every_column(text):
    for end in range(len(text)):
        assert 1 <= column(refusal(text[:end])) <= end + 1, text[:end]


def reads_or_refuses(text):
    start, layout, message = time.perf_counter(), None, ""
    try:
        layout = gl.parse(text)
    except gl.LayoutError as error:
        message = str(error)
    assert time.perf_counter() - start < 5, text
    if layout is None:
        assert re.search(r"column \d+", message), (text, message)
    else:
        assert gl.parse(str(layout)) == layout


CHARACTERS = " \t\nx<>(),.-+*#!0123456789deflmnorstuv_\0\u0663\u00b2\uff15\U0001d7d9é"


@settings(quick, max_examples=examples(2000))
@given(
    st.sampled_from(VALID),
    st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from(CHARACTERS)),
        min_size=1,
        max_size=4,
    ),
)
def test_mutated(text, changes):
    for at, kind, character in changes:
        at %= len(text)
        keep = text[at] if kind == 0 else ""
        put = "" if kind == 1 else character
        if kind == 3:  # a piece twice
            put = text[at : at + 7] * 2
        text = text[:at] + keep + put + text[at + 1 :]
    reads_or_refuses(text)


PIECES = [
    *("tensor", "<", ">", "2x3x", "f32", ",", "#ttcore.metal_layout", "(d0, d1)", "->", "(d0)"),
    *("undef", "memref", "!ttcore.tile", "face", "#ttcore.memory_space", "l1", "4", "x", "\0", "("),
]


@settings(quick, max_examples=examples(1000))
@given(st.lists(st.sampled_from(PIECES), max_size=30), st.text(max_size=5))
def test_shuffled_pieces(pieces, tail):
    reads_or_refuses("tensor<" + "".join(pieces) + tail)
    reads_or_refuses(tail + "".join(pieces))


def text_of(
    shape="53x63xf32", linear="(d0, d1) -> (d0, d1)", oob="undef", grid="3x2", memref="18x32xf32"
):
    return (
        f"tensor<{shape}, #ttcore.metal_layout<{linear}, {oob}, <{grid}>, "
        f"memref<{memref}, #ttcore.memory_space<l1>>>>"
    )


NINES = "9" * 5000
LONG = 60_000

# Numbers that would take the memory or the time, nesting that would take the stack.
HOSTILE = {
    "deep print": "TensorSpec(" + "a=B(" * 9000,
    "long print": "TensorSpec(a={" + "1, " * 20000,
    "huge print": PRINTED[0][0].replace("2, 40, 70", "4611686018427387904, 4611686018427387904"),
    "many ranges": "MemoryConfig(memory_layout=TensorMemoryLayout::BLOCK_SHARDED,shard_spec=A("
    "shape={1, 1},grid={" + "[(x=0,y=0) - (x=9,y=9)]," * 2000 + "}))",
    "huge memref": "memref<" + "4611686018427387904x" * 3000 + "f32, #tpu.tiled<(8,128),[1]>>",
    "huge tiles": "memref<4x4xf32, #tpu.tiled<" + "(4611686018427387904)" * 2000 + ",[1,1]>>",
    "size": text_of(shape=f"{NINES}x63xf32"),
    "size of 20 digits": text_of(shape="99999999999999999999x63xf32"),
    "size over 2**62": text_of(shape=f"{2**62 + 1}x63xf32"),
    "sizes whose product is over 2**62": text_of(shape=f"{2**40}x{2**40}xf32"),
    "grid": text_of(grid=f"{2**62}x{2**62}"),
    "grid of 5000 digits": text_of(grid=f"{NINES}x2"),
    "tile": text_of(memref=f"1x1x!ttcore.tile<{2**62}x{2**62}, f32>"),
    "tile of 5000 digits": text_of(memref=f"1x1x!ttcore.tile<{NINES}x2, f32>"),
    "face": text_of(memref=f"1x1x!ttcore.tile<32x32, f32, face<{NINES}>>"),
    "memref": text_of(memref=f"{2**62}x{2**62}xf32"),
    "rank of the shape": text_of(shape="1x" * 20_000 + "f32"),
    "rank of the grid": text_of(grid="x".join("1" * 20_000)),
    "rank of the memref": text_of(memref="1x" * 20_000 + "f32"),
    "rank of the tile": text_of(memref=f"1x1x!ttcore.tile<{'x'.join('1' * 20_000)}, f32>"),
    "dims of the map": text_of(linear=f"({', '.join(f'd{k}' for k in range(7000))}) -> (d0, d1)"),
    "results of the map": text_of(linear=f"(d0, d1) -> ({', '.join(['d0'] * 10_000)})"),
    "open parentheses": text_of(linear="(" * LONG),
    "nested parentheses": text_of(linear=f"(d0, d1) -> ({'(' * 20_000}d0{')' * 20_000}, d1)"),
    "closed parentheses": text_of(linear=")" * LONG),
    "minus signs": text_of(linear=f"(d0, d1) -> ({'-' * LONG}d0, d1)"),
    "terms": text_of(linear=f"(d0, d1) -> (d0{' + d1' * 10_000}, d1)"),
    "divisions": text_of(linear=f"(d0, d1) -> (d0{' floordiv 2' * 5_000}, d1)"),
    "constant": text_of(linear=f"(d0, d1) -> (d0 + {NINES}, d1)"),
    "constant of int64": text_of(linear=f"(d0, d1) -> (d0 + {2**63 - 1}, d1)"),
    "constants that overflow together": text_of(
        linear=f"(d0, d1) -> (d0 + {2**63 - 1} + {2**63 - 1}, d1)"
    ),
    "factors that overflow together": text_of(linear=f"(d0, d1) -> (d0 * {2**40} * {2**40}, d1)"),
    "stride": text_of(linear=f"(d0, d1) -> (d0 * {2**61}, d1)"),
    "divisor of 0": text_of(linear="(d0, d1) -> (d0 floordiv 0, d1)"),
    "divisor below 0": text_of(linear="(d0, d1) -> (d0 mod -3, d1)"),
    "oob of letters": text_of(oob="e" * LONG),
    "oob in parentheses": text_of(oob="(" * LONG),
    "oob with an underscore": text_of(oob="1_000"),
    "oob in other digits": text_of(oob="\u0663"),
    "element type": text_of(shape="2x3x" + "f" * LONG),
    "blanks": text_of()[:-1] + " " * LONG,
    "blanks only": " " * LONG,
    "1 MB": text_of() + " " * 2**20,
    "1 MB of tensors": "tensor<" * 150_000,
    "1 MB of digits": "tensor<" + "9" * 2**20,
    "1 MB of parentheses": text_of(linear="(" * 2**20),
    "NUL": "\0",
    "NUL inside": text_of(shape="53x\0063xf32"),
    "NUL at the end": text_of() + "\0",
    "Arabic digits": text_of(shape="\u0665\u0663x63xf32"),
    "full-width digits": text_of(grid="\uff13x2"),
    "superscripts": text_of(shape="53x6\u00b2xf32"),
    "mathematical digits in the map": text_of(linear="(d0, d1) -> (d0 * \U0001d7d9, d1)"),
    "no-break space": text_of(shape="53x\u00a063xf32"),
    "a form feed": text_of(shape="53x\f63xf32"),
    "a lone surrogate": text_of(shape="53x\ud80063xf32"),
    "nothing": "",
    "a byte-order mark": "\ufeff" + text_of(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(name):
    text = HOSTILE[name]
    message = refusal(text)
    assert 1 <= column(message) <= len(text) + 1


def test_a_range_that_is_hard_to_bound_is_given_up():
    dims = ", ".join(f"d{k}" for k in range(60))
    terms = " + ".join(f"(d{k} * 3 + d{(k + 1) % 60} * 5) mod 7" for k in range(60))
    text = text_of("2x" * 60 + "f32", f"({dims}) -> ({terms})", grid="1", memref="1xf32")
    assert "exceeded its budget" in refusal(text, within=30)


@pytest.mark.parametrize(
    "value", [None, 5, 2.5, b"tensor<f32>", bytearray(b"x"), ["tensor"], ("a",), {}, object, True]
)
def test_not_a_text(value):
    assert f"must be a str, not {type(value).__name__}" in refusal(value)


def test_large_numbers_that_are_allowed_take_no_memory_and_no_time():
    text = text_of(f"{2**31}x{2**30}xbf16", grid="1024x1", memref=f"{2**21}x{2**30}xbf16")
    start = time.perf_counter()
    layout = gl.parse(text)
    assert layout.nbytes == 2**62
    assert layout.locate((2**31 - 1, 5)).offset == (2**21 - 1) * 2**30 + 5
    assert time.perf_counter() - start < 2


def test_numbers_with_many_digits_are_values_of_the_padding():
    """Integers saturate, floats overflow to inf, at any length."""
    for digits in ("1" + "0" * 320, NINES):
        for dtype, element, high in (("float32", "f32", math.inf), ("int8", "i8", 127)):
            memref, shape = f"18x32x{element}", f"53x63x{element}"
            assert gl.parse(text_of(shape, oob=digits, memref=memref)).oob == high, dtype
            low = -128 if dtype == "int8" else -math.inf
            assert gl.parse(text_of(shape, oob=f"-{digits}", memref=memref)).oob == low


# --- constructor calls, as repr prints them ---


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("GridLayout((8, 300), 'float32', grid=(0, 2))", "column 1: grid .*>= 1"),
        ("GridLayout(-8)", "column 1: shape .* whole numbers >= 0"),
        ("gl.GridLayout()", "column 1: gl.GridLayout: missing a required argument: 'shape'"),
        ("gl.nothing(3)", "column 1: no known layout starts here"),
        ("GridLayout()", "column 1: GridLayout: missing a required argument: 'shape'"),
        ("GridLayout((8,), oob=print(1))", "column 22: 'print' is not one of GridLayout, Metal"),
        ("GridLayout", "column 1: no known layout starts here"),
        ("Layout((5,), 'float32', (d0) -> (d0))", "column 1: a gl.Layout built from steps"),
        # Python can't print integers of so many digits, nor convert them to floats.
        (f"GridLayout((-0x{'f' * 9999},))", "column 14: a number of 39996 bits is over"),
        (f"GridLayout((8,), oob=-0x{'f' * 999} + 1j)", "column 23: a number of 3996 bits"),
        (f"GridLayout((8,), oob=complex(-0x{'f' * 999}, 1))", "column 31: a number of 3996 bits"),
    ],
)
def test_calls_that_make_no_layout(text, says):
    with pytest.raises(gl.LayoutError, match=says):
        gl.parse(text)


# A call, and the text at the column that the error names.
COLUMNS = [
    ("  \n GridLayout((8, 300), 'float32', grid=wrong)", "wrong)"),
    ("GridLayout((8, 300),\n  'float32',\r\n  grid=wrong)", "wrong)"),
    ("mli.tensor(('\u00e9\U0001d7d9', 2), wrong)", "wrong)"),
    (" GridLayout((8,\r 300), '\u00e9' wrong)", "'\u00e9' wrong)"),
]


@pytest.mark.parametrize(("text", "where"), COLUMNS)
def test_columns_in_calls_are_counted_from_the_start_of_the_text(text, where):
    with pytest.raises(gl.LayoutError) as caught:
        gl.parse(text)
    assert column(str(caught.value)) == text.index(where) + 1
    shown, mark = caught.value.__notes__[0].splitlines()
    assert shown[mark.index("^") :] == where


def test_errors_of_maps_show_the_text_too():
    with pytest.raises(gl.LayoutError, match="in the affine map: no such dim") as caught:
        gl.parse(PLAIN.replace("-> (d0, d1)", "-> (d0, d2)"))
    shown, mark = caught.value.__notes__[0].splitlines()
    assert shown[mark.index("^") :].startswith("d2), undef")


def test_errors_show_the_text_that_they_are_of():
    text = str(gl.GridLayout((40, 40), grid=(2, 2))).replace(
        "memref<20x20xf32", "memref<20x20x\nf33"
    )
    with pytest.raises(gl.LayoutError, match="element type 'f33'") as caught:
        gl.parse(text)
    (note,) = caught.value.__notes__
    shown, mark = note.splitlines()
    assert shown[mark.index("^") :].startswith("f33, #ttcore")
    assert len(shown) <= 2 + 80


def test_calls_may_have_the_librarys_name_in_front():
    for text in ("GridLayout((3, 5), grid=(2, 2))", "sophon.local((1, 2, 3, 4), 'int8')"):
        assert gl.parse(f"gl.{text}") == gl.parse(f" {text}")
    chip = "gl.sophon.local((1, 2, 3, 4), 'int8', chip=gl.sophon.BM1688)"
    assert gl.parse(chip).chip is gl.sophon.BM1688
    with pytest.raises(gl.LayoutError, match="column 1: no known layout"):
        gl.parse("gl.gl.GridLayout((3, 5))")
