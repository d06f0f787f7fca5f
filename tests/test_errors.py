"""What is refused, and how: each message names the value, the rule and the fix.

And what is not refused but bounded: values of the padding, and whether a layout fits a chip.
"""

import copy
import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

import gridlayout as gl


def refused(*says, **arguments):
    """The message with which the constructor refuses, which holds all of `says` in that order."""
    with pytest.raises(gl.LayoutError, match=".*".join(map(re.escape, says))) as caught:
        gl.GridLayout(**{"shape": (53, 63), "grid": (3, 2)} | arguments)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


# --- the constructor ---

RANK_5 = "(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4 * 7 + d5)"

# The arguments, and words of the message, in their order.
ARGUMENTS = [
    # Shapes.
    ({"shape": (53, -1)}, ["shape (53, -1)", "whole numbers >= 0"]),
    ({"shape": (53, 63.0)}, ["shape (53, 63.0)", "sequence of whole numbers"]),
    ({"shape": (53, True)}, ["shape (53, True)", "whole numbers"]),
    ({"shape": (53, np.True_)}, ["shape (53, np.True_)", "whole numbers"]),
    ({"shape": (n for n in (53, True))}, ["shape (53, True)", "whole numbers"]),
    ({"shape": -53}, ["shape (-53,)", "whole numbers >= 0"]),
    ({"shape": 53.0}, ["shape 53.0", "sequence of whole numbers"]),
    ({"shape": True}, ["shape (True,)", "whole numbers"]),
    ({"shape": "53"}, ["shape", "'53'", "sequence of whole numbers"]),
    ({"shape": None}, ["shape None", "sequence of whole numbers"]),
    ({"shape": (53, None)}, ["shape (53, None)", "sequence of whole numbers"]),
    ({"shape": np.zeros((2, 2), int)}, ["shape", "sequence of whole numbers"]),
    ({"shape": (1,) * 65, "grid": (1,)}, ["shape has rank 65", "ranks up to 64"]),
    ({"shape": (2**62 + 1, 1)}, ["shape (4611686018427387905, 1)", "over 2**62"]),
    ({"shape": (2**40, 2**40)}, ["(1099511627776, 1099511627776)", "more than 2**62 elements"]),
    # Grids.
    ({"grid": ()}, ["grid ()", "at least one number", ">= 1"]),
    ({"grid": (3, 0)}, ["grid (3, 0)", ">= 1"]),
    ({"grid": (3, -2)}, ["grid (3, -2)", "whole numbers"]),
    ({"grid": (3, 2.5)}, ["grid (3, 2.5)", "whole numbers"]),
    ({"grid": (True, 2)}, ["grid (True, 2)", "whole numbers"]),
    ({"grid": None}, ["grid None", "whole numbers"]),
    ({"grid": (3,)}, ["collapse [(0, -1)] leaves 2 dims", "grid has rank 1", "grid of rank 2"]),
    ({"grid": (2**40, 2**40)}, ["physical shape", "more than 2**62 elements"]),
    ({"grid": (1,) * 30, "tile": (1,) * 30}, ["physical rank 90", "over 64"]),
    # Tiles and faces.
    ({"tile": (32, 0)}, ["tile (32, 0)", ">= 1"]),
    ({"tile": (32, -32)}, ["tile (32, -32)", "whole numbers"]),
    ({"tile": (32, 32.0)}, ["tile (32, 32.0)", "whole numbers"]),
    ({"tile": (True, 32)}, ["tile (True, 32)", "whole numbers"]),
    ({"tile": ()}, ["tile ()", "at least one number"]),
    ({"tile": 0}, ["tile (0,)", ">= 1"]),
    ({"tile": (2, 2, 2)}, ["tile (2, 2, 2) has rank 3", "more than the grid's 2"]),
    ({"tile": (2**40, 2**40)}, ["physical shape", "more than 2**62 elements"]),
    ({"tile": (32, 32), "face": (16, 12)}, ["face (16, 12)", "divide", "tile is (32, 32)"]),
    ({"tile": (32, 32), "face": (64, 16)}, ["face (64, 16)", "divide", "tile is (32, 32)"]),
    ({"tile": (32, 32), "face": (16,)}, ["face (16,)", "tile's rank", "tile is (32, 32)"]),
    ({"tile": (32, 32), "face": (0, 16)}, ["face (0, 16)", ">= 1"]),
    ({"tile": (32, 32), "face": (True, 16)}, ["face (True, 16)", "whole numbers"]),
    ({"face": (16, 16)}, ["face (16, 16)", "tile's rank", "tile is None"]),
    # Collapse intervals, tt-mlir "Dimension Collapsing".
    ({"collapse": [(0, 3)]}, ["interval (0, 3)", "rank 2", "0 <= start <= end <= rank"]),
    ({"collapse": [(-3, -1)]}, ["interval (-3, -1)", "rank 2", "negative numbers count from"]),
    ({"collapse": [(1, 0)]}, ["interval (1, 0)", "rank 2", "start <= end"]),
    ({"collapse": [(0, 2), (1, 2)]}, ["[(0, 2), (1, 2)] overlap", "dim 1"]),
    ({"collapse": [(-2, 2), (0, 1)]}, ["[(-2, 2), (0, 1)] overlap", "dim"]),
    ({"collapse": [(0, 1.5)]}, ["collapse [(0, 1.5)]", "pairs (start, end)"]),
    ({"collapse": [(0, "1")]}, ["collapse [(0, '1')]", "pairs (start, end)"]),
    ({"collapse": ["01"]}, ["collapse ['01']", "pairs (start, end)"]),
    ({"collapse": [(0, 1, 2)]}, ["collapse [(0, 1, 2)]", "pairs (start, end)"]),
    ({"collapse": (0, -1)}, ["collapse (0, -1)", "pairs (start, end)"]),
    ({"collapse": 5}, ["collapse 5", "pairs (start, end)"]),
    ({"shape": (2, 3, 4), "collapse": []}, ["collapse [] leaves 3 dims", "grid of rank 3"]),
    # Six dims in four groups on five grid dims: the rule for that case would leave d0 nowhere.
    (
        {"shape": (2,) * 6, "grid": (1,) * 5, "collapse": [(1, 4)]},
        ["collapse [(1, 4)]", "puts dim 0 in no dim of a rank-5 grid", "grid of rank 4"],
    ),
    (
        {"shape": (2,) * 7, "grid": (1,) * 5, "collapse": [(0, 2), (2, 5)]},
        ["puts dim 0 in no dim", "grid of rank 4, or a linear map"],
    ),
    ({"collapse": [(0, 1)], "linear": "(d0, d1) -> (d0, d1)"}, ["collapse", "linear", "not both"]),
    # Linear maps.
    ({"linear": "(d0) -> (d0, d0)"}, ["(d0) -> (d0, d0) takes 1 dims", "(53, 63) has rank 2"]),
    ({"linear": "(d0, d1) -> (d0)"}, ["has 1 results", "grid (3, 2) has rank 2"]),
    ({"linear": RANK_5, "shape": (2,) * 6}, ["has 5 results", "grid (3, 2) has rank 2"]),
    ({"linear": "(d0, d1) -> (d0 - 1, d1)"}, ["d0 - 1 reaches -1", ">= 0", "add 1"]),
    ({"linear": "(d0, d1) -> (d0, -d1)"}, ["-d1 reaches -62", "(53, 63)", ">= 0", "add 62"]),
    ({"linear": f"(d0, d1) -> (d0 * {2**57}, d1)"}, ["d0 * 144115188075855872", "over 2**62"]),
    ({"linear": "(d0, d1) -> (d0, d2)"}, ["no such dim", "'d2'", "column"]),
    ({"linear": ""}, ["column 1"]),
    ({"linear": 5}, ["linear 5", "AffineMap or its text"]),
    ({"linear": b"(d0, d1) -> (d0, d1)"}, ["linear b'", "AffineMap or its text"]),
    ({"linear": ["d0", "d1"]}, ["linear ['d0', 'd1']", "AffineMap or its text"]),
    # Values.
    ({"oob": "infinite"}, ["oob 'infinite'", "undef, zero, one, inf, neginf", "number"]),
    ({"oob": [0]}, ["oob [0]", "undef, zero, one, inf, neginf", "number"]),
    ({"oob": np.zeros(2)}, ["oob array", "number"]),
    ({"oob": 1j}, ["oob 1j is complex", "float32"]),
    ({"oob": 3.5, "dtype": "int32"}, ["oob 3.5 is not a whole number", "int32"]),
    ({"oob": math.nan, "dtype": "int8"}, ["oob nan is not a value of int8", "undef, zero"]),
    ({"oob": math.nan, "dtype": "float4_e2m1fn"}, ["oob nan is not a value of float4_e2m1fn"]),
    ({"oob": "zero", "dtype": "float8_e8m0fnu"}, ["oob zero is not a value of float8_e8m0fnu"]),
    ({"oob": -0.0, "dtype": "float8_e8m0fnu"}, ["oob zero is not a value of float8_e8m0fnu"]),
    ({"oob": math.nan, "dtype": "bool"}, ["oob nan is not a value of bool", "undef, zero"]),
    ({"memory_space": "L1"}, ["memory_space 'L1'", "system, mmio, dram, l1"]),
    ({"memory_space": None}, ["memory_space None", "system, mmio, dram, l1"]),
    ({"memory_space": ["l1"]}, ["memory_space ['l1']", "system, mmio, dram, l1"]),
    ({"dtype": "float31"}, ["dtype 'float31' is not known", "bfloat16"]),
    ({"dtype": "(=,f4"}, ["dtype '(=,f4' is not known", "bfloat16"]),
    ({"dtype": "(2)f4"}, ["dtype '(2)f4' is not known", "bfloat16"]),
    ({"dtype": "str"}, ["dtype 'str' is not supported", "bfloat16"]),
    ({"dtype": object}, ["dtype 'object' is not supported", "bfloat16"]),
    ({"dtype": "f4,f4"}, ["is not supported", "bfloat16"]),
    ({"dtype": "datetime64[s]"}, ["dtype 'datetime64[s]' is not supported", "bfloat16"]),
    # NumPy reads None as float64.
    ({"dtype": None}, ["dtype None is not known", "bfloat16"]),
    ({"dtype": 4}, ["dtype 4 is not known", "bfloat16"]),
    ({"tile_format": "bfp_bf8"}, ["'bfp_bf8' needs tile=(32, 32)", "tile is None"]),
    ({"tile_format": "bfp_bf8", "tile": (16, 16)}, ["needs tile=(32, 32)", "(16, 16)"]),
    ({"tile_format": "bfp8", "tile": (32, 32)}, ["'bfp8'", "bfp_bf8, bfp_bf4, bfp_bf2"]),
    ({"tile_format": ["bfp_bf8"], "tile": (32, 32)}, ["['bfp_bf8']", "bfp_bf8, bfp_bf4"]),
]


