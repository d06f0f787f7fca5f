"""A conversion loses nothing, or names it: every element's place is read one by one."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from laid_out import indices
from random_layouts import cases
from test_systems import TABLES
from tiers import examples, few

import gridlayout as gl
from gridlayout.conversion.candidates import SYSTEMS

pytestmark = pytest.mark.filterwarnings("ignore::gridlayout.LayoutWarning")
TILED = gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32))

BLOCKS = gl.GridLayout((64, 64), "bfloat16", tile=(32, 32), tile_format="bfp_bf8")


STORED = gl.sophon.system((6, 5, 4, 3), "int8", storage="4N")
BLOCKED = {
    "NCHW4": "s8[2,6,3,5]{3,2,1,0:T(4,1,1)}",
    "NCHW32": "s8[2,6,3,5]{3,2,0,1:T(32,1,1,1)}",
    "CHWN4": "s8[2,6,3,5]{0,3,2,1:T(4,1,1,1)}",
    "NHWCD4": "s8[2,6,3,5]{3,1,2,0:T(4,1)}",
}


def format_of(name, channels=6):
    return gl.megengine.format((2, channels, 3, 5), name, "int8")


def places(layout, end_to_end):
    """The core's number and the first bit of each element; or the bit in all buffers in a row."""
    found = {}
    for index in indices(layout.shape):
        at = layout.locate(index)
        core = int(np.ravel_multi_index(at.core, layout.core_shape)) if at.core else 0
        if layout.tile_format is not None:
            bit, whole = at.offset, int(np.prod(layout.local_shape))
        else:
            bit, whole = at.byte * 8 + at.bit, layout.bytes_per_core * 8
        found[index] = core * whole + bit if end_to_end else (core, bit)
    return found


def check(before, found):
    after, lost = found.layout, {loss.what for loss in found.losses}
    assert (after.shape, after.dtype) == (before.shape, before.dtype)
    assert gl.parse(str(after)) == after
    assert lost <= {"format", "cores", "places", "bytes", "memory", "pages", "fields", "oob"}
    if before.tile_format == after.tile_format:
        end_to_end = before.num_cores != after.num_cores
        here, there = places(before, end_to_end), places(after, end_to_end)
        assert ("places" not in lost) == found.keeps_places == (here == there)
        if len(set(here.values())) == before.size:
            assert len(set(there.values())) == after.size
    else:
        assert "format" in lost
    cores = [[n for n in x.core_shape if n > 1] for x in (before, after)]
    assert ("cores" in lost) == (cores[0] != cores[1])
    assert ("bytes" in lost) == (before.nbytes != after.nbytes)
    said = before.memory not in (None, "memory 0")
    assert ("memory" in lost) == (said and before.memory != after.memory)
    assert ("oob" in lost) == (before.oob is not None and str(before.oob) != str(after.oob))
    assert bool(found) == found.is_lossless == (not lost)


def refused(layout, to):
    """Whether the other system takes no tensor of this shape."""
    try:
        found = gl.convert(layout, to=to)
    except gl.LayoutError:
        return True
    check(layout, found)
    return False


@pytest.mark.few(4)
@pytest.mark.parametrize(("table", "to"), few(itertools.product(TABLES, SYSTEMS), 9))
def test_every_system_in_every_other(table, to):
    for name, layout in TABLES[table]().items():
        none = refused(layout, to)
        assert none == (to == "sophon" and layout.ndim == 2 and not name.startswith("matrix"))


@pytest.mark.parametrize("to", SYSTEMS)
@settings(max_examples=examples(25), deadline=None)
@given(case=cases())
def test_any_grid_layout(to, case):
    layout = gl.GridLayout(**case[1])
    if layout.size > 4000:
        layout = gl.GridLayout((5, 7), layout.dtype, (2, 3))
    refused(layout, to)


@pytest.mark.parametrize("table", TABLES)
def test_the_document_says_every_system(table):
    for name, layout in TABLES[table]().items():
        assert gl.convert(layout, to="document").is_lossless, name


