"""Public names whose modules are imported when the name is first asked for.

A front door lists them by module. So describing a layout does not start JAX, and `import
gridlayout` reads only what most programs need.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def by_name(listed: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name, from the names of each module.

    >>> by_name({"text": "parse", "ops.moves.packing": "pack unpack"})["unpack"]
    'ops.moves.packing'
    """
    return {name: module for module, names in listed.items() for name in names.split()}


def load(module: str, name: str | None = None) -> Any:
    """Return a name of a module of `gridlayout`, or the module itself."""
    if module.startswith("ops."):
        # Waits until another thread that imports the floor has given GridArray its operators.
        import_module("gridlayout.ops")
    found = import_module(f"gridlayout.{module}")
    return found if name is None else getattr(found, name)
