"""Drawings: what stands in each cell of the SVG, against `locate` and the documents' numbers.

Every drawing is read back as XML: the rectangles with what hovers over them, and the numbers in
them. Only `locate`, brute force and the golden files say what is right.
"""

import collections
import itertools
import json
import re
import struct
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import jax
import numpy as np
import pytest
from figures import figures
from hypothesis import given
from hypothesis import strategies as st

import gridlayout as gl
from gridlayout import palette
from gridlayout.__main__ import main
from gridlayout.draw import halo
from gridlayout.draw.bars import Measure, bars
from gridlayout.draw.cells import MIXED, NOTHING, PADDING, find_cells
from gridlayout.draw.logical import strides_in_words
from gridlayout.draw.panels import figure
from gridlayout.draw.timeline import Span, Track, timeline
from gridlayout.draw.views import VIEWS
from gridlayout.gallery import entries, gallery_page
from gridlayout.layouts.layout import Layout

SVG = "{http://www.w3.org/2000/svg}"
GOLDEN = Path(__file__).parent / "golden"
TOY = gl.sophon.Chip(npus=4, npu_bytes=1024, alignment=128)
ELEMENT = re.compile(
    r"logical \((.*?)\) -> core \((.*?)\), local \((.*?)\), offset (\d+)"
    r"(?:, byte (\d+))?(?:, bit \d+)?$"
)

SMALL = {
    "document": gl.GridLayout((5, 7), "bfloat16", grid=(2, 3)),
    "document, tiled": gl.GridLayout((10, 14), "float32", grid=(3, 2), tile=(4, 4), face=(2, 2)),
    "document, rank 4": gl.GridLayout((2, 3, 4, 5), "int8", grid=(2, 2), tile=(4, 4)),
    "document, rank 1": gl.GridLayout((11,), "int4", grid=(2,)),
    "document, rank 0": gl.GridLayout((), "float32", grid=(1,)),
    "document, flipped": gl.GridLayout((4, 6), grid=(2, 2), linear="(d0, d1) -> (-d0 + 3, d1 * 2)"),
    "document, staircase": gl.GridLayout((4, 6), grid=(3, 2), linear="(d0, d1) -> (d0 + d1, d1)"),
    "document, bfp": gl.GridLayout((3, 5), grid=(1, 1), tile=(32, 32), tile_format="bfp_bf8"),
    "ttnn": gl.tenstorrent.ttnn((7, 20), "float32", grid=(1, 1), tile=(32, 32)),
    "metal": gl.tenstorrent.metal((7, 20), "float32", grid=(1, 1), tile=(32, 32)),
    "tt-metal": gl.tenstorrent.tensor_layout((7, 20), "bfloat16", page="tile"),
    "xla": gl.parse("f32[3,5]{1,0:T(2,2)}"),
    "xla, twice": gl.parse("bf16[4,8]{1,0:T(2,4)(2,1)}"),
    "xla, transposed": gl.parse("f32[2,3,4]{0,1,2}"),
    "sophon": gl.sophon.local((2, 5, 3, 4), "float32", start=1024, chip=TOY),
    "sophon, 4N": gl.sophon.local((5, 2, 2, 3), "int8", storage="4N", chip=TOY),
    "sophon, matrix": gl.sophon.matrix(2, 40, 15, "float32", chip=TOY),
    "sophon, system": gl.sophon.system((2, 3, 4, 5), "int8"),
    "megengine": gl.megengine.format((2, 6, 3, 3), "CHWN4", "int8"),
    "megengine, strided": gl.megengine.strided((3, 4), (-1, 3), "int32"),
    "mli": gl.mli.tensor((4, 3, 2), "HWC", "int16", mem_stride=(12, 3, 1)),
}


def golden(system):
    cases = json.loads((GOLDEN / f"{system}.json").read_text(encoding="utf-8"))["cases"]
    return {case["id"]: case for case in cases}


def numbers(text):
    return tuple(int(n) for n in text.replace(",", " ").split())


class Read:
    """A drawing read back: its rectangles as (panel, x, y, width, height, class, hover)."""

    def __init__(self, drawing):
        self.root = ET.fromstring(drawing.svg)
        self.rects, self.labels = [], {}
        for p, panel in enumerate(self.root.findall(f"{SVG}g")):
            for group in panel.iter(f"{SVG}g"):
                kind = group.get("class")
                for item in group if kind == "cells" else ():
                    x, y, w, h = (float(item.get(k)) for k in ("x", "y", "width", "height"))
                    hover = item.find(f"{SVG}title").text
                    self.rects.append((p, x, y, w, h, item.get("class"), hover))
                for item in group if kind == "labels" else ():
                    self.labels[p, float(item.get("x")), float(item.get("y"))] = item.text

    def label(self, rect):
        """The text inside a rectangle."""
        p, x, y, w, h, *_ = rect
        found = [
            text
            for (q, i, j), text in self.labels.items()
            if p == q and x <= i <= x + w and y <= j <= y + h
        ]
        assert len(found) <= 1
        return found[0] if found else ""

    def elements(self):
        """Rectangles of one element by logical index, with core, local, offset and byte."""
        found = {}
        for rect in self.rects:
            match = ELEMENT.match(rect[-1])
            if match:
                index, core, local, offset, byte = match.groups()
                assert numbers(index) not in found
                place = (numbers(core), numbers(local), int(offset), byte and int(byte))
                found[numbers(index)] = (rect, *place)
        return found


def indices(shape):
    return itertools.product(*map(range, shape))


def check_locations(layout, elements):
    assert set(elements) == set(indices(layout.shape))
    for index, (_, core, local, offset, byte) in elements.items():
        where = layout.locate(index)
        assert (core, local, offset, byte) == (where.core, where.local, where.offset, where.byte)


@pytest.mark.parametrize("name", SMALL)
def test_the_logical_view_shows_every_element_where_locate_says(name):
    layout = SMALL[name]
    read = Read(layout.draw("logical", color="core"))
    elements = read.elements()
    check_locations(layout, elements)
    assert len(elements) == len(read.rects)
    corners = {}
    for index, (rect, *_) in elements.items():
        panel, x, y, width, height = rect[:5]
        # Rows and columns are evenly spaced from the first element of their panel.
        first = elements[(*index[:-2], *(0,) * len(index[-2:]))][0]
        down, across = (0, 0, *index)[-2:]
        assert panel == first[0]
        assert x == pytest.approx(first[1] + across * width, abs=0.06 * (across + 1))
        assert y == pytest.approx(first[2] + down * height, abs=0.06 * (down + 1))
        corners.setdefault(panel, set()).add((x, y))
        assert read.label(rect) in ("", str(layout.locate(index).offset))
    assert sum(map(len, corners.values())) == len(elements)
    fills = {(layout.locate(index).core, rect[5]) for index, (rect, *_) in elements.items()}
    assert len(fills) == len({core for core, _ in fills})  # a core has one colour
    if layout.num_cores <= palette.HUES:
        assert len(fills) == len({fill for _, fill in fills})  # and a colour one core


@pytest.mark.parametrize("view", ["memory", "physical"])
@pytest.mark.parametrize("name", SMALL)
def test_memory_shows_every_position_once_and_padding_hatched(name, view):
    layout = SMALL[name]
    cores = list(indices(layout.core_shape))
    every = [Read(layout.draw(view, cores=[core])) for core in cores]
    elements, padding = {}, []
    for core, read in zip(cores, every, strict=True):
        found = read.elements()
        assert all(place[1] == core for place in found.values())
        elements |= found
        padding += [rect for rect in read.rects if rect[5] == "pad"]
    distinct = {layout.locate(i).core + layout.locate(i).local for i in indices(layout.shape)}
    assert len(elements) == len(distinct)
    for index, (_, core, local, offset, byte) in elements.items():
        where = layout.locate(index)
        assert (core, local, offset, byte) == (where.core, where.local, where.offset, where.byte)
    mask = layout.padding_mask()
    hatched = [re.match(r"padding: core \((.*?)\), local \((.*?)\)", rect[-1]) for rect in padding]
    places = [numbers(m[1]) + numbers(m[2]) for m in hatched]
    assert len(set(places)) == len(places) == mask.sum()
    assert all(mask[place] for place in places)


