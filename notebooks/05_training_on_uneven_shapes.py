# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 5. Training on uneven shapes
#
# Real sizes seldom divide by the number of devices. This notebook trains a small network in which
# no size does: 101 examples, 7 features, 13 hidden units, 5 classes, on 2x4 devices.

# %%
import gridlayout as gl

gl.emulate_devices(8)

import jax
import numpy as np
import optax

device = gl.DeviceGrid((2, 4))

# %% [markdown]
# ## The problem
#
# JAX's own sharding splits an array into equal parts, or not at all.

# %%
features = np.random.default_rng(0).normal(size=(101, 7)).astype(np.float32)
mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x", "y"))
try:
    sharding.shard_shape(features.shape)
except ValueError as error:
    reason = str(error).split(" implies that ")[-1]
    print("ValueError:", reason.split(" (")[0])

# %% [markdown]
# A layout rounds up. Each core has room for 51x2 elements, and what is left over is padding.

# %%
x = gl.put(features, gl.GridLayout((101, 7), "float32", grid=(2, 4)), device)
print(repr(x), " shard", x.layout.shard_shape)
x

# %% [markdown]
# ## The network
#
# It is written in plain JAX and optax, and knows nothing of layouts. The labels come from a random
# network of the same kind, so that there is something to learn.


# %%
def initial(seed):
    rng = np.random.default_rng(seed)
    return [
        {"w": rng.normal(size=(m, n)).astype(np.float32), "b": np.zeros(n, np.float32)}
        for m, n in ((7, 13), (13, 5))
    ]


def forward(params, x):
    hidden = jax.nn.tanh(x @ params[0]["w"] + params[0]["b"])
    return hidden @ params[1]["w"] + params[1]["b"]


def loss_fn(params, x, labels):
    return optax.softmax_cross_entropy_with_integer_labels(forward(params, x), labels).mean()


optimizer = optax.adam(0.05)


def step(params, state, x, labels):
    loss, gradient = jax.value_and_grad(loss_fn)(params, x, labels)
    updates, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, updates), state, loss


labels = np.asarray(forward(initial(1), features).argmax(axis=1), np.int32)
weights = initial(2)

# %% [markdown]
# ## On the grid
#
# `gl.put` lays out a tree of arrays, here by a rule: on a virtual 4x4 grid, which is more cores
# than devices, and more than most of these arrays can fill. The optimizer's state is made from the
# weights, and lies as they do.

# %%
GRID = (4, 4)


def on_cores(shape, dtype):
    return gl.GridLayout(shape, dtype, grid=GRID)


params, data = gl.put((weights, (features, labels)), device, on_cores)
state = gl.on_grid(optimizer.init)(params)
first = params[0]["w"].layout
print("first weights:", first.shape, "in shards of", first.shard_shape)
print(f"{first.padding_share:.1%} of them are padding")
first.draw("physical")

# %% [markdown]
# `on_grid(step)` is the training step on the grid, derivatives and optimizer included. Its report
# lists every primitive. No **fallback** means that none of them had to bring a whole array to every
# device.

# %%
on_grid = gl.on_grid(step)
report = on_grid.report(params, state, *data)
print(len(report.fallbacks), "primitives without a rule")
print(f"{report.bytes_moved:,} bytes move in a step, most of them here:")
for row in sorted(report.rows, key=lambda row: -row.bytes_moved)[:4]:
    print(f"  {row.bytes_moved:>7,}  {row.primitive} to {row.outputs[0].shape}")

# %% [markdown]
# ## Training
#
# The same step runs on the grid and in plain JAX, each under `jax.jit`, from the same weights.

# %%
grid_step, plain_step = jax.jit(on_grid), jax.jit(step)
plain = (weights, optimizer.init(weights))
print("step   on the grid   plain JAX")
for k in range(61):
    params, state, loss = grid_step(params, state, *data)
    *plain, expected = plain_step(*plain, features, labels)
    if k % 20 == 0:
        print(f"{k:>4}   {float(loss):>11.2f}   {float(expected):>9.2f}")
print("equal to 4 digits:", np.isclose(float(loss), float(expected), rtol=1e-4))


# %%
def leaves(tree):
    return jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, gl.GridArray))


def close(tree, other, atol):
    pairs = zip(leaves(tree), leaves(other), strict=True)
    return all(np.allclose(np.asarray(x), np.asarray(y), atol=atol) for x, y in pairs)


print("weights equal:", close(params, plain[0], atol=1e-3))
correct = gl.on_grid(lambda p, x, y: (forward(p, x).argmax(axis=1) == y).mean())
print(f"accuracy on the training data: {float(correct(params, *data)):.0%}")

# %% [markdown]
# ## What about the padding?
#
# It takes no part. Here it is NaN in every weight and every feature, and the step gives the loss
# and the weights that it gives without.


# %%
def poisoned(x):
    if not np.issubdtype(x.dtype, np.floating):
        return x
    physical = np.array(x.physical)
    physical[x.layout.padding_mask()] = np.nan
    return gl.from_physical(physical, x.layout, device)


bad_params, bad_data = jax.tree.map(
    poisoned, (params, data), is_leaf=lambda x: isinstance(x, gl.GridArray)
)
print("NaN among the stored features:", bool(np.isnan(bad_data[0].physical).any()))
clean, bad = grid_step(params, state, *data), grid_step(bad_params, state, *bad_data)
print("same loss:", close(clean[2], bad[2], atol=1e-6))
print("same weights:", close(clean[0], bad[0], atol=1e-6))
