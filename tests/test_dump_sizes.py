"""Long dumps of distinct layouts: sizes from the text alone, and memory that stays bounded."""

import random
import subprocess
import sys

import distinct
import pytest

import gridlayout as gl
from gridlayout.dump.values.type_texts import compare_types, layout_of, sizes_of
from gridlayout.layouts.layout import Layout

ODD = [
    "bf16[3,5]{1,0}",
    "f32[]{:T(128)}",
    "f32[0,5]{0,1:T(8,128)}",
    "s4[33,7]{1,0:T(8,128)(4,1)E(4)}",
    "s4[33,7]{1,0}",
    "pred[9]{0:T(512)(128)(4,1)}",
    "f32[5]{0:T(8,128)S(1)}",
    "f32[3,5]{0,0}",
    "f32[3,5]{1,0:T(0,8)}",
    "f32[3,5]{1,0:T(8,,128)}",
    "f32[3,5]{1,0:T(2)(2,128)}",
    "q9[3]{0}",
    "tensor<3x40x50xbf16, #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <1x1>, memref<6x2x"
    "!ttcore.tile<32x32, bf16>, #ttnn.buffer_type<dram>>, <interleaved>>>",
    "tensor<3x40x50xbf16, #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 40 + d1, d2), <1x1>, memref<4x2x"
    "!ttcore.tile<32x32, bf16>, #ttnn.buffer_type<dram>>, <interleaved>>>",
    "tensor<40x50xbf16, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x"
    "!ttcore.tile<32x32, bfp_bf8>, #ttnn.buffer_type<dram>>, <interleaved>>>",
    "tensor<64x50xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x1>, memref<1x2x!ttcore.tile<32x32"
    ", f32>, #ttnn.buffer_type<l1>>, <height_sharded>, core_ranges = <[#ttnn.core_range<(0,0), "
    "(1,0)>]>>>",
    "tensor<40x50x!ttcore.tile<32x32, bfp_bf8>, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, "
    "memref<2x2x!ttcore.tile<32x32, bfp_bf8>, #ttnn.buffer_type<dram>>, <interleaved>>>",
    "tensor <40 x 50 x f32 , #ttnn.ttnn_layout < (d0, d1)->(d0, d1), < 1x1 >, memref< 40 x 50x f32,"
    " #ttnn.buffer_type<l1> >, <interleaved> > >",
    "tensor <40 x 50 x f32 , #ttnn.ttnn_layout < (d0, d1)->(d0, d1), < 1x1 >, memref< 9 x 50x f32,"
    " #ttnn.buffer_type<l1> >, <interleaved> > >",
    "tensor<40x50xf32, #ttnn.ttnn_nd_layout<<1x1>, memref<1x2x2x!ttcore.tile<32x32, f32>, "
    "#ttnn.buffer_type<l1>>, <block_sharded>, <row_major>, <grid_2d>>>",
    "memref<2x2x4x3xf32, #ttcore.interleaved<12x4>, #ttcore.memory_space<dram>>",
    "memref<2x2x4x3xf32, #ttcore.shard<12x4, 2>, #ttcore.memory_space<l1>>",
    "memref<4x3xf32, #ttcore.cb_layout<12x4, 2>, #ttcore.memory_space<l1>>",
    "memref<2x2x1x1x!ttcore.tile<32x32, bfp_bf8>, #ttcore.view<4>, #ttcore.memory_space<l1>>",
    "memref<1x1x2x2x!ttcore.tile<32x32, bfp_bf8>, #ttcore.shard<1x1>, #ttcore.memory_space<l1>>",
    "memref<1x2x2x5x3x2x!ttcore.tile<32x32, f32>, #ttcore.shard<24576x8192x4096, 1>, "
    "#ttcore.memory_space<l1>>",
    "tensor<1x1x1x33x2x1x!ttcore.tile<32x32, f32>, #ttcore.metal_layout<logical_shape = 33x64x8, "
    "dim_alignments = 1x32x33, collapsed_intervals = dense<> : tensor<0x2xi64>, l1, sharded>>",
    "tensor<40x50xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <2x2>, memref<20x25xf32, "
    "#ttcore.memory_space<l1>>>>",
    "tensor<8x96x32xf32, #ttcore.metal_layout<(d0, d1, d2) -> (d0 * 96 + d1, d2), undef, <8x1>, "
    "memref<3x1x!ttcore.tile<32x32, f32>, #ttcore.memory_space<l1>>>>",
    "tensor<8x96xf32, #ttcore.metal_layout<(d0, d1) -> (d0 * 8 + d1, 0), undef, <1x1>, "
    "memref<152x1xf32, #ttcore.memory_space<l1>>>>",
    "tensor<40x50xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <2x2>, memref<21x25xf32, "
    "#ttcore.memory_space<l1>>>>",
    "tensor<64x128xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x4x"
    "!ttcore.tile<32x32, f32 f32>, #ttnn.buffer_type<dram>>, <interleaved>>>",
]