def test_memory_is_in_order_of_addresses():
    read = Read(SMALL["document"].draw("memory", width=4, cores=[(1, 2)]))
    places = sorted((rect[2], rect[1], rect[-1]) for rect in read.rects)
    assert [int(re.search(r"offset (\d+)", p[2])[1]) for p in places] == list(range(9))
    assert len({p[0] for p in places}) == 3  # 9 elements in rows of 4


def test_memory_of_large_buffers_ends_where_the_buffer_ends():
    layout = gl.megengine.strided((99, 99), (100, 1), "int8")  # 9,899 elements, gaps of 1
    read = Read(layout.draw("memory", width=64))
    total = 0
    # A cell of data and of padding is two rectangles.
    for hover in {rect[-1] for rect in read.rects}:
        cell = re.match(r"rows (\d+):(\d+), columns (\d+):(\d+)", hover)
        if cell is None:  # of one position
            assert int(re.search(r"offset (\d+)", hover)[1]) < 9899
            total += 1
            continue
        r0, r1, c0, c1 = map(int, cell.groups())
        assert r0 * 64 + c0 < 9899
        total += sum(min(max(9899 - r * 64 - c0, 0), c1 - c0) for r in range(r0, r1))
    assert total == 9899


@pytest.mark.parametrize("label", ["offset", "byte", "index", "number", "core", "none"])
def test_labels_say_what_is_asked_for(label):
    layout = SMALL["document"]
    read = Read(layout.draw(label=label))
    for index, (rect, *_) in read.elements().items():
        where = layout.locate(index)
        said = {
            "offset": where.offset,
            "byte": where.byte,
            "index": f"{index[0]},{index[1]}",
            "number": index[0] * 7 + index[1],
            "core": f"{where.core[0]},{where.core[1]}",
            "none": "",
        }
        assert read.label(rect) == str(said[label])


