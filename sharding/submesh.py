"""`Submesh`: the devices that an index such as `device[0:2, :]` selects, and their machine."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridlayout.arguments import Shape, as_int
from gridlayout.errors import LayoutError
from gridlayout.sharding.machines.machine import Machine


class Submesh(NamedTuple):
    """A part of a mesh.

    places: for each axis of the mesh, the positions that are selected. axes: the axes that the part
    has, by number.
    """

    places: tuple[NDArray[np.int64], ...]
    axes: tuple[int, ...]

    @classmethod
    def of(cls, index: Any, mesh: Shape, names: Sequence[str]) -> Submesh:
        """Return the part that an index selects.

        Raises `LayoutError` if it selects nothing, or a device that does not exist.

        >>> part = Submesh.of((slice(0, 2), 1), (4, 2), ("x", "y"))
        >>> [each.tolist() for each in part.places], part.axes
        ([[0, 1], [1]], (0,))
        """
        axes = " ".join(f"{name}={n}" for name, n in zip(names, mesh, strict=True))
        rest = index if isinstance(index, tuple) else (index,)
        if any(_is_other(each) for each in rest) or sum(each is Ellipsis for each in rest) > 1:
            raise LayoutError(
                f"the index {index!r} of the mesh {axes} must have for each axis a whole number or "
                "a slice, or one `...` for several: take one part of the mesh at a time"
            )
        if (at := next((k for k, each in enumerate(rest) if each is Ellipsis), None)) is not None:
            rest = (*rest[:at], *[slice(None)] * (len(mesh) - len(rest) + 1), *rest[at + 1 :])
        if len(rest) > len(mesh):
            raise LayoutError(f"the index {index!r} has more parts than the mesh {axes} has axes")
        rest = (*rest, *[slice(None)] * (len(mesh) - len(rest)))
        places, kept = [], []
        for k, (each, size) in enumerate(zip(rest, mesh, strict=True)):
            if isinstance(each, slice):
                bounds = (each.start, each.stop, each.step)
                start, stop, step = (
                    None if x is None else as_int(x, "an index of a mesh") for x in bounds
                )
                if step == 0:
                    raise LayoutError(f"the index {index!r} has a step of 0")
                found = np.arange(size)[slice(start, stop, step)]
                kept.append(k)
            else:
                number = as_int(each, "an index of a mesh")
                inside = -size <= number < size
                found = np.array([number % size] if inside else [], np.int64)
            if not len(found):
                raise LayoutError(
                    f"the index {index!r} selects no device along {names[k]} of the mesh {axes}"
                )
            places.append(found)
        if not kept:
            raise LayoutError(
                f"the index {index!r} retains no axis of the mesh {axes}: give a slice for at "
                "least one axis"
            )
        return cls(tuple(places), tuple(kept))

    @property
    def shape(self) -> Shape:
        """The number of devices along each retained axis."""
        return tuple(len(self.places[k]) for k in self.axes)

    def machine(self, whole: Machine, axes: Sequence[str]) -> Machine:
        """Return the machine of the part, with the links of the whole; part of a ring is a line.

        axes: the names of the axes of the mesh.
        """
        names = tuple(axes[k] for k in self.axes)
        mesh = whole.mesh
        if mesh is None:
            return whole
        links = [self._links(whole, k) for k in self.axes]
        hosts = tuple(self._hosts(k, mesh[k], n) for k, n in enumerate(whole.hosts))
        own = tuple(hosts[k] for k in self.axes) if hosts else ()
        crosses = any(n > 1 for n in own)
        return Machine(
            *(whole.chip, self.shape, links if whole.links else None),
            rates=whole.rates,
            figures=whole.figures,
            axes=names,
            hosts=own if crosses else None,
            host_links=whole.host_links if crosses else None,
        )

    def _links(self, whole: Machine, k: int) -> Any:
        links = whole.links[0 if len(whole.links) <= 1 else k] if whole.links else None
        is_all = whole.mesh is not None and len(self.places[k]) == whole.mesh[k]
        return links if links is None or is_all else replace(links, wrap=False)

    def _hosts(self, k: int, size: int, hosts: int) -> int:
        """Return the number of hosts of the part along axis k.

        size, hosts: the numbers of devices and hosts along this axis of the full mesh. If hosts
        have unequal shares of the part, each device counts as a host. The devices of a host are
        consecutive in the part, because a slice selects them.
        """
        own = self.places[k] // (size // hosts)
        numbers, counts = np.unique(own, return_counts=True)
        return len(numbers) if (counts == counts[0]).all() else len(own)


def _is_other(part: Any) -> bool:
    """Whether a part of an index is no number, slice or `...`."""
    if part is Ellipsis or isinstance(part, slice):
        return False
    try:
        operator.index(part)
    except TypeError:
        return True
    return False
