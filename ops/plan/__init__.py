"""Choosing the divisions of all values of a program at once, on the machine at hand."""
