"""Placement of core grids on JAX devices. Imports `gridlayout`, never `gridlayout.ops`."""
