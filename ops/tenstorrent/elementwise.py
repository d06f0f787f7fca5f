"""Elementwise ops: one function per op. Truth values are 0 and 1 in the result's type."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.mlir.source import fields, parts
from gridlayout.ops.tenstorrent.operation import Function, Op, number_of

UNARY: dict[str, Function] = {
    **{name: getattr(jnp, name) for name in ("abs", "ceil", "cos", "cosh", "exp", "exp2", "expm1")},
    **{name: getattr(jnp, name) for name in ("floor", "isfinite", "isinf", "isnan", "log", "log2")},
    **{name: getattr(jnp, name) for name in ("log10", "log1p", "logical_not", "reciprocal")},
    **{name: getattr(jnp, name) for name in ("sign", "sin", "sinh", "sqrt", "square", "tan")},
    **{name: getattr(jnp, name) for name in ("tanh", "trunc", "cbrt", "bitwise_not")},
    **{name: getattr(jax.nn, name) for name in ("relu", "relu6", "sigmoid", "silu", "mish")},
    **{f"a{name}": getattr(jnp, f"arc{name}") for name in ("sin", "cos", "tan")},
    **{f"a{name}": getattr(jnp, f"arc{name}") for name in ("sinh", "cosh", "tanh")},
    "erf": lax.erf,
    "erfc": lax.erfc,
    "identity": lambda x: x,
    # jax.nn.gelu's default; the form with erf differs from it by up to 5e-4.
    "gelu": jax.nn.gelu,
    "hardsigmoid": jax.nn.hard_sigmoid,
    "neg": jnp.negative,
    "round": jnp.round,
    "rsqrt": lax.rsqrt,
    "softplus": jax.nn.softplus,
    "softsign": jax.nn.soft_sign,
}
BINARY: dict[str, Function] = {
    **{name: getattr(jnp, name) for name in ("add", "subtract", "multiply", "maximum", "minimum")},
    **{name: getattr(jnp, name) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{name: getattr(jnp, name) for name in ("logical_and", "logical_or", "logical_xor")},
    "atan2": jnp.arctan2,
    "bitwise_left_shift": jnp.left_shift,
    "bitwise_right_shift": jnp.right_shift,
    "divide": lambda x, y: lax.div(*_common_type(x, y)),
    "eq": jnp.equal,
    "ge": jnp.greater_equal,
    "gt": jnp.greater,
    "le": jnp.less_equal,
    "logical_left_shift": jnp.left_shift,
    "logical_right_shift": lambda x, y: lax.shift_right_logical(*_common_type(x, y)),
    "lt": jnp.less,
    "ne": jnp.not_equal,
    "pow_tensor": jnp.power,
    "remainder": lambda x, y: lax.rem(*_common_type(x, y)),
}
# Fused activations, including those with other names than the op.
ACTIVATIONS: dict[str, Function] = {
    **UNARY,
    **{"recip": UNARY["reciprocal"], "soft_plus": UNARY["softplus"]},
    **{"logical_not_unary": jnp.logical_not, "signbit": jnp.signbit},
    **{f"is_{name}": UNARY[f"is{name}"] for name in ("finite", "inf", "nan")},
    **{"is_pos_inf": jnp.isposinf, "is_neg_inf": jnp.isneginf},
    **{"eqz": lambda x: x == 0, "nez": lambda x: x != 0, "gtz": lambda x: x > 0},
    **{"ltz": lambda x: x < 0, "gez": lambda x: x >= 0, "Lez": lambda x: x <= 0},
}
# Activations with one parameter.
WITH_NUMBER: dict[str, Function] = {
    "elu": jax.nn.elu,
    "leaky_relu": lambda x, slope: jnp.where(x >= 0, x, slope * x),
    "power": jnp.power,
    "add_unary_sfpu": jnp.add,
    "sub_unary_sfpu": jnp.subtract,
    "mul_unary_sfpu": jnp.multiply,
    "div_unary_sfpu": jnp.divide,
    "rsub": lambda x, number: number - x,
    "rdiv": lambda x, number: number / x,
    "unary_gt": jnp.greater,
    "unary_lt": jnp.less,
    "unary_ne": jnp.not_equal,
}


def _common_type(x: Any, y: Any) -> tuple[Any, Any]:
    """Return both operands in their common type and broadcast shape."""
    dtype = jnp.promote_types(x.dtype, y.dtype)
    shape = jnp.broadcast_shapes(x.shape, y.shape)
    return jnp.broadcast_to(x.astype(dtype), shape), jnp.broadcast_to(y.astype(dtype), shape)


def unary(op: Op) -> Function:
    """An op of one operand."""
    return UNARY[op.name]


def gelu(op: Op) -> Function:
    """The activation GELU, in the form that `approximate` states, if any: "none" has erf."""
    return gelu_of(op, "tanh")


def gelu_of(op: Op, default: str) -> Function:
    """Return GELU in the form that `approximate` states. default: the form without it."""
    how = op.word("approximate", default)
    if how not in ("none", "tanh"):
        op.fail(f"approximate = {how} is neither none nor tanh")
    return partial(jax.nn.gelu, approximate=how == "tanh")


def binary(op: Op) -> Function:
    """An op of two operands, with activations fused to each operand and to the result."""
    first = activations(op, op.text("input_tensor_a_activations", "[]"))
    second = activations(op, op.text("input_tensor_b_activations", "[]"))
    last = activations(op, op.text("activations", "[]"))
    function = BINARY[op.name]
    return lambda x, y: last(function(first(x), second(y)))


def activations(op: Op, text: str) -> Function:
    """Return `[#ttnn.unary_with_param<op_type = neg>, ...]` as one function, from left to right."""
    return chain([activation(op, part) for part in parts(text[1:-1])])


def activation(op: Op, text: str) -> Function:
    """Return the function of one activation.

    Its text is `#ttnn.unary_with_param<op_type = relu>`, `<op_type = relu>`, `"relu"` or `relu`.
    The function gives truth values as 1 and 0. Parameters can be the number of digits of `round`,
    or one number.
    """
    inside, params = text, []
    if "<" in text:
        found = fields(text[text.index("<") + 1 : text.rindex(">")])
        inside = found.pop("op_type", "")
        params = [number_of(part) for part in parts(found.pop("params", "[]")[1:-1])]
        if found:
            op.fail(f"the activation {text[:80]} states {', '.join(found)}, which is not known")
    name = inside.strip('<>" ')
    match name, params:
        case _, [] if name in ACTIVATIONS:
            return lambda x: ACTIVATIONS[name](x).astype(x.dtype)
        case "round", [int() | float() as digits] if abs(digits) < 39:
            return lambda x: jnp.round(x, int(digits))
        case _, [int() | float() as number] if name in WITH_NUMBER:
            return lambda x: WITH_NUMBER[name](x, number).astype(x.dtype)
    op.fail(f"the activation {name[:40]!r} with parameters {params} is not known")


def chain(functions: list[Function]) -> Function:
    """Return a function that applies functions one after the other."""

    def run(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return run


def where(op: Op) -> Function:
    """The second operand where the first is not 0, else the third."""
    return lambda which, x, y: jnp.where(which != 0, x, y)


def clamp(op: Op) -> Function:
    """Elements limited to `min` and `max`, two numbers."""
    low, high = op.number("min"), op.number("max")
    return lambda x: jnp.clip(x, low, high)


def clamp_tensor(op: Op) -> Function:
    """Elements limited to the second and the third operand."""
    return jnp.clip


def leaky_relu(op: Op) -> Function:
    """`parameter` times x where x is below 0, else x."""
    slope = op.number("parameter")
    return lambda x: WITH_NUMBER[op.name](x, slope)


def selu(op: Op) -> Function:
    """`scale` times x where x is above 0, else `scale * alpha * (exp(x) - 1)`."""
    scale, alpha = op.number("scale", 1.0507009873390197), op.number("alpha", 1.6732635498046875)
    return lambda x: scale * jax.nn.elu(x, alpha)


def reduce_precision(op: Op) -> Function:
    """Elements rounded to a number of exponent bits and of mantissa bits."""
    exponent, mantissa = op.integer("exponent_bits"), op.integer("mantissa_bits")
    return lambda x: lax.reduce_precision(x, exponent, mantissa)


def pow_scalar(op: Op) -> Function:
    """Elements to the power of a number."""
    exponent = op.number("rhs")
    return lambda x: jnp.power(x, exponent)


FUNCTIONS = {
    **dict.fromkeys(UNARY, unary),
    **dict.fromkeys(BINARY, binary),
    "gelu": gelu,
    "clamp_scalar": clamp,
    "clamp_tensor": clamp_tensor,
    "leaky_relu": leaky_relu,
    "pow_scalar": pow_scalar,
    "reduce_precision": reduce_precision,
    "selu": selu,
    "where": where,
}
