"""`Costs`: what one program's layouts cost, in a few numbers that two programs can be compared by.

Bytes are one chip's. An op reads each of its operands once, whole, and writes its result once;
padding is read and written too. What a kernel does beyond that, such as a product that reads an
operand again, or the buffers that it needs, no dump says: it is in no number here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum

from gridlayout.layouts.layout import Layout
from gridlayout.layouts.memory import MEMORY_SPACES, Chip, Fit
from gridlayout.layouts.padding import elements_per_core
from gridlayout.tenstorrent.allocation import Allocation

Described = Layout | Allocation


@dataclass(frozen=True)
class Costs:
    """Bytes of one chip, and counts. None for what is not known.

    ops: those that make values. relayouts: those that only bring a value to another layout.
    dram_bytes, l1_bytes: what ops read and write there. relayout_bytes: elements that relayouts
    inside L1 bring to another core; all of them where pages are dealt to banks. core_bytes: what
    all ops bring to other cores, products too, which no dump says. chip_bytes: what collectives
    bring from other chips. values: those that own memory; held_bytes: of all of them
    together, data_bytes: of their elements alone. l1_peak: the most that the fullest core holds at
    a time; dram_peak: a chip; memory_peak: a device whose memory has no name, of HLO. cores: those
    that hold elements of a result, on average over results_known of results.
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
        """Bytes of all values beyond their elements."""
        return max(self.held_bytes - self.data_bytes, 0)

    @property
    def padding_share(self) -> float:
        """The share of the bytes of all values that is padding, 0 to 1."""
        return self.padding_bytes / self.held_bytes if self.held_bytes else 0.0


def cores_of(layout: Described) -> int | None:
    """How many cores hold elements; None where pages are dealt, which no core computes by.

    >>> from gridlayout import GridLayout
    >>> cores_of(GridLayout((5, 4), grid=(4, 1)))
    3
    """
    if layout.memory != "l1" or layout.is_interleaved or not isinstance(layout, Layout):
        return None
    held = elements_per_core(layout)
    return None if held is None else int((held > 0).sum())


def mean_of(cores: Iterable[tuple[int | None, int]]) -> tuple[float | None, int, int]:
    """Of numbers that may be None, and how often each is there: the mean, how many known, of all.

    >>> mean_of([(4, 1), (None, 5), (1, 2)])
    (2.0, 3, 8)
    """
    found = list(cores)
    known = [(n, times) for n, times in found if n is not None]
    count = sum(times for _, times in known)
    total = fsum(n * times for n, times in known)
    return (total / count if count else None), count, sum(times for _, times in found)


def fit_of(layout: Described, chip: Chip) -> Fit | None:
    """Whether the layout fits its memory space on `chip`; None where it names none of the four.

    >>> from gridlayout import tenstorrent
    >>> toy = Chip("toy", (2, 2), {"l1": 8192})
    >>> print(fit_of(tenstorrent.ttnn((96, 64), "float32", tile=(32, 32)), toy))
    fits: 8192 B of 8192 B l1 on each core, 0 B free
    """
    return layout.fits(chip) if layout.memory in MEMORY_SPACES else None
