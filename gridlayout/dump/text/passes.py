"""Recognizes the beginnings of compiler passes and of functions in a dump.

A pass of MLIR begins with a line such as

    // -----// IR Dump After Canonicalizer (canonicalize) ('func.func' operation: @main) //----- //

In a dump without such lines, a module whose name was already printed begins the next pass:
`HloModule jit_f`, `module @jit_f`.
"""

from __future__ import annotations

import re

_MARK = re.compile(r"\s*// -----// IR Dump (.{1,300}?) //----- //")
_SYMBOL = re.compile(r"\s*\('[^']{1,60}' operation(?:: (@[^)]{1,200}))?\)")
_MODULE = re.compile(r"(?:HloModule |(?:builtin\.)?module @)([\w.$-]{1,200})")
_FUNCTION = re.compile(r"(\s*)\"?func\.func\"?\b[^@]{0,60}@(\"[^\"]{1,200}\"|[\w.$-]{1,200})")
_GENERIC = re.compile(r"(\s*)\"func\.func\"\(\) <\{.{0,99999}\bsym_name = \"([^\"]{1,200})\"")


class Passes:
    """The passes read so far. titles: pairs (line number of the beginning, title)."""

    def __init__(self) -> None:
        self.titles: list[tuple[int, str]] = []
        self._symbols: set[str] = set()
        self._modules: set[str] = set()
        self._runs: dict[str, int] = {}

    @property
    def title(self) -> str:
        """The title of the current pass; empty before the first."""
        return self.titles[-1][1] if self.titles else ""

    def begins(self, text: str, line: int) -> bool:
        """Record the pass that a line begins; return whether an earlier pass ends there."""
        if "IR Dump" in text and (mark := _MARK.match(text)):
            return self._marked(mark[1], line)
        found = _MODULE.match(text)
        if not found or (self.titles and not self._runs):
            return False
        name = found[1]
        if name not in self._modules:
            self._modules.add(name)
            self._runs.setdefault(name, 1)
            if not self.titles:
                self.titles.append((line, name))
            return False
        self._runs[name] = self._runs.get(name, 1) + 1
        self._modules = {name}
        self.titles.append((line, f"{name} #{self._runs[name]}"))
        return True

    def _marked(self, mark: str, line: int) -> bool:
        found = _SYMBOL.search(mark)
        title = mark if found is None else mark[: found.start()] + mark[found.end() :]
        symbol = (found[1] or "") if found else ""
        same = self.title == title and symbol not in self._symbols
        if not same:
            self._symbols.clear()
            first = not self.titles
            self.titles.append((line, title))
        self._symbols.add(symbol)
        self._runs = {}
        return not same and not first


def function_of(text: str) -> tuple[str, str] | None:
    """Return the name of the function that a line begins, and the text of its last line.

    None if the line begins no function.

    >>> function_of("  func.func public @main(%arg0: f32) {")
    ('main', '  }')
    >>> function_of('"func.func"() <{function_type = () -> (), sym_name = "main"}> ({')
    ('main', '}) : () -> ()')
    """
    if "func.func" not in text:
        return None
    if found := _GENERIC.match(text):
        return found[2], f"{found[1]}}}) : () -> ()"
    found = _FUNCTION.match(text)
    return (found[2].strip('"'), f"{found[1]}}}") if found else None