@pytest.mark.parametrize(
    ("color", "of"),
    [
        (0, lambda index, where: index[0]),
        (1, lambda index, where: index[1]),
        ("tile", lambda index, where: (where.core, where.offset // 16)),
        ("offset", lambda index, where: where.offset * 8 // 32),
        (lambda r, c: (r * c) % 5, lambda index, where: index[0] * index[1] % 5),
    ],
)
def test_colours_tell_apart_what_is_asked_for(color, of):
    layout = gl.GridLayout((6, 8), "float32", grid=(2, 1), tile=(4, 4))
    elements = Read(layout.draw(color=color)).elements()
    fills = {(of(i, layout.locate(i)), rect[5]) for i, (rect, *_) in elements.items()}
    assert len(fills) == len({key for key, _ in fills}) == len({fill for _, fill in fills}) >= 4


def test_a_slot_whose_first_element_is_padding_is_not_drawn_as_padding():
    layout = gl.GridLayout((3, 4), grid=(1, 1), tile=(2, 2), linear="(d0, d1) -> (d0 + 1, d1)")
    rects = Read(layout.draw("slots")).rects
    assert [rect[5] for rect in rects].count("pad") == 0
    assert [rect[-1].split(": ")[1] for rect in rects] == [
        "logical [0,0:2], 2 elements",
        "logical [0,2:4], 2 elements",
        "logical [1:3,0:2], 4 elements",
        "logical [1:3,2:4], 4 elements",
    ]


# -- the documents' figures ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gallery():
    return {entry.name: entry.drawing for entry in entries()}


@pytest.fixture(scope="module")
def shown(gallery):
    """All figures of the documents: those of the gallery, and the others."""
    rest = dict(figures())
    assert not gallery.keys() & rest.keys()
    return gallery | rest


def test_the_documents_figures_are_drawn(shown):
    expected = {"figure1", "figure1_memory", "figure2", "HWC", "CHW", "HWCN", "grid", "padding"}
    expected |= {f"scatter_{k}" for k in range(4)} | {"stride_local_0", "stride_local_1", "address"}
    expected |= {f"{name}_{npu}" for name in ("aligned", "compact") for npu in (0, 2)}
    expected |= {f"matrix_w_{w}" for w in (40, 20, 10, 8, 15, 6)} | {"aligned_4N", "aligned_2N"}
    formats = ("NCHW", "NHWC", "NCHW4", "NCHW32", "NCHW64", "CHWN4")
    expected |= {"conv2d_in", "conv2d_weights", "conv2d_out"}
    expected |= {f"format_{name}" for name in formats} | {"collapse", "faces", "relayout"}
    expected |= {f"{order}_major{end}" for order in ("row", "column") for end in ("", "_memory")}
    expected |= {"strides_2x5", "format_logical"}
    expected |= {"ttnn", "ttnn_shards", "ttnn_stride", "ttnn_today"}
    assert set(shown) == expected


def test_the_gallery_is_short_and_begins_with_the_core_model(gallery):
    assert len(gallery) <= 24
    assert list(gallery)[:5] == ["grid", "padding", "collapse", "faces", "relayout"]
    documents = [entry.document for entry in entries()]
    assert len({*documents}) == len(list(itertools.groupby(documents))) == 6


def test_ttnn_as_the_document_has_it_and_as_it_is_today(shown):
    """TTNN Example: `./tensor-layout.svg`. Rows of padding: none inside a batch, or 20 of 32."""
    pads = {
        name: sum(rect[5] == "pad" for rect in Read(shown[name]).rects)
        for name in ("ttnn_shards", "ttnn_stride", "ttnn_today")
    }
    assert pads["ttnn_shards"] < pads["ttnn_stride"] == pads["ttnn_today"]


@pytest.mark.parametrize(("name", "case"), [("figure1", 0), ("figure2", 1)])
def test_the_tiles_of_xla_are_numbered_as_in_its_document(shown, name, case):
    known = json.loads((GOLDEN / "xla.json").read_text(encoding="utf-8"))["linear_index"][case]
    read = Read(shown[name])
    table = np.array(known["whole_map"])
    elements = read.elements()
    assert {i: place[3] for i, place in elements.items()} == dict(np.ndenumerate(table))
    assert {i: int(read.label(place[0])) for i, place in elements.items()} == dict(
        np.ndenumerate(table)
    )
    block = 4 if name == "figure1" else 8
    fills = {(n // block, elements[i][0][5]) for i, n in np.ndenumerate(table)}
    assert len(fills) == len({f for _, f in fills}) == len({b for b, _ in fills})


def borders(read):
    """The red borders as boxes (x0, y0, x1, y1), by panel."""
    number = r"(-?[\d.]+)"
    for p, panel in enumerate(read.root.findall(f"{SVG}g")):
        for path in (e for e in panel.iter(f"{SVG}path") if e.get("class") == "inner"):
            found = re.findall(f"M{number} {number}H{number}V{number}H{number}z", path.get("d"))
            assert path.get("d").count("z") == len(found)
            for x0, y0, x1, y1, back in found:
                assert back == x0
                yield p, *map(float, (x0, y0, x1, y1))


def bordered(read):
    """The indices of the elements inside each red border."""
    elements = read.elements()
    for p, x0, y0, x1, y1 in borders(read):
        yield {
            index
            for index, ((q, x, y, w, h, *_), *_) in elements.items()
            if p == q and x0 < x + w / 2 < x1 and y0 < y + h / 2 < y1
        }


def test_figure_2_has_a_red_border_around_each_small_tile(shown):
    """ "Each color indicates a 2x4 tile and each red border box is a 2x1 tile."."""
    found = list(bordered(Read(shown["figure2"])))
    tiles = [{(r, c), (r + 1, c)} for r in (0, 2) for c in range(8)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, tiles))
    for dark in (False, True):
        red, green, blue = linear(palette.colours(dark)["border"])
        assert red > 3 * max(green, blue)
        assert contrast(palette.colours(dark)["border"], palette.colours(dark)["paper"]) >= 3
    assert not list(borders(Read(shown["figure1"])))  # its tiles have no tiles in them


@pytest.mark.parametrize(
    "text",
    [
        "bf16[5,9]{1,0:T(4,4)(2,1)}",
        "f32[6,6]{0,1:T(4,4)(3,1)}",
        "s8[2,6,8]{2,1,0:T(4,4)(2,2)}",
    ],
)
def test_a_border_is_around_what_lies_together(text):
    layout = gl.parse(text)
    blocks = {}
    for index in indices(layout.shape):
        number = layout.locate(index).offset // layout.blocks[-1]
        blocks.setdefault(number, set()).add(index)
    found = [frozenset(held) for held in bordered(Read(layout.draw("tiles")))]
    assert len(found) == len(set(found)) == len(blocks)
    assert set(found) == {frozenset(held) for held in blocks.values()}


def test_faces_lie_one_after_another(shown):
    read = Read(shown["faces"])
    layout = gl.GridLayout((64, 96), "bfloat16", tile=(32, 32), face=(16, 16))
    assert len(read.rects) == 24
    for rect in read.rects:
        row, column = map(int, re.match(r"logical \[(\d+):\d+, (\d+):\d+\]", rect[-1]).groups())
        assert (row % 16, column % 16) == (0, 0)
        assert read.label(rect) == str(layout.locate((row, column)).offset)


def test_figure_1_pads_memory_where_the_document_leaves_holes(shown):
    read = Read(shown["figure1_memory"])
    assert sum(rect[5] == "pad" for rect in read.rects) == 9
    assert len(read.rects) == 24


SOPHON = {
    "stride_local_0": "seed_stride_local_0",
    "stride_local_1": "seed_stride_local_1",
    **{f"{name}_{q}": f"seed_{name}_fp32_q{q}" for name in ("aligned", "compact") for q in (0, 2)},
    **{f"matrix_w_{w}": f"seed_matrix_w{w}" for w in (40, 20, 10, 8, 15, 6)},
    "aligned_4N": "seed_4n",
    "aligned_2N": "seed_2n",
}


@pytest.mark.parametrize("name", SOPHON)
def test_local_memory_is_as_in_sophons_figures(shown, name):
    case = golden("sophon")[SOPHON[name]]
    rank = 2 if case["kind"] == "matrix" else 4
    drawn = {i: (core, byte) for i, (_, core, *_, byte) in Read(shown[name]).elements().items()}
    known = {tuple(row[:rank]): ((row[rank],), row[rank + 1]) for row in case["elements"]}
    if name == "aligned_4N":  # of which NPUs 0 and 1 are drawn
        known = {i: place for i, place in known.items() if place[0][0] < 2}
    assert drawn == known


@pytest.mark.parametrize("k", range(4))
def test_features_are_scattered_as_in_sophons_figures(shown, k):
    case = golden("sophon")[f"seed_scatter_{k}"]
    held = {}
    for rect in Read(shown[f"scatter_{k}"]).rects:
        core, slot, held_ = re.match(r"core \((\d+),\), slot (\d+): (.*)", rect[-1]).groups()
        match = re.match(r"logical \[(\d+),(\d+)\]", held_)
        held[int(core), int(slot)] = match and numbers(f"{match[1]} {match[2]}")
        assert (rect[5] == "pad") == (match is None)
    slots, channels = case["channels_per_npu"], range(case["C"])
    known = {
        (case["npu_of_channel"][c], n * slots + case["slot_of_channel"][c]): (n, c)
        for n in range(2)
        for c in channels
    }
    assert held == {
        (npu, slot): known.get((npu, slot)) for npu in range(4) for slot in range(2 * slots)
    }


def test_hwc_and_chw_are_of_one_tensor(shown):
    """ "The two most frequently used layouts are HWC and CHW", of the same feature map."""
    hwc, chw = (Read(shown[name]).elements() for name in ("HWC", "CHW"))
    rows, columns, channels = (n + 1 for n in max(hwc))
    assert {(h, w, c) for c, h, w in chw} == set(hwc)
    assert {i: place[3] for i, place in hwc.items()} == {
        (h, w, c): (h * columns + w) * channels + c for h, w, c in hwc
    }
    assert {i: place[3] for i, place in chw.items()} == {
        (c, h, w): (c * rows + h) * columns + w for c, h, w in chw
    }
    for h, w, c in hwc:  # one colour a channel, in both
        assert hwc[h, w, c][0][5] == chw[c, h, w][0][5] == f"c{c}"


def test_the_convolutions_figure_shows_what_a_pixel_is_made_of(shown):
    """ "Applicability of HWCN Layout for 2D Convolution Calculation": vectors lie in order."""
    image, weights, out = (
        Read(shown[f"conv2d_{name}"]).elements() for name in ("in", "weights", "out")
    )
    x = np.random.default_rng(0).integers(0, 9, [n + 1 for n in max(image)])
    w = np.random.default_rng(1).integers(0, 9, [n + 1 for n in max(weights)])
    y = np.asarray(
        jax.lax.conv_general_dilated(
            x[None].astype(np.float32),
            w.astype(np.float32),
            *((1, 1), "VALID"),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
    )[0]
    assert y.shape == tuple(n + 1 for n in max(out))
    window = sorted(place[3] for place in image.values() if place[0][5] == "c1")
    pixel = sorted(place[3] for place in out.values() if place[0][5] == "c1")
    vectors = w.reshape(-1)[sorted(place[3] for place in weights.values())].reshape(len(window), -1)
    np.testing.assert_array_equal(x.reshape(-1)[window] @ vectors, y.reshape(-1)[pixel])


@pytest.mark.parametrize("name", ["NCHW", "NHWC", "NCHW4", "NCHW32", "NCHW64", "CHWN4"])
def test_formats_are_stored_in_megengines_order(shown, name):
    order = golden("megengine")[f"seed_format_{name}"]["order"]
    elements = Read(shown[f"format_{name}"]).elements()
    assert len(elements) >= 6 * 8
    for index, place in elements.items():
        assert order[place[3]] == np.ravel_multi_index(index, (2, 64, 3, 3))


def test_elements_that_share_a_byte_say_in_which_bit_they_begin(shown):
    read = Read(shown["format_NCHW64"])
    for index, (rect, *_, byte) in read.elements().items():
        c = index[1]
        assert byte == ((index[2] * 3 + index[3]) * 64 + c) // 2
        assert rect[-1].endswith(f", byte {byte}, bit 4" if c % 2 else f", byte {byte}")


@pytest.mark.parametrize("order", ["row", "column"])
def test_nine_values_lie_in_megengines_order(shown, order):
    strides = (3, 1) if order == "row" else (1, 3)
    for name in (f"{order}_major", f"{order}_major_memory"):
        elements = Read(shown[name]).elements()
        assert {i: place[3] for i, place in elements.items()} == {
            (r, c): r * strides[0] + c * strides[1] for r in range(3) for c in range(3)
        }


def test_megengines_strides_are_bytes(shown):
    read = Read(shown["strides_2x5"])
    drawn = {i: int(read.label(place[0])) for i, place in read.elements().items()}
    assert drawn == {(r, c): 20 * r + 4 * c for r in range(2) for c in range(5)}
    assert "20 B" in shown["strides_2x5"].svg


@pytest.mark.parametrize(
    ("layout", "lines"),
    [
        # XLA stores an int4 in a byte of its own, and an int8 of E(4) in half a byte.
        (gl.parse("s4[4,6]"), ["d0: +6 elements (6 B)", "d1: +1 element (1 B)"]),
        (gl.parse("s8[4,6]{1,0:E(4)}"), ["d0: +6 elements (3 B)", "d1: +1 element (0.5 B)"]),
        # Elements of a block format have no address.
        (SMALL["document, bfp"], ["d0: +32 elements", "d1: +1 element"]),
        (
            gl.parse("s16[640]{0:T(32)(9)(4)(3)}"),
            ["d0: +1 or +3 or +6 or ... elements (2 or 6 or 12 or ... B)"],
        ),
    ],
)
def test_strides_in_bytes_are_those_of_the_addresses(layout, lines):
    assert strides_in_words(layout) == lines


def test_the_planes_of_formats_are_numbered_in_order(shown):
    read = Read(shown["format_logical"])
    drawn = {i: int(read.label(place[0])) for i, place in read.elements().items()}
    assert len(drawn) >= 8 * 9
    assert drawn == {i: np.ravel_multi_index(i, (2, 64, 3, 3)) for i in drawn}


def test_mli_keeps_channels_inside(shown):
    elements = Read(shown["HWC"]).elements()
    samples = golden("mli")["seed_hwc_32_16_3"]["samples"]
    inside = [s for s in samples if tuple(s["index"]) in elements]
    assert len(inside) >= 4
    assert all(elements[tuple(s["index"])][4] == s["byte_offset"] for s in inside)
    weights = {tuple(s["index"]): s for s in golden("mli")["seed_hwcn_4_3_2_1"]["samples"]}
    drawn = Read(shown["HWCN"]).elements()
    assert {i: place[4] for i, place in drawn.items()} == {
        i: s["byte_offset"] for i, s in weights.items()
    }


def test_the_gallery_is_one_page_that_needs_nothing_else(tmp_path, capsys, gallery):
    path = tmp_path / "gallery.html"
    assert main(["gallery", str(path)]) == 0
    assert f"{len(gallery)} figures" in capsys.readouterr().out
    page = path.read_text(encoding="utf-8")
    assert page == gallery_page()
    root = ET.fromstring(page.removeprefix("<!doctype html>\n"))
    assert len(root.findall(f".//{SVG}svg")) == len(gallery)
    assert all(caption.text or len(caption) for caption in root.iter("figcaption"))
    links = set(re.findall(r"https?://[^\"' )]*", page))
    assert links == {"http://www.w3.org/2000/svg"}
    assert main(["gallery", str(tmp_path / "no" / "such" / "folder.html")]) == 1


# -- cells -----------------------------------------------------------------------------------------


def covered(cells, rows, columns):
    count = np.zeros((rows, columns), int)
    for cell in cells:
        count[slice(*cell.rows), slice(*cell.columns)] += 1
    return count


@given(st.data())
def test_cells_cover_every_position_once(data):
    rows, columns = data.draw(st.integers(1, 150)), data.draw(st.integers(1, 150))
    budget = data.draw(st.integers(1, 400))
    table = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=7, max_size=7)))
    a, b = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))

    def key(r, c):
        return table[(r // a * 3 + c // b + (r // a) * (c // b)) % 7]

    cells = find_cells(rows, columns, key, budget)
    assert (covered(cells, rows, columns) == 1).all()
    assert len(cells) <= max(budget, 1)
    whole = key(np.arange(rows)[:, None], np.arange(columns)[None, :])
    for cell in cells:
        block = whole[slice(*cell.rows), slice(*cell.columns)]
        assert set(cell.found) <= set(np.unique(block))
        assert cell.sampled <= cell.size
        if cell.sampled == cell.size:
            assert set(cell.found) == set(np.unique(block))
        beside = set(cell.found) - {PADDING}
        assert {cell.key} == (beside or {PADDING} if len(beside) < 2 else {MIXED})
        assert 0 <= cell.share < 1
        assert (cell.share > 0) == (PADDING in cell.found and len(beside) == 1)
        if cell.sampled == cell.size and cell.share:
            assert cell.share == pytest.approx((block == PADDING).mean())


@pytest.mark.parametrize(
    ("left", "right", "key", "share"),
    [
        ((5, 5), (5, NOTHING), 5, 0),
        ((5, PADDING), (NOTHING, NOTHING), 5, 0.5),
        ((PADDING, PADDING), (PADDING, NOTHING), PADDING, 0),
        ((NOTHING, NOTHING), (NOTHING, NOTHING), NOTHING, 0),
        ((5, 6), (5, NOTHING), MIXED, 0),
    ],
)
def test_positions_past_the_end_are_no_content_of_a_cell(left, right, key, share):
    table = np.array([left, right])
    (cell,) = find_cells(2, 2, lambda r, c: table[r, c], 1)
    assert (cell.key, cell.share) == (key, share)
    assert cell.found == tuple(np.unique(table))


def test_cells_at_the_end_of_a_buffer_are_drawn_as_what_they_hold():
    layout = gl.GridLayout((586, 7), grid=(1, 1), tile=(1, 9))
    drawing = layout.draw("memory", width=64)
    ends = [rect for rect in Read(drawing).rects if "past the end" in rect[-1]]
    assert ends
    assert not {rect[5] for rect in ends} & {"mix"}
    for rect in ends:
        held = r"(padding|(about \d+% padding, )?tiles \(\S+\))$"
        assert re.search(f"-> past the end, {held}", rect[-1])


@pytest.mark.parametrize("n", [1000, 10**6, 10**12, 2**61])
def test_cuts_are_found_exactly_and_equal_neighbours_are_one_cell(n):
    at = n // 3 + 1
    cells = find_cells(n, n, lambda r, c: (r >= at) * 1 + (c >= n - 7) * 2, 1024)
    assert [(c.rows, c.columns, c.key) for c in cells] == [
        ((0, at), (0, n - 7), 0),
        ((0, at), (n - 7, n), 2),
        ((at, n), (0, n - 7), 1),
        ((at, n), (n - 7, n), 3),
    ]


def test_a_large_tensor_is_drawn_core_by_core():
    layout = gl.GridLayout((4096, 4096), "bfloat16", grid=(8, 8), tile=(32, 32))
    read = Read(layout.draw())
    assert len(read.rects) == 64
    for rect in read.rects:
        rows, columns, core = re.match(
            r"logical \[(.*?), (.*?)\], 262,144 positions -> core \((.*?)\)", rect[-1]
        ).groups()
        ends = [numbers(side.replace(":", " ")) for side in (rows, columns)]
        for index in itertools.product(*((low, high - 1) for low, high in ends)):
            assert layout.locate(index).core == numbers(core)
        assert read.label(rect) == f"({core})"


HUGE = {
    "4096^2": gl.GridLayout((4096, 4096), "bfloat16", grid=(8, 8), tile=(32, 32), face=(16, 16)),
    "4069 x 4091": gl.GridLayout((4069, 4091), "bfloat16", grid=(7, 5), tile=(32, 32)),
    "10^12": gl.GridLayout((10**6, 10**6), "float32", grid=(7, 13), tile=(32, 32)),
    "10^12 in a row": gl.GridLayout((10**12,), "float32", grid=(1000,)),
    "10^12 cores": gl.GridLayout((10**6, 10**6), grid=(10**6, 10**6)),
    "rank 8": gl.GridLayout((32,) * 8, "int8", grid=(4, 4), tile=(32, 32)),
    "xla": gl.parse("bf16[1000000,1000000]{1,0:T(8,128)(2,1)}"),
    "strided": gl.megengine.strided((10**6, 10**6), (1, 10**6 + 3), "int8"),
    "sophon": gl.sophon.local((10**3, 10**3, 10**3, 10**3), "int8", storage="4N"),
}

UNTILED = ("10^12 in a row", "10^12 cores", "strided")
TILED = ("4096^2", "4069 x 4091", "10^12", "rank 8")
REFUSED = {
    *itertools.product(UNTILED, ("tiles", "lanes", "slots")),
    *itertools.product(TILED, ["lanes"]),  # a tile is no word
    ("sophon", "halo"),  # channels in turn
}


@pytest.mark.few(24)
@pytest.mark.parametrize("view", [view for view in VIEWS if view not in ("fold", "flows")])
@pytest.mark.parametrize("name", HUGE)
def test_large_tensors_are_drawn_small(name, view):
    if (name, view) in REFUSED:
        with pytest.raises(gl.LayoutError, match=f"no {view}"):
            HUGE[name].draw(view)
        return
    last = {"index": [n - 1 for n in HUGE[name].shape]} if view == "element" else {}
    drawing = HUGE[name].draw(view, **last)
    assert len(drawing.svg.encode()) < 300_000
    assert len(Read(drawing).rects) >= 1


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("core", [None, (0, 0), (2, 1)])
def test_a_halo_is_around_a_block(core, wraps):
    layout = gl.GridLayout((11, 17), grid=(3, 2), tile=(2, 2) if core else None, collapse=[])
    drawing = layout.draw("halo", width=(2, 1), core=core, wraps=wraps)
    (i, j), fills = core or (1, 1), {v: k for k, v in meanings(drawing).items()}
    step, last = layout.shard_shape, (11, 17)
    spans = [
        range(k * n, min(k * n + n, end)) for k, n, end in zip((i, j), step, last, strict=True)
    ]
    expected = {}
    for r, c in itertools.product(range(11), range(17)):
        away = []
        for at, span, n in ((r, spans[0], 11), (c, spans[1], 17)):
            ways = [abs(at - k + turn) for k in span for turn in ((-n, 0, n) if wraps else (0,))]
            away.append(min(ways))
        near = away[0] <= 2 and away[1] <= 1
        expected[r, c] = 0 if away == [0, 0] else 1 if near else 2
    counts = collections.Counter(expected.values())
    whole = sum(w * h for _, _, _, w, h, *_ in Read(drawing).rects)
    for key, name in enumerate(halo._NAMES):
        own = sum(
            w * h for *_, w, h, kind, _ in Read(drawing).rects if kind.split()[0] == fills.get(name)
        )
        assert own / whole == pytest.approx(counts[key] / (11 * 17), abs=2e-3), name


# -- what a reader may trust -----------------------------------------------------------------------


def meanings(drawing):
    """The legend: what each fill means."""
    root = ET.fromstring(drawing.svg)
    swatches = [e for e in root.iter() if "swatch" in (e.get("class") or "")]
    children = list(root)
    return {e.get("class").split()[1]: children[children.index(e) + 1].text for e in swatches}


def ticks(drawing, panel=0):
    """The numbers of a panel: above its columns, beside its rows."""
    groups = ET.fromstring(drawing.svg).findall(f"{SVG}g")[panel].iter(f"{SVG}g")
    by = {g.get("class"): [text.text for text in g] for g in groups}
    return by["ticks middle"], by["ticks right"]


HUGE_MEMORY = gl.GridLayout((4069, 4091), "bfloat16", grid=(7, 5), tile=(32, 32))


@pytest.mark.parametrize("grid", [(3, 2), (3, 3), (4, 4), (2, 9), (16, 16), (16, 1)])
def test_a_colour_is_of_one_group_of_cores(grid):
    layout = gl.GridLayout((16, 16), grid=grid)
    drawing = layout.draw()
    said = meanings(drawing)
    assert len(set(said.values())) == len(said) <= palette.HUES
    for index, (rect, core, *_) in Read(drawing).elements().items():
        words = re.match(r"cores? \((.*)\)$", said[rect[5]])[1]
        for part, i, n in zip(words.split(", "), core, layout.core_shape, strict=True):
            low, _, high = part.partition(":")
            low, high = int(low or 0), int(high or (n if ":" in part else int(low) + 1))
            assert low <= i < high, (index, core, words)


def test_cores_that_share_a_colour_have_a_line_between_them():
    drawing = gl.GridLayout((6, 6), grid=(3, 3)).draw()
    assert set(meanings(drawing).values()) >= {"cores (0, 0:2)", "cores (0, 2)"}
    (heavy,) = re.findall(r'class="line2" d="([^"]*)"', drawing.svg)
    vertical = {float(x) for x in re.findall(r"M([\d.]+) [\d.]+V", heavy)}
    rects = Read(drawing).rects[:6]  # of the first row, in cores of two columns
    assert sorted(vertical) == pytest.approx([rects[2][1], rects[4][1]], abs=0.1)


def test_tiles_have_a_colour_each():
    for layout in (
        gl.GridLayout((100, 100), grid=(2, 2), tile=(8, 8)),
        gl.GridLayout((2, 3, 20, 30), grid=(2, 2), tile=(8, 8)),
        gl.parse("f32[9,1000]{1,0:T(8,128)}"),
    ):
        drawing = layout.draw("tiles")
        colours = {}
        for index, (rect, core, _, offset, _) in Read(drawing).elements().items():
            tile = (core, offset // layout.blocks[0])
            assert colours.setdefault(rect[5], tile) == tile, index
        assert 2 <= len(meanings(drawing)) <= palette.HUES


def test_axes_have_numbers_at_both_ends():
    tall = gl.GridLayout((1000, 3), grid=(8, 1), tile=(32, 32))
    assert ticks(tall.draw("physical")) == (["0", "3", "32"], ["0", "125", "128"])
    assert ticks(tall.draw()) == (
        ["0", "3"],
        ["0", "125", *(f"{125 * k}" for k in range(2, 8)), "1,000"],
    )
    strided = gl.megengine.strided((99, 99), (100, 1), "int8")
    assert ticks(strided.draw("memory", width=64))[1][-1] == "9,899"
    even = gl.GridLayout((3, 96), grid=(1, 1))
    columns, rows = ticks(even.draw())
    assert (columns[0], columns[-1], rows) == ("0", "95", ["0", "1", "2"])


def test_the_memory_of_few_columns_in_wide_tiles_shows_its_share():
    layout = gl.parse("f32[1000,3]{1,0:T(8,128)}")
    drawing = layout.draw("memory")
    area = {"pad": 0.0, "data": 0.0}
    for _, _, _, width, height, fill, _ in Read(drawing).rects:
        assert fill != "mix"
        area["pad" if fill == "pad" else "data"] += width * height
    assert area["data"] / sum(area.values()) < 0.04  # 3 of 128, and no cell is under 9 pixels
    assert "125,000 of 128,000 are padding" in drawing.svg


@pytest.mark.parametrize(
    ("layout", "core"),
    [
        (HUGE_MEMORY, (0, 0)),
        (HUGE_MEMORY, (6, 4)),
        (gl.GridLayout((1000, 1000), grid=(2, 2), tile=(32, 32), face=(16, 16)), (1, 1)),
    ],
)
def test_memory_of_much_data_and_some_padding_shows_their_share(layout, core):
    drawing = layout.draw("memory", cores=[core], color="core")
    held = layout.padding_per_core()[core]
    local = np.prod(layout.local_shape)
    # The share of each cell is seen, whatever the heights of cells are.
    padding = 0.0
    for rect in Read(drawing).rects:
        cell = re.match(r"rows (.*?):(.*?), columns (\d+):(\d+).*?-> (.*)", rect[-1])
        if cell is None:
            padding += rect[5] == "pad"
            continue
        r0, r1, c0, c1 = (int(n.replace(",", "")) for n in cell.groups()[:4])
        part = re.match(r"about (\d+)% padding", cell[5])
        share = int(part[1]) / 100 if part else float(cell[5] == "padding")
        # A cell of both is two rectangles with one hover.
        padding += (r1 - r0) * (c1 - c0) * share / (2 if part else 1)
    assert "mix" not in {rect[5] for rect in Read(drawing).rects}
    assert padding == pytest.approx(held, abs=0.08 * local)


@pytest.mark.parametrize(
    "layout",
    [
        gl.GridLayout((2, 3, 20, 30), grid=(4, 4), tile=(8, 8)),
        gl.parse("f32[9,9]{1,0:T(4,4)}"),
    ],
)
def test_a_tile_is_no_word(layout):
    with pytest.raises(
        gl.LayoutError, match="has no lanes: view 'lanes' needs an innermost block of 2 to 64"
    ):
        layout.draw("lanes")


def test_words_of_later_rows_of_lanes_are_numbered_on():
    drawing = gl.sophon.local((6, 5, 4, 5), "int8", storage="4N", chip=TOY).draw("lanes")
    for rect in Read(drawing).rects:
        cell = re.match(r"rows (\d+):", rect[-1])
        assert cell is None or int(cell[1]) < 16
    assert ticks(drawing)[1][0] == "0 · 0"
    assert ticks(drawing)[1][-1] == "128 · 0"


def test_large_tensors_are_no_block_of_stripes():
    # Of the other two, padding comes and goes too often in memory for each run to be a cell.
    views = {"4096^2": ("memory", "physical"), "4069 x 4091": ("physical",), "xla": ()}
    for name, more in views.items():
        for view in ("logical", "strides", "slots", *more):
            rects = Read(HUGE[name].draw(view)).rects
            striped, whole = (
                sum(w * h for _, _, _, w, h, fill, _ in rects if fill in kinds)
                for kinds in ({"mix"}, {rect[5] for rect in rects})
            )
            assert striped < 0.05 * whole, (name, view)


def test_numbers_are_explained_where_there_are_some():
    layout = SMALL["document, tiled"]
    assert layout.draw().svg.count("Numbers are offsets in a core") == 1
    assert SMALL["document"].draw("memory").svg.count("Numbers are logical indices") == 1
    # 32 elements a row leave no room for indices of three dims.
    for drawing in (layout.draw(label="none"), HUGE["4096^2"].draw(), SMALL["mli"].draw("memory")):
        assert not Read(drawing).labels or drawing.svg.count("Blocks of ") == 1
        assert "Numbers are" not in drawing.svg


@pytest.mark.parametrize("cores", [3, 16, 17, 20, 64])
def test_slots_say_how_many_cores_are_shown(cores):
    drawing = gl.GridLayout((cores,), grid=(cores,)).draw("slots", slot=1)
    drawn = {re.match(r"core \((\d+),\), slot 0: (.*)", rect[-1]) for rect in Read(drawing).rects}
    assert {found[2] for found in drawn} == {f"logical [{k}], 1 element" for k in range(len(drawn))}
    note = f"Shown: 1 of 1 slots, of {len(drawn)} of {cores} cores."
    assert (note in drawing.svg) == (len(drawn) < cores) == (cores > 16)


def test_the_size_of_blocks_is_said_once():
    layout = gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
    assert layout.draw().svg.count("Blocks of up to 18 x 32 elements.") == 1
    assert HUGE["4096^2"].draw().svg.count("Blocks of 512 x 512 elements.") == 1
    assert "Blocks of" not in SMALL["document"].draw().svg  # a cell is one element


def test_blocks_have_edges():
    layout = gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
    root = ET.fromstring(layout.draw().svg)
    (lines,) = (p.get("d") for p in root.iter(f"{SVG}path") if p.get("class") == "line2")
    # The frame, between the cores of each row, and below those of each column but the last.
    assert len(re.findall("M", lines)) == 1 + 3 + 2 * 2


def test_what_stays_has_no_cores_colour():
    a, b = gl.GridLayout((48, 48), grid=(4, 4)), gl.GridLayout((48, 48), grid=(4, 3))
    svg = a.draw("flows", to=b).svg
    bars = re.findall(r'<rect class="(c\d)"', svg)
    assert len(bars) == len(set(bars)) == 8
    for dark in (False, True):
        tones = palette.colours(dark)
        stays = lab(linear(tones["stay"]))
        fills = [lab(linear(tones[f"c{k}"])) for k in range(palette.HUES)]
        assert all(np.linalg.norm(stays - fill) >= 20 for fill in fills)


# -- text, colours, words --------------------------------------------------------------------------


class Hostile(Layout):
    """A layout whose names are markup."""

    def __repr__(self):
        return "</desc><script>alert(1)</script> \x00\ud800 ]]> & ' \""


def test_no_text_becomes_markup():
    chip = gl.sophon.Chip(4, 1024, 128, name="'\"></svg><script>alert(1)</script>&amp;")
    named = gl.sophon.local((1, 2, 3, 4), "int8", chip=chip)
    hostile = Hostile((2, 3), "float32", [], (0, 1))
    for layout in (named, hostile):
        for view in ("logical", "memory", "strides"):
            root = ET.fromstring(layout.draw(view).svg)
            assert not [e for e in root.iter() if e.tag not in KNOWN]
            assert "<script>" in "".join(root.itertext())
    drawn = figure("<b>\x07", "&", "'\"", [])
    root = ET.fromstring(drawn.svg)
    assert root.get("aria-label") == "<b>\ufffd. '\""


KNOWN = {
    SVG + name
    for name in ("svg", "title", "desc", "style", "defs", "pattern", "rect", "path", "g", "text")
}


@pytest.mark.parametrize("name", SMALL)
def test_alt_text_says_what_is_drawn(name):
    layout = SMALL[name]
    drawing = layout.draw()
    root = ET.fromstring(drawing.svg)
    assert root.get("role") == "img"
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
    words = root.find(f"{SVG}desc").text
    assert words == drawing.description
    assert str(layout.shape) in words
    assert f"{layout.size:,} element{'' if layout.size == 1 else 's'}, on" in words
    if not layout.is_scatter:
        share = layout.padding_mask().sum() / max(np.prod(layout.physical_shape), 1)
        assert f"{share:.1%} of all positions are padding" in words


def test_drawings_on_one_page_do_not_restyle_one_another():
    first, second = (SMALL[name].draw() for name in ("document", "xla"))
    ids = []
    for drawing in (first, second):
        root = ET.fromstring(drawing.svg)
        name = root.get("id")
        ids += [e.get("id") for e in root.iter() if e.get("id")]
        rules = re.sub(r"@media [^{]*\{(.*?\})\}", r"\1", root.find(f"{SVG}style").text)
        selectors = re.findall(r"([^{}]+)\{", rules)
        assert all(f"#{name}" in part for s in selectors for part in s.split(",") if part[0] != ".")
        used = {c for e in root.iter() for c in (e.get("class") or "").split()}
        for fill in used:
            if fill[1:].isdigit() or fill in ("pad", "mix"):
                assert f"#{name} .{fill}{{fill:" in rules
    assert len(ids) == len(set(ids))
    assert SMALL["xla"].draw() == second  # the same drawing has the same text


def test_both_colour_schemes_define_every_colour():
    text = SMALL["document"].draw().svg
    dark = re.search(r"@media \(prefers-color-scheme: dark\)\{#\w+\{(.*?)\}\}", text)[1]
    used = set(re.findall(r"var\(--(\w+)\)", text))
    assert used <= {pair.split(":")[0][2:] for pair in dark.split(";")}
    assert used <= set(re.findall(r"--(\w+):#", text[: text.index("@media")]))


def linear(colour):
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    """WCAG 2's contrast ratio."""
    high, low = sorted((linear(c) @ [0.2126, 0.7152, 0.0722] for c in (a, b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_on_every_fill(dark):
    colours = palette.colours(dark)
    fills = [name for name in colours if name[1:].isdigit()]
    assert len(fills) == 16
    assert all(contrast(colours["ink"], colours[name]) >= 4.5 for name in [*fills, "paper", "pad"])
    assert contrast(colours["muted"], colours["paper"]) >= 4.5


# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISION = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
    "all colours": np.eye(3),
}


def lab(rgb):
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x = np.array(to_xyz) @ rgb.clip(0, 1) / [0.9505, 1, 1.089]
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("vision", VISION)
def test_colour_blind_readers_can_tell_any_two_fills_apart(vision, dark):
    fills = [palette.colours(dark)[f"c{k}"] for k in range(palette.HUES)]
    seen = [lab(np.array(VISION[vision]) @ linear(fill)) for fill in fills]
    assert all(np.linalg.norm(a - b) >= 19 for a, b in itertools.combinations(seen, 2))


# -- devices and relayouts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mesh", "grid"), [((2, 4), (3, 2)), ((8,), (2, 2)), ((2, 4), (5, 8)), ((2, 2, 2), (2, 3, 2))]
)
def test_the_fold_shows_the_cores_that_each_device_holds(mesh, grid):
    device = gl.DeviceGrid(mesh)
    shape = tuple(2 * n for n in grid)
    layout = gl.GridLayout(shape, "int32", grid=grid, collapse=[])
    cores = np.zeros(shape, np.int32)
    for index in indices(shape):
        cores[index] = np.ravel_multi_index(layout.locate(index).core, grid)
    x = gl.put(cores, layout, device)
    held = {d: set() for d in device.mesh.devices.flat}
    coordinates = {d: i for i, d in np.ndenumerate(device.mesh.devices)}
    for shard in x.storage.addressable_shards:
        starts = [s.start or 0 for s in shard.index[: len(grid)]]
        for inside in indices(shard.data.shape[: len(grid)]):
            core = tuple(int(s + i) for s, i in zip(starts, inside, strict=True))
            if all(c < g for c, g in zip(core, grid, strict=True)):
                values = np.asarray(shard.data)[inside]
                assert (values == np.ravel_multi_index(core, grid)).all()
                held[shard.device].add(core)
    drawing = layout.draw("fold", device=device)
    assert x._repr_html_() == layout.summary().beside(drawing.svg)
    drawn = {d: set() for d in held}
    idle = 0
    for rect in Read(drawing).rects:
        match = re.match(r"device \((.*?)\): (?:core \((.*?)\)|an idle slot)$", rect[-1])
        if match and match[2] is not None:
            (at,) = (d for d, i in coordinates.items() if i == numbers(match[1]))
            drawn[at].add(numbers(match[2]))
        idle += bool(match and match[2] is None)
    assert drawn == held
    slots = np.prod(x.storage.shape[: len(grid)])
    assert idle == slots - np.prod(grid)


def flow_bytes(drawing):
    """Bytes by (from, to), read off what hovers over the ribbons."""
    found = {}
    for path in ET.fromstring(drawing.svg).iter(f"{SVG}path"):
        title = path.find(f"{SVG}title")
        if title is None:
            continue
        text = title.text
        amount = int(text.split(" B ")[0].replace(",", ""))
        match = re.search(r"from (.*) to (.*)$", text)
        ends = match.groups() if match else (text.split(" stay in ")[1],) * 2
        found[ends] = found.get(ends, 0) + amount
    return found


def staying_bytes(svg):
    """Bytes of the ribbons that are drawn as staying."""
    ribbons = [p for p in ET.fromstring(svg).iter(f"{SVG}path") if p.get("class") == "stay"]
    return sum(int(p[0].text.split(" B stay in ")[0].replace(",", "")) for p in ribbons)


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "lanes"])
def test_six_cores_are_read_on_a_narrow_page(view):
    layout, device = gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32)), gl.DeviceGrid((2, 4))
    options = {
        "element": {"index": (20, 40), "device": device},
        "flows": {"to": layout.replace(grid=(2, 3))},
        "fold": {"device": device},
    }
    width = float(ET.fromstring(layout.draw(view, **options.get(view, {})).svg).get("width"))
    assert 11 * 400 / width >= 7  # pixels of the letters where the drawing is 400 pixels wide


