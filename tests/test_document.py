"""Every example of the document (tt-mlir), and every size that its authors' tests state.

`golden/document_model.json` holds the latter, with their files.
"""

import json
import re
from math import prod
from pathlib import Path

import numpy as np
import pytest

import gridlayout as gl

# The document's default collapse, whatever it wastes, is among what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:the default collapse:gridlayout.LayoutWarning")

GOLDEN = json.loads(
    (Path(__file__).parent / "golden" / "document_model.json").read_text(encoding="utf-8")
)["A_doc_model"]


# --- the snippets, verbatim ---

# section, the snippet, its grid, its tile, its memref shape, and the shard in elements.
SNIPPETS = [
    (
        "An Example / Walkthrough",
        """
tensor<2x3x64x128xf32,
  #ttcore.metal_layout<
    (d0, d1, d2, d3) -> (d0 * 192 + d1 * 64 + d2, d3),
    undef,
    <1x1>,
    memref<384x128xf32, #ttcore.memory_space<l1>>
  >
>
""",
        *((1, 1), None, (384, 128), (384, 128)),
    ),
    (
        "Multi-core",
        """
tensor<2x3x64x128xf32,
  #ttcore.metal_layout<
    (d0, d1, d2, d3) -> (d0 * 192 + d1 * 64 + d2, d3),
    undef,
    <2x4>,
    memref<192x32xf32, #ttcore.memory_space<l1>>
  >
>
""",
        *((2, 4), None, (192, 32), (192, 32)),
    ),
    (
        "Multi-core, a few more",
        """
tensor<8x300xf32,
  #ttcore.metal_layout<(d0, d1) -> (d0, d1),
    undef,
    <1x2>,
    memref<8x150xf32, #ttcore.memory_space<l1>>
  >
>
""",
        *((1, 2), None, (8, 150), (8, 150)),
    ),
    (
        "Multi-core, a few more",
        """
tensor<8x96x32xf32,
  #ttcore.metal_layout<(d0, d1, d2) -> (d0 * 96 + d1, d2),
    undef,
    <2x1>,
    memref<384x32xf32, #ttcore.memory_space<l1>>
  >
>
""",
        *((2, 1), None, (384, 32), (384, 32)),
    ),
    (
        "Multi-core, a few more",
        """
tensor<8x96x32xf32,
  #ttcore.metal_layout<(d0, d1, d2) -> (d0 * 96 + d1, d1, d2),
    undef,
    <2x1x2>,
    memref<384x96x16xf32, #ttcore.memory_space<l1>>
  >
>
""",
        *((2, 1, 2), None, (384, 96, 16), (384, 96, 16)),
    ),
    (
        "Multi-core, a few more",
        """
tensor<5x3x2x2x7x32x32xf32,
  #ttcore.metal_layout<
    (d0, d1, d2, d3, d4, d5, d6)
      -> (d0 * 2688 + d1 * 896 + d2 * 448 + d3 * 224 + d4 * 32 + d5, d4, d5, d6),
    undef,
    <3x2x2x2>,
    memref<4480x4x16x16xf32, #ttcore.memory_space<l1>>
  >
>
""",
        *((3, 2, 2, 2), None, (4480, 4, 16, 16), (4480, 4, 16, 16)),
    ),
    (
        "Tilized, before",
        """
tensor<3x64x128xf32,
  #ttcore.metal_layout<
    (d0, d1, d2) -> (d0 * 64 + d1, d2),
    undef,
    <3x2>,
    memref<64x64xf32, #ttcore.memory_space<l1>>
  >
>
""",
        *((3, 2), None, (64, 64), (64, 64)),
    ),
    (
        "Tilized, after",
        """
tensor<3x64x128xf32,
  #ttcore.metal_layout<
    (d0, d1, d2) -> (d0 * 64 + d1, d2),
    undef,
    <3x2>,
    memref<2x2x!ttcore.tile<32 x 32, bfp_bf8>, #ttcore.memory_space<l1>>
  >
>
""",
        *((3, 2), (32, 32), (2, 2), (64, 64)),
    ),
    (
        "Padding",
        """
tensor<53x63xf32,
  #ttcore.metal_layout<
    (d0, d1) -> (d0, d1),
    undef,
    <3x2>,
    memref<18x32xf32, #ttcore.memory_space<l1>>
  >
>
""",
        *((3, 2), None, (18, 32), (18, 32)),
    ),
    (
        "Padding, tilized",
        """
tensor<53x63xf32,
  #ttcore.metal_layout<
    (d0, d1) -> (d0, d1),
    undef,
    <3x2>,
    memref<1x1x!ttcore.tile<32 x 32, bfp_bf8>, #ttcore.memory_space<l1>>
  >
>
""",
        *((3, 2), (32, 32), (1, 1), (18, 32)),
    ),
    (
        "Padding, stride",
        """
tensor<2x8x32xf32,
  #ttcore.metal_layout<
    (d0, d1, d2) -> (d0 * 8 + d1, d2),
    undef,
    <1x2>,
    memref<16x16xf32, #ttcore.memory_space<l1>>
  >
>
""",
        *((1, 2), None, (16, 16), (16, 16)),
    ),
    (
        "Multi-device",
        """
tensor<2x3x64x128xf32,
  #ttcore.metal_layout<(d0, d1, d2, d3) -> (d0, d1 * 64 + d2, d3),
    undef,
    <2x2x4>,
    memref<1x3x1x!ttcore.tile<32 x 32, bfp_bf8>, #ttcore.memory_space<l1>>
  >
>
""",
        *((2, 2, 4), (32, 32), (1, 3, 1), (1, 96, 32)),
    ),
]
IDS = [f"{k}-{snippet[0]}" for k, snippet in enumerate(SNIPPETS)]


