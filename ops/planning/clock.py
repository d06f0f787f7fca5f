"""`Clock`: the time that a search may take, of which an interrupt is the end too."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from gridlayout.ops.solver.terms import Expired

T = TypeVar("T")


class Clock:
    """So many seconds from its start, or a part of what is left of another clock."""

    def __init__(self, seconds: float, whole: Clock | None = None) -> None:
        self.seconds = seconds
        self.whole = self if whole is None else whole
        self._interrupted = False
        self.start()

    def start(self) -> None:
        """Begin to count its seconds, now."""
        self.until = monotonic() + self.seconds

    def part(self, share: float) -> Clock:
        """A clock for a share of the time that is left."""
        return Clock(share * self.left, self.whole)

    @property
    def interrupted(self) -> bool:
        """Whether an interrupt has ended the search."""
        return self.whole._interrupted

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return 0.0 if self.interrupted else max(self.until - monotonic(), 0.0)

    def check(self) -> None:
        """Raise Expired where no time is left."""
        if not self.left:
            raise Expired

    def interrupt(self) -> None:
        """Take an interrupt as the end of the time; a second one is raised."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.whole._interrupted = True

    def through(self, call: Callable[[], T]) -> T:
        """The result of a call that begins again at the first interrupt, when its time is over."""
        try:
            return call()
        except KeyboardInterrupt:
            self.interrupt()
        return call()
