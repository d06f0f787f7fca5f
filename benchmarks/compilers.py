"""`python -m benchmarks.compilers [folder]`: plans beside what Tenstorrent's compiler made.

Of each program a plan for one chip, and the compiler's program for the same chip at levels 0, 1 and
2, all priced by one machine: microseconds. *ours* starts with arguments where the plan has them.
*DRAM to DRAM* starts with arguments in the chip's DRAM and ends with results there, as compiled
programs do: they are brought before and after, or read and written by the equations while they
compute, whichever takes less. Of compiled programs the number in brackets is without ops that only
bring values elsewhere, or to another type (to_layout, to_memory_config, typecast). What goes to the
host and back is counted and has no price. folder: of dumps called `NAME.CHIP.OLEVEL.ttnn.mlir`; by
default those of the tests.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

import gridlayout as gl
from benchmarks.timing import table
from gridlayout.ops.planning.kinds import MOVES, kind_of
from tests.compiled import SINGLE

DUMPS = Path(__file__).parents[1] / "tests" / "dumps"
CHIPS = ("p150", "n150")
LEVELS = (0, 1, 2)
SECONDS = 30.0  # of a search, at most


@dataclass(frozen=True)
class Row:
    """One program on one chip: seconds of the plan, and of the compiler's program at each level.

    whole: the plan's from DRAM to DRAM. moves: of the levels', what ops take that only bring values
    elsewhere. host: how many of a program's ops are the host's, which have no price.
    """

    name: str
    chip: str
    time: float
    whole: float
    levels: dict[int, float]
    moves: dict[int, float]
    host: dict[int, int]

    def is_slower(self, level: int) -> bool:
        """Whether the plan takes longer than a level, from DRAM to DRAM."""
        return self.whole > self.levels[level] * (1 + 1e-9)

    def is_behind(self, level: int) -> bool:
        """The same without moves: from DRAM to DRAM at 0 and 1, from where they are at 2."""
        ours = self.time if level == 2 else self.whole
        return ours > (self.levels[level] - self.moves[level]) * (1 + 1e-9)

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        found = [f"{self.name} {self.chip}", _us(self.time), _us(self.whole)]
        for level in LEVELS:
            if level not in self.levels:
                found.append("-")
                continue
            left = self.levels[level] - self.moves[level]
            host = f", {self.host[level]} host ops" if self.host[level] else ""
            found.append(f"{_us(self.levels[level])} ({_us(left)}{host})")
        return tuple(found)


def text_of(name: str, chip: str, level: int, folder: Path | None = None) -> str | None:
    """The dump of a program; None where there is none."""
    full = f"{name}.{chip}.O{level}"
    folders = [folder] if folder is not None else [DUMPS / "levels", DUMPS / "chips"]
    for place in folders:
        path = place / f"{full}.ttnn.mlir"
        if path.exists():
            return path.read_text(encoding="utf-8")
        if (packed := Path(f"{path}.gz")).exists():
            return gzip.decompress(packed.read_bytes()).decode()
    return None


def row_of(name: str, chip: str, fn: Any, args: Any, texts: dict[int, str]) -> Row:
    """The plan of a program, and what its dumps take on the same machine."""
    plan = gl.plan(fn, *args, machine=chip, seconds=SECONDS)
    streamed = gl.plan(fn, *args, machine=chip, seconds=SECONDS, memory_space="dram")
    whole = min(each.time + each.carried for each in (plan, streamed))
    levels, moves, host = {}, {}, {}
    for level, text in texts.items():
        found = gl.simulate(gl.tenstorrent.load(text), machine=chip)
        levels[level] = found.time
        moves[level] = sum(
            e.seconds for e in found.equations if kind_of(e.name, True).kind == MOVES
        )
        host[level] = sum(e.how.startswith("host") for e in found.equations)
    return Row(name, chip, plan.time, whole, levels, moves, host)


def rows(folder: Path | None = None, names: tuple[str, ...] = ()) -> Iterator[Row]:
    """A row for each program and chip of which there is a dump."""
    for name, (fn, shapes) in SINGLE.items():
        for chip in CHIPS:
            found = ((level, text_of(name, chip, level, folder)) for level in LEVELS)
            texts = {level: text for level, text in found if text is not None}
            if texts and (not names or name in names):
                args = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
                yield row_of(name, chip, fn, args, texts)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.2f}"


def main(folder: str | None = None) -> int:
    """Print the table; 1 where a plan is slower than a level."""
    print("microseconds; in brackets without ops that only bring values elsewhere\n")
    found = list(rows(None if folder is None else Path(folder)))
    head = ("program", "ours", "DRAM to DRAM", *(f"level {level}" for level in LEVELS))
    print(table([row.cells() for row in found], head))
    slower = [f"{r.name} {r.chip} O{k}" for r in found for k in r.levels if r.is_slower(k)]
    print(f"\nslower from DRAM to DRAM than the compiler's: {', '.join(slower) or 'none'}")
    some = [f"{r.name} {r.chip} O{k}" for r in found for k in r.levels if r.is_behind(k)]
    print(f"than what is in brackets, from where that starts: {', '.join(some) or 'none'}")
    return bool(slower)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
