"""The record of a machine in files: the arguments of its constructor, for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import Chip
from gridlayout.sharding.machines.chips import Figure, Links, Rates

_FORMAT, _VERSION = "gridlayout machine", 4


def record_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Machine` as numbers, strings, lists and dicts."""
    rates, between = arguments["rates"], arguments["host_links"]
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "chip": {k: v for k, v in asdict(arguments["chip"]).items() if k != "shared" or v},
        "mesh": arguments["mesh"],
        "links": [asdict(each) for each in arguments["links"]],
        "rates": None if rates is None else asdict(rates),
        "axes": arguments["axes"],
        "figures": [asdict(each) for each in arguments["figures"]],
        "hosts": arguments["hosts"],
        "host_links": None if between is None else asdict(between),
        "overlap": arguments["overlap"],
    }


def arguments_of(record: Any) -> dict[str, Any]:
    """Return the arguments of `Machine` in a record; an invalid one raises an error of any type."""
    version = record["version"]
    if record["format"] != _FORMAT or not isinstance(version, int) or version < 1:
        raise KeyError("format")
    if version > _VERSION:
        raise LayoutError(
            f"the machine was saved by a newer gridlayout, in version {version} of the format; "
            f"this one reads versions up to {_VERSION}: update gridlayout"
        )
    chip = dict(record["chip"])
    for name in ("grid", "tiles"):
        chip[name] = tuple(tuple(x) if isinstance(x, list) else x for x in chip[name])
    between = record.get("host_links")
    return {
        "chip": Chip(**chip),
        "mesh": record["mesh"],
        "links": [Links(**each) for each in record["links"]],
        "rates": None if record["rates"] is None else Rates(**record["rates"]),
        "axes": record["axes"],
        "figures": [Figure(**each) for each in record["figures"]],
        "hosts": tuple(record.get("hosts", ())),
        "host_links": None if between is None else Links(**between),
        "overlap": tuple(record.get("overlap", ())),
    }
