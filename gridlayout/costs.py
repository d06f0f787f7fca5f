"""`Costs`: the bytes and counts by which the layouts of two programs are compared.

All bytes are per chip. An op reads each operand once in full and writes its result once, padding
included. A kernel may need more, such as workspace or a second pass over an operand of a matrix
product. Dumps do not state this, so no number here includes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum

from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import Chip, Fit
from gridlayout.layouts.padding import elements_per_core
from gridlayout.tenstorrent.allocation import Allocation

Described = Layout | Allocation


@dataclass(frozen=True)
class Costs:
    """The bytes and counts of one program on one chip; None for an unknown number.

    ops: ops that compute values. relayouts: ops that only change a value's layout.
    dram_bytes, l1_bytes: bytes that ops read and write in DRAM and in L1. relayout_bytes: bytes
    that relayouts inside L1 send to another core; all bytes where pages are interleaved over banks.
    core_bytes: bytes that all ops, matrix products included, send to other cores; unknown for
    dumps. chip_bytes: bytes that collectives receive from other chips. values: values that own
    memory. held_bytes: bytes of all their buffers. data_bytes: bytes of their elements alone.
    l1_peak: the most bytes that the fullest core holds at a time. dram_peak: the same for a
    chip's DRAM. memory_peak: the same for a device of an HLO program, whose memory has no name.
    cores: the number of cores that hold elements of a result, on average over `results_known` of
    `results` results.
    """

    ops: int | None = None
    relayouts: int | None = None
    dram_bytes: int | None = None
    l1_bytes: int | None = None
    relayout_bytes: int | None = None
    core_bytes: int | None = None
    chip_bytes: int | None = None
    values: int = 0
    held_bytes: int = 0
    data_bytes: int = 0
    l1_peak: int | None = None
    dram_peak: int | None = None
    memory_peak: int | None = None
    cores: float | None = None
    results_known: int = 0
    results: int = 0

    @property
    def padding_bytes(self) -> int:
        """Bytes of all values' buffers beyond their elements."""
        return max(self.held_bytes - self.data_bytes, 0)

    @property
    def padding_share(self) -> float:
        """The fraction of the bytes of all values that is padding, 0 to 1."""
        return self.padding_bytes / self.held_bytes if self.held_bytes else 0.0


def cores_of(layout: Described) -> int | None:
    """Return how many cores hold elements.

    Returns None unless the tensor is sharded in L1, and for tensors too large to count.

    >>> from gridlayout import GridLayout
    >>> cores_of(GridLayout((5, 4), grid=(4, 1)))
    3
    """
    if layout.memory != "l1" or layout.is_interleaved or not isinstance(layout, Layout):
        return None
    held = elements_per_core(layout)
    return None if held is None else int((held > 0).sum())


def mean_of(cores: Iterable[tuple[int | None, int]]) -> tuple[float | None, int, int]:
    """Return the mean of the known numbers, how many are known, and how many there are.

    cores: pairs of a number, or None where it is unknown, and how often it occurs.

    >>> mean_of([(4, 1), (None, 5), (1, 2)])
    (2.0, 3, 8)
    """
    found = list(cores)
    known = [(n, times) for n, times in found if n is not None]
    count = sum(times for _, times in known)
    total = fsum(n * times for n, times in known)
    return (total / count if count else None), count, sum(times for _, times in found)


def fit_of(layout: Described, chip: Chip) -> Fit | None:
    """Return whether the layout fits its memory space on `chip`.

    Returns None if its memory is none of the chip's, nor the host's.

    >>> from gridlayout import tenstorrent
    >>> toy = Chip("toy", (2, 2), {"l1": 8192})
    >>> print(fit_of(tenstorrent.ttnn((96, 64), "float32", tile=(32, 32)), toy))
    fits: 8192 B of 8192 B l1 on each core, 0 B free
    """
    return layout.fits(chip) if chip.has(layout.memory) else None
