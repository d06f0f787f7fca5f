"""Aborts of JAX's runtime, which ends a process if another one is lost.

C++ code calls `abort`, which sends the signal SIGABRT to its own thread. Python would run a handler
of its own only later, in the main thread, when the process has ended. So the handler is a C
function, made by ctypes; a handler that was there before, such as that of `faulthandler`, comes
after it.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable
from typing import Any

_kept: list[Any] = []


def handle_aborts(run: Callable[[], None]) -> None:
    """Call a function when C code aborts this process, which ends when the function returns."""
    try:
        library: Any = ctypes.CDLL(None)
        library.signal.restype, library.signal.argtypes = (
            ctypes.c_void_p,
            [
                ctypes.c_int,
                ctypes.c_void_p,
            ],
        )
    except (OSError, AttributeError, TypeError):  # no such C library
        return

    def aborted(number: int) -> None:
        library.signal(number, before)
        run()
        library["raise"](number)  # once this handler has returned, the one before it runs

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(aborted)
    _kept.append(handler)
    before = library.signal(int(signal.SIGABRT), ctypes.cast(handler, ctypes.c_void_p))
