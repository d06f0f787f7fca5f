"""Gather, scatter, dynamic slice and dynamic update slice.

Slices are read and written in place (`in_place.py`), or with the indexed dims unsharded, or of
replicated operands, whichever takes less time (`indexing.py`, `slicing.py`); or as the plan of a
program requests (`divided.py`). `slice_dims.py` and `logical_indices.py` have what they share,
`records.py` the records.
"""
