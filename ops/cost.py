"""What a primitive takes, as formulas of its shapes and layouts."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from gridlayout.layout import Layout
from gridlayout.ops.elementwise import ELEMENTWISE


def flops(eqn: Any) -> int:
    """Operations on the logical elements of an equation: one each, two where they multiply and add.

    What only moves elements takes none.
    """
    name = eqn.primitive.name
    out = sum(prod(var.aval.shape) for var in eqn.outvars)
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        return 2 * out * prod(eqn.invars[0].aval.shape[d] for d in contracted)
    if name == "conv_general_dilated":
        kernel = eqn.invars[1].aval.shape
        features = kernel[eqn.params["dimension_numbers"].rhs_spec[0]]
        return 2 * out * prod(kernel) // max(features, 1)
    if name in ELEMENTWISE:
        return out
    if name.startswith(("reduce", "cum", "arg", "scatter", "select_and")):
        return prod(eqn.invars[0].aval.shape)
    return 0


def held(layouts: Iterable[Layout | None]) -> int:
    """Bytes of one core's buffers in all of these layouts."""
    return sum(layout.bytes_per_core for layout in layouts if layout is not None)
