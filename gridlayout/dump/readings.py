"""Readings: a type's text to its layout and what it holds; each text is read once. Bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from gridlayout.dump.findings import Described, data_bytes, held_bytes
from gridlayout.errors import LayoutError
from gridlayout.tenstorrent.allocation import read_allocation
from gridlayout.text import parse

# Longer texts are read again each time rather than remembered.
_MAX_REMEMBERED = 1 << 10


@dataclass(frozen=True)
class Reading:
    """What is known of a text: its layout, or its buffers alone, and their bytes; or why not."""

    layout: Described | None
    nbytes: int = 0
    data_bytes: int = 0
    reason: str = ""


def read(text: str) -> Reading:
    """The layout that a text states.

    >>> found = read("f32[3,5]{1,0:T(8,128)}")
    >>> found.nbytes, found.data_bytes
    (4096, 60)
    """
    return _remembered(text) if len(text) <= _MAX_REMEMBERED else _read(text)


def _read(text: str) -> Reading:
    if "[" in text and "<=" in text:  # a dynamic dim of HLO: memory is for its bound
        text = text.replace("<=", "")
    try:
        layout: Described = parse(text)
    except LayoutError as error:
        try:
            layout = read_allocation(text)
        except LayoutError:
            return Reading(None, reason=re.sub(r"^column \d+: ", "", str(error))[:160])
    return Reading(layout, held_bytes(layout), data_bytes(layout))


_remembered = lru_cache(maxsize=8192)(_read)
