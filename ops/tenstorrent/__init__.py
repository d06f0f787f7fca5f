"""Running compiled TTNN programs: one function per op, values in the layouts of their types.

`gl.tenstorrent.load` (`program.py`) reads the text with `gridlayout.mlir`, and types as layouts
with `gridlayout.tenstorrent.tensor_type`. `linking.py` finds the function of each op (`table.py`)
and checks values, shapes and `deallocate` before anything runs. `running.py` is then a plain JAX
function for `gl.on_grid`, with a `with_layout` after each op, and one before it for each operand
that is not in L1.

An op is a function in the module of its kind (`elementwise.py`, `shapes.py`, `sums.py`,
`windows.py`, `indexing.py`), named in that module's `FUNCTIONS`; attributes that change no value
are in `HINTS`. TTIR shares the functions; those that differ are in `ttir.py`.

On several chips a value is one array of the tensors of all chips (`chips.py`), whose first grid
dims count the chips. `spread.py` and `propagation.py`: how full arrays are divided over chips.

Times (`pricing.py`) come from the work of an op's function, the part of one core, and live values
(`held.py`).
"""
