"""Computes the `Costs` of a dump from an explanation and its totals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gridlayout.costs import Costs, Described, cores_of, mean_of
from gridlayout.dump.contents import Contents
from gridlayout.dump.moves.meshes import Meshes
from gridlayout.dump.moves.move import Move, move_of
from gridlayout.dump.moves.traffic import cores_by_config
from gridlayout.dump.reading import PassResult
from gridlayout.dump.values.type_texts import layout_of, read
from gridlayout.layouts.memory import Chip
from gridlayout.tenstorrent.program_config import Blocks


def between_cores(moves: Iterable[Move]) -> int | None:
    """Return the bytes that relayouts within L1 move to other cores; None if one is unknown."""
    total = 0
    for move in moves:
        if move.before.memory == move.after.memory == "l1":
            if move.moved_bytes is None:
                return None
            total += move.moved_bytes * move.count
    return total


def costs_of(explained: Contents) -> Costs:
    """Return the costs of a dump: all fields for TTNN, those that are known for other dumps."""
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


def _received(found: PassResult | None) -> int | None:
    """Return the bytes that a chip receives from others.

    None if a group size is unknown, or there are more different collectives than are stored.
    """
    ops = found.collectives.worst_first(Meshes()) if found else ()
    if any(not each.group_size and each.kind not in ("mesh_shard", "all_slice") for each in ops):
        return None
    if found and found.collectives.ops.total > sum(each.count for each in ops):
        return None
    return sum(each.received_bytes * each.count for each in ops)


def _of_cores(found: PassResult, chip: Chip) -> dict[str, Any]:
    """Return the costs of TTNN ops: bytes read, written and moved between cores; cores in use."""
    traffic = found.traffic
    moves = [move_of(*each, chip) for each in found.tally.moves.worst_first()]
    known_moves = sum(move.count for move in moves)  # some relayouts have buffers without a map
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
    """Return the number of cores that hold a result's shards or, by its config, compute it."""
    found = cores_of(layout)
    return cores_by_config(text, blocks) if found is None and blocks else found
