"""Every lax primitive on random layouts, against JAX's own, with poison in the padding.

All ways of a primitive (its axes, say) are decided on all layouts, and what is decided is sound.
Compiling is what takes time: of decisions of one kind, and of each primitive, one is compiled and
run, with the others of its layouts as one program; with `--all-cases` also one of each way.
A failure names the primitive and the layouts.
"""

import functools
import itertools
from contextlib import suppress

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from deciding import Traced, decisions, kinds_of
from devices import turn as device_of
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.extend.core import Literal
from jax.sharding import AbstractMesh
from laid_out import assert_same, equations, layouts, poisoned
from machines import FAST
from tiers import few

import gridlayout as gl
from gridlayout import dtypes
from gridlayout.ops.decisions.jaxprs import CALLS
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.primitives.table import RECORDS, flops

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,), machine=FAST)
FEW = gl.DeviceGrid((min(4, COUNT),))
ONE = gl.DeviceGrid((1,))
pytestmark = pytest.mark.usefixtures("few_programs")
STRIDE = 3 if tiers.ALL else 1  # of layouts, those that ways without a kind of their own run in


A, B, V, K, T, U = (5, 7), (7, 3), (7,), (5, 1), (2, 5, 7), (2, 7, 3)


def example(shape, kind="normal", seed=0):
    rng = np.random.default_rng([seed, len(kind)])
    return {
        "normal": lambda: rng.normal(size=shape).astype("f4"),
        "unit": lambda: rng.uniform(-0.9, 0.9, shape).astype("f4"),
        "positive": lambda: rng.uniform(0.5, 3, shape).astype("f4"),
        "integer": lambda: rng.integers(-40, 40, shape).astype("i4"),
        "index": lambda: rng.integers(0, 5, shape).astype("i4"),
        "bool": lambda: rng.integers(0, 2, shape).astype(bool),
    }[kind]()


# -- the table: kind: (operands, {name: function of them, or several that take turns}) ------------

REAL = {
    name: functools.partial(lambda fn, x, u, p: fn(x), getattr(lax, name))
    for name in """
    abs neg sign floor ceil is_finite exp exp2 expm1 sqrt cbrt sin cos tan sinh cosh tanh asinh atan
    erf erfc bessel_i0e bessel_i1e logistic square
    """.split()  # noqa: SIM905
}
REAL |= {
    name: functools.partial(lambda fn, x, u, p: fn(u), getattr(lax, name))
    for name in ("acos", "asin", "atanh", "erf_inv")
}
REAL |= {
    name: functools.partial(lambda fn, x, u, p: fn(p), getattr(lax, name))
    for name in ("log", "log1p", "rsqrt", "lgamma", "digamma")
}
REAL |= {
    "acosh": lambda x, u, p: lax.acosh(p + 1),
    "integer_pow": [lambda x, u, p: lax.integer_pow(x, 3), lambda x, u, p: lax.integer_pow(p, -2)],
    "round": [
        lambda x, u, p: lax.round(x * 2),
        lambda x, u, p: lax.round(x * 2, lax.RoundingMethod.TO_NEAREST_EVEN),
    ],
    "reduce_precision": lambda x, u, p: lax.reduce_precision(x, 5, 10),
    "convert_element_type": [
        lambda x, u, p: x.astype("int8"),
        lambda x, u, p: u.astype("bfloat16"),
        lambda x, u, p: x.astype(bool),
    ],
    "bitcast": lambda x, u, p: lax.bitcast_convert_type(x, jnp.uint32),
    "bitcast, narrower and back": lambda x, u, p: lax.bitcast_convert_type(
        lax.bitcast_convert_type(x, jnp.uint16) + 0, jnp.float32
    ),
    "copy": [lambda x, u, p: jnp.array(x, copy=True), lambda x, u, p: lax.copy_p.bind(x)],
    "name": lambda x, u, p: checkpoint_name(x, "here"),
    "add_any": lambda x, u, p: jax.grad(lambda x: (x * x * jnp.sin(x)).sum())(x),
    "stop_gradient": lambda x, u, p: jax.grad(lambda x: (x * lax.stop_gradient(x)).sum())(x),
}
# Of later JAX.
LATER = {
    "log2": lambda x, u, p: lax.log2(p),
    "one_minus_square": lambda x, u, p: lax.one_minus_square(u),
    "polynomial": lambda x, u, p: lax.polynomial(x, [1.0, 2.0, 3.0]),
}
REAL |= {name: fn for name, fn in LATER.items() if hasattr(lax, name)}

PAIR = {
    name: functools.partial(lambda fn, x, y, p: fn(x, y), getattr(lax, name))
    for name in "add sub mul div rem max min atan2 nextafter eq ne lt le gt ge complex".split()  # noqa: SIM905
}
PAIR |= {
    "pow": lambda x, y, p: lax.pow(p, y),
    "total order": [
        lambda x, y, p: lax.eq_to_p.bind(x, y),
        lambda x, y, p: lax.lt_to_p.bind(x, y),
        lambda x, y, p: lax.le_to_p.bind(x, y),
    ],
    "clamp": [lambda x, y, p: lax.clamp(x - p, y, x), lambda x, y, p: lax.clamp(-0.5, x, 0.5)],
    "select": lambda x, y, p: lax.select(x > y, y, p),
    "select_n": lambda x, y, p: lax.select_n((x > 0).astype("i4") + (y > 0), x, y, p),
    "complex numbers": lambda x, y, p: lax.conj(lax.complex(x, y)) * lax.complex(p, x),
    "real": lambda x, y, p: lax.real(lax.complex(x, y)),
    "imag": lambda x, y, p: lax.imag(lax.complex(x, y)),
    "optimization_barrier": lambda x, y, p: lax.optimization_barrier((x, y, 2.0, p[0, 0])),
}

