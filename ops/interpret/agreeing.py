"""The agreement of processes before a function runs on the grid: on its jaxpr and the layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gridlayout.layouts.layout import Layout
from gridlayout.ops.interpret.function import Function, Signature
from gridlayout.sharding.agreement import crossing, jaxpr_lines, layout_lines


def agree_on_call(
    lifted: Any, function: Function, arrays: Sequence[Any], signature: Signature
) -> None:
    """`LayoutError` unless all processes of the device grid make the same call.

    They must call the same function on arrays of the same layouts, shapes and dtypes.
    """
    with crossing(lifted, signature.device, arrays) as call:
        call.agree(signature, lambda: _lines(function, signature), owner=function)


def _lines(function: Function, signature: Signature) -> list[str]:
    kinds = list(enumerate(signature.kinds))
    lines = layout_lines(*((f"array {k}", x) for k, x in kinds if isinstance(x, Layout)))
    for k, x in kinds:
        if not isinstance(x, Layout):
            dims = ",".join(map(str, x.shape))
            lines.append(f"array {k}: {x.dtype.name}[{dims}], not laid out")
    policy = getattr(function.policy, "__qualname__", type(function.policy).__name__)
    closed, *_ = function.jaxpr(signature)
    return [*lines, f"algorithm {signature.algorithm}, policy {policy}", *jaxpr_lines(closed)]