def squeezed(text):
    return "".join(text.split())


@pytest.mark.parametrize(("section", "text", "grid", "tile", "memref", "shard"), SNIPPETS, ids=IDS)
def test_snippet(section, text, grid, tile, memref, shard):
    layout = gl.parse(text)
    assert layout.grid == grid
    assert layout.tile == tile
    assert layout.tile_format == ("bfp_bf8" if tile else None)
    assert layout.tile_counts == memref
    assert layout.shard_shape == shard
    assert layout.physical_shape == grid + memref + (tile or ())
    assert layout.oob is None
    assert layout.memory_space == "l1"
    assert layout.dtype == "float32"
    # It is written as the document writes it, but for line breaks and blanks.
    assert squeezed(str(layout)) == squeezed(text)
    assert gl.parse(str(layout)) == layout


def test_a_tensor_without_an_encoding_is_no_layout():
    """Walkthrough, first snippet: "a 4 dimensional tensor", nothing about where it lies."""
    with pytest.raises(gl.LayoutError, match=r"column 22: expected ','.*'>'"):
        gl.parse("tensor<2x3x64x128xf32>")


# Every snippet whose map is the document's default is what its constructor makes by default.
# shape, grid, tile, format, collapse, snippet
CONSTRUCTED = [
    ((2, 3, 64, 128), (1, 1), None, None, None, 0),
    ((2, 3, 64, 128), (2, 4), None, None, None, 1),
    ((8, 300), (1, 2), None, None, None, 2),
    ((8, 96, 32), (2, 1), None, None, None, 3),
    ((8, 96, 32), (2, 1, 2), None, None, None, 4),
    ((5, 3, 2, 2, 7, 32, 32), (3, 2, 2, 2), None, None, None, 5),
    ((3, 64, 128), (3, 2), None, None, None, 6),
    ((3, 64, 128), (3, 2), (32, 32), "bfp_bf8", None, 7),
    ((53, 63), (3, 2), None, None, None, 8),
    ((53, 63), (3, 2), (32, 32), "bfp_bf8", None, 9),
    ((2, 8, 32), (1, 2), None, None, None, 10),
    ((2, 3, 64, 128), (2, 2, 4), (32, 32), "bfp_bf8", [(1, -1)], 11),
]


