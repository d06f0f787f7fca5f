"""Rates of chips, each with its source; the links between chips; known machines.

The figures are those that programs reach, if somebody measured them; otherwise those that the
manufacturer states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import Any

from gridlayout.arguments import as_items, one_of, positive, shown
from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import CHIPS, Chip
from gridlayout.public import public
from gridlayout.sharding.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    PERMUTE,
    REDUCE_SCATTER,
)

KINDS = (ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, PERMUTE, REDUCE_SCATTER)

# The resources of a device: its links, its memory, and the units that compute.
LINKS, MEMORY, COMPUTE = RESOURCES = "links", "memory", "compute"

GB, TERA = 1e9, 1e12


def check_figure(value: Any, what: str, above: bool = True) -> float:
    """Return a finite number above 0; raise `LayoutError` for any other value.

    above: False if the number may also be 0.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not isfinite(value) or value < 0 or (above and value == 0):
        rule = "above 0" if above else "of at least 0"
        raise LayoutError(f"{what} {value!r} must be a finite number {rule}")
    return float(value)


def stated_overlap(overlap: Any) -> tuple[str, ...]:
    """Return the resources that run beside all others, in the order of `RESOURCES`.

    >>> stated_overlap(["memory", "links"])
    ('links', 'memory')
    """
    if isinstance(overlap, str):
        raise LayoutError(
            f"overlap {shown(overlap)} is a text: give a sequence of resources, such as "
            f"({overlap!r},), or () for none"
        )
    given = [one_of(each, RESOURCES, "overlap") for each in as_items(overlap, "overlap", "names")]
    return tuple(each for each in RESOURCES if each in given)


@public
@dataclass(frozen=True)
class Links:
    """The links between neighbours along a mesh axis.

    bandwidth: bytes per second over one link, in one direction. latency: seconds per hop. wrap:
    whether the last device has a link to the first (a ring); otherwise the axis is a line. start:
    seconds of a collective before the first hop. reduce_latency: additional seconds per hop if
    devices add what they receive before they send it on. pair_bandwidth: bytes per second in groups
    of two devices; 0 if equal to `bandwidth`. The published times of Wormhole show the last two
    (tt-metal, tech_reports/CCLs).

    >>> Links(12.5e9, latency=711e-9).wrap
    False
    """

    bandwidth: float
    latency: float = 0.0
    wrap: bool = False
    start: float = 0.0
    reduce_latency: float = 0.0
    pair_bandwidth: float = 0.0

    def __post_init__(self) -> None:
        check_figure(self.bandwidth, "bandwidth of links, in bytes per second,")
        check_figure(self.latency, "latency of links, in seconds per hop,", above=False)
        check_figure(self.start, "start of collectives, in seconds,", above=False)
        check_figure(self.reduce_latency, "reduce_latency, in seconds per hop,", above=False)
        check_figure(self.pair_bandwidth, "pair_bandwidth, in bytes per second,", above=False)
        if not isinstance(self.wrap, bool):
            raise LayoutError(f"wrap {self.wrap!r} of links must be True (a ring) or False (line)")


@dataclass(frozen=True)
class Figure:
    """The measured time of one kind of collective, in groups of one size.

    latency: seconds of a collective of few bytes. bandwidth: bytes that a device receives per
    second. wait: the most additional seconds after the devices have computed, because not all
    finish at the same time. between_hosts: whether the devices of a group had several hosts.
    """

    kind: str
    group_size: int
    latency: float
    bandwidth: float
    wait: float = 0.0
    between_hosts: bool = False

    def __post_init__(self) -> None:
        one_of(self.kind, KINDS, "kind")
        positive((self.group_size,), "group_size")
        check_figure(self.latency, f"latency of {self.kind}, in seconds,", above=False)
        check_figure(self.bandwidth, f"bandwidth of {self.kind}, in bytes per second,")
        check_figure(self.wait, f"wait of {self.kind}, in seconds,", above=False)
        if not isinstance(self.between_hosts, bool):
            raise LayoutError(f"between_hosts {self.between_hosts!r} must be True or False")


