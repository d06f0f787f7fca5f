"""Slices at indices, and slices that start where numbers say: taken, and written."""