# Dear to compile, and elementwise like the others.
PAIR |= {
    "igamma": lambda x, y, p: lax.igamma(p, abs(y) + 0.5),
    "igammac": lambda x, y, p: lax.igammac(p, abs(y) + 0.5),
    "igamma_grad_a": lambda x, y, p: lax.igamma_grad_a(p, abs(y) + 0.5),
    "betainc": lambda x, y, p: lax.betainc(p, abs(y) + 0.5, lax.logistic(x)),
    "polygamma": lambda x, y, p: lax.polygamma(lax.round(p), abs(y) + 0.5),
    "zeta": lambda x, y, p: lax.zeta(p + 1, abs(y) + 0.5),
}

INTEGER = {
    name: functools.partial(lambda fn, i, j, m: fn(i, j), getattr(lax, name))
    for name in "add mul max rem bitwise_and bitwise_or bitwise_xor eq lt".split()  # noqa: SIM905
}
INTEGER |= {
    name: functools.partial(lambda fn, i, j, m: fn(i, j & 7), getattr(lax, name))
    for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical")
}
INTEGER |= {
    "div": lambda i, j, m: lax.div(i, lax.select(j == 0, j + 1, j)),
    "not": [lambda i, j, m: lax.bitwise_not(i), lambda i, j, m: lax.bitwise_not(m)],
    "population_count": lambda i, j, m: lax.population_count(i.astype("uint8")),
    "clz": lambda i, j, m: lax.clz(i),
    "of one": [
        lambda i, j, m: lax.sign(i),
        lambda i, j, m: lax.abs(j),
        lambda i, j, m: lax.integer_pow(i, 2),
    ],
    "logic": [
        lambda i, j, m: m & (i > j),
        lambda i, j, m: m | (i < 0),
        lambda i, j, m: m ^ (j < 0),
    ],
    "select": lambda i, j, m: lax.select_n(m, i, j),
    "casts": [
        lambda i, j, m: m.astype("f4"),
        lambda i, j, m: i.astype("uint8"),
        lambda i, j, m: j.astype(bool),
    ],
    "int4": lambda i, j, m: (i.astype("int4") + j.astype("int4")).astype("i4"),
}

SPREAD = {
    "rows and columns": [
        lambda x, v, k, t: x + v,
        lambda x, v, k, t: x * k,
        lambda x, v, k, t: v * k,
        lambda x, v, k, t: t - x,
        lambda x, v, k, t: v + t,
    ],
    "what every device has": [
        lambda x, v, k, t: 2 / (3 + abs(x)),
        lambda x, v, k, t: x * np.arange(35, dtype="f4").reshape(A),
        lambda x, v, k, t: x + lax.broadcasted_iota(jnp.float32, A, 1),
    ],
    "where": [
        lambda x, v, k, t: jnp.where(v > 0, x, 1.5),
        lambda x, v, k, t: jnp.where(x > 0, t, k),
    ],
    "broadcast_in_dim": lambda x, v, k, t: lax.broadcast_in_dim(v, (3, 7, 2), (1,)),
    "broadcast twice": lambda x, v, k, t: jnp.broadcast_to(k, A) + jnp.tile(v, (5, 1)),
}

AXES = [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)]
# Extremes of numbers on the far side of 0, so that a 0 from the padding would be one.
SHIFT = {"reduce_max": -9, "reduce_min": 9, "argmax": -9, "argmin": 9}
REDUCE = {
    name: [
        functools.partial(
            lambda fn, shift, axes, t, m: fn(t + shift, axes),
            *(getattr(lax, name), SHIFT.get(name, 0), axes),
        )
        for axes in AXES
    ]
    for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
}
REDUCE |= {
    name: [
        functools.partial(lambda fn, axes, t, m: fn(m, axes), getattr(lax, name), axes)
        for axes in AXES
    ]
    for name in ("reduce_and", "reduce_or")
}
REDUCE |= {
    name: [
        functools.partial(
            lambda fn, shift, d, t, m: fn(t + shift, d, jnp.int32),
            *(getattr(lax, name), SHIFT[name], d),
        )
        for d in range(3)
    ]
    for name in ("argmax", "argmin")
}
REDUCE["integers"] = [
    functools.partial(
        lambda fn, shift, kind, t, m: fn((t * 20 + shift).astype(kind), (1,)), fn, shift, kind
    )
    for fn, shift in ((lax.reduce_sum, 0), (lax.reduce_max, -70), (lax.reduce_min, 70))
    for kind in ("int8", "int32")
]
# With the reduced dims whole on each core.
REDUCE["bits and own functions"] = [
    lambda t, m: lax.reduce(t, 10.0, lambda a, b: a + b, (1,)),
    lambda t, m: lax.reduce_xor((t * 20).astype("i4"), (1,)),
    lambda t, m: lax.reduce_and((t * 20).astype("i4"), (2,)),
    lambda t, m: lax.reduce(t, -np.inf, jnp.logaddexp, (0, 2)),
    lambda t, m: lax.reduce((t, m), (0.0, True), lambda a, b: (a[0] + b[0], a[1] ^ b[1]), (2,)),
    lambda t, m: lax.reduce_or((t * 20).astype("i4"), (0, 1)),
    lambda t, m: jax.grad(lambda t: lax.reduce(t, 1.0, lambda a, b: a * b, (2,)).sum())(t),
    lambda t, m: lax.reduce_or((t * 20).astype("i4"), (0, 1, 2)),
    lambda t, m: lax.reduce(t * 9, 1.0, lambda a, b: a * b, (0, 1, 2)),
]

