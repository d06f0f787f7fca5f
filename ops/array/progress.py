"""Progress of long calls, which is passed to a user's function or shown as a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from gridlayout.errors import LayoutError

# Takes the bytes done, of how many, and the elapsed seconds.
ReportProgress = Callable[[int, int, float], object]
# Seconds before a bar is shown.
_DELAY = 2.0


def check_progress(progress: Any) -> None:
    """Raise `LayoutError` unless it is a function, True, False or None."""
    if not (progress is None or isinstance(progress, bool) or is_function(progress)):
        raise LayoutError(
            f"progress {progress!r} must be a function of (bytes done, of how many, seconds), "
            "True, False or None"
        )


def is_function(x: Any) -> bool:
    """Return whether it is a function, and not a type, which is callable too."""
    return callable(x) and not isinstance(x, type)


@contextmanager
def reporting(
    what: str, total: int, progress: ReportProgress | bool | None
) -> Iterator[Callable[[int], object]]:
    """Return a context whose value is a function: it adds a number of bytes done, and reports them.

    what: the name of the call. total: all bytes. progress: a function of (bytes done, total,
    seconds). True or None: a bar, if tqdm is installed; with None on terminals only. False: nothing
    is shown.

    >>> with reporting("a call", 8, lambda done, total, seconds: print(done, total)) as add:
    ...     add(3), add(5)
    3 8
    8 8
    (None, None)
    """
    start, done = monotonic(), 0

    def add(size: int) -> None:
        nonlocal done
        done += size
        if callable(progress):
            progress(done, total, monotonic() - start)
        elif bar is not None:
            bar.update(size)

    bar = None
    if not (callable(progress) or progress is False):
        bar = _bar(what, total, always=progress is True)
    if bar is None:
        yield add
        return
    with bar:
        yield add


def _bar(what: str, total: int, always: bool) -> Any:
    """Return a bar of tqdm; None where that is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(
        desc=what,
        total=total,
        unit="B",
        unit_scale=True,
        leave=False,
        # None shows it on terminals only.
        disable=False if always else None,
        delay=0 if always else _DELAY,
    )
