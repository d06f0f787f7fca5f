"""How far a long call is: told to a function of the user's, or shown as a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from gridlayout.errors import LayoutError

# Told bytes done, of how many, and the seconds so far.
Told = Callable[[int, int, float], object]
# Seconds that the work takes before a bar is shown.
_DELAY = 2.0


def check_progress(progress: Any) -> None:
    """`LayoutError` unless it is a function, True, False or None."""
    if not (progress is None or isinstance(progress, bool) or is_function(progress)):
        raise LayoutError(
            f"progress {progress!r} must be a function of (bytes done, of how many, seconds), "
            "True, False or None"
        )


def is_function(x: Any) -> bool:
    """Whether it is called with what there is to tell: no type, which is callable too."""
    return callable(x) and not isinstance(x, type)


@contextmanager
def told(what: str, total: int, progress: Told | bool | None) -> Iterator[Callable[[int], object]]:
    """A function that is told of so many more bytes of the total, and tells `progress` or a bar.

    >>> with told("a call", 8, lambda done, total, seconds: print(done, total)) as add:
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
    """A bar of tqdm; None where that is not installed."""
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
        # None is for terminals only.
        disable=False if always else None,
        delay=0 if always else _DELAY,
    )