@pytest.mark.parametrize(("shape", "grid", "tile", "tile_format", "collapse", "k"), CONSTRUCTED)
def test_the_constructor_makes_the_snippet(shape, grid, tile, tile_format, collapse, k):
    layout = gl.GridLayout(
        shape, "float32", grid=grid, tile=tile, collapse=collapse, tile_format=tile_format
    )
    assert layout == gl.parse(SNIPPETS[k][1])


# --- the walk-through's numbers ---


def test_the_remapped_offset():
    """Dimension Collapsing: `(1 * 192 + 1 * 64 + 6, 100) = (262, 100)`."""
    linear = gl.AffineMap.parse("(d0, d1, d2, d3) -> (d0 * 192 + d1 * 64 + d2, d3)")
    assert linear(1, 1, 6, 100) == (262, 100)
    layout = gl.GridLayout((2, 3, 64, 128))
    assert layout.linear == linear
    assert layout.locate((1, 1, 6, 100)) == gl.results.Location(
        core=(0, 0), local=(262, 100), offset=262 * 128 + 100, byte=4 * (262 * 128 + 100)
    )
    assert layout.logical_index((0, 0, 262, 100)) == (1, 1, 6, 100)


def test_the_size_is_the_last_index_plus_one_and_the_shard_its_share():
    """Multi-core: `(383, 127)`, then `(384, 128)`, then `(384 / 2, 128 / 4) = (192, 32)`."""
    layout = gl.GridLayout((2, 3, 64, 128), grid=(2, 4))
    assert layout.linear(2 - 1, 3 - 1, 64 - 1, 128 - 1) == (383, 127)
    assert layout.collapsed_shape == (384, 128)
    assert layout.shard_shape == (192, 32)
    # On this grid (262, 100) is row 70, column 4 of core (1, 3).
    assert layout.locate((1, 1, 6, 100)).core == (1, 3)
    assert layout.locate((1, 1, 6, 100)).local == (70, 4)


# --- collapse intervals ---


@pytest.mark.parametrize("case", GOLDEN["collapse_intervals_doc"], ids=lambda case: case["result"])
def test_collapse_interval(case):
    """Dimension Collapsing: `<>` joins dims, the last of them fastest."""
    joined = [
        tuple(int(d) for d in re.findall(r"d(\d+)", part)) for part in case["result"].split(",")
    ]
    shape = (2, 3, 4, 2, 3, 2, 2)[: case["rank"]]
    linear = gl.GridLayout(
        shape, grid=(1,) * case["grid_rank"], collapse=[tuple(pair) for pair in case["iv"]]
    ).linear
    assert len(linear.results) == len(joined)
    index = np.indices(shape)
    for result, dims in zip(linear(*index), joined, strict=True):
        sizes = [shape[d] for d in dims]
        expected = np.ravel_multi_index([index[d] for d in dims], sizes)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("case", GOLDEN["collapse_intervals_doc"], ids=lambda case: case["result"])
def test_the_join_operator(case):
    """Dimension Collapsing: "we will use `<>` to represent a dimension join operator"."""
    shape, grid = (2, 3, 4, 2, 3, 2, 2)[: case["rank"]], (1,) * case["grid_rank"]
    dims = ", ".join(f"d{d}" for d in range(case["rank"]))
    text = f"({dims}) -> {case['result'].replace('<>', ' <> ')}"
    layout = gl.GridLayout(shape, grid=grid, collapse=[tuple(pair) for pair in case["iv"]])
    assert gl.GridLayout(shape, grid=grid, linear=text) == layout
    assert gl.parse(str(layout).replace(str(layout.linear), text)) == layout
    assert layout.linear.joined_text(shape) == text


def test_the_default_is_all_but_the_last_dim():
    """Dimension Collapsing: "By default, the dim range `[0, -1)` is collapsed"."""
    for shape in ((4, 5), (3, 4, 5), (2, 3, 4, 5)):
        assert gl.GridLayout(shape) == gl.GridLayout(shape, collapse=[(0, -1)])


# --- grids of any rank and size ---


def test_a_virtual_grid_may_exceed_any_device():
    """Multi-core, notes: `1x64`, "called width sharding in TTNN"."""
    layout = gl.GridLayout((32, 2048), "bfloat16", grid=(1, 64), tile=(32, 32))
    assert layout.num_cores == 64
    assert layout.tile_counts == (1, 1)
    assert layout.locate((31, 2047)).core == (0, 63)


