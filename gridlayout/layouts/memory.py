"""Memory: the four memory spaces of tt-mlir, a chip's capacities, and whether a layout fits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

from gridlayout.arguments import Shape, as_shape, one_of, positive, shown
from gridlayout.errors import LayoutError
from gridlayout.layouts.reader import dims_text
from gridlayout.public import public

# tt-mlir, "Memory Spaces": host memory (not device visible / device visible), DRAM local to the
# device, SRAM on each core. The first two and DRAM are shared by all cores; L1 is per core.
MEMORY_SPACES = ("system", "mmio", "dram", "l1")
HOST_SPACES = ("system", "mmio")
ON_CHIP = ("l1", "dram")  # of each core, and of all cores
# The registers of tt-mlir's chips, and TTNN's room for recorded commands: no chip states a size.
_UNSTATED = ("dst", "trace")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
# The names of these spaces in tt-mlir's document.
_NAMES = {"System": "system", "SystemMMIO": "mmio", "DeviceDRAM": "dram", "DeviceL1": "l1"}


def as_space(word: Any, known: Sequence[str] = ()) -> str:
    """Return the memory space of a name in MLIR, in tt-mlir's document, or of a chip's own.

    known: the only names that are taken; by default any word of letters, digits and `_`.
    `LayoutError` for another one.

    >>> as_space("DeviceL1"), as_space("dram"), as_space("scratchpad")
    ('l1', 'dram', 'scratchpad')
    """
    space = _NAMES.get(word, word) if isinstance(word, str) else word
    if known:
        return one_of(space, known, "memory_space")
    known_otherwise = {name.lower() for name in (*MEMORY_SPACES, *_NAMES)}
    if not is_word(space) or (space not in MEMORY_SPACES and space.lower() in known_otherwise):
        raise LayoutError(
            f"memory_space {shown(word)} is not one of {', '.join(MEMORY_SPACES)}, nor a word for "
            "another memory of a chip: up to 64 letters, digits and _, such as scratchpad"
        )
    return str(space)


def is_word(name: Any) -> bool:
    """Whether a chip's memory can be named so; XLA's names are no words, and registers no memory.

    >>> is_word("scratchpad"), is_word("memory 0"), is_word("dst")
    (True, False, False)
    """
    is_text = isinstance(name, str) and _WORD.fullmatch(name) is not None
    return is_text and name not in _UNSTATED


@public
@dataclass(frozen=True)
class Chip:
    """A chip's core grid and the usable bytes of its memory spaces.

    capacity: bytes by memory space; `capacity["l1"]` is per core, the others are per chip. A space
    that is left out has no known limit. tiles: the tile shapes, in elements, that the chip's ops
    support; if empty, they support any tile. banks: the number of equal parts of DRAM; a shard is
    in one bank, pages are distributed over all banks.

    A chip may have its own names for the memory of each core, which layouts call l1, and for the
    one that all cores share, which they call dram: `{"scratchpad": 2**20, "hbm": 2**34}`. shared:
    the name of the shared one. It has to be stated if both names are the chip's own; a single own
    name is otherwise that of the memory which has no other, and of each core's if both are free.
    Layouts may use the chip's names or the words l1 and dram, which mean the same; what
    fits, and how much, is printed in the chip's. `LayoutError` for more than one memory of a kind.

    >>> Chip("toy", (2, 2), {"l1": 1024}).capacity["l1"]
    1024
    >>> mine = Chip("mine", (2, 2), {"scratchpad": 1024, "hbm": 2**20}, shared="hbm")
    >>> print(mine.fit("l1", 512, 512))
    fits: 512 B of 1024 B scratchpad on each core, 512 B free
    """

    name: str
    grid: tuple[int, ...]
    capacity: Mapping[str, int] = field(default_factory=dict, hash=False)
    tiles: tuple[Shape, ...] = ()
    banks: int = 1
    shared: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise LayoutError(f"name {self.name!r} of a chip must be a str")
        object.__setattr__(self, "grid", positive(self.grid, "grid"))
        if not isinstance(self.capacity, Mapping):
            raise LayoutError(
                f"capacity {self.capacity!r} must be a dict of bytes by memory space, such as "
                '{"l1": 1024}'
            )
        for space, capacity in self.capacity.items():
            if not isinstance(space, str) or not space.isprintable() or not space.strip():
                raise LayoutError(f"name {space!r} of a memory must be a str that can be printed")
            as_shape((capacity,), f"capacity of {space},")
        _names_of(self.capacity, self.shared)
        if not isinstance(self.tiles, Sequence) or not all(
            isinstance(tile, Sequence) for tile in self.tiles
        ):
            raise LayoutError(f"tiles {self.tiles!r} must be a sequence of shapes, as ((32, 32),)")
        object.__setattr__(self, "tiles", tuple(positive(tile, "tile") for tile in self.tiles))
        positive((self.banks,), "banks")

    def called(self, space: str) -> str:
        """Return the chip's name for what layouts call l1 or dram; another space as it is.

        >>> Chip("mine", (2, 2), {"scratchpad": 1024}).called("l1")
        'scratchpad'
        """
        return _names_of(self.capacity, self.shared).get(space, space)

    def titled(self, space: str) -> str:
        """Return the name of a memory in a text: the chip's own, else L1 or DRAM."""
        name = self.called(space)
        return name.upper() if name in ON_CHIP else name

    def space_of(self, name: Any) -> Any:
        """Return what all layouts call the memory that this chip calls `name`: l1 or dram.

        Names of XLA's memories, which are no words, are returned as they are. `LayoutError` for a
        word that is no memory of this chip.

        >>> Chip("mine", (2, 2), {"scratchpad": 1024}).space_of("scratchpad")
        'l1'
        """
        own = {self.called(space): space for space in ON_CHIP}
        if not isinstance(name, str) or name in own:
            return own.get(name, name)
        if is_word(name) and name not in MEMORY_SPACES:
            raise LayoutError(
                f"memory_space {name!r} is not one of those of {self.name}, {', '.join(own)}, nor "
                f"{' or '.join(HOST_SPACES)} of the host: give one of these, or a gl.Chip whose "
                f"capacity states {name}"
            )
        return name

    def has(self, name: str | None) -> bool:
        """Whether `name` is a memory of this chip, by its own name too, or of its host.

        >>> mine = Chip("mine", (2, 2), {"scratchpad": 1024})
        >>> [mine.has(name) for name in ("scratchpad", "l1", "system", "hbm")]
        [True, True, True, False]
        """
        return name in (*MEMORY_SPACES, *map(self.called, ON_CHIP))

    def room(self, space: str) -> int | None:
        """Return the bytes of a space, per core for l1, in total for others; None if not stated.

        >>> Chip("mine", (2, 2), {"scratchpad": 1024}).room("l1")
        1024
        """
        return self.capacity.get(self.called(space))

    def places(self, grid: Sequence[int]) -> bool:
        """Whether the chip has cores for a virtual grid.

        Either the grid itself fits, or a rectangle of cores with the same number of cores fits.

        >>> toy = Chip("toy", (8, 8))
        >>> [toy.places(grid) for grid in ((8, 8), (1, 64), (3, 17), (320, 16))]
        [True, True, False, False]
        """
        cores = prod(self.grid)
        if len(grid) == len(self.grid) and all(
            n <= m for n, m in zip(grid, self.grid, strict=True)
        ):
            return True
        count, width = prod(grid), self.grid[-1]
        rows = range(max(-(-count // width), 1), min(cores // width, count) + 1)
        return count <= cores and any(not count % n for n in rows)

    def fit(
        self,
        space: str,
        per_core: int,
        needed: int,
        tile: Shape | None = None,
        grid: Shape | None = None,
    ) -> Fit:
        """Whether `needed` bytes fit a memory space, and whether ops support the tile.

        grid: the layout's grid if the chip has no cores for it, otherwise None.

        >>> str(Chip("toy", (2, 2), {"l1": 1024}, ((32, 32),)).fit("l1", 512, 512, (4, 4)))
        'fits: 512 B of 1024 B l1 on each core, 512 B free; no op of toy computes with 4x4 tiles'
        """
        unusable = None if tile is None or not self.tiles or tile in self.tiles else tile
        room, named = self.room(space), self.called(space)
        return Fit(space, per_core, needed, room, unusable, self.name, grid, self.grid, named)


def _names_of(capacity: Mapping[str, int], shared: str | None) -> dict[str, str]:
    """Return a chip's own names, by what layouts call the memory; `LayoutError` if unclear."""
    own = [name for name in capacity if name not in MEMORY_SPACES]
    if shared is not None and (
        not isinstance(shared, str) or shared not in capacity or shared in ("l1", *HOST_SPACES)
    ):
        others = [name for name in capacity if name not in ("l1", *HOST_SPACES)]
        fix = f"name one of {', '.join(others)}" if others else "state its bytes in capacity"
        raise LayoutError(f"shared {shown(shared)} is no memory that all cores share: {fix}")
    free = [space for space in ON_CHIP if space not in capacity]
    if len(own) > len(free) or (shared in own and "dram" not in free):
        raise LayoutError(
            f"the memories {', '.join(capacity)} are too many: a chip has one memory of each core "
            "and one that all cores share, apart from the host's system and mmio; leave out the "
            "others"
        )
    if len(own) == 2 and shared is None:
        raise LayoutError(
            f"{own[0]} and {own[1]}: state the one that all cores share, shared={own[1]!r} or "
            f"shared={own[0]!r}; the other one is each core's"
        )
    names = {} if shared is None else {"dram": shared}
    rest = [space for space in free if space not in names]
    return names | dict(zip(rest, [name for name in own if name != shared], strict=False))


# The tiles that Tenstorrent's ops support; tiles of fewer than 16 rows are for the host.
COMPUTE_TILES: tuple[Shape, ...] = ((32, 32), (16, 32), (32, 16), (16, 16))
# Usable bytes of a board: SRAM above the region of the firmware and the kernels' arguments
# (l1_unreserved_base), and every DRAM bank without the reserved regions at its two ends.
CHIPS = {
    "wormhole": Chip(
        "Wormhole",
        (8, 8),
        {"l1": 1499136 - 103840, "dram": 12 * (1073118784 - 2968640)},
        COMPUTE_TILES,
        12,
    ),
    "blackhole": Chip(
        "Blackhole",
        (10, 13),
        {"l1": 1572864 - 111104, "dram": 8 * (4276523520 - 5848704)},
        COMPUTE_TILES,
        8,
    ),
}


def as_chip(chip: Any) -> Chip:
    """Return a chip, or the chip of that name in any case; `LayoutError` for anything else.

    >>> as_chip("wormhole").grid
    (8, 8)
    """
    found = CHIPS.get(chip.lower()) if isinstance(chip, str) else chip
    if not isinstance(found, Chip):
        raise LayoutError(f"chip {shown(chip)} is neither a gl.Chip nor one of {', '.join(CHIPS)}")
    return found


@dataclass(frozen=True)
class Fit:
    """Whether a layout fits a chip's memory space; `bool` of it is True if it does.

    All sizes are bytes. needed: the bytes that the memory must provide (`Held.needed`), per core
    for l1, in total for a shared space. unusable_tile: the layout's tile if no op of the chip
    supports it (tt-mlir, "FPU/Noc compatible"); this does not affect `bool`, which is about memory
    only. grid: the layout's grid if it does not fit the chip's grid `chip_grid`; then `bool` is
    False. space is what layouts call the memory, memory its name on the chip.
    """

    space: str
    bytes_per_core: int
    needed: int
    capacity: int | None
    unusable_tile: Shape | None = None
    chip: str = ""
    grid: Shape | None = None
    chip_grid: Shape = ()
    memory: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", self.memory or self.space)

    @property
    def free(self) -> int | None:
        """Bytes left, negative if the layout does not fit; None without a stated capacity."""
        return None if self.capacity is None else self.capacity - self.needed

    def __bool__(self) -> bool:
        return self.grid is None and (self.free is None or self.free >= 0)

    def __str__(self) -> str:
        where = "on each core" if self.space == "l1" else "in total"
        tile = ""
        if self.unusable_tile is not None:
            tile = f"; no op of {self.chip} computes with {dims_text(self.unusable_tile)} tiles"
        lost = ""
        if self.grid is not None:
            lost = f"grid {dims_text(self.grid)} does not fit {dims_text(self.chip_grid)} cores; "
        if self.capacity is None:
            return f"{lost}{self.needed} B of {self.memory} {where}, no stated capacity{tile}"
        verdict = "fits" if self else "does not fit"
        room = f"{self.capacity} B {self.memory} {where}, {self.free} B free"
        return f"{verdict}: {lost}{self.needed} B of {room}{tile}"

    __repr__ = __str__


class Held(NamedTuple):
    """The memory that a layout takes: equal buffers, one per core, or interleaved pages.

    per_core: bytes of one buffer. pages: the number of interleaved pages, 0 if not interleaved.
    workers: the number of cores that hold pages, 0 for all. even: whether all buffers in DRAM
    together are spread evenly over the banks; otherwise each buffer or page is in one bank.
    """

    memory: str
    cores: int
    per_core: int
    pages: int = 0
    workers: int = 0
    even: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return self.cores * self.per_core

    def share(self, chip: Chip) -> int:
        """Bytes in the fullest core's L1 or the fullest DRAM bank; all bytes in other memories.

        >>> toy = Chip("toy", (2, 2), {"dram": 1 << 20}, banks=4)
        >>> Held("dram", 1, 24576, pages=6).share(toy), Held("dram", 5, 512).share(toy)
        (8192, 1024)
        """
        memory = chip.space_of(self.memory)
        if memory not in ON_CHIP:
            return self.nbytes
        parts = prod(chip.grid) if memory == "l1" else chip.banks
        if self.pages:
            most = -(-self.pages // (self.workers or parts))  # pages of the fullest part
            return -(-self.per_core * most // self.pages)
        if memory == "l1":
            return self.per_core
        return -(-self.nbytes // parts) if self.even else self.per_core * -(-self.cores // parts)

    def needed(self, chip: Chip) -> int:
        """Bytes that a chip's memory must provide: per core in L1, in total elsewhere.

        Every DRAM bank counts as many bytes as the fullest one, unless `even`.

        >>> Held("dram", 5, 512).needed(Chip("toy", (2, 2), {"dram": 1 << 20}, banks=4))
        4096
        """
        memory = chip.space_of(self.memory)
        if memory == "dram" and not self.even:
            return self.share(chip) * chip.banks
        return self.share(chip) if memory == "l1" else self.nbytes


def size(n: int) -> str:
    """Return a number of bytes as text, in binary units.

    >>> size(512), size(4096), size(3 * 2**30)
    ('512 B', '4.0 KiB', '3.0 GiB')
    """
    if abs(n) < 1024:
        return f"{n} B"
    power = min((abs(n).bit_length() - 1) // 10, len(_UNITS))
    return f"{n / 1024**power:,.1f} {_UNITS[power - 1]}"


def number(n: int, noun: str) -> str:
    """Return a number and its noun, in the plural unless the number is 1.

    >>> number(1, "line"), number(2000, "line")
    ('1 line', '2,000 lines')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
