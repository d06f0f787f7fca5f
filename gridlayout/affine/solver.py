"""Inverses of affine maps, collisions of two indices, and preimages of points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, prod
from typing import Any, NoReturn

import numpy as np

from gridlayout.affine.elimination import ANY_INTEGER, solve, substitute
from gridlayout.affine.evaluation import evaluate, program_of
from gridlayout.affine.expressions import AffineExpr, Exprs, constant, dim
from gridlayout.affine.normal_form import (
    Form,
    Forms,
    Range,
    dims_in,
    number,
    size_of,
    span,
    to_expr,
)
from gridlayout.affine.printing import map_text
from gridlayout.affine.search import ENUMERABLE, components, find_point, values_on_box
from gridlayout.arguments import int64
from gridlayout.errors import LayoutError

Index = tuple[int, ...]
Constraint = tuple[Form, bool]  # True: the form is 0; False: it is at least 0
Bound = tuple[AffineExpr, bool]  # the same for an expression
_EMPTY: tuple[Bound, ...] = ((constant(-1), False),)  # -1 >= 0: met by no index


def inverse(results: Exprs, box: Index) -> tuple[Exprs, tuple[Bound, ...]]:
    """The inverse on the image of the box, and its domain; see `AffineMap.inverse`.

    >>> back, bounds = inverse((dim(0) // 4, dim(0) % 4), (8,))
    >>> back, [str(expr) for expr, _ in bounds]
    ((AffineExpr(d0 * 4 + d1),), ['d0', '-d0 + 1', 'd1', '-d1 + 3'])
    """
    rank = len(results)
    if 0 in box:
        return (constant(0),) * len(box), _EMPTY
    solved, forms = solve(results, box)
    if None in solved:
        _refuse(results, box, [d for d, form in enumerate(solved) if form is None])
    found = [form for form in solved if form is not None]
    images = [forms.of(result, found) for result in results]
    exact = [(image.plus(forms.dim(k), -1), True) for k, image in enumerate(images)]
    above = [(form, False) for form in found]
    below = [(number(n - 1).plus(form, -1), False) for form, n in zip(found, box, strict=True)]
    back = tuple(to_expr(form) for form in found)
    return back, _conjunction(rank, [*exact, *above, *below])


def _refuse(results: Exprs, box: Index, missing: Sequence[int]) -> NoReturn:
    """Raises LayoutError: the dims `missing` have no closed form in the results."""
    text = map_text(len(box), results)
    clash = collision(results, box)
    if clash is not None:
        image = evaluate(program_of(len(box), results), clash[0])
        raise LayoutError(
            f"{text} is not injective on {box}: {clash[0]} and {clash[1]} both map to {image}"
        )
    unsolved = [str(result) for result in results if result.dims & set(missing)]
    names = ", ".join(f"d{d}" for d in missing)
    raise LayoutError(
        f"{text} is injective on {box}, but has no closed form for {names} from the results "
        f"{', '.join(unsolved)}; use preimage"
    )


def _conjunction(rank: int, constraints: Sequence[Constraint]) -> tuple[Bound, ...]:
    """The constraints, each simplified with the ranges of dims that follow from the others."""
    ranges, before = [ANY_INTEGER] * rank, [(0, 0)] * rank
    while ranges != before:
        before, forms = ranges.copy(), Forms(ranges)
        dims = {k: forms.dim(k) for k in range(rank)}
        shortened: dict[Constraint, None] = {}
        for form, equal in constraints:
            shortened |= dict.fromkeys(_shortened(substitute(form, dims, forms), equal, forms))
        constraints = [c for c in shortened if not _bounds_a_dim(c, ranges)]
        if (number(-1), False) in constraints or any(low > high for low, high in ranges):
            return _EMPTY
    bounds: list[Bound] = []
    for k, (low, high) in enumerate(ranges):
        if low == high:
            bounds.append((dim(k) - low, True))
        else:
            bounds += [(dim(k) - low, False)] if low > ANY_INTEGER[0] else []
            bounds += [(high - dim(k), False)] if high < ANY_INTEGER[1] else []
    return (*bounds, *((to_expr(form), equal) for form, equal in constraints))


def _bounds_a_dim(constraint: Constraint, ranges: list[Range]) -> bool:
    """Whether the constraint is on a single dim; if so, narrows the range of that dim."""
    form, equal = constraint
    if len(form.terms) != 1 or form.terms[0][0].kind != "dim":
        return False
    ((atom, factor),) = form.terms  # _shortened returns factors of 1 or -1 only
    low, high = ranges[atom.value]
    if factor > 0 or equal:
        low = max(low, -form.offset * factor)
    if factor < 0 or equal:
        high = min(high, -form.offset * factor)
    ranges[atom.value] = (low, high)
    return True


def _shortened(form: Form, equal: bool, forms: Forms) -> Iterator[Constraint]:
    """Equivalent, shorter constraints.

    Yields none if the constraint always holds, and `-1 >= 0` if it never does.
    """
    divisor = gcd(*(factor for _, factor in form.terms)) or 1
    offset, left = divmod(form.offset, divisor)
    form = Form(tuple((a, f // divisor) for a, f in form.terms), offset)
    low, high = span(form, forms.ranges)
    if high < 0 or (equal and (low > 0 or left)):
        yield number(-1), False
        return
    if low == high == 0 or (low >= 0 and not equal):
        return
    if not equal:  # x >= 0 if and only if x floordiv g >= 0
        for g in sorted({abs(factor) for _, factor in form.terms}):
            quotient, _ = forms.divmod(form, g)
            if size_of(quotient) < size_of(form):
                yield from _shortened(quotient, equal, forms)
                return
    ((atom, factor), *others) = form.terms
    if atom.kind == "floordiv" and not others:  # factor is 1 or -1: bounds on the numerator
        inner, c, least = atom.inner[0], atom.value, -form.offset * factor
        if factor > 0 or equal:
            yield from _shortened(inner.plus(number(-least * c)), False, forms)
        if factor < 0 or equal:
            yield from _shortened(number(least * c + c - 1).plus(inner, -1), False, forms)
    else:
        yield (form.times(-1) if equal and factor < 0 else form), equal


def preimage(results: Exprs, point: Sequence[int], box: Index) -> Index | None:
    """An index of the box that maps to the point; `AffineMap.preimage` is its public name.

    >>> preimage((dim(0) * 2,), (3,), (8,)) is None
    True
    """
    try:
        target = tuple(int64(value, "coordinate") for value in point)
    except TypeError:
        raise LayoutError(f"point {point!r} is not a sequence of coordinates") from None
    if len(target) != len(results):
        raise LayoutError(f"point {target} has {len(target)} values, the map {len(results)}")
    if 0 in box:
        return None
    solved, _ = solve(results, box)
    found = [form for form in solved if form is not None]
    if len(found) == len(solved):
        index = evaluate(program_of(len(target), tuple(map(to_expr, found))), target)
        inside = all(0 <= i < extent for i, extent in zip(index, box, strict=True))
        there = program_of(len(box), results)
        return index if inside and evaluate(there, index) == target else None
    ranges = [(0, extent - 1) for extent in box]
    forms = Forms(ranges)
    equations = [
        forms.of(result).plus(number(-value)) for result, value in zip(results, target, strict=True)
    ]
    return find_point(equations, ranges)


def collision(results: Exprs, box: Index) -> tuple[Index, Index] | None:
    """Two indices with the same image, or None; `AffineMap.collision` is its public name.

    >>> collision((dim(0) % 4,), (6,))
    ((0,), (4,))
    """
    if 0 in box:
        return None
    ranges = [(0, extent - 1) for extent in box]
    forms = Forms(ranges)
    found = [form for form in map(forms.of, results) if form.terms]
    parts = components(dims_in(form) for form in found)
    for d, extent in enumerate(box):
        if extent > 1 and not any(d in dims for dims, _ in parts):
            return _indices(box, {d: 0}, {d: 1})
    for dims, members in parts:
        clash = _part_collision([found[k] for k in members], sorted(dims), ranges)
        if clash is not None:
            return _indices(box, *clash)
    return None


Clash = tuple[dict[int, int], dict[int, int]]


def _indices(box: Index, first: dict[int, int], second: dict[int, int]) -> tuple[Index, Index]:
    a, b = (tuple(part.get(d, 0) for d in range(len(box))) for part in (first, second))
    return min(a, b), max(a, b)


def _part_collision(
    results: Sequence[Form], dims: Sequence[int], ranges: Sequence[Range]
) -> Clash | None:
    """A collision of results that read no other dims than `dims`."""
    here = tuple(map(to_expr, results))
    box = tuple(ranges[d][1] + 1 if d in dims else 1 for d in range(len(ranges)))
    solved, _ = solve(here, box)
    if None not in solved:
        return None
    if all(atom.kind == "dim" for form in results for atom, _ in form.terms):
        try:
            return _linear_collision(results, dims, ranges)
        except LayoutError:
            pass  # too many boxes; the indices may still be few enough to enumerate
    return _listed_collision(results, dims, ranges)


def _linear_collision(
    results: Sequence[Form], dims: Sequence[int], ranges: Sequence[Range]
) -> Clash | None:
    """Finds a collision of linear results: two indices whose difference maps to 0.

    The first nonzero component of the difference is positive.
    """
    homogeneous = [Form(form.terms, 0) for form in results]
    differences: list[Range] = [(0, 0)] * len(ranges)
    for d in dims:
        differences[d] = (-ranges[d][1], ranges[d][1])
    for first in dims:
        differences[first] = (1, ranges[first][1])
        step = find_point(homogeneous, differences)
        if step is not None:
            return {d: max(0, -step[d]) for d in dims}, {d: max(0, step[d]) for d in dims}
        differences[first] = (0, 0)
    return None


def _listed_collision(
    results: Sequence[Form], dims: Sequence[int], ranges: Sequence[Range]
) -> Clash | None:
    """Finds a collision by enumeration of the box, or of a part of it if it is too large."""
    extents = [ranges[d][1] + 1 for d in dims]
    while prod(extents) > ENUMERABLE:
        largest = max(range(len(extents)), key=lambda k: extents[k])
        extents[largest] = -(-extents[largest] // 2)
    listed = list(ranges)
    for d, extent in zip(dims, extents, strict=True):
        listed[d] = (0, extent - 1)
    keys = _keys(values_on_box(results, listed, dims))
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if same.size:
        pair = [np.unravel_index(order[same[0] + k], extents) for k in (0, 1)]
        first, second = (dict(zip(dims, map(int, index), strict=True)) for index in pair)
        return first, second
    if extents != [ranges[d][1] + 1 for d in dims]:
        raise LayoutError(
            f"injectivity is undecided: dims {list(dims)} have more than {ENUMERABLE} indices, too "
            "many to enumerate; give a smaller shape or a map with a closed inverse"
        )
    return None


def _keys(columns: Sequence[np.ndarray[Any, np.dtype[np.int64]]]) -> np.ndarray[Any, Any]:
    """One number per row of the columns; equal rows, and only those, have equal numbers."""
    keys = np.zeros(columns[0].size, np.int64)
    for column in columns:
        offset = column - column.min()
        if int(keys.max() + 1) * int(offset.max() + 1) > 2**62:
            _, keys = np.unique(keys, return_inverse=True)
            _, offset = np.unique(offset, return_inverse=True)
        keys = keys * int(offset.max() + 1) + offset
    return keys
