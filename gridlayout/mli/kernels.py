"""Output layouts of MLI's vision kernels: convolutions, pooling and fully connected layers.

Layout-dependent kernels take feature maps HWC and weights HWCN, and write HWC. The output's depth
is the number of filters, so the next kernel can read the output without a relayout. Outputs have
the input's element type and no gaps.
"""

from __future__ import annotations

from collections.abc import Sequence

from gridlayout.arguments import Shape, as_items, as_shape, positive
from gridlayout.errors import LayoutError
from gridlayout.mli.tensors import TensorLayout
from gridlayout.public import public

Pads = Sequence[Sequence[int]]


@public
def conv2d(
    x: TensorLayout,
    weights: TensorLayout,
    *,
    stride: Sequence[int] = (1, 1),
    padding: Pads = ((0, 0), (0, 0)),
    dilation: Sequence[int] = (1, 1),
) -> TensorLayout:
    """The output of a 2D convolution, with one channel per filter.

    x: HWC. weights: HWCN, with as many input channels as x. stride, dilation: along H and W, in
    elements. padding: zeros ((above, below), (left, right)). The output has Ho = (Hi + pads -
    reach) // stride + 1 rows, where reach = (Hk - 1) * dilation + 1; W likewise.

    `LayoutError`: another layout; different channels; an innermost mem_stride over 1; pads as large
    as the reach; a kernel larger than the padded input.

    >>> from gridlayout.mli import tensor
    >>> conv2d(tensor((32, 16, 3), "HWC", "int8"), tensor((4, 3, 3, 24), "HWCN", "int8"))
    mli.tensor((29, 14, 24), 'HWC', 'int8')
    """
    kernel = _weights(weights, x)
    if kernel[2] != x.shape[2]:
        raise LayoutError(
            f"weights of {kernel[2]} channels for an input of {x.shape[2]}: conv2d needs the same "
            "number; group_conv2d and depthwise_conv2d take fewer"
        )
    return _feature_map(x, _windows(x, kernel, stride, padding, dilation), kernel[3])


@public
def group_conv2d(
    x: TensorLayout,
    weights: TensorLayout,
    *,
    stride: Sequence[int] = (1, 1),
    padding: Pads = ((0, 0), (0, 0)),
    dilation: Sequence[int] = (1, 1),
) -> TensorLayout:
    """The output of a group convolution, which has filters for each group of input channels.

    weights: HWCN, where C is the number of channels per group. There are (channels of x) / C
    groups, and N must be a multiple of this number. The other arguments and errors are those of
    `conv2d`.

    >>> from gridlayout.mli import tensor
    >>> group_conv2d(tensor((8, 8, 6), "HWC", "int8"), tensor((3, 3, 2, 9), "HWCN", "int8"))
    mli.tensor((6, 6, 9), 'HWC', 'int8')
    """
    kernel = _weights(weights, x)
    groups, remainder = divmod(x.shape[2], kernel[2])
    if remainder or kernel[3] % groups:
        raise LayoutError(
            f"weights {kernel} for an input of {x.shape[2]} channels: the input's channels must be "
            "a multiple of the weights' channels, and the filters a multiple of the groups"
        )
    return _feature_map(x, _windows(x, kernel, stride, padding, dilation), kernel[3])


@public
def depthwise_conv2d(
    x: TensorLayout,
    weights: TensorLayout,
    *,
    stride: Sequence[int] = (1, 1),
    padding: Pads = ((0, 0), (0, 0)),
    dilation: Sequence[int] = (1, 1),
) -> TensorLayout:
    """The output of a depthwise convolution, which has one filter for each input channel.

    weights: HW1N, or HWCN with one channel, with a filter for each of x's channels. The other
    arguments and errors are those of `conv2d`.

    >>> from gridlayout.mli import tensor
    >>> depthwise_conv2d(tensor((8, 8, 6), "HWC", "int8"), tensor((3, 3, 1, 6), "HW1N", "int8"))
    mli.tensor((6, 6, 6), 'HWC', 'int8')
    """
    kernel = _weights(weights, x)
    if kernel[2:] != (1, x.shape[2]):
        raise LayoutError(
            f"weights {kernel} for an input of {x.shape[2]} channels: depthwise_conv2d needs one "
            "channel and one filter per input channel; group_conv2d takes several channels"
        )
    return _feature_map(x, _windows(x, kernel, stride, padding, dilation), kernel[3])


@public
def transpose_conv2d(
    x: TensorLayout,
    weights: TensorLayout,
    *,
    stride: Sequence[int] = (1, 1),
    padding: Pads = ((0, 0), (0, 0)),
) -> TensorLayout:
    """The output of a transposed convolution: Ho = (Hi - 1) * stride + Hk - pads; W likewise.

    padding: the padding of the convolution that is transposed, so it makes the output smaller. The
    other arguments and errors are those of `conv2d`.

    >>> from gridlayout.mli import tensor
    >>> x, weights = tensor((8, 8, 6), "HWC", "int8"), tensor((4, 4, 6, 3), "HWCN", "int8")
    >>> transpose_conv2d(x, weights, stride=(2, 2), padding=((1, 1), (1, 1)))
    mli.tensor((16, 16, 3), 'HWC', 'int8')
    """
    kernel = _weights(weights, x)
    if kernel[2] != x.shape[2]:
        raise LayoutError(f"weights of {kernel[2]} channels for an input of {x.shape[2]}")
    steps, pads = _pair(stride, "stride"), _pads(padding, kernel)
    extents = [(x.shape[k] - 1) * steps[k] + kernel[k] - sum(pads[k]) for k in (0, 1)]
    if min(extents) < 1:
        raise LayoutError(f"padding {pads} leaves nothing: the output would be {tuple(extents)}")
    return _feature_map(x, extents, kernel[3])


