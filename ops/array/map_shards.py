"""`map_shards`: runs a function of one core's shard on every core.

The cores of one device are a `vmap` inside `shard_map`. So a collective over a grid dim is one over
the axis of that vmap and the mesh axes that divide the dim. Idle slots run the function too; their
results are not used.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from gridlayout.arguments import as_flag
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.checked import checked, with_numbered_cotangent
from gridlayout.ops.array.cores import Cores
from gridlayout.ops.array.grid_array import (
    GridArray,
    check_has_data,
    check_no_stack,
    check_same_devices,
)
from gridlayout.ops.array.grid_type import placed
from gridlayout.ops.moves.packing import as_operand
from gridlayout.ops.moves.padding import fill_padding, valid_mask
from gridlayout.ops.moves.spaces import in_device_memory, in_layout_memory
from gridlayout.public import public
from gridlayout.sharding.collectives import shard_mapped
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.meshes.placement import Placement
from gridlayout.sharding.number_checks import NumberChecks, number_checks
from gridlayout.sharding.processes.agreement import joint_call, layout_lines, local_data
from gridlayout.sharding.processes.jaxprs import jaxpr_lines
from gridlayout.sharding.processes.programs import AgreedJit


@public
def map_shards(
    fn: Callable[..., Any], *arrays: Any, out: Any, padding: Any = None, mask: bool = False
) -> Any:
    """Run `fn` on each core's shard.

    fn: a function of one core's buffers, arrays of each layout's `local_shape` (tiled and padded as
    stored), traced once for all cores. It may call a Pallas kernel, and the functions of
    `gl.cores`, which work on the grid of cores. arrays: `GridArray`s on one device grid whose
    layouts have the same `core_shape`, and plain arrays, which every core gets in full. out: the
    layout of the result, or a pytree of layouts of the structure that `fn` returns; results have no
    known padding value, even if `out` states one. `map_shards` itself moves no data. It is
    differentiable; the derivative is that of `fn` on the buffers, padding included. `LayoutError`
    if grids or shapes do not fit.

    padding: a value, as for a layout's `oob`, that is written to the padding of all `GridArray`s
    first, unless it is known to be there. With None the padding stays as it is; after `x + 1`, for
    example, it is no longer 0. mask: whether `fn` gets one more buffer per `GridArray`, in their
    order after the others: bools, True at elements, False in padding. With `padding` or `mask`, the
    padding of results has no derivative.

    >>> from gridlayout import DeviceGrid, GridLayout, put
    >>> from gridlayout.cores import core_index, psum
    >>> layout = GridLayout((5,), "float32", grid=(3,))
    >>> x = put([1.0, 2, 3, 4, 5], layout, DeviceGrid((1,)))
    >>> map_shards(lambda shard: shard * 10 + core_index(0), x, out=layout).to_logical().tolist()
    [10.0, 20.0, 31.0, 41.0, 52.0]
    >>> total = lambda shard: jnp.broadcast_to(psum(shard.sum(), 0), shard.shape)
    >>> map_shards(total, x + 1, out=layout, padding=0).to_logical()[0].item()
    20.0
    """
    if not callable(fn):
        raise LayoutError(f"map_shards takes a function of shards, not {type(fn).__name__}")
    found = [x for x in arrays if isinstance(x, GridArray)]
    if not found:
        raise LayoutError(
            "map_shards: no argument is a GridArray; gl.put makes one. Inside gl.on_grid values "
            "are logical arrays, for which gl.def_rule defines how a primitive runs"
        )
    device, grid = found[0].device, found[0].layout.core_shape
    device.check_has_devices("gl.map_shards")
    for x in arrays:
        check_has_data(x, "gl.map_shards")
    mask = as_flag(mask, "map_shards: mask")
    with joint_call("gl.map_shards", device, arrays) as call:
        layouts, structure = jax.tree.flatten(out, is_leaf=lambda x: isinstance(x, Layout))
        _check(found, layouts)
        if padding is not None:
            arrays = tuple(_padded(x, padding) for x in arrays)
        # Layouts that differ in their known padding values only share one program.
        outs = tuple(layout.with_oob(None) for layout in layouts)
        is_sharded = tuple(isinstance(x, GridArray) for x in arrays)
        operands = [_operand(x, device) for x in arrays]
        inputs = tuple(x.layout for x in found)
        masked = tuple(layout.with_oob(None) for layout in inputs) if mask else ()
        padding_is_constant = bool(masked) or padding is not None
        static = _Static(device, grid, is_sharded, outs, structure, masked, padding_is_constant)
        static = static.with_checks(inputs)
        operand_types = tuple((x.shape, x.dtype) for x in operands)
        call.agree(
            (inputs, operand_types, static),
            lambda: _lines(fn, inputs, operands, static),
            owner=fn,
            data=lambda: local_data(arrays),
        )
        with device.active():
            storages = call.ran(_program(fn)(operands, static))
    made = [
        placed(in_layout_memory(s, layout, device), layout, device)
        for s, layout in zip(storages, outs, strict=True)
    ]
    for x in made:  # the next kernel may read the padding, so it is kept
        checked(x.storage, x.layout, device, f"map_shards({getattr(fn, '__name__', fn)})")
    return jax.tree.unflatten(structure, made)


def _operand(x: Any, device: DeviceGrid) -> Any:
    """Return the storage of an array that is laid out, in the devices' memory; others as arrays."""
    if isinstance(x, GridArray):
        return in_device_memory(x.storage, x.layout, device)
    return as_operand(x, "map_shards")


