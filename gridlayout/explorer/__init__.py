"""The explorer: an HTML page on which a layout can be edited and viewed.

`parameters.py` converts a layout to the parameters of the page. The page computes layouts itself,
in JavaScript: `arithmetic.js`, `divided.js` (grids and tiles) and one file per group of models.
`picture.js` and `form.js` display them.

To add a model, write such a file (`grid_model.js` is one), name it in `models.js`, and give it
fields in `parameters.py`, `page.html` and `fields.js`. Tests compare its arithmetic with the
library's in a browser.
"""

from gridlayout.explorer.page import Explorer, explore

__all__ = ["Explorer", "explore"]
