"""`gl.def_rule`, and what the report says that primitives cost."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import gridlayout as gl
from gridlayout.ops.decisions.factors import WHOLE, along
from gridlayout.ops.decisions.flops import per_result
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.primitives.along import run
from gridlayout.ops.primitives.elementwise import ELEMENTWISE
from gridlayout.ops.primitives.table import RECORDS, factors_of, merged

DEVICE = gl.DeviceGrid((len(jax.devices()),))
LAYOUT = gl.GridLayout((5, 7), grid=(2, 4), tile=(2, 2))
X = np.random.default_rng(0).uniform(-0.9, 0.9, (5, 7)).astype(np.float32)


@pytest.fixture(autouse=True)
def no_rule_stays(monkeypatch):
    kept = dict(RECORDS)
    yield
    RECORDS.clear()
    RECORDS.update(kept)


def x(layout=LAYOUT):
    return gl.put(X, layout, DEVICE)


def positive(n):
    return (X[:n, :n] @ X[:n, :n].T + n * np.eye(n)).astype(np.float32)


def square(n):
    return gl.put(positive(n), gl.GridLayout((n, n), grid=(2, 2)), DEVICE)


def cholesky(report):
    (row,) = [row for row in report.rows if row.primitive == "cholesky"]
    return row


def test_a_rule_takes_the_place_of_the_fallback():
    fn = gl.on_grid(jnp.linalg.cholesky)
    assert cholesky(fn.report(square(5))).how == "fallback"
    fn(square(5))
    whole = gl.GridLayout((5, 5), grid=(1, 1))
    calls = []

    @gl.def_rule("cholesky", cost=lambda eqn, layout: gl.Cost(layout.nbytes, 42, 64))
    def rule(eqn, a):
        calls.append(a.shape)
        if a.shape != (5, 5):
            return None
        return gl.map_shards(jnp.linalg.cholesky, gl.relayout(a, whole), out=whole)

    found = fn(square(5))  # the program from before is not taken for this one
    assert calls == [(5, 5)]
    np.testing.assert_allclose(np.asarray(found), np.linalg.cholesky(positive(5)), rtol=1e-4)
    row = cholesky(fn.report(square(5)))
    assert (row.how, row.bytes_moved) == ("rule", row.inputs[0].nbytes)
    assert (row.flops, row.peak_bytes) == (42, 64)
    # Where the rule declines, the primitive runs as before.
    assert cholesky(fn.report(square(4))).how == "fallback"
    found = np.asarray(fn(square(4)))
    np.testing.assert_allclose(found, np.linalg.cholesky(positive(4)), rtol=1e-4, atol=1e-6)


def test_a_rule_of_one_s_own_primitive_and_its_derivative():
    primitive = jax.extend.core.Primitive("triple")
    primitive.def_impl(lambda x: 3 * x)
    primitive.def_abstract_eval(lambda x: x)
    jax.interpreters.mlir.register_lowering(
        primitive, jax.interpreters.mlir.lower_fun(lambda x: 3 * x, multiple_results=False)
    )
    jax.interpreters.ad.deflinear2(primitive, lambda ct, x: [primitive.bind(ct)])
    calls = []

    @gl.def_rule(primitive)
    def triple(eqn, a):
        calls.append(eqn.primitive)
        return gl.map_shards(lambda shard: 3 * shard, a, out=a.layout)

    fn = gl.on_grid(lambda x: primitive.bind(jnp.sin(x)))
    np.testing.assert_allclose(np.asarray(fn(x())), 3 * np.sin(X), rtol=1e-5)
    loss = gl.on_grid(lambda x: jnp.sum(primitive.bind(jnp.sin(x))))
    np.testing.assert_allclose(np.asarray(jax.grad(loss)(x())), 3 * np.cos(X), rtol=1e-5)
    assert calls == [primitive]  # what it decides is remembered


def test_a_rule_is_traced_again_under_another_option():
    primitive = jax.extend.core.Primitive("least_step")
    primitive.def_abstract_eval(lambda x: x)

    @gl.def_rule(primitive)
    def rule(eqn, a):
        def kernel(shard):
            big = jnp.full((), 1e8, dtype=float)
            return shard * 0 + ((big + 1) - big).astype(shard.dtype)

        return gl.map_shards(kernel, a, out=a.layout)

    for is_wide in (False, True, False):
        with jax.enable_x64(is_wide):
            found = np.asarray(gl.on_grid(lambda x: primitive.bind(x))(x()))
        np.testing.assert_array_equal(found, np.full(X.shape, is_wide))


def test_a_rule_that_is_put_back_holds_again():
    before = RECORDS["ceil"]
    try:
        gl.def_rule("ceil")(lambda eqn, a: gl.map_shards(lambda s: s * 0 + 3, a, out=a.layout))
        assert (np.asarray(gl.on_grid(lambda x: jax.lax.ceil(x))(x())) == 3).all()
    finally:
        RECORDS["ceil"] = before
    np.testing.assert_array_equal(
        np.asarray(gl.on_grid(lambda x: jax.lax.ceil(x))(x())), np.ceil(X)
    )


def test_a_rule_states_its_decision():
    def decide(eqn, a):
        if a.shape != (5, 5):
            return None
        whole = gl.GridLayout(a.shape, a.dtype, grid=(1, 1))
        return [whole], [whole]

    calls = []

    @gl.def_rule("cholesky", decide=decide)
    def kernel(shard):
        calls.append(shard.shape)
        return jnp.linalg.cholesky(shard)

    fn = gl.on_grid(lambda x: jnp.linalg.cholesky(x) * 2)
    found = fn(square(5))
    np.testing.assert_allclose(np.asarray(found), 2 * np.linalg.cholesky(positive(5)), rtol=1e-4)
    assert set(calls) == {(5, 5)}
    row = cholesky(fn.report(square(5)))
    assert (row.how, row.outputs[0].grid) == ("rule", (1, 1))
    assert row.bytes_moved > 0
    assert cholesky(fn.report(square(4))).how == "fallback"


@pytest.mark.parametrize(
    ("decide", "words"),
    [
        (lambda eqn, a: ([], [a]), "a layout or None for each of 1 operands"),
        (lambda eqn, a: ([a], [3]), "a layout for each result"),
        (lambda eqn, a: ([a], [a.with_dtype("int32")]), r"the primitive gives float32\[5,7\]"),
        (lambda eqn, a: ([a], [gl.GridLayout((5, 7), grid=(1, 1))]), "must have one core grid"),
    ],
)
def test_a_wrong_decision_is_refused(decide, words):
    gl.def_rule("ceil", decide=decide)(lambda shard: shard)
    with pytest.raises(gl.LayoutError, match=words):
        gl.on_grid(lax.ceil)(x())


def test_a_rule_s_collectives_are_found_and_remembered():
    @gl.def_rule("ceil")
    def rule(eqn, a):
        return gl.map_shards(lambda s: gl.cores.psum(s, 1), a, out=a.layout)

    device = gl.DeviceGrid((len(jax.devices()),))
    layout = gl.GridLayout((4, 16), grid=(1, len(jax.devices())))
    a = gl.put(np.ones((4, 16), np.float32), layout, device)
    (row,) = gl.on_grid(lax.ceil).report(a).rows
    if device.size > 1:
        (found,) = row.collectives
        assert (found.kind, found.group_size) == ("all_reduce", device.size)


def test_a_rule_for_products_replaces_ours_transposes_and_all():
    @gl.def_rule(lax.dot_general_p)
    def product(eqn, a, b):
        out = lax.dot_general(a.to_logical(), b.to_logical(), eqn.params["dimension_numbers"])
        return gl.put(out * 2, gl.GridLayout(out.shape, grid=(2, 2)), DEVICE)

    found = gl.on_grid(lambda a, b: (a @ b.T).T)(x(), x())
    np.testing.assert_allclose(np.asarray(found), 2 * (X @ X.T).T, rtol=1e-5)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda eqn, a: a.to_logical()[0], r"the rule of fft returns .* but the primitive gives"),
        (lambda eqn, a: gl.numpy.abs(a), r"complex64\[5,7\]"),
    ],
)
def test_a_wrong_result_is_refused(rule, words):
    gl.def_rule("fft")(rule)
    with pytest.raises(gl.LayoutError, match=words):
        gl.on_grid(jnp.fft.fft)(x())


def test_bad_definitions_are_refused():
    with pytest.raises(gl.LayoutError, match="takes a primitive or its name, not 3"):
        gl.def_rule(3)
    with pytest.raises(gl.LayoutError, match="cost must be a function"):
        gl.def_rule("fft", cost=7)
    with pytest.raises(gl.LayoutError, match="decide must be a function"):
        gl.def_rule("fft", decide=7)
    with pytest.raises(gl.LayoutError, match="must be a function, not 5"):
        gl.def_rule("fft")(5)


def test_the_report_gives_each_primitive_s_cost():
    a = gl.put(np.ones((6, 8), np.float32), gl.GridLayout((6, 8), grid=(2, 2)), DEVICE)
    b = gl.put(np.ones((8, 10), np.float32), gl.GridLayout((8, 10), grid=(2, 2)), DEVICE)
    report = gl.on_grid(lambda a, b: jnp.sum(jnp.exp(a @ b)) + jnp.sum(a.T)).report(a, b)
    rows = {row.primitive: row for row in report.rows}
    assert rows["dot_general"].flops == 2 * 6 * 8 * 10
    assert rows["exp"].flops == 60
    assert rows["transpose"].flops == 0
    assert rows["reduce_sum"].flops == 48  # the last one
    # A core's operands and its result, in float32.
    assert rows["exp"].peak_bytes == 2 * rows["exp"].outputs[0].held.per_core
    assert rows["dot_general"].peak_bytes >= (3 * 4 + 4 * 5 + 3 * 5) * 4
    assert report.flops == 960 + 60 + 60 + 48
    assert report.peak_bytes >= max(row.peak_bytes for row in report.rows)


def test_cores_share_the_workspace_of_a_device():
    x = gl.GridLayout((64, 64), grid=(4, 4))
    report = gl.on_grid(lambda x: x @ x, gl.DeviceGrid((1,))).report(x)
    (row,) = report.rows
    assert row.decision.workspace_bytes
    assert 16 * row.peak_bytes <= report.peak_bytes


def test_an_array_of_one_element_beside_a_replicated_one():
    v = gl.put(X[0], gl.GridLayout((7,), grid=(4,)), DEVICE)
    fn = lambda v: jnp.stack([v.sum(), v.max()]) * v[:1]  # noqa: E731
    np.testing.assert_allclose(np.asarray(gl.on_grid(fn)(v)), fn(jnp.asarray(X[0])), rtol=1e-5)


# -- factors ---------------------------------------------------------------------------------------


def of_rows():
    """A primitive that works on each row of a matrix: it subtracts the row's first element."""
    primitive = jax.extend.core.Primitive("of_rows")
    primitive.def_impl(lambda x: x - x[:, :1])
    primitive.def_abstract_eval(lambda x: x)
    lower = jax.interpreters.mlir.lower_fun(lambda x: x - x[:, :1], multiple_results=False)
    jax.interpreters.mlir.register_lowering(primitive, lower)
    return primitive


