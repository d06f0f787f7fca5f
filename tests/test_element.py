"""The way of one element: each panel's ring is on it, and the numbers are those of `locate`."""

import re
import xml.etree.ElementTree as ET

import jax
import numpy as np
import pytest

import gridlayout as gl

SVG = "{http://www.w3.org/2000/svg}"
TOY = gl.sophon.Chip(npus=4, npu_bytes=1024, alignment=128)
PLACE = re.compile(r"core \((.*?)\), local \((.*?)\), offset (\d+)")

# (layout, an index with its collapsed index, or None if no dims are joined)
WAYS = {
    "uneven, tiled": (gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32)), (20, 40), None),
    "last core": (gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32)), (52, 62), None),
    "joined": (gl.GridLayout((2, 3, 10, 14), grid=(3, 2), tile=(4, 4)), (1, 2, 3, 9), (53, 9)),
    "faces": (gl.GridLayout((45, 70), grid=(2, 3), tile=(32, 32), face=(16, 16)), (40, 69), None),
    "rank 1": (gl.GridLayout((11,), "int4", grid=(3,)), (9,), None),
    "rank 0": (gl.GridLayout((), grid=(1,)), (), (0,)),
    "linear": (
        gl.GridLayout((4, 6), grid=(2, 2), linear="(d0, d1) -> (-d0 + 3, d1)"),
        (3, 5),
        (0, 5),
    ),
    "block format": (*(gl.GridLayout((3, 5), tile=(32, 32), tile_format="bfp_bf8"), (2, 4), None),),
    "shards": (gl.GridLayout((7, 9), grid=(2, 3), shard_shape=(6, 3)), (6, 8), None),
    "large": (gl.GridLayout((409, 501), "int8", grid=(8, 7), tile=(32, 32)), (400, 432), None),
    "ttnn": (gl.tenstorrent.ttnn((3, 7, 20), grid=(3, 1), tile=(32, 32)), (2, 6, 19), None),
    "xla": (gl.parse("bf16[4,8]{1,0:T(2,4)(2,1)}"), (3, 5), None),
    "sophon": (gl.sophon.local((2, 5, 3, 4), "float32", start=1024, chip=TOY), (1, 4, 2, 3), None),
    "megengine": (gl.megengine.format((2, 6, 3, 3), "CHWN4", "int8"), (1, 5, 2, 0), None),
}


def panels(drawing):
    """(caption, rectangle of the ring, [(rectangle, what hovers over it)]) of each panel."""
    root = ET.fromstring(drawing.svg)

    def box(rect):
        return tuple(float(rect.get(k)) for k in ("x", "y", "width", "height"))

    for panel in root.findall(f"{SVG}g"):
        groups = {g.get("class"): g for g in panel.findall(f"{SVG}g")}
        cells = [(box(r), r.find(f"{SVG}title").text) for r in groups["cells"]]
        caption = next(t.text for t in panel.findall(f"{SVG}text"))
        yield caption, box(groups["marked"][0]), cells


def notes(drawing):
    root = ET.fromstring(drawing.svg)
    return [t.text for t in root.findall(f"{SVG}text") if t.get("class") == "note"]


def under(ring, cells):
    """What hovers over the cell that has the centre of the ring."""
    x, y = ring[0] + ring[2] / 2, ring[1] + ring[3] / 2
    found = {
        hover
        for (left, top, wide, high), hover in cells
        if left <= x <= left + wide and top <= y <= top + high
    }
    assert len(found) == 1
    return found.pop()


def numbers(text):
    return tuple(int(n) for n in re.findall(r"\d+", text))


@pytest.mark.few(5)
@pytest.mark.parametrize("name", WAYS)
def test_the_numbers_are_those_of_locate(name):
    layout, index, joined = WAYS[name]
    place, drawing = layout.locate(index), layout.draw("element", index=index)
    words = drawing.description
    assert words.startswith(f"Logical index {index}, ")
    if layout.core_rank:
        assert f", core {place.core}, " in words
    at = (
        f"tile {place.local[: -len(layout.tile)]}, in it" if layout.tile and not layout.face else ""
    )
    assert at in words
    assert numbers(re.search(r"(?:in it|position) \((.*?)\)", words)[1])[-1:] == place.local[-1:]
    assert f"offset {place.offset:,}" in words
    assert ("byte" in words) == (place.byte is not None)
    if place.byte is not None:
        assert f", byte {place.byte:,}" in words
    if place.bit:
        assert words.endswith(f", bit {place.bit}.")
    collapsed = re.search(r"collapsed index (\(.*?\))", words)
    assert (collapsed and numbers(collapsed[1])) == joined


