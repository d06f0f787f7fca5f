"""Factors: the dims of an op's operands and results that correspond, and how they do.

As in Shardy's sharding rules, every dim of an operand or result is one factor of the op. The kind
of a factor states what a device needs to compute a part of the results. The planner divides
`through`, `near`, `summed` and `updated` factors; the others stay whole on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gridlayout.arguments import Shape

Dims = tuple[int | None, ...]  # the factor of each dim; None where an extent of 1 is repeated

THROUGH, NEAR, SUMMED, UPDATED = "through", "near", "summed", "updated"
SHIFTED, INDEXED, SCANNED, SORTED, WHOLE = "shifted", "indexed", "scanned", "sorted", "whole"
_DIVISIBLE = (THROUGH, NEAR, SUMMED, UPDATED)


@dataclass(frozen=True)
class Factors:
    """The factors of an op, by number.

    ins, outs: the factor of each dim of each operand and result. sizes: their extents; of a factor
    whose dims differ in extent, the least if it is near or summed, else the greatest. exact: the
    factors that can be divided only evenly.
    kinds: of each factor; () if all are `through`.

    * through: a part of the results needs the same part of the operands.
    * near: a part of the results needs the same part of the operands, and what is around it
      (`Record.borders`); the extents of its dims may differ.
    * summed: no result has it; the parts give partial results, which are added, or combined by
      maximum, minimum, and, or, or as pairs of an extreme and its index.
    * updated: an array is written at indices; a device writes what falls into its part.
    * shifted: a result's index is an affine function of an operand's: slices, strides, padding,
      reversals, joins, repetitions, windows.
    * indexed: read or written at indices that are data.
    * scanned: an element needs all elements before it.
    * sorted: elements change places by their values.
    * whole: anything else, such as the dims of a matrix that is decomposed.
    """

    ins: tuple[Dims, ...]
    outs: tuple[Dims, ...]
    sizes: Shape
    kinds: tuple[str, ...] = ()
    exact: frozenset[int] = frozenset()

    def kind(self, factor: int) -> str:
        """Return the kind of a factor."""
        return self.kinds[factor] if self.kinds else THROUGH

    @cached_property
    def divisible(self) -> tuple[int, ...]:
        """The factors that devices may divide, of those that operands and results have."""
        dims = {f for each in (*self.ins, *self.outs) for f in each}
        return tuple(
            f
            for f, size in enumerate(self.sizes)
            if size > 1 and f in dims and self.kind(f) in _DIVISIBLE
        )

    @cached_property
    def summed(self) -> frozenset[int]:
        """The factors that are divided into partial results."""
        return frozenset(f for f in range(len(self.sizes)) if self.kind(f) == SUMMED)

    @cached_property
    def has_equal_results(self) -> bool:
        """Whether results of one rank have the same divisible factors, dim by dim."""
        seen: dict[int, Dims] = {}
        for dims in self.outs:
            own = tuple(f if f in self.divisible else None for f in dims)
            if seen.setdefault(len(dims), own) != own:
                return False
        return True

    def fits(self, factor: int, parts: int, idle: bool = False) -> bool:
        """Return whether a factor can be divided into `parts`.

        Its extent must be at least `parts`; if the factor is exact, a multiple of it. idle: whether
        more than half of `parts` is enough for a factor that is not exact.
        """
        size = self.sizes[factor]
        if factor not in self.divisible:
            return False
        return size % parts == 0 if factor in self.exact else fits(size, parts, idle)


def fits(size: int, parts: int, idle: bool) -> bool:
    """Return whether an extent is at least `parts`; idle: more than half of that is enough.

    >>> fits(7, 10, False), fits(7, 10, True), fits(5, 10, True)
    (False, True, False)
    """
    return 2 * size > parts if idle else size >= parts


# A function of an op's parameters and of the shapes of its operands and results.
FactorsOf = Callable[[Mapping[str, Any], Sequence[Shape], Sequence[Shape]], Factors]


class Numbering:
    """Numbers the factors of an op on operands and results of these shapes."""

    def __init__(self, ins: Sequence[Shape], outs: Sequence[Shape]) -> None:
        self.shapes = [*ins, *outs]
        self.dims: list[list[int | None]] = [[None] * len(shape) for shape in self.shapes]
        self._count = len(ins)
        self._sizes: list[int] = []
        self._kinds: list[str] = []
        self._exact: set[int] = set()

    def add(self, kind: str, *places: tuple[int, int], exact: int = 0) -> None:
        """Add a factor, which dims have: places: pairs (number of operand or result, dim).

        Results are numbered after operands. exact: the extent of a
        factor that can only be divided evenly, of which those of its dims are multiples.
        """
        if not places:
            return
        for k, d in places:
            self.dims[k][d] = len(self._sizes)
        if exact:
            self._exact.add(len(self._sizes))
        extents = [self.shapes[k][d] for k, d in places]
        self._sizes.append(exact or (min if kind in (NEAR, SUMMED) else max)(extents))
        self._kinds.append(kind)

    def factors(self) -> Factors:
        """Return the factors; dims without one are whole."""
        for k, shape in enumerate(self.shapes):
            for d in range(len(shape)):
                if self.dims[k][d] is None:
                    self.add(WHOLE, (k, d))
        dims = tuple(map(tuple, self.dims))
        ins, outs = dims[: self._count], dims[self._count :]
        kinds = () if {*self._kinds} <= {THROUGH} else tuple(self._kinds)
        return Factors(ins, outs, tuple(self._sizes), kinds, frozenset(self._exact))


def whole(params: Mapping[str, Any], ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of an op that needs all of its operands on a device."""
    return Numbering(ins, outs).factors()


