"""Text: a layout as its system writes it, and back. `parse(str(layout)) == layout`.

The document's form (seed 004): `tensor<53x63xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef,
<3x2>, memref<18x32xf32, #ttcore.memory_space<l1>>>>`. Padding values beyond the document's words
are printed as numbers, and a tile with faces as `!ttcore.tile<32x32, f32, face<16x16>>`: both are
this library's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

from gridlayout import dtypes
from gridlayout.affine import AffineMap
from gridlayout.errors import LayoutError

if TYPE_CHECKING:
    from gridlayout.grid_layout import GridLayout
    from gridlayout.layout import Layout

MAX_TEXT = 1 << 16


def parse(text: str) -> Layout:
    """The layout that `text` describes; `str` of the result prints it in canonical form.

    `LayoutError` names the column of what does not parse, and says what follows from the rest
    when the memref contradicts it.

    >>> parse('tensor<8x300xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <1x2>, '
    ...       'memref<8x150xf32, #ttcore.memory_space<l1>>>>')
    GridLayout((8, 300), 'float32', grid=(1, 2))
    """
    if not isinstance(text, str):
        raise LayoutError(f"column 1: a layout's text must be a str, not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise LayoutError(
            f"column {MAX_TEXT}: the text has {len(text)} characters, over {MAX_TEXT}"
        )
    reader = _Reader(text)
    if reader.peek("tensor"):
        return _read_grid_layout(reader)
    reader.fail("no known layout starts here; known: tensor<..., #ttcore.metal_layout<...>>")


def print_grid_layout(layout: GridLayout) -> str:
    """The document's text of a `GridLayout` (seed 004)."""
    element = dtypes.MLIR_NAMES[layout.dtype.name]
    tensor = "".join(f"{n}x" for n in layout.shape) + element
    return (
        f"tensor<{tensor}, #ttcore.metal_layout<{layout.linear}, {dtypes.oob_text(layout.oob)}, "
        f"<{_dims(layout.grid)}>, {_memref(layout)}>>"
    )


