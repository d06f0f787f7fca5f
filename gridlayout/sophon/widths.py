"""The width of a Sophon matrix's channels: the best one, and why (Sophon, "Matrix Layout")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gridlayout import dtypes
from gridlayout.sophon.chip import BM1684, Chip, as_chip, as_count
from gridlayout.sophon.strides import unit

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


@dataclass(frozen=True)
class Width:
    """A width W for a matrix, and what it costs: `row_bytes` of one row and `npu_bytes` of all.

    Bytes are those of one NPU. channels: ceil(columns / W), each in an NPU of its own.
    """

    width: int
    channels: int
    row_bytes: int
    npu_bytes: int
    npus: int

    def __str__(self) -> str:
        return (
            f"W={self.width}: {self.channels} channels on {self.channels} of {self.npus} NPUs, "
            f"{self.npu_bytes} B in each ({self.row_bytes} B a row); no W takes fewer bytes, and "
            "none of those that take as few, with a channel an NPU at most, uses more NPUs or "
            "divides the columns more evenly"
        )


def best_width(rows: int, cols: int, dtype: DTypeLike, chip: Chip = BM1684) -> Width:
    """The W with which a matrix that starts at NPU 0 takes the fewest bytes of each NPU.

    Of several: a channel an NPU at most, as the document suggests, then the most NPUs, then the
    least W. rows, cols: elements, >= 1. `LayoutError` for anything else.

    >>> from gridlayout import sophon
    >>> best_width(2, 40, "float32", sophon.Chip(npus=4, npu_bytes=1024, alignment=128))
    Width(width=10, channels=4, row_bytes=128, npu_bytes=256, npus=4)
    """
    rows, cols = as_count(rows, "rows", least=1), as_count(cols, "cols", least=1)
    chip, bits = as_chip(chip), dtypes.bits(dtypes.as_dtype(dtype))
    # With k channels an NPU a row takes k * up(cols / (k * npus)) elements, `up` to the unit of the
    # alignment, which is least for k = 1. The least W for k = 1 also makes the most channels.
    width = -(-cols // chip.npus)
    whole = unit(chip.alignment, bits)
    row_bytes = -(-width // whole) * whole * bits // 8
    return Width(width, -(-cols // width), row_bytes, rows * row_bytes, chip.npus)
