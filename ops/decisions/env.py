"""`Env`: what decisions depend on besides the op: the devices, the choices, the cost model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gridlayout.errors import LayoutError
from gridlayout.layouts.layout import Layout
from gridlayout.ops.array.policy import Policy, same_grid_and_tile
from gridlayout.sharding.cost import CostModel
from gridlayout.sharding.device_grid import DeviceGrid
from gridlayout.sharding.placement import Placement

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Env:
    """What the decisions of one program share.

    templates: the operands' layouts, the first of each shape: values that come from none are laid
    out like the one of their shape, or like the first. algorithm: of matrix products, by name; None
    where the cost model chooses.
    """

    device: DeviceGrid
    policy: Policy = same_grid_and_tile
    templates: tuple[Layout, ...] = ()
    algorithm: str | None = None
    model: CostModel = field(default_factory=CostModel)

    @property
    def template(self) -> Layout | None:
        """The first operand's layout."""
        return next(iter(self.templates), None)

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

    def placement(self, layout: Layout) -> Placement:
        """Where the device grid places a layout's cores."""
        return self.device.placement(layout.core_shape)
