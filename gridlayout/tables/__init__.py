"""Building blocks of tables of layouts: words, cells, aligned columns and HTML.

A `Table` (`table.py`) is rows of values under named columns. It prints as aligned text, as HTML and
as records, so that a report states each number once. `cells.py` has short texts about layouts,
`words.py` those of extents, durations and foreign text, `names.py` the names of compared programs.
"""