@public
def pool2d(
    x: TensorLayout,
    kernel: Sequence[int],
    *,
    stride: Sequence[int] = (1, 1),
    padding: Pads = ((0, 0), (0, 0)),
) -> TensorLayout:
    """The output of max and average pooling by a kernel (H, W); channels do not change.

    x, stride, padding and errors are those of `conv2d`.

    >>> from gridlayout.mli import tensor
    >>> pool2d(tensor((32, 16, 3), "HWC", "int8"), (2, 2), stride=(2, 2))
    mli.tensor((16, 8, 3), 'HWC', 'int8')
    """
    _check(x, ("HWC",), "the input")
    return _feature_map(x, _windows(x, _pair(kernel, "kernel"), stride, padding), x.shape[2])


@public
def fully_connected(x: TensorLayout, weights: TensorLayout) -> TensorLayout:
    """The output of a fully connected layer, which reads x's elements in memory order.

    x: of any shape and layout, without gaps. weights: CN, with a row for each element of x.

    >>> from gridlayout.mli import tensor
    >>> fully_connected(tensor((4, 4, 6), "HWC", "int8"), tensor((96, 10), "CN", "int8"))
    mli.tensor((10,), 'C', 'int8')
    """
    _check(weights, ("CN",), "the weights")
    _check(x, None, "the input")
    if x.transfers.run != x.size:
        raise LayoutError(f"input {x!r} has gaps: fully_connected needs contiguous elements")
    if weights.shape[0] != x.size:
        raise LayoutError(
            f"weights {weights.shape} must have a row for each of the input's {x.size} elements"
        )
    return TensorLayout(weights.shape[1:], "C", x.dtype)


# -- shared ----------------------------------------------------------------------------------------


def _feature_map(x: TensorLayout, extents: Sequence[int], channels: int) -> TensorLayout:
    return TensorLayout((*extents, channels), "HWC", x.dtype)


def _weights(weights: TensorLayout, x: TensorLayout) -> Shape:
    """The weights' extents, after the checks that all convolutions share."""
    _check(x, ("HWC",), "the input")
    _check(weights, ("HWCN", "HW1N"), "the weights")
    return weights.shape


def _check(tensor: TensorLayout, layouts: Sequence[str] | None, what: str) -> None:
    if not isinstance(tensor, TensorLayout):
        raise LayoutError(f"{what}: {tensor!r} must be an MLI tensor, as mli.tensor makes")
    if layouts is not None and tensor.layout not in layouts:
        fix = [name for name in layouts if sorted(name) == sorted(tensor.layout)]
        way = f"; use transpose('{tensor.layout}->{fix[0]}')" if fix else ""
        raise LayoutError(
            f"{what}: {tensor.layout!r}, but the kernel takes {' or '.join(layouts)}{way}"
        )
    if layouts is not None and tensor.mem_stride[-1] != 1:
        raise LayoutError(
            f"{what}: mem_stride {tensor.mem_stride} must end in 1, because the kernel loads "
            "contiguous vectors"
        )


def _windows(
    x: TensorLayout,
    kernel: Shape,
    stride: Sequence[int],
    padding: Pads,
    dilation: Sequence[int] = (1, 1),
) -> list[int]:
    """The number of windows of the kernel along H and along W."""
    steps, spread = _pair(stride, "stride"), _pair(dilation, "dilation")
    reach = tuple((kernel[k] - 1) * spread[k] + 1 for k in (0, 1))
    found = []
    for k, pads in enumerate(_pads(padding, reach)):
        padded = x.shape[k] + sum(pads)
        if reach[k] > padded:
            raise LayoutError(
                f"{'HW'[k]}: the kernel reaches over {reach[k]} elements, but the padded input "
                f"has {x.shape[k]} + {pads[0]} + {pads[1]} = {padded}"
            )
        found.append((padded - reach[k]) // steps[k] + 1)
    return found


def _pair(values: Sequence[int], what: str) -> Shape:
    found = positive(values, what)
    if len(found) != 2:
        raise LayoutError(f"{what} {found} must be 2 numbers, of H and of W")
    return found


def _pads(padding: Pads, reach: Shape) -> list[Shape]:
    """Return the zeros before and after H and W; LayoutError unless fewer than `reach`."""
    form = "pairs ((above, below), (left, right))"
    pairs = [as_shape(pair, "padding") for pair in as_items(padding, "padding", form)]
    if [len(pair) for pair in pairs] != [2, 2]:
        raise LayoutError(f"padding {padding!r} must be {form}")
    for k, pads in enumerate(pairs):
        if max(pads) >= reach[k]:
            raise LayoutError(
                f"padding {pads} of {'HW'[k]} must be below {reach[k]}, the reach of the kernel; "
                "otherwise an output would read only padding"
            )
    return pairs
