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
# # 2. Padding, and why it bites
#
# Hardware wants whole tiles on whole grids. Tensors do not care. What is left over is **padding**:
# positions in memory that belong to no element of the tensor. This notebook shows where padding
# comes from, what it costs, and how it spoils results if nobody keeps watch.

# %%
import gridlayout as gl

gl.emulate_devices(8)

import jax.numpy as jnp
import numpy as np

# %% [markdown]
# ## Where it comes from: grid and tile
#
# Take 53x63 elements and 3x2 cores. The grid divides first, rounding up: 18, 18 and 17 rows; 32 and
# 31 columns. So the last row of cores has a row of padding, and the last column of cores has a
# column.

# %%
plain = gl.GridLayout((53, 63), "float32", grid=(3, 2))
print("shard", plain.shard_shape)
print("rows of padding", plain.padding_along(0), " columns of padding", plain.padding_along(1))

# %% [markdown]
# The tile comes second. A shard of 18x32 is stored in one 32x32 tile. Now every core has 14 rows of
# padding, and the last row of cores has 15. Nearly half of the memory is empty.

# %%
tiled = plain.replace(tile=(32, 32))
print("rows of padding", tiled.padding_along(0), " columns of padding", tiled.padding_along(1))
for layout in (plain, tiled):
    print(f"{layout.nbytes:>6,} bytes, {layout.padding_share:.1%} padding")
tiled.draw("physical")

# %% [markdown]
# ## Where it comes from: gaps
#
# Padding is not always at the end. Here are two batches of 8 rows on 1x2 cores. By default the
# batches are packed one after the other: 16 rows of one tile. The colours are the batches.

# %%
packed = gl.GridLayout((2, 8, 32), "float32", grid=(1, 2), tile=(32, 32))
print(packed.linear, " physical", packed.physical_shape)
packed.draw("physical", color=0)

# %% [markdown]
# Say that an operation wants each batch in a tile of its own. Then the stride of the batch is 32
# rows instead of 8, which leaves a gap after each of them. A rule such as "padding is what lies
# right of and below the tensor" misses the first gap.

# %%
apart = packed.replace(linear="(d0, d1, d2) -> (d0 * 32 + d1, d2)")
print(apart.linear, " physical", apart.physical_shape)
apart.draw("physical", color=0)

# %% [markdown]
# So the library asks of each physical position whether any element maps to it. It gives the answer
# in two forms: a mask over the whole physical array, or a few boxes.

# %%
mask = apart.padding_mask()
print("mask", mask.shape, "with", mask.sum(), "positions of padding")
for box in apart.padded_regions():
    print("box ", [f"{s.start}:{s.stop}" for s in box])
print(apart.logical_index((0, 0, 1, 0, 7, 5)), apart.logical_index((0, 0, 1, 0, 8, 5)))

# %% [markdown]
# ## It bites: memory
#
# Padding is bought, moved and multiplied like everything else. A TPU stores `f32[1000, 3]` in tiles
# of 8x128: the 3 columns become 128. With the dims the other way round, most of the waste is gone.

# %%
for text in ("f32[1000,3]{1,0:T(8,128)}", "f32[1000,3]{0,1:T(4,128)}"):
    layout = gl.parse(text)
    print(f"{text}  {layout.nbytes:>7,} bytes for {1000 * 3 * 4:,}: {layout.expansion_factor:.1f}x")

# %% [markdown]
# On a grid of cores, the memory of one core is the limit. The same rows fit one core without tiles;
# in tiles they do not.

# %%
chip = gl.tenstorrent.WORMHOLE
for tile in (None, (32, 32)):
    print(gl.GridLayout((20000, 5), "float32", tile=tile).fits(chip))

# %% [markdown]
# ## It bites: results
#
# What lies in the padding? Whatever was there before. Let it be 1000, and take the mean of the
# stored array. NumPy's answer is far off, though every element of the tensor is 1.

# %%
device = gl.DeviceGrid((2, 4))
physical = np.full(tiled.physical_shape, 1000, np.float32)
physical[~tiled.padding_mask()] = 1
print(f"mean of what is stored: {physical.mean():.1f}")

# %% [markdown]
# `on_grid` gives the mean of the tensor. Its report says how: one **mask**, which sets the padding
# to 0 before the sum.

# %%
x = gl.from_physical(physical, tiled, device)
mean = gl.on_grid(jnp.mean)
print("mean of the tensor:", float(mean(x)))
print(mean.report(x))

# %% [markdown]
# Would it not be simpler to fill the padding with zeros, once? Zero is right for a sum. It is wrong
# for a maximum of negative numbers, and for a product. And it does not stay zero: exp(0) is 1.

# %%
zeros = np.where(tiled.padding_mask(), 0, -physical)
print("max of what is stored:     ", zeros.max(), "  of the tensor: -1.0")
print("sum of exp, as stored:     ", round(float(np.exp(zeros).sum()), 1))
print("sum of exp, of the tensor: ", round(53 * 63 * float(np.exp(-1)), 1))

# %% [markdown]
# ## Knowing what is there
#
# A layout can say what its padding holds: `oob`, for "out of bounds". Each operation needs its own
# neutral number there. It masks only where the layout does not promise that number already.

# %%
operations = (jnp.sum, jnp.max, jnp.prod)
print("padding holds ", *(f"{fn.__name__:>5}" for fn in operations))
for oob in (None, 0, 1, float("-inf")):
    y = gl.put(np.ones((53, 63), np.float32), tiled.with_oob(oob), device)
    masks = [gl.on_grid(fn).report(y).masks for fn in operations]
    print(f"{'unknown' if oob is None else oob:>13} ", *(f"{n:>5}" for n in masks))

# %% [markdown]
# The number is followed through a program. Padding of 0 becomes 1 by `exp`, and 0 again by
# subtracting 1; so the sum after that needs no mask.

# %%
y = gl.put(np.ones((53, 63), np.float32), tiled.with_oob(0), device)
print("after exp, the padding holds", gl.on_grid(jnp.exp)(y).layout.oob)
print(gl.on_grid(lambda y: (jnp.exp(y) - 1).sum()).report(y))

# %% [markdown]
# ## What to do about it
#
# The grid is a free choice, and padding depends on it. A search over all grids of up to 8x8 cores
# shows the choice: use many cores, or waste little.

# %%
grids = [(r, c) for r in range(1, 9) for c in range(1, 9)]
layouts = [gl.GridLayout((530, 630), "float32", grid=grid, tile=(32, 32)) for grid in grids]
best = {}
for layout in sorted(layouts, key=lambda layout: layout.padding_share):
    best.setdefault(layout.num_cores, layout)
for cores in (1, 2, 6, 16, 36, 64):
    layout = best[cores]
    print(
        f"{cores:>2} cores {layout.grid!s:>6}: {layout.padding_share:5.1%} padding, "
        f"{layout.bytes_per_core:>9,} bytes a core"
    )

# %% [markdown]
# The [next notebook](03_five_systems.ipynb) shows how five systems lay out one tensor, each with
# padding of its own.