@public
@dataclass(frozen=True)
class Rates:
    """The rates of one device.

    flops: floating-point operations per second of matrix products, of all cores together.
    flops_by_dtype: the same for operands of other element types, by their names, such as
    `{"float32": 494e12}`. tile_cycles: cycles of a core for a product of 32x32 tiles, by the math
    fidelity that an op of a compiled program states. clock: cycles per second. elementwise: results
    of elementwise operations per second, of all cores together. memory: bytes per second that the
    cores read from, or write to, the memory of the device. noc: bytes per second that a core
    receives from another core of the device. hop: seconds between neighbouring cores. start:
    seconds of a product before it multiplies. packs: whether a product packs its operands first, as
    on a CPU; otherwise it reads them while it multiplies. transposed: bytes per second of operands
    that a product transposes; 0 if that takes no additional time. dram: if the device is a core,
    whose memory is its L1: bytes per second that it reads from, or writes to, DRAM. sources: the
    source of each figure.
    """

    flops: float
    memory: float
    elementwise: float = 0.0
    clock: float = 0.0
    tile_cycles: Mapping[str, int] = field(default_factory=dict, hash=False)
    noc: float = 0.0
    hop: float = 0.0
    start: float = 0.0
    packs: bool = False
    transposed: float = 0.0
    dram: float = 0.0
    flops_by_dtype: Mapping[str, float] = field(default_factory=dict, hash=False)
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("flops", "memory"):
            check_figure(getattr(self, name), f"{name} per second")
        for name in ("elementwise", "clock", "noc", "hop", "start", "transposed", "dram"):
            check_figure(getattr(self, name), name, above=False)
        if not isinstance(self.packs, bool):
            raise LayoutError(f"packs {self.packs!r} must be True or False")
        for name in ("tile_cycles", "flops_by_dtype", "sources"):
            if not isinstance(getattr(self, name), Mapping):
                raise LayoutError(f"{name} {getattr(self, name)!r} must be a dict")
        for fidelity, cycles in self.tile_cycles.items():
            check_figure(cycles, f"tile_cycles of {fidelity}")
        for dtype, flops in self.flops_by_dtype.items():
            check_figure(flops, f"flops_by_dtype of {dtype}, per second,")
        known = {each.name for each in fields(self)}
        if unknown := self.sources.keys() - known:
            raise LayoutError(f"sources name {sorted(unknown)}, which are no figures of gl.Rates")

    def peak(self, dtype: Any = None) -> float:
        """Return the operations per second of products of an element type; None for `flops`.

        >>> rates = Rates(989e12, 3350e9, flops_by_dtype={"float32": 494e12})
        >>> rates.peak("float32"), rates.peak("bfloat16")
        (494000000000000.0, 989000000000000.0)
        """
        if not self.flops_by_dtype or dtype is None:
            return self.flops
        return self.flops_by_dtype.get(getattr(dtype, "name", str(dtype)), self.flops)


@dataclass(frozen=True)
class Board:
    """A known machine: its chip, the rates of a chip, its mesh and its links.

    overlap: the resources that work beside all others.
    """

    chip: Chip
    rates: Rates
    mesh: tuple[int, ...]
    links: tuple[Links, ...]
    links_source: str
    overlap_source: str
    overlap: tuple[str, ...] = (LINKS,)


_CYCLES = {"LoFi": 16, "HiFi2": 32, "HiFi3": 48, "HiFi4": 64}
_GEMM = "tt-metal, tech_reports/GEMM_FLOPS: cycles of a 32x32x32 product by fidelity"
# flops of a product in HiFi4: 64 cores at 1 GHz, 2 * 32**3 operations in 64 cycles.
_WORMHOLE = Rates(
    flops=64 * 1e9 * 2 * 32**3 / 64,
    memory=267 * GB,
    elementwise=64 * 0.064 * TERA,
    clock=1e9,
    tile_cycles=_CYCLES,
    noc=28 * GB,
    hop=9e-9,
    sources={
        "flops": _GEMM,
        "tile_cycles": _GEMM,
        "memory": "tt-metal, tech_reports/Saturating_DRAM_bandwidth: 267 of 288 GB/s reached",
        "elementwise": "tt-isa-documentation, MatrixUnit: 0.064 TFLOP/s per core (SFPU)",
        "clock": "tt-mlir, TTNNCollectPerfMetrics.cpp",
        "noc": "tt-metal, ideal performance of the NoC: 28 B per cycle, unicast",
        "hop": "tt-isa-documentation, NoC: 9 cycles per hop",
    },
)


