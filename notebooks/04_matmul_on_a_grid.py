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
# # 4. A matrix product on a grid
#
# To multiply two matrices, every row has to meet every column. On a grid of cores they lie apart,
# so something has to move. This notebook shows what, by which algorithms, and how to write one by
# hand.

# %%
import gridlayout as gl

gl.emulate_devices(8)

import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)


def laid_out(shape, grid, device, **options):
    layout = gl.GridLayout(shape, "float32", grid=grid, **options)
    return gl.put(rng.normal(size=shape).astype(np.float32), layout, device)


# %% [markdown]
# ## It just works
#
# Two matrices with uneven sizes, in different tiles, on 2x4 devices. The product is that of plain
# JAX, up to rounding.

# %%
device = gl.DeviceGrid((2, 4))
a = laid_out((53, 63), (2, 4), device, tile=(16, 16))
b = laid_out((63, 39), (4, 2), device, tile=(8, 8))
c = a @ b
print(repr(c))
print("as NumPy:", np.allclose(np.asarray(c), np.asarray(a) @ np.asarray(b), atol=1e-4))

# %% [markdown]
# ## What has to move
#
# Take 256x256 matrices on 2x4 devices. A device that makes a block of the result needs whole rows
# of the first matrix, but it holds only a quarter of each of its rows. The picture shows the rest
# coming in: on the left who has it, on the right who needs it.

# %%
a = laid_out((256, 256), (2, 4), device)
b = laid_out((256, 256), (2, 4), device)
plan = gl.relayout_plan(a, a.layout.replace(grid=(2, 1)))
print(f"{plan.moved:,} bytes change device, {plan.stays:,} stay")
plan

# %% [markdown]
# So each device needs half of the first matrix and has an eighth of it. Of the second it needs a
# quarter, its columns, and has an eighth too. Both together, with 256 KiB a matrix:

# %%
matrix = 256 * 256 * 4
first, second = 8 * (1 / 2 - 1 / 8) * matrix, 8 * (1 / 4 - 1 / 8) * matrix
print(f"{first:,.0f} + {second:,.0f} = {first + second:,.0f} bytes")

# %% [markdown]
# ## Algorithms
#
# There are many ways to bring these bytes. `gl.ALGORITHMS` names them, and `report` says what each
# one moves, without running it.
#
# * **gathered**: every device fetches all it needs, then multiplies once.
# * **ring**, **summa**, **cannon**: pieces of K, the dim that is summed over, come by one after
#   another. Little is held at a time.
# * **k_split**: each device multiplies a part of K, and the sums are added up over devices.
# * **3d**, **2.5d**: rows, columns and K are all divided.

# %%
print(gl.ALGORITHMS)


def compare(a, b):
    for name in gl.ALGORITHMS:
        try:
            (row,) = gl.on_grid(jnp.matmul, algorithm=name).report(a, b).rows
            print(f"{name:9} {row.bytes_moved:>10,} bytes moved")
        except gl.LayoutError as refusal:
            print(f"{name:9} refused: {refusal}")


compare(a, b)

# %% [markdown]
# `ring` and `summa` move exactly what has to move. `gathered` moves a little more here: on CPUs,
# the devices share the work of putting rows in order.

# %% [markdown]
# Cannon's algorithm needs a square of devices. Eight devices are also 2x2x2; then the blocks of the
# result lie on a 2x2 square, and the third axis holds copies.

# %%
cube = gl.DeviceGrid((2, 2, 2))
compare(laid_out((256, 256), (2, 2), cube), laid_out((256, 256), (2, 2), cube))

# %% [markdown]
# The shape decides, too. Here K is long and the result is small: it is better to leave both
# matrices where they are and to add up the sums.

# %%
tall, wide = laid_out((64, 4096), (1, 8), device), laid_out((4096, 64), (8, 1), device)
compare(tall, wide)

# %% [markdown]
# Nobody has to choose by hand. Without a name, `on_grid` compares what each takes on the machine.
# The table says what it took.

# %%
print(gl.on_grid(jnp.matmul).report(tall, wide))

# %% [markdown]
# Drawn, a program shows where each value lies, how much of it is padding, and what is moved for
# which step. Here is a product whose operands have to be moved first.

# %%
low = laid_out((64, 40), (2, 4), device)
gl.on_grid(lambda a, b: jax.nn.relu(a @ b)).draw(laid_out((53, 64), (3, 2), device), low)

# %% [markdown]
# Whatever the algorithm, the result is the same up to rounding.

# %%
exact = np.asarray(tall) @ np.asarray(wide)
for name in ("ring", "k_split"):
    result = gl.on_grid(jnp.matmul, algorithm=name)(tall, wide)
    print(f"{name:8}", np.allclose(np.asarray(result), exact, atol=1e-2))

# %% [markdown]
# ## Cannon by hand
#
# `map_shards` runs a function on every core, with that core's own block. `gl.cores.shift` hands
# blocks to a neighbour. That is all that Cannon's algorithm takes: first row i of blocks moves i
# places to the left, and column j moves j places up; then multiply, and let the blocks go round.

# %%
CORES = 3


def cannon(a, b):
    i, j = gl.cores.core_index()
    for step in range(1, CORES):
        a = jnp.where(i >= step, gl.cores.shift(a, -1, 1), a)
        b = jnp.where(j >= step, gl.cores.shift(b, -1, 0), b)
    total = a @ b
    for _ in range(1, CORES):
        a, b = gl.cores.shift(a, -1, 1), gl.cores.shift(b, -1, 0)
        total += a @ b
    return total


# %% [markdown]
# The grid is virtual: 3x3 cores run on 8 devices, and 50, 70 and 40 do not divide by 3. A block's
# padding takes part in a product that is written by hand, so it has to be 0: `oob=0`.

# %%
a = laid_out((50, 70), (CORES, CORES), device, oob=0)
b = laid_out((70, 40), (CORES, CORES), device, oob=0)
c = gl.map_shards(cannon, a, b, out=gl.GridLayout((50, 40), "float32", grid=(CORES, CORES)))
print(repr(c))
print("as NumPy:", np.allclose(np.asarray(c), np.asarray(a) @ np.asarray(b), atol=1e-4))
c.layout.draw("fold", device=device)

# %% [markdown]
# ## A ring of keys and values
#
# Attention is two products, with a table of scores between them: of 1000 queries and 1000 keys, a
# million scores for each head. In `ring_attention` each core keeps its queries while the keys and
# values of all cores come by, as the blocks did above. A core never holds more than a 125x125 piece
# of the table.

# %%
query, key, value = (laid_out((1000, 2, 16), (8, 1, 1), device, collapse=[]) for _ in range(3))
result = gl.ring_attention(query, key, value, is_causal=True)
plain = jax.nn.dot_product_attention(
    *(jnp.asarray(np.asarray(x)) for x in (query, key, value)), is_causal=True
)
print(repr(result))
print("as plain JAX:", np.allclose(np.asarray(result), plain, atol=1e-5))
