"""XLA's tiled layouts: against the document, and against XLA itself."""

import itertools
import json
import subprocess
import sys
import time
from math import prod
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jax.experimental.layout import Format
from jax.experimental.layout import Layout as JaxLayout
from jax.sharding import SingleDeviceSharding
from laid_out import indices, packed, poison
from tiers import examples

import gridlayout as gl
from gridlayout import xla

GOLDEN = json.loads((Path(__file__).parent / "golden" / "xla.json").read_text())


# -- the document, read by hand --------------------------------------------------------------------


def linear_index(index, shape, order, tiles):
    """ "Linear index formula for tiling", "Repeated tiling", "Combining dimensions", one number.

    order: the dims, the major first. Also gives the size of the buffer.
    """
    e, d = [index[k] for k in order], [shape[k] for k in order]
    for tile in tiles:
        while len(d) < len(tile):
            e, d = [0, *e], [1, *d]
        first = len(d) - len(tile)
        # An asterisk: the dim goes, and the next minor one's bound is multiplied by its own.
        for k in range(len(tile)):
            if tile[k] == -1:
                e[first + k + 1] += e[first + k] * d[first + k + 1]
                d[first + k + 1] *= d[first + k]
        keep = [k for k in range(len(tile)) if tile[k] != -1]
        t = [tile[k] for k in keep]
        et, dt = [e[first + k] for k in keep], [d[first + k] for k in keep]
        e = e[:first] + [x // n for x, n in zip(et, t, strict=True)]
        e += [x % n for x, n in zip(et, t, strict=True)]
        d = d[:first] + [-(-x // n) for x, n in zip(dt, t, strict=True)] + t
    position = 0
    for x, n in zip(e, d, strict=True):
        position = position * n + x
    return position, prod(d)


@st.composite
def tiled(draw):
    rank = draw(st.integers(0, 5))
    extents = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 0])
    shape = tuple(draw(st.lists(extents, min_size=rank, max_size=rank)))
    order = tuple(draw(st.permutations(range(rank))))
    tiles, wide = [], rank
    for _ in range(draw(st.integers(0, 3))):
        size = draw(st.integers(1, max(min(wide + 1, 5), 1)))
        tile = draw(st.lists(st.sampled_from([1, 2, 3, 4, -1]), min_size=size, max_size=size))
        tile[-1] = abs(tile[-1])
        tiles.append(tuple(tile))
        wide = max(wide, size) + sum(n != -1 for n in tile) - sum(n == -1 for n in tile)
    found = xla.layout(shape, "int32", order[::-1], tiles)
    assume(prod(found.physical_shape) <= 2000)
    return found, order


@given(tiled())
@settings(max_examples=examples(1000))
def test_every_element_lies_where_the_formula_says(case):
    layout, order = case
    if 0 in layout.shape:
        assert layout.nbytes == 0
    for index in indices(layout.shape):
        position, size = linear_index(index, layout.shape, order, layout.tiles)
        where = layout.locate(index)
        assert (where.core, where.offset, where.byte) == ((), position, 4 * position)
        assert layout.nbytes == 4 * size
        assert layout.logical_index(where.local) == index
    assert gl.parse(str(layout)) == layout
    assert eval(repr(layout), {"xla": xla}) == layout


@given(tiled())
@settings(max_examples=examples(25))
def test_data_goes_there_and_back(case):
    layout, _ = case
    x = np.arange(1, 1 + layout.size, dtype=np.int32).reshape(layout.shape)
    physical = packed(x, layout, 0)
    for path in ("program", "gather"):
        np.testing.assert_array_equal(gl.pack(x, layout, path=path), physical)
        found = gl.unpack(packed(x, layout, poison("int32")), layout, path=path)
        np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(layout.padding_mask(), physical == 0)


# -- worked numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("case", GOLDEN["linear_index"], ids=lambda case: case["shape"])
def test_golden_linear_index(case):
    layout = gl.parse(case["shape"])
    if "index" in case:
        assert layout.locate(case["index"]).offset == case["position"]
    if "whole_map" in case:
        found = [layout.locate(index).offset for index in indices(layout.shape)]
        assert np.reshape(found, layout.shape).tolist() == case["whole_map"]
    if "holes" in case:
        assert layout.padding_mask().sum() == case["holes"]
        assert layout.padding_mask().size == case["buffer"]
    if "equals" in case:
        assert list(layout.physical_shape) == case["tiled_shape"]
        assert layout.locate([n - 1 for n in layout.shape]).offset == case["last_element"]
        joined = gl.parse(case["equals"])
        for index in itertools.islice(indices(layout.shape), 0, None, 97):
            row = (index[0] * 7 + index[1]) * 8 + index[2]
            same = joined.locate((row, index[3] * 10 + index[4]))
            assert layout.locate(index).offset == same.offset


@pytest.mark.parametrize("text", GOLDEN["padded_bytes"])
def test_golden_padded_bytes(text):
    assert gl.parse(text).nbytes == GOLDEN["padded_bytes"][text]


@pytest.mark.parametrize("text", GOLDEN["text_round_trips"])
def test_golden_texts(text):
    layout = gl.parse(text)
    assert str(layout) == text
    assert gl.parse(str(layout)) == layout


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        # "A shape with this layout is written as F32[3,5]{1,0:T(2,2)}".
        ("F32[3,5]{1,0:T(2,2)}", "f32[3,5]{1,0:T(2,2)}"),
        # "(2,4)(2,1)", "the format used for BF16 on TPU, ... (8,128)(2,1)".
        ("F32[4,8]{1,0:T(2,4)(2,1)}", "f32[4,8]{1,0:T(2,4)(2,1)}"),
        ("BF16[16,256]{1,0:T(8,128)(2,1)}", "bf16[16,256]{1,0:T(8,128)(2,1)}"),
        # "The dimensions of F32[2,7,8,11,10]{4,3,2,1,0} ... The tile used is (∗,∗,2,∗,3)."
        ("F32[2,7,8,11,10]{4,3,2,1,0}", "f32[2,7,8,11,10]{4,3,2,1,0}"),
        (
            "F32[2,7,8,11,10]{4,3,2,1,0:T(∗,∗,2,∗,3)}",
            "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
        ),
        # A combined dim "is represented in the tile by the value -1".
        (
            "F32[2,7,8,11,10]{4,3,2,1,0:T(-1, -1, 2, -1, 3)}",
            "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
        ),
        ("PRED[4,4]{1,0:T(-1,2)(∗,*,1,2)}", "pred[4,4]{1,0:T(*,2)(*,*,1,2)}"),
        ("F8E4M3FN[4]", "f8e4m3fn[4]{0}"),
    ],
)
def test_texts_as_the_document_writes_them(text, canonical):
    layout = gl.parse(text)
    assert str(layout) == canonical
    assert gl.parse(canonical) == layout
    if "{" in text:  # a dump's types are read by the same grammar
        (finding,) = gl.explain(text).findings
        assert finding.layout == layout