def same(params: Mapping[str, Any], ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of an op on operands of its single result's shape, or scalars.

    An operand may have the extent 1 instead.

    >>> same({}, [(4, 1), ()], [(4, 5)])
    Factors(ins=((0, None), ()), outs=((0, 1),), sizes=(4, 5), kinds=(), exact=frozenset())
    """
    (out,) = outs

    def dims(shape: Shape) -> Dims:
        return tuple(d if n > 1 else None for d, n in enumerate(shape))

    return Factors(tuple(map(dims, ins)), (dims(out),), out)


def each(params: Mapping[str, Any], ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of an op whose results are its operands, one by one.

    Operands of equal shapes have the same factors.
    """
    made, at = Numbering(ins, outs), dict[Shape, list[int]]()
    for k, shape in enumerate(made.shapes):
        at.setdefault(shape, []).append(k)
    for shape, places in at.items():
        for d in range(len(shape)):
            made.add(THROUGH, *((k, d) for k in places))
    return made.factors()


def along(
    axes: Mapping[int, str] | Callable[[Mapping[str, Any], Shape], Mapping[int, str]],
    keeps: bool = True,
) -> FactorsOf:
    """Return the factors of ops on arrays of one rank: through, but for some dims.

    axes: the kind of each of these dims, or a function of parameters and the first operand's shape
    that returns them. keeps: whether results have these dims; else they lack them. Operands of
    another rank have whole dims.
    """

    def of(params: Mapping[str, Any], ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
        made, shape = Numbering(ins, outs), ins[0]
        kinds = axes(params, shape) if callable(axes) else axes
        kept = [d for d in range(len(shape)) if keeps or d not in kinds]
        for d in range(len(shape)):
            places = [(k, d) for k, x in enumerate(ins) if len(x) == len(shape)]
            if d in kept:
                where = enumerate(outs, len(ins))
                places += [(k, kept.index(d)) for k, x in where if len(x) == len(kept)]
            made.add(kinds.get(d, THROUGH), *places)
        return made.factors()

    return of


def dim_of(name: str, kind: str) -> Callable[[Mapping[str, Any], Shape], Mapping[int, str]]:
    """Return the `axes` of `along` for one dim, given by the parameter `name`."""
    return lambda params, shape: {params[name] % len(shape): kind}


def dims_of(name: str, kind: str) -> Callable[[Mapping[str, Any], Shape], Mapping[int, str]]:
    """Return the `axes` of `along` for several dims, given by the parameter `name`."""
    return lambda params, shape: {d % len(shape): kind for d in params[name]}


def batch(rank: int) -> FactorsOf:
    """Return the factors of an op on the last `rank` dims of its first operand, which are whole.

    The dims before them, of all operands and results, are a batch.
    """

    def of(params: Mapping[str, Any], ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
        made, lead = Numbering(ins, outs), ins[0][: len(ins[0]) - rank]
        for d in range(len(lead)):
            made.add(THROUGH, *((k, d) for k, x in enumerate(made.shapes) if len(x) > d))
        return made.factors()

    return of
