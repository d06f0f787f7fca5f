"""`Elements`: an array whose content processes compare, by digests of all blocks or a sample."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np

# Largest data in bytes that is compared by a cryptographic digest; largest that is compared fully.
MOST_BYTES, MOST_READ = 16 * 2**20, 2**30
# Bytes of a block.
_BLOCK = 2**16


def digest_of(data: Any) -> bytes:
    """Return the SHA-256 digest of data, 32 bytes."""
    return hashlib.sha256(data).digest()


class Compared(Protocol):
    """What processes compare unit by unit."""

    @property
    def how(self) -> str:
        """How it is compared, in words."""

    def __len__(self) -> int: ...

    def prefix(self, count: int | None) -> bytes:
        """Return the digest of the first `count` units, or of all."""

    def unit(self, number: int) -> str:
        """Return a unit as text."""


class Elements:
    """An array whose content is compared with that of other processes.

    It is compared by SHA-256 digests of blocks of 64 KiB. exact: whether this is done for any size.
    If not, an array of more than 16 MiB is compared by CRCs of its blocks, which are computed at
    gigabytes per second; of an array of more than 1 GiB, 16,384 evenly spaced blocks are compared,
    including the first and the last.

    >>> found = Elements(np.arange(6, dtype=np.int32).reshape(2, 3))
    >>> len(found), found.unit(4)
    (6, 'data[1, 1] = 4 (bytes 04000000)')
    """

    def __init__(self, array: Any, exact: bool = True) -> None:
        self.array = np.asarray(array)
        self.is_fast = not exact and self.array.nbytes > MOST_BYTES
        self.per = max(_BLOCK // self.array.itemsize, 1)
        count, most = -(-self.array.size // self.per), MOST_READ // _BLOCK
        self.blocks: list[int] = list(range(count))
        if self.is_fast and count > most:
            self.blocks = np.linspace(0, count - 1, most).astype(np.int64).tolist()

    @property
    def how(self) -> str:
        """How the array is compared, in words."""
        if not self.is_fast:
            return "all"
        count = len(self.blocks)
        return "all by CRC" if count * _BLOCK < MOST_READ else f"{count:,} blocks by CRC"

    def __len__(self) -> int:
        if not self.blocks:
            return 0
        last = self.blocks[-1] * self.per
        return (len(self.blocks) - 1) * self.per + min(self.per, self.array.size - last)

    @cached_property
    def _digests(self) -> list[bytes]:
        return [self._digest(self._bytes(k)) for k in range(len(self.blocks))]

    def _digest(self, data: Any) -> bytes:
        return zlib.crc32(data).to_bytes(4, "little") if self.is_fast else digest_of(data)

    def _bytes(self, number: int, count: int | None = None) -> Any:
        """Return the bytes of a compared block, or of its first `count` elements."""
        start = self.blocks[number] * self.per
        stop = min(start + (self.per if count is None else count), self.array.size)
        if self.array.flags.c_contiguous:
            return self.array.reshape(-1)[start:stop].view(np.uint8)
        return self.array.flat[start:stop].view(np.uint8)

    def prefix(self, count: int | None) -> bytes:
        """Return the digest of the first `count` compared elements, row-major, or of all."""
        if count is None:
            return digest_of(b"".join(self._digests))
        whole, rest = divmod(count, self.per)
        last = self._digest(self._bytes(whole, rest)) if rest else b""
        return digest_of(b"".join(self._digests[:whole]) + last)

    def unit(self, number: int) -> str:
        """Return index, value and bytes of a compared element, as text."""
        block, rest = divmod(number, self.per)
        place = self.blocks[block] * self.per + rest
        index = tuple(int(i) for i in np.unravel_index(place, self.array.shape))
        element = self.array[index]
        return f"data{list(index)} = {element} (bytes {element.tobytes().hex()})"


class Several:
    """Arrays with names, whose contents are compared one after another.

    >>> found = Several({"x": np.zeros(2, np.int8), "lr": np.float32(0.5)})
    >>> len(found), found.unit(2)
    (3, 'lr: data[] = 0.5 (bytes 0000003f)')
    """

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.parts = {name: Elements(array, exact=False) for name, array in arrays.items()}

    @property
    def how(self) -> str:
        """How the arrays are compared, in words."""
        return ", ".join(f"{name}: {each.how}" for name, each in self.parts.items())

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    def prefix(self, count: int | None) -> bytes:
        """Return the digest of the first `count` compared elements of all arrays, or of all."""
        found = b""
        for each in self.parts.values():
            part = None if count is None else min(count, len(each))
            found += each.prefix(part)
            count = None if count is None or part is None else count - part
        return digest_of(found)

    def unit(self, number: int) -> str:
        """Return the name of an array, and the element, as text."""
        for name, each in self.parts.items():
            if number < len(each):
                return f"{name}: {each.unit(number)}"
            number -= len(each)
        return "no more"
