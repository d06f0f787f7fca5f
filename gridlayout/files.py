"""`opened`: the one way in which files that users name are opened for reading."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path
from typing import Any

from gridlayout.errors import LayoutError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def opened(path: str | os.PathLike[Any]) -> io.BufferedReader:
    """Open a file for reading; `LayoutError` for anything but a regular file, without blocking.

    A pipe may never end, and a device may hold more than the memory. OSError, or ValueError for a
    name that no file can have, as `open` raises them.

    >>> opened(os.devnull)
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: '/dev/null' is a device, not a regular file
    """
    name = os.fspath(path)
    shown = repr(name) if isinstance(name, str) else repr(os.fsdecode(name))
    _check(os.stat(name), shown)
    flags = getattr(os, "O_NONBLOCK", 0)
    file = open(name, "rb", opener=lambda name, mode: os.open(name, mode | flags))  # noqa: SIM115
    try:
        _check(os.fstat(file.fileno()), shown)  # another file may have got the name
    except LayoutError:
        file.close()
        raise
    return file


def is_path(source: Any) -> bool:
    """Whether an object names a file: a path object, or a string that is an existing path.

    >>> is_path("f32[3]{0}"), is_path(io.BytesIO()), is_path(Path("a.mlir"))
    (False, False, True)
    """
    if isinstance(source, str):
        try:
            return "\n" not in source and "\0" not in source and os.path.exists(source)
        except ValueError:  # a name that the file system can't encode
            return False
    return isinstance(source, os.PathLike)


def read_text(path: str | os.PathLike[Any], most: int) -> str:
    """Return the text in a file of at most `most` bytes; invalid UTF-8 is replaced.

    `LayoutError` for a path that can't be read, and for a larger file.
    """
    data = read_bytes(path, most + 1)
    if len(data) > most:
        raise LayoutError(f"{os.fspath(path)!r} has over {most:,} B, and at most these are read")
    return data.decode("utf-8", "replace")


def read_bytes(path: str | os.PathLike[Any], most: int) -> bytes:
    """Return the first bytes of a file, at most `most`; `LayoutError` if it can't be read."""
    try:
        with opened(path) as file:
            return file.read(most)
    except (OSError, ValueError) as error:
        if isinstance(error, LayoutError):
            raise
        why = getattr(error, "strerror", None) or error
        raise LayoutError(f"{os.fspath(path)!r} can't be read: {why}") from None


def _check(found: os.stat_result, shown: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise LayoutError(f"{shown} is {kind}, not a regular file")


def read_json(path: Path, most: int) -> Any:
    """Return the JSON value in a file of at most `most` bytes.

    OSError as `opened` raises it; `LayoutError`, ValueError or RecursionError for any other file.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise LayoutError(f"{str(path)!r} is larger than {most:,} B")
        return json.loads(file.read(size).decode("utf-8"))
