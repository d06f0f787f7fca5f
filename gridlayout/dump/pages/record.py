"""Converts an explanation to plain data for JSON. Sizes are in bytes."""

from __future__ import annotations

from typing import Any

from gridlayout.costs import Described
from gridlayout.dump.contents import Contents, Finding
from gridlayout.dump.moves.shardings import ShardedTensor


def record_of(found: Contents) -> dict[str, Any]:
    """Return the explanation as numbers, strings, lists and dicts. Sizes are in bytes."""
    return {
        "source": found.source,
        "chip": {**_some(found.chip, "name", "grid"), "capacity": dict(found.chip.capacity)},
        **_some(found, "kind", "note", "advice"),
        "passes": [{"line": line, "title": title} for line, title in found.passes],
        "pass": found.pass_name,
        **_some(found, "lines", "layouts", "mentions"),
        "bytes": found.nbytes,
        **_some(found, "data_bytes", "left_out"),
        "findings": [_finding(each) for each in found.findings],
        "moves": [
            {
                **_some(each, *_WHERE),
                "before": _layout(each.before),
                "after": _layout(each.after),
                **_some(each, "permutation", "elements", "moved_bytes", "data_bytes", "where"),
            }
            for each in found.moves
        ],
        "all_moves": found.all_moves,
        "peaks": [
            {**vars(peak), "alive": [span._asdict() for span in peak.alive]} for peak in found.peaks
        ],
        "unpeaked": found.unpeaked,
        "collectives": [
            {**vars(each), "received_bytes": each.received_bytes} for each in found.collectives
        ],
        **_some(found, "all_collectives", "all_shardings", "all_reshards"),
        "shardings": [_sharding(each) for each in found.shardings],
        "reshards": [
            {
                **vars(each),
                "before": _sharding(each.before),
                "after": _sharding(each.after),
                "received_bytes": each.received_bytes,
            }
            for each in found.reshards
        ],
        "unknown": [vars(unknown) for unknown in found.unknown],
        "all_unknown": found.all_unknown,
    }


_WHERE = ("line", "count", "op", "name")


def _some(found: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(found, name) for name in names}


def _finding(found: Finding) -> dict[str, Any]:
    fit, new = found.fit, found.proposal
    return {
        **_some(found, *_WHERE),
        **_layout(found.layout),
        **_some(found, "bytes_per_core", "last", "function", "address", "padding_share"),
        **_some(found, "data_bytes", "wasted_bytes", "expansion_factor"),
        "fit": None if fit is None else {**vars(fit), "free": fit.free, "fits": bool(fit)},
        "proposal": new and {**_layout(new.layout), **_some(new, "saved_bytes", "saved_per_core")},
    }


def _sharding(found: ShardedTensor) -> dict[str, Any]:
    more = _some(found, "device_bytes", "padding_share")
    return {**vars(found), "shard": found.shard_shape, **more}


def _layout(layout: Described) -> dict[str, Any]:
    return {
        **{"layout": str(layout), "shape": layout.shape, "dtype": layout.dtype.name},
        **{"grid": layout.core_shape, "shard": layout.local_shape},
        **{"bytes_per_core": layout.held.per_core, "bytes": layout.held.nbytes},
    }