def test_flows_are_the_bytes_that_two_cores_share():
    a = gl.GridLayout((11, 9), "float32", grid=(3, 2), tile=(2, 2))
    b = gl.GridLayout((11, 9), "float32", grid=(2, 2), linear="(d0, d1) -> (d1, d0)")
    known = {}
    for index in indices(a.shape):
        ends = tuple(f"core {x.locate(index).core}" for x in (a, b))
        known[ends] = known.get(ends, 0) + 4
    assert flow_bytes(a.draw("flows", to=b)) == known
    stays = sum(n for (source, target), n in known.items() if source == target)
    assert staying_bytes(a.draw("flows", to=b).svg) == stays > 0
    plan = gl.relayout_plan(a, b, gl.DeviceGrid((2, 4)))
    drawn = flow_bytes(type("D", (), {"svg": plan._repr_html_()}))
    pairs = {(f"device {i}", f"device {j}"): n for (i, j), n in np.ndenumerate(plan.bytes) if n}
    assert drawn == pairs
    assert staying_bytes(plan._repr_html_()) == plan.stays


def test_flows_of_parts_of_bytes_are_counted():
    a, b = (gl.GridLayout((5,), "int4", grid=(n,)) for n in (5, 1))
    drawing = a.draw("flows", to=b)
    assert drawing.title == "int4[5]: 2 B move, 0.5 B stay"
    assert "core (3,): 0.5 B" in drawing.svg
    assert "core (0,): 2.5 B" in drawing.svg
    assert drawing.svg.count("0.5 B from core") == 4