@pytest.mark.parametrize(
    ("arguments", "says"),
    ARGUMENTS,
    ids=[f"{k}-{'-'.join(a)}" for k, (a, _) in enumerate(ARGUMENTS)],
)
def test_the_constructor_refuses(arguments, says):
    refused(*says, **arguments)


@pytest.mark.parametrize(
    "array", [np.ones((53, 63), "f4"), np.ones(300), np.arange(64).reshape(8, 8)]
)
@pytest.mark.parametrize(
    "make",
    [
        gl.GridLayout,
        lambda x: gl.GridLayout((3, 5), grid=x),
        lambda x: gl.GridLayout((3, 5), x),
        lambda x: gl.GridLayout((3, 5), tile=x),
        lambda x: gl.GridLayout((3, 5), linear=x),
        lambda x: gl.GridLayout((3, 5), collapse=x),
        lambda x: gl.GridLayout((3, 5), oob=x),
        lambda x: gl.GridLayout((3, 5), memory_space=x),
        lambda x: gl.GridLayout({"a": x}),
        lambda x: gl.GridLayout([x, x]),
        lambda x: gl.xla.layout(x),
        lambda x: gl.GridLayout((3, 5)).traffic(x),
    ],
)
def test_errors_print_the_shapes_of_arrays(make, array):
    with pytest.raises(gl.LayoutError) as found:
        make(array)
    dims = ",".join(map(str, array.shape))
    assert f"ndarray {array.dtype}[{dims}]" in str(found.value)
    assert len(str(found.value)) < 400


