"""What came of a chunk: the cases, which judges saw how many of them, and what disagreed."""

import json
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """The result of a chunk.

    judged: cases by judge. missing: why a judge could not be asked. refused: cases that a judge
    can't say anything about, by reason. failures: disagreements, each with what reproduces it.
    seconds: from its start to its end. cpu: seconds of processors, of all its processes.
    """

    cases: int = 0
    judged: Counter = field(default_factory=Counter)
    missing: dict = field(default_factory=dict)
    refused: Counter = field(default_factory=Counter)
    failures: list = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0

    @classmethod
    def of(cls, values):
        """The outcome that `values` of a JSON file describes."""
        made = cls(**values)
        made.judged, made.refused = Counter(made.judged), Counter(made.refused)
        return made

    def values(self):
        """What `of` reads, for JSON."""
        return json.loads(json.dumps(vars(self)))

    def add(self, other):
        """Count the cases of another one, too."""
        self.cases += other.cases
        self.judged.update(other.judged)
        self.refused.update(other.refused)
        self.missing.update(other.missing)
        self.failures += other.failures
        self.seconds += other.seconds
        self.cpu += other.cpu
