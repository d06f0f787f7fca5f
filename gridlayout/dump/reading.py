"""The one reading of a dump: its lines in turn, what they say added to what was found.

What is found is of one pass; where the next begins it begins anew, so that the last is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gridlayout.constructor import starts_call
from gridlayout.dump.moves.collectives import CollectiveOp, Meshes, kind_of
from gridlayout.dump.moves.shardings import Sharded
from gridlayout.dump.moves.traffic import Traffic
from gridlayout.dump.tally import Tally
from gridlayout.dump.text import hlo
from gridlayout.dump.text.chips import chip_in
from gridlayout.dump.text.kinds import WATCHED, Kind
from gridlayout.dump.text.lines import Line, joined, uncommented
from gridlayout.dump.text.mlir import MlirContext, define, read_mlir
from gridlayout.dump.text.passes import Passes, function_of
from gridlayout.dump.text.statements import Made, Mention, Statement
from gridlayout.dump.values.hlo_memory import Computation, HloMemory
from gridlayout.dump.values.kept import Kept
from gridlayout.dump.values.lives import Lives
from gridlayout.dump.values.peaks import Peak
from gridlayout.dump.values.readings import array_sizes, dense_bytes, read
from gridlayout.dump.values.sizes import Sizes
from gridlayout.layouts.memory import CHIPS, Chip

MAX_REASONS = 20
_MAX_FUNCTIONS = 1 << 12
_MAX_WAITING = 1 << 13  # computations of which it is open whether they hold anything


class Found:
    """What one pass says."""

    def __init__(self, title: str, limit: int) -> None:
        self.title, self.limit = title, limit
        self.tally = Tally(limit)
        self.unknown = Kept(MAX_REASONS)
        self.collectives, self.sharded, self.traffic = Kept(limit), Sharded(limit), Traffic()
        self.peaks: dict[str, Peak] = {}
        self.unpeaked: dict[str, None] = {}
        self.mentions = 0
        self.functions: dict[str, None] = {}

    def name(self, function: str, wanted: str | None) -> None:
        """A function that begins: the first ones are remembered, and the one that is meant."""
        if len(self.functions) < _MAX_FUNCTIONS or function == wanted:
            self.functions[function] = None

    def no_peak(self, function: str) -> None:
        """A function of too many values to say what they hold at a time."""
        if len(self.unpeaked) < MAX_REASONS:
            self.unpeaked[function] = None

    def peak(self, peak: Peak | None) -> None:
        """Keep the highest peak of each memory."""
        if peak and peak.nbytes:
            before = self.peaks.get(peak.memory)
            if before is None or peak.nbytes > before.nbytes:
                self.peaks[peak.memory] = peak

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found that can be shown."""
        return not (self.mentions or self.collectives.total or self.sharded.tensors.total)


