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
# # 3. Five systems, side by side
#
# Compilers and chips have each found their own way to say how a tensor lies in memory:
# Tenstorrent's grids of tiles, XLA's tiled layouts, the local memory of Sophon's NPUs, MegEngine's
# channel formats, and the HWC tensors of embARC MLI. They use different words. Underneath, each is
# one affine map from a logical index to a physical one, and here all of them are the same kind of
# object.

# %%
import gridlayout as gl

gl.emulate_devices(8)

import numpy as np

shape = (2, 5, 3, 4)  # N, C, H, W

# %% [markdown]
# ## Tenstorrent: grid, then tile
#
# The [first notebook](01_first_layout.ipynb) follows this model. All dims but the last become rows,
# the grid of cores divides them, tiles divide each core's part. Here are 15 rows on each of 2
# cores, in tiles of 8x4.

# %%
tenstorrent = gl.GridLayout(shape, "float32", grid=(2, 1), tile=(8, 4))
print(tenstorrent)
print(tenstorrent.index_map)
tenstorrent.draw("physical", color=1)

# %% [markdown]
# There are also layouts of today's compilers and runtime, and they differ from the document. The
# 53x63 tensor on 3x2 cores shows it. The document divides by the grid first: 18, 18 and 17 rows.
# The others cut tiles first, and one of them refuses a grid that does not divide the tiles.

# %%
print(gl.tenstorrent.compare((53, 63), grid=(3, 2), tile=(32, 32)))

# %% [markdown]
# ## XLA: tiles in the type
#
# `{1,0:T(2,2)}` reads: dim 1 is the minor one, dim 0 the major one, in tiles of 2x2. The figure of
# XLA's document is f32[3,5]. The numbers are positions in memory. Element [2, 3] is at 17.

# %%
xla = gl.parse("f32[3,5]{1,0:T(2,2)}")
print(xla.index_map)
print(xla.locate((2, 3)))
xla.draw("tiles")

# %% [markdown]
# Tiles may be made of tiles. On a TPU, bfloat16 lies in `T(8,128)(2,1)`: two rows are interleaved,
# so that two 16-bit values share a 32-bit word. Small, it looks like this.

# %%
gl.parse("bf16[4,8]{1,0:T(2,4)(2,1)}").draw("tiles")

# %% [markdown]
# ## Sophon: channels over NPUs
#
# A Sophon chip spreads the channels of a tensor over its NPUs, round-robin: channel c is on NPU
# c mod 4, here with the document's toy chip of 4. Each column of the picture is an NPU. Starting on
# another NPU can cost a row of memory.

# %%
toy = gl.sophon.Chip(npus=4, npu_bytes=1024, alignment=128)
channels = gl.sophon.local((2, 6, 4, 8), "float32", "compact", start=3 * 1024, chip=toy)
print("6 channels that start on NPU 3 take", channels.channels_per_npu, "places on each NPU")
channels.draw("slots")

# %% [markdown]
# The *compact* layout puts each channel right after the one before. The *aligned* one starts each
# at a multiple of 128 bytes, which the hardware prefers. In the pictures, a colour is a channel, a
# row is 32 floats, and padding is hatched.

# %%
compact = gl.sophon.local(shape, "float32", "compact", chip=toy)
aligned = gl.sophon.local(shape, "float32", "aligned", chip=toy)
for layout in (compact, aligned):
    print(f"{layout.layout:8} strides {layout.strides}, {layout.bytes_per_core} bytes on each NPU")
aligned.draw("memory", color=1, width=32, label="none")

# %% [markdown]
# Small numbers share a word. In 4N mode, the same element of four batch items lies side by side in
# 32 bits. With 2 items, two of the four lanes are empty.

# %%
four = gl.sophon.local(shape, "int8", storage="4N", chip=toy)
print(four.index_map)
print(f"{four.dummies} dummy items, {four.padding_share:.1%} padding")

