"""Draws layouts as SVG.

`Layout.draw` is the public method; `gridlayout.draw.views` lists the views. A view does not depend
on the class of a layout: it only uses its index map, inverse, sizes and nested blocks.
"""

from gridlayout.draw.svg import Drawing

__all__ = ["Drawing"]
