"""`Watch`: a thread that posts the state of this process, and ends the process if it would hang.

A program on the devices of several processes can't be interrupted. If a process waits in one for
another process that never comes, it therefore can't raise an error: it prints the error and ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from threading import Event, Thread, current_thread
from time import monotonic, sleep

from gridlayout.sharding.processes.calls import Calls, State, absent
from gridlayout.sharding.processes.coordination import Board

# Seconds after which a call is checked for missing processes.
SHORTLY = 5.0
# Seconds between two checks: at least, and per process.
_EVERY, _PER_PROCESS = 1.0, 1 / 64


class Watch:
    """The thread that watches the calls of this process and of the others of its group.

    name: the number of this process. others: the numbers of the others. seconds: how long a process
    in a program waits for others to come to it.
    """

    def __init__(
        self,
        calls: Calls,
        board: Board,
        name: int,
        others: Sequence[int],
        seconds: Callable[[], float],
    ) -> None:
        self.calls, self.board, self.name, self.others = calls, board, name, others
        self.seconds, self.every = seconds, max(_EVERY, len(others) * _PER_PROCESS)
        self._posted, self._seen, self._at = "", State(), monotonic()
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="gridlayout watch", daemon=True)
        self._thread.start()

    def post(self) -> None:
        """Post the state of this process, if it has changed."""
        if (text := self.calls.state.text) != self._posted:
            self.board.post(self.name, text)
            self._posted, self._at = text, monotonic()

    def absent(self, is_late: bool, is_patient: bool = False) -> dict[int, str]:
        """Return the other processes that do not come to the current call, with the reasons."""
        posted = self.board.read()
        states = {p: State.parsed(posted[p]) if p in posted else State() for p in self.others}
        return absent(self.calls.state, states, is_late, is_patient)

    def missed(self) -> str:
        """Return for whom the last call waits, if another process failed or ended; else ""."""
        try:
            found = self.absent(is_late=False)
        except RuntimeError:  # the service has ended
            return ""
        return _waits(self.calls.state, found) if found else ""

    def end(self, reason: str) -> None:
        """Post that this process ends, and stop the thread."""
        self._stopped.set()
        if current_thread() is not self._thread:
            self._thread.join(SHORTLY)
        self.calls.ended = reason
        self._try(self.post)
        self.board.leave()

    def _run(self) -> None:
        while not self._stopped.wait(self.every):
            if not self._try(self._check):
                return

    def _try(self, do: Callable[[], None]) -> bool:
        """Call `do`; return False if the service has ended, in which case JAX ends the process."""
        try:
            do()
        except RuntimeError:
            return False
        return True

    def _check(self) -> None:
        """Post the state if it is unchanged since the last check, and check that others come.

        A process whose state changes posts it after a quarter of the time limit.
        """
        state, seconds = self.calls.state, self.seconds()
        if state == self._seen or monotonic() - self._at > seconds / 4:
            self.post()
        self._seen = state
        waited = monotonic() - self.calls.last.began
        if not state.inside or state.asks or waited < min(SHORTLY, seconds):
            return
        found = self.absent(waited > seconds)
        if found and state == self.calls.state:  # else the call has ended meanwhile
            self._leave(state, found)

    def _leave(self, state: State, found: dict[int, str]) -> None:
        """Print why this process ends, and end it."""
        words = _waits(state, found)
        print(
            f"LayoutError: process {self.name} ends, as its {words}. A program on the devices "
            "can't be interrupted: start all processes again, from the last checkpoint",
            file=sys.stderr,
        )
        self.calls.gave_up = True
        self.end(words)
        sleep(2 * self.every)  # the service ends with process 0
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def _waits(state: State, found: dict[int, str]) -> str:
    return f"call {state.number}, {state.what}, waits for {in_words(found)}"


def in_words(found: dict[int, str]) -> str:
    """Return absent processes and the reasons in one line."""
    return "; ".join(f"process {process}, which {why}" for process, why in found.items())
