"""`Summary`: a short readable description of a layout, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from math import prod
from textwrap import wrap
from typing import TYPE_CHECKING

from gridlayout.layouts.memory import CHIPS, MEMORY_SPACES, Chip, Fit, number, size
from gridlayout.layouts.padding import bounded_share, elements_per_core
from gridlayout.layouts.reader import dims_text
from gridlayout.public import public

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gridlayout.arguments import Shape
    from gridlayout.layouts.mapped import Mapped

WIDTH = 100  # columns
_INDENT = 11
_ROWS = "text-align: left; vertical-align: top; padding: 0.1em 0.8em 0.1em 0"
_NAMES = f"{_ROWS}; white-space: nowrap; overflow-wrap: normal; word-break: normal"


@public
@dataclass(frozen=True)
class Summary:
    """A readable description of a layout: lines of at most 100 columns, or an HTML table.

    chip: the chip whose memory must hold the layout; None for all known chips (`CHIPS`). better: a
    layout that wastes less, or None if none was found or searched for.
    """

    layout: Mapped
    chip: Chip | None = None
    better: Mapped | None = None

    @property
    def title(self) -> str:
        """Element type, shape and cores."""
        layout = self.layout
        cores = f"on {dims_text(layout.core_shape)} cores" if layout.core_rank else "in one buffer"
        memory = f", in {layout.memory}" if layout.memory else ""
        name = layout.tile_format or layout.dtype.name
        return f"{name}[{', '.join(map(str, layout.shape))}] {cores}{memory}"

    @property
    def rows(self) -> dict[str, str]:
        """The text of each line by its name: shard, padding, bytes, cores, fits, better."""
        found = {
            "shard": self._shard(),
            "padding": self._padding(),
            "bytes": self._bytes(),
            "cores": _cores_text(self.layout),
            "fits": "; ".join(self._fits()),
            "better": self._better(),
        }
        return {name: text for name, text in found.items() if text}

    def __str__(self) -> str:
        lines = wrap(self.title, WIDTH, subsequent_indent="  ")
        for name, text in self.rows.items():
            first, *more = wrap(text, WIDTH - _INDENT)
            lines += [f"  {name:<{_INDENT - 2}}{first}", *(" " * _INDENT + line for line in more)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row" style="{_NAMES}">{escape(name)}</th>'
            f'<td style="{_ROWS}">{escape(text)}</td></tr>'
            for name, text in self.rows.items()
        )
        table = f'<table style="border-collapse: collapse">{rows}</table>'
        return (
            '<div class="gl-summary" style="font: 14px/1.5 system-ui, sans-serif; flex: 1 1 18em; '
            f'max-width: 34em; overflow-wrap: anywhere"><p style="margin: 0 0 0.4em"><b>'
            f"{escape(self.title)}</b></p>{table}</div>"
        )

    def beside(self, picture: str) -> str:
        """HTML of a picture of the layout next to the summary, or above it in narrow windows."""
        return (
            '<div style="display: flex; flex-wrap: wrap; gap: 1em 2em; align-items: flex-start">'
            f'<div style="min-width: 0; max-width: 100%; overflow-x: auto">{picture}</div>'
            f"{self._repr_html_()}</div>"
        )

    # -- lines ---------------------------------------------------------------------------------

    def _shard(self) -> str:
        layout = self.layout
        held = "per core" if layout.core_rank else "in one buffer"
        if layout.tile is None or layout.tile_counts is None:
            braces = layout.shard_text if layout.shard_text.startswith("{") else ""
            local = f"{dims_text(layout.local_shape) or '1'} elements {held}"
            return f"{local}, laid out as {braces}" if braces else local
        tiles = f"{dims_text(layout.tile_counts)} tiles of {dims_text(layout.tile)}"
        if layout.face is not None:
            tiles += f" with {dims_text(layout.face)} faces"
        shard: Shape | None = getattr(layout, "shard_shape", None)
        if shard is None or shard == layout.tile_counts:  # some systems count shards in tiles
            return f"{tiles} {held}"
        return f"{dims_text(shard)} elements {held}, in {tiles}"

    def _padding(self) -> str:
        places = prod(self.layout.physical_shape)
        share = bounded_share(self.layout)
        return f"{share:.1%} of {places:,} positions hold no element" if share else "none"

    def _bytes(self) -> str:
        layout = self.layout
        each = f"{size(layout.bytes_per_core)} per core, " if layout.core_rank else ""
        wasted, factor = layout.wasted_bytes, layout.expansion_factor
        waste = f"{size(wasted) if wasted else 'none'} wasted"
        times = f": {factor:,.2f} times the data" if wasted and layout.data_bytes else ""
        return f"{each}{size(layout.nbytes)} in total, {waste}{times}"

    def _fits(self) -> Iterator[str]:
        named = self.layout.memory in MEMORY_SPACES
        if self.chip is None and self.layout.own_fit:
            yield self.layout.own_fit
        chips = (self.chip,) if self.chip else tuple(CHIPS.values()) if named else ()
        for chip in chips:
            fit = self.layout.fits(chip)
            tile = f", no op with {dims_text(fit.unusable_tile)} tiles" if fit.unusable_tile else ""
            yield f"{chip.name}: {_room(fit)}{tile}"

    def _better(self) -> str:
        if self.better is None:
            return ""
        held, less = self.layout.held, self.better.held
        saved, per_core = held.nbytes - less.nbytes, held.per_core - less.per_core
        gain = f"saves {size(saved)} in total" if saved > 0 else f"saves {size(per_core)} per core"
        return f"{gain}: {self.better!r}"


def _room(fit: Fit) -> str:
    """The free memory, or the reason why the layout does not fit."""
    where = " on each core" if fit.space == "l1" else ""
    lacks = []
    if fit.grid is not None:
        lacks.append(f"grid {dims_text(fit.grid)} does not fit {dims_text(fit.chip_grid)} cores")
    if fit.free is not None and fit.free < 0:
        lacks.append(f"lacks {size(-fit.free)} of {fit.memory}{where}")
    if lacks:
        return f"NO, {', '.join(lacks)}"
    if fit.free is None:
        return f"no capacity stated for {fit.memory}"
    return f"{size(fit.free)} of {fit.memory} left{where}"


def _cores_text(layout: Mapped) -> str:
    """The cores of the first and the last element, and how many elements these cores hold."""
    if not layout.core_rank or not layout.size:
        return ""
    if layout.is_interleaved:
        return "pages are distributed over all of them"
    held = elements_per_core(layout)
    last = tuple(n - 1 for n in layout.shape)
    if layout.locate((0,) * layout.ndim).core == (core := layout.locate(last).core):
        words = [f"{core} holds the first and the last element"]
    else:
        words = _ends(layout, held)
    idle = 0 if held is None else int((held == 0).sum())
    if idle:
        words.append(f"{idle:,} of {layout.num_cores:,} hold none")
    return "; ".join(words)


def _ends(layout: Mapped, held: NDArray[np.int64] | None) -> list[str]:
    words = []
    last = tuple(n - 1 for n in layout.shape)
    for name, index, way in (("first", (0,) * layout.ndim, "from"), ("last", last, "up to")):
        core = layout.locate(index).core
        many = "" if held is None else f" {number(int(held[core]), 'element')}"
        words.append(f"{name} {core}:{many} {way} {index}")
    return words
