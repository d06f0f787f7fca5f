"""Today's ttnn_layout: tt-mlir's numbers, a brute-force reading, and the TTNN section."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laid_out import assert_goes_round, indices

import gridlayout as gl
from gridlayout.mlir.aliases import Aliases
from gridlayout.tenstorrent import (
    TtnnLayout,
    from_document,
    interleaved_shard_shape,
    lower_to_mesh,
    ttnn,
)
from gridlayout.tenstorrent.allocation import read_allocation
from gridlayout.tenstorrent.chip_layout import ChipLayout
from gridlayout.tenstorrent.tensor_type import TensorType, read_tensor_type

TEXT = (
    "tensor<64x128xbf16, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x4>, "
    "memref<1x1x!ttcore.tile<32x32, bf16>, #ttnn.buffer_type<l1>>, <block_sharded>, "
    "core_ranges = <[#ttnn.core_range<(0,0), (3,1)>]>>>"
)

# -- numbers of tt-mlir's unit tests and comments ----------------------------------------------

SHARDS = [
    # (shape, grid, tile, shard in elements)
    ((4096, 2048), (8, 8), (32, 32), (512, 256)),
    ((4096, 2048), (64, 1), (32, 32), (64, 2048)),
    ((4096, 2048), (1, 64), (32, 32), (4096, 32)),
    ((4096, 2048), (4, 4), (32, 32), (1024, 512)),
    ((4096, 2048), (16, 1), (32, 32), (256, 2048)),
    ((4096, 2048), (1, 16), (32, 32), (4096, 128)),
    ((53, 63), (3, 2), (32, 32), (22, 32)),
    # tt-mlir's issues 1691 and 2092: tiles first, then the collapse.
    ((1, 32, 10, 10), (1, 1), (32, 32), (1024, 32)),
    # calculateLogicalShardShapeForSharding's comment
    ((32, 32), (8, 8), None, (4, 4)),
    ((65, 65), (8, 8), None, (9, 9)),
]


@pytest.mark.parametrize(("shape", "grid", "tile", "shard"), SHARDS)
def test_shards(shape, grid, tile, shard):
    assert ttnn(shape, grid=grid, tile=tile).shard_shape == shard


INTERLEAVED = [
    ((1, 1024), (32, 32), (32, 32)),
    ((512, 512), (32, 32), (32, 128)),
    ((32, 2049), (32, 32), (32, 64)),
    ((1, 1024), None, (1, 16)),
    ((512, 512), None, (1, 4096)),
    ((32, 2049), None, (1, 1025)),
]


@pytest.mark.parametrize(("shape", "tile", "shard"), INTERLEAVED)
def test_interleaved_shards(shape, tile, shard):
    assert interleaved_shard_shape(shape, (8, 8), tile) == shard


def test_cores_of_a_height_sharding_are_numbered_by_rows():
    assert ttnn((13 * 32, 32), grid=(13, 1), tile=(32, 32)).core_ranges == (
        ((0, 0), (7, 0)),
        ((0, 1), (4, 1)),
    )


# -- brute force -------------------------------------------------------------------------------


def up(n, to):
    while n % to:
        n += 1
    return n


def place(index, shape, grid, tile):
    """Pad to tiles, collapse, divide by the grid, divide by the tile: one index, by loops."""
    shape, index = (1,) * (2 - len(shape)) + shape, (0,) * (2 - len(shape)) + index
    tile_sides = tile or (1, 1)
    padded = [*shape[:-2], up(shape[-2], tile_sides[0]), up(shape[-1], tile_sides[1])]
    row = rows = 0
    for i, n in zip(index[:-1], padded[:-1], strict=True):
        row = row * n + i
        rows = (rows or 1) * n
    cores, tiles, inner = [], [], []
    for value, size, cores_along, side in zip(
        (row, index[-1]), (rows, padded[-1]), grid, tile_sides, strict=True
    ):
        core, rest = divmod(value, up(size, cores_along) // cores_along)
        cores.append(core)
        tiles.append(rest // side)
        inner.append(rest % side)
    return (*cores, *tiles, *(inner if tile else ()))


@st.composite
def cases(draw):
    rank = draw(st.integers(0, 4))
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank)))
    grid = (draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    tile = draw(st.sampled_from([None, (1, 2), (2, 4), (4, 4)]))
    return shape, grid, tile


@given(cases())
def test_against_brute_force(case):
    shape, grid, tile = case
    layout = ttnn(shape, "int32", grid, tile)
    seen = set()
    for index in indices(shape):
        where = layout.locate(index)
        expected = place(index, shape, grid, tile)
        assert (*where.core, *where.local) == expected
        assert layout.logical_index(expected) == index
        # The document's `stride` gives the row and the column of the plane.
        flat = sum(i * s for i, s in zip(index, layout.stride, strict=True))
        assert divmod(flat, layout.plane[1]) == layout.linear(*index)
        seen.add(expected)
    assert {tuple(p) for p in np.argwhere(~layout.padding_mask()).tolist()} == seen
    assert layout.physical_shape == layout.grid + layout.tile_counts + (tile or ())
    assert all(0 < n <= g for n, g in zip(layout.grid_shape, grid, strict=True))
    assert gl.parse(str(layout)) == layout == eval(repr(layout))
    filled = layout.with_oob(7)
    assert gl.parse(str(filled)) == filled == eval(repr(filled))


EXAMPLES = {
    "tiles first": ttnn((53, 63), "float32", (3, 2), (32, 32)),
    "scalars": ttnn((3, 5, 7), "float32", (4, 2)),
    "batches": ttnn((2, 3, 5, 7), "float32", (2, 1), (4, 4)),
    "rank 1": ttnn((40,), "float32", (1, 2), (32, 32)),
    "rank 0": ttnn((), "float32", tile=(32, 32)),
    "nothing": ttnn((2, 0, 3), "float32", (2, 1), (32, 32)),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", EXAMPLES)
def test_runs(name):
    assert_goes_round(EXAMPLES[name])


# -- the document's TTNN section -------------------------------------------------------------------


def test_terms():
    layout = ttnn((2, 53, 63), grid=(3, 2), tile=(32, 32))
    assert layout.stride == (64 * 64, 64, 1)
    assert layout.plane == (128, 64)
    assert layout.shard_shape == (43, 32)
    assert layout.physical_shard_shape == (64, 32)
    assert layout.tile_shape == (32, 32)
    assert layout.grid_shape == (3, 2)
    # 96 rows on 64 cores are shards of 2: 48 cores hold a part.
    assert ttnn((96, 1), grid=(64, 1)).grid_shape == (48, 1)


@given(cases())
def test_mapping_from_the_compiler(case):
    """What TTNN can express is placed alike, index by index; what it refuses is not."""
    shape, grid, tile = case
    layout = gl.GridLayout(shape, "float32", grid, tile)
    same = layout.physical_shape == ttnn(shape, "float32", grid, tile).physical_shape and all(
        layout.index_map(*index) == place(index, shape, grid, tile) for index in indices(shape)
    )
    try:
        found = from_document(layout)
    except gl.LayoutError:
        assert not same
    else:
        assert same
        assert found.physical_shape == layout.physical_shape


def test_bumped_stride_is_tile_padding():
    bumped = gl.GridLayout(
        (2, 8, 32), grid=(1, 1), tile=(32, 32), linear="(d0, d1, d2) -> (d0 * 32 + d1, d2)"
    )
    assert from_document(bumped) == ttnn((2, 8, 32), tile=(32, 32))


NOT_TTNN = [
    (gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32)), "pads to tiles"),
    (gl.GridLayout((2, 8, 32), grid=(1, 1), tile=(32, 32)), "pads to tiles"),
    (gl.GridLayout((4, 4, 4), grid=(2, 2, 1), collapse=[]), "use lower_to_mesh"),
    (gl.GridLayout((8, 8), tile=(4, 4), face=(2, 2)), "has no faces"),
    (gl.GridLayout((8, 8), tile=(4,)), "rank 2"),
    (gl.GridLayout((8, 8), memory_space="mmio"), "no TTNN buffer type"),
    (ttnn((8, 8)), "not a document-model layout"),
]


@pytest.mark.parametrize(("layout", "rule"), NOT_TTNN)
def test_what_ttnn_cannot_express(layout, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        from_document(layout)


@pytest.mark.parametrize("shape", [(2, 3, 64, 128), (4, 3, 64, 128), (6, 32, 64)])
def test_mesh_of_planes(shape):
    """Each device holds the same elements as before, its slice of the batch."""
    layout = gl.GridLayout(shape, grid=(2, 2, 4), tile=(32, 32), collapse=[(1, -1)])
    lowered = lower_to_mesh(layout)
    assert (lowered.devices, lowered.layout.shape) == (2, (shape[0] // 2, *shape[1:]))
    assert lowered.layout == ttnn((shape[0] // 2, *shape[1:]), grid=(2, 4), tile=(32, 32))
    batch = lowered.layout.shape[0]
    for d0 in range(shape[0]):
        assert layout.locate((d0, *(0 for _ in shape[1:]))).core[0] == d0 // batch


NOT_A_MESH = [
    (gl.GridLayout((4, 4, 4), grid=(2, 2)), "grid of rank 3"),
    (gl.GridLayout((4, 4, 4, 4), grid=(2, 2, 2), collapse=[(0, 2)]), "must leave d0"),
    (gl.GridLayout((3, 4, 4), grid=(2, 2, 2), collapse=[]), "do not divide over 2 devices"),
    # The first device would hold three of the four indices of d0.
    (
        gl.GridLayout((4, 4, 4), grid=(2, 2, 2), collapse=[], shard_shape=(3, None, None)),
        "states more than the 2 indices of d0 per device",
    ),
]


@pytest.mark.parametrize(("layout", "rule"), NOT_A_MESH)
def test_what_is_no_mesh_of_planes(layout, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        lower_to_mesh(layout)


# -- text and refusals -------------------------------------------------------------------------


def test_text():
    layout = gl.parse(TEXT)
    assert isinstance(layout, TtnnLayout)
    assert layout == ttnn((64, 128), "bfloat16", (2, 4), (32, 32))
    assert str(layout) == TEXT
    packed8 = ttnn((64, 128), "float32", (2, 4), (32, 32), tile_format="bfp_bf8")
    assert packed8.bytes_per_core == 1088
    assert gl.parse(str(packed8)) == packed8 == eval(repr(packed8))
    dram = ttnn((64, 128), "uint32", tile=(32, 32), buffer_type="dram")
    assert "tile<32x32, u32>, #ttnn.buffer_type<dram>" in str(dram)
    assert gl.parse(str(dram)) == dram == eval(repr(dram))
    host = ttnn((64, 128), "float32", buffer_type="system_memory")
    assert gl.parse(str(host)) == host == gl.parse(str(host).replace(", <interleaved>", ""))
    with pytest.raises(gl.LayoutError, match="expected ','"):
        gl.parse(str(dram).replace(", <interleaved>", ""))


L1 = "#ttnn.buffer_type<l1>"
TILE = "!ttcore.tile<32x32, {}>"
RANGES = "[#ttnn.core_range<(0,0), (10,0)>, #ttnn.core_range<(0,1), (4,1)>]"
COMPILED = [
    # 2x50x96 is 4x3 tiles, dealt to the 110 banks of a Blackhole: one each.
    (
        f"tensor<2x50x96xf32, #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <10x11>, "
        f"memref<1x1x{TILE.format('f32')}, {L1}>, <interleaved>>>",
        {"grid": (10, 11), "memory_layout": "interleaved"},
    ),
    # 16 cores on a Blackhole: 11 in the first row.
    (
        "tensor<2x4x50x50xf32, #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 256 + d1 * 64 + d2, "
        f"d3), <16x1>, memref<1x2x{TILE.format('f32')}, {L1}>, <height_sharded>, "
        f"core_ranges = <{RANGES}>>>",
        {"grid": (16, 1), "core_ranges": [((0, 0), (10, 0)), ((0, 1), (4, 1))]},
    ),
    (
        f"tensor<16x64xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <16x1>, "
        f"memref<1x2x{TILE.format('f32')}, {L1}>, <height_sharded>, "
        f"core_ranges = #ttnn.core_range_set<{RANGES}>>>",
        {"grid": (16, 1), "core_ranges": [((0, 0), (10, 0)), ((0, 1), (4, 1))]},
    ),
    (
        f"tensor<100x1xsi32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, "
        f"memref<4x1x{TILE.format('si32')}, {L1}>, <interleaved>>>",
        {"dtype": "int32"},
    ),
    # An optimiser's scalar, whose map is that of the plane.
    (
        f"tensor<f32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, "
        f"memref<1x1x{TILE.format('f32')}, {L1}>, <interleaved>>>",
        {},
    ),
    # A stride of a dim of extent 1 says nothing.
    (
        "tensor<1x1x4x128xf32, #ttnn.ttnn_layout<(d0, d1, d2, d3) -> (d0 * 4 + d1 * 4 + d2, d3), "
        f"<1x1>, memref<1x4x{TILE.format('f32')}, {L1}>, <interleaved>>>",
        {},
    ),
]


@pytest.mark.parametrize(("text", "arguments"), COMPILED)
def test_what_compilers_write(text, arguments):
    layout = gl.parse(text)
    assert layout == ttnn(layout.shape, tile=(32, 32), **{"dtype": "float32", **arguments})
    assert gl.parse(str(layout)) == layout == eval(repr(layout))
    assert gl.parse(repr(layout)) == layout


def test_pages_on_a_worker_grid_are_those_of_one_plane():
    layout = ttnn((96, 96), grid=(2, 2), tile=(32, 32), memory_layout="interleaved")
    plane = ttnn((96, 96), tile=(32, 32))
    assert (layout.grid, layout.workers, layout.memref_shape) == ((1, 1), (2, 2), (1, 3))
    assert (layout.index_map, layout.nbytes) == (plane.index_map, plane.nbytes)
    assert layout != plane


WRONG = [
    ("-> (d0, d1)", "-> (d0, d1 * 2)", "column 39: the map .* does not follow"),
    ("memref<1x1x", "memref<1x2x", "memref 1x2 does not follow .* give 1x1"),
    ("(3,1)", "(3,2)", "core ranges do not follow .*3,1"),
    ("block_sharded", "height_sharded", "must be Mx1"),
    ("<32x32, bf16>", "<32x32, f32>", "the memref holds f32, but the tensor"),
    ("<l1>", "<l9>", "buffer_type 'l9' is not one of"),
    ("<2x4>", "<0x4>", "all >= 1"),
    (">]>>>", ">]>", "expected '>'"),
]


@pytest.mark.parametrize(("old", "new", "rule"), WRONG)
def test_wrong_text(old, new, rule):
    assert old in TEXT
    with pytest.raises(gl.LayoutError, match=rule):
        gl.parse(TEXT.replace(old, new, 1))


def test_an_empty_grid_in_l1_is_one_core():
    text = (
        f"tensor<f32, #ttnn.ttnn_layout<() -> (0, 0), <>, memref<1x1x{TILE.format('f32')}, {L1}>, "
        "<interleaved>>>"
    )
    assert gl.parse(text) == ttnn((), tile=(32, 32)) == read_tensor_type(text).layout
    # tt-mlir's verifier: elsewhere the grid of what is not sharded is 1x1.
    for word in ("dram", "system_memory"):
        with pytest.raises(gl.LayoutError, match=rf"column 46: the grid .* in {word} is <1x1>"):
            gl.parse(text.replace("<l1>", f"<{word}>"))


# -- types of values in compiled programs ------------------------------------------------------


@pytest.mark.parametrize("text", [TEXT, *(text for text, _ in COMPILED)])
def test_types_in_programs_have_the_layouts_of_their_texts(text):
    """Written as compilers do: the layout, and in it the buffer type, by their aliases."""
    aliases, start = Aliases(), text.index("#ttnn.ttnn_layout")
    aliases.define("#l1", L1)
    aliases.define("#ttnn_layout", text[start:-1].replace(L1, "#l1"))
    found = read_tensor_type(aliases.whole(f"{text[:start]}#ttnn_layout>"))
    assert found == read_tensor_type(text)
    assert found.layout == gl.parse(text)
    assert (found.shape, found.dtype) == (found.layout.shape, found.layout.dtype)


ASIDE = [
    (" memref<", ' mesh = <"mesh">, memref<'),
    ("core_ranges", "exactGrid = true, core_ranges"),
    (")>]>>>", ")>]>, ignorePhysicalLayout = true>>"),
]


@pytest.mark.parametrize(("old", "new"), ASIDE)
def test_what_programs_say_besides_is_of_no_place(old, new):
    text = TEXT.replace(old, new)
    assert text != TEXT
    assert read_tensor_type(text).layout == gl.parse(TEXT)
    with pytest.raises(gl.LayoutError, match=r"column \d+: expected"):
        gl.parse(text)


@pytest.mark.parametrize("form", ["bfp_bf8", "bfp_bf4", "bfp_bf2"])
def test_tensors_in_block_formats(form):
    layout = ttnn((70, 100), "bfloat16", tile=(32, 32), tile_format=form)
    plain = "tensor<70x100xbf16"
    text = str(layout).replace(plain, f"tensor<70x100x{TILE.format(form)}")
    found = read_tensor_type(text)
    assert (found.tile_format, found.dtype.name) == (form, "bfloat16")
    assert found.layout == gl.parse(text) == gl.parse(str(layout)) == layout
    assert gl.explain(text).layouts == 1
    for other in ("!ttcore.tile<16x32, bf16>", "!ttcore.tile<32x32, bf16>"):
        with pytest.raises(gl.LayoutError, match=r"column \d+: the memref holds"):
            gl.parse(text.replace(f"memref<3x4x{TILE.format(form)}", f"memref<3x4x{other}"))
    with pytest.raises(gl.LayoutError, match="tiles of 32x32, but the tensor has tiles of 16x32"):
        gl.parse(str(layout).replace(plain, f"tensor<70x100x!ttcore.tile<16x32, {form}>"))
    # A memref that does not follow from the shape states buffers only.
    allocation = read_allocation(text.replace("memref<3x4", "memref<3x5"))
    assert (allocation.shape, allocation.nbytes) == ((70, 100), 15 * layout.nbytes // 12)


def test_types_in_programs_that_parse_refuses():
    host = ttnn((64, 64), tile=(32, 32), buffer_type="system_memory")
    for words in ("", ", exactGrid = true", ", <interleaved>, exactGrid = true"):
        assert read_tensor_type(str(host).replace(", <interleaved>", words)).layout == host
    assert read_tensor_type("tensor<f32>").layout is None
    assert read_tensor_type("tensor<2x3xsi32>") == TensorType((2, 3), np.dtype("int32"), None)
    assert read_tensor_type(f"tensor<32x32x{TILE.format('bfp_bf8')}>").tile_format == "bfp_bf8"
    sharded = TEXT.replace(", core_ranges = <[#ttnn.core_range<(0,0), (3,1)>]>", "")
    assert read_tensor_type(sharded).layout == gl.parse(TEXT)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("vector<4xf32>", "expected 'tensor'"),
        ("tensor<4xf32", "expected '>'"),
        ("tensor<4xf32, #other.layout<4>>", r"expected #ttnn.ttnn_layout"),
        (TEXT[:-1] + ", 3>", "after one encoding"),
        (TEXT[:-2] + ", oob = zero>>", "expected '>'"),
        (
            TEXT.replace("tensor<64x128xbf16", f"tensor<64x128x{TILE.format('bfp_bf8')}"),
            "but the tensor holds",
        ),
        (TEXT.replace("(3,1)>", "(3,2)>"), "core ranges do not follow"),
    ],
)
def test_types_in_programs_that_are_refused(text, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        read_tensor_type(text)


def test_the_compilers_aliasing_map_is_refused():
    """tt-mlir's ttnn_height_sharded_translation.mlir steps 32 rows over 384."""
    text = (
        "tensor<2x384x32xbf16, #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 32 + d1, d2), <1x1>, "
        "memref<24x1x!ttcore.tile<32x32, bf16>, #ttnn.buffer_type<l1>>, <interleaved>>>"
    )
    with pytest.raises(gl.LayoutError, match=r"does not follow.*d0 \* 384 \+ d1"):
        gl.parse(text)


