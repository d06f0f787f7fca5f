"""Views of one array that are read together: `views`, for slices, pads, joins and the like.

A graph replaces operations that only move elements by one `views` node for each array that they
read (`ops/graph/shared_views.py`). Its results are computed in one of two ways, whichever takes
less time:

* Together: each device receives, along each divided dim, the border around its block that the
  views read, and cuts its part of each of them.
* Separately: by the rules of the operations that it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core
from jax.interpreters import mlir

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.decisions.blocks import (
    as_blocks,
    block_shape,
    block_spec,
    blocks_like,
    with_shards,
)
from gridlayout.ops.decisions.builder import Builder, cheapest_way
from gridlayout.ops.decisions.factors import NEAR, SHIFTED, Factors, Numbering
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.decisions.record import Record
from gridlayout.ops.decisions.shifted import Shifted
from gridlayout.ops.decisions.specs import Local, Sharded, known_values
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves.bordered import cut, fill_outside, is_in_one_kernel, receive
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.workspaces import border_workspace
from gridlayout.sharding.exchanges.borders import UNREAD, Border
from gridlayout.sharding.exchanges.slabs import cheapest
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.meshes.placement import Placement

# The most positions of all devices along one dim whose places are listed.
_MOST = 1 << 22


@dataclass(frozen=True)
class Known:
    """A number that an operation reads, known before anything runs."""

    bits: bytes
    dtype: Any

    @classmethod
    def of(cls, number: Any) -> Known:
        """Return a number, given as an array of NumPy's."""
        return cls(number.tobytes(), number.dtype)

    @property
    def number(self) -> Any:
        """The number."""
        return np.frombuffer(self.bits, self.dtype)[0]


# An operation that `views` stands for, and what it reads: 0 is the array, then come the results.
Member = tuple[Op, tuple[int | Known, ...]]


def _made(x: Any, *, views: Sequence[Shifted], **_: Any) -> list[Any]:
    return [of_logical(jnp.asarray(x), view) for view in views]


views_p = core.Primitive("views")
views_p.multiple_results = True
views_p.def_impl(_made)
views_p.def_abstract_eval(
    lambda x, *, views, **_: [jax.core.ShapedArray(view.shape, x.dtype) for view in views]
)
mlir.register_lowering(views_p, mlir.lower_fun(_made, multiple_results=True))


def of_logical(x: Any, view: Shifted) -> Any:
    """Return a view of a logical array."""
    masks = {}
    for s, row in enumerate(view.rows):
        at = row.positions()
        x = jnp.take(x, np.maximum(at, 0), axis=s, mode="clip")
        if row.has_fill:
            masks[s] = at >= 0
    return _as_view(x, masks, view, view.shape, _fill(view, x.dtype))


def _fill(view: Shifted, dtype: Any) -> Any:
    return None if view.fill is None else np.frombuffer(view.fill, dtype)[0]


def _as_view(x: Any, masks: Mapping[int, Any], view: Shifted, shape: Shape, fill: Any) -> Any:
    """Return an array whose dims are those of the source as a view of a shape, filled by masks."""
    for s, mask in masks.items():
        x = fill_outside(x, mask, s, fill)
    gone = [s for s, row in enumerate(view.rows) if row.dim is None]
    x = lax.squeeze(x, gone)
    order = [row.dim for row in view.rows if row.dim is not None]
    x = lax.transpose(x, np.argsort(order)) if order != sorted(order) else x
    return lax.reshape(x, shape)


# -- the rule --------------------------------------------------------------------------------------


def views(b: Builder, op: Op, value: Value) -> Any:
    """Rule for views of a sharded array."""
    if op.requested is not None and (there := op.requested.ins[0]) is not None:
        value = b.as_spec(value, there)
        return bordered(b, op.params["views"], value, exact=True) or separately(b, op, value)
    return cheapest_way(b, op, [_together, separately], value)


def separately(b: Builder, op: Op, value: Value) -> list[Value] | None:
    """Rule by the rules of the operations, one after another; None if that takes too long."""
    values = [value]
    for member, reads in op.params["members"]:
        given = [values[k] if isinstance(k, int) else b.constant(k.number, k.dtype) for k in reads]
        values += b.call(member, *given)
        if b.is_too_long:
            return None
    return [values[k] for k in op.params["leaves"]]


def _together(b: Builder, op: Op, value: Value) -> list[Value] | None:
    """Rule by borders."""
    return bordered(b, op.params["views"], value)


def as_views(b: Builder, op: Op, value: Value, *numbers: Value) -> list[Value] | None:
    """Rule for an operation of `Record.of_views` by borders; None if they do not serve."""
    known = [known_values(x.spec) for x in numbers]
    operands = [Shifted.of(value.shape), *(None if x is None else x.tobytes() for x in known)]
    assert b.record.of_views is not None
    shown = b.record.of_views(op.params, operands)
    some = [view for view in shown if view is not None]
    return bordered(b, some, value) if len(some) == len(shown) else None