def test_flows_between_many_cores_are_drawn_in_groups():
    a, b = (gl.GridLayout((4096, 4096), grid=grid) for grid in ((64, 64), (4096, 1)))
    drawing = a.draw("flows", to=b)
    assert sum(flow_bytes(drawing).values()) == 4096 * 4096 * 4
    assert len(drawing.svg) < 300_000


def test_more_bars_than_colours_repeat_the_colours():
    names = [f"program {k}" for k in range(palette.HUES + 2)]
    counts = range(len(names))
    drawing = bars("t", "", names, [Measure("bytes", counts, [f"{n} B" for n in counts])])
    fills = re.findall(r'<rect class="(\w+)"[^>]*><title>', drawing.svg)
    assert fills == [f"c{k % palette.HUES}" for k in counts]
    assert bars("t", "", [], [Measure("bytes", [], [])]).svg


def test_a_group_of_one_index_is_named_by_it():
    drawing = gl.GridLayout((9, 4), grid=(1, 1)).draw(color=0)
    assert [*meanings(drawing).values()] == [
        *(f"d0 = {k}..{k + 1}" for k in (0, 2, 4, 6)),
        "d0 = 8",
    ]


# -- the way in ------------------------------------------------------------------------------------


def test_a_drawing_shows_itself_and_is_saved(tmp_path):
    drawing = SMALL["document"].draw()
    assert drawing._repr_html_() == drawing.svg
    assert drawing.svg in SMALL["document"]._repr_html_()  # beside the summary
    drawing.save(tmp_path / "a.svg")
    saved = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert saved == drawing._repr_svg_() == palette.fixed(drawing.svg)
    drawing.save(tmp_path / "a.HTML")
    assert (tmp_path / "a.HTML").read_text(encoding="utf-8").startswith("<!doctype html>")
    for name in ("a.jpg", "a.svg.gz", "a"):
        with pytest.raises(gl.LayoutError, match=r"end the name in \.svg, \.png or \.html"):
            drawing.save(tmp_path / name)
        assert not (tmp_path / name).exists()
    assert repr(drawing).startswith("Drawing('bfloat16[5, 7]: logical tensor by core', ")


