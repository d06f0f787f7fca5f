"""`in_rounds`: a product in several rounds, whose messages run beside multiplications.

One operand is cut along a free dim. In each round a device gathers a piece of it, multiplies that,
and reduces the partial sums; meanwhile it gathers the next piece and reduces the one before. On a
machine whose links work beside the rest, a round takes as long as its messages or as its
multiplication, whichever is longer (S. Wang and others, "Overlap Communication with Dependent
Computation via Decomposition in Large Deep Learning Models", ASPLOS 2023). Each message is a
collective of a part of the bytes, so it uses the same links as one of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.dtypes import sum_dtype
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.blocks import as_blocks, block_shape
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.requested import Requested
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.workspace import Workspace
from gridlayout.sharding.collectives import Collectives, Turn, all_gather
from gridlayout.sharding.device_grid import DeviceGrid

Multiply = Callable[[jax.Array, jax.Array], jax.Array]


@dataclass(frozen=True)
class Gathered:
    """How an operand is gathered: along one dim, over mesh axes.

    before: a device's block, of which it gathers `count`, the size of the group.
    """

    before: Shape
    dim: int
    axes: Axes
    count: int


@dataclass(frozen=True)
class Rounds:
    """A product in rounds.

    cut: the number of the operand that is cut, along its dim `dim`, which is dim `to` of the
    result. gathered: how it is gathered; None if a device has all it needs. whole: a device's block
    of each operand as multiplied. made: its block of the result before partial sums are reduced.
    """

    op: Op
    requested: Requested
    device: DeviceGrid
    cut: int
    dim: int
    to: int
    gathered: Gathered | None
    whole: tuple[Shape, Shape]
    made: Shape

    @property
    def is_strided(self) -> bool:
        """Whether a piece has rows of every device of a group: it is cut along the gathered dim."""
        return self.gathered is not None and self.gathered.dim == self.dim

    @property
    def size(self) -> int:
        """The positions of a device along the dim that is cut."""
        block = self.whole[self.cut] if self.gathered is None else self.gathered.before
        return block[self.dim]

    @cached_property
    def scattered(self) -> tuple[Axes, tuple[int, ...]]:
        """The mesh axes over which sums are scattered, and the number of parts of each dim."""
        made, out = (x.placement.axes for x in (self.requested.made, self.requested.out))
        more = [after[len(before) :] for before, after in zip(made, out, strict=True)]
        return tuple(a for axes in more for a in axes), tuple(map(self.device.count, more))

    def sends(self, rounds: int) -> Collectives:
        """Return what devices send in so many rounds, and when: the next piece comes early."""
        made, requested = Collectives(self.device), self.requested
        wide = sum_dtype(self.op.out.dtype)
        with made.repeated(rounds):
            if self.gathered is not None:
                x = self.op.ins[self.cut]
                nbytes = dtypes.nbytes(self.gathered.before, x.dtype) // rounds
                made.all_gather(self.gathered.axes, nbytes, self.gathered.dim)
            gathers = len(made.found)
            nbytes = dtypes.nbytes(self.made, wide) // rounds
            if requested.scattered:
                later = any(n > 1 for n in self.scattered[1][1:])
                made.reduce_scatter(requested.summed, nbytes, int(later))
            elif requested.summed:
                made.all_reduce(requested.summed, nbytes)
        gather = [Turn(0, self.cut)] * gathers
        reduce = [Turn(gathers)] * (len(made.found) - gathers)
        made.turns = [*gather]
        for k in range(rounds):
            made.turns += [*(gather if k < rounds - 1 else ()), Turn(), *reduce]
        return made

    def seconds(self, rounds: int) -> float:
        """Return the seconds with messages beside multiplications."""
        machine = self.device.machine
        flops = 2 * prod(self.made) * self._depth
        computed = machine.seconds(flops=flops / rounds, dtype=self.op.ins[0].dtype)
        sent = sum(map(machine.once, self.sends(rounds).found))
        return computed + sent + (rounds - 1) * max(computed, sent)

    @property
    def _depth(self) -> int:
        (contracted, _), _ = self.op.params["dimension_numbers"]
        return prod(self.whole[0][d] for d in contracted)

    def best(self, most: int) -> int:
        """Return the number of rounds, up to `most`, that takes the least time; 1 for no rounds."""
        tried = [k for k in range(1, most + 1) if self.size % k == 0]
        return min(tried, key=lambda k: (self.seconds(k), k))

    def workspace(self, rounds: int) -> Workspace:
        """Return what a device holds: two pieces of the operand and of the sums, and the result."""
        whole, x = self.whole[self.cut], self.op.ins[self.cut]
        piece = 0 if self.gathered is None else dtypes.nbytes(whole, x.dtype) // rounds
        sums = dtypes.nbytes(self.made, sum_dtype(self.op.out.dtype)) // rounds
        return Workspace((), (2 * (piece + sums) + self.requested.out.device_bytes,))

    def run(self, rounds: int, multiply: Multiply, *operands: jax.Array) -> jax.Array:
        """Return a device's part of the result; inside `shard_map`."""
        blocks = list(self.whole)
        if self.gathered is not None:
            blocks[self.cut] = self.gathered.before
        parts = [x.reshape(block) for x, block in zip(operands, blocks, strict=True)]
        size = self.size // rounds
        made = []
        for k in range(rounds):
            piece = lax.slice_in_dim(parts[self.cut], k * size, (k + 1) * size, axis=self.dim)
            if self.gathered is not None:
                piece = all_gather(piece, self.gathered.axes, self.gathered.dim)
            pair = (piece, parts[1]) if self.cut == 0 else (parts[0], piece)
            made.append(self._reduced(multiply(*pair)).astype(self.op.out.dtype))
        if not self.is_strided:
            return lax.concatenate(made, self.to)
        assert self.gathered is not None
        apart = [
            x.reshape(*x.shape[: self.to], self.gathered.count, size, *x.shape[self.to + 1 :])
            for x in made
        ]
        out = lax.concatenate(apart, self.to + 1)
        return out.reshape(*out.shape[: self.to], -1, *out.shape[self.to + 2 :])

    def _reduced(self, x: jax.Array) -> jax.Array:
        """Return the sum of a piece over devices, or this device's part of it."""
        if not self.requested.summed:
            return x
        if not self.requested.scattered:
            return jnp.asarray(lax.psum(x, self.requested.summed))
        axes, parts = self.scattered
        block = tuple(n // count for n, count in zip(x.shape, parts, strict=True))
        x = x.reshape(*(n for pair in zip(parts, block, strict=True) for n in pair))
        x = x.transpose([*range(0, x.ndim, 2), *range(1, x.ndim, 2)])
        x = x.reshape(prod(parts), prod(block))
        return lax.psum_scatter(x, axes, scatter_dimension=0, tiled=True).reshape(block)


def in_rounds(
    b: Builder, op: Op, requested: Requested, operands: Sequence[Value], made: Shape, most: int
) -> tuple[Rounds, int] | None:
    """Return a product in the number of rounds that takes the least time; None for one round.

    made: a device's block of the result before partial sums are reduced. most: the most rounds.
    """
    known = list(_all(b, op, requested, operands, made))
    if not known:
        return None
    found = min(known, key=lambda each: each.seconds(each.best(most)))
    rounds = found.best(most)
    return (found, rounds) if rounds > 1 else None


def _all(
    b: Builder, op: Op, requested: Requested, operands: Sequence[Value], made: Shape
) -> Iterator[Rounds]:
    """Yield the ways to cut an operand along a free dim."""
    contracted, batch = op.params["dimension_numbers"]
    specs = [spec for spec in requested.ins if spec is not None]
    whole = block_shape(specs[0]), block_shape(specs[1])
    order = op.permutation or tuple(range(len(made)))
    inside = [
        block[d] * b.device.count(spec.placement.axes[d]) == spec.shape[d]
        for block, spec, dims in zip(whole, specs, contracted, strict=True)
        for d in dims
    ]
    if not all(inside) or len(specs) != 2:  # padding is multiplied too, and has to be 0
        return
    at = len(batch[0])
    for k in (0, 1):
        gathered = _gathered(b, operands[k], k, requested) if k in requested.apart else None
        free = [d for d in range(len(whole[k])) if d not in (*contracted[k], *batch[k])]
        for n, d in enumerate(free):
            to = order.index(at + n)
            found = Rounds(op, requested, b.device, k, d, to, gathered, whole, made)
            moves = gathered is not None or bool(requested.summed)
            if moves and made[to] == whole[k][d] and _is_even(found):
                yield found
        at += len(free)


def _is_even(found: Rounds) -> bool:
    """Return whether sums are scattered in equal parts, along other dims than the one cut."""
    if not found.requested.scattered:
        return True
    pairs = zip(found.made, found.scattered[1], strict=True)
    return found.scattered[1][found.to] == 1 and not any(n % count for n, count in pairs)


def _gathered(b: Builder, value: Value, k: int, requested: Requested) -> Gathered | None:
    """Return how an operand comes to be as requested, if that is a gather along one dim."""
    old, new = as_blocks(value.spec, b.device), requested.ins[k]
    if old is None or new is None:
        return None
    before, after = block_shape(old), block_shape(new)
    axes = zip(old.placement.axes, new.placement.axes, strict=True)
    more = [(d, have[len(need) :]) for d, (have, need) in enumerate(axes) if have != need]
    if len(more) != 1:
        return None
    dim, over = more[0]
    count = b.device.count(over)
    same = old.placement.axes[dim] == (*new.placement.axes[dim], *over) and over
    grown = tuple(n * (count if d == dim else 1) for d, n in enumerate(before))
    return Gathered(before, dim, over, count) if same and grown == after else None