def bordered(
    b: Builder, shown: Sequence[Shifted], value: Value, exact: bool = False
) -> list[Value] | None:
    """Return views of an array; None if it is not in blocks, or too large. exact: see `_target`."""
    spec = as_blocks(value.spec, b.device)
    if spec is None or max(map(max, [value.shape, *(v.shape for v in shown if v.shape)])) > _MOST:
        return None
    names = value.layout is not None and value.layout.mesh_axes is not None
    targets = [_target(b, spec, view, exact or names) for view in shown]
    x = b.as_spec(value, spec)
    spec, shown, x = _boxed(b, spec, shown, x)
    block = list(block_shape(spec))
    borders = [_border(b, spec, s, shown, targets, block) for s in range(value.ndim)]
    fills = {view.fill for view in shown} - {None}
    bits = fills.pop() if len(fills) == 1 else None
    fill = None if bits is None else np.frombuffer(bits, value.dtype)[0]
    shape = tuple(block)
    (x,) = b.run(lambda part: [part.reshape(shape)], [x], [Local(shape, value.dtype)], is_view=True)
    for s, border in enumerate(borders):
        if border is None or border.is_local:
            continue
        width = dtypes.nbytes(prod(block) // block[s], value.dtype)
        sent = border.collectives(b.collectives(), width)
        block[s] = border.length
        made = Local(tuple(block), value.dtype)
        run = partial(_received, border=border, dim=s, fill=fill)
        space = partial(border_workspace, border, width, b.device.platform == "cpu")
        (x,) = b.run(run, [x], [made], sent, workspace=space)
    outs = []

    def part(k: int, view: Shifted, x: LazyView) -> list[LazyView]:
        block, array = block_shape(targets[k]), x.materialize()
        is_one = all(border is None or is_in_one_kernel(border, k) for border in borders)

        def wider(more: Shape) -> Any:
            if any(n and d not in view.along for d, n in enumerate(more)):
                return None
            return cut_view(array, view, block, k, borders, fill, more)

        made = cut_view(array, view, block, k, borders, fill)
        return [LazyView.of(made, wider if is_one else None).reshape(*targets[k].local_shape)]

    for k, (view, target) in enumerate(zip(shown, targets, strict=True)):
        masks = int(view.fill is not None)
        outs += b.fused(partial(part, k, view), [x], [target], masks=masks, is_lazy=True)
    return outs


def _boxed(
    b: Builder, spec: Sharded, shown: Sequence[Shifted], x: Value
) -> tuple[Sharded, Sequence[Shifted], Value]:
    """Return what views read of dims that no device divides, with the views of that.

    So what is sent along other dims is of these positions alone.
    """
    shape, placed, block = spec.shape, spec.placement, block_shape(spec)
    boxes = [
        box if n == slots == 1 and box[1] else (0, extent)
        for box, extent, n, slots in zip(
            _boxes(shown), shape, placed.grid, placed.slots, strict=True
        )
    ]
    lengths = tuple(limit - start for start, limit in boxes)
    if lengths == shape or max(placed.grid) == 1:
        return spec, shown, x
    assert isinstance(spec.layout, GridLayout)
    small = blocks_like(spec, lengths, spec.dtype)

    starts = [start for start, _ in boxes]
    limits = [start + n for start, n in zip(starts, block_shape(small), strict=True)]

    def cut_to(part: Any) -> list[Any]:
        return [lax.slice(part.reshape(block), starts, limits)]

    (x,) = b.fused(cut_to, [x], [small])
    return small, [view.moved([-start for start in starts]) for view in shown], x


def _received(x: Any, *, border: Border, dim: int, fill: Any) -> list[Any]:
    return [receive(x, border, dim, 0 if fill is None else fill)]


def cut_view(
    x: Any,
    view: Shifted,
    shape: Shape,
    k: int,
    borders: Sequence[Border | None],
    fill: Any = None,
    more: Shape | None = None,
) -> Any:
    """Return a device's part, of a shape, of view `k` of the borders along each dim.

    fill: what is outside of the array for all views; None if that differs. more: how many positions
    of any value follow those of each dim that the view has of the array, as in `cut`.
    """
    some = {s: border for s, border in enumerate(borders) if border is not None}
    if more is not None:
        shape = tuple(map(sum, zip(shape, more, strict=True)))
    after = None if more is None else {s: more[d] for d, s in view.along.items()}
    x, masks = cut(x, some, k, fill, after)
    return _as_view(x, masks, view, shape, _fill(view, x.dtype))


def _target(b: Builder, spec: Sharded, view: Shifted, exact: bool) -> Sharded:
    """Return the blocks of a view: each dim is divided as the one of the array that it reads.

    Those of a dim of the same extent are as long. exact: on the same devices. Else in the placement
    of a layout, in which a dim whose cores would be on other devices than those that divide the
    array is undivided.
    """
    own, placed = spec.layout, spec.placement
    assert isinstance(own, GridLayout)
    grid = [1] * len(view.shape)
    for d, s in view.along.items():
        grid[d] = min(placed.grid[s], view.shape[d])
    if exact:
        axes = [placed.axes[view.along[d]] if n > 1 else () for d, n in enumerate(grid)]
        return _in_blocks(spec, view, b.device.placed(tuple(grid), axes))
    while True:
        layout = GridLayout(view.shape, own.dtype, grid, collapse=[], memory_space=own.memory_space)
        placement = b.placement(layout)
        moved = [
            d
            for d, s in view.along.items()
            if placement.axes[d] not in ((), placed.axes[s]) or placement.per_device[d] > 1
        ]
        if not moved:
            return _in_blocks(spec, view, placement)
        grid[moved[0]] = 1


def _in_blocks(spec: Sharded, view: Shifted, placement: Placement) -> Sharded:
    """Return the blocks of a view in a placement; see `_target`. spec: the blocks of the array."""
    own, shards = spec.layout, list[int | None]([None] * len(view.shape))
    assert isinstance(own, GridLayout)
    for d, s in view.along.items():
        if placement.axes[d] and view.shape[d] == own.shape[s]:
            shards[d] = own.stated_shard[s]
    return with_shards(block_spec(view.shape, own.dtype, placement, own.memory_space), shards)


def _border(
    b: Builder,
    spec: Sharded,
    s: int,
    shown: Sequence[Shifted],
    targets: Sequence[Sharded],
    block: Sequence[int],
) -> Border | None:
    """Return the border along a dim of the array; None if all views read it in place."""
    placed, extent = spec.placement, spec.shape[s]
    axes, n = placed.axes[s], placed.slots[s]
    reads, same = [], True
    for view, target in zip(shown, targets, strict=True):
        row = view.rows[s]
        at = row.positions()
        d = row.dim
        divided = d is not None and bool(target.placement.axes[d])
        length = block_shape(target)[d] if d is not None else 1
        where = np.arange(n)[:, None] * length * divided + np.arange(length)
        read = np.where(where < len(at), at[np.minimum(where, len(at) - 1)], UNREAD)
        own = np.arange(n)[:, None] * block[s] + np.arange(length)
        same &= length == block[s] and bool(((read == own) | (read == UNREAD)).all())
        reads.append(read)
    if same:
        return None
    width = dtypes.nbytes(prod(block) // block[s], spec.dtype)
    is_inner = prod(block[:s]) > 1
    return cheapest(b.env.machine, b.device, axes, block[s], extent, reads, width, is_inner)


# -- records ---------------------------------------------------------------------------------------


def borders(shown: Sequence[Shifted], shape: Shape) -> list[tuple[int, int] | None]:
    """Return how far views read before and after each position of a dim; None if far or unevenly.

    Around the array is near.
    """
    found: list[tuple[int, int] | None] = []
    for s, n in enumerate(shape):
        if n > 1 and all(view.rows[s].dim is None for view in shown):
            found.append((0, 1))  # each view reads one position, which all devices get
            continue
        shifts = [0]
        for view in shown:
            if abs(sum(run.count for run in view.rows[s].runs) - n) * LIMITS.near > n:
                shifts.append(n)  # blocks of it are not near those of the array
            ends = accumulate((run.count for run in view.rows[s].runs), initial=0)
            for run, at in zip(view.rows[s].runs, ends, strict=False):
                if not run.is_fill and (run.count > 1 and run.step != 1):
                    shifts.append(n)
                elif not run.is_fill:
                    ways = (run.first - at, run.first - at - n, run.first - at + n)
                    shifts.append(n if view.rows[s].dim is None and n > 1 else min(ways, key=abs))
        before, after = int(max(0, -min(shifts))), int(max(0, max(shifts)))
        found.append((before, after) if (before + after) * LIMITS.near <= n else None)
    return found


def _boxes(shown: Sequence[Shifted]) -> list[tuple[int, int]]:
    """Return the positions of each dim that views read: the first, and the end; (0, 0) for none."""
    found = []
    for ends in zip(*(view.boxes for view in shown), strict=True):
        some = [(first, last) for first, last in ends if first <= last]
        found.append((min(a for a, _ in some), max(b for _, b in some) + 1) if some else (0, 0))
    return found


def _lengths(shown: Sequence[Shifted]) -> Shape:
    return tuple(limit - start for start, limit in _boxes(shown))


def _factors(params: Any, ins: Sequence[Shape], outs: Sequence[Shape]) -> Factors:
    """Return the factors of views: `near` where all of them read the dim near its positions."""
    made, shown = Numbering(ins, outs), params["views"]
    for s, near in enumerate(borders(shown, ins[0])):
        dims = [(k, view.rows[s].dim) for k, view in enumerate(shown, len(ins))]
        made.add(
            SHIFTED if near is None else NEAR,
            (0, s),
            *((k, d) for k, d in dims if d is not None),
        )
    return made.factors()


VIEWS: dict[str, Record] = {
    "views": Record(
        (views,),
        factors=_factors,
        of_logical=separately,
        borders=lambda params, ins, _: [borders(params["views"], ins[0])],
        lengths=lambda params: _lengths(params["views"]),
        of_blocks=True,
        is_fused=True,
        takes_fused=True,
    ),
}