M = jax.ShapeDtypeStruct((256, 256), "float32")


def between(primitive):
    """The seconds of the plan of the primitive between two products."""
    fn = lambda x, v, w: primitive.bind(x @ v) @ w  # noqa: E731
    return gl.plan(fn, M, M, M, machine=gl.Machine("v5e 4x4"), seconds=20).time


def test_a_plan_divides_the_factors_of_ones_own_rule():
    primitive = of_rows()

    def decide(eqn, a):
        rows = gl.GridLayout(a.shape, a.dtype, grid=(a.core_shape[0], 1), collapse=[])
        return [rows], [rows]

    gl.def_rule(primitive, decide=decide)(lambda shard: shard - shard[:, :1])
    without = between(primitive)
    rows = [("row", None)]
    gl.def_rule(primitive, decide=decide, factors=(rows, rows))(lambda shard: shard - shard[:, :1])
    assert between(primitive) < without
    assert factors_of(jax.make_jaxpr(primitive.bind)(M).eqns[0]).divisible == (0,)


@pytest.mark.parametrize("stated", [(["ik", "kj"], ["ij"]), lambda *given: (["ik", "kj"], ["ij"])])
def test_a_name_that_no_result_has_is_summed(stated):
    gl.def_rule("dot_general", factors=stated)(lambda eqn, a, b: None)
    factors = factors_of(jax.make_jaxpr(lambda a, b: lax.dot(a, b))(M, M).eqns[0])
    assert (factors.ins, factors.outs) == (((0, 1), (1, 2)), ((0, 2),))
    assert factors.summed == {1}


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        (7, "a string or a tuple names the dims of each array"),
        (["ij"], "a string or a tuple names the dims"),
        ((["ij"], [3]), "a string or a tuple names the dims"),
        ((["ii"], ["ii"]), "an array's dims have different names"),
        (([(1, 2)], [(1, 2)]), "an array's dims have different names"),
        ((["ij", "ij"], ["ij"]), r"the arrays have the shapes \[\(5, 7\)\]"),
        ((["ijk"], ["ij"]), r"the arrays have the shapes \[\(5, 7\)\]"),
        ((["ij"], ["ji"]), "the dims 'i' have different extents"),
    ],
)
def test_wrong_factors_are_refused(stated, words):
    def planned():
        gl.def_rule("ceil", factors=stated)(lambda eqn, a: a)
        return factors_of(jax.make_jaxpr(lax.ceil)(X).eqns[0])

    with pytest.raises(gl.LayoutError, match=words):
        planned()


# -- a record --------------------------------------------------------------------------------------


def test_a_primitive_is_added_by_its_record_alone():
    primitive = of_rows()

    def rule(b, op, value):
        return run(b, op, [(value, (1,))], lambda row: [row - row[:1]], on_blocks=op.bound())

    RECORDS["of_rows"] = Record((rule,), per_result, along({1: WHOLE}), is_fused=True)
    fn = gl.on_grid(primitive.bind)
    np.testing.assert_allclose(np.asarray(fn(x())), X - X[:, :1], rtol=1e-6)
    (row,) = fn.report(x()).rows
    assert (row.primitive, row.how, row.flops) == ("of_rows", "rule", 35)
    planned = between(primitive)
    RECORDS["of_rows"] = Record((rule,), per_result)
    assert planned < between(primitive)


def test_a_primitive_has_one_record():
    with pytest.raises(ValueError, match="two tables have records of sin"):
        merged([ELEMENTWISE, {"sin": Record()}])
