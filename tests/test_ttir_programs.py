"""Ops of TTIR and TTNN that a model's training, quantization and generation of text need.

The judge is NumPy in float64, element by element.
"""

import numpy as np
import pytest

import gridlayout as gl
from gridlayout.errors import LayoutError

RNG = np.random.default_rng(7)


def kind_of(x):
    if isinstance(x, str):
        return x
    x = np.asarray(x)
    element = {"float32": "f32", "int32": "i32", "int8": "i8"}[x.dtype.name]
    return "tensor<" + "".join(f"{n}x" for n in x.shape) + f"{element}>"


def load(op, inputs, outputs, words="", mesh=""):
    names = [f"%a{k}" for k in range(len(inputs))]
    kinds, made = [kind_of(x) for x in inputs], [kind_of(x) for x in outputs]
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(names, kinds, strict=True))
    results = [f"%0#{k}" for k in range(len(made))] if len(made) > 1 else ["%0"]
    count = f":{len(made)}" if len(made) > 1 else ""
    dialect = "" if "." in op else "ttir."
    head = f' attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = {mesh}>]>}}' if mesh else ""
    return gl.tenstorrent.load(
        f"module{head} {{\nfunc.func @main({arguments}) -> ({', '.join(made)}) {{\n"
        f'  %0{count} = "{dialect}{op}"({", ".join(names)}) <{{{words}}}> : '
        f"({', '.join(kinds)}) -> ({', '.join(made)})\n"
        f"  return {', '.join(results)} : {', '.join(made)}\n}}\n}}\n"
    )


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def attended(q, k, v, scale, hidden, mask=None):
    """Attention of (batch, heads, rows, width), with loops. hidden(b, row, column): not seen."""
    made = np.zeros((*q.shape[:3], v.shape[3]))
    for b, h, row in np.ndindex(q.shape[:3]):
        of = h // (q.shape[1] // k.shape[1])
        scores = np.array([q[b, h, row] @ k[b, of, j] * scale for j in range(k.shape[2])], float)
        if mask is not None:
            full = np.broadcast_to(mask, (q.shape[0], q.shape[1], q.shape[2], k.shape[2]))
            scores = scores + full[b, h, row]
        scores[[hidden(b, row, j) for j in range(k.shape[2])]] = -np.inf
        weights = np.exp(scores - scores.max())
        made[b, h, row] = weights / weights.sum() @ v[b, of]
    return made


Q, K, V = floats(2, 4, 5, 6), floats(2, 2, 5, 6), floats(2, 2, 5, 6)


@pytest.mark.parametrize(
    ("words", "window"),
    [("", 99), ("is_causal = true, ", 99), ("sliding_window_size = 2 : ui32, ", 2)],
)
def test_attention_is_causal_by_default(words, window):
    sizes = "operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>"
    found = load("scaled_dot_product_attention", (Q, K, V), (Q,), words + sizes)(Q, K, V)
    right = attended(Q, K, V, 6**-0.5, lambda _, row, j: j > row or j <= row - window)
    np.testing.assert_allclose(np.asarray(found), right, rtol=1e-4, atol=1e-5)


def test_a_mask_excludes_causal_attention():
    mask, sizes = floats(1, 4, 5, 5), "operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>"
    name, inputs = "scaled_dot_product_attention", (Q, K, V, mask)
    found = load(name, inputs, (Q,), f"is_causal = false, scale = 0.5 : f32, {sizes}")(*inputs)
    right = attended(Q, K, V, 0.5, lambda *_: False, mask)
    np.testing.assert_allclose(np.asarray(found), right, rtol=1e-4, atol=1e-5)
    with pytest.raises(LayoutError, match="exclude each other"):
        load(name, inputs, (Q,), sizes)
    sink = "operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>"
    with pytest.raises(LayoutError, match="operandSegmentSizes"):
        load(name, (Q, K, V, floats(1, 4, 1, 1)), (Q,), sink)


PLACES = np.array([3, 0, 6], np.int32)
ROW, KEYS, VALUES = floats(1, 3, 4, 6), floats(3, 2, 7, 6), floats(3, 2, 7, 6)


