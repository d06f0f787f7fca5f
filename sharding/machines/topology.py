"""`Topology`: the links between the devices along each axis of a mesh, within hosts and between.

The devices of a host are consecutive along an axis. An axis is within hosts, between hosts, or
both: then its major factors are between hosts, and its minor factors within. Hosts may have other
links between them than the devices of one host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import gcd, prod
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from gridlayout.arguments import Shape, positive
from gridlayout.errors import LayoutError
from gridlayout.layouts.mesh_axes import Axes, MeshAxes
from gridlayout.sharding.machines.chips import Links

BETWEEN = "between hosts"


class Path(NamedTuple):
    """The part of a collective that uses one kind of links of one axis.

    label: the axis, with "between hosts" if this is that part of an axis that has both parts. n:
    the number of devices in a group; stride: the distance between neighbours, in links. is_whole:
    whether the group has all devices that these links join. crosses: whether the links are between
    hosts.
    """

    label: str
    links: Links
    n: int
    stride: int = 1
    is_whole: bool = True
    crosses: bool = False

    @property
    def is_ring(self) -> bool:
        """Whether the last device is a neighbour of the first."""
        return self.links.wrap and self.is_whole

    @property
    def directions(self) -> int:
        """The number of directions in which data is sent: 2 in a ring."""
        return 2 if self.is_ring and self.n > 2 else 1

    @property
    def hops(self) -> int:
        """The number of links to the farthest device."""
        return (self.n // 2 if self.is_ring else self.n - 1) * self.stride

    @property
    def bandwidth(self) -> float:
        """Bytes per second; groups of devices that are no neighbours share links."""
        own = (self.links.pair_bandwidth if self.n == 2 else 0) or self.links.bandwidth
        return own / self.stride


@dataclass(frozen=True)
class Topology:
    """A mesh and the links of its axes.

    mesh: the number of devices along each axis; None for any mesh. names: the names of the axes.
    links: one for all axes, or one per axis. hosts: the number of hosts along each axis; () if
    there is one host. host_links: the links between hosts; None if they are those within a host.
    """

    mesh: Shape | None
    names: Axes
    links: tuple[Links, ...]
    hosts: Shape = ()
    host_links: Links | None = None

    @property
    def is_uniform(self) -> bool:
        """Whether all links are equal, within hosts and between."""
        between = self.host_links is None or self.host_links in self.links[:1]
        return len(set(self.links)) <= 1 and (between or not self.hosts)

    def mesh_axis_of(self, axis: str) -> str:
        """Return the mesh axis of a factor: `y` for `y0`."""
        return axis if axis in self.names else axis.rstrip("0123456789") or axis

    def paths(self, axes: Sequence[str], group_size: int) -> list[Path]:
        """Return the paths of a collective along mesh axes, or their prime factors.

        If the mesh is unknown, the devices of a group are assumed to be neighbours. Raises
        `LayoutError` for an unknown axis, if links or hosts depend on the axis.
        """
        mesh_axes = dict.fromkeys(map(self.mesh_axis_of, axes))
        known = self.names if self.mesh is None else self.names[: len(self.mesh)]
        unknown = [axis for axis in mesh_axes if axis not in known]
        if unknown and (len(self.links) > 1 or self.hosts):
            raise LayoutError(
                f"the axis {unknown[0]!r} of a collective is no axis of the machine: give one of "
                f"{', '.join(known)}"
            )
        if self.mesh is None or unknown:
            found = [self.links_of(axis) for axis in mesh_axes]
            n = int(-(-(group_size ** (1 / max(len(mesh_axes), 1))) // 1))
            return [Path(a, x, n) for a, x in zip(mesh_axes, found, strict=True) if x is not None]
        return [path for axis in mesh_axes for path in self._along(axis, axes)]

    def _along(self, axis: str, axes: Sequence[str]) -> list[Path]:
        factors = self._factors[axis]
        mine = [axis in axes or name in axes for name in factors.names]
        outer = self._between[axis]
        within = self.links_of(axis)
        kinds = [(0, outer, self.host_links or within), (outer, len(mine), within)]
        found = []
        for crosses, (first, last, links) in zip((True, False), kinds, strict=True):
            sizes, own = factors.sizes[first:last], mine[first:last]
            if links is None or not any(own):
                continue
            n = prod(size for size, yes in zip(sizes, own, strict=True) if yes)
            at = own.index(True)
            rest = zip(sizes[at:], own[at:], strict=True)
            stride = prod(size for size, yes in rest if not yes)
            label = f"{axis} {BETWEEN}" if crosses and outer < len(mine) else axis
            found.append(Path(label, links, n, stride, n * stride == prod(sizes), crosses))
        return found

    def links_of(self, axis: str) -> Links | None:
        """Return the links of a mesh axis within a host; None if none are stated."""
        if len(self.links) <= 1:
            return self.links[0] if self.links else None
        return self.links[self.names.index(axis)]

    def bandwidth_text(self, label: str) -> str:
        """Return the bandwidth of a path as text for reports; empty if all links are equal.

        >>> links = Links(1e9), Links(10e9)
        >>> Topology((2, 4), ("x", "y"), links).bandwidth_text("x")
        ' at 1 GB/s'
        """
        axis = label.removesuffix(f" {BETWEEN}")
        if self.is_uniform or axis not in self._factors:
            return ""
        crosses = label != axis or self._between[axis] == len(self._factors[axis].names)
        links = self.host_links if crosses and self.host_links else self.links_of(axis)
        between = f" {BETWEEN}" if crosses and label == axis else ""
        return "" if links is None else f"{between} at {links.bandwidth / 1e9:g} GB/s"

    def crosses(self, axes: Sequence[str]) -> bool:
        """Return whether devices along some axes, or their prime factors, have several hosts."""
        return any(self.between(self.mesh_axis_of(axis), axis) for axis in axes)

    def between(self, axis: str, factor: str) -> bool:
        """Return whether a prime factor of an axis, or a part of the axis, is between hosts."""
        if axis not in self._factors:
            return False
        outer = self._factors[axis].names[: self._between[axis]]
        return bool(outer) if factor == axis else factor in outer

    def kind(self, factor: str) -> tuple[Any, bool]:
        """Return the links of a prime factor, and whether they are between hosts."""
        axis = self.mesh_axis_of(factor)
        crosses = self.between(axis, factor)
        links = self.links_of(axis) if len(self.links) <= 1 or axis in self.names else None
        return (self.host_links or links if crosses else links), crosses

    @cached_property
    def _factors(self) -> dict[str, MeshAxes]:
        pairs = zip(self.names, self.mesh or (), strict=False)
        return {name: MeshAxes.of((name,), (size,)) for name, size in pairs}

    @cached_property
    def _between(self) -> dict[str, int]:
        """The number of prime factors of each axis that are between hosts: the major ones."""
        hosts = dict(zip(self.names, self.hosts, strict=False))
        found = {}
        for name, factors in self._factors.items():
            made = [1, *accumulate(factors.sizes, mul)]
            found[name] = next(k for k, n in enumerate(made) if n >= hosts.get(name, 1))
        return found

    def hosts_on(self, mesh: Shape | None) -> Shape:
        """Return the number of hosts along the axes of another mesh.

        The number of devices per host is unchanged; the devices of a host fill the last axes first.
        """
        if mesh is None or not self.hosts or self.mesh is None:
            return ()
        if mesh == self.mesh:
            return self.hosts
        room, found = prod(self.mesh) // prod(self.hosts), []
        for size in reversed(mesh):
            own = gcd(size, room)
            found.append(size // own)
            room = room // own if own == size else 1
        return tuple(reversed(found)) if prod(found) > 1 else ()


def default_names(rank: int) -> Axes:
    """Return the default names of axes, as in `gl.DeviceGrid`."""
    return tuple("xyzw"[:rank]) if rank <= 4 else tuple(f"a{i}" for i in range(rank))


def in_order(values: Any, own: Axes, axes: Axes) -> Any:
    """Return values, one per axis of `own`, in the order `axes`; others unchanged.

    >>> in_order((2, 4), ("x", "y"), ("y", "x")), in_order((), ("x", "y"), ("y", "x"))
    ((4, 2), ())
    """
    if values is None or len(values) != len(own):
        return values
    return tuple(values[own.index(axis)] for axis in axes)


def stated_hosts(hosts: Any, mesh: Shape | None, names: Axes) -> Shape:
    """Return the number of hosts along each axis; () if there is one host.

    hosts: what the user states: a number per axis, or a dict by names. Raises `LayoutError` for
    other values.

    >>> stated_hosts({"y": 2}, (2, 4), ("x", "y")), stated_hosts((1, 1), (2, 4), ("x", "y"))
    ((1, 2), ())
    """
    if hosts is None or (isinstance(hosts, tuple) and not hosts):
        return ()
    if mesh is None:
        raise LayoutError(f"hosts {hosts!r} are numbers per mesh axis: give mesh= too")
    if isinstance(hosts, Mapping):
        if unknown := [name for name in hosts if name not in names[: len(mesh)]]:
            raise LayoutError(
                f"hosts {dict(hosts)!r} name {unknown[0]!r}, which is no axis: the mesh {mesh} has "
                f"the axes {', '.join(names[: len(mesh)])}: give hosts by these names, or axes="
            )
        hosts = [hosts.get(name, 1) for name in names[: len(mesh)]]
    counts = positive(hosts, "hosts")
    if len(counts) != len(mesh):
        raise LayoutError(
            f"hosts {counts} must be a number for each axis of the mesh {mesh}: "
            f"give {len(mesh)} of them, or mesh= with {len(counts)} axes"
        )
    for name, size, count in zip(names, mesh, counts, strict=False):
        if count > size:
            raise LayoutError(
                f"{count} hosts along the axis {name} are more than its {size} devices: give mesh= "
                f"with the number of devices along {name}, a multiple of {count}"
            )
        if size % count:
            raise LayoutError(
                f"{count} hosts along the axis {name} of {size} devices would have unequal parts: "
                f"give a number that divides {size}"
            )
    return counts if prod(counts) > 1 else ()


def stated_links(
    links: Any, mesh: Shape | None, axes: Any
) -> tuple[tuple[Links, ...], tuple[str, ...] | None]:
    """Return the links, and the names of the axes; None if neither argument gives the names.

    links: what the user states: one for all axes, one per axis, or a dict by names. axes: the
    names, or None. Raises `LayoutError` for an axis without links or name.
    """
    names = None if axes is None else _stated_names(axes)
    if isinstance(links, Mapping):
        if mesh is not None and len(links) < len(mesh):
            raise LayoutError(
                f"links name {len(links)} of the {len(mesh)} axes of the mesh {mesh}, "
                f"{list(links)}: give one gl.Links for each axis, or one for all without a name"
            )
        names = _stated_names(tuple(links)) if names is None else names
        if set(names) != set(links):
            raise LayoutError(
                f"links are given for the axes {', '.join(map(repr, links))}, but the axes are "
                f"{axes!r}: give one gl.Links for each"
            )
        links = [links[name] for name in names]
    given: tuple[Any, ...] = tuple(links) if isinstance(links, Sequence) else (links,)
    given = () if links is None else given
    if not all(isinstance(each, Links) for each in given):
        raise LayoutError(f"links {links!r} must be a gl.Links, or one for each axis")
    count = len(given if names is None else names) if mesh is None else len(mesh)
    if len(given) not in (0, 1, count) or (not given and prod(mesh or ()) > 1):
        of = f"of {mesh} devices" if mesh is not None else f"with the axes {names}"
        more = f", or mesh= with {len(given)} axes" if len(given) > 1 else ""
        raise LayoutError(
            f"a machine {of} has {len(given)} links: give one gl.Links for all axes, or "
            f"{count}{more}"
        )
    if names is not None and len(names) < len(mesh or given):
        raise LayoutError(f"axes {axes!r} must be a name for each axis of the mesh {mesh}")
    return given, names


def _stated_names(axes: Any) -> Axes:
    """Return the names of axes that the user states; `LayoutError` unless they are distinct."""
    names = tuple(axes) if isinstance(axes, Sequence) else (None,)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise LayoutError(
            f"axes {axes!r} must be different names, one for each axis of the mesh, such as "
            "('x', 'y')"
        )
    return names


def check_hosts(hosts: Any, counts: Shape, host_links: Any, is_measured: bool) -> None:
    """Raise `LayoutError` unless hosts and the links between them go together.

    counts: the number of hosts along each axis. is_measured: whether there are measured figures of
    collectives between hosts, which need no links.
    """
    if host_links is not None and not isinstance(host_links, Links):
        raise LayoutError(f"host_links {host_links!r} must be a gl.Links")
    if hosts and not counts and host_links is not None:
        raise LayoutError(
            f"hosts {hosts!r} are one host, but host_links are the links between several: "
            "leave out host_links"
        )
    if (host_links is None) != (not counts) and not is_measured:
        raise LayoutError(
            f"hosts {hosts!r} and host_links {host_links!r} go together: give how many hosts "
            "there are along each axis, such as hosts=(2, 1), and the gl.Links between them"
        )


def hosts_along(of_host: Any, sizes: Sequence[int]) -> Shape:
    """Return the number of hosts along each axis; () if there is one host.

    of_host: the host of each device, in an array of the shape of the mesh. If the devices of a host
    are not consecutive along an axis, each of them counts as a host along that axis.

    >>> import numpy as np
    >>> hosts_along(np.array([[0, 0, 1, 1], [2, 2, 3, 3]]), (2, 4))
    (2, 2)
    >>> hosts_along(np.array([0, 1, 0, 1]), (4,))
    (4,)
    """
    found = []
    for k, size in enumerate(sizes):
        changes = {
            i for i in range(1, size) if (of_host.take(i, k) != of_host.take(i - 1, k)).any()
        }
        # The fewest equal consecutive parts of which each has one host.
        parts = (n for n in range(1, size + 1) if size % n == 0)
        count = next(n for n in parts if changes <= set(range(0, size, size // n)))
        found.append(count)
    return tuple(found) if prod(found) > 1 else ()


def hosts_of(devices: Any, sizes: Sequence[int]) -> Shape:
    """Return the number of hosts along each axis of a mesh of devices; () if there is one host.

    sizes: the shape of the mesh. As in JAX's hybrid meshes, devices of different slices
    (`slice_index`) have slow links between them: TPUs that form no torus, GPUs of different
    machines. For CPUs, and if there are no slices, each process counts as a host.
    """

    def host(device: Any) -> int:
        is_cpu = device.platform == "cpu"
        found = None if is_cpu else getattr(device, "slice_index", None)
        return int(device.process_index if found is None else found)

    of_host = np.array([host(device) for device in devices.flat])
    return hosts_along(of_host.reshape(tuple(sizes)), sizes)
