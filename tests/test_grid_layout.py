"""`GridLayout` against the brute-force reading of the document in `brute.py`."""

import copy
import pickle
import re
import warnings
from dataclasses import replace
from itertools import accumulate, product
from math import prod

import numpy as np
import pytest
from brute import Brute, indices, joined
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from random_layouts import cases
from tiers import examples

import gridlayout as gl
from gridlayout.dtypes import has_zero
from gridlayout.layouts.program import pack_host, unpack_host

# The document's default collapse, whatever it wastes, is among what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:the default collapse:gridlayout.LayoutWarning")

quick = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


def built(arguments, **more):
    return gl.GridLayout(**arguments, **more)


# --- a number is a shape of one dim ---


@pytest.mark.parametrize(
    ("call", "in_full"),
    [
        (lambda: gl.GridLayout(64, grid=8), lambda: gl.GridLayout((64,), grid=(8,))),
        (
            lambda: gl.GridLayout(np.int64(64), "int8", 8, np.array(4), shard_shape=9),
            lambda: gl.GridLayout((64,), "int8", (8,), (4,), shard_shape=(9,)),
        ),
        (lambda: gl.GridLayout((6, 64), grid=(1, 8), tile=8).tile, lambda: (8,)),
        (lambda: gl.GridLayout(64, grid=8).locate(9).core, lambda: (1,)),
        (lambda: gl.AffineMap.parse("(d0) -> (d0)").range(8), lambda: ((0, 7),)),
        (lambda: gl.Chip("toy", 4), lambda: gl.Chip("toy", (4,))),
        (lambda: gl.xla.layout(64, tiles=[(8,)]), lambda: gl.xla.layout((64,), tiles=[(8,)])),
        (lambda: gl.DeviceGrid(8), lambda: gl.DeviceGrid((8,))),
        (lambda: gl.DeviceGrid(8).placement(4), lambda: gl.DeviceGrid((8,)).placement((4,))),
    ],
)
def test_a_number_is_a_shape_of_one_dim(call, in_full):
    assert call() == in_full()


# --- sizes, the map, its inverse ---


# Three elements of 4 bits, whose second byte is half full.
HALF_A_BYTE = (
    Brute((3,), (1,), joined((3,), [(0, -1)], 1), None, None, 4, (), 1),
    {"shape": (3,), "grid": (1,), "dtype": "int4"},
)


@settings(quick, max_examples=examples(1000))
@example(HALF_A_BYTE)
@given(cases())
def test_sizes_and_places(case):
    brute, arguments = case
    layout = built(arguments)
    event("injective" if brute.injective else "two in one place")
    event("scatter" if layout.is_scatter else "steps")
    assert layout.shape == brute.shape
    assert layout.collapsed_shape == brute.collapsed_shape
    assert layout.shard_shape == brute.shard_shape
    assert layout.tile_counts == brute.tile_counts
    assert layout.physical_shape == brute.physical_shape
    assert layout.core_rank == len(brute.grid)
    assert layout.core_shape == brute.grid
    assert layout.local_shape == brute.local_shape
    assert layout.nbytes == brute.nbytes
    for index in indices(brute.shape):
        physical = brute.physical(index)
        assert layout.linear(*index) == brute.collapsed(index)
        assert layout.index_map(*index) == physical
        at, offset = layout.locate(index), brute.offset(index)
        assert at == gl.results.Location(
            physical[: len(brute.grid)],
            physical[len(brute.grid) :],
            offset,
            offset * brute.bits // 8,
        )


@settings(quick, max_examples=examples(700))
@given(cases())
def test_the_way_back(case):
    brute, arguments = case
    layout = built(arguments)
    for physical in indices(brute.physical_shape):
        found = layout.logical_index(physical)
        # One of those that share the place; None where there is none.
        assert found in brute.holders.get(physical, [None]), physical


@settings(quick, max_examples=examples(500))
@given(cases())
def test_invertible_or_two_named_indices_that_collide(case):
    brute, arguments = case
    layout = built(arguments)
    if brute.injective:
        layout.check_invertible()
        return
    with pytest.raises(
        gl.LayoutError, match=r"to one place: .*read-only view.*injective"
    ) as caught:
        layout.check_invertible()
    first, second = re.search(r"sends (\(.*?\)) and (\(.*?\)) to one", str(caught.value)).groups()
    first, second = (tuple(map(int, re.findall(r"\d+", text))) for text in (first, second))
    assert first != second
    assert brute.physical(first) == brute.physical(second)


# --- padding ---


