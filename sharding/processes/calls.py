"""`Calls`: the calls of a process, its state, and which other processes never come to a call.

Processes that run one program make the same calls, so the number of a call identifies it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple
from weakref import ref

_MOST_FAILED, _WORDS = 8, 300
# Bytes of a short digest, and how many of them the state of a call has.
_SHORT, _MOST_DIGESTS = 4, 64


class State(NamedTuple):
    """The state of a process, which it posts for the others.

    number: the last call that it has begun; 0 if none. inside: whether its result is not yet there.
    asks: whether the process waits for an exchange with the others. what: the call in words.
    digests: short digests of the call and of its programs, as far as they are known, one after the
    other in one text. failed: the numbers and errors of the last calls
    that failed. ended: why the program has ended; empty if it has not. gave_up: whether it has
    ended because it waited for other processes. computed: the processor's seconds that it has used.
    beat: how often it has posted. silent: if it has stopped to post, for how many seconds.
    """

    number: int = 0
    inside: bool = False
    asks: bool = False
    what: str = ""
    digests: str = ""
    failed: Sequence[Sequence[Any]] = ()
    ended: str = ""
    gave_up: bool = False
    computed: float = 0.0
    beat: int = 0
    silent: float = 0.0

    @property
    def done(self) -> int:
        """The number of the last call that is over."""
        return self.number - self.inside

    @property
    def text(self) -> str:
        """The state as JSON; `parsed` reads it."""
        return json.dumps(self)

    @staticmethod
    def parsed(text: str) -> State:
        """Return the state of a text."""
        return State(*json.loads(text))

    @property
    def place(self) -> str:
        """The place of the process in its program, in words."""
        found = f"is in no call: its last was call {self.number}, {self.what}"
        if not self.number:
            found = "has made no call"
        elif self.inside:
            found = f"is in its call {self.number}, {self.what}"
        return f"{found}; it has not answered for {self.silent:.0f} s" if self.silent else found


class Call:
    """A call that this process has begun."""

    __slots__ = ("asks", "began", "digests", "inside", "number", "result", "what")

    def __init__(self, number: int, what: Any) -> None:
        self.number, self.what, self.began = number, what, monotonic()
        self.digests, self.asks, self.inside = b"", False, True
        self.result: ref[Any] | None = None  # a jax.Array

    def add(self, digest: bytes) -> None:
        """Add the digest of the call, or of its next program."""
        self.digests = (self.digests + digest[:_SHORT])[: _SHORT * _MOST_DIGESTS]

    @property
    def is_running(self) -> bool:
        """Whether the devices still compute the result; False if it was deleted."""
        result = None if self.result is None else self.result()
        try:
            return result is not None and not result.is_ready()
        except RuntimeError:  # its buffer was donated
            return False


class Calls:
    """The calls of this process on the devices of one group, one at a time."""

    def __init__(self) -> None:
        self.last = Call(0, "")
        self.last.inside = False
        self.failed: list[tuple[int, str]] = []
        self.ended, self.gave_up = "", False

    def begin(self, what: Any) -> Call | None:
        """Return a new call; None inside another call, as only the outer one is counted."""
        if self.last.inside:
            return None
        self.last = Call(self.last.number + 1, what)
        return self.last

    def end(self, call: Call, error: BaseException | None, is_made: bool = True) -> None:
        """End a call; one that was not made, as the user interrupted it, is not counted."""
        call.inside = call.asks = False
        if not is_made:
            call.number -= 1
        elif error is not None:
            words = f"{type(error).__name__}: {error}"[:_WORDS]
            self.failed = [*self.failed, (call.number, words)][-_MOST_FAILED:]

    @property
    def state(self) -> State:
        """The state that is posted for the others."""
        call = self.last
        what = str(call.what)[:_WORDS]
        inside = call.inside or call.is_running
        found = State(call.number, inside, call.asks, what, call.digests.hex())
        return found._replace(failed=self.failed, ended=self.ended, gave_up=self.gave_up)


def absent(
    own: State, others: Mapping[int, State], is_late: bool, is_patient: bool = False
) -> dict[int, str]:
    """Return the processes that do not come to this one's call, with the reasons in words.

    Processes that gave up waiting for others are named only if there are none that did not come.
    is_late: whether the time limit is over, so that processes in other calls are included too.
    is_patient: whether processes in the same call are excluded, even if they do not exchange yet.
    """
    found = {}
    for process, each in sorted(others.items()):
        why = _never(own, each)
        if not why and is_late and _is_elsewhere(own, each, is_patient):
            why = each.place
        if why:
            found[process] = why
    return {p: why for p, why in found.items() if not others[p].gave_up} or found


def gone(others: Mapping[int, State]) -> dict[int, str]:
    """Return the processes that have ended or do not answer, with the reasons in words."""
    found = {
        process: _end(each) if each.ended else each.place
        for process, each in sorted(others.items())
        if each.silent or each.ended
    }
    return {p: why for p, why in found.items() if not others[p].gave_up} or found


def _end(other: State) -> str:
    return f"has ended ({other.ended}) after its call {other.number}, {other.what}"


def _never(own: State, other: State) -> str:
    """Return why a process never comes to the call; "" if it may still come."""
    mine = {number for number, _ in own.failed}  # failures that all processes know
    for number, words in other.failed:
        is_last = other.ended or number == other.number
        if number == own.number or (is_last and number < own.number and number not in mine):
            return f"failed in its call {number}: {words}"
    if other.ended and (own.asks or other.done < own.number):
        return _end(other)
    both_ask = own.asks and other.asks  # the exchange then shows a difference
    if other.inside and other.number == own.number and not both_ask:
        known = min(len(own.digests), len(other.digests))
        if own.digests[:known] != other.digests[:known]:
            return f"is in {other.what} instead, or with other layouts, or in another program of it"
    return ""


def _is_elsewhere(own: State, other: State, is_patient: bool) -> bool:
    """Return whether a process has not yet come to the call."""
    if other.number < own.number:
        return True
    if other.silent:
        return own.asks
    return own.asks and not other.asks and not (is_patient and other.inside)
