"""Reads a dump line by line and collects the values, moves and collectives of each pass.

The results of a pass are discarded when the next pass begins, unless it is the requested one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gridlayout.constructor import starts_call
from gridlayout.dump.moves.axes import hidden
from gridlayout.dump.moves.meshes import Meshes
from gridlayout.dump.pass_result import PassResult
from gridlayout.dump.tally import Tally, Waiting
from gridlayout.dump.text import hlo
from gridlayout.dump.text.kinds import WATCHED, Kind, chip_in
from gridlayout.dump.text.lines import Line, joined, without_comments
from gridlayout.dump.text.mlir import Regions, defines_alias, read_mlir, with_shardings
from gridlayout.dump.text.passes import Passes, function_of
from gridlayout.dump.text.prefixes import Prefixes
from gridlayout.dump.text.statements import Instruction, Mention, Result, Statement
from gridlayout.dump.values.assignments import Assignment
from gridlayout.dump.values.hlo_buffers import Computation
from gridlayout.dump.values.hlo_memory import CALLERS, HloMemory, bodies_of
from gridlayout.dump.values.peaks import LiveRanges
from gridlayout.dump.values.reports import Allocation, Report, measured
from gridlayout.dump.values.type_texts import Sizes, array_sizes, read
from gridlayout.layouts.memory import CHIPS, Chip
from gridlayout.mlir.aliases import MAX_WRITTEN_PER_CHARACTER, Aliases
from gridlayout.tenstorrent.tt_metal_text import printed_in


class Dump:
    """The state of reading a dump; afterwards, `found` is the requested pass.

    chip: whose memory is checked, if given. limit: the most rows to store. pass_name: the requested
    pass, as a number from 1 or a part of its title; None for the last. function: the requested
    function or computation; None for all.
    """

    def __init__(
        self, chip: Chip | None, limit: int, pass_name: int | str | None, function: str | None
    ) -> None:
        self.given = chip
        self.described: Chip | None = None
        self.limit, self.pass_name, self.only = limit, pass_name, function
        self.passes, self.kind, self.meshes = Passes(), Kind(), Meshes()
        self.aliases, self.regions = Aliases(), Regions()
        self.prefixes, self.report, self.assignment = Prefixes(), Report(), Assignment()
        self.types: dict[str, str] = {}  # of recent names of an HLO computation
        self.now = PassResult("", limit)
        self.chosen: PassResult | None = None
        self.lines, self.number = 0, 1  # number: of the current pass
        self.function, self.end = "", ""
        self.live: LiveRanges | None = None
        self.memory: HloMemory | None = None
        self.computation: Computation | None = None
        self.waiting = Waiting(limit)

    @property
    def chip(self) -> Chip:
        """The chip: the given one, else the dump's, else a Wormhole."""
        return self.given or self.described or CHIPS["wormhole"]

    @property
    def found(self) -> PassResult | None:
        """The requested pass; None if no pass has that title or number."""
        return self.now if self.pass_name is None else self.chosen

    def read(self, lines: Iterable[Line]) -> None:
        """Read all lines."""
        for line in joined(without_comments(lines)):
            self.lines = line.number + line.text.count("\n")
            self._read(line)
        self._end_module()
        self._allocated(self.report.end())
        self.now.add_peaks("", self.report.peaks(), over=False)
        self.now.add_peaks("", self.assignment.peaks(), over=self.assignment.over)
        self._end_pass()

    # -- passes, modules and functions -------------------------------------------------------------

    def _read(self, line: Line) -> None:
        if self._reports(line):
            return
        text = self.prefixes.cut(line.text) if line.first else line.text
        if text is not line.text:
            line = line._replace(text=text)
        if line.first and ("IR Dump" in text or "odule " in text):
            if self.passes.begins(text, line.number):
                self._end_module()
                self._end_pass()
                self.now = PassResult(self.passes.title, self.limit)
                self.number += 1
            self.now.title = self.passes.title
        if "sdy" in text or "mesh[" in text or "axis_ref" in text:
            text = hidden(with_shardings(text, self.aliases))
            line = line._replace(text=text)
        if line.number < WATCHED:
            self.kind.watch(text)
        if "system_desc<" in text or "workerGrid" in text:
            self.described = chip_in(text, self.described)
        if "mesh" in text or "num_" in text:
            self.meshes.read(text)
        stripped = text.lstrip()
        if stripped[:1] in ("#", "!") and defines_alias(text, self.aliases):
            return
        if text.startswith("HloModule"):
            self._end_module()
            self.memory = HloMemory(text)
            return
        if self._begins(line) or (whole := self.regions.join(line)) is None:
            return
        line, text = whole, whole.text
        if self.computation is not None:  # other computations too: the peak depends on them
            self._hlo(line)
        elif self.only is not None and self.function != self.only:
            return
        elif "tensor<" in text or "memref<" in text:
            self._mlir(line)
        elif ("Config(" in text or "Shape(" in text) and (printed := printed_in(text)):
            self._types(line, printed)
        elif "[" in text or "= token" in text:
            self._hlo(line)
        elif line.first and starts_call(text):
            self._bare_type(line)

    def _reports(self, line: Line) -> bool:
        """Read a line of a report of memory; return whether it is one."""
        text = line.text
        if " memory state: " in text and (peak := measured(text, line.number)):
            self.now.measure(peak)
            return True
        is_assignment, value = self.assignment.read(text, line.number)
        if is_assignment:
            if value is not None:
                self._allocated(Allocation(value.line, value.name, "", (value.kind,)))
            return True
        if not (self.report.begun or "emory" in text or "usage" in text or "BufferA" in text):
            return False
        is_report, ended = self.report.read(text, line.number)
        self._allocated(ended)
        return is_report

    def _allocated(self, found: Allocation | None) -> None:
        """Count an allocation of a report as a value."""
        if found is not None:
            sizes = self._sizes_of([(found.line, each) for each in found.types])
            for each in found.types:
                if not sizes[each].reason:
                    result = Result(found.name, each, found.line)
                    self.now.tally.add(found.op, result, sizes[each], self.function)

    def _begins(self, line: Line) -> bool:
        """Track the current function; return whether the line only begins or ends one."""
        text = line.text
        if text[:1] == " " and self.computation is not None and "func" not in text:
            return False  # inside a computation
        if self.end and (text.rstrip() == self.end or text.startswith(f"{self.end} loc(")):
            self._end_function(is_whole=True)
            return True
        if found := function_of(text):
            self._end_computation()
            self._end_function()
            self.function, self.end = found
            self.now.sharded.begin_function()
            self.now.name(found[0], self.only)
            self.live = LiveRanges(found[0], self.chip)
            return False
        if text.startswith("}") and self.computation is not None:
            self._end_computation(is_whole=True)
            return True
        begun = hlo.computation_of(text) if "tensor<" not in text else None
        # Without a header, `module {` of MLIR is no computation.
        if begun and (self.memory or begun[1] or "->" in text):
            self._end_computation()
            self.memory = self.memory or HloMemory("")
            self.computation = Computation(*begun)
            self.function = begun[0]
            self.now.sharded.begin_function()
            self.now.name(begun[0], self.only)
            self.types.clear()
            return True
        return False

    def _end_function(self, is_whole: bool = False) -> None:
        """Finish a function. is_whole: whether its end was read: a text may be cut before."""
        if self.live is not None:
            self.live.unread |= bool(self.end) and not is_whole
            self.now.add_peaks(self.live.function, self.live.peaks(), self.live.over)
        self.live, self.function, self.end = None, "", ""
        self.regions.clear()

    def _end_computation(self, is_whole: bool = False) -> None:
        if self.computation is not None and self.memory is not None:
            self.computation.unread |= not is_whole
            self.memory.end(self.computation)
            self.waiting.end(self.computation.name)
        self.computation, self.function = None, ""

    def _end_module(self) -> None:
        """Finish an HLO module: its peak, and the values of the computations that it runs."""
        self._end_function()
        self._end_computation()
        if self.memory is not None:
            entry = self.memory.entry.name if self.memory.entry else ""
            if self.only in (None, entry):
                self.now.add_peaks(entry, self.memory.peaks(), self.memory.over)
            self.now.is_cut = self.memory.is_module and self.memory.entry is None
            held = self.memory.holds() or set(self.waiting.tallies)
            self.waiting.merge_into(self.now.tally, held)
        self.memory = None

    def _end_pass(self) -> None:
        requested, title = self.pass_name, self.now.title
        if requested == self.number or (isinstance(requested, str) and requested in title):
            self.chosen = self.now

    # -- lines -------------------------------------------------------------------------------------

    def _mlir(self, line: Line) -> None:
        statement = read_mlir(line, self.aliases)
        if self.live is None:
            self.live = LiveRanges(self.function, self.chip)
        self.live.read(statement)
        sizes = self._count(statement, self.now.tally, self.live)
        self.now.traffic.add(statement, sizes)
        is_typed = sizes and not statement.results and "%" not in line.text
        if is_typed and not statement.op.endswith("func"):
            self._unnamed(statement, sizes)

    def _hlo(self, line: Line) -> None:
        text = line.text
        found = hlo.instruction_of(text) if line.first else None
        if self.only is not None and self.function != self.only:
            if found is not None:
                self._hold(found, line, {})
        elif found is not None:
            statement, now = hlo.read_hlo(line, self.types, found), self.computation
            # A computation other than the entry may never run, such as the body of a fusion.
            is_inner = now is not None and not now.is_entry
            tally = self.waiting.of(self.function) if is_inner else self.now.tally
            is_alias = statement.is_view or (is_inner and found.op == "parameter")
            is_alias = is_alias or (found.op in CALLERS and self._is_of_body(found))
            self._hold(found, line, self._count(statement, tally, is_alias=is_alias))
        elif line.first and hlo.BARE_TYPE.fullmatch(text):
            self._bare_type(line)
        elif "]{" in text:
            statement = hlo.read_hlo(line, self.types, None)
            sizes = self._sizes_of(statement.mentions)
            if self.computation is None:
                self._unnamed(statement, sizes)

    def _count(
        self,
        statement: Statement,
        tally: Tally,
        live: LiveRanges | None = None,
        is_alias: bool = False,
    ) -> dict[str, Sizes]:
        """Count the values, transfers, uses, shardings and collectives of a line.

        Returns the sizes of its types. is_alias: whether its results own no memory.
        """
        sizes = self._sizes_of(statement.mentions)
        for result in () if is_alias else statement.results:
            each = sizes[result.text]
            if each.reason and live is not None:
                live.unread = True
            if each.reason or (live is not None and live.is_alias(statement, result)):
                continue
            tally.add(statement.op, result, each, self.function)
            if live is not None:
                live.add(statement, result, each)
        if statement.transfer:
            tally.transfer(statement, statement.transfer, sizes)
        tally.count_uses(self.function, statement)
        if "shard" in statement.text:
            self.now.sharded.read(statement, self.meshes, self._states_parts())
        self.now.collectives.read(statement, self.meshes, self.function)
        return sizes

    def _states_parts(self) -> bool:
        """Return whether the current computation states the shapes of one device's parts."""
        now, memory = self.computation, self.memory
        return now is not None and memory is not None and memory.is_of_parts(now)

    def _is_of_body(self, found: Instruction) -> bool:
        """Return whether the result is that of a computation whose values are counted."""
        names = bodies_of(found) if self.computation is not None else ()
        return any(name in self.waiting.tallies for name in names)

    def _hold(self, found: Instruction, line: Line, known: dict[str, Sizes]) -> None:
        """Add an instruction to the memory of its computation. known: sizes of types."""
        if self.computation is not None and self.memory is not None:
            if found.own == (found.kind,):
                sizes = [known.get(found.kind) or read(found.kind)]
            else:
                sizes = array_sizes(found.kind)
            self.memory.add(found, line.number, sizes, self.computation)
            if found.op == "fusion" and (called := hlo.called_by(found)):
                self.waiting.drop(called)

    def _bare_type(self, line: Line) -> None:
        self._types(line, [line.text.strip()])

    def _types(self, line: Line, texts: Iterable[str]) -> None:
        statement = Statement(line.number, "", mentions=tuple((line.number, t) for t in texts))
        self._unnamed(statement, self._sizes_of(statement.mentions))

    # -- statements --------------------------------------------------------------------------------

    def _sizes_of(self, mentions: Iterable[Mention]) -> dict[str, Sizes]:
        """Return the sizes of each type; count the readable types and record the others."""
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
        if not (self.aliases.dropped or self.aliases.left) or not re.search(
            r"#[\w$.-]+>$", text[-200:]
        ):
            return reason
        if self.aliases.dropped:
            return f"its alias was not stored: {self.aliases.dropped} aliases exceeded the bounds"
        return (
            "its alias was not written out: the dump with all aliases written out would be over "
            f"{MAX_WRITTEN_PER_CHARACTER} times as long"
        )

    def _unnamed(self, statement: Statement, sizes: dict[str, Sizes]) -> None:
        """Add types that belong to no value."""
        for line, text in statement.mentions:
            if not sizes[text].reason:
                result = Result("", text, line)
                self.now.tally.add(statement.op, result, sizes[text], self.function)
