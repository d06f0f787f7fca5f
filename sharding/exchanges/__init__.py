"""What devices send each other: exchanges of whole mesh axes, and pieces in rounds.

A relayout follows the route between two layouts (`gridlayout.layouts.route`). An `Exchange`
(`exchange.py`) states what a device sends on the way: one whole mesh axis at a time, all gathers at
the end as one, or mesh axes that divide each other's dims afterwards by one permute
(`permuting.py`). `find_exchange.py` finds the one that receives the fewest bytes.

Where that receives more than has to move (an uneven grid, or mesh axes that depend on each other),
the tensor may be sent in *pieces* (`pieces.py`). Each device holds boxes of it before and needs
others after (`windows.py`); their intersections (`overlaps.py`) are sent by permutes in rounds of
similar boxes (`rounds.py`), or by one padded all_to_all.

These are descriptions: `gridlayout.ops.moves` runs them. There all ways are offered, and the
machine chooses.
"""