def test_replace_refuses_as_the_constructor_does():
    layout = gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32), face=(16, 16))
    for changes, says in (
        ({"grid": (3, 0)}, "grid .*>= 1"),
        ({"tile": None}, "face .* the tile is None"),
        ({"grid": (3, 2, 1)}, "has 2 results, but the grid .* has rank 3"),
        ({"collapse": [], "linear": "(d0, d1) -> (d0, d1)"}, "not both"),
        ({"oob": "none"}, "oob 'none'"),
    ):
        with pytest.raises(gl.LayoutError, match=says):
            layout.replace(**changes)
    with pytest.raises(gl.LayoutError, match="oob 'none'"):
        layout.with_oob("none")
    with pytest.raises(gl.LayoutError, match="dtype 'none' is not known"):
        layout.with_dtype("none")


def test_whole_numbers_of_any_type_are_whole_numbers():
    layout = gl.GridLayout([np.int8(53), np.int64(63)], grid=np.array([3, 2]), tile=iter((32, 32)))
    assert layout == gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
    assert {type(n) for n in layout.physical_shape + layout.shape + layout.grid} == {int}


# --- a layout is frozen ---

FIELDS = "shape dtype grid tile face linear oob memory_space tile_format steps order physical_shape"


@pytest.mark.parametrize("field", [*FIELDS.split(), "index_map", "new"])
def test_frozen(field):
    layout = gl.GridLayout((53, 63), grid=(3, 2))
    before, value = str(layout), getattr(layout, field, None)
    for each in (layout, copy.copy(layout), layout.with_oob(0)):
        with pytest.raises(AttributeError, match=f"frozen: {field} can't be set; build a new"):
            setattr(each, field, value)
        with pytest.raises(AttributeError, match=f"frozen: {field} can't be deleted"):
            delattr(each, field)
    assert str(layout) == before