def _padded(x: Any, padding: Any) -> Any:
    """Return an array with `padding` in its padding; unchanged if that is known to be there."""
    if not isinstance(x, GridArray):
        return x
    filled = x.layout.with_oob(padding)
    return x if repr(filled.oob) == repr(x.layout.oob) else x.with_oob(padding)


def _check(found: Sequence[GridArray], layouts: Sequence[Any]) -> None:
    """Raise `LayoutError` unless arrays and results have one core grid, on one device grid."""
    device, grid = found[0].device, found[0].layout.core_shape
    for x in found:
        check_no_stack(x)
    for layout in layouts:
        if not isinstance(layout, Layout):
            raise LayoutError(f"map_shards: out must hold gl.Layouts, not {type(layout).__name__}")
    for what, layout in [*((repr(x), x.layout) for x in found), *((repr(o), o) for o in layouts)]:
        if layout.core_shape != grid:
            raise LayoutError(
                f"map_shards: {what} has core grid {layout.core_shape}, but the first array has "
                f"{grid}; gl.relayout moves arrays to one grid"
            )
    for x in found:
        check_same_devices(x, device, "map_shards")


def _lines(fn: Any, layouts: Sequence[Layout], operands: Any, static: _Static) -> list[str]:
    """Return the lines that describe a call: its layouts, and the program."""
    named = [*(("array", x) for x in layouts), *(("out", x) for x in static.outs)]
    with static.device.active():
        closed = jax.make_jaxpr(partial(_mapped, lambda: fn, static=static))(operands)
    return [*layout_lines(*named), *jaxpr_lines(closed)]


@dataclass(frozen=True)
class _Static:
    """The static part of a call.

    is_sharded: for each operand, whether it is sharded over the grid; otherwise every core gets all
    of it. outs, structure: the layouts of the results, and their pytree. masked: the layouts of
    operands for which `fn` gets masks, after all operands. padding_is_constant: whether the padding
    of results has no derivative, as padding is set or masks are passed. checks, inputs: while JAX
    checks numbers, which ones, and the layouts of sharded operands.
    """

    device: DeviceGrid
    grid: tuple[int, ...]
    is_sharded: tuple[bool, ...]
    outs: tuple[Layout, ...]
    structure: Any
    masked: tuple[Layout, ...] = ()
    padding_is_constant: bool = False
    checks: NumberChecks | None = None
    inputs: tuple[Layout, ...] = ()

    def with_checks(self, inputs: Sequence[Layout]) -> _Static:
        """Return it with JAX's checks of numbers, if any are on."""
        if (checks := number_checks()) is None:
            return self
        bare = tuple(layout.with_oob(None) for layout in inputs)
        return replace(self, checks=checks, inputs=bare)


_programs: WeakKeyDictionary[Any, Callable[..., Any]] = WeakKeyDictionary()