ALONG = {
    name: [
        functools.partial(
            lambda fn, axis, back, x, y: fn(x, axis, reverse=back), getattr(lax, name), axis, back
        )
        for axis in range(2)
        for back in (False, True)
    ]
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
}
ALONG |= {
    "sort": [
        lambda x, y: lax.sort(x, dimension=0),
        lambda x, y: lax.sort(y, dimension=1),
        lambda x, y: lax.sort((lax.round(x), y), dimension=0, num_keys=2),
        lambda x, y: jnp.argsort(x, 1, descending=True),
    ],
    "top_k": [lambda x, y: lax.top_k(x, 3), lambda x, y: lax.top_k(x, 2, axis=0)],
    "approx_top_k": lambda x, y: lax.approx_max_k(x, 3, recall_target=1.0),
    "fft": [
        lambda x, y: jnp.fft.rfft(x),
        lambda x, y: jnp.fft.ifft(y, axis=0),
        lambda x, y: jnp.fft.fft2(jnp.stack([lax.complex(x, y)])),
    ],
}

PRODUCTS = {
    "matrices": [
        lambda x, w, t, u: x @ w,
        lambda x, w, t, u: (x @ w).T,
        lambda x, w, t, u: w.T @ x.T,
        lambda x, w, t, u: x @ x.T,
        lambda x, w, t, u: x.T @ x,
        lambda x, w, t, u: (x * 9).astype("i4") @ (w * 9).astype("i4"),
        lambda x, w, t, u: lax.dot(
            *(x.astype("bfloat16"), w.astype("bfloat16")), preferred_element_type=jnp.float32
        ),
    ],
    "batched": [
        lambda x, w, t, u: t @ u,
        lambda x, w, t, u: t @ w,
        lambda x, w, t, u: x @ u,
        lambda x, w, t, u: jnp.einsum("ab,ab->ba", x, x),
    ],
    "more or fewer dims": [
        lambda x, w, t, u: x @ w[:, 0],
        lambda x, w, t, u: x[0] @ w,
        lambda x, w, t, u: x[0] @ w[:, 0],
        lambda x, w, t, u: jnp.einsum("abc,bc->a", t, x),
        lambda x, w, t, u: jnp.tensordot(x, x, 2),
        lambda x, w, t, u: jnp.einsum("ab,cd->adbc", x[:2], w[:, :2]),
    ],
}

SHAPES = {
    "transpose": [lambda x, t: x.T, lambda x, t: lax.transpose(t, (2, 0, 1))],
    "reshape": [
        lambda x, t: lax.reshape(x, (35,)),
        lambda x, t: lax.reshape(t, (10, 7)),
        lambda x, t: lax.reshape(t, (2, 35)),
        lambda x, t: lax.reshape(t, (7, 10)),
        lambda x, t: lax.reshape(x, (5, 1, 7, 1)),
        lambda x, t: lax.reshape(x, (7, 5), (1, 0)),
    ],
    "expand_dims and squeeze": [
        lambda x, t: lax.expand_dims(x, (0, 2)),
        lambda x, t: lax.squeeze(lax.slice_in_dim(t, 1, 2), (0,)),
    ],
    "slice": [
        lambda x, t: lax.slice(x, (1, 2), (4, 7)),
        lambda x, t: lax.slice(t, (0, 0, 1), (2, 5, 6)),
        lambda x, t: lax.slice(x, (0, 1), (5, 7), (2, 3)),
    ],
    "dynamic slices": [
        lambda x, t: lax.dynamic_slice(x, (jnp.int32(2), jnp.int32(99)), (5, 2)),
        lambda x, t: lax.dynamic_update_slice(x, x[:, :2] * 0, (0, 3)),
    ],
    "pad": [
        lambda x, t: lax.pad(x, 1.5, ((1, 0, 1), (0, 0, 0))),
        lambda x, t: lax.pad(x, 0.0, ((0, -2, 0), (0, 3, 0))),
    ],
    "rev": [lambda x, t: lax.rev(x, (0,)), lambda x, t: lax.rev(t, (0, 2))],
    "concatenate": [
        lambda x, t: lax.concatenate([x, t[0], np.ones((2, 7), "f4")], 0),
        lambda x, t: lax.concatenate([t, t[:, :, :2]], 2),
    ],
    "one and many": [
        lambda x, t: lax.split(x, (3, 4), 1),
        lambda x, t: jnp.stack([x, t[1]], 1),
        lambda x, t: jnp.unstack(t, axis=1),
        lambda x, t: lax.tile(x, (1, 2)),
    ],
    "device_put": lambda x, t: jax.device_put(x) * 1,
    "with_layout": lambda x, t: gl.with_layout(x, gl.GridLayout(A, "float32", (3, 2), (2, 2))),
}

INDEXED = {
    "gather": [
        lambda x, t, i: jnp.take(x, i, axis=0),
        lambda x, t, i: x[np.array([4, 0])],
        lambda x, t, i: jnp.take(x, i[:, 0], axis=1),
        lambda x, t, i: jnp.take(x, i[0] * 3, axis=0),
        lambda x, t, i: jnp.take(x, i[0] * 3, axis=0, mode="clip"),
        lambda x, t, i: lax.dynamic_index_in_dim(x, i[0, 0], 0),
    ],
    "gather, batched": [
        lambda x, t, i: jnp.take_along_axis(x, i, axis=1),
        lambda x, t, i: jnp.take_along_axis(x, i.T[:, :1], axis=0),
        lambda x, t, i: jax.vmap(lambda a, k: a[k])(t, i[:2]),
        lambda x, t, i: jax.vmap(lambda a, k: a[k], (1, 0), 1)(t, i % 2),
    ],
    "scatter": [
        lambda x, t, i: x.at[np.array([3, 1])].set(2.0),
        lambda x, t, i: x.at[i[:, 0]].multiply(x * 0.5 + 1),
        lambda x, t, i: x.at[i[:, 0]].min(x * 0.5 + 1),
        lambda x, t, i: x.at[i[:, 0]].max(x * 0.5 + 1),
        lambda x, t, i: x.at[i[:, 0]].subtract(x * 0.5 + 1),
    ],
    "scatter-add": [
        lambda x, t, i: x.at[i[:, 0]].add(x * 0.5 + 1),
        lambda x, t, i: jax.grad(lambda x: jnp.sin(x[i]).sum())(x),
    ],
    "scatter, batched": [
        lambda x, t, i: jax.grad(lambda x: jnp.sin(jnp.take_along_axis(x, i, 1)).sum())(x),
        lambda x, t, i: jax.vmap(
            lambda a, k: lax.dynamic_update_slice_in_dim(a, jnp.ones((1, 7)), k, 0)
        )(t, i[0, :2]),
    ],
}

