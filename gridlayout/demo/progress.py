"""The introduction of the demo, and a progress bar that keeps moving."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Self

from tqdm import tqdm

INTRODUCTION = """\
gridlayout demo: trains a classifier of handwritten digits, written in plain JAX
and optax, on a virtual 4x4 grid of cores in 32x32 tiles, on 8 emulated devices.
Most tensors do not divide evenly and are padded; the results must not change."""
WIDTH = 80  # columns of the demo's output
TICK = 0.2  # seconds between updates
_SHARE = 0.02  # share of the rest of a phase by which the bar advances per tick
_FORMAT = "{desc:<26}|{bar}| {percentage:3.0f}% {elapsed}{postfix}"


class Progress:
    """A progress bar of phases and steps; a thread keeps it moving during long phases.

    phases: the sum of the phases' weights; a weight of 1 counts as a tenth of the steps. steps: the
    number of all steps.
    """

    def __init__(self, phases: int, steps: int) -> None:
        self.worth = max(steps // 10, 1)
        total = phases * self.worth + steps
        self.bar: Any = tqdm(total=total, ncols=WIDTH - 1, bar_format=_FORMAT, leave=True)
        self._at = 0.0  # the position of the bar at the end of the phase
        self._done = Event()
        self._ticker = Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._ticker.join()
        self.bar.close()

    def _tick(self) -> None:
        """Advance by a share of the rest of the phase, again and again, never reaching its end."""
        while not self._done.wait(TICK):
            self.bar.n += max(self._at - self.bar.n, 0) * _SHARE
            self.bar.refresh()

    @contextmanager
    def phase(self, name: str, weight: int = 1) -> Iterator[None]:
        """Show the name while the block runs, then advance the bar by the weight."""
        self._at += weight * self.worth
        self.bar.set_description_str(name)
        yield
        self.bar.n = self._at
        self.bar.refresh()

    def step(self, loss: float | None = None) -> None:
        """Advance by one step. loss: is shown if given."""
        if loss is not None:
            self.bar.set_postfix_str(f"loss {loss:.4f}", refresh=False)
        self._at += 1
        self.bar.update(self._at - self.bar.n)