def volume(box):
    return prod(side.stop - side.start for side in box)


def runs(mask):
    """Maximal runs of padding along the last dim: what boxes of one row each would need."""
    return int((np.diff(mask.astype(int), axis=-1, prepend=0) == 1).sum())


@settings(quick, max_examples=examples(1000))
@given(cases())
def test_padding(case):
    brute, arguments = case
    layout = built(arguments)
    expected = np.ones(brute.physical_shape, bool)
    for physical in brute.holders:
        expected[physical] = False
    mask = layout.padding_mask()
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, expected)

    boxes = layout.padded_regions()
    covered = np.zeros(brute.physical_shape, int)
    for box in boxes:
        for side, extent in zip(box, brute.physical_shape, strict=True):
            assert 0 <= side.start < side.stop <= extent
            assert side.step is None
        covered[box] += 1
    np.testing.assert_array_equal(covered, expected)
    assert sum(map(volume, boxes)) == expected.sum()
    assert len(boxes) <= runs(expected)

    per_core = layout.padding_per_core()
    assert per_core.shape == brute.grid
    for core in indices(brute.grid):
        assert per_core[core] == brute.padding_of_core(core)
    for axis in range(len(brute.grid)):
        assert layout.padding_along(axis).tolist() == brute.padding_along(axis)
        assert layout.padding_along(axis - len(brute.grid)).tolist() == brute.padding_along(axis)
    share = expected.mean() if expected.size else 0.0
    assert layout.padding_share == pytest.approx(share)


# shape, grid, tile, linear, at most as many boxes. The bound is what one can draw by hand.
FEW = [
    # tt-mlir "Padding": a row and a column, one of them cut at the corner; and the last tile rows.
    ((53, 63), (3, 2), None, None, 3),
    ((53, 63), (3, 2), (32, 32), None, 4),
    # The gap between the batches: rows 8 to 31 of 40. In tiles there is a tail as well.
    ((2, 8, 32), (1, 2), None, "(d0, d1, d2) -> (d0 * 32 + d1, d2)", 1),
    ((2, 8, 32), (1, 2), (32, 32), "(d0, d1, d2) -> (d0 * 32 + d1, d2)", 2),
    # tt-mlir "Multi-Core": nothing is padding.
    ((2, 3, 64, 128), (2, 4), (32, 32), None, 0),
    # Large, and as few as if it were small.
    ((1000, 1000), (7, 9), (32, 32), None, 10),
    ((100_000, 90_000), (7, 9), (32, 32), None, 10),
]


@pytest.mark.parametrize(("shape", "grid", "tile", "linear", "most"), FEW)
def test_padded_regions_are_few(shape, grid, tile, linear, most):
    layout = gl.GridLayout(shape, "bfloat16", grid, tile, linear=linear)
    boxes = layout.padded_regions()
    assert len(boxes) <= most
    assert sum(map(volume, boxes)) == prod(layout.physical_shape) - prod(shape)


def test_refuses_a_mask_that_would_not_fit_in_memory_and_still_answers_one_position():
    layout = gl.GridLayout((2**40, 3), grid=(8, 2))
    for ask in (layout.padding_mask, layout.padding_per_core, lambda: layout.padding_along(0)):
        with pytest.raises(gl.LayoutError, match=r"padding mask .* bytes.*logical_index"):
            ask()
    assert layout.logical_index((7, 1, 2**37 - 1, 0)) == (2**40 - 1, 2)
    assert layout.logical_index((7, 1, 2**37 - 1, 1)) is None


# --- packing ---


def distinct(shape, dtype, seed=0):
    """Values that tell neighbours apart, in any dtype."""
    bits = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 8, shape)
    return np.asarray(bits).astype(dtype)


def same_bytes(a, b):
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert a.tobytes() == b.tobytes()


@settings(quick, max_examples=examples(1000))
@given(cases(), st.sampled_from([None, 0, 1, 3, -0.0, float("nan")]), st.integers(0, 2**16))
def test_pack_and_unpack(case, oob, seed):
    brute, arguments = case
    dtype = np.dtype(arguments["dtype"])
    if oob != oob and (dtype.name == "bool" or any(k in dtype.name for k in ("int", "float4"))):
        oob = 0  # these have no NaN: see test_errors.py
    if oob == 3 and dtype.name == "int2":
        oob = 1  # the largest that there is
    if oob == 0 and not has_zero(dtype):
        oob = 1  # powers of two alone
    layout = built(arguments, oob=oob)
    logical = distinct(brute.shape, dtype, seed)

    garbage = distinct(brute.physical_shape, dtype, seed + 1)
    expected = np.zeros(brute.shape, dtype)
    for index in indices(brute.shape):
        expected[index] = garbage[brute.physical(index)]
    same_bytes(unpack_host(garbage, layout), expected)

    if not brute.injective:
        return
    expected = np.full(brute.physical_shape, np.array(0 if oob is None else oob).astype(dtype))
    for index in indices(brute.shape):
        expected[brute.physical(index)] = logical[index]
    physical = pack_host(logical, layout)
    same_bytes(physical, expected)
    same_bytes(unpack_host(physical, layout), logical)


