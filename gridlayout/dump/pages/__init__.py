"""Output formats of an explanation: text tables, an HTML page, records for JSON.

`sections.py` has each column once, with its cells and the numbers behind them; the other modules
print it.
"""
