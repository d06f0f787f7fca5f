"""What is asked of single elements of Sophon tensors: the view's elements, and addresses."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laid_out import indices
from tiers import examples

import gridlayout as gl
from gridlayout.sophon import Chip, ViewElement, local, matrix, system

TOY = Chip(npus=4, npu_bytes=1024, alignment=128)


# --- the element of a view ---


def test_the_documents_element_of_the_4n_view():
    """ "the int8x4 element at (1, 0, 0, 0) of the new shape contains two int8 elements at
    (4, 0, 0, 0) and (5, 0, 0, 0) of the original shape and two dummy ones." """
    x = local((6, 5, 4, 5), "int8", storage="4N", chip=TOY)
    assert (x.view_shape, x.view_dtype) == ((2, 5, 4, 5), "int8x4")
    held = ((4, 0, 0, 0), (5, 0, 0, 0), None, None)
    assert x.view_element((1, 0, 0, 0)) == ViewElement("int8x4", 64 * 4, held)
    # Channel 4 is in the second row of NPU 0: C stride 32.
    held = tuple((n, 4, 3, 4) for n in range(4))
    assert x.view_element((0, 4, 3, 4)) == ViewElement("int8x4", (32 + 19) * 4, held)


def test_the_documents_element_of_the_2n_view():
    """ "contains an int8 element at (2, 0, 0, 0) of the original shape and a dummy one": of int16,
    as the tensor is; the document's "int8" is a slip."""
    x = local((3, 5, 4, 5), "int16", storage="2N", chip=TOY)
    held = ((2, 0, 0, 0), None)
    assert x.view_element((1, 0, 0, 0)) == ViewElement("int16x2", 64 * 4, held)


def test_the_view_of_2ic_and_of_none():
    """ "(fp32, fp32) denoted by fp32x2"."""
    x = local((3, 5, 1, 2), "float32", "compact", storage="2IC", chip=TOY)
    held = ((2, 1, 0, 1), None)
    # J stride 4, NPU 1, W stride 1: elements of 64 bits.
    assert x.view_element((1, 1, 0, 1)) == ViewElement("float32x2", 1024 + 5 * 8, held)
    plain = local((3, 5, 1, 2), "float32", "compact", chip=TOY)
    assert plain.view_element((2, 1, 0, 1)).elements == ((2, 1, 0, 1),)
    assert plain.view_dtype == "float32"


def test_the_view_of_a_matrix():
    """ "it could be viewed as a 4D tensor with shape (N = N, C = ceil(M / W), H = 1, W = W)." """
    x = matrix(2, 40, 15, "float32", chip=TOY)
    assert x.view_element((1, 2, 0, 9)) == ViewElement("float32", 2 * 1024 + 41 * 4, ((1, 39),))
    # "the last channel only contains M - W * floor(M / W) elements": 10 of 15.
    assert x.view_element((1, 2, 0, 10)).elements == (None,)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ((2, 0, 0, 0), r"index of the view (2, 0, 0, 0) is outside the shape (2, 5, 4, 5)"),
        ((0, 0, 0), "has rank 3, but the shape (2, 5, 4, 5) has rank 4"),
        ((0, 0, 0, -1), "whole numbers >= 0"),
        (3, "give 4 numbers"),
    ],
)
def test_elements_outside_the_view_are_refused(index, words):
    x = local((6, 5, 4, 5), "int8", storage="4N", chip=TOY)
    with pytest.raises(gl.LayoutError, match=words.replace("(", r"\(").replace(")", r"\)")):
        x.view_element(index)


def test_an_element_of_very_many_lanes_is_not_listed():
    x = system((2**40, 1, 1, 1), "int8", lanes=2**39)
    with pytest.raises(gl.LayoutError, match=rf"int8x{2**39} has over 65536 lanes"):
        x.view_element((1, 0, 0, 0))


