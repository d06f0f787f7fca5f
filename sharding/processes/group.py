"""`Group`: the processes that have devices of one mesh, and the calls on which they agreed.

The processes exchange small messages by all-gathers, each in a thread. The main thread waits for it
with a time limit, because a process that makes another call does not take part. Independently of
the devices, the processes post their states, which show which one is missing and why (`watch.py`).
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import TIMEOUT_MAX
from time import monotonic
from typing import Any

import jax
import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.sharding.processes.calls import Call, Calls
from gridlayout.sharding.processes.elements import Compared, digest_of
from gridlayout.sharding.processes.messages import CALL, FAILED, Exchange, Lines, Message
from gridlayout.sharding.processes.watch import SHORTLY, Watch

# How long a process waits for the others: for an exchange, as long as JAX waits until it assumes
# that a process is dead; in a program longer, because the process then ends. Users can set both.
_SECONDS, _SECONDS_INSIDE, _VARIABLE = 100.0, 600.0, "GRIDLAYOUT_AGREEMENT_SECONDS"
# Seconds between two checks of the states of the others.
_CHECK = 1.0
_RECENT, _TITLE = 64, 300
_SAME = (
    "must make the same calls in the same order, with the same layouts, device grid, function "
    "and data"
)


class Agreed:
    """The calls on which all processes agreed.

    titles: of the calls, by their digests. recent, count, digest: the last calls since the last
    comparison, how many there were, and a digest of them all; they have to be equal everywhere.
    """

    def __init__(self) -> None:
        self.titles: dict[bytes, str] = {}
        self.compared()

    def compared(self) -> None:
        """Forget the calls before a comparison, which has shown that they are equal."""
        self.recent: deque[bytes] = deque(maxlen=_RECENT)
        self.count, self.digest = 0, hashlib.sha256()

    def add(self, digest: bytes) -> None:
        """Add a call that was made without a comparison."""
        self.recent.append(digest)
        self.digest.update(digest)
        self.count += 1

    @property
    def lines(self) -> list[str]:
        """Lines about the calls since the last comparison, of which the last ones are listed."""
        if not self.count:
            return []
        first = 1 + self.count - len(self.recent)
        calls = [f"earlier call {first + k}: {self.titles[d]}" for k, d in enumerate(self.recent)]
        return [*calls, f"{self.count} earlier calls, {self.digest.hexdigest()}"]

    def __contains__(self, digest: bytes) -> bool:
        return digest in self.titles

    def __len__(self) -> int:
        return len(self.titles)


class Exchanges:
    """The all-gathers of the processes, one at a time, by `table`.

    pending: one that has not ended. lost: the call in which the processes lost each other, if they
    did.
    """

    def __init__(self, table: Callable[[Any], np.ndarray[Any, Any]]) -> None:
        self.table, self.lost = table, ""
        self.pending: Exchange | None = None

    @property
    def is_free(self) -> bool:
        """Whether another one can begin at once."""
        return self.pending is None and not self.lost

    def begin(self, what: object, message: Message) -> Exchange:
        """Return the exchange of a message, which goes on if the user interrupts the call."""
        if self.lost or self.pending is None or self.pending.message != message:
            self.finish(what)
            self.pending = Exchange(self.table, message)
            self.pending.start()
        return self.pending

    def finish(self, what: object) -> None:
        """Wait for the exchange that an earlier call left; raise `LayoutError` after the limit."""
        if (pending := self.pending) is not None and not self.lost:
            if pending.over.wait(seconds_to_wait()):
                self.pending = None
            else:
                self.lost = str(what)
        if self.lost:
            raise LayoutError(
                f"{what}: the processes of this device grid lost each other in {self.lost}, which "
                "not all of them came to, so they can't continue together: start them again"
            )


class Group:
    """The processes that have devices of one mesh, and the calls on which they agreed.

    processes: in the order of the rows of `table`, an all-gather. on_host: whether their devices
    are the processors of their hosts. calls: those of this process. watch: the thread that watches
    them, if states can be posted.
    """

    def __init__(
        self,
        processes: Sequence[int],
        table: Callable[[Any], np.ndarray[Any, Any]],
        on_host: bool = False,
    ) -> None:
        self.processes, self.on_host = tuple(processes), on_host
        self.calls, self.agreed, self.exchanges = Calls(), Agreed(), Exchanges(table)
        self.watch: Watch | None = None

    def agree(
        self,
        what: object,
        digest: bytes,
        text: Callable[[], Lines],
        data: Compared | None = None,
        *,
        title: str = "",
        patient: bool = False,
        every_time: bool = False,
        must: str = _SAME,
    ) -> bool:
        """Raise `LayoutError` unless all processes make this call; return whether it is a new one.

        Nothing is exchanged if they have agreed on its digest before. title: the call in messages
        of later ones; by default its text. patient: whether to wait for the others without limit.
        every_time: whether to exchange in any case. must: what an error says that the processes
        must do.
        """
        is_new = digest not in self.agreed
        if not is_new and data is None and not every_time:
            self.exchanges.finish(what)
            return False
        compared = "none" if data is None else data.how
        with_history = digest_of(self.agreed.digest.digest() + digest + compared.encode())
        bytes_of = b"" if data is None else data.prefix(None)
        lines = Lines([*self.agreed.lines, *text().lines, f"data compared: {compared}"])
        replies = self.replies(
            what, Message(CALL, with_history, bytes_of, len(lines)), patient=patient
        )
        self.agreed.compared()
        if len({each.text for each in replies}) > 1:
            found = self.first_difference(what, lines, max(each.length for each in replies))
        elif data is not None and len({each.data for each in replies}) > 1:
            found = self.first_difference(what, data, len(data))
        else:
            self.agreed.titles[digest] = title or " | ".join(text().lines)[:_TITLE]
            return is_new
        raise LayoutError(
            f"{what}: the processes differ, first in this: {found}. Each of "
            f"{names(self.processes)} {must}"
        )

    def close(
        self, call: Call | None, digest: bytes, error: BaseException | None, is_made: bool = True
    ) -> None:
        """End a call; one that the user interrupted is not counted, and can be made again.

        digest: that on which all agreed for it; empty if they did not. is_made: False if JAX traced
        it, and runs it later.
        """
        is_made &= not isinstance(error, KeyboardInterrupt)
        if digest and is_made:
            self.agreed.add(digest)
        if call is None:
            return
        self.calls.end(call, error, is_made)
        # JAX raises this error if another process ended during the program.
        if isinstance(error, jax.errors.JaxRuntimeError) and (words := self.lost_processes()):
            self.exchanges.lost = str(call.what)
            raise LayoutError(
                f"process {jax.process_index()}: call {call.number}, {call.what}, waits for "
                f"{words}: {error}"
            ) from error

    def first_difference(self, what: object, mine: Lines | Compared, length: int) -> str:
        """Return the first unit that differs between processes, as each process has it.

        mine: the lines or elements of this process. length: the number of units.
        """
        low, high = 0, length  # the first `low` are the same, the first `high` are not
        while high - low > 1:
            middle = (low + high) // 2
            replies = self.replies(what, Message(CALL, mine.prefix(middle)))
            same = len({each.text for each in replies}) == 1
            low, high = (middle, high) if same else (low, middle)
        found: dict[str, list[int]] = {}
        replies = self.replies(what, Message(CALL, words=mine.unit(low)))
        for process, each in sorted(zip(self.processes, replies, strict=True)):
            found.setdefault(each.words, []).append(process)
        return "; ".join(f"{names(who)}: {words}" for words, who in found.items())

    def replies(self, what: object, message: Message, *, patient: bool = False) -> list[Message]:
        """Return the messages of all processes; raise `LayoutError` if one failed or is missing."""
        replies = self.exchanged(what, message, None if patient else seconds_to_wait())
        if isinstance(replies, str) or None in replies:
            self.exchanges.lost = str(what)
            reason = replies if isinstance(replies, str) else "they are in another program"
            raise LayoutError(
                f"{what}: process {jax.process_index()} asked {names(self.others)} whether they "
                f"are about to do the same, but not all answered ({reason}). All must make the "
                f"same calls in the same order; {_VARIABLE} sets how long to wait"
            )
        failed = zip(self.processes, replies, strict=True)
        if words := [f"process {p}: {m.words}" for p, m in failed if m and m.kind == FAILED]:
            raise LayoutError(f"{what} failed elsewhere, so it is not done here: {words[0]}")
        return [each for each in replies if each is not None]

    @property
    def others(self) -> list[int]:
        """The other processes."""
        return [p for p in self.processes if p != jax.process_index()]

    def exchanged(
        self, what: object, message: Message, seconds: float | None
    ) -> list[Message | None] | str:
        """Return the messages of all processes, None for bytes of another program.

        If they do not arrive within `seconds`, or a process never comes, the reason is returned.
        """
        exchange, call = self.exchanges.begin(what, message), self.calls.last
        call.asks = True
        try:
            if reason := self.waited_for(exchange, seconds):
                return reason
        finally:
            call.asks = False
        self.exchanges.pending = None
        if exchange.error is None:
            return exchange.heard
        self.exchanges.lost = str(what)
        who = self.lost_processes() or names(self.others)
        raise LayoutError(
            f"{what}: process {jax.process_index()} can't ask {who}: {exchange.error}"
        ) from exchange.error

    def waited_for(self, exchange: Exchange, seconds: float | None) -> str:
        """Wait for an exchange; return why it does not end, or "" if it ended.

        seconds: the time limit; None to stop only if a process is missing.
        """
        limit, began, waited = seconds_to_wait() if seconds is None else seconds, monotonic(), 0.0
        while True:
            exchange.over.wait(min(_CHECK, max(limit - waited, 0)) or _CHECK)
            waited = monotonic() - began
            if exchange.over.is_set():
                return ""
            is_late = waited >= limit
            who = self.absent(is_late, seconds is None) if waited >= min(SHORTLY, limit) else ""
            if who or (is_late and seconds is not None):
                within = f"none within {limit:g} seconds" if is_late else ""
                return ": ".join(filter(None, (within, who)))

    def absent(self, is_late: bool, is_patient: bool) -> str:
        """Return which processes do not come to the current call, and why; "" if unknown."""
        if self.watch is not None:
            with suppress(RuntimeError):  # the service has ended, and JAX ends this process
                return self.watch.absent(is_late, is_patient)
        return ""

    def lost_processes(self) -> str:
        """Return which processes have ended or do not answer, and since when; "" if unknown."""
        return "" if self.watch is None else self.watch.lost()

    def report(self, what: object, words: str, patient: bool = False) -> None:
        """Take part in the exchange that the others may make, to report the error of this one."""
        if self.exchanges.is_free:
            with suppress(LayoutError):  # the error that is being raised is more useful
                seconds = None if patient else min(SHORTLY, seconds_to_wait())
                self.exchanged(what, Message(FAILED, words=words), seconds)


def seconds_to_wait(is_inside: bool = False) -> float:
    """Return the seconds to wait for another process: in an exchange, or inside a program."""
    text = os.environ.get(_VARIABLE) or str(_SECONDS_INSIDE if is_inside else _SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= TIMEOUT_MAX:
        raise LayoutError(f"{_VARIABLE}={text!r} must be a number of seconds above 0")
    return seconds


def names(processes: Sequence[int]) -> str:
    """Return processes as text for messages.

    >>> names([2, 0]), names(range(100))
    ('processes 0, 2', 'processes 0, 1, 2, 3, ..., 99')
    """
    numbers = [str(p) for p in sorted(processes)]
    if len(numbers) > 8:
        numbers[4:-1] = ["..."]
    return f"process{'es' if len(numbers) > 1 else ''} {', '.join(numbers)}"
