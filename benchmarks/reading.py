"""How long `gl.explain` takes for dumps of distinct layouts, and what it holds meanwhile.

Against the least that any reader does: one scan of the file for types, by a regular expression.
Processor time, as wall time counts what else the machine does.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time

import gridlayout as gl
from benchmarks.timing import Result

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

import distinct  # type: ignore[import-not-found]  # found by the path above

_TYPE = re.compile(rb"(?:tensor|memref)<[^\n]*?>+|[a-z0-9]+\[[0-9,]*\]\{[^}]*\}")
_MEGABYTES = 6
_HELD = (
    distinct.MOST
    + """
import sys
import gridlayout as gl
gl.explain("f32[3,5]{1,0:T(8,128)}")
before = most()
gl.explain(sys.argv[1])
print((most() - before) * 1024)
"""
)


@dataclass(frozen=True)
class Held(Result):
    """Bytes held beside the size of the file."""

    def row(self) -> tuple[str, ...]:
        name, _, _, against, *rest = super().row()
        sizes = (f"{value / 1e6:.3g} MB" for value in (self.ours, self.theirs))
        return (name, *sizes, against, *rest)


def _scan(path: Path) -> None:
    with open(path, "rb") as stream:
        for line in stream:
            _TYPE.findall(line)


def _seconds(path: Path) -> tuple[float, float]:
    """Processor seconds of the reading and of the scan, which take turns."""
    ours, theirs = [], []
    for _ in range(3):
        start = process_time()
        gl.explain(path)
        middle = process_time()
        _scan(path)
        ours.append(middle - start)
        theirs.append(process_time() - middle)
    return median(ours), median(theirs)


def _held(path: Path) -> float:
    command = [sys.executable, "-c", _HELD, str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def results() -> list[Result]:
    """Time and memory for each kind of text."""
    found: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in distinct.KINDS:
            path = Path(folder) / kind
            path.write_text("".join(distinct.lines(kind, _MEGABYTES * 1_000_000)))
            ours, theirs = _seconds(path)
            name = f"explain {_MEGABYTES} MB of distinct {kind}, processor time"
            found.append(Result(name, ours, theirs, "one scan by a regular expression", 6.0))
            name = f"explain {_MEGABYTES} MB of distinct {kind}, memory"
            found.append(Held(name, _held(path), path.stat().st_size, "the file", 3.4))
    return found
