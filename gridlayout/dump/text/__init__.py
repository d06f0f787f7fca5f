"""Parsers of a dump's text: its lines, statements, passes, functions and kind.

`sources.py` opens what the user gives, `lines.py` splits it, and `mlir.py` or `hlo.py` turn a line
into a `Statement` (`statements.py`): an op, operands, results and types. Types are only cut out;
`gridlayout.dump.values` reads them, so that the grammar of types exists once, in the parsers of
layouts. Aliases of types and attributes are resolved here. `kinds.py` recognizes what a dump is.
"""
