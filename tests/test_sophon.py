"""Sophon's local and system memory against the document: its figures, its formulas, recorded cases.

The judge is `Reading`, the document's arithmetic element by element; it shares no code with the
library. `golden/sophon.json` holds what the kernel library and its compiler compute.
"""

import copy
import itertools
import json
import pickle
import re
from itertools import groupby
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laid_out import choices, indices, packed, poison, poisoned
from sophon_reading import (
    PLAIN,
    TOY,
    Reading,
    chips,
    locals_,
    matrices,
    place,
    reading,
    systems,
)
from tiers import examples

import gridlayout as gl
from gridlayout import sophon
from gridlayout.sophon import BM1684, BM1684X, BM1688, BM1690, Chip, local, matrix, system

GOLDEN = json.loads((Path(__file__).parent / "golden" / "sophon.json").read_text(encoding="utf-8"))
CHIPS = {"okk_toy": TOY, "BM1684": BM1684, "BM1684X": BM1684X, "BM1688": BM1688, "BM1690": BM1690}
DTYPES = {"fp32": "float32", "fp16": "float16", "int16": "int16", "int8": "int8"}
PATHS = ("program", "gather")

# Weights in orders of another kind: blocks of 64, 32, 4 or 3 input channels that a compiler makes
# for its convolution units. They are neither a storage mode of the document nor a strided tensor.
NO_LAYOUT_OF_THE_DOCUMENT = {"weight_reorder", "alignIC_local"}


def golden(*kinds):
    return [pytest.param(c, id=c["id"]) for c in GOLDEN["cases"] if c["kind"] in kinds]


def test_every_recorded_case_is_a_test_or_no_layout_of_the_document():
    tested = {
        *("address", "scatter", "tensor", "strides", "matrix", "matrix_scan", "xn_mode", "2ic"),
        *("memory_plan", "channel_shift", "unified_c_offset", "bank", "bank_range"),
        *("lmem_bytes", "gmem_bytes", "overlap", "validity", "fit"),
    }
    kinds = {case["kind"] for case in GOLDEN["cases"]}
    assert kinds == tested | NO_LAYOUT_OF_THE_DOCUMENT


def numbered(layout):
    return np.arange(1, layout.size + 1).astype(layout.dtype).reshape(layout.shape)


# --- the document's figures: which blocks of which NPU hold an element ---


