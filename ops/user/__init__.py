"""The functions that users call: lifted `jax.numpy`, `jax.nn` and `jax.scipy`, `ring_attention`.

They are written with `gl.on_grid` and `gl.map_shards`. `lifted.py` lifts a library's functions
(`numpy.py`, `nn.py`, `scipy.py`), and `operators.py` gives `GridArray` its operators and methods.
`updates.py` is `x.at[...]`. `slices.py` streams a tensor through a memory space that is too small.
"""
