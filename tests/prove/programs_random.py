"""Random programs: the source of a function of arrays, line by line, and its operands.

A line is drawn among templates that fit the values so far. JAX's shape inference says what shape it
has; a line that JAX refuses, or whose value is too large, is drawn again. A value that depends on
bfloat16 goes through no step that jumps (a sort, a comparison), since its rounding may differ.
"""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

SCOPE = {"jax": jax, "jnp": jnp, "lax": lax}
LARGEST = 400  # elements of a value
TRIES = 60

# Templates: {v} is a value, {u} another one, {k} an axis of v, {n} its extent there.
SMOOTH = """
jnp.tanh({v}) | jnp.sin({v}) | jnp.exp(-jnp.abs({v})) | jnp.log1p(jnp.abs({v})) | -{v}
{v} * {v} * 0.5
jnp.sqrt(1 + {v} * {v}) | jax.nn.sigmoid({v}) | jax.nn.gelu({v}) | jax.nn.softmax({v}, axis={k})
jax.nn.logsumexp({v}, axis={k}) | {v} / (1 + jnp.abs({u})) | {v} + {u} | {v} - {u} | {v} * {u}
{v} * 0.5 + 1 | jnp.arctan2({v}, 1 + jnp.abs({u})) | {v}.sum({k}) | {v}.sum({k}, keepdims=True)
{v}.mean({k}) | {v}.mean({k}, keepdims=True) | {v} - {v}.mean({k}, keepdims=True) | {v}.sum()
{v}.var({k}) | jnp.cumsum({v}, {k}) | jnp.cumsum({v}, {k})[::-1] | {v}[:, None] * {v}[None]
{v} @ {u} * 0.3 | {v} @ {v}.T * 0.3 | {v}.T @ {u} * 0.3 | jnp.tensordot({v}, {u}, 1) * 0.3
jnp.einsum('ij,kj->ik', {v}, {u}) * 0.3 | jnp.einsum('bij,bjk->bik', {v}, {u}) * 0.3
jnp.einsum('bij,bij->bj', {v}, {u}) | jnp.convolve({v}[0], jnp.ones(3) * 0.3, mode='same')
lax.fori_loop(0, 3, lambda i, a: jnp.sin(a) + a * 0.5, {v})
lax.scan(lambda c, x: (jnp.tanh(c + x), c * x), {v}[0], {v})[1]
lax.scan(lambda c, x: (jnp.tanh(c + x), c * x), {v}[0], {v})[0]
lax.associative_scan(jnp.add, {v}, axis={k}) | jax.checkpoint(lambda a: jnp.sin(a) * a)({v})
"""
MOVING = """
{v}.T | jnp.moveaxis({v}, {k}, 0) | jnp.swapaxes({v}, 0, -1) | {v}.ravel() | {v}.reshape(-1, {n})
{v}.reshape({n}, -1) | {v}.reshape(2, -1) | {v}.reshape(-1, 3) | {v}[None] | {v}[..., None]
{v}[1:] | {v}[:-1] | {v}[..., 1:] | {v}[..., :2] | {v}[::2] | {v}[::-1] | {v}[..., ::-1] | {v}[0]
jnp.squeeze({v}) | jnp.concatenate([{v}, {v}], {k}) | jnp.concatenate([{v}, {u}], {k})
jnp.stack([{v}, {v}], {k}) | jnp.pad({v}, 1) | jnp.tile({v}, 2) | jnp.repeat({v}, 2, axis={k})
jnp.roll({v}, 1, {k}) | jnp.take({v}, jnp.array([1, 0, 1]), axis={k}) | {v}[jnp.array([0, 1, 1])]
lax.dynamic_slice_in_dim({v}, 1, 2, {k}) | {v}.at[0].add(0.5) | {v}.at[jnp.array([0, 1])].set(2)
lax.dynamic_update_slice_in_dim({v}, {v} * 2, 0, {k}) | jnp.broadcast_to({v}, (2, *{v}.shape))
jnp.diagonal({v}) | jnp.tril({v}) | jnp.split({v}, [1], axis={k})[0] | jnp.flip({v}, {k})
"""
# Where they jump, no value is that is met often: rounding may put it on either side.
JUMPING = """
{v}.max({k}) | {v}.min({k}) | {v}.max({k}, keepdims=True) | jax.nn.relu({v})
jnp.clip({v}, -0.7, 0.7) | jnp.sort({v}, axis={k})
jnp.maximum({v}, {u}) | jnp.minimum({v}, 0.2) | jnp.where({v} > 0.0123, {v}, {u})
jnp.where({v} > 0.1, {v}, 0) | lax.cummax({v}, {k}) | lax.top_k({v}, 2)[0] | jnp.abs({v})
lax.cond({v}.sum() > 0.0123, lambda a: a * 2, lambda a: -a, {v}) | jnp.argmax({v}, {k})
jnp.floor({v} * 7.3 + 0.123) | jnp.round({v} * 7.3 + 0.123) | {v} > 0.0123
({v} * 7.3 + 0.123).astype('int32') | jnp.argsort({v}, axis={k})
"""
INTEGER = """
{v} // 3 | {v} % 5 | {v} + 1 | {v} * {v} | -{v} | {v}.sum({k}) | {v}.max({k}) | {v} << 1 | {v} & 6
{v}.astype('float32') * 0.25 | {v} > 2 | jnp.cumsum({v}, {k}) | {v}.T | {v}.ravel() | {v}[::-1]
jnp.sort({v}, axis={k}) | {v} == {v}.max() | jnp.where({v} > 1, {v}, 0)
jnp.concatenate([{v}, {v}])
"""
# Floats of 4 and 8 bits are moved and cast: few backends compute with them.
STORED = """
{v}.T | {v}.ravel() | {v}[1:] | {v}[..., :2] | {v}[::-1] | {v}[0] | {v}[None] | jnp.flip({v}, {k})
jnp.concatenate([{v}, {v}], {k}) | jnp.roll({v}, 1, {k}) | jnp.stack([{v}, {v}], {k})
{v}.astype('float32') * 0.3 | {v}.astype('bfloat16') | {v}.astype('float32')
"""
LOGICAL = """
~{v} | {v}.any({k}) | {v}.all({k}) | {v}.sum({k}) | {v} & {v}[::-1] | {v}.T | {v}.astype('float32')
jnp.where({v}, 1.5, -0.5) | {v}.astype('int32') | {v}.ravel() | jnp.logical_xor({v}, {v}[..., ::-1])
"""


