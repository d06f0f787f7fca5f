"""`Group`: the processes that have devices of one mesh, and what they have agreed on.

They speak by all-gathers of one small message. Who waits for one does so beside the main thread,
for so many seconds at most, as a process that is elsewhere does not answer.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import TIMEOUT_MAX, Thread
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gridlayout.errors import LayoutError
from gridlayout.sharding.elements import Elements, digest_of

# How long a process waits for the others, as long as JAX does before it holds one for dead, and
# where users say otherwise; one that has an error to raise waits shortly, for them to hear of it.
_SECONDS, _VARIABLE, _SHORTLY = 100.0, "GRIDLAYOUT_AGREEMENT_SECONDS", 5.0
_MESSAGE, _HEAD = 1024, struct.Struct("<8sBQ32s32sH")
_MAGIC, _SAYS, _FAILED = b"agree on", 1, 2
_RECENT, _WORDS, _TITLE = 64, 800, 300


class Lines:
    """A text, which differs from another in a line; long ones count as several."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = [
            line[k : k + _WORDS] for line in lines for k in range(0, max(len(line), 1), _WORDS)
        ]

    def __len__(self) -> int:
        return len(self.lines)

    def prefix(self, count: int | None) -> bytes:
        """The digest of the first lines, or of all."""
        return digest_of(repr(self.lines[:count]).encode())

    def unit(self, number: int) -> str:
        """The line of a number."""
        return self.lines[number] if number < len(self.lines) else "no more"


class _Message(NamedTuple):
    """What a process says at a time: digests of its text and data, how long they are, words."""

    kind: int
    text: bytes = b""
    data: bytes = b""
    length: int = 0
    words: str = ""

    def packed(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        words = self.words.encode()[: _MESSAGE - _HEAD.size]
        head = _HEAD.pack(_MAGIC, self.kind, self.length, self.text, self.data, len(words))
        return np.frombuffer((head + words).ljust(_MESSAGE, b"\0"), np.uint8)

    @staticmethod
    def unpacked(row: bytes) -> _Message | None:
        """The message; None where these are another program's bytes."""
        magic, kind, length, text, data, size = _HEAD.unpack_from(row)
        words = row[_HEAD.size : _HEAD.size + size].decode(errors="replace")
        return _Message(kind, text, data, length, words) if magic == _MAGIC else None


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
        self.begin()

    def begin(self) -> None:
        """Nothing is agreed on."""
        # The local digests of keys; the digests that all agreed on, and what they are of.
        self.known: dict[Any, bytes] = {}
        self.agreed: dict[bytes, str] = {}
        self.waiting: Thread | None = None
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
    ) -> None:
        """`LayoutError` unless all say this; nothing to be said where they have agreed on it.

        patient: whether to wait for the others without end, and ask in any case.
        """
        self.settle(what)
        if data is None and not patient and digest in self.agreed:
            self.recent.append(digest)
            self.history.update(digest)
            self.count += 1
            return
        compared = "none" if data is None else data.how
        whole = digest_of(self.history.digest() + digest + compared.encode())
        bytes_of = b"" if data is None else data.prefix(None)
        lines = Lines([*self.earlier(), *text().lines, f"data compared: {compared}"])
        said = self.said(what, _Message(_SAYS, whole, bytes_of, len(lines)), patient)
        if len({each.text for each in said}) > 1:
            found = self.first_difference(what, lines, max(each.length for each in said))
        elif data is not None and len({each.data for each in said}) > 1:
            found = self.first_difference(what, data, len(data))
        else:
            self.agreed[digest] = " | ".join(text().lines)[:_TITLE]
            self.forget_history()
            return
        self.forget_history()
        raise LayoutError(
            f"{what}: the processes differ, first in this: {found}. Each of "
            f"{names(self.processes)} has to make the same calls in the same order, with the same "
            "layouts, device grid, function and data"
        )

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
            said = self.said(what, _Message(_SAYS, mine.prefix(middle)))
            same = len({each.text for each in said}) == 1
            low, high = (middle, high) if same else (low, middle)
        found: dict[str, list[int]] = {}
        said = self.said(what, _Message(_SAYS, words=mine.unit(low)))
        for process, each in sorted(zip(self.processes, said, strict=True)):
            found.setdefault(each.words, []).append(process)
        return "; ".join(f"{names(who)}: {words}" for words, who in found.items())

    def table(self, row: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The rows of all processes, in the order of `processes`; all have said that they come."""
        local = jax.device_put(row[None], self.device)
        shape = (len(self.processes), len(row))
        whole = jax.make_array_from_single_device_arrays(shape, self.apart, [local])
        return np.asarray(self.gather(whole).addressable_data(0))

    def said(self, what: object, message: _Message, patient: bool = False) -> list[_Message]:
        """What every process says; `LayoutError` where one failed, or did not come."""
        seconds = seconds_to_wait()
        said = self.exchanged(message, None if patient else seconds)
        if said is None or None in said:
            self.lost = str(what)
            who = names([p for p in self.processes if p != jax.process_index()])
            reason = "they are in another program" if said else f"none within {seconds:g} seconds"
            raise LayoutError(
                f"{what}: process {jax.process_index()} asked {who} whether they are about to do "
                f"the same, but not all answered ({reason}): they made another call, or failed. "
                f"{_VARIABLE} says how long to wait"
            )
        failed = zip(self.processes, said, strict=True)
        if words := [f"process {p}: {m.words}" for p, m in failed if m and m.kind == _FAILED]:
            raise LayoutError(f"{what} failed elsewhere, so it is not done here: {words[0]}")
        return [each for each in said if each is not None]

    def exchanged(self, message: _Message, seconds: float | None) -> list[_Message | None] | None:
        """All processes' messages; None where they do not come in time, if it has an end."""
        found: list[Any] = []

        def exchange() -> None:
            try:
                rows = self.table(message.packed())
                found.append([_Message.unpacked(row.tobytes()) for row in rows])
            except Exception as error:  # JAX's own, where it can't reach another process
                found.append(error)

        thread = Thread(target=exchange, name="gridlayout agreement", daemon=True)
        self.waiting = thread  # also where the user interrupts
        thread.start()
        thread.join(seconds)
        if not found:
            atexit.register(self.leave)
            return None
        self.waiting = None
        if isinstance(found[0], Exception):
            raise LayoutError(f"the other processes can't be asked: {found[0]}") from found[0]
        messages: list[_Message | None] = found[0]
        return messages

    def report(self, words: str, patient: bool = False) -> None:
        """Tell the others, if they ask, that this process has failed."""
        if not self.lost and self.waiting is None:
            with suppress(LayoutError):  # the error that is being raised says more
                seconds = None if patient else min(_SHORTLY, seconds_to_wait())
                self.exchanged(_Message(_FAILED, words=words), seconds)

    def leave(self) -> None:
        """End this process, whom others did not answer: they may hang in a program without it.

        JAX would wait for them, up to its own limit of minutes; when this one is gone they fail.
        """
        if self.waiting is not None and self.waiting.is_alive():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)

    def settle(self, what: object) -> None:
        """Wait for what was left unanswered; `LayoutError` where it stays so."""
        if self.waiting is not None and not self.lost:
            self.waiting.join(seconds_to_wait())
            if self.waiting.is_alive():
                self.lost = str(what)
            else:
                self.waiting = None
        if self.lost:
            raise LayoutError(
                f"{what}: the processes of this device grid lost each other in {self.lost}, which "
                "not all of them came to, so they can't go on together: start them again"
            )


def seconds_to_wait() -> float:
    """How long to wait for another process."""
    text = os.environ.get(_VARIABLE) or str(_SECONDS)
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