def test_the_outermost_grid_dim_divides_the_batch():
    """Multi-device: "the batch dim is evenly divided between 2 devices", each a `2x4` grid."""
    layout = gl.parse(SNIPPETS[-1][1])
    for batch in range(2):
        cores = {
            layout.locate((batch, d1, d2, d3)).core
            for d1 in range(3)
            for d2 in range(0, 64, 16)
            for d3 in range(0, 128, 16)
        }
        assert cores == {(batch, row, column) for row in range(2) for column in range(4)}
    assert not layout.padding_mask().any()


# --- padding ---


def test_padding_of_the_scalar_grid():
    """Padding: "1 scalar row ... on the last row of cores and 1 scalar column ..."."""
    layout = gl.parse(SNIPPETS[8][1])
    assert layout.padding_along(0).tolist() == [0, 0, 1]
    assert layout.padding_along(1).tolist() == [0, 1]
    expected = np.zeros((3, 2, 18, 32), bool)
    expected[2, :, 17, :] = True
    expected[:, 1, :, 31] = True
    np.testing.assert_array_equal(layout.padding_mask(), expected)
    assert layout.padding_per_core().tolist() == [[0, 18], [0, 18], [32, 18 + 32 - 1]]


def test_padding_of_the_tiled_grid():
    """Padding: "every core now has 14 rows of padding except for the last row ... 15"."""
    layout = gl.parse(SNIPPETS[9][1])
    assert layout.padding_along(0).tolist() == [14, 14, 15]
    assert layout.padding_along(1).tolist() == [0, 1]
    mask = layout.padding_mask()
    whole_rows = mask.all(axis=(3, 5)).sum(axis=(2, 3))
    assert whole_rows.tolist() == [[14, 14], [14, 14], [15, 15]]
    whole_columns = mask.all(axis=(2, 4)).sum(axis=(2, 3))
    assert whole_columns.tolist() == [[0, 1], [0, 1], [0, 1]]


def test_the_grid_divides_before_the_tile():
    """Padding: "grid divides the scalar shape first and then we tilize"; not 32, 21 and 0 rows."""
    layout = gl.parse(SNIPPETS[9][1])
    rows = [layout.locate((row, 0)).core[0] for row in range(53)]
    assert [rows.count(core) for core in range(3)] == [18, 18, 17]


def test_batches_share_a_tile_when_they_are_tightly_packed():
    """Padding: "If we tilized the above tensor we'd end up with ... `1x1x!ttcore.tile<32x32>`"."""
    layout = gl.parse(SNIPPETS[10][1]).replace(tile=(32, 32))
    assert layout.tile_counts == (1, 1)
    assert "memref<1x1x!ttcore.tile<32x32, f32>" in str(layout)


def test_a_bumped_stride_puts_each_batch_on_a_tile_boundary():
    """Padding: `(d0, d1, d2) -> (d0 * 32 + d1, d2)`."""
    layout = gl.GridLayout(
        (2, 8, 32),
        "float32",
        grid=(1, 2),
        tile=(32, 32),
        linear="(d0, d1, d2) -> (d0 * 32 + d1, d2)",
    )
    # The last row is 1 * 32 + 7: 40 rows, not 64.
    assert layout.collapsed_shape == (40, 32)
    assert layout.shard_shape == (40, 16)
    assert layout.tile_counts == (2, 1)
    for batch in range(2):
        for row in range(8):
            assert layout.locate((batch, row, 20)).local == (batch, 0, row, 4)
    # "a gap between the collapsed rows": 24 rows of every tile, and 16 columns.
    assert layout.padding_along(0).tolist() == [48]
    assert layout.padding_along(1).tolist() == [16, 16]
    scalar = layout.replace(tile=None)
    np.testing.assert_array_equal(
        scalar.padding_mask()[0, :, :, 0], [[8 <= row < 32 for row in range(40)]] * 2
    )


# --- memory spaces ---


