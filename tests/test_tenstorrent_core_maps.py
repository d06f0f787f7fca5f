"""Core maps: the compiler's maps of virtual grids, and every core by counting."""

import itertools
import json
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridlayout as gl
from gridlayout.tenstorrent import BLACKHOLE, WORMHOLE, device_map, dram_map, physical_grid

GOLDEN = json.loads((Path(__file__).parent / "golden" / "tenstorrent.json").read_text())
D = GOLDEN["D_device_maps"]


def box(shape):
    return itertools.product(*map(range, shape))


def golden_map(text, rank):
    """A map of the golden file, which gives its dims only sometimes."""
    dims = ", ".join(f"d{k}" for k in range(rank))
    return gl.AffineMap.parse(f"({dims}) -> {text.rpartition('->')[2]}")


def of_case(case):
    grid, _, word = case["grid"].partition(" ")
    grid = tuple(map(int, grid.split("x")))
    mesh = None if case["mesh"] == "1" else tuple(map(int, case["mesh"].split("x")))
    options = {"transposed": {"transpose": True}, "staircase": {"skew": 1}}.get(word, {})
    return grid, device_map(grid, mesh, tuple(D["physical_grid"]), **options)


@pytest.mark.parametrize("case", D["cases"], ids=lambda c: f"{c['grid']} on {c['mesh']}")
def test_device_maps(case):
    grid, found = of_case(case)
    expected = golden_map(case["v2p"], len(grid))
    if len(expected.results) == 2:  # the transposed and the flat cases leave device 0 out
        expected = gl.AffineMap(len(grid), (0, *expected.results))
    for core in box(grid):
        assert found.forward(*core) == expected(*core)
    back = golden_map(case["p2v"], 3)
    for place in box((found.devices, *found.rectangle)):
        assert found.inverse(*place) == back(*place)


# The maps that the compiler writes in other words: it adds the columns' devices before the rows',
# and keeps a d0 that can only be 0.
OTHER_WORDS = {
    "16x32": "(d0, d1) -> ((d0 floordiv 8) * 4 + d1 floordiv 8, d0 mod 8, d1 mod 8)",
    "32x16": "(d0, d1) -> ((d0 floordiv 8) * 2 + d1 floordiv 8, d0 mod 8, d1 mod 8)",
    "1x64": "(d0, d1) -> (0, d1 floordiv 8, d1 mod 8)",
}


@pytest.mark.parametrize("case", D["cases"], ids=lambda c: f"{c['grid']} on {c['mesh']}")
def test_texts(case):
    grid, found = of_case(case)
    theirs = str(golden_map(case["v2p"], len(grid)))
    assert str(found.forward) == OTHER_WORDS.get(case["grid"], theirs)


@pytest.mark.parametrize("case", D["virtual_grid_d2m"][:2], ids=lambda c: str(c["grid"]))
def test_virtual_grids(case):
    grid, physical = tuple(case["grid"]), tuple(case["physical"])
    found = device_map(grid)
    assert found.rectangle == physical
    # Shard dims pass through: the first results are the core's.
    text, rank = case.get("forward"), 4
    if text is None:
        text, rank = case["forward_grid"], 2
    expected = golden_map(text, rank)
    for core in box(grid):
        values = expected(*core, *(0,) * (rank - 2))
        assert found.forward(*core)[1:] == (values[:2] if rank == 4 else values[1:])
    back = golden_map(case["inverse"], 2)
    for y, x in box(physical):
        assert (0, *found.inverse(0, y, x)) == back(y, x)


def test_the_same_grid_on_two_chips():
    """1x12 needs a rectangle on Wormhole, and none on Blackhole, which is 13 cores wide."""
    assert D["virtual_grid_d2m"][2]["grid"] == [1, 12]
    assert device_map((1, 12), chip_grid=WORMHOLE.grid).rectangle == (3, 4)
    blackhole = device_map((1, 12), chip_grid=BLACKHOLE.grid)
    assert blackhole.rectangle == (1, 12)
    assert blackhole.forward == gl.AffineMap.parse("(d0, d1) -> (0, d0, d1)").simplify((1, 12))


# findLegalPhysicalGridForVolume on 8x8
@pytest.mark.parametrize(
    ("cores", "rectangle"),
    [(64, (8, 8)), (40, (5, 8)), (48, (6, 8)), (24, (4, 6)), (12, (3, 4)), (7, (1, 7))],
)
def test_rectangles(cores, rectangle):
    assert physical_grid(cores) == rectangle


@given(st.integers(1, 140), st.integers(1, 13), st.integers(1, 13))
def test_rectangles_are_the_squarest_that_fit(cores, rows, columns):
    fit = [(r, c) for r in range(1, rows + 1) for c in range(1, columns + 1) if r * c == cores]
    if not fit:
        with pytest.raises(gl.LayoutError, match=r"form no rectangle|are more than"):
            physical_grid(cores, (rows, columns))
        return
    found = physical_grid(cores, (rows, columns))
    assert found in fit
    assert min(found) == max(map(min, fit))


