"""`explain`: the costs of the layouts in a dump, those of most waste first."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, Protocol, TypedDict, Unpack, overload

from gridlayout import objects
from gridlayout.arguments import as_flag, check_progress
from gridlayout.costs import Costs, fit_of
from gridlayout.dump.comparing.comparison import Comparison, Input, compare_inputs
from gridlayout.dump.comparing.costs import costs_of
from gridlayout.dump.comparing.matching import Value, in_order
from gridlayout.dump.contents import Contents, Finding, Unknown
from gridlayout.dump.moves.move import Move, move_of
from gridlayout.dump.pages import page, record, table
from gridlayout.dump.pass_result import PassResult
from gridlayout.dump.plan import propose
from gridlayout.dump.reading import Dump
from gridlayout.dump.text.sources import opened
from gridlayout.dump.values.top_keys import TopKeys
from gridlayout.dump.values.type_texts import layout_of
from gridlayout.errors import LayoutError
from gridlayout.files import is_path
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import CHIPS, Chip, as_chip
from gridlayout.layouts.reader import dims_text
from gridlayout.layouts.summary import Summary
from gridlayout.public import public
from gridlayout.text import parse

MAX_LIMIT = 1 << 16
# The first words of layouts, and of types of arrays.
_STARTS = re.compile(r"\s*(tensor\s*<|memref\s*<|\w{2,12}\[[\d,]*\]|\w{3,40}(\.\w{2,40})?\()")
_CUT = "the text is cut before its ENTRY computation, so values inside fusions are counted too"
_MOST_RANGES = 3  # core ranges that an advice lists
_MIN_ROWS = 1 << 9  # rows that are stored for comparisons even if fewer are shown
Lines = Sequence[str] | Sequence[bytes] | Iterator[str] | Iterator[bytes]
Text = str | os.PathLike[str] | bytes | bytearray | memoryview | io.BufferedIOBase | Lines


@public
class Explanation(Contents):
    """The costs of a dump's layouts. `str` gives tables, `to_json` JSON, `to_html` a page.

    The fields are those of `gridlayout.dump.Contents`: findings, moves, peaks, collectives,
    shardings, reshards and unknown, the worst first, and the sums over all of them.
    """

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """The values that own memory and have a name, sorted by line.

        If there are more than max(limit, 512), those of most waste.
        """
        rows = self.found.tally.values.worst_first() if self.found else ()
        named = [(*key, row) for key, _, row in rows if len(key) == 3]
        return tuple(in_order(Value(f, n, line, row[2], row[3]) for f, n, line, row in named))

    @cached_property
    def costs(self) -> Costs:
        """The costs that `gl.compare` compares, in bytes of one chip."""
        return costs_of(self)

    @property
    def comparison_input(self) -> Input:
        """The program as an input of a comparison."""
        chip = None if self.kind in ("hlo", "text") else self.chip
        left_out = self.layouts - sum(1 for _ in self.found.tally.values.seen) if self.found else 0
        return Input(
            *(self.source, self.kind, self.costs, chip, self.values, self.note),
            left_out=max(left_out, 0),
        )

    def diff(self, other: Any) -> Comparison:
        """Return the comparison with `other`: the values whose layouts differ, and the savings.

        other: another explanation, or a dump as `explain` takes it, of the same function, for
        example at another level of optimization. In the result, `rows` are the values whose layouts
        differ, and `saved` is what `other` saves. Raises `LayoutError` as `gl.compare` does.

        >>> a, b = (f"%a = f32[1000,3]{{{order}:T(8,128)}} add(%b)" for order in ("1,0", "0,1"))
        >>> found = explain([a]).diff([b])
        >>> [row.op for row in found.rows], found.saved["held_bytes"]
        (['add'], 479232)
        """
        found = other if isinstance(other, Explanation) else explain(other)
        if not isinstance(found, Explanation):
            raise LayoutError(f"a dump can't be compared with {type(found).__name__}")
        return compare_inputs([self.comparison_input, found.comparison_input])

    def __str__(self) -> str:
        return table.text_of(self)

    def __repr__(self) -> str:
        return f"<Explanation of {table.summary_of(self)}>"

    def to_json(self) -> str:
        """Return the explanation as JSON: `findings`, `moves`, `unknown` and the totals."""
        return json.dumps(record.record_of(self), indent=1)

    def to_html(self) -> str:
        """Return the explanation as a self-contained HTML page."""
        return page.page_of(self)

    def _repr_html_(self) -> str:
        return page.body_of(self)


class Options(TypedDict, total=False):
    """The keyword arguments of `explain`."""

    chip: Chip | str | None
    limit: int
    plan: bool
    progress: Callable[[int], None] | None
    pass_name: str | int | None
    function: str | None


class LaidOut(Protocol):
    """An object with a layout, such as a `GridArray`."""

    @property
    def layout(self) -> Layout:
        """The layout of its elements."""


class Program(Protocol):
    """The result of `jax.jit(f).lower(...)` or of its `.compile()`."""

    def as_text(self) -> Any:
        """Return its text."""


@overload
def explain(source: Layout | LaidOut, **options: Unpack[Options]) -> Summary:
    """Return the summary of a layout, or of an object that has one."""


@overload
def explain(source: Text | Program, **options: Unpack[Options]) -> Explanation:
    """Explain a dump."""


@overload
def explain(source: Callable[..., Any], *arguments: Any, **options: Unpack[Options]) -> Explanation:
    """Explain what JAX compiles of a function for the given arguments."""


@overload
def explain(source: Any, *arguments: Any, **options: Unpack[Options]) -> Any:
    """Return a table of a tree of arrays."""


@public
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
    """Return the costs of a layout, or of the layouts in a compiler's dump: bytes, padding, fit.

    source: a layout or a `GridArray`: the result is its `summary`, with a `better` layout if `plan`
    finds one. Or a tree of arrays and layouts: the result is the table of `gl.summary`. Or a
    function: `jax.jit` compiles it for the arguments, and the compiled program is explained; for
    `gl.on_grid(f)`, and for arguments that are layouts or `GridArray`s, this is the program that
    the devices run. Or a dump: a path; a text, unless it
    is the name of a file; bytes; a binary stream; lines; or the result of `jax.jit(f).lower(...)`
    or its `.compile()` (for Tenstorrent's chips, the TTNN IR in it). A dump may be tt-mlir IR with
    `#ttcore.metal_layout`, `#ttnn.ttnn_layout` or memrefs in a memory space, HLO, StableHLO with
    shardings, or the text of any layout. It is read once and not stored, so memory is bounded for
    any size.

    arguments: the arguments of the function. chip: the chip whose memory is checked, a `gl.Chip` or
    a name ("wormhole"); by default the chip of the dump's `system_desc`, else a Wormhole. limit:
    the most rows per table. plan: whether to propose layouts that waste less, on more cores for
    those that do not fit. progress: called with the number of bytes of each block that is read.
    pass_name: the pass to explain, as a number from 1 or a part of its title; by default the last.
    function: the name of the function to explain; by default all.

    Raises `LayoutError` for a source that can't be read, a pass or function that the dump does not
    have, a function that can't be compiled, and a text that has no layout and is no path of a file.

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
    dump = Dump(chip, max(limit, _MIN_ROWS), pass_name, function)
    with opened(source, progress) as (name, lines):
        dump.read(lines)
    found = _chosen(dump, function)
    if isinstance(source, str) and found.is_empty and not is_path(source):
        raise _no_layout(source, dump, found)
    return _explanation(title or name, dump, found, plan, limit)


def _no_layout(text: str, dump: Dump, found: PassResult) -> LayoutError:
    unread = (*found.unknown.worst_first(), *found.sharded.unknown.worst_first())
    why = next((f": {reason}" for reason, _, _ in unread), "") or _why_unread(text)
    return LayoutError(
        f"{text[:60]!r} is neither a file nor a text with a layout in it{why}; it was read as "
        f"{dump.kind.why}; give the path of a dump, or a type such as 'f32[3,5]{{1,0:T(8,128)}}'"
    )


def _why_unread(text: str) -> str:
    """Return why a text that starts as a layout is none; empty for other texts."""
    if not _STARTS.match(text):
        return ""
    try:
        parse(text)
    except LayoutError as error:
        return f": {error}"
    return ""


def _summary(layout: Layout, chip: Chip | None, plan: bool) -> Summary:
    found = propose(layout, chip or CHIPS["wormhole"]) if plan else None
    return Summary(layout, chip, found.layout if found else None)


def _check(limit: Any, progress: Any, pass_name: Any, function: Any) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise LayoutError(f"limit {limit!r} must be a whole number from 1 to {MAX_LIMIT}")
    check_progress(progress, "a number of bytes")
    is_number = isinstance(pass_name, int) and not isinstance(pass_name, bool) and pass_name >= 1
    if not is_number and not isinstance(pass_name, str | None):
        raise LayoutError(
            f"pass_name {pass_name!r} must be a part of a pass's title, or a number from 1"
        )
    if not isinstance(function, str | None):
        raise LayoutError(f"function {function!r} must be the name of a function, as a string")


def _chosen(dump: Dump, function: str | None) -> PassResult:
    found = dump.found
    if found is None:
        titles = [f"{k} {title!r}" for k, (_, title) in enumerate(dump.passes.titles[:20], 1)]
        raise LayoutError(
            f"the dump has no pass {dump.pass_name!r}; it has {', '.join(titles) or 'only one'}"
        )
    if function is not None and function not in found.functions:
        names = ", ".join(list(found.functions)[:20]) or "none"
        raise LayoutError(f"the dump has no function {function!r}; it has {names}")
    return found


def _explanation(source: str, dump: Dump, found: PassResult, plan: bool, limit: int) -> Explanation:
    chip, tally, sharded = dump.chip, found.tally, found.sharded

    def largest(rows: TopKeys) -> Iterator[tuple[Any, int, Any]]:
        return islice(rows.worst_first(), limit)

    findings = [_finding(*each, chip, plan) for each in largest(tally.values)]
    if plan:
        findings.sort(key=lambda each: -(each.proposal.saved_bytes if each.proposal else 0))
    moves = [move_of(*each, chip) for each in largest(tally.moves)]
    unread = [*found.unknown.worst_first(), *sharded.unknown.worst_first()]
    return Explanation(
        source=source,
        chip=chip,
        lines=dump.lines,
        layouts=tally.count,
        nbytes=tally.nbytes,
        data_bytes=tally.data_bytes,
        findings=tuple(findings),
        moves=tuple(sorted(moves, key=_most_first)),
        all_moves=tally.moves.total,
        unknown=tuple(Unknown(why, n, first[0], first[-1][:200]) for why, n, first in unread),
        all_unknown=found.unknown.total + sharded.unknown.total,
        mentions=found.mentions,
        peaks=found.peaks_over_time(),
        collectives=found.collectives.worst_first(dump.meshes)[:limit],
        all_collectives=found.collectives.ops.total,
        shardings=tuple(replace(each, count=n) for _, n, each in largest(sharded.tensors)),
        all_shardings=sharded.tensors.total,
        reshards=tuple(replace(each, count=n) for _, n, each in largest(sharded.reshards)),
        all_reshards=sharded.reshards.total,
        kind=dump.kind.name,
        passes=tuple(dump.passes.titles),
        pass_name=found.title,
        note=f"no layout found: it was read as {dump.kind.why}" if found.is_empty else "",
        unpeaked=tuple(found.unpeaked),
        advice=_CUT * found.is_cut
        or ("" if dump.given or dump.described else _other_chip(findings, chip)),
        found=found,
    )


def _finding(key: tuple[Any, ...], count: int, row: list[Any], chip: Chip, plan: bool) -> Finding:
    line, last, op, text, address, uses = row
    layout = layout_of(text)
    function, name = (key[0], key[1]) if len(key) == 3 else ("", "")
    proposal = propose(layout, chip) if plan else None
    where = (line, count + uses, op, name, layout, fit_of(layout, chip), proposal)
    return Finding(*where, last, function, address, count)


def _other_chip(findings: Sequence[Finding], chip: Chip) -> str:
    """Return which chip has the cores that layouts are on, if the assumed one has not."""
    needed = [_reach(each) for each in findings if each.fit is not None]
    rows, columns = map(max, zip((0, 0), *needed, strict=True))
    if rows <= chip.grid[0] and columns <= chip.grid[1]:
        return ""
    outside = _outside(findings, chip)
    for name, other in CHIPS.items():
        if other is not chip and rows <= other.grid[0] and columns <= other.grid[1]:
            return (
                f"layouts are on {rows}x{columns} cores{outside}, but a {chip.name}, which is "
                f"assumed, has {dims_text(chip.grid)}; a {other.name} has "
                f'{dims_text(other.grid)}: give chip="{name}"'
            )
    return ""


def _outside(findings: Sequence[Finding], chip: Chip) -> str:
    """Return the core ranges that are not on the chip, in words; the first few of them."""
    rows, columns = chip.grid
    found = {
        f"({x},{y})-({last_x},{last_y})": None
        for each in findings
        for (x, y), (last_x, last_y) in getattr(each.layout, "core_ranges", ())
        if last_x >= columns or last_y >= rows
    }
    if not found:
        return ""
    more = f" and {len(found) - _MOST_RANGES} more" if len(found) > _MOST_RANGES else ""
    return f", in core ranges {', '.join([*found][:_MOST_RANGES])}{more}"


def _reach(found: Finding) -> tuple[int, int]:
    """Return the rows and columns of cores that a layout needs: of its ranges, or of its grid.

    A grid that the chip has cores for, by itself or folded, needs no others.
    """
    ends = [end for _, end in getattr(found.layout, "core_ranges", ())]
    if ends:
        return max(y for _, y in ends) + 1, max(x for x, _ in ends) + 1
    if found.fit is None or found.fit.grid is None:
        return 0, 0
    rows, columns = (1, 1, *found.fit.grid)[-2:]
    return rows, columns


def _most_first(move: Move) -> tuple[int, int]:
    return -(move.data_bytes if move.moved_bytes is None else move.moved_bytes), move.line
