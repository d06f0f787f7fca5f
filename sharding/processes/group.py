"""`Group`: the processes that have devices of one mesh, and the calls on which they agreed.

The processes exchange small messages by all-gathers, each in a thread. The main thread waits for it
with a time limit, because a process that makes another call does not take part. Independently of
the devices, the processes post their states, which show which one is missing and why (`watch.py`).
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
from gridlayout.sharding.processes.calls import Call, Calls
from gridlayout.sharding.processes.coordination import find_board
from gridlayout.sharding.processes.elements import Elements, digest_of
from gridlayout.sharding.processes.messages import CALL, FAILED, Exchange, Lines, Message
from gridlayout.sharding.processes.watch import SHORTLY, Watch, in_words

# How long a process waits for the others: for an exchange, as long as JAX waits until it assumes
# that a process is dead; in a program longer, because the process then ends. Users can set both.
_SECONDS, _SECONDS_INSIDE, _VARIABLE = 100.0, 600.0, "GRIDLAYOUT_AGREEMENT_SECONDS"
# Seconds between two checks of the states of the others, and until a posted state is read.
_CHECK, _POSTED = 1.0, 2.0
_RECENT, _TITLE = 64, 300


class Group:
    """The processes that have devices of one mesh, and the calls on which they agreed."""

    def __init__(self, processes: Sequence[int], platform: str) -> None:
        # In descending order, unlike the devices of programs: a backend that identifies groups by
        # their order then does not mix up an exchange and a collective of a program.
        self.processes = tuple(reversed(processes))
        own: dict[int, list[jax.Device]] = {}
        for device in jax.devices(platform):
            own.setdefault(device.process_index, []).append(device)
        firsts = [min(own[process], key=lambda d: d.id) for process in self.processes]
        mesh = Mesh(np.array(firsts), ("process",))
        self.device = firsts[self.processes.index(jax.process_index())]
        self.by_process = NamedSharding(mesh, PartitionSpec("process"))
        self.gather = jax.jit(lambda x: x, out_shardings=NamedSharding(mesh, PartitionSpec()))
        self.watch: Watch | None = None
        self.begin()
        name = digest_of(repr((platform, self.processes)).encode()).hex()[:16]
        if (board := find_board(name)) is not None:
            self.watch = Watch(
                self.calls, board, jax.process_index(), self.others, partial(seconds_to_wait, True)
            )
        atexit.register(self.leave)  # runs before JAX's own handler, which waits for the others

    def begin(self) -> None:
        """Reset the group: no call is made, and nothing agreed on."""
        self.calls, self.watch = Calls(), None
        # The digests of keys in this process; the digests on which all agreed, with their titles.
        self.known: dict[Any, bytes] = {}
        self.agreed: dict[bytes, str] = {}
        # The digest that was agreed on in the current call.
        self.interrupted = b""
        self.pending: Exchange | None = None
        self.lost = ""
        self.forget_history()

    def forget_history(self) -> None:
        """Reset the count of the calls that were not compared."""
        self.recent: deque[bytes] = deque(maxlen=_RECENT)
        self.count, self.history = 0, hashlib.sha256()

    def agree(
        self,
        what: object,
        digest: bytes,
        text: Callable[[], Lines],
        data: Elements | None,
        patient: bool = False,
        every_time: bool = False,
    ) -> bytes:
        """Raise `LayoutError` unless all processes make this call.

        Nothing is exchanged if they have agreed on its digest before. The digest is then returned,
        and `close` counts the call by it; otherwise the result is empty. patient: whether to wait
        for the others without limit. every_time: whether to exchange in any case.
        """
        if data is None and not every_time and digest in self.agreed:
            self.finish_pending(what)
            return b"" if digest == self.interrupted else digest
        compared = "none" if data is None else data.how
        with_history = digest_of(self.history.digest() + digest + compared.encode())
        bytes_of = b"" if data is None else data.prefix(None)
        lines = Lines([*self.earlier(), *text().lines, f"data compared: {compared}"])
        message = Message(CALL, with_history, bytes_of, len(lines))
        replies = self.replies(what, message, patient)
        if len({each.text for each in replies}) > 1:
            found = self.first_difference(what, lines, max(each.length for each in replies))
        elif data is not None and len({each.data for each in replies}) > 1:
            found = self.first_difference(what, data, len(data))
        else:
            self.agreed[digest] = " | ".join(text().lines)[:_TITLE]
            self.forget_history()
            self.interrupted = digest  # until the call is over
            return b""
        self.forget_history()
        raise LayoutError(
            f"{what}: the processes differ, first in this: {found}. Each of "
            f"{names(self.processes)} must make the same calls in the same order, with the same "
            "layouts, device grid, function and data"
        )

    def close(self, call: Call | None, counted: bytes, error: BaseException | None) -> None:
        """End a call; one that the user interrupted is not counted, and can be made again."""
        if not isinstance(error, KeyboardInterrupt):
            self.interrupted = b""
            if counted:
                self.recent.append(counted)
                self.history.update(counted)
                self.count += 1
        if call is not None:
            self.calls.end(call, error)
        # JAX raises this error if another process ended during the program.
        watch = self.watch if isinstance(error, jax.errors.JaxRuntimeError) else None
        if watch is not None and (words := watch.missed()):
            raise LayoutError(f"process {jax.process_index()}: {words}: {error}") from error

    def earlier(self) -> list[str]:
        """Return lines about the calls since the last exchange; they were agreed on before."""
        if not self.count:
            return []
        first = 1 + self.count - len(self.recent)
        calls = [f"earlier call {first + k}: {self.agreed[d]}" for k, d in enumerate(self.recent)]
        return [*calls, f"{self.count} earlier calls, {self.history.hexdigest()}"]

    def first_difference(self, what: object, mine: Lines | Elements, length: int) -> str:
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

    def table(self, row: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the rows of all processes, in the order of `processes`; all must call this."""
        local = jax.device_put(row[None], self.device)
        shape = (len(self.processes), len(row))
        rows = jax.make_array_from_single_device_arrays(shape, self.by_process, [local])
        return np.asarray(self.gather(rows).addressable_data(0))

    def replies(self, what: object, message: Message, patient: bool = False) -> list[Message]:
        """Return the messages of all processes; raise `LayoutError` if one failed or is missing."""
        replies = self.exchanged(what, message, None if patient else seconds_to_wait())
        if isinstance(replies, str) or None in replies:
            self.lost = str(what)
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
        if self.lost or self.pending is None or self.pending.message != message:
            self.finish_pending(what)
            # It continues if the user interrupts the call.
            self.pending = Exchange(self.table, message)
            self.pending.start()
        exchange, call = self.pending, self.calls.last
        call.asks = True
        try:
            if reason := self.waited_for(exchange, seconds):
                return reason
        finally:
            call.asks = False
        self.pending = None
        if exchange.error is None:
            return exchange.heard
        who = self.absent(is_late=True, after=_POSTED) or names(self.others)
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

    def absent(self, is_late: bool, is_patient: bool = False, after: float = 0.0) -> str:
        """Return which processes do not come to the current call, and why; "" if unknown.

        after: seconds until the states of the others are read.
        """
        if self.watch is None:
            return ""
        try:
            self.watch.post()
            sleep(after)
            return in_words(self.watch.absent(is_late, is_patient))
        except RuntimeError:  # the service has ended, and JAX ends this process
            return ""

    def report(self, what: object, words: str, patient: bool = False) -> None:
        """Take part in the exchange that the others may make, to report the error of this one."""
        if not self.lost and self.pending is None:
            with suppress(LayoutError):  # the error that is being raised is more useful
                seconds = None if patient else min(SHORTLY, seconds_to_wait())
                self.exchanged(what, Message(FAILED, words=words), seconds)

    def leave(self) -> None:
        """Post that this process ends; end it at once if an exchange has not ended.

        The others may then hang in a program that needs this process. JAX would wait for them, up
        to its limit of minutes; when this process has ended, they fail.
        """
        why = _why_over()
        if self.watch is not None:
            if why and (words := self.watch.missed()):
                print(f"LayoutError: process {jax.process_index()}: {words}", file=sys.stderr)
            self.watch.end(why or "its program is over")
        if self.pending is not None and not self.pending.over.is_set():
            sleep(_POSTED)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)

    def finish_pending(self, what: object) -> None:
        """Wait for the exchange that an earlier call left; raise `LayoutError` after the limit."""
        if self.pending is not None and not self.lost:
            if self.pending.over.wait(seconds_to_wait()):
                self.pending = None
            else:
                self.lost = str(what)
        if self.lost:
            raise LayoutError(
                f"{what}: the processes of this device grid lost each other in {self.lost}, which "
                "not all of them came to, so they can't continue together: start them again"
            )


def _why_over() -> str:
    """Return the error that ended the program, which Python has printed; "" if there is none."""
    error = getattr(sys, "last_value", None)
    return "" if error is None else f"{type(error).__name__}: {error}"


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
