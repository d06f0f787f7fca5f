"""The layout that a command is given: as its text, in a file, or on standard input."""

from __future__ import annotations

import re
import sys

from gridlayout.commands.shapes import shape_of
from gridlayout.errors import LayoutError
from gridlayout.files import is_path, read_bytes
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import number
from gridlayout.text import MAX_TEXT, parse

# What may be the name of a file, and has none of the brackets of a layout.
_NAME = re.compile(r"[\w./\\-]{1,200}")
# A longer text of a layout is not shown in a message.
_SHOWN = 120


def layout_given(command: str, given: str, shape: str | None) -> Layout:
    """Return the layout in a text, in the file of that name, or on standard input for `-`.

    shape: that of a text that states none. `LayoutError` for a compiler's dump names `explain`,
    which lists the layouts in it.
    """
    if given != "-" and not is_path(given):
        if _NAME.fullmatch(given):
            raise LayoutError(
                f"{given!r} is neither a file nor a layout: give a file with the text of a layout, "
                f"or the text, such as 'f32[3,5]{{1,0:T(8,128)}}'"
            )
        return _layout(given, shape)
    data = sys.stdin.buffer.read(MAX_TEXT + 1) if given == "-" else read_bytes(given, MAX_TEXT + 1)
    text = data.decode("utf-8", "replace")
    try:
        return _layout(text, shape)
    except LayoutError:
        if dump := _dump_words(command, given, data):
            raise LayoutError(dump) from None
        raise


def _layout(text: str, shape: str | None) -> Layout:
    text = text.strip()
    encodes, orders = text.startswith("#"), text.startswith("{")
    if shape is None:
        if encodes or orders:
            raise LayoutError(f"{text[:40]!r} states no shape: give one, as in --shape f32[53,63]")
        return parse(text)
    if not encodes and not orders:
        raise LayoutError(f"--shape {shape!r}, but the text states a shape: leave the option out")
    stated = shape_of(shape)
    return parse(f"tensor<{stated.mlir}, {text}>" if encodes else f"{stated.xla}{text}")


def _dump_words(command: str, given: str, data: bytes) -> str:
    """Return what to do with a text that is no layout but has some in it; empty if it has none."""
    from gridlayout.dump.explanation import explain

    found = explain(data, limit=1)
    if not found.layouts:
        return ""
    name = "standard input" if given == "-" else given
    is_whole = len(data) <= MAX_TEXT
    count = number(found.layouts, "layout") if is_whole else "many layouts"
    texts = [text for each in found.findings if len(text := str(each.layout)) <= _SHOWN]
    example = "".join(f", such as '{text}'" for text in texts)
    return (
        f"{name} holds {count}, and {command} takes one: give its text"
        f"{example}; gridlayout explain {given} lists all of them"
    )
