"""`Workspace`: the buffers that a step holds on a device between its operands and results."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Chain:
    """Buffers made one after another, each from the one before it, as XLA allocates them.

    nbytes: bytes of the last one. made: for each stage, the bytes and the number of its buffers.
    copies: whether the first buffer is a copy of the operand, which XLA may fuse into the operand's
    producer; otherwise the operand is read in place. is_view: whether the last stage is a pending
    view (reordered, or a slice) that has no buffer yet. is_apart: whether each buffer of a stage is
    made from one buffer of the stage before. keeps_first: whether the first buffer is read together
    with the last.
    """

    nbytes: int
    made: list[tuple[int, int]] = field(default_factory=list)
    copies: bool = False
    is_view: bool = False
    is_apart: bool = False
    keeps_first: bool = False

    def view(self, nbytes: int | None = None) -> Chain:
        """Add a pending view: another order, or a slice of `nbytes`."""
        self.nbytes, self.is_view = self.nbytes if nbytes is None else nbytes, True
        return self

    def make(self) -> Chain:
        """Give the pending view a buffer of its own."""
        self.copies = self.copies or not self.made
        self.made.append((self.nbytes, 1))
        self.is_view = False
        return self

    def materialize(self) -> Chain:
        """Give the pending view a buffer, if there is one."""
        return self.make() if self.is_view else self

    def gather(self, n: int, rows: int) -> Chain:
        """Add an all-gather from `n` devices along a dim with `rows` positions before it.

        XLA gathers along the major dim: any other dim is transposed to it before, and back after.
        """
        if self.is_view or rows > 1:
            self.make()
        self.nbytes *= n
        self.made.append((self.nbytes, 1))
        self.is_view = rows > 1
        return self

    def exchange(self, n: int) -> Chain:
        """Add an all-to-all: the part is cut into one piece per device, sent, and joined again."""
        self.copies = self.copies or not self.made
        self.made += [(self.nbytes, n), (self.nbytes, n)]
        return self.view()


@dataclass(frozen=True)
class Workspace:
    """The buffers that a step holds between its operands and its result, in bytes.

    operands: the buffers made from each operand. together: buffers made after these, one after
    another, from all of them. is_view: whether the result is a view of the last buffer, which XLA
    materializes in its consumer if it can. is_written: whether the first of `together` is allocated
    at the start, and what is made from the operands is written into it.
    """

    operands: tuple[Chain, ...] = ()
    together: tuple[int, ...] = ()
    is_view: bool = False
    is_written: bool = False

    @property
    def most(self) -> int:
        """The largest number of bytes held at a time, where buffers are made in sequence."""
        found, held = [0], 0
        for chain in self.operands:
            made = [nbytes for nbytes, _ in chain.made]
            found += [held + sum(pair) for pair in zip((0, *made), made, strict=False)]
            held += made[-1] if made else 0
            held += made[0] if chain.keeps_first else 0
            found.append(held)
        for nbytes in self.together:
            found.append(held + nbytes)
            held = nbytes
        return max(found)


def of_chain(chain: Chain) -> Workspace:
    """Return the workspace of a step on one operand, which makes the chain's buffers."""
    return Workspace((chain,), (), chain.is_view)
