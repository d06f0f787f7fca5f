"""The text of meshes, of their axes, and of the dims that axes divide.

    ["x"=2, "y"=4]   mesh['x'=2,'y'=4]                                               meshes
    {"x", "y":(1)2}   {'x'}   axis_ref<name = "y", sub_axis_info = (1)2>             axes
    <@mesh, [{"x"}, {"y", ?}]>   <mesh<["x"=2]>, [{"x"}]>   mesh['x'=2], [{'x'}]     dims

Shardy, StableHLO and HLO write them so, in shardings and in groups of devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod
from typing import NamedTuple

from gridlayout.caching import cached

Mesh = dict[str, int]  # the size of each axis
_NAME = r"""(?:"([^"]{1,60})"|'([^']{1,60})')"""
_SIZED = re.compile(rf"(?:{_NAME}|([\w.]+))\s*=\s*([0-9]{{1,9}})")
_AXIS = re.compile(rf"{_NAME}(?:(?::|, sub_axis_info = )\([0-9]{{1,9}}\)([0-9]{{1,9}}))?")
_DIVIDED = re.compile(
    r"(?:@([\w.-]{1,100})|mesh(?:<\[([^\]]{0,400})\][^<>]{0,9999}>|\[([^\]]{1,400})\]))"
    r"(?:\s*,\s*device_ids\s*=\s*\((?:[^()]|\([^()]{0,400}\)){0,9999}\))?\s*,\s*\[([^\[\]]*)\]"
)
# A sharding of Shardy, such as <@mesh, [{"x"}, {}], replicated={"y"}>.
SHARDING = (
    r"<\s*(?:@[\w.-]{1,100}|mesh<[^<>]{0,9999}>)\s*,\s*\[[^\[\]<>]{0,2000}\][^\[\]<>]{0,2000}>"
)
_DIM = re.compile(r"\{([^{}]*)\}")


class Axis(NamedTuple):
    """An axis of a mesh, or a part of one. part: the size of the part; None for the whole axis."""

    name: str
    part: int | None = None


class Division(NamedTuple):
    """The axes that divide each dim of a tensor.

    name: of the mesh; empty if the text states the mesh itself. dims: for each dim its axes, and
    whether more may divide it.
    """

    name: str
    mesh: Mesh
    dims: tuple[tuple[tuple[Axis, ...], bool], ...]


def mesh_of(text: str) -> Mesh:
    """Return the axes of a mesh and their sizes.

    >>> mesh_of('"x"=2, "y"=4')
    {'x': 2, 'y': 4}
    """
    return {a or b or c: max(int(size), 1) for a, b, c, size in _SIZED.findall(text)}


def axes_in(text: str) -> list[Axis]:
    """Return the axes that a text names.

    >>> axes_in('{"x", "y":(1)2}'), axes_in('<name = "y", sub_axis_info = (1)2>')
    ([Axis(name='x', part=None), Axis(name='y', part=2)], [Axis(name='y', part=2)])
    """
    return [Axis(a or b, int(part) if part else None) for a, b, part in _AXIS.findall(text)]


@cached(entries=256)  # most values of a program have one of a few shardings
def division_of(text: str) -> Division | None:
    """Return the axes of each dim that a sharding states; None for one that names no axes.

    >>> division_of('<@m, [{"x"}, {?}], replicated={"y"}>').dims
    (((Axis(name='x', part=None),), False), ((), True))
    """
    found = _DIVIDED.search(text)
    if found is None:
        return None
    name, shardy, hlo, dims = found.groups()
    each = tuple((tuple(axes_in(dim)), "?" in dim) for dim in _DIM.findall(dims))
    return Division(name or "", mesh_of(shardy or hlo or ""), each)


def size_along(axes: Iterable[Axis], mesh: Mesh) -> int:
    """Return the number of devices along axes. KeyError for a whole axis that the mesh lacks.

    >>> size_along(axes_in('{"x", "y":(1)2}'), {"x": 3, "y": 4})
    6
    """
    return prod(mesh[axis.name] if axis.part is None else axis.part for axis in axes)
