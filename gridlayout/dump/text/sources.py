"""Opens what `explain` is given (a path, text, bytes, a program) as a name and lines."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gridlayout.dump.text.kinds import chip_in
from gridlayout.dump.text.lines import Line, lines_of, lines_of_each
from gridlayout.errors import LayoutError
from gridlayout.files import is_path
from gridlayout.files import opened as opened_file
from gridlayout.mlir.program import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

Source = Any  # a path, a text, bytes, a binary stream, lines, or what jax.jit lowers and compiles

# The header of an executable of the `tt` platform: the magic, then the offsets and sizes of the
# TTIR text, the TTNN text and a binary, as little-endian 64-bit numbers. Offsets are relative to
# the end of the header.
_MAGIC, _WORD = b"TTSERv00", 8


@contextmanager
def opened(
    source: Source, progress: Callable[[int], None] | None
) -> Iterator[tuple[str, Iterable[Line]]]:
    """Open a source; the context is its name and an iterator of its lines.

    Raises `LayoutError` for a path that can't be read, and for any other type of source.

    >>> with opened(b"a", None) as (name, lines):
    ...     name, [line.text for line in lines]
    ('bytes', ['a'])
    """
    if is_path(source):
        name = os.fspath(source)
        try:
            stream = opened_file(source)
        except LayoutError as error:
            raise LayoutError(
                f"{error}; to read a pipe, give an open binary stream, such as sys.stdin.buffer"
            ) from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise LayoutError(f"{name!r} can't be read: {why}") from None
        with stream:
            yield name if isinstance(name, str) else repr(name), lines_of(stream, progress)
        return
    if isinstance(source, str):
        yield "text", lines_of(io.BytesIO(source.encode("utf-8", "replace")), progress)
    elif isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        yield "bytes", lines_of(io.BytesIO(ttnn_text(data) or data), progress)
    elif isinstance(source, io.BufferedIOBase):
        yield str(getattr(source, "name", "stream")), lines_of(source, progress)
    elif hasattr(source, "as_text") or hasattr(source, "runtime_executable"):
        yield type(source).__name__.lower(), lines_of(io.BytesIO(_printed(source)), progress)
    else:
        yield "lines", lines_of_each(source)


def text_of(source: Source) -> Text:
    """Return the whole text of a source.

    >>> text_of("module {}").text
    'module {}'
    """
    with opened(source, None) as (name, lines):
        chip, found = None, []
        for line in lines:
            chip = chip_in(line.text, chip)
            found.append(line.text)
        return Text(name, "\n".join(found), chip)


def ttnn_text(data: bytes) -> bytes:
    """Return the TTNN IR in an executable of the `tt` platform; empty for other bytes.

    Raises `LayoutError` if the executable is truncated.

    >>> sizes = [0, 4, 4, 6, 10, 0]
    >>> head = b"TTSERv00" + b"".join(n.to_bytes(8, "little") for n in sizes)
    >>> ttnn_text(b"any start" + head + b"TTIRTTNN 1"), ttnn_text(b"text")
    (b'TTNN 1', b'')
    """
    at = data.find(_MAGIC)
    if at < 0:
        return b""
    start = at + 7 * _WORD
    words = [data[k : k + _WORD] for k in range(at + _WORD, start, _WORD)]
    offset, size = (int.from_bytes(word, "little") for word in words[2:4])
    if len(data) < start + offset + size:
        raise LayoutError(
            f"the executable of the tt platform is truncated: its TTNN text ends at byte "
            f"{start + offset + size:,}, but {len(data):,} bytes were given; pass all of its bytes"
        )
    return data[start + offset : start + offset + size]


def _printed(program: Any) -> bytes:
    """Return the text of a lowered or compiled program; on the `tt` platform, its TTNN IR.

    There, `as_text` returns the input HLO, whose layouts are not those on the device.
    """
    try:
        if data := _serialized(program):
            return ttnn_text(data)
        found = program.as_text()
    except LayoutError:
        raise
    except Exception as error:  # backends without a text raise different errors
        raise LayoutError(f"the program has no text to read: {error}") from error
    if not isinstance(found, str):
        raise LayoutError("the program has no text to read: its backend prints none")
    return found.encode("utf-8", "replace")


def _serialized(program: Any) -> bytes:
    """Return the serialized executable of a program compiled for the `tt` platform, else empty."""
    if not callable(made := getattr(program, "runtime_executable", None)):
        return b""
    executable = made()
    platform = getattr(getattr(executable, "client", None), "platform", "tt")
    data = executable.serialize() if platform == "tt" else b""
    return data if _MAGIC in data else b""
