"""The route between two layouts, run on the host, against where single elements live."""

from math import prod

import numpy as np
import pytest
from brute import Brute
from hypothesis import assume, given
from hypothesis import strategies as st
from laid_out import indices, layouts, packed
from random_layouts import lifted, nested_sums

import gridlayout as gl
from gridlayout.layouts.program import PadMove, ReshapeMove, ReverseMove, TransposeMove
from gridlayout.layouts.route import find_route
from gridlayout.ops.moves.relayout import moved_bytes
from gridlayout.sharding.exchanges.find_exchange import find_exchange

POISON, FILL = -1, -2


def run(array, moves):
    """The moves, each as NumPy has it."""
    for move in moves:
        match move:
            case PadMove(low, high):
                array = np.pad(
                    array,
                    [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)],
                    constant_values=FILL,
                )
                array = array[
                    tuple(
                        slice(max(-a, 0), n - max(-b, 0))
                        for a, b, n in zip(low, high, array.shape, strict=True)
                    )
                ]
            case ReshapeMove(before, after):
                assert array.shape == before
                array = array.reshape(after)
            case TransposeMove(order):
                array = array.transpose(order)
            case ReverseMove(dims):
                array = np.flip(array, dims)
    return array


def check(a, b):
    """Every element arrives, and what is no element was padding before or is new."""
    route = find_route(a, b)
    assert route is not None
    x = np.arange(prod(a.shape), dtype=np.int64).reshape(a.shape)
    found = run(packed(x, a, POISON), route.moves({}))
    assert found.shape == b.physical_shape
    for index in indices(b.shape):
        where = b.locate(index)
        assert found[(*where.core, *where.local)] == x[index]
    assert (found >= 0).sum() == x.size
    return route


@pytest.mark.parametrize("shape", [(7,), (5, 7), (3, 4, 5)])
def test_between_layouts_of_every_kind(shape):
    table = list(layouts(shape).values())
    for a in table:
        for b in table:
            if a.is_scatter or b.is_scatter:
                assert find_route(a, b) is None
            else:
                assert check(a, b).is_identity == (a.physical_shape == b.physical_shape and a == b)


@st.composite
def grid_layouts(draw, shape):
    rank = draw(st.integers(1, 3))
    sums = lifted(
        draw(nested_sums(shape, rank)),
        shape,
        draw(st.lists(st.sampled_from([0, 0, 2]), min_size=rank, max_size=rank)),
    )
    grid = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    tile = draw(st.none() | st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=rank))
    linear = Brute(shape, tuple(grid), sums, None, None, 64).text
    return gl.GridLayout(shape, "int64", grid, tile, linear=linear)


@given(st.data())
def test_between_random_layouts(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=0, max_size=3)))
    a, b = (data.draw(grid_layouts(shape)) for _ in range(2))
    assume(max(prod(layout.physical_shape) for layout in (a, b)) <= 4000)
    assume(not a.is_scatter and not b.is_scatter)
    check(a, b)


@given(st.data())
def test_between_random_layouts_with_the_default_collapse(data):
    # Few shapes and much in common, so that most steps cancel or regroup.
    shape = tuple(data.draw(st.lists(st.sampled_from([4, 6, 8, 12]), min_size=2, max_size=3)))
    sizes = st.sampled_from([1, 2, 3, 4, 6])
    a, b = (
        gl.GridLayout(
            shape,
            "int64",
            grid=data.draw(st.tuples(sizes, sizes)),
            tile=data.draw(st.none() | st.tuples(sizes, sizes)),
        )
        for _ in range(2)
    )
    check(a, b)


def test_a_change_of_tiles_stays_in_each_core():
    a = gl.GridLayout((4096, 4096), grid=(8, 8), tile=(32, 32))
    for tile in [(16, 16), (64, 32), (32, 8), None]:
        route = find_route(a, a.replace(tile=tile))
        assert {(0, 0), (1, 1)} <= set(route.unchanged_dims)
        # One reshape, one transpose, one reshape: never the 4096 rows or the 512 of a core.
        assert all(isinstance(move, ReshapeMove | TransposeMove) for move in route.moves({}))
        assert len(route.moves({})) <= 3
        shapes = [m.after for m in route.moves({})[:-1] if isinstance(m, ReshapeMove)]
        assert all(max(shape) <= 64 for shape in shapes)


