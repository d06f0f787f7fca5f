"""Ops that move elements without computing, and ops without tensor operands."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.ops.tenstorrent.operation import Function, Op, number_of

MAX_CONSTANT = 1 << 24


def same(op: Op) -> Function:
    """The operand unchanged: only its layout, memory or type changes."""
    return lambda x: x


def bitcast(op: Op) -> Function:
    """The same bits as another type of the same width."""
    dtype = op.outputs[0].dtype
    if op.inputs[0].tile_format or op.outputs[0].tile_format:
        op.fail("the bits of a block format are not known by element")
    return lambda x: lax.bitcast_convert_type(x, dtype)


def reshape(op: Op) -> Function:
    """The same elements in row-major order under another shape."""
    shape = op.integers("shape")
    return lambda x: jnp.reshape(x, shape)


def permute(op: Op) -> Function:
    """Dim k of the result is dim `permutation[k]`."""
    op.facts["dims"] = dims = op.integers("permutation")
    if sorted(dims) != list(range(len(op.inputs[0].shape))):
        op.fail(f"permutation {dims} must name each dim once")
    return lambda x: jnp.transpose(x, dims)


def transpose(op: Op) -> Function:
    """Two dims exchanged."""
    first, last = op.axis("dim0"), op.axis("dim1")
    op.facts["dims"] = dims = list(range(len(op.inputs[0].shape)))
    dims[first], dims[last] = last, first
    return lambda x: jnp.transpose(x, dims)


def concat(op: Op) -> Function:
    """The operands concatenated along `dim`."""
    axis = op.axis("dim")
    op.facts["dims"] = (axis,)
    return lambda *values: jnp.concatenate(_of_one_type(values), axis)


def _of_one_type(values: tuple[Any, ...]) -> list[Any]:
    dtype = jnp.result_type(*values)
    return [value.astype(dtype) for value in values]


def slice_static(op: Op) -> Function:
    """Elements from `begins` to `ends`, every `step`th; negative ones count from the end."""
    begins, ends, steps = (op.integers(key) for key in ("begins", "ends", "step"))
    if min(steps, default=1) < 1:
        op.fail(f"step {steps} must be 1 or more")
    return lambda x: x[tuple(map(slice, begins, ends, steps))]


def slice_dynamic(op: Op) -> Function:
    """As many elements as the result has, from the indices in the second operand.

    Indices below 0 count from the end. In older texts, a last operand is the result's buffer.
    """
    sizes = op.outputs[0].shape
    steps = op.integers("step", (1,) * len(sizes))
    if len(steps) != len(sizes) or min(steps, default=1) < 1:
        op.fail(f"step {steps} must be {len(sizes)} numbers, 1 or more")

    def run(x: Any, begins: Any, ends: Any, *buffer: Any) -> Any:
        firsts = [begins[k].astype(jnp.int32) for k in range(x.ndim)]
        whole = [s * (n - 1) + 1 for n, s in zip(sizes, steps, strict=True)]
        return lax.dynamic_slice(x, firsts, whole)[tuple(slice(None, None, s) for s in steps)]

    return run


def pad(op: Op) -> Function:
    """The operand with `padding` elements added before and after each dim."""
    padding, value = op.integers("padding"), op.number("value", 0)
    if len(padding) != 2 * len(op.inputs[0].shape) or min(padding, default=0) < 0:
        op.fail(f"padding {padding} must hold two numbers >= 0 per dim")
    pairs = list(zip(padding[::2], padding[1::2], strict=True))
    return lambda x: jnp.pad(x, pairs, constant_values=np.asarray(value).astype(x.dtype))


def repeat(op: Op) -> Function:
    """The operand repeated `repeat_dims` times along each dim."""
    times = op.integers("repeat_dims")
    return lambda x: jnp.tile(x, times)


def repeat_interleave(op: Op) -> Function:
    """Each element repeated `repeats` times along `dim`."""
    times, axis = op.integer("repeats"), op.axis("dim")
    return lambda x: jnp.repeat(x, times, axis)


def split_heads(op: Op) -> Function:
    """Queries, keys and values of (batch, rows, all of them), each (batch, heads, rows, width).

    Keys and values may be in a second operand, and have fewer heads; `transpose_key` exchanges the
    last dims of the keys.
    """
    heads, flipped = op.integer("num_heads"), op.flag("transpose_key")
    few = op.integer("num_kv_heads", heads)
    counts = [heads, few, few] if len(op.inputs) == 1 else [heads]
    own = [counts] if len(op.inputs) == 1 else [counts, [few, few]]
    for kind, each in zip(op.inputs, own, strict=True):
        if len(kind.shape) < 3 or min(each) < 1 or kind.shape[-1] % sum(each):
            op.fail(f"{sum(each)} heads do not divide the last dim of {kind.shape}")

    def parts(x: Any, counts: list[int]) -> list[Any]:
        x = jnp.reshape(x, (x.shape[0], x.shape[-2], sum(counts), -1))
        return jnp.split(jnp.swapaxes(x, 1, 2), list(np.cumsum(counts)[:-1]), 1)

    def run(*arrays: Any) -> list[Any]:
        pairs = zip(arrays, own, strict=True)
        query, key, value = [part for x, counts in pairs for part in parts(x, counts)]
        return [query, jnp.swapaxes(key, -1, -2) if flipped else key, value]

    return run


def concatenate_decoded_heads(op: Op) -> Function:
    """(1, users, heads or more, width) as (1, 1, users, heads * width).

    The result may have more rows, which fill a tile: padding of value 0.
    """
    (_, users, _, width), heads = op.inputs[0].shape, op.integer("num_heads")
    more = op.outputs[0].shape[-2] - users

    def run(x: Any) -> Any:
        made = jnp.reshape(x[:, :, :heads], (1, 1, users, heads * width))
        return jnp.pad(made, [(0, 0), (0, 0), (0, max(more, 0)), (0, 0)])

    return run


def concatenate_heads(op: Op) -> Function:
    """(batch, heads, rows, width) reshaped to (batch, rows, heads * width)."""
    shape = op.outputs[0].shape
    return lambda x: jnp.reshape(jnp.swapaxes(x, -3, -2), shape)


# -- without tensor operands -----------------------------------------------------------------------


def full(op: Op) -> Function:
    """A tensor filled with one number."""
    op.integers("shape", None)
    names = {"zeros": 0, "ones": 1, "empty": 0}
    value = names[op.name] if op.name in names else op.number("fill_value")
    out = op.outputs[0]
    return lambda: jnp.full(out.shape, np.asarray(value).astype(out.dtype))


def arange(op: Op) -> Function:
    """Numbers from `start` to `end`, exclusive, in steps of `step`."""
    start, end, step = op.integer("start", 0), op.integer("end"), op.integer("step", 1)
    if len(range(start, end, step or 1)) != prod(op.outputs[0].shape):
        op.fail(f"{start} to {end} in steps of {step} do not fill {op.outputs[0].shape}")
    return lambda: jnp.arange(start, end, step, dtype=op.outputs[0].dtype)


def rand(op: Op) -> Function:
    """Uniform random numbers from `low` to `high`, exclusive: others than a chip generates."""
    op.integers("size", None)
    low, high = op.number("low", 0.0), op.number("high", 1.0)
    seed, out = op.integer("seed", 0), op.outputs[0]
    if not jnp.issubdtype(out.dtype, jnp.floating) or not low <= high:
        op.fail(f"numbers from {low} to {high} of {out.dtype.name} are not known: give floats")
    key = seed % 2**32
    return lambda: jax.random.uniform(jax.random.key(key), out.shape, out.dtype, low, high)


def constant(op: Op) -> Function:
    """A constant: `dense<[[1.0, 2.0]]>`, one number for all of it, or its bytes."""
    text, out = op.text("value"), op.outputs[0]
    found = re.match(r"dense<(.*)>\s*:\s*tensor<", text, re.DOTALL)
    if not found or prod(out.shape) > MAX_CONSTANT:
        op.fail(f"value = {text[:60]} must be dense<...>, of at most {MAX_CONSTANT} elements")
    inside = found[1].strip()
    if inside.startswith('"0x'):
        element = re.search(r"(\w+)>$", text)
        name = dtypes.FROM_MLIR.get(re.sub(r"^.*x", "", element[1]) if element else "")
        values = _of_bytes(op, inside[3:-1], name or out.dtype.name).astype(out.dtype)
    else:
        words = re.findall(r"[^\[\],\s]+", inside)
        kind = re.search(r"(bf16|f16|f32|f64)>$", text)
        suffix = f" : {kind[1]}" if kind else ""
        numbers = [number_of(word + suffix) for word in words]
        if None in numbers:
            op.fail(f"value = {text[:60]} holds a value that is no number")
        values = np.asarray(numbers).astype(out.dtype)
    if values.size not in (1, prod(out.shape)):
        op.fail(f"value holds {values.size} numbers for the shape {out.shape}")
    is_one = values.size == 1
    whole = np.full(out.shape, values.ravel()[0]) if is_one else values.reshape(out.shape)
    return lambda: jnp.asarray(whole)


def _of_bytes(op: Op, text: str, name: str) -> np.ndarray[Any, Any]:
    try:
        return np.frombuffer(bytes.fromhex(text), dtypes.as_dtype(name))
    except ValueError:
        op.fail(f"value = {text[:60]} is no sequence of {name} as bytes")


# Ops that keep the values and the shape of the first operand.
SAME = (
    *("to_layout", "to_memory_config", "typecast", "to_dtype", "to_device", "from_device"),
    *("assign", "clone", "to_row_major_layout", "to_tensor_spec"),
)
FUNCTIONS = {
    **dict.fromkeys(SAME, same),
    **dict.fromkeys(("full", "zeros", "ones", "empty"), full),
    "arange": arange,
    "bitcast_convert": bitcast,
    "concat": concat,
    "concatenate_heads": concatenate_heads,
    "constant": constant,
    "nlp_concat_heads_decode": concatenate_decoded_heads,
    "pad": pad,
    "permute": permute,
    "rand": rand,
    "repeat": repeat,
    "repeat_interleave": repeat_interleave,
    "reshape": reshape,
    "slice_dynamic": slice_dynamic,
    "slice_static": slice_static,
    "split_query_key_value_and_split_heads": split_heads,
    "transpose": transpose,
}
