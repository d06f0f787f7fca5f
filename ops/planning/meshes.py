"""The meshes of a machine's chips, or of their cores, for a given number of devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, prod
from typing import Any

from gridlayout.arguments import Shape, int64, positive
from gridlayout.errors import LayoutError
from gridlayout.sharding.machines.machine import Machine

MOST_DEVICES = 2**24


class Meshes:
    """The meshes of the devices of one machine: chips, or the cores of chips that have several.

    For a number of chips it is the machine's own mesh if that has so many; otherwise the mesh with
    as many axes that is nearest to a square or a cube, with the machine's links. Cores are a
    rectangle of one chip's grid, nearest to a square, or all cores of several chips.
    """

    def __init__(self, machine: Machine) -> None:
        whole = machine.by_core
        self.machine, self.rank = machine, 0
        self.grid: Shape = ()
        mesh = whole.mesh or (1,) * max(len(whole.links), 1)
        if whole.has_cores:
            # In a machine by core, the chips' grids are part of the mesh.
            self.rank = len(whole.chip.grid)
            self.grid = mesh[len(mesh) - self.rank :]
            own = machine.mesh or (1,)
            mesh = mesh[: len(mesh) - self.rank] if machine.has_cores else own
        self.chips = mesh

    @property
    def counted(self) -> str:
        """The name of its devices in texts."""
        return "cores" if self.rank else "devices"

    @property
    def size(self) -> int:
        """The number of devices of the machine itself."""
        return prod(self.chips) * prod(self.grid)

    def doubled(self) -> tuple[int, ...]:
        """Return 1, 2, 4 and so on, up to the machine's own size, which is the last."""
        found, n = [], 1
        while n < self.size:
            if self._of(n) is not None:
                found.append(n)
            n *= 2
        return (*found, self.size)

    def of(self, devices: Any) -> Machine:
        """Return the machine with so many devices, or with a mesh; `LayoutError` if impossible."""
        if isinstance(devices, Sequence) and not isinstance(devices, (str, bytes)):
            return self._stated(positive(devices, "a mesh in devices"))
        count = int64(devices, "a number in devices")
        if not 1 <= count <= MOST_DEVICES:
            raise LayoutError(
                f"a number in devices {count} must be from 1 to {MOST_DEVICES:,}: devices are "
                "counts or meshes, as (1, 2, 4, (2, 4))"
            )
        if (found := self._of(count)) is None:
            whole = " x ".join(map(str, self.grid))
            raise LayoutError(
                f"{count} cores are no rectangle on a chip of {whole} cores, and not all cores of "
                f"several chips: give a multiple of {prod(self.grid)}, or a mesh, as {self.grid}"
            )
        return self._on(*found)

    def _stated(self, mesh: Shape) -> Machine:
        """Return the machine with a mesh that a user states."""
        if prod(mesh) > MOST_DEVICES:
            raise LayoutError(f"a mesh in devices {mesh} has more than {MOST_DEVICES:,} devices")
        at = max(len(mesh) - self.rank, 0)
        chips, cores = (mesh[:at], mesh[at:]) if self.rank else (mesh, ())
        is_wide = any(n > most for n, most in zip(cores, self.grid, strict=False))
        if len(cores) != self.rank or is_wide:
            raise LayoutError(
                f"a mesh in devices {mesh} is no mesh of cores: its last {self.rank} sizes must be "
                f"at most those of a chip, {self.grid}"
            )
        return self._on(chips, cores)

    def _of(self, count: int) -> tuple[Shape, Shape] | None:
        """Return the chips and the cores of each; None where there is no such mesh."""
        if not self.rank:
            return self._chips(count), ()
        every = prod(self.grid)
        if count >= every:
            return None if count % every else (self._chips(count // every), self.grid)
        cores = nearest(count, self.rank, self.grid)
        return None if cores is None else ((1,) * len(self.chips), cores)

    def _chips(self, count: int) -> Shape:
        if count == prod(self.chips):
            return self.chips
        found = nearest(count, len(self.chips))
        assert found is not None
        return found

    def _on(self, chips: Shape, cores: Shape) -> Machine:
        if not cores:
            return self.machine.on(chips)
        if self.machine.has_cores:
            more = (1,) * (len(self.chips) - len(chips))
            return self.machine.on((*more, *chips, *cores))
        of_chips = self.machine.on(chips or (1,)).by_core
        return of_chips.on((*(chips if prod(chips) > 1 else ()), *cores))


def nearest(count: int, rank: int, most: Shape | None = None) -> Shape | None:
    """Return `count` as a product of `rank` factors, as nearly equal as possible.

    The largest is last unless `most`, the largest value of each factor, prevents it. None where
    there are no such factors.

    >>> nearest(32, 2), nearest(64, 3), nearest(7, 2), nearest(7, 2, (4, 4)), nearest(6, 2, (3, 2))
    ((4, 8), (4, 4, 4), (1, 7), None, (3, 2))
    """
    best, least = None, inf
    for found in _factors(count, rank, 1):
        for sizes in (found, found[::-1]):
            fits = most is None or all(a <= b for a, b in zip(sizes, most, strict=True))
            if fits and sum(sizes) < least:
                best, least = sizes, sum(sizes)
    return best


def _factors(count: int, rank: int, least: int) -> Iterator[Shape]:
    """Yield each way to write `count` as a product of `rank` factors in ascending order."""
    if rank == 1:
        yield (count,)
        return
    n = least
    while n**rank <= count:
        if count % n == 0:
            for rest in _factors(count // n, rank - 1, n):
                yield (n, *rest)
        n += 1
