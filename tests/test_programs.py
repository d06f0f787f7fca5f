"""Whole programs of other libraries, which know nothing of grids: values, gradients, fallbacks.

`pip install '.[programs]'` brings the libraries; a program is skipped where its own is missing.
Arrays lie uneven, in tiles that do not divide them, on two meshes, with poison in their padding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax
from laid_out import assert_same, poisoned

import gridlayout as gl

# What the libraries say of themselves and of JAX is not of interest here.
pytestmark = pytest.mark.filterwarnings("ignore")

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,))
LINE = gl.DeviceGrid((COUNT,))


def example(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def tokens(*shape):
    return np.random.default_rng(0).integers(0, 61, shape).astype("i4")


def in_tiles(shape, dtype):
    return gl.GridLayout(shape, dtype, (2, 4), (8, 8)), DEVICE


def uneven(shape, dtype):
    return gl.GridLayout(shape, dtype, (3,) * min(len(shape), 2)), LINE


def by_dims(shape, dtype):
    grid = (1,) * (len(shape) - 2) + (3, 2)[-len(shape) :]
    return gl.GridLayout(shape, dtype, grid, collapse=[]), DEVICE


LAYOUTS = (in_tiles, uneven, by_dims)


@dataclass
class Program:
    """A function and its arguments. argnums: by which it is differentiated, besides its value.

    fallbacks: what no rule spreads. where: how arrays lie; by default the programs take turns.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    argnums: tuple[int, ...] = ()
    fallbacks: tuple[str, ...] = ()
    where: Callable[..., Any] | None = None

    @property
    def run(self):
        return jax.value_and_grad(self.fn, self.argnums) if self.argnums else self.fn


# One matrix, which is not tall.
LU = ("lu", "lu_pivots_to_permutation")

PROGRAMS: dict[str, Callable[..., Program]] = {}


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def parameters(init, *args):
    """Some of the shapes that a model asks for: to make its own would be compiled first."""
    shapes = jax.eval_shape(init, jax.random.key(0), *args)
    leaves, structure = jax.tree.flatten(shapes)
    made = [0.3 * example(*leaf.shape, seed=k) for k, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, made)


# -- models ----------------------------------------------------------------------------------------


@program
def gpt2():
    """A language model's loss: transformers' Flax GPT-2."""
    transformers = pytest.importorskip("transformers", exc_type=ImportError)
    if not hasattr(transformers, "FlaxGPT2LMHeadModel"):
        pytest.skip("transformers has no Flax models since 5.0")
    sizes = dict(vocab_size=61, n_positions=16, n_embd=24, n_layer=1, n_head=3)
    config = transformers.GPT2Config(**sizes, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = transformers.FlaxGPT2LMHeadModel(config, input_shape=(2, 11), _do_init=False)
    params = parameters(lambda key: model.init_weights(key, (2, 11)))

    def loss(params, ids):
        logits = model(ids, params=params).logits[:, :-1]
        return optax.softmax_cross_entropy_with_integer_labels(logits, ids[:, 1:]).mean()

    return Program(loss, (params, tokens(2, 11)), (0,))


@program
def bert():
    """A classifier of padded sentences: transformers' Flax BERT."""
    transformers = pytest.importorskip("transformers", exc_type=ImportError)
    if not hasattr(transformers, "FlaxBertForSequenceClassification"):
        pytest.skip("transformers has no Flax models since 5.0")
    sizes = dict(vocab_size=61, hidden_size=24, intermediate_size=40, max_position_embeddings=16)
    config = transformers.BertConfig(
        **sizes, num_hidden_layers=1, num_attention_heads=3, num_labels=3
    )
    made = transformers.FlaxBertForSequenceClassification
    model = made(config, input_shape=(2, 11), _do_init=False)
    params = parameters(lambda key: model.init_weights(key, (2, 11)))
    mask = (np.arange(11) < np.array([11, 7, 9, 4, 11])[:, None]).astype("i4")

    def loss(params, ids, mask):
        logits = model(ids, attention_mask=mask, params=params).logits
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.arange(5) % 3).mean()

    return Program(loss, (params, tokens(5, 11), mask), where=by_dims)


def of_haiku(net, x):
    hk = pytest.importorskip("haiku")
    made = hk.without_apply_rng(hk.transform(lambda x: jnp.square(net(hk, x)).mean()))
    return Program(made.apply, (parameters(made.init, x), x), (0, 1))