# --- indices ---

LAYOUT = gl.GridLayout((53, 63), "bfloat16", grid=(3, 2), tile=(32, 32))

INDICES = [
    ((53, 0), ["index (53, 0)", "outside the shape (53, 63)"]),
    ((0, 63), ["index (0, 63)", "outside the shape (53, 63)"]),
    ((-1, 0), ["index (-1, 0)", ">= 0"]),
    ((0,), ["index (0,) has rank 1", "the shape (53, 63) has rank 2", "give 2 numbers"]),
    ((0, 0, 0), ["index (0, 0, 0) has rank 3", "the shape (53, 63) has rank 2"]),
    ((n for n in (53, 0)), ["index (53, 0)", "outside the shape (53, 63)"]),
    ((0.0, 0), ["index (0.0, 0)", "whole numbers"]),
    ((True, 0), ["index (True, 0)", "whole numbers"]),
    (5, ["index (5,) has rank 1", "the shape (53, 63) has rank 2", "give 2 numbers"]),
    (None, ["index None", "sequence of whole numbers"]),
]


@pytest.mark.parametrize(("index", "says"), INDICES)
def test_locate_refuses(index, says):
    with pytest.raises(gl.LayoutError, match=".*".join(map(re.escape, says))):
        LAYOUT.locate(index)


@pytest.mark.parametrize(
    ("physical", "says"),
    [
        (
            (3, 0, 0, 0, 0, 0),
            ["physical index (3, 0, 0, 0, 0, 0)", "outside", "(3, 2, 1, 1, 32, 32)"],
        ),
        (
            (0, 0, 0, 0, 0),
            ["physical index (0, 0, 0, 0, 0) has rank 5", "(3, 2, 1, 1, 32, 32) has rank 6"],
        ),
        ((0, 0, 0, 0, -1, 0), ["physical index (0, 0, 0, 0, -1, 0)", ">= 0"]),
        ((0, 0, 0, 0, 0.5, 0), ["physical index", "0.5", "whole numbers"]),
    ],
)
def test_logical_index_refuses(physical, says):
    with pytest.raises(gl.LayoutError, match=".*".join(map(re.escape, says))):
        LAYOUT.logical_index(physical)


@pytest.mark.parametrize("axis", [2, -3])
def test_padding_along_refuses(axis):
    with pytest.raises(gl.LayoutError, match=f"axis {axis} is outside the 2 collapsed dims"):
        LAYOUT.padding_along(axis)


# --- maps that are not injective: views that can be read and not written ---

# shape, linear, grid rank. Each puts two elements in one place.
VIEWS = [
    ((4, 5), "(d0, d1) -> (d0, 0)", 2),  # a broadcast, stride 0
    ((4, 5), "(d0, d1) -> (d0 + d1)", 1),  # a sliding window
    ((3, 4), "(d0, d1) -> (d0 * 2 + d1)", 1),  # overlapping rows
    ((4, 4), "(d0, d1) -> (d0 - d1 + 3, 0)", 2),  # diagonals
    ((9,), "(d0) -> (d0 floordiv 2, 0)", 2),
    ((2**20, 2**20), f"(d0, d1) -> (d0 * {2**20 - 1} + d1)", 1),  # too large to enumerate
]


@pytest.mark.parametrize(("shape", "linear", "grid_rank"), VIEWS)
def test_a_view_names_two_indices_that_collide(shape, linear, grid_rank):
    layout = gl.GridLayout(shape, linear=linear, grid=(2,) * grid_rank)
    with pytest.raises(
        gl.LayoutError, match=r"read-only view.*unpack can read it.*injective"
    ) as caught:
        layout.check_invertible()
    named = re.search(r"sends (\(.*?\)) and (\(.*?\)) to one place", str(caught.value)).groups()
    first, second = (tuple(int(i) for i in re.findall(r"\d+", text)) for text in named)
    assert first != second
    assert layout.locate(first) == layout.locate(second)


@pytest.mark.parametrize(
    "linear",
    [
        "(d0, d1) -> (d0 * 7 + d1, 0)",
        "(d0, d1) -> (d1 * 5 + d0, 0)",
        # Documented forms with a dim in two results, and one that is a skew.
        "(d0, d1) -> (d0 * 5 + d1, d1)",
        "(d0, d1) -> (d0 + d1, d1)",
        "(d0, d1) -> (d0 floordiv 2, d0 mod 2 + d1 * 2)",
    ],
)
def test_injective_maps_pass(linear):
    gl.GridLayout((4, 5), linear=linear).check_invertible()


