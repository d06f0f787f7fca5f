"""The gallery: the documents' figures, drawn from real layouts, on one page of HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from gridlayout import megengine, mli, sophon, tenstorrent
from gridlayout.document.grid_layout import GridLayout
from gridlayout.draw.svg import Drawing, escape, tag
from gridlayout.text import parse

# The chip of the document's figures: 4 NPUs, blocks of 4 bytes.
TOY = sophon.Chip(npus=4, npu_bytes=1024, alignment=128)


@dataclass(frozen=True)
class Entry:
    """A figure: the document and the section, its name there, what to see, the drawing."""

    document: str
    section: str
    name: str
    caption: str
    drawing: Drawing


def entries() -> Iterator[Entry]:
    """Every figure of the gallery, document by document.

    >>> len({entry.name for entry in entries()}) == len(list(entries()))
    True
    """
    yield from _tiled()
    yield from _addressed()
    yield from _scattered()
    yield from _strided()
    yield from _layouts()
    yield from _matrices()
    yield from _storage_modes()
    yield from _orders()
    yield from _formats()
    yield from _mli()
    yield from _document_model()
    yield from _ttnn()


def _tiled() -> Iterator[Entry]:
    figure = partial(Entry, "XLA: tiled layout")
    first = parse("f32[3,5]{1,0:T(2,2)}")
    yield figure(
        "Tiled layout, figure 1",
        "figure1",
        "F32[3,5] in 2x2 tiles. The numbers are positions in memory; element (2, 3) is at 17.",
        first.draw("tiles"),
    )
    yield figure(
        "Tiled layout, figure 1",
        "figure1_memory",
        "The same, in memory: tiles stay whole, so positions past the array's bounds are padding.",
        first.draw("memory"),
    )
    yield figure(
        "Repeated tiling, figure 2",
        "figure2",
        "4x8 in tiles of 2x4, a colour each, and those in tiles of 2x1, a red border each: the two "
        "16-bit values of a 32-bit word.",
        parse("bf16[4,8]{1,0:T(2,4)(2,1)}").draw("tiles"),
    )


def _addressed() -> Iterator[Entry]:
    addresses = {"A": 340, "B": 1472, "C": 2300, "D": 3088}
    blocks = {
        name: sophon.local((1, 1, 1, 1), "float32", "compact", start=address, chip=TOY)
        for name, address in addresses.items()
    }
    yield Entry(
        _SOPHON,
        "Address of Tensor in Local Memory",
        "address",
        "A = 340, B = 1472, C = 2300 and D = 3088, a block of 4 bytes at each, on 4 NPUs of 1,024 "
        "bytes: A = Q * S + R is byte R of NPU Q.",
        sophon.memory_map(blocks).draw(),
    )


def _scattered() -> Iterator[Entry]:
    section = "Scatter Features to Different NPUs"
    for k, (channels, npu) in enumerate([(3, 0), (3, 1), (6, 0), (6, 3)]):
        layout = sophon.local(
            (2, channels, 4, 8), "float32", "compact", start=npu * TOY.npu_bytes, chip=TOY
        )
        yield Entry(
            _SOPHON,
            section,
            f"scatter_{k}",
            f"The features (n, c) of C = {channels} channels that start at NPU {npu}: "
            f"ceil(({npu} + {channels}) / 4) = {layout.channels_per_npu} per NPU.",
            layout.draw("slots"),
        )


_SOPHON = "Sophon: tensors in local memory"


def _strided() -> Iterator[Entry]:
    figure = partial(Entry, _SOPHON, "Strides in Local Memory")
    first = sophon.local((2, 5, 3, 4), "float32", strides=(120, 56, 16, 2), chip=TOY)
    yield figure(
        "stride_local_0",
        "N stride 120, C stride 56, H stride 16, W stride 2, from NPU 0; coloured by channel.",
        first.draw("memory", color=1, width=16, label="number"),
    )
    strides = (120, None, None, 2)
    second = sophon.local((2, 3, 1, 10), "float32", strides=strides, start=1024, chip=TOY)
    yield figure(
        "stride_local_1",
        "N stride 120, W stride 2, from NPU 1; H and C stride make no sense here.",
        second.draw("memory", color=1, width=20, label="number"),
    )


def _layouts() -> Iterator[Entry]:
    sections = {"aligned": "128-Byte Aligned Layout", "compact": "Compact Layout"}
    for name, section in sections.items():
        for npu in (0, 2):
            layout = sophon.local(
                (2, 3, 4, 5), "float32", name, start=npu * TOY.npu_bytes, chip=TOY
            )
            yield Entry(
                _SOPHON,
                section,
                f"{name}_{npu}",
                f"(2, 3, 4, 5) from NPU {npu}, a feature a row; coloured by channel.",
                layout.draw("memory", color=1, width=layout.strides[1], label="number"),
            )


def _matrices() -> Iterator[Entry]:
    for width in (40, 20, 10, 8, 15, 6):
        layout = sophon.matrix(2, 40, width, "float32", chip=TOY)
        yield Entry(
            _SOPHON,
            "Matrix Layout",
            f"matrix_w_{width}",
            f"2 x 40, W = {width}: {layout.view_shape[1]} channels, coloured by row; "
            f"{layout.bytes_per_core:,} B of each NPU.",
            layout.draw("memory", color=0, width=32, label="number"),
        )


def _storage_modes() -> Iterator[Entry]:
    yield Entry(
        _SOPHON,
        "Storage Modes, 4N-mode",
        "aligned_4N",
        "(6, 5, 4, 5) of int8: n to n + 3 share a word. n = 6 and 7 are dummies, so two lanes of "
        "the second group are empty. NPUs 0 and 1 of 4.",
        sophon.local((6, 5, 4, 5), "int8", storage="4N", chip=TOY).draw(
            "lanes", color=0, label="number", cores=[(0,), (1,)]
        ),
    )
    yield Entry(
        _SOPHON,
        "Storage Modes, 2N-mode",
        "aligned_2N",
        "(3, 5, 4, 5) of int16: n and n + 1 share a word. n = 3 is a dummy.",
        sophon.local((3, 5, 4, 5), "int16", storage="2N", chip=TOY).draw(
            "lanes", color=0, label="number"
        ),
    )


_MEGENGINE = "MegEngine: strides and formats"


def _orders() -> Iterator[Entry]:
    for order, side in (("row_major", "row"), ("column_major", "column")):
        layout = megengine.contiguous((3, 3), "int32", order)
        words = order.replace("_", "-")
        yield Entry(
            _MEGENGINE,
            "How values are stored in memory",
            order,
            f"a11 ... a33 {words}: a {side}'s values lie side by side. The numbers are offsets.",
            layout.draw("strides"),
        )
        yield Entry(
            _MEGENGINE,
            "How values are stored in memory",
            f"{order}_memory",
            f"The same nine values in memory, {words}: which index lies at each offset.",
            layout.draw("memory", color=0, width=9),
        )
    yield Entry(
        _MEGENGINE,
        "Strides of a tensor, in two dims",
        "strides_2x5",
        "2x5 values of int32: 4 bytes to the next column, 20 to the next row; numbers are bytes.",
        megengine.contiguous((2, 5), "int32").draw("strides", label="byte"),
    )


def _formats() -> Iterator[Entry]:
    shape = (2, 64, 3, 3)
    yield Entry(
        _MEGENGINE,
        "Introduction of formats",
        "format_logical",
        "The tensor, N = 2, C = 64, H = 3 and W = 3: its first planes (n, c), their elements "
        "numbered as in the figures of the formats below.",
        megengine.format(shape, "NCHW", "int8").draw("logical", color=1, label="number"),
    )
    # Elements of a row: those that lie together, as the document's figures group them.
    widths = {"NCHW": 9, "NHWC": 64, "NCHW4": 36, "NCHW32": 32, "NCHW64": 64, "CHWN4": 8}
    for name, width in widths.items():
        section = {"NCHW": "NCHW and NHWC", "NHWC": "NCHW and NHWC", "CHWN4": "CHWN4"}
        yield Entry(
            _MEGENGINE,
            section.get(name, "NCHWX"),
            f"format_{name}",
            f"{name} of a (2, 64, 3, 3) tensor, whose elements are numbered in order of NCHW; "
            "coloured by channel.",
            megengine.format(shape, name, "int4" if name == "NCHW64" else "int8").draw(
                "memory", color=1, width=width, rows=6, label="number"
            ),
        )


def _mli() -> Iterator[Entry]:
    figure = partial(Entry, "embARC MLI: data layouts")
    section = "Changing the Data Layout of Three-Dimensional Tensors"
    image = mli.tensor((4, 4, 3), "HWC", "int8")
    yield figure(
        section,
        "HWC",
        "A feature map (4, 4, 3), HWC, a line for each of its rows: the channels of a pixel lie "
        "side by side. Coloured by channel.",
        image.draw("memory", color=2, width=12),
    )
    yield figure(
        section,
        "CHW",
        "The same tensor, transposed to CHW, a line for each channel, which is a whole image. "
        "Coloured by channel.",
        image.transpose("HWC->CHW").draw("memory", color=0, width=16),
    )
    yield figure(
        "MLI Data layout (HWCN)",
        "HWCN",
        "weights(4, 3, 2, 1): 1 filter of 4 rows, 3 columns and 2 channels, with its strides.",
        mli.tensor((4, 3, 2, 1), "HWCN", "int8").draw("strides"),
    )
    yield from _convolution(partial(figure, "MLI Data layout (HWCN)"))


def _convolution(figure: Callable[..., Entry]) -> Iterator[Entry]:
    """What the first output pixel of a 2D convolution reads and writes, where it lies."""
    image = mli.tensor((4, 5, 2), "HWC", "int8")
    weights = mli.tensor((3, 3, 2, 8), "HWCN", "int8")
    yield figure(
        "conv2d_in",
        "The input (4, 5, 2) of a 2D convolution, HWC, a line for each of its rows. The window of "
        "the first output pixel is 3 lines of 6 elements side by side.",
        image.draw("memory", color=lambda h, w, c: (h < 3) & (w < 3), width=10),
    )
    yield figure(
        "conv2d_weights",
        "Its weights (3, 3, 2, 8), HWCN. A line is what one element of the window is multiplied "
        "by: a vector of 8 filters, side by side. Coloured by row of the filters.",
        weights.draw("memory", color=0, width=8),
    )
    yield figure(
        "conv2d_out",
        "Its output (2, 3, 8), HWC. A line is a pixel: the sum of 18 such products, a vector side "
        "by side again.",
        mli.conv2d(image, weights).draw("memory", color=lambda h, w, c: h + w == 0, width=8),
    )


def _document_model() -> Iterator[Entry]:
    figure = partial(Entry, "Tenstorrent: tensor layout")
    layout = GridLayout((53, 63), "bfloat16", grid=(3, 2), tile=(32, 32))
    yield figure(
        "Grid Shape",
        "grid",
        "A tensor that its grid does not divide: rows 18, 18, 17 and columns 32, 31.",
        layout.draw(),
    )
    yield figure(
        "Tiled layouts",
        "padding",
        "Each core's shard in whole 32x32 tiles; what is left of a tile is padding.",
        layout.draw("physical"),
    )
    yield figure(
        "Dimension Collapsing",
        "collapse",
        "(2, 3, 64, 128), its first three dims collapsed, on 2x4 cores.",
        GridLayout((2, 3, 64, 128), "float32", grid=(2, 4), tile=(32, 32)).draw(),
    )
    yield figure(
        "Tiled layouts",
        "faces",
        "A 32x32 tile is four 16x16 faces, one after another in memory. The numbers are offsets.",
        GridLayout((64, 96), "bfloat16", tile=(32, 32), face=(16, 16)).draw("tiles"),
    )
    yield figure(
        "Grid Shape",
        "relayout",
        "From 3x2 cores to 2x3: the bytes that each core holds for each other.",
        layout.draw("flows", to=layout.replace(grid=(2, 3))),
    )


def _ttnn() -> Iterator[Entry]:
    figure = partial(Entry, "Tenstorrent: TTNN tensor layout", "TTNN Example")
    shape, tile = (12, 12, 16), (32, 32)
    document = tenstorrent.ttnn_document(shape, "bfloat16", grid=(2, 1), tile=tile)
    yield figure(
        "ttnn",
        "(12, 12, 16) by the strides (192, 16, 1) in a plane of 144x16, in shards of 72x16: six "
        "batches a core, whatever the tile.",
        document.draw(),
    )
    yield figure(
        "ttnn_shards",
        "The same shards padded out to tiles, 96x32: batches lie across tiles.",
        document.draw("physical"),
    )
    apart = document.replace(stride=(32 * 16, 16, 1), shard_shape=(6 * 32, 16))
    yield figure(
        "ttnn_stride",
        "With a stride of 512 along the first dim each batch begins a tile: shards of 192x32.",
        apart.draw("physical"),
    )
    yield figure(
        "ttnn_today",
        "TTNN of today pads each batch to tiles before it divides: shards of 192x32.",
        tenstorrent.ttnn(shape, "bfloat16", grid=(2, 1), tile=tile).draw("physical"),
    )


def gallery_page() -> str:
    """The gallery as one page of HTML, which needs nothing beside itself."""
    body = [tag("h1", "Layouts, drawn"), tag("p", escape(_INTRODUCTION))]
    for document, found in groupby(entries(), key=lambda entry: entry.document):
        body.append(tag("h2", escape(document)))
        for entry in found:
            words = tag("b", escape(f"{entry.section}: {entry.name}. ")) + escape(entry.caption)
            caption = tag("figcaption", words)
            body.append(tag("figure", caption + entry.drawing.svg, id=entry.name))
    head = tag("meta", charset="utf-8") + tag("title", "gridlayout: gallery") + _STYLE
    page = tag("head", head) + tag("body", "\n".join(body))
    return f"<!doctype html>\n{tag('html', page, lang='en')}\n"


def write_gallery(path: str | Path) -> int:
    """Write the gallery's page to a file; gives the number of figures on it."""
    page = gallery_page()
    Path(path).write_text(page, encoding="utf-8")
    return page.count("<figure ")


_INTRODUCTION = (
    "The figures of the documents, drawn from the layouts that this library builds. Hover over a "
    "cell to see which element lies where."
)
_STYLE = (
    "<style>:root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1120px;margin:32px auto;padding:0 20px}"
    "figure{margin:28px 0}figcaption{margin-bottom:8px}"
    "svg{display:block;border:1px solid #8886;border-radius:6px}</style>"
)
