"""Drawings of layouts: SVG text made here, from the index map alone.

`Layout.draw` is the way in; `gridlayout.draw.views` lists the views, `gridlayout.draw.gallery`
draws the figures of the documents.
"""

from gridlayout.draw.svg import Drawing

__all__ = ["Drawing"]