@pytest.mark.few(10)
@pytest.mark.parametrize(
    ("layout", "to", "lost", "text"),
    [
        (TILED, "xla", ["cores", "memory"], "f32[53,63]{1,0:T(18,32)(32,32)}"),
        (TILED, "ttnn_document", [], None),
        (TILED, "ttnn", ["bytes"], None),  # it pads to tiles first, so rows without tiles
        (TILED.with_oob(0), "metal", ["places"], None),
        (gl.GridLayout((64, 96), grid=(2, 3), tile=(32, 32), oob=0), "ttnn", [], None),
        (gl.GridLayout((64, 96), grid=(2, 3), tile=(32, 32)), "metal", [], None),
        (gl.parse("f32[8,256]{1,0:T(8,128)}"), "document", [], None),
        (
            gl.parse("f32[8,256]{0,1}"),
            "strided",
            [],
            "megengine.strided((8, 256), (1, 8), 'float32')",
        ),
        (gl.tenstorrent.ttnn((64, 64)), "strided", ["memory", "pages"], None),
        (BLOCKS, "xla", ["format", "bytes", "memory"], "bf16[64,64]{1,0:T(32,32)}"),
        (
            gl.GridLayout((64, 64), "bfloat16", tile=(32, 32), tile_format="bfp_bf8"),
            "ttnn",
            [],
            None,
        ),
        (gl.GridLayout((4, 6), "int4"), "strided", ["memory"], None),
        (gl.GridLayout((3, 5), "int4"), "strided", ["places", "bytes", "memory"], None),
        (gl.GridLayout((0, 5), grid=(2, 1)), "xla", ["cores", "memory"], "f32[0,5]{1,0}"),
        # Elements smaller than a byte, blocks of one dim, storage modes and addresses.
        (gl.GridLayout((4, 6), "int4"), "xla", ["memory"], "s4[4,6]{1,0:E(4)}"),
        (gl.parse("s4[4,6]{1,0}"), "strided", ["format", "places", "bytes"], None),
        *((format_of(name), "xla", [], text) for name, text in BLOCKED.items()),
        *((format_of(name, 1), "xla", [], None) for name in BLOCKED),
        (STORED, "xla", [], "s8[6,5,4,3]{3,2,1,0:T(4,1,1,1)}"),
        (gl.parse("s8[6,5,4,3]{3,2,1,0:T(4,1,1,1)}"), "sophon", [], str(STORED)),
        (
            gl.strided.layout((2, 3, 4, 5), (60, 20, 5, 1), "float32", start=4),
            "sophon",
            ["bytes"],
            "sophon.system((2, 3, 4, 5), 'float32', start=16)",
        ),
        # What only the source's system states.
        (gl.parse("f32[4,6]{1,0:#(u32)*(u16)}"), "strided", ["fields"], None),
        (gl.parse("f32[4,6]{1,0:SC(0:2)M(8)}"), "document", ["fields"], None),
        (gl.mli.tensor((4, 6), "HW", "int8", capacity=99), "xla", ["fields"], "s8[4,6]{1,0}"),
    ],
)
def test_what_is_lost_has_a_name(layout, to, lost, text):
    found = gl.convert(layout, to=to)
    assert [loss.what for loss in found.losses] == lost
    assert text in (None, str(found.layout))
    check(layout, found)
    for loss in found.losses:
        assert str(loss) in str(found)


def test_an_element_that_moved_is_named():
    found = gl.convert(gl.GridLayout((2, 3), linear="(d0, d1) -> (d1, d0)"), to="mli")
    assert str(found.losses[0]) == "places: element (0, 1) moves from core (0, 0) byte 8 to byte 4"


@pytest.mark.parametrize("to", ["strided", "megengine", "mli", "sophon"])
def test_elements_that_lie_apart_stay_apart(to):
    """The stride of a tile's rows is no stride of the tensor's."""
    layout = gl.GridLayout((2, 3, 300, 500), grid=(4, 4), tile=(32, 32))
    found = gl.convert(layout, to=to)
    assert not found.keeps_places
    found.layout.check_invertible()


def test_a_layout_of_the_system_is_itself():
    for layout in (TILED, gl.parse("f32[3]{0}"), gl.strided.layout((3,), (-1,), "int8")):
        to = next(name for name, (classes, _) in SYSTEMS.items() if type(layout) in classes)
        assert gl.convert(layout, to).layout is layout


def test_large_tensors_take_no_time():
    start = time.process_time()
    large = gl.GridLayout((1 << 18, 1 << 16), grid=(64, 32), tile=(32, 32))
    assert gl.convert(large, to="ttnn").is_lossless
    assert gl.convert(large, to="xla").keeps_places
    assert not gl.convert(large, to="strided").keeps_places
    assert time.process_time() - start < 20


def test_too_many_elements_to_compare_count_as_moved():
    before = gl.tenstorrent.tensor_layout((4096, 4096), page="row_major", page_alignment=64)
    found = gl.convert(before, to="xla")
    assert "too many to compare" in str(found)
    assert not found.keeps_places


def test_addresses_beyond_int64_count_as_moved():
    far = gl.sophon.system((1, 1, 1, 2), "float32", start=2**62)
    found = gl.convert(far, to="xla")
    assert "lost places: places beyond 2**63 bits are too far apart to compare" in str(found)
    wide = gl.strided.layout((2, 2), (2**61, 1), "float32")
    assert not gl.convert(wide, to="document").keeps_places


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TILED, "tpu"), "to 'tpu' is not one of document, metal, ttnn"),
        ((TILED, None), "to None is not one of"),
        (("f32[3]", "xla"), "must be a gl.Layout"),
        ((gl.parse("f32[2,2,2,2,2]{4,3,2,1,0}"), "mli"), "mli has no layout for xla.layout"),
    ],
)
def test_misuse(arguments, message):
    with pytest.raises(gl.LayoutError, match=message):
        gl.convert(*arguments)
