"""`Location`: where one element of a layout lives."""

from __future__ import annotations

from dataclasses import dataclass, field

from gridlayout.arguments import Shape


@dataclass(frozen=True)
class Location:
    """Where one element lives: `offset` in elements and `byte` in bytes, inside the core's buffer.

    bit: the lowest bit of that byte that is the element's: not 0 only for elements that share a
    byte, of which the first lies in the low bits. `byte` and `bit` are None for elements of a block
    format (bfp_bf8 ...), which share their exponents.

    >>> from gridlayout import GridLayout
    >>> GridLayout((2, 3), "int4").locate((1, 0))
    Location(core=(0, 0), local=(1, 0), offset=3, byte=1, bit=4)
    """

    core: Shape
    local: Shape
    offset: int
    byte: int | None
    bit: int | None = field(default=0, compare=False)  # follows from the offset

    def __repr__(self) -> str:
        place = f"core={self.core}, local={self.local}, offset={self.offset}, byte={self.byte}"
        return f"Location({place}{f', bit={self.bit}' if self.bit else ''})"
