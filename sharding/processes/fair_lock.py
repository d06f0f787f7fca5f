"""`FairLock`: a lock that threads get in the order in which they ask for it."""

from __future__ import annotations

from collections import deque
from threading import Lock


class FairLock:
    """A lock that threads get in the order in which they ask for it; the standard one has none.

    >>> lock = FairLock()
    >>> lock.acquire()
    >>> lock.release()
    """

    def __init__(self) -> None:
        self._mutex, self._is_held = Lock(), False
        self._waiting: deque[Lock] = deque()

    def acquire(self) -> None:
        """Wait for the lock, and take it."""
        with self._mutex:
            if not self._is_held:
                self._is_held = True
                return
            turn = Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            turn.acquire()
        except BaseException:  # the user interrupts it
            with self._mutex:
                is_waiting = turn in self._waiting
                if is_waiting:
                    self._waiting.remove(turn)
            if not is_waiting:
                self.release()
            raise

    def release(self) -> None:
        """Give the lock to the thread that has waited longest."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False