def test_the_element_types_in_capitals_are_those_of_xla():
    for name, dtype in xla.ELEMENT_TYPES.items():
        assert gl.parse(f"{name.upper()}[3]").dtype == gl.parse(f"{name}[3]").dtype == dtype


@pytest.mark.parametrize("text", GOLDEN["text_errors"])
def test_golden_text_errors(text):
    with pytest.raises(gl.LayoutError, match=r"^column \d+: "):
        gl.parse(text)


def test_the_golden_note_on_later_tiles():
    layout = gl.parse("f32[6,6]{1,0:T(4,4)(3,1)}")
    assert (layout.nbytes, layout.first_tile_bytes) == (384, 256)


def test_the_documents_element_has_its_coordinates():
    """ "Tile index (1,1) and index within the tile (0,1) ... a combined coordinate vector of
    (1,1,0,1). The tile indices have bounds (2,3) and the tile itself is (2,2)"."""
    layout = gl.parse("F32[3,5]{1,0:T(2,2)}")
    assert layout.locate((2, 3)).local == (1, 1, 0, 1)
    assert layout.physical_shape == (2, 3, 2, 2)
    assert layout.locate((2, 3)).offset == (1 * 3 + 1) * 2 * 2 + (0 * 2 + 1) == 17


def test_tiling_is_pad_reshape_transpose():
    """ "1. The array is padded ... 2. Each dimension i is broken up ... 3. A transpose"."""
    x = np.arange(1, 106, dtype=np.int32).reshape(3, 5, 7)
    padded = np.pad(x, ((0, 1), (0, 1), (0, 2)))
    tiled = padded.reshape(2, 2, 2, 3, 3, 3).transpose(0, 2, 4, 1, 3, 5)
    layout = gl.parse("s32[3,5,7]{2,1,0:T(2,3,3)}")
    np.testing.assert_array_equal(gl.pack(x, layout), tiled)


