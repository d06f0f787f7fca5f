"""The results of chunks in a JSON file, so that a run goes on where it was interrupted."""

import hashlib
import json
import os
from pathlib import Path

from prove.outcome import Outcome

ROOT = Path(__file__).parents[2]
LIBRARY = ("gridlayout", "sharding", "ops")
JUDGED = ("layouts", "maps")  # claims that ask the programs of `judges/`


def digest(claim):
    """A digest of what a chunk depends on: the library, the claim's own modules, its judges."""
    here = Path(__file__).parent
    paths = [path for folder in LIBRARY for path in (ROOT / folder).rglob("*.py")]
    paths += here.glob(f"{claim}*.py")
    if claim in JUDGED:
        paths += (here / "judges").glob("*.py")
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


class State:
    """The outcomes of chunks, by key; those of other sources do not count."""

    def __init__(self, path):
        self.path = path
        self.digests = {}
        self.chunks = json.loads(path.read_text()) if path.exists() else {}

    def current(self, claim):
        """The digest of the claim's sources, computed once."""
        if claim not in self.digests:
            self.digests[claim] = digest(claim)
        return self.digests[claim]

    def outcome(self, claim, part, chunk):
        """The outcome of a chunk that ran on these sources, or None."""
        found = self.chunks.get(key(claim, part, chunk))
        if found is None or found["sources"] != self.current(claim):
            return None
        return Outcome.of(found["outcome"])

    def put(self, claim, part, chunk, outcome, when):
        """Keep an outcome, in the file too, which is never half written."""
        self.chunks[key(claim, part, chunk)] = {
            "sources": self.current(claim),
            "when": when,
            "outcome": outcome.values(),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        there = self.path.with_suffix(".part")
        there.write_text(json.dumps(self.chunks, indent=1))
        os.replace(there, self.path)


def key(claim, part, chunk):
    """The name of a chunk in the file: claim, part, first seed and number of cases."""
    seed, count = chunk
    return f"{claim}/{part}/{seed}+{count}"