# --- identity ---


@settings(quick, max_examples=examples(500))
@given(cases(), st.sampled_from(["system", "mmio", "dram", "l1"]))
def test_equal_layouts_are_equal_and_others_are_not(case, space):
    brute, arguments = case
    layout = built(arguments, memory_space=space)
    same = built(arguments, memory_space=space)
    for twin in (
        same,
        copy.copy(layout),
        copy.deepcopy(layout),
        pickle.loads(pickle.dumps(layout)),
        layout.replace(),
        layout.replace(linear=str(layout.linear)),
        layout.with_oob(1).with_oob(None),
        layout.with_dtype("int16", oob=3).with_dtype(layout.dtype),
    ):
        assert twin == layout
        assert hash(twin) == hash(layout)
        assert {layout: "found"}[twin] == "found"
        assert str(twin) == str(layout)
    for other in (
        layout.with_oob(1),
        layout.with_dtype("int16" if layout.dtype != "int16" else "int8"),
        layout.replace(memory_space="l1" if space != "l1" else "dram"),
        layout.replace(grid=tuple(n + 1 for n in layout.grid)),
        layout.replace(shape=(*layout.shape, 1), linear=widened(layout.linear)),
        layout.replace(tile=None if layout.tile else (5,), face=None, row_alignment=None),
    ):
        assert other != layout
        assert {layout: "found"}.get(other) is None
    assert layout.same_physical(built(arguments | {"collapse": None, "linear": brute.text}))
    assert layout.same_physical(layout.with_oob(1))
    assert layout.same_physical(layout.with_dtype("int16"))
    assert layout != layout.shape


def widened(linear):
    """The same map, with a last dim that no result reads."""
    return gl.AffineMap(linear.num_dims + 1, linear.results)


@settings(quick, max_examples=examples(300))
@given(cases(), st.integers(1, 4))
def test_facts_change_and_places_stay(case, bits):
    brute, arguments = case
    layout = built(arguments)
    # Everything that a layout may have cached is asked for first.
    layout.padding_mask()
    before = layout.nbytes, layout.index_map, hash(layout), str(layout)
    changed = layout.with_dtype(f"uint{8 * 2 ** (bits - 1)}", oob="neginf")
    assert changed.row_multiple == layout.row_multiple
    assert changed == gl.parse(str(changed)) == changed.replace()
    assert changed.oob == 0
    assert changed.nbytes == 2 ** (bits - 1) * prod(brute.physical_shape)
    assert changed.index_map == layout.index_map
    np.testing.assert_array_equal(changed.padding_mask(), layout.padding_mask())
    assert before == (layout.nbytes, layout.index_map, hash(layout), str(layout))

    untiled = layout.replace(tile=None, face=None, row_alignment=None)
    plain = replace(brute, tile=None, face=None, row_bits=1)
    assert untiled.physical_shape == plain.physical_shape
    assert untiled.nbytes == plain.nbytes


def test_rows_are_aligned_to_whole_bytes():
    layout = gl.GridLayout((3, 5), "int8", row_alignment=2)
    assert layout.with_dtype("int4").row_alignment == 1
    with pytest.raises(gl.LayoutError, match="2 elements of int2 take no whole bytes"):
        layout.with_dtype("int2")


@pytest.mark.parametrize("system", ["document", "ttnn", "ttnn_document"])
def test_tiles_of_block_formats_are_aligned_by_their_own_bytes(system):
    build = gl.GridLayout if system == "document" else getattr(gl.tenstorrent, system)
    arguments = {"shape": (32, 64), "grid": (1, 1), "tile": (32, 32), "tile_format": "bfp_bf8"}
    assert build(**arguments, row_alignment=64).row_alignment == 64  # 1,088 B are 17 times 64
    with pytest.raises(gl.LayoutError, match="of bfp_bf8 is 1088 B, which is not a multiple"):
        build(**arguments, row_alignment=128)


