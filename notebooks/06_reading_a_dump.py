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
# # 6. Reading a compiler's dump
#
# Compilers can print their program at every stage. The layouts are in there, one in almost every
# type, and nobody reads them: they are long, and the cost is not written beside them. `gl.explain`
# reads them. It also runs in a shell, as `python -m gridlayout explain FILE`.

# %%
import gridlayout as gl

# %% [markdown]
# ## One type
#
# A single type will do. What is `f32[1000,3]`, in the tiles of a TPU?

# %%
print(gl.explain("f32[1000,3]{1,0:T(8,128)}"))

# %% [markdown]
# The data take 12 KB, the layout 500 KB: a **factor** of 42.67. A picture of fewer rows shows why:
# the 3 columns are padded to the 128 of a tile.

# %%
gl.parse("f32[30,3]{1,0:T(8,128)}").draw("physical", label="none")

# %% [markdown]
# ## A program for a TPU
#
# Here is a short HLO program, as XLA prints it after its layouts are assigned. It copies its
# argument into another layout, transposes, and multiplies.

# %%
hlo = """\
HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[1000,3], w: bf16[300,1000]) -> f32[300,3] {
  %x = f32[1000,3]{1,0:T(8,128)} parameter(0)
  %w = bf16[300,1000]{1,0:T(8,128)(2,1)} parameter(1)
  %copy.1 = f32[1000,3]{0,1:T(4,128)} copy(%x)
  %transpose.2 = f32[3,1000]{1,0:T(4,128)} transpose(%copy.1), dimensions={1,0}
  ROOT %dot = f32[300,3]{0,1:T(4,128)} convolution(%w, %transpose.2), dim_labels=bf_oi->bf
}
"""
found = gl.explain(hlo)
print(found)

# %% [markdown]
# The table has a row for every value, those that waste most bytes first. Below it is what the
# program holds at its peak, and the moves. The copy rewrites the array from one tiling to the
# other. The transpose moves nothing: the new type is another name for the same bytes.
#
# The same facts are there as Python objects.

# %%
worst = found.findings[0]
print("line", worst.line, "wastes", f"{worst.wasted_bytes:,} bytes:", worst.layout)
for move in found.moves:
    print(f"line {move.line}: {move.op} moves {move.moved_bytes:,} of {move.data_bytes:,} bytes")

# %% [markdown]
# A notebook shows the result as a page, the one that `--html` writes.

# %%
found

# %% [markdown]
# ## A program for a grid of cores
#
# The file [06_dump.mlir](06_dump.mlir) is the IR of Tenstorrent's compiler, tt-mlir: layouts have
# aliases, and operations move a tensor from one to the next.

# %%
with open("06_dump.mlir") as file:
    print(file.read())

# %% [markdown]
# On a grid there are more questions than padding. Does the shard fit the memory of a core? What has
# to go to another core? The chip is described in the dump.

# %%
grid = gl.explain("06_dump.mlir")
print(grid)

# %% [markdown]
# So one of these layouts cannot work: its shard is larger than a core's memory. The map `(d0 * 96 +
# d1, d1, d2)` uses d1 twice, so most of each shard is padding.

# %%
(bad,) = (finding for finding in grid.findings if finding.fit is not None and not finding.fit)
print("line", bad.line, bad.layout.index_map)
print(f"{bad.fit}; {bad.padding_share:.1%} padding")

# %% [markdown]
# A layout of a dump is a layout like any other. It can be drawn, for one thing, or tried out with
# other numbers.

# %%
move = grid.moves[0]
print(move.op, f"moves {move.moved_bytes:,} of {move.data_bytes:,} bytes")
move.before.draw("flows", to=move.after)

# %% [markdown]
# ## What would be better?
#
# With `plan=True`, `explain` also looks for layouts of the same tensors that waste less, and writes
# them as text that can be pasted into a program. Here is one for the worst.

# %%
better = gl.explain("06_dump.mlir", plan=True).findings[0].proposal.layout
print(better)
print(better.fits(grid.chip))
better.draw()
