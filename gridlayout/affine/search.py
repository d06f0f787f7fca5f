"""Searches over a box of indices: the exact range of a form, and a common zero of forms.

Both are branch and bound with interval arithmetic (`normal_form.span`), within a budget of boxes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from gridlayout.affine.evaluation import evaluate, program_of
from gridlayout.affine.expressions import AffineExpr
from gridlayout.affine.normal_form import (
    Atom,
    Form,
    Forms,
    Range,
    dims_in,
    size_of,
    span,
    to_expr,
    value_at,
)
from gridlayout.errors import LayoutError

BUDGET = 200_000  # atoms evaluated in one search: boxes times the size of the forms
# Passes over the equations that shrink one box. More shrink it little: if two factors are large and
# close to each other, a pass removes single indices.
PASSES = 10
ENUMERABLE = 2**22  # indices that may be enumerated


def exact_range(expr: AffineExpr, box: Sequence[int]) -> Range:
    """The least and greatest value over the box; `AffineMap.range` is its public name.

    >>> from gridlayout.affine.expressions import dim
    >>> exact_range((dim(0) * 5) % 7 - dim(1), (3, 2))
    (-1, 5)
    """
    if 0 in box:
        raise LayoutError(f"shape {tuple(box)} is empty; a range needs at least one index")
    ranges = [(0, extent - 1) for extent in box]
    form = Forms(ranges).of(expr)
    low = high = form.offset
    # Terms that share no dim reach their extremes together.
    for part in _independent(form):
        least, most = _part_range(part, ranges)
        low, high = low + least, high + most
    return low, high


def _independent(form: Form) -> list[Form]:
    groups = components(dims_in(Form((term,), 0)) for term in form.terms)
    return [Form(tuple(form.terms[k] for k in members), 0) for _, members in groups]


def components(reads: Iterable[frozenset[int]]) -> list[tuple[frozenset[int], tuple[int, ...]]]:
    """Groups sets of dims so that no dim is in two groups; for each: its dims, its sets' positions.

    >>> components([frozenset({0, 1}), frozenset({2}), frozenset({1})])
    [(frozenset({2}), (1,)), (frozenset({0, 1}), (0, 2))]
    """
    groups: list[tuple[frozenset[int], tuple[int, ...]]] = []
    for k, dims in enumerate(reads):
        touching = [group for group in groups if group[0] & dims]
        groups = [group for group in groups if not group[0] & dims]
        members = sorted(k2 for group in touching for k2 in group[1])
        groups.append((dims.union(*(group[0] for group in touching)), (*members, k)))
    return groups


def _part_range(part: Form, ranges: Sequence[Range]) -> Range:
    ((atom, factor), *others) = part.terms
    if atom.kind == "dim" and not others:
        return span(part, ranges)
    if atom.kind == "floordiv" and not others:  # monotone in its numerator
        inner = [_part_range(p, ranges) for p in _independent(atom.inner[0])]
        offset = atom.inner[0].offset
        low, high = (offset + sum(ends) for ends in zip(*inner, strict=True))
        ends = factor * (low // atom.value), factor * (high // atom.value)
        return min(ends), max(ends)
    try:
        return -_maximum(part.times(-1), ranges), _maximum(part, ranges)
    except LayoutError:
        dims = sorted(dims_in(part))
        if prod(high - low + 1 for low, high in (ranges[d] for d in dims)) > ENUMERABLE:
            raise
        (values,) = values_on_box([part], ranges, dims)
        return int(values.min()), int(values.max())


def values_on_box(
    forms: Sequence[Form], ranges: Sequence[Range], dims: Sequence[int]
) -> list[NDArray[np.int64]]:
    """The values of forms at all indices of the given dims, which are all that the forms read.

    One flat array per form, in row-major order of the indices.

    >>> values_on_box([Forms([(0, 3)]).dim(0)], [(0, 3)], [0])
    [array([0, 1, 2, 3])]
    """
    extents = [ranges[d][1] - ranges[d][0] + 1 for d in dims]
    grid = [np.zeros((), np.int64)] * len(ranges)
    for axis, values in zip(dims, np.ogrid[tuple(slice(n) for n in extents)], strict=True):
        grid[axis] = values.astype(np.int64) + ranges[axis][0]
    program = program_of(len(ranges), tuple(to_expr(form) for form in forms))
    return [np.broadcast_to(result, extents).reshape(-1) for result in evaluate(program, grid)]


def _maximum(form: Form, ranges: Sequence[Range]) -> int:
    """The greatest value of the form, by best-first branch and bound."""
    dims = sorted(dims_in(form))
    best = max(value_at(form, [r[end] for r in ranges]) for end in (0, 1))
    # Among equal bounds the newest box comes first, so that the search goes deep, not wide.
    heap = [(-span(form, ranges)[1], 0, list(ranges))]
    boxes = _boxes([form])
    for serial in range(1, boxes):
        bound, _, box = heapq.heappop(heap)
        if -bound <= best:
            return best
        widest = max(dims, key=lambda d: box[d][1] - box[d][0])
        for half, low_high in enumerate(_halves(box[widest])):
            part = box.copy()
            part[widest] = low_high
            best = max(best, *(value_at(form, [r[end] for r in part]) for end in (0, 1)))
            upper = span(form, part)[1]
            if upper > best:
                heapq.heappush(heap, (-upper, -2 * serial - half, part))
        if not heap:
            return best
    raise LayoutError(
        f"the search for the range of {to_expr(form)} exceeded its budget of {boxes} boxes: give a "
        "simpler map or a smaller shape"
    )


def _boxes(forms: Sequence[Form]) -> int:
    """How many boxes a search over these forms may visit."""
    return max(100, BUDGET // max(10, sum(map(size_of, forms))))


def _halves(r: Range) -> tuple[Range, ...]:
    middle = (r[0] + r[1]) // 2
    return ((r[0], middle), (middle + 1, r[1])) if r[0] < r[1] else (r,)


def find_point(equations: Sequence[Form], ranges: Sequence[Range]) -> tuple[int, ...] | None:
    """An index in the ranges where all forms are 0, or None.

    LayoutError: the search took more boxes than the budget.

    >>> forms = Forms([(0, 9), (0, 9)])
    >>> find_point([forms.dim(0).times(3).plus(forms.dim(1), -7)], [(1, 9), (0, 9)])
    (7, 3)
    """
    stack = [list(ranges)]
    boxes = _boxes(equations)
    for _ in range(boxes):
        if not stack:
            return None
        box = stack.pop()
        if not _narrow(equations, box):
            continue
        widest = max(range(len(box)), key=lambda d: box[d][1] - box[d][0], default=None)
        if widest is None or box[widest][0] == box[widest][1]:
            index = tuple(low for low, _ in box)
            if all(value_at(form, index) == 0 for form in equations):
                return index
            continue
        for low_high in reversed(_halves(box[widest])):
            stack.append([*box[:widest], low_high, *box[widest + 1 :]])
    raise LayoutError(
        f"the search for an index exceeded its budget of {boxes} boxes: give a smaller shape"
    )


def _narrow(equations: Sequence[Form], box: list[Range]) -> bool:
    """Shrinks the box towards the solutions, in place; False if it contains none."""
    for _ in range(PASSES):
        before = box.copy()
        if not all(_restrict(form, 0, 0, box) for form in equations):
            return False
        if before == box:
            break
    return True


def _restrict(form: Form, low: int, high: int, box: list[Range]) -> bool:
    """Shrinks the box to the indices where `low <= form <= high`; False if there are none."""
    least, most = span(form, box)
    if most < low or least > high:
        return False
    divisor = gcd(*(factor for _, factor in form.terms))
    if low == high and (form.offset != low if not divisor else (low - form.offset) % divisor):
        return False
    for atom, factor in form.terms:
        own = span(Form(((atom, factor),), 0), box)
        # The bounds on this term, given those of the other terms.
        left = low - (most - own[1]), high - (least - own[0])
        ends = (left[0], left[1]) if factor > 0 else (-left[1], -left[0])
        size = abs(factor)
        bounds = -(-ends[0] // size), ends[1] // size
        if low == high and atom.kind == "dim":
            others = gcd(*(f for a, f in form.terms if a != atom))
            bounds = _congruent(bounds, box[atom.value], factor, low - form.offset, others)
        if not _restrict_atom(atom, bounds, box):
            return False
        least, most = span(form, box)
    return True


def _congruent(bounds: Range, own: Range, factor: int, total: int, others: int) -> Range:
    """The bounds within `own`, shrunk to numbers x with `factor * x = total` modulo `others`."""
    common = gcd(factor, others)
    low, high = max(bounds[0], own[0]), min(bounds[1], own[1])
    modulus = max(others // common, 1)
    first = total // common * pow(factor // common, -1, modulus)
    return low + (first - low) % modulus, high - (high - first) % modulus


def _restrict_atom(atom: Atom, bounds: Range, box: list[Range]) -> bool:
    """Shrinks the box to the indices where the atom is within the bounds."""
    kind, value, _, inner = atom
    if kind == "dim":
        low, high = max(box[value][0], bounds[0]), min(box[value][1], bounds[1])
        box[value] = (low, high) if low <= high else box[value]
        return low <= high
    if kind == "floordiv":
        return _restrict(inner[0], bounds[0] * value, bounds[1] * value + value - 1, box)
    low, high = span(inner[0], box)
    if low // value != high // value:
        return bounds[0] < value and bounds[1] >= 0
    start = low // value * value
    return _restrict(inner[0], start + max(bounds[0], 0), start + min(bounds[1], value - 1), box)