def _program(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the jitted program of a function, which is cached as long as the function exists."""
    try:
        return _programs.setdefault(fn, _jitted(weakref.ref(fn)))
    except TypeError:  # a function that can't be hashed, or not weakly referenced, is not shared
        return _jitted(lambda: fn)


def _jitted(held: Callable[[], Any]) -> Callable[..., Any]:
    # Inlined where it is traced: whether two calls are lowered as one would depend on whether `fn`
    # comes from a cache, as the kernels of `ring_attention` do. In derivatives, JAX 0.10 checks the
    # numbers of what is inlined one by one, padding included.
    is_inlined = jax.__version_info__ >= (0, 11)
    return AgreedJit(jax.jit(partial(_mapped, held), static_argnums=(1,), inline=is_inlined))


def _mapped(held: Callable[[], Any], operands: Sequence[jax.Array], static: _Static) -> Any:
    device, placement = static.device, static.device.placement(static.grid)
    run, spec = _on_one_device(held(), static), placement.spec
    if (checks := static.checks) is not None:
        layouts = iter(static.inputs)
        operands = [
            with_numbered_cotangent(x, next(layouts), device, checks) if yes else x
            for x, yes in zip(operands, static.is_sharded, strict=True)
        ]

    def without_derivative(*parts: jax.Array) -> tuple[jax.Array, ...]:
        made = zip(run(*parts), static.outs, strict=True)
        return tuple(_without_derivative(part, layout, placement) for part, layout in made)

    fn = without_derivative if static.padding_is_constant else run
    ins = tuple(spec if yes else PartitionSpec() for yes in static.is_sharded)
    return shard_mapped(fn, device.fine, ins, (spec,) * len(static.outs))(*operands)


def _without_derivative(part: jax.Array, layout: Layout, placement: Placement) -> jax.Array:
    """Return a device's part with no derivative through its padding."""
    return fill_padding(part, layout, placement, lax.stop_gradient(part))


def _on_one_device(fn: Callable[..., Any], static: _Static) -> Callable[..., Any]:
    """Return `fn` for all cores of one device, for use in `shard_map`."""
    cores = Cores(static.device.placement(static.grid))
    run: Callable[..., Any] = partial(_on_one_core, fn, cores, static)
    is_sharded = (*static.is_sharded, *(True for _ in static.masked))
    for k in reversed(range(len(static.grid))):
        run = _over_local_cores(run, cores, k, is_sharded)
    return run if not static.masked else _with_masks(run, cores.placement, static.masked)


def _with_masks(
    run: Callable[..., Any], placement: Placement, layouts: Sequence[Layout]
) -> Callable[..., Any]:
    """Return `run` of a device's parts with the masks of `layouts` as further arguments."""

    def masked(*parts: Any) -> Any:
        shapes = [(*placement.per_device, *layout.local_shape) for layout in layouts]
        masks = [valid_mask(layout, placement) for layout in layouts]
        return run(*parts, *map(jnp.broadcast_to, masks, shapes))

    return masked


def on_parts(
    fn: Callable[..., Any], device: DeviceGrid, operands: Sequence[Layout | None], outs: Any
) -> Callable[..., Any]:
    """Return `map_shards` as a function of one device's parts, for use inside `shard_map`.

    It returns a tuple of the device's parts of results. operands: their layouts; None for an
    operand that every core gets in full. outs: the results' layouts. `LayoutError` if core grids
    differ.
    """
    grids = {layout.core_shape for layout in (*operands, *outs) if layout is not None}
    if len(grids) != 1:
        raise LayoutError(f"map_shards: layouts must have one core grid, not {sorted(grids)}")
    (grid,) = grids
    is_sharded = tuple(layout is not None for layout in operands)
    structure = jax.tree.structure(outs[0] if len(outs) == 1 else tuple(outs))
    return _on_one_device(fn, _Static(device, grid, is_sharded, tuple(outs), structure))


def _over_local_cores(
    run: Callable[..., Any], cores: Cores, k: int, is_sharded: Sequence[bool]
) -> Callable[..., Any]:
    """Return `run` for a device's cores along grid dim `k`, the first dim of every buffer."""
    if name := cores.local_name(k):
        axes = tuple(0 if yes else None for yes in is_sharded)
        return jax.vmap(run, in_axes=axes, axis_name=name[0])

    def alone(*operands: Any) -> Any:
        outs = run(*(x[0] if yes else x for x, yes in zip(operands, is_sharded, strict=True)))
        return tuple(out[None] for out in outs)

    return alone


def _on_one_core(
    fn: Callable[..., Any], cores: Cores, static: _Static, *shards: Any
) -> tuple[Any, ...]:
    with cores.active():
        leaves, structure = jax.tree.flatten(fn(*shards))
    if structure != static.structure:
        raise LayoutError(
            f"map_shards: the function returns {structure}, but out is {static.structure}"
        )
    made = []
    for leaf, layout in zip(leaves, static.outs, strict=True):
        leaf = as_operand(leaf, "the result of a map_shards function")
        if (leaf.shape, leaf.dtype) != (layout.local_shape, layout.dtype):
            raise LayoutError(
                f"map_shards: the function returns {leaf.dtype.name}{list(leaf.shape)} on a core, "
                f"but {layout!r} has {layout.dtype.name}{list(layout.local_shape)} there"
            )
        made.append(leaf)
    return tuple(made)
