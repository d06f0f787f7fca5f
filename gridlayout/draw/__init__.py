"""Draws layouts as SVG.

`Layout.draw` is the public method; `gridlayout.draw.views` lists the views. A view does not depend
on the class of a layout: it only uses its index map, inverse, sizes and nested blocks.

To add a view, write a module that makes panels (`panels.py`) of cells, and name it in `views.py`.
`cells.py` limits their number, and `colourings.py` gives each thing, or each group of things, a
colour.

Programs are drawn too, from plain numbers. A graph is a chart of cards: `layered.py` places them,
`cards.py` and `folded.py` write SVG and folding HTML. `timeline.py` draws what runs when, `held.py`
bytes held over time, `curves.py` times against counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout
    from gridlayout.svg import Drawing


def draw(layout: Layout, view: str, **options: Any) -> Drawing:
    """The drawing of a layout in a view."""
    # Few programs draw, and the views take time to import.
    from gridlayout.draw.views import draw_layout

    return draw_layout(layout, view, **options)
