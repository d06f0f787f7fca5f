"""`Text`: all of a compiler's text, with its name and the chip that it is for."""

from __future__ import annotations

from typing import NamedTuple

from gridlayout.layouts.memory import Chip


class Text(NamedTuple):
    """A whole text: what its source is called, and the chip that it says it is for."""

    name: str
    text: str
    chip: Chip | None = None
