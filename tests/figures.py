"""The documents' figures that the gallery leaves out, by name: `FIGURES` draws them."""

import gridlayout as gl
from gridlayout.gallery import TOY

SHAPE = (2, 64, 3, 3)
WIDTHS = {"NCHW32": 32, "NCHW64": 64}
IMAGE = gl.mli.tensor((4, 5, 2), "HWC", "int8")
WEIGHTS = gl.mli.tensor((3, 3, 2, 8), "HWCN", "int8")


def at_npu(shape, npu, layout="aligned", **more):
    return gl.sophon.local(shape, "float32", layout, start=npu * TOY.npu_bytes, chip=TOY, **more)


def by_channel(layout, width):
    return layout.draw("memory", color=1, width=width, label="number")


def scattered():
    for k, (channels, npu) in enumerate([(3, 0), (3, 1), (6, 0)]):
        yield f"scatter_{k}", at_npu((2, channels, 4, 8), npu, "compact").draw("slots")


def local_memory():
    strided = {"strides": (120, 56, 16, 2)}
    first = gl.sophon.local((2, 5, 3, 4), "float32", **strided, chip=TOY)
    yield "stride_local_0", by_channel(first, 16)
    strided = {"strides": (120, None, None, 2)}
    second = gl.sophon.local((2, 3, 1, 10), "float32", **strided, start=1024, chip=TOY)
    yield "stride_local_1", by_channel(second, 20)
    for name, npu in (("aligned", 0), ("compact", 0), ("compact", 2)):
        layout = at_npu((2, 3, 4, 5), npu, name)
        yield f"{name}_{npu}", by_channel(layout, layout.strides[1])
    for width in (40, 20, 10, 8, 6):
        matrix = gl.sophon.matrix(2, 40, width, "float32", chip=TOY)
        drawing = matrix.draw("memory", color=0, width=32, label="number")
        yield f"matrix_w_{width}", drawing
    mode = gl.sophon.local((3, 5, 4, 5), "int16", storage="2N", chip=TOY)
    yield "aligned_2N", mode.draw("lanes", color=0, label="number")


def formats():
    for order in ("row", "column"):
        layout = gl.megengine.contiguous((3, 3), "int32", f"{order}_major")
        yield f"{order}_major", layout.draw("strides")
        yield f"{order}_major_memory", layout.draw("memory", color=0, width=9)
    plain = gl.megengine.format(SHAPE, "NCHW", "int8")
    yield "format_logical", plain.draw("logical", color=1, label="number")
    for name, width in WIDTHS.items():
        layout = gl.megengine.format(SHAPE, name, "int4" if name == "NCHW64" else "int8")
        yield (
            f"format_{name}",
            layout.draw("memory", color=1, width=width, rows=6, label="number"),
        )


def convolution():
    """What the first output pixel of a 2D convolution reads and writes, where it lies."""
    window = IMAGE.draw("memory", color=lambda h, w, c: (h < 3) & (w < 3), width=10)
    yield "conv2d_in", window
    yield "conv2d_weights", WEIGHTS.draw("memory", color=0, width=8)
    out = gl.mli.conv2d(IMAGE, WEIGHTS)
    yield "conv2d_out", out.draw("memory", color=lambda h, w, c: h + w == 0, width=8)


def ttnn():
    document = gl.tenstorrent.ttnn_document((12, 12, 16), "bfloat16", grid=(2, 1), tile=(32, 32))
    apart = document.replace(stride=(32 * 16, 16, 1), shard_shape=(6 * 32, 16))
    yield "ttnn_stride", apart.draw("physical")


def figures():
    """(name, drawing) of each."""
    for some in (scattered, local_memory, formats, convolution, ttnn):
        yield from some()
