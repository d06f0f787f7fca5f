"""MLI tensors and moves against the document: its layouts, formulas, recorded cases.

The judges are sums of strides and `Reading`, the data movement kernel's description read as loops
over a zero-padded NumPy array; they share no code with the library. `golden/mli.json` holds what
the compiled kernel library does.
"""

import copy
import itertools
import json
import pickle
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laid_out import indices, packed, poison
from tiers import examples

import gridlayout as gl
from gridlayout import mli
from gridlayout.mli import mov, tensor

GOLDEN = json.loads((Path(__file__).parent / "golden" / "mli.json").read_text(encoding="utf-8"))
DTYPES = {1: "int8", 2: "int16", 4: "int32"}
LETTERS = {1: "C", 2: "HW", 3: "HWC", 4: "HWCN"}
PATHS = ("program", "gather")


def golden(kind):
    return [pytest.param(c, id=c["id"]) for c in GOLDEN["cases"] if c["kind"] == kind]


def test_every_recorded_case_is_a_test():
    tested = {"layout", "validity", "permute", "mov", "subtensor"}
    assert {case["kind"] for case in GOLDEN["cases"]} == tested


def place(strides, index):
    return sum(s * i for s, i in zip(strides, index, strict=True))


def numbers(layout):
    return np.arange(1, layout.size + 1).reshape(layout.shape).astype(layout.dtype)


def stated(strides):
    """Strides as the kernels' structs hold them: zeros ask for those without gaps."""
    return None if not any(strides) else strides


# --- recorded cases ---


@pytest.mark.parametrize("case", golden("layout"))
def test_layout(case):
    layout = tensor(case["shape"], case["layout"], DTYPES[case["element_size"]])
    assert layout.mem_stride == tuple(case["mem_stride"])
    assert layout.min_elements == case["min_elements"]
    assert layout.nbytes == case["size_bytes"]
    for sample in case["samples"]:
        where = layout.locate(sample["index"])
        assert (where.offset, where.byte) == (sample["element_offset"], sample["byte_offset"])


VALIDITY = {
    "v_cap_minus_one": "capacity 29: the tensor needs 30 bytes",
    "v_stride0": r"mem_stride\[0\] = 0 must be >= 1",
    "v_broadcast_stride0_rejected": r"mem_stride\[0\] = 0 must be >= 1: MLI has no broadcast",
    "v_transposed_size1_dims_still_checked": (
        r"mem_stride\[0\] = 1 must be >= shape\[1\] \* mem_stride\[1\] = 4 \* 1 = 4"
    ),
    "v_doc_rule_ok_but_overlaps_rejected": (
        r"mem_stride\[0\] = 6 must be >= shape\[1\] \* mem_stride\[1\] = 3 \* 3 = 9"
    ),
}


@pytest.mark.parametrize("case", golden("validity"))
def test_validity(case):
    def made():
        return tensor(
            *(case["shape"], LETTERS[len(case["shape"])], DTYPES[case["element_size"]]),
            *(case["mem_stride"],),
            capacity=case["capacity_bytes"],
        )

    if case["status"] == "OK":
        assert made().mem_stride == tuple(case["mem_stride"])
    else:
        with pytest.raises(gl.LayoutError, match=VALIDITY[case["id"]]):
            made()


@pytest.mark.parametrize("case", golden("permute"))
def test_permute(case):
    layout = tensor(
        case["in_shape"], LETTERS[len(case["in_shape"])], "int16", case["in_mem_stride"]
    )
    out = layout.permute(case["perm_dim"], case["out_mem_stride"])
    assert out.shape == tuple(case["out_shape"])
    assert out.layout == "".join(layout.layout[p] for p in case["perm_dim"])
    assert (layout.min_elements, out.min_elements) == (
        *(case["in_min_elements"], case["out_min_elements"]),
    )
    move = mov(layout, perm=case["perm_dim"], mem_stride=case["out_mem_stride"])
    assert move.destination == out
    for (written, read), index in zip(case["writes_first"], indices(out.shape), strict=False):
        assert out.locate(index).offset == written
        assert layout.locate(move.source_index(index)).offset == read
    x = np.arange(layout.size, dtype=np.int16).reshape(layout.shape)
    found = gl.unpack(gl.pack(gl.unpack(gl.pack(x, layout), move.read), move.write), out)
    assert np.asarray(found).ravel().tolist() == case["dense_out_of_iota"]


def moved(case):
    source = tensor(
        *(case["in_shape"], LETTERS[len(case["in_shape"])], DTYPES[case["element_size"]]),
        stated(case["in_mem_stride"]),
    )
    cfg = case["cfg"]
    return mov(
        source,
        offset=cfg["offset"],
        size=cfg["size"],
        step=cfg["sub_sample_step"],
        perm=cfg["perm_dim"],
        pad_pre=cfg["padding_pre"],
        pad_post=cfg["padding_post"],
        dst_offset=cfg["dst_offset"],
        mem_stride=stated(cfg["dst_mem_stride"]) or stated(case["dst_mem_stride_hint"]),
    )


