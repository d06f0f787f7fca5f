"""`Port`: how an array enters or leaves a `shard_map` kernel, moving on the way.

A kernel takes its operands in layouts of its own choice. Each device brings its part there inside
the kernel, and its part of the result to the layout that is wanted: one program a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec

from gridlayout.layout import Layout
from gridlayout.ops import packing
from gridlayout.ops.exchange import exchange_bytes
from gridlayout.ops.grid_array import GridArray
from gridlayout.ops.relayout import exchanger, nothing_moves
from gridlayout.ops.seen import Seen
from gridlayout.ops.values import Context
from gridlayout.route import find_route
from gridlayout.sharding.device_grid import Placement


@dataclass(frozen=True)
class Port:
    """The spec outside, and what each device does to its part inside: first, or last."""

    spec: PartitionSpec
    step: Callable[[Seen], Seen]


def entering(
    ctx: Context, x: GridArray, layout: Layout, after: Placement
) -> tuple[jax.Array, Port]:
    """The storage of `x`, and how it enters in a layout that is placed as `after` says."""
    if find_route(x.layout, layout) is None:
        x = ctx.relayout(x, layout)
    before = ctx.device.placement(x.layout.core_shape)
    return x.storage, _port(ctx, x.layout, layout, before, after, before.spec)


def leaving(ctx: Context, layout: Layout, before: Placement, wanted: Layout) -> Port | None:
    """How a result in a layout placed as `before` says leaves in another; None without a route."""
    if find_route(layout, wanted) is None:
        return None
    after = ctx.device.placement(wanted.core_shape)
    return _port(ctx, layout, wanted, before, after, after.spec)


def through(
    ctx: Context,
    kernel: Callable[..., Seen],
    entered: Sequence[tuple[jax.Array, Port]],
    layout: Layout | None,
    wanted: Layout,
) -> Any:
    """What a kernel makes in a layout, in the layout that is wanted; or the number that it makes.

    layout: None where it makes a number, the same on every device.
    """
    placed = ctx.device.placement(() if layout is None else layout.core_shape)
    port = None if layout is None else leaving(ctx, layout, placed, wanted)

    def whole(*parts: jax.Array) -> jax.Array:
        pairs = zip(entered, parts, strict=True)
        out = kernel(*(entry.step(Seen.of(part)) for (_, entry), part in pairs))
        return (out if port is None else port.step(out)).now()

    storage = jax.shard_map(
        whole,
        mesh=ctx.device.fine,
        in_specs=tuple(entry.spec for _, entry in entered),
        out_specs=(port or placed).spec,
        check_vma=False,
    )(*(array for array, _ in entered))
    if layout is None:
        return storage
    if port is None:
        return ctx.relayout(GridArray(storage, layout, ctx.device), wanted)
    return GridArray(storage, wanted.with_dtype(layout.dtype), ctx.device)


def _port(
    ctx: Context,
    old: Layout,
    new: Layout,
    before: Placement,
    after: Placement,
    spec: PartitionSpec,
) -> Port:
    if before == after and nothing_moves(old, new):
        return Port(spec, lambda x: x)
    ctx.moved += exchange_bytes(old, new, ctx.device, after, before)
    moved = exchanger(old.with_oob(None), new.with_oob(None), ctx.device, before, after)
    zero = np.zeros((), old.dtype)

    def step(x: Seen) -> Seen:
        if old.dtype.name not in packing.AS_BITS:
            return moved(x, zero)
        alone = packing.bitwise(lambda a, fill: moved(Seen.of(a), fill).now(), x.now(), zero)
        return Seen.of(alone)

    return Port(spec, step)
