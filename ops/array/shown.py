"""What a `GridArray` shows of itself: values, the places of elements, drawings and a summary.

`treescope` is imported only when it asks for something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from gridlayout.arguments import Shape
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.location import Location
from gridlayout.layouts.memory import Chip
from gridlayout.layouts.summary import Summary
from gridlayout.ops.array.in_parts import Held
from gridlayout.public import public
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.svg import Drawing

if TYPE_CHECKING:
    from gridlayout.ops.array.grid_type import GridType


@public
class Shown:
    """The methods by which an array of a `GridType` is shown; a stack shows the layout of each."""

    if TYPE_CHECKING:

        @property
        def type(self) -> GridType:
            """The array's type."""

    def draw(self, view: str = "logical", **options: Any) -> Drawing:
        """Return a drawing of the layout, as `x.layout.draw` does.

        view, options: those of `gl.Layout.draw`. The views "fold" and "element" show the array's
        own devices, so they need no device=.

        >>> import numpy as np
        >>> from gridlayout import DeviceGrid, GridLayout, put
        >>> layout = GridLayout((53, 63), grid=(3, 2))
        >>> x = put(np.zeros((53, 63), "float32"), layout, DeviceGrid((1,)))
        >>> x.draw("fold").title
        'float32[53, 63]: 3x2 virtual cores on 1 devices'
        """
        if view in ("fold", "element"):
            options = {"device": self.type.device, **options}
        return self.type.layout.draw(view, **options)

    def summary(self, chip: Chip | str | None = None) -> Summary:
        """Return a short readable description of the layout, as `x.layout.summary` does.

        chip: the chip whose memory must hold the layout, a `gl.Chip` or a name.

        >>> import numpy as np
        >>> from gridlayout import DeviceGrid, GridLayout, put
        >>> layout = GridLayout((53, 63), grid=(3, 2))
        >>> x = put(np.zeros((53, 63), "float32"), layout, DeviceGrid((1,)))
        >>> x.summary().title
        'float32[53, 63] on 3x2 cores, in l1'
        """
        return self.type.layout.summary(chip)

    def _repr_html_(self) -> str:
        return self.summary().beside(self.draw("fold").svg)

    def _repr_svg_(self) -> str:
        return self.draw("fold")._repr_svg_()

    def __treescope_repr__(self, path: str | None, subtree_renderer: Any) -> Any:
        """Return one line that unfolds to the layout's summary, for trees in treescope."""
        return folded_line(repr(self), str(self.summary()), path)


def folded_line(line: str, text: str, path: str | None) -> Any:
    """Return a line that unfolds to the lines of a text, for a `__treescope_repr__` method.

    path: from the tree's root to this object.
    """
    from treescope import rendering_parts as parts

    inside = parts.indented_children([parts.text(each) for each in text.splitlines()])
    return parts.build_custom_foldable_tree_node(
        label=parts.text(line),
        contents=parts.fold_condition(expanded=inside),
        path=path,
    )


# Dims of an array whose corners are read: it has two to the power of that many.
_MOST_DIMS = 8


def printed(x: Any) -> str:
    """Return the values of a `GridArray`, shortened as NumPy's are, and its repr.

    Of an array with more elements than `np.get_printoptions()["threshold"]`, only the edges that
    are shown are read. Nothing is sent: an array over several processes, one that is stacked and
    one without data are shown as their repr alone.
    """
    storage, shape = x.storage, x.shape
    is_plain = isinstance(storage, np.ndarray)
    is_here = is_plain or (isinstance(storage, jax.Array) and storage.is_fully_addressable)
    if not is_here or storage.ndim != len(x.layout.physical_shape) or len(shape) > _MOST_DIMS:
        return repr(x)
    options = np.get_printoptions()
    if is_plain or prod(shape) <= options["threshold"]:
        return f"{np.asarray(x)}\n{x!r}"
    edges = _edges(Held(storage, x.layout, x.device), shape, options["edgeitems"])
    return f"{np.array2string(edges, threshold=0)}\n{x!r}"


def _edges(held: Held, shape: tuple[int, ...], count: int) -> np.ndarray[Any, Any]:
    """Return an array that prints as that of the full shape: of long dims, only the edges.

    count: the items at each edge of a dim that are shown.
    """
    # For each dim, pairs of an interval to read, and the first position that it is written to.
    parts = [
        [((0, count), 0), ((n - count, n), count + 1)] if n > 2 * count + 1 else [((0, n), 0)]
        for n in shape
    ]
    found = np.zeros([min(n, 2 * count + 1) for n in shape], held.layout.dtype)
    for each in product(*parts):
        into = tuple(slice(start, start + high - low) for (low, high), start in each)
        found[into] = held.read(tuple(interval for interval, _ in each))
    return found


@dataclass(frozen=True, repr=False)
class DeviceLocation(Location):
    """The location of one element: in its core's buffer, as for `layout.locate`, and its device.

    device: coordinates in the device grid, `x.device.mesh`; for a replicated element, of the first
    copy. devices: the `jax.Device`s that hold it, several if it is replicated; none where the mesh
    has no devices.
    """

    device: Shape = ()
    devices: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        own = super().__repr__().removeprefix("Location(").removesuffix(")")
        copies = f", on {len(self.devices)} devices" if len(self.devices) > 1 else ""
        return f"DeviceLocation(device={self.device}, {own}{copies})"


def located(index: Sequence[int], layout: Layout, device: DeviceGrid) -> DeviceLocation:
    """Return where an element of an array in a layout is stored on a device grid.

    >>> from gridlayout import GridLayout
    >>> located((4,), GridLayout((6,), grid=(3,)), DeviceGrid((1,)))
    DeviceLocation(device=(0,), core=(2,), local=(0,), offset=0, byte=0)
    """
    found = layout.locate(index)
    first = device.first_cores(layout)
    past = np.asarray(found.core) - first
    counts = device.placement(layout).per_device
    holders = np.flatnonzero(((past >= 0) & (past < counts)).all(axis=1))
    at = tuple(map(int, np.unravel_index(holders[0], device.shape)))
    devices = () if device.is_abstract else tuple(device.mesh.devices.flat[holders])
    parts = (found.core, found.local, found.offset, found.byte, found.bit)
    return DeviceLocation(*parts, device=at, devices=devices)
