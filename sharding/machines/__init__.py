"""Machines that price programs: chips, links, meshes, and measured figures.

`Machine` (`machine.py`) is the one source of prices: of every choice, report, plan and simulation.
It adds the times of collectives (`sending.py`) and of work on a device (`computing.py`). Times are
in seconds, sizes in bytes.

* `chips.py`: rates and links of known chips, each with its source. `default_machine.py`: the
  machine of JAX's devices. `measure.py`: measured times. `record.py`: a machine in a file
* `timing.py`: formulas of collectives along links. `topology.py`: links within and between hosts
"""
