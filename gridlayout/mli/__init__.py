"""embARC MLI: tensors of up to 4 dims with memory strides, and moves between them.

    index --sum(mem_stride * index)--> element, counted from the tensor's first element

The letters of a layout name the dims of the shape in order, the outermost first: `tensor((32, 16,
3), "HWC", ...)` has 32 rows, 16 columns and 3 channels. H is height, W is width, C is input
channels, and N is output channels (never a batch). 1 is a dim of extent 1, as in depthwise weights,
HW1N. Strides count elements; the last dim has the smallest stride.
"""

from __future__ import annotations

from gridlayout.mli.access import Lanes, Transfers
from gridlayout.mli.kernels import (
    conv2d,
    depthwise_conv2d,
    fully_connected,
    group_conv2d,
    pool2d,
    transpose_conv2d,
)
from gridlayout.mli.moves import Mov, mov
from gridlayout.mli.tensors import TensorLayout

tensor = TensorLayout

__all__ = ["Lanes", "Mov", "TensorLayout", "Transfers", "conv2d", "depthwise_conv2d"]
__all__ += ["fully_connected", "group_conv2d", "mov", "pool2d", "tensor", "transpose_conv2d"]