def layout_or_none(text):
    try:
        return layout_of(text)
    except gl.LayoutError:
        return None


@pytest.mark.parametrize("kind", distinct.KINDS)
def test_usual_types_are_sized_as_their_layouts_are(kind):
    rng = random.Random(0)
    for _ in range(40):
        for text in distinct.types_of(kind, rng.randrange(1, 400_000)):
            found, layout = sizes_of(text), layout_of(text)
            assert found is not None
            assert (found.held, found.nbytes) == (layout.held, layout.held.nbytes)
            assert found.data_bytes == layout.data_bytes


@pytest.mark.parametrize("text", ODD)
def test_odd_types_are_sized_as_their_layouts_are_or_not_at_all(text):
    found, layout = sizes_of(text), layout_or_none(text)
    if found is not None:
        assert (found.held, found.data_bytes) == (layout.held, layout.data_bytes)
        assert found.shape in (None, layout.shape)
        assert found.kind is None or isinstance(layout, Layout)


def test_buffers_of_any_rank_have_tiles_in_their_last_dims():
    counts = "5x3x2x!ttcore.tile<32x16, f32>"
    found = layout_of(f"memref<{counts}, #ttcore.memory_space<l1>>")
    assert (found.shape, found.local_shape) == ((5, 96, 32), (5, 96, 32))
    assert (found.nbytes, found.padding_share) == (4 * 5 * 96 * 32, 0)
    metal = next(text for text in ODD if "33x64x8" in text)
    assert layout_of(metal).padding_share == 1 - (33 * 64 * 8) / (33 * 64 * 32)


def test_keys_are_equal_where_layouts_are():
    texts = [text for text in ODD if isinstance(layout_or_none(text), Layout)]
    texts += ["f32[4]{0}", "f32[4]{0:S(0)}", "f32[4]{0:E(0)}", "f32[4]{0:T(128)}"]
    for one in texts:
        for other in texts:
            first, second = layout_or_none(one), layout_or_none(other)
            sides = compare_types(one, other)
            if isinstance(first, Layout) and isinstance(second, Layout):
                assert sides == (first.shape, second.shape, first.data_bytes, first == second)


@pytest.mark.parametrize("kind", ["ttnn", "hlo"])
def test_functions_of_too_many_values_for_a_peak_are_named(kind, monkeypatch):
    monkeypatch.setattr("gridlayout.dump.values.peaks.MAX_SPANS", 8)
    few, many = ("".join(distinct.lines(kind, nbytes)) for nbytes in (800, 20_000))
    assert gl.explain(few).unpeaked == ()
    assert len(repr(gl.explain(few))) < 200
    assert gl.explain(few).peaks
    found = gl.explain(many)
    assert (found.peaks, found.unpeaked) == ((), ("main",))
    for text in (str(found), found.to_html()):
        assert "no peak of main: too many values" in text


MEASURE = (
    distinct.MOST
    + """
import sys
import gridlayout as gl
gl.explain("f32[3,5]{1,0:T(8,128)}")
before = most()
found = gl.explain(sys.stdin.buffer)
page = len(found.to_html())
print(most() - before, found.layouts, found.all_unknown, page)
"""
)


def read_in_another_process(lines):
    text = "".join(lines).encode()
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], input=text, capture_output=True, check=True, timeout=600
    )
    kibibytes, layouts, unknown, page = map(int, done.stdout.split())
    return len(text), kibibytes / 1024, layouts, unknown, page


@pytest.mark.few(1)
@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is told otherwise")
@pytest.mark.parametrize("kind", ["hlo", "aliases"])
def test_long_dumps_of_distinct_layouts_take_bounded_memory(kind):
    lines = distinct.aliased(26_000) if kind == "aliases" else distinct.lines(kind, 6_000_000)
    nbytes, mebibytes, layouts, unknown, page = read_in_another_process(lines)
    assert nbytes > 5_000_000
    assert layouts > 25_000
    assert unknown == 0
    # What a process takes beyond what it took before. Of 30 megabytes it may be a hundred.
    assert 0 < mebibytes < 40
    # The page shows the worst, and how many are left out.
    assert page < 100_000
