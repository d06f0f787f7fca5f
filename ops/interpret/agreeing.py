"""What processes agree on before a function runs on the grid: its jaxpr, and how arrays lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from gridlayout.ops.array.grid_array import GridArray
from gridlayout.sharding.agreement import crossing, jaxpr_lines, layout_lines


def agree_on_call(lifted: Any, arrays: Sequence[Any], static: Any) -> None:
    """`LayoutError` unless every process of the device grid calls this function on such arrays."""
    with crossing(lifted, static.device, arrays) as call:
        key = (static, tuple(_kind(x) for x in arrays))
        call.agree(key, lambda: _lines(lifted._program, arrays, static), owner=lifted._program)


def _kind(x: Any) -> Any:
    return x.layout if isinstance(x, GridArray) else (jnp.shape(x), jnp.result_type(x))


def _lines(program: Any, arrays: Sequence[Any], static: Any) -> list[str]:
    layouts = [(f"array {k}", x.layout) for k, x in enumerate(arrays) if isinstance(x, GridArray)]
    lines = layout_lines(*layouts)
    for k, x in enumerate(arrays):
        if not isinstance(x, GridArray):
            dims = ",".join(map(str, jnp.shape(x)))
            lines.append(f"array {k}: {jnp.result_type(x).name}[{dims}], not laid out")
    policy = getattr(program.policy, "__qualname__", type(program.policy).__name__)
    with static.device.active():
        closed, *_ = program.jaxpr(arrays, static)
    return [*lines, f"algorithm {static.algorithm}, policy {policy}", *jaxpr_lines(closed)]
