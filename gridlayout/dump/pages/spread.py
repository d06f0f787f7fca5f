"""Rows of tables on what devices hold, send each other, and divide."""

from __future__ import annotations

from gridlayout import dtypes
from gridlayout.dump.contents import Contents
from gridlayout.dump.moves.shardings import ShardedTensor
from gridlayout.layouts.memory import size
from gridlayout.tables.words import WIDTH, dims, plain

PEAK_HEAD = ("memory", "function", "line", "peak", "arguments", "results", "temporary", "alive")
COLLECTIVE_HEAD = (
    *("line", "times", "op", "value", "kind", "groups", "of devices", "axes", "receives", "result"),
)
SHARDING_HEAD = (
    *("line", "times", "op", "value", "tensor", "parts", "copies", "shard", "padding", "a device"),
    "sharding",
)
RESHARD_HEAD = ("line", "times", "value", "tensor", "from", "to", "receives")


def peak_rows(found: Contents) -> list[tuple[str, ...]]:
    """One row a memory, under `PEAK_HEAD`: of L1 the fullest core's, else one device's."""
    rows = []
    for peak in found.peaks:
        compiled = peak.memory == "memory"
        parts = (peak.arguments, peak.results, peak.temporary)
        alive = ", ".join(f"{plain(s.name, 24)} {size(s.nbytes)}" for s in peak.alive[:4])
        more = ", ..." if len(peak.alive) > 4 else ""
        rows.append(
            (
                f"{peak.memory} of a {'core' if peak.memory == 'l1' else 'device'}",
                *(plain(peak.function, WIDTH) or "-", str(peak.line), size(peak.nbytes)),
                *(size(n) if compiled else "-" for n in parts),
                alive + more,
            )
        )
    return rows


def collective_rows(found: Contents) -> list[tuple[str, ...]]:
    """One row a collective, under `COLLECTIVE_HEAD`; bytes are a device's."""
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
    """One row a divided tensor, under `SHARDING_HEAD`; bytes are a device's."""
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
    """One row a change of sharding, under `RESHARD_HEAD`; bytes are a device's, at most."""
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
