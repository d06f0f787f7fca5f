"""Sophon chips: NPUs, their local memory and banks, and linear addresses.

A local address counts through the NPUs: `A = npu * npu_bytes + offset` (Sophon, "Address of
Tensor in Local Memory"). Everything here is in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gridlayout.arguments import as_count, as_int
from gridlayout.errors import LayoutError
from gridlayout.public import public


@public
@dataclass(frozen=True, repr=False)
class Chip:
    """A chip of `npus` NPUs with `npu_bytes` bytes of local memory each.

    alignment: addresses and features of the aligned layouts are multiples of this many bytes.
    banks: the number of equal banks of one NPU's memory, or None if unknown. name: the name of the
    chip, or None.

    `LayoutError` unless alignment and banks divide npu_bytes.

    >>> Chip(npus=4, npu_bytes=1024, alignment=128).split(1472)  # the document's address B
    (1, 448)
    """

    npus: int
    npu_bytes: int
    alignment: int
    banks: int | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        for field in ("npus", "npu_bytes", "alignment", "banks"):
            value = getattr(self, field)
            if not (field == "banks" and value is None):
                object.__setattr__(self, field, as_count(value, field, least=1))
        if not (self.name is None or isinstance(self.name, str)):
            raise LayoutError(f"name {self.name!r} must be a str")
        for field, value in (("alignment", self.alignment), ("banks", self.banks)):
            if value is not None and self.npu_bytes % value:
                raise LayoutError(f"{field} {value} must divide npu_bytes {self.npu_bytes}")

    def __repr__(self) -> str:
        if self.name is not None and CHIPS.get(self.name) == self:
            return f"sophon.{self.name}"
        extras = (("banks", self.banks), ("name", self.name))
        more = "".join(f", {field}={value!r}" for field, value in extras if value is not None)
        return (
            f"sophon.Chip(npus={self.npus}, npu_bytes={self.npu_bytes}, "
            f"alignment={self.alignment}{more})"
        )

    def split(self, address: int) -> tuple[int, int]:
        """Return a linear address as (NPU, byte in its memory); `LayoutError` outside the chip."""
        address, end = as_count(address, "address"), self.npus * self.npu_bytes
        if address >= end:
            raise LayoutError(
                f"address {address} is outside local memory: {self.npus} NPUs of "
                f"{self.npu_bytes} B end at {end - 1}"
            )
        return divmod(address, self.npu_bytes)

    def shift(self, address: int, channels: int, c_stride_bytes: int) -> int:
        """Return the address of the same element `channels` channels later, or earlier if < 0.

        c_stride_bytes: bytes from a channel to the next one in the same NPU. `LayoutError` for a
        result outside the NPU's memory.

        >>> BM1684.split(BM1684.shift(62 * BM1684.npu_bytes, 3, c_stride_bytes=256))
        (1, 256)
        """
        npu, offset = self.split(address)
        rows, npu = divmod(npu + as_int(channels, "channels"), self.npus)
        offset += rows * as_count(c_stride_bytes, "c_stride_bytes")
        if not 0 <= offset < self.npu_bytes:
            raise LayoutError(
                f"{channels} channels from address {address} reach byte {offset} of NPU {npu}, "
                f"outside its {self.npu_bytes} B"
            )
        return npu * self.npu_bytes + offset

    @property
    def bank_bytes(self) -> int:
        """Bytes per bank; `LayoutError` for a chip with an unknown number of banks."""
        if self.banks is None:
            raise LayoutError(f"{self} states no banks: give Chip(..., banks=)")
        return self.npu_bytes // self.banks

    def bank(self, address: int) -> int:
        """The bank of a linear local address.

        >>> BM1684X.bank(826432)
        2
        """
        return self.split(address)[1] // self.bank_bytes

    def bank_range(self, address: int, size: int) -> tuple[int, int]:
        """The first and the last bank that contain bytes of `size` bytes at `address`.

        `LayoutError` if the bytes extend past the end of the NPU's memory.

        >>> BM1684X.bank_range(16000, 1000)
        (0, 1)
        """
        (_, offset), bank_bytes = self.split(address), self.bank_bytes
        last = offset + as_count(size, "size", least=1) - 1
        if last >= self.npu_bytes:
            raise LayoutError(
                f"{size} B from byte {offset} end at {last + 1}, past the {self.npu_bytes} B of "
                "an NPU: move the start or shrink the tensor"
            )
        return offset // bank_bytes, last // bank_bytes


# Local memory of the chips, as stated by their backends and firmware. BM1684's alignment is the
# "128-byte aligned layout" of Sophon's document.
BM1684 = Chip(npus=64, npu_bytes=512 * 1024, alignment=128, banks=8, name="BM1684")
BM1684X = Chip(npus=64, npu_bytes=256 * 1024, alignment=64, banks=16, name="BM1684X")
BM1688 = Chip(npus=32, npu_bytes=128 * 1024, alignment=16, banks=16, name="BM1688")
BM1690 = Chip(npus=64, npu_bytes=256 * 1024, alignment=64, banks=16, name="BM1690")
CHIPS = {str(chip.name): chip for chip in (BM1684, BM1684X, BM1688, BM1690)}


@dataclass(frozen=True)
class LocalFit:
    """Whether a tensor fits in the local memory of an NPU; `bool` of it is True if it does.

    offset: the start of the tensor in each NPU. size: its allocation. capacity: the NPU's memory.
    All are in bytes.

    >>> print(LocalFit(offset=640, size=512, capacity=1024))
    does not fit: 512 B from byte 640 of the 1024 B of each NPU, -128 B free
    """

    offset: int
    size: int
    capacity: int

    @property
    def needed(self) -> int:
        """Bytes from the start of the NPU's memory to the end of the allocation."""
        return self.offset + self.size

    @property
    def free(self) -> int:
        """Bytes left after the allocation, negative if it does not fit."""
        return self.capacity - self.needed

    def __bool__(self) -> bool:
        return self.free >= 0

    def __str__(self) -> str:
        room = f"the {self.capacity} B of each NPU, {self.free} B free"
        return (
            f"{'fits' if self else 'does not fit'}: {self.size} B from byte {self.offset} of {room}"
        )

    __repr__ = __str__


def as_chip(chip: Any) -> Chip:
    """Return `chip` if it is a `Chip`; otherwise raise `LayoutError`.

    >>> as_chip(BM1684)
    sophon.BM1684
    """
    if not isinstance(chip, Chip):
        raise LayoutError(f"chip {chip!r} must be a sophon.Chip, such as sophon.BM1684")
    return chip