def written(move):
    """The destination's indices that the move writes, in order."""
    starts = zip(move.dst_offset, move.destination.shape, strict=True)
    return itertools.product(*(range(a, b) for a, b in starts))


@pytest.mark.few(4)
@pytest.mark.parametrize("case", golden("mov"))
def test_mov(case):
    move = moved(case)
    out = move.destination
    assert out.shape == tuple(case["dst_shape"])
    assert out.mem_stride == tuple(case["dst_mem_stride"])
    assert out.min_elements == case["dst_min_elements"]
    pairs = []
    for index in written(move):
        back = move.source_index(index)
        read = None if back is None else move.source.locate(back).offset
        pairs.append([out.locate(index).offset, read])
    assert len(pairs) == case["n_writes"]
    assert sum(read is None for _, read in pairs) == case["n_padding"]
    assert pairs[: len(case["writes"])] == case["writes"]
    assert case["writes_truncated"] or len(pairs) == len(case["writes"])
    # The data take the same way.
    buffer = np.arange(1, 1 + move.source.buffer_size).astype(out.dtype)
    expected = np.zeros(out.buffer_size, out.dtype)
    for to, read in pairs:
        expected[to] = 0 if read is None else buffer[read]
    for path in PATHS:
        found = gl.pack(gl.unpack(buffer, move.read, path=path), move.write, path=path)
        np.testing.assert_array_equal(found, expected)


def test_mov_is_the_documents_where_the_library_takes_a_shortcut():
    """One copy of the whole source, whatever the offsets, where shapes happen to be equal."""
    (case,) = (c for c in GOLDEN["cases"] if c["id"] == "hazard_single1d_offset")
    move = moved(case)
    found = gl.pack(gl.unpack(np.arange(8, dtype=np.int8), move.read), move.write)
    assert np.asarray(found).tolist() == [0, 0, 2, 3, 4, 5, 6, 7]
    assert case["actual_library_dst"] == list(range(8))
    assert not case["code_matches_doc"]


@pytest.mark.parametrize("case", golden("subtensor"))
def test_subtensor(case):
    layout = tensor(
        *(
            case["in_shape"],
            LETTERS[len(case["in_shape"])],
        ),
        *(DTYPES[case["element_size"]], case["in_mem_stride"]),
        capacity=case["in_capacity_bytes"],
    )
    found = layout.subtensor(case["offset"], case["size"], case["sub_tensor_rank"])
    assert found.shape == tuple(case["out_shape"])
    assert found.mem_stride == tuple(case["out_mem_stride"])
    assert found.min_elements == case["out_min_elements"]
    assert found.capacity == case["out_capacity_bytes"]
    assert found.start == case["data_offset_elements"]
    assert found.locate((0,) * found.ndim).byte == case["data_offset_bytes"]


# --- the document's examples ---


def test_the_smallest_stride_is_of_the_last_letter():
    """ "The smallest stride ... is for C followed by the width and then the height"."""
    weights = tensor((4, 3, 2, 5), "HWCN", "int8")
    for h, w, c, n in indices(weights.shape):
        assert weights.locate((h, w, c, n)).offset == ((h * 3 + w) * 2 + c) * 5 + n
    image = tensor((32, 16, 3), "HWC", "float32")
    planes = image.permute((2, 0, 1))
    assert (planes.layout, planes.shape, planes.mem_stride) == ("CHW", (3, 32, 16), (512, 16, 1))
    assert planes.permute((1, 2, 0)) == image


def test_depthwise_weights_have_one_channel():
    assert tensor((3, 3, 1, 8), "HW1N", "int8").mem_stride == (24, 8, 8, 1)
    with pytest.raises(gl.LayoutError, match="the dim named 1 has extent 2, it must be 1"):
        tensor((3, 3, 2, 8), "HW1N", "int8")


# --- properties ---


@st.composite
def tensors(draw, least_rank=1):
    rank = draw(st.integers(least_rank, 4))
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))
    letters = "".join(draw(st.permutations("HWCN")))[:rank]
    strides, least = [], 1
    for n in reversed(shape):
        strides.insert(0, least + draw(st.integers(0, 2)))
        least = strides[0] * n
    before, after = draw(st.sampled_from([(0, 0), (0, 0), (2, 0), (1, 3)]))
    end = before + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    dtype = draw(st.sampled_from(["int8", "int16", "float32"]))
    if draw(st.integers(0, 3)) == 0:
        return tensor(shape, letters, dtype)
    return tensor(shape, letters, dtype, strides, start=before, size=end + after)


