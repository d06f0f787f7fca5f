"""The commands of `python -m gridlayout`, which `pip` also installs as `gridlayout`.

A module has an `add_...` function for each command, which adds its arguments and sets `run`: the
function that takes them and returns the exit code. Arguments are files and texts that nobody
trusts: what is wrong with them is one message on standard error. `terminal.py` prints.

Each command imports what it needs when it runs, so that all others are on the screen sooner.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Commands"]

# What `ArgumentParser.add_subparsers` returns, which has no public name.
Commands = Any
