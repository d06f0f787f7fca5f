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
# # 7. Planning a model for a chip
#
# `gl.plan` takes a JAX function, the shapes of its arguments and a machine. It chooses the layouts
# of all values at once, so that the program takes the least time by the machine's figures. It needs
# no devices. This notebook plans the training step of a small network for a chip, for a mesh of
# chips, and for the devices at hand.

# %%
import gridlayout as gl

gl.emulate_devices(8)

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

# %% [markdown]
# ## The model
#
# It is the feed-forward half of a transformer block: two products, a ReLU between them, and the
# input added to the result. The step is plain JAX and knows nothing of layouts. Of the arguments
# only shapes and types are needed.


# %%
def forward(params, x):
    return x + jax.nn.relu(x @ params["up"]) @ params["down"]


def step(params, x, y):
    def loss(params):
        return jnp.mean((forward(params, x) - y) ** 2)

    gradient = jax.grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)


def shapes(rows, width=1024, hidden=4096, dtype="bfloat16"):
    up, down, x = (width, hidden), (hidden, width), (rows, width)
    params = {"up": jax.ShapeDtypeStruct(up, dtype), "down": jax.ShapeDtypeStruct(down, dtype)}
    return params, jax.ShapeDtypeStruct(x, dtype), jax.ShapeDtypeStruct(x, dtype)


# %% [markdown]
# ## One chip, core by core
#
# An n150 has one Wormhole chip with 8x8 cores. Each core is a device of the plan: `r` and `c` are
# the axes of its mesh. The table has a line for each equation, with its layouts, the time of
# computing and of movement, and what limits it.

# %%
plan = gl.plan(step, *shapes(2048), machine="n150")
print(plan)

# %% [markdown]
# The first line has the time and the **bound**. No plan takes less than the bound, by the same
# figures. On a chip the bound leaves the size of the cores' memory (L1) out, and that is part of
# the gap.
#
# What does not fit in L1 is in the chip's DRAM. Which arguments are there? And which equations wait
# for DRAM?

# %%
for name, layout in plan.layouts.items():
    print(f"{name:<12} {layout.memory_space:<5} in {layout.grid} parts")
slow = [each for each in plan.simulation.equations if each.limit == "dram"]
print("wait for DRAM:", ", ".join(each.name for each in slow))
print(f"{sum(each.seconds for each in slow) / plan.time:.0%} of the time")

# %% [markdown]
# The weights stay in L1, each core holds a part of them. `memory()` draws what a core holds while
# each equation runs, and `timeline()` what it computes and receives over time.

# %%
plan.memory()

# %%
plan.timeline()

# %% [markdown]
# ## Why so?
#
# `why` lists other ways to run one equation, and what the whole program would take. A way is
# written as the operands and the result, with the axes that divide each dim. The way with the star
# is the plan's. The times are the estimates of the search, which can be above the time of the plan:
# compare them with each other.

# %%
print(plan.why("dot_general:0"))

# %% [markdown]
# ## What changes with the batch
#
# Here is the same step on 4x4 TPU v5e chips, for more and more rows, with the bytes that a chip
# receives in a step. The last column is the first product: its operands and its result.

# %%
print("  rows     x  params/up  params/down      time    a row  received  first product")
for rows in (64, 4096, 16384, 262144):
    each = gl.plan(step, *shapes(rows), machine="v5e 4x4")
    grids = [each.layouts[name].grid for name in ("x", "params/up", "params/down")]
    x, up, down = ("x".join(map(str, grid)) for grid in grids)
    took, a_row = f"{each.time * 1e6:,.0f} us", f"{each.time / rows * 1e9:.1f} ns"
    received = f"{sum(each.simulation.links.values()) / 1e6:.1f} MB"
    (way,) = (way.words for way in each.alternatives["dot_general:0"] if way.is_chosen)
    print(f"{rows:>6} {x:>5} {up:>10} {down:>12} {took:>9} {a_row:>8} {received:>9}  {way}")

# %% [markdown]
# With few rows, the weights stay where they are, and rows are moved. Each chip multiplies all rows
# by its part of the weights (tensor parallelism). With many rows, the rows stay, and weights and
# their gradients are moved. Each chip multiplies its part of the rows by all weights (data
# parallelism). The weights are stored in 16 parts all the same, and gathered for a product. What a
# chip receives is then the same for any number of rows.
#
# At 16,384 rows the plan is between the two. It divides the rows by 8, and two chips multiply the
# same rows: they compute more, and receive less than with rows in 16 parts. There `x` is whole on
# every chip. A plan takes its arguments as they suit it, and does not count what it takes to bring
# them there.

# %% [markdown]
# ## A machine of one's own
#
# A machine is a chip, what it does in a second, and links. This chip has 64 MiB of memory, and the
# step does not fit on two of them. The error names what is held at the fullest moment, and a mesh
# that has enough.

# %%
chip = gl.Chip("small", grid=(1, 1), capacity={"dram": 64 * 2**20})
rates = gl.Rates(flops=200e12, memory=800e9)
links = gl.Links(45e9, latency=1e-6, wrap=True)
two = gl.Machine(chip, mesh=(2,), links=links, rates=rates)
try:
    gl.plan(step, *shapes(4096), machine=two)
except gl.LayoutError as error:
    print(error)

# %% [markdown]
# On four chips it fits.

# %%
four = gl.plan(step, *shapes(4096), machine=two.on((4,)))
print(repr(four))
print(f"at most {four.peak_bytes:,} of {64 * 2**20:,} bytes, during {four.simulation.peak_at}")

