"""The axes of a device mesh, their prime factors, and which of them divide a virtual core grid.

Mesh axes are split into their prime factors, so that a grid of three dims can use a mesh of two
axes. No JAX is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from gridlayout.affine.map import AffineExpr, constant
from gridlayout.arguments import Shape, as_items, in_short
from gridlayout.caching import cached
from gridlayout.errors import LayoutError
from gridlayout.layouts.folding import assign_factors, primes

# The names of mesh axes, or of their factors, the major first.
Axes = tuple[str, ...]


def as_mesh_axes(given: Any, rank: int) -> tuple[Axes, ...]:
    """Return the names of the mesh axes that divide each dim of a grid.

    given: for each dim a name, a tuple of names, the major first, or None, as in a `PartitionSpec`
    of JAX; dims that are left out are undivided. Raises `LayoutError` for anything else, and for an
    axis that divides two dims.

    >>> as_mesh_axes(("y", None), 3)
    (('y',), (), ())
    """
    rule = "for each dim of the grid an axis of the mesh, a tuple of axes, or None: ('x', None)"
    if isinstance(given, str):
        raise LayoutError(f"mesh_axes {in_short(given)} must hold {rule}")
    items = as_items(given, "mesh_axes", rule)
    found = []
    for item in items:
        names = () if item is None else (item,) if isinstance(item, str) else item
        if not isinstance(names, tuple) or not all(isinstance(x, str) and x for x in names):
            raise LayoutError(f"mesh_axes {in_short(given)} must hold {rule}")
        found.append(names)
    if len(found) > rank:
        raise LayoutError(
            f"mesh_axes {in_short(given)} has {len(found)} entries, but the grid has {rank} dims: "
            "give at most one entry per dim"
        )
    every = [name for names in found for name in names]
    if (twice := next((name for name in every if every.count(name) > 1), None)) is not None:
        raise LayoutError(
            f"mesh_axes {in_short(given)} names axis {twice!r} twice: an axis divides one dim"
        )
    return (*found, *((),) * (rank - len(found)))


def as_entries(axes: Iterable[Axes]) -> tuple[str | Axes | None, ...]:
    """Return the names of the axes of each dim as the entries of a `PartitionSpec`.

    >>> as_entries((("y",), (), ("x", "z")))
    ('y', None, ('x', 'z'))
    """
    return tuple(each[0] if len(each) == 1 else each or None for each in axes)


def axes_text(axes: Iterable[Axes]) -> str:
    """Return the words of mesh axes in the text of a layout, with the dims of Shardy's texts.

    >>> axes_text((("y",), (), ("x", "z")))
    ', mesh_axes = [{"y"}, {}, {"x", "z"}]'
    """
    dims = ("{" + ", ".join(map(json.dumps, names)) + "}" for names in axes)
    return f", mesh_axes = [{', '.join(dims)}]"


@dataclass(frozen=True)
class MeshAxes:
    """The prime factors of the axes of a mesh, the major first.

    names, sizes: of the factors. mesh_axis: for each factor, the name of its mesh axis.

    >>> MeshAxes.of(("x", "y"), (2, 4))
    MeshAxes(names=('x', 'y0', 'y1'), sizes=(2, 2, 2), mesh_axis=('x', 'y', 'y'))
    """

    names: Axes
    sizes: Shape
    mesh_axis: Axes

    @staticmethod
    def of(names: Axes, sizes: Shape) -> MeshAxes:
        """Return the factors of mesh axes with these names and sizes.

        A factor never has the name of another axis or factor. Raises `LayoutError` if two axes have
        one name.

        >>> MeshAxes.of(("x", "x0"), (4, 2)).names
        ('x_0', 'x_1', 'x0')
        """
        factors: list[tuple[str, int, str]] = []
        used = set(names)
        if len(used) < len(names):
            raise LayoutError(
                f"two axes of the mesh have one name: {', '.join(names)}; give each its own"
            )
        for name, size in zip(names, sizes, strict=True):
            own, stem = primes(size), name
            while len(own) > 1 and any(f"{stem}{i}" in used for i in range(len(own))):
                stem += "_"
            made = [f"{stem}{i}" for i in range(len(own))] if len(own) > 1 else [name]
            used.update(made)
            factors += [(each, prime, name) for each, prime in zip(made, own, strict=True)]
        return MeshAxes(*(tuple(column) for column in zip(*factors, strict=True)))

    @cached_property
    def size_of(self) -> dict[str, int]:
        """The number of devices along each factor."""
        return dict(zip(self.names, self.sizes, strict=True))

    @cached_property
    def strides(self) -> dict[str, int]:
        """The row-major stride of each factor, in devices."""
        return {name: prod(self.sizes[k + 1 :]) for k, name in enumerate(self.names)}

    def count(self, axes: Axes) -> int:
        """Return the number of devices along some factors."""
        return prod(self.size_of[axis] for axis in axes)

    def number(self, axes: Axes, digits: Mapping[str, AffineExpr]) -> AffineExpr:
        """Return a device's index along several factors, from its index along each.

        axes: the major first. digits: the index along each factor; 0 for those that are missing.
        """
        found = constant(0)
        for axis in axes:
            found = found * self.size_of[axis] + digits.get(axis, constant(0))
        return found

    @cached_property
    def factors(self) -> dict[str, Axes]:
        """The factors of each mesh axis."""
        found: dict[str, Axes] = {}
        for name, axis in zip(self.names, self.mesh_axis, strict=True):
            found[axis] = (*found.get(axis, ()), name)
        return found

    def in_factors(self, axes: Axes) -> Axes:
        """Return the factors of mesh axes, in this order, without those of one device.

        axes: names of mesh axes, or of factors of larger ones. Raises `LayoutError` for others.

        >>> MeshAxes.of(("x", "y"), (2, 4)).in_factors(("y", "x"))
        ('y0', 'y1', 'x')
        """
        found: list[str] = []
        for name in axes:
            own = self.factors.get(name) or (name,)
            if name not in self.factors and name not in self.size_of:
                sizes = {axis: self.count(own) for axis, own in self.factors.items()}
                raise LayoutError(
                    f"the mesh has no axis {name!r}: its axes are "
                    f"{', '.join(f'{axis}={n}' for axis, n in sizes.items())}"
                )
            found += [axis for axis in own if self.size_of[axis] > 1]
        if len(set(found)) < len(found):
            raise LayoutError(f"axes {', '.join(axes)} overlap: a part of an axis divides one dim")
        return tuple(found)

    def in_mesh_axes(self, factors: Axes) -> Axes:
        """Return names of mesh axes for factors in this order; a part of an axis by its factors.

        >>> MeshAxes.of(("x", "y"), (2, 4)).in_mesh_axes(("y0", "y1", "x"))
        ('y', 'x')
        """
        found: list[str] = []
        at = 0
        while at < len(factors):
            axis = self.mesh_axis[self.names.index(factors[at])]
            own = tuple(name for name in self.factors[axis] if self.size_of[name] > 1)
            is_whole = factors[at : at + len(own)] == own
            found.append(axis if is_whole else factors[at])
            at += len(own) if is_whole else 1
        return tuple(found)

    def first(self, factors: Sequence[str]) -> MeshAxes:
        """Return the same factors in another order: mesh axes that have some of these come first.

        >>> MeshAxes.of(("x", "y", "z"), (2, 4, 2)).first(["z", "y1"]).names
        ('z', 'y0', 'y1', 'x')
        """
        of = dict(zip(self.names, self.mesh_axis, strict=True))
        order = [*dict.fromkeys(map(of.__getitem__, factors)), *self.factors]
        rows = sorted(
            zip(self.names, self.sizes, self.mesh_axis, strict=True),
            key=lambda row: order.index(row[2]),
        )
        return MeshAxes(*(tuple(column) for column in zip(*rows, strict=True)))

    def short_names(self, axes: Axes) -> Axes:
        """Return the names of some factors; if all of a mesh axis are given, the name of that axis.

        Factors and axes of one device are omitted.
        """
        found: list[str] = []
        for whole, factors in self.factors.items():
            given = tuple(axis for axis in factors if axis in axes)
            groups = [(whole, given)] if given == factors else [(a, (a,)) for a in given]
            found += [name for name, group in groups if self.count(group) > 1]
        return tuple(found)

    def coordinates(self, digits: Mapping[str, AffineExpr]) -> list[AffineExpr]:
        """Return a device's coordinate along each mesh axis."""
        return [self.number(axes, digits) for axes in self.factors.values()]


@cached
def by_rule(axes: MeshAxes, grid: Shape) -> tuple[Axes, ...]:
    """Return the factors that divide each dim of a grid by the rule of `DeviceGrid.placement`.

    >>> by_rule(MeshAxes.of(("x", "y"), (2, 4)), (3, 2))
    (('y0', 'y1'), ('x',))
    """
    # Equal factors of one mesh axis are interchangeable: only their number per dim matters.
    equal: dict[tuple[str, int], list[str]] = {}
    for name, axis, size in zip(axes.names, axes.mesh_axis, axes.sizes, strict=True):
        if size > 1:
            equal.setdefault((axis, size), []).append(name)
    groups = tuple((*key, len(group)) for key, group in equal.items())
    placed: list[Axes] = [()] * len(grid)
    for group, row in zip(equal.values(), assign_factors(grid, groups), strict=True):
        rest = list(group)
        for k, count in enumerate(row):
            placed[k] += tuple(rest[:count])
            rest = rest[count:]
    order = {name: i for i, name in enumerate(axes.names)}
    return tuple(tuple(sorted(found, key=order.__getitem__)) for found in placed)
