"""`Computing`: the seconds of products and of memory access on one device of a machine."""

from __future__ import annotations

from math import prod
from typing import Any

from gridlayout.arguments import Shape
from gridlayout.errors import LayoutError
from gridlayout.layouts.buffers import Buffers
from gridlayout.layouts.memory import ON_CHIP, Chip
from gridlayout.sharding.machines.chips import RESOURCES, Rates


class Computing:
    """The computation of one device: a chip, or a core if the last axes of `mesh` are cores."""

    chip: Chip
    mesh: Shape | None
    rates: Rates | None
    overlap: tuple[str, ...]

    @property
    def lanes(self) -> dict[str, str]:
        """The lane of each resource: those of one lane work one after another.

        Resources of different lanes work at the same time. Those of `overlap` have a lane of their
        own; the others share one, which has the name of the last of them.

        >>> import gridlayout as gl
        >>> gl.Machine("v5e 4x4").lanes
        {'links': 'links', 'memory': 'compute', 'compute': 'compute'}
        >>> set(gl.Machine("v5e 4x4", overlap=()).lanes.values())
        {'compute'}
        """
        shared = [each for each in RESOURCES if each not in self.overlap]
        return {each: shared[-1] if each in shared else each for each in RESOURCES}

    def places(self, layout: Buffers) -> bool:
        """Whether a layout fits on one chip: its cores and memory suffice for one shard per core.

        This is `layout.can_be_on(chip)`, which limits the proposals of `gl.explain(..., plan=True)`
        too.

        >>> import gridlayout as gl
        >>> grids = (1, 64), (13, 5), (65, 1)
        >>> [gl.Machine("n150").places(gl.GridLayout((512, 64), grid=grid)) for grid in grids]
        [True, False, False]
        """
        if not isinstance(layout, Buffers):
            raise LayoutError(f"layout {layout!r} must be a gl.Layout")
        return layout.can_be_on(self.chip)

    def work_seconds(
        self, flops: float = 0, nbytes: float = 0, elements: float = 0, dtype: Any = None
    ) -> float:
        """Return the seconds of products, memory access and elementwise functions, in sequence.

        flops: the floating-point operations of products. nbytes: the bytes read or written.
        elements: the number of results of elementwise functions. dtype: of the products' operands,
        None for any. 0 if no rates are known.
        """
        if self.rates is None:
            return 0.0
        multiplied = flops / self.rates.peak(dtype) if flops else 0.0
        computed = elements / self.rates.elementwise if elements and self.rates.elementwise else 0.0
        return multiplied + nbytes / self.rates.memory + computed

    def computing(
        self,
        flops: float,
        nbytes: float,
        transposed: float = 0,
        packs: bool = True,
        dtype: Any = None,
        pieces: int = 0,
    ) -> dict[str, float]:
        """Return the seconds of one op on one device, under the name of what limits it.

        The result has the keys `products` and `memory`; one value is 0. flops: the floating-point
        operations. nbytes: the bytes of memory (of a core: L1) that are read or written, during
        the product, or before it if the device packs operands and `packs` is true. transposed: the
        bytes of operands that a product transposes first. dtype: of the operands, None for any.
        pieces: of the windows of a convolution, which a device that packs operands copies: each one
        takes as long as two elementwise functions.

        >>> import gridlayout as gl
        >>> gl.Machine("n150").by_core.computing(2 * 32**3, 3 * 4096)
        {'products': 0.0, 'memory': 9.6e-08}
        """
        passed = self.work_seconds(nbytes=nbytes)
        if self.rates is None or not flops:
            return {"products": 0.0, "memory": passed}
        multiplied = self.work_seconds(flops, dtype=dtype)
        if self.rates.transposed:
            passed += transposed / self.rates.transposed
        if self.rates.packs:
            passed += self.work_seconds(elements=2 * pieces)
        total = max(multiplied, passed)
        if packs:
            total = self.rates.start + (multiplied + passed if self.rates.packs else total)
        if multiplied >= passed:
            return {"products": total, "memory": 0.0}
        return {"products": 0.0, "memory": total}

    def slicing(self, nbytes: float) -> float:
        """Return the seconds of a device to slice bytes from its array.

        A device that packs operands copies the slice first; others read it in place.
        """
        return self.work_seconds(nbytes=2 * nbytes) if self.rates and self.rates.packs else 0.0

    def streaming(self, whole: float, own: float) -> float:
        """Return the seconds of a core to read from, or write to, the DRAM of the chip.

        whole: the bytes that all cores of the chip read together; bytes that several cores need
        count once, as kernels read and multicast them. own: the bytes that one core receives over
        the network of the chip.

        >>> import gridlayout as gl
        >>> core = gl.Machine("n150").by_core
        >>> f"{core.streaming(2**20, 2**14) * 1e6:.2f} {core.streaming(2**20, 2**20) * 1e6:.2f} us"
        '3.93 37.45 us'
        """
        if self.rates is None or not self.has_cores:
            return 0.0
        return max(whole / self._cores / self.rates.dram, own / self.rates.noc)

    def writing(self, whole: float, own: float, parts: int) -> float:
        """Return the seconds of a core to write an array to the DRAM of the chip.

        whole: the bytes of the array on the chip. own: the bytes that the core has. parts: the
        number of cores with different bytes; each of those with copies of the same bytes writes an
        equal share, but at least a tile of 4,096 bytes.

        >>> import gridlayout as gl
        >>> core = gl.Machine("n150").by_core
        >>> f"{core.writing(2**20, 2**20, 1) * 1e6:.2f} {core.writing(2**20, 2**14, 64) * 1e6:.2f}"
        '3.93 3.93'
        """
        copies = max(self._cores // max(parts, 1), 1)
        return self.streaming(whole, max(own / copies, min(own, 4096)))

    @property
    def _cores(self) -> int:
        """The number of devices that are cores of one chip."""
        return prod(self.mesh[len(self.mesh) - len(self.chip.grid) :]) if self.mesh else 1

    def padded(self, block: Shape) -> Shape:
        """Return the shape of a device's block, padded to whole tiles of the chip.

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
        """Whether the devices are cores of chips that share the DRAM of their chip (`by_core`)."""
        return self.rates is not None and self.rates.dram > 0

    @property
    def device_capacity(self) -> int | None:
        """The bytes that a device can hold in all its memories; None if the chip states none."""
        own, shared = map(self.chip.room, ON_CHIP)
        known = [*([] if own is None else [own * prod(self.chip.grid)])]
        known += [] if shared is None else [shared]
        return sum(known) if known else None
