"""Staged files: written under other names, beside where they go, until all are written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


class Staged:
    """Files under other names. What is not put in place is removed by `discard`."""

    def __init__(self) -> None:
        self._names: list[tuple[Path, Path]] = []
        self._open: list[BinaryIO] = []

    def open(self, path: Path) -> BinaryIO:
        """A new file in the folder of `path`, where `put_in_place` puts it."""
        name = path.with_name(f".gridlayout-{secrets.token_hex(8)}.tmp")
        file = open(name, "xb")  # noqa: SIM115  # closed by close, or by discard
        self._names.append((name, path))
        self._open.append(file)
        return file

    def close(self, file: BinaryIO) -> None:
        """Close a file, once the disk has what was written to it."""
        file.flush()
        os.fsync(file.fileno())
        file.close()
        self._open.remove(file)

    def put_in_place(self) -> None:
        """Each file under its name, in the order in which they were opened."""
        while self._names:
            os.replace(*self._names[0])
            del self._names[0]

    def discard(self) -> None:
        """Remove what is not in place."""
        for file in self._open:
            with suppress(OSError):
                file.close()
        for name, _ in self._names:
            with suppress(OSError):
                name.unlink()
        self._open, self._names = [], []


@contextmanager
def staged() -> Iterator[Staged]:
    """Files that are removed at the end unless they are in place.

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