class Dump:
    """A dump while it is read: `found` is the chosen pass when it is done.

    pass_name: the pass that is meant, by its number from 1 or a part of its title; the last one by
    default. function: the function or computation that is meant; all by default.
    """

    def __init__(
        self, chip: Chip | None, limit: int, pass_name: int | str | None, function: str | None
    ) -> None:
        self.given = chip
        self.described: Chip | None = None
        self.limit, self.pass_name, self.only = limit, pass_name, function
        self.passes, self.kind, self.meshes = Passes(), Kind(), Meshes()
        self.mlir, self.hlo = MlirContext(), hlo.HloContext()
        self.now = Found("", limit)
        self.chosen: Found | None = None
        self.lines = 0
        self.function, self.end = "", ""
        self.lives: Lives | None = None
        self.memory: HloMemory | None = None
        self.computation: Computation | None = None
        self.waiting: dict[str, Tally] = {}

    @property
    def chip(self) -> Chip:
        """Whose memory is meant: the one given, the dump's own, or a Wormhole."""
        return self.given or self.described or CHIPS["wormhole"]

    @property
    def found(self) -> Found | None:
        """The chosen pass; None where no pass has that name or number."""
        return self.now if self.pass_name is None else self.chosen

    def read(self, lines: Iterable[Line]) -> None:
        """All lines."""
        for line in joined(uncommented(lines)):
            self.lines = line.number + line.text.count("\n")
            self._read(line)
        self._end_module()
        self._end_pass()

    # -- places ------------------------------------------------------------------------------------

    def _read(self, line: Line) -> None:
        text = line.text
        if line.first and ("IR Dump" in text or "odule " in text):
            if self.passes.begins(text, line.number):
                self._end_module()
                self._end_pass()
                self.now = Found(self.passes.title, self.limit)
            self.now.title = self.passes.title
        if line.number < WATCHED:
            self.kind.watch(text)
        if "system_desc<" in text or "workerGrid" in text:
            self.described = chip_in(text, self.described)
        if "mesh" in text or "num_" in text:
            self.meshes.read(text)
        stripped = text.lstrip()
        if stripped[:1] in ("#", "!") and define(text, self.mlir):
            return
        if text.startswith("HloModule"):
            self._end_module()
            self.memory = HloMemory(text)
            return
        if self._begins(line):
            return
        if self.only is not None and self.function != self.only:
            return
        if "tensor<" in text or "memref<" in text:
            self._mlir(line)
        elif "[" in text or "= token" in text:
            self._hlo(line)
        elif line.first and starts_call(text):
            self._alone(line)

    def _begins(self, line: Line) -> bool:
        """Follow functions and computations; whether the line is nothing but a place's edge."""
        text = line.text
        if text[:1] == " " and self.computation is not None and "func" not in text:
            return False  # inside of one
        if self.end and text.rstrip() == self.end:
            self._end_function()
            return True
        if found := function_of(text):
            self._end_function()
            self.function, self.end = found
            self.now.name(found[0], self.only)
            self.lives = Lives(found[0], self.chip)
            return False
        if text.startswith("}") and self.computation is not None:
            self._end_computation()
            return True
        if (begun := hlo.computation_of(text)) and "tensor<" not in text:
            self._end_computation()
            self.memory = self.memory or HloMemory("")
            self.computation = Computation(*begun)
            self.function = begun[0]
            self.now.name(begun[0], self.only)
            self.hlo.clear()
            return True
        return False

    def _end_function(self) -> None:
        if self.lives is not None:
            for peak in self.lives.peaks():
                self.now.peak(peak)
            if self.lives.over:
                self.now.no_peak(self.lives.function)
        self.lives, self.function, self.end = None, "", ""

    def _end_computation(self) -> None:
        if self.computation is not None and self.memory is not None:
            self.memory.end(self.computation)
        self.computation, self.function = None, ""

    def _end_module(self) -> None:
        """Of HLO: what its entry holds, and the computations that it runs."""
        self._end_function()
        self._end_computation()
        if self.memory is not None:
            self.now.peak(self.memory.peak())
            if self.memory.over:
                self.now.no_peak(self.memory.entry.name if self.memory.entry else "")
            holds = self.memory.holds()
            for name, tally in self.waiting.items():
                if name in holds or not holds:
                    self.now.tally.take(tally)
        self.memory = None
        self.waiting.clear()

    def _end_pass(self) -> None:
        found, wanted = self.now, self.pass_name
        number = len(self.passes.titles) - (0 if self.now.title == self.passes.title else 1)
        if wanted == number or (isinstance(wanted, str) and wanted in found.title):
            self.chosen = found

    # -- lines -------------------------------------------------------------------------------------

    def _mlir(self, line: Line) -> None:
        said = read_mlir(line, self.mlir)
        if self.lives is None:
            self.lives = Lives(self.function, self.chip)
        self.lives.read(said)
        sizes = self._mentioned(said.mentions)
        self.now.traffic.add(said, line.text, sizes)
        for made in said.made:
            each = sizes[made.text]
            if each.reason or self.lives.owner_of(said, made):
                continue
            self.now.tally.add(said.op, made, each, self.function)
            self.lives.add(said, made, each)
        if not said.made and sizes and "%" not in line.text and not said.op.endswith("func"):
            self._loose(said.op, said.mentions, sizes)
        if said.flow:
            self.now.tally.flow(said, said.flow, sizes)
        self.now.tally.used(self.function, said)
        self._spread(said, line.text)

    def _hlo(self, line: Line) -> None:
        text = line.text
        found = hlo.instruction_of(text) if line.first else None
        if found is None:
            if line.first and hlo.BARE_TYPE.fullmatch(text):
                self._alone(line)
            elif "]{" in text:
                said = hlo.read_hlo(line, self.hlo, None)
                sizes = self._mentioned(said.mentions)
                if self.computation is None:
                    self._loose(said.op, said.mentions, sizes)
            return
        said = hlo.read_hlo(line, self.hlo, found)
        sizes = self._mentioned(said.mentions)
        tally = self._tally()
        own = [sizes[made.text] for made in said.made]
        for made, each in zip(said.made, own, strict=True) if not said.is_view else ():
            if not each.reason:
                tally.add(said.op, made, each, self.function)
        if said.flow:
            tally.flow(said, said.flow, sizes)
        tally.used(self.function, said)
        if self.computation is not None and self.memory is not None:
            whole = len(own) == 1 and not found.kind.startswith("(")
            held = [own[0].nbytes] if whole else array_sizes(found.kind)
            if found.op == "copy-start":  # its result also names what is copied
                held[1:] = [0] * len(held[1:])
            self.memory.add(found, line.number, held, self.computation)
        self._spread(said, text, found)

    def _tally(self) -> Tally:
        """Of a computation that is not the entry it is open whether its values are in memory."""
        if self.computation is None or self.computation.is_entry:
            return self.now.tally
        name = self.computation.name
        if name not in self.waiting:
            if len(self.waiting) >= _MAX_WAITING:
                self.waiting.pop(next(iter(self.waiting)))
            self.waiting[name] = Tally(min(self.limit, 8))
        return self.waiting[name]

    def _alone(self, line: Line) -> None:
        mentions = ((line.number, line.text.strip()),)
        self._loose("", mentions, self._mentioned(mentions))

    # -- what they say -----------------------------------------------------------------------------

    def _mentioned(self, mentions: Iterable[Mention]) -> dict[str, Sizes]:
        """Count the types that can be read, and note the others: what each text states."""
        found: dict[str, Sizes] = {}
        for mention in mentions:
            text = mention[1]
            if (sizes := found.get(text)) is None:
                sizes = found[text] = read(text)
            if sizes.reason:
                self.now.unknown.add(self._why(text, sizes.reason), 0, mention)
            else:
                self.now.mentions += 1
        return found

    def _why(self, text: str, reason: str) -> str:
        if self.mlir.dropped and re.search(r"#[A-Za-z_]\w*>$", text):
            return f"there was no room for its alias: {self.mlir.dropped} of them were left out"
        return reason

    def _loose(self, op: str, mentions: Iterable[Mention], sizes: dict[str, Sizes]) -> None:
        """Types that no value has."""
        for line, text in mentions:
            if not sizes[text].reason:
                self.now.tally.add(op, Made("", text, line), sizes[text], self.function)

    def _spread(self, said: Statement, text: str, found: hlo.Instruction | None = None) -> None:
        """Collectives and shardings."""
        if "sharding" in text:
            self.now.sharded.read(said, text, found, self.meshes)
        kind = kind_of(said.op)
        if kind is None:
            return
        groups, size, axes = self.meshes.groups_of(text, kind)
        nbytes = _result_bytes(said, text, found)
        name = said.made[0].name if said.made else found.name if found else ""
        key = (said.op, kind, groups, size, axes, nbytes, self.function)
        self.now.collectives.add(key, nbytes, (said.line, name))


_RESULT = re.compile(r"tensor<((?:[0-9]{1,12}x)*)([a-z][a-z0-9]{0,8})[,>]")


def _result_bytes(said: Statement, text: str, found: hlo.Instruction | None) -> int:
    """Bytes of a collective's result on one device."""
    if found is not None:
        sizes = array_sizes(found.kind)
        if found.op.endswith("-start") and len(sizes) > 1 and found.op != "all-reduce-start":
            return sizes[1]
        return sum(sizes)
    if said.made:
        return sum(read(made.text).nbytes for made in said.made)
    types = _RESULT.findall(text.rpartition("->")[2])
    return sum(dense_bytes(dims, element) for dims, element in types)


def collectives_of(found: Found, meshes: Meshes) -> tuple[CollectiveOp, ...]:
    """Those of most received bytes first."""
    ops = [
        CollectiveOp(
            line, op, name, function, kind, groups, size, meshes.axes_of(axes), nbytes, count
        )
        for (op, kind, groups, size, axes, nbytes, function), count, (line, name) in (
            found.collectives.worst_first()
        )
    ]
    return tuple(sorted(ops, key=lambda each: (-each.received_bytes * each.count, each.line)))
