"""Map of local memory: several tensors by absolute address, and their conflicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations
from types import MappingProxyType
from typing import TYPE_CHECKING

from gridlayout.arguments import one_of
from gridlayout.errors import LayoutError
from gridlayout.public import public
from gridlayout.sophon.chip import Chip
from gridlayout.sophon.local_memory import LocalLayout
from gridlayout.sophon.occupancy import (
    Overlap,
    Reuse,
    check_tensors,
    held,
    held_at,
    overlap,
    reuse,
    runs,
)
from gridlayout.tables.table import aligned

if TYPE_CHECKING:
    from gridlayout.svg import Drawing

MAX_TENSORS = 64


@public
@dataclass(frozen=True, eq=False)
class MemoryMap:
    """Tensors in the local memory of one chip, by name; created by `memory_map`.

    `str` is a table with one line per tensor: address, NPUs, bytes per NPU, total bytes and empty
    bytes. Below it is a line for each pair of tensors that overlap, or of which one is in empty
    blocks of the other. Notebooks show `draw()`.
    """

    tensors: Mapping[str, LocalLayout] = field(repr=False)

    @property
    def chip(self) -> Chip:
        """The chip of all tensors."""
        return next(iter(self.tensors.values())).chip

    @cached_property
    def overlaps(self) -> dict[tuple[str, str], Overlap]:
        """For each pair of tensors that overlap, by their names, the first byte they share."""
        pairs = ((names, overlap(*self._two(names))) for names in combinations(self.tensors, 2))
        return {names: found for names, found in pairs if found is not None}

    @cached_property
    def reuses(self) -> dict[tuple[str, str], Reuse]:
        """For each pair where the second tensor is in empty blocks of the first, the first byte.

        The keys are the names of the pairs. "Try not to reuse the empty blocks" (Sophon, "Scatter
        Features to Different NPUs").
        """
        pairs = ((names, reuse(*self._two(names))) for names in permutations(self.tensors, 2))
        return {names: found for names, found in pairs if found is not None}

    def _two(self, names: tuple[str, str]) -> tuple[LocalLayout, LocalLayout]:
        return self.tensors[names[0]], self.tensors[names[1]]

    @property
    def end(self) -> int:
        """The first byte in each NPU's memory after all allocations."""
        return max(x.offset + x.bytes_per_core for x in self.tensors.values())

    def at(self, address: int) -> dict[str, tuple[int, ...] | None]:
        """The tensors whose allocation contains a linear address, and their index there.

        The index is None for an empty block or a dummy element. `LayoutError` for an address
        outside the chip.

        >>> from gridlayout import sophon
        >>> x = sophon.local((2, 3, 4, 5), "float32", chip=sophon.Chip(4, 1024, 128))
        >>> found = memory_map({"x": x})
        >>> found.at(1024 + 4), found.at(3 * 1024), found.at(512)
        ({'x': (0, 1, 0, 1)}, {'x': None}, {})
        """
        npu, byte = self.chip.split(address)
        return {
            name: held_at(x, npu, byte)
            for name, x in self.tensors.items()
            if x.offset <= byte < x.offset + x.bytes_per_core
        }

    def empty_bytes(self, name: str) -> int:
        """Bytes of a tensor's allocation, in all NPUs, that hold none of its elements.

        >>> from gridlayout import sophon
        >>> x = sophon.local((2, 3, 4, 5), "float32", chip=sophon.Chip(4, 1024, 128))
        >>> memory_map({"x": x}).empty_bytes("x")  # 12 blocks of 6 features, and all of NPU 3
        544
        """
        x = self._tensor(name)
        return sum((end - npu) * int((~held(x, npu)).sum()) for npu, end in runs([x]))

    def _tensor(self, name: str) -> LocalLayout:
        return self.tensors[one_of(name, self.tensors, "tensor")]

    def draw(self) -> Drawing:
        """The map as SVG: one row per NPU, bytes from left to right, one colour per tensor.

        Hatched blocks are empty blocks of a tensor; striped blocks hold more than one tensor.
        """
        # Most programs do not draw, and `gridlayout.draw` takes time to import.
        from gridlayout.sophon.address_picture import draw_map

        return draw_map(self.tensors)

    def _repr_html_(self) -> str:
        return self.draw().svg

    def _repr_svg_(self) -> str:
        return self.draw()._repr_svg_()

    def __str__(self) -> str:
        chip = self.chip
        rows = [("tensor", "address", "NPUs", "bytes of each", "total", "empty", "holds")]
        for name, x in self.tensors.items():
            where = f"{x.offset:,}:{x.offset + x.bytes_per_core:,}"
            sizes = (f"{x.nbytes:,}", f"{self.empty_bytes(name):,}")
            rows.append((name, f"{x.start:,}", _npus(x), where, *sizes, _in_short(x)))
        free = f"{chip.npu_bytes - self.end:,} B free after all tensors"
        head = f"{chip.npus} NPUs of {chip.npu_bytes:,} B, {free}"
        return "\n".join([head, *aligned(rows, (1, 4, 5)), *self._warnings()])

    __repr__ = __str__

    def _warnings(self) -> list[str]:
        lines = []
        for (first, second), found in self.overlaps.items():
            lines.append(
                f"{first} and {second} overlap: byte {found.byte:,} of NPU {found.npu} holds "
                f"{_index(found.first)} of {first} and {_index(found.second)} of {second}"
            )
        for (owner, other), again in self.reuses.items():
            lines.append(
                f"{other} reuses empty blocks of {owner}: byte {again.byte:,} of NPU {again.npu} "
                f"holds {_index(again.index)} of {other}; NPUs that work on {owner} in parallel "
                "may destroy it"
            )
        return lines


@public
def memory_map(tensors: Mapping[str, LocalLayout]) -> MemoryMap:
    """Return the map of tensors in local memory: their addresses and their conflicts.

    tensors: layouts by name. `LayoutError`: no tensors or more than 64; a name that is not a str;
    tensors of several chips; a tensor that does not fit.

    >>> from gridlayout import sophon
    >>> chip = sophon.Chip(npus=4, npu_bytes=1024, alignment=128)
    >>> x = sophon.local((2, 3, 4, 5), "float32", chip=chip)
    >>> bias = sophon.local((1, 3, 1, 1), "float32", "compact", start=80, chip=chip)
    >>> found = memory_map({"x": x, "bias": bias})
    >>> found.overlaps, found.reuses
    ({}, {('x', 'bias'): Reuse(npu=0, byte=80, index=(0, 0, 0, 0))})
    """
    if not isinstance(tensors, Mapping) or not all(isinstance(name, str) for name in tensors):
        raise LayoutError(f"tensors {tensors!r} must be a dict of names to tensors")
    if not 1 <= len(tensors) <= MAX_TENSORS:
        raise LayoutError(f"a map has 1 to {MAX_TENSORS} tensors, not {len(tensors)}")
    check_tensors(tuple(tensors.values()))
    return MemoryMap(MappingProxyType(dict(tensors)))


def _npus(layout: LocalLayout) -> str:
    """The NPUs that hold channels, as runs that start at the first channel's NPU: "2:4, 0:1"."""
    npus, start, channels = layout.chip.npus, layout.start_npu, layout.view_shape[1]
    if channels >= npus:
        return f"0:{npus}"
    end = start + channels
    return f"{start}:{end}" if end <= npus else f"{start}:{npus}, 0:{end - npus}"


def _in_short(layout: LocalLayout) -> str:
    """A short description of a tensor: "int8 (6, 5, 4, 5) in 4N, aligned"."""
    mode = f" in {layout.storage}" if layout.storage else ""
    width = f", W={layout.view_shape[3]}" if layout.ndim == 2 else ""
    strides = layout.layout or f"strides {layout.strides}"
    return f"{layout.dtype.name} {layout.shape}{mode}{width}, {strides}"


def _index(index: tuple[int, ...] | None) -> str:
    return "a dummy" if index is None else str(index)