def _blackhole(cores: int) -> Rates:
    """Return the rates of a Blackhole chip. cores: the number that programs can use."""
    return Rates(
        flops=cores * 1.35e9 * 2 * 32**3 / 64,
        memory=500 * GB,
        elementwise=cores * 0.064 * 1.35 * TERA,
        clock=1.35e9,
        tile_cycles=_CYCLES,
        noc=60 * 1.35 * GB,
        hop=11 / 1.35e9,
        sources={
            "flops": _GEMM,
            "tile_cycles": _GEMM,
            "memory": "tt-metal, tech_reports/Saturating_DRAM_bandwidth: 500 of 512 GB/s reached",
            "elementwise": "Wormhole's 0.064 TFLOP/s per core at 1 GHz, at this clock",
            "clock": "tt-mlir, TTNNCollectPerfMetrics.cpp",
            "noc": "tt-metal, ideal performance of the NoC: 60 B per cycle, unicast",
            "hop": "tt-npe: about 11 cycles per hop",
        },
    )


# Measured on a Wormhole LoudBox, with one link between neighbours, and on a Blackhole Galaxy, with
# two: half of their bandwidth.
_ETHERNET = Links(
    10.75 * GB, latency=2.38e-6, start=3e-6, reduce_latency=2.23e-6, pair_bandwidth=7.12 * GB
)
_BLACKHOLE_LINKS = Links(
    21.2 * GB, latency=1.45e-6, start=2.32e-6, reduce_latency=2.2e-6, pair_bandwidth=19.1 * GB
)
_FIT = (
    "tt-metal, tech_reports/CCLs/results: fitted to times of collectives on lines of 2, 4 and 8 "
    "chips, by least squares of relative errors (benchmarks/published.py)"
)
_BOOK = "scaling-book (jax-ml), chapters on TPUs, sharding and GPUs"
_PER_ELEMENT = "assumed: one result per bfloat16 element that memory delivers"


def _tpu(name: str, flops: float, memory: float, size: float) -> tuple[Chip, Rates]:
    chip = Chip(name, (1, 1), {"dram": int(size)})
    sources = {
        "flops": f"{_BOOK}: bfloat16; XLA rounds float32 operands to it by default",
        "flops_by_dtype": f"{_BOOK}: int8, twice as fast",
        "memory": _BOOK,
        "elementwise": _PER_ELEMENT,
    }
    eight = dict.fromkeys(("int8", "uint8"), 2 * flops)
    return chip, Rates(flops, memory, memory / 2, flops_by_dtype=eight, sources=sources)