def _dims(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _memref(layout: GridLayout) -> str:
    element = dtypes.MLIR_NAMES[layout.dtype.name]
    if layout.tile is not None:
        face = f", face<{_dims(layout.face)}>" if layout.face else ""
        element = f"!ttcore.tile<{_dims(layout.tile)}, {layout.tile_format or element}{face}>"
    space = f"#ttcore.memory_space<{layout.memory_space}>"
    return f"memref<{_dims(layout.tile_counts)}x{element}, {space}>"


class _Reader:
    """The text and a position in it; every failure names its column, counted from 1."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        column = (self.at if at is None else at) + 1
        raise LayoutError(f"column {column}: {message}")

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
            self.at += 1

    def peek(self, word: str) -> bool:
        self.skip()
        return self.text.startswith(word, self.at)

    def peek_digit(self) -> bool:
        self.skip()
        return self.text[self.at : self.at + 1] in tuple("0123456789")

    def take(self, word: str) -> bool:
        if found := self.peek(word):
            self.at += len(word)
        return found

    def expect(self, word: str, what: str = "") -> None:
        if not self.take(word):
            found = self.text[self.at : self.at + 12]
            self.fail(
                f"expected {word!r}{what}, found {found!r}" if found else f"expected {word!r}"
            )

    def match(self, pattern: str, what: str) -> str:
        self.skip()
        found = re.compile(pattern, re.ASCII).match(self.text, self.at)
        if not found:
            self.fail(f"expected {what}, found {self.text[self.at : self.at + 12]!r}")
        self.at = found.end()
        return found.group()

    def number(self) -> int:
        self.skip()
        at = self.at
        digits = self.match(r"[0-9]+", "a number")
        if len(digits) > 19 or int(digits) > 2**62:
            self.fail(f"{digits[:24]} is over 2**62", at)
        return int(digits)

    def dims(self) -> tuple[int, ...]:
        """`2x4`: at least one number."""
        found = [self.number()]
        while self.peek("x"):
            self.at += 1
            found.append(self.number())
        return tuple(found)

    def dims_before_element(self) -> tuple[int, ...]:
        """`2x3x` in `2x3xf32` or `2x3x!ttcore.tile<...>`, perhaps nothing."""
        found = []
        while self.peek_digit():
            found.append(self.number())
            self.expect("x", " between sizes and before the element type")
        return tuple(found)

    def element(self, also: tuple[str, ...] = ()) -> str:
        self.skip()
        at = self.at
        name = self.match(r"complex\s*<\s*f[0-9]+\s*>|[A-Za-z][A-Za-z0-9_]*", "an element type")
        name = "".join(name.split())
        known = (*dtypes.FROM_MLIR, *also)
        if name not in known:
            self.fail(f"element type {name!r} is not one of {', '.join(known)}", at)
        return name


def _read_grid_layout(reader: _Reader) -> GridLayout:
    from gridlayout.grid_layout import GridLayout

    reader.expect("tensor")
    reader.expect("<")
    shape = reader.dims_before_element()
    element = reader.element()
    reader.expect(",")
    reader.expect("#ttcore.metal_layout")
    reader.expect("<")
    linear = _read_map(reader)
    reader.expect(",")
    oob = _read_oob(reader)
    reader.expect(",")
    reader.expect("<")
    grid = reader.dims()
    reader.expect(">")
    reader.expect(",")
    reader.skip()
    at = reader.at
    memref = _read_memref(reader, element)
    reader.expect(">")
    reader.expect(">")
    reader.skip()
    if reader.at < len(reader.text):
        reader.fail(f"unexpected text after the layout: {reader.text[reader.at :][:12]!r}")
    counts = memref.pop("counts")
    try:
        layout = GridLayout(
            shape, dtypes.FROM_MLIR[element], grid, linear=linear, oob=oob, **memref
        )
    except LayoutError as error:
        raise LayoutError(f"column {at + 1}: {error}") from None
    if counts != layout.tile_counts:
        reader.fail(
            f"memref {_dims(counts)} does not follow from the shape, the map and the grid: "
            f"{_dims(layout.tile_counts)} does, as {_memref(layout)}",
            at,
        )
    return layout


def _read_map(reader: _Reader) -> AffineMap:
    """The affine map: `(...) -> (...)` up to the parenthesis that closes its results."""
    reader.skip()
    start, depth, groups = reader.at, 0, 0
    for at in range(start, len(reader.text)):
        depth += {"(": 1, ")": -1}.get(reader.text[at], 0)
        if depth == 0 and reader.text[at] == ")":
            groups += 1
        if groups == 2 or depth < 0:
            break
    if groups != 2:
        reader.fail("expected an affine map, (d0, ...) -> (...)")
    reader.at = at + 1
    try:
        # Blanks in front keep the columns of the map's own errors true.
        return AffineMap.parse(" " * start + reader.text[start : reader.at])
    except LayoutError as error:
        raise LayoutError(f"in the affine map: {error}") from None


def _read_oob(reader: _Reader) -> dtypes.Scalar | None:
    reader.skip()
    at = reader.at
    word = reader.match(r"[-+.A-Za-z0-9()]+", f"one of {', '.join(dtypes.OOB_NAMES)}, or a number")
    if word in dtypes.OOB_NAMES:
        return dtypes.OOB_NAMES[word]
    for kind in (int, float, complex):
        try:
            return dtypes.NAN if word == "nan" else kind(word)
        except ValueError:
            continue
    reader.fail(f"{word!r} is not one of {', '.join(dtypes.OOB_NAMES)}, nor a number", at)


def _read_memref(reader: _Reader, element: str) -> dict[str, Any]:
    """The constructor arguments that a memref states, and its shape as `counts`."""
    found: dict[str, Any] = {}
    reader.expect("memref")
    reader.expect("<")
    found["counts"] = reader.dims_before_element()
    at = reader.at
    if reader.take("!ttcore.tile"):
        reader.expect("<")
        found["tile"] = reader.dims()
        reader.expect(",")
        reader.skip()
        at = reader.at
        name = reader.element(also=tuple(dtypes.BLOCK_FORMATS))
        if name in dtypes.BLOCK_FORMATS:
            found["tile_format"], name = name, element
        if reader.take(","):
            reader.expect("face")
            reader.expect("<")
            found["face"] = reader.dims()
            reader.expect(">")
        reader.expect(">")
    else:
        name = reader.element()
    if name != element:
        reader.fail(f"the memref holds {name}, but the tensor {element}: they must agree", at)
    reader.expect(",")
    reader.expect("#ttcore.memory_space")
    reader.expect("<")
    found["memory_space"] = reader.match(r"[A-Za-z0-9_]+", "a memory space")
    reader.expect(">")
    reader.expect(">")
    return found
