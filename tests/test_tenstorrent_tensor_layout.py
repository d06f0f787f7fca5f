"""tt-metal's `TensorLayout`: goldens of its unit tests, and its page mapping read with loops."""

import itertools
import json
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laid_out import assert_goes_round, indices

import gridlayout as gl
from gridlayout import tenstorrent
from gridlayout.tenstorrent import (
    as_2d,
    block_sharded,
    height_sharded,
    sharded_across,
    squeeze_rank,
    tensor_layout,
    width_sharded,
)

GOLDEN = json.loads((Path(__file__).parent / "golden" / "tenstorrent.json").read_text())
DTYPES = {"bf16": "bfloat16", "u32": "uint32", "f32": "float32"}


def ids(case):
    return json.dumps(case)[:60]


def page_of(words):
    """`TILE`, `RM`, `RM f32`, `TILE 16x16`: the arguments page, dtype and tile."""
    kind, *rest = words.split()
    found = {"page": "tile" if kind == "TILE" else "row_major"}
    if kind == "TILE" and rest:
        found["tile"] = tuple(map(int, rest[0].split("x")))
    dtype = DTYPES[rest[0]] if rest and rest[0] in DTYPES else "bfloat16"
    return dtype, found


# -- goldens: group E, test_tensor_layout.cpp --------------------------------------------------


@pytest.mark.parametrize("case", GOLDEN["E_ttmetal_tensor_layout"]["cases"], ids=ids)
def test_tensor_layout(case):
    page = {"TILE": "tile", "RM": "row_major"}[case["layout"]]
    layout = tensor_layout(case["shape"], DTYPES[case["dtype"]], page)
    assert list(layout.plane) == case["physical"]
    assert list(layout.alignment) == case["alignment"]
    assert list(layout.strides) == case["strides"]


def alignment_from(shape, padded):
    """tt-metal's `fromPaddedShape`: an outer alignment counts the rows inside it."""
    if shape == padded:
        return None
    found = list(padded[-2:])
    for n in reversed(padded[:-2]):
        found.insert(0, n * found[0])
    return found


@pytest.mark.parametrize(
    "case", GOLDEN["E_ttmetal_tensor_layout"]["padded_shape_roundtrip"], ids=ids
)
def test_padded_shapes(case):
    shape, padded = case
    layout = tensor_layout(shape, page="row_major", alignment=alignment_from(shape, padded))
    assert list(layout.padded_shape) == padded
    assert layout.plane == (prod(padded[:-1]), padded[-1])


def test_rank_0_of_rows():
    assert tensor_layout((), page="row_major").plane == (1, 1)


# -- goldens: group F, test_sharding_with_alignment.cpp ----------------------------------------

# What each logical shard is padded to, as a tile of the document model.
SIDES = {
    (15, 20): (16, 16),
    (3, 1): (1, 4),
    (10, 3): (1, 4),
    (48, 32): (32, 32),
    (5, 2): (7, 3),
}