@pytest.mark.parametrize("space", ["system", "mmio", "dram", "l1"])
def test_memory_space(space):
    """Memory Spaces: System, SystemMMIO, DeviceDRAM, DeviceL1, by their names in tt-mlir."""
    text = SNIPPETS[8][1].replace("<l1>", f"<{space}>")
    assert gl.parse(text) == gl.GridLayout((53, 63), grid=(3, 2), memory_space=space)


def test_a_fifth_memory_space_is_refused():
    with pytest.raises(gl.LayoutError, match="memory_space 'dst' is not one of system, mmio, dram"):
        gl.parse(SNIPPETS[8][1].replace("<l1>", "<dst>"))


# --- the authors' numbers ---


@pytest.mark.parametrize(
    "case", GOLDEN["cases"], ids=lambda case: f"{case['shape']} on {case['grid']} {case['map']}"
)
def test_golden(case):
    bumped = case["map"] == "(d0*32+d1, d2)"
    dims = ", ".join(f"d{d}" for d in range(len(case["shape"])))
    linear = f"({dims}) -> {case['map']}"
    layout = gl.GridLayout(
        case["shape"],
        grid=case["grid"],
        **({"linear": linear} if bumped else {"collapse": case["collapse_intervals"]}),
    )
    if case["map"] is not None:
        assert layout.linear == gl.AffineMap.parse(linear)
    assert list(layout.shard_shape) == case["shard"]
    assert layout.physical_shape == (*case["grid"], *case["shard"])
    if case["tile_shard_32x32"] is not None:
        tiled = layout.replace(tile=(32, 32))
        assert list(tiled.tile_counts) == case["tile_shard_32x32"]
        assert tiled.physical_shape == (*case["grid"], *case["tile_shard_32x32"], 32, 32)


def test_the_golden_file_is_whole():
    assert len(GOLDEN["cases"]) == 17
    assert len(GOLDEN["collapse_intervals_doc"]) == 4


# tt-metal tests/ttnn/unit_tests/gtests/tensor/test_sharding_with_alignment.cpp, its mode that
# shards the logical shape and then pads each shard, as the document does.
# shape, logical shard, what a shard is padded to a multiple of, physical shard, physical shape
SHARD_THEN_PAD = [
    ((1, 2, 15, 20), (15, 20), (16, 16), (16, 32), (32, 32)),
    ((1, 2, 5, 1), (3, 1), (3, 4), (3, 4), (12, 4)),
    ((1, 2, 5, 10), (10, 3), (1, 4), (10, 4), (10, 16)),
    ((1, 48, 56, 32), (48, 32), (32, 32), (64, 32), (3584, 32)),
    ((1, 2, 10, 5), (5, 2), (7, 3), (7, 3), (28, 9)),
]


@pytest.mark.parametrize(("shape", "shard", "tile", "padded", "physical"), SHARD_THEN_PAD)
def test_shard_then_pad(shape, shard, tile, padded, physical):
    rows, columns = prod(shape[:-1]), shape[-1]
    grid = (-(-rows // shard[0]), -(-columns // shard[1]))
    layout = gl.GridLayout(shape, grid=grid, tile=tile)
    assert layout.shard_shape == shard
    assert tuple(n * t for n, t in zip(layout.tile_counts, tile, strict=True)) == padded
    assert tuple(g * n for g, n in zip(grid, padded, strict=True)) == physical


# tt-metal tt_metal/impl/data_format/tilize_utils.cpp: (row, column, offset) inside a 32x32 tile of
# 16x16 faces.
FACES = [
    *((0, 0, 0), (0, 15, 15), (0, 16, 256), (1, 0, 16)),
    *((15, 31, 511), (16, 0, 512), (16, 16, 768), (31, 31, 1023)),
]


def test_offsets_in_a_tile_of_faces():
    layout = gl.GridLayout((32, 32), "bfloat16", tile=(32, 32), face=(16, 16))
    assert layout.physical_shape == (1, 1, 1, 1, 2, 2, 16, 16)
    for row, column, offset in FACES:
        assert layout.locate((row, column)).offset == offset
        assert layout.locate((row, column)).byte == 2 * offset
