"""Dumps: the text that compilers print, read for the layouts in it.

    bytes --lines--> lines --statements--> texts of types --gl.parse--> layouts --findings--> costs

A dump is read once, line by line, and never held: what is kept are aliases, the layouts of recent
names, and the worst findings.
"""

from __future__ import annotations

from gridlayout.dump.explanation import Explanation, explain
from gridlayout.dump.findings import Finding
from gridlayout.dump.moves import Move
from gridlayout.dump.plan import Proposal

__all__ = ["Explanation", "Finding", "Move", "Proposal", "explain"]
