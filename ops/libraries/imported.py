"""Libraries are told of `GridArray`s when a program imports them, before this library or after."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import NamedTuple


class _Library(NamedTuple):
    """What there is to do for a library.

    last: a name that its module has once it is imported. told_by: the module whose `register`
    takes it. else_: what does not work where that fails.
    """

    last: str
    told_by: str
    else_: str


_LIBRARIES = {
    # Else its StandardCheckpointer would take np.asarray of a GridArray, whole in every process,
    # and restore none.
    "orbax.checkpoint": _Library(
        "type_handlers",
        "gridlayout.ops.checkpoints.orbax",
        "its own API saves none of them, nor do gl.save and gl.restore",
    ),
    # Else its filters take a GridArray for no array: filter_grad finds nothing to differentiate.
    "equinox": _Library(
        "filter_vmap",
        "gridlayout.ops.libraries.equinox",
        "its filters pass them over, and filter_grad gives None for them: use jax.grad, jax.jit "
        "and jax.vmap around gl.on_grid, or its filters inside",
    ),
}


def tell_libraries() -> None:
    """Tell each now if it is imported, else once it is; nothing imports it for that."""
    for name, library in _LIBRARIES.items():
        if hasattr(sys.modules.get(name), library.last):
            _tell(sys.modules[name])
        else:
            sys.meta_path.insert(0, _Finder(name))


def _tell(module: ModuleType) -> None:
    name = module.__name__
    library = _LIBRARIES[name]
    try:
        import_module(library.told_by).register(module)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        warnings.warn(
            f"this version of {name} can't be told of GridArrays ({error!r}): {library.else_}",
            RuntimeWarning,
            stacklevel=2,
        )


class _Finder(MetaPathFinder):
    """Finds a library as every other finder does, and goes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenTold(spec.loader)
        return spec


class _ThenTold(Loader):
    """Another loader, after which the library is told."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        _tell(module)