@pytest.mark.parametrize("case", GOLDEN["F_ttmetal_shard_with_alignment"]["cases"], ids=ids)
def test_logical_shards_are_the_document_model(case):
    """Shards first, then padding: the removed mode, which `gl.GridLayout` expresses."""
    shape, dtype = case["shape"], "float32"
    if case["logical_shard"] == "interleaved":
        assert list(tensor_layout(shape, dtype).plane) == case["physical_shape"]
        return
    shard = tuple(case["logical_shard"])
    rows, columns = prod(shape[:-1]), shape[-1]
    grid = (-(-rows // shard[0]), -(-columns // shard[1]))
    layout = gl.GridLayout(shape, dtype, grid, SIDES[shard])
    padded = tuple(n * t for n, t in zip(layout.tile_counts, SIDES[shard], strict=True))
    assert layout.shard_shape == shard
    assert list(padded) == case["physical_shard"]
    assert [n * g for n, g in zip(padded, grid, strict=True)] == case["physical_shape"]


# -- goldens: group G, test_tensor_nd_sharding.cpp ---------------------------------------------

G = GOLDEN["G_ttmetal_nd_sharding"]


@pytest.mark.parametrize("case", G["core_info_round_robin"]["cases"], ids=ids)
def test_shards_of_cores(case):
    layout = tensor_layout(
        case["tensor_pages"],
        page="row_major",
        shard_shape=case["shard_pages"],
        cores=case["cores"],
    )
    assert list(layout.shards_per_core) == case["shards_per_core"]


@pytest.mark.parametrize("case", G["buffer_size"], ids=ids)
def test_buffer_size(case):
    layout = tensor_layout(case["shape"], "bfloat16", "tile", case["shard"], case["cores"])
    assert (layout.pages, layout.device_pages) == (case["pages"], case["dev_pages"])
    assert layout.bytes_per_core == case["bank_tiles"] * 2048
    assert layout.nbytes == case["dev_pages"] * 2048


METHODS = {"block": block_sharded, "height": height_sharded, "width": width_sharded}


@pytest.mark.parametrize("case", G["spec_methods_16_cores_4x4"]["cases"], ids=ids)
def test_spec_methods(case):
    dtype, options = page_of(case["layout"])
    if case["method"] in METHODS:
        layout = METHODS[case["method"]](case["shape"], dtype, (4, 4), **options)
    else:
        dims = json.loads(case["method"].removeprefix("across_dims"))
        layout = sharded_across(case["shape"], dtype, dims, (4, 4), **options)
    assert list(layout.shard_shape) == case["shard"]
    assert all(n <= 1 for n in layout.shards_per_core) or "across" in case["method"]
    assert gl.parse(str(layout)) == layout


ND = [
    # Rows as pages, but for the shape whose padding shows that it was tiled.
    (case, "tile" if case["shape"] == [128] else "row_major")
    for case in G["nd_to_legacy"]
]


@pytest.mark.parametrize(("case", "page"), ND, ids=lambda x: ids(x))
def test_nd_as_2d(case, page):
    columns, rows = case["grid_xy"]
    layout = tensor_layout(
        *(case["shape"], "bfloat16", page, case["nd"], (rows, columns)),
        distribution={"RR": "round_robin", "GRID_2D": "grid_2d"}[case["strategy"]],
    )
    found = as_2d(layout)
    if case["layout"] == "none":
        assert found is None
        return
    assert found.memory_layout == f"{case['layout'].lower()}_sharded"
    assert list(found.shard_shape) == case["two_d"]
    assert_same_places(layout, found)


# What divides the outermost dim of a shard may leave a rest; inside, a rest begins each index of
# the dims outside with a new shard, as no 2-D sharding does.
RESTS = [
    ((2, 3, 4), (2, 4), 3, "height_sharded"),
    ((1, 3, 4), (1, 2, 4), 2, "height_sharded"),
    ((2, 3, 4), (1, 2, 4), 4, None),
    ((2, 3, 4), (2, 2, 4), 4, None),
    ((4, 4, 4), (2, 2, 4), 32, None),  # a shard is no block of rows
    ((2, 4, 4), (1, 2, 4), 3, None),  # four shards
    ((6, 8), (2, 4), 6, None),  # a block sharding needs rows of cores
    ((6, 8), (2, 4), (3, 2), "block_sharded"),
    ((6, 8), (2, 4), (2, 3), None),
]


@pytest.mark.parametrize(("shape", "shard", "cores", "kind"), RESTS)
def test_rests(shape, shard, cores, kind):
    layout = tensor_layout(shape, "int8", "row_major", shard, cores)
    found = as_2d(layout)
    assert (found and found.memory_layout) == kind
    if found:
        assert_same_places(layout, found)
        assert as_2d(found) is found
    assert as_2d(tensor_layout(shape, "int8")) is None


def assert_same_places(one, other):
    assert one.bytes_per_core == other.bytes_per_core
    box = list(indices(one.shape))
    for index in box if len(box) < 500 else box[:: len(box) // 499]:
        a, b = one.locate(index), other.locate(index)
        assert (a.core, a.offset, a.byte) == (b.core, b.offset, b.byte)


@pytest.mark.parametrize("case", G["squeeze_rank"], ids=ids)
def test_squeeze_rank(case):
    assert squeeze_rank(case["t"], case["s"]) == (tuple(case["et"]), tuple(case["es"]))


# -- goldens: group H, test_buffer_distribution_spec.cpp ---------------------------------------


@pytest.mark.parametrize("case", GOLDEN["H_ttmetal_page_mapping"]["cases"], ids=ids)
def test_page_mapping(case):
    """Host pages, numbered row-major over the padded tensor, in the pages of each core."""
    tile = case["page"] == [32, 32]
    shape = tuple(case["tensor"])
    layout = tensor_layout(
        *(shape, "float32", "tile" if tile else "row_major", case["shard"], case["cores"])
    )
    volume = prod(case["page"])
    assert layout.page_shape == tuple(case["page"])
    expected = case["host_pages_by_core_null_is_pad"]
    found = [[None] * len(pages) for pages in expected]
    grid = [-(-shape[-2] // case["page"][0]), -(-shape[-1] // case["page"][1])]
    for index in indices(shape):
        page = index[0]
        for i, side, count in zip(index[1:], case["page"], grid, strict=True):
            page = page * count + i // side
        where = layout.locate(index)
        at = where.offset // volume
        assert found[where.core[0]][at] in (None, page)
        found[where.core[0]][at] = page
    # Cores without a shard have the same buffer, all padding.
    assert layout.pages_per_core == len(expected[0])
    assert found == expected


# -- the reference's words ---------------------------------------------------------------------

RULES = [
    (
        {
            "shape": (100, 16),
            "shard_shape": (32, 16),
            "cores": 3,
            "memory_layout": "height_sharded",
        },
        "Number of shards along height 4 must not exceed number of cores 3",
    ),
    (
        {
            "shape": (100, 20),
            "shard_shape": (32, 16),
            "cores": 4,
            "memory_layout": "height_sharded",
        },
        "Shard width 16 must match physical width 32 for height sharded",
    ),
    (
        {"shape": (40, 16), "shard_shape": (32, 16), "cores": 4, "memory_layout": "width_sharded"},
        "Shard height 32 must match physical height 64 for width sharded",
    ),
    (
        {"shape": (32, 80), "shard_shape": (32, 16), "cores": 4, "memory_layout": "width_sharded"},
        "Number of shards along width 5 must not exceed number of cores 4",
    ),
    ({"shape": (64, 64), "shard_shape": (24, 16)}, "must be tile .* sized"),
    ({"shape": (64, 64), "shard_shape": (16,)}, "must be tile .* sized"),
]


@pytest.mark.parametrize(("arguments", "rule"), RULES)
def test_refusals_of_tt_metal(arguments, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        tensor_layout(tile=(32, 16), **arguments)


def test_the_issues_tensor():
    """53x63 on 3x2: padded to 64x64 first, so the third row of cores is idle."""
    layout = tensor_layout(
        *((53, 63), "float32", "tile", (32, 32), (3, 2)), memory_layout="block_sharded"
    )
    assert layout.plane == (64, 64)
    assert layout.shards_per_core == (1, 1, 1, 1, 0, 0)
    assert layout.padding_per_core().tolist() == [[0, 32], [352, 373], [1024, 1024]]
    with pytest.raises(gl.LayoutError, match="width 2 must not exceed number of columns 1 for row"):
        layout.replace(cores=(3, 1))
    with pytest.raises(
        gl.LayoutError, match="height 2 must not exceed number of columns 1 for col"
    ):
        layout.replace(cores=(3, 1), orientation="col_major")


def test_pages_are_aligned_in_their_bank():
    layout = tensor_layout((5, 3), "float32", "row_major", cores=2, page_alignment=32)
    assert (layout.page_bytes, layout.pages_per_core, layout.bytes_per_core) == (12, 3, 96)
    where = layout.locate((4, 2))
    assert (where.core, where.offset, where.byte) == ((0,), 8, 2 * 32 + 8)
    tiles = tensor_layout((64, 64), "float32", cores=3, tile_format="bfp_bf8", page_alignment=64)
    assert (tiles.bytes_per_core, tiles.nbytes) == (2 * 1088, 6 * 1088)
    assert tiles.locate((1, 1)).byte is None


# -- brute force -------------------------------------------------------------------------------


def up(n, to):
    while n % to:
        n += 1
    return n


def flat(index, extents):
    found = 0
    for i, n in zip(index, extents, strict=True):
        found = found * n + i
    return found


def inside_tile(r, c, tile, order):
    if order == "swizzled":
        return r * tile[1] + c
    height = min(tile[0], 16)
    face = [r // height, c // 16]
    faces = [tile[0] // height, tile[1] // 16]
    element, extents = [r % height, c % 16], [height, 16]
    if order == "transposed":
        for pair in (face, faces, element, extents):
            pair.reverse()
    return flat(face, faces) * height * 16 + flat(element, extents)


def place(index, shape, page, shard, cores, options):
    """The core and the offset in it, by the words of the reference: one element at a time."""
    tile = options.get("tile", (32, 32)) if page == "tile" else None
    low = tile or (1, 1 if shard is None else shard[-1])
    rank = max(len(shape), len(tile or ()), len(shard or (0, 0)))
    shape = (1,) * (rank - len(shape)) + shape
    index = (0,) * (rank - len(index)) + index
    padded = (
        [*shape[:-2], up(shape[-2], low[0]), up(shape[-1], low[1])]
        if rank > 1
        else [up(shape[-1], low[1])]
    )
    shard = shard or tile or (1, padded[-1])
    lead = len(padded) - len(shard) + 1
    index = (flat(index[:lead], padded[:lead]), *index[lead:])
    padded = [prod(padded[:lead]), *padded[lead:]]
    grid = [up(n, s) // s for n, s in zip(padded, shard, strict=True)]
    at = [i // s for i, s in zip(index, shard, strict=True)]
    rest = [i % s for i, s in zip(index, shard, strict=True)]
    if options.get("distribution") == "grid_2d":
        core, slot = [flat(at[:-1], grid[:-1]), at[-1]], 0
        if options.get("orientation") == "col_major":
            core.reverse()
    else:
        slot, k = divmod(flat(at, grid), prod(cores))
        core = [k]
        if len(cores) == 2:
            column_major = options.get("orientation") == "col_major"
            core = [k % cores[0], k // cores[0]] if column_major else list(divmod(k, cores[1]))
    if tile is None:
        return tuple(core), slot * prod(shard) + flat(rest, shard)
    pages = [*shard[:-2], shard[-2] // tile[0], shard[-1] // tile[1]]
    page_index = [*rest[:-2], rest[-2] // tile[0], rest[-1] // tile[1]]
    element = inside_tile(
        rest[-2] % tile[0], rest[-1] % tile[1], tile, options.get("tile_order", "faces")
    )
    number = slot * prod(pages) + flat(page_index, pages)
    return tuple(core), number * prod(tile) + element


@st.composite
def cases(draw):
    rank = draw(st.integers(0, 4))
    shape = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    page = draw(st.sampled_from(["tile", "row_major"]))
    options, sides = {}, (1, 1)
    if page == "tile":
        sides = draw(st.sampled_from([(1, 16), (2, 16), (4, 16), (2, 32)]))
        order = draw(st.sampled_from(["faces", "transposed", "swizzled"]))
        options = {"tile": sides, "tile_order": order}
    shape = shape[:-1] + tuple(n * draw(st.integers(1, 9)) for n in shape[-1:])
    padded_rank = max(rank, 2 if page == "tile" else 1)
    shard, shards_rank = None, 0
    if draw(st.booleans()):
        least = 2 if page == "tile" else 1
        shards_rank = draw(st.integers(least, max(padded_rank, least)))
        shard = [draw(st.integers(1, 3)) for _ in range(shards_rank)]
        shard[-1] *= sides[1]
        if page == "tile":
            shard[-2] *= sides[0]
        shard = tuple(shard)
    cores = draw(st.sampled_from([(1,), (3,), (2, 2), (2, 3)]))
    if len(cores) == 2:
        options["orientation"] = draw(st.sampled_from(["row_major", "col_major"]))
        if shards_rank > 1 and draw(st.booleans()):
            options["distribution"] = "grid_2d"
            cores = None
    return shape, page, shard, cores, options


@given(cases())
def test_against_brute_force(case):
    shape, page, shard, cores, options = case
    layout = tensor_layout(shape, "float32", page, shard, cores, **options)
    seen = {}
    for index in indices(shape):
        where = layout.locate(index)
        assert (where.core, where.offset) == place(index, shape, page, shard, layout.cores, options)
        assert where.byte == 4 * where.offset
        assert layout.logical_index((*where.core, *where.local)) == index
        seen[(*where.core, *where.local)] = index
    assert len(seen) == prod(shape)
    assert {tuple(p) for p in np.argwhere(~layout.padding_mask()).tolist()} == set(seen)
    assert sum(layout.shards_per_core) == layout.shards
    assert layout.bytes_per_core == 4 * prod(layout.local_shape)
    for one in (layout, layout.with_oob(float("inf")), layout.with_dtype("bfloat16")):
        assert gl.parse(str(one)) == one == eval(repr(one), {"tenstorrent": tenstorrent, **FLOAT})
        assert layout.same_physical(one)
    two = as_2d(layout)
    if two is not None:
        assert_same_places(layout, two)


FLOAT = {"float": float}


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
    st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
)
def test_squeezing_keeps_every_page_in_its_place(tensor, shard):
    if len(shard) > len(tensor):
        with pytest.raises(gl.LayoutError, match="more dims than the tensor"):
            squeeze_rank(tensor, shard)
        return
    lead = len(tensor) - len(shard)
    folded = (prod(tensor[: lead + 1]), *tensor[lead + 1 :])
    pairs = []
    for t, s in ((folded, shard), squeeze_rank(tensor, shard)):
        grid = [up(n, k) // k for n, k in zip(t, s, strict=True)]
        pairs.append(
            [
                (
                    flat([i // k for i, k in zip(index, s, strict=True)], grid),
                    flat([i % k for i, k in zip(index, s, strict=True)], s),
                )
                for index in itertools.product(*map(range, t))
            ]
        )
    assert pairs[0] == pairs[1]


# -- running -----------------------------------------------------------------------------------

EXAMPLES = {
    "interleaved": tensor_layout((3, 40, 33), cores=3, tile=(16, 16)),
    "interleaved rows": tensor_layout((5, 7), page="row_major", cores=(2, 2)),
    "round robin": tensor_layout((2, 3, 32), "float32", "row_major", (2, 4, 16), 2),
    "several a core": tensor_layout((5, 40, 20), "float32", "tile", (2, 16, 16), 3, tile=(8, 16)),
    "block": block_sharded((53, 63), "float32", (3, 2), tile=(16, 16), orientation="col_major"),
    "height": height_sharded((2, 50, 17), "float32", 4, "row_major"),
    "transposed": tensor_layout((33, 64), tile_order="transposed", cores=2),
    "outer alignment": tensor_layout((3, 5, 7), page="row_major", alignment=(16, 8, 4)),
    "rank 0": tensor_layout((), cores=2),
    "nothing": tensor_layout((2, 0, 3), "float32", "tile", (1, 32, 32), 2),
    "no columns": tensor_layout((2, 0), "float32", "row_major"),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", EXAMPLES)
def test_runs(name):
    assert_goes_round(EXAMPLES[name])
    assert gl.parse(str(EXAMPLES[name])) == EXAMPLES[name]


# -- refusals ----------------------------------------------------------------------------------

BAD = [
    ({"page": "tiles"}, "page 'tiles' is not one of tile, row_major"),
    ({"page": None}, "page None"),
    ({"tile": (24, 32)}, "tile .24, 32. is not one of 32x32, 16x32"),
    ({"tile": 32}, "rank 2"),
    ({"page": "row_major", "tile": (32, 32)}, "row-major pages have no tiles"),
    ({"page": "row_major", "tile_order": "faces"}, "row-major pages have no tiles"),
    ({"page": "row_major", "tile_format": "bfp_bf8"}, "row-major pages have no tiles"),
    ({"tile_format": "bfp_bf9"}, "is not one of bfp_bf8"),
    ({"tile": (16, 32), "tile_format": "bfp_bf8"}, "needs tile"),
    ({"tile_order": "rows"}, "tile_order 'rows' is not one of faces, swizzled, transposed"),
    ({"shard_shape": (0, 32)}, "all >= 1"),
    ({"shard_shape": (32, True)}, "whole numbers"),
    ({"shard_shape": (1, 1, 32, 32)}, "has rank 4, more than the padded tensor"),
    ({"shard_shape": (32, 32), "memory_layout": "interleaved"}, "has no shards"),
    ({"memory_layout": "nd_sharded"}, "needs a shard_shape"),
    ({"memory_layout": "sharded"}, "is not one of interleaved"),
    ({"shard_shape": (1, 32, 32), "memory_layout": "block_sharded"}, "must have rank 2"),
    ({"shard_shape": (32, 32), "memory_layout": "block_sharded", "cores": 4}, "rows, columns"),
    (
        {"shard_shape": (32, 64), "memory_layout": "height_sharded", "distribution": "grid_2d"},
        "must be 'round_robin'",
    ),
    ({"shard_shape": (8,), "page": "row_major", "distribution": "grid_2d"}, "rank 2 or more"),
    ({"shard_shape": (32, 32), "distribution": "2d"}, "distribution '2d' is not one of"),
    ({"orientation": "rows"}, "orientation 'rows' is not one of"),
    ({"orientation": "col_major", "cores": 4}, "give .rows, columns."),
    ({"cores": 0}, "all >= 1"),
    ({"cores": True}, "whole numbers"),
    ({"cores": 2.0}, "whole numbers"),
    ({"cores": "4"}, "whole numbers"),
    ({"cores": (2, 2, 2)}, "a number, or rows and columns"),
    ({"cores": 2**63}, "over 2..62"),
    ({"alignment": (0, 32)}, "all >= 1"),
    ({"alignment": (48, 32, 32), "shape": (2, 30, 30)}, "48 of a dim whose indices hold 32 rows"),
    (
        {"alignment": (1, 32, 32), "shape": (2, 30, 30), "shard_shape": (32, 32)},
        "must be interleaved if its alignment has rank > 2",
    ),
    ({"page_alignment": 0}, "all >= 1"),
    ({"page_alignment": "16"}, "whole numbers"),
    ({"shape": (-1, 2)}, ">= 0"),
    ({"shape": (2**40, 2**40)}, "2..62"),
    ({"dtype": "float12"}, "not known"),
]


@pytest.mark.parametrize(("bad", "rule"), BAD)
def test_refusals(bad, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        tensor_layout(**{"shape": (64, 64), **bad})


def test_shardings_take_the_distribution_of_shards():
    found = sharded_across((64, 128), "float32", [0, 1], (2, 4), distribution="grid_2d")
    assert (found.distribution, found.shard_shape) == ("grid_2d", (32, 32))
    assert found.locate((32, 64)).core == (1, 2)
    blocks = block_sharded((64, 128), "float32", (2, 4), distribution="grid_2d")
    assert blocks == block_sharded((64, 128), "float32", (2, 4))
    with pytest.raises(gl.LayoutError, match="'grid_2d' of height_sharded must be 'round_robin'"):
        height_sharded((64, 128), "float32", (2, 4), distribution="grid_2d")


def test_refusals_of_shardings():
    with pytest.raises(gl.LayoutError, match="dim 2 is outside the padded shape's 2 dims"):
        sharded_across((64, 64), "float32", [2], 4)
    with pytest.raises(gl.LayoutError, match="sequence of whole numbers"):
        sharded_across((64, 64), "float32", 1, 4)
    with pytest.raises(gl.LayoutError, match=r"must be \(rows, columns\)"):
        block_sharded((64, 64), "float32", 4)
    with pytest.raises(gl.LayoutError, match="all >= 1"):
        squeeze_rank((2, 2), (0, 1))


TEXT = str(EXAMPLES["several a core"].with_oob(0))


def test_text():
    assert TEXT == (
        "tenstorrent.tensor_layout((5, 40, 20), 'float32', 'tile', shard_shape=(2, 16, 16), "
        "cores=(3,), tile=(8, 16), oob=0.0)"
    )
    with pytest.raises(gl.LayoutError, match=r"column 1: .*must be tile \(8, 16\) sized"):
        gl.parse(TEXT.replace("(2, 16, 16)", "(2, 9, 16)"))


@given(st.integers(0, len(TEXT)), st.text("()0123456789, ='-*.e", max_size=3))
def test_damaged_text_is_a_layout_or_an_error(at, new):
    try:
        layout = gl.parse(TEXT[:at] + new + TEXT[at + len(new) // 2 :])
    except gl.LayoutError:
        return
    assert gl.parse(str(layout)) == layout