@settings(max_examples=examples(50))
@given(tensors(least_rank=0))
def test_tensors_are_sums_of_strides(layout):
    occupied = set()
    for index in indices(layout.shape):
        expected = layout.start + place(layout.mem_stride, index)
        where = layout.locate(index)
        assert (where.offset, where.byte) == (expected, expected * layout.dtype.itemsize)
        assert layout.logical_index(where.local) == index
        occupied.add(expected)
    assert len(occupied) == layout.size
    mask = layout.padding_mask()
    assert {k for k, padding in enumerate(mask) if not padding} == occupied
    again = gl.parse(str(layout))
    assert again == layout
    assert hash(again) == hash(layout)
    assert eval(repr(layout), {"mli": mli}) == layout


@settings(max_examples=examples(15))
@given(tensors())
def test_tensors_move(layout):
    x = numbers(layout)
    for path in PATHS:
        np.testing.assert_array_equal(gl.pack(x, layout, path=path), packed(x, layout, 0))
        poisoned = packed(x, layout, poison(x.dtype))
        np.testing.assert_array_equal(gl.unpack(poisoned, layout, path=path), x)


@settings(max_examples=examples(25))
@given(tensors(), st.data())
def test_subtensors_read_slices(layout, data):
    offset = [data.draw(st.integers(0, n - 1)) for n in layout.shape]
    size = [data.draw(st.integers(1, n - o)) for n, o in zip(layout.shape, offset, strict=True)]
    rank = data.draw(st.integers(layout.ndim - size.count(1), layout.ndim))
    part = layout.subtensor(offset, size, rank)
    x = numbers(layout)
    buffer = packed(x, layout, 0)
    expected = x[tuple(slice(o, o + n) for o, n in zip(offset, size, strict=True))]
    # "Drops the first dims of extent 1" until the rank is reached.
    kept = list(range(layout.ndim))
    while len(kept) > rank:
        kept.remove(next(k for k in kept if size[k] == 1))
    assert part.layout == "".join(layout.layout[k] for k in kept)
    expected = expected.reshape([size[k] for k in kept])
    assert part.shape == expected.shape
    np.testing.assert_array_equal(gl.unpack(buffer, part), expected)
    assert part.physical_shape == layout.physical_shape
    assert gl.parse(str(part)) == part


@dataclass(frozen=True)
class Reading:
    """The data movement kernel: pad, crop, subsample, permute, one after another."""

    pre: tuple
    post: tuple
    offset: tuple
    size: tuple
    step: tuple
    perm: tuple

    def result(self, x):
        x = np.pad(x, list(zip(self.pre, self.post, strict=True)))
        crop = zip(self.offset, self.size, x.shape, strict=True)
        x = x[tuple(slice(o, o + (n or whole - o)) for o, n, whole in crop)]
        return x[tuple(slice(None, None, s) for s in self.step)].transpose(self.perm)


@st.composite
def moves(draw):
    source = draw(tensors())
    axes = []
    for n in source.shape:
        pre, post = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        offset = draw(st.integers(0, pre + n + post - 1))
        size = draw(st.one_of(st.just(0), st.integers(1, pre + n + post - offset)))
        axes.append((pre, post, offset, size, draw(st.integers(1, 3))))
    perm = tuple(draw(st.permutations(range(source.ndim))))
    reading = Reading(*(tuple(column) for column in zip(*axes, strict=True)), perm)
    at = tuple(draw(st.sampled_from([0, 0, 1, 2])) for _ in source.shape)
    return source, reading, at


@settings(max_examples=examples(60))
@given(moves(), st.integers(0, 2))
def test_moves_are_the_kernels_description(case, gap):
    source, reading, at = case
    x = numbers(source)
    expected = reading.result(x)
    shape = [n + o for n, o in zip(expected.shape, at, strict=True)]
    strides, least = [], 1
    for n in reversed(shape):
        strides.insert(0, least + gap)
        least = strides[0] * n
    move = mov(
        source,
        offset=reading.offset,
        size=reading.size,
        step=reading.step,
        perm=reading.perm,
        pad_pre=reading.pre,
        pad_post=reading.post,
        dst_offset=at,
        mem_stride=strides,
    )
    assert move.destination.shape == tuple(shape)
    assert move.destination.mem_stride == tuple(strides)
    whole = np.zeros(shape, x.dtype)
    whole[tuple(slice(o, None) for o in at)] = expected
    for index in indices(shape):
        if any(i < o for i, o in zip(index, at, strict=True)):
            with pytest.raises(gl.LayoutError, match="is not written"):
                move.source_index(index)
            continue
        back = move.source_index(index)
        assert (0 if back is None else x[back]) == whole[index]
    buffer = packed(x, source, poison(x.dtype))
    moved = gl.unpack(buffer, move.read, path="gather")
    found = gl.pack(moved, move.write, path="gather")
    np.testing.assert_array_equal(found, packed(whole, move.destination, 0))
    for layout in (move.read, move.write):
        assert gl.parse(str(layout)) == layout