LINALG = {
    "decompositions": [
        lambda s, x, b, v: jnp.linalg.cholesky(s),
        lambda s, x, b, v: jnp.linalg.eigh(s),
        lambda s, x, b, v: lax.linalg.lu(x),
        lambda s, x, b, v: jnp.linalg.qr(x),
        lambda s, x, b, v: jnp.linalg.svd(x, full_matrices=False),
        lambda s, x, b, v: jnp.linalg.eigvals(s @ s),
        lambda s, x, b, v: lax.linalg.schur(s),
        lambda s, x, b, v: lax.linalg.hessenberg(s),
        lambda s, x, b, v: lax.linalg.tridiagonal(s),
        lambda s, x, b, v: jnp.linalg.qr(x, "raw"),
        lambda s, x, b, v: jnp.linalg.svd(x, compute_uv=False),
    ],
    "of several, and solutions": [
        lambda s, x, b, v: lax.linalg.triangular_solve(s, b, left_side=True, lower=True),
        lambda s, x, b, v: lax.linalg.triangular_solve(s, x, transpose_a=True),
        lambda s, x, b, v: lax.linalg.householder_product(x, v),
        lambda s, x, b, v: lax.linalg.ormqr(s, v, b),
        lambda s, x, b, v: lax.linalg.tridiagonal_solve(v, v + 9, v, b),
        lambda s, x, b, v: lax.linalg.symmetric_product(x, x @ x.mT, beta=1.0),
        lambda s, x, b, v: jax.scipy.linalg.qr_multiply(s, x, pivoting=True),
        lambda s, x, b, v: lax.linalg.lu_pivots_to_permutation(v.astype("i4") & 3, 4),
        lambda s, x, b, v: jnp.linalg.solve(s, b),
        lambda s, x, b, v: jax.vmap(jnp.linalg.solve)(s, v),
        lambda s, x, b, v: jnp.linalg.inv(s),
        lambda s, x, b, v: jnp.linalg.slogdet(s),
        lambda s, x, b, v: jnp.linalg.pinv(x),
        lambda s, x, b, v: jax.vmap(jnp.linalg.solve, (None, 0))(np.eye(4, dtype="f4") + 1, b),
    ],
}

# What is made of a key is mixed with what is on the grid.
DRAWS = [
    lambda key, x: jax.random.bits(key, x.shape) ^ lax.bitcast_convert_type(x, jnp.uint32),
    lambda key, x: jax.random.bits(key, x.shape, "uint8"),
    lambda key, x: x * jax.random.normal(key, x.shape),
    lambda key, x: x + jax.random.uniform(key, (7,)),
    lambda key, x: jax.random.randint(key, x.shape, -9, 9) + (x > 0),
    lambda key, x: jnp.where(jax.random.bernoulli(key, 0.3, x.shape), x, 0),
    lambda key, x: jax.random.categorical(key, x),
    lambda key, x: jax.random.permutation(key, x),
    lambda key, x: x - jax.random.normal(jax.random.split(key, 3)[1], x.shape),
    lambda key, x: x + jax.random.normal(jax.random.fold_in(key, 7), x.shape),
    lambda key, x: jax.vmap(lambda k: jax.random.uniform(jax.random.fold_in(key, k)))(
        jnp.arange(7) + (x[0] > 0)
    ),
    lambda key, x: jax.random.key_data(jax.random.split(key)),
]
KEYS = [
    lambda raw: jax.random.key(1),  # captured
    jax.random.wrap_key_data,
    lambda raw: raw,  # an old key, laid out like any array
    lambda raw: jax.random.key(raw[1]),
]
RANDOM = {
    "random numbers": [
        functools.partial(lambda make, draw, x, raw: draw(make(raw), x), make, draw)
        for shift in range(len(KEYS))
        for make, draw in zip(itertools.cycle([*KEYS[shift:], *KEYS[:shift]]), DRAWS, strict=False)
    ]
}

ROOTS = example((3, 4, 4))
POSITIVE = ROOTS @ ROOTS.transpose(0, 2, 1) + 4 * np.eye(4, dtype="f4")

TABLE = {
    "real": ([example(A), example(A, "unit"), example(A, "positive")], REAL),
    "pair": ([example(A), example(A, seed=1), example(A, "positive")], PAIR),
    "integer": ([example(A, "integer"), example(A, "integer", 1), example(A, "bool")], INTEGER),
    "spread": ([example(A), example(V), example(K), example(T)], SPREAD),
    "reduce": ([example(T), example(T, "bool")], REDUCE),
    "along": ([example(A), example(A, seed=1)], ALONG),
    "products": ([example(A), example(B), example(T), example(U)], PRODUCTS),
    "shapes": ([example(A), example(T)], SHAPES),
    "indexed": ([example(A), example(T), example((5, 3), "index")], INDEXED),
    "linalg": ([POSITIVE, example((3, 5, 4)), example((3, 4, 2)), example((3, 4))], LINALG),
    "random": ([example(A), np.array([3, 5], "uint32")], RANDOM),
}


def ways(kind):
    """Each way of each primitive of a kind: (name, function)."""
    return [
        (name, fn)
        for name, found in TABLE[kind][1].items()
        for fn in ([found] if callable(found) else found)
    ]


