"""Building blocks of tables of layouts: words, cells, aligned columns and HTML."""
