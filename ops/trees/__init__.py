"""Pytrees of arrays: their leaves' layouts, `put`, `relayout`, `zeros_like` and `summary`.

`leaves.py` names the leaves by paths, `layouts.py` finds the layout that is requested for each, and
`arrays.py` places or moves them, once all layouts are found and checked.
"""
