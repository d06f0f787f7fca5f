"""`Tally`: totals of the values and moves of a pass or computation, and the largest of them."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from gridlayout.dump.moves.move import permutation_of
from gridlayout.dump.text.statements import Result, Statement, Transfer
from gridlayout.dump.values.top_keys import TopKeys
from gridlayout.dump.values.type_texts import Sizes, compare_types

_MAX_WAITING, _MAX_ROWS = 1 << 13, 1 << 14  # of the computations that wait, and of all their rows
_MAX_PLACES = 1 << 11  # names of values; more are pruned to those that `values` stores


@dataclass
class Tally:
    """Totals of values and moves, in bytes, and the `limit` largest of each."""

    limit: int
    values: TopKeys = field(init=False)
    moves: TopKeys = field(init=False)
    nbytes: int = 0
    data_bytes: int = 0

    def __post_init__(self) -> None:
        self.values, self.moves = TopKeys(self.limit), TopKeys(self.limit)
        self.count = 0
        self.places: dict[tuple[str, str], Any] = {}  # (function, name): key in `values`

    def add(self, op: str, result: Result, found: Sizes, function: str) -> None:
        """Add a value that owns memory."""
        nbytes, data_bytes = found.nbytes, found.data_bytes
        self.nbytes += nbytes
        self.data_bytes += data_bytes
        self.count += 1
        rank = (max(nbytes - data_bytes, 0), nbytes)
        if self.values.rejects(rank):
            return
        # The row of a value: its line, last use, op, type, address and number of uses.
        row = [result.line, result.line, op, result.text, result.address, 0]
        key = (function, result.name, result.line) if result.name else (op, result.text)
        if self.values.add(key, rank, row) and result.name:
            self.places[function, result.name] = key
            if len(self.places) > max(_MAX_PLACES, 2 * self.limit):
                self.places = {key[:2]: key for key in self.values.seen if len(key) == 3}

    def transfer(
        self, statement: Statement, transfer: Transfer, sizes: Mapping[str, Sizes]
    ) -> None:
        """Add a transfer, if its layouts differ. sizes: of the types of the line."""
        if (
            transfer.before == transfer.after.text
            and not transfer.permutation
            and not transfer.swap
        ):
            return
        sides = compare_types(transfer.before, transfer.after.text, sizes)
        if sides is None:
            return
        before, after, data_bytes, same = sides
        permutation = permutation_of(before, after, transfer.permutation, transfer.swap)
        if permutation is not None and (permutation or not same):
            if self.moves.rejects(data_bytes):
                return
            key = (statement.op, transfer.before, transfer.after.text, permutation)
            self.moves.add(key, data_bytes, (transfer.after.line, transfer.after.name))

    def count_uses(self, function: str, statement: Statement) -> None:
        """Count the uses of values whose rows are stored."""
        for name in statement.operands:
            # The first part of a tuple has the tuple's name.
            place = self.places.get((function, name.removesuffix("#0")))
            if place and (entry := self.values.seen.get(place)):
                entry[2][5] += 1
                entry[2][1] = statement.line

    def merge(self, other: Tally) -> None:
        """Add another tally."""
        self.values.merge(other.values)
        self.moves.merge(other.moves)
        self.nbytes += other.nbytes
        self.data_bytes += other.data_bytes
        self.count += other.count


class Waiting:
    """The tallies of computations of which it is not known yet whether their values own memory.

    limit: the most rows of one tally. Beyond `_MAX_ROWS` rows in all, further tallies store 8 rows;
    beyond `_MAX_WAITING` tallies, the oldest is dropped.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.rows = limit, 0
        self.tallies: dict[str, Tally] = {}

    def of(self, name: str) -> Tally:
        """Return the tally of a computation, a new one at its first line."""
        if (found := self.tallies.get(name)) is None:
            if len(self.tallies) >= _MAX_WAITING:
                self.drop(next(iter(self.tallies)))
            found = self.tallies[name] = Tally(min(self.limit, max(_MAX_ROWS - self.rows, 8)))
        return found

    def end(self, name: str) -> None:
        """Count the rows of a computation that was read to its end."""
        if name in self.tallies:
            self.rows += len(self.tallies[name].values.seen)

    def drop(self, name: str) -> None:
        """Drop a computation whose values own no memory, such as the body of a fusion."""
        if found := self.tallies.pop(name, None):
            self.rows -= len(found.values.seen)

    def merge_into(self, tally: Tally, names: Container[str]) -> None:
        """Add the tallies of the named computations, and drop all."""
        for name, found in self.tallies.items():
            if name in names:
                tally.merge(found)
        self.tallies.clear()
        self.rows = 0
