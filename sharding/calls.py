"""`Calls`: which call a process is in, what it tells the others of it, and who of them won't come.

Processes that run one program make the same calls, so a call's number says which one it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple
from weakref import ref

_MOST_FAILED, _WORDS = 8, 300


class State(NamedTuple):
    """Where a process is: in a call of a number, until its result is there, or after it.

    asks: whether it asks the others before it runs. digest: of what it is about to do, once that is
    known. failed: the last calls that ended by an error. ended: why its program has, if it has.
    """

    number: int = 0
    inside: bool = False
    asks: bool = False
    what: str = ""
    digest: str = ""
    failed: Sequence[Sequence[Any]] = ()
    ended: str = ""

    @property
    def done(self) -> int:
        """The number of its last call that is over."""
        return self.number - self.inside

    @property
    def text(self) -> str:
        """As `parsed` reads it."""
        return json.dumps(self)

    @staticmethod
    def parsed(text: str) -> State:
        """The state of a text."""
        return State(*json.loads(text))

    @property
    def place(self) -> str:
        """In words."""
        if not self.number:
            return "has made no call"
        if self.inside:
            return f"is in its call {self.number}, {self.what}"
        return f"is in no call: its last was call {self.number}, {self.what}"


class Call:
    """A call that this process has begun."""

    __slots__ = ("asks", "began", "digest", "inside", "number", "result", "what")

    def __init__(self, number: int, what: Any) -> None:
        self.number, self.what, self.began = number, what, monotonic()
        self.digest, self.asks, self.inside = b"", False, True
        self.result: ref[Any] | None = None  # a jax.Array

    @property
    def is_running(self) -> bool:
        """Whether the devices have not made its result yet, which someone still holds."""
        result = None if self.result is None else self.result()
        try:
            return result is not None and not result.is_ready()
        except RuntimeError:  # its memory was given to another program
            return False


class Calls:
    """The calls of this process on one group's devices, one at a time."""

    def __init__(self) -> None:
        self.last = Call(0, "")
        self.last.inside = False
        self.failed: list[tuple[int, str]] = []
        self.ended = ""

    def begin(self, what: Any) -> Call | None:
        """A new call; None inside of another one, which counts alone."""
        if self.last.inside:
            return None
        self.last = Call(self.last.number + 1, what)
        return self.last

    def end(self, call: Call, error: BaseException | None) -> None:
        """The call is over; one that the user interrupted is to be made again, and not counted."""
        call.inside = call.asks = False
        if isinstance(error, KeyboardInterrupt):
            call.number -= 1
        elif error is not None:
            words = f"{type(error).__name__}: {error}"[:_WORDS]
            self.failed = [*self.failed, (call.number, words)][-_MOST_FAILED:]

    @property
    def state(self) -> State:
        """What the others are told."""
        call = self.last
        what = str(call.what)[:_WORDS]
        inside = call.inside or call.is_running
        found = State(call.number, inside, call.asks, what, call.digest.hex())
        return found._replace(failed=self.failed, ended=self.ended)


def absent(
    own: State, others: Mapping[int, State], is_late: bool, is_patient: bool = False
) -> dict[int, str]:
    """Which processes won't come to the call that this one is in, and why, in words.

    is_late: whether it has waited so long that it gives up on those that are elsewhere.
    is_patient: whether it waits for those in the same call, whatever they do there.
    """
    found = {}
    for process, each in sorted(others.items()):
        why = _never(own, each)
        if not why and is_late and _elsewhere(own, each, is_patient):
            why = each.place
        if why:
            found[process] = why
    return found


def _never(own: State, other: State) -> str:
    """Why a process never comes; empty where it still may."""
    mine = {number for number, _ in own.failed}  # of these all were told
    for number, words in other.failed:
        is_last = other.ended or number == other.number
        if number == own.number or (is_last and number < own.number and number not in mine):
            return f"failed in its call {number}: {words}"
    if other.ended and (own.asks or other.done < own.number):
        return f"has ended ({other.ended}) after its call {other.number}, {other.what}"
    both_ask = own.asks and other.asks  # and find out so
    if other.inside and other.number == own.number and not both_ask:
        is_other = own.digest and other.digest and own.digest != other.digest
        return f"is in {other.what} instead, or with other layouts" if is_other else ""
    return ""


def _elsewhere(own: State, other: State, is_patient: bool) -> bool:
    """Whether a process has not come yet."""
    if other.number < own.number:
        return True
    return own.asks and not other.asks and not (is_patient and other.inside)
