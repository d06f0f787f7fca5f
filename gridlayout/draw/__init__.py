"""Draws layouts as SVG.

`Layout.draw` is the public method; `gridlayout.draw.views` lists the views. A view does not depend
on the class of a layout: it only uses its index map, inverse, sizes and nested blocks.
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