@st.composite
def tensors(draw):
    shape = tuple(draw(st.integers(1, n)) for n in (5, 7, 2, 3))
    strides = draw(st.one_of(st.none(), st.tuples(*[st.integers(0, 30)] * 4)))
    lanes, start = draw(st.integers(1, 4)), draw(st.sampled_from([0, 128, 1024, 3200]))
    kind = draw(st.sampled_from(["local", "system", "matrix"]))
    if kind == "system":
        return system(shape, "int16", strides, lanes=lanes, start=start)
    if kind == "matrix":
        cols = draw(st.integers(1, 20))
        return matrix(3, cols, draw(st.integers(1, cols)), "int16", start, TOY, strides=strides)
    return local(shape, "int16", strides=strides, start=start, lanes=lanes, chip=TOY)


@settings(max_examples=examples(100))
@given(tensors())
def test_the_views_elements_are_those_of_the_tensor(x):
    found = []
    for index in indices(x.view_shape):
        element = x.view_element(index)
        assert len(element.elements) == x.lanes
        for lane, held in enumerate(element.elements):
            if held is not None:
                assert x.address(held) == element.address + lane * 2
                found.append(held)
    assert sorted(found) == list(indices(x.shape))


# --- what the document calls things ---

NAMES = [
    "okk_channle_num_per_npu",
    "okk_continuous_stride",
    "okk_128_byte_aligned_stride_for_32bit",
    "okk_128_byte_aligned_stride_for_16bit",
    "okk_128_byte_aligned_stride_for_8bit",
    "okk_compact_stride",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_documents_names_are_on_a_page(name):
    """ "The strides can be obtained by calling okk_continuous_stride" and so on."""
    page = Path(__file__).parents[1] / "docs" / "coming-from" / "okk.md"
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| ")]
    assert sum(f"`{name}" in row.split(" | ")[0] for row in rows) == 1


# --- addresses ---


def test_a_channel_is_in_the_npu_of_its_number():
    """ "The features (*, c_0) and (*, c_1) are in the same NPU if and only if
    c_0 mod X = c_1 mod X." """
    for start in range(4):
        x = local((1, 11, 1, 1), "int8", start=start * 1024, chip=TOY)
        for c0, c1 in indices((11, 11)):
            assert (x.scatter(c0)[0] == x.scatter(c1)[0]) == (c0 % 4 == c1 % 4)


def test_a_tensor_in_system_memory_has_an_address():
    """ "A tensor in system memory can not be described only by the address, shape and data type,
    the strides are also necessary." """
    x = system((2, 3, 4, 5), "float32", strides=(100, 30, 6, 1), start=2**32 + 6)
    assert x.start == 2**32 + 6
    assert x.address((0, 0, 0, 0)) == 2**32 + 6
    assert x.address((1, 2, 3, 4)) == 2**32 + 6 + 4 * (100 + 60 + 18 + 4)
    assert x.locate((1, 0, 0, 0)).byte == x.address((1, 0, 0, 0))
    assert str(x).endswith(f"strides=(100, 30, 6, 1), start={2**32 + 6})")
    assert gl.parse(str(x)) == x
    assert system((1, 1, 1, 1), "int8").start == 0


def test_where_a_tensor_is_does_not_change_what_is_in_it():
    x = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    here, there = system(x.shape, "float32"), system(x.shape, "float32", start=4096)
    assert here != there
    assert here.same_physical(there)
    np.testing.assert_array_equal(gl.pack(x, here), gl.pack(x, there))
    assert there.with_dtype("int8").start == 4096


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (-1, "start -1 must be >= 0"),
        (1.0, "start 1.0 must be a whole number"),
        (None, "start None must be a whole number"),
        (True, "not a bool"),
        (2**63, r"beyond 2\*\*62"),
    ],
)
def test_bad_addresses_in_system_memory_are_refused(start, words):
    with pytest.raises(gl.LayoutError, match=words):
        system((1, 1, 1, 1), "int8", start=start)
    with pytest.raises(gl.LayoutError, match=re.compile(r"column \d+: .*(start|whole|not one of)")):
        gl.parse(f"sophon.system((1, 1, 1, 1), 'int8', start={start})")
