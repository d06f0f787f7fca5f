"""Strides that make no sense (Sophon, "Strides in Local Memory") count nowhere.

"When W = 1, H = 1 or N = 1, the relative stride makes no sense. For C stride, it makes no sense
when the number of channels per NPU is 1."
"""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laid_out import indices
from tiers import examples

import gridlayout as gl
from gridlayout import sophon
from gridlayout.sophon import Chip, local, matrix, system

TOY = Chip(npus=4, npu_bytes=1024, alignment=128)
JUNK = 10**6  # elements: far more than any memory here


def alike(first, second):
    """Whether two tensors are one to every question that is asked of them."""
    assert first == second
    assert hash(first) == hash(second)
    assert first.same_physical(second)
    assert first.index_map == second.index_map
    assert first.physical_shape == second.physical_shape
    assert first.bytes_per_core == second.bytes_per_core
    assert first.span_bytes == second.span_bytes
    return True


def test_strides_that_the_document_leaves_out():
    """ "W stride = 2 and N stride = 120 ... H stride and C stride both make no sense." """
    arguments = {"shape": (2, 3, 1, 10), "dtype": "float32", "start": 1024, "chip": TOY}
    left_out = local(**arguments, strides=(120, None, None, 2))
    assert left_out.strides_without_meaning == ("C", "H")
    assert left_out.strides == (120, 0, 0, 2)
    for c, h in ((0, 0), (20, 20), (JUNK, 7)):
        assert alike(left_out, local(**arguments, strides=(120, c, h, 2)))
    assert left_out.bytes_per_core == 2 * 120 * 4
    assert left_out.locate((1, 2, 0, 9)).byte == (120 + 18) * 4
    assert gl.parse(str(left_out)) == left_out
    tensor = "(2, 3, 1, 10), 'float32', strides=(120, None, None, 2)"
    text = f"sophon.local({tensor}, start=1024, chip={TOY})"
    assert gl.parse(text) == left_out


