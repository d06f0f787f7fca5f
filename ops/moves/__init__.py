"""Movement of data on one device of a mesh: packing, padding, relayouts.

`packing.py` runs a layout's array program: it is `gl.pack`. `relayout.py` offers all ways to move a
device's part from one layout to another, with their collectives, and chooses the cheapest: along
the exchange of the two layouts (`exchanged.py`), through a replica, or in pieces (`pieces.py`,
`ends.py`). Where bytes decide (no latencies, equal links) that is the one with the fewest
collectives that receives little more than has to move. A replicated array is in a layout of one
core on every device, so laying out and gathering are moves too.

A move is a generator that yields its collectives (`sends.py`), so that independent ones can be
joined. `lazy_view.py` delays reshapes and transposes, `joined.py` puts arrays side by side.
`padding.py` masks, `spaces.py` copies between memories of host and devices, `workspace.py` and
`workspaces.py` state the buffers that are held meanwhile. `jitted.py` is `jax.jit` for functions of
layouts.
"""