@pytest.mark.parametrize("name", WAYS)
def test_the_ring_is_on_the_element_in_each_panel(name):
    layout, index, _ = WAYS[name]
    place, seen = layout.locate(index), 0
    for caption, ring, cells in panels(layout.draw("element", index=index)):
        hover = under(ring, cells)
        found = PLACE.search(hover)
        if found:  # one element
            core, local, offset = map(numbers, found.groups())
            assert (core, local, offset) == (place.core, place.local, (place.offset,)), caption
            if "collapsed" not in caption:
                assert hover.startswith(f"logical {index} -> ")
            seen += 1
        elif (block := re.match(r"(?:rows|logical) \[?([\d:, columns]*)\]?", hover)) is not None:
            assert "padding" not in hover or "%" in hover, caption
            if caption[3:].startswith("logical"):
                sides = [numbers(side) for side in block[1].split(",")]
                assert all(
                    side[0] <= i < side[-1] if len(side) > 1 else i == side[0]
                    for side, i in zip(sides, index, strict=True)
                ), caption
                seen += 1
        else:
            assert f"core {place.core}" in hover, caption
    assert seen


def test_the_terms_lead_to_the_numbers():
    layout, index, _ = WAYS["joined"]
    assert notes(layout.draw("element", index=index, device=gl.DeviceGrid((2, 4))))[1:] == [
        "In a block: its core.",
        "Logical index: d0 = 1, d1 = 2, d2 = 3, d3 = 9.",
        "Collapsed index: d0 * 30 + d1 * 10 + d2 = 53, d3 = 9; from here on, d0 = 53, d1 = 9.",
        "Core: g0 = d0 floordiv 20 = 2, g1 = d1 floordiv 7 = 1.",
        "Position: (d0 floordiv 4) mod 5 = 3, (d1 mod 7) floordiv 4 = 0, d0 mod 4 = 1, "
        "(d1 mod 7) mod 4 = 2.",
        "Offset: 3 x 32 + 0 x 16 + 1 x 4 + 2 x 1 = 102 elements.",
        "Byte: 102 x 4 = 408.",
        "Device: g1 = 1, g0 = 2.",
    ]


@pytest.mark.few(4)
@pytest.mark.parametrize("mesh", [(2, 4), (2, 3), (8,), (1,)])
@pytest.mark.parametrize("grid", [(3, 2), (5, 3), (1, 1)])
def test_the_device_is_that_of_the_array(mesh, grid):
    layout = gl.GridLayout((53, 63), grid=grid, tile=(8, 16))
    device = gl.DeviceGrid(jax.make_mesh(mesh, ("x", "y")[: len(mesh)]))
    x = gl.put(np.zeros((53, 63), np.float32), layout, device)
    for index in ((0, 0), (20, 40), (52, 62)):
        found = x.locate(index)
        drawing = x.draw("element", index=index)
        assert drawing == layout.draw("element", index=index, device=device)
        assert drawing.description.endswith(f", device {found.device}.")
        (caption, ring, cells) = [*panels(drawing)][-1]
        assert caption.endswith(f"device {found.device}")
        assert under(ring, cells) == f"device {found.device}: core {found.core}"


def test_an_array_draws_and_summarizes_its_layout():
    layout = gl.GridLayout((5, 7), grid=(2, 3), tile=(2, 2))
    device = gl.DeviceGrid((2, 4))
    x = gl.put(np.zeros((5, 7), np.float32), layout, device)
    assert x.draw() == layout.draw()
    assert x.draw("memory", width=4) == layout.draw("memory", width=4)
    assert x.draw("fold") == layout.draw("fold", device=device)
    assert str(x.summary("wormhole")) == str(layout.summary("wormhole"))
    titles = []

    def traced(x):
        titles.append((x.draw().title, x.summary().title))
        return x

    jax.jit(traced)(x)
    assert titles == [(layout.draw().title, layout.summary().title)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "view 'element' needs index=, the logical index of one element"),
        ({"index": (5, 0)}, r"index \(5, 0\) is outside the shape \(5, 7\)"),
        ({"index": (1,)}, r"index \(1,\) has rank 1"),
        ({"index": (1, 1), "device": 8}, "device 8 must be a gl.DeviceGrid"),
        ({"index": (1, 1), "color": "core"}, "view 'element' takes no option 'color'"),
    ],
)
def test_bad_requests_are_refused(options, message):
    with pytest.raises(gl.LayoutError, match=message):
        gl.GridLayout((5, 7), grid=(2, 3)).draw("element", **options)


def test_a_tensor_without_elements_has_no_way():
    with pytest.raises(gl.LayoutError, match=r"outside the shape \(0, 7\)"):
        gl.GridLayout((0, 7), grid=(1, 1)).draw("element", index=(0, 0))
