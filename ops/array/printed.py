"""A `GridArray` as `print` shows it: its values as NumPy's are, and its layout in one line."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import jax
import numpy as np

from gridlayout.ops.array.in_parts import Held

# Dims of an array whose corners are read: it has two to the power of that many.
_MOST_DIMS = 8


def printed(x: Any) -> str:
    """Return the values of a `GridArray`, shortened as NumPy's are, and its repr.

    Of an array with more elements than `np.get_printoptions()["threshold"]`, only the edges that
    are shown are read. Nothing is sent: an array over several processes, one that is stacked and
    one without data are shown as their repr alone.
    """
    storage, shape = x.storage, x.shape
    is_plain = isinstance(storage, np.ndarray)
    is_here = is_plain or (isinstance(storage, jax.Array) and storage.is_fully_addressable)
    if not is_here or storage.ndim != len(x.layout.physical_shape) or len(shape) > _MOST_DIMS:
        return repr(x)
    options = np.get_printoptions()
    if is_plain or prod(shape) <= options["threshold"]:
        return f"{np.asarray(x)}\n{x!r}"
    edges = _edges(Held(storage, x.layout, x.device), shape, options["edgeitems"])
    return f"{np.array2string(edges, threshold=0)}\n{x!r}"


def _edges(held: Held, shape: tuple[int, ...], count: int) -> np.ndarray[Any, Any]:
    """Return an array that prints as that of the full shape: of long dims, only the edges.

    count: the items at each edge of a dim that are shown.
    """
    # For each dim, pairs of an interval to read, and the first position that it is written to.
    parts = [
        [((0, count), 0), ((n - count, n), count + 1)] if n > 2 * count + 1 else [((0, n), 0)]
        for n in shape
    ]
    found = np.zeros([min(n, 2 * count + 1) for n in shape], held.layout.dtype)
    for each in product(*parts):
        into = tuple(slice(start, start + high - low) for (low, high), start in each)
        found[into] = held.read(tuple(interval for interval, _ in each))
    return found
