"""Checkpoints on Orbax: trees of arrays, restored to any grid, mesh or number of processes."""