# -- random layouts --------------------------------------------------------------------------------

GRIDS = [(1, 1), (2, 4), (4, 2), (8, 1), (3, 5), (8,), (3,), (2, 2, 2), (2, 1, 3)]


def drawn(shape, rng):
    """A random layout of any system for the shape."""
    if rng.random() < 0.2:
        return other_system(shape, rng)
    grid = GRIDS[rng.integers(len(GRIDS))]
    rank, dims = len(grid), list(range(len(shape)))
    if rng.random() < 0.25:
        rng.shuffle(dims)
    cuts = sorted(rng.integers(0, len(dims) + 1, rank - 1))
    rows = []
    for group in np.split(dims, cuts):
        terms, stride = ["0"], 1
        for d in reversed(group):
            flip = rng.random() < 0.1
            terms.append(f"(-d{d} + {shape[d] - 1}) * {stride}" if flip else f"d{d} * {stride}")
            stride = stride * shape[d] + int(rng.choice([0, 0, 1, 3]))
        rows.append(" + ".join(terms))
    linear = f"({', '.join(f'd{d}' for d in range(len(shape)))}) -> ({', '.join(rows)})"
    tile = tuple(int(n) for n in rng.choice([1, 2, 4, 8], rank)) if rng.random() < 0.5 else None
    return gl.GridLayout(shape, "float32", grid, tile, linear=linear)


def other_system(shape, rng):
    order = [int(d) for d in rng.permutation(len(shape))]
    strides = dict(
        zip(order, np.cumprod([1, *(shape[d] + 1 for d in order[:-1])]).tolist(), strict=True)
    )
    every = [
        gl.xla.layout(shape, "float32", order, [(2, 4)] if len(shape) > 1 else []),
        gl.megengine.strided(shape, [strides[d] for d in range(len(shape))], "float32"),
    ]
    if len(shape) > 1:
        every.append(gl.tenstorrent.metal(shape, "float32", grid=(1, 1), tile=(4, 4)))
        every.append(gl.tenstorrent.ttnn(shape, "float32", grid=(2, 1), tile=(4, 8)))
    if len(shape) == 2:
        chip = gl.sophon.Chip(npus=4, npu_bytes=1 << 10, alignment=16)
        every.append(gl.sophon.matrix(*shape, min(3, shape[1]), "float32", chip=chip))
    return every[rng.integers(len(every))]


def fills(dtype):
    """Poisons for the padding of an array."""
    if dtype == np.bool_:
        return (True, False)
    if np.issubdtype(dtype, np.integer):
        return (np.iinfo(dtype).max, np.iinfo(dtype).min)
    return (np.nan, np.inf)


# -- deciding all, compiling some ------------------------------------------------------------------


def draws(kind):
    """Device grids and random layouts of the operands of a kind."""
    arrays, _ = TABLE[kind]
    number = list(TABLE).index(kind)
    for turn in range(30) if tiers.ALL else [2 * number % 8]:
        rng = np.random.default_rng([number, turn])
        yield (
            {1: FEW, 3: ONE}.get(turn % 8) or device_of(DEVICE, turn),
            [drawn(a.shape, rng).with_dtype(a.dtype) for a in arrays],
        )


def expected_of(every, chosen, arrays):
    """JAX's results of some ways, by number."""
    return jax.jit(lambda *args: {k: every[k][1](*args) for k in chosen})(*arrays)


@pytest.mark.parametrize("kind", TABLE)
def test_primitives_are_jaxs_on_every_layout(kind):
    arrays, _ = TABLE[kind]
    every = ways(kind)
    traced = [Traced(fn, arrays) for _, fn in every]
    seen, compiled = set(), set()
    for turn, (device, places) in enumerate(draws(kind)):
        chosen = []
        for k, (name, _) in enumerate(every):
            program = traced[k].sound_program(places, device, f"{name}, {k=}, {turn=}")
            kinds = kinds_of(program, moves=tiers.ALL)
            way = k if tiers.ALL else name
            if kinds - seen or (way not in compiled and k % STRIDE == turn % STRIDE):
                chosen.append(k)
                compiled.add(way)
                seen |= kinds
        if chosen:
            expected = expected_of(every, chosen, arrays)
            found = list(on_grid(every, chosen, arrays, places, device))
            for k in chosen:
                for results in found:
                    try:
                        assert_same(results[k], expected[k], rtol=5e-5, atol=2e-5)
                    except AssertionError as error:
                        message = f"{every[k][0]}, {k=}, {turn=}, {places=}: {error}"
                        raise AssertionError(message) from error


