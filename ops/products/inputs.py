"""`KernelInput`: how an operand of a product becomes a matrix on each device.

A device gathers the contracted dims of its part and reorders them from tiles to logical order. That
drops their padding, so that nothing needs a mask.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gridlayout import dtypes
from gridlayout.affine.map import AffineMap, dim, embedding
from gridlayout.caching import cached
from gridlayout.document.grid_layout import GridLayout
from gridlayout.ops.decisions.builder import Builder
from gridlayout.ops.decisions.specs import Local, Sharded
from gridlayout.ops.decisions.value import Value
from gridlayout.ops.moves import packing
from gridlayout.ops.moves.lazy_view import LazyView
from gridlayout.ops.moves.workspace import Chain, Workspace, of_chain
from gridlayout.sharding.collectives import Collectives
from gridlayout.sharding.meshes.placement import Placement

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Roles:
    """The collapsed dims of one operand by role: the numbers of each role in ascending order.

    `empty` collapsed dims hold no logical dim: only their position 0 is valid.
    """

    layout: GridLayout
    batch: Dims
    free: Dims
    contract: Dims
    empty: Dims


@dataclass(frozen=True)
class Gather:
    """The gathering of one contracted dim over mesh axes.

    n: the number of devices. shape: of a device's part before it. at: the dim of the part.
    """

    axes: tuple[str, ...]
    n: int
    shape: Dims
    at: int
    dtype: np.dtype[Any]

    def collectives(self, made: Collectives) -> None:
        """Record what the devices send."""
        dim = self.at if prod(self.shape[: self.at]) > 1 else 0
        made.all_gather(self.axes, dtypes.nbytes(self.shape, self.dtype), dim)

    def run(self, view: LazyView) -> LazyView:
        """Return all devices' parts, joined along the dim."""
        at, n, axes = self.at, self.n, self.axes
        rows, here, inner = view.shape[:at], view.shape[at], view.shape[at + 1 :]
        if prod(rows) == 1:
            return view.all_gather(axes, at)
        found = LazyView.of(lax.all_gather(view.materialize(), axes)).moved(0, at)
        return found.reshape(*rows, n * here, *inner)


@dataclass(frozen=True)
class KernelInput:
    """How one operand is prepared for the kernel: its placed layout, and what is gathered.

    contract_first: whether contracted dims come before the free ones in the matrix, as in the part.
    """

    roles: Roles
    spec: Sharded
    contract_first: bool
    gathers: tuple[tuple[int, Gather], ...]

    def collectives(self, made: Collectives) -> None:
        """Record what the devices send in the kernel."""
        for _, gather in self.gathers:
            gather.collectives(made)

    @property
    def layout(self) -> GridLayout:
        """The layout to which the operand is relaid out."""
        assert isinstance(self.spec.layout, GridLayout)
        return self.spec.layout

    @property
    def shape(self) -> Dims:
        """The shape of the part as a matrix of chunks, without the padding of contracted tiles."""
        return extents(self.roles, self.spec.placement, self.contract_first)

    def matrix_shape(self, contract: Dims) -> Dims:
        """Return (batch, free, contracted), or the last two exchanged; one batch has no dim."""
        batch, *inner = self.shape
        k = prod(self.spec.layout.shape[d] for d in contract)
        matrix = (k, inner[-1]) if self.contract_first else (inner[0], k)
        return matrix if batch == 1 else (batch, *matrix)

    @property
    def result_shapes(self) -> dict[int, Dims]:
        """The local shape of each collapsed dim that the product keeps."""
        roles, shape = self.roles, self.spec.local_shape
        dims = self.layout.axis_dims
        return {k: tuple(shape[d] for d in dims(k)) for k in roles.batch + roles.free}

    @property
    def order(self) -> list[int]:
        """The part's dims in the order of the matrix: empty, batch, contracted and free ones."""
        roles, dims = self.roles, self.layout.axis_dims
        empty, batch, contract, free = (
            [d for k in ks for d in dims(k)]
            for ks in (roles.empty, roles.batch, roles.contract, roles.free)
        )
        return [*empty, *batch, *(contract + free if self.contract_first else free + contract)]


def as_matrix(b: Builder, value: Value, operand: KernelInput, contract: Dims) -> Value:
    """Return an operand as a matrix on each device, shared by products that use the same one."""
    part = b.relayout(value, operand.spec.layout, operand.spec.placement)
    made = b.collectives()
    operand.collectives(made)
    (out,) = b.run(
        lambda part: [_matrix(part, operand, contract)],
        [part],
        [Local(operand.matrix_shape(contract), value.dtype)],
        made,
        is_lazy=True,
        workspace=cache(partial(_matrix_workspace, operand, contract)),
        does=(operand, contract),
    )
    return out


def extents(roles: Roles, placement: Placement, contract_first: bool) -> Dims:
    """Return a part's shape: (batch, contracted ..., free) or (batch, free, contracted ...)."""
    layout = roles.layout

    def local(k: int) -> int:
        inside = prod(layout.physical_shape[d] for d in layout.axis_dims(k)[1:])
        return placement.per_device[k] * inside

    batch, free = prod(map(local, roles.batch)), prod(map(local, roles.free))
    chunks = [placement.per_device[k] * layout.shard_shape[k] for k in roles.contract]
    return (batch, *chunks, free) if contract_first else (batch, free, *chunks)