@pytest.mark.parametrize("dark", [False, True])
def test_a_fixed_drawing_needs_no_browser(dark):
    layout = gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32), memory_space="l1")
    spans = [Span(0, 3e-6, 'var(--c0) ="var(--c1)" :var(--c2)', "compute")]
    for drawing in (
        layout.draw("physical"),
        layout.draw("flows", to=layout.replace(grid=(2, 3))),
        timeline("t", "", [Track("core", spans)]),
    ):
        svg = palette.fixed(drawing.svg, dark)
        root, before = ET.fromstring(svg), ET.fromstring(drawing.svg)
        (style,) = (e.text for e in root.iter(f"{SVG}style"))
        assert not re.search(r"var\(|@media|data-jp|100%|--", style)
        assert f".paper{{fill:{palette.colours(dark)['paper']}}}" in style
        words = [[e.text for e in r.iter() if e.tag != f"{SVG}style"] for r in (root, before)]
        assert words[0] == words[1]  # what users wrote stays
        attributes = [v for e in root.iter() for k, v in e.items() if k in ("fill", "stroke")]
        assert not [v for v in attributes if "var(" in v]


def test_a_png_is_made_where_there_is_a_renderer(tmp_path, monkeypatch):
    drawing = SMALL["document"].draw()
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert drawing._repr_png_() is None
    with pytest.raises(gl.LayoutError, match=r"pip install 'gridlayout\[png\]'"):
        drawing.save(tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()
    monkeypatch.undo()
    pytest.importorskip("resvg_py")
    drawing.save(tmp_path / "a.png")
    png = (tmp_path / "a.png").read_bytes()
    assert png == drawing._repr_png_()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    # Two pixels to a unit.
    width, height = (float(ET.fromstring(drawing.svg).get(k)) for k in ("width", "height"))
    found = struct.unpack(">II", png[16:24])
    assert found == pytest.approx((2 * width, 2 * height), abs=2)
    # Not of one colour, as an SVG whose colours a renderer does not know is.
    assert len(png) > 5000


def test_what_shows_a_drawing_shows_it_without_html_too():
    layout = gl.GridLayout((53, 63), grid=(3, 2))
    device = gl.DeviceGrid((2, 4))
    x = gl.put(np.zeros((53, 63), np.float32), layout, device)
    plan = gl.relayout_plan(x, layout.replace(grid=(2, 3)))
    report = gl.on_grid(lambda x: x + 1).report(x)
    assert layout._repr_svg_() == layout.draw()._repr_svg_()
    assert x._repr_svg_() == layout.draw("fold", device=device)._repr_svg_()
    assert report._repr_svg_() == report.draw()._repr_svg_()
    assert plan._repr_svg_() == palette.fixed(plan._repr_html_()) == plan.draw()._repr_svg_()


@pytest.mark.parametrize("view", [v for v in VIEWS if v not in ("fold", "flows", "element")])
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 0, 2)])
def test_tensors_without_elements_have_a_drawing(view, shape):
    layout = gl.xla.layout(shape, "float32", tiles=[(2, 2)])
    root = ET.fromstring(layout.draw(view).svg)
    assert "no elements" in "".join(root.itertext())


