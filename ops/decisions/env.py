"""`Env`: what decisions depend on besides the op: the devices and the choices."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gridlayout import dtypes
from gridlayout.document.grid_form import as_grid
from gridlayout.document.grid_layout import GridLayout
from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.policy import Policy, fill_devices, offered, same_grid_and_tile
from gridlayout.ops.decisions.specs import Spec, layout_of
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.limits import LIMITS
from gridlayout.sharding.machine import Machine
from gridlayout.sharding.placement import Placement

Shape = tuple[int, ...]


@jax.jit
def _nothing() -> tuple[()]:
    return ()


def trace_context() -> Hashable:
    """What JAX traces functions anew for: its options, contexts of users, the mesh in use.

    It is another one where any of these is, and the same again where they are.
    """
    return _nothing.trace().jaxpr  # JAX remembers it under just that


@dataclass(frozen=True)
class Env:
    """What the decisions of one program share.

    templates: the operands' layouts, the first of each shape: values that come from none are laid
    out like the one of their shape, or like the first. algorithm: of matrix products, by name; None
    where the cheapest is chosen. whole: in the loop that this is of, small arrays are
    replicated (`plan/loops.py`). context: in which what is planned was
    traced, as users' rules are again. stated: the choices that a plan states for one program.
    nexts: of one program too, the numbers of results and of the operands whose next values they
    are, as the structure of arguments and results says.
    """

    device: DeviceGrid
    policy: Policy = same_grid_and_tile
    templates: tuple[Layout, ...] = ()
    algorithm: str | None = None
    whole: bool = False
    context: Hashable = None
    stated: Any = None
    nexts: tuple[tuple[int, int], ...] = ()

    @property
    def machine(self) -> Machine:
        """What the devices take to send and to compute."""
        return self.device.machine

    @property
    def template(self) -> Layout | None:
        """The first operand's layout."""
        return next(iter(self.templates), None)

    def now(self) -> Env:
        """The same for another program, in JAX's context of now."""
        return replace(self, context=trace_context(), nexts=())

    def is_whole(self, spec: Spec) -> bool:
        """Whether an array, wherever it is now, is to be whole on every device."""
        layout = layout_of(spec)
        if not self.whole or jnp.issubdtype(spec.dtype, jax.dtypes.extended):
            return False
        if layout is not None and layout.memory not in (None, "l1"):
            return False  # it was asked for there
        return prod(spec.shape) * dtypes.bits(spec.dtype) <= 8 * LIMITS.small_bytes

    def choose(self, shape: Shape, dtype: Any, like: Layout | None = None) -> Layout:
        """The policy's layout for a new value that comes from one in the layout `like`."""
        if like is None:
            same = (layout for layout in self.templates if layout.shape == tuple(shape))
            like = next(same, self.template)
        chosen = self.policy(shape, np.dtype(dtype), like, self.device)
        if not isinstance(chosen, Layout) or chosen.shape != tuple(shape):
            raise LayoutError(
                f"the policy gives {chosen!r} for {np.dtype(dtype).name}{list(shape)}: it must "
                "return a gl.Layout of that shape"
            )
        return chosen

    def is_large(self, spec: Spec) -> bool:
        """Whether an array that no core holds is laid out where no operation says how."""
        return prod(spec.shape) * dtypes.bits(spec.dtype) > 8 * LIMITS.small_bytes

    def spread(self, shape: Shape, dtype: Any) -> Layout:
        """The layout of what is computed of logical indices alone, where nobody asks for one.

        By default that of an operand of its shape, or one that fills the devices.
        """
        same = any(layout.shape == tuple(shape) for layout in self.templates)
        if same or self.policy is not same_grid_and_tile:
            return self.choose(shape, dtype)
        return fill_devices(shape, dtype, self.template, self.device)

    def wider(self, shape: Shape, like: Layout) -> Layout:
        """The layout that a broadcast of a value in the layout `like` is like.

        That of an operand of its shape, or of the first one, where that is on more cores.
        """
        if self.policy is not same_grid_and_tile:
            return like
        same = (layout for layout in self.templates if layout.shape == tuple(shape))
        other = next(same, self.template)
        return like if other is None or other.num_cores <= like.num_cores else other

    def choose_slice(self, shape: Shape, dtype: Any, like: Layout | None, times: int) -> Layout:
        """The same for one of so many slices, which are brought there side by side."""
        if self.policy is not same_grid_and_tile:
            return self.choose(shape, dtype, like)
        return offered(tuple(shape), np.dtype(dtype), like, self.device, max(times, 1))[0]

    def choose_grid(self, shape: Shape, dtype: Any, like: Layout) -> GridLayout:
        """The same as a grid layout: the default policy's where the one in use gives another."""
        found = as_grid(self.choose(shape, dtype, like))
        return found or same_grid_and_tile(shape, np.dtype(dtype), like, self.device)

    def placement(self, layout: Layout) -> Placement:
        """Where the device grid places a layout's cores."""
        return self.device.placement(layout.core_shape)
