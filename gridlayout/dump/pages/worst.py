"""The things in a dump that cost most bytes, each in one sentence."""

from __future__ import annotations

from collections.abc import Iterator

from gridlayout.dump.contents import Contents, Finding
from gridlayout.dump.moves.collectives import CollectiveOp
from gridlayout.layouts.memory import size
from gridlayout.tables.cells import tensor
from gridlayout.tables.words import plain

_MOST = 3
_NAME = 60  # characters of names


def worst_of(found: Contents) -> list[str]:
    """Return what costs most: padding, layouts that do not fit, moves and collectives.

    They are sorted by bytes: those of padding, or those that move or are received in all.
    """
    costs = [*_padding(found), *_moves(found), *_collectives(found)]
    return [sentence for _, sentence in sorted(costs, key=lambda each: -each[0])[:_MOST]]


def _padding(found: Contents) -> Iterator[tuple[int, str]]:
    for each in found.findings:
        if each.wasted_bytes:
            text = (
                f"{_value(each)}, {tensor(each.layout)}, holds {size(each.nbytes)} for "
                f"{size(each.data_bytes)} of data: {each.padding_share:.0%} is padding."
            )
            if each.fit is not None and not each.fit:
                text += " It does not fit on the chip."
            if each.proposal is not None and each.proposal.saved_bytes > 0:
                text += f" Another layout saves {size(each.proposal.saved_bytes)}."
            yield each.wasted_bytes, text


def _value(each: Finding) -> str:
    name = plain(each.name, _NAME) or "A value"
    made = f", the result of {plain(each.op, _NAME)}" if each.op and "func" not in each.op else ""
    times = f", and {each.values - 1:,} more like it," if each.values > 1 else ""
    return f"{name}{times} of line {each.line}{made}"


def _moves(found: Contents) -> Iterator[tuple[int, str]]:
    for each in found.moves:
        if moved := each.moved_bytes:
            yield (
                moved * each.count,
                f"{plain(each.op, _NAME)} of line {each.line}{_times(each.count)} moves "
                f"{size(moved)} of {tensor(each.before)} ({plain(each.where)}), to change its "
                "layout.",
            )


def _collectives(found: Contents) -> Iterator[tuple[int, str]]:
    for each in found.collectives:
        if each.received_bytes:
            yield (
                each.received_bytes * each.count,
                f"{plain(each.op, _NAME)} of line {each.line}{_times(each.count)}: each device "
                f"receives {size(each.received_bytes)}{_groups(each)}.",
            )


def _groups(each: CollectiveOp) -> str:
    devices = f", in groups of {each.group_size:,} devices" if each.group_size else ""
    return f"{devices} along {plain(axes_text(each), 99)}" if each.axes else devices


def axes_text(each: CollectiveOp) -> str:
    """Return the mesh axes of a collective, with their sizes where these are known."""
    if not each.axis_sizes:
        return "*".join(each.axes)
    pairs = zip(each.axes, each.axis_sizes, strict=True)
    return "*".join(f"{name}={extent}" for name, extent in pairs)


def _times(count: int) -> str:
    return f", {count:,} times," if count > 1 else ""
