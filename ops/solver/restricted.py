"""`restricted`: the best assignment among some of the choices, by exact elimination.

It is a start for a search among all choices. Where the fetches that many variables share make the
elimination too large, they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gridlayout.ops.solver.elimination import eliminate, elimination_order
from gridlayout.ops.solver.model import Model

LARGEST = 20_000  # entries of one table
MOST = 400_000  # entries of all tables
SHARED = (None, 6, 3, 2)  # the most variables of a shared fetch that is kept, in the order tried


def restricted(model: Model, kept: Iterable[np.ndarray]) -> dict[int, int] | None:
    """Return the best assignment with choices among `kept`; None where no elimination is small.

    model: of a whole problem, with all choices. kept: for each variable, a mask of its choices; one
    that keeps none is ignored. Limits are ignored.
    """
    part = model.part(model.choices, limited=False)
    for v, mask in zip(model.choices, kept, strict=False):
        if mask.any():
            part.keep(v, mask)
    for shared in SHARED:
        rest = part if shared is None else part.part(part.choices, shared=shared)
        ordered = elimination_order(rest, largest=LARGEST, most=MOST)
        if ordered is not None:
            state, _ = eliminate(rest, ordered)
            return rest.chosen(state)
    return None