def test_no_dim_without_elements_is_squeezed():
    assert gl.GridLayout((0, 3), grid=(2, 1)).squeezed() is None
    assert gl.GridLayout((1, 0, 3), grid=(2, 1)).squeezed().shape == (0, 3)


REPLACED = [
    ({"grid": (3, 1)}, ((53, 63), "bfloat16", (3, 1), (32, 32))),
    ({"tile": (16, 16)}, ((53, 63), "bfloat16", (3, 2), (16, 16))),
    ({"tile": None}, ((53, 63), "bfloat16", (3, 2))),
    ({"dtype": "int8"}, ((53, 63), "int8", (3, 2), (32, 32))),
    (
        {"collapse": [(0, 2)], "grid": (4,), "tile": (8,)},
        ((53, 63), "bfloat16", (4,), (8,), [(0, 2)]),
    ),
    ({"collapse": None, "shape": (5, 7, 9)}, ((5, 7, 9), "bfloat16", (3, 2), (32, 32))),
]


@pytest.mark.parametrize(("changes", "arguments"), REPLACED)
def test_replace_is_the_constructor_with_other_arguments(changes, arguments):
    assert gl.GridLayout((53, 63), "bfloat16", (3, 2), (32, 32)).replace(
        **changes
    ) == gl.GridLayout(*arguments)


def test_repr_builds_the_layout_again():
    for layout in (
        gl.GridLayout((53, 63), "bfloat16", (3, 2), (32, 32), oob=0, memory_space="dram"),
        gl.GridLayout((2, 8, 32), linear="(d0, d1, d2) -> (d0 * 32 + d1, d2)", oob="neginf"),
        gl.GridLayout((64, 64), "float32", tile=(32, 32), face=(16, 16), oob=-0.0),
        gl.GridLayout((64, 64), "float32", tile=(32, 32), tile_format="bfp_bf8"),
        gl.GridLayout((), "complex64", grid=(1,)),
        gl.GridLayout((3,), "float32", grid=(2,), oob=2.5),
        gl.GridLayout((3,), "float32", grid=(2,), oob=float("nan")),
    ):
        assert eval(repr(layout), {"GridLayout": gl.GridLayout}) == layout
    # Only what is not the default is said.
    for shape in ((), (3,), (3, 4), (2, 3, 4), (1, 1, 1, 1), (2, 3, 4, 5, 6), (2, 0, 4)):
        assert repr(gl.GridLayout(shape)) == f"GridLayout({shape}, 'float32', grid=(1, 1))"


# --- block formats: bytes only ---


# Bytes of a tile of 32x32: reference of tt-mlir's TileType::getSizeBytes.
@pytest.mark.parametrize(
    ("tile_format", "size"), [("bfp_bf8", 1088), ("bfp_bf4", 576), ("bfp_bf2", 320)]
)
def test_block_formats_change_bytes_and_nothing_else(tile_format, size):
    plain = gl.GridLayout((70, 40), "bfloat16", grid=(2, 1), tile=(32, 32))
    block = plain.replace(tile_format=tile_format)
    assert plain.nbytes == 2 * 2 * 2 * 32 * 32 * 2
    assert block.nbytes == 2 * 2 * 2 * size
    assert block.bytes_per_core == 2 * 2 * size
    assert block != plain
    assert block.same_physical(plain)
    assert block.locate((69, 39)) == gl.results.Location((1, 0), (1, 1, 2, 7), 3143, None)
    assert plain.locate((69, 39)) == gl.results.Location((1, 0), (1, 1, 2, 7), 3143, 6286)
    # A change of the element type leaves the format of the old one behind.
    assert block.with_dtype("float32").nbytes == 2 * 2 * 2 * 32 * 32 * 4


# --- structure ---


@settings(quick, max_examples=examples(200))
@given(cases())
def test_axis_dims_spell_the_collapsed_index(case):
    brute, arguments = case
    layout = built(arguments)
    assert sorted(d for k in range(len(brute.grid)) for d in layout.axis_dims(k)) == list(
        range(len(brute.physical_shape))
    )
    for index in list(indices(brute.shape))[:40]:
        physical = brute.physical(index)
        for k, value in enumerate(brute.collapsed(index)):
            core, *digits = layout.axis_dims(k)
            sizes = [brute.physical_shape[d] for d in digits]
            weights = list(accumulate([1, *sizes[:0:-1]], lambda a, b: a * b))[::-1]
            inside = sum(physical[d] * w for d, w in zip(digits, weights, strict=True))
            assert physical[core] * brute.shard_shape[k] + inside == value


