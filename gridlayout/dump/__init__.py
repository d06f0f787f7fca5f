"""Reads dumps: the text that compilers print, and the costs of the layouts in it.

    source --lines--> statements --types--> layouts --values, moves, collectives--> costs

A dump is read once, line by line, and not stored. Only aliases, the values of the current function
and the findings of most waste are stored.

`explanation.py` and `compare.py` are what users call. `reading.py` goes through the lines
(`text/`), asks `values/` for bytes and live ranges and `moves/` for relayouts, collectives and
shardings, and adds them up in `tally.py`. `contents.py` is the result, `plan.py` proposes better
layouts, `pages/` prints, and `comparing/` sets several programs side by side.
"""

from __future__ import annotations

from gridlayout.costs import Costs
from gridlayout.dump.compare import compare
from gridlayout.dump.comparing.comparison import Comparison, Program
from gridlayout.dump.comparing.matching import Match, Value
from gridlayout.dump.contents import Contents, Finding
from gridlayout.dump.explanation import Explanation, explain
from gridlayout.dump.moves.collectives import CollectiveOp
from gridlayout.dump.moves.move import Move
from gridlayout.dump.moves.shardings import Reshard, ShardedTensor
from gridlayout.dump.plan import Proposal
from gridlayout.dump.values.peaks import Peak, Span

__all__ = [
    "CollectiveOp",
    "Comparison",
    "Contents",
    "Costs",
    "Explanation",
    "Finding",
    "Match",
    "Move",
    "Peak",
    "Program",
    "Proposal",
    "Reshard",
    "ShardedTensor",
    "Span",
    "Value",
    "compare",
    "explain",
]
