"""`convert`: a layout in the words of another system, and what these words can't say."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from gridlayout.arguments import one_of
from gridlayout.conversion.candidates import SYSTEMS
from gridlayout.conversion.losses import Loss, losses
from gridlayout.errors import LayoutError, LayoutWarning
from gridlayout.layouts.layout import Layout, check_layout


@dataclass(frozen=True)
class Conversion:
    """A layout in another system's words. source: what it was. losses: what could not be kept.

    True in a condition where nothing was lost.
    """

    source: Layout
    layout: Layout
    losses: tuple[Loss, ...] = ()

    @property
    def is_lossless(self) -> bool:
        """Whether the layout says all that the source says."""
        return not self.losses

    @property
    def keeps_places(self) -> bool:
        """Whether every element lies in the same core, at the same byte of its buffer.

        Where cores become one buffer: at the same byte of their buffers laid end to end.
        """
        return all(loss.what != "places" for loss in self.losses)

    def __bool__(self) -> bool:
        return self.is_lossless

    def __str__(self) -> str:
        kept = ["every element lies where it did"] if self.keeps_places else []
        lines = [f"lost {loss}" for loss in self.losses] or ["nothing is lost"]
        return "\n".join([str(self.layout), *(f"  {line}" for line in (*kept, *lines))])


def convert(layout: Layout, to: str) -> Conversion:
    """The layout of another system that keeps most of this one, and what it could not keep.

    to: document (`gl.GridLayout`), metal, ttnn, ttnn_document, tt_metal (tt-metal's
    `TensorLayout`), xla, strided, sophon, megengine or mli. A layout with every element where it
    was is taken before one that loses less of the rest. Elements that lie apart stay apart.

    `LayoutError`: no layout, another name, or a tensor of which the system has none at all.

    >>> from gridlayout import GridLayout
    >>> tiled = GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
    >>> print(convert(tiled, to="xla"))
    f32[53,63]{1,0:T(18,32)(32,32)}
      every element lies where it did
      lost cores: 3x2 cores become one buffer, in which theirs lie end to end
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
        warnings.simplefilter("ignore", LayoutWarning)  # of candidates that nobody asked for
        for make in candidates(layout):
            try:
                made = make()
                found = Conversion(layout, made, losses(layout, made))
                if not found.keeps_places:
                    made.check_invertible()  # strides that only the first elements have may overlap
            except LayoutError as error:
                refusal = str(error)
                continue
            if best is None or _cost(found) < _cost(best):
                best = found
            if found.is_lossless:
                break
    if best is None:
        raise LayoutError(f"{to} has no layout of {layout!r}: {refusal}")
    return best


def _cost(found: Conversion) -> tuple[bool, int]:
    return not found.keeps_places, len(found.losses)