def test_a_step_over_the_whole_dim_moves_one_element():
    source = tensor((4, 3), "HW", "int8")
    move = mov(source, offset=(1, 0), step=(2**62, 2))
    assert move.destination == tensor((1, 2), "HW", "int8")
    assert (move.source_index((0, 1)), move.read.shape, move.read.start) == ((1, 2), (1, 2), 3)


def test_moves_on_devices():
    """A move is a relayout between two layouts of the elements that move."""
    device = gl.DeviceGrid((len(jax.devices()),))
    source = tensor((6, 5, 3), "HWC", "float32", mem_stride=(20, 4, 1))
    x = numbers(source)
    move = mov(source, pad_pre=(1, 0, 0), pad_post=(1, 2, 0), step=(1, 2, 1), perm=(2, 0, 1))
    expected = Reading((1, 0, 0), (1, 2, 0), (0,) * 3, (0,) * 3, (1, 2, 1), (2, 0, 1)).result(x)
    poisoned = packed(x, source, np.nan)
    found = gl.relayout(gl.from_physical(poisoned, move.read, device), move.write)
    np.testing.assert_array_equal(found.physical, packed(expected, move.destination, 0))
    laid = gl.put(expected, move.destination, device)
    planes = tensor((3, 8, 4), "CHW", "float32", mem_stride=(40, 5, 1))
    np.testing.assert_array_equal(np.asarray(gl.relayout(laid, planes)), expected)


@pytest.mark.parametrize(
    "layout",
    [
        tensor((4, 3, 2), "HWC", "int16", mem_stride=(8, 2, 1), capacity=64, oob=0),
        tensor((4, 3, 2), "HWC", "float32", oob=float("-inf")).subtensor((1, 0, 0), (2, 3, 1)),
        tensor((), "", "int8"),
    ],
)
def test_layouts_travel(layout):
    for other in (pickle.loads(pickle.dumps(layout)), copy.deepcopy(layout)):
        assert other == layout
        assert repr(other) == repr(layout)
    for other in (layout.with_oob(1), layout.with_dtype("bfloat16")):
        assert gl.parse(str(other)) == other != layout


# --- kernels: what they write, and how they get at it ---


def forward(x, weights, groups=1, **config):
    """The shape of JAX's convolution of NHWC and HWIO, of which MLI's has no batch."""
    config = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), **config}

    def run(image, filters):
        return jax.lax.conv_general_dilated(
            image,
            filters,
            window_strides=config["stride"],
            padding=config["padding"],
            rhs_dilation=config["dilation"],
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )

    shapes = [jax.ShapeDtypeStruct(s, "float32") for s in ((1, *x.shape), weights.shape)]
    return jax.eval_shape(run, *shapes).shape[1:]


@st.composite
def windows(draw, undilated=False):
    """Extents, a kernel, and a configuration whose windows fit."""
    stride = tuple(draw(st.integers(1, 3)) for _ in "HW")
    dilation = (1, 1) if undilated else tuple(draw(st.integers(1, 3)) for _ in "HW")
    kernel = tuple(draw(st.integers(1, 4)) for _ in "HW")
    reach = [(n - 1) * d + 1 for n, d in zip(kernel, dilation, strict=True)]
    pads = tuple((draw(st.integers(0, r - 1)), draw(st.integers(0, r - 1))) for r in reach)
    least = [max(r - sum(p), 1) for r, p in zip(reach, pads, strict=True)]
    extents = tuple(n + draw(st.integers(0, 9)) for n in least)
    return extents, kernel, {"stride": stride, "padding": pads, "dilation": dilation}


