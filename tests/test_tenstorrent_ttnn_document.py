"""TTNN as tt-mlir's document describes it: its terms, its mapping from the compiler, by loops."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laid_out import assert_goes_round, assert_same, indices, poisoned

import gridlayout as gl
from gridlayout.tenstorrent import TtnnDocument, from_compiler, lower_to_mesh, ttnn, ttnn_document

# -- terms -----------------------------------------------------------------------------------------


def test_stride_is_the_same_as_pytorch_stride():
    """Terms: "`stride`: Same as pytorch stride"."""
    assert ttnn_document((53, 63), grid=(3, 2), tile=(32, 32)).stride == (63, 1)
    assert ttnn_document((2, 3, 64, 128)).stride == (24576, 8192, 128, 1)
    assert (ttnn_document((7,)).stride, ttnn_document(()).stride) == ((1,), ())
    x = np.arange(2 * 3 * 5, dtype=np.float32).reshape(2, 3, 5)
    in_elements = tuple(s // x.itemsize for s in x.strides)
    assert ttnn_document(x.shape).stride == in_elements


def test_shard_shape_does_not_need_to_be_a_tile_multiple():
    """Terms: "Note this does not need to be a tile multiple"; "The shard_shape padded out"."""
    layout = ttnn_document((12, 12, 16), "float32", grid=(2, 1), tile=(32, 32))
    assert layout.plane == (144, 16)
    assert layout.shard_shape == (72, 16)
    assert layout.physical_shard_shape == (96, 32)
    assert layout.tile_shape == (32, 32)
    assert layout.grid_shape == (2, 1)
    assert layout.physical_shape == (2, 1, 3, 1, 32, 32)
    # Today's pads each batch to tiles first.
    assert ttnn((12, 12, 16), grid=(2, 1), tile=(32, 32)).shard_shape == (192, 32)


def test_a_stride_with_gaps():
    """Terms: the plane's "dims [0, N-1] are collapsed into rows derived from stride"."""
    layout = ttnn_document((12, 12, 16), stride=(512, 16, 1), grid=(4, 1), tile=(32, 32))
    assert layout.plane == (12 * 32, 16)
    assert (layout.shard_shape, layout.grid_shape) == ((96, 16), (4, 1))
    assert layout.as_grid == gl.GridLayout(
        *((12, 12, 16), "float32", (4, 1), (32, 32)),
        linear="(d0, d1, d2) -> (d0 * 32 + d1, d2)",
        shard_shape=(96, 16),
    )
    for d0 in range(12):  # every batch begins a tile, and no core has a part of one
        where = layout.locate((d0, 0, 0))
        assert (where.core[0], where.local[0], where.local[2]) == (d0 // 3, d0 % 3, 0)
    # The ends of rows may be padding too.
    wide = ttnn_document((53, 63), stride=(64, 1))
    assert wide.plane == (53, 64)
    assert wide.padding_per_core().tolist() == [[53]]


def test_the_formula_of_the_grid_shape():
    """Terms: `[divup(stride[0] // stride[-2], shard_shape[0]), divup(stride[-2], shard_shape[0])]`.

    Of the document's own 2x4 grid it gives [1, 1].
    """
    layout = ttnn_document((2, 3, 64, 128), grid=(2, 4))
    assert layout.shard_shape == (192, 32)
    assert (layout.written_grid_shape, layout.grid_shape) == ((1, 1), (2, 4))
    # Cores that hold nothing are none of it: 96 rows on 64 cores are shards of 2.
    assert ttnn_document((96, 1), grid=(64, 1)).grid_shape == (48, 1)


GOLDEN = json.loads(
    (Path(__file__).parent / "golden" / "tenstorrent.json").read_text(encoding="utf-8")
)["F_ttmetal_shard_with_alignment"]["cases"]
SHARDED = [case for case in GOLDEN if case["logical_shard"] != "interleaved"]
TILES = [(16, 16), (3, 4), (1, 4), (32, 32), (7, 3)]  # what each case pads its shards to


@pytest.mark.parametrize(("case", "tile"), list(zip(SHARDED, TILES, strict=True)))
def test_golden(case, tile):
    """tt-metal's mode that shards the logical shape and pads each shard, until it went in 2025."""
    layout = ttnn_document(case["shape"], shard_shape=case["logical_shard"], tile=tile)
    assert list(layout.physical_shard_shape) == case["physical_shard"]
    physical = [g * n for g, n in zip(layout.grid, layout.physical_shard_shape, strict=True)]
    assert physical == case["physical_shape"]


def test_the_grid_follows_from_the_shard():
    layout = ttnn_document((12, 12, 16), shard_shape=(50, 16))
    assert layout.grid == layout.grid_shape == (3, 1)
    assert ttnn_document((12, 12, 16), shard_shape=(50, 5)).grid == (3, 4)


# -- brute force -----------------------------------------------------------------------------------


def place(index, stride, shard, tile):
    """The offset by the strides, in the plane; then divide by the shard, and by the tile."""
    offset = sum(i * s for i, s in zip(index, stride, strict=True))
    width = stride[-2]
    cores, tiles, inner = [], [], []
    for value, size, side in zip(divmod(offset, width), shard, tile or (1, 1), strict=True):
        core, rest = divmod(value, size)
        cores.append(core)
        tiles.append(rest // side)
        inner.append(rest % side)
    return (*cores, *tiles, *(inner if tile else ()))


@st.composite
def cases(draw):
    rank = draw(st.integers(2, 4))
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank)))
    rows, width, stride = 1, shape[-1] + draw(st.sampled_from([0, 0, 1, 3])), [1]
    for n in reversed(shape[:-1]):
        stride.insert(0, rows * width)
        rows = rows * n + draw(st.sampled_from([0, 0, 1, 4]))
    tile = draw(st.sampled_from([None, (1, 2), (2, 4), (4, 4)]))
    arguments = {"stride": tuple(stride), "tile": tile}
    plane = (shape[0] * (stride[0] // width), width)
    grid = (draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    shard = tuple(-(-n // g) for n, g in zip(plane, grid, strict=True))
    kind = draw(st.sampled_from(["grid", "shard", "both"]))
    if kind != "grid":
        shard = tuple(n + draw(st.integers(0, 3)) for n in shard)
        arguments["shard_shape"] = shard
    if kind != "shard":
        arguments["grid"] = grid
    return shape, arguments, shard


@given(cases())
def test_against_brute_force(case):
    shape, arguments, shard = case
    layout = ttnn_document(shape, "int32", **arguments)
    assert layout.shard_shape == shard
    seen = set()
    for index in indices(shape):
        where = layout.locate(index)
        expected = place(index, layout.stride, shard, layout.tile)
        assert (*where.core, *where.local) == expected
        assert layout.logical_index(expected) == index
        seen.add(expected)
    assert {tuple(p) for p in np.argwhere(~layout.padding_mask()).tolist()} == seen
    assert {where[:2] for where in seen} <= set(np.ndindex(*layout.grid_shape))
    assert max(where[0] for where in seen) == layout.grid_shape[0] - 1
    assert max(where[1] for where in seen) == layout.grid_shape[1] - 1
    assert layout.physical_shape == layout.grid + layout.tile_counts + (layout.tile or ())
    for each in (layout, layout.with_oob(7), layout.with_dtype("bfloat16")):
        assert gl.parse(str(each)) == each == each.replace()
        assert each.as_grid.same_physical(each)
        assert (each.as_grid.dtype, each.as_grid.oob) == (each.dtype, each.oob)
        assert from_compiler(each.as_grid).same_physical(each)


EXAMPLES = {
    "the document's": ttnn_document((12, 12, 16), grid=(2, 1), tile=(32, 32)),
    "gaps": ttnn_document((3, 5, 7), stride=(80, 10, 1), grid=(4, 2)),
    "a stated shard": ttnn_document((3, 5, 7), shard_shape=(4, 3), grid=(5, 3), tile=(2, 2)),
    "rank 1": ttnn_document((40,), grid=(1, 2), tile=(32, 32)),
    "rank 0": ttnn_document((), tile=(32, 32)),
    "nothing": ttnn_document((2, 0, 3), grid=(2, 1), tile=(32, 32)),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_goes_round(name):
    assert_goes_round(EXAMPLES[name])
    assert gl.parse(str(EXAMPLES[name])) == EXAMPLES[name]


FUNCTIONS = {
    "add": lambda x: x + 1,
    "sum of columns": lambda x: x.sum(-1),
    "sum of rows": lambda x: x.sum((0, 1)),
    "maximum": lambda x: x.max(1),
    "argmax": lambda x: x.argmax(-1),
    "product": lambda x: x @ x.mT,
    "reshape": lambda x: (x + 1).reshape(15, 7),
    "transpose": lambda x: x.transpose(2, 0, 1) - 1,
    "slice": lambda x: x[1:, ::2],
}


@pytest.mark.few(6)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("which", ["gaps", "a stated shard"])
def test_runs_on_devices(name, which):
    """With NaN in all padding."""
    layout, device = EXAMPLES[which], gl.DeviceGrid((2, 4))
    x = np.random.default_rng(0).standard_normal((3, 5, 7)).astype(np.float32)
    found = gl.on_grid(FUNCTIONS[name])(poisoned(x, layout, device))
    expected = np.asarray(FUNCTIONS[name](x), found.dtype)
    assert_same(found, expected, rtol=1e-4, atol=1e-5)


# -- the mapping from the compiler -----------------------------------------------------------------


def test_what_the_compiler_has_that_ttnn_has_too():
    bumped = gl.GridLayout(
        (2, 8, 32), grid=(1, 2), tile=(32, 32), linear="(d0, d1, d2) -> (d0 * 32 + d1, d2)"
    )
    found = from_compiler(bumped)
    assert isinstance(found, TtnnDocument)
    assert (found.stride, found.shard_shape) == ((1024, 32, 1), (40, 16))
    assert found.same_physical(bumped)
    # Without tiles first, nothing of the document's own example is lost on the way.
    for shape in ((53, 63), (2, 3, 64, 128), (1, 1, 5), (7,), ()):
        layout = gl.GridLayout(shape, grid=(1, 1), tile=(32, 32), oob=0, memory_space="dram")
        assert from_compiler(layout).as_grid == layout
    empty = gl.GridLayout((2, 0, 3), grid=(2, 1))
    assert from_compiler(empty).same_physical(empty)


NOT_TTNN = [
    (gl.GridLayout((4, 4, 4), grid=(2, 2, 1), collapse=[]), "use lower_to_mesh"),
    (gl.GridLayout((4, 4, 4), linear="(d0, d1, d2) -> (d1 * 4 + d0, d2)"), "in their order"),
    (gl.GridLayout((4, 4, 4), linear="(d0, d1, d2) -> (d0, d1 * 4 + d2)"), "can't express"),
    (gl.GridLayout((4, 4), linear="(d0, d1) -> (d0 + 1, d1)"), "can't express"),
    (gl.GridLayout((4, 4), linear="(d0, d1) -> (d0 floordiv 2, d1)"), "can't express"),
    (gl.GridLayout((8, 8), tile=(4, 4), face=(2, 2)), "has no faces"),
    (ttnn_document((8, 8)), "not a document-model layout"),
]


@pytest.mark.parametrize(("layout", "rule"), NOT_TTNN)
def test_only_supported_dims_are_collapsed(layout, rule):
    """ "the compiler will have to enforce only collapsing supported dimensions"."""
    with pytest.raises(gl.LayoutError, match=rule):
        from_compiler(layout)


def test_data_parallel_is_lowered_to_a_mesh():
    """ "the mesh could be sliced on the batch and each ... tensor has `d0` fully collapsed"."""
    batch = gl.GridLayout((4, 3, 60, 128), grid=(2, 2, 4), tile=(32, 32), collapse=[(1, -1)])
    lowered = lower_to_mesh(batch, as_document=True)
    assert lowered.devices == 2
    assert lowered.layout == ttnn_document((2, 3, 60, 128), grid=(2, 4), tile=(32, 32))
    # Today's pads rows to tiles first.
    assert lowered.layout.shard_shape == (180, 32)
    assert lower_to_mesh(batch).layout.shard_shape == (192, 32)


# -- refusals --------------------------------------------------------------------------------------

BAD = [
    ({"stride": (1, 2)}, "must have one number per dim"),
    ({"stride": (400, 20, 2)}, "its stride must be 1"),
    ({"stride": (400, 15, 1)}, "that of dim 1 is below 16, the span of dim 2"),
    ({"stride": (191, 16, 1)}, "that of dim 0 is below 192, the span of dim 1"),
    ({"stride": (16, 192, 1)}, "in their order"),
    ({"stride": (200, 16, 1)}, "multiple of 16, the width of a row"),
    ({"stride": (-192, 16, 1)}, ">= 0"),
    ({"stride": 5}, "one number per dim"),
    ({"grid": (2,)}, "rank 2"),
    ({"grid": (0, 1)}, "all >= 1"),
    ({"tile": (32,)}, "rank 2"),
    ({"shard_shape": (71, 16), "grid": (2, 1)}, "2 cores of 71 do not hold the 144"),
    ({"shard_shape": (0, 16)}, "do not hold the 144 positions"),
    ({"shard_shape": (None, 16)}, "whole numbers"),
    ({"shard_shape": (72,), "grid": (2, 1)}, "has 1 dims"),
    ({"memory_space": "l9"}, "not one of"),
    ({"tile_format": "bfp_bf8"}, "needs tile"),
    ({"shape": (2**40, 2**40, 2)}, r"2\*\*62"),
]


@pytest.mark.parametrize(("bad", "rule"), BAD)
def test_refusals(bad, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        ttnn_document(**{"shape": (12, 12, 16), **bad})


def test_hostile_calls():
    for text in (
        "tenstorrent.ttnn_document((12, 12), stride=(2, 1, 1))",
        "tenstorrent.ttnn_document((12, 12), stride='ab')",
        "tenstorrent.ttnn_document((12, 12), shard_shape=1.5)",
        "tenstorrent.ttnn_document((12, 12), strides=(12, 1))",
    ):
        with pytest.raises(gl.LayoutError, match="column 1"):
            gl.parse(text)
