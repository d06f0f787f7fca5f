"""Any layout as a `GridLayout`, if the document model can express it."""

from __future__ import annotations

from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout


def as_grid(layout: Layout) -> GridLayout | None:
    """`layout.as_grid`: the same layout as a `GridLayout`; None if there is none.

    >>> from gridlayout import xla
    >>> as_grid(xla.layout((6, 4), "float32", (1, 0))) is None
    True
    """
    found = layout.as_grid
    assert found is None or isinstance(found, GridLayout)
    return found


def untiled(layout: Layout) -> Layout:
    """Return the layout of the same parts without tiles.

    >>> untiled(GridLayout((53, 63), grid=(3, 2), tile=(32, 32)))
    GridLayout((53, 63), 'float32', grid=(3, 2))
    """
    own = as_grid(layout)
    return layout if own is None or not own.tile else own.replace(tile=None, face=None)


def grouped(layout: Layout) -> GridLayout | None:
    """`layout.grouped`: `as_grid` if each grid dim divides its own group of logical dims, or None.

    >>> grouped(GridLayout((2, 3, 4), grid=(2, 1))).groups
    ((0, 1), (2,))
    """
    found = layout.grouped
    assert found is None or isinstance(found, GridLayout)
    return found
