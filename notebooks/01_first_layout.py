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
# # 1. A layout from first principles
#
# A program speaks of *logical* tensors: a shape, and elements at indices. A chip has cores, each
# with a small memory of its own. A **layout** says where each element of the tensor lives: on which
# core, and where in that core's memory.
#
# This notebook follows the walkthrough of Tenstorrent's *Tensor Layout* document, step by step. It
# ends with the tensor on eight devices. They are emulated on the CPU, so it runs anywhere.

# %%
import gridlayout as gl

gl.emulate_devices(8)

import jax
import jax.numpy as jnp
import numpy as np

# %% [markdown]
# ## Collapse
#
# Memory is flatter than a tensor. The first step joins the dims of a 2x3x64x128 tensor into rows
# and columns, by one affine map. Element `[1, 1, 6, 100]` goes to row 1·192 + 1·64 + 6 = 262.

# %%
layout = gl.GridLayout((2, 3, 64, 128), "float32")
print(layout.linear)
print(layout.linear(1, 1, 6, 100))
print("the tensor", layout.shape, "is collapsed to", layout.collapsed_shape)

# %% [markdown]
# Which dims are joined is a choice: a list of intervals. By default all but the last are. A layout
# can have as many collapsed dims as it likes; the grid has the same number.

# %%
examples = [
    ((4, 5, 6), [(0, -1)], 2),
    ((3, 4, 5, 6), [(1, -1)], 3),
    ((3, 4, 5, 6), [(0, 2)], 3),
    ((2, 2, 2, 2, 2, 2, 2), [(0, 3), (-3, -1)], 4),
]
for shape, intervals, rank in examples:
    print(intervals, " ", gl.GridLayout(shape, grid=(1,) * rank, collapse=intervals).linear)

# %% [markdown]
# ## Grid
#
# The second step divides the collapsed tensor by a grid of cores. On 2x4 cores, each of them gets
# 192 x 32 elements: its **shard**. The picture shows the last two dims of the tensor, with a colour
# for each core; hover over it to see more.

# %%
layout = gl.GridLayout((2, 3, 64, 128), "float32", grid=(2, 4))
print(layout.summary())
layout.draw()

# %% [markdown]
# The grid is virtual. It can have any rank and any size, and the map may use a dim twice. Here are
# the document's own examples, with the shard that each core gets.

# %%
snippets = [
    ((8, 300), (1, 2), "(d0, d1) -> (d0, d1)"),
    ((8, 96, 32), (2, 1), "(d0, d1, d2) -> (d0 * 96 + d1, d2)"),
    ((8, 96, 32), (2, 1, 2), "(d0, d1, d2) -> (d0 * 96 + d1, d1, d2)"),
]
for shape, grid, linear in snippets:
    shard = gl.GridLayout(shape, "float32", grid=grid, linear=linear).shard_shape
    print(f"{shape!s:12} on {grid!s:9} {linear:42} shard {shard}")

# %% [markdown]
# ## Tiles
#
# The third step cuts each shard into tiles, the blocks that the hardware works on. A shard of 64x64
# is 2x2 tiles of 32x32. The **physical shape** has all the parts in order: the grid, the shard in
# tiles, the tile. One array of this shape holds the whole tensor.

# %%
layout = gl.GridLayout((3, 64, 128), "float32", grid=(3, 2), tile=(32, 32))
print("physical", layout.physical_shape)
layout.draw("tiles")

# %% [markdown]
# So every element has a place. `locate` says which core it is on, and where in that core's memory;
# `logical_index` goes back.

# %%
place = layout.locate((1, 40, 100))
print(place)
print(layout.logical_index((*place.core, *place.local)))

# %% [markdown]
# All of this is one affine map, from the logical index to the physical one. Everything else follows
# from it.

# %%
print(layout.index_map)

# %% [markdown]
# ## Text
#
# A layout prints as the compiler's own text, and the text reads back as the same layout.

# %%
text = str(layout)
print(text)
assert gl.parse(text) == layout

# %% [markdown]
# ## Padding
#
# Nothing has to divide. 53 rows on 3 rows of cores are 18, 18 and 17; a tile has 32, so 14 rows of
# each tile stay empty, and 15 on the last row of cores. [The next notebook](02_padding.ipynb) is
# about this.

# %%
layout = gl.GridLayout((53, 63), "float32", grid=(3, 2), tile=(32, 32))
print("rows of padding   ", layout.padding_along(0))
print("columns of padding", layout.padding_along(1))
layout.draw("physical")

# %% [markdown]
# ## Devices
#
# Real devices come last. A `DeviceGrid` is a mesh of them, here 2x4. The virtual 3x2 grid is folded
# onto it: six devices hold one core each, and two are idle.

# %%
device = gl.DeviceGrid((2, 4))
layout.draw("fold", device=device)

# %% [markdown]
# The fold is an affine map as well: from the core to the device, and to the core's place inside the
# device. A grid may be larger than the mesh: of 1x64 cores, each device has eight.

# %%
print("3x2 ", device.core_map((3, 2)))
print("1x64", device.core_map((1, 64)))

# %% [markdown]
# Several chips are one more grid dim. This is the document's example: the batch is not collapsed,
# so the first dim of a 2x2x4 grid divides it between two groups of devices.

# %%
batches = gl.GridLayout(
    (2, 3, 64, 128), "float32", grid=(2, 2, 4), tile=(32, 32), collapse=[(1, -1)]
)
print(batches)
print(device.core_map(batches.grid))

# %% [markdown]
# `put` moves an array there. What comes back still has its logical shape, and each shard is on the
# device that the map says.

# %%
numbers = np.arange(53 * 63, dtype=np.float32).reshape(53, 63)
x = gl.put(numbers, layout, device)
print(repr(x))
core = (2, 1)
inside = device.core_map(layout.grid)(*core)[:2]
(shard,) = (s for s in x.storage.addressable_shards if s.device == device.mesh.devices[inside])
print("core", core, "is on device", inside, "whose first element is", shard.data.ravel()[0])
print("in the tensor, element [36, 32] is", numbers[36, 32])

# %% [markdown]
# ## Any JAX function
#
# `on_grid` runs a function that was written for plain arrays. The result is that of plain JAX, and
# padding never affects it: here it is filled with NaN first.

# %%
physical = np.array(x.physical)
physical[layout.padding_mask()] = np.nan
poisoned = gl.from_physical(physical, layout, device)


def spread(x):
    return jax.nn.softmax(x / 1000, axis=1).std(axis=0)


y = gl.on_grid(spread)(poisoned)
print(repr(y))
print("as plain JAX:", np.allclose(y, spread(jnp.asarray(numbers)), rtol=1e-4, atol=1e-7))