@pytest.mark.parametrize(
    ("view", "options", "message"),
    [
        ("plan", {}, "view 'plan' is not one of logical, tiles, strides"),
        (["logical"], {}, "is not one of logical"),
        ("logical", {"width": 3}, "view 'logical' takes no option 'width'; it takes color, label"),
        ("logical", {"color": "blue"}, "color 'blue' must be 'core', 'tile', 'offset'"),
        ("logical", {"color": 2}, "color 2 must be 'core'"),
        ("logical", {"color": True}, "color True must be 'core'"),
        ("logical", {"color": lambda r, c: r - 1}, "color gave int64 numbers; it must give whole"),
        ("memory", {"color": lambda r, c: r / 2}, "color gave float64 numbers; it must give whole"),
        ("logical", {"color": lambda r, c: np.arange(99)}, r"color gave \(99,\) numbers for"),
        ("logical", {"color": lambda r, c: "red"}, "it must give whole numbers"),
        ("logical", {"color": "tile"}, "has no tiles, faces or lanes to draw"),
        ("logical", {"color": np.arange(2)}, r"color array\(\[0, 1\]\) must be 'core'"),
        ("memory", {"color": np.arange(2)}, r"color array\(\[0, 1\]\) must be 'core'"),
        ("logical", {"label": "x"}, "label 'x' is not one of offset, index"),
        ("logical", {"label": np.array(["a", "b"])}, "is not one of offset, index"),
        ("tiles", {}, "has no tiles, faces or lanes to draw"),
        ("lanes", {}, "has no lanes"),
        ("slots", {}, "has no slots by default: pass slot=, in elements"),
        ("memory", {"width": 0}, "width 0 must be >= 1"),
        ("memory", {"rows": -1}, "rows"),
        ("memory", {"cores": 5}, "cores 5 must be a sequence of core coordinates"),
        ("memory", {"cores": {(0, 0)}}, "is a set, but the order of the core coordinates counts"),
        ("memory", {"cores": [(2, 0)]}, r"core \(2, 0\) is outside the grid \(2, 3\)"),
        ("memory", {"cores": []}, "cores has 0 cores; it must have 1 to 64"),
        ("fold", {}, "view 'fold' needs device=, a gl.DeviceGrid"),
        ("halo", {"width": -1}, "width -1 must be a number >= 0, or one for each dim"),
        ("halo", {"width": (1, 2, 3)}, "or one for each dim"),
        ("halo", {"width": "x"}, "width 'x' must be a whole number"),
        ("halo", {"core": (2, 0)}, r"core \(2, 0\) is outside the shape"),
        ("flows", {}, r"view 'flows' needs to=, a layout of the shape \(5, 7\)"),
        ("fold", {"device": SMALL["document"]}, "view 'fold' needs device=, a gl.DeviceGrid"),
        ("flows", {"to": SMALL["xla"]}, "needs to="),
        ("flows", {"to": SMALL["document"].with_dtype("int8")}, "and of bfloat16"),
    ],
)
def test_bad_requests_are_refused(view, options, message):
    with pytest.raises(gl.LayoutError, match=message):
        SMALL["document"].draw(view, **options)