@pytest.mark.few(5)
@pytest.mark.parametrize("kind", TABLE)
def test_padding_is_not_reported_by_jaxs_checks_of_numbers(kind):
    arrays, _ = TABLE[kind]
    every = ways(kind)
    one_each = list({name: k for k, (name, _) in enumerate(every)}.values())
    some = range(len(every)) if tiers.ALL else few(one_each, -(-len(one_each) // 4))
    expected = expected_of(every, some, arrays)
    chosen = [k for k in some if is_finite(expected[k])]
    assert len(chosen) > len(some) // 2
    device, places = next(draws(kind))
    with jax.debug_nans(True), jax.debug_infs(True):
        for results in on_grid(every, chosen, arrays, places, device):
            for k in chosen:
                assert_same(results[k], expected[k], rtol=5e-5, atol=2e-5)


def is_finite(results):
    inexact = (x for x in jax.tree.leaves(results) if jnp.issubdtype(x.dtype, jnp.inexact))
    return all(bool(jnp.isfinite(x).all()) for x in inexact)


# Maps of cores to devices by which many grids have no placement: mesh, map.
ODD_MAPS = [
    ((7,), "(d0, d1, d2) -> (d2 * 4 + d1 + d0 * 2)"),
    ((7,), "(d0, d1) -> (d0 * 3 + d1)"),
    ((2, 2, 2), "(d0, d1) -> (d1 mod 3, d0 floordiv 2 + d1 floordiv 2, d0 mod 2 + d1, d1 mod 2)"),
    ((3, 2), "(d0, d1, d2) -> (d0 floordiv 2 + d1 mod 2 + d2 * 4, d0 mod 3 + d2, d0 + d2, d1 * 4)"),
    ((8,), "(d0, d1) -> (d0 mod 3 + d1 floordiv 2, d0)"),
]


@pytest.mark.few(6)
@pytest.mark.parametrize("kind", TABLE)
def test_primitives_are_decided_on_device_grids_of_any_map(kind):
    """No grid that a rule, a move or the policy chooses is refused."""
    arrays, _ = TABLE[kind]
    rng = np.random.default_rng(list(TABLE).index(kind))
    traced = [(name, Traced(fn, arrays)) for name, fn in ways(kind) if name != "with_layout"]
    turn = list(TABLE).index(kind) % len(ODD_MAPS)
    for mesh, core_map in few(ODD_MAPS[turn:] + ODD_MAPS[:turn], 1):
        device = gl.DeviceGrid(AbstractMesh(mesh, ("x", "y", "z")[: len(mesh)]), core_map=core_map)
        places = [allowed(a, rng, device) for a in arrays]
        for name, each in traced:
            program = each.sound_program(places, device, name)
            assert not [made.op.name for made in decisions(program) if "core_map" in made.note]


def allowed(array, rng, device):
    """A random layout of an array, on a grid that the device grid places."""
    while True:
        layout = drawn(array.shape, rng).with_dtype(array.dtype)
        with suppress(gl.LayoutError):
            device.placement(layout.core_shape)
            return layout


def on_grid(every, chosen, arrays, places, device):
    """The results of some ways by number, with each poison in the padding."""
    run = jax.jit(gl.on_grid(lambda *args: {k: every[k][1](*args) for k in chosen}))
    for which in range(2):
        yield run(
            *(
                poisoned(a, layout, device, fills(a.dtype)[which])
                for a, layout in zip(arrays, places, strict=True)
            )
        )


# -- no primitive is forgotten ---------------------------------------------------------------------

# Of those that `jax.lax` and its `linalg` export, the ones without a rule. Nothing of the grid
# reaches the first:
# collectives need a named axis, the others take no array, or tokens.
NOT_HERE = """
after_all all_gather all_to_all axis_index create_token iota pmax pmin ppermute psum
ragged_all_to_all rng_bit_generator rng_uniform
""".split()  # noqa: SIM905
FALL_BACK = """
cholesky_update dce_sink select_and_scatter stage
""".split()  # noqa: SIM905


RULED = {name for name, record in RECORDS.items() if record.rules}


def test_every_primitive_of_lax_has_a_rule():
    exported = {
        getattr(module, name).name
        for module in (lax, lax.linalg)
        for name in dir(module)
        if name.endswith("_p")
    }
    assert len(exported) > 150
    assert exported - {*RULED, *CALLS, "custom_linear_solve"} <= {*NOT_HERE, *FALL_BACK}


# Made by JAX for arrays that are sharded over Explicit axes; one that has its own test below;
# and those of test_convolution.py, test_control.py, test_on_grid.py and test_ragged.py.
ELSEWHERE = {
    "views",
    "iterations",
    "reshard",
    "sharding_constraint",
    "mesh_cast",
    "mulhi",
    "ragged_dot_general",
}
ELSEWHERE |= {"scan", "while", "cond", "psum", "pmax", "pmin", "random_gamma"}
ELSEWHERE |= {"conv_general_dilated", "select_and_scatter_add", "select_and_gather_add"}
ELSEWHERE |= {"reduce_window", "reduce_window_sum", "reduce_window_max", "reduce_window_min"}


def test_every_rule_has_a_case():
    used = set()
    for kind, (arrays, _) in TABLE.items():
        for _, fn in ways(kind):
            made = jax.make_jaxpr(fn)(*arrays)
            used |= {eqn.primitive.name for eqn in equations(made.jaxpr)}
    assert RULED - used - {name for name in LATER if not hasattr(lax, name)} == ELSEWHERE


# What has no dim that could stay spread: (primitive, rank of its operand).
WHOLE = {("slice", 1), ("reduce_or", 3), ("reduce", 3), ("lu", 2)}


@pytest.mark.parametrize("kind", TABLE)
def test_they_run_by_rules(kind):
    arrays, _ = TABLE[kind]
    layouts = [gl.GridLayout(a.shape, a.dtype, (2, 4), (2, 2)) for a in arrays]
    for _, fn in ways(kind):
        report = gl.on_grid(fn, DEVICE).report(*layouts)
        assert {(row.primitive, len(row.inputs[0].shape)) for row in report.fallbacks} <= WHOLE


# -- prices ----------------------------------------------------------------------------------------

# Primitives with a rule that the table does not have, on operands of their own.
IMAGE, KERNEL = example((2, 3, 8, 8)), example((4, 3, 3, 3))
WINDOW = (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
OTHERS = [
    (lax.mulhi, [example(A, "integer")] * 2),
    (lambda x, k: lax.conv(x, k, (1, 1), "SAME"), [IMAGE, KERNEL]),
    (
        lambda x, k: lax.conv(x, k, (2, 2), "VALID"),
        [example((8, 64, 32, 32)), example((64, 64, 3, 3))],
    ),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, *WINDOW), [IMAGE]),
    (lambda x: lax.reduce_window(x, -np.inf, lax.max, *WINDOW), [IMAGE]),
    (lambda x: lax.reduce_window(x, np.inf, lax.min, *WINDOW), [IMAGE]),
    (lambda x: lax.reduce_window(x, 1.0, lambda a, b: a + 2 * b, *WINDOW), [IMAGE]),
    (jax.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, *WINDOW).sum()), [IMAGE]),
    (
        lambda x: jax.jvp(lambda x: lax.reduce_window(x, -np.inf, lax.max, *WINDOW), (x,), (x,)),
        [IMAGE],
    ),
    (lax.ragged_dot, [example((6, 7)), example((2, 7, 3)), np.array([4, 2], "i4")]),
    # Large enough to take as long as their operations.
    (lambda s: lax.linalg.cholesky(s), [example((2048, 2048))]),
    (lambda s: jnp.linalg.svd(s, full_matrices=False), [example((512, 512))]),
    (lambda x, y: x @ y, [example((1024, 1024))] * 2),
]
# What has a price of another kind: loops and branches are what they run, and so is a collective
# over an axis name of vmap; keys are numbers.
NO_PRICE = {"scan", "while", "cond", "iterations", "psum", "pmax", "pmin", "views"}
NO_PRICE |= {name for name in RULED if name.startswith("random_")}
NO_PRICE |= {"reshard", "sharding_constraint", "mesh_cast"}  # annotations
# Their results are written where they are read, by another equation.
DEFERRED = {"broadcast_in_dim", "with_layout"}