@pytest.mark.parametrize("window", [None, 2])
def test_a_row_is_decoded_up_to_the_place_of_each_user(window):
    words = "operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0>"
    words += f", sliding_window_size = {window} : ui32" if window else ""
    inputs = (ROW, KEYS, VALUES, PLACES)
    found = load("scaled_dot_product_attention_decode", inputs, (ROW,), words)(*inputs)

    def hidden(user, _, j):
        return j > PLACES[user] or (window is not None and j <= PLACES[user] - window)

    right = attended(ROW[0][:, :, None], KEYS, VALUES, 6**-0.5, hidden)
    np.testing.assert_allclose(np.asarray(found), right[None, :, :, 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("heads", [1, 4])
def test_a_row_is_decoded_with_a_mask(heads):
    mask = floats(3, 1, heads, 7)
    words = "is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>"
    inputs = (ROW, KEYS, VALUES, mask, PLACES)
    found = load("scaled_dot_product_attention_decode", inputs, (ROW,), words)(*inputs)
    rows = ROW[0][:, :, None]
    right = attended(rows, KEYS, VALUES, 6**-0.5, lambda *_: False, mask.swapaxes(1, 2))
    np.testing.assert_allclose(np.asarray(found), right[None, :, :, 0], rtol=1e-4, atol=1e-5)


def test_pages_are_read_in_the_order_of_the_table():
    pages, more = floats(8, 2, 4, 6), floats(8, 2, 4, 6)  # of 4 rows
    table = np.array([[5, 2], [0, 7], [3, 3]], np.int32)
    words = "operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0>"
    inputs = (ROW, pages, more, table, np.zeros_like(ROW), PLACES)
    name = "paged_scaled_dot_product_attention_decode"
    found = load(name, inputs, (ROW,), words)(*inputs)
    keys, values = (
        np.stack([np.concatenate([each[page] for page in row], 1) for row in table])
        for each in (pages, more)
    )
    right = attended(ROW[0][:, :, None], keys, values, 6**-0.5, lambda user, _, j: j > PLACES[user])
    np.testing.assert_allclose(np.asarray(found), right[None, :, :, 0], rtol=1e-4, atol=1e-5)


def test_attention_of_training_and_its_gradient():
    found = load("sdpa_fw", (Q, K, V), (Q,), "")(Q, K, V)
    right = attended(Q, K, V, 6**-0.5, lambda _, row, j: j > row)
    np.testing.assert_allclose(np.asarray(found), right, rtol=1e-4, atol=1e-5)
    grad, rest = floats(*Q.shape), floats(2, 4, 5, 32)
    inputs = (grad, np.asarray(found), Q, K, V, rest)
    words = "mask_type = #ttcore.attention_mask_type<causal>"
    made = load("sdpa_bw", inputs, (Q, K, V), words)(*inputs)
    step = 1e-5
    for which, gradient in enumerate(made):
        for at in [(0, 1, 2, 3), (1, 0, 4, 5)]:
            sides = []
            for sign in (1, -1):
                moved = [np.array(x, float) for x in (Q, K, V)]
                moved[which][at] += sign * step
                out = attended(*moved, 6**-0.5, lambda _, row, j: j > row)
                sides.append((out * grad).sum())
            slope = (sides[0] - sides[1]) / (2 * step)
            assert np.asarray(gradient)[at] == pytest.approx(slope, rel=1e-3, abs=1e-4)
    for words in ("dropout_probability = 0.1 : f32", "return_intermediates = true"):
        with pytest.raises(LayoutError, match=words.partition(" ")[0].partition("_")[2]):
            load("sdpa_fw", (Q, K, V), (Q,), words)
    with pytest.raises(LayoutError, match="mask_type = arbitrary does not fit 6 operands"):
        load("sdpa_bw", inputs, (Q, K, V), "")


QUANTIZED = "tensor<3x5x!quant.uniform<i8:f32, 0.1:3>>"
ALONG = "tensor<3x5x!quant.uniform<i8:f32:0, {0.1, 0.2, 0.4:-5}>>"


@pytest.mark.parametrize(
    ("kind", "words", "scale", "zero"),
    [
        (QUANTIZED, "", [0.1], [3]),
        (ALONG, "axis = 0 : i32", [0.1, 0.2, 0.4], [0, 0, -5]),
        (ALONG, "axis = 0 : i32", [0.25], [1, 2, 3]),  # the operands count, not the type
    ],
)
def test_quantized_with_scales_that_are_operands(kind, words, scale, zero):
    x = floats(3, 5) * 20
    scale, zero = np.array(scale, np.float32), np.array(zero, np.int32)
    across, shift = (each.reshape(-1, 1) for each in (scale, zero))
    found = load("quantize_unrolled", (x, scale, zero), (kind,), words)(x, scale, zero)
    right = np.clip(np.round(x / across) + shift, -128, 127)
    np.testing.assert_array_equal(np.asarray(found), right)
    assert np.abs(right).max() > 70
    again = load("dequantize_unrolled", (kind, scale, zero), (x,), words)(found, scale, zero)
    np.testing.assert_allclose(np.asarray(again), (right - shift) * across, rtol=1e-6)
    new, at = np.array([0.5], np.float32), np.array([-2], np.int32)
    inputs = (kind, scale, zero, new, at)
    moved = load("requantize_unrolled", inputs, (QUANTIZED,), words)(found, *inputs[1:])
    exact = np.clip(np.round((right - shift) * across / new) - 2, -128, 127)
    assert np.abs(np.asarray(moved).astype(int) - exact).max() <= 1  # ties of float32
    assert (np.asarray(moved) == exact).mean() > 0.8


def test_a_step_of_adamw():
    x, grad, mean = (floats(4, 3) for _ in range(3))
    square, most = (np.abs(floats(4, 3)) for _ in range(2))
    words = (
        "lr = 0.01 : f32, beta1 = 0.9 : f32, beta2 = 0.99 : f32, beta1_pow = 0.81 : f32, "
        "beta2_pow = 0.9801 : f32, epsilon = 1.0e-08 : f32, weight_decay = 0.1 : f32"
    )
    new, old = 0.9 * mean + 0.1 * grad, 0.99 * square + 0.01 * grad**2
    for more in ((), (most,)):
        inputs = (x, grad, mean, square, *more)
        made = load("adamw", inputs, (x, mean, square, *more), words)(*inputs)
        top = np.maximum(old, most) if more else old
        step = new / (1 - 0.81) / (np.sqrt(top / (1 - 0.9801)) + 1e-8)
        right = (x * (1 - 0.01 * 0.1) - 0.01 * step, new, old, *((top,) if more else ()))
        for one, other in zip(made, right, strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-5, atol=1e-6)
    with pytest.raises(LayoutError, match="is random"):
        load("adamw", inputs, (x, mean, square, most), f"{words}, stochastic_rounding = true")


@pytest.mark.parametrize("keep", [False, True])
def test_the_place_of_the_largest_along_several_dims(keep):
    x = floats(3, 4, 5)
    shape = (1, 4, 1) if keep else (4,)
    words = f"dim_arg = [-1 : i32, 0 : i32], keep_dim = {str(keep).lower()}"
    found = load("argmax", (x,), (np.zeros(shape, np.int32),), words)(x)
    right = x.transpose(1, 0, 2).reshape(4, 15).argmax(1).reshape(shape)
    np.testing.assert_array_equal(np.asarray(found), right)


def test_the_extent_of_a_dim():
    made = load("get_dimension_size", (Q,), (np.zeros(1, np.int32),), "dimension = 3 : i32")
    assert np.asarray(made(Q)).tolist() == [6]


def test_chips_that_are_no_target_get_zeros():
    cut = (
        "shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 3>, "
        "shard_type = #ttcore.shard_type<devices>, "
        "shard_direction = #ttcore.shard_direction<{}>"
    )
    whole, part = "tensor<4x6xf32>", "tensor<2x2xf32>"
    text = (
        'module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x3>]>} {\n'
        f"func.func @main(%a: {whole}) -> {whole} {{\n"
        f'  %0 = "ttir.mesh_shard"(%a) <{{{cut.format("full_to_shard")}}}> : ({whole}) -> {part}\n'
        '  %1 = "ttir.collective_permute"(%0) <{source_target_pairs = dense<[[0, 5], [4, 0]]> : '
        f"tensor<2x2xi64>}}> : ({part}) -> {part}\n"
        f'  %2 = "ttir.mesh_shard"(%1) <{{{cut.format("shard_to_full")}}}> : ({part}) -> {whole}\n'
        f"  return %2 : {whole}\n}}\n}}\n"
    )
    x = floats(4, 6)
    right = np.zeros_like(x)
    right[2:, 4:], right[:2, :2] = x[:2, :2], x[2:, 2:4]
    np.testing.assert_array_equal(np.asarray(gl.tenstorrent.load(text)(x)), right)
    # Chips that held the same tensor hold different ones.
    alike = text.replace("array<i64: 0, 1>", "array<i64: 0, -1>").replace("2x2xf32", "2x6xf32")
    alike = alike.replace('%2 = "ttir.mesh_shard"(%1)', '%2 = "ttir.mesh_shard"(%0)')
    alike = alike.replace(f"return %2 : {whole}", "return %1 : tensor<2x6xf32>")
    with pytest.raises(LayoutError, match="give out_specs"):
        gl.tenstorrent.load(alike.replace(f") -> {whole} {{", ") -> tensor<2x6xf32> {", 1))(x)
    for pairs in ("[[0, 6]]", "[[0, 1], [2, 1]]"):
        bad = text.replace("[[0, 5], [4, 0]]", pairs)
        with pytest.raises(LayoutError, match="no pairs of chips"):
            gl.tenstorrent.load(bad)


def test_attributes_may_be_aliases():
    kind = "tensor<4x6xf32>"
    text = (
        "#way = #ttcore.shard_direction<full_to_shard>\n#type = #ttcore.shard_type<devices>\n"
        f"func.func @main(%a: {kind}) -> {kind} {{\n"
        '  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_direction = #way, '
        f"shard_shape = array<i64: 1, 1>, shard_type = #type}}> : ({kind}) -> {kind}\n"
        f"  return %0 : {kind}\n}}\n"
    )
    x = floats(4, 6)
    np.testing.assert_array_equal(np.asarray(gl.tenstorrent.load(text)(x)), x)


def test_a_composite_runs_as_its_decomposition():
    kind = "tensor<3x5xf32>"
    text = (
        f"func.func @main(%a: {kind}) -> {kind} {{\n"
        '  %0 = "ttcore.composite"(%a) <{composite_name = "twice", decomposition = @twice, '
        f"composite_attributes = {{k = 4 : i32}}}}> : ({kind}) -> {kind}\n"
        f"  return %0 : {kind}\n}}\n"
        f"func.func private @twice(%a: {kind}) -> {kind} {{\n"
        f'  %0 = "ttir.add"(%a, %a) : ({kind}, {kind}) -> {kind}\n  return %0 : {kind}\n}}\n'
    )
    x = floats(3, 5)
    np.testing.assert_array_equal(np.asarray(gl.tenstorrent.load(text, function="main")(x)), 2 * x)
    with pytest.raises(LayoutError, match="only ops of TTNN and TTIR"):
        gl.tenstorrent.load(text.replace(", decomposition = @twice", ""), function="main")


def test_attributes_of_other_dialects_and_wrong_operands():
    x = floats(3, 5)
    made = load("neg", (x,), (x,), 'ttcore.weight_dtype = "bfp_bf8", d2m.hoist')(x)
    np.testing.assert_array_equal(np.asarray(made), -x)
    with pytest.raises(LayoutError, match="it does not take 2 operands"):
        load("sum", (x, x), (floats(3),), "dim_arg = [1 : i32]")


@pytest.mark.parametrize(("dialect", "epsilon"), [("ttir", 1e-5), ("ttnn", 1e-12)])
def test_norms_have_the_epsilon_of_their_dialect(dialect, epsilon):
    x = floats(3, 8) * 1e-3
    found = np.asarray(load(f"{dialect}.rms_norm", (x,), (x,))(x))
    right = x / np.sqrt((x.astype(float) ** 2).mean(-1, keepdims=True) + epsilon)
    np.testing.assert_allclose(found, right, rtol=1e-4)
    assert np.abs(found).max() > (1 if dialect == "ttnn" else 0.1)
