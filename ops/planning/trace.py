"""Traces in the JSON format that Perfetto and chrome://tracing read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

_MOST = 64  # the most devices that are written


def write_trace(
    path: str | Path,
    title: str,
    mesh: Mapping[str, int],
    spans: Sequence[tuple[float, str, float, Sequence[tuple[str, float]]]],
    held: Sequence[tuple[str, int]],
) -> None:
    """Write what devices do: a process per device, with a thread to compute and one per link axis.

    mesh: the size of each axis. spans: for each equation its start, name, seconds of computation,
    and the axes and seconds of the collectives after it. held: the bytes that a device holds over
    time. The file has microseconds, as the format requires.
    """
    axes = list(dict.fromkeys(axis for *_, sent in spans for axis, _ in sent))
    places = islice(product(*map(range, mesh.values())), _MOST)
    events: list[dict[str, Any]] = []
    for device, place in enumerate(places):
        at = ", ".join(f"{axis}={k}" for axis, k in zip(mesh, place, strict=True))
        events.append(_named("process_name", device, 0, f"device {device} ({at})"))
        for thread, name in enumerate(("compute", *(f"links {axis}" for axis in axes))):
            events.append(_named("thread_name", device, thread, name))
        events += _of_device(device, axes, spans, held)
    count = 1
    for size in mesh.values():
        count *= size
    record = {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"program": title, "devices": count, "devices written": min(count, _MOST)},
    }
    Path(path).write_text(json.dumps(record) + "\n", encoding="utf-8")


def _named(what: str, device: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": device, "tid": thread, "args": {"name": name}}


def _of_device(
    device: int,
    axes: Sequence[str],
    spans: Sequence[tuple[float, str, float, Sequence[tuple[str, float]]]],
    held: Sequence[tuple[str, int]],
) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    starts: dict[str, float] = {}

    def add(name: str, thread: int, start: float, seconds: float) -> None:
        each = {"name": name, "ph": "X", "pid": device, "tid": thread}
        events.append(each | {"ts": start * 1e6, "dur": seconds * 1e6})

    for start, name, compute, sent in spans:
        if compute:
            add(name, 0, start, compute)
        at = start + compute
        for axis, seconds in sent:
            add(name, 1 + axes.index(axis), at, seconds)
            at += seconds
        starts.setdefault(name, start)
    at = 0.0
    for name, nbytes in held:
        at = max(at, starts.get(name, at))
        counter = {"name": "bytes held", "ph": "C", "pid": device, "ts": at * 1e6}
        events.append(counter | {"args": {"bytes": nbytes}})
    return events
