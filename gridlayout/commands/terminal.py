"""What commands print, and the exit codes: 0 for success, 1 for failure, 2 for bad arguments."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from gridlayout.errors import LayoutError

NAME = "gridlayout"  # of the program
SUCCEEDED, FAILED, REFUSED = 0, 1, 2


def refused(command: str, error: Exception, words: str = "") -> int:
    """Print why the command's arguments are refused, and return the exit code.

    words: the message, if it is not the error's own. Errors in texts show the text around them.
    """
    notes = getattr(error, "__notes__", [])
    print("\n".join([f"{NAME} {command}: {words or error}", *notes]), file=sys.stderr)
    return REFUSED if isinstance(error, LayoutError) else FAILED


@contextmanager
def warnings_of(command: str) -> Iterator[None]:
    """Print the library's warnings as messages of the command, without lines of its source."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        yield
    for each in found:
        print(f"{NAME} {command}: warning: {each.message}", file=sys.stderr)


def print_text(text: str) -> int:
    """Print in UTF-8, whatever the locale; a reader that goes away (`| head`) is no error."""
    try:
        sys.stdout.buffer.write(text.rstrip("\n").encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return SUCCEEDED
