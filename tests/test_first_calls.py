"""What a first call compiles, in numbers of programs and of kernels."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gridlayout as gl


def kernels(text):
    """The different kernels of an optimized HLO text: XLA compiles equal ones once."""
    plain = re.sub(r", metadata=\{[^}]*\}", "", text)
    bodies = re.findall(r"^%\S+ \(.*?\) -> [^\n]* \{\n(.*?)^\}", plain, re.M | re.S)
    found = set()
    for body in bodies:
        numbers = {}
        name = lambda match, numbers=numbers: f"%{numbers.setdefault(match[0], len(numbers))}"  # noqa: E731
        found.add(re.sub(r"%[\w.-]+", name, body))
    return found


def layers(count, grid, side=24):
    """The compiled step of gradient descent for some layers whose weights are divided by `grid`."""
    device = gl.DeviceGrid((2, 4))
    layout = gl.GridLayout((side, side), grid=grid)
    weights = [gl.put(np.ones(layout.shape, np.float32), layout, device) for _ in range(count)]
    x = gl.put(np.ones((32, side), np.float32), gl.GridLayout((32, side), grid=(8, 1)), device)

    def loss(weights, x):
        for w in weights:
            x = x + jnp.tanh(x @ w)
        return jnp.mean(x**2)

    def step(weights, x):
        return [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights, x), strict=True)]

    return gl.on_grid(step).lower(weights, x).compile().as_text()


@pytest.mark.parametrize("grid", [(1, 1), (8, 1)], ids=["replicated", "by rows"])
def test_more_layers_need_no_other_kernels(grid):
    """Weights are gathered together, gradients summed together: each is cut out by one kernel."""
    few, many = layers(4, grid), layers(8, grid)
    assert many.count(" fusion(") > few.count(" fusion(")
    assert len(kernels(many)) == len(kernels(few))
