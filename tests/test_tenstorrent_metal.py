"""Today's metal_layout: tt-mlir's own types, a brute-force reading, and what it refuses."""

import json
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from laid_out import assert_goes_round, indices

import gridlayout as gl
from gridlayout.tenstorrent import (
    MetalLayout,
    compare,
    grid_aware_alignments,
    host_strides,
    metal,
    tile_alignments,
)
from gridlayout.tenstorrent.grid_selection import selected_grid

GOLDEN = json.loads((Path(__file__).parent / "golden" / "tenstorrent.json").read_text())
TYPES = GOLDEN["B_present_metal_layout"]
WRONG = TYPES["hand_written_types_that_do_not_satisfy_the_math"]


def by(values):
    return "x".join(map(str, values))


def text_of(case):
    """A golden case in tt-mlir's form."""
    intervals = case["collapsed_intervals"]
    dense = f"dense<{intervals}>" if intervals else "dense<>"
    return (
        f"tensor<{by(case['device_shape'])}x{case['element']}, #ttcore.metal_layout<"
        f"logical_shape = {by(case['logical_shape'])}, "
        f"dim_alignments = {by(case['dim_alignments'])}, "
        f"collapsed_intervals = {dense} : tensor<{len(intervals)}x2xi64>, "
        f"{case['memory_space']}, {case['memory_layout']}>>"
    )


TEXT = text_of(TYPES["cases"][0])


# -- golden ------------------------------------------------------------------------------------


@pytest.mark.few(13)
@pytest.mark.parametrize("case", TYPES["cases"], ids=text_of)
def test_types_of_the_compiler(case):
    layout = gl.parse(text_of(case))
    assert isinstance(layout, MetalLayout)
    assert str(layout) == text_of(case)
    tile = (32, 32) if "tile" in case["element"] else ()
    assert layout.physical_shape == (*case["device_shape"], *tile)
    assert layout.core_rank == len(case["grid"])
    sides = (1,) * (len(case["grid"]) - len(tile)) + tile
    counts = case["physical_shape_in_elements_of_that_type"]
    assert layout.aligned_shape == tuple(n * s for n, s in zip(counts, sides, strict=True))
    assert eval(repr(layout)) == layout


@pytest.mark.parametrize("case", WRONG, ids=text_of)
def test_types_that_do_not_satisfy_the_math_are_refused(case):
    with pytest.raises(
        gl.LayoutError, match=r"^column 8: .*(does not follow|divide|must be all 1)"
    ):
        gl.parse(text_of(case))


@pytest.mark.parametrize("case", TYPES["grid_aware_alignments_8x8_default_collapse"])
def test_grid_aware_alignments(case):
    shape = case["shape"]
    assert tile_alignments(shape) == tuple(case["tile_alignments"])
    assert metal(shape).aligned_shape == tuple(case["tile_phys"])
    found = grid_aware_alignments(shape, (8, 8))
    assert found == tuple(case["grid_alignments"])
    tiled = metal(shape, dim_alignments=found, tile=(32, 32))
    assert tiled.aligned_shape == tuple(case["grid_phys"])
    assert tiled.shard_shape == tuple(case["tiles"])


