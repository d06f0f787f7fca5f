"""`restricted`: the best assignment of a model with few choices, by exact elimination.

It is a start for a search among all choices. Where the fetches that many variables share make the
elimination too large, they are left out.
"""

from __future__ import annotations

from gridlayout.ops.solver.elimination import eliminated
from gridlayout.ops.solver.model import Model

LARGEST = 20_000  # entries of one table
MOST = 400_000  # entries of all tables
SHARED = (None, 6, 3, 2)  # the most variables of a shared fetch that is kept, in the order tried


def restricted(model: Model) -> dict[int, int] | None:
    """Return the best assignment of a model without limits; None where no elimination is small."""
    for shared in SHARED:
        rest = model if shared is None else model.part(model.choices, shared=shared)
        if (state := eliminated(rest, largest=LARGEST, most=MOST)) is not None:
            return rest.chosen(state)
    return None
