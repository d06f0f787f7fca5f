"""Compiled TTNN programs, run: one function an op, every value in the layout that its type says."""
