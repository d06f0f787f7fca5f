"""`Text`: the complete text of a compiler, with its name and the chip that it states."""

from __future__ import annotations

from typing import NamedTuple

from gridlayout.layouts.memory import Chip


class Text(NamedTuple):
    """A complete text: the name of its source, the text, and the chip that it states."""

    name: str
    text: str
    chip: Chip | None = None
