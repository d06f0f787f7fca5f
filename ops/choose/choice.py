"""`Choice`: how a node of a program runs, on values that parts of a mesh divide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from gridlayout.ops.choose.division import Division


class Choice(NamedTuple):
    """How a node runs: the division of each operand and of its result, and partial sums.

    made: the division of the result before partial sums are reduced. summed: the units that have
    partial results. scattered: whether each device keeps its part of the sum, in division `out`;
    otherwise all have it. rounds: the most rounds of a product, whose messages run beside
    multiplications. apart: of a transpose, and of a product in rounds, the operands that no other
    node reads in the same division.
    """

    ins: tuple[Division | None, ...]
    made: Division
    out: Division
    summed: tuple[int, ...] = ()
    scattered: bool = False
    rounds: int = 1
    apart: tuple[int, ...] = ()


def scattered_dim(made: Division, out: Division) -> int:
    """Return the last dim along which a sum is scattered."""
    pairs = enumerate(zip(made, out, strict=True))
    return max((d for d, (old, new) in pairs if len(new) > len(old)), default=0)


def scattered(
    shape: tuple[int, ...],
    made: Division,
    summed: tuple[int, ...],
    count: Callable[[Sequence[int]], int],
) -> Iterator[Division]:
    """Yield the divisions to which a sum over units can be scattered, each along one dim.

    count: returns the number of devices along some units.
    """
    for dims in product(range(len(shape)), repeat=len(summed)):
        out = list(made)
        for u, d in zip(summed, dims, strict=True):
            out[d] = (*out[d], u)
        counts = zip(shape, made, map(count, out), strict=True)
        if all(n >= k and (not own or not n % k or k == count(own)) for n, own, k in counts):
            yield tuple(out)
