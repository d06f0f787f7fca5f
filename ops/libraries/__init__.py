"""Support for `GridArray`s in other libraries, which is registered when they are imported.

`imported.py` waits for the import of Orbax (its handler is in `gridlayout.ops.checkpoints`), of
Equinox (`equinox.py`: filters that test for `jax.Array`) and of `checkify` (`checkify.py`: its
table of rules, which is not public). No library is imported for this.
"""
