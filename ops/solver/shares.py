"""`by_shares`: an assignment for which each reader of a fetch that many variables share pays all.

Such fetches make exact elimination too large. Where each of their readers pays by itself for what
it reads, it is small: a cost, or a table with the source.
"""

from __future__ import annotations

from gridlayout.ops.solver.elimination import eliminated
from gridlayout.ops.solver.model import Model

LARGE = 200_000, 4_000_000  # entries of one table, and of all tables, of an elimination
SMALL = 20_000, 400_000
# The most variables of a fetch that is not split, in the order tried; if that is not enough, of
# one that is not left out.
WHOLE = (8, 6, 4, 3, 0)
LEFT = (6, 3, 2)


def at_once(model: Model, entries: tuple[int, int] = LARGE) -> dict[int, int] | None:
    """Return the best assignment of a model without limits; None where elimination is not small.

    entries: the most of one table, and of all tables.
    """
    return _chosen(model, entries, None)


def by_shares(model: Model, entries: tuple[int, int] = LARGE) -> dict[int, int] | None:
    """Return an assignment of a model without limits; None where no elimination is small.

    It is the best one if no fetch has to be split or left out. entries: as for `at_once`.
    """
    if (found := at_once(model, entries)) is not None:
        return found
    for whole in WHOLE:
        if (found := _chosen(model, entries, whole)) is not None:
            return found
    without = (model.part(model.choices, limited=False, shared=most) for most in LEFT)
    return next((found for rest in without if (found := at_once(rest, entries))), None)


def _chosen(model: Model, entries: tuple[int, int], whole: int | None) -> dict[int, int] | None:
    found = eliminated(model, largest=entries[0], most=entries[1], whole=whole)
    return None if found is None else model.chosen(found[0])
