"""`Computing`: what one device of a machine takes to multiply and to go through memory: seconds."""

from __future__ import annotations

from math import prod

from gridlayout.arguments import Shape
from gridlayout.layouts.memory import Chip
from gridlayout.sharding.chips import Rates


class Computing:
    """What one device does by itself: a chip, or a core of one where `mesh` ends with its cores."""

    chip: Chip
    mesh: Shape | None
    rates: Rates | None

    def work_seconds(self, flops: float = 0, nbytes: float = 0, elements: float = 0) -> float:
        """Seconds of products, of passes over memory, and of results that take longer than these.

        Nothing where no rates are known.
        """
        if self.rates is None:
            return 0.0
        computed = elements / self.rates.elementwise if elements and self.rates.elementwise else 0.0
        return flops / self.rates.flops + nbytes / self.rates.memory + computed

    def computing(
        self, flops: float, nbytes: float, transposed: float = 0, packs: bool = True
    ) -> dict[str, float]:
        """Seconds of one op on one device by its limit: `products` or `memory`, the other 0.

        flops: operations of its products. nbytes: bytes of its memory that it goes through, of a
        core L1: at the same time, or before where the device packs operands and packs is true.
        transposed: bytes of operands that a product transposes first.

        >>> import gridlayout as gl
        >>> gl.Machine("n150").by_core.computing(2 * 32**3, 3 * 4096)
        {'products': 0.0, 'memory': 9.6e-08}
        """
        multiplied, passed = self.work_seconds(flops), self.work_seconds(nbytes=nbytes)
        if self.rates is None or not flops:
            return {"products": 0.0, "memory": passed}
        if self.rates.transposed:
            passed += transposed / self.rates.transposed
        total = max(multiplied, passed)
        if packs:
            total = self.rates.start + (multiplied + passed if self.rates.packs else total)
        if multiplied >= passed:
            return {"products": total, "memory": 0.0}
        return {"products": 0.0, "memory": total}

    def slicing(self, nbytes: float) -> float:
        """Seconds of a device to take so many bytes out of an array that it has.

        What packs operands copies the part first; others read it where it is.
        """
        return self.work_seconds(nbytes=2 * nbytes) if self.rates and self.rates.packs else 0.0

    def streaming(self, whole: float, own: float) -> float:
        """Seconds of a core to read bytes of the chip's DRAM, or to write there.

        whole: bytes that all its cores read, what several of them need once, as kernels do that
        read and multicast. own: bytes that one core gets, over the network on the chip.

        >>> import gridlayout as gl
        >>> core = gl.Machine("n150").by_core
        >>> f"{core.streaming(2**20, 2**14) * 1e6:.2f} {core.streaming(2**20, 2**20) * 1e6:.2f} us"
        '3.93 37.45 us'
        """
        if self.rates is None or not self.has_cores:
            return 0.0
        return max(whole / self._cores / self.rates.dram, own / self.rates.noc)

    def writing(self, whole: float, own: float, parts: int) -> float:
        """Seconds of a core to write bytes to the chip's DRAM that it has own bytes of.

        parts: how many cores have different ones; of those that have copies each writes its share,
        at least a tile of 4,096 bytes.

        >>> import gridlayout as gl
        >>> core = gl.Machine("n150").by_core
        >>> f"{core.writing(2**20, 2**20, 1) * 1e6:.2f} {core.writing(2**20, 2**14, 64) * 1e6:.2f}"
        '3.93 3.93'
        """
        copies = max(self._cores // max(parts, 1), 1)
        return self.streaming(whole, max(own / copies, min(own, 4096)))

    @property
    def _cores(self) -> int:
        """Devices that are cores of one chip."""
        return prod(self.mesh[len(self.mesh) - len(self.chip.grid) :]) if self.mesh else 1

    def padded(self, block: Shape) -> Shape:
        """A device's block of an array in whole tiles that the chip computes with.

        >>> import gridlayout as gl
        >>> gl.Machine("n150").padded((3, 40, 7)), gl.Machine("v5e 4x4").padded((3, 40, 7))
        ((3, 64, 32), (3, 40, 7))
        """
        if not self.chip.tiles or len(block) < 2:
            return block
        tile = self.chip.tiles[0]
        last = (-(-n // t) * t for n, t in zip(block[-2:], tile, strict=True))
        return (*block[:-2], *last)

    @property
    def has_cores(self) -> bool:
        """Whether its devices are cores of chips, with DRAM behind them (`by_core`)."""
        return self.rates is not None and self.rates.dram > 0

    @property
    def device_capacity(self) -> int | None:
        """Bytes that a device can hold in all its memories; None where the chip states none."""
        each, cores = self.chip.capacity, prod(self.chip.grid)
        known = [each[space] * n for space, n in (("l1", cores), ("dram", 1)) if space in each]
        return sum(known) if known else None
