"""Meshes of devices, and the placement of virtual core grids on them.

`placement.py` has the default rule: mesh axes are split into prime factors, which are assigned to
grid dims so that many devices are used. `core_map.py` places a grid by a map that the user states.
`placements.py` has both, for one mesh. A stated map may give a grid no placement; then the library
proposes another grid for a result, or computes on one that the default rule places (`inner`) and
relays the result out.

`devices.py`, `emulate.py`: which devices make a mesh, and copies on all of them. `description.py`:
what each device stores of an array. `mesh_in_use.py`: programs while the user has set another mesh.
"""
