"""`Tally`: what the values and moves of one place hold, and the worst of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gridlayout.dump.moves.move import permutation_of
from gridlayout.dump.text.statements import Flow, Made, Statement
from gridlayout.dump.values.kept import Kept
from gridlayout.dump.values.readings import sides_of
from gridlayout.dump.values.sizes import Sizes

_MAX_PLACES = 1 << 11  # names of values, most of them let go


@dataclass
class Tally:
    """Values and moves of one place: what they hold, and the worst of them."""

    limit: int
    values: Kept = field(init=False)
    moves: Kept = field(init=False)
    nbytes: int = 0
    data_bytes: int = 0

    def __post_init__(self) -> None:
        self.values, self.moves = Kept(self.limit), Kept(self.limit)
        self.count = 0
        self.places: dict[tuple[str, str], Any] = {}  # by function and name, the row's key

    def add(self, op: str, made: Made, found: Sizes, function: str) -> None:
        """A value that owns memory; one named twice is counted once."""
        nbytes, data_bytes = found.nbytes, found.data_bytes
        self.nbytes += nbytes
        self.data_bytes += data_bytes
        self.count += 1
        rank = (max(nbytes - data_bytes, 0), nbytes)
        if self.values.passes_over(rank):
            return
        # A value's row: where it is made, its last use, its op, type and address, how often used.
        row = [made.line, made.line, op, made.text, made.address, 0]
        key = (function, made.name, made.line) if made.name else (op, made.text)
        if self.values.add(key, rank, row) and made.name:
            self.places[function, made.name] = key
            if len(self.places) > max(_MAX_PLACES, 2 * self.limit):
                self.places = {key[:2]: key for key in self.values.seen if len(key) == 3}

    def flow(self, said: Statement, flow: Flow, sizes: Mapping[str, Sizes]) -> None:
        """Data that goes from one layout to another. sizes: of types that the line mentions."""
        if flow.before == flow.after.text and not flow.permutation and not flow.swap:
            return
        sides = sides_of(flow.before, flow.after.text, sizes)
        if sides is None:
            return
        before, after, data_bytes, same = sides
        permutation = permutation_of(before, after, flow.permutation, flow.swap)
        if permutation is not None and (permutation or not same):
            if self.moves.passes_over(data_bytes):
                return
            key = (said.op, flow.before, flow.after.text, permutation)
            self.moves.add(key, data_bytes, (flow.after.line, flow.after.name))

    def used(self, function: str, said: Statement) -> None:
        """Uses are folded into the value's row, if that is kept."""
        for name in said.reads:
            place = self.places.get((function, name))
            if place and (entry := self.values.seen.get(place)):
                entry[2][5] += 1
                entry[2][1] = said.line

    def take(self, other: Tally) -> None:
        """What another place holds too."""
        self.values.take(other.values)
        self.moves.take(other.moves)
        self.nbytes += other.nbytes
        self.data_bytes += other.data_bytes
        self.count += other.count
