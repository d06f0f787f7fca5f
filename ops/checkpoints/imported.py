"""Orbax is told of `GridArray`s when a program imports it, before this library or after."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_ORBAX = "orbax.checkpoint"


def tell_orbax() -> None:
    """Tell it now if it is imported, else once it is; nothing imports it for that.

    Without this Orbax's `StandardCheckpointer` would take `np.asarray` of a `GridArray`, whole in
    every process, and restore none.
    """
    if hasattr(sys.modules.get(_ORBAX), "type_handlers"):
        _tell(sys.modules[_ORBAX])
    else:
        sys.meta_path.insert(0, _Finder())


def _tell(module: ModuleType) -> None:
    try:
        import_module("gridlayout.ops.checkpoints.orbax").register(module)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        warnings.warn(
            f"this version of orbax-checkpoint can't be told of GridArrays ({error!r}): its own "
            "API saves none of them, nor do gl.save and gl.restore",
            RuntimeWarning,
            stacklevel=2,
        )


class _Finder(MetaPathFinder):
    """Finds Orbax as every other finder does, and goes."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _ORBAX or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenTold(spec.loader)
        return spec


class _ThenTold(Loader):
    """Another loader, after which Orbax is told."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        _tell(module)
