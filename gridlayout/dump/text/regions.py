"""Ops of MLIR with a region: their operands precede it, and their types follow it.

%2 = "stablehlo.all_reduce"(%1) <{replica_groups = ...}> ({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  ...
}) : (tensor<4x4xf32>) -> tensor<4x4xf32>
"""

from __future__ import annotations

import re

from gridlayout.dump.text.lines import Line

_MAX_OPEN = 64  # most nested ops
_HEAD = re.compile(
    r'\s*(?:%[^="]{0,400}=\s*)?"?(?:sdy\.manual_computation|\w{1,20}\.(?:all_reduce|reduce_scatter))\b'
)


class Regions:
    """The first lines of those ops whose region has not ended yet: collectives and shard_maps."""

    def __init__(self) -> None:
        self._heads: list[tuple[str, Line]] = []  # indentation of the op, and its first line

    def clear(self) -> None:
        """Forget all ops: their function ended."""
        self._heads.clear()

    def join(self, line: Line) -> Line | None:
        """Return the line; the last line of such an op joined to the first; None for the first.

        >>> regions = Regions()
        >>> regions.join(Line(1, True, ' %1 = "stablehlo.all_reduce"(%0) ({'))
        >>> regions.join(Line(4, True, " }) : (tensor<4xf32>) -> tensor<4xf32>")).text[-39:]
        '({}) : (tensor<4xf32>) -> tensor<4xf32>'
        """
        text = line.text
        if text.endswith("{") and ("all_reduce" in text or "_scatter" in text or "manual_" in text):
            if _HEAD.match(text) and len(self._heads) < _MAX_OPEN:
                self._heads.append((_indentation(text), line))
                return None
        elif self._heads and text.lstrip().startswith("}") and " : " in text:
            indentation, head = self._heads[-1]
            if indentation == _indentation(text):
                self._heads.pop()
                return Line(head.number, head.first, head.text + text.lstrip())
        return line


def _indentation(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]
