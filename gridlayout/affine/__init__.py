"""Affine maps: expressions, maps, their text, and exact analyses such as ranges and inverses.

An `AffineMap` takes the index of an element to another index, as in MLIR. Nothing here knows
layouts. Read `expressions.py` first: what an expression is and how it simplifies. `map.py` is on
top and the only module that knows `AffineMap`; the others work on tuples of expressions.

* `parsing.py`, `printing.py`, `joins.py`: the text of MLIR, with the join operator of tt-mlir
* `evaluation.py`: one straight-line program for ints, NumPy and JAX
* `normal_form.py`: expressions over a box of indices, of which `search.py` finds exact ranges
* `elimination.py`, `solver.py`: inverses, collisions, preimages
* `integer_set.py`: where an inverse holds
"""
