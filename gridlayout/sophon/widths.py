"""The width of a Sophon matrix's channels: the best one, and why (Sophon, "Matrix Layout")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gridlayout import dtypes
from gridlayout.errors import LayoutError
from gridlayout.sophon.chip import BM1684, Chip, as_chip, as_count
from gridlayout.sophon.strides import channels_per_npu, check_start, unit

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# Far more channels of an NPU than fit in any chip: there the search ends.
MAX_CHANNELS = 2**16


@dataclass(frozen=True)
class Width:
    """A width W for a matrix, and what it costs: `row_bytes` of one row and `npu_bytes` of all.

    Bytes are those of one NPU. channels: ceil(columns / W), dealt to the NPUs in turn.
    """

    width: int
    channels: int
    row_bytes: int
    npu_bytes: int
    npus: int

    def __str__(self) -> str:
        return (
            f"W={self.width}: {self.channels} channels on {min(self.channels, self.npus)} of "
            f"{self.npus} NPUs, {self.npu_bytes} B in each ({self.row_bytes} B a row); no W takes "
            "fewer bytes, and none of those that take as few, with no more channels than NPUs, "
            "uses more NPUs or divides the columns more evenly"
        )


def best_width(
    rows: int, cols: int, dtype: DTypeLike, chip: Chip = BM1684, *, start: int = 0
) -> Width:
    """The W with which a matrix that starts at an address takes the fewest bytes of each NPU.

    Of several: no more channels than NPUs, as the document suggests, then the most NPUs, then the
    least W. rows, cols: elements, >= 1. start: the linear address in bytes, as of `matrix`: the
    fewer NPUs there are from it on, the fewer channels lie in one row of them.

    `LayoutError`: no such numbers, an address that is not aligned, or a matrix that starts at
    another NPU than 0 and of which not one row fits.

    >>> from gridlayout import sophon
    >>> chip = sophon.Chip(npus=4, npu_bytes=1024, alignment=128)
    >>> best_width(2, 40, "float32", chip)
    Width(width=10, channels=4, row_bytes=128, npu_bytes=256, npus=4)
    >>> best_width(2, 40, "float32", chip, start=2 * 1024)  # W=10 reaches round: 512 B
    Width(width=20, channels=2, row_bytes=128, npu_bytes=256, npus=4)
    """
    rows, cols = as_count(rows, "rows", least=1), as_count(cols, "cols", least=1)
    chip, bits = as_chip(chip), dtypes.bits(dtypes.as_dtype(dtype))
    start_npu, _ = chip.split(start)
    check_start(start, "aligned", chip, bits)
    whole = unit(chip.alignment, bits)

    def cost(width: int) -> tuple[int, bool, int, int]:
        channels = -(-cols // width)
        units = channels_per_npu(start_npu, channels, chip.npus) * -(-width // whole)
        return units, channels > chip.npus, -min(channels, chip.npus), width

    width = min(_widths(cols, chip, start_npu, whole), key=cost)
    row_bytes = cost(width)[0] * whole * bits // 8
    return Width(width, -(-cols // width), row_bytes, rows * row_bytes, chip.npus)


def _widths(cols: int, chip: Chip, start_npu: int, whole: int) -> Iterator[int]:
    """The widths that may be best: the least with k channels an NPU, k = 1, 2, ..., and one more.

    With k channels an NPU a row takes k * ceil(cols / (whole * (k * npus - start NPU))) times
    `whole` elements. From NPU 0 that is least for k = 1; from others until k alone is more.
    """
    yield -(-cols // chip.npus)  # the least with no more channels than NPUs
    fewest: int | None = None
    for k in range(1, MAX_CHANNELS + 1):
        width = -(-cols // (k * chip.npus - start_npu))
        units = k * -(-width // whole)
        fewest = units if fewest is None else min(fewest, units)
        yield width
        if start_npu == 0 or k + 1 > fewest:
            return
    raise LayoutError(
        f"a row of {cols} columns takes more than {MAX_CHANNELS} times the alignment of "
        f"{chip.alignment} B of each NPU, whatever the width: give start in NPU 0, or fewer columns"
    )