# --- what is known of the padding ---

# dtype, the least and the greatest value, what infinity becomes. Sources: the formats' own
# definitions (OCP OFP8 for float8: E4M3 has no infinity, its greatest value is 448; OCP MX for
# float4: E2M1 has neither infinity nor NaN, and for E8M0: powers of two, no sign and no zero).
LIMITS = [
    ("bool", False, True),
    ("int2", -2, 1),
    ("int4", -8, 7),
    ("int8", -128, 127),
    ("int16", -32768, 32767),
    ("int32", -(2**31), 2**31 - 1),
    ("int64", -(2**63), 2**63 - 1),
    ("uint2", 0, 3),
    ("uint4", 0, 15),
    ("uint8", 0, 255),
    ("uint16", 0, 65535),
    ("uint32", 0, 2**32 - 1),
    ("uint64", 0, 2**64 - 1),
    ("float4_e2m1fn", -6.0, 6.0),
    ("float8_e4m3fn", -448.0, 448.0),
    ("float8_e5m2", -math.inf, math.inf),
    ("float8_e8m0fnu", 2.0**-127, 2.0**127),
    ("float16", -math.inf, math.inf),
    ("bfloat16", -math.inf, math.inf),
    ("float32", -math.inf, math.inf),
    ("float64", -math.inf, math.inf),
    ("complex64", complex(-math.inf, 0), complex(math.inf, 0)),
    ("complex128", complex(-math.inf, 0), complex(math.inf, 0)),
]


def known(oob, dtype):
    """The value that the padding has, and a check that it is one of the dtype."""
    value = gl.GridLayout((3,), dtype, (2,), oob=oob).oob
    held = np.asarray(value).astype(dtype)
    assert complex(held) == complex(value) or held != held
    return value


@pytest.mark.parametrize(("dtype", "least", "greatest"), LIMITS)
def test_infinity_and_numbers_out_of_range(dtype, least, greatest):
    for high in ("inf", math.inf, 10**400, np.float64(math.inf), np.float32(math.inf)):
        assert known(high, dtype) == greatest, high
    for low in ("neginf", -math.inf, -(10**400), np.float64(-math.inf)):
        assert known(low, dtype) == least, low
    if math.isfinite(abs(greatest)):
        assert known(greatest + 1, dtype) == greatest
        assert known(least - 1, dtype) == least
        assert known(greatest, dtype) == greatest
        assert known(least, dtype) == least
        assert known(1e300, dtype) == greatest


# dtype, a value, what is known. Ends of the formats, and the nearest value in between.
ROUNDED = [
    ("float4_e2m1fn", 2.4, 2.0),
    ("float8_e4m3fn", 449, 448.0),
    ("float8_e4m3fn", 447, 448.0),
    ("float8_e4m3fn", -1e9, -448.0),
    ("float8_e4m3fn", 0.001953125, 0.001953125),  # 2**-9, the least above 0
    ("float8_e4m3fn", 17, 16.0),
    ("float8_e8m0fnu", 2.5, 2.0),
    ("float8_e8m0fnu", -1, 2.0**-127),
    ("float8_e5m2", 57344, 57344.0),
    ("float8_e5m2", 1e9, math.inf),
    ("float8_e5m2", -1e9, -math.inf),
    ("float16", 65504, 65504.0),
    ("float16", -1e6, -math.inf),
    ("bfloat16", 257, 256.0),
    ("bfloat16", 1e39, math.inf),
    ("float32", 2**24 + 1, 16777216.0),
    ("float32", 1e39, math.inf),
    ("float64", 0.1, 0.1),
    ("complex64", 1e39, complex(math.inf, 0)),
    ("complex64", complex(1, -1e39), complex(1, -math.inf)),
    ("int8", 3.0, 3),
    ("int8", np.int64(5), 5),
    ("int8", True, 1),
    ("int8", -0.0, 0),
    ("float32", True, 1.0),
    ("float32", np.array(2.5), 2.5),
    ("bool", 7, True),
    ("bool", 0.0, False),
]


@pytest.mark.parametrize(("dtype", "oob", "expected"), ROUNDED)
def test_value_of_the_dtype(dtype, oob, expected):
    value = known(oob, dtype)
    assert value == expected
    assert type(value) is type(expected)


def test_nan_is_one_value():
    for dtype in ("float8_e4m3fn", "float8_e8m0fnu", "float16", "bfloat16", "float32", "complex64"):
        for nan in (math.nan, -math.nan, np.float32("nan"), np.array(math.nan)):
            layout = gl.GridLayout((3,), dtype, (2,), oob=nan)
            assert layout.oob != layout.oob
            assert layout == gl.GridLayout((3,), dtype, (2,), oob=float("nan"))
            assert layout != gl.GridLayout((3,), dtype, (2,), oob=1)
            # One object, so that tuples of facts compare equal: wherever the layout has been.
            for twin in (copy.deepcopy(layout), pickle.loads(pickle.dumps(layout))):
                assert (twin.oob,) == (known(nan, "float32"),)


