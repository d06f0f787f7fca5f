"""`Workspace`: what a movement or a kernel holds on a device between operands and results."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Chain:
    """Buffers made one after another, each of the one before, as XLA makes them.

    nbytes: of the last. made: bytes of each, and how many buffers these are. copies: whether the
    first is a copy of the operand, which XLA makes together with what the operand is made of; else
    the operand is read where it lies. is_seen: whether the last is seen in another order or in
    part, and not made like that yet.
    is_apart: whether of several buffers each is made of its own one before.
    is_first_kept: whether the first is read with the last.
    """

    nbytes: int
    made: list[tuple[int, int]] = field(default_factory=list)
    copies: bool = False
    is_seen: bool = False
    is_apart: bool = False
    is_first_kept: bool = False

    def see(self, nbytes: int | None = None) -> Chain:
        """In another order, or a part of `nbytes`."""
        self.nbytes, self.is_seen = self.nbytes if nbytes is None else nbytes, True
        return self

    def make(self) -> Chain:
        """As it is seen, in a buffer of its own."""
        self.copies = self.copies or not self.made
        self.made.append((self.nbytes, 1))
        self.is_seen = False
        return self

    def settle(self) -> Chain:
        """In a buffer as it is seen, if it is not."""
        return self.make() if self.is_seen else self

    def gather(self, n: int, rows: int) -> Chain:
        """All-gathered from `n` devices along a dim with `rows` positions before it.

        XLA gathers along the major dim: another one is brought there before, and is back after.
        """
        if self.is_seen or rows > 1:
            self.make()
        self.nbytes *= n
        self.made.append((self.nbytes, 1))
        self.is_seen = rows > 1
        return self

    def exchange(self, n: int) -> Chain:
        """All-to-all: cut in a piece a device, which are sent, and seen as one again."""
        self.copies = self.copies or not self.made
        self.made += [(self.nbytes, n), (self.nbytes, n)]
        return self.see()


@dataclass(frozen=True)
class Workspace:
    """What a step holds on the way, in bytes.

    operands: the buffers made of each operand. together: then those made one after another of all.
    is_seen: whether the result is the last of them, seen in another order: XLA makes it where it is
    read, if it can. is_written: whether the first of `together` is there from the start, and what
    is made of the operands is written into it.
    """

    operands: tuple[Chain, ...] = ()
    together: tuple[int, ...] = ()
    is_seen: bool = False
    is_written: bool = False

    @property
    def most(self) -> int:
        """The most that is held at a time, where one buffer is made after the other."""
        found, held = [0], 0
        for chain in self.operands:
            made = [nbytes for nbytes, _ in chain.made]
            found += [held + sum(pair) for pair in zip((0, *made), made, strict=False)]
            held += made[-1] if made else 0
            held += made[0] if chain.is_first_kept else 0
            found.append(held)
        for nbytes in self.together:
            found.append(held + nbytes)
            held = nbytes
        return max(found)


def of_moves(chain: Chain) -> Workspace:
    """A step that does to its one operand what the chain says."""
    return Workspace((chain,), (), chain.is_seen)