@given(st.integers(0, len(TEXT)), st.text("<>[]()x0123456789, =!#:-", max_size=3))
def test_damaged_text_is_a_layout_or_an_error(at, new):
    try:
        layout = gl.parse(TEXT[:at] + new + TEXT[at + len(new) // 2 :])
    except gl.LayoutError:
        return
    assert gl.parse(str(layout)) == layout


# -- one tensor on each of several chips ---------------------------------------------------------

LOCAL = [
    ttnn((53, 63), "float32", (2, 1), (32, 32)),
    ttnn((53, 63), "bfloat16", (2, 1), (32, 32), tile_format="bfp_bf8", oob=0),
    ttnn((53, 60), "bfloat16", (2, 3), row_alignment=16),
    ttnn((96, 96), tile=(32, 32), grid=(2, 2), memory_layout="interleaved"),
    ttnn((5, 64, 64), "bfloat16", (5, 1), (32, 32), buffer_type="dram"),
]


@pytest.mark.parametrize("local", LOCAL)
def test_a_layout_of_several_chips_is_about_one_of_them(local):
    layout = ChipLayout((2, 16), local, oob=local.oob)
    for name in ("tile_counts", "held", "memory", "row_multiple", "workers", "bytes_per_core"):
        assert getattr(layout, name) == getattr(local, name), name
    assert layout.fits("wormhole").needed == local.fits("wormhole").needed
    assert layout.can_be_on("wormhole") == local.can_be_on("wormhole")
    for each in (layout, layout.with_oob(1), layout.with_dtype("float16", 0)):
        assert gl.parse(str(each)) == each
        assert each.replace() == each
    changed = layout.with_dtype("float16")
    assert changed == ChipLayout((2, 16), local.with_dtype("float16"))
    assert changed.replace(oob=1).dtype == "float16"


def test_rows_of_several_chips_take_whole_bytes():
    layout = ChipLayout((2,), ttnn((6, 6), "int8", row_alignment=2))
    with pytest.raises(gl.LayoutError, match="take no whole bytes"):
        layout.with_dtype("int2")


BAD = [
    ({"grid": (2,)}, "rank 2"),
    ({"grid": (2, True)}, "whole numbers"),
    ({"grid": (2, 2), "memory_layout": "interleaved", "buffer_type": "dram"}, "must be 1x1"),
    ({"grid": (2, 2), "core_ranges": 3}, "core_ranges 3 must be pairs"),
    ({"grid": (2, 2), "core_ranges": [((0, 0), (1, 1, 1))]}, "pairs"),
    ({"grid": (2, 2), "core_ranges": [((1, 1), (0, 0))]}, "is before"),
    ({"grid": (2, 2), "core_ranges": [((0, 0), (0, 2)), ((0, 2), (0, 2))]}, "overlaps"),
    ({"grid": (2, 2), "core_ranges": [((0, 0), (4, 4))]}, r"25 cores.*\(0,0\), \(1,1\)"),
    ({"grid": (2, 2), "core_ranges": [((9, k), (9, k)) for k in range(999)]}, "rectangles"),
    ({"grid": (2, 2), "core_ranges": []}, r"0 cores.*\(0,0\), \(1,1\)"),
    ({"core_ranges": [((0, 0), (0, 0))]}, "no core ranges"),
    ({"grid": (2, 2), "memory_layout": "block_sharded", "buffer_type": "dram"}, "illegal in dram"),
    ({"grid": (2, 1), "buffer_type": "system_memory"}, "interleaved on grid 1x1"),
    ({"grid": (2, 2), "memory_layout": "height_sharded"}, r"must be Mx1, \(4, 1\)"),
    ({"grid": (2, 2), "memory_layout": "width_sharded"}, r"must be 1xM, \(1, 4\)"),
    ({"memory_layout": "sharded"}, "not one of interleaved"),
    ({"buffer_type": 3}, "not one of l1"),
    ({"tile": (32, 32, 32)}, "rank 2"),
    ({"tile": (0, 32)}, "all >= 1"),
    ({"tile": (16, 16), "tile_format": "bfp_bf8"}, "needs tile"),
    ({"shape": (-1, 2)}, ">= 0"),
    ({"shape": None}, "sequence"),
]


@pytest.mark.parametrize(("bad", "rule"), BAD)
def test_refusals(bad, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        ttnn(**{"shape": (64, 64), **bad})
