"""The gallery: drawings of layouts of all systems on one HTML page, the core model first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from gridlayout import megengine, mli, sophon, tenstorrent
from gridlayout.document.grid_layout import GridLayout
from gridlayout.svg import Drawing, escape, tag
from gridlayout.text import parse

# The chip in the figures of local memory: 4 NPUs, blocks of 4 bytes.
TOY = sophon.Chip(npus=4, npu_bytes=1024, alignment=128)


@dataclass(frozen=True)
class Entry:
    """A figure: the document and section that describe it, its id, caption and drawing."""

    document: str
    section: str
    name: str
    caption: str
    drawing: Drawing


def entries() -> Iterator[Entry]:
    """Yield every figure of the gallery, document by document.

    >>> len({entry.name for entry in entries()}) == len(list(entries()))
    True
    """
    yield from _core_model()
    yield from _ttnn()
    yield from _xla()
    yield from _sophon()
    yield from _megengine()
    yield from _mli()


def _core_model() -> Iterator[Entry]:
    figure = partial(Entry, "Tensor Layout (tt-mlir)")
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
        "Each core's shard in whole 32x32 tiles; the rest of a tile is padding.",
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
        "A 32x32 tile is four 16x16 faces, one after another in memory.",
        GridLayout((64, 96), "bfloat16", tile=(32, 32), face=(16, 16)).draw("tiles"),
    )
    yield figure(
        "Grid Shape",
        "relayout",
        "A relayout from 3x2 to 2x3 cores: the bytes that each core sends to each other core.",
        layout.draw("flows", to=layout.replace(grid=(2, 3))),
    )


def _ttnn() -> Iterator[Entry]:
    figure = partial(Entry, "TTNN Tensor Layout (tt-mlir)", "TTNN Example")
    shape, tile = (12, 12, 16), (32, 32)
    document = tenstorrent.ttnn_document(shape, "bfloat16", grid=(2, 1), tile=tile)
    yield figure(
        "ttnn",
        "(12, 12, 16) by the strides (192, 16, 1) in a plane of 144x16, in shards of 72x16: six "
        "batches per core, for any tile.",
        document.draw(),
    )
    yield figure(
        "ttnn_shards",
        "The same shards padded to tiles, 96x32: a batch may span two tiles.",
        document.draw("physical"),
    )
    yield figure(
        "ttnn_today",
        "The current TTNN pads each batch to tiles before it divides: shards of 192x32.",
        tenstorrent.ttnn(shape, "bfloat16", grid=(2, 1), tile=tile).draw("physical"),
    )


def _xla() -> Iterator[Entry]:
    figure = partial(Entry, "Tiled layout (XLA)")
    first = parse("f32[3,5]{1,0:T(2,2)}")
    yield figure(
        "Tiled layout",
        "figure1",
        "F32[3,5] in 2x2 tiles: element (2, 3) is at 17.",
        first.draw("tiles"),
    )
    yield figure(
        "Tiled layout",
        "figure1_memory",
        "The same in memory: tiles are stored completely, so positions past the array's bounds "
        "are padding.",
        first.draw("memory"),
    )
    yield figure(
        "Repeated tiling",
        "figure2",
        "4x8 in tiles of 2x4 (one colour each), which are divided into tiles of 2x1 (red borders): "
        "the two 16-bit values of a 32-bit word.",
        parse("bf16[4,8]{1,0:T(2,4)(2,1)}").draw("tiles"),
    )


def _sophon() -> Iterator[Entry]:
    figure = partial(Entry, "Tensor layouts (Sophon)")
    blocks = {
        name: sophon.local((1, 1, 1, 1), "float32", "compact", start=address, chip=TOY)
        for name, address in {"A": 340, "B": 1472, "C": 2300, "D": 3088}.items()
    }
    yield figure(
        "Address of Tensor in Local Memory",
        "address",
        "A = 340, B = 1472, C = 2300 and D = 3088, a block of 4 bytes at each, on 4 NPUs of 1,024 "
        "bytes: A = Q * S + R is byte R of NPU Q.",
        sophon.memory_map(blocks).draw(),
    )
    scattered = sophon.local((2, 6, 4, 8), "float32", "compact", start=3 * 1024, chip=TOY)
    yield figure(
        "Scatter Features to Different NPUs",
        "scatter_3",
        "The features (n, c) of 6 channels that start at NPU 3: ceil((3 + 6) / 4) = 3 per NPU.",
        scattered.draw("slots"),
    )
    yield figure(
        "128-Byte Aligned Layout",
        "aligned_2",
        "(2, 3, 4, 5) from NPU 2, one feature per row; coloured by channel.",
        sophon.local((2, 3, 4, 5), "float32", start=2 * 1024, chip=TOY).draw(
            "memory", color=1, width=32, label="number"
        ),
    )
    yield figure(
        "Matrix Layout",
        "matrix_w_15",
        "2 x 40, W = 15: 3 channels, coloured by row.",
        sophon.matrix(2, 40, 15, "float32", chip=TOY).draw(
            "memory", color=0, width=32, label="number"
        ),
    )
    yield figure(
        "Storage Modes, 4N-mode",
        "aligned_4N",
        "(6, 5, 4, 5) of int8: n to n + 3 share a word. n = 6 and 7 are dummies, so two lanes of "
        "the second group are empty. NPUs 0 and 1 of 4.",
        sophon.local((6, 5, 4, 5), "int8", storage="4N", chip=TOY).draw(
            "lanes", color=0, label="number", cores=[(0,), (1,)]
        ),
    )


def _megengine() -> Iterator[Entry]:
    figure = partial(Entry, "Tensor memory layout (MegEngine)")
    yield figure(
        "Strides of a tensor",
        "strides_2x5",
        "2x5 values of int32: 4 bytes to the next column, 20 to the next row.",
        megengine.contiguous((2, 5), "int32").draw("strides", label="byte"),
    )
    # The width is the number of contiguous elements, as the document's figures group them.
    for name, width, section in (
        ("NCHW", 9, "NCHW and NHWC"),
        ("NHWC", 64, "NCHW and NHWC"),
        ("NCHW4", 36, "NCHWX"),
        ("CHWN4", 8, "CHWN4"),
    ):
        yield figure(
            section,
            f"format_{name}",
            f"{name} of a (2, 64, 3, 3) tensor, coloured by channel.",
            megengine.format((2, 64, 3, 3), name, "int8").draw(
                "memory", color=1, width=width, rows=6, label="number"
            ),
        )


def _mli() -> Iterator[Entry]:
    figure = partial(Entry, "Data layouts (embARC MLI)")
    section = "Changing the Data Layout of Three-Dimensional Tensors"
    image = mli.tensor((4, 4, 3), "HWC", "int8")
    yield figure(
        section,
        "HWC",
        "A feature map (4, 4, 3), HWC, one line per row: the channels of a pixel are contiguous. "
        "Coloured by channel.",
        image.draw("memory", color=2, width=12),
    )
    yield figure(
        section,
        "CHW",
        "The same tensor, transposed to CHW, one line per channel, which is a complete image. "
        "Coloured by channel.",
        image.transpose("HWC->CHW").draw("memory", color=0, width=16),
    )
    yield figure(
        "MLI Data layout (HWCN)",
        "HWCN",
        "weights(4, 3, 2, 1): 1 filter of 4 rows, 3 columns and 2 channels, with its strides.",
        mli.tensor((4, 3, 2, 1), "HWCN", "int8").draw("strides"),
    )


def gallery_page() -> str:
    """Return the gallery as a self-contained HTML page."""
    body = [tag("h1", "Layouts, drawn"), tag("p", escape(_INTRODUCTION))]
    for document, found in groupby(entries(), key=lambda entry: entry.document):
        body.append(tag("h2", escape(document)))
        for entry in found:
            words = tag("b", escape(f"{entry.section}. ")) + escape(entry.caption)
            caption = tag("figcaption", words)
            body.append(tag("figure", caption + entry.drawing.svg, id=entry.name))
    head = tag("meta", charset="utf-8") + tag("title", "gridlayout: gallery") + _STYLE
    page = tag("head", head) + tag("body", "\n".join(body))
    return f"<!doctype html>\n{tag('html', page, lang='en')}\n"


def write_gallery(path: str | Path) -> int:
    """Write the gallery's page to a file; return the number of figures on it."""
    page = gallery_page()
    Path(path).write_text(page, encoding="utf-8")
    return page.count("<figure ")


_INTRODUCTION = (
    "Layouts of every system, drawn as this library builds them, after the figures of the "
    "documents that describe them. Hover over a cell to see its element and address."
)
_STYLE = (
    "<style>:root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1120px;margin:32px auto;padding:0 20px}"
    "figure{margin:28px 0}figcaption{margin-bottom:8px}"
    "svg{display:block;border:1px solid #8886;border-radius:6px}</style>"
)
