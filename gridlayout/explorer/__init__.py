"""The explorer: a page of HTML on which a layout can be changed and looked at.

`parameters.py` says what the page is told of a layout. The page's arithmetic is its own, in
JavaScript: `arithmetic.js` and the two models beside it; `picture.js` and `form.js` show it.
"""

from gridlayout.explorer.page import Explorer, explore

__all__ = ["Explorer", "explore"]
