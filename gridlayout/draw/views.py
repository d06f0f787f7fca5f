"""The views of a layout, by name, and the check of their options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gridlayout.arguments import one_of
from gridlayout.draw import buffers, element, flows, fold, halo, logical, slots
from gridlayout.errors import LayoutError
from gridlayout.svg import Drawing

if TYPE_CHECKING:
    from gridlayout.layouts.layout import Layout

_FILE = re.compile(r"\.(svg|png|html?|pdf|jpe?g)$", re.IGNORECASE)  # the end of its name
VIEWS: dict[str, Callable[..., Drawing]] = {
    "logical": logical.draw_logical,
    "tiles": logical.draw_tiles,
    "strides": logical.draw_strides,
    "physical": buffers.draw_physical,
    "memory": buffers.draw_memory,
    "lanes": buffers.draw_lanes,
    "slots": slots.draw_slots,
    "fold": fold.draw_fold,
    "flows": flows.draw_flows,
    "halo": halo.draw_halo,
    "element": element.draw_element,
}


def draw_layout(layout: Layout, view: str = "logical", **options: Any) -> Drawing:
    """Draw a layout in a view; `Layout.draw` is the public method.

    >>> from gridlayout import GridLayout
    >>> draw_layout(GridLayout((3, 5), grid=(1, 2)), "plan")
    Traceback (most recent call last):
    gridlayout.errors.LayoutError: view 'plan' is not one of logical, tiles, strides, physical,
    memory, lanes, slots, fold, flows, halo, element
    """
    path = options.get("path", view)
    if isinstance(path, PurePath) or (isinstance(path, str) and _FILE.search(path)):
        raise LayoutError(f"draw takes a view, not a file: layout.draw().save({str(path)!r})")
    one_of(view, tuple(VIEWS), "view")
    takes = list(inspect.signature(VIEWS[view]).parameters)[1:]
    unknown = [name for name in options if name not in takes]
    if unknown:
        raise LayoutError(
            f"view {view!r} takes no option {unknown[0]!r}; it takes {', '.join(takes)}"
        )
    return VIEWS[view](layout, **options)
