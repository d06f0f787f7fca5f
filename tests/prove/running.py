"""Runs chunks, each in a process of its own, a few at a time; shows how far it is."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from prove.outcome import Outcome
from prove.state import ROOT, key

TAIL = 3000  # characters of what a process that failed has said


@dataclass(frozen=True)
class Chunk:
    """Some cases of a part of a claim: a process."""

    claim: object
    part: object
    span: tuple[int, int]

    @property
    def command(self):
        """What repeats it, as it is typed."""
        seed, count = self.span
        return (
            f"python -m tests.prove {self.claim.name} --part {self.part.name} "
            f"--seed {seed} --count {count}"
        )

    @property
    def key(self):
        """Its name in files."""
        return key(self.claim.name, self.part.name, self.span)


@dataclass
class Running:
    """A chunk whose process is running."""

    chunk: Chunk
    folder: Path
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self):
        name = self.chunk.key.replace("/", "-")
        self.result, self.log = self.folder / f"{name}.json", self.folder / f"{name}.log"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.result.unlink(missing_ok=True)
        words = [sys.executable, *self.chunk.command.split()[1:], "--result", str(self.result)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                words, cwd=ROOT, stdout=log, stderr=log, start_new_session=True
            )

    def ended(self):
        """Whether it is over; one that takes too long is ended."""
        if time.monotonic() - self.began > self.chunk.claim.limit:
            self.stop()
        return self.process.poll() is not None

    def stop(self):
        """End the process and all that it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def outcome(self):
        """What the process wrote, or what became of it instead."""
        seconds = time.monotonic() - self.began
        if self.result.exists():
            found = Outcome.of(json.loads(self.result.read_text()))
        else:
            said = self.log.read_text(errors="replace")[-TAIL:]
            ended = f"the process ended with code {self.process.returncode}"
            if seconds > self.chunk.claim.limit:
                ended = f"not done within {self.chunk.claim.limit:.0f} seconds"
            found = Outcome(failures=[{"repeat": self.chunk.command, "what": f"{ended}\n{said}"}])
        found.seconds = seconds
        if not found.failures:
            self.result.unlink()
            self.log.unlink()
        return found


def chunks_of(claims):
    """The chunks of all parts, mixed: the first of each, and the others evenly over the run."""
    found = [
        (k / len(part.chunks), Chunk(claim, part, span))
        for claim in claims
        for part in claim.parts
        for k, span in enumerate(part.chunks)
    ]
    return [chunk for _, chunk in sorted(found, key=lambda pair: (pair[0], pair[1].key))]


def run(claims, state, jobs, deadline=None, say=print):
    """Run the chunks that have no result yet; whether all have one now.

    deadline: seconds after which no chunk is started. An interrupt ends the processes; what they
    had not finished is run again the next time.
    """
    waiting = [c for c in chunks_of(claims) if _missing(state, c)]
    progress = Progress(claims, state, jobs, say)
    running, began = [], time.monotonic()
    try:
        while waiting or running:
            late = deadline is not None and time.monotonic() - began > deadline
            while waiting and len(running) < jobs and not late:
                running.append(Running(waiting.pop(0), state.path.parent / "running"))
            for each in [each for each in running if each.ended()]:
                running.remove(each)
                c, outcome = each.chunk, each.outcome()
                when = datetime.now(UTC).isoformat(timespec="seconds")
                state.put(c.claim.name, c.part.name, c.span, outcome, when)
                for failure in outcome.failures:
                    say(f"\n{failure['what']}\nrepeat: {failure['repeat']}")
                progress.show()
            if late and not running:
                return False
            time.sleep(0.2)
    except KeyboardInterrupt:
        say("\ninterrupted; run the same command to go on")
        return False
    finally:
        for each in running:
            each.stop()
    progress.show(last=True)
    return True


def _missing(state, chunk):
    found = state.outcome(chunk.claim.name, chunk.part.name, chunk.span)
    return found is None or bool(found.failures)


class Progress:
    """A line with the cases of each claim so far and the time left, shown now and then."""

    def __init__(self, claims, state, jobs, say):
        self.claims, self.state, self.jobs, self.say = claims, state, jobs, say
        self.shown = 0.0

    def show(self, last=False):
        """Print the line, unless it was printed a moment ago."""
        if not last and time.monotonic() - self.shown < 10:
            return
        self.shown = time.monotonic()
        counts = "  ".join(
            f"{claim.name} {sum(self._done(claim, part) for part in claim.parts):,}"
            f"/{sum(part.count for part in claim.parts):,}"
            for claim in self.claims
        )
        left = sum(self._left(claim, part) for claim in self.claims for part in claim.parts)
        self.say(f"{counts}  about {left / self.jobs / 60:.0f} min left")

    def _outcomes(self, claim, part):
        found = [self.state.outcome(claim.name, part.name, span) for span in part.chunks]
        return [outcome for outcome in found if outcome is not None]

    def _done(self, claim, part):
        return sum(outcome.cases for outcome in self._outcomes(claim, part))

    def _left(self, claim, part):
        done = self._outcomes(claim, part)
        each = sum(o.seconds for o in done) / len(done) if done else part.seconds
        return each * (len(part.chunks) - len(done))