@st.composite
def maps(draw):
    rank = draw(st.integers(1, 4))
    local = draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=rank, max_size=rank))
    mesh = draw(st.lists(st.sampled_from([1, 2, 3]), min_size=rank, max_size=rank))
    chip = draw(st.sampled_from([(8, 8), (10, 13), (4, 12)]))
    return tuple(local), tuple(mesh), chip, draw(st.booleans()), draw(st.integers(-3, 3))


def flat(index, sizes):
    found = 0
    for i, n in zip(index, sizes, strict=True):
        found = found * n + i
    return found


@given(maps())
def test_every_core_by_counting(case):
    local, mesh, chip, transpose, skew = case
    grid = tuple(n * m for n, m in zip(local, mesh, strict=True))
    try:
        found = device_map(grid, mesh, chip, transpose=transpose, skew=skew)
    except gl.LayoutError:
        turned = chip[::-1] if transpose else chip
        volume = prod(local)
        assert not any(
            volume % r == 0 and r <= turned[0] and volume // r <= turned[1]
            for r in range(1, volume + 1)
        )
        return
    assert all(n <= limit for n, limit in zip(found.rectangle, chip, strict=True))
    width = found.rectangle[0 if transpose else 1]
    seen = set()
    for core in box(grid):
        device = flat([i // n for i, n in zip(core, local, strict=True)], mesh)
        y, x = divmod(flat([i % n for i, n in zip(core, local, strict=True)], local), width)
        x = (x + skew * y) % width
        place = (device, x, y) if transpose else (device, y, x)
        assert found.forward(*core) == place
        assert found.inverse(*place) == core
        seen.add(place)
    assert seen == set(box((found.devices, *found.rectangle)))


@given(st.integers(1, 13), st.integers(1, 9), st.integers(0, 9), st.integers(0, 500))
def test_interleaved_pages_by_counting(banks, page_bytes, base, address):
    found = dram_map(banks, page_bytes, base)
    used = [base] * banks  # deal the pages one by one
    for page in range(address // page_bytes):
        used[page % banks] += page_bytes
    bank = address // page_bytes % banks
    assert found(address) == (bank, used[bank] + address % page_bytes)


def test_interleaved_pages_are_those_of_the_tensor_layout():
    layout = gl.tenstorrent.tensor_layout((5, 7), "float32", "row_major", cores=3)
    address = dram_map(3, layout.page_bytes)
    for r, c in box((5, 7)):
        where = layout.locate((r, c))
        assert (*where.core, where.byte) == address((r * 7 + c) * 4)


BAD = [
    ({"grid": (1, 37)}, "37 cores form no rectangle on a chip of 8x8"),
    ({"grid": (1, 128)}, "128 cores are more than the 8x8"),
    ({"grid": (8, 8), "mesh": (3, 1)}, "must have the rank of the grid .* and divide it"),
    ({"grid": (8, 8), "mesh": (2,)}, "must have the rank"),
    ({"grid": ()}, "at least one number"),
    ({"grid": (0, 8)}, "all >= 1"),
    ({"grid": (True, 8)}, "whole numbers"),
    ({"grid": "8x8"}, "whole numbers"),
    ({"grid": (2**40, 2**40)}, "more than 2..62 cores"),
    ({"grid": (8, 8), "chip_grid": (8, 8, 8)}, "must be rows and columns"),
    ({"grid": (8, 8), "chip_grid": WORMHOLE}, "sequence"),
    ({"grid": (8, 8), "skew": 1.5}, "skew 1.5 must be a whole number"),
    ({"grid": (8, 8), "skew": 2**40}, "must be a whole number of columns"),
    ({"grid": (8, 8), "skew": True}, "skew True"),
]


@pytest.mark.parametrize(("bad", "rule"), BAD)
def test_refusals(bad, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        device_map(**bad)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((0, 32), "all >= 1"),
        ((12, 2.5), "whole numbers"),
        ((12, 2048, -1), "base -1"),
        ((12, 2048, True), "base True"),
        ((2**40, 2**40), "more than 2..62"),
    ],
)
def test_refusals_of_pages(arguments, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        dram_map(*arguments)


# -- group J: what of tt-metal's mesh distribution is a layout ---------------------------------


def test_shards_on_two_mesh_axes():
    """`[1,2,4,3]` with [Shard(1), Shard(2)] on 2x4: device i holds slice i, row-major."""
    assert "[Shard(1),Shard(2)] -> device i" in GOLDEN["J_mesh"]["cases"][1]
    layout = gl.GridLayout((1, 2, 4, 3), "float32", (1, 2, 4, 1), collapse=[])
    for index in box(layout.shape):
        assert layout.locate(index).core == (0, index[1], index[2], 0)
    # The others are no layouts of one tensor: copies (Replicate), composition of results by
    # concatenation, and refusals, among them that of uneven parts, which a layout pads.
