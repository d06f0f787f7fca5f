"""`Group`: the processes that have devices of one mesh, and what they have agreed on.

They speak by all-gathers of one small message. Who waits for one does so beside the main thread,
for so many seconds at most, as a process that is elsewhere does not answer. Which one that is, and
where it is, they tell each other past the devices (`watch.py`).
"""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import TIMEOUT_MAX
from time import monotonic, sleep
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gridlayout.errors import LayoutError
from gridlayout.sharding.calls import Call, Calls
from gridlayout.sharding.coordination import find_board
from gridlayout.sharding.elements import Elements, digest_of
from gridlayout.sharding.messages import FAILED, SAYS, Exchange, Lines, Message
from gridlayout.sharding.watch import SHORTLY, Watch, told

# How long a process waits for the others: where it asks them, as long as JAX does before it holds
# one for dead; in a program, whose end is the process's own, longer; or what users say for both.
_SECONDS, _SECONDS_INSIDE, _VARIABLE = 100.0, 600.0, "GRIDLAYOUT_AGREEMENT_SECONDS"
# Between two looks at where the others are, and for them to hear of a process that ends.
_LOOK, _HEARD = 1.0, 2.0
_RECENT, _TITLE = 64, 300


class Group:
    """Processes that have devices of one mesh, and what they agreed on."""

    def __init__(self, processes: Sequence[int], platform: str) -> None:
        # Downwards: a process that is in a program of the mesh, whose devices go upwards, is then
        # not answered with bytes of the agreement, where the backend tells groups by their order.
        self.processes = tuple(reversed(processes))
        own: dict[int, list[jax.Device]] = {}
        for device in jax.devices(platform):
            own.setdefault(device.process_index, []).append(device)
        firsts = [min(own[process], key=lambda d: d.id) for process in self.processes]
        mesh = Mesh(np.array(firsts), ("process",))
        self.device = firsts[self.processes.index(jax.process_index())]
        self.apart = NamedSharding(mesh, PartitionSpec("process"))
        self.gather = jax.jit(lambda x: x, out_shardings=NamedSharding(mesh, PartitionSpec()))
        self.watch: Watch | None = None
        self.begin()
        name = digest_of(repr((platform, self.processes)).encode()).hex()[:16]
        if (board := find_board(name)) is not None:
            self.watch = Watch(
                self.calls, board, jax.process_index(), self.others, partial(seconds_to_wait, True)
            )
        atexit.register(self.leave)  # before JAX, which waits for the others

    def begin(self) -> None:
        """Nothing is agreed on."""
        self.calls, self.watch = Calls(), None
        # The local digests of keys; the digests that all agreed on, and what they are of.
        self.known: dict[Any, bytes] = {}
        self.agreed: dict[bytes, str] = {}
        # What was agreed on in a call that is not over.
        self.interrupted = b""
        self.pending: Exchange | None = None
        self.lost = ""
        self.forget_history()

    def forget_history(self) -> None:
        """Begin to count the calls that are not asked about."""
        self.recent: deque[bytes] = deque(maxlen=_RECENT)
        self.count, self.history = 0, hashlib.sha256()

    def agree(
        self,
        what: object,
        digest: bytes,
        text: Callable[[], Lines],
        data: Elements | None,
        patient: bool = False,
    ) -> bytes:
        """`LayoutError` unless all say this; nothing to be said where they have agreed on it.

        patient: whether to wait for the others without end, and ask in any case. Of a call that was
        not asked about the digest is given back, by which it is counted when it is over.
        """
        if data is None and not patient and digest in self.agreed:
            self.settle(what)
            return b"" if digest == self.interrupted else digest
        compared = "none" if data is None else data.how
        whole = digest_of(self.history.digest() + digest + compared.encode())
        bytes_of = b"" if data is None else data.prefix(None)
        lines = Lines([*self.earlier(), *text().lines, f"data compared: {compared}"])
        said = self.said(what, Message(SAYS, whole, bytes_of, len(lines)), patient)
        if len({each.text for each in said}) > 1:
            found = self.first_difference(what, lines, max(each.length for each in said))
        elif data is not None and len({each.data for each in said}) > 1:
            found = self.first_difference(what, data, len(data))
        else:
            self.agreed[digest] = " | ".join(text().lines)[:_TITLE]
            self.forget_history()
            self.interrupted = digest  # until it is over
            return b""
        self.forget_history()
        raise LayoutError(
            f"{what}: the processes differ, first in this: {found}. Each of "
            f"{names(self.processes)} has to make the same calls in the same order, with the same "
            "layouts, device grid, function and data"
        )

    def close(self, call: Call | None, counted: bytes, error: BaseException | None) -> None:
        """A call is over; one that the user interrupted is as if it had not been made."""
        if not isinstance(error, KeyboardInterrupt):
            self.interrupted = b""
            if counted:
                self.recent.append(counted)
                self.history.update(counted)
                self.count += 1
        if call is not None:
            self.calls.end(call, error)
        # What the devices ran, when another process left them.
        watch = self.watch if isinstance(error, jax.errors.JaxRuntimeError) else None
        if watch is not None and (words := watch.missed()):
            raise LayoutError(f"process {jax.process_index()}: {words}: {error}") from error

    def earlier(self) -> list[str]:
        """The calls since the last agreement, which had been agreed on before."""
        if not self.count:
            return []
        first = 1 + self.count - len(self.recent)
        calls = [f"earlier call {first + k}: {self.agreed[d]}" for k, d in enumerate(self.recent)]
        return [*calls, f"{self.count} earlier calls, {self.history.hexdigest()}"]

    def first_difference(self, what: object, mine: Lines | Elements, length: int) -> str:
        """The first unit that is not the same in all processes, as each has it."""
        low, high = 0, length  # the first `low` are the same, the first `high` are not
        while high - low > 1:
            middle = (low + high) // 2
            said = self.said(what, Message(SAYS, mine.prefix(middle)))
            same = len({each.text for each in said}) == 1
            low, high = (middle, high) if same else (low, middle)
        found: dict[str, list[int]] = {}
        said = self.said(what, Message(SAYS, words=mine.unit(low)))
        for process, each in sorted(zip(self.processes, said, strict=True)):
            found.setdefault(each.words, []).append(process)
        return "; ".join(f"{names(who)}: {words}" for words, who in found.items())

    def table(self, row: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The rows of all processes, in the order of `processes`; all have said that they come."""
        local = jax.device_put(row[None], self.device)
        shape = (len(self.processes), len(row))
        whole = jax.make_array_from_single_device_arrays(shape, self.apart, [local])
        return np.asarray(self.gather(whole).addressable_data(0))

    def said(self, what: object, message: Message, patient: bool = False) -> list[Message]:
        """What every process says; `LayoutError` where one failed, or does not come."""
        said = self.exchanged(what, message, None if patient else seconds_to_wait())
        if isinstance(said, str) or None in said:
            self.lost = str(what)
            reason = said if isinstance(said, str) else "they are in another program"
            raise LayoutError(
                f"{what}: process {jax.process_index()} asked {names(self.others)} whether they "
                f"are about to do the same, but not all answered ({reason}). All have to make the "
                f"same calls in the same order; {_VARIABLE} says how long to wait"
            )
        failed = zip(self.processes, said, strict=True)
        if words := [f"process {p}: {m.words}" for p, m in failed if m and m.kind == FAILED]:
            raise LayoutError(f"{what} failed elsewhere, so it is not done here: {words[0]}")
        return [each for each in said if each is not None]

    @property
    def others(self) -> list[int]:
        """The processes but this one."""
        return [p for p in self.processes if p != jax.process_index()]

    def exchanged(
        self, what: object, message: Message, seconds: float | None
    ) -> list[Message | None] | str:
        """All processes' messages; why they do not come in time, if it has an end."""
        if self.lost or self.pending is None or self.pending.message != message:
            self.settle(what)
            self.pending = Exchange(self.table, message)
            self.pending.start()
        exchange, call = self.pending, self.calls.last  # it goes on where the user interrupts
        call.asks = True
        try:
            if reason := self.waited_for(exchange, seconds):
                return reason
        finally:
            call.asks = False
        self.pending = None
        if exchange.error is None:
            return exchange.heard
        who = self.absent(is_late=True, after=_HEARD) or names(self.others)
        raise LayoutError(
            f"{what}: process {jax.process_index()} can't ask {who}: {exchange.error}"
        ) from exchange.error

    def waited_for(self, exchange: Exchange, seconds: float | None) -> str:
        """Empty when all have said something; else who does not come, and why."""
        limit, began, waited = seconds_to_wait() if seconds is None else seconds, monotonic(), 0.0
        while True:
            exchange.over.wait(min(_LOOK, max(limit - waited, 0)) or _LOOK)
            waited = monotonic() - began
            if exchange.over.is_set():
                return ""
            is_late = waited >= limit
            who = self.absent(is_late, seconds is None) if waited >= min(SHORTLY, limit) else ""
            if who or (is_late and seconds is not None):
                within = f"none within {limit:g} seconds" if is_late else ""
                return ": ".join(filter(None, (within, who)))

    def absent(self, is_late: bool, is_patient: bool = False, after: float = 0.0) -> str:
        """Who does not come to the call that this process is in, as far as others tell."""
        if self.watch is None:
            return ""
        try:
            self.watch.post()
            sleep(after)
            return told(self.watch.absent(is_late, is_patient))
        except RuntimeError:  # the service is gone, and JAX ends this process
            return ""

    def report(self, what: object, words: str, patient: bool = False) -> None:
        """Tell the others, if they ask, that this process has failed."""
        if not self.lost and self.pending is None:
            with suppress(LayoutError):  # the error that is being raised says more
                seconds = None if patient else min(SHORTLY, seconds_to_wait())
                self.exchanged(what, Message(FAILED, words=words), seconds)

    def leave(self) -> None:
        """The program is over: tell the others, and do not wait where they did not answer.

        They may hang in a program without this process. JAX would wait for them, up to its own
        limit of minutes; when this one is gone they fail.
        """
        why = _why_over()
        if self.watch is not None:
            if why and (words := self.watch.missed()):
                print(f"LayoutError: process {jax.process_index()}: {words}", file=sys.stderr)
            self.watch.end(why or "its program is over")
        if self.pending is not None and not self.pending.over.is_set():
            sleep(_HEARD)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)

    def settle(self, what: object) -> None:
        """Wait for what was left unanswered; `LayoutError` where it stays so."""
        if self.pending is not None and not self.lost:
            if self.pending.over.wait(seconds_to_wait()):
                self.pending = None
            else:
                self.lost = str(what)
        if self.lost:
            raise LayoutError(
                f"{what}: the processes of this device grid lost each other in {self.lost}, which "
                "not all of them came to, so they can't go on together: start them again"
            )


def _why_over() -> str:
    """The error that has ended the program, which Python has printed; empty without one."""
    error = getattr(sys, "last_value", None)
    return "" if error is None else f"{type(error).__name__}: {error}"


def seconds_to_wait(is_inside: bool = False) -> float:
    """How long to wait for another process, that is asked or inside of a program."""
    text = os.environ.get(_VARIABLE) or str(_SECONDS_INSIDE if is_inside else _SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= TIMEOUT_MAX:
        raise LayoutError(f"{_VARIABLE}={text!r} must be a number of seconds above 0")
    return seconds


def names(processes: Sequence[int]) -> str:
    """Processes as a message has them.

    >>> names([2, 0]), names(range(100))
    ('processes 0, 2', 'processes 0, 1, 2, 3, ..., 99')
    """
    numbers = [str(p) for p in sorted(processes)]
    if len(numbers) > 8:
        numbers[4:-1] = ["..."]
    return f"process{'es' if len(numbers) > 1 else ''} {', '.join(numbers)}"
