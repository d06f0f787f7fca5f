"""`GridArray`: conversion of data to it, relayouts, and functions of its shards.

A `GridArray` (`grid_array.py`) is a *storage*, one `jax.Array`, with its layout and device grid. To
JAX it is one value of the type in `grid_type.py`, which lowers to the storage
(`storage_primitives.py`).

* `placing.py`, `put_local.py`, `logical.py`, `in_parts.py`: from and to logical arrays. Large data
  on the host is packed part by part, as the cores of a device hold a few boxes of it. Arrays that
  are sharded already are relaid out.
* `relayout.py`, `staged.py`, `across.py`: to another layout, block by block where parts are large,
  or to another mesh. `relayout_plan.py`: what that moves
* `policy.py`: the layout of a result where nothing else decides. `fitting.py`: how much memory a
  result may take, and layouts that fit
* `map_shards.py`, `cores.py`: a user's function of one core's buffer, with collectives over cores
* `shown.py`: what `print` and notebooks show. `checked.py`: storages while JAX checks numbers
"""