def test_undef_is_no_number_and_zeros_differ_by_sign():
    zero, minus, undef = (gl.GridLayout((3,), grid=(2,), oob=v) for v in (0, -0.0, None))
    assert len({zero, minus, undef}) == 3
    assert zero == gl.GridLayout((3,), grid=(2,), oob="zero")
    assert undef == gl.GridLayout((3,), grid=(2,), oob="undef")
    assert zero.same_physical(undef)


@settings(deadline=None, max_examples=examples(500))
@given(
    st.sampled_from([dtype for dtype, _, _ in LIMITS]),
    st.one_of(st.integers(), st.floats(), st.integers(-(2**70), 2**70), st.complex_numbers()),
)
def test_a_known_value_is_one_of_the_dtype_and_stays(dtype, oob):
    try:
        layout = gl.GridLayout((3,), dtype, (2,), oob=oob)
    except gl.LayoutError as error:
        message = str(error)
    else:
        assert known(layout.oob, dtype) == layout.oob or layout.oob != layout.oob
        assert layout.with_oob(layout.oob) == layout
        return
    wrong = "is complex|not a whole number|oob nan is not a value|oob zero is .* of float8_e8m0fnu"
    assert re.search(wrong, message)


# --- whether it fits ---

# What the boards that compilers see have: L1 and DRAM less what is reserved.
WORMHOLE, BLACKHOLE = gl.tenstorrent.WORMHOLE, gl.tenstorrent.BLACKHOLE


WORMHOLE_DRAM = 12 * (1073118784 - 2968640)
BLACKHOLE_DRAM = 8 * (4276523520 - 5848704)


def test_the_chips():
    assert WORMHOLE.grid == (8, 8)
    assert WORMHOLE.capacity == {"l1": 1499136 - 103840, "dram": WORMHOLE_DRAM}
    assert BLACKHOLE.grid == (10, 13)
    assert BLACKHOLE.capacity == {"l1": 1572864 - 111104, "dram": BLACKHOLE_DRAM}


# memory space, layout, chip, bytes needed, capacity. l1 counts one core, dram all of them.
FITS = [
    ("l1", ((53, 63), "bfloat16", (3, 2), (32, 32)), WORMHOLE, 2048, 1395296),
    ("dram", ((53, 63), "bfloat16", (3, 2), (32, 32)), WORMHOLE, 6 * 2048, WORMHOLE_DRAM),
    ("l1", ((53, 63), "bfloat16", (3, 2), (32, 32)), BLACKHOLE, 2048, 1461760),
    # To the byte: 1395296 = 348824 * 4.
    ("l1", ((348824,), "float32", (1,)), WORMHOLE, 1395296, 1395296),
    ("l1", ((348824 + 1,), "float32", (1,)), WORMHOLE, 1395300, 1395296),
    # Two cores halve what each needs of its l1, and nothing of what all need of the dram.
    ("l1", ((348824 + 1,), "float32", (2,)), WORMHOLE, 4 * 174413, 1395296),
    ("dram", ((2**31 + 3 * 2**30,), "float32", (2,)), WORMHOLE, 20 * 2**30, WORMHOLE_DRAM),
    # Half bytes are rounded up on each core.
    ("dram", ((3,), "int4", (3,)), WORMHOLE, 3, WORMHOLE_DRAM),
    # Host memory: no stated capacity.
    ("system", ((2**40,), "float32", (2,)), WORMHOLE, 2**42, None),
    ("mmio", ((2**40,), "float32", (2,)), BLACKHOLE, 2**42, None),
]


@pytest.mark.parametrize(("space", "arguments", "chip", "needed", "capacity"), FITS)
def test_fits(space, arguments, chip, needed, capacity):
    fit = gl.GridLayout(*arguments, memory_space=space).fits(chip)
    assert fit.space == space
    assert fit.needed == needed
    assert fit.capacity == capacity
    assert fit.free == (None if capacity is None else capacity - needed)
    assert bool(fit) is (capacity is None or needed <= capacity)
    where = "on each core" if space == "l1" else "in total"
    if capacity is None:
        assert str(fit) == f"{needed} B of {space} {where}, no stated capacity"
    else:
        verdict = "fits" if needed <= capacity else "does not fit"
        assert str(fit).startswith(f"{verdict}: {needed} B of {capacity} B {space} {where}, ")
        assert str(fit).endswith(f"{capacity - needed} B free")