@program
def haiku_recurrent():
    def net(hk, x):
        core = hk.LSTM(17)
        out, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
        return hk.Linear(5)(out)

    return of_haiku(net, example(7, 3, 11))


@program
def haiku_attention():
    def net(hk, x):
        y = hk.LayerNorm(-1, True, True)(x)
        start = hk.initializers.VarianceScaling(1.0)
        y = hk.MultiHeadAttention(3, 5, w_init=start, model_size=22)(y, y, y)
        return hk.nets.MLP([31, 22])(x + y)

    return of_haiku(net, example(2, 13, 22))


@program
def haiku_batch_norm():
    """Convolution, pooling and a state that goes along."""
    hk = pytest.importorskip("haiku")

    @hk.transform_with_state
    def net(x):
        y = hk.BatchNorm(True, True, 0.9)(hk.Conv2D(5, 3)(x), is_training=True)
        y = hk.max_pool(jax.nn.relu(y), (2, 2), (2, 2), "VALID")
        return hk.Linear(4)(hk.Flatten()(y))

    x = example(3, 9, 10, 2)
    params, state = parameters(net.init, x)

    def step(params, state, x):
        def loss(params):
            out, new = net.apply(params, state, None, x)
            return jnp.square(out).mean(), new

        return jax.value_and_grad(loss, has_aux=True)(params)

    return Program(step, (params, state, x))


# -- differential equations ------------------------------------------------------------------------


@program
def diffrax_neural_ode():
    """Steps of a size that an error controls, saved at several times, and their adjoint."""
    dfx = pytest.importorskip("diffrax")

    def loss(first, second, y):
        term = dfx.ODETerm(lambda t, y, args: jnp.tanh(y @ first) @ second - 0.1 * y)
        found = dfx.diffeqsolve(
            *(term, dfx.Heun(), 0.0, 1.0, 0.2, y),
            stepsize_controller=dfx.PIDController(1e-2, 1e-3),
            saveat=dfx.SaveAt(ts=jnp.linspace(0, 1, 4)),
            max_steps=16,
        )
        return jnp.square(found.ys).mean()

    args = (0.3 * example(9, 13), 0.3 * example(13, 9, seed=1), example(11, 9, seed=2))
    return Program(loss, args, (0, 1, 2), ("sort",), by_dims)


@program
def diffrax_stiff():
    """An implicit method: Newton's method with a matrix of its own at each step."""
    dfx = pytest.importorskip("diffrax")

    def solve(k, y):
        term = dfx.ODETerm(lambda t, y, args: -k * y + 0.1 * jnp.sin(jnp.roll(y, 1)))
        controller = dfx.PIDController(1e-3, 1e-4)
        return dfx.diffeqsolve(
            term, dfx.Kvaerno3(), 0.0, 0.5, 0.1, y, stepsize_controller=controller, max_steps=32
        ).ys

    return Program(solve, (abs(example(7)) + 1, example(7, seed=1)))


@program
def diffrax_stochastic():
    dfx = pytest.importorskip("diffrax")

    def solve(w, y):
        path = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(11,), key=jax.random.key(3))
        noise = dfx.ControlTerm(lambda t, y, args: 0.1 * w[:, None] * jnp.ones((11, 11)), path)
        terms = dfx.MultiTerm(dfx.ODETerm(lambda t, y, args: -y), noise)
        return dfx.diffeqsolve(terms, dfx.Euler(), 0.0, 1.0, 0.1, y, max_steps=16).ys

    return Program(solve, (example(11), example(11, seed=1)))


# -- optimizers and solvers ------------------------------------------------------------------------


@program
def optimistix_least_squares():
    optx = pytest.importorskip("optimistix")
    at = np.linspace(0, 1, 23, dtype="f4")

    def fit(y, start):
        def residuals(p, _):
            return p[0] * jnp.exp(-p[1] * at) + p[2] * at - y

        solver = optx.LevenbergMarquardt(1e-4, 1e-4)
        return optx.least_squares(residuals, solver, start, max_steps=32, throw=False).value

    start = np.float32([1, 1, 0])
    return Program(fit, (2 * np.exp(-1.5 * at) + 0.3 * at, start))


@program
def optimistix_root():
    """A root, and its derivative by the implicit function theorem."""
    optx = pytest.importorskip("optimistix")

    def total(a, start):
        def fn(x, a):
            return x + 0.2 * jnp.tanh(a @ x) - 1

        solver = optx.Newton(1e-5, 1e-5)
        return optx.root_find(fn, solver, start, a, max_steps=32, throw=False).value.sum()

    return Program(total, (example(7, 7), example(7, seed=1)), (0,), (*LU, "sort"))