def _matrix(a: LazyView, operand: KernelInput, contract: Dims) -> LazyView:
    """Return one device's part of an operand as a matrix, with contracted dims fully gathered.

    Batch and free dims stay in cores and tiles. Contracted dims lose the padding of their tiles
    before they are gathered, and are reordered to logical order after.
    """
    roles, layout = operand.roles, operand.roles.layout
    shapes, first = operand.result_shapes, operand.contract_first
    batch, free = (prod(prod(shapes[k]) for k in ks) for ks in (roles.batch, roles.free))
    local = [n for k in roles.contract for n in _local(a, layout, k)]
    for d in (d for k in roles.empty for d in layout.axis_dims(k)):
        a = a.first(1, d)  # the one valid position, which every device has
    view = a.transpose(operand.order)
    view = view.reshape(*((batch, *local, free) if first else (batch, free, *local)))
    start = 1 if first else 2
    for i, k in enumerate(roles.contract):
        view = view.first(layout.shard_shape[k], start + 2 * i + 1)
    inner = view.shape[start : start + len(local)]
    chunks = [cores * positions for cores, positions in zip(inner[::2], inner[1::2], strict=True)]
    view = view.reshape(*((batch, *chunks, free) if first else (batch, free, *chunks)))
    for _, gather in operand.gathers:
        view = gather.run(view)
    for i, k in enumerate(roles.contract):
        view = view.first(layout.collapsed_shape[k], start + i)
    view = _in_logical_order(view, roles, contract, start)
    return LazyView.of(view.reshape(*operand.matrix_shape(contract)).materialize())


def _matrix_workspace(operand: KernelInput, contract: Dims) -> Workspace:
    """Return the workspace of `_matrix`."""
    roles, layout, shape = operand.roles, operand.layout, operand.shape
    chain, nbytes = Chain(operand.spec.device_bytes), dtypes.nbytes(shape, layout.dtype)
    part = jax.ShapeDtypeStruct(operand.spec.local_shape, layout.dtype)
    # A product takes a matrix with contracted dims first or last.
    ways = [operand] if operand.gathers or shape[0] > 1 else [operand, _turned(operand)]
    views = [LazyView.of(part).transpose(way.order) for way in ways]  # type: ignore[arg-type]
    if not any(view.is_in_order for view in views) or nbytes < chain.nbytes:
        chain.view(nbytes)
    start = 1 if operand.contract_first else 2
    chunks = list(shape[start : start + len(roles.contract)])
    for _, gather in operand.gathers:
        chain.gather(gather.n, prod(gather.shape[: gather.at]))
        chunks[gather.at - start] *= gather.n
    rows = tuple(layout.linear.results[k] for k in roles.contract)
    in_order = not rows or rows == tuple(dim(d) for d in contract)
    if not in_order or chunks != [layout.collapsed_shape[k] for k in roles.contract]:
        chain.view(dtypes.nbytes(operand.matrix_shape(contract), layout.dtype))
    return of_chain(chain.materialize())


def _turned(operand: KernelInput) -> KernelInput:
    return replace(operand, contract_first=not operand.contract_first)


def _local(a: LazyView, layout: GridLayout, k: int) -> tuple[int, int]:
    """Return the cores of a collapsed dim on this device, and the positions in each core."""
    core, *inside = (a.shape[d] for d in layout.axis_dims(k))
    return core, prod(inside)


def _in_logical_order(view: LazyView, roles: Roles, contract: Dims, start: int) -> LazyView:
    """Return the view with collapsed contracted dims, from `start`, as the dims of `contract`."""
    layout = roles.layout
    rows = tuple(layout.linear.results[k] for k in roles.contract)
    if rows == tuple(dim(d) for d in contract) or not rows:
        return view
    part, dims = _restricted(layout, roles.contract)
    lead, inner = view.shape[:start], view.shape[start + len(rows) :]
    view = view.reshape(prod(lead), *view.shape[start : start + len(rows)], prod(inner))
    view = view.moved(1 + len(rows), 1).reshape(prod(lead), prod(inner), *part.physical_shape)
    view = packing.undo_moves(view, jnp.zeros((), layout.dtype), part)
    order = (0, *(2 + dims.index(d) for d in contract), 1)
    return view.transpose(order).reshape(*lead, -1, *inner)


@cached
def _restricted(layout: GridLayout, ks: Dims) -> tuple[GridLayout, Dims]:
    """Return a one-core layout of the logical dims of some collapsed dims, and these dims."""
    dims = tuple(sorted(d for k in ks for d in layout.groups[k]))
    lines = AffineMap(layout.ndim, tuple(layout.linear.results[k] for k in ks))
    shape = tuple(layout.shape[d] for d in dims)
    linear = lines.compose(embedding(layout.ndim, dims))
    return GridLayout(shape, layout.dtype, (1,) * len(ks), linear=linear), dims
