"""How long `gl.explain` takes for dumps of distinct layouts, and what it holds meanwhile.

Against the least that any reader does, one scan of the file for types by a regular expression, and
against what is promised. Processor time, as wall time counts what else the machine does.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import gridlayout as gl
from benchmarks.timing import Result, cpu_seconds

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

import distinct  # type: ignore[import-not-found]  # found by the path above

_TYPE = re.compile(rb"(?:tensor|memref)<[^\n]*?>+|[a-z0-9]+\[[0-9,]*\]\{[^}]*\}")
_MEGABYTES = 30
_SECONDS, _BYTES = 10.0, 100e6  # bounds, of processor time and of what is held
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
    """Processor seconds of the reading and of the scan."""
    return cpu_seconds(lambda: gl.explain(path)), cpu_seconds(lambda: _scan(path))


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
            name = f"explain {_MEGABYTES} MB of distinct {kind}"
            time = f"{name}, processor time"
            found += [
                Result(time, ours, theirs, "one scan by a regular expression", 6.0),
                Result(time, ours, _SECONDS, f"the bound, {_SECONDS:.0f} s", 1.0),
                Held(f"{name}, memory", _held(path), _BYTES, "the bound, 100 MB", 1.0),
            ]
    return found
