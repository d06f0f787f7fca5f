"""`Shown`: what a `GridArray` shows of itself: drawing, summary, and both in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gridlayout.layouts.memory import Chip
from gridlayout.layouts.summary import Summary
from gridlayout.ops.array.treescope_repr import folded_line
from gridlayout.public import public
from gridlayout.svg import Drawing

if TYPE_CHECKING:
    from gridlayout.ops.array.grid_type import GridType


@public
class Shown:
    """The methods by which an array of a `GridType` is shown; a stack shows the layout of each."""

    if TYPE_CHECKING:

        @property
        def type(self) -> GridType:
            """The array's type."""

    def draw(self, view: str = "logical", **options: Any) -> Drawing:
        """Return a drawing of the layout, as `x.layout.draw` does.

        view, options: those of `gl.Layout.draw`. The views "fold" and "element" show the array's
        own devices, so they need no device=.

        >>> import numpy as np
        >>> from gridlayout import DeviceGrid, GridLayout, put
        >>> layout = GridLayout((53, 63), grid=(3, 2))
        >>> x = put(np.zeros((53, 63), "float32"), layout, DeviceGrid((1,)))
        >>> x.draw("fold").title
        'float32[53, 63]: 3x2 virtual cores on 1 devices'
        """
        if view in ("fold", "element"):
            options = {"device": self.type.device, **options}
        return self.type.layout.draw(view, **options)

    def summary(self, chip: Chip | str | None = None) -> Summary:
        """Return a short readable description of the layout, as `x.layout.summary` does.

        chip: the chip whose memory must hold the layout, a `gl.Chip` or a name.

        >>> import numpy as np
        >>> from gridlayout import DeviceGrid, GridLayout, put
        >>> layout = GridLayout((53, 63), grid=(3, 2))
        >>> x = put(np.zeros((53, 63), "float32"), layout, DeviceGrid((1,)))
        >>> x.summary().title
        'float32[53, 63] on 3x2 cores, in l1'
        """
        return self.type.layout.summary(chip)

    def _repr_html_(self) -> str:
        return self.summary().beside(self.draw("fold").svg)

    def _repr_svg_(self) -> str:
        return self.draw("fold")._repr_svg_()

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        """Return one line that unfolds to the layout's summary, for trees in treescope."""
        return folded_line(repr(self), str(self.summary()), path)
