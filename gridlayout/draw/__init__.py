"""Drawings of layouts: SVG text made here, from the index map alone.

`Layout.draw` is the way in; `gridlayout.draw.views` lists the views. No view knows the class of a
layout: it asks for the map, its inverse, the sizes and the nested blocks.
"""

from gridlayout.draw.svg import Drawing

__all__ = ["Drawing"]