_V5E = _tpu("TPU v5e", 197 * TERA, 810 * GB, 16 * GB)
_V5P = _tpu("TPU v5p", 459 * TERA, 2800 * GB, 96 * GB)
_H100 = (
    Chip("H100", (1, 1), {"dram": int(80 * GB)}),
    Rates(
        *(989 * TERA, 3350 * GB, 3350 * GB / 2),
        flops_by_dtype={
            **{"float32": 494 * TERA, "float64": 67 * TERA},
            **dict.fromkeys(("int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 1979 * TERA),
        },
        sources={
            "flops": f"{_BOOK}: bfloat16, dense",
            "flops_by_dtype": "NVIDIA, H100 data sheet, SXM: tensor cores, dense; float32 as TF32, "
            "XLA's default",
            "memory": _BOOK,
            "elementwise": _PER_ELEMENT,
        },
    ),
)
_N150, _ALL_CORES = CHIPS["wormhole"], CHIPS["blackhole"]
# The system descriptor of a p150 has 10x11 cores; benchmarks of tt-metal also use all of them.
_P150 = replace(_ALL_CORES, grid=(10, 11))
_ICI_V5E, _ICI_V5P = Links(45 * GB, latency=1e-6), Links(90 * GB, latency=1e-6, wrap=True)
# All devices of a node are connected through a switch: one hop, with the bandwidth of NCCL.
_NVLINK = Links(320 * GB, latency=1e-6, start=5e-6)
# The links between hosts, per device. The scaling book states 25 GB/s per TPU host of four chips
# between slices, and 25 to 50 GB/s per GPU between nodes, of which this is the lower bound. The
# latencies are assumptions.
BETWEEN_SLICES = Links(25 * GB / 4, latency=1e-5)
BETWEEN_NODES = Links(25 * GB, latency=5e-6, start=5e-6)

# Why links work beside the rest. On TPUs and GPUs, XLA starts a collective and computes what does
# not depend on it until the result is needed. On Tenstorrent's chips it is what the hardware can
# do: TTNN runs one op after another, and moves data beside computing only within an op.
_TPU_ASYNC = f"{_BOOK}, rooflines: computation overlaps communication"
_GPU_ASYNC = (
    "JAX, GPU performance tips: XLA's latency hiding scheduler runs collectives beside compute"
)
_MOVERS = (
    "tt-metal, METALIUM_GUIDE: two of a core's RISC-V processors move data over the NoCs, beside "
    "the three that compute"
)

BOARDS: dict[str, Board] = {
    "n150": Board(_N150, _WORMHOLE, (1,), (_ETHERNET,), _FIT, _MOVERS),
    "n300": Board(_N150, _WORMHOLE, (1, 2), (_ETHERNET,), _FIT, _MOVERS),
    "wormhole 2x4": Board(_N150, _WORMHOLE, (2, 4), (_ETHERNET,), _FIT, _MOVERS),
    "wormhole 4x8": Board(_N150, _WORMHOLE, (4, 8), (_ETHERNET,), _FIT, _MOVERS),
    "p150": Board(_P150, _blackhole(110), (1,), (_BLACKHOLE_LINKS,), _FIT, _MOVERS),
    "p150 10x13": Board(_ALL_CORES, _blackhole(130), (1,), (_BLACKHOLE_LINKS,), _FIT, _MOVERS),
    "v5e 4x4": Board(
        *_V5E, (4, 4), (_ICI_V5E,), f"{_BOOK}: no wrap below 16 along an axis", _TPU_ASYNC
    ),
    "v5e 16x16": Board(
        *_V5E, (16, 16), (Links(45 * GB, latency=1e-6, wrap=True),), _BOOK, _TPU_ASYNC
    ),
    "v5p 4x4x4": Board(*_V5P, (4, 4, 4), (_ICI_V5P,), _BOOK, _TPU_ASYNC),
    "h100": Board(*_H100, (8,), (_NVLINK,), f"{_BOOK}: NCCL in the node", _GPU_ASYNC),
}


def board_of(chip: Chip | str) -> tuple[Chip, Board | None]:
    """Return a chip that a user passes or names, and the known machine if the name is that of one.

    Raises `LayoutError` for an unknown name, and for other types than `gl.Chip`.

    >>> board_of("wormhole")[1] is None, board_of("N300")[1].mesh
    (True, (1, 2))
    """
    if isinstance(chip, Chip):
        return chip, None
    if not isinstance(chip, str):
        raise LayoutError(f"chip {chip!r} must be a gl.Chip, or one of {', '.join(BOARDS)}")
    name = chip.lower()
    if name in CHIPS:
        return CHIPS[name], None
    if name not in BOARDS:
        raise LayoutError(
            f"machine {chip!r} is unknown: give one of {', '.join((*BOARDS, *CHIPS))}, or "
            "a gl.Chip with links= and rates="
        )
    return BOARDS[name].chip, BOARDS[name]


def known_board(chip: Chip) -> Board | None:
    """Return a known machine with this chip; None for other chips."""
    return next((board for board in BOARDS.values() if board.chip == chip), None)