def needed_bytes(eqn):
    """The least bytes that an equation reads and writes: of operands, and of results."""
    record, out = RECORDS[eqn.primitive.name], [nbytes_of(var) for var in eqn.outvars]
    arrays = {atom: nbytes_of(atom) for atom in eqn.invars if not isinstance(atom, Literal)}
    first = next(iter(arrays), None)
    if record.writes_part:  # the rest stays where it is
        update = nbytes_of(eqn.invars[1])
        return [update], [update]
    is_all = eqn.primitive.name == "slice" and eqn.invars[0].aval.shape == eqn.outvars[0].aval.shape
    if (
        record.is_view
        or is_all
        or (record.is_reduction and eqn.invars[0].aval.size == eqn.outvars[0].aval.size)
    ):
        return [], []
    if record.reads_part and first is not None:  # it only moves elements
        arrays[first] = min(arrays[first], sum(out))
    return list(arrays.values()), out


def nbytes_of(var):
    return dtypes.nbytes(var.aval.shape, var.aval.dtype)


def each_once(arrays, fn):
    """The equations of a function on arrays, as functions of their operands."""
    for eqn in equations(jax.make_jaxpr(fn)(*arrays).jaxpr):
        avals = [each.aval for each in (*eqn.invars, *eqn.outvars)]
        is_keys = any(jnp.issubdtype(aval.dtype, jax.dtypes.extended) for aval in avals)
        if eqn.primitive.name not in RULED or is_keys or not any(aval.shape for aval in avals):
            continue  # numbers are computed on the host

        def apply(*given, eqn=eqn):
            rest = iter(given)
            numbers = (each.val if isinstance(each, Literal) else None for each in eqn.invars)
            own = [next(rest) if number is None else number for number in numbers]
            return eqn.primitive.bind(*own, **eqn.params)

        shapes = [x.aval for x in eqn.invars if not isinstance(x, Literal)]
        yield eqn, apply, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in shapes]


def test_no_primitive_is_faster_than_memory_and_peak():
    """Each primitive alone on one device, whose operands and results are in memory."""
    given = [(arrays, fn) for fn, arrays in OTHERS]
    given += [(arrays, fn) for kind, (arrays, _) in TABLE.items() for _, fn in ways(kind)]
    chip, core = gl.Machine("v5e 4x4").on((1, 1)), gl.Machine("n150").by_core
    held, seen, faster = set(), set(), {}
    for arrays, fn in given:
        for eqn, apply, shapes in each_once(arrays, fn):
            key = eqn.primitive.name, str(eqn.params), str([x.aval for x in eqn.invars])
            key = key if tiers.ALL else key[:1]
            if key in seen or eqn.primitive.name in NO_PRICE | DEFERRED:
                continue
            seen.add(key)
            held.add(eqn.primitive.name)
            read, written = needed_bytes(eqn)
            count = flops(Op.of(eqn)) if read or written else 0  # a view computes nothing
            nbytes, dtype = sum(read) + sum(written), eqn.invars[0].aval.dtype
            work = chip.seconds(flops=count, dtype=dtype)
            bound = max(chip.seconds(nbytes=nbytes), work)
            found = gl.simulate(apply, *shapes, machine=chip).time
            if found < bound * (1 - 1e-6):
                faster[key] = found / bound
            # A core reads its L1 and writes to it at the same time; 64 cores share the work.
            nbytes = max([0, *read, sum(written)])
            bound = core.seconds(nbytes=nbytes) / 64
            found = gl.simulate(apply, *shapes, machine="n150").time
            if found < bound * (1 - 1e-6):
                faster[key, "core"] = found / bound
    assert not faster
    assert RULED - held == NO_PRICE | DEFERRED


def test_what_is_fused_is_not_in_memory():
    one, x = gl.Machine("v5e 4x4").on((1, 1)), jax.ShapeDtypeStruct((1024, 1024), "float32")

    def passes(fn, *args):
        return gl.simulate(fn, *args, machine=one).time / one.seconds(nbytes=4 << 20)

    for fn, args, count in [
        (lambda x: jnp.tanh(jnp.sin(x) + 1) * 3, [x], 2),  # one kernel
        (lambda x, y: x + y, [x, x], 3),
        (lambda x: x * lax.logistic(x), [x], 2),  # the kernel reads x once
        (lambda x: (x * 2 + 1).sum(), [x], 1),
        (lambda x: lax.cumsum(x * 2) + 1, [x], 6),  # three kernels
        (lambda x: [x + 1, x + 2], [x], 4),  # two kernels
        (lambda x: (lambda s: [s.sum(0), s.sum(1)])(jnp.sin(x)), [x], 4),  # a sine is kept
        (lambda x: (x + 1).T.reshape(-1) * 2, [x], 2),  # views
        (lambda x, y: x[:512] + y[512:], [x, x], 1.5),
        (lambda x: lax.cond(x[0, 0] > 0, lambda x: x, lambda x: x + 1, x), [x], 2),
    ]:
        assert passes(fn, *args) == pytest.approx(count, rel=5e-3)


