"""`<>`, the document's dimension join operator, read and printed where the shape is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridlayout as gl
from gridlayout import AffineMap


@st.composite
def joins(draw):
    """A shape, and results that each join some of its dims, in any order."""
    rank = draw(st.integers(1, 5))
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))
    each = st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True)
    return shape, draw(st.lists(each, min_size=1, max_size=3))


@given(joins())
def test_joins_are_row_major(case):
    shape, groups = case
    names = ", ".join(f"x{d}" for d in range(len(shape)))
    text = f"({names}) -> ({', '.join('<>'.join(f'x{d}' for d in dims) for dims in groups)})"
    found = AffineMap.parse(text, shape)
    index = np.indices(shape)
    for result, dims in zip(found(*index), groups, strict=True):
        expected = np.ravel_multi_index([index[d] for d in dims], [shape[d] for d in dims])
        np.testing.assert_array_equal(result, expected)
    again = AffineMap.parse(found.joined_text(shape), shape)
    for result, same in zip(found(*index), again(*index), strict=True):
        np.testing.assert_array_equal(result, same)
    if all(n > 1 for n in shape):  # a dim of extent 1 may come before another of the same stride
        written = ", ".join(" <> ".join(f"d{d}" for d in dims) for dims in groups)
        assert found.joined_text(shape).endswith(f"-> ({written})")


KEPT = [
    ("(d0, d1) -> (d0 * 5 + d1)", (3, 4)),  # a gap
    ("(d0, d1) -> (d0 * 4 + d1 + 1)", (3, 4)),
    ("(d0, d1) -> (-d0 * 4 + d1 + 8)", (3, 4)),
    ("(d0, d1) -> (d0 floordiv 2, d1)", (3, 4)),
    ("(d0, d1) -> (d0, 0)", (3, 4)),
]


@pytest.mark.parametrize(("text", "shape"), KEPT)
def test_what_is_no_join_is_printed_as_it_is(text, shape):
    found = AffineMap.parse(text)
    assert found.joined_text(shape) == str(found)


def test_in_layouts():
    """Dimension Collapsing: `(d0, d1, d2) -> (d0 <> d1, d2)`."""
    text = "(d0, d1, d2) -> (d0 <> d1, d2)"
    assert gl.GridLayout((2, 3, 4), linear=text) == gl.GridLayout((2, 3, 4))
    layout = gl.GridLayout((2, 3, 4), grid=(2, 1))
    assert gl.parse(str(layout).replace(str(layout.linear), text)) == layout


REFUSED = [
    ("(d0, d1) -> (d0 <> d1)", None, "give the shape with the map, found 'd0' at column 14"),
    ("(d0, d1) -> (d0 <> d0)", (2, 3), "joins each dim once, found 'd0' at column 20"),
    ("(d0, d1) -> (d0 <> 3)", (2, 3), "expected the name of one, found '3' at column 20"),
    ("(d0, d1) -> (d0 <> )", (2, 3), "expected the name of one, found"),
    ("(d0, d1) -> (d0 <> d1 + 1)", (2, 3), "expected ',', found '[+]' at column 23"),
    ("(d0, d1) -> (1 + d0 <> d1)", (2, 3), "found '<>' at column 21"),
    ("(d0, d1) -> (d0 <> d1)", (2,), "and the shape has 1, found 'd1' at column 20"),
    ("(d0, d1, d2) -> (d0 <> d1 <> d2)", (2, 2**40, 2**40), "at column"),
    ("(d0, d1) -> (d0 <> d1)", (2, -1), ">= 0, at column 14"),
    ("(d0, d1) -> (d2 <> d1)", (2, 3), "no such dim, found 'd2' at column 14"),
]


@pytest.mark.parametrize(("text", "shape", "rule"), REFUSED)
def test_refusals(text, shape, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        AffineMap.parse(text, shape)


def test_hostile_joins_take_no_time():
    dims = ", ".join(f"d{k}" for k in range(2500))
    text = f"({dims}) -> ({' <> '.join(f'd{k}' for k in range(2500))})"
    with pytest.raises(gl.LayoutError, match="the shape has 2"):
        AffineMap.parse(text, (2, 3))


def test_a_shape_of_another_rank_has_no_joined_text():
    with pytest.raises(gl.LayoutError):
        AffineMap.parse("(d0, d1) -> (d0, d1)").joined_text((2,))
