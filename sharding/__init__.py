"""Placement of core grids on JAX devices. Imports `gridlayout`, never `gridlayout.ops`.

A *placement* states which mesh axes divide which dim of a grid of cores. Read `device_grid.py`
first: a `DeviceGrid` is a mesh, its placements and its machine. The grid dims are the leading dims
of the stored array, so a placement is a `NamedSharding`. A mesh of names and sizes alone, without
devices, is enough to place grids, to count what is exchanged and to price it.
"""
