"""Joins: `d0 <> d1`, dims joined into one, the major first, without gaps (tt-mlir).

"Instead of multiplying out real shapes, we will use `<>` to represent a dimension join operator":
it is read and printed where the shape is known, and is no expression of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gridlayout.affine.expressions import AffineExpr, constant, dim


def linearized(shape: Sequence[int], dims: Sequence[int]) -> AffineExpr:
    """The index of dims joined into one, the major first, with no gaps.

    >>> print(linearized((2, 3, 4), (0, 1)))
    d0 * 3 + d1
    """
    expr = constant(0)
    for k, d in enumerate(dims):
        expr = expr + dim(d) * prod(shape[e] for e in dims[k + 1 :])
    return expr


def joined_dims(
    coefficients: Sequence[int], offset: int, shape: Sequence[int]
) -> tuple[int, ...] | None:
    """The dims that a linear result joins, the major first; None where it does not join two.

    >>> joined_dims((12, 4, 1), 0, (2, 3, 4)), joined_dims((32, 4, 1), 0, (2, 3, 4))
    ((0, 1, 2), None)
    """
    dims = [d for d, c in enumerate(coefficients) if c]
    order = tuple(sorted(dims, key=lambda d: (-coefficients[d], d)))
    steps = [prod(shape[e] for e in order[k + 1 :]) for k in range(len(order))]
    is_join = offset == 0 and [coefficients[d] for d in order] == steps
    return order if is_join and len(order) > 1 else None
