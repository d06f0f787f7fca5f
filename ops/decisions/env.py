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

    template: the first operand's layout, for values that come from none. algorithm: of matrix
    products, by name; None where the cost model chooses.
    """

    device: DeviceGrid
    policy: Policy = same_grid_and_tile
    template: Layout | None = None
    algorithm: str | None = None
    model: CostModel = field(default_factory=CostModel)

    def choose(self, shape: Shape, dtype: Any, like: Layout | None = None) -> Layout:
        """The policy's layout for a new value that comes from one in the layout `like`."""
        chosen = self.policy(shape, np.dtype(dtype), like or self.template, self.device)
        if not isinstance(chosen, Layout) or chosen.shape != tuple(shape):
            raise LayoutError(
                f"the policy gives {chosen!r} for {np.dtype(dtype).name}{list(shape)}: it must "
                "return a gl.Layout of that shape"
            )
        return chosen

    def placement(self, layout: Layout) -> Placement:
        """Where the device grid places a layout's cores."""
        return self.device.placement(layout.core_shape)
