"""The functions for use inside `gl.map_shards`: the core's index, and collectives over cores.

The cores of one device are a `vmap` inside `shard_map`. So a collective over a grid dim is one over
the axis of that vmap and the mesh axes that divide the dim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout.arguments import as_flag, as_items
from gridlayout.dtypes import oob_value
from gridlayout.errors import LayoutError
from gridlayout.layouts.mesh_axes import Axes
from gridlayout.ops.moves.packing import as_operand
from gridlayout.public import public
from gridlayout.sharding import extremes
from gridlayout.sharding.collectives import permute
from gridlayout.sharding.meshes.placement import Placement

_here: ContextVar[Cores | None] = ContextVar("gridlayout_cores", default=None)


@dataclass(frozen=True)
class Cores:
    """The grid of cores that a function is being mapped over."""

    placement: Placement

    def local_name(self, k: int) -> Axes:
        """Return the vmap axis of grid dim `k`, if a device holds several cores along it."""
        return (f"gridlayout_core{k}",) if self.placement.per_device[k] > 1 else ()

    def names(self, k: int) -> Axes:
        """Return the mesh axes and the vmap axis of grid dim `k`."""
        return (*self.placement.axes[k], *self.local_name(k))

    def devices(self, k: int) -> int:
        """Return the number of devices along grid dim `k`."""
        return self.placement.slots[k] // self.placement.per_device[k]

    @contextmanager
    def active(self) -> Iterator[None]:
        """Return a context in which the functions of this module act on these cores."""
        token = _here.set(self)
        try:
            yield
        finally:
            _here.reset(token)


@public
def core_index(dim: int | None = None) -> Any:
    """Return this core's coordinate along grid dim `dim`, an int32; by default a tuple of all.

    For use inside `gl.map_shards`.
    """
    cores = _cores("core_index")
    if dim is None:
        return tuple(core_index(k) for k in range(len(cores.placement.grid)))
    return _index(cores.names(_dim(cores, dim)))


@public
def shift(x: Any, offset: int, dim: int = 0, *, wrap: bool = True, fill: Any = 0) -> jax.Array:
    """Return `x` of the core `offset` places before this one along grid dim `dim`.

    As in `jnp.roll`, `shift(x, 1)` is the previous core's `x` and `shift(x, -1)` the next one's.
    wrap: whether the first and the last core are neighbours; else cores without such a neighbour
    get `fill`. For use inside `gl.map_shards`.

    >>> from gridlayout import DeviceGrid, GridLayout, map_shards, put
    >>> layout = GridLayout((3,), "int32", grid=(3,))
    >>> x = put([1, 2, 3], layout, DeviceGrid((1,)))
    >>> map_shards(lambda shard: shift(shard, 1), x, out=layout).to_logical().tolist()
    [3, 1, 2]
    """
    cores = _cores("shift")
    k = _dim(cores, dim)
    x = as_operand(x, "shift")
    grid, per_device = cores.placement.grid[k], cores.placement.per_device[k]
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise LayoutError(f"shift: offset {offset!r} must be an int, the same on every core")
    local = cores.local_name(k)
    block = lax.all_gather(x, local[0]) if local else x[None]
    wrap, fill = as_flag(wrap, "shift: wrap"), as_operand(fill, "shift: fill")
    if fill.shape not in ((), x.shape):
        raise LayoutError(f"shift: fill has shape {fill.shape}; give a number, or {x.shape}")
    missing = jnp.full(x.shape, fill, x.dtype)
    found = []
    for slot in range(per_device):
        requests = []
        for here in range(cores.devices(k)):
            core = here * per_device + slot
            source = (core - offset) % grid if wrap else core - offset
            if core < grid and 0 <= source < grid:
                requests.append((source // per_device, here, source % per_device))
        found.append(_exchanged(block, requests, cores, k, missing))
    return jnp.stack(found)[lax.axis_index(local[0])] if local else found[0]


def _exchanged(
    block: jax.Array, requests: list[tuple[int, int, int]], cores: Cores, k: int, missing: jax.Array
) -> jax.Array:
    """Return a buffer of another device's block.

    requests: (source device, target device, place in the source's block), for each target device.
    """
    axes = cores.placement.axes[k]
    me, out = _index(axes), missing
    while requests:
        # In one permutation, each device sends once.
        first = {source: (source, here, place) for source, here, place in reversed(requests)}
        requests = [one for one in requests if first[one[0]] != one]
        places = {source: place for source, _, place in first.values()}
        if len(set(places.values())) == 1:
            sent = block[next(iter(places.values()))]
        else:
            table = jnp.asarray([places.get(d, 0) for d in range(cores.devices(k))])
            sent = block[table[me]]
        pairs = [(source, here) for source, here, _ in first.values()]
        if any(source != here for source, here in pairs):
            sent = permute(sent, axes, pairs)
        reached = jnp.asarray([any(h == d for _, h in pairs) for d in range(cores.devices(k))])
        out = sent if len(pairs) == cores.devices(k) else jnp.where(reached[me], sent, out)
    return out


@public
def psum(x: Any, dim: int | Sequence[int]) -> jax.Array:
    """Return the sum of all cores' `x` along grid dims. For use inside `gl.map_shards`."""
    return _reduced("psum", lax.psum, x, dim, 0)


@public
def pmax(x: Any, dim: int | Sequence[int]) -> jax.Array:
    """Return the maximum of all cores' `x` along grid dims. For use inside `gl.map_shards`."""
    return _reduced("pmax", partial(_extreme, extremes.pmax), x, dim, -1)


@public
def pmin(x: Any, dim: int | Sequence[int]) -> jax.Array:
    """Return the minimum of all cores' `x` along grid dims. For use inside `gl.map_shards`."""
    return _reduced("pmin", partial(_extreme, extremes.pmin), x, dim, 1)


def _reduced(name: str, reduce: Callable[..., Any], x: Any, dim: Any, sign: int) -> jax.Array:
    cores = _cores(name)
    dims = {_dim(cores, d) for d in _dims(dim)}
    x = as_operand(x, name)
    if sign and not jnp.issubdtype(x.dtype, jnp.number):
        raise LayoutError(f"{name} takes numbers, not {x.dtype.name}")
    for k in dims:
        if cores.placement.slots[k] != cores.placement.grid[k]:  # idle slots do not count
            neutral = jnp.zeros((), x.dtype) if not sign else _neutral(x.dtype, sign)
            x = jnp.where(core_index(k) < cores.placement.grid[k], x, neutral)
    names = tuple(name for k in sorted(dims) for name in cores.names(k))
    return reduce(x, names) if names else x


def _neutral(dtype: Any, sign: int) -> jax.Array:
    return jnp.asarray(oob_value(sign * inf, dtype), dtype)


@partial(jax.custom_jvp, nondiff_argnums=(0, 2))
def _extreme(reduce: Callable[..., Any], x: jax.Array, names: tuple[str, ...]) -> jax.Array:
    return reduce(x, names)


@_extreme.defjvp
def _no_derivative(reduce: Callable[..., Any], names: Any, primals: Any, tangents: Any) -> Any:
    """Raise as JAX does: the derivative of the bits that are reduced would be zero."""
    raise NotImplementedError(f"Differentiation rule for {reduce.__name__!r} not implemented")


@public
def all_gather(x: Any, dim: int = 0) -> jax.Array:
    """Return all cores' `x` along a grid dim, stacked in front. For use inside `gl.map_shards`."""
    cores = _cores("all_gather")
    k = _dim(cores, dim)
    x = as_operand(x, "all_gather")
    name, axes = cores.local_name(k), cores.placement.axes[k]
    block = lax.all_gather(x, name[0]) if name else x[None]
    if axes:
        block = lax.all_gather(block, axes, axis=0, tiled=True)
    return lax.slice_in_dim(block, 0, cores.placement.grid[k])


def _index(names: Axes) -> jax.Array:
    return lax.axis_index(names) if names else jnp.zeros((), jnp.int32)


def _cores(name: str) -> Cores:
    cores = _here.get()
    if cores is None:
        raise LayoutError(
            f"gl.cores.{name} acts on the core that runs it: call it inside gl.map_shards"
        )
    return cores


def _dims(dim: Any) -> tuple[Any, ...]:
    is_one = isinstance(dim, (int, np.integer))
    return (dim,) if is_one else as_items(dim, "dim", "grid dims")


def _dim(cores: Cores, dim: Any) -> int:
    rank = len(cores.placement.grid)
    if isinstance(dim, bool) or not isinstance(dim, int) or not -rank <= dim < rank:
        raise LayoutError(f"grid dim {dim!r} must be an int in [{-rank}, {rank}): {rank} grid dims")
    return dim % rank
