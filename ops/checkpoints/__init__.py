"""Checkpoints on Orbax: trees of arrays in files, and back onto any grid, mesh or process count."""