@pytest.mark.parametrize(
    ("shape", "expected"),
    [  # tt-mlir, `test/ttmlir/Conversion/TTIRToD2M/alignments.mlir`
        *(((64, 64), (32, 32)), ((128, 96), (32, 32)), ((512, 512), (256, 256))),
        *(((512, 128), (256, 32)), ((128, 512), (32, 256)), ((2, 128, 96), (1, 32, 32))),
        *(((2, 2, 64, 64), (1, 1, 32, 32)), ((256, 32), (32, 32)), ((255, 32), (32, 32))),
        *(((257, 32), (256, 32)), ((100, 100), (32, 32)), ((5, 37, 11), (256, 32, 32))),
        *(((3, 61, 419), (1, 32, 256)), ((1, 19, 1, 1), (192, 1, 32, 32))),
    ],
)
def test_alignments_are_to_the_grid_that_is_selected(shape, expected):
    assert grid_aware_alignments(shape, (8, 8)) == expected
    layout = metal(shape, dim_alignments=expected, tile=(32, 32))
    chosen = selected_grid([n // 32 for n in layout.aligned_shape], (8, 8))
    assert all(n % (32 * cores) == 0 for n, cores in zip(layout.aligned_shape, chosen, strict=True))


@pytest.mark.parametrize("case", TYPES["host_strides_derived_not_asserted"])
def test_host_strides(case):
    expected = (tuple(case["strides"]), case["volume"])
    assert host_strides(case["shape"], case["alignments"]) == expected


def test_host_strides_of_the_compilers_comment():
    case = TYPES["aligned_stride_comment"]
    # One interval of all dims: 43 -> 64, 41 * 64 = 2624, 7 * 2624 -> 18432, a multiple of 256.
    strides, volume = host_strides(case["shape"], case["alignments"], [(0, 3)])
    assert (list(strides), volume) == (case["strides"], case["size"])


@pytest.mark.parametrize("case", GOLDEN["C_masking"]["cases"])
def test_masking(case):
    grid = case["grid"] or (1, 1)
    layout = metal(
        case["logical"], "float32", dim_alignments=case["aligned"], grid=grid, tile=(32, 32)
    )
    x = np.ones(case["logical"], np.float32)
    plane = np.asarray(gl.pack(x, layout.with_oob("neginf"))).transpose(0, 2, 4, 1, 3, 5)
    expected = np.full(case["aligned"], -np.inf)
    expected[: x.shape[0], : x.shape[1]] = 1
    np.testing.assert_array_equal(plane.reshape(case["aligned"]), expected)


def test_padding_inside_collapsed_dims():
    """3 batches of 43 rows take 64 rows each: the padding is no bottom-right rectangle."""
    mask = metal((3, 43, 7), grid=(6, 1)).padding_mask().reshape(3, 64, 32)
    assert not mask[:, :43, :7].any()
    assert mask[:, 43:].all()
    assert mask[:, :, 7:].all()


# -- brute force -------------------------------------------------------------------------------


def up(n, to):
    while n % to:
        n += 1
    return n


@st.composite
def cases(draw):
    """Arguments, and a function from a logical index to a physical one, by loops."""
    rank = draw(st.integers(0, 4))
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))
    alignments = tuple(draw(st.lists(st.sampled_from([1, 2, 4, 6]), min_size=rank, max_size=rank)))
    cuts = sorted(draw(st.sets(st.integers(1, rank), max_size=3))) if rank else []
    intervals = list(zip([0, *cuts], cuts, strict=False))
    groups = [list(range(*span)) for span in intervals]
    groups += [[d] for d in range(cuts[-1] if cuts else 0, rank)]
    sizes = []
    for group in groups:
        size = 1
        for d in reversed(group):
            size = up(shape[d] * size, alignments[d])
        sizes.append(size)
    groups, sizes = [[]] * (2 - rank) + groups, [32] * (2 - rank) + sizes
    tile = (draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 2, 4])))
    tile = tile if draw(st.booleans()) and len(sizes) > 1 else None
    sides = [1] * (len(sizes) - 2) + list(tile) if tile else [1] * len(sizes)
    assume(all(n % s == 0 for n, s in zip(sizes, sides, strict=True)))
    counts = [n // s for n, s in zip(sizes, sides, strict=True)]
    grid = tuple(draw(st.sampled_from([g for g in (1, 2, 3, 4) if n % g == 0])) for n in counts)
    shard = [n // g for n, g in zip(counts, grid, strict=True)]
    assume(prod(sizes) <= 4096)

    def place(index):
        cores, tiles, inner = [], [], []
        for group, side, count in zip(groups, sides, shard, strict=True):
            value, step = 0, 1
            for d in reversed(group):
                value += index[d] * step
                step = up(step * shape[d], alignments[d])
            core, rest = divmod(value, count * side)
            cores.append(core)
            tiles.append(rest // side)
            inner.append(rest % side)
        return (*cores, *tiles, *(inner[-2:] if tile else ()))

    written = [
        (
            a - rank if draw(st.booleans()) else a,
            b - rank if b < rank and draw(st.booleans()) else b,
        )
        for a, b in intervals
    ]
    arguments = {
        **{"shape": shape, "dim_alignments": alignments, "grid": grid, "tile": tile},
        "collapsed_intervals": draw(st.permutations(written)),
        "memory_space": draw(st.sampled_from(["l1", "dram", "system", "mmio", "dst"])),
        "dtype": draw(st.sampled_from(["float32", "int32", "uint32", "bool", "uint8", "bfloat16"])),
    }
    return arguments, place


@given(cases())
def test_against_brute_force(case):
    arguments, place = case
    layout = metal(**arguments)
    seen = set()
    for index in indices(layout.shape):
        where = layout.locate(index)
        assert (*where.core, *where.local) == place(index)
        assert layout.logical_index(place(index)) == index
        seen.add(place(index))
    mask = layout.padding_mask()
    assert {tuple(p) for p in np.argwhere(~mask).tolist()} == seen
    assert gl.parse(str(layout)) == layout == eval(repr(layout))
    assert hash(gl.parse(str(layout))) == hash(layout)
    filled = layout.with_oob("one")
    assert gl.parse(str(filled)) == filled == eval(repr(filled))
    assert filled != layout


# -- on devices --------------------------------------------------------------------------------

EXAMPLES = {
    "gaps": metal((3, 5, 7), "float32", dim_alignments=(1, 8, 8), tile=(4, 4), grid=(3, 2)),
    "scalars": metal((3, 43, 7), "float32", grid=(6, 1)),
    "not collapsed": metal((3, 5, 7), "float32", (1, 8, 8), [], (3, 2, 1), (4, 8)),
    "rank 1": metal((40,), "float32", grid=(1, 2), tile=(32, 32)),
    "rank 0": metal((), "float32", tile=(32, 32)),
    "nothing": metal((0, 3), "float32", grid=(2, 1), tile=(32, 32)),
    "idle core": metal((53, 63), "float32", (96, 32), grid=(3, 2), tile=(32, 32)),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", EXAMPLES)
def test_runs(name):
    assert_goes_round(EXAMPLES[name])


def test_block_formats():
    layout = metal((64, 64), "float32", tile=(32, 32), tile_format="bfp_bf8")
    assert layout.bytes_per_core == 4 * 1088
    assert layout.locate((0, 1)).byte is None
    assert "!ttcore.tile<32x32, bfp_bf8, f32>" in str(layout)
    assert gl.parse(str(layout)) == layout == eval(repr(layout))
    assert "!ttcore.tile<32x32, bfp_bf8>" in str(
        metal((64, 64), "bfloat16", tile=(32, 32), tile_format="bfp_bf8")
    )
    assert layout.with_dtype("int8").tile_format is None


# -- refusals ----------------------------------------------------------------------------------

# golden `attr_verifier_negative`, in its order; the two about the rank of the dense attribute can
# only be written as text.
VERIFIER = [
    ({"dim_alignments": (32, 32, 32)}, "dim_alignments .* has rank 3, but the shape .* rank 2"),
    ({"dim_alignments": (0, 32)}, "must all be >= 1"),
    ("dense<[0, 2]> : tensor<2xi64>", r"expected '\['"),
    ("dense<[[0, 1, 2]]> : tensor<1x3xi64>", "an interval is a pair"),
    ({"collapsed_intervals": [(5, 6)]}, r"\(5, 6\) does not fit rank 2"),
    ({"collapsed_intervals": [(0, 10)]}, r"\(0, 10\) does not fit rank 2"),
    ({"collapsed_intervals": [(1, 0)]}, r"\(1, 0\) does not fit rank 2"),
    ({"collapsed_intervals": [(-10, 2)]}, r"\(-10, 2\) does not fit rank 2"),
]


def test_every_verifier_case_is_here():
    assert len(VERIFIER) == len(TYPES["attr_verifier_negative"]["reject"])


@pytest.mark.parametrize(("bad", "rule"), VERIFIER)
def test_verifier_refusals(bad, rule):
    text = TEXT.replace("dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>", str(bad))
    make = (lambda: gl.parse(text)) if isinstance(bad, str) else (lambda: metal((32, 32), **bad))
    with pytest.raises(gl.LayoutError, match=rule):
        make()


BAD = [
    ({"shape": (2, 3, 4, 5), "collapsed_intervals": [(1, -1)]}, "lose dim 0"),
    ({"shape": (1,) * 7, "collapsed_intervals": [(0, 3), (-3, -1)]}, "lose dim 3"),
    ({"collapsed_intervals": [(0, 2), (1, 2)]}, "overlap at dim 1"),
    ({"collapsed_intervals": [(0, True)]}, "pairs"),
    ({"collapsed_intervals": [(0, 1.0)]}, "pairs"),
    ({"collapsed_intervals": 3}, "pairs"),
    ({"collapsed_intervals": [(0, 1, 2)]}, "pairs"),
    ({"collapsed_intervals": [(0, 2)], "tile": (32, 32)}, "needs two physical dims"),
    ({"dim_alignments": (True, 1)}, "whole numbers"),
    ({"dim_alignments": (2**63, 1)}, r"over 2\*\*62"),
    ({"shape": (2.0, 1)}, "whole numbers"),
    ({"grid": (3, 2)}, r"grid \(3, 2\) does not divide .* align it to a multiple of 3"),
    ({"grid": (1,)}, "has rank 1, but"),
    ({"grid": (0, 1)}, "all >= 1"),
    ({"grid": (2, 1), "memory_layout": "interleaved"}, "must be all 1"),
    ({"tile": (32,)}, "rank 2"),
    ({"tile": (32, 32), "dim_alignments": (1, 1)}, "tile .* does not divide"),
    ({"tile": (16, 32), "tile_format": "bfp_bf8"}, "needs tile"),
    ({"tile": (32, 32), "tile_format": "bf8"}, "not one of bfp_bf8"),
    ({"memory_space": "l2"}, "not one of system"),
    ({"memory_layout": None}, "not one of sharded"),
    ({"dtype": "f33"}, "not known"),
]


@pytest.mark.parametrize(("bad", "rule"), BAD)
def test_refusals(bad, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        metal(**{"shape": (53, 63), **bad})


def test_grid_aware_alignments_are_of_a_plane():
    with pytest.raises(gl.LayoutError, match="rank 2"):
        grid_aware_alignments((4, 4, 4), (2, 2, 2))
    with pytest.raises(gl.LayoutError, match=r"at most 2\*\*16"):
        grid_aware_alignments((4, 4), (2**40, 2))


@given(st.integers(0, len(TEXT)), st.text("<>[]x0123456789, =!#:-", max_size=3), st.integers(0, 3))
def test_damaged_text_is_a_layout_or_an_error(at, new, cut):
    text = TEXT[:at] + new + TEXT[at + cut :]
    try:
        layout = gl.parse(text)
    except gl.LayoutError:
        return
    assert gl.parse(str(layout)) == layout


# What tt-mlir wrote from August 2025 to May 2026: the padding's value, and an index map.
EARLIER = [
    ("undef, l1>>", {}),
    ("undef, l1, sharded>>", {}),
    ("zero, l1, sharded, index_map = map(0)>>", {"oob": 0}),
    ("neginf, l1, index_map = map(0)>>", {"oob": "neginf"}),
    ("undef, dram, interleaved>>", {"memory_space": "dram", "memory_layout": "interleaved"}),
]
START = (
    "tensor<1x1x32x32xf32, #ttcore.metal_layout<logical_shape = 32x32, dim_alignments = 32x32, "
    "collapsed_intervals = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>, "
)


@pytest.mark.parametrize(("end", "arguments"), EARLIER)
def test_earlier_text(end, arguments):
    layout = gl.parse(START + end)
    assert layout == metal((32, 32), **arguments)
    assert gl.parse(str(layout)) == layout


@pytest.mark.parametrize(
    ("end", "rule"),
    [
        ("undef, l1, sharded, index_map = (d0, d1) -> (d1, d0)>>", "another map is a view"),
        ("undef, l1, sharded, >>", "expected 'index_map'"),
        ("undef, l1, >>", "expected a memory layout"),
        ("undef>>", "expected ','"),
        ("l1>>", "expected ','"),
        ("zero, l1, sharded, oob = zero>>", "expected 'index_map'"),
    ],
)
def test_wrong_earlier_text(end, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        gl.parse(START + end)


def test_signed_integers():
    """Programs state the sign of integers; layouts print MLIR's integers without one."""
    start, layout = START.replace("xf32", "x{}"), metal((32, 32), "int16")
    assert gl.parse(start.format("si16") + "l1, sharded>>") == layout
    assert gl.parse(start.format("i16") + "l1, sharded>>") == layout
    tile = start.replace("1x1x32x32x", "1x1x1x1x").format("!ttcore.tile<32x32, si16>")
    assert gl.parse(tile + "l1, sharded>>") == metal((32, 32), "int16", tile=(32, 32))


def test_interval_count_of_the_text():
    with pytest.raises(gl.LayoutError, match="are 2 pairs"):
        gl.parse(TEXT.replace("2x2xi64", "3x2xi64"))


def test_odd_device_shape():
    with pytest.raises(gl.LayoutError, match="a grid and a shard of one rank"):
        gl.parse(TEXT.replace("tensor<1x1x4x12x", "tensor<1x4x12x", 1))


# -- side by side ------------------------------------------------------------------------------


def test_compare():
    table = compare((53, 63), (3, 2), (32, 32))
    assert table["document"].rows == (18, 18, 17)
    assert "does not divide" in table["metal"].refusal
    assert table["metal, aligned"].rows == (32, 21, 0)
    assert table["ttnn"].rows == (22, 22, 9)
    assert table["tt-metal"].rows == (32, 21, 0)
    lines = str(table).splitlines()
    assert lines[0] == "53x63 on 3x2 cores, 32x32 tiles"
    assert [line for line in lines if "18,18,17" in line and line.endswith("4096")]
    assert max(map(len, lines)) > 40


def test_compare_refusals():
    with pytest.raises(gl.LayoutError, match="must have rank 2"):
        compare((4, 4), (2,))
    with pytest.raises(gl.LayoutError, match="not one of document"):
        compare((4, 4))["xla"]
    with pytest.raises(gl.LayoutError, match="too many to enumerate"):
        compare((1 << 30, 1))
    with pytest.raises(gl.LayoutError, match="rows of cores, too many to list"):
        compare((4, 4), (1 << 40, 1))
    with pytest.raises(gl.LayoutError, match="not known"):
        compare((4, 4), dtype="f33")
