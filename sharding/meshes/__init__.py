"""Meshes of devices, and the placement of virtual core grids on them."""