# %% [markdown]
# ## Layouts by hand
#
# `fixed` states the layouts of arguments, and the plan is the best one with these. What does it
# cost to divide the rows at 4,096 rows, where the plan divides the weights? `diff` compares two
# plans. Its first lines are the sums and the layouts; then comes every equation that runs in
# another way.

# %%
best = gl.plan(step, *shapes(4096), machine="v5e 4x4")
by_rows = gl.GridLayout((4096, 1024), "bfloat16", grid=(16, 1))
fixed = gl.plan(step, *shapes(4096), machine="v5e 4x4", fixed={"x": by_rows, "y": by_rows})
lines = best.diff(fixed).splitlines()
print("\n".join(lines[:8]))
print(len(lines) - 8, "lines more")

# %% [markdown]
# `gl.with_layout` inside the function states the layout of any other value. Here the hidden values
# are divided by rows too.

# %%
hidden_by_rows = gl.GridLayout((4096, 4096), "bfloat16", grid=(16, 1))


def forward_by_rows(params, x):
    hidden = gl.with_layout(jax.nn.relu(x @ params["up"]), hidden_by_rows)
    return x + hidden @ params["down"]


def step_by_rows(params, x, y):
    def loss(params):
        return jnp.mean((forward_by_rows(params, x) - y) ** 2)

    gradient = jax.grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)


stated = gl.plan(step_by_rows, *shapes(4096), machine="v5e 4x4")
for name, each in {"free": best, "x and y by rows": fixed, "hidden by rows": stated}.items():
    print(f"{name:<16} {each.time * 1e6:.0f} us, {each.time / best.time - 1:.0%} more")

# %% [markdown]
# ## Run it
#
# Without `machine=`, the plan is for the devices that JAX has: here 8 emulated ones, which share
# the cores of one computer. `run` lays out the arguments as planned and runs the function. The plan
# divides the rows by 8, and each device has all weights. The result is that of plain JAX.

# %%
rng = np.random.default_rng(0)
args = jax.tree.map(
    lambda each: rng.normal(size=each.shape).astype(np.float32) / 16,
    shapes(16384, 256, 1024, "float32"),
)
here = gl.plan(step, *args)
for name, layout in here.layouts.items():
    print(f"{name:<12} {layout.grid}")
new = here.run(*args)
expected = jax.jit(step)(*args)
print("equal:", all(np.allclose(np.asarray(new[k]), expected[k], atol=1e-6) for k in new))

# %% [markdown]
# A plan can be saved, as JSON. It is for one function and one set of shapes, and others are
# refused. The loaded plan differs in nothing and gives the same result.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "plan.json")
    here.save(path)
    loaded = gl.load_plan(path, step)
    other = gl.load_plan(path, lambda params, x, y: params)
print("no difference:", loaded.diff(here) == "")
again = loaded.run(*args)
print("same result:", all(np.array_equal(np.asarray(new[k]), np.asarray(again[k])) for k in new))
try:
    other.run(*args)
except gl.LayoutError as error:
    print(error)

# %% [markdown]
# ## 4,096 chips
#
# `gl.simulate` says what a choice takes, on as many devices as one likes. Here the mesh has the
# chips and the links of a TPU v5e pod, with longer axes. An argument can be a layout, which is
# kept: the data come divided by rows. Without a plan, the weights have the layouts of
# `gl.fill_devices`, and equations run as `gl.on_grid` chooses.

# %%
pod = gl.Machine("v5e 16x16")
rows = 2**18
params = shapes(rows)[0]


def by_rows_on(chips):
    return gl.GridLayout((rows, 1024), "bfloat16", grid=(chips, 1))


data = by_rows_on(4096)
simulation = gl.simulate(step, params, data, data, machine=pod.on((64, 64)))
print("\n".join(simulation.lines[-3:]))
simulation.timeline()

# %% [markdown]
# A chip computes for a small part of the time. For the rest it waits for what the links bring.
#
# ## Strong scaling
#
# The batch stays the same, and the number of chips grows. `gl.scaling` simulates all of them, by
# default and as planned. A function gives the arguments for each number of chips, with the data
# divided by rows. The speed-up is that over one chip. The efficiency is the speed-up divided by the
# number of chips.


# %%
def batch_on(chips):
    data = by_rows_on(chips)
    return params, data, data


scaled = gl.scaling(step, batch_on, machine=pod, devices=[4**k for k in range(7)])
print(scaled)
scaled

# %% [markdown]
# "Moving" is the share of the time that the links take.

# %%
print("chips  without a plan  planned")
for k, chips in enumerate(scaled.devices):
    pair = (scaled.simulations[way][k] for way in ("default", "planned"))
    moving = (sum(e.movement for e in each.equations) / each.time for each in pair)
    print("{:>5} {:>14.0%} {:>9.0%}".format(chips, *moving))

# %% [markdown]
# Computing gets shorter with every chip. What a chip receives of the weights does not, so that in
# the end nearly all of the time is movement. Up to 1,024 chips the default is the best plan. On
# 4,096 chips it takes longer than on 1,024, and the plan a seventh less: there it is worth its
# search.
#
# ## A product by each algorithm
#
# Of a single product there is a line for each algorithm, and a lower bound. The bound counts what a
# chip sends and receives at least where no chip has copies. Here the product grows with the chips
# (weak scaling): four times the chips, twice the rows and twice the columns.


# %%
def product_on(chips):
    side = round(2048 * chips**0.5)
    rows, columns = (side, 2048), (2048, side)
    return [jax.ShapeDtypeStruct(size, "bfloat16") for size in (rows, columns)]


gl.scaling(jnp.matmul, product_on, machine=pod, devices=[4**k for k in range(6)], weak=True)

# %% [markdown]
# To gather both operands is the fastest way here, and Cannon's needs a square of chips.