# shape, collapse or linear, grid rank, groups: each collapsed dim's logical dims, major first.
GROUPS = [
    ((2, 3, 4), {}, 2, ((0, 1), (2,))),  # tt-mlir: (d0 <> d1, d2)
    ((2, 3, 4, 5), {"collapse": [(1, -1)]}, 3, ((0,), (1, 2), (3,))),  # (d0, d1 <> d2, d3)
    ((3, 4), {"linear": "(d0, d1) -> (d0 + d1 * 5, 0)"}, 2, ((1, 0), ())),
    ((3, 4), {"linear": "(d0, d1) -> (d0 * -4 - d1 + 11, 0)"}, 2, ((0, 1), ())),
    # A dim in two results, tt-mlir "Multi-Core", and strides that overlap: no groups.
    ((8, 96, 32), {"linear": "(d0, d1, d2) -> (d0 * 96 + d1, d1, d2)"}, 3, ()),
    ((3, 4), {"linear": "(d0, d1) -> (d0 * 2 + d1, 0)"}, 2, ()),
]


@pytest.mark.parametrize(("shape", "collapse", "grid_rank", "groups"), GROUPS)
def test_groups(shape, collapse, grid_rank, groups):
    layout = gl.GridLayout(shape, grid=(1,) * grid_rank, **collapse)
    assert layout.groups == groups
    assert layout.grouped is (layout if groups else None)


def test_every_small_untiled_layout_of_rank_two():
    """Not a sample: all shapes to 4x5 on all grids to 3x3, with and without a 2x3 tile."""
    for shape in product(range(1, 5), range(1, 6)):
        for grid, tile in product(product(range(1, 4), repeat=2), (None, (2, 3))):
            brute = Brute(shape, grid, joined(shape, [(0, -1)], 2), tile)
            layout = gl.GridLayout(shape, grid=grid, tile=tile)
            rows, columns = np.indices(shape)
            expected = np.array([brute.physical(index) for index in indices(shape)]).T
            found = np.stack([np.broadcast_to(r, shape) for r in layout.index_map(rows, columns)])
            np.testing.assert_array_equal(found.reshape(len(expected), -1), expected)
            assert layout.padding_mask().sum() == prod(brute.physical_shape) - prod(shape)


def test_a_default_that_wastes_most_of_its_memory_warns_and_gives_both_ways_out():
    with pytest.warns(gl.LayoutWarning, match=r"33554432 positions for 262144 elements") as found:
        wasteful = gl.GridLayout((8, 128, 256), grid=(2, 2, 2))
    (warning,) = found
    assert warning.filename == __file__
    assert "collapse=[]" in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gl.GridLayout((8, 128, 256), grid=(2, 2, 2), collapse=[]).padding_share == 0
        text = "(d0, d1, d2) -> (d0 * 128 + d1, d1, d2)"
        assert gl.GridLayout((8, 128, 256), grid=(2, 2, 2), linear=text) == wasteful
        assert f"linear={text!r}" in str(warning.message)
        assert eval(repr(wasteful), {"GridLayout": gl.GridLayout}) == wasteful
        assert gl.parse(str(wasteful)) == wasteful
        assert wasteful.replace(oob=0).grid == (2, 2, 2)
        assert gl.GridLayout((5, 128, 256), grid=(2, 2)).padding_share < 0.5


def test_the_domain_of_the_inverse_is_the_image_of_the_map():
    for layout in (
        gl.GridLayout((5, 7), grid=(2, 4)),
        gl.GridLayout((5, 7), grid=(3, 2), tile=(2, 4)),
        gl.GridLayout((6,), grid=(2,), linear="(d0) -> (d0 * 2 + 1)"),
    ):
        domain, shape = layout.inverse.domain, layout.physical_shape
        image = {layout.index_map(*index) for index in np.ndindex(layout.shape)}
        around = product(*(range(-2, n + 3) for n in shape))
        assert {index for index in around if domain.contains(*index)} == image


def test_layouts_without_elements_hold_them_alike():
    a = gl.GridLayout((0, 4), grid=(2, 2), collapse=[])
    b = gl.GridLayout((0, 4), grid=(2, 2), linear="(d0, d1) -> (d0 * 3, d1)")
    assert a.physical_shape == b.physical_shape
    assert a.same_physical(b)


def test_the_share_of_padding_is_known_without_listing_elements():
    layout = gl.GridLayout(
        (2**31,), grid=(4, 4), linear=f"(d0) -> (d0 floordiv {2**29}, d0 mod {2**29})"
    )
    assert layout.padding_share == 0
