"""`explain`: what the layouts in a dump cost, the worst first."""

from __future__ import annotations

import heapq
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, overload

from gridlayout.arguments import Shape, as_flag
from gridlayout.dump import page, table
from gridlayout.dump.chips import chip_in
from gridlayout.dump.findings import Finding, fit_of
from gridlayout.dump.lines import Line, joined, lines_of, lines_of_each
from gridlayout.dump.moves import Move, moved, permutation_of
from gridlayout.dump.plan import propose
from gridlayout.dump.statements import MAX_NAMED, Context, Flow, read_line
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import CHIPS, Chip, as_chip
from gridlayout.layouts.summary import Summary
from gridlayout.text import parse

MAX_LIMIT, MAX_REASONS = 1 << 16, 20

Source = str | os.PathLike[str] | io.BufferedIOBase | Iterable[str | bytes]


@dataclass(frozen=True)
class Unknown:
    """Texts that look like layouts and are none: why, how many, the first one and its line."""

    reason: str
    count: int
    line: int
    text: str


@dataclass(frozen=True)
class Explanation:
    """What a dump's layouts cost. `str` is a table; `to_json` is for tools, `to_html` a report.

    findings: the layouts that waste most bytes, the worst first. moves: those of most data, the
    one that moves most bytes first. unknown: texts that look like layouts and can't be read, by
    reason. lines: of the dump. layouts, nbytes, data_bytes: of all mentions, so that a value is
    counted wherever it is named; all_moves and all_unknown count mentions too.
    """

    source: str
    chip: Chip
    lines: int
    layouts: int
    nbytes: int
    data_bytes: int
    findings: tuple[Finding, ...]
    moves: tuple[Move, ...]
    all_moves: int
    unknown: tuple[Unknown, ...]
    all_unknown: int

    @property
    def left_out(self) -> int:
        """Mentions of layouts that waste less than those in `findings`."""
        return self.layouts - sum(finding.count for finding in self.findings)

    def __str__(self) -> str:
        return table.text_of(self)

    def to_json(self) -> str:
        """The same as JSON: an object with `findings`, `moves`, `unknown` and the totals."""
        return json.dumps(table.record_of(self), indent=1)

    def to_html(self) -> str:
        """The same as one page of HTML that needs nothing else."""
        return page.page_of(self)

    def _repr_html_(self) -> str:
        return page.body_of(self)


