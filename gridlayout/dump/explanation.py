"""`explain`: what the layouts in a dump cost, the worst first."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Protocol, TypedDict, Unpack, overload

from gridlayout import objects
from gridlayout.arguments import as_flag, check_progress
from gridlayout.costs import Costs, fit_of
from gridlayout.dump.comparing.comparison import Comparison
from gridlayout.dump.comparing.costs import costs_of
from gridlayout.dump.comparing.matching import Value, in_order
from gridlayout.dump.comparing.sides import Side, side_by_side
from gridlayout.dump.contents import Contents, Unknown
from gridlayout.dump.findings import Finding
from gridlayout.dump.moves.move import Move, move_of
from gridlayout.dump.moves.shardings import Reshard, ShardedTensor
from gridlayout.dump.pages import page, record, table
from gridlayout.dump.plan import propose
from gridlayout.dump.reading import Dump, Found, collectives_of
from gridlayout.dump.text.sources import is_path, opened
from gridlayout.dump.values.kept import Kept
from gridlayout.dump.values.readings import layout_of
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import CHIPS, Chip, as_chip
from gridlayout.layouts.summary import Summary

MAX_LIMIT = 1 << 16
KEPT = 1 << 9  # rows that comparisons have, however few are shown
Lines = Sequence[str] | Sequence[bytes] | Iterator[str] | Iterator[bytes]
Text = str | os.PathLike[str] | bytes | bytearray | memoryview | io.BufferedIOBase | Lines


class Explanation(Contents):
    """What a dump's layouts cost. `str` is a table; `to_json` is for tools, `to_html` a report.

    Its fields are those of `gridlayout.dump.Contents`: findings, moves, peaks, collectives,
    shardings, reshards and unknown, the worst first, and the sums over all of them.
    """

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """The values that own memory and have a name, in order; of very many those of most waste.

        Each has function, name, line, op, the text of its type, and its layout.
        """
        rows = self.found.tally.values.worst_first() if self.found else ()
        named = [(*key, row) for key, _, row in rows if len(key) == 3]
        return tuple(in_order(Value(f, n, line, row[2], row[3]) for f, n, line, row in named))

    @cached_property
    def costs(self) -> Costs:
        """What the layouts cost, in the numbers that `gl.compare` compares. Bytes of one chip."""
        return costs_of(self)

    @property
    def side(self) -> Side:
        """The program as one side of a comparison."""
        chip = None if self.kind in ("hlo", "text") else self.chip
        left_out = self.layouts - sum(1 for _ in self.found.tally.values.seen) if self.found else 0
        return Side(
            *(self.source, self.kind, self.costs, chip, self.values, self.note),
            left_out=max(left_out, 0),
        )

    def diff(self, other: Any) -> Comparison:
        """Which layouts `other` changed, and what that saves: the comparison of the two.

        other: another explanation, or what `explain` takes as a dump; of one function, say at
        another level of optimization. `rows` are the values that lie differently, `saved` what
        `other` saves; printed, it is a table, in notebooks a page. `LayoutError` where there is
        nothing to compare, as for `gl.compare`.

        >>> a, b = (f"%a = f32[1000,3]{{{order}:T(8,128)}} add(%b)" for order in ("1,0", "0,1"))
        >>> found = explain([a]).diff([b])
        >>> [row.op for row in found.rows], found.saved["held_bytes"]
        (['add'], 479232)
        """
        found = other if isinstance(other, Explanation) else explain(other)
        if not isinstance(found, Explanation):
            raise LayoutError(f"a dump can't be compared with {type(found).__name__}")
        return side_by_side([self.side, found.side])

    def __str__(self) -> str:
        return table.text_of(self)

    def __repr__(self) -> str:
        return f"<Explanation of {table.summary_of(self)}>"

    def to_json(self) -> str:
        """The same as JSON: an object with `findings`, `moves`, `unknown` and the totals."""
        return json.dumps(record.record_of(self), indent=1)

    def to_html(self) -> str:
        """The same as one page of HTML that needs nothing else."""
        return page.page_of(self)

    def _repr_html_(self) -> str:
        return page.body_of(self)


class Options(TypedDict, total=False):
    """What `explain` takes by name."""

    chip: Chip | str | None
    limit: int
    plan: bool
    progress: Callable[[int], None] | None
    pass_name: str | int | None
    function: str | None


class LaidOut(Protocol):
    """What has a layout, such as a `GridArray`."""

    @property
    def layout(self) -> Layout:
        """Where its elements lie."""


class Program(Protocol):
    """What `jax.jit(f).lower(...)` and `.compile()` give."""

    def as_text(self) -> Any:
        """Its text."""


@overload
def explain(source: Layout | LaidOut, **options: Unpack[Options]) -> Summary:
    """A layout, or an array that has one: its summary."""


@overload
def explain(source: Text | Program, **options: Unpack[Options]) -> Explanation:
    """A dump."""


@overload
def explain(source: Callable[..., Any], *arguments: Any, **options: Unpack[Options]) -> Explanation:
    """A function and what it is called with: what JAX compiles of it."""


@overload
def explain(source: Any, *arguments: Any, **options: Unpack[Options]) -> Any:
    """A tree of arrays: a table of them."""


def explain(
    source: Any,
    *arguments: Any,
    chip: Chip | str | None = None,
    limit: int = 50,
    plan: bool = False,
    progress: Callable[[int], None] | None = None,
    pass_name: str | int | None = None,
    function: str | None = None,
) -> Any:
    """What a layout, or the layouts in a compiler's dump, cost: padding, bytes, whether they fit.

    source: a layout or a `GridArray`, of which the answer is its `summary`, with a `better` layout
    where `plan` finds one. Or a tree of arrays and layouts: then it is `gl.summary`'s table. Or a
    dump: a path; or a text, if no file has that name; or bytes, a binary stream, lines, or what
    `jax.jit(f).lower(...)` and `.compile()` give (compiled for Tenstorrent's chips, its TTNN IR).
    Or a function, which `jax.jit` compiles for the arguments: what it runs is explained, of
    `gl.on_grid(f)` what its devices run. tt-mlir IR with `#ttcore.metal_layout`,
    `#ttnn.ttnn_layout` or memrefs in a memory space, HLO, StableHLO with shardings, or any layout's
    own text. It is read once and never held: memory is bounded whatever its size. arguments: the
    function's. chip: whose memory is meant, a `gl.Chip` or a name ("wormhole"); by default that of
    the dump's `system_desc`, else a Wormhole. limit: rows to keep. plan: look for layouts that
    waste less, on more cores where they do not fit. progress: called with the bytes of every piece.
    pass_name: of a dump of several passes the one that is meant, by its number from 1 or a part of
    its title; by default the last. function: the one that is meant, by its name; by default all.

    Raises `LayoutError` for what can't be read, a pass or function that is not there, a function
    that can't be compiled, and a text without any layout, which it takes for the name of a file
    that is none.

    >>> found = explain("ROOT %a = f32[3,5]{1,0:T(8,128)} add(%b, %c)")
    >>> [(f.name, f.op, f.layout.nbytes, f.data_bytes) for f in found.findings]
    [('a', 'add', 4096, 60)]
    >>> from gridlayout import parse
    >>> print(explain(parse("f32[1000,3]{1,0:T(8,128)}"), plan=True))
    float32[1000, 3] in one buffer, in memory 0
      shard    125x1x8x128 elements in one buffer, laid out as {1,0:T(8,128)}
      padding  97.7% of 128,000 positions hold no element
      bytes    500.0 KiB in total, 488.3 KiB wasted: 42.67 times the data
      better   saves 484.0 KiB in total: xla.layout((1000, 3), 'float32', (0, 1), ((4, 128),))
    """
    _check(limit, progress, pass_name, function)
    chip, plan = None if chip is None else as_chip(chip), as_flag(plan, "plan")
    title = ""
    if arguments:
        title, source = objects.name_of(source), objects.compiled(source, arguments)
    elif not objects.is_text(source):
        if isinstance(layout := getattr(source, "layout", source), Layout):
            return _summary(layout, chip, plan)
        if tree := objects.tree_of(source, chip, plan):
            return tree
    dump = Dump(chip, max(limit, KEPT), pass_name, function)
    with opened(source, progress) as (name, lines):
        dump.read(lines)
    found = _chosen(dump, function)
    if isinstance(source, str) and found.is_empty and not is_path(source):
        raise _no_layout(source, dump, found)
    return _explanation(title or name, dump, found, plan, limit)


def _no_layout(text: str, dump: Dump, found: Found) -> LayoutError:
    why = next((f": {reason}" for reason, _, _ in found.unknown.worst_first()), "")
    return LayoutError(
        f"{text[:60]!r} is neither a file nor a text with a layout in it{why}; it was taken for "
        f"{dump.kind.why}; give the path of a dump, or a type such as 'f32[3,5]{{1,0:T(8,128)}}'"
    )


def _summary(layout: Layout, chip: Chip | None, plan: bool) -> Summary:
    found = propose(layout, chip or CHIPS["wormhole"]) if plan else None
    return Summary(layout, chip, found.layout if found else None)


def _check(limit: Any, progress: Any, pass_name: Any, function: Any) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise LayoutError(f"limit {limit!r} must be a whole number from 1 to {MAX_LIMIT}")
    check_progress(progress, "a number of bytes")
    if isinstance(pass_name, bool) or not isinstance(pass_name, str | int | None):
        raise LayoutError(f"pass_name {pass_name!r} must be a part of a title, or a number from 1")
    if not isinstance(function, str | None):
        raise LayoutError(f"function {function!r} must be a name")


def _chosen(dump: Dump, function: str | None) -> Found:
    found = dump.found
    if found is None:
        titles = [f"{k} {title!r}" for k, (_, title) in enumerate(dump.passes.titles[:20], 1)]
        raise LayoutError(
            f"no pass {dump.pass_name!r} in the dump; it has {', '.join(titles) or 'one pass only'}"
        )
    if function is not None and function not in found.functions:
        names = ", ".join(list(found.functions)[:20]) or "none"
        raise LayoutError(f"no function {function!r} in the dump; it has {names}")
    return found


def _explanation(source: str, dump: Dump, found: Found, plan: bool, limit: int) -> Explanation:
    chip, tally = dump.chip, found.tally
    findings = [_finding(*each, chip, plan) for each in islice(tally.values.worst_first(), limit)]
    if plan:
        findings.sort(key=lambda each: -(each.proposal.saved_bytes if each.proposal else 0))
    unknown = [
        Unknown(reason, times, line, text[:200])
        for reason, times, (line, text) in found.unknown.worst_first()
    ]
    unknown += [Unknown(reason, n, *_at(at)) for reason, n, at in _unread(found.sharded.unknown)]
    moves = [move_of(*each, chip) for each in islice(tally.moves.worst_first(), limit)]
    collectives = collectives_of(found, dump.meshes)[:limit]
    sharded = found.sharded
    note = "" if not found.is_empty else f"no layout found: it was taken for {dump.kind.why}"
    return Explanation(
        *(source, chip, dump.lines, tally.count, tally.nbytes, tally.data_bytes),
        *(tuple(findings), tuple(sorted(moves, key=_most_first)), tally.moves.total),
        *(tuple(unknown), found.unknown.total + sharded.unknown.total, found.mentions),
        *(tuple(found.peaks.values()), collectives, found.collectives.total),
        tuple(_with_count(s, n) for _, n, s in islice(sharded.tensors.worst_first(), limit)),
        tuple(_reshard(s, n) for _, n, s in islice(sharded.reshards.worst_first(), limit)),
        kind=dump.kind.name,
        passes=tuple(dump.passes.titles),
        pass_name=found.title,
        note=note,
        unpeaked=tuple(found.unpeaked),
        found=found,
    )


def _unread(kept: Kept) -> list[tuple[str, int, Any]]:
    return list(kept.worst_first())


def _at(first: tuple[int, str, str]) -> tuple[int, str]:
    return first[0], first[2][:200]


def _with_count(found: ShardedTensor, count: int) -> ShardedTensor:
    return ShardedTensor(**{**vars(found), "count": count})


def _reshard(first: Any, count: int) -> Reshard:
    line, name, before, after = first
    return Reshard(line, name, before, after, count)


def _finding(key: tuple[Any, ...], count: int, row: list[Any], chip: Chip, plan: bool) -> Finding:
    line, last, op, text, address, uses = row
    layout = layout_of(text)
    function, name = (key[0], key[1]) if len(key) == 3 else ("", "")
    proposal = propose(layout, chip) if plan else None
    fit = fit_of(layout, chip)
    return Finding(
        *(line, count + uses, op, name, layout, fit, proposal),
        *(last, function, address, count),
    )


def _most_first(move: Move) -> tuple[int, int]:
    return -(move.data_bytes if move.moved_bytes is None else move.moved_bytes), move.line
