"""Compiled TTNN programs: what they compute here is what the JAX functions compute."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import NAMES, PROGRAMS, TTIR, TTIR_NAMES, arrays_of, function_of, text_of
from tiers import few

import gridlayout as gl
from gridlayout.errors import LayoutError
from gridlayout.ops.tenstorrent.spread import Cut, divided, joined, spread_of
from gridlayout.ops.tenstorrent.table import FUNCTIONS

load = gl.tenstorrent.load

# A pool and a convolution of volumes compute in bfloat16; the norm of bfloat16 rounds on the way.
STEPS = {"lnorm_bf16": 2**-6} | dict.fromkeys(
    ("conv", "convnet", "poolgrad_bf16", "volumes"), 2**-8
)
# With tests of their own: what loses bits, and what the compiler cut for two chips.
OTHERS = ["conv.n300.O0", *(name for name in NAMES if "bfp" in name)]


def assert_results(name, program, arrays, function=None):
    found = program(*arrays)
    found = found if isinstance(found, list) else [found]
    expected = jax.tree.leaves(jax.jit(function or function_of(name))(*arrays))
    assert len(found) == len(expected)
    near = STEPS.get(name.split(".")[0], 1e-5)
    for one, other in zip(found, expected, strict=True):
        one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=near, atol=near * np.abs(other).max())


# -- the judge -------------------------------------------------------------------------------------


def test_every_program_has_a_dump():
    assert {name.split(".")[0] for name in NAMES} == set(PROGRAMS)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", few([name for name in NAMES if name not in OTHERS], 6))
def test_programs_compute_what_jax_does_and_read_no_padding(name):
    assert_results(name, load(text_of(name), oob=np.nan), arrays_of(name))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", few(TTIR_NAMES, 4))
def test_programs_before_layouts_compute_what_jax_does(name):
    program = load(text_of(name, TTIR))
    assert_results(name, program, arrays_of(name))
    assert set(program.layouts.values()) == {None}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["mlp.p150.O2", "conv.p150.O2", "layer_norm.n300.O0"])
def test_on_a_device_grid(name):
    device = gl.DeviceGrid((2, 4))
    program = load(text_of(name), device, oob=np.nan)
    assert_results(name, program, arrays_of(name, 1))


def test_the_program_runs_as_it_is_written():
    # Each of these chips convolves its half of the rows, and gets none of the other's.
    name = "conv.n300.O0"
    assert_results(
        name, load(text_of(name)), arrays_of(name), lambda *a: PROGRAMS["conv"][0](*a, 2)
    )


def halved_steps(x, element):
    """Half a step of the block format at each element of a matrix: no other value is nearer."""
    groups = np.abs(np.pad(x, [(0, 0), (0, -x.shape[1] % 16)])).reshape(len(x), -1, 16).max(-1)
    power = np.repeat(2.0 ** np.floor(np.log2(groups)), 16, 1)[:, : x.shape[1]]
    near = power * 2.0 ** {"bfp8": -7, "bfp4": -3}[element]
    # What would carry is cut off instead: a whole step at most.
    return np.where(np.abs(x) + near >= 2 * power, 2 * near, near)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", [name for name in NAMES if "bfp" in name])
def test_weights_in_block_formats_cost_what_their_steps_allow(name):
    element = name[7:11]
    program, (x, w1, b, w2) = load(text_of(name), oob=np.nan), arrays_of(name)
    kinds = {op.outputs[0].tile_format for op in program.operations if op.name == "typecast"}
    assert f"bfp_bf{element[-1]}" in kinds
    found = np.asarray(program(x, w1, b, w2), np.float64)
    first, second = halved_steps(w1, element), halved_steps(w2, element)
    hidden = np.maximum(x @ w1 + b, 0)
    moved = np.abs(x) @ first
    bound = moved @ np.abs(w2) + (hidden + moved) @ second
    away = np.abs(found - (hidden @ w2))
    assert (away <= bound * 1.0001 + 1e-5).all()
    assert np.median(away / bound) > 2**-8  # it rounds: the bound is not for nothing
    tiles = [as_tiles(w, f"bfp_bf{element[-1]}") for w in (w1, w2)]
    expected = np.maximum(x @ tiles[0] + b, 0) @ tiles[1]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def as_tiles(x, element):
    """A matrix as `gl.tenstorrent.bfp` encodes its tiles."""
    bfp, (rows, columns) = gl.tenstorrent.bfp, (-(-n // 32) for n in x.shape)
    whole = np.zeros((rows * 32, columns * 32), np.float32)
    whole[: x.shape[0], : x.shape[1]] = x
    tiles = whole.reshape(rows, 32, columns, 32).swapaxes(1, 2)
    made = bfp.decode(bfp.encode(tiles, element), element)
    return made.swapaxes(1, 2).reshape(whole.shape)[: x.shape[0], : x.shape[1]]


def test_inside_jit():
    program, (x, y) = load(text_of("matmul_odd.p150.O2")), arrays_of("matmul_odd")
    found = jax.jit(lambda x, y: program(x + 1, y).to_logical() * 2)(x, y)
    np.testing.assert_allclose(found, (x + 1) @ y * 2, rtol=1e-5, atol=1e-5)


def test_a_program_can_be_jitted_itself():
    program, (x, y) = load(text_of("matmul_odd.p150.O2")), arrays_of("matmul_odd")
    np.testing.assert_allclose(np.asarray(jax.jit(program)(x, y)), x @ y, rtol=1e-5, atol=1e-5)
    program, arrays = load(text_of("reductions.p150.O1")), arrays_of("reductions")
    for one, other in zip(jax.jit(program)(*arrays), program(*arrays), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5)


def test_results_are_in_the_layouts_that_the_types_state():
    program, (x, y) = load(text_of("matmul_odd.p150.O2")), arrays_of("matmul_odd")
    found = program(x, y)
    assert found.layout == program.layouts["%4"] == program.results[0].layout
    assert found.layout == gl.tenstorrent.ttnn((53, 10), tile=(32, 32), buffer_type="dram")
    assert program.layouts["%3"] == gl.tenstorrent.ttnn((53, 10), grid=(2, 1), tile=(32, 32))


def test_padding_of_a_given_array_is_never_read():
    program, (x, y) = load(text_of("matmul_odd.p150.O2")), arrays_of("matmul_odd")
    device = gl.DeviceGrid((1,))
    laid_out = gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
    given = gl.put(x, laid_out.with_oob(np.nan), device)
    given = gl.from_physical(given.physical, laid_out, device)
    assert np.isnan(np.asarray(given.physical)).any()
    np.testing.assert_allclose(np.asarray(program(given, y)), x @ y, rtol=1e-5, atol=1e-5)


def test_chips_hold_their_parts():
    program = load(text_of("layer_norm.n300.O0"), gl.DeviceGrid((1, 2)))
    assert program.chips == (1, 2)
    assert [kind.shape for kind in program.arguments] == [(1000, 150), (300,), (300,)]
    assert program(*arrays_of("layer_norm")).shape == (1000, 300)


# -- the report ------------------------------------------------------------------------------------


def test_report_says_what_the_compiler_wrote_and_what_runs():
    report = load(text_of("matmul_odd.p150.O2")).report()
    matmul = next(op for op in report.operations if op.name == "matmul")
    assert matmul.line == 19
    assert matmul.operands == ("%2", "%1")
    assert "per_core_m = 1" in matmul.hints["matmul_program_config"]
    assert "matmul(%2, %1)  hints: matmul_program_config" in str(report)
    products = [row for row in report.rows if row.primitive == "dot_general"]
    assert [row.outputs[0].core_shape for row in products] == [(2, 1)]
    assert not report.fallbacks


def test_report_of_arrays_and_of_none_agree():
    program = load(text_of("mlp.p150.O2"))
    assert program.report(*arrays_of("mlp")).rows == program.report().rows


def test_report_needs_no_devices():
    mesh = jax.sharding.AbstractMesh((2, 4), ("x", "y"))
    report = load(text_of("mlp.p150.O2"), gl.DeviceGrid(mesh)).report()
    assert report.bytes_moved > 0


def test_hints_change_nothing_else_does():
    text = text_of("matmul_odd.p150.O2")
    with pytest.raises(LayoutError, match=r"line 19: ttnn.matmul: attribute transposed = true is"):
        load(text.replace("transpose_a = false", "transposed = true, transpose_a = false"))
    other = load(text.replace("per_core_m = 1", "per_core_m = 2"))
    x, y = arrays_of("matmul_odd")
    np.testing.assert_allclose(np.asarray(other(x, y)), x @ y, rtol=1e-5, atol=1e-5)


# -- one op at a time ------------------------------------------------------------------------------


def kind_of(shape, element="f32", tile=True):
    """A tensor type in DRAM, as the compiler prints it."""
    padded = (1,) * (2 - len(shape)) + tuple(shape)
    if tile:
        padded = (*padded[:-2], *(-(-n // 32) * 32 for n in padded[-2:]))
    rows, columns = int(np.prod(padded[:-1])), padded[-1]
    dims = [f"d{k}" for k in range(len(shape))]
    strides = [int(np.prod(padded[k + 1 : -1])) for k in range(len(shape) - 1)]
    terms = [d if s == 1 else f"{d} * {s}" for d, s in zip(dims[:-1], strides, strict=True)]
    last = dims[-1] if dims else "0"
    linear = f"({', '.join(dims)}) -> ({' + '.join(terms) or '0'}, {last})"
    inner = f"!ttcore.tile<32x32, {element.replace('ui', 'u')}>" if tile else element
    memref = f"{rows // 32}x{columns // 32}x{inner}" if tile else f"{rows}x{columns}x{inner}"
    if element.startswith("bfp"):
        element = f"!ttcore.tile<32x32, {element}>"
    return (
        f"tensor<{''.join(f'{n}x' for n in shape)}{element}, #ttnn.ttnn_layout<{linear}, <1x1>, "
        f"memref<{memref}, #ttnn.buffer_type<dram>>, <interleaved>>>"
    )


def program_of(op, inputs, output, attributes="", **rest):
    """A program of one op; inputs and output are types."""
    names = [f"%arg{k}" for k in range(len(inputs))]
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(names, inputs, strict=True))
    attributes = f" <{{{attributes}}}>" if attributes else ""
    return load(
        f"func.func @main({arguments}) -> {output} {{\n"
        f'  %0 = "ttnn.{op}"({", ".join(names)}){attributes} : ({", ".join(inputs)}) -> {output}\n'
        f"  return %0 : {output}\n}}\n",
        **rest,
    )


SHAPE = (5, 37)


def numbers(*shape, seed=0, low=0.1):
    return np.random.default_rng(seed).uniform(low, 0.9, shape).astype(np.float32)


UNARY = {
    **{name: getattr(np, name) for name in ("abs", "ceil", "cos", "exp", "expm1", "floor", "log")},
    **{name: getattr(np, name) for name in ("log1p", "sign", "sin", "sqrt", "tan", "tanh", "cbrt")},
    **{"atan": np.arctan, "asin": np.arcsin, "neg": np.negative, "rsqrt": lambda x: x**-0.5},
    **{"reciprocal": lambda x: 1 / x, "relu": lambda x: np.maximum(x, 0), "round": np.round},
    **{"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "silu": lambda x: x / (1 + np.exp(-x))},
    **{"isfinite": np.ones_like, "logical_not": np.zeros_like, "relu6": lambda x: x},
}


@pytest.mark.few(8)
@pytest.mark.parametrize("name", UNARY)
def test_elementwise(name):
    x = numbers(*SHAPE)
    found = program_of(name, [kind_of(SHAPE)], kind_of(SHAPE), oob=np.nan)(x)
    np.testing.assert_allclose(np.asarray(found), UNARY[name](x), rtol=1e-5, atol=1e-6)


BINARY = {
    **{"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide},
    **{"maximum": np.maximum, "minimum": np.minimum, "pow_tensor": np.power, "atan2": np.arctan2},
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater},
    **{"ge": np.greater_equal, "remainder": np.fmod, "logical_and": np.logical_and},
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", BINARY)
def test_elementwise_of_two_that_broadcast(name):
    x, y = numbers(*SHAPE), numbers(1, 37, seed=1)
    kinds = [kind_of(SHAPE), kind_of((1, 37))]
    found = program_of(name, kinds, kind_of(SHAPE), oob=np.nan)(x, y)
    expected = BINARY[name](x, y).astype(np.float32)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)


def test_fused_activations_are_no_hints():
    x, y = numbers(*SHAPE), numbers(*SHAPE, seed=1)
    one = "#ttnn.unary_with_param<op_type = {}>"
    words = (
        f"activations = [{one.format('neg')}, {one.format('exp')}], "
        f"input_tensor_a_activations = [{one.format('tanh')}], input_tensor_b_activations = []"
    )
    found = program_of("add", [kind_of(SHAPE)] * 2, kind_of(SHAPE), words)(x, y)
    np.testing.assert_allclose(np.asarray(found), np.exp(-(np.tanh(x) + y)), rtol=1e-5)
    words = f"activations = [{one.format('round, params = [1.0 : f32]')}]"
    found = program_of("add", [kind_of(SHAPE)] * 2, kind_of(SHAPE), words)(x, y)
    np.testing.assert_allclose(np.asarray(found), np.round(x + y, 1), rtol=1e-5)
    with pytest.raises(LayoutError, match="the activation 'exp' with parameters"):
        program_of("add", [kind_of(SHAPE)] * 2, kind_of(SHAPE), words.replace("round", "exp"))
    config = f"matmul_program_config = #ttnn.some_config<fused_activation = {one.format('neg')}>"
    kinds = [kind_of((5, 37)), kind_of((37, 3))]
    z = numbers(37, 3)
    found = program_of("matmul", kinds, kind_of((5, 3)), config)(x, z)
    np.testing.assert_allclose(np.asarray(found), -(x @ z), rtol=1e-5)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("name", "words", "shape", "expected"),
    [
        ("layer_norm", "epsilon = 1.0e-5 : f32", (5, 37), lambda x: (x - m(x)) / s(x - m(x))),
        ("cumprod", "dim = 1 : si32", (5, 37), lambda x: np.cumprod(x, 1)),
        ("prod", "dim_arg = 1 : si64, keep_dim = true", (5, 1), lambda x: x.prod(1, keepdims=True)),
        ("sum", "keep_dim = false", (), np.sum),
        ("clamp_scalar", "max = 0.5 : f32, min = 2.5e-1 : f32", (5, 37),
         lambda x: x.clip(0.25, 0.5)),
        ("leaky_relu", "parameter = 1.0e-2 : f32", (5, 37), lambda x: x),
        ("pow_scalar", "rhs = 2.0 : f32", (5, 37), lambda x: x**2),
        ("repeat_interleave", "dim = 0 : si32, repeats = 2 : ui32", (10, 37),
         lambda x: x.repeat(2, 0)),
        ("transpose", "dim0 = -2 : si32, dim1 = -1 : si32", (37, 5), np.transpose),
        ("slice_static", "begins = [1 : i32, -7 : i32], ends = [5 : i32, 36 : i32], "
         "step = [2 : i32, 1 : i32]", (2, 6), lambda x: x[1:5:2, -7:36]),
    ],
)  # fmt: skip
def test_ops_with_attributes(name, words, shape, expected):
    x = numbers(*SHAPE)
    found = program_of(name, [kind_of(SHAPE)], kind_of(shape), words, oob=np.nan)(x)
    np.testing.assert_allclose(np.asarray(found), expected(x), rtol=1e-4, atol=1e-6)


def m(x):
    return x.mean(-1, keepdims=True)


def s(x):
    return np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


@pytest.mark.few(1)
@pytest.mark.parametrize("causal", ["true", "false"])
def test_attention_of_shared_heads(causal):
    q, k, v = (numbers(2, n, 9, 8, seed=n) for n in (4, 2, 2))
    kinds = [kind_of(x.shape) for x in (q, k, v)]
    words = f"is_causal = {causal}, operandSegmentSizes = array<i32: 1, 1, 1, 0>"
    found = program_of("scaled_dot_product_attention", kinds, kinds[0], words)(q, k, v)
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    expected = jax.nn.dot_product_attention(q, k, v, is_causal=causal == "true")
    np.testing.assert_allclose(
        np.asarray(found), expected.transpose(0, 2, 1, 3), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("ceil", ["true", "false"])
def test_pools_with_a_last_window_that_is_not_full(ceil):
    x = numbers(2, 7, 9, 3)
    rows, columns = (4, 5) if ceil == "true" else (3, 4)
    words = (
        "batch_size = 2 : si32, channels = 3 : si32, input_height = 7 : si32, "
        "input_width = 9 : si32, "
        "kernel_size = array<i32: 2, 2>, stride = array<i32: 2, 2>, padding = array<i32: 0, 0>, "
        f"dilation = array<i32: 1, 1>, ceil_mode = {ceil}"
    )
    kinds = [kind_of((1, 1, 126, 3)), kind_of((1, 1, 2 * rows * columns, 3))]
    found = program_of("max_pool2d", kinds[:1], kinds[1], words)(x.reshape(1, 1, 126, 3))
    expected = [[x[:, a : a + 2, b : b + 2].max((1, 2)) for b in range(0, 2 * columns, 2)]
              for a in range(0, 2 * rows, 2)]  # fmt: skip
    expected = np.transpose(expected, (2, 0, 1, 3)).reshape(1, 1, -1, 3)
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("counted", ["true", "false"])
def test_means_of_a_last_window_that_is_not_full(counted):
    x = numbers(1, 4, 3, 2)
    words = (
        "batch_size = 1 : si32, channels = 2 : si32, input_height = 4 : si32, "
        "input_width = 3 : si32, "
        "kernel_size = array<i32: 2, 2>, stride = array<i32: 2, 2>, padding = array<i32: 1, 0>, "
        f"dilation = array<i32: 1, 1>, ceil_mode = true, count_include_pad = {counted}"
    )
    kinds = [kind_of((1, 1, 12, 2)), kind_of((1, 1, 6, 2))]
    found = program_of("avg_pool2d", kinds[:1], kinds[1], words)(x.reshape(1, 1, 12, 2))
    padded = np.pad(x, [(0, 0), (1, 1), (0, 0), (0, 0)])
    if counted == "false":
        padded[:, [0, -1]] = np.nan
    expected = [[np.nanmean(padded[:, a : a + 2, b : b + 2], (1, 2)) for b in (0, 2)]
                for a in (0, 2, 4)]  # fmt: skip
    expected = np.transpose(expected, (2, 0, 1, 3)).reshape(1, 1, -1, 2)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("dense<[[1.0, -2.0], [0x7F800000, 3.0e2]]> : tensor<2x2xf32>", [[1, -2], [np.inf, 300]]),
        ("dense<5.0e-1> : tensor<2x2xf32>", [[0.5, 0.5], [0.5, 0.5]]),
        ('dense<"0x0000803F000000400000404000008040"> : tensor<2x2xf32>', [[1, 2], [3, 4]]),
    ],
)
def test_constants(value, expected):
    found = program_of("constant", [], kind_of((2, 2)), f"value = {value}")()
    assert np.asarray(found).tolist() == expected


def test_integers_and_truth_values():
    kinds = [kind_of((3, 4), "si32"), kind_of((3, 4), "bf16")]
    x = np.arange(12, dtype=np.int32).reshape(3, 4) - 5
    found = program_of("typecast", kinds[:1], kinds[1])(x)
    assert found.dtype == jnp.bfloat16
    assert np.asarray(found).tolist() == x.tolist()
    truth = program_of("logical_not", kinds[1:], kinds[0])(x > 0)
    assert np.asarray(truth).tolist() == (x <= 0).astype(int).tolist()


@pytest.mark.parametrize(("element", "bits"), [("bfp_bf8", 7), ("bfp_bf4", 3)])
def test_block_formats_round_as_tiles_do(element, bits):
    shape = (2, 35, 41)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x *= 2.0 ** np.random.default_rng(1).integers(-9, 9, shape)
    there = kind_of(shape, element)
    program = program_of("typecast", [kind_of(shape)], there, oob=np.nan)
    assert program.layouts["%0"].tile_format == element
    bfp = gl.tenstorrent.bfp
    padded = np.zeros((2, 64, 64), np.float32)
    padded[:, :35, :41] = x
    tiles = padded.reshape(2, 2, 32, 2, 32).swapaxes(2, 3)
    expected = bfp.decode(bfp.encode(tiles, element), element)
    expected = expected.swapaxes(2, 3).reshape(2, 64, 64)[:, :35, :41]
    found = np.asarray(program(x), np.float32)
    np.testing.assert_array_equal(found, expected)
    given = program_of("assign", [there], there)(x)
    np.testing.assert_array_equal(np.asarray(given, np.float32), expected)
    assert np.abs(found - x).max() <= np.abs(x).max() * 2.0**-bits


@pytest.mark.parametrize(("element", "dtype"), [("bf16", jnp.bfloat16), ("ui32", np.uint32)])
def test_gradients_of_an_embedding_are_summed_by_row(element, dtype):
    rows, gradient = [3, 0, 3, 1], numbers(1, 1, 4, 32)
    kinds = [kind_of((1, 4), element), kind_of((5, 32)), kind_of((1, 1, 4, 32))]
    program = program_of("embedding_bw", kinds, kind_of((1, 1, 5, 32)))
    found = program(np.array([rows], dtype), np.zeros((5, 32), np.float32), gradient)
    expected = np.zeros((1, 1, 5, 32), np.float32)
    np.add.at(expected[0, 0], rows, gradient[0, 0])
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


def test_all_ops_have_a_function():
    assert {"matmul", "softmax", "conv2d", "embedding", "all_gather"} - set(FUNCTIONS) == {
        "all_gather"
    }


def product_time(shapes, words=""):
    *operands, result = map(kind_of, shapes)
    return gl.simulate(program_of("matmul", operands, result, words), machine="n150").time


@pytest.mark.parametrize(("rows", "inner"), [(32, 4096), (4096, 32)])
def test_a_transposed_operand_is_read_as_if_it_were_stored_transposed(rows, inner):
    rest = ((inner, 64), (rows, 64))
    plain = product_time(((rows, inner), *rest))
    assert product_time(((inner, rows), *rest), "transpose_a = true") == pytest.approx(plain)


# -- several chips ---------------------------------------------------------------------------------


def test_arrays_are_divided_and_joined():
    x = np.arange(2 * 6 * 4).reshape(2, 6, 4)
    spread = spread_of(x.shape, (1, 6, 1), (2, 4), "x")
    assert spread == ((Cut(0, 1, 1),), (), (Cut(1, 1, 1),))
    parts = divided(jnp.asarray(x), spread, (1, 6, 1), (2, 4), "x")
    assert parts.shape == (2, 4, 1, 6, 1)
    assert parts[1, 3, 0, :, 0].tolist() == x[1, :, 3].tolist()
    assert joined(parts, spread, (2, 4)).tolist() == x.tolist()
    # A dim of 2 times 3, of which the second was divided by 4 chips.
    inner = ((Cut(1, 2, 3),),)
    found = joined(jnp.arange(8 * 6).reshape(2, 4, 6), inner, (2, 4))
    assert found.reshape(2, 4, 3)[1, 2].tolist() == [2 * 6 + 3, 2 * 6 + 4, 2 * 6 + 5]


def test_an_ambiguous_mesh_is_asked_about():
    text = text_of("matmul_odd.n300.O0").replace("1x2>]>", "2x2>]>")
    x, y = arrays_of("matmul_odd")
    with pytest.raises(LayoutError, match="more than one way"):
        load(text)(x, y)
    program = load(text, in_specs=[((), ()), ((), (1,))])
    np.testing.assert_allclose(np.asarray(program(x, y)), x @ y, rtol=1e-5, atol=1e-5)
    with pytest.raises(LayoutError, match="each axis once"):
        load(text, in_specs=[((), ()), ((1,), (1,))])
    with pytest.raises(LayoutError, match="no way"):
        load(text_of("matmul_odd.n300.O0"))(x, np.zeros((63, 20), np.float32))


def test_one_chip_exchanges_nothing():
    x = numbers(4, 6)
    words = (
        "concat_dim = 1 : si32, split_dim = 0 : si32, split_count = 1 : si32, "
        "replica_groups = dense<0> : tensor<1x1xi64>"
    )
    found = program_of("all_to_all", [kind_of(x.shape)], kind_of(x.shape), words)(x)
    np.testing.assert_array_equal(np.asarray(found), x)


CHIPS = """
module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>}} {{
func.func @main(%arg0: tensor<{0}xf32>) -> tensor<{2}xf32> {{
  %0 = "ttir.reshape"(%arg0) <{{shape = [{5}]}}> : (tensor<{0}xf32>) -> tensor<{1}xf32>
  %1 = "ttir.{3}"(%0) {4} : (tensor<{1}xf32>) -> tensor<{2}xf32>
  return %1 : tensor<{2}xf32>
}}
}}
"""


def chips_of(before, between, after, op, words=""):
    """A program of two chips: a reshape, then an op."""
    shape = ", ".join(f"{n} : i32" for n in between.split("x"))
    return CHIPS.format(before, between, after, op, words, shape)


def test_one_element_of_each_chip_goes_on_as_one_dim_or_is_asked_about():
    x = numbers(2, 3)
    joined = load(chips_of("1x3", "1x1x3", "1x3", "reshape", "<{shape = [1 : i32, 3 : i32]}>"))
    np.testing.assert_array_equal(np.asarray(joined(x)), x)
    text = chips_of("1x3", "1x1x3", "1x1x3", "neg")
    with pytest.raises(LayoutError, match="does not follow from the program: give out_specs"):
        load(text)(x)  # of (1, 2, 3) or of (2, 1, 3)
    for spec, shape in ((((1,), (), ()), (2, 1, 3)), (((), (1,), ()), (1, 2, 3))):
        found = load(text, out_specs=[spec])(x)
        np.testing.assert_array_equal(np.asarray(found), -x.reshape(shape))


def test_lists_are_divided_over_chips():
    x = numbers(2, 3)
    program = load(chips_of("1x3", "1x3", "1x3", "neg"))
    np.testing.assert_array_equal(np.asarray(program(x.tolist())), -x)
    with pytest.raises(LayoutError, match="argument %arg0 is no array"):
        program([[1.0], [2.0, 3.0]])


def test_report_over_chips_needs_no_data():
    program, x = load(chips_of("1x3", "1x3", "1x3", "neg")), numbers(2, 3)
    assert program.report(jax.ShapeDtypeStruct(x.shape, x.dtype)).rows == program.report(x).rows


@pytest.mark.parametrize(("dim", "follows"), [(0, False), (1, True)])
def test_a_dim_that_is_divided_is_reversed_by_no_chip_alone(dim, follows):
    x = numbers(4, 3)
    words = f"<{{dimensions = array<i64: {dim}>}}>"
    program = load(chips_of("2x3", "2x3", "2x3", "reverse", words))
    if follows:
        np.testing.assert_array_equal(np.asarray(program(x)), x[:, ::-1])
        return
    with pytest.raises(LayoutError, match="does not follow from the program"):
        program(x)


@pytest.mark.parametrize(
    ("op", "words", "after", "expected"),
    [
        ("moreh_cumsum", "dim = 1 : i64", "1x3", lambda x: np.cumsum(x, 1)),
        ("repeat", "repeat_dimensions = array<i64: 2, 1, 1>", "2x1x3", lambda x: np.stack([x, x])),
        ("broadcast", "broadcast_dimensions = array<i64: 2, 1, 1>", "2x1x3",
         lambda x: np.stack([x, x])),
    ],
)  # fmt: skip
def test_results_are_spread_as_the_operand(op, words, after, expected):
    x = numbers(2, 3)
    program = load(chips_of("1x3", "1x3", after, op, f"<{{{words}}}>"))
    np.testing.assert_allclose(np.asarray(program(x)), expected(x), rtol=1e-6)


GATHERS = """
module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>}} {{
func.func @main(%arg0: tensor<{0}xf32>, %arg1: tensor<{1}xi32>) -> tensor<{2}xf32> {{
  %0 = "ttir.{3}"(%arg0, %arg1) <{{{4}}}> : (tensor<{0}xf32>, tensor<{1}xi32>) -> tensor<{2}xf32>
  return %0 : tensor<{2}xf32>
}}
}}
"""
ROWS = "column = false, fill_out_of_bounds = {}, sizes = array<i64: 5>, windows = array<i64: {}>"
STARTS = np.array([[[3, 0, -2, 4]]], np.int32)
WIDE = (np.arange(8, dtype=np.int32) % 3).reshape(2, 4)


def along(x):
    return np.take_along_axis(x, WIDE, 1)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("op", "words", "shapes", "arrays", "expected"),
    [
        # Each chip has half of a row.
        ("rows_gather", ROWS.format("false", 1), ("1x5x3", "1x1x4", "1x4x3"), ((1, 5, 6), STARTS),
         lambda x: x[:, [3, 0, 0, 4]]),
        # Outside there are zeros.
        ("rows_gather", ROWS.format("true", 1), ("1x5x3", "1x1x4", "1x4x3"), ((1, 5, 6), STARTS),
         lambda x: np.where(STARTS[0, 0, :, None] < 0, 0, x[:, [3, 0, 0, 4]])),
        # Each has half of the indices, each of two rows.
        ("rows_gather", ROWS.format("false", 2), ("1x5x3", "1x1x2", "1x4x3"), ((1, 5, 3), STARTS),
         lambda x: x[:, [3, 4, 0, 1, 0, 1, 3, 4]]),
        ("gather", "dim = 1 : i32", ("2x3", "2x2", "2x2"), ((2, 3), WIDE), along),
        ("gather", "dim = 1 : i32", ("2x3", "2x2", "2x2"), ((4, 3), WIDE.reshape(4, 2)),
         lambda x: np.take_along_axis(x, WIDE.reshape(4, 2), 1)),
        # Half of what is counted, and nobody adds the halves up.
        ("gather", "dim = 1 : i32", ("2x3", "2x2", "2x2"), ((2, 6), WIDE[:, :2]), None),
        ("embedding", "", ("5x3", "4", "4x3"), ((5, 6), WIDE[0]), lambda x: x[WIDE[0]]),
    ],
)  # fmt: skip
def test_what_is_gathered_is_spread_as_its_operands(op, words, shapes, arrays, expected):
    text, x = GATHERS.format(*shapes, op, words), numbers(*arrays[0])
    if op == "embedding":  # the indices come first
        text = text.replace("(%arg0, %arg1)", "(%arg1, %arg0)")
        types = [f"tensor<{shapes[0]}xf32>", f"tensor<{shapes[1]}xi32>"]
        text = text.replace(f": ({', '.join(types)})", f": ({', '.join(types[::-1])})")
    program = load(text)
    if expected is None:
        with pytest.raises(LayoutError, match="does not follow from the program"):
            program(x, arrays[1])
        return
    np.testing.assert_array_equal(np.asarray(program(x, arrays[1])), expected(x))


def test_loops_are_bounded_by_numbers_or_by_values():
    text = text_of("counts.n150.O0")
    bound = "limit = #ttcore.loop_bound<0, 2 : i32>"
    assert bound in text
    for wrong, message in [
        ("<0, 99 : i32>", "names no operand that is one number"),
        ("<0, 1 : i32>", "names no operand that is one number"),
        ("<many>", "must be a number"),
        (f"<{2**31}>", r"must be a number below 2\*\*31"),
    ]:
        with pytest.raises(LayoutError, match=rf"line \d+: ttcore.while_loop: limit = .*{message}"):
            load(text.replace(bound, f"limit = #ttcore.loop_bound{wrong}"))
    load(text.replace(bound, f"limit = #ttcore.loop_bound<{2**31 - 1}>"))
    with pytest.raises(LayoutError, match=r"step = .* must be a number, 1 or more"):
        load(text.replace("step = #ttcore.loop_bound<1>", "step = #ttcore.loop_bound<0>"))


ACTIVATIONS = {
    **{"logical_not_unary": lambda x: x == 0, "recip": lambda x: 1 / x, "gtz": lambda x: x > 0},
    **{"Lez": lambda x: x <= 0, "is_finite": np.isfinite, "nez": lambda x: x != 0},
    **{"power, params = [2.0 : f32]": np.square, "rsub, params = [1.0 : f32]": lambda x: 1 - x},
    **{"leaky_relu, params = [0.5 : f32]": lambda x: np.where(x < 0, x / 2, x)},
    **{"unary_gt, params = [0.5 : f32]": lambda x: x > 0.5},
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_have_names_of_their_own(name):
    x, y = numbers(*SHAPE, low=-0.9), numbers(*SHAPE, seed=1)
    words = f"input_tensor_a_activations = [#ttnn.unary_with_param<op_type = {name}>]"
    found = program_of("add", [kind_of(SHAPE)] * 2, kind_of(SHAPE), words)(x, y)
    np.testing.assert_allclose(np.asarray(found), ACTIVATIONS[name](x) + y, rtol=1e-5, atol=1e-6)


# -- TTIR written by hand --------------------------------------------------------------------------


def ttir_of(op, words, *shapes):
    """A program of one op of TTIR; shapes of the operands, then of the result."""
    *inputs, output = ("tensor<" + "".join(f"{n}x" for n in shape) + "f32>" for shape in shapes)
    names = [f"%a{k}" for k in range(len(inputs))]
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(names, inputs, strict=True))
    return load(
        f"func.func @main({arguments}) -> {output} {{\n"
        f'  %0 = "ttir.{op}"({", ".join(names)}) <{{{words}}}> : '
        f"({', '.join(inputs)}) -> {output}\n"
        f"  return %0 : {output}\n}}\n"
    )


def scaled(x, axes):
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + 1e-5)


CONV = (
    "stride = array<i32: 2, 1>, dilation = array<i32: 1, 1>, groups = 1 : i32, "
    "padding = array<i32: 1, 0, 1, 0>"
)
FLAT = (
    ", flattened_compat_info = #ttir<flattened_compat batch_size = 2, input_height = 5, "
    "input_width = 7>"
)
POOL = (
    "kernel = array<i32: 2, 3>, stride = array<i32: 1, 1>, dilation = array<i32: 1, 1>, "
    "padding = array<i32: 0, 0, 0, 0>, ceil_mode = false"
)


SEGMENTS = "operandSegmentSizes = array<i32: 1, 1, {}>"


def convolved(x, w):
    x = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    rows = [
        [np.einsum("bhwi,oihw->bo", x[:, r : r + 3, c : c + 2], w) for c in range(6)]
        for r in range(0, 5, 2)
    ]
    return np.moveaxis(np.asarray(rows), 2, 0)


def largest(x):
    return np.lib.stride_tricks.sliding_window_view(x, (2, 3), (1, 2)).max((-1, -2))


BY_HAND = [
    ("conv2d", CONV, [(2, 5, 7, 3), (4, 3, 3, 2), (2, 3, 6, 4)], convolved),
    (
        *("conv2d", CONV + FLAT, [(1, 1, 70, 3), (4, 3, 3, 2), (1, 1, 36, 4)]),
        lambda x, w: convolved(x.reshape(2, 5, 7, 3), w).reshape(1, 1, 36, 4),
    ),
    (
        *("max_pool2d", POOL + FLAT, [(1, 1, 70, 3), (1, 1, 40, 3)]),
        lambda x: largest(x.reshape(2, 5, 7, 3)).reshape(1, 1, 40, 3),
    ),
    (
        *("repeat", "repeat_dimensions = array<i64: 3, 1, 2>", [(2, 5, 7), (6, 5, 14)]),
        lambda x: np.tile(x, (3, 1, 2)),
    ),
    ("squeeze", "dim = -2 : si32", [(2, 1, 3), (2, 3)], lambda x: x[:, 0]),
    ("unsqueeze", "dim = 1 : si32", [(2, 3), (2, 1, 3)], lambda x: x[:, None]),
    ("unsqueeze", "dim = -1 : si32", [(2, 3), (2, 3, 1)], lambda x: x[..., None]),
    (
        *("selu", "", [(3, 5), (3, 5)]),
        lambda x: (
            1.0507009873390197
            * np.where(x > 0, x, 1.6732635498046875 * (np.exp(np.minimum(x, 0)) - 1))
        ),
    ),
    (
        *("selu", "alpha = 2.0 : f32, scale = 3.0 : f32", [(3, 5), (3, 5)]),
        lambda x: 3 * np.where(x > 0, x, 2 * (np.exp(np.minimum(x, 0)) - 1)),
    ),
    ("softsign", "", [(3, 5), (3, 5)], lambda x: x / (1 + abs(x))),
    (
        *(
            "rms_norm",
            "normalized_shape = array<i64: 5>, operandSegmentSizes = array<i32: 1, 1, 1>",
        ),
        [(3, 4, 5), (5,), (5,), (3, 4, 5)],
        lambda x, w, b: scaled(x, -1) * w + b,
    ),
    (
        *(
            "layer_norm",
            "normalized_shape = array<i64: 4, 5>, operandSegmentSizes = array<i32: 1, 1, 0>",
        ),
        [(3, 4, 5), (4, 5), (3, 4, 5)],
        lambda x, w: scaled(x - x.mean((1, 2), keepdims=True), (1, 2)) * w,
    ),
    (
        *("batch_norm_inference", "dimension = 1 : i32, epsilon = 0.5 : f32"),
        [(2, 3, 4), (3,), (3,), (3,), (3,), (2, 3, 4)],
        lambda x, s, o, m, v: (
            (x - m[:, None]) / np.sqrt(v[:, None] + 0.5) * s[:, None] + o[:, None]
        ),
    ),
]


def grouped(x, w, b):
    """Channels last, in two groups."""
    parts = x.reshape(2, 1, 15, 2, 3)
    parts = parts - parts.mean((1, 2, 4), keepdims=True)
    parts = parts / np.sqrt((parts**2).mean((1, 2, 4), keepdims=True) + 0.5)
    return parts.reshape(x.shape) * w.reshape(-1) + b


def interpolated(x, times, axis):
    """Pixels at half numbers, which continue beyond the first and the last one."""
    n = x.shape[axis]
    at = np.clip((np.arange(n * times) + 0.5) / times - 0.5, 0, n - 1)
    low = np.floor(at).astype(int)
    part = np.expand_dims(at - low, tuple(k for k in range(x.ndim) if k != axis))
    ends = (np.take(x, np.minimum(low + k, n - 1), axis) for k in (0, 1))
    first, last = ends
    return first * (1 - part) + last * part


def gelu_slope(gradient, x, step=1e-5):
    x = x.astype(np.float64)
    gelu = [v * 0.5 * (1 + np.vectorize(math.erf)(v / 2**0.5)) for v in (x + step, x - step)]
    return gradient * (gelu[0] - gelu[1]) / (2 * step)


BY_HAND += [
    ("index", "dim = 1 : i32, begin = -4 : i32, end = 5 : i32, step = 2 : i32",
     [(3, 5, 2), (3, 2, 2)], lambda x: x[:, -4:5:2]),
    ("index_select", "dim = -2 : si32, begin = 1 : si32, length = 2 : si32, stride = 4 : si32",
     [(3, 7, 2), (3, 4, 2)], lambda x: x[:, [1, 2, 5, 6]]),
    ("index_select", "dim = 0 : si32, begin = 1 : si32, length = 2 : si32",
     [(5, 3), (2, 3)], lambda x: x[1:3]),
    ("upsample2d", "scale_factor = array<i32: 2, 3>", [(2, 3, 5, 2), (2, 6, 15, 2)],
     lambda x: x.repeat(2, 1).repeat(3, 2)),
    ("upsample2d", 'scale_factor = 3 : si32, mode = "bilinear"', [(2, 3, 5, 2), (2, 9, 15, 2)],
     lambda x: interpolated(interpolated(x, 3, 1), 3, 2)),
    ("gelu_bw", "", [(3, 5), (3, 5), (3, 5)], gelu_slope),
    ("gelu", 'approximate = "none"', [(3, 5), (3, 5)],
     lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / 2**0.5))),
    ("gelu", 'approximate = "tanh"', [(3, 5), (3, 5)],
     lambda x: 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))),
    ("conv2d", CONV + ", channel_last = 1 : si32",
     [(2, 5, 7, 3), (4, 3, 3, 2), (2, 3, 6, 4)], convolved),
    ("group_norm", "num_groups = 2 : i64, epsilon = 0.5 : f32, "
     "operandSegmentSizes = array<i32: 1, 0, 1, 1>",
     [(2, 1, 15, 6), (1, 1, 2, 3), (6,), (2, 1, 15, 6)], grouped),
    ("embedding_backward", "", [(2, 3), (4, 5), (2, 3, 5), (4, 5)],
     lambda i, w, g: np.stack([g.sum((0, 1)), *[np.zeros(5)] * 3])),  # all indices are below 1
]  # fmt: skip


@pytest.mark.few(8)
@pytest.mark.parametrize(("op", "words", "shapes", "expected"), BY_HAND)
def test_ops_of_ttir_with_their_defaults(op, words, shapes, expected):
    arrays = [numbers(*shape, seed=k, low=-0.9) for k, shape in enumerate(shapes[:-1])]
    arrays[-1] = abs(arrays[-1])
    found = ttir_of(op, words, *shapes)(*arrays)
    np.testing.assert_allclose(np.asarray(found), expected(*arrays), rtol=1e-5, atol=1e-5)


def test_random_numbers_of_ttir_are_within_their_bounds():
    words = "size = [64 : i32, 33 : i32], low = 2.0 : f32, high = 3.0 : f32, seed = {} : ui32"
    one, other = (np.asarray(ttir_of("rand", words.format(n), (64, 33))()) for n in (1, 2))
    assert one.shape == (64, 33)
    assert one.min() >= 2
    assert one.max() < 3
    assert abs(one.mean() - 2.5) < 0.02
    assert (one != other).any()


@pytest.mark.parametrize(
    ("op", "words", "shapes", "message"),
    [
        ("rms_norm", "normalized_shape = array<i64: 4>", [(3, 5), (3, 5)], "is not the end of"),
        ("squeeze", "dim = 1 : si32", [(1, 3), (1, 3)], "not compatible"),
        ("conv2d", CONV + FLAT, [(1, 1, 60, 3), (4, 3, 3, 2), (1, 1, 36, 4)], "does not fit the"),
        ("conv2d", CONV + ", batch_dim = 7 : i64", [(2, 5, 7, 3), (4, 3, 3, 2), (1,)], "outside"),
        ("rand", "low = 2.0 : f32, high = 1.0 : f32", [(4,)], "numbers from 2.0 to 1.0"),
        ("gelu", 'approximate = "erf"', [(4,), (4,)], "approximate = erf is neither"),
        (
            "index_select",
            "dim = 0 : si32, begin = 1 : si32, length = 3 : si32, stride = 2 : si32",
            [(5,), (4,)],
            "length from 1 to the stride",
        ),
        (
            "index_select",
            "dim = 0 : si32, begin = 0 : si32, length = 2 : si32, stride = 4 : si32",
            [(5,), (4,)],
            "end after 5",
        ),
        (
            "index",
            "dim = 0 : i32, begin = 0 : i32, end = 3 : i32, step = -1 : i32",
            [(5,), (3,)],
            "step -1 must be 1 or more",
        ),
        ("group_norm", "num_groups = 4 : i64", [(1, 1, 2, 6), (1, 1, 2, 6)], "no 4 equal groups"),
        (
            "upsample2d",
            'scale_factor = 2 : si32, mode = "cubic"',
            [(1, 1, 1, 1), (1, 2, 2, 1)],
            "mode = cubic is neither",
        ),
        (
            "fill_cache",
            "batch_offset = 2 : i32",
            [(2, 3, 4, 5), (1, 3, 4, 5), ()],
            "inside the cache",
        ),
    ],
)
def test_ops_of_ttir_are_refused_by_their_rule(op, words, shapes, message):
    with pytest.raises(LayoutError, match=f"line 2: ttir.{op}: .*{message}"):
        ttir_of(op, words, *shapes)


def kept(shape, element="f32"):
    return "tensor<" + "".join(f"{n}x" for n in shape) + f"{element}>"


def in_place(op, words, inputs):
    """A program that changes its first argument in place, and returns it."""
    names = ", ".join(f"%a{k}" for k in range(len(inputs)))
    arguments = ", ".join(f"%a{k}: {kind}" for k, kind in enumerate(inputs))
    return (
        f"func.func @main({arguments}) -> {inputs[0]} {{\n"
        f'  "ttir.{op}"({names}) <{{{words}}}> : ({", ".join(inputs)}) -> ()\n'
        f"  return %a0 : {inputs[0]}\n}}\n"
    )


def paged(cache, x, at, table):
    made = cache.copy()
    for user, row in enumerate(at):
        if row >= 0:
            made[table[user, row // 4], :, row % 4] = x[0, user, : cache.shape[1]]
    return made


def paged_filled(cache, x, table, users):
    made = cache.copy()
    for k, user in enumerate(users):
        for row in range(x.shape[2]):
            made[table[user, row // 4], :, row % 4] = x[k, :, row]
    return made


def filled(cache, x):
    made = cache.copy()
    made[2:3, :, :5] = x
    return made


def updated(cache, x, at):
    made = cache.copy()
    made[1:4, :, at[0]] = x[0].swapaxes(0, 1)
    return made


TABLE = np.array([[4, 0, 6], [2, 5, 1]], np.int32)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("op", "words", "arrays", "expected"),
    [
        ("fill_cache", "batch_offset = 2 : i32", [(4, 3, 8, 2), (1, 3, 5, 2)], filled),
        ("update_cache", "batch_offset = 1 : i32",
         [(4, 3, 8, 2), (1, 3, 3, 2), np.array([6], np.int32)], updated),
        ("paged_update_cache", "share_cache = false",
         [(7, 3, 4, 2), (1, 2, 32, 2), np.array([9, 3], np.int32), TABLE], paged),
        ("paged_update_cache", "share_cache = false",
         [(7, 3, 4, 2), (1, 2, 3, 2), np.array([-1, 11], np.int32), TABLE], paged),
        ("paged_fill_cache", "",
         [(7, 3, 4, 2), (2, 3, 10, 2), TABLE, np.array([1, 0], np.int32)], paged_filled),
    ],
)  # fmt: skip
def test_caches_are_changed_in_place(op, words, arrays, expected):
    arrays = [
        numbers(*each, seed=k) if isinstance(each, tuple) else each for k, each in enumerate(arrays)
    ]
    kinds = [kept(x.shape, "f32" if x.dtype == np.float32 else "i32") for x in arrays]
    found = load(in_place(op, words, kinds))(*arrays)
    np.testing.assert_array_equal(np.asarray(found), expected(*arrays))


def test_a_cache_has_its_old_value_before_and_its_new_one_after():
    cache, x = "tensor<2x3x4x5xf32>", "tensor<1x3x2x5xf32>"
    text = f"""func.func @main(%a: {cache}, %x: {x}) -> ({cache}, {cache}) {{
  %0 = "ttir.neg"(%a) : ({cache}) -> {cache}
  "ttir.fill_cache"(%a, %x) <{{batch_offset = 0 : i32}}> : ({cache}, {x}) -> ()
  %1 = "ttir.neg"(%a) : ({cache}) -> {cache}
  return %0, %1 : {cache}, {cache}
}}
"""
    a, x = numbers(2, 3, 4, 5), numbers(1, 3, 2, 5, seed=1)
    before, after = load(text)(a, x)
    np.testing.assert_array_equal(np.asarray(before), -a)
    a[:1, :, :2] = x
    np.testing.assert_array_equal(np.asarray(after), -a)


def test_a_called_function_changes_no_argument_in_place():
    kinds = [kept(shape) for shape in ((2, 3, 4, 5), (1, 3, 2, 5))]
    text = in_place("fill_cache", "batch_offset = 0 : i32", kinds).replace("@main", "@inner")
    text += f"""func.func @main(%a: {kinds[0]}, %x: {kinds[1]}) -> {kinds[0]} {{
  %0 = call @inner(%a, %x) : ({", ".join(kinds)}) -> {kinds[0]}
  return %0 : {kinds[0]}
}}
"""
    with pytest.raises(LayoutError, match="@inner changes its argument %a0 in place"):
        load(text)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("few_heads", [None, 2])
def test_queries_keys_and_values_are_split_into_heads(flip, few_heads):
    heads, kv, width = 4, few_heads or 4, 3
    own = heads * width if few_heads else 3 * heads * width
    shapes = [(2, 5, own), *([(2, 5, 2 * kv * width)] if few_heads else [])]
    key = (2, kv, width, 5) if flip else (2, kv, 5, width)
    outs = [kept(shape) for shape in ((2, heads, 5, width), key, (2, kv, 5, width))]
    ins = [kept(shape) for shape in shapes]
    words = f"num_heads = 4 : ui32, transpose_key = {str(flip).lower()}"
    words += f", num_kv_heads = {kv} : ui32" if few_heads else ""
    program = load(
        f"func.func @main({', '.join(f'%a{k}: {kind}' for k, kind in enumerate(ins))}) -> "
        f"({', '.join(outs)}) {{\n"
        f'  %0:3 = "ttir.split_query_key_value_and_split_heads"('
        f"{', '.join(f'%a{k}' for k in range(len(ins)))}) <{{{words}}}> : ({', '.join(ins)}) -> "
        f"({', '.join(outs)})\n  return %0#0, %0#1, %0#2 : {', '.join(outs)}\n}}\n"
    )
    arrays = [numbers(*shape, seed=k) for k, shape in enumerate(shapes)]
    whole = np.concatenate(arrays, -1)
    parts = np.split(whole, [heads * width, (heads + kv) * width], -1)
    expected = [part.reshape(2, 5, -1, width).swapaxes(1, 2) for part in parts]
    expected[1] = expected[1].swapaxes(2, 3) if flip else expected[1]
    for one, other in zip(program(*arrays), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)


def test_a_batch_is_normalized_by_its_own_mean():
    kinds = [kept(shape) for shape in ((4, 3, 5), (3,))]
    line = f"({kinds[0]}, {', '.join([kinds[1]] * 4)}) -> ({kinds[0]}, {kinds[1]}, {kinds[1]})"
    names = "%a, %b, %c, %d, %e"
    pairs = ", ".join(f"{n}: {kinds[k > 0]}" for k, n in enumerate(names.split(", ")))
    program = load(
        f"func.func @main({pairs}) -> ({kinds[0]}, {kinds[1]}, {kinds[1]}) {{\n"
        f'  %0:3 = "ttir.batch_norm_training"({names}) <{{dimension = 1 : i32, '
        f"epsilon = 0.5 : f32, momentum = 0.1 : f32}}> : {line}\n"
        f"  return %0#0, %0#1, %0#2 : {kinds[0]}, {kinds[1]}, {kinds[1]}\n}}\n"
    )
    x, s, o = numbers(4, 3, 5), numbers(3, seed=1), numbers(3, seed=2)
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    made = (x - mean[:, None]) / np.sqrt(variance[:, None] + 0.5) * s[:, None] + o[:, None]
    for one, other in zip(program(x, s, o, o, s), (made, mean, variance), strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-5, atol=1e-5)


def quantized_program(op, *kinds):
    return (
        f"func.func @main(%a: {kinds[0]}) -> {kinds[1]} {{\n"
        f'  %0 = "ttir.{op}"(%a) : ({kinds[0]}) -> {kinds[1]}\n  return %0 : {kinds[1]}\n}}\n'
    )


def of_scale(text):
    return kept((3, 5), f"!quant.uniform<{text}>")


@pytest.mark.parametrize(
    ("text", "scales", "zeros", "low", "high"),
    [
        ("i8:f32, 0.1", 0.1, 0, -128, 127),
        ("u8:f32, 1.5e-2:7", 0.015, 7, 0, 255),
        ("i8<-127:100>:f32, 0.002", 0.002, 0, -127, 100),
        ("i32:f32, 1.000000e-01", 0.1, 0, -(2**31), 2**31 - 1),
        ("i8:f32:0, {0.1:3, 0.2, 0.4:-5}", [[0.1], [0.2], [0.4]], [[3], [0], [-5]], -128, 127),
    ],
)
def test_floats_become_quantized_numbers_and_floats_again(text, scales, zeros, low, high):
    scales, zeros = np.asarray(scales, np.float32), np.asarray(zeros, np.float32)
    x = numbers(3, 5, low=-0.9) * 3
    floats, kind = kept((3, 5)), of_scale(text)
    expected = np.clip(np.round(x / scales) + zeros, low, high)
    found = np.asarray(load(quantized_program("quantize", floats, kind))(x))
    assert found.dtype == text.partition(":f32")[0].partition("<")[0].replace("i", "int").replace(
        "u", "uint"
    )
    np.testing.assert_array_equal(found, expected)
    again = load(quantized_program("dequantize", kind, floats))(found)
    np.testing.assert_allclose(np.asarray(again), (expected - zeros) * scales, rtol=1e-6)
    other = of_scale("i8:f32, 0.3:1")
    moved = load(quantized_program("requantize", kind, other))(found)
    right = np.clip(np.round((expected - zeros) * (scales / np.float32(0.3))) + 1, -128, 127)
    np.testing.assert_array_equal(np.asarray(moved), right)


def test_large_floats_stay_in_the_range_of_32_bits():
    kind = of_scale("i32:f32, 0.5")
    x = np.full((3, 5), 3e9, np.float32) * np.array([1, -1, 1, -1, 1], np.float32)
    found = np.asarray(load(quantized_program("quantize", kept((3, 5)), kind))(x))
    assert (np.sign(found) == np.sign(x)).all()
    assert abs(found.astype(np.int64)).min() > 2**31 - 256


def test_quantized_numbers_are_moved_but_not_added():
    kind = of_scale("i8:f32, 0.5:1")
    turned = kept((5, 3), "!quant.uniform<i8:f32, 0.5:1>")
    text = quantized_program("transpose", kind, turned)
    text = text.replace("(%a) :", "(%a) <{dim0 = 0 : si32, dim1 = 1 : si32}> :")
    x = np.arange(15, dtype=np.int8).reshape(3, 5)
    np.testing.assert_array_equal(np.asarray(load(text)(x)), x.T)
    for op, kinds in {"neg": (kind, kind), "reshape": (kind, of_scale("i8:f32, 0.1"))}.items():
        words = " <{shape = [3 : i32, 5 : i32]}>" if op == "reshape" else ""
        text = quantized_program(op, *kinds).replace("(%a) :", f"(%a){words} :")
        with pytest.raises(LayoutError, match="dequantize them first"):
            load(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i8:f32, -0.1", "scale -0.1 must be positive"),
        ("i8:f32, {0.1}", "is no type of quantized numbers"),
        ("i8:f32:1, 0.1", "is no type of quantized numbers"),
        ("i4:f32, 0.1", "is no type of quantized numbers"),
        ("i8:f32:1, {0.1, 0.2}", "2 scales along dim 1 do not fit the shape"),
        ("i8:f32:7, {0.1, 0.2}", "2 scales along dim 7 do not fit the shape"),
    ],
)
def test_quantized_types_are_refused_by_their_rule(text, message):
    with pytest.raises(LayoutError, match=message):
        load(quantized_program("quantize", kept((3, 5)), of_scale(text)))


def test_a_slice_at_run_time_has_steps():
    whole, part, at = "tensor<9x7xf32>", "tensor<3x2xf32>", "tensor<2xi32>"
    program = load(
        f"func.func @main(%x: {whole}, %b: {at}, %e: {at}) -> {part} {{\n"
        f'  %0 = "ttir.slice_dynamic"(%x, %b, %e) <{{step = [2 : i32, 3 : i32]}}> : '
        f"({whole}, {at}, {at}) -> {part}\n  return %0 : {part}\n}}\n"
    )
    x, first, last = numbers(9, 7), np.array([2, -6], np.int32), np.array([7, 5], np.int32)
    found = np.asarray(program(x, first, last))
    np.testing.assert_array_equal(found, x[2:7:2, 1:5:3])


SHARDED = """
module attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x3>]>}} {{
func.func @main(%a: tensor<4x9xf32>, %b: tensor<4x9xf32>) -> (tensor<{1}xf32>, tensor<4x9xf32>) {{
  %0 = "ttir.mesh_shard"(%a) <{{shard_dims = array<i64: {0}>, shard_direction = #ttcore.shard_direction<full_to_shard>, shard_shape = array<i64: 1>, shard_type = #ttcore.shard_type<devices>}}> : (tensor<4x9xf32>) -> tensor<{1}xf32>
  %1 = "ttir.exp"(%0) : (tensor<{1}xf32>) -> tensor<{1}xf32>
  %2 = "ttir.mesh_shard"(%1) <{{shard_dims = array<i64: {0}>, shard_direction = #ttcore.shard_direction<shard_to_full>, shard_shape = array<i64: 1>, shard_type = #ttcore.shard_type<devices>}}> : (tensor<{1}xf32>) -> tensor<4x9xf32>
  %3 = "ttir.mesh_shard"(%b) <{{shard_dims = array<i64: -1>, shard_direction = #ttcore.shard_direction<full_to_shard>, shard_shape = array<i64: 1>, shard_type = #ttcore.shard_type<replicate>}}> : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %4 = "ttir.add"(%2, %3) : (tensor<4x9xf32>, tensor<4x9xf32>) -> tensor<4x9xf32>
  return %1, %4 : tensor<{1}xf32>, tensor<4x9xf32>
}}
}}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("dims", "part"), [("0, 1", "2x3"), ("1, -1", None), ("-1, 1", "4x3"), ("-1, 0", None)]
)
def test_a_full_tensor_is_cut_for_the_chips_and_put_together(dims, part):
    if part is None:  # 9 does not divide by 2, nor 4 by 3
        with pytest.raises(LayoutError, match=r"line 4: ttir\.mesh_shard: "):
            load(SHARDED.format(dims, "2x9"))
        return
    x, y = numbers(4, 9), numbers(4, 9, seed=1)
    parts, full = load(SHARDED.format(dims, part))(x, y)
    np.testing.assert_allclose(np.asarray(parts), np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(full), np.exp(x) + y, rtol=1e-6)


def test_a_program_is_loaded_from_a_file(tmp_path):
    path = tmp_path / "a.mlir"
    path.write_text(MATMUL)
    arrays = arrays_of("matmul_odd")
    for source in (path, str(path)):
        np.testing.assert_array_equal(load(source)(*arrays), load(MATMUL)(*arrays))
    with pytest.raises(LayoutError, match="can't be read: No such file"):
        load(tmp_path / "b.mlir")
    with pytest.raises(LayoutError, match="is a folder"):
        load(tmp_path)


def test_a_device_is_no_argument():
    kind = kind_of((5, 7))
    text = (
        "func.func @main(%dev: !ttnn.device, %a: KIND) -> KIND {\n"
        '  %0 = "ttnn.to_device"(%a, %dev) : (KIND, !ttnn.device) -> KIND\n'
        '  %1 = "ttnn.neg"(%0) : (KIND) -> KIND\n  return %1 : KIND\n}'
    )
    program, x = load(text.replace("KIND", kind)), numbers(5, 7)
    assert [each.shape for each in program.arguments] == [(5, 7)]
    np.testing.assert_array_equal(np.asarray(program(x)), -x)


# -- what is refused -------------------------------------------------------------------------------


MATMUL = text_of("matmul_odd.p150.O2")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"ttnn.matmul"', '"ttnn.matmool"', "line 19: ttnn.matmool: there is no such op"),
        ('"ttnn.matmul"', '"ttir.matmool"', "line 19: ttir.matmool: there is no such op"),
        (
            'matmul"(%2, %1)',
            'matmul"(%0, %1)',
            r"line 19: ttnn.matmul: %0 was deallocated on line 18",
        ),
        ('matmul"(%2, %1)', 'matmul"(%7, %1)', "line 19: ttnn.matmul: there is no value %7"),
        ('matmul"(%2, %1)', 'matmul"(%1, %1)', "line 19: ttnn.matmul: %1 is a tensor<63x10xf32"),
        ("%3 = ", "%2 = ", "line 19: value %2 is defined twice"),
        ("transpose_b = false", "transpose_b = true", "line 19: ttnn.matmul: its operands and"),
        ("transpose_b = false", "transpose_b = 7", "transpose_b = 7 must be true or false"),
        ("return %4 : tensor<53x10xf32, #ttnn_layout2>", "", "has no return"),
        ("<2x1>, memref<1x2x", "<2x1>, memref<2x2x", "memref 2x2 does not follow"),
        ("(d0, d1) -> (d0, d1), <2x1>", "(d0, d1) -> (d1, d0), <2x1>", "the map"),
        ("#ttnn.ttnn_layout<", "#other.layout<", "expected #ttnn.ttnn_layout"),
        ("func.func", "func.fun", "no func.func"),
        ("      }\n    }\n  }\n}", "", "is not closed"),
        ("force = false", "force = <", "line "),
    ],
)
def test_refused_with_the_line(old, new, message):
    assert old in MATMUL
    with pytest.raises(LayoutError, match=message):
        load(MATMUL.replace(old, new))


def test_what_does_not_follow_from_a_shape_is_a_warning_if_wanted():
    text = MATMUL.replace("<2x1>, memref<1x2x", "<2x1>, memref<2x2x")
    with pytest.raises(LayoutError, match=r"load\(\.\.\., strict=False\) takes"):
        load(text)
    with pytest.warns(UserWarning, match="memref 2x2 does not follow .* is taken"):
        program = load(text, strict=False)
    assert program.layouts == load(MATMUL).layouts
    with pytest.raises(LayoutError, match="strict"):
        load(text, strict="no")


def test_refused_arguments():
    program, (x, y) = load(MATMUL), arrays_of("matmul_odd")
    for arrays, message in [
        ((x,), "takes 2 arrays, not 1"),
        ((y, y), r"argument %arg0 has shape \(63, 10\), not \(53, 63\)"),
        ((x.astype(np.int32), y), "has dtype int32, but the program was compiled for float32"),
        ((object(), y), "argument %arg0 is no array"),
    ]:
        with pytest.raises(LayoutError, match=message):
            program(*arrays)
    for bad in (None, 7, b"module"):
        with pytest.raises(LayoutError, match="must be MLIR text"):
            load(bad)
    with pytest.raises(LayoutError, match=r"must be a gl\.DeviceGrid"):
        load(MATMUL, device=3)
    for other in ("other", ["main"]):
        with pytest.raises(LayoutError, match="is not one of main"):
            load(MATMUL, function=other)
    with pytest.raises(LayoutError, match="oob 'nan' is not one of"):
        load(MATMUL, oob="nan")


@pytest.mark.parametrize("seed", range(40))
def test_no_text_raises_anything_else(seed):
    random, text = np.random.default_rng(seed), MATMUL
    for _ in range(random.integers(1, 4)):
        at = int(random.integers(len(text)))
        cut = int(random.integers(0, 9))
        word = random.choice(["<", ">", "(", '"', "}", "x", "-1", "9" * 30, "%0", "\0", "é", ""])
        text = text[:at] + str(word) + text[at + cut :]
    try:
        load(text)
    except LayoutError:
        return
    assert "func.func" in text