def blocks(layout, npu):
    """One NPU's 4-byte blocks as runs: "20# 12." is twenty that hold elements, then twelve empty.

    The blocks are those of the allocation.
    """
    held = [False] * (layout.bytes_per_core // 4)
    for index in indices(layout.shape):
        core, byte = place(layout, index)
        if core == npu:
            held[(byte - layout.offset) // 4] = True
    return " ".join(f"{len(list(run))}{'#' if on else '.'}" for on, run in groupby(held))


SPARSE = "1# 1. 1# 1. 1# 1. 1#"  # four columns, W stride 2: seven blocks
FEATURE = f"{SPARSE} 9. {SPARSE} 9. {SPARSE}"  # three rows, H stride 16: 39 blocks
TEN = " ".join(["1# 1."] * 9 + ["1#"])  # ten columns, W stride 2: nineteen blocks

FIGURES = [
    # figure, layout, the blocks of each NPU
    (
        "stride_local_0",
        local((2, 5, 3, 4), "float32", strides=(120, 56, 16, 2), chip=TOY),
        [
            # channels 0 and 4, C stride 56; then the same for n = 1, N stride 120
            f"{FEATURE} 17. {FEATURE} 25. {FEATURE} 17. {FEATURE} 25.",
            *[f"{FEATURE} 81. {FEATURE} 81."] * 3,
        ],
    ),
    (
        "stride_local_1",
        local((2, 3, 1, 10), "float32", strides=(120, 0, 0, 2), start=1024, chip=TOY),
        ["240.", *[f"{TEN} 101. {TEN} 101."] * 3],
    ),
    (
        "align_fp32_start_0_2_3_4_5",
        local((2, 3, 4, 5), "float32", chip=TOY),
        [*["20# 12. 20# 12."] * 3, "64."],
    ),
    (
        "align_fp32_start_2_2_3_4_5",
        local((2, 3, 4, 5), "float32", start=2048, chip=TOY),
        ["32. 20# 44. 20# 12.", "128.", *["20# 44. 20# 44."] * 2],
    ),
    (
        "compact_fp32_start_0_2_3_4_5",
        local((2, 3, 4, 5), "float32", "compact", chip=TOY),
        [*["40#"] * 3, "40."],
    ),
    (
        "compact_fp32_start_2_2_3_4_5",
        local((2, 3, 4, 5), "float32", "compact", start=2048, chip=TOY),
        ["20. 20# 20. 20#", "80.", *["20# 20. 20# 20."] * 2],
    ),
    ("matrix_w_40", matrix(2, 40, 40, "float32", chip=TOY), ["40# 24. 40# 24.", *["128."] * 3]),
    (
        "matrix_w_20",
        matrix(2, 40, 20, "float32", chip=TOY),
        [*["20# 12. 20# 12."] * 2, *["64."] * 2],
    ),
    ("matrix_w_10", matrix(2, 40, 10, "float32", chip=TOY), ["10# 22. 10# 22."] * 4),
    (
        "matrix_w_8",
        matrix(2, 40, 8, "float32", chip=TOY),
        ["8# 24. 8# 24. 8# 24. 8# 24.", *["8# 56. 8# 56."] * 3],
    ),
    (
        "matrix_w_15",
        matrix(2, 40, 15, "float32", chip=TOY),
        [*["15# 17. 15# 17."] * 2, "10# 22. 10# 22.", "64."],
    ),
    (
        "matrix_w_6",  # channels 0..6; the last has 40 - 6 * 6 = 4 columns, on NPU 2
        matrix(2, 40, 6, "float32", chip=TOY),
        [
            *["6# 26. 6# 26. 6# 26. 6# 26."] * 2,
            "6# 26. 4# 28. 6# 26. 4# 28.",
            "6# 58. 6# 58.",
        ],
    ),
    (
        "aligned_4N",
        local((6, 5, 4, 5), "int8", storage="4N", chip=TOY),
        ["20# 12. 20# 12. 20# 12. 20# 12.", *["20# 44. 20# 44."] * 3],
    ),
    (
        "aligned_2N",
        local((3, 5, 4, 5), "int16", storage="2N", chip=TOY),
        ["20# 12. 20# 12. 20# 12. 20# 12.", *["20# 44. 20# 44."] * 3],
    ),
]


@pytest.mark.parametrize(("layout", "npus"), [f[1:] for f in FIGURES], ids=[f[0] for f in FIGURES])
def test_figures(layout, npus):
    assert [blocks(layout, npu) for npu in range(4)] == npus


def test_which_element_a_block_of_stride_local_0_holds():
    layout = FIGURES[0][1]
    found = {place(layout, index): index for index in indices(layout.shape)}
    assert found[0, 4 * 2] == (0, 0, 0, 1)  # W stride 2
    assert found[0, 4 * 16] == (0, 0, 1, 0)  # H stride 16
    assert found[0, 4 * 56] == (0, 4, 0, 0)  # C stride 56: from c to c + 4
    assert found[0, 4 * 120] == (1, 0, 0, 0)  # N stride 120
    assert found[3, 4 * (120 + 32 + 6)] == (1, 3, 2, 3)
    assert layout.logical_index((0, 3)) is None  # an empty block


def test_what_the_words_of_a_4n_tensor_hold():
    layout = local((6, 5, 4, 5), "int8", storage="4N", chip=TOY)
    assert layout.view_shape == (2, 5, 4, 5)
    assert layout.dummies == 2  # "4 - (6 mod 4) = 2 dummy elements"
    word = 64 * 4  # (1, 0, 0, 0) of the view
    held = [layout.logical_index((0, word + lane)) for lane in range(4)]
    assert held == [(4, 0, 0, 0), (5, 0, 0, 0), None, None]
    # The document says "int8" of this example, of int16 elements: a slip.
    layout = local((3, 5, 4, 5), "int16", storage="2N", chip=TOY)
    assert [layout.logical_index((0, 128 + lane)) for lane in range(2)] == [(2, 0, 0, 0), None]
    assert layout.dummies == 1


# --- recorded cases ---


def chip_of(case, alignment=128):
    """The chip that a case names, or one with the sizes it gives."""
    if "chip" in case:
        return CHIPS[case["chip"]]
    return Chip(npus=case["X"], npu_bytes=case.get("S", 1024), alignment=alignment)


def test_chips():
    for name, facts in GOLDEN["chips"].items():
        chip = CHIPS[name]
        assert (chip.npus, chip.npu_bytes) == (facts["X"], facts["S"])
        assert (chip.alignment, chip.banks) == (facts["eu_bytes"], facts["banks"])
        text = "Chip(npus=4, npu_bytes=1024, alignment=128)" if chip is TOY else name
        assert repr(chip) == f"sophon.{text}"


@pytest.mark.parametrize("case", golden("address"))
def test_address(case):
    chip = chip_of(case)
    assert chip.split(case["address"]) == (case["npu"], case["offset"])
    layout = local((1, 1, 1, 1), "float32", "compact", start=case["address"], chip=chip)
    assert place(layout, (0, 0, 0, 0)) == (case["npu"], case["block4"] * 4)
    assert layout.address((0, 0, 0, 0)) == case["address"]


@pytest.mark.parametrize("case", golden("scatter"))
def test_scatter(case):
    chip = chip_of(case)
    layout = local((2, case["C"], 2, 3), "float32", start=case["start_npu"] * 1024, chip=chip)
    assert layout.channels_per_npu == case["channels_per_npu"]
    where = [layout.scatter(c) for c in range(case["C"])]
    assert where == list(zip(case["npu_of_channel"], case["slot_of_channel"], strict=True))
    rows = [[npu for npu, slot in where if slot == row] for row in range(case["channels_per_npu"])]
    empty = [[npu for npu in range(chip.npus) if npu not in row] for row in rows]
    assert empty == case["empty_npus_per_row"]


@pytest.mark.parametrize("case", golden("tensor"))
def test_tensor(case):
    strided = case["layout"] == "strided"
    layout = local(
        case["shape"],
        DTYPES[case["dtype"]],
        None if strided else case["layout"],
        case["strides"] if strided else None,
        case["address"],
        chip=chip_of(case),
    )
    assert layout.strides == tuple(case["strides"])
    assert (layout.start_npu, layout.offset) == (case["start_npu"], case["offset_in_npu"])
    assert layout.channels_per_npu == case["channels_per_npu"]
    assert list(layout.strides_without_meaning) == case["strides_without_meaning"]
    assert layout.bytes_per_core == case["alloc_bytes_per_npu"]
    assert layout.span_bytes == case["span_bytes_per_npu"]
    assert layout.size * case["itemsize"] == case["used_bytes"]
    assert bool(layout.fits()) is case["fits"]
    assert [index for *index, _, _, _ in case["elements"]] == list(map(list, indices(layout.shape)))
    for *index, npu, byte, address in case["elements"]:
        assert place(layout, index) == (npu, byte)
        assert layout.address(index) == address


@pytest.mark.parametrize("case", golden("strides"))
def test_strides(case):
    if case["layout"] == "continuous":
        assert system(case["shape"], "float32").strides == tuple(case["strides"])
        return
    chip = chip_of(case)
    name = {"line": "line_aligned"}.get(case["layout"], case["layout"])
    start = case["start_npu"] * chip.npu_bytes
    layout = local(case["shape"], DTYPES[case["dtype"]], name, start=start, chip=chip)
    assert layout.strides == tuple(case["strides"])
    assert layout.channels_per_npu == case["channels_per_npu"]
    if "npu_of_channel" in case:
        where = zip(case["npu_of_channel"], case["slot_of_channel"], strict=True)
        assert [layout.scatter(c) for c in range(case["shape"][1])] == list(where)
    else:
        assert layout.bytes_per_core == case["alloc_bytes_per_npu"]
        assert bool(layout.fits()) is case["fits"]


@pytest.mark.parametrize("case", golden("matrix"))
def test_matrix(case):
    layout = matrix(case["rows"], case["cols"], case["W"], "float32", chip=chip_of(case))
    assert layout.view_shape == tuple(case["tensor_shape"])
    assert layout.strides == tuple(case["strides"])
    assert layout.channels_per_npu == case["channels_per_npu"]
    assert layout.strides[0] == case["row_blocks_per_npu"]
    assert layout.last_channel_width == case["last_channel_elems"]
    assert layout.bytes_per_core == case["alloc_bytes_per_npu"]
    columns = [place(layout, (0, m))[0] for m in range(case["cols"])]
    assert [columns.count(npu) for npu in range(case["X"])] == case["cols_per_npu"]
    assert len(case["elements"]) == layout.size
    for row, column, npu, byte in case["elements"]:
        assert place(layout, (row, column)) == (npu, byte)


@pytest.mark.parametrize("case", golden("matrix_scan"))
def test_matrix_scan(case):
    rows = {int(w): n for w, n in case["blocks_per_row_per_npu"].items()}
    found = {w: matrix(1, case["M"], w, "float32", chip=TOY).strides[0] for w in rows}
    assert found == rows
    best = sophon.best_width(1, case["M"], "float32", TOY)
    assert best.width == min(case["W_with_min"])
    assert best.row_bytes == case["min_blocks"] * 4


@pytest.mark.parametrize("case", golden("xn_mode"))
def test_storage_mode(case):
    layout = local(
        case["shape"],
        case["dtype"],
        case["layout"],
        start=case["start_npu"] * case["S"] + case["offset_in_npu"],
        storage=case["mode"],
        chip=chip_of(case),
    )
    assert layout.storage == case["mode"]
    assert layout.view_shape == tuple(case["view_shape"])
    assert layout.strides == tuple(case["strides_view"])
    assert layout.channels_per_npu == case["channels_per_npu"]
    assert layout.bytes_per_core == case["alloc_bytes_per_npu"]
    assert layout.dummies == case["dummy_per_position"]
    view = layout.view_shape
    assert layout.dummies * view[1] * view[2] * view[3] == case["dummy_elements_total"]
    for group, lane in case["dummy_lanes"]:
        n_stride, *_ = layout.strides
        physical = (layout.start_npu, (group * n_stride) * layout.lanes + lane)
        assert layout.logical_index(physical) is None
        assert group * layout.lanes + lane >= layout.shape[0]
    assert len(case["elements"]) == layout.size
    for *index, npu, byte, address in case["elements"]:
        assert place(layout, index) == (npu, byte)
        assert layout.address(index) == address


@pytest.mark.parametrize("case", golden("2ic"))
def test_2ic(case):
    shape = (case["IC"], case["OC"], case["kh"], case["kw"])
    layout = local(shape, "float32", "compact", storage="2IC", chip=chip_of(case))
    host = system(shape, "float32", storage="2IC")
    assert layout.view_shape == host.view_shape == tuple(case["view_shape"])
    assert layout.strides == tuple(case["strides_view_fp32x2"])
    assert layout.dummies == case["dummy_ic"]
    assert layout.bytes_per_core == case["alloc_bytes_per_npu"]
    assert host.physical_shape == (case["global_elements"],)
    # The same weights, as the copy moves them: a float32 tensor of columns twice as many.
    moved = local(case["gdma_shape_fp32"], "float32", "compact", chip=chip_of(case))
    assert moved.strides == tuple(case["gdma_strides_fp32"])
    assert len(case["elements"]) == layout.size
    for oc, ic, kh, kw, npu, byte, index in case["elements"]:
        assert place(layout, (ic, oc, kh, kw)) == (npu, byte)
        assert host.locate((ic, oc, kh, kw)).offset == index
        assert place(moved, (ic // 2, oc, kh, kw * 2 + ic % 2)) == (npu, byte)


@pytest.mark.parametrize("case", golden("memory_plan"))
def test_memory_plan(case):
    chip, end, fits = chip_of(case), 0, True
    weights = (case["params"]["IC"], case["params"]["OC"])
    weights += (case["params"]["kh"], case["params"]["kw"])
    for name in ("output", "input", "kernel"):
        facts = case[name]
        # What does not fit starts past the end of an NPU, where no tensor can be said to start.
        start = facts["addr"] if facts["addr"] < chip.npu_bytes else 0
        if name == "kernel":
            layout = local(weights, "float32", "compact", start=start, storage="2IC", chip=chip)
            assert layout.strides == tuple(facts["strides_2ic"])
            moved = local(facts["shape_gdma"], "float32", "compact", start=start, chip=chip)
            assert moved.strides == tuple(facts["strides"])
            assert moved.bytes_per_core == layout.bytes_per_core
        else:
            layout = local(facts["shape"], "float32", start=start, chip=chip)
            assert layout.strides == tuple(facts["strides"])
        assert facts["addr"] == end
        fits = fits and start == facts["addr"] and bool(layout.fits())
        end += layout.bytes_per_core
    assert (end, fits) == (case["end"], case["fits"])
    assert max(end - chip.npu_bytes, 0) == case["over_by"]


@pytest.mark.parametrize("case", golden("channel_shift"))
def test_channel_shift(case):
    chip = chip_of(case)
    start = case["start_npu"] * chip.npu_bytes + case["offset"]
    address = chip.shift(start, case["shift"], case["c_stride_bytes"])
    assert address == case["address"]
    assert chip.split(address) == (case["npu"], case["new_offset"])


@pytest.mark.parametrize("case", golden("unified_c_offset"))
def test_unified_c_offset(case):
    strides = (0, case["c_stride"], 1, 1)
    dtype = {1: "int8", 4: "float32"}[case["itemsize"]]
    layout = local((1, case["c"] + 1, 1, 1), dtype, strides=strides, chip=chip_of(case))
    assert layout.address((0, case["c"], 0, 0)) == case["value"]


@pytest.mark.parametrize("case", golden("bank", "bank_range"))
def test_banks(case):
    chip = chip_of(case)
    if case["kind"] == "bank":
        assert chip.split(case["address"]) == (case["npu"], case["offset"])
        assert chip.bank_bytes == case["bank_bytes"]
        assert chip.bank(case["address"]) == case["bank"]
        return
    assert chip.bank_range(case["address"], case["size"]) == (case["start"], case["end"])
    start = case["address"] // 4 * 4
    layout = local((1, 1, 1, case["size"]), "int8", "compact", start=start, chip=chip)
    assert layout.bank_range() == (case["start"], case["end"])


@pytest.mark.parametrize("case", golden("lmem_bytes", "gmem_bytes"))
def test_bytes(case):
    chip, shape, dtype = chip_of(case), case["shape"], case["dtype"]
    # On BM1684 the compiler stores 8 bits as 4N and 16 bits as 2N.
    storage = {"int8": "4N", "int16": "2N"}[dtype] if chip == BM1684 else None
    if case["kind"] == "gmem_bytes":
        assert system(shape, dtype, storage=storage).nbytes == case["bytes"]
        assert system(shape, dtype).nbytes == case["unpadded_bytes"]
        return
    name = "aligned" if case["eu_align"] else "compact"
    layout = local(shape, dtype, name, storage=storage, chip=chip)
    assert layout.bytes_per_core == case["bytes"]


@pytest.mark.parametrize("case", golden("overlap"))
def test_elements_that_share_a_place(case):
    chip, start = chip_of(case), case["start_npu"] * 1024
    layout = local(case["shape"], "float32", strides=case["strides"], start=start, chip=chip)
    held = reading(layout).holders(layout.shape).values()
    assert sum(len(indices) - 1 for indices in held) == case["n_collisions"]
    if case["first_collision"] is None:
        layout.check_invertible()
        return
    first, second, npu, byte = case["first_collision"]
    assert place(layout, first) == place(layout, second) == (npu, byte)
    with pytest.raises(gl.LayoutError, match=re.escape(f"{tuple(first)} and {tuple(second)}")):
        layout.check_invertible()


@pytest.mark.parametrize("case", golden("validity"))
def test_addresses_that_a_layout_allows(case):
    dtype = {1: "int8", 4: "float32"}[case["itemsize"]]
    arguments = dict(layout=case["layout"], start=case["address"], chip=chip_of(case))
    if case["valid"]:
        layout = local((1, 1, 1, 1), dtype, **arguments)
        assert layout.address((0, 0, 0, 0)) == case["address"]
        return
    rule = "outside local memory" if case["address"] >= 4096 else "must be divisible by"
    with pytest.raises(gl.LayoutError, match=rf"{case['address']}.*{rule}"):
        local((1, 1, 1, 1), dtype, **arguments)


@pytest.mark.parametrize("case", golden("fit"))
def test_fit(case):
    start = case["start_npu"] * case["S"] + case["offset_in_npu"]
    layout = local(case["shape"], "float32", case["layout"], start=start, chip=chip_of(case))
    fit = layout.fits()
    assert layout.strides == tuple(case["strides"])
    assert fit.size == layout.bytes_per_core == case["alloc_bytes_per_npu"]
    assert fit.needed == case["end"]
    assert layout.offset + layout.span_bytes == case["last_used_byte_end"]
    assert bool(fit) is case["fits_alloc"]
    assert fit.free == case["S"] - case["end"]
    assert str(fit).startswith("fits" if fit else "does not fit")


# --- any tensor, against the reading ---

quick = settings(max_examples=examples(150))


@quick
@given(st.one_of(locals_(), matrices()))
def test_every_element_is_where_the_document_says(layout):
    read = reading(layout)
    held = read.holders(layout.shape)
    size = layout.local_shape[0]
    for index in indices(layout.shape):
        npu, bit = read.place(index)
        where = layout.locate(index)
        assert where.core == (npu,)
        assert where.byte == bit // 8
        assert where.offset * read.bits + layout.offset * 8 == bit
        assert layout.address(index) == npu * layout.chip.npu_bytes + bit // 8
        assert where.offset < size
    reached = {(npu, (bit - layout.offset * 8) // read.bits): i for (npu, bit), i in held.items()}
    mask = layout.padding_mask()
    for physical in itertools.product(range(layout.chip.npus), range(min(size, 200))):
        found = layout.logical_index(physical)
        assert mask[physical] == (physical not in reached)
        assert found is None if physical not in reached else found in reached[physical]


@quick
@given(locals_())
def test_strides_that_move_nothing(layout):
    """What `strides_without_meaning` and `broadcast` say, from what a changed stride would move."""
    read = reading(layout)
    places = [read.place(index) for index in indices(layout.shape)]
    for d, name in enumerate("NCHW"):
        strides = list(layout.strides)
        strides[d] += 1
        other = Reading(**{**vars(read), "strides": tuple(strides)})
        moved = places != [other.place(index) for index in indices(layout.shape)]
        assert moved == (name not in layout.strides_without_meaning)
    shared = any(len(found) > 1 for found in read.holders(layout.shape).values())
    if layout.broadcast:
        assert shared
    if shared:
        with pytest.raises(gl.LayoutError, match="read-only view") as caught:
            layout.check_invertible()
        first, second = re.findall(r"\(\d+, \d+, \d+, \d+\)", str(caught.value))[:2]
        parse = lambda text: tuple(map(int, re.findall(r"\d+", text)))  # noqa: E731
        assert read.place(parse(first)) == read.place(parse(second))
    else:
        layout.check_invertible()


@quick
@given(systems())
def test_system_memory(layout):
    n_stride, c_stride, h_stride, w_stride = layout.strides
    lanes, itemsize = layout.lanes, 0.5 if layout.dtype == "int4" else layout.dtype.itemsize
    last = 0
    for n, c, h, w in indices(layout.shape):
        word = n // lanes * n_stride + c * c_stride + h * h_stride + w * w_stride
        where = layout.locate((n, c, h, w))
        assert where.core == ()
        assert where.offset == word * lanes + n % lanes
        assert where.byte == int(where.offset * itemsize)
        last = max(last, word * lanes + lanes)
    assert layout.physical_shape == (last,)
    assert list(layout.strides_without_meaning) == [
        d for d, n in zip("NCHW", layout.view_shape, strict=True) if n == 1
    ]


@settings(max_examples=examples(25))
@given(st.one_of(locals_(sources=False), matrices(), systems()), st.sampled_from(PATHS))
def test_pack_and_unpack(layout, path):
    x = numbered(layout)
    garbage = packed(x, layout, poison(layout.dtype))
    seen = [garbage[(*at.core, *at.local)] for at in map(layout.locate, indices(layout.shape))]
    seen = np.array(seen, layout.dtype).reshape(layout.shape)
    np.testing.assert_array_equal(gl.unpack(garbage, layout, path=path), seen)
    try:
        layout.check_invertible()
    except gl.LayoutError:
        with pytest.raises(gl.LayoutError, match="read-only view"):
            gl.pack(x, layout, path=path)
        return
    np.testing.assert_array_equal(seen, x)
    expected = packed(x, layout, layout.oob or 0)
    np.testing.assert_array_equal(gl.pack(x, layout, path=path), expected)


@quick
@given(st.one_of(locals_(), matrices(), systems()), st.sampled_from(["int8", "float32", "bool"]))
def test_text(layout, dtype):
    for found in (layout, layout.with_oob(1), layout.with_oob("inf")):
        assert gl.parse(str(found)) == found
        assert eval(repr(found), {"sophon": sophon, "float": float}) == found
        assert hash(gl.parse(str(found))) == hash(found)
    again = layout.with_dtype(dtype)
    assert gl.parse(str(again)) == again
    assert again.strides == layout.strides
    assert again.index_map == layout.index_map
    assert pickle.loads(pickle.dumps(again)) == copy.deepcopy(again) == again


# --- matrices and widths ---


@quick
@given(st.integers(1, 5), st.integers(1, 300), st.sampled_from(PLAIN), chips())
def test_the_best_width(rows, cols, dtype, chip):
    best = sophon.best_width(rows, cols, dtype, chip)
    tried = {w: matrix(rows, cols, w, dtype, chip=chip) for w in range(1, cols + 1)}
    least = min(layout.bytes_per_core for layout in tried.values())
    # Fewest bytes, then "C is better not greater than the number of NPUs", then most NPUs, least W.
    good = [
        (-layout.view_shape[1], width)
        for width, layout in tried.items()
        if layout.bytes_per_core == least and layout.view_shape[1] <= chip.npus
    ]
    assert min(good) == (-best.channels, best.width)
    assert best.npu_bytes == least
    assert best.row_bytes * rows == least
    assert f"W={best.width}: {best.channels} channels" in str(best)


# --- on devices ---

PLACED = {
    "aligned": local((5, 6, 3, 4), "float32", start=3 * 1024, chip=TOY),
    "compact": local((5, 6, 3, 4), "float32", "compact", start=2048, chip=TOY),
    "2IC": local((5, 6, 3, 4), "float32", storage="2IC", chip=TOY),
    "interleaved": local((5, 6, 3, 4), "float32", strides=(1, 60, 20, 5), chip=TOY),
    "BM1688": local((5, 6, 3, 4), "float32", chip=BM1688),
    "system": system((5, 6, 3, 4), "float32"),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", PLACED)
def test_put_and_relayout(name):
    layout, device = PLACED[name], gl.DeviceGrid((2, 4))
    x = numbered(layout)
    placed = gl.put(x, layout, device)
    np.testing.assert_array_equal(np.asarray(placed), x)
    np.testing.assert_array_equal(placed.physical, packed(x, layout, 0))
    source = poisoned(x, layout, device)
    for other in PLACED.values():
        moved = gl.relayout(source, other)
        assert moved.layout.same_physical(other)
        np.testing.assert_array_equal(np.asarray(moved), x)


def test_a_matrix_computes_where_it_lies():
    device = gl.DeviceGrid((2, 4))
    layout = matrix(5, 7, 2, "float32", start=1024, chip=TOY)
    (grid,) = next(choices([(5, 7)], 1, seed=0))
    x, y = numbered(layout), numbered(layout)[::-1].copy()
    a, b = poisoned(x, layout, device), poisoned(y, grid, device)
    np.testing.assert_array_equal(np.asarray(gl.relayout(b, layout)), y)
    total = gl.on_grid(lambda a, b: jnp.sum(a * 2 + b, axis=1))(a, gl.relayout(b, layout))
    np.testing.assert_allclose(np.asarray(total), (x * 2 + y).sum(axis=1))


def test_a_broadcast_is_a_source_only():
    layout = local((3, 2, 2, 2), "float32", strides=(0, 4, 2, 1), chip=TOY)
    assert layout.broadcast == ("N",)
    physical = np.arange(16, dtype=np.float32).reshape(4, 4)
    for path in PATHS:
        found = np.asarray(gl.unpack(physical, layout, path=path))
        np.testing.assert_array_equal(
            found, np.broadcast_to(physical[:2].reshape(2, 2, 2), (3, 2, 2, 2))
        )
    x = np.zeros(layout.shape, np.float32)
    for move in (
        lambda: gl.pack(x, layout),
        lambda: gl.put(x, layout, gl.DeviceGrid((2, 4))),
        lambda: gl.relayout(gl.put(x, PLACED_8, gl.DeviceGrid((2, 4))), layout),
    ):
        with pytest.raises(
            gl.LayoutError, match=r"N stride is 0.*read-only view.*only be a source"
        ):
            move()


PLACED_8 = local((3, 2, 2, 2), "float32", chip=TOY)


# --- what is refused ---

TOY_ARGUMENTS = {"shape": (2, 3, 4, 5), "dtype": "float32", "chip": TOY}
REFUSED = [
    # Shapes and dtypes.
    ({"shape": (2, 3, 4)}, r"shape \(2, 3, 4\) has rank 3; .*\(N, C, H, W\)"),
    ({"shape": (2, 0, 4, 5)}, r"shape \(2, 0, 4, 5\): N, C, H and W must be >= 1"),
    ({"shape": (2, 3, 4, 5.0)}, "sequence of whole numbers"),
    ({"shape": (2, True, 4, 5)}, "whole numbers >= 0"),
    ({"shape": None}, "shape None must be a sequence"),
    ({"shape": (2**40, 2**40, 1, 1)}, r"more than 2\*\*62 elements"),
    ({"dtype": None}, "dtype None is not known"),
    ({"dtype": "datetime64"}, "not supported"),
    # Layouts and strides.
    ({"layout": "continuous"}, "layout 'continuous' is not one of aligned, compact, line_aligned"),
    ({"layout": 3}, "layout 3 is not one of"),
    ({"layout": ["aligned"]}, "layout .* is not one of"),
    ({"layout": "compact", "strides": (1, 1, 1, 1)}, r"not those of the compact.*\(20, 20, 5, 1\)"),
    ({"strides": (1, 2, 3)}, "must be four"),
    ({"strides": (1, 2, -3, 1)}, "whole numbers >= 0"),
    ({"strides": (1, 2, 1.5, 1)}, "sequence of whole numbers"),
    ({"strides": (False, 2, 1, 1)}, "whole numbers"),
    ({"strides": 5}, "strides 5 must be a sequence"),
    ({"strides": (2**62, 1, 1, 1)}, r"shape .* with strides .* more than 2\*\*62 elements"),
    ({"strides": (2**63, 1, 1, 1)}, r"over 2\*\*62"),
    # Addresses.
    ({"start": 64}, "start 64 must be divisible by 128 for the aligned layout: use 0 or 128"),
    ({"start": 2, "layout": "compact"}, "start 2 must be divisible by 4 for the compact layout"),
    ({"start": 64, "layout": "line_aligned"}, "must be divisible by 128 for the line_aligned"),
    ({"start": 2, "strides": (1, 1, 1, 1)}, "divisible by 4 for an element of 32 bits"),
    ({"start": 4096}, "address 4096 is outside local memory: 4 NPUs of 1024 B end at 4095"),
    ({"start": -128}, "address -128 must be >= 0"),
    ({"start": 128.0}, "address 128.0 must be a whole number"),
    ({"start": True}, "not a bool"),
    ({"start": None}, "address None must be a whole number"),
    ({"start": 10**30}, r"beyond 2\*\*62"),
    # Storage and chips.
    ({"storage": "4N"}, "storage '4N' is for int8 and uint8, not float32.*lanes=4"),
    ({"storage": "2N", "dtype": "int8"}, "storage '2N' is for int16 and uint16, not int8"),
    ({"storage": "2IC", "dtype": "int32"}, "storage '2IC' is for float32, not int32"),
    ({"storage": "4n", "dtype": "int8"}, "storage '4n' is not one of 4N, 2N, 2IC"),
    ({"storage": 4, "dtype": "int8"}, "storage 4 is not one of"),
    ({"storage": "2IC", "lanes": 2}, "either storage '2IC' or lanes 2"),
    ({"lanes": 0}, "lanes 0 must be >= 1"),
    ({"lanes": 2.0}, "lanes 2.0 must be a whole number"),
    ({"chip": "BM1684"}, "chip 'BM1684' must be a sophon.Chip"),
    ({"chip": None}, "chip None must be"),
    ({"oob": "void"}, "oob 'void' is not one of"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED)
def test_bad_tensors_are_refused(arguments, words):
    with pytest.raises(gl.LayoutError, match=words):
        local(**(TOY_ARGUMENTS | arguments))


BAD_CALLS = [
    (lambda: matrix(2, 40, 0, "int8"), r"width 0 must be in \[1, 40\].*best_width"),
    (lambda: matrix(2, 40, 41, "int8"), r"width 41 must be in \[1, 40\]"),
    (lambda: matrix(2, 40, None, "int8"), "width .*best_width.* None must be a whole number"),
    (lambda: matrix(2, 40, 1.5, "int8"), "width .* 1.5 must be a whole number"),
    (
        lambda: matrix(2, 40, 9, "int8", strides=(9, 0, 9, 1), chip=TOY).check_invertible(),
        r"C stride is 0, .* \(0, 0\) and \(0, 36\) to one place",
    ),
    (lambda: sophon.overlap(PLACED["aligned"], PLACED["system"]), "not a tensor in Sophon local"),
    (lambda: matrix(0, 40, 1, "int8"), "rows 0 must be >= 1"),
    (lambda: matrix(2, "40", 1, "int8"), "cols '40' must be a whole number"),
    (lambda: matrix(2, 40, 1, "int8", start=4), "divisible by 128 for the aligned layout"),
    (lambda: matrix(2, 40, 1, "int8", chip=64), "chip 64 must be a sophon.Chip"),
    (lambda: sophon.best_width(2, 0, "int8"), "cols 0 must be >= 1"),
    (lambda: sophon.best_width(2, 40, "int8", None), "chip None must be"),
    (lambda: system((2, 3), "int8"), "rank 2"),
    (lambda: system((2, 3, 4, 5), "int8", (1, 1, 1)), "must be four"),
    (lambda: system((2, 3, 4, 5), "int16", storage="4N"), "for int8 and uint8, not int16"),
    (lambda: Chip(0, 1024, 128), "npus 0 must be >= 1"),
    (lambda: Chip(4, 1000, 128), "alignment 128 must divide npu_bytes 1000"),
    (lambda: Chip(4, 1024, 128, 3), "banks 3 must divide npu_bytes 1024"),
    (lambda: Chip(4, 1024.0, 128), "npu_bytes 1024.0 must be a whole number"),
    (lambda: Chip(4, True, 1), "npu_bytes True must be a whole number, not a bool"),
    (lambda: Chip(4, 1024, 128, name=3), "name 3 must be a str"),
    (lambda: TOY.bank(0), "states no banks"),
    (lambda: BM1684.bank_range(0, 0), "size 0 must be >= 1"),
    (lambda: BM1684.bank_range(524287, 2), "end at 524289, past the 524288 B"),
    (lambda: BM1684.shift(0, -1, 256), "reach byte -256 of NPU 63"),
    (lambda: local((1, 3, 1, 1), "int8").scatter(3), "channel 3 is outside the 3 channels"),
    (lambda: local((1, 3, 1, 1), "int8").locate((0, 3, 0, 0)), "outside the shape"),
    (lambda: sophon.overlap(PLACED["aligned"], PLACED["BM1688"]), "share no memory"),
    (
        lambda: local((1, 1, 1, 1), "int8", strides=(1, 1, 1, 1), start=1).with_dtype("float32"),
        "start 1 must be divisible by 4",
    ),
]


@pytest.mark.parametrize(("call", "words"), BAD_CALLS)
def test_bad_calls_are_refused(call, words):
    with pytest.raises(gl.LayoutError, match=words):
        call()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sophon.local((2, 3, 4), 'int8')", r"column \d+: .*rank 3"),
        ("sophon.local((2, 3, 4, 5))", r"column \d+: .*dtype"),
        ("sophon.local((2, 3, 4, 5), 'int8', chip=sophon.BM9)", r"column \d+: .*BM9"),
        ("sophon.local((2, 3, 4, 5), 'int8', chip=sophon.Chip(4, 10, 4))", "column 41: .*divide"),
        ("sophon.best_width(2, 40, 'int8')", r"column \d+: .*is not one of"),
        ("sophon.BM1684", "is not a layout"),
        ("sophon.matrix(1, 99999999999999999999, 1, 'int8')", r"column \d+: .*beyond 2\*\*62"),
    ],
)
def test_bad_text_is_refused_by_column(text, words):
    with pytest.raises(gl.LayoutError, match=words):
        gl.parse(text)


def test_layouts_are_equal_by_what_they_do():
    aligned = local((2, 3, 4, 5), "float32", chip=TOY)
    assert aligned == local((2, 3, 4, 5), "float32", strides=(32, 32, 5, 1), chip=TOY)
    assert aligned != local((2, 3, 4, 5), "float32", start=128, chip=TOY)
    assert aligned != local((2, 3, 4, 5), "float32", "compact", chip=TOY)
    assert aligned.with_dtype("int8").layout is None
    assert local((2, 3, 4, 5), "float32", "compact").with_dtype("int8").layout == "compact"
    assert local((8, 1, 1, 1), "int8", storage="4N").with_dtype("bool").storage is None
    assert repr(BM1690) != repr(BM1684X)
