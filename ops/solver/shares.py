"""`by_shares`: assignments for which the readers of a shared fetch pay shares of its price.

Fetches that many variables share make exact elimination too large. Where each of their readers pays
a share of the price instead, it is small: a cost, or a table with the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gridlayout.ops.solver.elimination import eliminated
from gridlayout.ops.solver.model import Model

LARGEST, MOST = 200_000, 4_000_000  # entries of one table, and of all tables, of an elimination
WHOLE = (8, 6, 4, 3)  # the most variables of a fetch that is not split, in the order tried


def by_shares(model: Model) -> Iterator[dict[int, int]]:
    """Yield assignments of a model; none where no elimination is small.

    In one of them each reader pays all of a form that many variables share; in the other an nth of
    each shared form, where n may read it.
    """
    counts = [np.sum([read.any(0) for read in s.reads.values()], axis=0) for s in model.shared]
    for shares, sizes in (
        ([np.ones(len(count)) for count in counts], WHOLE),
        ([1 / np.maximum(count, 1) for count in counts], (0,)),
    ):
        made = (at_once(_split(model, shares, most)) for most in sizes)
        if (state := next((each for each in made if each is not None), None)) is not None:
            yield model.chosen(state)


def at_once(model: Model) -> dict[int, int] | None:
    """Return the best assignment of the remaining choices; None where elimination is not small."""
    return eliminated(model, largest=LARGEST, most=MOST)


def _split(model: Model, shares: Sequence[NDArray[np.float64]], most: int) -> Model:
    """Return the model without the fetches that more than `most` variables share.

    Instead, each of their readers pays its share of what it reads; shares: by fetch and form.
    """
    made = model.part(model.choices, limited=False, shared=most)
    for shared, own in zip(model.shared, shares, strict=True):
        if len(shared.scope) <= most:
            continue
        prices = shared.prices * own
        for reader, read in shared.reads.items():
            table = np.where(read[None], prices[:, None], 0).sum(2)
            if len(table) == 1:
                made.costs[reader] = made.costs[reader] + table[0]
            else:
                made.add_table(shared.source, reader, table)
    return made
