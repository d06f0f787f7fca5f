"""The messages that processes exchange before they run one program, and the exchange."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from threading import Event, Thread
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gridlayout.sharding.processes.elements import digest_of

_MESSAGE, _HEAD = 1024, struct.Struct("<8sBQ32s32sH")
# Kinds of messages: of a process that is about to make a call, and of one that failed.
_MAGIC, CALL, FAILED = b"agree on", 1, 2
_WORDS = 800


class Lines:
    """A text, compared line by line; a long line is split into several."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = [
            line[k : k + _WORDS] for line in lines for k in range(0, max(len(line), 1), _WORDS)
        ]

    def __len__(self) -> int:
        return len(self.lines)

    def prefix(self, count: int | None) -> bytes:
        """Return the digest of the first `count` lines; of all lines for None."""
        return digest_of(repr(self.lines[:count]).encode())

    def unit(self, number: int) -> str:
        """Return the line with this number."""
        return self.lines[number] if number < len(self.lines) else "no more"


class Message(NamedTuple):
    """A message of one process.

    text, data: digests. length: the number of lines of the text. words: an error, or one unit.
    """

    kind: int
    text: bytes = b""
    data: bytes = b""
    length: int = 0
    words: str = ""

    def packed(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the message as an array of 1,024 bytes; too long words are cut."""
        words = self.words.encode(errors="replace")[: _MESSAGE - _HEAD.size]
        head = _HEAD.pack(_MAGIC, self.kind, self.length, self.text, self.data, len(words))
        return np.frombuffer((head + words).ljust(_MESSAGE, b"\0"), np.uint8)

    @staticmethod
    def unpacked(row: bytes) -> Message | None:
        """Return the message of some bytes; None if they are those of another program."""
        magic, kind, length, text, data, size = _HEAD.unpack_from(row)
        words = row[_HEAD.size : _HEAD.size + size].decode(errors="replace")
        return Message(kind, text, data, length, words) if magic == _MAGIC else None


class Exchange(Thread):
    """A thread that all-gathers one message.

    heard: the messages of all processes, once `over` is set, unless there is an `error`.
    """

    def __init__(self, table: Callable[[Any], Any], message: Message) -> None:
        super().__init__(name="gridlayout agreement", daemon=True)
        self.table, self.message = table, message
        self.heard: list[Message | None] = []
        self.error: Exception | None = None
        # Before Python 3.13, after an interrupted `join` a running thread may count as ended.
        self.over = Event()

    def run(self) -> None:
        """Run the all-gather; called by the thread."""
        try:
            rows = self.table(self.message.packed())
            self.heard = [Message.unpacked(row.tobytes()) for row in rows]
        except Exception as error:  # JAX raises it if it can't reach another process
            self.error = error
        finally:
            self.over.set()


class AllGather:
    """An all-gather between processes; each of them must call `table`.

    processes: those whose rows it returns, in the order of the rows. That is descending, unlike the
    devices of programs: a backend that identifies groups by their order then does not mix up this
    all-gather and a collective of a program.
    """

    def __init__(self, processes: Sequence[int], platform: str) -> None:
        self.processes, self.platform = tuple(sorted(processes, reverse=True)), platform
        own: dict[int, list[jax.Device]] = {}
        for device in jax.devices(platform):
            own.setdefault(device.process_index, []).append(device)
        firsts = [min(own[process], key=lambda d: d.id) for process in self.processes]
        mesh = Mesh(np.array(firsts), ("process",))
        self._device = firsts[self.processes.index(jax.process_index())]
        self._by_process = NamedSharding(mesh, PartitionSpec("process"))
        self._gather = jax.jit(lambda x: x, out_shardings=NamedSharding(mesh, PartitionSpec()))

    def table(self, row: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the rows of all processes."""
        local = jax.device_put(row[None], self._device)
        shape = (len(self.processes), len(row))
        rows = jax.make_array_from_single_device_arrays(shape, self._by_process, [local])
        return np.asarray(self._gather(rows).addressable_data(0))
