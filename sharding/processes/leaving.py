"""How a process leaves the others: at the end of its program, or before, if they are lost.

JAX ends a process with an abort if another one has ended before it, after minutes or at once.
Processes of this library therefore wait for each other's end themselves, and turn such an abort
into an error that says which process was lost.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import TIMEOUT_MAX, Lock
from time import monotonic, sleep
from typing import Any, NoReturn

import jax

from gridlayout.sharding.processes.coordination import find_board
from gridlayout.sharding.processes.elements import digest_of
from gridlayout.sharding.processes.group import Group, seconds_to_wait
from gridlayout.sharding.processes.watch import NO_SERVICE, Watch

# Handlers of C code, which must not be freed.
_kept: list[Any] = []


def handle_aborts(run: Callable[[], None]) -> None:
    """Call a function when C code aborts this process, which ends when the function returns.

    `abort` sends SIGABRT to its own thread. Python would run a handler of its own only later, in
    the main thread, when the process has ended. So the handler is a C function, made by ctypes; a
    handler that was there before, such as that of `faulthandler`, comes after it.
    """
    try:
        library: Any = ctypes.CDLL(None)
        library.signal.restype = ctypes.c_void_p
        library.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    except (OSError, AttributeError, TypeError):  # no such C library
        return

    def aborted(number: int) -> None:
        library.signal(number, before)
        run()
        library["raise"](number)  # once this handler has returned, the one before it runs

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(aborted)
    _kept.append(handler)
    before = library.signal(int(signal.SIGABRT), ctypes.cast(handler, ctypes.c_void_p))


_groups: list[Group] = []
_ending, _owner = Lock(), os.getpid()
# Posts after which an abort is one that has nothing to do with other processes.
_POSTS = 2


def watch(group: Group, platform: str) -> None:
    """Let a thread watch the calls of a group, and let this process leave it in order."""
    global _owner
    if not _groups:
        _owner = os.getpid()
        atexit.register(_leave)  # runs before JAX's own handler, which waits for the others
        handle_aborts(_end_after_abort)
    _groups.append(group)
    name = digest_of(repr((platform, group.processes)).encode()).hex()[:16]
    if (board := find_board(name)) is not None:
        group.watch = Watch(
            group.calls,
            board,
            jax.process_index(),
            group.others,
            partial(seconds_to_wait, is_inside=True),
            group.on_host,
            end_process,
        )


def end_process(why: str, *, posts: bool = True) -> NoReturn:
    """Print why this process ends, tell the others unless not `posts`, and end with exit code 1."""
    while not _ending.acquire(blocking=False):  # another thread ends it
        if not posts:
            os._exit(1)
        sleep(1)
    own = jax.process_index()
    print(f"LayoutError: process {own} ends, {why}", file=sys.stderr)
    if posts:
        _post(why, gave_up=True)
        if own == 0:  # the coordination service ends with it, from which others read why
            sleep(max([2 * each.every for each in _watches()], default=0))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _watches() -> list[Watch]:
    """Return the watches of this process; none in one that was forked, which has no threads."""
    found = [group.watch for group in _groups if group.watch is not None]
    return found if os.getpid() == _owner else []


def _post(why: str, gave_up: bool = False) -> None:
    for each in _watches():
        each.calls.ended, each.calls.gave_up = why, gave_up
        with suppress(RuntimeError):  # the service has ended
            each.post()


def _leave() -> None:
    """Post that this program is over, and wait until those of the others are."""
    if os.getpid() != _owner:
        return
    error = getattr(sys, "last_value", None)  # Python has printed it
    why = "its program is over" if error is None else f"{type(error).__name__}: {error}"
    every = [group.exchanges for group in _groups]
    lost = [each.lost for each in every if each.lost]
    lost += ["an exchange" for x in every if x.pending is not None and not x.pending.over.is_set()]
    if lost:
        end_process(f"as the processes lost each other in {lost[0]}: {why}")
    if isinstance(error, jax.errors.JaxRuntimeError):
        for group in _groups:
            if words := group.lost_processes():
                end_process(f"as it has lost {words}")
    _post(why)
    watches = _watches()
    # The others of a program that failed find out in their next call.
    until = monotonic() + (TIMEOUT_MAX if error is None else seconds_to_wait())
    while sum(_is_waited_for(each) for each in watches) and monotonic() < until:  # asks each
        sleep(min(each.every for each in watches) / 4)
    for each in watches:
        each.end()


def _is_waited_for(own: Watch) -> bool:
    """Return whether others have not ended; end this process if they can't end in order."""
    try:
        states = own.states()
    except RuntimeError:
        end_process(f"as {NO_SERVICE}")
    limit = seconds_to_wait()
    for process, each in states.items():
        if each.gave_up:
            end_process(f"as process {process} has ended, {each.ended}")
        if each.silent > limit and not each.ended:
            end_process(f"as process {process} {each.place}")
    return not all(each.ended for each in states.values())


def _end_after_abort() -> None:
    """End this process with an error if JAX aborts it because others are lost.

    The coordination service is then locked: nothing can be posted.
    """
    watches = _watches()
    until = monotonic() + max([_POSTS * each.every + 1 for each in watches], default=0)
    beats = [each.beat for each in watches]
    while monotonic() < until:
        if all(each.beat >= beat + _POSTS for each, beat in zip(watches, beats, strict=True)):
            return
        sleep(0.05)
    if watches:
        gone = "; ".join(each.gone for each in watches if each.gone) or "another process"
        places = ", and ".join(each.calls.state.place for each in watches)
        end_process(f"as JAX's runtime has lost {gone}. It {places}", posts=False)
