"""`Costs`: what one program's layouts cost, in a few numbers that two programs can be compared by.

Bytes are one chip's. An op reads each of its operands once, whole, and writes its result once;
padding is read and written too. What a kernel does beyond that, such as a product that reads an
operand again, or the buffers that it needs, no dump says: it is in no number here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING, Any

from gridlayout.dump.findings import Described
from gridlayout.dump.moves.collectives import Meshes
from gridlayout.dump.moves.move import Move, move_of
from gridlayout.dump.moves.traffic import Blocks, cores_by_config
from gridlayout.dump.reading import Found, collectives_of
from gridlayout.dump.values.readings import layout_of, read
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Chip
from gridlayout.layouts.padding import elements_per_core

if TYPE_CHECKING:
    from gridlayout.dump.explanation import Explanation


@dataclass(frozen=True)
class Costs:
    """Bytes of one chip, and counts. None for what is not known.

    ops: those that make values. relayouts: those that only bring a value to another layout.
    dram_bytes, l1_bytes: what ops read and write there. relayout_bytes: elements that relayouts
    inside L1 bring to another core; all of them where pages are dealt to banks. core_bytes: what
    all ops bring to other cores, products too, which no dump says. chip_bytes: what collectives
    bring from other chips. values: those that own memory; held_bytes: of all of them
    together, data_bytes: of their elements alone. l1_peak: the most that the fullest core holds at
    a time; dram_peak: a chip; memory_peak: a device whose memory has no name, of HLO. cores: those
    that hold elements of a result, on average over results_known of results.
    """

    ops: int | None = None
    relayouts: int | None = None
    dram_bytes: int | None = None
    l1_bytes: int | None = None
    relayout_bytes: int | None = None
    core_bytes: int | None = None
    chip_bytes: int | None = None
    values: int = 0
    held_bytes: int = 0
    data_bytes: int = 0
    l1_peak: int | None = None
    dram_peak: int | None = None
    memory_peak: int | None = None
    cores: float | None = None
    results_known: int = 0
    results: int = 0

    @property
    def padding_bytes(self) -> int:
        """Bytes of all values beyond their elements."""
        return max(self.held_bytes - self.data_bytes, 0)

    @property
    def padding_share(self) -> float:
        """The share of the bytes of all values that is padding, 0 to 1."""
        return self.padding_bytes / self.held_bytes if self.held_bytes else 0.0


def between_cores(moves: Iterable[Move]) -> int | None:
    """Bytes that relayouts inside L1 bring to another core; None where one can't be told."""
    total = 0
    for move in moves:
        if move.before.memory == move.after.memory == "l1":
            if move.moved_bytes is None:
                return None
            total += move.moved_bytes * move.count
    return total


def cores_of(layout: Described) -> int | None:
    """How many cores hold elements; None where pages are dealt, which no core computes by.

    >>> from gridlayout import GridLayout
    >>> cores_of(GridLayout((5, 4), grid=(4, 1)))
    3
    """
    if layout.memory != "l1" or layout.is_interleaved or not isinstance(layout, Layout):
        return None
    held = elements_per_core(layout)
    return None if held is None else int((held > 0).sum())


def mean_of(cores: Iterable[tuple[int | None, int]]) -> tuple[float | None, int, int]:
    """Of numbers that may be None, and how often each is there: the mean, how many known, of all.

    >>> mean_of([(4, 1), (None, 5), (1, 2)])
    (2.0, 3, 8)
    """
    found = list(cores)
    known = [(n, times) for n, times in found if n is not None]
    count = sum(times for _, times in known)
    total = fsum(n * times for n, times in known)
    return (total / count if count else None), count, sum(times for _, times in found)


def costs_of(explained: Explanation) -> Costs:
    """What the layouts of a dump cost: of TTNN all of it, of others what they tell."""
    found = explained.found
    peaks = {peak.memory: peak.nbytes for peak in explained.peaks}
    known = Costs(
        relayouts=explained.all_moves,
        chip_bytes=_received(found),
        values=explained.layouts,
        held_bytes=explained.nbytes,
        data_bytes=explained.data_bytes,
        l1_peak=peaks.get("l1"),
        dram_peak=peaks.get("dram"),
        memory_peak=peaks.get("memory"),
    )
    if explained.kind != "ttnn" or found is None:
        return known
    none = None if explained.unpeaked else 0
    known = replace(known, l1_peak=peaks.get("l1", none), dram_peak=peaks.get("dram", none))
    return replace(known, **_of_cores(found, explained.chip))


def _received(found: Found | None) -> int | None:
    """Bytes that a chip receives from others; None where a group's size isn't told."""
    ops = collectives_of(found, Meshes()) if found else ()
    if any(not each.group_size and each.kind not in ("mesh_shard", "all_slice") for each in ops):
        return None
    return sum(each.received_bytes * each.count for each in ops)


def _of_cores(found: Found, chip: Chip) -> dict[str, Any]:
    """What TTNN's ops read, write and move between cores, and on how many of these results lie."""
    traffic = found.traffic
    moves = [move_of(*each, chip) for each in found.tally.moves.worst_first()]
    known_moves = sum(move.count for move in moves)  # of some the buffers alone are known
    known = [
        (_cores(layout_of(text), text, blocks), times)
        for (text, blocks), times in traffic.results.items()
        if read(text).held is not None
    ]
    names = ("cores", "results_known", "results")
    return {
        "ops": traffic.ops,
        "relayouts": traffic.relayouts,
        "dram_bytes": traffic.touched["dram"],
        "l1_bytes": traffic.touched["l1"],
        "relayout_bytes": None if traffic.relayouts > known_moves else between_cores(moves),
        **dict(zip(names, mean_of(known), strict=True)),
    }


def _cores(layout: Described, text: str, blocks: Blocks | None) -> int | None:
    """On how many cores a result lies, or is made: by its shards, or by a product's config."""
    found = cores_of(layout)
    return cores_by_config(text, blocks) if found is None and blocks else found
