"""`Meshes`: the device meshes of a dump, and groups of devices along their axes.

HLO, StableHLO, Shardy, TTIR and TTNN write device groups differently:

    replica_groups={{0,1},{2,3}}    replica_groups=[2,4]<=[8]    replica_groups=[4,2]<=[2,4]T(1,0)
    replica_groups=mesh['x'=2,'y'=4] {'y'}    replica_groups = dense<[[0, 1], [2, 3]]>
    source_target_pairs={{0,1}}       sdy.all_gather [{}, {"y"}]     cluster_axis = 1

Devices are numbered row-major in a mesh. Those along some of its axes are a `Box`, and so are the
first ones of `iota(n)` reshaped and transposed, as HLO writes groups: [2,4]<=[4,2]T(1,0).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import NamedTuple

from gridlayout.arguments import MAX_ELEMENTS, Shape
from gridlayout.dump.moves.axes import Axis, Mesh, axes_in, division_of, mesh_of, size_along

Run = tuple[int, int]  # stride and extent
_EXTENTS = r"([0-9]{1,9}(?:,[0-9]{1,9})*)"
_IOTA = re.compile(rf"\[{_EXTENTS}\]<=\[{_EXTENTS}\](?:T\({_EXTENTS}\))?")
_NAMED = re.compile(
    r"mesh\[([^\]]{1,400})\]\s*"
    r"(,\s*device_ids\s*=\s*\((?:[^()]|\([^()]{0,400}\)){0,9999}\)\s*)?\{([^{}]{0,200})\}"
)
_GROUPS = re.compile(r"(?:replica_groups|device_groups)\s*=\s*")
_PAIRS = re.compile(r"source_target_pairs\s*=\s*")
_CLUSTER = re.compile(r"\bcluster_axis = ([0-9]{1,3}) : ui32")
_MESH = r"<\[([^\]]{0,400})\](, device_ids ?= ?\[[^\[\]]{0,99999}\])?"  # the axes, and their order
_SDY_MESH = re.compile(rf"\bsdy\.mesh @([\w.-]{{1,100}}) = {_MESH}")
_GENERIC_MESH = re.compile(
    rf'"sdy\.mesh"\(\) <\{{mesh = #sdy\.mesh{_MESH}>, sym_name = "([\w.-]{{1,100}})"'
)
# In the header of HLO, xla.sdy.meshes={mesh = #sdy.mesh<["x"=2]>, mesh_0 = #sdy.mesh<["y"=4]>}.
_HLO_MESH = re.compile(rf"([\w.-]{{1,100}}) = #sdy\.mesh{_MESH}")
_TT_MESH = re.compile(
    r"#?ttcore\.meshes\s*=?\s*#?(?:ttcore\.meshes)?<\[<\"[^\"]{1,100}\" = ([0-9x]{1,40})>"
)
_PARTITIONS = re.compile(r"\bnum_(?:partitions|replicas)\s*=\s*([0-9]{1,9})")
_LISTS = re.compile(r"(?:dense<)?[\[{](?:[^\[\]{}<]++|[\[{][^\[\]{}]*+[\]}])*+[\]}]")
_LIST = re.compile(r"[\[{]\s*([0-9][0-9, ]*)(?:-1[-1, ]*)?[\]}]")  # -1 fills up unequal groups
# MLIR prints one number for groups of one device 0, and a resource for elided large constants.
_UNLISTED = re.compile(r"dense(?:_resource)?<[^<>\[\]]*> : tensor<([0-9]{1,9})x([0-9]{1,9})xi64>")
# The mesh and the axes along which StableHLO or Shardy communicates, such as
# #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "x">]>.
_MESH_AXES = re.compile(
    r"replica_group_mesh_axes<mesh = @([\w.-]{1,100}), axes = \[([^\[\]]{0,2000})\]"
)
_SDY_AXES = re.compile(r"\bsdy\.\w+\s*([\[{][^%]{0,2000}+)%")
_MESH_NAME = re.compile(r"<@([\w.-]{1,100})")


class Box(NamedTuple):
    """The devices `first + i * stride + ...`, with 0 <= i < extent for each run (stride, extent).

    Runs are sorted by stride and are as few as possible, so the boxes of equal sets are equal.
    """

    first: int
    runs: tuple[Run, ...]


def box_of(devices: Sequence[int]) -> Box | None:
    """Return the box that consists of the devices; None if there is none.

    >>> box_of((0, 1, 4, 5)), box_of((7, 3)), box_of((0, 1, 3))
    (Box(first=0, runs=((1, 2), (4, 2))), Box(first=3, runs=((4, 2),)), None)
    """
    rest, end = sorted(devices), 1
    first, runs = rest[0], []
    while len(rest) > 1:
        stride, low = rest[1] - rest[0], rest[0]
        extent = next((k for k, device in enumerate(rest) if device != low + k * stride), len(rest))
        heads = rest[::extent]
        again = [head + k * stride for head in heads for k in range(extent)]
        if stride < end or again != rest:
            return None
        runs.append((stride, extent))
        rest, end = heads, stride * extent
    return Box(first, tuple(runs))


def first_of_iota(dims: Shape, order: Shape, count: int) -> Box | None:
    """Return the first `count` devices of iota(prod(dims)), reshaped to `dims` and transposed.

    order: the permutation of the dims; ignored if it is none. None if the devices are no box, or
    there are fewer than `count`.

    >>> first_of_iota((2, 4), (1, 0), 2), first_of_iota((30000, 7), (1, 0), 30000)
    (Box(first=0, runs=((4, 2),)), Box(first=0, runs=((7, 30000),)))
    """
    if count < 1 or not 0 < prod(dims) <= MAX_ELEMENTS:
        return None
    order = order if sorted(order) == list(range(len(dims))) else tuple(range(len(dims)))
    strides = [1, *accumulate(reversed(dims[1:]), mul)][::-1]
    runs, rest = [], count
    for stride, extent in _joined((strides[d], dims[d]) for d in reversed(order)):
        part = min(extent, rest)
        if rest % part:
            return None
        runs.append((stride, part))
        rest //= part
    return Box(0, tuple(_joined(sorted(runs)))) if rest == 1 else None


def _joined(runs: Iterable[Run]) -> list[Run]:
    """Return the runs, joined where one goes on where the one before it ends."""
    found: list[Run] = []
    for stride, extent in runs:
        if extent == 1:
            continue
        if found and found[-1][0] * found[-1][1] == stride:
            found[-1] = (found[-1][0], found[-1][1] * extent)
        else:
            found.append((stride, extent))
    return found


class MeshAxes:
    """The axes of a mesh, found by their strides.

    >>> axes = MeshAxes({"x": 2, "y": 4})
    >>> axes.along(box_of((0, 4))), axes.along(box_of(range(8))), axes.along(box_of((0, 2)))
    (('x',), ('x', 'y'), ())
    >>> axes.between(1, 3), axes.between(1, 4)
    ('y', '')
    """

    def __init__(self, mesh: Mesh) -> None:
        inner = [(name, size) for name, size in reversed(mesh.items()) if size > 1]
        self.names = [name for name, _ in inner]
        self.ends = [1, *accumulate((size for _, size in inner), mul)]
        self.at = {end: k for k, end in enumerate(self.ends)}

    def along(self, box: Box) -> tuple[str, ...]:
        """Return the axes, the major one first, whose devices are the box; () if none are."""
        chosen: list[str] = []
        for stride, extent in box.runs:
            low, high = self.at.get(stride), self.at.get(stride * extent)
            if low is None or high is None or box.first % (stride * extent) // stride:
                return ()
            chosen += self.names[low:high]
        return tuple(reversed(chosen))

    def between(self, one: int, other: int) -> str:
        """Return the only axis along which two devices differ; empty if they differ along more."""
        total = self.ends[-1]
        one, other = one % total, other % total
        for name, end in zip(self.names, self.ends[1:], strict=True):
            if (one - other) % end:
                return name if one // end == other // end else ""
        return ""


# Number of groups, devices per group, and the names of the axes or the devices of the first group.
Groups = tuple[int, int, tuple[str, ...] | Box | Shape]


class Meshes:
    """The meshes that a dump defines, and the number of devices.

    by_name: of a mesh that a line of HLO states, the name is its text. axes: those of meshes whose
    devices are in the order of their numbers.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, Mesh] = {}
        self.axes: dict[str, MeshAxes] = {}
        self.guessed = MeshAxes({})  # from the shape of an iota list of devices: [2,4]<=[8]
        self.devices = 0

    def read(self, text: str) -> None:
        """Add the meshes and the number of devices that a line states."""
        if found := _SDY_MESH.search(text):
            self._add(found[1], mesh_of(found[2]), is_ordered=not found[3])
        elif found := _GENERIC_MESH.search(text):
            self._add(found[3], mesh_of(found[1]), is_ordered=not found[2])
        elif "xla.sdy.meshes" in text:
            for name, axes, order in _HLO_MESH.findall(text):
                self._add(name, mesh_of(axes), is_ordered=not order)
        if "meshes" in text and (found := _TT_MESH.search(text)):
            sizes = _numbers(found[1].replace("x", ","))
            self._add("tt", {str(k): n for k, n in enumerate(sizes)})
        if "num_" in text:
            self.devices = max([self.devices, *(int(n) for n in _PARTITIONS.findall(text))])

    def _add(self, name: str, mesh: Mesh, is_ordered: bool = True) -> None:
        """Add a mesh. is_ordered: whether its devices are in the order of their numbers."""
        devices = prod(mesh.values())
        if len(self.by_name) < 64 and devices <= MAX_ELEMENTS:
            self.by_name[name] = mesh
            self.axes.pop(name, None)
            if is_ordered:
                self.axes[name] = MeshAxes(mesh)
            self.devices = max(self.devices, devices)

    def groups_of(self, text: str, kind: str) -> Groups:
        """Return number of groups, devices per group, and mesh axes or the first group's devices.

        (0, 0, ()) if the line does not state the groups, or they have over 2**62 devices.
        """
        groups, size, first = self._groups(text, kind)
        return (groups, size, first) if groups * size <= MAX_ELEMENTS else (0, 0, ())

    def _groups(self, text: str, kind: str) -> Groups:
        if found := _CLUSTER.search(text):
            named = Axis(found[1])
            mesh = self.by_name.get("tt")
            return _along([named], mesh) if mesh else (0, 0, (named.name,))
        if found := _NAMED.search(text):
            self._add(found[1], mesh := mesh_of(found[1]), is_ordered=not found[2])
            return _along(axes_in(found[3]), mesh)
        if found := _MESH_AXES.search(text):
            return _along(axes_in(found[2]), self.by_name.get(found[1], {}))
        if found := _GROUPS.search(text):
            return self._listed(text, found.end())
        if "source_target_pairs" in text:
            return self._pairs(text)
        if "sdy." in text:  # along the axes in brackets before its operand
            axes = axes_in(written[1]) if (written := _SDY_AXES.search(text)) else []
            return _along(axes, self._of_result(text, axes))
        return (1, 2, ()) if kind == "point_to_point" else (0, 0, ())

    def _of_result(self, text: str, axes: list[Axis]) -> Mesh:
        """Return the mesh of an op's result; if it states none, the first that has the axes."""
        if (stated := division_of(text)) is not None:
            if stated.name:
                return self.by_name.get(stated.name, {})
            self._add(str(stated.mesh), stated.mesh, is_ordered=False)
            return stated.mesh
        if named := _MESH_NAME.search(text):
            return self.by_name.get(named[1], {})
        names = {axis.name for axis in axes}
        return next((mesh for mesh in self.by_name.values() if names <= mesh.keys()), {})

    def _listed(self, text: str, at: int) -> Groups:
        if found := _IOTA.match(text, at):
            groups, *sizes = _numbers(found[1])  # at least one number
            size, dims = prod(sizes), _numbers(found[2])
            if len(dims) > 1 and prod(dims) <= MAX_ELEMENTS:
                self.guessed = MeshAxes({f"axis_{k}": n for k, n in enumerate(dims)})
            return groups, size, first_of_iota(dims, _numbers(found[3] or ""), size) or ()
        if text.startswith("{}", at):  # one group of all devices
            n = self.devices
            return (1, n, first_of_iota((n,), (), n) or ()) if n else (0, 0, ())
        if found := _UNLISTED.match(text, at):
            return int(found[1]), int(found[2]), ()
        lists = _lists_at(text, at)
        first = max(lists, key=len, default=())  # in unequal groups, most receive less
        return (len(lists), len(first), box_of(first) or first) if first else (0, 0, ())

    def _pairs(self, text: str) -> Groups:
        at = _PAIRS.search(text)
        pairs = _lists_at(text, at.end()) if at else []
        if not pairs or any(len(pair) != 2 for pair in pairs):
            return (0, 0, ())
        moved = [(a, b) for a, b in pairs if a != b]
        axis = self._between(*moved[0]) if moved else ""
        is_along = axis and all(self._between(a, b) == axis for a, b in moved)
        return len(pairs), 2 if moved else 1, (axis,) if is_along else ()

    def _between(self, one: int, other: int) -> str:
        """Return the only axis along which two devices differ; empty if they differ along more."""
        return next(filter(None, (axes.between(one, other) for axes in self.axes.values())), "")

    def axes_of(self, group: tuple[str, ...] | Box | Shape) -> tuple[str, ...]:
        """Return the mesh axes whose devices form the group; () if no mesh has such axes.

        >>> meshes = Meshes()
        >>> meshes.read('sdy.mesh @m = <["x"=2, "y"=4]>')
        >>> [meshes.axes_of(box_of(group)) for group in ((0, 4), (0, 1, 2, 3), (0, 3))]
        [('x',), ('y',), ()]
        """
        if not isinstance(group, Box):
            return tuple(word for word in group if isinstance(word, str))
        found = (axes.along(group) for axes in (*self.axes.values(), self.guessed))
        return next(filter(None, found), ())

    def sizes_of(self, axes: tuple[str, ...], devices: int) -> tuple[int, ...]:
        """Return the sizes of axes along which groups of so many devices run; () if none fit.

        >>> meshes = Meshes()
        >>> meshes.read('sdy.mesh @m = <["x"=2, "y"=4]>')
        >>> meshes.sizes_of(("y", "x"), 8), meshes.sizes_of(("y",), 2)
        ((4, 2), ())
        """
        for mesh in self.by_name.values():
            sizes = tuple(mesh.get(axis, 0) for axis in axes)
            if axes and 0 < prod(sizes) == devices:
                return sizes
        return ()


def _along(axes: list[Axis], mesh: Mesh) -> Groups:
    """Return the groups along axes of a mesh; of unknown size if it lacks one of them.

    >>> _along([Axis("y")], {"x": 2, "y": 4}), _along([Axis("y"), Axis("z")], {"x": 2, "y": 4})
    ((2, 4, ('y',)), (0, 0, ('y', 'z')))
    """
    names = tuple(dict.fromkeys(axis.name for axis in axes))
    try:
        size = size_along(axes, mesh) if axes else 0
    except KeyError:
        size = 0
    return (prod(mesh.values()) // size, size, names) if size else (0, 0, names)


def _lists_at(text: str, at: int) -> list[Shape]:
    """Return the lists of numbers in the brackets at a position."""
    inside = _LISTS.match(text, at)
    return [_numbers(each) for each in _LIST.findall(inside[0])] if inside else []


def _numbers(text: str) -> Shape:
    return tuple(int(word) for word in text.replace(" ", "").split(",") if word and len(word) < 10)
