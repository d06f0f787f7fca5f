"""Proof anyone can run: `make prove`, or `python -m tests.prove`.

Claims about the library are judged on many random cases, most of them by programs that share no
code with it. `claims.py` has the claims and how many cases each has. A run is cut into chunks, each
in a process of its own; `build/prove/state.json` has the results, so that a run that was
interrupted goes on. `page.py` writes the table.
"""
