"""`AffineMap`: a map from indices to indices, as in MLIR.

An `AffineMap` is a tuple of affine expressions (`gridlayout.affine.expressions`) over the same
dims, such as `(d0, d1) -> (d0 * 32 + d1)`. A box is the set of indices of a shape, that is all
`0 <= d_i < shape[i]`. The other modules of this package work on tuples of expressions; only this
one knows `AffineMap`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from gridlayout.affine import solver
from gridlayout.affine.evaluation import evaluate, program_of
from gridlayout.affine.expressions import (
    AffineExpr,
    Exprs,
    ceildiv,
    checked,
    constant,
    dim,
    dims,
    walk,
)
from gridlayout.affine.integer_set import AffineSet
from gridlayout.affine.joins import joined_dims, linearized
from gridlayout.affine.normal_form import simplified
from gridlayout.affine.parsing import parse_map
from gridlayout.affine.printing import dim_list, expr_text, map_text
from gridlayout.affine.search import exact_range
from gridlayout.arguments import in_sequence, int64
from gridlayout.caching import cached
from gridlayout.errors import LayoutError
from gridlayout.public import public

__all__ = ["AffineExpr", "AffineMap", "ceildiv", "constant", "dim", "dims", "linearized"]


# The largest number of dims of an identity map: far more than any layout has.
_MAX_DIMS = 1 << 12


@public
class AffineMap:
    """A map from indices to indices: one expression per result, all over `num_dims` dims.

    LayoutError: a result reads a dim at or beyond `num_dims`.

    >>> AffineMap.parse("(i, j) -> (i * 32 + j)")
    AffineMap.parse('(d0, d1) -> (d0 * 32 + d1)')
    >>> AffineMap(2, [dim(0) * 32 + dim(1)])(3, 4)
    (100,)
    """

    # jax.jit keeps weak references to the functions that it compiles, and a map is callable.
    __slots__ = ("__weakref__", "_hash", "num_dims", "results")
    num_dims: int
    results: Exprs
    _hash: int

    def __init__(self, num_dims: int, results: Iterable[AffineExpr | int]) -> None:
        count, exprs = checked(num_dims, results)
        object.__setattr__(self, "num_dims", count)
        object.__setattr__(self, "results", exprs)
        object.__setattr__(self, "_hash", hash((count, exprs)))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"AffineMap is immutable; cannot set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"AffineMap is immutable; cannot delete {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (AffineMap, (self.num_dims, self.results))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineMap):
            return NotImplemented
        return self.num_dims == other.num_dims and self.results == other.results

    def __str__(self) -> str:
        return map_text(self.num_dims, self.results)

    def __repr__(self) -> str:
        return f"AffineMap.parse({str(self)!r})"

    @staticmethod
    def parse(text: str, shape: Sequence[int] | None = None) -> AffineMap:
        """Parse a map in MLIR's syntax, with or without `affine_map<...>` around it.

        shape: the extents of the dims, needed for `d0 <> d1`, which joins dims, the major dim
        first. LayoutError, with a column: any other text, and `<>` without a shape.

        >>> print(AffineMap.parse("affine_map<(n, c) -> (c, n floordiv 4, n mod 4)>"))
        (d0, d1) -> (d1, d0 floordiv 4, d0 mod 4)
        >>> print(AffineMap.parse("(d0, d1, d2) -> (d0 <> d1, d2)", (2, 3, 4)))
        (d0, d1, d2) -> (d0 * 3 + d1, d2)
        """
        return AffineMap(*parse_map(text, shape))

    def joined_text(self, shape: Sequence[int]) -> str:
        """The map's text, with `<>` for results that join dims of these extents without gaps.

        LayoutError: the shape has a different rank.

        >>> AffineMap.parse("(d0, d1, d2) -> (d0 * 3 + d1, d2)").joined_text((2, 3, 4))
        '(d0, d1, d2) -> (d0 <> d1, d2)'
        >>> AffineMap.parse("(d0, d1, d2) -> (d0 * 32 + d1, d2)").joined_text((2, 3, 4))
        '(d0, d1, d2) -> (d0 * 32 + d1, d2)'
        """
        box = check_box(self, shape)
        texts = []
        for result in self.results:
            rows = AffineMap(self.num_dims, (result,))
            joined = joined_dims(*rows.coefficients()[0], box) if rows.is_linear() else None
            texts.append(" <> ".join(f"d{d}" for d in joined) if joined else expr_text(result))
        return f"{dim_list(self.num_dims)} -> ({', '.join(texts)})"

    @staticmethod
    def identity(count: int) -> AffineMap:
        """The map from `count` dims to the same dims.

        >>> print(AffineMap.identity(2))
        (d0, d1) -> (d0, d1)
        """
        if not 0 <= int64(count, "number of dims") <= _MAX_DIMS:
            raise LayoutError(f"a map of {count} dims; give 0 to {_MAX_DIMS}")
        return AffineMap(count, dims(count))

    def __call__(self, *index: Any) -> tuple[Any, ...]:
        """The results at an index of ints, NumPy integer arrays or JAX integer arrays.

        Ints give exact ints. Arrays are broadcast together, and every result has their common
        shape. NumPy results are int64. JAX arrays keep their dtype, and their values are not
        checked for overflow. LayoutError: a wrong number of indices; values that are not signed
        integers (NumPy arrays may be unsigned); shapes that do not broadcast; NumPy values for
        which int64 could overflow.

        >>> AffineMap.parse("(d0) -> (d0 floordiv 4, d0 mod 4)")(-1)
        (-1, 3)
        """
        return evaluate(program_of(self.num_dims, self.results), index)

    def compose(self, other: AffineMap) -> AffineMap:
        """The map that applies `other` first: `m.compose(n)(x) == m(n(x))`.

        >>> tiles = AffineMap.parse("(d0) -> (d0 floordiv 8, d0 mod 8)")
        >>> print(tiles.compose(AffineMap.parse("(d0, d1) -> (d0 * 16 + d1)")))
        (d0, d1) -> (d0 * 2 + d1 floordiv 8, d1 mod 8)
        """
        if not isinstance(other, AffineMap):
            raise LayoutError(f"cannot compose with {other!r}; give an AffineMap")
        if len(other.results) != self.num_dims:
            raise LayoutError(
                f"cannot compose: the inner map has {len(other.results)} results, "
                f"the outer map takes {self.num_dims}"
            )
        done: dict[AffineExpr, AffineExpr] = {}
        for part in walk(*self.results):
            done[part] = _composed(part, other.results, done)
        return AffineMap(other.num_dims, [done[result] for result in self.results])

    def used_dims(self) -> tuple[frozenset[int], ...]:
        """For each result, the positions of the dims it reads.

        >>> AffineMap.parse("(d0, d1) -> (d0 + d1, 0)").used_dims()
        (frozenset({0, 1}), frozenset())
        """
        return tuple(result.dims for result in self.results)

    def is_linear(self) -> bool:
        """Whether no result divides or takes a remainder.

        >>> AffineMap.parse("(d0) -> (d0 * 3 + 1)").is_linear()
        True
        """
        return _rows(self) is not None

    def coefficients(self) -> tuple[tuple[tuple[int, ...], int], ...]:
        """For each result of a linear map, its coefficients, one per dim, and its constant.

        LayoutError: a result divides or takes a remainder.

        >>> AffineMap.parse("(d0, d1) -> (d1 * 3 + d0 - 7)").coefficients()
        (((1, 3), -7),)
        """
        rows = _rows(self)
        if rows is None:
            raise LayoutError(f"{self} has floordiv or mod; only a linear map has coefficients")
        return rows

    def range(self, shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """For each result, its least and its greatest value over the box, both attained.

        LayoutError: the box is empty, or the search for the exact bounds exceeded its budget.

        >>> AffineMap.parse("(d0) -> (d0 mod 4, -d0)").range((10,))
        ((0, 3), (-9, 0))
        """
        box = check_box(self, shape)
        return tuple(exact_range(result, box) for result in self.results)

    def simplify(self, shape: Sequence[int]) -> AffineMap:
        """The map in normal form: equal on the box, simplified by the ranges of the dims there.

        Maps that are equal on the box have the same normal form in most cases, but not in all.
        `ceildiv` becomes `floordiv`. A result is unchanged if its normal form would be too large,
        and all results are unchanged on an empty box.

        >>> AffineMap.parse("(d0, d1) -> ((d0 * 8 + d1) floordiv 8, d1 mod 8)").simplify((4, 8))
        AffineMap.parse('(d0, d1) -> (d0, d1)')
        """
        return AffineMap(self.num_dims, simplified(self.results, check_box(self, shape)))

    def is_injective(self, shape: Sequence[int]) -> bool:
        """Whether no two indices of the box have the same image. LayoutError: see `collision`.

        >>> AffineMap.parse("(d0, d1) -> (d0 * 2 + d1)").is_injective((3, 2))
        True
        """
        return self.collision(shape) is None

    def collision(self, shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Two indices of the box that have the same image, or None when the map is injective.

        LayoutError: undecided. This happens for a map without a closed inverse, on a box that is
        too large to search or to enumerate.

        >>> AffineMap.parse("(d0, d1) -> (d0 * 2 + d1)").collision((3, 3))
        ((0, 2), (1, 0))
        """
        return solver.collision(self.results, check_box(self, shape))

    def inverse(self, shape: Sequence[int]) -> Inverse:
        """The inverse on the image of the box: a map, and the domain on which it is valid.

        A tuple of ints is the image of an index of the box if and only if `domain` contains it;
        `map` then gives that index. LayoutError: two indices have the same image (the message
        names them), elimination finds no closed form of the inverse, or `collision` is undecided.

        >>> inverse = AffineMap.parse("(d0, d1) -> (d0 * 32 + d1)").inverse((8, 30))
        >>> inverse.map, inverse.domain.contains(61), inverse.domain.contains(62)
        (AffineMap.parse('(d0) -> (d0 floordiv 32, d0 mod 32)'), True, False)
        """
        back, bounds = solver.inverse(self.results, check_box(self, shape))
        rank = len(self.results)
        return Inverse(AffineMap(rank, back), AffineSet(rank, bounds))

    def preimage(self, point: Sequence[int], shape: Sequence[int]) -> tuple[int, ...] | None:
        """An index of the box whose image is the point, or None; the map need not be injective.

        LayoutError: there is no closed inverse, and the search exceeded its budget.

        >>> AffineMap.parse("(d0, d1) -> (d0 * 3 + d1 * 2)").preimage((5,), (4, 4))
        (1, 1)
        """
        return solver.preimage(self.results, point, check_box(self, shape))


