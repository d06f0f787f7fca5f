"""`relayout`: the same logical tensor in another layout."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.grid_array import GridArray, check_has_data, check_no_stack
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.array.in_parts import Held, is_host_memory, stored
from gridlayout.ops.array.staged import run_staged, staged_pieces
from gridlayout.ops.array.storage import pack_and_place, padded, to_logical
from gridlayout.ops.moves.jitted import jitted
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.relayout import find_move, nothing_moves
from gridlayout.ops.moves.spaces import in_device_memory, in_layout_memory
from gridlayout.sharding.collectives import shard_mapped
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.exchanges.pieces import Pieces
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.processes.agreement import joint_call, layout_lines


def relayout(x: GridArray, layout: Layout) -> GridArray:
    """Return `gl.relayout` of one array; nothing moves where every element stays in place."""
    if not isinstance(x, GridArray):
        raise LayoutError(f"relayout takes a GridArray, not {type(x).__name__}; gl.put makes one")
    with joint_call("gl.relayout", x.device, x) as call:
        check_relayout(x.layout, layout)
        check_no_stack(x)
        x.device.check_has_devices("gl.relayout")
        check_has_data(x, "gl.relayout")
        call.agree(
            (x.layout, layout),
            lambda: layout_lines(("array", x.layout), ("to", layout)),
        )
        return call.ran(_run(x, layout))


def _run(x: GridArray, layout: Layout) -> GridArray:
    with x.device.active():
        storage = in_device_memory(x.storage, x.layout, x.device)
        if _by_host(storage, x.layout, layout, x.device):
            held = Held(storage, x.layout, x.device)
            return placed(stored(held.read, layout, x.device), layout, x.device)
        if (pieces := _in_stages(storage, x.layout, layout, x.device)) is not None:
            storage = run_staged(storage, layout, pieces)
            if layout.oob is not None:
                storage = padded(storage, layout, x.device)
        else:
            storage = _relayout(storage, x.layout, layout, x.device)
        return placed(in_layout_memory(storage, layout, x.device), layout, x.device)


def _stays(old: Layout, new: Layout, device: DeviceGrid) -> bool:
    """Return whether every element stays on its device, at the same physical index."""
    return nothing_moves(old, new) and device.placement(old) == device.placement(new)


def _by_host(storage: jax.Array, old: Layout, new: Layout, device: DeviceGrid) -> bool:
    """Return whether the host moves parts one at a time: large parts in the host's own memory."""
    large = max(old.nbytes, new.nbytes) >= LIMITS.host_bytes
    if not large or _stays(old, new, device) or not is_host_memory(storage, device):
        return False
    new.check_invertible()
    return True


def _in_stages(storage: jax.Array, old: Layout, new: Layout, device: DeviceGrid) -> Pieces | None:
    """Return the pieces of a staged relayout of large parts; None for one in a single program."""
    if isinstance(storage, jax.core.Tracer) or _stays(old, new, device):
        return None
    places = (device.placement(layout) for layout in (old, new))
    return staged_pieces(old, new, device, *places)


def check_relayout(old: Layout, new: Layout) -> None:
    """Raise `LayoutError` unless both are layouts of one logical shape and dtype."""
    for layout in (old, new):
        if not isinstance(layout, Layout):
            raise LayoutError(f"relayout to {type(layout).__name__}: give a gl.Layout")
    if new.shape != old.shape or new.dtype != old.dtype:
        raise LayoutError(
            f"relayout keeps shape and dtype: {old!r} can't become {new!r}; "
            "gl.numpy.reshape or astype changes those"
        )


@jitted(1, 2, 3)
def _relayout(storage: jax.Array, old: Layout, new: Layout, device: DeviceGrid) -> jax.Array:
    if not _stays(old, new, device):
        new.check_invertible()
        storage = _moved(old, new, device, storage)
    if new.oob is None or repr(new.oob) == repr(old.oob):
        return storage
    return padded(storage, new, device)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _moved(old: Layout, new: Layout, device: DeviceGrid, storage: jax.Array) -> jax.Array:
    """Return the storage of `new` from that of `old`."""
    before, after = (device.placement(layout) for layout in (old, new))
    move = find_move(old, new, device, before, after)
    assert move is not None
    run = lambda part: move.run(LazyView.of(part)).materialize()  # noqa: E731
    return shard_mapped(run, device.fine, before.spec, after.spec)(storage)


@_moved.defjvp
def _(old: Layout, new: Layout, device: DeviceGrid, primals: Any, tangents: Any) -> Any:
    # The same relayout through the logical array, which JAX differentiates in both modes.
    tangent = to_logical(tangents[0], old, device)
    return _moved(old, new, device, *primals), pack_and_place(tangent, new, device)
