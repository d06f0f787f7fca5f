"""The document (tt-mlir) read with loops: every logical index, plain ints, `divmod`.

This file judges the library, so it shares nothing with it: no affine maps, no steps, no NumPy
arithmetic. A collapse is either the intervals themselves or a table of terms; `text` writes the
latter as an affine map, for the constructor under test.
"""

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from math import prod


def ceil(a, b):
    whole, rest = divmod(a, b)
    return whole + (rest > 0)


def indices(shape):
    return itertools.product(*map(range, shape))


@dataclass(frozen=True)
class Term:
    """`scale * f(d)`, where f is the dim itself, or its quotient or remainder by `by`."""

    scale: int
    dim: int
    op: str = ""
    by: int = 1

    def value(self, index):
        i = index[self.dim]
        return self.scale * (
            i // self.by if self.op == "floordiv" else i % self.by if self.op else i
        )

    @property
    def text(self):
        operand = f"d{self.dim} {self.op} {self.by}" if self.op else f"d{self.dim}"
        return f"({operand}) * {self.scale}"


@dataclass(frozen=True)
class Sum:
    """One collapsed dim: the sum of its terms and an offset."""

    terms: tuple[Term, ...]
    offset: int = 0

    def value(self, index):
        return self.offset + sum(term.value(index) for term in self.terms)

    @property
    def dims(self):
        return {term.dim for term in self.terms if term.scale}

    @property
    def text(self):
        return " + ".join([*(term.text for term in self.terms), str(self.offset)])


def joined(shape, intervals, grid_rank):
    """The collapse of `intervals`: for each collapsed dim, the sum that joins its dims.

    "Dimension Collapsing": dims of an interval are joined row-major, the others stay. Fewer results
    than grid dims: zeros go in front where the tensor has too few dims ("Multi-Core" goldens), and
    otherwise the last dims stay and the joined ones go on top of them, as in the document's
    `(d0 * 96 + d1, d1, d2)`; only that one-interval case from dim 0 is read here.
    """
    rank = len(shape)
    spans = sorted((a % rank if a < 0 else a, b % rank if b < 0 else b) for a, b in intervals)
    spans = [(a, b) for a, b in spans if a < b]
    groups, at = [], 0
    for a, b in spans:
        groups += [[d] for d in range(at, a)] + [list(range(a, b))]
        at = b
    groups += [[d] for d in range(at, rank)]
    if len(groups) > grid_rank:
        return None
    if len(groups) < grid_rank <= rank:
        if len(spans) != 1 or spans[0][0] != 0:
            return None
        groups = [groups[0], *([d] for d in range(rank - grid_rank + 1, rank))]
    groups = [[]] * (grid_rank - len(groups)) + groups
    return tuple(
        Sum(tuple(Term(prod(shape[e] for e in group if e > d), d) for d in group))
        for group in groups
    )


@dataclass(frozen=True)
class Brute:
    """A layout of the document, evaluated index by index.

    more: positions of each dim that a stated shard has beyond what `ceilDiv` gives. row_bits: what
    a row of an untiled shard is padded to a multiple of.
    """

    shape: tuple[int, ...]
    grid: tuple[int, ...]
    sums: tuple[Sum, ...]
    tile: tuple[int, ...] | None = None
    face: tuple[int, ...] | None = None
    bits: int = field(default=32)
    more: tuple[int, ...] = ()
    row_bits: int = 1

    @property
    def text(self):
        """The collapse as an affine map."""
        dims = ", ".join(f"d{d}" for d in range(len(self.shape)))
        return f"({dims}) -> ({', '.join(s.text for s in self.sums)})"

    @cached_property
    def collapsed_shape(self):
        """Plug in the indices, add 1 to the largest ("Multi-Core"); dims of extent 0 leave none."""
        sizes = []
        for s in self.sums:
            box = [n if d in s.dims else 1 for d, n in enumerate(self.shape)]
            sizes.append(max((s.value(index) + 1 for index in indices(box)), default=0))
        return tuple(sizes)

    @cached_property
    def shard_shape(self):
        """ "The grid dims always `ceilDiv` the affine map results"; or more, where it is stated."""
        more = self.more or (0,) * len(self.grid)
        needed = map(ceil, self.collapsed_shape, self.grid)
        return tuple(n + m for n, m in zip(needed, more, strict=True))

    @cached_property
    def tile_counts(self):
        """ "Tile dims also always `ceilDiv` the resulting `memref` shape"."""
        counts = list(map(ceil, self.shard_shape, self._tile))
        while not self.tile and counts[-1] * self.bits % self.row_bits:
            counts[-1] += 1
        return tuple(counts)

    @property
    def _tile(self):
        tile = self.tile or ()
        return (1,) * (len(self.grid) - len(tile)) + tile

    @cached_property
    def physical_shape(self):
        """Cores, tiles, then faces if any, then the innermost block."""
        faces = tuple(map(ceil, self.tile, self.face)) if self.face else ()
        return self.grid + self.tile_counts + faces + (self.face or self.tile or ())

    @property
    def local_shape(self):
        return self.physical_shape[len(self.grid) :]

    def collapsed(self, index):
        return tuple(s.value(index) for s in self.sums)

    def physical(self, index):
        """Where a logical index lives, digit by digit."""
        cores, tiles, faces, inner = [], [], [], []
        untiled = len(self.grid) - len(self.tile or ())
        for k, value in enumerate(self.collapsed(index)):
            core, shard = divmod(value, self.shard_shape[k])
            count, rest = divmod(shard, self._tile[k])
            cores.append(core)
            tiles.append(count)
            if k >= untiled:
                if self.face:
                    block, rest = divmod(rest, self.face[k - untiled])
                    faces.append(block)
                inner.append(rest)
        return (*cores, *tiles, *faces, *inner)

    def offset(self, index):
        """Elements before it in its core's buffer, row-major: a count, not a stride formula."""
        offset = 0
        for i, n in zip(self.physical(index)[len(self.grid) :], self.local_shape, strict=True):
            offset = offset * n + i
        return offset

    @cached_property
    def holders(self):
        """For each physical index that holds data, the logical indices that it holds."""
        found = {}
        for index in indices(self.shape):
            found.setdefault(self.physical(index), []).append(index)
        return found

    @property
    def injective(self):
        return all(len(indices) == 1 for indices in self.holders.values())

    @property
    def nbytes(self):
        """Whole bytes a core, for every core of the grid."""
        return prod(self.grid) * ceil(prod(self.local_shape) * self.bits, 8)

    def padding_of_core(self, core):
        held = sum(physical[: len(self.grid)] == core for physical in self.holders)
        return prod(self.local_shape) - held

    def padding_along(self, axis):
        """In each core along `axis`, the positions of its tiles that no element projects onto."""
        values = {self.collapsed(index)[axis] for index in indices(self.shape)}
        size = self.tile_counts[axis] * self._tile[axis]
        shard = self.shard_shape[axis]
        return [
            size - sum(core * shard <= value < (core + 1) * shard for value in values)
            for core in range(self.grid[axis])
        ]
