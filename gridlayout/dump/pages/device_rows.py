"""Rows of the tables of memory peaks, collectives, shardings and reshards."""

from __future__ import annotations

from gridlayout import dtypes
from gridlayout.dump.contents import Contents
from gridlayout.dump.moves.shardings import ShardedTensor
from gridlayout.layouts.memory import size
from gridlayout.tables.words import WIDTH, dims, plain

PEAK_HEAD = ("memory", "function", "line", "peak", "arguments", "results", "temporary", "alive")
COLLECTIVE_HEAD = (
    *("line", "count", "op", "value", "kind", "groups", "group size", "axes", "receives", "result"),
)
SHARDING_HEAD = (
    *("line", "count", "op", "value", "tensor", "parts", "copies", "shard", "padding"),
    *("per device", "sharding"),
)
RESHARD_HEAD = ("line", "count", "value", "tensor", "from", "to", "receives")


def peak_rows(found: Contents) -> list[tuple[str, ...]]:
    """Return one row per memory, under `PEAK_HEAD`: L1 of the fullest core, others per device."""
    rows = []
    for peak in found.peaks:
        compiled = peak.memory == "memory"
        parts = (peak.arguments, peak.results, peak.temporary)
        alive = ", ".join(f"{plain(s.name, 24)} {size(s.nbytes)}" for s in peak.alive[:4])
        more = ", ..." if len(peak.alive) > 4 else ""
        rows.append(
            (
                f"{peak.memory} per {'core' if peak.memory == 'l1' else 'device'}",
                *(plain(peak.function, WIDTH) or "-", str(peak.line), size(peak.nbytes)),
                *(size(n) if compiled else "-" for n in parts),
                alive + more,
            )
        )
    return rows


def collective_rows(found: Contents) -> list[tuple[str, ...]]:
    """Return one row per collective, under `COLLECTIVE_HEAD`; bytes are per device."""
    return [
        (
            *(str(each.line), f"{each.count:,}", plain(each.op, WIDTH)),
            *(plain(each.name, WIDTH) or "-", each.kind),
            *(f"{each.groups:,}" if each.groups else "?", f"{each.group_size:,}"),
            *(plain("*".join(each.axes), WIDTH) or "-", size(each.received_bytes)),
            size(each.result_bytes),
        )
        for each in found.collectives
    ]


def sharding_rows(found: Contents) -> list[tuple[str, ...]]:
    """Return one row per sharded tensor, under `SHARDING_HEAD`; bytes are per device."""
    return [
        (
            *(str(each.line), f"{each.count:,}", plain(each.op, WIDTH) or "-"),
            *(plain(each.name, WIDTH) or "-", _sharded(each), dims(each.parts)),
            *(f"{each.copies:,}" if each.copies else "?", dims(each.shard_shape)),
            *(f"{each.padding_share:.1%}", size(each.device_bytes), plain(each.text, 60)),
        )
        for each in found.shardings
    ]


def reshard_rows(found: Contents) -> list[tuple[str, ...]]:
    """Return one row per reshard, under `RESHARD_HEAD`; bytes are the most per device."""
    return [
        (
            *(str(each.line), f"{each.count:,}", plain(each.name, WIDTH) or "-"),
            *(_sharded(each.after), dims(each.before.parts), dims(each.after.parts)),
            size(each.received_bytes),
        )
        for each in found.reshards
    ]


def _sharded(each: ShardedTensor) -> str:
    return f"{dtypes.MLIR_NAMES[each.dtype]}[{','.join(map(str, each.shape))}]"
