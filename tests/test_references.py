"""Arrays that change in place (`jax.new_ref`) in functions on the grid, compared with plain JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from laid_out import is_grid, poisoned, read

import gridlayout as gl
from gridlayout.ops.decisions.jaxprs import equations, equations_of
from gridlayout.ops.interpret.references import without_references

# Five rows on a grid of two, three columns on four devices: nothing divides evenly.
X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


def rows(x):
    ref = jax.new_ref(x)
    ref[0] = ref[1] * 2
    ref[1:3] = ref[2:4]
    ref[:, 1] += 1.0
    return ref[...], ref[0, 0], ref[jnp.array([4, 0]), jnp.array([1, 2])]


def scanned(x):
    total = jax.new_ref(jnp.zeros(3))

    def step(count, row):
        total[...] += row
        return count + 1, total[0]

    return lax.scan(step, 0, x), total[...]


def repeated(x):
    ref = jax.new_ref(x)

    def body(i, total):
        ref[i] = jnp.sin(ref[i]) + ref[(i + 1) % 5]
        return total + ref[i].sum()

    total = lax.fori_loop(0, 4, body, 0.0)
    lax.while_loop(lambda n: (n < 3) & (ref[0, 0] < 9), lambda n: (_double(ref), n + 1)[1], 0)
    return total, jax.freeze(ref)


def _double(ref):
    ref[...] = ref[...] * 2


def chosen(x):
    ref = jax.new_ref(x)
    lax.cond(x.sum() > 0, lambda: _double(ref), lambda: None)
    lax.cond(x.sum() > 0, lambda: None, lambda: _double(ref))
    return ref[...]


def called(x):
    ref = jax.new_ref(x)

    @jax.jit
    def add(y):
        own = jax.new_ref(y)
        own[...] += 1.0
        ref[2] += own[3]
        return own[...]

    return add(x) + ref[...], jax.checkpoint(lambda y: jnp.sin(jax.new_ref(y)[...]))(x)


def swapped(x):
    ref = jax.new_ref(x + np.arange(15, dtype=np.float32).reshape(5, 3))
    jax.ref.addupdate(ref, (0,), x[1])
    return jax.ref.swap(ref, ..., x), ref[...]


def drawn(x, key=jax.random.key(3)):  # noqa: B008
    ref = jax.new_ref(x)
    ref[1] = jax.random.normal(key, (3,))
    return ref[...], jax.random.key_data(jax.random.split(key)[1])


def loss(x):
    ref = jax.new_ref(jnp.zeros_like(x))
    lax.fori_loop(0, 5, lambda i, c: (ref.__setitem__(i, jnp.tanh(x[i]) * x[4 - i]), c)[1], 0)
    return (ref[...] ** 2).sum()


FUNCTIONS = {
    **{fn.__name__: fn for fn in (rows, scanned, repeated, chosen, called, swapped, drawn, loss)},
    "grad inside": jax.grad(loss),
    "vmap inside": jax.vmap(lambda row: rows(jnp.outer(jnp.arange(5.0), row))),
}


def laid(x, mesh):
    names = ("x", "y")
    devices = np.array(jax.devices()[: np.prod(mesh)]).reshape(mesh)
    device = gl.DeviceGrid(jax.sharding.Mesh(devices, names))
    return poisoned(x, gl.GridLayout(x.shape, x.dtype, (2, 3)), device)


def assert_same(found, expected):
    pairs = zip(jax.tree.leaves(found, is_leaf=is_grid), jax.tree.leaves(expected), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(read(a), b, rtol=1e-5, atol=1e-6)


pytestmark = pytest.mark.skipif(len(jax.devices()) < 8, reason="the meshes have 8 and 6 devices")


@pytest.mark.few(6)
@pytest.mark.parametrize("mesh", [(2, 4), (2, 3)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_plain_jax(name, mesh):
    fn = FUNCTIONS[name]
    assert_same(gl.on_grid(fn)(laid(X, mesh)), jax.jit(fn)(X))


def test_derivatives_around_a_call():
    x = laid(X, (2, 4))
    expected = jax.jit(jax.grad(loss))(X)
    assert_same(jax.grad(gl.on_grid(loss))(x), expected)
    assert_same(jax.jit(jax.grad(gl.on_grid(loss)))(x), expected)
    assert_same(
        jax.jvp(gl.on_grid(loss), (x,), (x,)), jax.jit(lambda x: jax.jvp(loss, (x,), (x,)))(X)
    )


def test_no_reference_and_no_dead_equation_is_left():
    closed = without_references(jax.make_jaxpr(repeated)(X))
    names = {each.primitive.name for eqn in equations_of(closed) for each in equations(eqn)}
    assert not names & {"new_ref", "get", "swap", "addupdate", "freeze", "run_state", "empty"}
    assert not closed.effects
    closed = without_references(jax.make_jaxpr(lambda x: rows(x)[:2])(X))
    assert "lt" not in {eqn.primitive.name for eqn in equations_of(closed)}
    same = jax.make_jaxpr(jnp.sin)(X)
    assert without_references(same) is same


def test_reads_at_known_places_send_what_slices_send():
    def sliced(x):
        return x[1] * 2

    def read_in_place(x):
        return jax.new_ref(x)[1] * 2

    x = laid(X, (2, 4))
    sent = [gl.on_grid(fn).report(x).bytes_moved for fn in (read_in_place, sliced)]
    assert sent[0] == sent[1]


OUTSIDE = jax.new_ref(jnp.zeros(3))


def _also_made(x):
    made = jax.new_ref(x)
    made[0] += OUTSIDE[...]
    return made[...]


@pytest.mark.parametrize(
    "fn", [lambda x: OUTSIDE[...] + x, lambda x: (OUTSIDE.__setitem__(0, 1.0), x)[1], _also_made]
)
def test_references_of_outside_are_refused(fn):
    x = laid(X, (2, 4))
    for call in (gl.on_grid(fn), gl.on_grid(fn).report, jax.jit(gl.on_grid(fn))):
        with pytest.raises(gl.LayoutError, match=r"Ref.*pass its value, ref\[\.\.\.\]"):
            call(x)
    with pytest.raises(gl.LayoutError, match=r"Ref.*pass its value, ref\[\.\.\.\]"):
        gl.on_grid(lambda x, ref: ref[...] + x)(x, OUTSIDE)
