"""`Clock`: the time limit of a search, which an interrupt ends early."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from gridlayout.ops.solver.terms import Expired

T = TypeVar("T")


class Clock:
    """A time limit in seconds from its start; or a share of what is left of another clock."""

    def __init__(self, seconds: float, root: Clock | None = None) -> None:
        self.seconds = seconds
        self.root = self if root is None else root
        self._interrupted = False
        self.start()

    def start(self) -> None:
        """Start to count its seconds now."""
        self.began = monotonic()
        self.until = self.began + self.seconds

    @property
    def spent(self) -> float:
        """The seconds since its start."""
        return monotonic() - self.began

    def keep(self, seconds: float) -> None:
        """End its time by so much sooner, for what comes after it."""
        self.until -= seconds

    def part(self, share: float) -> Clock:
        """Return a clock for a share of the remaining time."""
        return Clock(share * self.left, self.root)

    @property
    def interrupted(self) -> bool:
        """Whether an interrupt has ended the search."""
        return self.root._interrupted

    @property
    def left(self) -> float:
        """The remaining seconds."""
        return 0.0 if self.interrupted else max(self.until - monotonic(), 0.0)

    def check(self) -> None:
        """Raise Expired if no time is left."""
        if not self.left:
            raise Expired

    def interrupt(self) -> None:
        """End the time because of an interrupt; a second interrupt is raised."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.root._interrupted = True

    def through(self, call: Callable[[], T]) -> T:
        """Return the result of a call; a first interrupt ends the time and restarts the call."""
        try:
            return call()
        except KeyboardInterrupt:
            self.interrupt()
        return call()
