"""The cheapest joint choices for many variables, under limits on memory.

It knows no layouts. A `Problem` (`problem.py`; read it first) has variables with several choices
each, costs of choices and of pairs, values that several consumers fetch, and limits. `solve.py`
finds the best assignment in a time limit, and a lower bound. It reduces the problem (`presolve.py`
on a `Model`, `model.py`), splits it, and solves each part by elimination if it is narrow, as an
integer program (`integer.py`), or by a local search (`search.py`) with a bound (`messages.py`).
`descent.py` alone has no time limit: all processes make the same choices.
"""
