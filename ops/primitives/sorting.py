"""Sorting of vectors: each device sorts its block, then pairs of devices merge blocks in rounds.

The rounds are those of Batcher's merge exchange (Knuth, The Art of Computer Programming, volume 3,
5.2.2, algorithm M). A comparison of two numbers there is a merge of two blocks here: one device
keeps the lower half of both, the other the upper half. All shapes are static. They would not be in
a sort that sends each device the elements of its range.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.document.grid_layout import GridLayout
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.primitives.along import target_layout
from gridlayout.ops.primitives.panels import blocked_or_replicated
from gridlayout.sharding.collectives import index_of, own_row, permute
from gridlayout.sharding.extremes import ordered_bits

Arrays = list[jax.Array]
# How many elementwise functions take as long as a comparison; measured with XLA on CPUs.
COMPARISON = 24.0


def sort(b: Builder, op: Op, *values: Value) -> Any:
    """Return vectors sorted by the first ones; None if every device sorts them in less time."""
    n = values[0].shape[0]
    if b.device.size == 1 or not 1 < n < 2**31:
        return None
    whole = b.env.machine.seconds(elements=COMPARISON * n * log2(n))
    return blocked_or_replicated(b, op, [_in_blocks], whole, *values)


def _in_blocks(b: Builder, op: Op, *values: Value) -> Any:
    devices, n = b.device.size, values[0].shape[0]
    layout = GridLayout((n,), values[0].dtype, grid=(devices,), collapse=[])
    placed = b.placement(layout)
    (axes,) = placed.axes
    if b.device.count(axes) != devices or placed.per_device != (1,):
        return None
    block = int(layout.shard_shape[0])
    xs = [b.as_sharded(x, layout.with_dtype(x.dtype)) for x in values]
    keys = op.params["num_keys"]
    index = _ties_differ(values, keys)
    sizes = [dtypes.nbytes(block, x.dtype) for x in values] + [4 * block] * index
    rounds, made = merge_exchange(devices), b.collectives()
    for pairs in rounds:
        for size in sizes:
            made.permute(axes, size, 2 * len(pairs))
    b.note = f"blocks of {block}, merged in {len(rounds)} rounds"
    compared = (len(rounds) + 1) * block * log2(max(block, 2))
    b.computing = b.env.machine.seconds(elements=COMPARISON * compared)

    def kernel(*parts: jax.Array) -> Arrays:
        at = index_of(axes) * block + jnp.arange(block, dtype=jnp.int32)
        given = [part.reshape(block) for part in parts]
        if devices * block > n:  # padding comes last: it has the greatest keys, and later positions
            given[:keys] = [jnp.where(at < n, x, greatest(x.dtype)) for x in given[:keys]]
        found = _sorted([*given[:keys], *([at] if index else []), *given[keys:]], keys + index)
        for pairs in rounds:
            found = _merged(found, keys + index, axes, pairs, devices)
        out = [*found[:keys], *found[keys + index :]]
        return [x.reshape(part.shape) for x, part in zip(out, parts, strict=True)]

    specs = [x.spec.with_oob(None) for x in xs if isinstance(x.spec, Sharded)]
    outs = b.run(kernel, xs, specs, made)
    first = next((x for x in values if x.layout is not None), None)
    if first is None:  # operands without a layout, which each device computed
        return outs
    home = target_layout(b, layout, first, ())
    return [b.relayout(out, home.with_dtype(out.dtype)) for out in outs]


def greatest(dtype: np.dtype[Any]) -> Any:
    """Return the number that is last in the order of `lax.sort`.

    >>> greatest(np.dtype("int8")), greatest(np.dtype("float32"))
    (np.int8(127), np.float32(nan))
    """
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return dtype.type(complex(np.nan, np.nan))
    if jnp.issubdtype(dtype, jnp.floating):
        nan = dtype.type(np.nan)
        return nan if nan != nan else dtype.type(jnp.finfo(dtype).max)
    return dtype.type(True if dtype.kind == "b" else jnp.iinfo(dtype).max)


def _ties_differ(values: Sequence[Value], keys: int) -> bool:
    """Whether elements with equal keys may differ, so that the sort has to be stable."""
    exact = all(jnp.issubdtype(x.dtype, jnp.integer) or x.dtype == bool for x in values)
    return len(values) > keys or not exact  # 0.0 and -0.0 are equal, and so are NaNs


def merge_exchange(n: int) -> list[list[tuple[int, int]]]:
    """Return the rounds of comparisons that sort `n` numbers; a round uses a number once at most.

    >>> merge_exchange(4)
    [[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]]
    """
    rounds = []
    top = 1 << max((n - 1).bit_length() - 1, 0)
    p = top if n > 1 else 0
    while p:
        q, r, d = top, 0, p
        while True:
            rounds.append([(i, i + d) for i in range(n - d) if i & p == r])
            if q == p:
                break
            q, r, d = q // 2, p, q - p
        p //= 2
    return [pairs for pairs in rounds if pairs]


def _sorted(arrays: Arrays, keys: int) -> Arrays:
    return list(lax.sort(tuple(arrays), num_keys=keys, is_stable=False))


def _merged(
    mine: Arrays, keys: int, axes: Axes, pairs: Sequence[tuple[int, int]], devices: int
) -> Arrays:
    """Return this device's half of two merged blocks, its own and its partner's.

    A device without a partner keeps its block.
    """
    both = [*pairs, *((j, i) for i, j in pairs)]
    theirs = [permute(x, axes, both) for x in mine]
    role = np.zeros(devices, np.int32)
    for i, j in pairs:
        role[i], role[j] = 1, 2
    here = own_row(role, axes)
    low = [jnp.where(here == 1, a, b) for a, b in zip(mine, theirs, strict=True)]
    high = [jnp.where(here == 1, b, a) for a, b in zip(mine, theirs, strict=True)]
    taken = _taken(low[:keys], high[:keys])
    size, at = len(mine[0]), jnp.arange(len(mine[0]))
    half = [
        jnp.where(
            here == 1,
            jnp.where(at < taken, a, b[::-1]),
            jnp.where(at < size - taken, jnp.roll(a, -taken), b),
        )
        for a, b in zip(low, high, strict=True)
    ]
    found = _sorted(half, keys)
    return [jnp.where(here == 0, a, b) for a, b in zip(mine, found, strict=True)]


def _taken(low: Arrays, high: Arrays) -> jax.Array:
    """Return the number of elements of `low` in the lower half of both sorted blocks."""
    size = len(low[0])

    def halve(_: Any, span: Any) -> Any:
        start, end = span
        middle = (start + end) // 2
        pairs = (
            (a[jnp.minimum(middle, size - 1)], b[size - 1 - middle])
            for a, b in zip(low, high, strict=True)
        )
        more = (start < end) & _less(pairs)
        return jnp.where(more, middle + 1, start), jnp.where(more, end, jnp.maximum(middle, start))

    return lax.fori_loop(0, size.bit_length() + 1, halve, (jnp.int32(0), jnp.int32(size)))[0]


def _less(pairs: Any) -> jax.Array:
    """Whether the first numbers come before the second ones in the order of `lax.sort`."""
    less, equal = jnp.bool_(False), jnp.bool_(True)
    for a, b in pairs:
        for x, y in zip(_ranks(a), _ranks(b), strict=True):
            less, equal = less | (equal & (x < y)), equal & (x == y)
    return less


def _ranks(x: jax.Array) -> Arrays:
    """Return integers in the order of the numbers: NaN is the greatest, and -0.0 equals 0.0."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return [*_ranks(x.real), *_ranks(x.imag)]
    if jnp.issubdtype(x.dtype, jnp.floating):
        x = jnp.where(x == 0, 0, jnp.where(jnp.isnan(x), jnp.nan, x)).astype(x.dtype)
    return [~descending(x)]


def descending(x: jax.Array) -> jax.Array:
    """Return integer keys whose ascending order is the order of `lax.top_k`: greatest first.

    Floating-point numbers are ordered by their bits, so NaNs by their sign.
    """
    if not jnp.issubdtype(x.dtype, jnp.floating):
        wide = x.astype(jnp.uint8) if x.dtype == bool else x
        return ~wide
    return ~ordered_bits(x)


def least(dtype: np.dtype[Any]) -> Any:
    """Return the number that is last in the order of `lax.top_k`: of floats, the last negative NaN.

    >>> least(np.dtype("int8")), least(np.dtype("float32"))
    (np.int8(-128), np.float32(nan))
    """
    if jnp.issubdtype(dtype, jnp.floating):
        return np.full((), -1, f"i{dtype.itemsize}").view(dtype)[()]
    return dtype.type(False if dtype.kind == "b" else jnp.iinfo(dtype).min)
