"""`Permuting`: mesh axes that divide each other's digits after one permute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from gridlayout.layouts.mesh_axes import Axes
from gridlayout.sharding.exchanges.exchange import Transfer


@dataclass(frozen=True)
class Permuting:
    """The digits that mesh axes divide after a relayout, and the permute that it takes.

    target: the digit of each axis in the end. sizes: the number of devices along each name of an
    axis, in the order of the mesh. extent: of each digit. In the arguments of methods, `at` has the
    digit that each axis divides now.

    >>> swap = Permuting({("x",): 1, ("y",): 0}, {"x": 2, "y": 2}, {0: 2, 1: 2})
    >>> permute, after = swap.permute({("x",): 0, ("y",): 1})
    >>> permute.pairs, after
    (((0, 0), (2, 1), (1, 2), (3, 3)), {('x',): 1, ('y',): 0})
    """

    target: Mapping[Axes, int]
    sizes: Mapping[str, int]
    extent: Mapping[int, int]

    def before(self, at: Mapping[Axes, int]) -> Iterator[tuple[Axes, int]]:
        """Yield axes and digits to which they move first, so that some axis divides each target.

        An axis that divides nothing yet slices any target that is free: the permute follows.
        """
        now, target = dict(at), self.target
        while free := [digit for digit in target.values() if digit not in now.values()]:
            new = [axis for axis in target if axis not in now]
            pairs = [(axis, d) for axis in new for d in free if self._fits(axis, d)]
            pairs.sort(key=lambda pair: target[pair[0]] != pair[1])
            pairs += [(axis, digit) for axis, digit in target.items() if digit in free]
            axis, digit = pairs[0]
            now[axis] = digit
            yield axis, digit

    def _after(self, at: Mapping[Axes, int]) -> dict[Axes, int]:
        """Return the digit of each axis after the permute; `at` if there is none.

        Axes without a target, which are gathered later, divide what is left.
        """
        left = [digit for digit in at.values() if digit not in self.target.values()]
        found = {axis: self.target[axis] for axis in at if axis in self.target}
        others = [axis for axis in at if axis not in self.target]
        for axis in sorted(others, key=lambda axis: at[axis] not in left):
            fitting = [digit for digit in left if self._fits(axis, digit)]
            if not fitting:
                return dict(at)
            found[axis] = at[axis] if at[axis] in fitting else fitting[0]
            left.remove(found[axis])
        is_permuted = sorted(found.values()) == sorted(at.values())
        return found if is_permuted and all(map(self._fits, found, found.values())) else dict(at)

    def permute(self, at: Mapping[Axes, int]) -> tuple[Transfer, dict[Axes, int]] | None:
        """Return the permute, and the digit of each axis after it; None if none is needed."""
        after, names = self._after(at), list(self.sizes)
        axes = [axis for axis in at if at[axis] != after[axis]]
        if not axes:
            return None
        axes.sort(key=lambda axis: names.index(axis[0]))
        holder = {at[axis]: k for k, axis in enumerate(axes)}
        shape = [self._count(axis) for axis in axes]
        numbers = np.arange(prod(shape)).reshape(shape)
        # A device receives the part of the one that has its index along each digit.
        sources = numbers.transpose([holder[after[axis]] for axis in axes])
        pairs = zip(sources.flat, numbers.flat, strict=True)
        along = tuple(name for axis in axes for name in axis)
        exchanged = tuple((int(a), int(b)) for a, b in pairs)
        return Transfer(along, prod(shape), None, None, pairs=exchanged), after

    def _fits(self, axis: Axes, digit: int) -> bool:
        return self._count(axis) == self.extent[digit]

    def _count(self, axis: Axes) -> int:
        return prod(self.sizes[name] for name in axis)
