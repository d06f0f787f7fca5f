"""Any JAX function on the grid: its jaxpr's decisions as one program, and its derivatives."""
