"""Sources: what `explain` is given, as a name and lines."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gridlayout.dump.lines import Line, lines_of, lines_of_each
from gridlayout.errors import LayoutError

if TYPE_CHECKING:
    from collections.abc import Iterator

Source = Any  # a path, a text, bytes, a binary stream, lines, or what jax.jit lowers and compiles


def is_path(source: Any) -> bool:
    """Whether the source names a file: a path, or a text of one line that a file has as its name.

    >>> is_path("f32[3]{0}"), is_path(io.BytesIO())
    (False, False)
    """
    if isinstance(source, str):
        try:
            return "\n" not in source and "\0" not in source and os.path.exists(source)
        except ValueError:  # a name that the file system can't encode
            return False
    return isinstance(source, os.PathLike)


@contextmanager
def opened(
    source: Source, progress: Callable[[int], None] | None
) -> Iterator[tuple[str, Iterable[Line]]]:
    """The source's name, and its lines as they are read.

    Raises `LayoutError` for a path that can't be read, and for what is no source.

    >>> with opened(b"a", None) as (name, lines):
    ...     name, [line.text for line in lines]
    ('bytes', ['a'])
    """
    if is_path(source):
        name = os.fspath(source)
        try:
            with open(source, "rb") as stream:
                yield name if isinstance(name, str) else repr(name), lines_of(stream, progress)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise LayoutError(f"{name!r} can't be read: {why}") from None
        return
    if isinstance(source, str):
        yield "text", lines_of(io.BytesIO(source.encode("utf-8", "replace")), progress)
    elif isinstance(source, bytes | bytearray | memoryview):
        yield "bytes", lines_of(io.BytesIO(bytes(source)), progress)
    elif isinstance(source, io.BufferedIOBase):
        yield str(getattr(source, "name", "stream")), lines_of(source, progress)
    elif callable(text_of := getattr(source, "as_text", None)):
        yield type(source).__name__.lower(), lines_of(io.BytesIO(_printed(text_of)), progress)
    else:
        yield "lines", lines_of_each(source)


def _printed(text_of: Callable[[], Any]) -> bytes:
    """The text of a lowered or compiled program."""
    try:
        found = text_of()
    except Exception as error:  # whatever a backend raises that has no text
        raise LayoutError(f"the program gives no text to read: {error}") from error
    if not isinstance(found, str):
        raise LayoutError("the program gives no text to read: its backend has none")
    return found.encode("utf-8", "replace")
