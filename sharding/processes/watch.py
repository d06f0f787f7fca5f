"""`Watch`: a thread that posts the state of this process, and ends the process if it would hang.

A program on the devices of several processes can't be interrupted. If a process waits in one for
another process that never comes, or that is in it too but can't go on, it therefore can't raise an
error: it prints the error and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Event, Thread, current_thread
from time import monotonic, process_time, sleep

from gridlayout.sharding.processes.calls import Calls, State, absent, gone
from gridlayout.sharding.processes.coordination import Board

# Seconds after which a call is checked for missing processes.
SHORTLY = 5.0
# Seconds between two posts: at least, and per process. Posts after which silence is noticed.
_EVERY, _PER_PROCESS, _MISSED = 1.0, 1 / 64, 4
# In groups of so many others, the states of all are read with each post.
_FEW = 32
# The share of a processor that a process uses at least if it computes. It is measured over the
# time limit divided by `_WINDOWS`, but over a second at least.
_COMPUTES, _WINDOWS = 0.05, 4
NO_SERVICE = "the coordination service of jax.distributed, in process 0, does not answer"


class Watch:
    """The thread that watches the calls of this process and of the others of its group.

    name: the number of this process. others: the numbers of the others. seconds: how long a process
    in a program waits for others. on_host: whether the devices are the processors of the host, so
    that a process that computes uses them. end: ends this process, and says why.
    """

    def __init__(
        self,
        calls: Calls,
        board: Board,
        name: int,
        others: Sequence[int],
        seconds: Callable[[], float],
        on_host: bool,
        end: Callable[[str], None],
    ) -> None:
        self.calls, self.board, self.name, self.others = calls, board, name, others
        self.seconds, self.every = seconds, max(_EVERY, len(others) * _PER_PROCESS)
        self._progress, self._end_process = _Progress(on_host), end
        # How often this process has posted; and, in a group of few, which others are gone.
        self.beat, self.gone = 0, ""
        self._heard: dict[int, tuple[int, float]] = {}
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="gridlayout watch", daemon=True)
        self._thread.start()

    def post(self) -> None:
        """Post the state of this process."""
        state = self.calls.state._replace(beat=self.beat + 1, computed=round(process_time(), 2))
        self.board.post(self.name, state.text)
        self.beat += 1

    def states(self) -> dict[int, State]:
        """Return the states of the others. RuntimeError if the service has ended."""
        posted, now = self.board.read(), monotonic()
        found = {}
        for process in self.others:
            state = State.parsed(posted[process]) if process in posted else State()
            beat, since = self._heard.get(process, (-1, now))
            if state.beat != beat:
                since = now
            self._heard[process] = state.beat, since
            silent = now - since
            found[process] = state._replace(silent=silent if silent > _MISSED * self.every else 0.0)
        return found

    def absent(self, is_late: bool, is_patient: bool = False) -> str:
        """Return which processes do not come to the current call, and why."""
        return in_words(absent(self.calls.state, self.states(), is_late, is_patient))

    def lost(self) -> str:
        """Return which processes have ended or do not answer, and since when; "" if none.

        Waits for as long as it takes to notice this.
        """
        until = monotonic() + (_MISSED + 2) * self.every
        while True:
            try:
                states = self.states()
            except RuntimeError:
                return NO_SERVICE
            found = gone(states)
            if monotonic() > until or not all(states[p].gave_up for p in found):
                return in_words(found)
            sleep(self.every / 4)

    def end(self) -> None:
        """Stop the thread. Nothing is posted afterwards."""
        self._stopped.set()
        if current_thread() is not self._thread:
            self._thread.join(SHORTLY)
        self.board.leave()

    def _run(self) -> None:
        while not self._stopped.wait(self.every):
            try:
                self.post()
                states = self.states() if len(self.others) <= _FEW else None
                self.gone = in_words(gone(states or {}))
                self._check(states)
            except RuntimeError:  # JAX ends this process
                self.gone = NO_SERVICE
                return

    def _check(self, states: Mapping[int, State] | None) -> None:
        """End the process if its call will not end. states: those of the others, if known."""
        state, seconds = self.calls.state, self.seconds()
        waited = monotonic() - self.calls.last.began
        if not state.inside or state.asks or state.ended:
            return
        is_early = waited < min(SHORTLY, seconds)
        if states is None and is_early:
            return
        states = self.states() if states is None else states
        quiet = self._progress.missing(state, states, seconds)
        if is_early:
            return
        if found := absent(state, states, waited > seconds):
            why = f"waits for {in_words(found)}"
        elif quiet:
            why = f"has not ended: {quiet}"
        else:
            return
        now = self.calls.state
        if now.inside and now.number == state.number:  # else the call has ended meanwhile
            self._end_process(
                f"as its call {state.number}, {state.what}, {why}. A program on the devices can't "
                "be interrupted: start all processes again, from the last checkpoint"
            )


class _Progress:
    """What several processes that are in one program have done lately."""

    def __init__(self, on_host: bool) -> None:
        self.on_host = on_host
        self._places: list[tuple[int, int]] = []
        self._moved_at = self._measured_at = monotonic()
        self._computed: dict[int, float] = {}

    def missing(self, own: State, others: Mapping[int, State], seconds: float) -> str:
        """Return in words that no process has made progress for so many seconds; else "".

        Progress is a call that begins or ends, and use of the processor if the devices are
        processors. Whether other devices compute is unknown: there, a program has no limit while
        all processes are in it and answer.
        """
        now, states = monotonic(), {-1: own._replace(computed=process_time()), **others}
        places = [(each.number, each.done) for each in states.values()]
        is_new = places != self._places
        if is_new or now - self._measured_at >= max(seconds / _WINDOWS, 1.0):
            computed = {process: each.computed for process, each in states.items()}
            enough = _COMPUTES * (now - self._measured_at)
            is_new |= any(computed[p] - self._computed.get(p, 0.0) >= enough for p in computed)
            self._places, self._computed, self._measured_at = places, computed, now
        if is_new:
            self._moved_at = now
        may_compute = not self.on_host and not any(
            each.done >= own.number or each.silent >= seconds for each in others.values()
        )
        if may_compute or now - self._moved_at < seconds:
            return ""
        where = in_words({process: each.place for process, each in others.items()})
        return f"no process went on for {now - self._moved_at:.0f} seconds; with it is {where}"


def in_words(found: Mapping[int, str]) -> str:
    """Return one line that lists processes and their states."""
    return "; ".join(f"process {process}, which {why}" for process, why in found.items())
