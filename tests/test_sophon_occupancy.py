"""Occupancy of local memory: what tensors share, whose empty blocks they lie in, their banks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sophon_reading import TOY, chips, locals_, matrices, occupied
from tiers import examples

import gridlayout as gl
from gridlayout import sophon
from gridlayout.sophon import BM1684, BM1688, Reuse, local, matrix, reuse, system

quick = settings(max_examples=examples(150))

# --- overlap ---


@st.composite
def pairs(draw):
    chip = draw(chips())
    one = st.one_of(locals_(chip), matrices(chip))
    return draw(one), draw(one)


@quick
@given(pairs())
def test_overlap(pair):
    first, second = pair
    if not (first.fits() and second.fits()):
        with pytest.raises(gl.LayoutError, match="does not fit"):
            sophon.overlap(first, second)
        return
    a, b = occupied(first), occupied(second)
    found = sophon.overlap(first, second)
    shared = sorted(a.keys() & b.keys())
    if not shared:
        assert found is None
        return
    assert (found.npu, found.byte) == shared[0]
    assert found.first in a[shared[0]]
    assert found.second in b[shared[0]]


def test_tensors_side_by_side_and_interleaved():
    x = local((1, 4, 1, 16), "float32", strides=(32, 32, 32, 2), chip=TOY)
    between = local((1, 4, 1, 16), "float32", strides=(32, 32, 32, 2), start=4, chip=TOY)
    assert sophon.overlap(x, between) is None
    assert sophon.overlap(x, x) == sophon.Overlap(0, 0, (0, 0, 0, 0), (0, 0, 0, 0))
    # An int8 tensor in the third byte of a float32 element.
    byte = local((1, 1, 1, 1), "int8", strides=(1, 1, 1, 1), start=1024 + 10, chip=TOY)
    assert sophon.overlap(x, byte) == sophon.Overlap(1, 10, (0, 1, 0, 1), (0, 0, 0, 0))
    assert (
        sophon.overlap(x, local((1, 1, 1, 1), "int8", "compact", start=1024 + 12, chip=TOY)) is None
    )


@pytest.mark.parametrize(
    ("width", "block", "column"),
    [(15, 9, 39), (15, 10, None), (15, 14, None), (6, 35, 39), (6, 36, None), (6, 5, 17)],
)
def test_the_empty_columns_of_a_last_channel_are_free(width, block, column):
    """Of 40 columns the last channel holds 10 (W=15) or 4 (W=6, its second row), in NPU 2."""
    x = matrix(1, 40, width, "float32", chip=TOY)
    one = local((1, 1, 1, 1), "float32", "compact", start=2 * 1024 + block * 4, chip=TOY)
    found = sophon.Overlap(2, block * 4, (0, column), (0, 0, 0, 0))
    assert sophon.overlap(x, one) == (None if column is None else found)


def test_overlap_of_tensors_that_fill_a_chip():
    chip = BM1684
    x = local((4, 64, 128, 256), "float32", "compact", chip=chip)  # all 512 KiB of each NPU
    assert x.fits().free == 0
    last = local((1, 1, 1, 1), "float32", "compact", start=64 * chip.npu_bytes - 4, chip=chip)
    assert sophon.overlap(x, last) == sophon.Overlap(
        63, chip.npu_bytes - 4, (3, 63, 127, 255), (0, 0, 0, 0)
    )


# --- banks ---


@quick
@given(locals_())
def test_banks_of_an_allocation(layout):
    chip, used = layout.chip, range(layout.offset, layout.offset + layout.bytes_per_core)
    if chip.banks is None:
        with pytest.raises(gl.LayoutError, match="states no banks"):
            layout.bank_range()
    elif not layout.fits():
        with pytest.raises(gl.LayoutError, match=f"past the {chip.npu_bytes} B"):
            layout.bank_range()
    else:
        touched = {byte * chip.banks // chip.npu_bytes for byte in used}
        assert layout.bank_range() == (min(touched), max(touched))


# --- empty blocks ---


def empty(layout, held):
    """The bytes of a tensor's allocation that hold none of its elements, as (NPU, byte)."""
    end = layout.offset + layout.bytes_per_core
    both = [(npu, byte) for npu in range(layout.chip.npus) for byte in range(layout.offset, end)]
    return {place for place in both if place not in held}


