"""`Dependents`: which values XLA stores so that no consumer computes them again.

A value that can be fused is computed in the kernel of each consumer. XLA stores one that is made of
several arrays of its size if one of its consumers also reads a stored value that depends on it, as
in `x + f(x)` where `x` is a sum and `f` a product: else each kernel of a chain of residuals would
read all arrays that were added before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

Consumer = tuple[int, Sequence[int]]  # an op by its number, and its results
# What an op reads, what it makes, and whether that is its first operand's bytes.
Made = tuple[Sequence[int], Sequence[int], bool]


class Dependents:
    """The ops that depend on each value, as bits; values are added from the last one to the first.

    sizes: the number of elements of each value. ops: those that make the values, in order.
    """

    def __init__(self, sizes: Mapping[int, int], ops: Iterable[Made]) -> None:
        self._sizes = sizes
        self._operands: dict[int, Sequence[int]] = {}
        shown: dict[int, int] = {}  # of the result of a view, what it shows
        for reads, writes, is_view in ops:
            ins = [shown.get(k, k) for k in reads]
            if is_view and ins:
                shown |= dict.fromkeys(writes, ins[0])
            else:
                self._operands |= dict.fromkeys(writes, ins)
        self._all: dict[int, int] = {}
        self._beside: dict[int, int] = {}  # those that do so by a value that is stored

    def is_stored(self, value: int, consumers: Iterable[Consumer], inside: Collection[int]) -> bool:
        """Add a value, and return whether it is stored although consumers could compute it.

        consumers: the ops that read it; inside: the values that are not stored, of those that were
        added before.

        >>> sizes = dict.fromkeys((0, 1, 2, 3, 9), 8)
        >>> ops = [((0, 0), (1,), False), ((1,), (2,), False), ((1, 2), (3,), False)]
        >>> found = Dependents(sizes, ops)
        >>> found.is_stored(3, [], ()), found.is_stored(2, [(3, (3,))], {3})
        (False, False)
        >>> found.is_stored(1, [(2, (2,)), (3, (3,))], {3})
        False
        >>> found = Dependents(sizes, [((0, 9), (1,), False), *ops[1:]])
        >>> found.is_stored(3, [], ()), found.is_stored(2, [(3, (3,))], {3})
        (False, False)
        >>> found.is_stored(1, [(2, (2,)), (3, (3,))], {3})
        True
        """
        own = every = beside = 0
        for number, results in consumers:
            own |= 1 << number
            for each in results:
                more = self._all.get(each, 0)
                every |= more
                beside |= self._beside.get(each, 0) if each in inside else more
        self._all[value], self._beside[value] = own | every, beside
        return bool(own & beside) and self._is_of_several(value)

    def _is_of_several(self, value: int) -> bool:
        """Return whether a value is made of several arrays of its size that are no broadcasts."""
        size = self._sizes[value]
        return (
            sum(
                self._sizes[v] >= size and not self._is_grown(v)
                for v in {*self._operands.get(value, ())}
            )
            > 1
        )

    def _is_grown(self, value: int) -> bool:
        """Return whether a value has more elements than all that it is made of, as a broadcast."""
        operands = self._operands.get(value)
        return operands is not None and self._sizes[value] > sum(self._sizes[v] for v in operands)