def test_products_run_at_the_peak_of_their_type():
    machine = gl.Machine("h100").on((1,))
    times = {
        dtype: gl.simulate(
            jnp.dot, *[jax.ShapeDtypeStruct((8192, 8192), dtype)] * 2, machine=machine
        )
        for dtype in ("bfloat16", "float32")
    }
    work = 2 * 8192**3
    assert times["bfloat16"].time == pytest.approx(work / 989e12)
    assert times["float32"].time == pytest.approx(work / 494e12)


def test_mulhi():
    # JAX 0.10 has no program of it for more than one device.
    i = example(A, "integer") << 24
    x = poisoned(i, layouts(A)["flip and gap"], ONE)
    assert_same(gl.on_grid(lax.mulhi)(x, x), lax.mulhi(i, i))
    assert not gl.on_grid(lax.mulhi).report(x, x).fallbacks


def test_indices_of_a_type_that_only_just_holds_them():
    x = example((3, 200))
    x[0, 190] = 9
    laid = poisoned(x, gl.GridLayout((3, 200), grid=(1, 8), tile=(4, 64)), DEVICE)
    found = gl.on_grid(lambda x: lax.argmax(x, 1, jnp.uint8))(laid)
    assert_same(found, lax.argmax(x, 1, jnp.uint8))


@pytest.mark.parametrize("fn", [lax.argmax, lax.argmin])
def test_places_of_extremes_where_devices_have_several_cores(fn):
    x = np.round(example((9, 37)))  # some elements are equal
    laid = poisoned(x, gl.GridLayout(x.shape, grid=(4, 12), tile=(2, 2)), DEVICE)
    both = lambda x: [fn(x, axis, jnp.int32) for axis in (0, 1)]  # noqa: E731
    assert_same(gl.on_grid(both)(laid), both(jnp.asarray(x)))


# -- what does not need to happen ------------------------------------------------------------------

SELECTS = [
    # function, oob of its argument, selects in its program
    (lambda x: x.sum(1), 0, 0),
    (lambda x: x.sum(1), None, 1),
    (lambda x: x.sum(1).sum(), 0, 0),
    (lambda x: (x * 3).sum(0) + (x + x).sum(0), 0, 0),
    (lambda x: (x + 1).sum(0), 0, 1),
    (lambda x: (x + 1).prod(0), 0, 0),
    (lambda x: x.max(1), -np.inf, 0),
    (lambda x: x.max(1), np.inf, 1),
    (lambda x: x.min(1), np.inf, 0),
    (lambda x: jnp.argmax(x, 0), -np.inf, 0),
    (lambda x: jnp.argmin(x, 0), -np.inf, 1),
    (lambda x: (x > 0).any(1), 0, 0),
    (lambda x: (x >= 0).all(1), 0, 0),
    (lambda x: (x > 0).all(1), 0, 1),
    (lambda x: jnp.sin(x) * jnp.exp(x) - x, None, 0),
    # K is split in these: behind its end must be 0.
    (lambda x: x.T @ x, None, 2),
    (lambda x: x @ x.T, None, 2),
    (lambda x: jnp.cumsum(x, 0), None, 0),
]


@pytest.mark.few(7)
@pytest.mark.parametrize(("fn", "oob", "count"), SELECTS)
def test_programs_select_only_where_they_must(fn, oob, count):
    x = gl.put(example(A), gl.GridLayout(A, "float32", (4, 3), (2, 4), oob=oob), DEVICE)
    # The array is closed over: as an argument it would be one of which nothing is known.
    made = jax.make_jaxpr(lambda: gl.on_grid(fn)(x))()
    # Those of numbers belong to indices.
    selects = [eqn for eqn in equations(made.jaxpr) if eqn.primitive.name == "select_n"]
    report = gl.on_grid(fn).report(x)
    assert report.masks == count
    # Relayouts in pieces have selects of their own: boxes are written in part. So do extremes over
    # devices, of integers in the order of the numbers.
    extreme = {"reduce_max", "reduce_min"}
    if not any(
        each.kind == "permute" or row.primitive in extreme
        for row in report.rows
        for each in row.collectives
    ):
        assert sum(eqn.outvars[0].aval.ndim > 0 for eqn in selects) == count


def test_views_and_elementwise_operations_move_nothing():
    x = gl.put(example((8, 6)), gl.GridLayout((8, 6), grid=(4, 2), tile=(2, 2)), DEVICE)
    t = gl.put(example((2, 4, 6)), gl.GridLayout((2, 4, 6), grid=(4, 2), tile=(2, 2)), DEVICE)

    def fn(x, t):
        y = lax.reshape(t, (8, 6))
        return (
            *(x.T, x[:, None], jnp.exp(x) + y, x * 2 + jnp.arange(6.0), jnp.where(y > 0, x, 0)),
            *(
                t.transpose(2, 0, 1),
                t[:, :, None].squeeze(2),
                jax.random.key_data(jax.random.key(1)),
            ),
        )

    text = jax.jit(gl.on_grid(fn)).lower(x, t).compile().as_text()
    for kind in ("all-gather", "all-reduce", "all-to-all", "collective-permute"):
        assert f"{kind}(" not in text
    assert gl.on_grid(fn).report(x, t).bytes_moved == 0