@settings(max_examples=examples(100))
@given(windows(), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_outputs_are_hwc_of_the_number_of_filters(case, groups, channels, filters):
    """Input "HWC (Height; Width; Channel)", "HWCN" weights, "number of (output) channels" out."""
    extents, kernel, config = case
    x = tensor((*extents, groups * channels), "HWC", "int8")
    for kind, weights, count in (
        (mli.conv2d, tensor((*kernel, groups * channels, filters), "HWCN", "int8"), 1),
        (mli.group_conv2d, tensor((*kernel, channels, groups * filters), "HWCN", "int8"), groups),
        (mli.depthwise_conv2d, tensor((*kernel, 1, x.shape[2]), "HW1N", "int8"), x.shape[2]),
        (mli.depthwise_conv2d, tensor((*kernel, 1, x.shape[2]), "HWCN", "int8"), x.shape[2]),
    ):
        out = kind(x, weights, **config)
        assert out == tensor(forward(x, weights, count, **config), "HWC", "int8")
        assert out.shape[2] == weights.shape[3]


@settings(max_examples=examples(60))
@given(windows(undilated=True), st.integers(1, 3))
def test_pooling_keeps_the_channels(case, channels):
    extents, kernel, config = case
    x = tensor((*extents, channels), "HWC", "int16")
    filters = tensor((*kernel, channels, channels), "HWCN", "int16")
    found = mli.pool2d(x, kernel, stride=config["stride"], padding=config["padding"])
    assert found == tensor(forward(x, filters, **config), "HWC", "int16")


@settings(max_examples=examples(100))
@given(windows(undilated=True), st.integers(1, 3))
def test_a_transposed_convolution_writes_what_the_convolution_read(case, channels):
    extents, kernel, config = case
    stride, pads = config["stride"], config["padding"]
    x = tensor((*extents, channels), "HWC", "int16")
    weights = tensor((*kernel, channels, 5), "HWCN", "int8")
    found = [
        (n - 1) * s + k - sum(p) for n, s, k, p in zip(extents, stride, kernel, pads, strict=True)
    ]
    if min(found) < 1:
        with pytest.raises(gl.LayoutError, match="leaves nothing"):
            mli.transpose_conv2d(x, weights, stride=stride, padding=pads)
        return
    out = mli.transpose_conv2d(x, weights, stride=stride, padding=pads)
    assert out == tensor((*found, 5), "HWC", "int16")
    back = tensor((*kernel, 5, channels), "HWCN", "int8")
    assert mli.conv2d(out, back, stride=stride, padding=pads).shape == x.shape


def test_other_kernels_are_layout_agnostic():
    """ "Other kernels are layout-agnostic": a fully connected layer takes elements in order."""
    weights = tensor((24, 10), "CN", "int8")
    for x in (tensor((2, 3, 4), "HWC", "int8"), tensor((4, 2, 3), "CHW", "int8")):
        assert mli.fully_connected(x, weights) == tensor((10,), "C", "int8")


def test_a_transpose_converts_one_layout_into_another():
    """ "A transpose function can also be used to convert one layout into another layout."""
    x = tensor((32, 16, 3), "HWC", "int8")
    planes = x.transpose("HWC->CHW")
    assert planes == tensor((3, 32, 16), "CHW", "int8") == x.permute((2, 0, 1))
    assert planes.transpose("CHW->HWC") == x
    gaps = x.transpose("HWC -> CHW", mem_stride=(600, 17, 1))
    assert gaps == tensor((3, 32, 16), "CHW", "int8", (600, 17, 1))
    move = mov(x, perm="HWC->CHW")
    assert (move.destination, move.perm) == (planes, (2, 0, 1))
    for index in ((0, 0, 0), (2, 31, 15), (1, 5, 7)):
        assert move.source_index(index) == (*index[1:], index[0])
    weights = tensor((4, 3, 2, 1), "HWCN", "int8")
    assert weights.transpose("HWCN->NHWC").shape == (1, 4, 3, 2)


def test_the_depth_of_the_output_should_be_a_multiple_of_the_vector():
    """ "Depth of output should be bigger than vector size. Ideally, a multiple of it." """
    x = tensor((10, 10, 3), "HWC", "int8")
    uses = {}
    for filters in (8, 16, 24, 48):
        out = mli.conv2d(x, tensor((3, 3, 3, filters), "HWCN", "int8"))
        use = out.lanes(16)
        assert (use.dim, use.extent, use.mem_stride) == ("C", filters, 1)
        lanes = [list(range(filters))[k : k + 16] for k in range(0, filters, 16)]
        assert (use.vectors, use.last) == (len(lanes), len(lanes[-1]))
        assert use.share == filters / (16 * len(lanes))
        assert use.is_multiple == (use.share == 1)
        uses[filters] = use.share
    assert uses == {8: 0.5, 16: 1.0, 24: 0.75, 48: 1.0}
    # Weights are vectorised across N, which has their smallest stride.
    assert tensor((3, 3, 3, 24), "HWCN", "int8").lanes(16) == mli.Lanes("N", 24, 16, 1)
    # Across the depth of planes a vector is gathered.
    assert tensor((24, 8, 8), "CHW", "int8").lanes(16) == mli.Lanes("C", 24, 16, 64)


def test_depth_grows_while_width_shrinks():
    """ "NN data is wider than it is deep. However, after just few layers it becomes deeper"."""
    x, shares = tensor((224, 224, 3), "HWC", "int8"), []
    for filters in (32, 64, 128, 256, 512, 512, 1024):
        shares.append((x.lanes(32, "C").share, x.lanes(32, "W").share))
        weights = tensor((3, 3, x.shape[2], filters), "HWCN", "int8")
        x = mli.conv2d(x, weights, stride=(2, 2), padding=((1, 1), (1, 1)))
    by_depth, by_width = zip(*shares, strict=True)
    assert by_depth[0] == 3 / 32
    assert set(by_depth[1:]) == {1.0}  # "vectorization across depth becomes more beneficial"
    assert by_width[0] == 1.0
    assert max(by_width[4:]) < 0.5


def test_stride_padding_and_dilation_do_not_touch_the_depth():
    """ "more stable to ... stride padding and dilation rate as it ... does not touch depth"."""
    x, weights = tensor((20, 20, 8), "HWC", "int8"), tensor((3, 3, 8, 40), "HWCN", "int8")
    found = [
        mli.conv2d(x, weights, stride=stride, padding=pads, dilation=dilation)
        for stride in ((1, 1), (2, 3))
        for pads in (((0, 0), (0, 0)), ((1, 1), (2, 1)))
        for dilation in ((1, 1), (2, 2))
    ]
    assert {out.lanes(16) for out in found} == {mli.Lanes("C", 40, 16, 1)}
    assert len({out.lanes(16, "W").share for out in found}) > 3


def series(addresses):
    """Runs of neighbours among increasing addresses, and the distinct jumps between them."""
    starts = [k for k, a in enumerate(addresses) if k == 0 or a != addresses[k - 1] + 1]
    ends = [*starts[1:], len(addresses)]
    lengths = {b - a for a, b in zip(starts, ends, strict=True)}
    jumps = [addresses[k] - addresses[k - 1] - 1 for k in starts[1:]]
    return len(starts), lengths, set(jumps)


@settings(max_examples=examples(60))
@given(tensors(least_rank=0), st.data())
def test_transfers_are_the_runs_of_a_slices_addresses(layout, data):
    offset = [data.draw(st.integers(0, n - 1)) for n in layout.shape]
    size = [data.draw(st.integers(1, n - o)) for n, o in zip(layout.shape, offset, strict=True)]
    for name, found in layout.slice_transfers(offset, size).items():
        whole = layout if name == layout.layout else layout.transpose(f"{layout.layout}->{name}")
        sides = {k: (o, n) for k, o, n in zip(layout.layout, offset, size, strict=True)}
        ranges = (range(sides[k][0], sum(sides[k])) for k in name)
        count, lengths, jumps = series([whole.locate(i).offset for i in itertools.product(*ranges)])
        assert (found.count, {found.run}) == (count, lengths)
        assert set(found.jumps) == jumps
        assert len(found.jumps) == len(jumps)
        assert found.run_bytes == found.run * layout.dtype.itemsize
    assert layout.slice_transfers(offset, size, [layout.layout]) == {
        layout.layout: layout.subtensor(offset, size).transfers
    }


@pytest.mark.parametrize(
    ("size", "hwc", "chw"),
    [
        ((16, 16, 3), (1, 768, ()), (3, 256, (256,))),
        ((16, 8, 3), (16, 24, (24,)), (48, 8, (8, 264))),
        ((1, 8, 3), (1, 24, ()), (3, 8, (504,))),
    ],
)
def test_slices_are_longer_linear_series_with_fewer_types_of_jumps(size, hwc, chw):
    """ "Slicing ... is more DMA-friendly as it implies longer linear DMA series and less types of
    jumping." """
    found = tensor((32, 16, 3), "HWC", "int16").slice_transfers((0, 0, 0), size, ["HWC", "CHW"])
    assert {name: (t.count, t.run, t.jumps) for name, t in found.items()} == {
        "HWC": hwc,
        "CHW": chw,
    }
    assert found["HWC"].run_bytes == 2 * hwc[1] > found["CHW"].run_bytes
    assert len(found["HWC"].jumps) < len(found["CHW"].jumps)


# --- refusals ---


def hwc(**changes):
    return tensor(**{"shape": (4, 3, 2), "layout": "HWC", "dtype": "int8", **changes})


def filters(**changes):
    return tensor(**{"shape": (2, 2, 2, 4), "layout": "HWCN", "dtype": "int8", **changes})


REFUSED = {
    "letters": (lambda: hwc(layout="HWX"), "distinct letters of H, W, C, N and 1"),
    "letter twice": (lambda: hwc(layout="HHC"), "distinct letters"),
    "no letters": (lambda: hwc(layout=None), "layout None must be distinct letters"),
    "too few letters": (lambda: hwc(layout="HW"), r"names 2 dims, but the shape is \(4, 3, 2\)"),
    "rank 5": (lambda: tensor((1,) * 5, "HWCN1", "int8"), "MLI tensors have at most 4"),
    "extent 0": (lambda: hwc(shape=(4, 0, 2)), "every extent of an MLI tensor must be >= 1"),
    "float extent": (lambda: hwc(shape=(4, 1.5, 2)), "sequence of whole numbers"),
    "int4": (lambda: hwc(dtype="int4"), "elements of an MLI tensor take whole bytes"),
    "becomes int4": (lambda: hwc().with_dtype("int4"), "take whole bytes"),
    "no dtype": (lambda: hwc(dtype="fx8"), "dtype 'fx8' is not known"),
    "stride missing": (lambda: hwc(mem_stride=(2, 1)), "must be 3 numbers, one per dim"),
    "negative stride": (lambda: hwc(mem_stride=(-6, 2, 1)), "must hold whole numbers >= 0"),
    "true stride": (lambda: hwc(mem_stride=(6, 2, True)), "must hold whole numbers"),
    "last stride 0": (lambda: hwc(mem_stride=(6, 2, 0)), r"mem_stride\[2\] = 0 must be >= 1"),
    "overlap": (
        lambda: hwc(mem_stride=(6, 1, 1)),
        r"mem_stride\[1\] = 1 must be >= shape\[2\] \* mem_stride\[2\] = 2 \* 1 = 2",
    ),
    "huge": (lambda: hwc(shape=(2**31, 2**31, 2**31)), r"more than 2\*\*62"),
    "capacity": (lambda: hwc(capacity=23), "capacity 23: the tensor needs 24 bytes"),
    "capacity of a wider type": (
        lambda: hwc(capacity=24).with_dtype("int16"),
        "capacity 24: the tensor needs 48 bytes",
    ),
    "buffer": (lambda: hwc(start=1, size=24), "the tensor ends at element 25 of its buffer"),
    "sub-tensor outside": (
        lambda: hwc().subtensor((1, 0, 0), (4, 3, 2)),
        "dim 0: offset 1 and size 4 must have size >= 1 and offset \\+ size <= the extent, 4",
    ),
    "sub-tensor of nothing": (lambda: hwc().subtensor((1, 0, 0), (0, 3, 2)), "must have size >= 1"),
    "sub-tensor of 2 dims": (lambda: hwc().subtensor((1, 0), (1, 3, 2)), "one per dim"),
    "sub-tensor of rank 1": (
        lambda: hwc().subtensor((0, 0, 0), (1, 3, 2), rank=1),
        r"rank 1 must be in \[2, 3\]: only dims of extent 1",
    ),
    "permute": (lambda: hwc().permute((0, 1, 1)), "must name each of the dims 0 to 2 once"),
    "permute to overlap": (
        lambda: hwc().permute((2, 0, 1), mem_stride=(12, 4, 2)),
        r"mem_stride\[0\] = 12 must be >= shape\[1\] \* mem_stride\[1\] = 4 \* 4 = 16",
    ),
    "no source": (lambda: mov((4, 3, 2)), "must be an MLI tensor"),
    "step 0": (lambda: mov(hwc(), step=(1, 0, 1)), "dim 1: step 0 must be >= 1"),
    "crop outside": (
        lambda: mov(hwc(), offset=(2, 0, 0), size=(4, 0, 0), pad_post=(1, 0, 0)),
        r"dim 0: offset 2 and size 4 reach outside the padded extent 0 \+ 4 \+ 1 = 5",
    ),
    "nothing left": (lambda: mov(hwc(), offset=(4, 0, 0)), "and offset < 4"),
    "two pads": (lambda: mov(hwc(), pad_pre=(1, 1)), r"pad_pre \(1, 1\) must be 3"),
    "transpose of other letters": (
        lambda: hwc().transpose("CHW->HWC"),
        "'CHW->HWC' must be the tensor's letters, an arrow, and the same letters",
    ),
    "transpose to other letters": (lambda: hwc().transpose("HWC->CHH"), "such as 'HWC->CWH'"),
    "transpose without an arrow": (lambda: hwc().transpose("CHW"), "an arrow"),
    "transpose by numbers": (lambda: hwc().transpose((2, 0, 1)), "must be a str such as"),
    "move of other letters": (lambda: mov(hwc(), perm="HW->WH"), "such as 'HWC->CWH'"),
    "slice of no list": (
        lambda: hwc().slice_transfers((0, 0, 0), (1, 1, 1), "CHW"),
        r"layouts 'CHW' must be a list of layouts",
    ),
    "slice of other letters": (
        lambda: hwc().slice_transfers((0, 0, 0), (1, 1, 1), ["CHN"]),
        "'HWC->CHN' must be",
    ),
    "slice outside": (lambda: hwc().slice_transfers((0, 0, 1), (4, 3, 2)), "dim 2: offset 1"),
    "no lanes": (lambda: hwc().lanes(0), "vector 0 must be >= 1"),
    "half a vector": (lambda: hwc().lanes(0.5), "vector 0.5 must be a whole number"),
    "lanes along no dim": (lambda: hwc().lanes(4, "N"), "dim 'N' must be one letter"),
    "lanes along two dims": (lambda: hwc().lanes(4, "HW"), "dim 'HW' must be one letter"),
    "no depth": (lambda: tensor((4, 4), "HW", "int8").lanes(4), "dim None must be one letter"),
    "input of planes": (
        lambda: mli.conv2d(hwc(layout="CHW"), filters()),
        r"the input: 'CHW', but the kernel takes HWC; use transpose\('CHW->HWC'\)",
    ),
    "weights of another order": (
        lambda: mli.conv2d(hwc(), filters(layout="NHWC")),
        r"the weights: 'NHWC', but the kernel takes HWCN or HW1N; use transpose\('NHWC->HWCN'\)",
    ),
    "weights of rank 2": (
        lambda: mli.conv2d(hwc(), tensor((2, 2), "CN", "int8")),
        "takes HWCN or HW1N$",
    ),
    "no weights": (lambda: mli.conv2d(hwc(), None), "the weights: None must be an MLI tensor"),
    "no input": (lambda: mli.pool2d((4, 3, 2), (2, 2)), r"the input: \(4, 3, 2\) must be an MLI"),
    "input of stride 2": (
        lambda: mli.conv2d(hwc(mem_stride=(12, 4, 2)), filters()),
        r"mem_stride \(12, 4, 2\) must end in 1",
    ),
    "channels": (
        lambda: mli.conv2d(hwc(), filters(shape=(2, 2, 1, 4))),
        "weights of 1 channels for an input of 2: conv2d needs the same number",
    ),
    "channels of a transposed convolution": (
        lambda: mli.transpose_conv2d(hwc(), filters(shape=(2, 2, 3, 4))),
        "weights of 3 channels for an input of 2",
    ),
    "groups": (
        lambda: mli.group_conv2d(hwc(), filters(shape=(2, 2, 1, 5))),
        "the filters a multiple of the groups",
    ),
    "channels of a group": (
        lambda: mli.group_conv2d(hwc(), filters(shape=(2, 2, 3, 6))),
        "must be a multiple of the weights'",
    ),
    "channel multiplier": (
        lambda: mli.depthwise_conv2d(hwc(), filters(shape=(2, 2, 1, 4))),
        "one filter per input channel; group_conv2d takes several",
    ),
    "kernel over the input": (
        lambda: mli.conv2d(hwc(), filters(), dilation=(1, 3)),
        r"W: the kernel reaches over 4 elements, but the padded input has 3 \+ 0 \+ 0 = 3",
    ),
    "only padding": (
        lambda: mli.conv2d(hwc(), filters(), padding=((0, 2), (0, 0))),
        r"padding \(0, 2\) of H must be below 2",
    ),
    "one pad": (
        lambda: mli.conv2d(hwc(), filters(), padding=1),
        r"padding 1 must be a sequence of pairs \(\(above, below\), \(left, right\)\)",
    ),
    "two pads of a convolution": (
        lambda: mli.conv2d(hwc(), filters(), padding=(1, 1)),
        "must be",
    ),
    "stride 0": (lambda: mli.pool2d(hwc(), (2, 2), stride=(0, 1)), r"stride \(0, 1\) must hold"),
    "stride of 3 dims": (
        lambda: mli.pool2d(hwc(), (2, 2), stride=(1, 1, 1)),
        r"stride \(1, 1, 1\) must be 2 numbers, of H and of W",
    ),
    "connected over gaps": (
        lambda: mli.fully_connected(hwc(mem_stride=(8, 2, 1)), tensor((24, 2), "CN", "int8")),
        "has gaps",
    ),
    "connected rows": (
        lambda: mli.fully_connected(hwc(), tensor((23, 2), "CN", "int8")),
        "must have a row for each of the input's 24 elements",
    ),
    "outside the destination": (
        lambda: mov(hwc()).source_index((4, 0, 0)),
        r"writes from \(0, 0, 0\) to \(4, 3, 2\), exclusive",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    make, words = REFUSED[name]
    with pytest.raises(gl.LayoutError, match=words):
        make()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mli.tensor((4, 3, 2), 'HWX', 'int8')", "column 1: layout 'HWX'"),
        ("mli.tensor((4, 3, 2), 'HWC', 'int8', (6, 2))", "column 1: mem_stride"),
        ("mli.mov((4, 3, 2))", "is not one of"),
        ("mli.tensor('4', 'H', 'int8')", "column 1: shape '4' must be a sequence"),
    ],
)
def test_bad_text(text, words):
    with pytest.raises(gl.LayoutError, match=words):
        gl.parse(text)
