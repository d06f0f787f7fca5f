"""Orbax, imported when it is asked for, and what it has to be told of `GridArray`s.

Orbax's registry of type handlers is public, and takes a handler for a type of one's own. Two of its
functions do not ask the registry, but compare types with a list of their own:

* `StandardCheckpointHandler` refuses what is not in it, or takes `np.asarray` of it, which every
  process would have whole (`_validate_save_state`, `_validate_restore_state`);
* `checkpoint_utils.construct_restore_args` says by type how a leaf is to be restored.

Here alone they are wrapped: they see arrays instead of `GridArray`s, which go past them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import jax
import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.ops.array.grid_array import GridArray
from gridlayout.ops.trees.leaves import is_grid


def orbax(what: str) -> Any:
    """The module `orbax.checkpoint`, which knows `GridArray`s; `LayoutError` without it."""
    try:
        import orbax.checkpoint as ocp
    except ImportError as error:
        raise LayoutError(
            f"{what} needs the package orbax-checkpoint ({error}): install it, or "
            "gridlayout[checkpoint], of which it is a part"
        ) from error
    register(ocp)
    return ocp


@cache
def register(ocp: Any) -> None:
    """Let Orbax save and restore `GridArray`s, by its own API too."""
    from gridlayout.ops.checkpoints.handler import GridArrayHandler

    ocp.type_handlers.register_type_handler(GridArray, GridArrayHandler(), override=True)
    standard = ocp.StandardCheckpointHandler
    for name in ("_validate_save_state", "_validate_restore_state"):
        setattr(standard, name, _past(getattr(standard, name)))
    utils = ocp.checkpoint_utils
    utils.construct_restore_args = _with_grids(utils.construct_restore_args)


def _past(check: Callable[..., Any]) -> Callable[..., Any]:
    """A check of a tree's leaves that `GridArray`s go past."""

    @wraps(check)
    def checked(self: Any, item: Any, *args: Any, **options: Any) -> Any:
        leaves, structure = jax.tree.flatten(item, is_leaf=is_grid)
        if not any(map(is_grid, leaves)):
            return check(self, item, *args, **options)
        # A NumPy scalar array stands for each: a leaf like it, which every check lets through.
        seen = [np.zeros(()) if is_grid(leaf) else leaf for leaf in leaves]
        if item is leaves[0]:  # Orbax takes no lone array as a tree
            return item
        found = check(self, jax.tree.unflatten(structure, seen), *args, **options)
        if found is None:
            return None
        passed = jax.tree.leaves(found)
        both = zip(leaves, passed, strict=True)
        return jax.tree.unflatten(structure, [a if is_grid(a) else b for a, b in both])

    return checked


def _with_grids(construct: Callable[..., Any]) -> Callable[..., Any]:
    """`construct_restore_args` that knows `GridArray`s, and what metadata says of them."""
    from gridlayout.ops.checkpoints.handler import GridArrayMetadata, GridRestoreArgs

    def is_ours(x: Any) -> bool:
        return is_grid(x) or isinstance(x, GridArrayMetadata)

    @wraps(construct)
    def constructed(target: Any, sharding_tree: Any = None, *args: Any, **options: Any) -> Any:
        leaves, structure = jax.tree.flatten(target, is_leaf=is_ours)
        if not any(map(is_ours, leaves)):
            return construct(target, sharding_tree, *args, **options)
        seen = [np.zeros(()) if is_ours(leaf) else leaf for leaf in leaves]
        shardings = sharding_tree
        if sharding_tree is not None:
            shardings = jax.tree.map(
                lambda leaf, each: None if is_ours(leaf) else each,
                *(target, sharding_tree),
                is_leaf=is_ours,
            )
        made = construct(jax.tree.unflatten(structure, seen), shardings, *args, **options)
        both = zip(leaves, jax.tree.leaves(made), strict=True)
        return jax.tree.unflatten(
            structure,
            [
                GridRestoreArgs.of(a) if is_grid(a) else GridRestoreArgs() if is_ours(a) else b
                for a, b in both
            ],
        )

    return constructed
