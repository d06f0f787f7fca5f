"""`layout.summary()`: what it says is so, of every system's layout, in lines that fit."""

import re
from html import escape

import numpy as np
import pytest
from hypothesis import given, settings
from laid_out import indices
from random_layouts import cases
from test_systems import TABLES
from tiers import examples

import gridlayout as gl
from gridlayout.layouts.memory import size

pytestmark = pytest.mark.filterwarnings("ignore::gridlayout.LayoutWarning")
TILED = gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32))
CHIP = "neither a gl[.]Chip nor one of"
EXTREMES = [
    gl.GridLayout((), grid=(2, 2)),
    gl.GridLayout((0, 5), grid=(2, 2)),
    gl.GridLayout((2**20, 2**20), grid=(2**10, 2**10), tile=(32, 32)),
    gl.GridLayout((2,) * 24, grid=(1,) * 24, collapse=[]),
    gl.GridLayout((64, 64), "bfloat16", tile=(32, 32), tile_format="bfp_bf8"),
    gl.GridLayout((64, 64), tile=(32, 32), face=(16, 16), memory_space="dram"),
    gl.strided.layout((4, 4), (0, 1), "int8"),
    gl.tenstorrent.ttnn((96, 64), tile=(32, 32)),
    gl.tenstorrent.tensor_layout((7, 40), page="tile", shard_shape=(32, 32), cores=2),
    gl.Layout((5,), "float32", (), (0,)),
]


def check(layout, chip=None):
    summary = layout.summary(chip)
    lines = str(summary).splitlines()
    assert all(len(line) <= 100 for line in lines), lines
    assert {"shard", "padding", "bytes"} <= set(summary.rows)
    for name, text in summary.rows.items():
        assert any(line.startswith(f"  {name} ") for line in lines)
        assert "".join(text.split()) in "".join(str(summary).split())
    assert summary.title in str(summary).replace("\n  ", " ") or len(summary.title) > 100
    words = summary.rows["bytes"]
    assert f"{size(layout.nbytes)} in total" in words
    assert layout.wasted_bytes == max(layout.nbytes - layout.data_bytes, 0)
    if layout.wasted_bytes:
        assert f"{size(layout.wasted_bytes)} wasted" in words
        assert (f"{layout.expansion_factor:,.2f} times" in words) == bool(layout.size)
        assert not layout.size or layout.expansion_factor == layout.nbytes / layout.data_bytes
    else:
        assert "none wasted" in words
    return summary


@pytest.mark.parametrize("table", TABLES)
def test_every_system(table):
    for layout in TABLES[table]().values():
        check_system(layout)


def check_system(layout):
    summary = check(layout)
    dense = np.prod(layout.shape, dtype=int) * layout.stored_bits
    assert layout.data_bytes == -(-int(dense) // 8)
    fit = layout.fits("wormhole")
    assert fit.needed == (layout.bytes_per_core if fit.space == "l1" else layout.nbytes)
    assert (fit.free is None) == (layout.memory not in ("l1", "dram"))
    assert "Wormhole: " in check(layout, "wormhole").rows["fits"]
    # The words of notebooks are those of the text, beside the drawing.
    page = layout._repr_html_()
    assert layout.draw().svg in page
    assert summary._repr_html_() in page
    for text in summary.rows.values():
        assert escape(text) in page
    # Long texts break anywhere, which must not break a name, such as "shar/d".
    names = re.findall(r'<th scope="row" style="([^"]*)">(\w+)</th>', page)
    assert [name for _, name in names] == [*summary.rows]
    assert all("white-space: nowrap; overflow-wrap: normal" in style for style, _ in names)


@pytest.mark.parametrize("layout", EXTREMES, ids=str)
def test_extremes(layout):
    check(layout)
    check(layout, gl.Chip("a chip with a very long name " * 8, (8, 8), {"l1": 10}))


@settings(max_examples=examples(100), deadline=None)
@given(case=cases())
def test_the_first_and_the_last_core_hold_what_is_said(case):
    layout = gl.GridLayout(**case[1])
    rows = check(layout).rows
    if not layout.size:
        assert "cores" not in rows
        return
    held = {}
    for index in indices(layout.shape):
        at = layout.locate(index)
        held.setdefault(at.core, set()).add(at.local)
    first = layout.locate((0,) * layout.ndim).core
    last = layout.locate([n - 1 for n in layout.shape]).core
    if first == last:
        assert rows["cores"].startswith(f"{first} holds the first and the last element")
    else:
        found = re.findall(r"(\([\d, ]*\)): (\d+) element", rows["cores"])
        assert found == [(str(core), str(len(held[core]))) for core in (first, last)]
    idle = layout.num_cores - len(held)
    assert (f"{idle:,} of {layout.num_cores:,} hold none" in rows["cores"]) == bool(idle)


def test_every_number_of_one_layout():
    assert str(TILED.summary(gl.Chip("toy", (2, 2), {"l1": 1024}, ((16, 16),)))) == (
        "float32[53, 63] on 3x2 cores, in l1\n"
        "  shard    18x32 elements per core, in 1x1 tiles of 32x32\n"
        "  padding  45.7% of 6,144 positions hold no element\n"
        "  bytes    4.0 KiB per core, 24.0 KiB in total, 11.0 KiB wasted: 1.84 times the data\n"
        "  cores    first (0, 0): 576 elements from (0, 0); "
        "last (2, 1): 527 elements up to (52, 62)\n"
        "  fits     toy: NO, grid 3x2 does not fit 2x2 cores, lacks 3.0 KiB of l1 on each core, "
        "no op with\n"
        "           32x32 tiles"
    )
    roomy = TILED.summary(gl.Chip("toy", (2, 2), {"l1": 1 << 20})).rows["fits"]
    assert roomy == "toy: NO, grid 3x2 does not fit 2x2 cores"
    assert gl.sophon.local((2, 3, 4, 5), "float32").summary().rows["fits"].endswith("each NPU")
    assert "fits" not in gl.parse("f32[3]{0}").summary().rows


def test_explain_a_layout():
    assert gl.explain(TILED) == TILED.summary()
    assert gl.explain(TILED, chip="wormhole") == TILED.summary("wormhole")
    better = gl.explain(TILED, plan=True)
    assert better.better == gl.GridLayout((53, 63), grid=(2, 2), tile=(32, 32))
    assert better.rows["better"] == f"saves 8.0 KiB in total: {better.better!r}"
    assert "better" not in gl.explain(gl.GridLayout((64, 64)), plan=True).rows


def test_markup_in_names_is_text():
    page = TILED.summary(gl.Chip("<b>&", (2, 2)))._repr_html_()
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;" in page


@pytest.mark.parametrize("chip", ["", "tpu", 3, "wormhole "])
def test_misuse(chip):
    for ask in (TILED.summary, TILED.fits, gl.parse("f32[3]{0}").fits):
        with pytest.raises(gl.LayoutError, match=CHIP):
            ask(chip)
    with pytest.raises(gl.LayoutError, match=CHIP):
        gl.explain(TILED, chip=chip)
