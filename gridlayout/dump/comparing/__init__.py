"""Comparison of programs: their costs, and their values matched with each other.

`costs.py` reduces an explanation to the `Costs` that are compared, `matching.py` finds the same
value in several dumps of one program, and `comparison.py` is the result.
"""
