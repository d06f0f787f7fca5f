"""`Contents`: the leaves of a checkpoint. Each array is opened when it is first read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from orbax.checkpoint import metadata, type_handlers

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.ops.checkpoints.files import DIGESTS
from gridlayout.ops.checkpoints.handler import GridArrayMetadata, open_array
from gridlayout.ops.checkpoints.leaves import Kind, name_of
from gridlayout.ops.checkpoints.orbax import orbax
from gridlayout.ops.checkpoints.record import LayoutRecord
from gridlayout.ops.checkpoints.saving import ROOT, VERSION
from gridlayout.ops.checkpoints.stored import StoredArray
from gridlayout.ops.trees.leaves import leaves_of

_NUMBERS = {"bool": bool, "int": int, "float": float, "complex": complex}


@dataclass(frozen=True)
class SavedLeaf:
    """A leaf of a checkpoint.

    kind: the leaf's kind as `gl.save` recorded it; empty if Orbax's own API saved the checkpoint.
    """

    contents: Contents
    name: str
    found: Any
    kind: Kind

    @property
    def record(self) -> LayoutRecord | None:
        """The layout record of a `GridArray`, else None."""
        return self.found.record if isinstance(self.found, GridArrayMetadata) else None

    @property
    def is_text(self) -> bool:
        """Whether the leaf is a text."""
        return isinstance(self.found, metadata.StringMetadata)

    @property
    def is_key(self) -> bool:
        """Whether the leaf holds random keys."""
        return bool(self.kind.get("kind") == "key")

    @property
    def is_number(self) -> bool:
        """Whether the leaf was a Python number."""
        kind = self.kind.get("kind")
        is_scalar = isinstance(self.found, metadata.ScalarMetadata)
        return kind in _NUMBERS if kind else is_scalar

    @property
    def shape(self) -> Shape:
        """The logical shape; of random keys, that of their data."""
        if "shape" in self.kind:
            return tuple(self.kind["shape"])
        return tuple(getattr(self.found, "shape", ()) or ())

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return np.dtype(self.kind["dtype"]) if "dtype" in self.kind else np.dtype(self.found.dtype)

    @property
    def struct(self) -> Any:
        """The shape and dtype of an array, which layout rules and patterns take; 0 for others."""
        if self.is_text or self.is_key or self.is_number:
            return 0
        return jax.ShapeDtypeStruct(self.shape, self.dtype)

    @cached_property
    def stored(self) -> StoredArray | None:
        """The opened array; None if it has no elements."""
        if "shape" in self.kind:
            return None
        each = self.contents
        made = open_array(each.folder, self.name, self.record, each.use_ocdbt, each.use_zarr3)
        if made is not None and "dtype" in self.kind:
            made.dtype = self.dtype
        return made

    def value(self) -> Any:
        """Read the leaf as a text, a Python number, or a NumPy array of all elements."""
        if self.is_text:
            return self.contents.texts[self.name]
        if self.stored is None:
            return np.zeros(self.shape, self.dtype)
        found = self.stored.read(tuple((0, n) for n in self.shape))
        if self.is_number:
            return _NUMBERS.get(self.kind.get("kind", ""), lambda x: x)(found.item())
        return found[()] if self.kind.get("kind") == "scalar" else found

    def keys(self, implementation: str | None = None) -> jax.Array:
        """Return random keys from the saved key data."""
        name = implementation or self.kind.get("implementation")
        return jax.random.wrap_key_data(jnp.asarray(self.value()), impl=name)


class Contents:
    """The leaves of a checkpoint by name, and their tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            found = self._handler.metadata(_path(folder))
            self.use_ocdbt = bool(type_handlers.is_ocdbt_checkpoint(_path(folder)))
            self.use_zarr3 = bool(found.use_zarr3)
            own = (found.custom_metadata or {}).get("gridlayout")
            if own is not None and own["version"] != VERSION:
                raise LayoutError(
                    f"{str(folder)!r} has format version {own['version']}, and this library reads "
                    f"{VERSION}"
                )
            kinds = {} if own is None else own["kinds"]
            self.by_gridlayout = own is not None
            if self.by_gridlayout and not (folder / DIGESTS).exists():
                raise LayoutError(f"{str(folder / DIGESTS)!r} is missing")
            self.tree: Any = found.tree
            self._is_leaf = own is not None and bool(own["is_leaf"])
            if self._is_leaf:
                self.tree, kinds = self.tree[ROOT], {ROOT: kinds[""]}
            self.saved = self._saved(kinds)
        except LayoutError:
            raise
        except Exception as error:  # of Orbax, TensorStore or JSON, or in using their results
            raise LayoutError(
                f"{str(folder)!r} is not a checkpoint, or a file of it is damaged: {error}"
            ) from error

    def _saved(self, kinds: Mapping[str, Kind]) -> dict[str, SavedLeaf]:
        found = {}
        for leaf in leaves_of(self.tree)[0]:
            name = ROOT if self._is_leaf else name_of(leaf.keys)
            if isinstance(leaf.value, metadata.Metadata):
                found[name_of(leaf.keys)] = SavedLeaf(self, name, leaf.value, kinds.get(name, {}))
        return found

    def below(self, keys: Sequence[str]) -> Any:
        """Return the tree at a path, in dicts and lists; 0 where there is none."""
        found = self.tree
        for key in keys:
            if isinstance(found, (list, tuple)) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, Mapping) and key in found:
                found = found[key]
            else:
                return 0
        return found

    @property
    def _handler(self) -> Any:
        return orbax("gl.restore").PyTreeCheckpointHandler()

    @cached_property
    def texts(self) -> dict[str, str]:
        """The text leaves by name."""
        ocp = orbax("gl.restore")
        names = {each.name for each in self.saved.values() if each.is_text}
        whole = {ROOT: self.tree} if self._is_leaf else self.tree
        leaves, structure = leaves_of(whole)
        item = ["" if name_of(leaf.keys) in names else ocp.PLACEHOLDER for leaf in leaves]
        found = self._handler.restore(
            _path(self.folder), args=ocp.args.PyTreeRestore(jax.tree.unflatten(structure, item))
        )
        return {name_of(leaf.keys): leaf.value for leaf in leaves_of(found)[0]}


def _path(folder: Path) -> Any:
    from etils import epath

    return epath.Path(folder)