@program
def optimistix_bfgs():
    optx = pytest.importorskip("optimistix")

    def minimum(a, start):
        def fn(x, _):
            return jnp.sum((a @ x - 1) ** 2) + 0.1 * jnp.sum(x**4)

        return optx.minimise(fn, optx.BFGS(1e-4, 1e-4), start, max_steps=64, throw=False).value

    return Program(minimum, (example(13, 7), example(7, seed=1)))


def of_lineax(solve, fallbacks=()):
    root = example(9, 9)
    a = root @ root.T + 9 * np.eye(9, dtype="f4")
    return Program(solve, (a, example(9, seed=1)), (0, 1), fallbacks)


@program
def lineax_iterative():
    lx = pytest.importorskip("lineax")

    def total(a, y):
        positive = lx.MatrixLinearOperator(a, lx.positive_semidefinite_tag)
        return lx.linear_solve(positive, y, lx.CG(1e-6, 1e-6)).value.sum()

    return of_lineax(total)


@program
def lineax_direct():
    lx = pytest.importorskip("lineax")

    def total(a, y):
        some = lx.TridiagonalLinearOperator(jnp.diag(a), jnp.diag(a, 1), jnp.diag(a, -1))
        x = lx.linear_solve(some, y, lx.Tridiagonal()).value
        return (x * lx.linear_solve(lx.MatrixLinearOperator(a), y, lx.LU()).value).sum()

    return of_lineax(total, (*LU, "sort", "tridiagonal_solve"))


@program
def jaxopt_lbfgs():
    jaxopt = pytest.importorskip("jaxopt")

    def total(x, y):
        def fn(w, l2):
            return jnp.mean((x @ w - y) ** 2) + l2 * jnp.sum(w**2)

        return jaxopt.LBFGS(fn, maxiter=15).run(jnp.zeros(7), 0.1).params.sum()

    return Program(total, (example(23, 7), example(23, seed=1)))


@program
def jaxopt_lasso():
    """A proximal method, and its derivative by the implicit function theorem."""
    jaxopt = pytest.importorskip("jaxopt")

    def total(x, y):
        def fn(w, data):
            return jnp.mean((data[0] @ w - data[1]) ** 2)

        solver = jaxopt.ProximalGradient(fn, jaxopt.prox.prox_lasso, maxiter=30)
        return solver.run(jnp.zeros(7), 0.05, (x, y)).params.sum()

    return Program(total, (example(23, 7), example(23, seed=1)), (0, 1))


@program
def optax_lbfgs():
    def minimize(a, w):
        def fn(w):
            return jnp.sum(jnp.logaddexp(0, a @ w)) + 0.1 * jnp.sum(w**2)

        optimizer = optax.lbfgs()

        def step(carried, _):
            w, state = carried
            value, grad = optax.value_and_grad_from_state(fn)(w, state=state)
            updates, state = optimizer.update(grad, state, w, value=value, grad=grad, value_fn=fn)
            return (optax.apply_updates(w, updates), state), value

        (w, _), values = lax.scan(step, (w, optimizer.init(w)), None, length=8)
        return w, values

    return Program(minimize, (example(23, 7), example(7, 3, seed=1)))


# -- probabilistic programs ------------------------------------------------------------------------


def regression(numpyro):
    dist = numpyro.distributions

    def model(x, y):
        mean, scale = numpyro.sample("mean", dist.Normal()), numpyro.sample("scale", dist.Gamma(2))
        with numpyro.plate("features", x.shape[1]):
            w = numpyro.sample("w", dist.Normal(mean, scale))
        noise = numpyro.sample("noise", dist.Exponential(1.0))
        with numpyro.plate("rows", x.shape[0]):
            numpyro.sample("y", dist.StudentT(5.0, x @ w, noise), obs=y)

    return model


DATA = (example(29, 7, seed=1), example(29, seed=2))


@program
def numpyro_density():
    numpyro = pytest.importorskip("numpyro")
    numbers = {name: np.float32(0.7) for name in ("mean", "scale", "noise")}

    def density(w, x, y):
        given = {**numbers, "w": w}
        return numpyro.infer.util.log_density(regression(numpyro), (x, y), {}, given)[0]

    return Program(density, (example(7), *DATA), (0, 1))


