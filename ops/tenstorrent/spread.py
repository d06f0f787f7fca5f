"""`Spread`: how chips' tensors are parts of a full array: for each dim, the axes that divide it.

A program's text states what each chip holds, but not of which full array. For an argument, this is
inferred from the sizes of the given array; from there it is propagated through ops to the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from gridlayout.arguments import Shape, as_items, as_shape
from gridlayout.errors import LayoutError
from gridlayout.tenstorrent.tensor_type import TensorType


class Cut(NamedTuple):
    """A mesh axis that divides runs of `extent` elements of a dim; there are `before` such runs.

    For example, dims of 2 and 25 are joined to one of 50; if the second was divided, before is 2
    and extent is 25.
    """

    axis: int
    before: int
    extent: int


# The cuts of each dim of a chip's tensor, major first.
Spread = tuple[tuple[Cut, ...], ...]


def spread_of(whole: Shape, local: Shape, mesh: Shape, what: str) -> Spread:
    """Return how an array of shape `whole` is divided such that each chip has shape `local`.

    >>> spread_of((8, 6), (2, 6), (2, 4), "argument %arg0")
    ((Cut(axis=1, before=1, extent=2),), ())
    """
    if len(whole) != len(local) or any(w % max(1, n) for w, n in zip(whole, local, strict=False)):
        raise LayoutError(f"{what} has shape {whole}; each of {mesh} chips holds {local} of it")
    ratios = [w // n if n else 1 for w, n in zip(whole, local, strict=True)]
    ways = _ways(ratios, tuple(range(len(mesh))), mesh)
    if len(ways) != 1:
        word = "no way" if not ways else "more than one way"
        raise LayoutError(
            f"{what} has shape {whole}; there is {word} in which each chip of {mesh} holds {local} "
            "of it: give in_specs, for each array the mesh axes that divide each dim"
        )
    return cuts_of(ways[0], local)


def cuts_of(axes: Sequence[Sequence[int]], local: Shape) -> Spread:
    """Return the cuts of a chip's tensor by mesh axes, dim by dim."""
    pairs = zip(axes, local, strict=True)
    return tuple(tuple(Cut(axis, 1, n) for axis in some) for some, n in pairs)


def _ways(ratios: Sequence[int], free: Shape, mesh: Shape) -> list[tuple[Shape, ...]]:
    if not ratios:
        return [()]
    found = []
    for count in range(len(free) + 1):
        for axes in combinations([a for a in free if mesh[a] > 1], count):
            if prod(mesh[a] for a in axes) == ratios[0]:
                rest = tuple(a for a in free if a not in axes)
                found += [(axes, *way) for way in _ways(ratios[1:], rest, mesh)]
    return found


def joined(x: Any, spread: Spread, mesh: Shape) -> Any:
    """Return the full array of all chips' tensors; of copies, the first one is used."""
    cut = [entry.axis for entries in spread for entry in entries]
    rank = len(mesh)
    x = x[tuple(slice(None) if a in cut else slice(0, 1) for a in range(rank))]
    order = [a for a in range(rank) if a not in cut]
    sizes, shape = list(x.shape[:rank]), []
    for n, entries in zip(x.shape[rank:], spread, strict=True):
        places = sorted({1, *(entry.before for entry in entries)})
        for place, after in zip(places, [*places[1:], n], strict=True):
            order += [entry.axis for entry in entries if entry.before == place]
            order.append(len(sizes))
            sizes.append(after // place)
        shape.append(n * prod(mesh[entry.axis] for entry in entries))
    return jnp.reshape(jnp.transpose(jnp.reshape(x, sizes), order), shape)


def divided(x: Any, spread: Spread, local: Shape, mesh: Shape, what: str) -> Any:
    """Return the full array as an array of all chips' tensors, of shape (mesh, local).

    A `ShapeDtypeStruct` gives one.
    """
    if isinstance(x, jax.ShapeDtypeStruct):
        return jax.eval_shape(lambda x: divided(x, spread, local, mesh, what), x)
    ratios = [prod(mesh[cut.axis] for cut in cuts) for cuts in spread]
    if x.shape != tuple(n * ratio for n, ratio in zip(local, ratios, strict=True)):
        raise LayoutError(f"{what} has shape {x.shape}; each chip holds {local}, divided {ratios}")
    sizes: list[int] = []
    places: dict[int, int] = {}
    rest = []
    for n, cuts in zip(x.shape, spread, strict=True):
        for entry in cuts:
            places[entry.axis] = len(sizes)
            sizes.append(mesh[entry.axis])
        rest.append(len(sizes))
        sizes.append(n // prod(mesh[entry.axis] for entry in cuts))
    missing = [axis for axis in range(len(mesh)) if axis not in places]
    made = jnp.reshape(x, (*(1 for _ in missing), *sizes))
    at = {axis: k for k, axis in enumerate(missing)}
    at |= {axis: place + len(missing) for axis, place in places.items()}
    order = [at[axis] for axis in range(len(mesh))] + [k + len(missing) for k in rest]
    made = jnp.transpose(made, order)
    return jnp.broadcast_to(made, (*mesh, *made.shape[len(mesh) :]))


def read_specs(
    specs: Any, kinds: Sequence[TensorType], mesh: Shape, what: str
) -> tuple[Spread, ...] | None:
    """Return what users state for arguments or results: for each, and each dim, the mesh axes."""
    if specs is None:
        return None
    arrays = as_items(specs, what, "one for each array")
    of_dim = f"the mesh axes of a dim in {what}"
    found = [[as_shape(axes, of_dim) for axes in as_items(one, what, "dims")] for one in arrays]
    if len(found) != len(kinds):
        raise LayoutError(f"{what} has {len(found)} arrays; the program has {len(kinds)}")
    for one, kind in zip(found, kinds, strict=True):
        used = [axis for axes in one for axis in axes]
        is_once = len(set(used)) == len(used) and all(axis < len(mesh) for axis in used)
        if len(one) != len(kind.shape) or not is_once:
            raise LayoutError(
                f"{what} {one} must state, for each dim of {kind.shape}, the axes of the mesh "
                f"{mesh} that divide it, each axis once"
            )
    return tuple(cuts_of(one, kind.shape) for one, kind in zip(found, kinds, strict=True))