@pytest.mark.parametrize("view", ["memory", "physical", "lanes", "slots"])
@pytest.mark.parametrize("linear", ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (-d0 + 3, d1)"])
def test_a_function_that_colours_gets_indices_of_elements_only(view, linear):
    layout = gl.GridLayout((4, 6), grid=(1, 1), tile=(8, 4), face=(1, 4), linear=linear)
    table = np.arange(24).reshape(4, 6) % 3
    options = {"slot": 4} if view == "slots" else {}
    drawing = layout.draw(view, color=lambda r, c: table[r, c], **options)
    for index, (rect, *_) in Read(drawing).elements().items():
        assert rect[5] == f"c{table[index]}"


def test_a_dim_to_colour_by_may_be_a_numpy_integer():
    layout = SMALL["document"]
    assert layout.draw(color=np.int64(1)).svg == layout.draw(color=1).svg


def test_a_map_without_inverse_is_drawn_up_to_what_can_be_listed():
    layout = gl.GridLayout((2048, 2048), grid=(2, 2), linear="(d0, d1) -> (d0 + d1, d1)")
    assert layout.draw().svg
    # So many elements that listing them would take minutes.
    overlapping = gl.megengine.strided((10**5, 10**5), (1, 1), "int8")
    for large in (layout, overlapping):
        with pytest.raises(gl.LayoutError, match="use view='logical'"):
            large.draw("memory")
