"""Plans as records, which are written to readable files, with layouts as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import jax

from gridlayout.layouts.layout import Layout

FORMAT, VERSION = "gridlayout plan", 3


def record_of(plan: Any) -> dict[str, Any]:
    """Return a plan as values that JSON can represent."""
    simulation, chosen = plan.simulation, plan.stated.chosen
    return {
        "format": FORMAT,
        "version": VERSION,
        "jax": jax.__version__,
        "program": {"title": simulation.title, "digest": plan.stated.digest},
        "machine": simulation.machine.record,
        "mesh": simulation.mesh,
        "layouts": _texts(plan.layouts),
        "results": _texts(plan.results),
        "time": plan.time,
        "bound": plan.bound,
        "how": plan.how,
        "peak_bytes": plan.peak_bytes,
        "links": simulation.links,
        "equations": [
            {**vars(each), "collectives": [asdict(c) for c in each.collectives]}
            for each in simulation.equations
        ],
        "held": simulation.held,
        "staged": [(n, *stage) for n, stage in simulation.staged],
        "held_at": simulation.held_at,
        "live_ranges": [vars(each) for each in simulation.live_ranges],
        "dram": sorted(simulation.dram),
        "trips": plan.stated.trips,
        # None: the choices of `gl.on_grid`.
        "units": None if chosen is None else chosen.units.axes,
        "products": 0 if chosen is None else chosen.products,
        "choices": [
            {"path": path, **vars(choice)}
            for path, choice in ({} if chosen is None else chosen.choices).items()
        ],
        "alternatives": {
            name: [vars(way) for way in ways] for name, ways in plan.alternatives.items()
        },
    }


def _texts(layouts: Mapping[str, Layout | None]) -> dict[str, str | None]:
    return {name: None if layout is None else str(layout) for name, layout in layouts.items()}