def test_a_block_format_is_what_makes_it_fit():
    """1088 instead of 4096 bytes a tile: a quarter and a bit of float32."""
    layout = gl.GridLayout((1024, 1024), "float32", grid=(1, 1), tile=(32, 32))
    block = layout.replace(tile_format="bfp_bf8")
    assert not layout.fits(WORMHOLE)
    assert block.fits(WORMHOLE)
    assert block.fits(WORMHOLE).needed == 1024 * 1088


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("toy", (2, 2), {"l1": 1, "dram": 1, "sram": 1}), "memories l1, dram, sram are too many"),
        (("toy", (2, 2), {"l1": -1}), "capacity of l1, .*>= 0"),
        (("toy", (2, 2), {"l1": "1 MB"}), "capacity of l1, .*whole numbers"),
        (("toy", (2, 2), 1024), "capacity 1024 must be a dict of bytes by memory space"),
        (("toy", 4.0), "grid 4.0 must be a sequence of whole numbers"),
        ((None, (2, 2)), "name None of a chip must be a str"),
        (("toy", (2, 2), {}, (32, 32)), r"tiles \(32, 32\) must be a sequence of shapes"),
        (("toy", (2, 2), {}, "32"), "tile '3' must be a sequence of whole numbers"),
    ],
)
def test_a_chip_is_a_name_a_grid_and_bytes_by_memory_space(arguments, says):
    with pytest.raises(gl.LayoutError, match=says):
        gl.Chip(*arguments)
    assert gl.GridLayout((3,), grid=(1,)).fits(gl.Chip("toy", (2, 2))).free is None


def test_chips_go_by_their_names():
    layout = gl.GridLayout((53, 63), grid=(3, 2))
    assert layout.fits("wormhole") == layout.fits(WORMHOLE)
    assert layout.fits("Blackhole") == layout.fits(BLACKHOLE)
    large = gl.GridLayout((4096, 4096), "bfloat16", grid=(2, 2), tile=(32, 32))
    assert gl.slices(large, "wormhole").size == gl.slices(large, WORMHOLE).size
    text = "f32[1000,3]{1,0:T(8,128)}"
    assert gl.explain(text, chip="blackhole").chip == BLACKHOLE
    for chip in ("grayskull", "", None, 5, ["wormhole"], gl.sophon.BM1684):
        says = re.escape(f"chip {chip!r} is neither a gl.Chip nor one of wormhole, blackhole")
        with pytest.raises(gl.LayoutError, match=says):
            layout.fits(chip)
        with pytest.raises(gl.LayoutError, match=says):
            gl.slices(large, chip)
        if chip is not None:  # the dump's own
            with pytest.raises(gl.LayoutError, match=says):
                gl.explain(text, chip=chip)


# --- names of element types ---


def test_a_dtype_goes_by_every_name_that_the_library_prints():
    """MLIR's names, those of XLA types and of tiles, which count bits as NumPy's codes don't."""
    layouts = [gl.GridLayout((32, 32), dtype, tile=(32, 32)) for dtype, _, _ in LIMITS]
    for layout in layouts:
        printed = [re.search(r"tensor<32x32x(.*?), #", str(layout))[1]]
        xla = str(gl.xla.layout((4,), layout.dtype))
        printed.append(re.match(r"(.*)\[4\]", xla)[1])
        for system in (gl.tenstorrent.metal, gl.tenstorrent.ttnn):
            text = str(system((32, 32), layout.dtype, tile=(32, 32)))
            printed.append(re.search(r"ttcore\.tile<32x32, (.*?)>, #", text)[1])
        for name in printed:
            assert gl.GridLayout((5,), name, (2,)).dtype == layout.dtype, name


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(("f32", "float32"), ("bf16", "bfloat16"), ("f8E4M3FN", "float8_e4m3fn")),
        *(("f8e8m0fnu", "float8_e8m0fnu"), ("complex<f32>", "complex64"), ("c128", "complex128")),
        *(("f8E4M3B11FNUZ", "float8_e4m3b11fnuz"), ("f8e5m2fnuz", "float8_e5m2fnuz")),
        *(("i32", "int32"), ("si32", "int32"), ("s32", "int32"), ("si8", "int8")),
        *(("u8", "uint8"), ("ui8", "uint8"), ("u4", "uint4"), ("u2", "uint2")),
        # NumPy's codes of the same letters count bytes: "i8" is int64 there, "i1" int8.
        *(("i1", "bool"), ("pred", "bool"), ("i8", "int8"), ("i4", "int4"), ("i2", "int2")),
        # And those of other letters, of dtypes and of arrays with a byte order stay NumPy's.
        *(("f4", "float32"), ("<i8", "int64"), (np.dtype("i8"), "int64"), ("b1", "bool")),
    ],
)
def test_names_of_types(name, dtype):
    layout = gl.GridLayout((5, 7), name, (2, 2))
    assert layout.dtype.name == dtype
    assert layout.with_dtype(name) is layout
    for other in (
        gl.xla.layout((4,), name),
        gl.megengine.contiguous((4, 4), name),
        gl.sophon.system((1, 1, 4, 4), name),
        gl.tenstorrent.tensor_layout((32, 32), name),
    ):
        assert other.dtype.name == dtype