@overload
def explain(
    source: Layout,
    *,
    chip: Chip | str | None = None,
    limit: int = 50,
    plan: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Summary: ...


@overload
def explain(
    source: Source,
    *,
    chip: Chip | str | None = None,
    limit: int = 50,
    plan: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Explanation: ...


def explain(
    source: Source | Layout,
    *,
    chip: Chip | str | None = None,
    limit: int = 50,
    plan: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Explanation | Summary:
    """What a layout, or the layouts in a compiler's dump, cost: padding, bytes, whether they fit.

    source: a layout, of which the answer is its `summary`, with a `better` layout where `plan`
    finds one. Or a dump: a path; or a text, if no file has that name; or a binary stream, or lines.
    tt-mlir IR with `#ttcore.metal_layout` or `#ttnn.ttnn_layout`, HLO, or any layout's own text. It
    is read once and never held: memory is bounded whatever its size. chip: whose memory is meant, a
    `gl.Chip` or a name ("wormhole"); by default that of the dump's `system_desc`, else a Wormhole.
    limit: findings and moves to keep. plan: look for layouts that waste less, on more cores where
    they do not fit. progress: called with the bytes of every piece read.

    Raises `LayoutError` for a path that can't be read, and for a text without any layout.

    >>> found = explain("ROOT %a = f32[3,5]{1,0:T(8,128)} add(%b, %c)")
    >>> [(f.name, f.op, f.layout.nbytes, f.data_bytes) for f in found.findings]
    [('a', 'add', 4096, 60)]
    >>> print(explain(parse("f32[1000,3]{1,0:T(8,128)}"), plan=True))
    float32[1000, 3] in one buffer, in memory 0
      shard    125x1x8x128 elements in one buffer, laid out as {1,0:T(8,128)}
      padding  97.7% of 128,000 places hold no element
      bytes    500.0 KiB in all, 488.3 KiB of it wasted: 42.67 times the data
      better   saves 484.0 KiB in all: xla.layout((1000, 3), 'float32', (0, 1), ((4, 128),))
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise LayoutError(f"limit {limit!r} must be a whole number from 1 to {MAX_LIMIT}")
    chip, plan = None if chip is None else as_chip(chip), as_flag(plan, "plan")
    if isinstance(source, Layout):
        found = propose(source, chip or CHIPS["wormhole"]) if plan else None
        return Summary(source, chip, found.layout if found else None)
    if isinstance(source, io.BufferedIOBase):
        name = str(getattr(source, "name", "stream"))
        return _explained(name, lines_of(source, progress), chip, limit, plan)
    if not isinstance(source, str | os.PathLike):
        return _explained("lines", lines_of_each(source), chip, limit, plan)
    if _is_path(source):
        try:
            with open(source, "rb") as stream:
                lines = lines_of(stream, progress)
                return _explained(os.fspath(source), lines, chip, limit, plan)
        except OSError as error:
            raise LayoutError(f"{os.fspath(source)!r} can't be read: {error.strerror}") from None
    return _explained_text(str(source), chip, limit, plan)


def _explained_text(text: str, chip: Chip | None, limit: int, plan: bool) -> Explanation:
    whole = io.BytesIO(text.encode("utf-8", "replace"))
    found = _explained("text", lines_of(whole), chip, limit, plan)
    if not found.layouts:
        why = f": {found.unknown[0].reason}" if found.unknown else ""
        raise LayoutError(
            f"{text[:60]!r} is neither a file nor a text with a layout in it{why}; give the path "
            "of a dump, or a type such as 'f32[3,5]{1,0:T(8,128)}'"
        )
    return found


def _is_path(source: str | os.PathLike[str]) -> bool:
    if isinstance(source, str):
        return "\n" not in source and "\0" not in source and os.path.exists(source)
    return True


# -- reading ---------------------------------------------------------------------------------------


class _Kept:
    """Keys counted; of all that were seen, the `limit` of the highest rank are kept.

    One that was let go never comes back, as the lowest rank kept only rises: so counts are exact.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.total = limit, 0
        self.seen: dict[Any, list[Any]] = {}  # count, and what was given with the first
        self.heap: list[tuple[int, int, Any]] = []

    def add(self, key: Any, rank: int, first: Any) -> None:
        """Count `key`; `first` is kept when it is new."""
        self.total += 1
        if entry := self.seen.get(key):
            entry[0] += 1
            return
        item = (rank, -self.total, key)
        if len(self.heap) < self.limit:
            heapq.heappush(self.heap, item)
        elif item < self.heap[0]:
            return
        else:
            del self.seen[heapq.heapreplace(self.heap, item)[2]]
        self.seen[key] = [1, first]

    def worst_first(self) -> Iterator[tuple[Any, int, Any]]:
        """Each key kept, its count, and what was given with the first."""
        for _, _, key in sorted(self.heap, reverse=True):
            yield key, *self.seen[key]


@dataclass(frozen=True)
class _Text:
    """What is known of a text: its layout and bytes, or why it has none."""

    layout: Layout | None
    nbytes: int = 0
    data_bytes: int = 0
    reason: str = ""


def _explained(
    source: str, lines: Iterable[Line], chip: Chip | None, limit: int, plan: bool
) -> Explanation:
    context, described = Context(), None
    findings, moves, unknown = _Kept(limit), _Kept(limit), _Kept(MAX_REASONS)
    count = nbytes = data = 0
    for line in joined(lines):
        count = line.number + line.text.count("\n")
        described = chip_in(line.text, described)
        mentions, flow = read_line(line, context)
        for mention in mentions:
            found = _read(mention.text)
            if found.layout is None:
                unknown.add(found.reason, 0, (mention.line, mention.text[:200]))
                continue
            nbytes, data = nbytes + found.nbytes, data + found.data_bytes
            waste = found.nbytes - found.data_bytes
            findings.add((mention.op, found.layout), waste, (mention.line, mention.name))
        if flow:
            _add(flow, moves)
    chip = chip or described or CHIPS["wormhole"]
    return Explanation(
        *(source, chip, count, findings.total, nbytes, data),
        tuple(_finding(*found, chip, plan) for found in findings.worst_first()),
        tuple(sorted((_move(*found, chip) for found in moves.worst_first()), key=_most_first)),
        moves.total,
        tuple(Unknown(reason, times, *first) for reason, times, first in unknown.worst_first()),
        unknown.total,
    )


def _read(text: str) -> _Text:
    # Long texts are read again each time rather than remembered.
    return _remembered(text) if len(text) <= MAX_NAMED else _parsed(text)


def _parsed(text: str) -> _Text:
    try:
        layout = parse(text)
    except LayoutError as error:
        return _Text(None, reason=re.sub(r"^column \d+: ", "", str(error))[:160])
    return _Text(layout, layout.nbytes, layout.data_bytes)


_remembered = lru_cache(maxsize=8192)(_parsed)


def _add(flow: Flow, moves: _Kept) -> None:
    before, after = _read(flow.before).layout, _read(flow.after.text).layout
    if before is None or after is None:
        return
    permutation = permutation_of(before, after, flow.permutation, flow.swap)
    if permutation is not None and (permutation or before != after):
        key = (flow.after.op, before, after, permutation)
        moves.add(key, before.data_bytes, (flow.after.line, flow.after.name))


def _finding(
    key: tuple[str, Layout], count: int, first: tuple[int, str], chip: Chip, plan: bool
) -> Finding:
    (op, layout), (line, name) = key, first
    proposal = propose(layout, chip) if plan else None
    return Finding(line, count, op, name, layout, fit_of(layout, chip), proposal)


def _most_first(move: Move) -> tuple[int, int]:
    return -(move.data_bytes if move.moved_bytes is None else move.moved_bytes), move.line


def _move(
    key: tuple[str, Layout, Layout, Shape], count: int, first: tuple[int, str], chip: Chip
) -> Move:
    (op, before, after, permutation), (line, name) = key, first
    elements, where = moved(before, after, permutation, chip)
    return Move(line, count, op, name, before, after, permutation, elements, where)
