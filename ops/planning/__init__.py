"""Plans of whole programs for a machine, and simulations of programs: `gl.plan`.

`making.py` has `gl.plan` and `gl.simulate`; read it first. A function is traced for the machine's
mesh (`traced.py`), the best choices are searched until a time limit (`searching.py`; a `Clock` ends
the search, and so does an interrupt) among those of devices (`on_devices.py`) or of cores
(`on_cores.py`), and the program of these choices is built like any other. Its
report is the price: a `Simulation`. A `Plan` is the layouts with that price, the bound and the
alternatives.

On chips of several cores each core is a device, and `spaces.py` decides which values are in the
cores' L1, at which addresses, and which in DRAM. `events.py`: traces and timelines. `saved.py`:
plans in files. `scaled.py`, `scaling.py`: `gl.scaling`. `comparison.py`: times of plans and
compiled programs side by side.
"""