@program
def numpyro_nuts():
    numpyro = pytest.importorskip("numpyro")

    def step(x, y):
        kernel = numpyro.infer.NUTS(regression(numpyro), max_tree_depth=3)
        state = kernel.init(jax.random.key(0), 5, None, (x, y), {})
        state = kernel.sample(state, (x, y), {})
        return state.z, state.potential_energy

    return Program(step, DATA)


@program
def numpyro_variational():
    numpyro = pytest.importorskip("numpyro")
    infer = numpyro.infer

    def train(x, y):
        model = regression(numpyro)
        guide, adam = infer.autoguide.AutoNormal(model), numpyro.optim.Adam(1e-2)
        svi = infer.SVI(model, guide, adam, infer.Trace_ELBO())
        state = svi.init(jax.random.key(0), x, y)
        state, losses = lax.scan(lambda s, _: svi.update(s, x, y), state, None, length=3)
        return losses, svi.get_params(state)

    return Program(train, DATA)


# -- JAX's and Equinox's own -----------------------------------------------------------------------


@program
def equinox_loop():
    """A loop that can be differentiated, and writes what it makes."""

    def total(w, x):
        def body(carried):
            h, k, rows = carried
            h = jnp.tanh(h @ w)
            return h, k + 1, rows.at[k].set(h)

        found = eqxi.while_loop(
            *(lambda carried: carried[1] < 5, body, (x, 0, jnp.zeros((6, *x.shape)))),
            buffers=lambda carried: carried[2],
            max_steps=8,
            kind="checkpointed",
        )
        return jnp.sin(eqxi.nondifferentiable_backward(w)).sum() + found[2].sum()

    return Program(total, (0.3 * example(9, 9), example(5, 9, seed=1)), (1,), ("sort",))


@program
def equinox_errors():
    def checked(x):
        x = eqx.error_if(jnp.sin(x), jnp.any(x > 1e3), "too large")
        return eqxi.unvmap_any(x > 0), eqxi.nonbatchable(x)

    return Program(checked, (example(5, 9),))


@program
def recurrence():
    def states(a, b):
        def one(left, right):
            return left[0] * right[0], right[0] * left[1] + right[1]

        return lax.associative_scan(one, (a, b))[1], lax.associative_scan(jnp.add, a[:, :3], axis=1)

    return Program(states, (example(7, 5), example(7, 5, seed=1)))


@program
def poisson():
    """Poisson's equation on a torus, by Fourier transforms."""

    def energy(right):
        rows, columns = right.shape
        k = jnp.fft.fftfreq(rows)[:, None] ** 2 + jnp.fft.rfftfreq(columns) ** 2
        inverse = jnp.where(k == 0, 0, -1 / jnp.where(k == 0, 1, k))
        return jnp.sum(jnp.fft.irfft2(jnp.fft.rfft2(right) * inverse, right.shape) ** 2)

    return Program(energy, (example(13, 10),), (0,))


@program
def principal_components():
    def spread(x):
        _, s, vt = jnp.linalg.svd(x - x.mean(0), full_matrices=False)
        return jnp.square(s @ vt).sum()

    return Program(spread, (example(13 * COUNT, 5),), (0,))


@program
def pallas():
    """A kernel of one's own, which every device runs whole."""
    pl = pytest.importorskip("jax.experimental.pallas")

    def kernel(x, y, out):
        out[...] = 2 * x[...] + y[...]

    spec = pl.BlockSpec((4, 8), lambda i, j: (i, j))
    shape = jax.ShapeDtypeStruct((16, 16), "float32")
    fn = pl.pallas_call(
        kernel, shape, grid=(4, 2), in_specs=[spec, spec], out_specs=spec, interpret=True
    )
    return Program(fn, (example(16, 16), example(16, 16, seed=1)), (), ("pallas_call",))


# -- the tests -------------------------------------------------------------------------------------


@pytest.mark.few(12)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_others_are_jaxs(name):
    made = PROGRAMS[name]()
    where = made.where or LAYOUTS[list(PROGRAMS).index(name) % len(LAYOUTS)]

    def laid(a):
        return poisoned(a, *where(np.shape(a), a.dtype)) if np.ndim(a) else a

    given = jax.tree.map(laid, made.args)
    on_grid = gl.on_grid(made.run)
    fallbacks = {row.primitive for row in on_grid.report(*given).fallbacks}
    assert fallbacks == set(made.fallbacks)
    assert_same(on_grid(*given), jax.jit(made.run)(*made.args), rtol=2e-3, atol=2e-4)
