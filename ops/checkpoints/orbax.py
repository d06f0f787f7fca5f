"""The import of Orbax on demand, and the registration of `GridArray`s with it.

Orbax's registry of type handlers is public, and takes handlers for users' types. Two other
parts of Orbax do not use it, but compare types with a fixed list:

* `StandardCheckpointHandler` refuses other types, or saves `np.asarray` of them, which would be
  unsharded in every process (`_validate_save_state`, `_validate_restore_state`).
* `checkpoint_utils.construct_restore_args` decides by type how to restore a leaf.

This module wraps these functions, which are not public. The wrappers replace `GridArray`s in the
arguments by plain arrays, and put them back in the results.
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
    """Import and return `orbax.checkpoint` with `GridArray`s registered.

    `LayoutError` if it is not installed. what: the caller's name, for the error.
    """
    try:
        import orbax.checkpoint as ocp
    except ImportError as error:
        raise LayoutError(
            f"{what} needs the package orbax-checkpoint ({error}): install it, for example by "
            "installing gridlayout[checkpoint]"
        ) from error
    register(ocp)
    return ocp


@cache
def register(ocp: Any) -> None:
    """Register `GridArray`s with Orbax, so that its own API saves and restores them."""
    from gridlayout.ops.checkpoints.handler import GridArrayHandler

    ocp.type_handlers.register_type_handler(GridArray, GridArrayHandler(), override=True)
    standard = ocp.StandardCheckpointHandler
    for name in ("_validate_save_state", "_validate_restore_state"):
        setattr(standard, name, _accepting_grids(getattr(standard, name)))
    utils = ocp.checkpoint_utils
    utils.construct_restore_args = _constructing_for_grids(utils.construct_restore_args)


def _accepting_grids(check: Callable[..., Any]) -> Callable[..., Any]:
    """Return Orbax's check of a tree's leaves, changed to accept `GridArray`s."""

    @wraps(check)
    def checked(self: Any, item: Any, *args: Any, **options: Any) -> Any:
        leaves, structure = jax.tree.flatten(item, is_leaf=is_grid)
        if not any(map(is_grid, leaves)):
            return check(self, item, *args, **options)
        # Replace each GridArray by a NumPy scalar, which passes every check.
        plain = [np.zeros(()) if is_grid(leaf) else leaf for leaf in leaves]
        if item is leaves[0]:  # Orbax refuses an array as a tree
            return item
        found = check(self, jax.tree.unflatten(structure, plain), *args, **options)
        if found is None:
            return None
        passed = jax.tree.leaves(found)
        both = zip(leaves, passed, strict=True)
        return jax.tree.unflatten(structure, [a if is_grid(a) else b for a, b in both])

    return checked


def _constructing_for_grids(construct: Callable[..., Any]) -> Callable[..., Any]:
    """Return `construct_restore_args`, changed to accept `GridArray`s and their metadata."""
    from gridlayout.ops.checkpoints.handler import GridArrayMetadata, GridRestoreArgs

    def is_ours(x: Any) -> bool:
        return is_grid(x) or isinstance(x, GridArrayMetadata)

    @wraps(construct)
    def constructed(target: Any, sharding_tree: Any = None, *args: Any, **options: Any) -> Any:
        leaves, structure = jax.tree.flatten(target, is_leaf=is_ours)
        if not any(map(is_ours, leaves)):
            return construct(target, sharding_tree, *args, **options)
        plain = [np.zeros(()) if is_ours(leaf) else leaf for leaf in leaves]
        shardings = sharding_tree
        if sharding_tree is not None:
            shardings = jax.tree.map(
                lambda leaf, each: None if is_ours(leaf) else each,
                *(target, sharding_tree),
                is_leaf=is_ours,
            )
        made = construct(jax.tree.unflatten(structure, plain), shardings, *args, **options)
        both = zip(leaves, jax.tree.leaves(made), strict=True)
        return jax.tree.unflatten(
            structure,
            [
                GridRestoreArgs.of(a) if is_grid(a) else GridRestoreArgs() if is_ours(a) else b
                for a, b in both
            ],
        )

    return constructed