def test_the_second_tile_makes_words_of_two_16_bit_values():
    """ "The second tiling by 2x1 is to collect together two 16 bit values to form one 32 bit
    value"."""
    layout = gl.parse("BF16[16,256]{1,0:T(8,128)(2,1)}")
    for row, column in ((0, 0), (6, 127), (8, 128), (14, 255)):
        low, high = (layout.locate((r, column)).byte for r in (row, row + 1))
        assert (low % 4, high) == (0, low + 2)


def test_a_later_tile_reaches_across_tiles():
    """ "Can also refer to the major cross-tile dimensions from the prior tiling"."""
    layout = gl.parse("F32[8,8]{1,0:T(2,4)(2,1,1,1)}")
    assert layout.locate((6, 5)).offset == 51
    assert [layout.locate((r, 0)).offset for r in (0, 2)] == [0, 1]  # of two tiles, side by side


# -- XLA itself ------------------------------------------------------------------------------------

READ_AND_PRINT = """
import sys
from jaxlib import _hlo
for text in sys.stdin.read().splitlines():
    module = f"HloModule m\\n\\nENTRY e {{\\n  ROOT p = {text} parameter(0)\\n}}\\n"
    line = [l for l in _hlo.hlo_module_from_text(module).to_string().splitlines() if "ROOT" in l][0]
    print(line.split("= ")[1].split(" parameter")[0])
"""


