"""Traces in the JSON format that Perfetto and chrome://tracing read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import Any

from gridlayout.ops.planning.events import COMPUTE, Event

_MOST = 64  # the most devices that are written


def write_trace(
    path: str | Path,
    title: str,
    mesh: Mapping[str, int],
    events: Sequence[Event],
    held: Sequence[tuple[float, int]],
) -> None:
    """Write what devices do: a process per device, with a thread to compute and one per link axis.

    mesh: the size of each axis. events: of one device; all do the same. held: seconds, and the
    bytes that a device holds from then on. The file has microseconds, as the format requires.
    """
    tracks = list(dict.fromkeys((COMPUTE, *(each.track for each in events))))
    written: list[dict[str, Any]] = []
    for device, place in enumerate(islice(product(*map(range, mesh.values())), _MOST)):
        at = ", ".join(f"{axis}={k}" for axis, k in zip(mesh, place, strict=True))
        written.append(_named("process_name", device, 0, f"device {device} ({at})"))
        for thread, name in enumerate(tracks):
            written.append(_named("thread_name", device, thread, name))
        written += [_span(device, tracks.index(each.track), each) for each in events]
        for seconds, nbytes in held:
            counter = {"name": "bytes held", "ph": "C", "pid": device, "ts": seconds * 1e6}
            written.append(counter | {"args": {"bytes": nbytes}})
    count = prod(mesh.values())
    record = {
        "traceEvents": written,
        "displayTimeUnit": "ns",
        "otherData": {"program": title, "devices": count, "devices written": min(count, _MOST)},
    }
    Path(path).write_text(json.dumps(record) + "\n", encoding="utf-8")


def _named(what: str, device: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": device, "tid": thread, "args": {"name": name}}


def _span(device: int, thread: int, each: Event) -> dict[str, Any]:
    args: dict[str, Any] = {"equation": each.equation}
    if each.kind != COMPUTE:
        args |= {"collective": each.kind, "bytes received": each.nbytes}
        args |= {"of": each.of} if each.of else {}
    place = {"pid": device, "tid": thread, "ts": each.start * 1e6, "dur": each.seconds * 1e6}
    return {"name": each.name, "ph": "X", **place, "args": args}
