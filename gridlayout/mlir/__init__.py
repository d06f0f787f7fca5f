"""Parser of MLIR text: modules, functions and operations; types and attributes remain text.

It is for compiled programs that are run (`gridlayout.ops.tenstorrent`). Dumps, which may be long,
damaged or of any dialect, are read line by line in `gridlayout.dump`. `program.py` has the grammar,
`source.py` the scanner, whose errors name the line.
"""
