"""`Env`: what decisions depend on besides the op: the devices, the policy and the options."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout import dtypes
from gridlayout.arguments import Shape
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.policy import Policy, fill_devices, offered, same_grid_and_tile
from gridlayout.ops.decisions.specs import Spec, layout_of
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machines.machine import Machine
from gridlayout.sharding.meshes.placement import Placement


@jax.jit
def _nothing() -> tuple[()]:
    return ()


def trace_context() -> Hashable:
    """Return a key of all that makes JAX retrace: its options, user contexts, the mesh in use.

    Two keys are equal if and only if JAX would reuse a trace.
    """
    return _nothing.trace().jaxpr  # JAX caches traces by exactly these settings


def templates_of(layouts: Iterable[Layout | None]) -> tuple[Layout, ...]:
    """Return the templates of operands in these layouts: the first layout of each shape."""
    found: dict[Shape, Layout] = {}
    for layout in layouts:
        if layout is not None:
            found.setdefault(layout.shape, layout.canonical)
    return tuple(found.values())


@dataclass(frozen=True)
class Env:
    """The settings that all decisions of one program share.

    templates: the operands' layouts, the first of each shape. A value that depends on no laid-out
    array is laid out like the template of its shape, or else like the first one.
    algorithm: the name of the algorithm of all matrix products; None chooses the cheapest of each.
    replicates_small: whether small arrays are replicated, in the body of a loop (`plan/loops.py`).
    context: the `trace_context` in which the program was traced. Users' rules are traced in it too.
    stated: the choices of a plan, for one program only.
    nexts: for one program only, pairs (number of a result, number of the operand whose next value
    it is), from the structure of arguments and results.
    """

    device: DeviceGrid
    policy: Policy = same_grid_and_tile
    templates: tuple[Layout, ...] = ()
    algorithm: str | None = None
    replicates_small: bool = False
    context: Hashable = None
    stated: Any = None
    nexts: tuple[tuple[int, int], ...] = ()

    @property
    def machine(self) -> Machine:
        """The machine model: what communication and computation take on these devices."""
        return self.device.machine

    @property
    def template(self) -> Layout | None:
        """The first operand's layout."""
        return next(iter(self.templates), None)

    def now(self) -> Env:
        """Return this environment for another program, in JAX's current context."""
        return replace(self, context=trace_context(), nexts=())

    def replicates(self, spec: Spec) -> bool:
        """Whether an array, wherever it is placed now, is to be replicated on every device."""
        layout = layout_of(spec)
        if not self.replicates_small or jnp.issubdtype(spec.dtype, jax.dtypes.extended):
            return False
        if layout is not None and layout.memory not in (None, "l1"):
            return False  # this memory was requested
        return dtypes.nbytes(spec.shape, spec.dtype) <= LIMITS.small_bytes

    def choose(self, shape: Shape, dtype: Any, like: Layout | None = None) -> Layout:
        """Return the policy's layout for a new value that is computed from one in layout `like`."""
        if like is None:
            same = (layout for layout in self.templates if layout.shape == tuple(shape))
            like = next(same, self.template)
        chosen = self.policy(shape, np.dtype(dtype), like, self.device)
        if not isinstance(chosen, Layout) or chosen.shape != tuple(shape):
            raise LayoutError(
                f"the policy gives {chosen!r} for {np.dtype(dtype).name}{list(shape)}: it must "
                "return a gl.Layout of that shape"
            )
        if not self.device.placements.has(chosen.core_shape):  # never of the default policy
            raise LayoutError(
                f"the policy gives {chosen!r}, but the core_map of {self.device!r} gives the grid "
                f"{chosen.core_shape} no placement: return a layout on another grid"
            )
        return chosen if like is None else self.device.placements.like(chosen, like)

    def is_large(self, spec: Spec) -> bool:
        """Whether an array that no core holds is large enough to be laid out without a request."""
        return dtypes.nbytes(spec.shape, spec.dtype) > LIMITS.small_bytes

    def spread(self, shape: Shape, dtype: Any) -> Layout:
        """Return the layout of an array that depends on logical indices alone, by default.

        It is that of an operand of the same shape, or else one that fills the devices.
        """
        same = any(layout.shape == tuple(shape) for layout in self.templates)
        if same or self.policy is not same_grid_and_tile:
            return self.choose(shape, dtype)
        return fill_devices(shape, dtype, self.template, self.device)

    def wider(self, shape: Shape, like: Layout) -> Layout:
        """Return the layout to imitate for a broadcast to `shape` of a value in layout `like`.

        It is the template of that shape, or else the first one, if it has more cores than `like`.
        """
        if self.policy is not same_grid_and_tile:
            return like
        same = (layout for layout in self.templates if layout.shape == tuple(shape))
        other = next(same, self.template)
        return like if other is None or other.num_cores <= like.num_cores else other

    def choose_slice(self, shape: Shape, dtype: Any, like: Layout | None, times: int) -> Layout:
        """Return the layout for one of `times` slices, which are relaid out together."""
        if self.policy is not same_grid_and_tile:
            return self.choose(shape, dtype, like)
        found = offered(tuple(shape), np.dtype(dtype), like, self.device, max(times, 1))[0]
        return found if like is None else self.device.placements.like(found, like)

    def choose_grid(self, shape: Shape, dtype: Any, like: Layout) -> GridLayout:
        """Return `choose` as a `GridLayout`; the default policy's if the policy gives another."""
        found = as_grid(self.choose(shape, dtype, like))
        return found or same_grid_and_tile(shape, np.dtype(dtype), like, self.device)

    def placement(self, layout: Layout) -> Placement:
        """Return the placement of a layout, which may be an intermediate one of a rule."""
        return self.device.placements.inner(layout)
