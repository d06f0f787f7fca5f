"""Shapes with an element type, as commands take them: `f32[53,63]` or `53x63xf32`."""

from __future__ import annotations

import re
from typing import NamedTuple

from gridlayout.arguments import Shape, as_shape
from gridlayout.dtypes import FROM_XLA, MLIR_NAMES, XLA_NAMES, as_dtype
from gridlayout.errors import LayoutError

_XLAS = re.compile(r"([A-Za-z]\w{0,31})\[((?:\d{1,19}(?:,\d{1,19}){0,63})?)\]")
_MLIRS = re.compile(r"((?:\d{1,19}x){0,64})([A-Za-z]\w{0,31})")


class Typed(NamedTuple):
    """A shape, and the name of its element type in NumPy."""

    shape: Shape
    dtype: str

    @property
    def mlir(self) -> str:
        """As in a tensor type of MLIR.

        >>> shape_of("f32[53,63]").mlir
        '53x63xf32'
        """
        return "x".join([*map(str, self.shape), MLIR_NAMES[self.dtype]])

    @property
    def xla(self) -> str:
        """As in HLO.

        >>> shape_of("53x63xi32").xla
        's32[53,63]'
        """
        dims = ",".join(map(str, self.shape))
        return f"{XLA_NAMES.get(self.dtype, self.dtype)}[{dims}]"


def shape_of(text: str) -> Typed:
    """Return what a text states. Raises `LayoutError` for another form and unknown types.

    >>> shape_of("bf16[8]") == shape_of("8xbf16"), shape_of("float32[]")
    (True, Typed(shape=(), dtype='float32'))
    """
    if match := _XLAS.fullmatch(text):
        name, dims = match.group(1), match.group(2).split(",")
    elif match := _MLIRS.fullmatch(text):
        name, dims = match.group(2), match.group(1).split("x")
    else:
        raise LayoutError(
            f"{text[:60]!r} must be a shape with an element type, as f32[512,64] or 512x64xf32"
        )
    shape = as_shape([int(n) for n in dims if n], f"the shape in {text!r}")
    return Typed(shape, as_dtype(FROM_XLA.get(name, name)).name)
