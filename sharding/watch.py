"""`Watch`: a thread that tells other processes where this one is, and ends it where it would hang.

A program that the devices of several processes run can't be interrupted, so a process that waits
in one for another that never comes has no way to raise an error: it prints it, and ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from threading import Event, Thread, current_thread
from time import monotonic, sleep

from gridlayout.sharding.calls import Calls, State, absent
from gridlayout.sharding.coordination import Board

# A call that takes longer may be one that does not end.
SHORTLY = 5.0
# Seconds between two looks, and those that many processes take more.
_EVERY, _PER_PROCESS = 1.0, 1 / 64


class Watch:
    """What processes tell each other of their calls.

    name: of this process. others: of the group. seconds: how long one that is in a program waits
    for others to come to it.
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
        """Tell the others where this process is."""
        if (text := self.calls.state.text) != self._posted:
            self.board.post(self.name, text)
            self._posted, self._at = text, monotonic()

    def absent(self, is_late: bool, is_patient: bool = False) -> dict[int, str]:
        """Which of the others won't come to the call that this process is in, and why."""
        said = self.board.read()
        states = {p: State.parsed(said[p]) if p in said else State() for p in self.others}
        return absent(self.calls.state, states, is_late, is_patient)

    def missed(self) -> str:
        """What this process's last call waits for, where another one has failed or ended."""
        try:
            found = self.absent(is_late=False)
        except RuntimeError:  # the service is gone
            return ""
        return _waits(self.calls.state, found) if found else ""

    def end(self, reason: str) -> None:
        """Tell the others that this process ends, and watch no longer."""
        self._stopped.set()
        if current_thread() is not self._thread:
            self._thread.join(SHORTLY)
        self.calls.ended = reason
        self._try(self.post)
        self.board.leave()

    def _run(self) -> None:
        while not self._stopped.wait(self.every):
            if not self._try(self._look):
                return

    def _try(self, do: Callable[[], None]) -> bool:
        """Whether the service is there to do it; where it is not, JAX ends the process."""
        try:
            do()
        except RuntimeError:
            return False
        return True

    def _look(self) -> None:
        """Post where this process is, unless it moves on, and see whether others come."""
        state, seconds = self.calls.state, self.seconds()
        if state == self._seen or monotonic() - self._at > seconds / 4:
            self.post()
        self._seen = state
        waited = monotonic() - self.calls.last.began
        if not state.inside or state.asks or waited < min(SHORTLY, seconds):
            return
        found = self.absent(waited > seconds)
        if found and state == self.calls.state:  # it may have ended meanwhile
            self._leave(state, found)

    def _leave(self, state: State, found: dict[int, str]) -> None:
        """End this process, and say why."""
        words = _waits(state, found)
        print(
            f"LayoutError: process {self.name} ends, as its {words}. What the devices run can't be "
            "interrupted: start all processes again, from the last checkpoint",
            file=sys.stderr,
        )
        self.end(words)
        sleep(2 * self.every)  # process 0, when it ends, takes the service along
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def _waits(state: State, found: dict[int, str]) -> str:
    return f"call {state.number}, {state.what}, waits for {told(found)}"


def told(found: dict[int, str]) -> str:
    """Who is absent, and why, in one line."""
    return "; ".join(f"process {process}, which {why}" for process, why in found.items())
