"""Tiles and their faces: the order of a tile's elements in memory (tt-metal).

A 32x32 tile consists of four 16x16 faces, F0 F1 above F2 F3, and each face is row-major. So the
element (0, 16) is not the 17th of its tile, but the first of F1. Three orders are in use:

| order | faces | inside a face |
|---|---|---|
| `faces` | row-major: F0, F1, F2, F3 | row-major |
| `transposed` | column-major: F0, F2, F1, F3 | column-major |
| `swizzled` | none: the tile itself is row-major | |

For a tile with one row or one column of faces, the faces have the same order in `faces` and
`transposed`. Sizes and offsets are in elements.
"""

from __future__ import annotations

from typing import Any

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap
from gridlayout.arguments import Shape, as_shape, one_of, positive
from gridlayout.errors import LayoutError
from gridlayout.layouts.steps import StepBuilder
from gridlayout.public import public

ORDERS = ("faces", "swizzled", "transposed")
# Tile -> face. A tile of fewer than 16 rows has faces with the same number of rows.
FACES: dict[Shape, Shape] = {
    (height, width): (min(height, 16), 16) for width in (32, 16) for height in (32, 16, 8, 4, 2, 1)
}


def as_tile(tile: Any, tile_format: Any) -> Shape | None:
    """Return the tile as (rows, columns), or None; checks that the block format supports it.

    >>> as_tile([32, 32], "bfp_bf8"), as_tile(None, None)
    ((32, 32), None)
    """
    found = None if tile is None else positive(tile, "tile")
    if found is not None and len(found) != 2:
        raise LayoutError(f"tile {found} must have rank 2, rows and columns")
    if tile_format is not None:
        one_of(tile_format, tuple(dtypes.BLOCK_FORMATS), "tile_format")
    if tile_format is not None and found != (32, 32):
        raise LayoutError(f"tile_format {tile_format!r} needs tile=(32, 32); the tile is {found}")
    return found


@public
def face_of(tile: Shape) -> Shape:
    """The face of a tile as (rows, columns); `LayoutError` unless it is one of the 12 legal tiles.

    >>> face_of((32, 32)), face_of((4, 32))
    ((16, 16), (4, 16))
    """
    tile = as_shape(tile, "tile")
    if tile not in FACES:
        legal = ", ".join(f"{height}x{width}" for height, width in FACES)
        raise LayoutError(f"tile {tile} is not one of {legal}")
    return FACES[tile]


def page_tile(page: str, tile: Any, tile_format: Any) -> Shape | None:
    """The tile of a tile page, by default 32x32; None for row-major pages.

    >>> page_tile("tile", None, None), page_tile("row_major", None, None)
    ((32, 32), None)
    """
    if page == "row_major":
        if tile is not None or tile_format is not None:
            raise LayoutError(
                f"tile {tile}, tile_format {tile_format!r}: row-major pages have no tiles"
            )
        return None
    found = as_tile((32, 32) if tile is None else tile, tile_format)
    assert found is not None
    face_of(found)
    return found


def page_order(page: str, order: Any) -> str | None:
    """The order of the elements in a tile page, by default `faces`; None for row-major pages."""
    if page == "row_major":
        if order is not None:
            raise LayoutError(f"tile_order {order!r}: row-major pages have no tiles")
        return None
    return one_of("faces" if order is None else order, ORDERS, "tile_order")


def split_tile(
    builder: StepBuilder, rows: int, columns: int, tile: Shape, order: str
) -> tuple[int, ...]:
    """Split the axes of a tile's rows and columns into the axes of its memory order."""
    if order == "swizzled":
        return rows, columns
    face = face_of(tile)
    face_row, row = builder.split(rows, (tile[0] // face[0], face[0]))
    face_column, column = builder.split(columns, (tile[1] // face[1], face[1]))
    if order == "transposed":
        return face_column, face_row, column, row
    return face_row, face_column, row, column


@public
def tile_map(tile: Shape = (32, 32), order: str = "faces") -> AffineMap:
    """The map from a row and a column of a tile to the offset of the element, in elements.

    `LayoutError` for a tile that is not one of the 12 legal tiles, or an unknown order.

    >>> print(tile_map())
    (d0, d1) -> ((d0 floordiv 16) * 512 + (d1 floordiv 16) * 256 + (d0 mod 16) * 16 + d1 mod 16)
    >>> tile_map()(0, 16), tile_map(order="transposed")(0, 16), tile_map(order="swizzled")(0, 16)
    ((256,), (512,), (16,))
    """
    face_of(tile)
    builder = StepBuilder(tile)
    offset = builder.join(split_tile(builder, 0, 1, tile, one_of(order, ORDERS, "tile_order")))
    return AffineMap(2, (builder.expr[offset],))
