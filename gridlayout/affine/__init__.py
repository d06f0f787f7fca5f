"""Affine maps: expressions, maps, their text, and exact analyses such as ranges and inverses."""
