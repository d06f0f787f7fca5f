"""Jit-compiled movement and computation on laid-out arrays."""

# Gives GridArray its operators, whichever module of this floor is imported first.
from gridlayout.ops.checkpoints.imported import tell_orbax
from gridlayout.ops.user import operators as operators

tell_orbax()