@quick
@given(pairs())
def test_reuse(pair):
    first, second = pair
    if not (first.fits() and second.fits()):
        with pytest.raises(gl.LayoutError, match="does not fit"):
            reuse(first, second)
        return
    a, b = occupied(first), occupied(second)
    used = sorted(empty(first, a) & b.keys())
    found = reuse(first, second)
    if not used:
        assert found is None
        return
    assert (found.npu, found.byte) == used[0]
    assert found.index in b[used[0]]


@pytest.mark.parametrize(
    ("start", "found"),
    [
        # "12 empty blocks are appended to each feature": blocks 20 to 31.
        (80, Reuse(0, 80, (0, 0, 0, 0))),
        # NPU 3 holds no features of three channels from NPU 0.
        (3 * 1024, Reuse(3, 0, (0, 0, 0, 0))),
        # Behind the allocation of 64 blocks.
        (256, None),
        (3 * 1024 + 256, None),
        # Over an element it is no reuse but an overlap.
        (76, None),
    ],
)
def test_try_not_to_reuse_the_empty_blocks(start, found):
    """ "otherwise, the data in these tensors may be destroyed when NPUs work parallel.
    Try not to reuse the empty blocks"."""
    x = local((2, 3, 4, 5), "float32", chip=TOY)
    one = local((1, 1, 1, 1), "float32", "compact", start=start, chip=TOY)
    assert reuse(x, one) == found
    assert (sophon.overlap(x, one) is None) == (start != 76)


def test_the_empty_blocks_of_the_second_row():
    """ "In the second block row, there are X - 2 empty blocks storing nothing about this
    tensor." """
    x = local((1, 6, 1, 32), "float32", chip=TOY)  # C = X + 2 channels, features of 128 B
    rows = [
        [reuse(x, local((1, 1, 1, 1), "int8", "compact", start=at, chip=TOY)) for at in starts]
        for starts in ([npu * 1024 + slot * 128 for npu in range(4)] for slot in (0, 1, 2))
    ]
    assert [[found is not None for found in row] for row in rows] == [
        [False] * 4,
        [False, False, True, True],
        [False] * 4,
    ]


def test_dummy_elements_are_no_empty_blocks():
    x = local((1, 1, 1, 2), "int8", strides=(None, None, None, 16), chip=TOY)
    groups = local((1, 1, 1, 1), "int8", "compact", storage="4N", start=4, chip=TOY)
    assert reuse(x, groups) == Reuse(0, 4, (0, 0, 0, 0))
    # Bytes 5 to 7 are its dummies: written where it is written, and none of its empty blocks.
    behind = local((1, 1, 1, 1), "int8", strides=(None,) * 4, start=5, chip=TOY)
    assert reuse(groups, behind) is None
    assert sophon.overlap(groups, behind) == sophon.Overlap(0, 5, None, (0, 0, 0, 0))
    # Of a word over an element and the empty byte behind it, the dummy is in the empty one.
    sparse = local((1, 1, 1, 3), "int8", strides=(None, None, None, 6), chip=TOY)
    word = local((1, 1, 1, 1), "int8", strides=(None,) * 4, lanes=2, start=6, chip=TOY)
    assert reuse(sparse, word) == Reuse(0, 7, None)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (local((1, 1, 1, 1), "int8", chip=BM1688), "share no memory"),
        (system((1, 1, 1, 1), "int8"), "not a tensor in Sophon local memory"),
        (None, "None is not a tensor in Sophon local memory"),
        (local((9, 4, 9, 9), "float32", chip=TOY), "does not fit"),
    ],
)
def test_tensors_without_a_memory_in_common_are_refused(other, words):
    x = local((1, 1, 1, 1), "int8", chip=TOY)
    for ask in (reuse, sophon.overlap):
        for two in ((x, other), (other, x)):
            with pytest.raises(gl.LayoutError, match=words):
                ask(*two)
