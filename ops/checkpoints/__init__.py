"""Checkpoints on Orbax: trees of arrays, restored to any grid, mesh or number of processes.

A checkpoint is one of Orbax. `saving.py` and `restoring.py` are `gl.save` and `gl.restore`.
`handler.py` tells Orbax how to write a `GridArray`: its storage like any array, and the text of its
layout beside it (`record.py`). Reading asks for boxes of the logical array for each device
(`reading.py`, `stored.py`), whatever layout and mesh the array had. `leaves.py` encodes the leaves
of a tree, `contents.py` reads them.

`files.py` computes digests, which detect damaged files. `replacing.py` renames a complete
checkpoint to its path. `orbax.py` is the only module that uses what is not public of Orbax.
"""
