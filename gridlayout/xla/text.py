"""Parser of XLA types, `bf16[4,8]{1,0:T(2,4)(2,1)S(5)}`; `str` of a layout prints them.

    type   = element [ dims ] layout?
    layout = { minor_to_major (: D? T? L? #? *? E? S? SC? P? M?)? }

The fields must be in this order. Printing omits defaults. The parser also accepts element types in
capitals (`F32`), and `∗` or `-1` for the `*` of a combined dim; these are never printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import Reader
from gridlayout.xla.tiled import COMBINE, ELEMENT_TYPES, XlaLayout, layout

_TYPE = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*)\s*\[", re.ASCII)
_COMBINED = re.compile(r"[*∗]|-1(?![0-9])")


def starts_type(text: str) -> bool:
    """Return whether the text starts with a name and a bracket, or with a tuple of types."""
    return _TYPE.match(text) is not None or text.lstrip().startswith("(")


def read_type(reader: Reader) -> XlaLayout:
    """Read an XLA array type; `LayoutError` names the column."""
    at = reader.here()
    if reader.peek("("):
        reader.fail("a tuple type is several arrays: give the text of one of them")
    name = reader.match(r"[A-Za-z][A-Za-z0-9]*", "an element type")
    element = name.lower() if name.isupper() else name
    if element not in ELEMENT_TYPES:
        reader.fail(f"element type {name!r} is not one of {', '.join(ELEMENT_TYPES)}", at)
    reader.expect("[")
    shape = _numbers(reader, "]", dynamic=True)
    reader.expect("]")
    arguments: dict[str, Any] = {"dtype": ELEMENT_TYPES[element], "shape": shape}
    places = {"shape": at}
    if reader.take("{"):
        places["minor_to_major"] = reader.at
        arguments["minor_to_major"] = _numbers(reader, ":}")
        if reader.take(":"):
            _read_fields(reader, arguments, places)
        if not reader.take("}"):
            _refuse_field(reader)
    reader.end()
    try:
        return layout(**arguments)
    except LayoutError as error:
        reader.fail(str(error), places[_blame(arguments)])


def _blame(arguments: dict[str, Any]) -> str:
    """The name of the argument that makes the constructor fail: the first that does so."""
    names = list(arguments)
    for k in range(2, len(names)):
        try:
            layout(**{name: arguments[name] for name in names[:k]})
        except LayoutError:
            return names[k - 1]
    return names[-1]


def _numbers(reader: Reader, closers: str, dynamic: bool = False) -> tuple[int, ...]:
    """Read comma-separated numbers up to one of the closing characters; there may be none."""
    found: list[int] = []
    if any(reader.peek(c) for c in closers):
        return ()
    while True:
        if dynamic and reader.peek("<="):
            reader.fail("a dynamic dim (<=) has no fixed layout; give its bound")
        found.append(reader.number())
        if not reader.take(","):
            return tuple(found)


def _read_fields(reader: Reader, arguments: dict[str, Any], places: dict[str, int]) -> None:
    """Read the fields into `arguments`, and their positions into `places`."""
    for word, name, read in _FIELDS:
        if reader.peek(f"{word}("):
            places[name] = reader.at
            reader.take(word)
            arguments[name] = read(reader)
    arguments.pop("dense", None)


def _refuse_field(reader: Reader) -> None:
    reader.skip()
    found = reader.text[reader.at : reader.at + 12]
    if not found:
        reader.fail("expected '}'")
    order = " ".join(word for word, _, _ in _FIELDS)
    reader.fail(f"expected '}}', or a field in the order {order}; found {found!r}")


def _number(reader: Reader) -> int:
    reader.expect("(")
    found = reader.number()
    reader.expect(")")
    return found


def _integer_type(reader: Reader) -> str:
    reader.expect("(")
    found = reader.match(r"[a-z0-9]+", "an integer type")
    reader.expect(")")
    return found


def _dense(reader: Reader) -> None:
    """Read D(D,D): every dim is dense, which is the default."""
    reader.expect("(")
    while True:
        if not reader.take("D") or reader.peek("+") or reader.peek("~"):
            reader.fail("a dim that is not dense (D) makes a sparse array, which is not supported")
        if not reader.take(","):
            break
    reader.expect(")")


def _physical_shape(reader: Reader) -> NoReturn:
    reader.fail("a physical shape (P) belongs to sparse arrays, which are not supported")


def _tiles(reader: Reader) -> tuple[tuple[int, ...], ...]:
    tiles = []
    while reader.take("("):
        sizes: list[int] = []
        while not reader.peek(")") or sizes:
            sizes.append(_tile_size(reader))
            if not reader.take(","):
                break
        reader.expect(")")
        tiles.append(tuple(sizes))
    return tuple(tiles)


def _tile_size(reader: Reader) -> int:
    reader.skip()
    found = _COMBINED.match(reader.text, reader.at)
    if found is None:
        return reader.number()
    reader.at = found.end()
    return COMBINE


def _splits(reader: Reader) -> tuple[tuple[int, tuple[int, ...]], ...]:
    splits = []
    while reader.take("("):
        d = reader.number()
        reader.expect(":")
        splits.append((d, _numbers(reader, ")")))
        reader.expect(")")
    return tuple(splits)


# The fields in order: the word, the constructor's argument, the function that reads the value.
_FIELDS: tuple[tuple[str, str, Callable[[Reader], Any]], ...] = (
    ("D", "dense", _dense),
    ("T", "tiles", _tiles),
    ("L", "tail_alignment", _number),
    ("#", "index_type", _integer_type),
    ("*", "pointer_type", _integer_type),
    ("E", "element_bits", _number),
    ("S", "memory_space", _number),
    ("SC", "splits", _splits),
    ("P", "physical_shape", _physical_shape),
    ("M", "metadata_bytes", _number),
)
