"""Factors of primitives: which dims correspond, how, and what parts of operands give.

The equations are those of `test_primitives.py`, on operands of the same types.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers
from jax import lax
from laid_out import equations
from test_primitives import LATER, RULED, TABLE, example, ways
from tiers import few, together

import gridlayout as gl
from gridlayout.ops.decisions.factors import NEAR, SUMMED, THROUGH, UPDATED
from gridlayout.ops.graph.graph import Graph
from gridlayout.ops.primitives.table import factors_of

IMAGE = (2, 6, 6, 4)
WINDOW = ((1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def pooled(x, init, fn):
    return lax.reduce_window(x, init, fn, *WINDOW)


def convolved(x, k, **groups):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=numbers, **groups)


MORE = {
    "convolution": lambda x, k: convolved(x, k),
    "convolution of groups": lambda x, k: convolved(x, k[:, :, :2], feature_group_count=2),
    "sum pool": lambda x, k: pooled(x, 0.0, lax.add),
    "max pool": lambda x, k: pooled(x, -jnp.inf, lax.max),
    "min pool": lambda x, k: pooled(x, jnp.inf, lax.min),
    "own pool": lambda x, k: pooled(x, 1.0, lambda a, b: a * b + a),
    "max pool's gradient": jax.grad(lambda x, k: pooled(x, -jnp.inf, lax.max).sum()),
    "max pool's tangent": lambda x, k: jax.jvp(
        lambda x: pooled(x, -jnp.inf, lax.max), (x,), (x * 2,)
    ),
    "ragged": lambda x, k: lax.ragged_dot(
        x.reshape(12, -1), k.reshape(3, 24, 4), jnp.array([3, 5, 4])
    ),
    "multiplied": lambda x, k: lax.mulhi(x.astype("i4"), x.astype("i4")),
    "loops": lambda x, k: (
        lax.fori_loop(0, 3, lambda i, h: h * 2, x),
        lax.while_loop(lambda h: h.sum() < 9, lambda h: h + 1, x),
        lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
    ),
    "gamma": lambda x, k: jax.random.gamma(jax.random.key(0), jnp.exp(x)),
    "positions": lambda x, k: lax.broadcasted_iota(jnp.int32, x.shape, 1),
}
# Made by JAX for arrays that are sharded over Explicit axes, or under `vmap` with an axis name.
NOT_MADE = {
    "views",
    "iterations",
    "reshard",
    "sharding_constraint",
    "mesh_cast",
    "psum",
    "pmax",
    "pmin",
}


def all_equations():
    for kind, (arrays, _) in TABLE.items():
        for _, fn in ways(kind):
            yield from equations(jax.make_jaxpr(fn)(*arrays).jaxpr)
    for fn in MORE.values():
        x, k = example(IMAGE), example((3, 3, 4, 8))
        yield from equations(jax.make_jaxpr(fn)(x, k).jaxpr)


def kinds_of(eqn):
    """What tells equations of one primitive apart here: their factors, but for extents."""
    factors = factors_of(eqn)
    return None if factors is None else (factors.ins, factors.outs, factors.kinds)


@functools.cache
def different():
    """One equation of each primitive and kind."""
    found = {}
    for eqn in all_equations():
        found.setdefault((eqn.primitive.name, kinds_of(eqn)), eqn)
    return found


def of(name, most=None):
    return [eqn for (own, _), eqn in different().items() if own == name][:most]


def test_every_primitive_with_a_rule_has_an_equation():
    missing = RULED - {name for name, _ in different()}
    assert missing == NOT_MADE | {name for name in LATER if not hasattr(lax, name)}


@pytest.mark.parametrize("name", sorted(RULED - NOT_MADE))
def test_every_dim_has_a_factor_and_their_extents_agree(name):
    for eqn in of(name):
        factors = factors_of(eqn)
        shapes = [atom.aval.shape for atom in (*eqn.invars, *eqn.outvars)]
        extents = {}
        for shape, dims in zip(shapes, (*factors.ins, *factors.outs), strict=True):
            assert len(shape) == len(dims)
            assert all(n == 1 for f, n in zip(dims, shape, strict=True) if f is None)
            assert len({*dims} - {None}) == len(dims) - dims.count(None)
            for f, n in zip(dims, shape, strict=True):
                if f is not None:
                    extents.setdefault(f, set()).add(n)
        results = {f for dims in factors.outs for f in dims}
        for f, found in extents.items():
            size, kind = factors.sizes[f], factors.kind(f)
            if kind in (THROUGH, SUMMED, UPDATED) and f not in factors.exact:
                assert found == {size}, (eqn, factors)
            elif f in factors.exact:
                assert not any(n % size for n in found)
            elif kind == NEAR:
                assert min(found) == size
            else:
                assert max(found) == size
            assert kind != SUMMED or f not in results
            divisible = size > 1 and kind in (THROUGH, NEAR, SUMMED, UPDATED)
            assert (f in factors.divisible) == divisible


# -- what parts of operands give -------------------------------------------------------------------

# Their results depend on where in the whole array a part is, or on a key.
PLACED = {"iota", "random_bits", "random_gamma"}


def operand(aval, number):
    """An operand; its numbers are different, and small where they are indices."""
    if aval.dtype == bool:
        return example(aval.shape, "bool", number)
    if jnp.issubdtype(aval.dtype, jnp.integer):
        return (example(aval.shape, "index", number) % 3).astype(aval.dtype)
    return (np.abs(example(aval.shape, seed=number)) + 0.5).astype(aval.dtype)


def changed(eqn, ins, outs):
    """The parameters of an equation for parts of operands and results of these shapes."""
    params, (shape, *_) = dict(eqn.params), [*ins, ()]
    if eqn.primitive.name == "broadcast_in_dim":
        params["shape"] = outs[0]
    if eqn.primitive.name == "reshape":
        params["new_sizes"] = outs[0]
    if eqn.primitive.name == "slice":
        before = eqn.invars[0].aval.shape
        pairs = zip(params["limit_indices"], before, shape, strict=True)
        params["limit_indices"] = tuple(n if end == old else end for end, old, n in pairs)
    if "slice_sizes" in params:
        before = eqn.invars[0].aval.shape
        pairs = zip(params["slice_sizes"], before, shape, strict=True)
        params["slice_sizes"] = tuple(n if size == old else size for size, old, n in pairs)
    return params


def results_of(jobs):
    """What equations give, of (equation, operands, shapes of results).

    They are one program, which runs again for equations of which there are parts of equal shapes.
    """
    equal = {}
    for k, (eqn, arrays, outs) in enumerate(jobs):
        shapes = [(a.shape, a.dtype) for a in arrays]
        equal.setdefault((id(eqn), *shapes, *outs), []).append(k)

    def every(operands):
        for (first, *_), arrays in zip(equal.values(), operands, strict=True):
            eqn, _, outs = jobs[first]
            params = changed(eqn, [np.shape(a) for a in arrays], outs)
            made = eqn.primitive.bind(*arrays, **params)
            yield made if eqn.primitive.multiple_results else [made]

    run, results = jax.jit(lambda operands: list(every(operands))), {}
    for turn in range(max(map(len, equal.values()))):
        asked = [own[min(turn, len(own) - 1)] for own in equal.values()]
        made = jax.device_get(run([jobs[k][1] for k in asked]))
        results.update(zip(asked, made, strict=True))
    return [results[k] for k in range(len(jobs))]


def parts(factors, f, shapes, dims):
    """Two parts of arrays along a factor, as slices."""
    first = factors.sizes[f] // 2
    for half in range(2):
        found = []
        for shape, own in zip(shapes, dims, strict=True):
            cut = [slice(None)] * len(shape)
            if f in own:
                at = shape[own.index(f)] // factors.sizes[f] * first
                cut[own.index(f)] = slice(at) if half == 0 else slice(at, None)
            found.append(tuple(cut))
        yield found


def combined(eqn, arrays, partial):
    """The whole results of partial ones."""
    name, (a, b) = eqn.primitive.name, partial
    how = {"reduce_max": np.maximum, "reduce_min": np.minimum, "reduce_prod": np.multiply}
    how |= {"reduce_and": np.bitwise_and, "reduce_or": np.bitwise_or}
    if name == "scatter-add":
        return [a[0] + b[0] - arrays[0]]  # both have the array
    return [how.get(name, np.add)(a[0], b[0])]


def extreme_at(eqn, x):
    """The index of an extreme, of the indices and extremes of two parts."""
    (axis,), largest = eqn.params["axes"], eqn.primitive.name == "argmax"
    halves = np.array_split(x, [x.shape[axis] // 2], axis)
    at = [np.asarray((np.argmax if largest else np.argmin)(half, axis)) for half in halves]
    first, second = ((np.max if largest else np.min)(half, axis) for half in halves)
    wins = second > first if largest else second < first
    return [np.where(wins, at[1] + halves[0].shape[axis], at[0])]


def shape_of(shape, cut):
    return tuple(len(range(n)[c]) for n, c in zip(shape, cut, strict=True))


DIVIDED = together(sorted(RULED - NOT_MADE - PLACED), 8)


@pytest.mark.parametrize("names", DIVIDED, ids=" to ".join)
def test_parts_of_operands_give_parts_of_results(names):
    jobs, judges = [], []
    for name in names:
        for eqn in of(name, None if tiers.ALL else 1):
            types = [atom.aval for atom in (*eqn.invars, *eqn.outvars)]
            if any(jnp.issubdtype(x.dtype, jax.dtypes.extended) for x in types):
                continue
            factors = factors_of(eqn)
            if not factors.divisible:
                continue
            arrays = [operand(atom.aval, k) for k, atom in enumerate(eqn.invars)]
            whole, shapes = len(jobs), [var.aval.shape for var in eqn.outvars]
            jobs.append((eqn, arrays, shapes))
            divisible = [f for f in factors.divisible if factors.sizes[f] > 1]
            is_elementwise = len({*factors.ins, *factors.outs}) == 1
            for f in few(divisible, 1) if is_elementwise else divisible:
                own, judge = of_parts(eqn, arrays, shapes, f)
                judges.append((name, judge, whole, len(jobs)))
                jobs += own
    results = results_of(jobs)
    for name, judge, whole, first in judges:
        try:
            judge(results[whole], results[first : first + 2])
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def of_parts(eqn, arrays, shapes, f):
    """What to run of two parts along a factor, and who judges (whole results, those of the two)."""
    factors = factors_of(eqn)
    if factors.kind(f) == UPDATED:
        return of_updated_parts(eqn, arrays, shapes, f)
    if eqn.primitive.name in ("argmax", "argmin") and factors.kind(f) == SUMMED:
        at = extreme_at(eqn, arrays[0])[0]
        return [], lambda whole, _: np.testing.assert_array_equal(at, whole[0])
    given = parts(factors, f, [a.shape for a in arrays], factors.ins)
    made = list(parts(factors, f, shapes, factors.outs))
    jobs = [
        (
            eqn,
            [a[c] for a, c in zip(arrays, cuts, strict=True)],
            [shape_of(s, c) for s, c in zip(shapes, outs, strict=True)],
        )
        for cuts, outs in zip(given, made, strict=True)
    ]

    if eqn.primitive.name == "gather" and factors.kind(f) == SUMMED:
        # Slices at indices in the other part are zeros.
        (first, *_), (second, *_) = parts(factors, f, [arrays[0].shape], factors.ins[:1])
        for job, rest in zip(jobs, (second, first), strict=True):
            job[1][:] = [arrays[0].copy(), *arrays[1:]]
            job[1][0][rest] = 0
        jobs = [(eqn, own, shapes) for _, own, _ in jobs]

    def summed(whole, found):
        for a, b in zip(combined(eqn, arrays, found), whole, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

    def beside_each_other(whole, found):
        for results, cuts in zip(found, made, strict=True):
            for part, all_of_it, cut in zip(results, whole, cuts, strict=True):
                np.testing.assert_allclose(part, all_of_it[cut], rtol=1e-4, atol=1e-5)

    return jobs, summed if factors.kind(f) == SUMMED else beside_each_other


def of_updated_parts(eqn, arrays, shapes, f):
    """A part of the result needs the same part of the array, and of the rest nothing."""
    factors = factors_of(eqn)
    (first, *_), (second, *_) = parts(factors, f, [arrays[0].shape], factors.ins[:1])
    jobs = []
    for rest in (second, first):
        other = arrays[0].copy()
        other[rest] = 77
        jobs.append((eqn, [other, *arrays[1:]], shapes))

    def judge(whole, found):
        for part, (result,) in zip((first, second), found, strict=True):
            np.testing.assert_array_equal(result[part], whole[0][part])

    return jobs, judge


# -- plans -----------------------------------------------------------------------------------------

M = (64, 64)
ONE = example(M)
MACHINE = gl.Machine("v5e 4x4")


def at(y):
    return y[0, 0].astype("i4")


BETWEEN = {
    "rev": lambda y: lax.rev(y, (0,)),
    "tile": lambda y: lax.tile(y, (1, 2))[:, ::2],
    "stack": lambda y: jnp.stack([y, y * 2], 1).sum(1),
    "top_k": lambda y: lax.top_k(y, 64)[0],
    "fft": lambda y: jnp.fft.fft(y).real,
    "dynamic_slice": lambda y: jnp.tile(lax.dynamic_slice(y, (0, at(y)), (64, 32)), 2),
    "scatter": lambda y: y.at[jnp.arange(4)].set(0.0),
    "scatter-max": lambda y: y.at[:, jnp.arange(4)].max(0.0),
    "reduce_precision": lambda y: lax.reduce_precision(y, 5, 10),
    "barrier": lambda y: lax.optimization_barrier((y, y * 2))[1],
    "bits": lambda y: lax.bitcast_convert_type(lax.bitcast_convert_type(y, "uint32"), "float32"),
    "reduce": lambda y: y + lax.reduce(y, 1.0, lambda a, b: a * b, (1,))[:, None],
    "argmax": lambda y: y * jnp.argmax(y, 1)[:, None],
    "split": lambda y: jnp.concatenate(lax.split(y, (24, 40), 1)[::-1], 1),
    "solve": lambda y: lax.linalg.triangular_solve(y + 64 * jnp.eye(64), y, left_side=True),
    "random": lambda y: y * jax.random.normal(jax.random.key(0), y.shape),
    "positions": lambda y: y + lax.broadcasted_iota(y.dtype, y.shape, 0),
}


def program(name):
    def fn(x, v, w):
        return BETWEEN[name](x @ v) @ w

    return fn


# The predicted microseconds on given layouts, and of the plan, without factors of these primitives.
BEFORE = {
    "rev": (13.39, 4.12),
    "tile": (11.41, 12.26),
    "stack": (12.39, 3.17),
    "top_k": (11.41, 12.16),
    "fft": (11.41, 9.26),
    "dynamic_slice": (6.56, 6.10),
    "scatter": (12.37, 6.18),
    "scatter-max": (12.37, 3.09),
    "reduce_precision": (3.39, 0.05),
    "barrier": (12.37, 3.09),
    "bits": (12.37, 3.09),
    "reduce": (3.39, 0.05),
    "argmax": (3.39, 0.05),
    "split": (3.39, 0.05),
    "solve": (24.93, 18.65),
    "random": (3.40, 0.06),
    "positions": (3.39, 0.05),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", BETWEEN)
def test_programs_are_no_slower_for_factors_and_do_not_fall_back(name):
    for now, before in zip(times(name), BEFORE[name], strict=True):
        assert now < 1e-6 * before + 1e-8


@pytest.mark.parametrize("name", BETWEEN)
def test_plans_include_what_is_between_products(name):
    graph = Graph.of(jax.make_jaxpr(program(name))(ONE, ONE, ONE))
    left = [node for node in graph.nodes if node.factors is None]
    arrays = {node.name for node in left if max(graph.shapes[node.outs[0]], default=1) > 1}
    assert arrays <= {"iota"}  # positions are made where they are read


def times(name):
    """The predicted seconds of a program on given layouts, and of its plan."""
    fn = program(name)
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((4, 4), ("x", "y")), machine=MACHINE)
    layouts = [gl.GridLayout(M, grid=grid, collapse=[]) for grid in ((16, 1), (4, 4), (1, 16))]
    report = gl.on_grid(fn, device).report(*layouts)
    assert not report.fallbacks
    arrays = [jax.ShapeDtypeStruct(M, "float32")] * 3
    return report.seconds, gl.plan(fn, *arrays, machine=MACHINE, seconds=20).time