def test_texts_are_printed_as_xla_prints_them():
    rng = np.random.default_rng(0)
    texts = []
    for _ in range(300):
        rank = int(rng.integers(0, 5))
        shape = ",".join(map(str, rng.integers(1, 40, rank)))
        order = ",".join(map(str, rng.permutation(rank)))
        fields = ""
        if rank and rng.random() < 0.8:
            for _ in range(int(rng.integers(1, 3))):
                size = int(rng.integers(1, rank + 1))
                tile = [str(n) for n in rng.integers(1, 9, size)]
                tile[0] = "*" if size > 1 and rng.random() < 0.3 else tile[0]
                fields += f"({','.join(tile)})"
            fields = f"T{fields}"
        for choice in (["L(64)", "L(1)"], ["#(u32)"], ["*(u16)"], ["E(32)", "E(0)"]):
            fields += str(rng.choice(choice)) if rng.random() < 0.3 else ""
        split = f"SC({rng.integers(rank)}:0,1)" if rank else ""
        for choice in (["S(5)", "S(0)"], [split], ["M(16)", "M(0)"]):
            fields += str(rng.choice(choice)) if rng.random() < 0.3 else ""
        kinds = ["f32", "bf16", "s8", "pred", "u16", "f8e4m3fn", "s4", "f64", "c64"]
        element = str(rng.choice(kinds[:4] if "E(32)" in fields else kinds))
        texts.append(f"{element}[{shape}]{{{order}:{fields}}}" if rank else f"{element}[]")
    # XLA's parser aborts the process on some bad text, so it has one of its own.
    run = subprocess.run(
        [sys.executable, "-c", READ_AND_PRINT],
        input="\n".join(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [str(gl.parse(text)) for text in texts] == run.stdout.splitlines()


def in_their_layout(shape, dtype, order, tiles, bits=0):
    """An array of XLA's, in that layout."""
    theirs = JaxLayout(order, tiles, sub_byte_element_size_in_bits=bits)
    # Made there by a program: device_put goes through one whose operand has the wrong size.
    there = Format(theirs, SingleDeviceSharding(jax.devices()[0]))
    array = jax.jit(lambda: jnp.zeros(shape, jnp.dtype(dtype)), out_shardings=there)()
    assert array.format.layout == theirs
    return array


@pytest.mark.parametrize(
    ("shape", "dtype", "order", "tiles"),
    [
        ((3, 5), "float32", (0, 1), ((2, 2),)),
        ((9, 130), "float32", (1, 0), ((8, 128),)),
        ((3, 5), "bfloat16", (0, 1), ((8, 128), (2, 1))),
        ((2, 3, 100), "int8", (2, 0, 1), ((8, 128), (4, 1))),
        ((7,), "float32", (0,), ((1024,),)),
        ((6, 6), "bool", (0, 1), ((4, 4),)),
        ((6, 6), "float32", (0, 1), ((4, 4), (3, 1))),
        ((5, 3), "float32", (0, 1), ((4,),)),
        ((0, 5), "float32", (0, 1), ((8, 128),)),
    ],
)
def test_sizes_are_those_of_arrays_in_that_layout(shape, dtype, order, tiles):
    array = in_their_layout(shape, dtype, order, tiles)
    ours = xla.from_jax(array.format.layout, shape, dtype)
    assert ours.first_tile_bytes == array.on_device_size_in_bytes()
    assert ours.to_jax() == array.format.layout
    assert ours.minor_to_major == tuple(reversed(order))


def test_sizes_of_random_layouts_are_those_of_arrays():
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(150 if tiers.ALL else 90):
        rank = int(rng.integers(0, 5))
        shape = tuple(map(int, rng.integers(1, 10, rank)))
        order = tuple(map(int, rng.permutation(rank)))
        ranks = rng.integers(1, rank + 2, rng.integers(1, 3))  # up to one more than the array's
        tiles = tuple(tuple(map(int, rng.integers(1, 9, size))) for size in ranks)
        dtype = str(rng.choice(["float32", "bfloat16", "int8", "bool", "complex64", "int4"]))
        array = in_their_layout(shape, dtype, order, tiles, bits=4 if dtype == "int4" else 0)
        ours = xla.from_jax(array.format.layout, shape, dtype)
        assert ours.first_tile_bytes == array.on_device_size_in_bytes(), ours
        assert ours.first_tile_bytes <= ours.nbytes, ours
        assert ours.to_jax() == array.format.layout
        seen.add((dtype, ours.first_tile_bytes < ours.nbytes))
    assert len(seen) == 12  # every type, with and without padding by a later tile


# -- queries ---------------------------------------------------------------------------------------


def test_expansion_factor():
    assert gl.parse("f32[8,128]{1,0:T(8,128)}").expansion_factor == 1.0
    assert gl.parse("f32[9,129]{1,0:T(8,128)}").expansion_factor == 16 * 256 / (9 * 129)
    assert gl.parse("f32[0,5]{1,0:T(8,128)}").expansion_factor == 1.0
    assert gl.parse("f32[1000,1]{1,0:T(8,128)}").expansion_factor == 128


def test_elements_of_other_sizes():
    assert gl.parse("pred[8,8]{1,0:E(32)}").nbytes == 256
    assert gl.parse("pred[8,8]{1,0:E(32)}").locate((0, 3)).byte == 12
    assert gl.parse("s4[8,8]{1,0}").nbytes == 64  # a byte each, unless the text packs them
    assert gl.parse("s4[8,8]{1,0:E(4)}").nbytes == 32
    assert gl.parse("f32[4]{0:L(100)}").nbytes == 400
    assert gl.parse("f32[101]{0:L(100)}").nbytes == 800


def test_tiles_of_higher_rank_than_the_array():
    assert gl.parse("f32[]{:T(128)}").nbytes == 512
    assert gl.parse("f32[7]{0:T(8,128)}").physical_shape == (1, 1, 8, 128)


@pytest.mark.parametrize(
    ("text", "tiles"),
    [
        ("f32[300,300]", ((8, 128),)),
        ("bf16[300,300]", ((8, 128), (2, 1))),
        ("s8[300,300]", ((8, 128), (4, 1))),
        ("f32[5,300]", ((8, 128),)),
        ("f32[3,300]", ((4, 128),)),
        ("f32[2,300]", ((2, 128),)),
        ("f32[1,300]", ((1, 128),)),
        ("bf16[1,300]", ((2, 128), (2, 1))),
        ("s8[2,300]", ((4, 128), (4, 1))),
        ("f32[4,1,300]", ((1, 128),)),
        ("s32[7]", ((128,),)),
        ("f32[300]", ((512,),)),
        ("f32[5000]", ((1024,),)),
    ],
)
def test_tpu_tiles(text, tiles):
    plain = gl.parse(text)
    assert xla.tpu_tiles(plain.shape, plain.dtype) == tiles


@pytest.mark.parametrize(
    "text",
    [
        *("s32[]{:T(128)}", "bf16[]{:T(256)}", "pred[]{:T(512)}"),
        *("s32[301]{0:T(512)}", "f32[384]{0:T(512)}", "s32[2048]{0:T(1024)}"),
        *("bf16[4]{0:T(256)(128)(2,1)}", "bf16[128]{0:T(256)(128)(2,1)}"),
        *("bf16[6144]{0:T(1024)(128)(2,1)}", "pred[1]{0:T(512)(128)(4,1)}"),
        *("pred[1,1]{1,0:T(4,128)(4,1)}", "bf16[4,8]{1,0:T(4,128)(2,1)}"),
        *("f32[128,6144]{1,0:T(8,128)}", "bf16[24,16,32,128]{3,2,1,0:T(8,128)(2,1)}"),
    ],
)
def test_tpu_tiles_of_compiled_programs(text):
    # Types found in published dumps of programs that were compiled for TPUs.
    layout = gl.parse(text)
    assert xla.tpu_tiles(layout.shape, layout.dtype) == layout.tiles


@pytest.mark.parametrize("element", ["f32", "bf16", "s8"])
def test_later_tiles_of_tpus_do_not_pad(element):
    for dims in ("", "1", "129", "600", "5000", "1,1", "2,130", "3,300", "5,7", "9,4,129", "4,0"):
        plain = gl.parse(f"{element}[{dims}]")
        padded = xla.layout(plain.shape, plain.dtype, tiles=xla.tpu_tiles(plain.shape, plain.dtype))
        assert padded.nbytes == padded.first_tile_bytes >= plain.nbytes


def test_splits_name_physical_dims():
    # The parts of XLA's own test of the largest part: 70, 90 and 150, in tiles here.
    layout = gl.parse("f32[150,200,100]{0,1,2:T(1)SC(0:30)(1:40,130)}")
    assert layout.first_tile_bytes == 4 * 70 * 90 * 150
    assert layout.nbytes == 4 * layout.size
    assert gl.parse("f32[10]{0:T(1)SC(0:7)}").first_tile_bytes == 4 * 7
    assert str(gl.parse("f32[9,9]{0,1:SC(0:3)(1:0,4)}")) == "f32[9,9]{0,1:SC(0:3)(1:0,4)}"
    assert gl.parse("f32[4,100]{0,1:SC(0:50)}").splits == ((0, (50,)),)
    with pytest.raises(gl.LayoutError, match=r"physical dim 1 at \(50,\) .* inside \[0, 4\]"):
        gl.parse("f32[4,100]{0,1:SC(1:50)}")


def test_what_the_size_function_leaves_out():
    assert gl.parse("f32[101]{0:L(100)}").first_tile_bytes == 404
    assert gl.parse("f32[101]{0:T(2)L(100)}").first_tile_bytes == 800
    with pytest.raises(gl.LayoutError, match="does not support combined dims"):
        _ = gl.parse("f32[4,4]{1,0:T(*,2)}").first_tile_bytes


def test_facts_and_types_change_alone():
    layout = gl.parse("bf16[4,8]{1,0:T(2,4)(2,1)E(32)}")
    assert str(layout.with_dtype("float32")) == "f32[4,8]{1,0:T(2,4)(2,1)}"
    known = layout.with_oob(float("-inf"))
    assert str(known).startswith("xla.layout(")  # XLA's text can't say it
    assert gl.parse(str(known)) == known
    assert known.shard_text == layout.shard_text == "{1,0:T(2,4)(2,1)E(32)}"
    assert "laid out as {1,0:T(2,4)(2,1)E(32)}" in str(known.summary())
    infinite = xla.layout((3,), "complex64", oob="inf")
    assert gl.parse(str(infinite)) == infinite


def test_numbers_of_numpy_are_numbers():
    layout = xla.layout(
        (np.int64(4), 6), tiles=[np.array([-1, 4])], memory_space=np.int32(2), splits=[(0, [2])]
    )
    assert str(layout) == "f32[4,6]{1,0:T(*,4)S(2)SC(0:2)}"
    assert repr(layout) == (
        "xla.layout((4, 6), 'float32', (1, 0), ((-1, 4),), memory_space=2, splits=((0, (2,)),))"
    )


# -- bad input -------------------------------------------------------------------------------------

TEXTS = {
    "f32[4,4]{1,1}": "must name each of the 2 dims once",
    "f32[4,4]{0}": "must name each of the 2 dims once",
    "f32[4,4]{2,1}": "must name each of the 2 dims once",
    "f32[4,4]{1,0:T(2,*)}": "no dim to be combined with",
    "f32[4,4]{1,0:T()}": "at least one dim",
    "f32[4,4]{1,0:T(0,2)}": "numbers >= 1",
    "f32[4,4]{1,0:T(-2,2)}": "expected a number, found '-2,2",
    "f32[4,4]{1,0:T(-12,2)}": "expected a number, found '-12,2",
    "f32[4,4]{1,0:T(2,-1)}": "no dim to be combined with",
    "f32[4,4]{1,0:T(2,∗)}": "no dim to be combined with",
    "f32[4,4]{1,-1}": "expected a number",
    "f32[-1,4]": "expected a number",
    "f32[4,4]{1,0:S(5)E(4)}": "in the order D T L",
    "f32[4,4]{1,0:L(0)}": "tail_alignment",
    "f32[4,4]{1,0:#(f32)}": "is not one of u8",
    "f32[4,4]{1,0:D(D,C)}": "sparse",
    "f32[4,4]{1,0:P(f32[4])}": "sparse",
    "f32[4,4]{1,0:SC(2:1)}": "outside the rank",
    "f32[4,4]{1,0:SC(0:3,1)}": "increasing",
    "f32[4,4]{1,0:SC(0:5)}": "increasing",
    "f32[4,4]{1,0:SC(0:)}": "increasing",
    "f32[4,4]{1,0:SC(0:1)(0:2)}": "name dim 0 twice",
    "f32[4,4]{1,0:SC()}": "expected a number",
    "f32[4,4]{1,0:D(D~,D)}": "sparse",
    "f32[4,4]{1,0:T(2,)}": "expected a number",
    "f32[?,4]": "expected a number",
    "f32[<=4,4]{1,0}": "dynamic dim",
    "(f32[4], f32[4])": "tuple type",
    "f33[4]": "is not one of pred",
    "F33[4]": "element type 'F33' is not one of pred",
    "Bf16[4]": "is not one of pred",
    "f32[4": "expected ']'",
    "f32[4]{0": "expected '}'",
    "f32[4]{0} x": "unexpected text",
    f"f32[4]{{0:T{'(2)' * 70}}}": "makes 65 physical dims; up to 64",
    "f32[99999999999999999999]": "over 2\\*\\*62",
    "f32[4611686018427387904,4611686018427387904]": "more than 2\\*\\*62",
    "f32[4]{0:T(4611686018427387904)(4,4611686018427387904)}": "2\\*\\*62",
}


@pytest.mark.parametrize("text", TEXTS)
def test_bad_texts(text):
    with pytest.raises(gl.LayoutError, match=TEXTS[text]) as error:
        gl.parse(text)
    assert str(error.value).startswith("column ")


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("f32[4,4611686018427387904]", 1),
        ("f32[4,4]{1,2}", 10),
        ("f32[4,4]{1,0:T(2,2)(0)}", 14),
        ("f32[4,4]{1,0: T(2,2) L(0)}", 22),
        ("f32[4,4]{1,0:T(2,2)#(u32)*(s16)E(3)}", 26),
        ("f32[4,4]{1,0:S(5)SC(0:1)(1:9)}", 18),
        ("f32[4,4]{1,0:T(2,2)E(3)S(5", 27),
    ],
)
def test_errors_point_at_the_field(text, column):
    with pytest.raises(gl.LayoutError, match=f"^column {column}: "):
        gl.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        f"f32[4]{{0:T{'(2)' * 20000}}}",
        f"f32[4,4]{{1,0:T{'(*,2)' * 10000}}}",
        f"f32[4]{{0:T({','.join('2' * 30000)})}}",
        f"f32[4]{{0:SC{'(0:1)' * 12000}}}",
        f"f32[{','.join('1' * 30000)}]",
        f"f32[4]{{{','.join('0' * 30000)}}}",
        f"xla.layout((4,), 'float32', (0,), ({'(2,),' * 12000}))",
        f"f32[4]{{0:T({'(' * 60000}",
    ],
    ids=lambda text: text[:30],
)
def test_long_texts_are_refused_at_once(text):
    start = time.process_time()
    with pytest.raises(gl.LayoutError, match=r"^column \d+: "):
        gl.parse(text)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"shape": (3, True)}, "whole numbers"),
        ({"shape": (3, 4), "minor_to_major": (0.0, 1)}, "whole numbers"),
        ({"shape": (3, 4), "tiles": (2, 2)}, "must be a sequence"),
        ({"shape": (3, 4), "tiles": "T(2,2)"}, "must be a sequence"),
        ({"shape": (3, 4), "tiles": [(2, -2)]}, "whole numbers >= 0"),
        ({"shape": (3, 4), "tiles": [(True, 2)]}, "whole numbers"),
        ({"shape": (3, 4), "element_bits": 4.0}, "4.0 must be a whole number"),
        ({"shape": (3, 4), "memory_space": -1}, "-1 must be >= 0"),
        ({"shape": (3, 4), "memory_space": 2**63}, "beyond 2\\*\\*62"),
        ({"shape": (3, 4), "tail_alignment": True}, "True must be a whole number, not a bool"),
        ({"shape": (3, 4), "index_type": ["u8"]}, "is not one of u8"),
        ({"shape": (3, 4), "splits": [(0, None)]}, "must be a sequence"),
        ({"shape": (3, 4), "splits": [(0, [1.0])]}, "1.0 must be a whole number"),
        ({"shape": (3, 4), "splits": [3]}, "pair"),
        ({"shape": (3, 4), "dtype": "object"}, "is not supported"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(gl.LayoutError, match=words):
        xla.layout(**arguments)


def test_what_jax_can_not_hold():
    with pytest.raises(gl.LayoutError, match="does not support combined dims"):
        gl.parse("f32[4,4]{1,0:T(*,2)}").to_jax()
    with pytest.raises(gl.LayoutError, match="but not memory_space"):
        gl.parse("f32[4,4]{1,0:S(5)}").to_jax()
    with pytest.raises(gl.LayoutError, match="but not element_bits"):
        gl.parse("pred[4,4]{1,0:E(32)}").to_jax()
    assert gl.parse("s4[4,4]{1,0:E(4)}").to_jax().sub_byte_element_size_in_bits == 4
    with pytest.raises(gl.LayoutError, match="it has no major_to_minor"):
        xla.from_jax(None, (4,), "float32")
    with pytest.raises(gl.LayoutError, match="8, 16 and 32 are covered"):
        xla.tpu_tiles((4,), "float64")
