"""Train a Flax NNX model whose sizes do not divide by the mesh, and compare with plain Flax.

    python examples/train_flax.py

101 examples of 7 features, 13 hidden units and 5 classes are laid out on 2x2 emulated devices. The
model and its training step are plain Flax and optax; only the lines marked "grid" know of layouts.
"""

import gridlayout as gl

gl.emulate_devices(4)  # leave it out where there are real devices

import jax
import numpy as np
import optax
from flax import nnx

STEPS = 10


class Classifier(nnx.Module):
    """Two dense layers."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(7, 13, rngs=rngs)
        self.out = nnx.Linear(13, 5, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.out(nnx.relu(self.hidden(x)))


def cross_entropy(model: Classifier, x: jax.Array, labels: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(model(x), labels).mean()


model = Classifier(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
graph, initial = nnx.split((model, optimizer))


def step(state: nnx.State, x: jax.Array, labels: jax.Array) -> tuple[nnx.State, jax.Array]:
    """One step of training; Flax's modules exist inside the function alone."""
    model, optimizer = nnx.merge(graph, state)
    loss, gradients = nnx.value_and_grad(cross_entropy)(model, x, labels)
    optimizer.update(model, gradients)
    return nnx.state((model, optimizer)), loss


rng = np.random.default_rng(0)
x = rng.normal(size=(101, 7)).astype(np.float32)
labels = (x @ rng.normal(size=(7, 5))).argmax(axis=1).astype(np.int32)

# Plain Flax, on one device.
state, wanted = initial, []
plain_step = jax.jit(step)
for _ in range(STEPS):
    state, loss = plain_step(state, x, labels)
    wanted.append(float(loss))

# The same on the grid: every parameter, Adam's moments and the batch are divided over the mesh.
device = gl.DeviceGrid((2, 2))  # grid
on_grid, grid_x, grid_labels = gl.put((initial, x, labels), device)  # grid
grid_step = gl.on_grid(step)  # grid
found = []
for k in range(STEPS):
    on_grid, loss = grid_step(on_grid, grid_x, grid_labels)
    found.append(float(loss))
    print(f"step {k}  loss on the grid {found[-1]:.6f}  plain Flax {wanted[k]:.6f}")

np.testing.assert_allclose(found, wanted, rtol=1e-5)
for ours, theirs in zip(jax.tree.leaves(on_grid), jax.tree.leaves(state), strict=True):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-3, atol=1e-5)

print(gl.summary(on_grid))
print("equal to plain Flax: losses and all parameters")
