"""Pytrees of arrays: their leaves' layouts, `put`, `relayout`, `zeros_like` and `summary`."""
