"""The text of XLA types, `bf16[4,8]{1,0:T(2,4)(2,1)S(5)}`: reading it; `str` of a layout prints it.

    type   = element [ dims ] layout?
    layout = { minor_to_major (: D? T? L? #? *? E? S? SC? P? M?)? }

The fields come in that order and no other. Printing leaves out what is the default.
"""

from __future__ import annotations

import re
from typing import Any

from gridlayout.errors import LayoutError
from gridlayout.reader import Reader
from gridlayout.xla import COMBINE, ELEMENT_TYPES, XlaLayout, layout

_TYPE = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*)\s*\[", re.ASCII)
ORDER = ("D", "T", "L", "#", "*", "E", "S", "SC", "P", "M")


def starts_type(text: str) -> bool:
    """Whether the text begins like an XLA type: a name and a bracket, or a tuple of types."""
    return _TYPE.match(text) is not None or text.lstrip().startswith("(")


def read_type(reader: Reader) -> XlaLayout:
    """The layout of an XLA array type. `LayoutError` names the column."""
    reader.skip()
    at = reader.at
    if reader.peek("("):
        reader.fail("a tuple type is several arrays: give the text of one of them")
    name = reader.match(r"[A-Za-z][A-Za-z0-9]*", "an element type")
    if name not in ELEMENT_TYPES:
        reader.fail(f"element type {name!r} is not one of {', '.join(ELEMENT_TYPES)}", at)
    reader.expect("[")
    shape = _numbers(reader, "]", dynamic=True)
    reader.expect("]")
    fields: dict[str, Any] = {}
    if reader.take("{"):
        order = _numbers(reader, ":}")
        fields = _fields(reader) if reader.take(":") else {}
        if not reader.take("}"):
            _refuse_field(reader)
        fields["minor_to_major"] = order
    reader.end()
    try:
        return layout(shape, ELEMENT_TYPES[name], **fields)
    except LayoutError as error:
        raise LayoutError(f"column {at + 1}: {error}") from None


def _numbers(reader: Reader, closers: str, dynamic: bool = False) -> tuple[int, ...]:
    """Numbers with commas between, perhaps none, up to one of the closing characters."""
    found: list[int] = []
    if any(reader.peek(c) for c in closers):
        return ()
    while True:
        if dynamic and reader.peek("<="):
            reader.fail("a dynamic dim (<=) has no fixed layout; give its bound")
        found.append(reader.number())
        if not reader.take(","):
            return tuple(found)


def _fields(reader: Reader) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if reader.take("D("):
        _dense(reader)
    if reader.take("T("):
        reader.at -= 1
        fields["tiles"] = _tiles(reader)
    for word, name in (("L(", "tail_alignment"),):
        if reader.take(word):
            fields[name] = _closed(reader, reader.number())
    for word, name in (("#(", "index_type"), ("*(", "pointer_type")):
        if reader.take(word):
            fields[name] = _closed(reader, reader.match(r"[a-z0-9]+", "an integer type"))
    for word, name in (("E(", "element_bits"), ("S(", "memory_space")):
        if reader.take(word):
            fields[name] = _closed(reader, reader.number())
    if reader.take("SC("):
        reader.at -= 1
        fields["splits"] = _splits(reader)
    if reader.peek("P("):
        reader.fail("a physical shape (P) belongs to sparse arrays, which are not supported")
    if reader.take("M("):
        fields["metadata_bytes"] = _closed(reader, reader.number())
    return fields


def _refuse_field(reader: Reader) -> None:
    reader.skip()
    found = reader.text[reader.at : reader.at + 12]
    if not found:
        reader.fail("expected '}'")
    reader.fail(f"expected '}}', or a field in the order {' '.join(ORDER)}; found {found!r}")


def _closed(reader: Reader, value: Any) -> Any:
    reader.expect(")")
    return value


def _dense(reader: Reader) -> None:
    """D(D,D): every dim dense, which is the default."""
    while True:
        if not reader.take("D"):
            reader.fail("a dim that is not dense (D) makes a sparse array: not supported")
        if not reader.take(","):
            break
    reader.expect(")")


def _tiles(reader: Reader) -> tuple[tuple[int, ...], ...]:
    tiles = []
    while reader.take("("):
        sizes: list[int] = []
        while not reader.peek(")") or sizes:
            sizes.append(COMBINE if reader.take("*") else reader.number())
            if not reader.take(","):
                break
        tiles.append(_closed(reader, tuple(sizes)))
    return tuple(tiles)


def _splits(reader: Reader) -> tuple[tuple[int, tuple[int, ...]], ...]:
    splits = []
    while reader.take("("):
        d = reader.number()
        reader.expect(":")
        splits.append((d, _numbers(reader, ")")))
        reader.expect(")")
    return tuple(splits)
