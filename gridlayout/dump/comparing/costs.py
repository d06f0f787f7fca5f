"""Costs of a dump: what its layouts cost, added up from what the reading kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gridlayout.costs import Costs, Described, cores_of, mean_of
from gridlayout.dump.contents import Contents
from gridlayout.dump.moves.collectives import Meshes
from gridlayout.dump.moves.move import Move, move_of
from gridlayout.dump.moves.traffic import cores_by_config
from gridlayout.dump.reading import Found, collectives_of
from gridlayout.dump.values.readings import layout_of, read
from gridlayout.layouts.memory import Chip
from gridlayout.tenstorrent.program_config import Blocks


def between_cores(moves: Iterable[Move]) -> int | None:
    """Bytes that relayouts inside L1 bring to another core; None where one can't be told."""
    total = 0
    for move in moves:
        if move.before.memory == move.after.memory == "l1":
            if move.moved_bytes is None:
                return None
            total += move.moved_bytes * move.count
    return total


def costs_of(explained: Contents) -> Costs:
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
