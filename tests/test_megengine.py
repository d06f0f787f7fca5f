"""MegEngine's formats and strided views against the document: figures, formulas, recorded cases.

The judges are `place`, the document's formula of each format, and `strided_place`, its sum of
strides; they share no code with the library. `golden/megengine.json` holds what MegEngine computes.
"""

import copy
import hashlib
import itertools
import json
import pickle
import re
import time
from math import ceil, prod
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from laid_out import indices, packed, poison
from tiers import examples, few

import gridlayout as gl
from gridlayout import megengine
from gridlayout.megengine import contiguous, image2d, padded_channels, strided

GOLDEN = json.loads(
    (Path(__file__).parent / "golden" / "megengine.json").read_text(encoding="utf-8")
)
# Formats are moved as any type here, also those that they are not made for.
pytestmark = pytest.mark.filterwarnings("ignore:format .* is made for:gridlayout.LayoutWarning")
PATHS = ("program", "gather")
FEATURES = [
    *("NCHW", "NHWC", "NCHW4", "NCHW8", "NCHW32", "NCHW64"),
    *("NCHW44", "NCHW88", "CHWN4", "NHWCD4"),
]
BLOCK = {
    **{"NCHW4": 4, "NCHW8": 8, "NCHW32": 32, "NCHW64": 64},
    **{"NCHW44": 4, "NCHW88": 8, "CHWN4": 4, "NHWCD4": 4},
}

# The algebra of symbolic dims (C//32 * C%32 = C) names dims; it lays out nothing, and this library
# has no symbols.
NO_LAYOUT = {"dim_algebra", "dim_less"}
NO_RULE = {
    # The only record of this weight format is one shape: no order of its elements to agree with.
    "shape_INTER_WEIGHT_DENSE_8x3x2x2",
    # 16 channels in 8 groups fill 8 blocks of 4; this source has 16, half of them read by no one.
    "shape_NCHW4_NCHW_11x16x22x33x4_oc16_group8",
}


def golden(kind):
    return [
        pytest.param(c, id=c["id"])
        for c in GOLDEN["cases"]
        if c["kind"] == kind and c["id"] not in NO_RULE
    ]


def view(case, dtype="int8"):
    return strided(case["shape"], case["strides"], dtype)


def test_every_recorded_case_is_a_test_or_no_layout():
    tested = {
        *("strides", "format_order", "discrepancy", "address", "relayout", "relayout_shape"),
        *("reformat_chain", "reshape_view", "contiguity", "is_abs_monotonous_allow_brdcst"),
        *("is_non_overlapping_strong", "span", "collapse_contiguous", "eq_layout", "broadcast"),
        *("dimshuffle", "lowbit", "lowbit_broadcast", "image2d_pack4", "channel_padding"),
    }
    assert {case["kind"] for case in GOLDEN["cases"]} == tested | NO_LAYOUT
    assert {case["id"] for case in GOLDEN["cases"]} >= NO_RULE


# --- the judges ---


