"""Converts an explanation to plain data for JSON. Sizes are in bytes."""

from __future__ import annotations

from typing import Any

from gridlayout.costs import Described
from gridlayout.dump.contents import Contents
from gridlayout.dump.findings import Finding
from gridlayout.dump.moves.move import Move
from gridlayout.dump.moves.shardings import ShardedTensor
from gridlayout.dump.plan import Proposal
from gridlayout.layouts.memory import Fit


def record_of(found: Contents) -> dict[str, Any]:
    """Return the explanation as numbers, strings, lists and dicts. Sizes are in bytes."""
    return {
        "source": found.source,
        "chip": {
            "name": found.chip.name,
            "grid": found.chip.grid,
            "capacity": dict(found.chip.capacity),
        },
        "kind": found.kind,
        "note": found.note,
        "passes": [{"line": line, "title": title} for line, title in found.passes],
        "pass": found.pass_name,
        "lines": found.lines,
        "layouts": found.layouts,
        "mentions": found.mentions,
        "bytes": found.nbytes,
        "data_bytes": found.data_bytes,
        "left_out": found.left_out,
        "findings": [_finding_record(finding) for finding in found.findings],
        "moves": [_move_record(move) for move in found.moves],
        "all_moves": found.all_moves,
        "peaks": [
            {**vars(peak), "alive": [span._asdict() for span in peak.alive]} for peak in found.peaks
        ],
        "unpeaked": found.unpeaked,
        "collectives": [
            {**vars(each), "received_bytes": each.received_bytes} for each in found.collectives
        ],
        "all_collectives": found.all_collectives,
        "all_shardings": found.all_shardings,
        "all_reshards": found.all_reshards,
        "shardings": [_sharding_record(each) for each in found.shardings],
        "reshards": [
            {
                **vars(each),
                "before": _sharding_record(each.before),
                "after": _sharding_record(each.after),
                "received_bytes": each.received_bytes,
            }
            for each in found.reshards
        ],
        "unknown": [vars(unknown) for unknown in found.unknown],
        "all_unknown": found.all_unknown,
    }


def _finding_record(finding: Finding) -> dict[str, Any]:
    return {
        **_where_record(finding),
        **_layout_record(finding.layout),
        "bytes_per_core": finding.bytes_per_core,
        "last": finding.last,
        "function": finding.function,
        "address": finding.address,
        "padding_share": finding.padding_share,
        "data_bytes": finding.data_bytes,
        "wasted_bytes": finding.wasted_bytes,
        "expansion_factor": finding.expansion_factor,
        "fit": None if finding.fit is None else _fit_record(finding.fit),
        "proposal": finding.proposal and _proposal_record(finding.proposal),
    }


def _sharding_record(each: ShardedTensor) -> dict[str, Any]:
    return {
        **vars(each),
        "shard": each.shard_shape,
        "device_bytes": each.device_bytes,
        "padding_share": each.padding_share,
    }


def _fit_record(fit: Fit) -> dict[str, Any]:
    return {**vars(fit), "free": fit.free, "fits": bool(fit)}


def _proposal_record(proposal: Proposal) -> dict[str, Any]:
    return {
        **_layout_record(proposal.layout),
        "saved_bytes": proposal.saved_bytes,
        "saved_per_core": proposal.saved_per_core,
    }


def _move_record(move: Move) -> dict[str, Any]:
    return {
        **_where_record(move),
        "before": _layout_record(move.before),
        "after": _layout_record(move.after),
        "permutation": move.permutation,
        "elements": move.elements,
        "moved_bytes": move.moved_bytes,
        "data_bytes": move.data_bytes,
        "where": move.where,
    }


def _where_record(found: Finding | Move) -> dict[str, Any]:
    return {"line": found.line, "count": found.count, "op": found.op, "name": found.name}


def _layout_record(layout: Described) -> dict[str, Any]:
    return {
        "layout": str(layout),
        "shape": layout.shape,
        "dtype": layout.dtype.name,
        "grid": layout.core_shape,
        "shard": layout.local_shape,
        "bytes_per_core": layout.held.per_core,
        "bytes": layout.held.nbytes,
    }
