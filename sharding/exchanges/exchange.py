"""`Exchange`: a relayout along a route between two layouts, as a program for one device of a mesh.

The route first splits physical dims into digits, then joins digits into new dims. Between the two,
all digits that the mesh divides before or after are dims of the array. There, each mesh axis moves
from one digit to another by one all_to_all, or its digit is gathered or sliced, or mesh axes change
their digits with each other by one permute. An unsharded dim may be padded first so that the mesh
divides it. A dim that is no digit (its grid is not divided evenly by the mesh) is gathered before
the route, or sliced after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.layouts.program import Move
from gridlayout.sharding.collectives import Collective, Collectives
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.meshes.placement import Placement


@dataclass(frozen=True)
class Transfer:
    """A move of mesh axes from dim `source` to dim `target`, by one all_to_all.

    Without a target the axes are gathered, without a source the dim is sliced. size: the number of
    devices along the axes. parts: of one all_gather of several dims, each of them and the number of
    devices along it; `axes` are those of one dim after another, and `source` is the first one.
    pairs: of one permute of whole parts, the pairs (from, to) of devices along the axes, which then
    divide each other's dims.
    """

    axes: Axes
    size: int
    source: int | None
    target: int | None
    parts: tuple[tuple[int, int], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()

    @property
    def is_slice(self) -> bool:
        """Whether each device takes a part of its own, so that nothing is sent."""
        return self.source is None and not self.pairs

    @property
    def gathered(self) -> list[int]:
        """The dims that an all_gather gathers, the major first; none for other transfers."""
        if self.source is None or self.target is not None:
            return []
        return [dim for dim, _ in self.parts] or [self.source]

    def is_in_order(self, shape: Sequence[int]) -> bool:
        """Whether an all_gather of a part of this shape needs no transpose."""
        dims = self.gathered
        between = [n for dim, n in enumerate(shape[: dims[-1]]) if dim not in dims]
        return dims == sorted(dims) and prod(between) == 1

    def of(self, shape: Sequence[int]) -> Shape:
        """Return the shape of a device's part after the transfer."""
        changed = list(shape)
        for dim, n in self.parts or [(self.source, self.size)]:
            if dim is not None:
                changed[dim] *= n
        if self.target is not None:
            changed[self.target] //= self.size
        return tuple(changed)

    def __str__(self) -> str:
        if self.parts:
            dims = " and ".join(str(dim) for dim, _ in self.parts)
            return f"all_gather of dims {dims} over {'*'.join(self.axes)}"
        if self.pairs:
            return f"permute over {'*'.join(self.axes)}"
        if self.source is None:
            return f"slice of dim {self.target} by {'*'.join(self.axes)}"
        if self.target is None:
            return f"all_gather of dim {self.source} over {'*'.join(self.axes)}"
        return f"all_to_all over {'*'.join(self.axes)}, from dim {self.source} to dim {self.target}"


@dataclass(frozen=True)
class Exchange:
    """The program of one device: gathers, split into digits, transfers, join, gather, slices.

    gathers: dims that are gathered first, to their `grid` extent. final: a gather along the first
    dim of the result, if some digits can be gathered there. slices: dims that are extended to their
    slots last; each device takes its part of them. is_transposed: whether the result has another
    order than what the last transfer leaves, which is then copied. gathered_shape: the shape of a
    device's part after `gathers`. digit_shape: its shape in digits, with padding. first, last: the
    moves before and after the transfers; they are computed on first use, because most exchanges
    only serve to count bytes.
    """

    gathers: Shape
    gathered_shape: Shape
    digit_shape: Shape
    transfers: tuple[Transfer, ...]
    final: Transfer | None
    slices: Shape
    is_transposed: bool
    _first: Callable[[], tuple[Move, ...]] = field(repr=False, compare=False)
    _last: Callable[[], tuple[Move, ...]] = field(repr=False, compare=False)

    @cached_property
    def first(self) -> tuple[Move, ...]:
        """The moves that split the gathered dims into the digits that are transferred."""
        return self._first()

    @cached_property
    def last(self) -> tuple[Move, ...]:
        """The moves that join the digits into the dims of the new layout."""
        return self._last()

    @property
    def is_permuted(self) -> bool:
        """Whether mesh axes change their dims with each other."""
        return any(each.pairs for each in self.transfers)

    def padded(self, nbytes: int) -> int:
        """Return the bytes of a device's part in digits. nbytes: of the gathered part."""
        return -(-nbytes * prod(self.digit_shape) // prod(self.gathered_shape))

    def collectives(
        self, local: int, result: int, before: Placement, device: DeviceGrid
    ) -> list[Collective]:
        """Return the collectives. local, result: bytes of a device's part before and after."""
        made = Collectives(device)
        for k in self.gathers:
            made.all_gather(before.axes[k], local, k)
            local = -(-local * before.grid[k] // before.per_device[k])
        local, shape, cut = self.padded(local), self.digit_shape, 0
        for number, transfer in enumerate(self.transfers, 1):
            if transfer.pairs:
                receive = sum(a != b for a, b in transfer.pairs)
                made.permute(transfer.axes, local, receive)
            elif transfer.source is None:
                local = -(-local // transfer.size)
                cut += local
            elif transfer.target is None:
                is_last = number == len(self.transfers)
                is_copied = self.is_transposed if is_last else not transfer.is_in_order(shape)
                made.all_gather(transfer.axes, local, is_copied)
                local *= transfer.size
            else:
                made.all_to_all(transfer.axes, local, (transfer.target, transfer.source))
            shape = transfer.of(shape)
        if self.final is not None:
            made.all_gather(self.final.axes, -(-result // self.final.size))
        if made.found:  # a device copies what it cuts out of its part to send it, or of what it got
            last = made.found[-1]
            made.found[-1] = replace(last, copied_bytes=last.copied_bytes + cut)
        return made.found


def local_bytes(layout: Layout, placement: Placement) -> int:
    """Return the bytes of one device's part."""
    return dtypes.nbytes(prod(placement.per_device) * prod(layout.local_shape), layout.dtype)
