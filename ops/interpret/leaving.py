"""`Leaving`: where the results of a call are when it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.fitting import most_bytes
from gridlayout.ops.array.policy import same_grid_and_tile
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.env import Env
from gridlayout.ops.decisions.jaxprs import asked_layouts
from gridlayout.ops.decisions.specs import (
    Sharded,
    Spec,
    is_of_keys,
    layout_of,
    unmasked,
)
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.plan.homes import homes


@dataclass(frozen=True)
class Leaving:
    """Where the results of a call are when it is done, where that is not left to its equations.

    wanted: the specs that are asked for. homes: the layouts of the operands whose next values
    results are. is_open: whether a result is free to be anywhere else, but for what it may hold.
    known: the layouts that say how much that is, of operands and those that are asked for on the
    way.
    """

    wanted: tuple[Spec | None, ...]
    homes: tuple[Layout | None, ...]
    is_open: tuple[bool, ...]
    known: tuple[Layout, ...]

    @classmethod
    def of(
        cls,
        env: Env,
        jaxpr: Any,
        operands: Sequence[Spec],
        wanted: Sequence[Spec | None],
        nexts: Mapping[int, int] | None = None,
    ) -> Leaving:
        """Of a jaxpr on operands; wanted: of its first results, or of none. nexts: see `Env`."""
        count = len(jaxpr.outvars)
        asked = (*wanted, *(None for _ in range(count - len(wanted))))
        if env.policy is not same_grid_and_tile:
            return cls(asked, (None,) * count, (False,) * count, ())
        # What a derivative leaves behind for its second pass is no result that users get.
        last = len(wanted) or count
        is_open = tuple(k < last and spec is None for k, spec in enumerate(asked))
        layouts = list(map(layout_of, operands))
        pairs = zip(homes(jaxpr, layouts, nexts or {}), is_open, strict=True)
        known = (x for x in (*layouts, *asked_layouts(jaxpr)) if x is not None)
        return cls(asked, tuple(x if free else None for x, free in pairs), is_open, tuple(known))

    @property
    def layouts(self) -> list[Layout | None]:
        """Where results lie, as far as that is known."""
        pairs = zip(self.wanted, self.homes, strict=True)
        return [home if spec is None else layout_of(spec) for spec, home in pairs]

    @property
    def goes_on(self) -> bool:
        """Whether several results are the next values of operands, as in a step of training."""
        return sum(home is not None for home in self.homes) > 1

    def asked(self, results: Sequence[Spec]) -> Leaving:
        """The same of another program, whose results are to be as these."""
        pairs = zip(self.wanted, self.homes, results, strict=True)
        there = (
            (found if home and self.goes_on else unmasked(found)) if spec is None else spec
            for spec, home, found in pairs
        )
        return replace(self, wanted=tuple(there), is_open=(False,) * len(self.wanted))

    def left(self, b: Builder, x: Value, number: int) -> Value:
        """A result by number as the caller gets it, but for what is wanted of it.

        Of those that go on, the padding is what the operand's is said to be: the next call of the
        program is the same.
        """
        spec, home = x.spec, self.homes[number]
        if spec.ndim == 0 or is_of_keys(spec):
            return b.replicated(x)
        if home is not None:
            out = b.brought(x, home)
            if not self.goes_on:
                return out
            assert isinstance(out.spec, Sharded)
            return (
                b.filled(out, home.oob)
                if home.oob is not None
                else out.seen(out.spec.with_oob(None))
            )
        out = b.on_cores(x)
        if not self.is_open[number] or out.layout is None:
            return out
        most = most_bytes(out.layout.data_bytes, self.known, b.device)
        return b.fitted(out, most, leaves=True)
