"""The explorer: a page of HTML on which a layout can be changed and looked at.

`parameters.py` says what the page is told of a layout. The page's arithmetic is its own, in
JavaScript: `arithmetic.js`, what grids and tiles divide (`divided.js`) and the models beside them;
`picture.js` and `form.js` show it.
"""

from gridlayout.explorer.page import Explorer, explore

__all__ = ["Explorer", "explore"]