def test_uneven_tiles_stay_in_each_core():
    # 53 rows on 3 cores: 18 rows each, which tiles of 32 and of 16 pad differently.
    a = gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
    route = check(a, a.replace(tile=(16, 8)))
    assert {(0, 0), (1, 1)} <= set(route.unchanged_dims)


def test_descriptions_that_differ_and_lay_out_alike():
    a = gl.GridLayout((4, 8, 16), grid=(2, 4))
    b = gl.GridLayout((4, 8, 16), grid=(2, 4), linear="(d0, d1, d2) -> (d0 * 8 + d1, d2)")
    assert find_route(a, b).is_identity
    # A tile as large as the shard, or a grid of one more dim of one core, adds only dims of 1.
    tiled = a.replace(tile=(16, 4))
    assert not find_route(a, tiled).is_identity
    assert all(isinstance(m, ReshapeMove) for m in find_route(a, tiled).moves({}))


def test_no_route_without_elements_or_through_a_scatter():
    empty = gl.GridLayout((0, 4), grid=(2, 2))
    assert find_route(empty, empty.replace(grid=(1, 1))) is None
    scattered = gl.GridLayout((4, 4), grid=(1, 1), linear="(d0, d1) -> (d0 + d1, d1)")
    assert find_route(scattered, gl.GridLayout((4, 4))) is None


@pytest.mark.parametrize("tile", [None, (4, 4)])
@pytest.mark.parametrize("is_joined_first", [True, False])
def test_a_dim_lies_alike_joined_or_by_itself(tile, is_joined_first):
    """Rows of a batch over 2 cores and columns of heads over 4, as matrices and as batches."""
    shape = (8, 12, 8, 4)
    joined = gl.GridLayout(
        shape, grid=(2, 4), linear="(d0, d1, d2, d3) -> (d0 * 12 + d1, d2 * 4 + d3)", tile=tile
    )
    apart = gl.GridLayout(shape, grid=(2, 4, 1, 1), linear="(d0, d1, d2, d3) -> (d0, d2, d1, d3)")
    pair = (joined, apart) if is_joined_first else (apart, joined)
    check(*pair)
    device = gl.DeviceGrid((2, 4))
    assert find_exchange(*pair, device).transfers == ()
    assert moved_bytes(*pair, device) == 0


def test_joined_dims_that_are_padded_inside_are_no_digits_of_one_number():
    # 5 rows of 6, in rows of 8: the joined index skips, so batch 1 begins at 8 and not at 6.
    a = gl.GridLayout((5, 6), grid=(5,), linear="(d0, d1) -> (d0 * 8 + d1)")
    check(a, gl.GridLayout((5, 6), grid=(5, 2)))
    check(gl.GridLayout((5, 6), grid=(5, 2)), a)


def test_a_dim_is_joined_with_dims_of_extent_one_where_it_lies():
    rows = gl.GridLayout((16, 27), grid=(8, 1))
    route = check(rows, rows.replace(grid=(8, 4)))
    kinds = [type(move) for move in route.moves({})]
    assert kinds == [ReshapeMove, PadMove, ReshapeMove, TransposeMove]


def test_dims_of_extent_one_do_not_stand_in_the_way():
    # They are joined to the last dim in one layout, to the first in the other.
    across = gl.GridLayout((11, 3, 1), grid=(1, 8), linear="(d0, d1, d2) -> (d1, d0)")
    along = gl.GridLayout((11, 3, 1), grid=(8, 1), linear="(d0, d1, d2) -> (d0, d1)")
    for a, b in [(across, along), (along, across)]:
        assert find_route(a, b).steps == ()
        assert moved_bytes(a, b, gl.DeviceGrid((8,))) == 0