@pytest.mark.parametrize(
    ("shape", "strides", "bytes_"),
    [
        ((1, 3, 4, 5), (JUNK, 20, 5, 1), 80),
        ((1, 3, 4, 5), (JUNK, JUNK, 5, 1), 80),  # three channels on four NPUs
        ((1, 3, 4, 5), (None, None, 5, 1), 80),
        ((2, 3, 1, 5), (10, JUNK, JUNK, 1), 80),
        ((2, 3, 4, 1), (8, JUNK, 2, JUNK), 64),
        ((1, 1, 1, 1), (JUNK, JUNK, JUNK, JUNK), 4),
        ((1, 6, 4, 5), (JUNK, 32, 5, 1), 256),  # channels per NPU * C stride, as where aligned
        ((1, 6, 4, 5), (JUNK, 0, 5, 1), 80),
    ],
)
def test_they_do_not_count_in_sizes(shape, strides, bytes_):
    x = local(shape, "float32", strides=strides, chip=TOY)
    assert x.bytes_per_core == bytes_
    assert x.physical_shape == (4, bytes_ // 4)
    assert x.fits().size == bytes_
    assert x.fits()
    extents = (shape[0], x.channels_per_npu, *shape[2:])
    plain = [s if n > 1 else None for s, n in zip(strides, extents, strict=True)]
    assert alike(x, local(shape, "float32", strides=plain, chip=TOY))


def test_they_do_not_count_in_overlap():
    x = local((1, 3, 4, 5), "float32", strides=(JUNK, JUNK, 5, 1), chip=TOY)
    behind = local((1, 3, 4, 5), "float32", strides=(7, 7, 5, 1), start=80, chip=TOY)
    assert sophon.overlap(x, behind) is None
    inside = local((1, 3, 4, 5), "float32", strides=(7, 7, 5, 1), start=76, chip=TOY)
    assert sophon.overlap(x, inside) == sophon.Overlap(0, 76, (0, 0, 3, 4), (0, 0, 0, 0))


def test_a_named_layout_and_its_strides_are_one():
    """ "C stride makes no sense and N stride is 32 * 1 = 32." """
    aligned = local((2, 3, 4, 5), "float32", chip=TOY)
    assert aligned.strides == (32, 32, 5, 1)
    assert alike(aligned, local((2, 3, 4, 5), "float32", strides=(32, None, 5, 1), chip=TOY))
    both = local((2, 3, 4, 5), "float32", "aligned", (32, None, 5, 1), chip=TOY)
    assert alike(aligned, both)
    # Of one batch the N stride says nothing, and channels per NPU * C stride is the same.
    one = local((1, 6, 4, 5), "float32", chip=TOY)
    assert alike(one, local((1, 6, 4, 5), "float32", strides=(JUNK, 32, 5, 1), chip=TOY))
    compact = local((1, 3, 4, 5), "float32", "compact", chip=TOY)
    assert alike(compact, local((1, 3, 4, 5), "float32", strides=(JUNK, 1, 5, 1), chip=TOY))


def test_the_blocks_appended_to_a_feature_are_part_of_the_aligned_layout_only():
    """ "12 empty blocks are appended to each feature." """
    aligned = local((1, 3, 4, 5), "float32", chip=TOY)
    assert aligned.bytes_per_core == 4 * 32
    strided = local((1, 3, 4, 5), "float32", strides=(None, None, 5, 1), chip=TOY)
    assert strided.bytes_per_core == 4 * 20
    assert strided != aligned
    assert not strided.same_physical(aligned)
    # An allocation of its own says as much, and so does a type for which 32 is not aligned.
    own = local((1, 3, 4, 5), "float32", strides=(None, None, 5, 1), chip=TOY, allocation=32)
    assert alike(aligned, own)
    narrow = aligned.with_dtype("int8")
    assert narrow.physical_shape == aligned.physical_shape
    assert str(narrow).endswith(f"chip={TOY}, allocation=32)")
    assert gl.parse(str(narrow)) == narrow


def test_none_is_refused_where_the_stride_makes_sense():
    for strides, name, count in (
        ((None, 56, 16, 2), "N", "2 indices"),
        ((120, None, 16, 2), "C", "2 channels of an NPU"),
        ((120, 56, None, 2), "H", "3 indices"),
        ((120, 56, 16, None), "W", "4 indices"),
    ):
        words = rf"{re.escape(str(strides))}: the {name} stride can't be None.*applies to {count}"
        with pytest.raises(gl.LayoutError, match=words):
            local((2, 5, 3, 4), "float32", strides=strides, chip=TOY)
    # From NPU 2 three channels reach round to NPU 0: "C stride is useful".
    local((2, 3, 1, 1), "int8", strides=(9, None, None, None), chip=TOY)
    with pytest.raises(gl.LayoutError, match="the C stride can't be None"):
        local((2, 3, 1, 1), "int8", strides=(9, None, None, None), start=2048, chip=TOY)
    with pytest.raises(gl.LayoutError, match=r"the C stride can't be None, .* applies to 3 "):
        system((2, 3, 1, 1), "int8", strides=(9, None, None, None))
    with pytest.raises(gl.LayoutError, match="the C stride can't be None"):
        matrix(2, 40, 8, "int8", chip=TOY, strides=(9, None, None, 1))


def test_the_groups_of_a_storage_mode_are_what_the_n_stride_steps_over():
    x = local((4, 1, 2, 2), "int8", strides=(None, None, 2, 1), storage="4N", chip=TOY)
    assert x.strides_without_meaning == ("N", "C")
    assert x.bytes_per_core == 16
    with pytest.raises(gl.LayoutError, match=r"the N stride can't be None.*applies to 2"):
        local((5, 1, 2, 2), "int8", strides=(None, None, 2, 1), storage="4N", chip=TOY)


def test_a_matrix_has_no_h():
    x = matrix(1, 40, 10, "float32", chip=TOY, strides=(None, None, None, 3))
    assert alike(x, matrix(1, 40, 10, "float32", chip=TOY, strides=(JUNK, JUNK, JUNK, 3)))
    assert x.bytes_per_core == (9 * 3 + 1) * 4
    row = matrix(1, 40, 10, "float32", chip=TOY)
    assert gl.parse(str(row.with_dtype("int8"))) == row.with_dtype("int8")


def test_strides_in_system_memory():
    """ "When W = 1, H = 1, C = 1 or N = 1, the relative stride makes no sense." """
    x = system((1, 1, 4, 5), "float32", strides=(None, None, 5, 1))
    assert alike(x, system((1, 1, 4, 5), "float32"))
    assert alike(x, system((1, 1, 4, 5), "float32", strides=(JUNK, 3, 5, 1)))
    assert x != system((1, 1, 4, 5), "float32", strides=(JUNK, 3, 6, 1))


@pytest.mark.parametrize(
    ("allocation", "words"),
    [
        (19, r"allocation 19 ends before the last element: strides .* span 20 elements"),
        (0, "allocation 0 ends before"),
        (-1, "allocation -1 must be >= 0"),
        (2.0, "allocation 2.0 must be a whole number"),
        (True, "not a bool"),
        (10**30, r"beyond 2\*\*62"),
    ],
)
def test_bad_allocations_are_refused(allocation, words):
    with pytest.raises(gl.LayoutError, match=words):
        local((1, 3, 4, 5), "int8", "compact", allocation=allocation)


def test_an_allocation_of_its_own():
    x = local((2, 3, 4, 5), "float32", "compact", chip=TOY, allocation=100)
    assert x.physical_shape == (4, 100)
    assert (x.layout, x.allocation) == ("compact", 100)
    assert gl.parse(str(x)) == x
    assert x != local((2, 3, 4, 5), "float32", "compact", chip=TOY)
    assert local((1, 1, 1, 1), "int8", "compact", allocation=np.int64(8)).bytes_per_core == 8


@st.composite
def tensors(draw):
    """A tensor, or a tensor in system memory, and the strides that make no sense in it."""
    shape = tuple(draw(st.integers(1, n)) for n in (3, 6, 2, 2))
    start = draw(st.sampled_from([0, 1024, 3072]))
    arguments = {"shape": shape, "dtype": "int16", "start": start}
    if draw(st.booleans()):
        arguments["lanes"] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        arguments["chip"] = TOY
    strides = tuple(draw(st.integers(0, 40)) for _ in range(4))
    return (local if "chip" in arguments else system), arguments, strides


@settings(max_examples=examples(100))
@given(tensors(), st.sampled_from([None, 0, 1, JUNK, 2**62]))
def test_what_stands_in_their_place_is_the_same(case, junk):
    make, arguments, strides = case
    plain = make(**arguments, strides=strides)
    senseless = plain.strides_without_meaning
    other = [junk if d in senseless else s for d, s in zip("NCHW", strides, strict=True)]
    found = make(**arguments, strides=other)
    assert alike(plain, found)
    assert plain.slot_size == found.slot_size
    assert plain.broadcast == found.broadcast
    assert gl.parse(str(found)) == plain
    for index in itertools.islice(indices(plain.shape), 20):
        assert plain.locate(index) == found.locate(index)
        assert plain.address(index) == found.address(index)
