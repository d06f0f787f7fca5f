"""Jit-compiled movement and computation on laid-out arrays.

A function of the user's becomes a jaxpr (`interpret/`) and this a graph (`graph/`), each node of it
a decision by the rule of its primitive (`primitives/`, `products/`), and the decisions one program
(`programs/`), which runs in one `shard_map`. `choose/` and `planning/` choose for all nodes
together, with `solver/`. `moves/` and `array/` are what `put`, `relayout` and all decisions are
made of. Read `decisions/` first.
"""

# Gives GridArray its operators, whichever module of this floor is imported first.
from gridlayout.ops.libraries.imported import register_libraries
from gridlayout.ops.user import operators as operators

register_libraries()
