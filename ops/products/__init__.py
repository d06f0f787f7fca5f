"""Matrix products: the roles of dims, the algorithms, their kernels.

`roles.py` gives each collapsed dim of both operands a role: batch, free or contracted.
`algorithms.py` describes the algorithms; read it first. `choose.py` prices each on every grid of
the devices, with the relayouts of operands and result. `dot_general.py` has the rule.

`gathered.py` gathers the operands, drops their padding (`inputs.py`), multiplies, and packs the
result into tiles; `schedules.py` has the kernels of the others. `divided.py` is the product in the
division that the choices for a whole program request. `bound.py`: what no algorithm can do without.
"""
