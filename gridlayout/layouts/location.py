"""`Location`: the place of one element in a core's buffer."""

from __future__ import annotations

from dataclasses import dataclass, field

from gridlayout.arguments import Shape


@dataclass(frozen=True)
class Location:
    """The place of one element: its core, and the index, offset and byte in the core's buffer.

    core: grid coordinates. local: the index in the core's buffer. offset: its position there, in
    elements. byte: the byte at which it starts. bit: the bit of this byte; it is nonzero only for
    elements that share a byte, the first of which is in the low bits. `byte` and `bit` are
    None for elements of a block format (bfp_bf8 ...), because these share exponents.

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
