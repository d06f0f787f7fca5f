"""Rules: how the decisions of each primitive are made, one module per kind of primitive.

`table.py` has the `Record` of every primitive. A new primitive is a record in the module of its
kind; users call `gl.def_rule` (`user_rules.py`). Read `elementwise.py`, then `reductions.py`: they
apply the primitive to each device's part of the storage, and account for padding.

* Whole dims: `along.py` (sorts, scans, decompositions, ...) has one rule that follows from the
  factors of a primitive. All dims but those that are through are unsharded first (`unsharded.py`).
* Parts of arrays: `shapes.py` finds a layout of the same data in the new shape. `parts.py` cuts and
  joins: a slice stays on its devices, in a layout of its own, and is relaid out. `slices/`: slices
  at indices.
* Neighbours: `convolution.py`, `pooling.py` work on blocks, with a halo exchange (`windows.py`).
* One vector or matrix, where no dim is left to divide: `vectors.py`, `sorting.py`, `tall.py`,
  `factorizations.py` (by `panels.py`), `substitution.py`.
* Values of indices alone: `indices.py`, `keys.py`, `random.py`. They are deferred.
* `control.py`: loops and branches. `composed.py`: a primitive without a rule that is a JAX function
  is planned as the jaxpr of that function.

Any other primitive falls back: every device computes it on unsharded operands, and the report says
so.
"""
