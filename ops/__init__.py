"""Jit-compiled movement and computation on laid-out arrays."""

# Gives GridArray its operators, whichever module of this floor is imported first.
from gridlayout.ops.libraries.imported import register_libraries
from gridlayout.ops.user import operators as operators

register_libraries()
