"""Comparison of programs: their costs, and their values matched with each other."""
