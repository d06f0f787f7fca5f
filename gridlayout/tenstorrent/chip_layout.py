"""`ChipLayout`: one tensor per chip of a mesh, all in the same TTNN layout.

The memory of each chip holds one of the tensors, so all questions about memory and tiles are about
the layout of one tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

from gridlayout.arguments import Shape, ShapeLike, positive
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Chip, Held
from gridlayout.layouts.steps import Join, Pad, Split, Step, Unit
from gridlayout.public import public
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout


@public
class ChipLayout(Layout):
    """The layout of a stack of tensors, one per chip, each in the layout `local`.

    The leading logical dims index the chips; they are also the leading grid dims. `LayoutError` if
    the mesh is empty or `local` is not a `TtnnLayout`.

    >>> local = TtnnLayout((53, 63), grid=(2, 1), tile=(32, 32))
    >>> layout = ChipLayout((1, 2), local)
    >>> layout.shape, layout.core_shape, layout.memory
    ((1, 2, 53, 63), (1, 2, 2, 1), 'l1')
    """

    one_bank_per_shard = True

    def __init__(self, chips: ShapeLike, local: TtnnLayout, *, oob: Any = None) -> None:
        self.chips: Shape = positive(chips, "chips")
        if not isinstance(local, TtnnLayout):
            raise LayoutError(f"{local!r} must be the tenstorrent.ttnn layout of one chip's tensor")
        self.local: TtnnLayout = local.with_oob(None)
        self.tile: Shape | None = local.tile
        self.tile_format: str | None = local.tile_format
        self.row_multiple: int = local.row_multiple
        self.memory_layout: str = local.memory_layout
        self.workers: Shape | None = local.workers
        count = len(self.chips)
        super().__init__(
            (*self.chips, *local.shape),
            local.dtype,
            [_shifted(step, count) for step in local.steps],
            [*range(count), *(axis + count for axis in local.order)],
            core_rank=count + local.core_rank,
            oob=oob,
        )

    def _key(self) -> tuple[Any, ...]:
        return (self.chips, self.local, self.dtype, repr(self.oob))

    @property
    def canonical(self) -> ChipLayout:
        """The same layout with the canonical one of each chip."""
        return self._changed(local=self.local.canonical)

    _constructor = "ChipLayout", 2

    def _call(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        return ChipLayout, {"chips": self.chips, "local": self.local, "oob": self.oob}

    def _changed(self, **fields: Any) -> Self:
        if "dtype" in fields:
            fields["local"] = self.local.with_dtype(fields["dtype"])
        return super()._changed(**fields)

    @property
    def tile_counts(self) -> Shape:
        """The shard of each core in tiles."""
        return self.local.tile_counts

    @property
    def memory(self) -> str:
        """The memory space of each chip's tensor."""
        return self.local.memory

    @property
    def held(self) -> Held:
        """The bytes that each chip allocates for its tensor."""
        return self.local.held

    def is_placed(self, chip: Chip | str) -> bool:
        """Whether one chip has cores or banks for the shards of its tensor."""
        return self.local.is_placed(chip)

    def can_be_on(self, chip: Chip | str) -> bool:
        """Whether a program can use the layout on chips of this kind, one tensor on each."""
        return self.local.can_be_on(chip)


def _shifted(step: Step, count: int) -> Step:
    """The same step with all axis numbers increased by `count`."""
    match step:
        case Join(axes):
            return Join(tuple(axis + count for axis in axes))
        case Unit():
            return step
        case Pad() | Split():
            return replace(step, axis=step.axis + count)
    raise LayoutError(f"step {step!r} is not a step of a TTNN layout")