class Inverse(NamedTuple):
    """The inverse of a map on a box: `map` gives the index of each member of `domain`."""

    map: AffineMap
    domain: AffineSet


def _composed(
    part: AffineExpr, inner: Sequence[AffineExpr], done: Mapping[AffineExpr, AffineExpr]
) -> AffineExpr:
    """The expression with its dims replaced by `inner`; `done` holds its operands, replaced."""
    if part.lhs is None:
        return inner[part.value] if part.kind == "dim" else part
    lhs, value = done[part.lhs], part.value
    if part.rhs is not None:
        return lhs + done[part.rhs]
    if part.kind == "mul":
        return lhs * value
    if part.kind == "mod":
        return lhs % value
    return lhs // value if part.kind == "floordiv" else ceildiv(lhs, value)


@cached
def _rows(map: AffineMap) -> tuple[tuple[tuple[int, ...], int], ...] | None:
    """The coefficients and the constant of each result; None if a result divides."""
    rows = []
    for result in map.results:
        if (row := _row(result, map.num_dims)) is None:
            return None
        rows.append(row)
    return tuple(rows)


def _row(result: AffineExpr, count: int) -> tuple[tuple[int, ...], int] | None:
    row, offset, stack = [0] * count, 0, [(result, 1)]
    while stack:
        expr, scale = stack.pop()
        if expr.kind == "dim":
            row[expr.value] += scale
        elif expr.kind == "constant":
            offset += scale * expr.value
        elif expr.kind in ("floordiv", "ceildiv", "mod"):
            return None
        factor = expr.value if expr.kind == "mul" else 1
        stack += [(part, scale * factor) for part in (expr.lhs, expr.rhs) if part is not None]
    return tuple(row), offset


def check_box(m: AffineMap, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape as a tuple of ints; LayoutError unless it has one extent >= 0 per dim.

    >>> check_box(AffineMap.identity(1), (3, 4))
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: shape (3, 4) has 2 extents, the map takes 1
    """
    try:
        box = tuple(int64(extent, "extent") for extent in in_sequence(shape))
    except TypeError:
        raise LayoutError(f"shape {shape!r} is not a sequence of extents") from None
    if len(box) != m.num_dims:
        raise LayoutError(f"shape {box} has {len(box)} extents, the map takes {m.num_dims}")
    if min(box, default=0) < 0:
        raise LayoutError(f"shape {box} has an extent below 0")
    return box


def embedding(rank: int, kept: Sequence[int]) -> AffineMap:
    """The map from an index of the dims `kept` to an index of all `rank` dims, with 0 elsewhere.

    >>> print(embedding(3, (2, 0)))
    (d0, d1) -> (d1, 0, d0)
    """
    exprs: list[AffineExpr] = [constant(0)] * rank
    for k, d in enumerate(kept):
        exprs[d] = dim(k)
    return AffineMap(len(kept), tuple(exprs))
