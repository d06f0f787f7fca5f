"""Layouts of every system over one small shape, and arrays whose bits say where they are from."""

from functools import cache
from math import prod

import numpy as np

import gridlayout as gl
from gridlayout.dtypes import MLIR_NAMES

SHAPE, TOY = (3, 6, 3, 4), gl.sophon.Chip(npus=4, npu_bytes=1 << 16, alignment=128)
BITS = {
    **{name: 1 for name in ("int1", "uint1") if name in MLIR_NAMES},
    **{"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4},
}


def systems(dtype):
    """Layouts of every system; without those that refuse types of less than a byte."""
    small = dtype in BITS
    element = {name: e for e, name in gl.xla.tiled.ELEMENT_TYPES.items()}[dtype]
    aligned, own = "row_major", BITS.get(dtype, 8)  # bits
    strides = (1, 8, 192, 48) if own == 1 else (1, 4, 96, 24)  # rows begin at whole bytes
    found = {
        "document": gl.GridLayout(SHAPE, dtype, (2, 4)),
        "document, tiled": gl.GridLayout(SHAPE, dtype, (3, 2), (4, 4), oob=1),
        "document, faces": gl.GridLayout(SHAPE, dtype, (2, 2), (8, 4), face=(4, 2)),
        "document, flat": gl.GridLayout(SHAPE, dtype, (5,), collapse=[(0, 4)]),
        "document, used twice": gl.GridLayout(
            SHAPE, dtype, (2, 2), linear="(d0, d1, d2, d3) -> (d0 * 18 + d1 * 3 + d2, d2 + d3)"
        ),
        "metal_layout": gl.tenstorrent.metal(SHAPE, dtype, grid=(1, 1), tile=(32, 32)),
        "ttnn_layout": gl.tenstorrent.ttnn(SHAPE, dtype, grid=(2, 1), tile=(32, 32)),
        "ttnn_layout, rows": gl.tenstorrent.ttnn(SHAPE, dtype, grid=(2, 1)),
        "tt-metal": gl.tenstorrent.tensor_layout(SHAPE, dtype, shard_shape=(32, 32), cores=2),
        "tt-metal, rows": gl.tenstorrent.tensor_layout(
            SHAPE, dtype, aligned, shard_shape=(2, 1, 3), cores=(2, 2), page_alignment=16
        ),
        "tt-metal, interleaved": gl.tenstorrent.tensor_layout(
            SHAPE, dtype, aligned, page_alignment=32, oob=1
        ),
        "xla": gl.parse(f"{element}[3,6,3,4]{{3,2,1,0}}"),
        "xla, tiled": gl.parse(f"{element}[3,6,3,4]{{1,3,2,0:T(2,4)(2,1)L(256)}}"),
        "xla, E": gl.parse(
            f"{element}[3,6,3,4]{{3,0,2,1:T(*,8)E({128 if 'c' in element else 64})}}"
        ),
        "local": gl.sophon.local(SHAPE, dtype, "aligned", chip=TOY, oob=1),
        "local, from NPU 3": gl.sophon.local(
            SHAPE, dtype, "compact", start=(3 << 16) + 64, chip=TOY
        ),
        "local, lanes": gl.sophon.local(SHAPE, dtype, lanes=4, chip=TOY),
        "system": gl.sophon.system(SHAPE, dtype, strides=(80, 12, 4, 1)),
        "strided": gl.megengine.strided(SHAPE, strides, dtype, size=600, start=8),
    }
    formats = ("NCHW", "NHWC", "NCHW4", "NCHW32", "NCHW64", "NCHW88", "CHWN4", "NHWCD4")
    found |= {name: gl.megengine.format(SHAPE, name, dtype) for name in formats}
    if small:
        found["xla, own bits"] = gl.parse(f"{element}[3,6,3,4]{{3,2,1,0:E({BITS[dtype]})}}")
        return found
    if dtype == "bool":
        found |= {f"xla, E({n})": gl.parse(f"pred[3,6,3,4]{{3,2,1,0:E({n})}}") for n in (1, 2, 4)}
    return found | {
        "strided, backwards": gl.megengine.strided(SHAPE, (1, 3, -18, 80), dtype),
        "mli": gl.mli.tensor(SHAPE, "HWCN", dtype, mem_stride=(200, 32, 6, 1), oob=1),
    }


@cache
def example(shape, dtype):
    """Bits that say where an element is from; floats have NaNs and -0.0 among them."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.arange(prod(shape)).reshape(shape) % 3 == 0
    words = (np.arange(1, 1 + prod(shape), dtype=np.uint64) * 2654435761) >> np.uint64(7)
    kind = np.dtype(f"u{min(dtype.itemsize, 8)}")
    if dtype.itemsize == 1:
        words %= 1 << BITS.get(dtype.name, 8)
    raw = np.repeat(words.astype(kind), dtype.itemsize // kind.itemsize)
    return raw.view(dtype).reshape(shape)


def bits_of_elements(layout, dtype):
    """The bytes of each core's buffer, in which the bits that belong to elements are 1."""
    width = np.dtype(dtype).itemsize
    value = 1 if dtype == "bool" else (1 << BITS.get(dtype, 8 * width)) - 1
    ones = np.full(layout.shape, value, f"u{width}").view(dtype)
    mask = gl.to_bytes(ones, layout.with_oob(None))
    if dtype == "bool":  # an element whose bits are not all 0 is true
        for _ in range(min(layout.stored_bits, 8) - 1):
            mask |= mask << 1
    return mask
