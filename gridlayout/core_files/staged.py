"""Staged files: written under temporary names in their folders, and renamed at the end."""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


class Staged:
    """Files under temporary names; `put_in_place` renames them, `discard` removes the others."""

    def __init__(self) -> None:
        self._names: deque[tuple[Path, Path]] = deque()
        self._open: list[BinaryIO] = []

    def open(self, path: Path) -> BinaryIO:
        """Open a new file in the folder of `path`; `put_in_place` renames it to `path`."""
        name = path.with_name(f".gridlayout-{secrets.token_hex(8)}.tmp")
        file = open(name, "xb")  # noqa: SIM115  # closed by close, or by discard
        self._names.append((name, path))
        self._open.append(file)
        return file

    def close(self, file: BinaryIO) -> None:
        """Flush a file to disk and close it."""
        file.flush()
        os.fsync(file.fileno())
        file.close()
        self._open.remove(file)

    def put_in_place(self) -> None:
        """Rename each file to its final name, in the order in which they were opened."""
        while self._names:
            os.replace(*self._names[0])
            self._names.popleft()

    def discard(self) -> None:
        """Remove the files that were not renamed."""
        for file in self._open:
            with suppress(OSError):
                file.close()
        for name, _ in self._names:
            with suppress(OSError):
                name.unlink()
        self._open.clear()
        self._names.clear()


@contextmanager
def staged() -> Iterator[Staged]:
    """Yield `Staged` files; those that were not put in place are removed at the end.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, staged() as files:
    ...     file = files.open(Path(folder, "a"))
    ...     _ = file.write(b"1"), files.close(file)
    ...     os.listdir(folder) == ["a"], files.put_in_place(), os.listdir(folder)
    (False, None, ['a'])
    """
    files = Staged()
    try:
        yield files
    finally:
        files.discard()
