"""The explorer: an HTML page on which a layout can be edited and viewed.

`parameters.py` converts a layout to the parameters of the page. The page computes layouts itself,
in JavaScript: `arithmetic.js`, `divided.js` (grids and tiles) and one file per group of models.
`picture.js` and `form.js` display them.
"""

from gridlayout.explorer.page import Explorer, explore

__all__ = ["Explorer", "explore"]
