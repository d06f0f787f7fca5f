"""Kinds of equations: the correspondence between ops of TTNN and JAX's primitives.

It goes by names alone. An op that is one op in one program and several in the other, such as a
softmax, has no counterpart, but is of the same kind.
"""

from __future__ import annotations

from typing import NamedTuple

from gridlayout.ops.decisions.stated import STATED

PRODUCTS, WINDOWS, COMPUTED, SHAPES, MOVES = (
    "products",
    "convolutions and pools",
    "elementwise and reductions",
    "other shapes",
    "only to other places",
)
KINDS = (PRODUCTS, WINDOWS, COMPUTED, SHAPES, MOVES)


class Kind(NamedTuple):
    """What an equation does: one of `KINDS`, and a name that is the same in all programs."""

    kind: str
    word: str


_OF_JAX = {
    "dot_general": Kind(PRODUCTS, "product"),
    "conv_general_dilated": Kind(WINDOWS, "convolution"),
    **{f"reduce_window_{name}": Kind(WINDOWS, "pool") for name in ("max", "min", "sum")},
    **{name: Kind(SHAPES, name) for name in ("reshape", "pad", "slice", "squeeze", "gather")},
    **{"transpose": Kind(SHAPES, "transpose"), "concatenate": Kind(SHAPES, "concatenate")},
    **{name: Kind(SHAPES, name) for name in ("broadcast_in_dim", "split", "rev")},
    **{name: Kind(MOVES, name) for name in ("relayout", *STATED, "copy")},
}
_OF_TTNN = {
    **{name: Kind(PRODUCTS, "product") for name in ("matmul", "linear")},
    **{name: Kind(WINDOWS, "convolution") for name in ("conv2d", "conv3d", "conv_transpose2d")},
    "prepare_conv2d_weights": Kind(WINDOWS, "weights of a convolution"),
    **{name: Kind(WINDOWS, "pool") for name in ("max_pool2d", "avg_pool2d")},
    **{name: Kind(SHAPES, name) for name in ("reshape", "pad", "repeat")},
    **{"permute": Kind(SHAPES, "transpose"), "transpose": Kind(SHAPES, "transpose")},
    **{"concat": Kind(SHAPES, "concatenate"), "slice_static": Kind(SHAPES, "slice")},
    **{name: Kind(MOVES, name) for name in ("to_layout", "to_memory_config", "typecast")},
    **{name: Kind(MOVES, name) for name in ("to_device", "from_device")},
    **{name: Kind(COMPUTED, f"reduce_{name}") for name in ("max", "min", "sum", "prod")},
    **{"subtract": Kind(COMPUTED, "sub"), "multiply": Kind(COMPUTED, "mul")},
    **{"divide": Kind(COMPUTED, "div"), "relu": Kind(COMPUTED, "max")},
    **{"maximum": Kind(COMPUTED, "max"), "minimum": Kind(COMPUTED, "min")},
}


def kind_of(name: str, is_compiled: bool) -> Kind:
    """Return the kind of an equation by its name; is_compiled: whether it is an op of TTNN.

    >>> kind_of("dot_general:3", False) == kind_of("linear:1", True)
    True
    >>> kind_of("max:0", False).word, kind_of("max:0", True).word
    ('max', 'reduce_max')
    """
    word = name.rpartition(":")[0] or name
    known = _OF_TTNN if is_compiled else _OF_JAX
    return known.get(word, Kind(COMPUTED, word))