def test_a_block_format_is_no_dtype():
    says = "dtype 'bfp_bf8' is a block format of tiles: give tile_format='bfp_bf8'"
    with pytest.raises(gl.LayoutError, match=says):
        gl.GridLayout((32, 32), "bfp_bf8", tile=(32, 32))


# --- sets and dicts, whose order is not that of the user ---

LINK = gl.Links(1e9)
UNORDERED = {
    "hosts": lambda: gl.Machine("n150", (4, 4), LINK, hosts={4, 2}, host_links=LINK),
    "mesh": lambda: gl.Machine("n150", mesh={4, 2}, links=LINK),
    "device grid": lambda: gl.DeviceGrid({4, 2}),
    "device grid {": lambda: gl.DeviceGrid({4: 1, 2: 1}),
    "shape": lambda: gl.GridLayout({5, 7}, grid=(1, 1)),
    "grid": lambda: gl.GridLayout((5, 7), grid=frozenset({2, 1})),
    "tile": lambda: gl.GridLayout((5, 7), grid=(1, 1), tile={2: 0, 4: 0}),
    "order": lambda: gl.Layout((2, 3), "float32", (), {1, 0}),
    "strides": lambda: gl.strided.layout((2, 3), {3, 1}, "int8"),
    "strides {": lambda: gl.sophon.local((2, 3, 4, 5), "int8", strides={60, 20, 5, 1}),
    "minor_to_major": lambda: gl.xla.layout((3, 5), minor_to_major={1, 0}),
    "tiles": lambda: gl.xla.layout((3, 5), tiles={(8, 128), (2, 1)}),
    "tile {": lambda: gl.xla.layout((3, 5), tiles=[{8, 128}]),
    "splits": lambda: gl.xla.layout((3, 5), splits={0: (1,)}),
    "splits .* indices": lambda: gl.xla.layout((3, 5), splits=[(0, {1, 2})]),
    "padding": lambda: gl.mli.conv2d(
        *(gl.mli.tensor((4, 4, 3), "HWC", "int8"), gl.mli.tensor((2, 2, 3, 1), "HWCN", "int8")),
        padding={(0, 0), (1, 1)},
    ),
}


@pytest.mark.parametrize("what", UNORDERED)
def test_sets_and_dicts_are_no_sequences(what):
    with pytest.raises(gl.LayoutError, match=f"^{what}.* is a (set|dict), but .*give a sequence"):
        UNORDERED[what]()


def test_numbers_from_1_have_one_rule():
    for hosts in ((0, 1), (-1, 1), (True, 1), ()):
        with pytest.raises(gl.LayoutError, match=re.escape(f"grid {hosts} must hold whole numb")):
            gl.GridLayout((5, 7), grid=hosts)
    with pytest.raises(gl.LayoutError, match=r"hosts \(-1, 1\) must hold .* all >= 1"):
        gl.Machine("n150", (4, 4), LINK, hosts=(-1, 1), host_links=LINK)


HUGE = 10**5000  # Python prints no int of more than 4300 digits
UNPRINTABLE = {
    "shape": lambda: gl.GridLayout((HUGE,)),
    "below 0": lambda: gl.GridLayout((-HUGE,)),
    "grid": lambda: gl.GridLayout((5,), grid=(1, HUGE)),
    "dtype": lambda: gl.GridLayout((5,), HUGE),
    "collapse": lambda: gl.GridLayout((5,), collapse=[(0, HUGE)]),
    "memory_space": lambda: gl.GridLayout((5,), memory_space=HUGE),
    "index": lambda: gl.GridLayout((5,)).locate((HUGE,)),
    "chip": lambda: gl.GridLayout((5,)).fits(HUGE),
    "limit": lambda: gl.caches.limit(HUGE),
    "strides": lambda: gl.megengine.strided((5,), (HUGE,), "int8"),
    "start": lambda: gl.sophon.local((1, 1, 1, 1), "int8", start=HUGE),
    "elements": lambda: gl.to_bytes([HUGE], gl.GridLayout((1,), "int8")),
}


@pytest.mark.parametrize("what", UNPRINTABLE)
def test_numbers_that_python_does_not_print_are_refused(what):
    with pytest.raises(gl.LayoutError, match="with a number too long to print"):
        UNPRINTABLE[what]()
