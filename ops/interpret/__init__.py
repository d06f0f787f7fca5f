"""Any JAX function on the grid: its jaxpr's decisions as one program, and its derivatives.

A call of `gl.on_grid(f)` is split into arrays and a signature: layouts, device grid, and leaves
that are not arrays, which are static. The function is traced on logical shapes, once per signature.
Its jaxpr and the specs of its operands make a `GridCall`, one primitive to JAX, whose derivative,
transpose and vmap are calls of other jaxprs, planned like any other. So padding takes no part in
derivatives.

The planner walks the jaxpr's `Graph`. It asks for one decision per node (`decide`, which caches
them by op, specs and `Env`), and appends it to a `Program`. Nothing runs, and nothing is traced
again. If the choices are made for the whole graph, a function of few products is also planned node
by node, with more
algorithms for each product, and the cheaper program runs. Calls with concrete arrays are compiled
as a function of storages. A new function with the jaxpr of an earlier one reuses its program.

A result that is the next value of an operand, such as new parameters, is placed where that is.
"""