def is_whole(dtype):
    """Whether numbers of a type are exact."""
    return dtype == jnp.bool_ or dtype.name in WHOLE


def templates(text):
    """The templates of a table: separated by bars, and by the ends of lines."""
    return [each.strip() for line in text.strip().splitlines() for each in line.split(" | ")]


SMOOTH, MOVING, JUMPING = map(templates, (SMOOTH, MOVING, JUMPING))
INTEGER, STORED, LOGICAL = map(templates, (INTEGER, STORED, LOGICAL))
WHOLE = ("int32", "int8", "uint8", "int4", "uint4")
SMALL = ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")


@dataclass
class Value:
    """A value of a program: its name, its shape and dtype, and whether it comes from bfloat16."""

    name: str
    aval: jax.ShapeDtypeStruct
    coarse: bool


@dataclass
class Drawn:
    """A program: operands, the lines of its body, and the names of its results."""

    operands: list = field(default_factory=list)
    lines: list = field(default_factory=list)
    results: list = field(default_factory=list)

    @property
    def source(self):
        """The function as Python text."""
        names = ", ".join(f"x{k}" for k in range(len(self.operands)))
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def fn({names}):\n{body}    return {', '.join(self.results)},\n"

    @property
    def function(self):
        """The function."""
        scope = dict(SCOPE)
        exec(self.source, scope)
        return scope["fn"]


def operand(rng, kinds=("float32",) * 9 + ("bfloat16", "bool", *WHOLE, *SMALL)):
    """An array of rank 1 to 3."""
    rank = int(rng.choice([1, 2, 2, 2, 3, 3]))
    extents = [2, 3, 4, 5, 7, 8] if rank < 3 else [2, 3, 4, 5]
    shape = tuple(int(n) for n in rng.choice(extents, rank))
    kind = str(rng.choice(kinds))
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in WHOLE:
        return rng.integers(-9, 10, shape).astype("int32").astype(kind)
    return rng.normal(size=shape).astype("float32").astype(jnp.dtype(kind))


def drawn(rng):
    """A random program of two or three operands and three to nine lines."""
    first = operand(rng, ["float32"])  # so that a derivative is of something
    made = Drawn([first, *(operand(rng) for _ in range(rng.integers(1, 3)))])
    values = []
    for k, array in enumerate(made.operands):
        aval = jax.ShapeDtypeStruct(array.shape, array.dtype)
        values.append(Value(f"x{k}", aval, array.dtype == jnp.bfloat16))
    inputs, count = len(values), int(rng.integers(3, 10))
    for _ in range(TRIES):
        if len(values) - inputs == count:
            break
        if (found := _line(rng, values, f"v{len(values)}")) is not None:
            line, value = found
            made.lines.append(f"{value.name} = {line}")
            values.append(value)
    last = [value for value in values if value.aval.dtype in (jnp.float32, jnp.bfloat16)][-1]
    made.results = list(dict.fromkeys(value.name for value in (*values[-2:], last)))
    return made


def _line(rng, values, name):
    """A line and its value, or None where JAX refuses the line."""
    # Later values more often, so that programs are deep.
    weights = np.arange(1, len(values) + 1) ** 1.5
    v, u = (values[k] for k in rng.choice(len(values), 2, p=weights / weights.sum()))
    template = _template(rng, v)
    axis = int(rng.integers(v.aval.ndim)) if v.aval.ndim else 0
    words = {"v": v.name, "u": u.name, "k": axis, "n": (*v.aval.shape, 1)[axis]}
    line = template.format(**words)
    used = {value.name: value for value in ((v, u) if "{u}" in template else (v,))}
    coarse = any(value.coarse for value in used.values())
    if coarse and template in JUMPING:
        return None
    try:
        fn = eval(f"lambda {', '.join(used)}: {line}", dict(SCOPE))
        aval = jax.eval_shape(fn, *(value.aval for value in used.values()))
    except (TypeError, ValueError, IndexError, ZeroDivisionError, NotImplementedError):
        return None
    if not isinstance(aval, jax.ShapeDtypeStruct) or not 0 < np.prod(aval.shape) <= LARGEST:
        return None
    if aval.ndim > 4 or aval.dtype not in KINDS:
        return None
    return line, Value(name, aval, coarse and not is_whole(aval.dtype))


KINDS = [jnp.dtype(name) for name in ("float32", "bfloat16", "bool", *WHOLE, *SMALL)]


def _template(rng, v):
    if v.aval.dtype == jnp.bool_:
        table = LOGICAL
    elif v.aval.dtype.name in WHOLE:
        table = INTEGER
    elif v.aval.dtype.name in SMALL:
        table = STORED
    else:
        table = [SMOOTH, SMOOTH, MOVING, MOVING, JUMPING][rng.integers(5)]
    return table[rng.integers(len(table))]
