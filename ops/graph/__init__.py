"""A jaxpr as nodes and numbered values, and what follows from these alone.

`Graph.of` is the one walk over a jaxpr's equations, with calls inlined; `graph.inlined` inlines the
bodies of loops too, for choices and prices. A node has its equation, the record of its primitive
and its factors (`node.py`). Planner, choices, plans and keys read the graph. `consumers.py`: to
which layout a value is relaid out later. `next_values.py`: which results are the next values of
operands, as in a training step. `kernels.py`: what is fused, and read from memory. `simplified.py`:
one equation for several. `digest.py`: by which a plan recognises its program.
"""
