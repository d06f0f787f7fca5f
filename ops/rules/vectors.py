"""Primitives along the only dim there is: each device has a block of it.

What moves elements, a slice or a concatenation, moves to each device the range that its block of
the result is made of, from the devices near it (`windows.py`). A scan is combined with the totals
of the blocks before; of top_k each device sends its best. Where another dim stays spread, the same
primitives run in place (`along.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gridlayout.affine.map import dim
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.layout import Layout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.flops import Rule, nothing, of_sort, per_operand
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Replicated, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.rules.along import resized, target_layout
from gridlayout.ops.rules.reductions import NEUTRAL
from gridlayout.ops.rules.windows import (
    Halo,
    Reach,
    Window,
    as_storage,
    blocks,
    local_blocks,
    of_results,
)
from gridlayout.sharding.collectives import Axes, all_gather, index_of

# -- moving elements -----------------------------------------------------------------------------

# How a block of a result is made: what a device needs of each operand (its number, and the reach
# for a block of so many elements), and the block of these parts and the positions in it.
Reads = Callable[[int], list[tuple[int, Reach]]]
Makes = Callable[..., jax.Array]


def _blockwise(
    b: Builder,
    op: Op,
    operands: Sequence[Value],
    results: Sequence[tuple[Reads, Makes]],
    fill: Value | None = None,
) -> list[Value]:
    """Each result by blocks, of the range of positions that a block is made of.

    fill: what is outside of the operands, 0 by default. Results lie as the first operand that lies
    on cores.
    """
    first = next(x for x in operands if x.layout is not None)
    line = _Line.of(b, first.layout, first.shape)
    entered = [b.on_cores(x, line.layout_of(x)) for x in operands]
    outs = [b.sharded(line.layout_of(aval)) for aval in op.outs]
    lengths = [line.block(out.layout) for out in outs]
    wanted = [
        [(i, line.halo(entered[i], reach)) for i, reach in reads(length)]
        for (reads, _), length in zip(results, lengths, strict=True)
    ]
    # Operands of which more than the neighbours' blocks is needed are gathered, once.
    whole = sorted({i for each in wanted for i, halo in each if halo.is_far})
    made = b.collectives()
    for i in whole:
        made.all_gather(line.axes, line.block(entered[i].layout) * operands[i].dtype.itemsize)
    for i, halo in (pair for each in wanted for pair in each if pair[0] not in whole):
        halo.collectives(made, operands[i].dtype.itemsize)

    def kernel(*parts: jax.Array) -> list[jax.Array]:
        outside = parts[len(entered)] if fill is not None else 0
        own = [line.elements(part) for part in parts[: len(entered)]]
        gathered = {i: all_gather(own[i], line.axes, 0) for i in whole}

        def read(i: int, halo: Halo) -> jax.Array:
            if i in whole:
                return halo.of_whole(gathered[i], 0, outside)
            return halo.run(own[i], 0, outside)

        found = []
        for (_, makes), each, out, length in zip(results, wanted, outs, lengths, strict=True):
            at = index_of(line.axes) * length + jnp.arange(length)
            found.append(line.part(makes(at, *(read(*pair) for pair in each)), out.local_shape))
        return found

    others = [] if fill is None else [b.replicated(fill)]
    done = b.run(kernel, [*entered, *others], outs, made)
    return [
        b.relayout(x, target_layout(b, out.layout, first, ()))
        for x, out in zip(done, outs, strict=True)
    ]


@dataclass(frozen=True)
class _Line:
    """Where a vector lies in untiled blocks, one after another along one grid dim.

    k: that dim. axes: the mesh axes along it, of `n` devices with so many `cores` each.
    """

    layout: GridLayout
    k: int
    axes: Axes
    n: int
    cores: int

    @classmethod
    def of(cls, b: Builder, layout: Layout | None, shape: tuple[int, ...]) -> _Line:
        """The layout itself, but for its tiles, if it divides the vector so."""
        own, k = None if layout is None else layout.grouped, 0
        line = blocks(layout, shape, {0: shape[0]}, "float32")
        if own is not None:
            held = [k for k, group in enumerate(own.groups) if group]
            if len(held) == 1 and own.linear.results[held[0]] == dim(0):
                plain = {"tile": None, "face": None, "tile_format": None, "row_alignment": None}
                line, k = own.replace(**plain, oob=None), held[0]
        placed = b.placement(line)
        return cls(line, k, placed.axes[k], b.device.count(placed.axes[k]), placed.per_device[k])

    def layout_of(self, x: Any) -> GridLayout:
        """The same of another vector."""
        return resized(self.layout, x.shape).with_dtype(x.dtype)

    def block(self, layout: Any) -> int:
        """Positions of one device."""
        return self.cores * int(layout.shard_shape[self.k])

    def halo(self, x: Value, reach: Reach) -> Halo:
        """What a device needs of a vector."""
        return Halo.of(self.axes, self.n, self.block(x.layout), x.shape[0], reach)

    def _is_inside(self, d: int) -> bool:
        return d % len(self.layout.grid) == self.k

    def elements(self, part: jax.Array) -> jax.Array:
        """A device's block as a vector."""
        # Cores that are not the first ones along other grid dims hold nothing, whatever is there.
        first = tuple(slice(None) if self._is_inside(d) else 0 for d in range(part.ndim))
        return part[first].reshape(-1)

    def part(self, block: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """A block as a device's part of its storage."""
        sizes = [n if self._is_inside(d) else 1 for d, n in enumerate(shape)]
        return jnp.broadcast_to(block.reshape(sizes), shape)


def _window(start: int, stride: int = 1, base: int = 1) -> Reads:
    """What a block of the result needs, whose element 0 is element `start` of the operand."""
    window = Window(1, stride, -start, 0, base)
    return lambda length: [(0, of_results(window, length))]


def _itself(_: Any, x: jax.Array) -> jax.Array:
    return x


def slice_(b: Builder, op: Op, value: Value) -> Any:
    """Every so many elements from one to another."""
    (start,), (stride,) = op.params["start_indices"], op.params["strides"] or (1,)
    return _blockwise(b, op, [value], [(_window(start, stride), lambda _, x: x[::stride])])


def split(b: Builder, op: Op, value: Value) -> Any:
    """Parts one after another."""
    starts = accumulate(op.params["sizes"], initial=0)
    parts = [(_window(start), _itself) for start, _ in zip(starts, op.outs, strict=False)]
    return _blockwise(b, op, [value], parts)


def pad(b: Builder, op: Op, value: Value, fill: Value) -> Any:
    """`fill` before, after and between the elements; negative amounts drop elements."""
    ((low, high, interior),) = op.params["padding_config"]
    if (low, high, interior) == (0, 0, 0) and value.layout is not None:
        return value
    return _blockwise(b, op, [value], [(_window(-low, 1, interior + 1), _itself)], fill)


def concatenate(b: Builder, op: Op, *values: Value) -> Any:
    """Vectors one after another."""
    starts = list(accumulate((x.shape[0] for x in values), initial=0))[:-1]

    def reads(length: int) -> list[tuple[int, Reach]]:
        windows = [_window(-start)(length)[0][1] for start in starts]
        return list(enumerate(windows))

    def joined(at: jax.Array, out: jax.Array, *others: jax.Array) -> jax.Array:
        for start, other in zip(starts[1:], others, strict=True):
            out = jnp.where(at < start, out, other)
        return out

    return _blockwise(b, op, values, [(reads, joined)])


def tile(b: Builder, op: Op, value: Value) -> Any:
    """The elements again and again."""
    extent = value.shape[0]
    whole = Reach(0, 0, extent, 1)
    return _blockwise(b, op, [value], [(lambda _: [(0, whole)], lambda at, x: x[at % extent])])


def rev(b: Builder, op: Op, value: Value) -> Any:
    """The elements backwards."""
    extent = value.shape[0]

    def reads(length: int) -> list[tuple[int, Reach]]:  # a block ends where it begins from behind
        return [(0, Reach(-length, extent - length, length, 1))]

    return _blockwise(b, op, [value], [(reads, lambda _, x: lax.rev(x, (0,)))])


# -- scans ---------------------------------------------------------------------------------------

# How the scans of two neighbours combine, and a reduction with the same neutral element.
COMBINED: dict[str, tuple[Callable[..., Any], str]] = {
    "cumsum": (lax.add, "reduce_sum"),
    "cumprod": (lax.mul, "reduce_prod"),
    "cummax": (lax.max, "reduce_max"),
    "cummin": (lax.min, "reduce_min"),
    "cumlogsumexp": (jnp.logaddexp, "reduce_max"),
}


def cumulative(b: Builder, op: Op, value: Value) -> Any:
    """Sums, products, extremes or log-sums of all elements up to each one, or from it on."""
    backward = op.params["reverse"]
    combine, reduction = COMBINED[op.name]
    neutral = NEUTRAL[reduction](value.dtype)
    # Padding lies behind all elements: a scan from the front does not meet it before them.
    x = _in_blocks(b, value, neutral if backward else None)
    placed = x.spec.placement  # type: ignore[union-attr]
    (axes,) = placed.axes
    count = b.device.count(axes)
    made = b.collectives().all_gather(axes, value.dtype.itemsize)

    def scan(part: jax.Array) -> list[jax.Array]:
        (own,) = op.bind(local_blocks(part))
        end = 0 if backward else own.size - 1
        if count > 1:
            totals = all_gather(own[end : end + 1], axes, 0)
            at, here = jnp.arange(count), index_of(axes)
            met = jnp.where(at > here if backward else at < here, totals, neutral)
            (carried,) = op.bind(met.astype(own.dtype))
            own = combine(carried[0 if backward else -1], own)
        return [as_storage(own, placed.per_device)]

    (found,) = b.run(scan, [x], [x.spec.with_oob(None)], made)  # type: ignore[union-attr]
    return b.relayout(found, target_layout(b, found.layout, value, ()))  # type: ignore[arg-type]


def top_k(b: Builder, op: Op, value: Value) -> Any:
    """The greatest elements, which every device then has, and where they are."""
    if not op.params.get("aggregate_to_topk", True):
        return None
    ranked = _descending if op.params.get("is_max_k", True) else lambda x: ~_descending(x)
    x = _in_blocks(b, value, None)
    assert isinstance(x.spec, Sharded)
    (axes,) = x.spec.placement.axes
    block, extent, k = x.spec.layout.physical_shape[-1], value.shape[0], op.params["k"]
    block *= x.spec.placement.per_device[0]
    best = min(k, block)
    made = b.collectives().all_gather(axes, best * value.dtype.itemsize).all_gather(axes, best * 4)

    def kernel(part: jax.Array) -> list[jax.Array]:
        a = local_blocks(part)
        at = index_of(axes) * block + jnp.arange(block)
        # Ranked twice, since padding must be behind all elements, whatever these are.
        order = jnp.lexsort((at, ranked(a), at >= extent))[:best]
        values, at = (all_gather(y[order], axes, 0) for y in (a, at))
        order = jnp.lexsort((at, ranked(values), at >= extent))[:k]
        return [values[order], at[order].astype(op.outs[1].dtype)]

    outs = b.run(kernel, [x], [Replicated(aval.shape, aval.dtype) for aval in op.outs], made)
    return [b.on_cores(out, like=value) for out in outs]


def _descending(x: jax.Array) -> jax.Array:
    """Integers that rank as `lax.top_k` does, the greatest first: by bits, NaN by its sign."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        wide = x.astype(jnp.uint8) if x.dtype == bool else x
        return ~wide
    kind = f"int{8 * x.dtype.itemsize}"
    bits = lax.bitcast_convert_type(x, kind)
    # Negative numbers descend as their bits grow.
    return ~jnp.where(bits < 0, bits ^ jnp.iinfo(kind).max, bits)


def _in_blocks(b: Builder, value: Value, fill: Any) -> Value:
    """A vector in untiled blocks; its padding, behind them all, holds `fill` if one is given."""
    layout = blocks(value.layout, value.shape, {0: value.shape[0]}, value.dtype)
    x = b.on_cores(value, layout)
    return x if fill is None else b.filled(x, fill)


def _alone(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule where there is one dim; it declines where there are more."""

    def alone(b: Builder, op: Op, *values: Value) -> Any:
        return rule(b, op, *values) if op.out.ndim == 1 else None

    return alone


VECTORS: dict[str, Rule] = {
    **{name: Rule(_alone(cumulative), per_operand) for name in COMBINED},
    **{name: Rule(_alone(top_k), of_sort) for name in ("top_k", "approx_top_k")},
    **{"slice": Rule(_alone(slice_), nothing), "split": Rule(_alone(split), nothing)},
    **{"pad": Rule(_alone(pad), nothing), "concatenate": Rule(_alone(concatenate), nothing)},
    **{"rev": Rule(_alone(rev), nothing), "tile": Rule(_alone(tile), nothing)},
}
