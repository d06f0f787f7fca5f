"""Registers support for `GridArray`s in libraries, imported before this one or later."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple


class _Library(NamedTuple):
    """How to register support for `GridArray`s in a library.

    last: a name that its module has only once its import is complete. support: the module whose
    `register` is called with it. failure: what does not work if that fails, for the warning.
    """

    last: str
    support: str
    failure: str


_LIBRARIES = {
    # Without it, checks of lifted functions find nothing.
    "jax.experimental.checkify": _Library(
        "user_checks",
        "gridlayout.ops.libraries.checkify",
        "checkify.checkify finds no errors in functions that gl.on_grid lifts: call it inside, "
        "gl.on_grid(checkify.checkify(fn))",
    ),
    # Without it, StandardCheckpointer calls np.asarray of a GridArray, which gathers it in every
    # process, and does not restore GridArrays.
    "orbax.checkpoint": _Library(
        "type_handlers",
        "gridlayout.ops.checkpoints.orbax",
        "neither its own API nor gl.save and gl.restore can save them",
    ),
    # Without it, a GridArray is no array for filters: filter_grad finds nothing to differentiate.
    "equinox": _Library(
        "filter_vmap",
        "gridlayout.ops.libraries.equinox",
        "its filters ignore them, and filter_grad returns None for them: use jax.grad, jax.jit "
        "and jax.vmap around gl.on_grid, or its filters inside",
    ),
}


def register_libraries() -> None:
    """Register support in each library: now if it is imported, else when it is.

    No library is imported for this.
    """
    for name, library in _LIBRARIES.items():
        if hasattr(sys.modules.get(name), library.last):
            _register(sys.modules[name])
        else:
            sys.meta_path.insert(0, _Finder(name))


def _register(module: ModuleType) -> None:
    name = module.__name__
    library = _LIBRARIES[name]
    try:
        import_module(library.support).register(module)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        warnings.warn(
            f"this version of {name} can't support GridArrays ({error!r}): {library.failure}",
            RuntimeWarning,
            stacklevel=2,
        )


class _Finder(MetaPathFinder):
    """Finds one library by the finders after it, until the library has been imported.

    Python also asks finders whether a library is installed, without importing it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        # Those before it have been asked. A second copy of this package has such finders too.
        at = next((k for k, each in enumerate(sys.meta_path) if each is self), -1)
        others = (getattr(each, "find_spec", None) for each in sys.meta_path[at + 1 :])
        found = (find(name, path, target) for find in others if find is not None)
        spec = next(filter(None, found), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _LoadThenRegister(spec.loader, self)
        return spec


class _LoadThenRegister(Loader):
    """Loads a library by another loader, then registers support for `GridArray`s in it."""

    def __init__(self, loader: Loader, finder: _Finder) -> None:
        self.loader, self.finder = loader, finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
            _register(module)
