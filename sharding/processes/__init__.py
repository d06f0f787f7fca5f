"""Calls on which several processes agree, and what they post about themselves.

Where several processes have the devices of a mesh, each call that a user makes outside of JAX's
tracing enters `joint_call` (`agreement.py`; read it first). The processes compare digests of what
they are about to do (layouts, mesh, jaxpr) by one all-gather, and an error in one is raised in all.
Calls that they agreed on are not compared again; data that each process passes for itself is, each
time. Before a jitted function first runs, the text of its lowered module is compared
(`programs.py`).

* `joint.py`, `group.py`, `messages.py`: a call, its processes, and what they exchange
* `elements.py`, `jaxprs.py`: arrays and jaxprs as text that can be compared
* `calls.py`, `watch.py`: calls are numbered, equally in all processes. A thread posts the number
  once a second to JAX's coordination service (`coordination.py`), so that a process that waits
  knows which one is in another call, has ended, or does not answer. It raises an error if it waits
  for an agreement. A program on the devices can't be interrupted: a process that waits in one for
  another prints why and ends.
* `leaving.py`: a process that ends waits for the others, and aborts of JAX become errors
"""
