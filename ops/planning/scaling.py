"""`Scaling`: the cost of a program on increasing numbers of devices, for each way to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from gridlayout.draw.chart import Chart, Curve, Point
from gridlayout.draw.curves import curves
from gridlayout.draw.units import bytes_text
from gridlayout.layouts.reader import dims_text
from gridlayout.ops.planning.simulation import Simulation
from gridlayout.public import public
from gridlayout.svg import Drawing
from gridlayout.tables.table import aligned
from gridlayout.tables.words import duration

T = TypeVar("T")

PLANNED = "planned"  # the way whose arguments are in the plan's layouts
_LISTED = 12  # the most numbers of devices in a line
_STARTS = (
    "Planned: arguments are in the plan's layouts at the start, of which devices may have copies; "
    "the others start in those of gl.fill_devices, or in their own."
)


@public
@dataclass(frozen=True, eq=False)
class Scaling:
    """The cost of a program on several numbers of devices, for each way to run it; `gl.scaling`.

    title: of the function. is_weak: whether the problem grows with the devices. devices: their
    numbers, ascending; on chips of several cores these are cores (`counted`). meshes: one per
    number. simulations: for each way, one per number of devices; None where it can't run, and
    `gaps` says why. bound: lower bounds of the seconds of any algorithm, if it is one product; None
    where unknown.

    `print` shows it as tables; notebooks and `draw()` show a drawing.
    """

    title: str
    is_weak: bool
    devices: tuple[int, ...]
    meshes: tuple[tuple[int, ...], ...]
    simulations: Mapping[str, tuple[Simulation | None, ...]] = field(repr=False)
    gaps: Mapping[tuple[str, int], str] = field(repr=False)
    bound: tuple[float | None, ...] = field(repr=False)
    chip: str
    counted: str = "devices"

    @cached_property
    def times(self) -> dict[str, tuple[float | None, ...]]:
        """The seconds of each way, one per number of devices; None where it can't run."""
        return self._each(lambda simulation: simulation.time)

    @cached_property
    def received(self) -> dict[str, tuple[int | None, ...]]:
        """The bytes that a device receives, in the same order."""
        return self._each(lambda simulation: simulation.received)

    @cached_property
    def speed_ups(self) -> dict[str, tuple[float | None, ...]]:
        """The speed relative to the fastest way on the fewest devices.

        For weak scaling it is multiplied by the growth of the problem, which is that of the
        devices.
        """
        grown = self.devices if self.is_weak else (self._first,) * len(self.devices)
        return {
            way: tuple(
                self._base / t * (count / self._first) if t else None
                for t, count in zip(times, grown, strict=True)
            )
            for way, times in self.times.items()
        }

    @cached_property
    def efficiencies(self) -> dict[str, tuple[float | None, ...]]:
        """The speed-ups divided by the growth in devices; 1 is ideal."""
        return {
            way: tuple(
                None if x is None else x * self._first / count
                for x, count in zip(found, self.devices, strict=True)
            )
            for way, found in self.speed_ups.items()
        }

    @property
    def ideal(self) -> tuple[float, ...]:
        """The seconds if all devices were used as well as the fewest by the fastest way there."""
        return tuple(
            self._base if self.is_weak else self._base * self._first / count
            for count in self.devices
        )

    @cached_property
    def fastest(self) -> tuple[str | None, ...]:
        """The fastest way on each number of devices, the first among equals; None where none runs.

        Ways that fit the devices' memory are preferred.
        """
        found = []
        for k in range(len(self.devices)):
            known = {way: each for way, row in self.simulations.items() if (each := row[k])}
            fitting = {way: each for way, each in known.items() if each.fits} or known
            found.append(min(fitting, key=lambda way: fitting[way].time, default=None))
        return tuple(found)

    def draw(self) -> Drawing:
        """Return a drawing of times, and below of efficiencies, against logarithmic devices.

        There is one curve per way, one for the ideal, and for one product the lower bound. Marks
        are empty where a device has too little memory.
        """
        guides = [self._guide("ideal", self.ideal)]
        if self._has_bound:
            guides.append(self._guide("lower bound", self.bound))
        whole = [self._guide("ideal", (1.0,) * len(self.devices))]
        charts = [
            Chart("time", self._curves(self.times), guides),
            Chart("efficiency", self._curves(self.efficiencies), whole, is_share=True),
        ]
        kind = "the problem grows with them" if self.is_weak else "one problem on more of them"
        subtitle = f"{self.counted} of {self.chip}, {kind}"
        return curves(self._head, subtitle, charts, self.counted, self._notes)

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()

    def _repr_svg_(self) -> str:
        return self.draw()._repr_svg_()

    @property
    def lines(self) -> list[str]:
        """Tables of seconds, speed-ups with efficiencies, and bytes; then why ways can't run."""
        times = self._table(self._time, self.bound if self._has_bound else ())
        star = "* the fastest"
        if any("!" in line for line in times):
            star += f"; ! more is held than a {self._one} has room for"
        lines = [
            f"{self._head}, {self.counted} of {self.chip}: time ({star})",
            *times,
            f"speed-up over {self._first:,} {self.counted if self._first > 1 else self._one}, and "
            "efficiency",
            *self._table(self._up),
            f"bytes that a {self._one} receives",
            *self._table(lambda way, k: _cell(self.received[way][k], "{:,}".format)),
        ]
        return lines + self._why + ([_STARTS] if PLANNED in self.simulations else [])

    def _table(
        self, cell: Callable[[str, int], str], bound: Sequence[float | None] = ()
    ) -> list[str]:
        """Return a table of cells: a line for each number of devices, a column for each way."""
        names = (self.counted, "mesh", *self.simulations, *(["lower bound"] if bound else []))
        rows = [
            (
                *(f"{self.devices[k]:,}", dims_text(mesh)),
                *(cell(way, k) for way in self.simulations),
                *(_cell(least, duration) for least in bound[k : k + 1]),
            )
            for k, mesh in enumerate(self.meshes)
        ]
        return aligned([names, *rows], range(len(names)))

    @property
    def _why(self) -> list[str]:
        """Lines that say why ways can't run, with the reason for the fewest devices."""
        counts: dict[str, list[int]] = {}
        for way, count in self.gaps:
            counts.setdefault(way, []).append(count)
        return [
            f"{way} can't run on {_listed(found)}: on {found[0]:,}, {self.gaps[way, found[0]]}"
            for way, found in counts.items()
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        last, ways = self.devices[-1], ", ".join(self.simulations)
        best = self.fastest[-1]
        found = f"{best} {duration(self.times[best][-1] or 0.0)}" if best else "none"
        return (
            f"Scaling({self._head}, {self._first:,} to {last:,} {self.counted} of {self.chip}, "
            f"{ways}; fastest on {last:,}: {found})"
        )

    # -- parts -------------------------------------------------------------------------------------

    @property
    def _head(self) -> str:
        return f"{'weak' if self.is_weak else 'strong'} scaling of {self.title}"

    @property
    def _has_bound(self) -> bool:
        """Whether a bound is known for more than the fewest devices."""
        return any(self.bound[1:] or self.bound)

    @cached_property
    def _start(self) -> int:
        """The index of the fewest devices on which a way runs."""
        return next((k for k, way in enumerate(self.fastest) if way is not None), 0)

    @property
    def _first(self) -> int:
        return self.devices[self._start]

    @property
    def _base(self) -> float:
        """The seconds of the fastest way on the fewest devices."""
        way = self.fastest[self._start]
        return 0.0 if way is None else self.times[way][self._start] or 0.0

    def _each(self, number: Callable[[Simulation], T]) -> dict[str, tuple[T | None, ...]]:
        """Return a number of each simulation, by way; None where there is none."""
        return {
            way: tuple(None if each is None else number(each) for each in found)
            for way, found in self.simulations.items()
        }

    def _time(self, way: str, k: int) -> str:
        simulation = self.simulations[way][k]
        if simulation is None:
            return "-"
        star = "*" if way == self.fastest[k] else ""
        return f"{star}{duration(simulation.time)}{'' if simulation.fits else ' !'}"

    def _up(self, way: str, k: int) -> str:
        up, part = self.speed_ups[way][k], self.efficiencies[way][k]
        return "-" if up is None or part is None else f"{up:,.2f} ({part:.0%})"

    def _curves(self, values: Mapping[str, Sequence[float | None]]) -> list[Curve]:
        """Return one curve per way, of times or of efficiencies."""
        found = []
        for way, row in values.items():
            points = []
            for k, value in enumerate(row):
                simulation = self.simulations[way][k]
                is_open = simulation is not None and not simulation.fits
                hover = "" if simulation is None else self._hover(way, k, simulation)
                points.append(Point(self.devices[k], value, hover, is_open))
            found.append(Curve(way, points))
        return found

    def _guide(self, name: str, values: Sequence[float | None]) -> Curve:
        return Curve(name, [Point(n, x) for n, x in zip(self.devices, values, strict=True)])

    def _hover(self, way: str, k: int, simulation: Simulation) -> str:
        """Return the text shown while the pointer is over a mark."""
        mesh = dims_text(self.meshes[k])
        words = f"{way} on {self.devices[k]:,} {self.counted} ({mesh}): {duration(simulation.time)}"
        if self.speed_ups[way][k] is not None:
            words += f", speed-up {self._up(way, k)}"
        words += f", {bytes_text(self.received[way][k] or 0)} received"
        if not simulation.fits:
            room = bytes_text(simulation.capacity or 0)
            words += f", {bytes_text(simulation.peak_bytes)} held of {room}"
        return words

    @property
    def _notes(self) -> list[str]:
        """The notes below the drawing."""
        notes = []
        if not all(each.fits for row in self.simulations.values() for each in row if each):
            notes.append(f"Empty marks: more is held than a {self._one} has room for.")
        if self.gaps:
            notes.append("Dots are where a way can't run on the numbers between.")
        if PLANNED in self.simulations:
            notes.append(_STARTS)
        return notes

    @property
    def _one(self) -> str:
        return self.counted.removesuffix("s")


def _listed(counts: Sequence[int]) -> str:
    """Return numbers of devices as text; only the first if there are many."""
    more = f" and {len(counts) - _LISTED:,} more numbers" if len(counts) > _LISTED else ""
    return ", ".join(map("{:,}".format, counts[:_LISTED])) + more


def _cell(value: Any, text: Callable[[Any], str]) -> str:
    return "-" if value is None else text(value)
