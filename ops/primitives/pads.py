"""Pads: with positions before, after and between those of an array, also a negative number.

A pad is done on parts of the result (`parts.py`), or by windows of one position over the dilated
array, each device on its own block with what it needs of its neighbours'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax import lax

from gridlayout.affine.map import AffineMap, dim
from gridlayout.arguments import Shape
from gridlayout.ops.decisions import tiled_dims
from gridlayout.ops.decisions.blocks import as_blocks, block_shape, blocks_like
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.factors import SHIFTED
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Decide, Record
from gridlayout.ops.decisions.shifted import Shifted
from gridlayout.ops.decisions.specs import Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.padding import fill_padding
from gridlayout.ops.primitives.along import mapped, of_replicated
from gridlayout.ops.primitives.parts import (
    in_blocks,
    offset_map,
    part_layouts,
    part_of,
    part_record,
)
from gridlayout.ops.primitives.windows import Window, for_results, halos_of


def pad(b: Builder, op: Op, value: Value, fill: Value) -> Any:
    """Rule for `lax.pad` with positive, negative and interior padding."""
    if not _padded_dims(op):
        return value if value.layout is not None else None
    ways: list[Decide] = [mapped, _pad_inside, _pad_by_relayout, in_blocks]
    return cheapest_way(b, op, ways, value, fill) or of_replicated(b, op, value, fill)


def _padded_dims(op: Op) -> Shape:
    config = op.params["padding_config"]
    return tuple(d for d, sizes in enumerate(config) if tuple(sizes) != (0, 0, 0))


def _pad_inside(b: Builder, op: Op, value: Value, fill: Value) -> Value | None:
    """Rule for interior padding of blocks, as of a window of one position over a dilated array."""
    config = [(int(a), int(z), int(n)) for a, z, n in op.params["padding_config"]]
    spec = as_blocks(value.spec, b.device)
    if spec is None or not any(n for *_, n in config) or 0 in op.out.shape:
        return None
    placed = spec.placement
    if any(n > m for n, m in zip(placed.grid, op.out.shape, strict=True)):
        return None
    windows = [Window(1, 1, low, high, inside + 1) for low, high, inside in config]
    out = blocks_like(spec, op.out.shape, value.dtype)
    block = block_shape(out)
    reaches = {
        d: for_results(window, block[d])
        for d, window in enumerate(windows)
        if placed.grid[d] > 1 and not window.is_trivial
    }
    sent = b.collectives()
    halos = halos_of(b, sent, spec, reaches, [value.dtype])
    own = list(config)
    for d, halo in halos:
        own[d] = (*halo.padding, halo.dilation - 1)
    shape = block_shape(spec)

    def kernel(part: jax.Array, fill: jax.Array) -> list[jax.Array]:
        x = part.reshape(shape)
        for d, halo in halos:
            x = halo.run(x, d, fill)
        return [lax.pad(x, fill, own).reshape(out.local_shape)]

    run = b.run if sent.found else b.fused
    (found,) = run(kernel, [b.as_spec(value, spec), b.replicated(fill)], [out], collectives=sent)
    return b.nearest(found, part_layouts(b, value, _padded_dims(op), op.out))


def _pad_by_relayout(b: Builder, op: Op, value: Value, fill: Value) -> Value | None:
    config, axes = op.params["padding_config"], _padded_dims(op)
    if any(inside and min(low, high) < 0 for low, high, inside in config) or 0 in op.out.shape:
        return None
    cropped = [min(low, 0) + min(high, 0) for low, high, _ in config]
    kept = tuple(n + more for n, more in zip(value.shape, cropped, strict=True))
    x = b.as_sharded(value)
    target = part_layouts(b, value, axes, op.out)[0]
    assert isinstance(x.spec, Sharded)
    first = offset_map([-min(low, 0) for low, _, _ in config])
    put = [dim(d) * (inside + 1) + max(low, 0) for d, (low, _, inside) in enumerate(config)]
    source = part_of(x.spec.layout, kept, first)
    destination = part_of(target, kept, AffineMap(x.ndim, put))
    if source is None or destination is None:
        return None
    x = b.relayout(x.with_spec(Sharded(source, x.spec.placement)), destination)
    known = getattr(fill.spec, "number", None)
    spec = b.sharded(target.with_oob(None if known is None else known.item()))
    placement = spec.placement

    def kernel(part: jax.Array, fill: jax.Array) -> list[jax.Array]:
        return [fill_padding(part, destination, placement, fill)]

    return b.fused(kernel, [x, b.replicated(fill)], [spec], masks=1)[0]


def _padded(params: Any, shape: Shape) -> dict[int, str]:
    sizes = enumerate(params["padding_config"])
    return {d: SHIFTED for d, some in sizes if tuple(some) != (0, 0, 0)}


def _views_padded(params: Any, views: Sequence[Shifted | bytes | None]) -> list[Shifted | None]:
    x, fill = views
    for d, (low, high, inside) in enumerate(params["padding_config"]):
        if not isinstance(x, Shifted) or not isinstance(fill, bytes):
            return [None]
        x = x.padded(d, low, high, inside, fill)
    return [x if isinstance(x, Shifted) else None]


PADS: dict[str, Record] = {
    "pad": part_record(pad, _padded, of_views=_views_padded, of_tiles=tiled_dims.padded)
}
