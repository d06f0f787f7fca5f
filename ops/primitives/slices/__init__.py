"""Gather, scatter, dynamic slice and dynamic update slice.

Slices are read and written in place (`in_place.py`), by the devices that have them in their blocks,
also as the plan of a program requests (`served.py`), or with the indexed dims unsharded, or of
replicated operands (`indexing.py`, `slicing.py`), whichever takes less time. `divided.py`,
`slice_dims.py` and `logical_indices.py` have what they share, `records.py` the records.
"""
