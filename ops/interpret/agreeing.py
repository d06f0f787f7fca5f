"""What processes agree on before a function runs on the grid: its jaxpr, and how arrays lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gridlayout.layouts.layout import Layout
from gridlayout.sharding.agreement import crossing, jaxpr_lines, layout_lines


def agree_on_call(lifted: Any, arrays: Sequence[Any], static: Any) -> None:
    """`LayoutError` unless every process of the device grid calls this function on such arrays."""
    with crossing(lifted, static.device, arrays) as call:
        call.agree(static, lambda: _lines(lifted._program, static), owner=lifted._program)


def _lines(program: Any, static: Any) -> list[str]:
    kinds = list(enumerate(static.kinds))
    lines = layout_lines(*((f"array {k}", x) for k, x in kinds if isinstance(x, Layout)))
    for k, x in kinds:
        if not isinstance(x, Layout):
            dims = ",".join(map(str, x.shape))
            lines.append(f"array {k}: {x.dtype.name}[{dims}], not laid out")
    policy = getattr(program.policy, "__qualname__", type(program.policy).__name__)
    closed, *_ = program.jaxpr(static)
    return [*lines, f"algorithm {static.algorithm}, policy {policy}", *jaxpr_lines(closed)]
