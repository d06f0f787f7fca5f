"""Affine maps: expressions, maps, their text, and what can be found out about them exactly."""
