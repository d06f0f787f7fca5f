"""The best number of columns per channel of a Sophon matrix (Sophon, "Matrix Layout")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gridlayout import dtypes
from gridlayout.arguments import as_count
from gridlayout.errors import LayoutError
from gridlayout.public import public
from gridlayout.sophon.chip import BM1684, Chip, as_chip
from gridlayout.sophon.strides import channels_per_npu, check_start, unit

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# Limit of the search: far more channels per NPU than fit in any chip.
MAX_CHANNELS = 2**16


@dataclass(frozen=True)
class Width:
    """A width W for a matrix, and its cost in bytes of each NPU.

    channels: ceil(columns / W), distributed over the NPUs in turn. row_bytes: bytes of one row.
    npu_bytes: bytes of all rows. npus: the NPUs of the chip.
    """

    width: int
    channels: int
    row_bytes: int
    npu_bytes: int
    npus: int

    def __str__(self) -> str:
        return (
            f"W={self.width}: {self.channels} channels on {min(self.channels, self.npus)} of "
            f"{self.npus} NPUs, {self.npu_bytes} B in each ({self.row_bytes} B per row); no W "
            "takes fewer bytes, and among those that take as few, with no more channels than NPUs, "
            "none uses more NPUs or divides the columns more evenly"
        )


@public
def best_width(
    rows: int, cols: int, dtype: DTypeLike, chip: Chip = BM1684, *, start: int = 0
) -> Width:
    """Return the width W for which a matrix takes the fewest bytes in each NPU.

    Among equal ones it prefers no more channels than NPUs, as the document suggests, then the most
    NPUs, then the smallest W. rows, cols: elements, >= 1. start: the linear address in bytes, as in
    `matrix`. The first row of channels has only the NPUs from the start NPU on.

    `LayoutError`: numbers that are not valid; an address that is not aligned; a matrix that starts
    at an NPU other than 0 and of which not one row fits.

    >>> from gridlayout import sophon
    >>> chip = sophon.Chip(npus=4, npu_bytes=1024, alignment=128)
    >>> best_width(2, 40, "float32", chip)
    Width(width=10, channels=4, row_bytes=128, npu_bytes=256, npus=4)
    >>> best_width(2, 40, "float32", chip, start=2 * 1024)  # W=10 would wrap around: 512 B
    Width(width=20, channels=2, row_bytes=128, npu_bytes=256, npus=4)
    """
    rows, cols = as_count(rows, "rows", least=1), as_count(cols, "cols", least=1)
    chip, bits = as_chip(chip), dtypes.bits(dtypes.as_dtype(dtype))
    start_npu, _ = chip.split(start)
    check_start(start, "aligned", chip, bits)
    multiple = unit(chip.alignment, bits)

    def cost(width: int) -> tuple[int, bool, int, int]:
        channels = -(-cols // width)
        units = channels_per_npu(start_npu, channels, chip.npus) * -(-width // multiple)
        return units, channels > chip.npus, -min(channels, chip.npus), width

    width = min(_widths(cols, chip, start_npu, multiple), key=cost)
    row_bytes = cost(width)[0] * multiple * bits // 8
    return Width(width, -(-cols // width), row_bytes, rows * row_bytes, chip.npus)


def _widths(cols: int, chip: Chip, start_npu: int, multiple: int) -> Iterator[int]:
    """The candidates for the best width: the smallest with k channels per NPU, and one more.

    With k channels per NPU, a row takes k * ceil(cols / (multiple * (k * npus - start NPU))) units
    of `multiple` elements. For start NPU 0, k = 1 is the minimum. Otherwise the search ends when k
    itself exceeds the fewest units so far.
    """
    yield -(-cols // chip.npus)  # the smallest with no more channels than NPUs
    fewest: int | None = None
    for k in range(1, MAX_CHANNELS + 1):
        width = -(-cols // (k * chip.npus - start_npu))
        units = k * -(-width // multiple)
        fewest = units if fewest is None else min(fewest, units)
        yield width
        if start_npu == 0 or k + 1 > fewest:
            return
    raise LayoutError(
        f"a row of {cols} columns takes more than {MAX_CHANNELS} times the alignment of "
        f"{chip.alignment} B in each NPU for any width: start in NPU 0, or give fewer columns"
    )
