"""What must be true of any two plans of one program: more of anything is never slower.

The programs are random, and so are the meshes and the latencies.
"""

import random

import jax
import jax.numpy as jnp
import pytest
from tiers import few

import gridlayout as gl

EXACT = 1 + 1e-9
PLENTY = 1 << 40
SIZES = (8, 24, 50, 64, 100, 256, 300, 512, 1000, 2048)
MESHES = ((2,), (3,), (6,), (8,), (2, 3), (2, 4), (4, 4))


def mlp(x, up, down):
    return jax.nn.relu(x @ up) @ down


def gated(x, up, gate, down):
    return (jax.nn.silu(x @ up) * (x @ gate)) @ down.T


def attention(x, q, k, v):
    return jax.nn.softmax((x @ q) @ (x @ k).T, -1) @ (x @ v)


def training(x, up, down):
    def loss(params):
        return jnp.mean(mlp(x, *params) ** 2)

    grads = jax.grad(loss)((up, down))
    return up - 0.1 * grads[0], down - 0.1 * grads[1]


def normalised(x, w):
    centred = (h := x @ w) - h.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def reductions(x, w, y):
    return jnp.where(x > 0, x, y) @ w, (x * y).sum(0), x.max()


def loss(x, w, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(x @ w) * labels, -1))


# A function, and the shapes of its arguments for three sizes.
PROGRAMS = [
    (mlp, lambda a, b, c: ((a, b), (b, c), (c, b))),
    (gated, lambda a, b, c: ((a, b), (b, c), (b, c), (b, c))),
    (attention, lambda a, b, c: ((a, b), (b, c), (b, c), (b, c))),
    (training, lambda a, b, c: ((a, b), (b, c), (c, b))),
    (normalised, lambda a, b, c: ((a, b), (b, c))),
    (reductions, lambda a, b, c: ((a, b), (b, c), (a, b))),
    (loss, lambda a, b, c: ((a, b), (b, c), (a, c))),
]


class Case:
    """A random program, and machines for it that differ in one figure."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.fn, shapes = self.random.choice(PROGRAMS)
        dtype = self.random.choice(("bfloat16", "float32"))
        sizes = (self.random.choice(SIZES) for _ in range(3))
        self.args = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes(*sizes)]
        self.mesh = self.random.choice(MESHES)
        self.latency, self.wrap = self.random.choice((0, 1e-6)), self.random.random() < 0.5

    def plan(self, capacity=PLENTY, bandwidth=4.5e10, **options):
        links = gl.Links(bandwidth, latency=self.latency, wrap=self.wrap)
        chip = gl.Chip("t", (1, 1), {"dram": capacity})
        rates = gl.Rates(flops=2e14, memory=8e11)
        machine = gl.Machine(chip, mesh=self.mesh, links=links, rates=rates)
        return gl.plan(self.fn, *self.args, machine=machine, **options)

    def layout(self):
        """An argument's name, and a random layout of it."""
        k = self.random.randrange(len(self.args))
        x, grid = self.args[k], [1] * self.args[k].ndim
        for n in self.mesh:
            d = self.random.randrange(x.ndim + 1)
            if d < x.ndim:
                grid[d] *= n
        return k, gl.GridLayout(x.shape, x.dtype, grid=grid)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", few(range(300), 3))
def test_more_is_never_slower_and_a_constraint_never_faster(seed):
    case = Case(seed)
    free = case.plan()
    assert free.bound <= free.time
    exact = case.plan(free.peak_bytes)
    assert exact.time <= free.time * EXACT
    assert case.plan(bandwidth=9e10).time <= free.time * EXACT
    k, layout = case.layout()
    fixed = case.plan(fixed={[*free.layouts][k]: layout})
    assert free.time <= fixed.time * EXACT
    before = None
    for share in (0.6, 0.8, 1.0):  # of the memory of the free plan
        try:
            plan = case.plan(int(share * free.peak_bytes))
        except gl.LayoutError:
            assert before is None  # with less memory, there was a plan
            continue
        assert plan.peak_bytes <= share * free.peak_bytes
        assert plan.bound <= plan.time
        assert before is None or plan.time <= before * EXACT
        before = plan.time
    assert before is not None


def test_what_a_reduction_to_a_number_reads_is_divided():
    # x is whole on each device; the others divide it, and add up or compare what they have.
    x = jax.ShapeDtypeStruct((1200, 800), "float32")
    machine = gl.Machine("v5e 4x4")
    whole = {"x": gl.GridLayout(x.shape, x.dtype, grid=(1, 1))}
    for fn in (lambda x: jnp.tanh(x).sum() + x.max(), lambda x: (x.min(), jnp.argmax(x))):
        plan = gl.plan(fn, x, machine=machine, fixed=whole)
        assert plan.time <= plan.bound * 1.01


def test_a_number_is_reduced_from_where_the_plan_moves_its_operand():
    # The operand is gathered, and each device adds up all of it: the rule of one equation would
    # move it to all devices, and reduce what they have.
    def of_labels(x, w, labels):
        logits = x @ w
        own = jnp.take_along_axis(logits, labels[:, None], -1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - own)

    slow = gl.Rates(flops=2e12, memory=8e9)
    links = gl.Links(4.5e8, latency=1e-6, wrap=True)
    machine = gl.Machine(
        gl.Chip("t", (1, 1), {"dram": PLENTY}), mesh=(16,), links=links, rates=slow
    )
    args = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((1024, 128), (128, 3)))
    labels = jax.ShapeDtypeStruct((1024,), "int32")
    plan = gl.plan(of_labels, *args, labels, machine=machine)
    assert plan.time <= plan.bound * EXACT
