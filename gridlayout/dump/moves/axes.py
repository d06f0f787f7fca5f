"""The text of meshes, of their axes, and of the dims that axes divide.

    ["x"=2, "y"=4]   mesh['x'=2,'y'=4]                                               meshes
    {"x", "y":(1)2}   {'x'}   axis_ref<name = "y", sub_axis_info = (1)2>             axes
    <@mesh, [{"x"}, {"y", ?}]>   <mesh<["x"=2]>, [{"x"}]>   mesh['x'=2], [{'x'}]     dims

Shardy, StableHLO and HLO write them so, in shardings and in groups of devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
# A name of an axis with special characters: in quotes, after a bracket, a comma or `name =`.
_SPECIAL = re.compile(
    r"""(?:(?<=[\[{,])|(?<=[\[{,] )|(?<=name = ))"""
    r"""(?:"[\w.\\ -]*[^\w.\\ "\n-][^"\n]*"|'[\w.\\ -]*[^\w.\\ '\n-][^'\n]*')"""
)
_LETTERS = {chr(0xE000 + ord(c)): c for c in "!\"#$%&'()*+,/:;<=>?@[]^`{|}~"}  # for private use
_HIDE = str.maketrans({c: letter for letter, c in _LETTERS.items()})
_SHOW = str.maketrans(_LETTERS)
_ESCAPED = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|\\)")
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
    return {
        _unescaped(a) or shown(b) or c: max(int(size), 1) for a, b, c, size in _SIZED.findall(text)
    }


def axes_in(text: str) -> list[Axis]:
    """Return the axes that a text names.

    >>> axes_in('{"x", "y":(1)2}'), axes_in('<name = "y", sub_axis_info = (1)2>')
    ([Axis(name='x', part=None), Axis(name='y', part=2)], [Axis(name='y', part=2)])
    """
    return [
        Axis(_unescaped(a) or shown(b), int(part) if part else None)
        for a, b, part in _AXIS.findall(text)
    ]


def _unescaped(name: str) -> str:
    r"""Return a string of MLIR, which writes quotes and bytes beyond ASCII as hexadecimal digits.

    >>> _unescaped(r"q\22u"), _unescaped(r"\E6\95\B0")
    ('q"u', '数')
    """
    name = shown(name)
    if "\\" not in name:
        return name
    return _ESCAPED.sub(_byte, name.encode()).decode("utf-8", "replace")


def _byte(found: re.Match[bytes]) -> bytes:
    return bytes.fromhex(found[1].decode()) if found[1] else b"\\"


@cached(entries=256)  # most values of a program have one of a few shardings
def division_of(text: str) -> Division | None:
    """Return the axes of each dim that a sharding states; None for one that names no axes.

    >>> division_of('<@m, [{"x"}, {?}], replicated={"y"}>').dims
    (((Axis(name='x', part=None),), False), ((), True))
    """
    found = _DIVIDED.search(hidden(text))
    if found is None:
        return None
    name, shardy, hlo, dims = found.groups()
    each = tuple((tuple(axes_in(dim)), "?" in dim) for dim in _DIM.findall(dims))
    return Division(name or "", mesh_of(shardy or hlo or ""), each)


def hidden(text: str) -> str:
    """Return a line in which names of axes have letters for brackets and other special characters.

    An axis may have any name, such as "<data>" or "a, b". So the patterns of lines need not know.
    """
    return _SPECIAL.sub(
        lambda found: found[0][0] + found[0][1:-1].translate(_HIDE) + found[0][0], text
    )


def shown(text: str) -> str:
    """Return a text as it was before `hidden`.

    >>> text = '<@m, [{"<data>"}, {"a, b"}]>'
    >>> "<data>" in hidden(text), shown(hidden(text)) == text
    (False, True)
    """
    return text.translate(_SHOW)


def size_along(axes: Iterable[Axis], mesh: Mesh) -> int:
    """Return the number of devices along axes. KeyError for an axis, or part, that the mesh lacks.

    >>> size_along(axes_in('{"x", "y":(1)2}'), {"x": 3, "y": 4})
    6
    """
    size = 1
    for name, part in axes:
        whole = mesh[name]
        if part is not None and (part < 1 or whole % part):
            raise KeyError(f"{name}:{part}")
        size *= whole if part is None else part
    return size
