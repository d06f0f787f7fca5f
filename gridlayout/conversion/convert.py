"""`convert`: converts a layout to another system and reports what this system can't express."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from gridlayout.arguments import one_of
from gridlayout.conversion.candidates import SYSTEMS
from gridlayout.conversion.losses import Loss, losses
from gridlayout.errors import LayoutError, LayoutWarning
from gridlayout.layouts.layout import Layout, check_layout
from gridlayout.public import public


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion; `bool` of it is True if nothing was lost.

    source: the given layout. layout: the layout in the other system. losses: the properties of the
    source that `layout` does not have.
    """

    source: Layout
    layout: Layout
    losses: tuple[Loss, ...] = ()

    @property
    def is_lossless(self) -> bool:
        """Whether the layout has all properties of the source."""
        return not self.losses

    @property
    def keeps_places(self) -> bool:
        """Whether every element is on the same core, at the same byte of its buffer.

        If cores become one buffer, bytes count in the concatenation of the cores' buffers.
        """
        return all(loss.what != "places" for loss in self.losses)

    def __bool__(self) -> bool:
        return self.is_lossless

    def __str__(self) -> str:
        kept = ["every element keeps its place"] if self.keeps_places else []
        lines = [f"lost {loss}" for loss in self.losses] or ["nothing is lost"]
        return "\n".join([str(self.layout), *(f"  {line}" for line in (*kept, *lines))])

    __repr__ = __str__


@public
def convert(layout: Layout, to: str) -> Conversion:
    """Convert a layout to another system, with as few losses as possible.

    to: document (`gl.GridLayout`), metal, ttnn, ttnn_document, tt_metal (tt-metal's
    `TensorLayout`), xla, strided, sophon, megengine or mli. A layout with the same placement of
    elements is preferred to one with fewer losses. The result never sends two elements to one
    position unless the given layout does.

    `LayoutError`: an argument that is not a layout; an unknown name; a tensor that the system does
    not support.

    >>> from gridlayout import GridLayout
    >>> tiled = GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
    >>> print(convert(tiled, to="xla"))
    f32[53,63]{1,0:T(18,32)(32,32)}
      every element keeps its place
      lost cores: 3x2 cores become one buffer that concatenates theirs
      lost memory: l1 has no equivalent
    >>> print(convert(GridLayout((64, 96), grid=(2, 3), tile=(32, 32)), to="ttnn").is_lossless)
    True
    """
    check_layout(layout)
    classes, candidates = SYSTEMS[one_of(to, tuple(SYSTEMS), "to")]
    if isinstance(layout, classes):
        return Conversion(layout, layout)
    best, refusal = None, ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LayoutWarning)  # candidates may waste memory
        for make in candidates(layout):
            try:
                made = make()
                found = Conversion(layout, made, losses(layout, made))
                if not found.keeps_places:
                    made.check_invertible()  # strides from the first elements may overlap later
            except LayoutError as error:
                refusal = str(error)
                continue
            if best is None or _cost(found) < _cost(best):
                best = found
            if found.is_lossless:
                break
    if best is None:
        raise LayoutError(f"{to} has no layout for {layout!r}: {refusal}")
    return best


def _cost(found: Conversion) -> tuple[bool, int]:
    return not found.keeps_places, len(found.losses)
