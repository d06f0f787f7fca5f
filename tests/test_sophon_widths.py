"""The best width of a matrix that starts anywhere (Sophon, "Matrix Layout")."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

import gridlayout as gl
from gridlayout.sophon import BM1684, BM1684X, Chip, best_width, matrix

TOY = Chip(npus=4, npu_bytes=1024, alignment=128)


def test_the_width_differs_by_the_start():
    """ "By selecting an appropriate W can the storage achieve the best." """
    assert best_width(2, 40, "float32", TOY).width == 10
    start = 2 * TOY.npu_bytes
    # Four channels from NPU 2 reach round to NPUs 0 and 1, in a second row.
    assert matrix(2, 40, 10, "float32", start, TOY).bytes_per_core == 512
    assert matrix(2, 40, 20, "float32", start, TOY).bytes_per_core == 256
    best = best_width(2, 40, "float32", TOY, start=start)
    assert (best.width, best.channels, best.npu_bytes, best.row_bytes) == (20, 2, 256, 128)
    assert str(best).startswith("W=20: 2 channels on 2 of 4 NPUs, 256 B in each (128 B per row)")


def test_more_channels_than_npus_where_that_takes_fewer_bytes():
    # From the last NPU one channel would hold all: 416 of its blocks. With thirteen it is 4 * 32.
    best = best_width(1, 400, "float32", TOY, start=3 * TOY.npu_bytes)
    assert (best.width, best.channels, best.row_bytes) == (31, 13, 512)
    assert str(best).startswith("W=31: 13 channels on 4 of 4 NPUs")
    # "it is suggested that ... C is better not greater than the number of NPUs": with as few bytes,
    # four channels rather than the five of W=8.
    best = best_width(2, 40, "float32", TOY, start=3 * TOY.npu_bytes)
    assert (best.width, best.channels, best.npu_bytes) == (10, 4, 512)
    assert matrix(2, 40, 8, "float32", 3 * TOY.npu_bytes, TOY).bytes_per_core == 512


@st.composite
def cases(draw):
    chip = Chip(draw(st.integers(1, 6)), 2**13, draw(st.sampled_from([16, 64, 128])))
    start = draw(st.integers(0, chip.npus - 1)) * chip.npu_bytes
    dtype = draw(st.sampled_from(["float32", "float16", "int8", "int4", "complex64"]))
    cols = draw(st.one_of(st.integers(1, 40), st.integers(1, 600)))
    return draw(st.integers(1, 4)), cols, dtype, chip, start + draw(st.integers(0, 2)) * 128


@settings(max_examples=examples(150))
@given(cases())
def test_no_width_is_better(case):
    rows, cols, dtype, chip, start = case
    best = best_width(rows, cols, dtype, chip, start=start)

    def key(width):
        layout = matrix(rows, cols, width, dtype, start, chip)
        channels = layout.view_shape[1]
        return layout.bytes_per_core, channels > chip.npus, -min(channels, chip.npus), width

    assert min(map(key, range(1, cols + 1))) == key(best.width)
    found = matrix(rows, cols, best.width, dtype, start, chip)
    assert (best.npu_bytes, best.channels) == (found.bytes_per_core, found.view_shape[1])
    assert best.row_bytes * rows == best.npu_bytes


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (4, "start 4 must be divisible by 128 for the aligned layout"),
        (-1, "address -1 must be >= 0"),
        (4096, "address 4096 is outside local memory"),
        (None, "address None must be a whole number"),
    ],
)
def test_bad_starts_are_refused(start, words):
    with pytest.raises(gl.LayoutError, match=words):
        best_width(2, 40, "float32", TOY, start=start)


def test_a_search_that_would_not_end_is_refused():
    assert best_width(1, 2**60, "int8", BM1684).width == 2**60 // 64
    best = best_width(1, 64 * 2**18, "int8", BM1684X, start=63 * 2**18)
    assert best.row_bytes <= 2**18 + 2**13
    with pytest.raises(gl.LayoutError, match=r"a row of \d+ columns takes more than 65536 times"):
        best_width(1, 2**60, "int8", BM1684, start=2**19)