# %% [markdown]
# ## MegEngine: channels in blocks
#
# NCHW4 lets four channels of a pixel lie side by side, for hardware that multiplies four bytes at
# once: it is made for int8. 5 channels are two blocks of 4. CHWN4 moves the batch inside.

# %%
nchw4 = gl.megengine.format(shape, "NCHW4", "int8")
for name in ("NCHW", "NHWC", "NCHW4", "CHWN4"):
    layout = gl.megengine.format(shape, name, "int8")
    print(f"{name:6}", layout.index_map)
nchw4.draw("memory", color=1, width=16, label="number")

# %% [markdown]
# ## embARC MLI: HWC
#
# MLI wants the channels of a pixel together too, but without blocks: HWC. Here the letters are the
# dims in order, the outermost first, and the strides may leave gaps. `transpose` gives the
# layout with the dims in another order.

# %%
hwc = gl.mli.tensor((3, 4, 5), "HWC", "float32")
gaps = gl.mli.tensor((3, 4, 5), "HWC", "float32", (24, 6, 1))
for layout in (hwc, hwc.transpose("HWC->CHW"), gaps):
    print(layout.layout, layout.mem_stride, layout.index_map)
hwc.draw("memory", color=2, width=20)

# %% [markdown]
# ## Side by side
#
# One tensor of 480 bytes under all of them. Where is its last element, [1, 4, 2, 3], and what does
# the layout cost? MLI takes the tensor as weights, with its 2 filters innermost, so the same
# element has the index [2, 3, 4, 1] there.

# %%
last = (1, 4, 2, 3)
systems = [
    ("Tenstorrent", tenstorrent, last),
    ("XLA, small tiles", gl.parse("f32[2,5,3,4]{3,2,1,0:T(2,4)}"), last),
    ("XLA, TPU tiles", gl.parse("f32[2,5,3,4]{3,2,1,0:T(8,128)}"), last),
    ("Sophon compact", compact, last),
    ("Sophon aligned", aligned, last),
    ("MegEngine NHWC", gl.megengine.format(shape, "NHWC", "float32"), last),
    ("MegEngine NCHW8", gl.megengine.format(shape, "NCHW8", "float32"), last),
    ("MLI HWCN", gl.mli.tensor((3, 4, 5, 2), "HWCN", "float32"), (2, 3, 4, 1)),
]
print(f"{'':17}{'core':>7}{'byte':>7}{'bytes':>8}{'padding':>9}")
for name, layout, index in systems:
    place = layout.locate(index)
    core = ",".join(map(str, place.core)) or "-"
    print(f"{name:17}{core:>7}{place.byte:>7,}{layout.nbytes:>8,}{layout.padding_share:>9.1%}")

# %% [markdown]
# ## From one to another
#
# Since all are maps of the same kind, any layout can be turned into any other. `pack` moves the
# elements, and `to_bytes` makes the bytes, for example to hand weights to a chip. Here are the
# first two pixels in NCHW4: four channels each.

# %%
numbers = np.arange(120, dtype=np.float32).reshape(shape)
small = numbers.astype(np.int8)
print(gl.pack(small, nchw4)[0, 0, 0, :2].tolist(), bytes(gl.to_bytes(small, nchw4)[:8]).hex(" "))

# %% [markdown]
# `relayout` moves an array on devices from one layout to another. The plan says what has to change
# device. XLA's and MegEngine's layouts have one memory and no cores, so each device gets all of it.

# %%
device = gl.DeviceGrid((2, 4))
x = gl.put(numbers, tenstorrent, device)
for name, layout, _ in systems[:-1]:
    y = gl.relayout(x, layout)
    same = np.array_equal(np.asarray(y), numbers)
    print(f"{name:17}{gl.relayout_plan(x, layout).moved:>6,} B change device, equal: {same}")

# %% [markdown]
# From Tenstorrent's two cores to Sophon's four NPUs, half of the bytes are where they must be
# already. (8 devices are more than either needs, so the shards are there in several copies.)

# %%
gl.relayout_plan(x, aligned)
