"""Computes the `Costs` of a dump from an explanation and its totals."""

from __future__ import annotations

from typing import Any

from gridlayout.costs import Costs, Described, cores_of, mean_of
from gridlayout.dump.contents import Contents
from gridlayout.dump.moves.meshes import Meshes
from gridlayout.dump.moves.move import move_of
from gridlayout.dump.moves.traffic import cores_by_config
from gridlayout.dump.pass_result import PassResult
from gridlayout.dump.values.type_texts import layout_of, read
from gridlayout.layouts.memory import Chip
from gridlayout.tenstorrent.program_config import Blocks


def costs_of(explained: Contents) -> Costs:
    """Return the costs of a dump: all fields for TTNN, those that are known for other dumps."""
    found = explained.found
    # A lower bound is no cost.
    peaks = {each.memory: None if each.at_least else each.nbytes for each in explained.peaks}
    of_cores, none = {}, None
    if explained.kind == "ttnn" and found is not None:
        of_cores, none = _of_cores(found, explained.chip), None if explained.unpeaked else 0
    return Costs(
        **{"relayouts": explained.all_moves, **of_cores},
        chip_bytes=_received(found),
        values=explained.layouts,
        held_bytes=explained.nbytes,
        data_bytes=explained.data_bytes,
        l1_peak=peaks.get("l1", none),
        dram_peak=peaks.get("dram", none),
        memory_peak=peaks.get("memory"),
    )


def _received(found: PassResult | None) -> int | None:
    """Return the bytes that a chip receives from others.

    None if a group size is unknown, or there are more different collectives than are stored.
    """
    ops = found.collectives.worst_first(Meshes()) if found else ()
    received = [each.received_bytes for each in ops]
    if found and found.collectives.ops.total > sum(each.count for each in ops):
        return None
    if None in received:
        return None
    return sum((nbytes or 0) * each.count for nbytes, each in zip(received, ops, strict=True))


def _of_cores(found: PassResult, chip: Chip) -> dict[str, Any]:
    """Return the costs of TTNN ops: bytes read, written and moved between cores; cores in use."""
    traffic = found.traffic
    moves = [move_of(*each, chip) for each in found.tally.moves.worst_first()]
    inside = [m for m in moves if m.before.memory == m.after.memory == "l1"]
    # Some relayouts have buffers without a map.
    unknown = traffic.relayouts > sum(move.count for move in moves)
    unknown = unknown or any(move.moved_bytes is None for move in inside)
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
        "relayout_bytes": None if unknown else sum((m.moved_bytes or 0) * m.count for m in inside),
        **dict(zip(names, mean_of(known), strict=True)),
    }


def _cores(layout: Described, text: str, blocks: Blocks | None) -> int | None:
    """Return the number of cores that hold a result's shards or, by its config, compute it."""
    found = cores_of(layout)
    return cores_by_config(text, blocks) if found is None and blocks else found
