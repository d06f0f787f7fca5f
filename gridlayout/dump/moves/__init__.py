"""Data movement in a dump: relayouts, collectives, and tensors sharded over devices.

`move.py` compares the layouts before and after an op; `collectives.py` and `shardings.py` read what
is sent between devices and how tensors are divided, over the meshes that the dump states
(`meshes.py`).
"""
