"""What processes say to each other before they run one program, and how they hear all of it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np

from gridlayout.sharding.elements import digest_of

_MESSAGE, _HEAD = 1024, struct.Struct("<8sBQ32s32sH")
_MAGIC, SAYS, FAILED = b"agree on", 1, 2
_WORDS = 800


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


class Message(NamedTuple):
    """What a process says at a time: digests of its text and data, how long they are, words."""

    kind: int
    text: bytes = b""
    data: bytes = b""
    length: int = 0
    words: str = ""

    def packed(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """As so many bytes."""
        words = self.words.encode()[: _MESSAGE - _HEAD.size]
        head = _HEAD.pack(_MAGIC, self.kind, self.length, self.text, self.data, len(words))
        return np.frombuffer((head + words).ljust(_MESSAGE, b"\0"), np.uint8)

    @staticmethod
    def unpacked(row: bytes) -> Message | None:
        """The message; None where these are another program's bytes."""
        magic, kind, length, text, data, size = _HEAD.unpack_from(row)
        words = row[_HEAD.size : _HEAD.size + size].decode(errors="replace")
        return Message(kind, text, data, length, words) if magic == _MAGIC else None


class Exchange(Thread):
    """An all-gather of a message, beside the main thread."""

    def __init__(self, table: Callable[[Any], Any], message: Message) -> None:
        super().__init__(name="gridlayout agreement", daemon=True)
        self.table, self.message = table, message
        self.heard: list[Message | None] = []
        self.error: Exception | None = None
        # An interrupted `join` may hold a thread for ended that is not, before Python 3.13.
        self.over = Event()

    def run(self) -> None:
        """What the thread does."""
        try:
            rows = self.table(self.message.packed())
            self.heard = [Message.unpacked(row.tobytes()) for row in rows]
        except Exception as error:  # JAX's own, where it can't reach another process
            self.error = error
        finally:
            self.over.set()