def place(name, shape, index, groups=1):
    """Where an element of a format lies, counted from the first: digits, one after another."""
    batch, channels, height, width = shape
    n, c, h, w = index
    if name in ("NCHW", "NHWC"):
        order = [(n, batch), (c, channels), (h, height), (w, width)]
        if name == "NHWC":
            order = [order[0], order[2], order[3], order[1]]
    else:
        block = BLOCK[name]
        each = channels // groups  # channels of a group, which fills blocks of its own
        blocks = ceil(each / block)
        c = c // each * blocks * block + c % each
        outer, inner = (c // block, groups * blocks), (c % block, block)
        order = {
            "CHWN4": [outer, (h, height), (w, width), (n, batch), inner],
            "NHWCD4": [(n, batch), (h, height), outer, (w, width), inner],
        }.get(name, [(n, batch), outer, (h, height), (w, width), inner])
    offset = 0
    for digit, size in order:
        offset = offset * size + digit
    return offset


def strided_place(strides, index):
    """MegEngine, "Strides": the sum of stride times index, from element 0."""
    return sum(s * i for s, i in zip(strides, index, strict=True))


def lowest(shape, strides):
    return min((strided_place(strides, index) for index in indices(shape)), default=0)


def assert_moves(layout, x):
    """Both paths put each element where `locate` says, and never read the padding."""
    oob = 0 if layout.oob is None else layout.oob
    for path in PATHS:
        expected = packed(x, layout, np.asarray(oob).astype(x.dtype))
        np.testing.assert_array_equal(gl.pack(x, layout, path=path), expected)
        poisoned = packed(x, layout, poison(x.dtype))
        np.testing.assert_array_equal(gl.unpack(poisoned, layout, path=path), x)


def numbers(layout):
    return np.arange(1, layout.size + 1).reshape(layout.shape).astype(layout.dtype)


# --- recorded cases: formats ---


@pytest.mark.parametrize("case", golden("format_order"))
def test_order_of_a_format(case):
    layout = megengine.format(case["logical_nchw"], case["format"], "int32", oob=-1)
    assert layout.physical_shape == tuple(case["physical_shape"])
    x = np.arange(layout.size, dtype=np.int32).reshape(layout.shape)
    for path in PATHS:
        order = np.asarray(gl.pack(x, layout, path=path))
        assert order.ravel().tolist() == case["order"]
        assert hashlib.sha256(order.astype("<i4").tobytes()).hexdigest() == case["sha256_int32le"]
    # The strides of the physical shape are those of its row-major order.
    assert contiguous(case["physical_shape"], "int32").strides == tuple(case["physical_strides"])


@pytest.mark.parametrize("case", golden("discrepancy"))
def test_nhwc_goes_on_with_the_next_column(case):
    layout = megengine.format((2, 64, 3, 3), "NHWC", "int32")
    order = np.asarray(gl.pack(np.arange(1152, dtype=np.int32).reshape(2, 64, 3, 3), layout))
    order = order.ravel().tolist()
    assert order[63] == case["first_channel_run_end"]
    assert order[64] == case["value_after_first_run"]
    assert order.index(1143) == case["index_of_1143"]


@pytest.mark.parametrize("case", golden("address"))
def test_address(case):
    for dtype in ("int8", "int4"):
        layout = megengine.format(case["logical_nchw"], case["format"], dtype)
        where = layout.locate(case["index"])
        assert where.offset == case["offset_elements"]
        if case.get(f"offset_bytes_{dtype}") is not None:
            assert where.byte == int(case[f"offset_bytes_{dtype}"])  # 575.5: a byte's second half


def layouts_of(case):
    """The two layouts of one logical tensor that a relayout mode is between."""
    mode, parameters = case["mode"], case["params"]
    before, after = re.fullmatch(r"([A-Z0-9]+?)_(.*)", mode).groups()
    groups = parameters.get("group", 1)
    logical = case["in_shape"]
    if after == "NCHW":
        logical = case["out_shape"]
    elif before != "NCHW":  # a whole number of blocks
        n, blocks, h, w, block = logical
        logical = (n, blocks * block, h, w)

    def made(name):
        if name == "NCHW" and len(logical) == 5:
            return contiguous(logical, "float32")
        split = groups if name in BLOCK else 1
        return megengine.format(logical, name, "float32", groups=split, oob=case.get("pad_value"))

    return made(before), made(after)


@pytest.mark.few(3)
@pytest.mark.parametrize("case", golden("relayout"))
def test_relayout(case):
    before, after = layouts_of(case)
    source = np.array(case["in_data"], np.float32).reshape(case["in_shape"])
    expected = np.array(case["out_data"], np.float32).reshape(case["out_shape"])
    assert (before.physical_shape, after.physical_shape) == (source.shape, expected.shape)
    for path in PATHS:
        logical = gl.unpack(source, before, path=path)
        np.testing.assert_array_equal(gl.pack(logical, after, path=path), expected)
    device = gl.DeviceGrid((len(jax.devices()),))
    x = gl.relayout(gl.from_physical(source, before, device), after)
    np.testing.assert_array_equal(x.physical, expected)


@pytest.mark.parametrize("case", golden("relayout_shape"))
def test_shapes_of_a_relayout(case):
    for layout, end in zip(layouts_of(case), ("in", "out"), strict=True):
        if not isinstance(layout, megengine.StridedLayout):
            assert layout.physical_shape == tuple(case[f"{end}_shape"])
        assert contiguous(case[f"{end}_shape"], "int8").strides == tuple(case[f"{end}_strides"])


@pytest.mark.parametrize("case", golden("reformat_chain"))
def test_nchw32_to_nchw4(case):
    n, blocks, h, w, block = case["in_shape"]
    logical = (n, blocks * block, h, w)
    before = megengine.format(logical, "NCHW32", "int32")
    after = megengine.format(logical, "NCHW4", "int32")
    assert after.physical_shape == tuple(case["reshape2"])
    source = np.arange(before.size, dtype=np.int32).reshape(case["in_shape"])
    found = np.asarray(gl.pack(gl.unpack(source, before), after))
    assert found.ravel()[:24].tolist() == case["first24"]
    assert hashlib.sha256(found.astype("<i4").tobytes()).hexdigest() == case["sha256_int32le"]


@pytest.mark.parametrize("case", golden("channel_padding"))
def test_padded_channels(case):
    for name, dtype, conv in [
        *(("int4", "int4", True), ("int8_conv", "int8", True), ("int8_other", "int8", False))
    ]:
        for channels, expected in case[name].items():
            assert padded_channels(int(channels), dtype, conv=conv) == expected


# --- recorded cases: strides ---


@pytest.mark.parametrize("case", golden("strides"))
def test_strides(case):
    layout = contiguous(case["shape"], "int32")
    assert layout.strides == tuple(case["strides_elements"])
    if "probe" in case:
        assert layout.strides_bytes == tuple(case["strides_bytes"])
        assert layout.nbytes == case["size_bytes"]
        where = layout.locate(case["probe"]["index"])
        assert where.offset == case["probe"]["offset_elements"]
        assert where.byte == case["probe"]["offset_bytes"]
    for entry in case.get("offsets", []):
        assert layout.locate(entry["index"]).offset == entry["offset"]
    if "col_major_strides_elements" in case:
        columns = strided(case["shape"], case["col_major_strides_elements"], "int32")
        assert columns == strided(case["shape"], layout.dimshuffle((1, 0)).strides, "int32")
        assert columns.locate((1, 2)).offset == 7


@pytest.mark.parametrize("case", golden("span"))
def test_span(case):
    layout = view(case, case["dtype"])
    assert (layout.low, layout.high) == (case["low_elem"], case["high_elem"])
    assert layout.span_bytes == (case["low_byte"], case["high_byte"])


@pytest.mark.parametrize("case", golden("contiguity"))
def test_contiguity(case):
    assert view(case).is_contiguous() == case["is_contiguous"]
    found = view(case).is_contiguous(allow_broadcast=True)
    assert found == case["is_contiguous_allow_brdcst"]


@pytest.mark.parametrize("case", golden("is_abs_monotonous_allow_brdcst"))
def test_monotonous(case):
    assert view(case).is_abs_monotonous() == case["result"]


@pytest.mark.parametrize("case", golden("is_non_overlapping_strong"))
def test_overlap(case):
    # The source code's rule is sufficient, this one exact; on the recorded cases they agree.
    assert view(case).is_non_overlapping() == case["truly_non_overlapping"] == case["result"]


@pytest.mark.parametrize("case", golden("collapse_contiguous"))
def test_collapse(case):
    found = view(case).collapse_contiguous()
    assert found.shape == tuple(case["result_shape"])
    assert found.strides == tuple(case["result_strides"])


@pytest.mark.parametrize("case", golden("reshape_view"))
def test_reshape(case):
    if prod(case["shape"]) != prod(case["target"]):
        with pytest.raises(gl.LayoutError, match=r"has 5 elements, but \(2, 3\) has 6"):
            view(case).try_reshape(case["target"])
        return
    found = view(case).try_reshape(case["target"])
    if case["result"] == "error":
        assert found is None
    else:
        assert found.strides == tuple(case["result"])


@pytest.mark.parametrize("case", golden("eq_layout"))
def test_equality(case):
    assert (view(case["lhs"]) == view(case["rhs"])) == case["result"]


@pytest.mark.parametrize("case", golden("broadcast"))
def test_broadcast(case):
    assert view(case).broadcast(case["target"]).strides == tuple(case["result"])


@pytest.mark.parametrize("case", golden("dimshuffle"))
def test_dimshuffle(case):
    found = view(case).dimshuffle(case["dims"])
    assert found.shape == tuple(case["result_shape"])
    assert found.strides == tuple(case["result_strides"])


@pytest.mark.parametrize("case", golden("lowbit"))
def test_rows_of_four_bit_elements_fill_whole_bytes(case):
    layout = contiguous(case["shape"], "int4")
    assert layout.strides == tuple(case["strides"])
    assert layout.high == case["high_elem"]
    assert layout.nbytes == layout.span_bytes[1] == case["high_byte"]
    assert layout.is_contiguous()
    if "collapse_shape" in case:
        found = layout.collapse_contiguous()
        assert (found.shape, found.strides) == (
            *(tuple(case["collapse_shape"]), tuple(case["collapse_strides"])),
        )
    if len(case["shape"]) == 4:  # the same bytes as the format's
        nchw = megengine.format(case["shape"], "NCHW", "int4")
        assert contiguous(nchw.physical_shape, "int4").strides == tuple(case["strides"])
        assert nchw.nbytes == case["high_byte"]


@pytest.mark.parametrize("case", golden("lowbit_broadcast"))
def test_broadcast_of_four_bit_elements(case):
    layout = contiguous(case["shape"], "uint4")
    assert layout.strides == tuple(case["initial_strides"])
    found = layout.broadcast(case["target"]).collapse_contiguous()
    assert found.shape == tuple(case["collapse_shape"])
    assert found.strides == tuple(case["collapse_strides"])


@pytest.mark.parametrize("case", golden("image2d_pack4"))
def test_image(case):
    # MegEngine's alignment is of bytes, on MALI of pixels.
    align = case["align"] * 4 if case["vendor"] == "MALI" else case["align"] // case["itemsize"]
    layout = image2d(case["shape"], "float32", case["align_axis"], max(align, 1))
    assert layout.strides == tuple(case["strides"])
    assert layout.nbytes == case["image_height"] * case["image_row_pitch_bytes"]
    assert prod(case["shape"][case["align_axis"] :]) == case["image_width"] * 4


# --- properties ---


@st.composite
def formats(draw):
    name = draw(st.sampled_from(FEATURES))
    groups = draw(st.integers(1, 3)) if name in BLOCK else 1
    channels = groups * draw(st.integers(1, 9))
    shape = (draw(st.integers(1, 3)), channels, draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    dtype = draw(st.sampled_from(["int8", "float32", "bfloat16"]))
    return megengine.format(shape, name, dtype, groups=groups, oob=draw(st.sampled_from([None, 7])))


@settings(max_examples=examples(60))
@given(formats())
def test_formats_are_the_documents_formulas(layout):
    occupied = set()
    for index in indices(layout.shape):
        where = layout.locate(index)
        expected = place(layout.format, layout.shape, index, layout.channel_groups)
        assert (where.offset, where.byte) == (expected, expected * layout.dtype.itemsize)
        assert layout.logical_index(where.local) == index
        occupied.add(expected)
    mask = layout.padding_mask().ravel()
    assert {k for k, padding in enumerate(mask) if not padding} == occupied
    again = gl.parse(str(layout))
    assert again == layout
    assert hash(again) == hash(layout)
    assert again.oob == layout.oob
    assert eval(repr(layout), {"megengine": megengine}) == layout


@settings(max_examples=examples(15))
@given(formats())
def test_formats_move(layout):
    assert_moves(layout, numbers(layout))


def test_all_pairs_of_formats_on_devices():
    """Every format becomes every other; the padding is poisoned, and never moves as data."""
    shape = (2, 6, 3, 2)
    x = np.arange(1, 73, dtype=np.float32).reshape(shape)
    count = len(jax.devices())
    device = gl.DeviceGrid((2, count // 2) if count % 2 == 0 else (count,))
    # A prime number of few, so that every format is met on both sides.
    for one, two in few(itertools.product(FEATURES, repeat=2), 23):
        before = megengine.format(shape, one, "float32")
        after = megengine.format(shape, two, "float32", groups=2 if two in BLOCK else 1, oob=0)
        laid = gl.from_physical(packed(x, before, np.nan), before, device)
        found = gl.relayout(laid, after)
        np.testing.assert_array_equal(np.asarray(found.physical), packed(x, after, 0))


@pytest.mark.parametrize("value", [0, 128, 77])
def test_padding_holds_the_stated_value(value):
    """Zero; 128 where uint8 becomes a signed type; the zero point of asymmetric types."""
    layout = megengine.format((1, 3, 2, 2), "NCHW4", "uint8", oob=value)
    physical = np.asarray(gl.pack(numbers(layout), layout))
    assert (physical[layout.padding_mask()] == value).all()
    assert physical.shape == (1, 1, 2, 2, 4)


def test_weights_in_blocks_of_inputs_and_outputs():
    """{K/8, C/8, R, S, 8c, 8k}, the input channels padded."""
    shape = (16, 11, 2, 3)
    layout = megengine.format(shape, "NCHW88_CONV_DENSE_WEIGHT", "int32", oob=0)
    assert layout.physical_shape == (2, 2, 2, 3, 8, 8)
    for k, c, r, s in indices(shape):
        assert layout.locate((k, c, r, s)).local == (k // 8, c // 8, r, s, c % 8, k % 8)
    assert_moves(layout, numbers(layout))


@pytest.mark.few(4)
@pytest.mark.parametrize("name", FEATURES)
def test_formats_of_nothing_and_of_four_bits(name):
    empty = megengine.format((2, 0, 3, 3), name, "int8")
    assert empty.size == prod(empty.physical_shape) == empty.nbytes == 0
    assert gl.parse(str(empty)) == empty
    assert np.asarray(gl.pack(np.zeros(empty.shape, np.int8), empty)).size == 0
    odd = megengine.format((2, 5, 3, 3), name, "int4")
    assert odd.physical_shape[-1] % 2 == 0
    assert odd.nbytes * 2 == prod(odd.physical_shape)
    assert_moves(odd.with_dtype("int8"), numbers(odd.with_dtype("int8")))
    assert gl.parse(str(odd.with_dtype("int8"))) == odd.with_dtype("int8")


@st.composite
def views(draw):
    """Strides that nest, overlap, walk back or stand still; at times inside a larger buffer."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    if draw(st.booleans()):
        strides, step = [0] * len(shape), draw(st.integers(1, 2))
        for d in draw(st.permutations(range(len(shape)))):
            strides[d] = step * draw(st.sampled_from([1, 1, -1]))
            step = step * shape[d] + draw(st.integers(0, 2))
    else:
        each = st.integers(-6, 12)
        strides = draw(st.lists(each, min_size=len(shape), max_size=len(shape)))
    low = lowest(shape, strides)
    high = 1 + max(strided_place(strides, index) for index in indices(shape))
    extra = draw(st.sampled_from([None, (0, 0), (1, 0), (2, 3)]))
    if extra is None:
        return strided(shape, strides, "int16")
    before, after = extra
    return strided(shape, strides, "int16", start=before - low, size=before - low + high + after)


@settings(max_examples=examples(50))
@given(views())
@example(strided((2, 3), (2, 1), "int16"))  # rows that overlap by one element
def test_views_are_the_documents_sum(layout):
    places = {}
    for index in indices(layout.shape):
        expected = layout.start + strided_place(layout.strides, index)
        where = layout.locate(index)
        assert (where.offset, where.byte) == (expected, 2 * expected)
        places.setdefault(expected, []).append(index)
    assert layout.physical_shape == (layout.buffer_size,)
    injective = all(len(found) == 1 for found in places.values())
    assert layout.is_non_overlapping() == injective
    mask = layout.padding_mask()
    assert {k for k, padding in enumerate(mask) if not padding} == set(places)
    for k in range(layout.buffer_size):
        found = layout.logical_index((k,))
        assert found in places.get(k, [None])
    assert gl.parse(str(layout)) == layout
    assert eval(repr(layout), {"megengine": megengine}) == layout
    # NumPy's own reading of the strides.
    buffer = np.arange(layout.buffer_size, dtype=np.int16)
    read = np.lib.stride_tricks.as_strided(
        buffer[layout.start :], layout.shape, [2 * s for s in layout.strides]
    )
    for path in PATHS:
        np.testing.assert_array_equal(gl.unpack(buffer, layout, path=path), read)
    if injective:
        assert_moves(layout, numbers(layout))
    else:
        with pytest.raises(gl.LayoutError, match="read-only view"):
            gl.pack(numbers(layout), layout)


@settings(max_examples=examples(50))
@given(views(), st.data())
def test_views_of_views_read_what_numpy_reads(layout, data):
    buffer = np.arange(layout.buffer_size, dtype=np.int16)
    read = np.asarray(gl.unpack(buffer, layout, path="gather"))

    def assert_reads(other, expected):
        np.testing.assert_array_equal(gl.unpack(buffer, other, path="gather"), expected)

    order = data.draw(st.permutations(range(layout.ndim)))
    assert_reads(layout.dimshuffle(order), read.transpose(order))
    collapsed = layout.collapse_contiguous()
    assert_reads(collapsed, read.reshape(collapsed.shape))
    wider = (2, *(n if n != 1 else data.draw(st.integers(1, 3)) for n in layout.shape))
    assert_reads(layout.broadcast(wider), np.broadcast_to(read, wider))
    # A view of the other shape exists exactly where NumPy finds one.
    numpy_view = np.lib.stride_tricks.as_strided(
        buffer[layout.start :], layout.shape, [2 * s for s in layout.strides]
    )
    target = data.draw(shapes_of(layout.size))
    found = layout.try_reshape(target)
    expected = numpy_view.reshape(target)
    assert (found is not None) == np.shares_memory(expected, buffer)
    if found is not None:
        assert_reads(found, expected)


@st.composite
def shapes_of(draw, size):
    """A shape of that many elements."""
    shape = []
    while size > 1 and len(shape) < 4:
        divisors = [n for n in range(1, size + 1) if size % n == 0]
        shape.append(draw(st.sampled_from(divisors)))
        size //= shape[-1]
    return (*shape, size) if size > 1 or not shape else tuple(shape)


@pytest.mark.parametrize(
    ("shape", "strides", "apart"),
    [
        ((10**6, 10**6), (10**6 + 3, 10**6 + 1), True),
        ((10**6 + 2, 10**6 + 4), (10**6 + 3, 10**6 + 1), False),
        ((2**31, 2**31), (2**30 - 1, 2**29 + 1), False),
        ((12345, 54321, 777), (777 * 54321 - 1, 778, 1), False),
    ],
)
def test_overlap_of_large_strides_takes_no_time(shape, strides, apart):
    start = time.process_time()
    assert strided(shape, strides, "int8").is_non_overlapping() == apart
    assert time.process_time() - start < 10


def test_negative_strides_walk_back():
    layout = strided((2, 3), (-1, -2), "float32")
    assert (layout.start, layout.low, layout.high) == (5, -5, 1)
    assert layout.locate((0, 0)).offset == 5
    assert layout.locate((1, 2)).offset == 0


def test_strides_of_extent_one_say_nothing():
    one, other = strided((3, 1), (2, 5), "int8"), strided((3, 1), (2, 99), "int8")
    assert one == other
    assert hash(one) == hash(other)
    assert one.strides != other.strides


def test_views_on_devices():
    shape = (2, 3, 4)
    x = np.arange(1, 25, dtype=np.float32).reshape(shape)
    device = gl.DeviceGrid((len(jax.devices()),))
    flipped = strided(shape, (1, -2, 8), "float32", size=40)
    laid = gl.put(x, flipped, device)
    np.testing.assert_array_equal(np.asarray(laid), x)
    found = gl.relayout(laid, contiguous(shape, "float32"))
    np.testing.assert_array_equal(found.physical, x.ravel())
    with pytest.raises(gl.LayoutError, match="read-only view"):
        gl.put(x, strided(shape, (0, 4, 1), "float32"), device)


@pytest.mark.parametrize(
    "layout",
    [
        megengine.format((1, 6, 2, 2), "NCHW4", "int8", groups=2, oob=0),
        strided((2, 3), (0, -1), "float32", size=9, oob=float("nan")),
        strided((0, 3), (0, -1), "int8", size=5),
        strided((1,), (7,), "complex64"),
    ],
)
def test_layouts_travel(layout):
    for other in (pickle.loads(pickle.dumps(layout)), copy.deepcopy(layout)):
        assert other == layout
        assert repr(other) == repr(layout)
    for other in (layout.with_oob(1), layout.with_dtype("float16")):
        assert gl.parse(str(other)) == other != layout


# --- refusals ---

REFUSED = {
    "format (1, 2, 3, 4), 'NCHW5'": (
        lambda: megengine.format((1, 2, 3, 4), "NCHW5", "int8"),
        "format 'NCHW5' is not one of NCHW, NHWC",
    ),
    "format of no name": (
        lambda: megengine.format((1, 2, 3, 4), None, "int8"),
        "format None is not one of",
    ),
    "format of rank 3": (
        lambda: megengine.format((2, 3, 4), "NCHW4", "int8"),
        r"has rank 3; format NCHW4 takes \(N, C, H, W\)",
    ),
    "weights of rank 3": (
        lambda: megengine.format((2, 3, 4), "NCHW4_WEIGHT", "int8"),
        r"takes \(N, C, H, W\) or \(G, N, C, H, W\)",
    ),
    "outputs in blocks": (
        lambda: megengine.format((9, 8, 1, 1), "NCHW88_CONV_DENSE_WEIGHT", "int8"),
        "needs N, 9, to be a multiple of 8",
    ),
    "groups that don't divide": (
        lambda: megengine.format((1, 6, 1, 1), "NCHW4", "int8", groups=4),
        "groups 4 must divide the 6 channels",
    ),
    "no groups": (
        lambda: megengine.format((1, 6, 1, 1), "NCHW4", "int8", groups=0),
        "groups 0 must divide",
    ),
    "groups of NHWC": (
        lambda: megengine.format((1, 6, 1, 1), "NHWC", "int8", groups=2),
        "only formats of feature maps in blocks of channels take groups, not NHWC",
    ),
    "align 0": (lambda: megengine.format((1, 6, 1, 1), "NHWC", "int8", align=0), "must be >= 1"),
    "rows of half bytes": (
        lambda: megengine.format((1, 1, 1, 3), "NCHW", "int4", align=1),
        "do not fill whole bytes: give align=2",
    ),
    "rows that become half bytes": (
        lambda: megengine.format((1, 1, 1, 3), "NCHW", "int8").with_dtype("int4"),
        "do not fill whole bytes",
    ),
    "3-bit elements": (
        lambda: megengine.format((1, 8, 1, 1), "NCHW64", "int3"),
        "dtype 'int3' is not (known|supported)",
    ),
    "huge": (
        lambda: megengine.format((2**40, 2**40, 1, 1), "NCHW", "int8"),
        r"more than 2\*\*62 elements",
    ),
    "stride missing": (
        lambda: strided((2, 3), (3,), "int8"),
        r"strides \(3,\) must be 2 numbers, one per dim of \(2, 3\)",
    ),
    "float stride": (lambda: strided((2,), (1.0,), "int8"), "must be a sequence of whole numbers"),
    "no strides": (lambda: strided((2,), None, "int8"), "must be a sequence of whole numbers"),
    "true stride": (lambda: strided((2,), (True,), "int8"), "not bools"),
    "huge stride": (lambda: strided((1,), (2**63,), "int8"), r"beyond 2\*\*62"),
    "huge span": (lambda: strided((3,), (2**62,), "int8"), r"span .* more than 2\*\*62"),
    "rank 0": (lambda: strided((), (), "int8"), r"1 to 7 dims, and a scalar is \(1,\)"),
    "rank 8": (lambda: strided((1,) * 8, (1,) * 8, "int8"), "has rank 8; a MegEngine tensor"),
    "start too small": (
        lambda: strided((3,), (-1,), "int8", start=1),
        "start must be >= 2 and size >= start",
    ),
    "size too small": (
        lambda: strided((3,), (1,), "int8", size=2),
        "size 2 leave elements",
    ),
    "negative start": (lambda: strided((3,), (1,), "int8", start=-1), "start -1 must be >= 0"),
    "half bytes": (
        lambda: strided((2, 3), (3, 1), "int4"),
        "strides of int4 must be 0, 1 or positive multiples of 2",
    ),
    "half bytes, backwards": (lambda: strided((2, 4), (-4, 1), "uint4"), "positive multiples of 2"),
    "half a byte to start": (
        lambda: strided((2,), (1,), "int4", start=1),
        "start 1 of int4 elements must be a multiple of 2",
    ),
    "becomes half bytes": (
        lambda: strided((2, 3), (3, 1), "int8").with_dtype("int4"),
        "positive multiples of 2",
    ),
    "bytes of half bytes": (lambda: contiguous((2,), "int4").strides_bytes, "takes 4 bits"),
    "no permutation": (
        lambda: contiguous((2, 3), "int8").dimshuffle((0, 0)),
        "must name each of the dims 0 to 1 once",
    ),
    "broadcast of 3 to 4": (
        lambda: contiguous((2, 3), "int8").broadcast((2, 4)),
        "extent 3 must be 4 or 1",
    ),
    "broadcast to fewer dims": (
        lambda: contiguous((2, 3), "int8").broadcast((3,)),
        "has fewer dims",
    ),
    "image axis": (lambda: image2d((2, 4), "int8", 0, 1), r"axis 0 must be in \[1, 1\]"),
    "image pixels": (lambda: image2d((2, 3), "int8", 1, 1), "multiple of 4, a pixel"),
    "image align": (lambda: image2d((2, 4), "int8", 1, 0), "align 0 must be >= 1"),
    "channels of floats": (lambda: padded_channels(3, "float32"), "channels are padded for int4"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    make, words = REFUSED[name]
    with pytest.raises(gl.LayoutError, match=words):
        make()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("megengine.format((1, 2, 3, 4), 'NCHW5', 'int8')", "column 1: format 'NCHW5'"),
        ("megengine.strided((2, 3), (1,), 'int8')", "column 1: strides"),
        ("megengine.contiguous((2, 3), 'int8')", "is not one of"),
        ("megengine.strided((2, 3))", "missing a required argument"),
    ],
)
def test_bad_text(text, words):
    with pytest.raises(gl.LayoutError, match=words):
        gl.parse(text)
