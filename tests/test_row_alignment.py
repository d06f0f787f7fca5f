"""Rows of a core's buffer in multiples of bytes: what a NoC can address."""

import itertools
from math import prod

import numpy as np
import pytest
from devices import mapped
from hypothesis import given
from hypothesis import strategies as st
from laid_out import assert_goes_round, assert_same, indices, poisoned
from random_layouts import BITS
from tiers import few

import gridlayout as gl
from gridlayout.tenstorrent import from_compiler, from_document, ttnn, ttnn_document

SYSTEMS = {"grid": gl.GridLayout, "ttnn": ttnn, "ttnn_document": ttnn_document}


@pytest.mark.parametrize("system", SYSTEMS)
def test_padding_can_also_arise_due_to_minimum_noc_addressing_requirements(system):
    """Padding: "It can also arise due to minimum Noc addressing requirements"."""
    make = SYSTEMS[system]
    layout = make((3, 5), "bfloat16", row_alignment=16)
    assert layout.bytes_per_core == 48
    assert make((3, 5), "bfloat16").bytes_per_core == 30
    assert layout.physical_shape == (1, 1, 3, 8)
    assert [layout.locate((row, 0)).byte for row in range(3)] == [0, 16, 32]
    assert layout.padding_per_core().tolist() == [[9]]
    # The grid divides first: 5 columns on 2 cores are rows of 3.
    wide = make((3, 5), "bfloat16", grid=(1, 2), row_alignment=16)
    assert (wide.shard_shape, wide.tile_counts) == ((3, 3), (3, 8))
    assert wide.bytes_per_core == 48
    assert gl.parse(str(wide)) == wide != make((3, 5), "bfloat16", grid=(1, 2))


@given(
    st.sampled_from(sorted(SYSTEMS)),
    st.tuples(st.integers(1, 4), st.integers(1, 9)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from(sorted(BITS)),
    st.sampled_from([1, 2, 4, 16, 32]),
)
def test_rows_begin_at_multiples(system, shape, grid, dtype, alignment):
    layout = SYSTEMS[system](shape, dtype, grid=grid, row_alignment=alignment)
    plain = SYSTEMS[system](shape, dtype, grid=grid)
    bits = BITS[dtype]
    rows, columns = layout.tile_counts
    least = max(8 * alignment, bits)
    assert columns * bits % least == 0
    assert (columns - plain.tile_counts[1]) * bits < least
    assert rows == plain.tile_counts[0]
    for index in indices(shape):
        here, there = layout.locate(index), plain.locate(index)
        assert (here.core, here.local) == (there.core, there.local)
        assert here.offset == here.local[0] * columns + here.local[1]
    assert gl.parse(str(layout)) == layout
    assert layout.padding_mask().sum() == prod(layout.physical_shape) - prod(shape)
    # The multiple is one of elements: it stays where the element type changes.
    other = layout.with_dtype("int32")
    assert other.physical_shape == layout.physical_shape
    assert gl.parse(str(other)) == other


def test_tiles_are_not_padded_but_must_be_aligned():
    assert gl.GridLayout((64, 64), "bfloat16", tile=(32, 32), row_alignment=16).nbytes == 8192
    for make in SYSTEMS.values():
        with pytest.raises(gl.LayoutError, match=r"bfloat16 is 40 B, which is not a multiple"):
            make((64, 64), "bfloat16", tile=(4, 5), row_alignment=16)


@pytest.mark.parametrize("bad", [0, -16, 3, 24, True, 1.5, "16", (16,), 2**70])
def test_refusals(bad):
    for make in SYSTEMS.values():
        with pytest.raises(gl.LayoutError, match="row_alignment"):
            make((3, 5), "bfloat16", row_alignment=bad)


def test_the_mapping_keeps_it():
    layout = gl.GridLayout((3, 5), "bfloat16", grid=(3, 1), row_alignment=16)
    assert from_compiler(layout).row_alignment == 16
    assert from_document(layout).row_alignment == 16
    assert from_document(layout).same_physical(layout)


def test_text_of_ttnn():
    text = str(ttnn((3, 5), "bfloat16", row_alignment=16, oob=0))
    assert text.endswith(
        "memref<3x8xbf16, #ttnn.buffer_type<l1>>, <interleaved>, row_alignment = 16, oob = zero>>"
    )
    with pytest.raises(gl.LayoutError, match="memref 3x8 does not follow"):
        gl.parse(text.replace(", row_alignment = 16", ""))
    with pytest.raises(gl.LayoutError, match="power of 2"):
        gl.parse(text.replace("= 16", "= 17"))


FUNCTIONS = {
    "add": lambda x: x + 1,
    "sum of columns": lambda x: x.sum(-1),
    "sum of rows": lambda x: x.sum((0, 1)),
    "sum": lambda x: x.sum(),
    "maximum": lambda x: x.max(1),
    "argmax of columns": lambda x: x.argmax(-1),
    "argmax of rows": lambda x: x.argmax(1),
    "product": lambda x: x @ x.mT,
    "reshape": lambda x: (x + 1).reshape(15, 7),
    "transpose": lambda x: x.transpose(2, 0, 1) - 1,
    "slice": lambda x: x[1:, ::2],
    "bool": lambda x: (x > 0).all(-1),
    "broadcast": lambda x: x - x.mean((0, 2), keepdims=True),
    "a vector": lambda x: x.reshape(105)[3:50] * 2,
}


LAYOUTS = {
    "grid": gl.GridLayout((3, 5, 7), grid=(4, 2), row_alignment=32),
    "grid of rank 3": gl.GridLayout((3, 5, 7), grid=(2, 2, 2), collapse=[], row_alignment=16),
    "ttnn_document": ttnn_document((3, 5, 7), stride=(80, 10, 1), grid=(4, 2), row_alignment=32),
    "ttnn": ttnn((3, 5, 7), grid=(4, 2), row_alignment=32),
}


EVERY = list(itertools.product(FUNCTIONS, LAYOUTS))


@pytest.mark.few(6)
@pytest.mark.parametrize(("name", "where"), few(EVERY, 19))
def test_runs_on_devices(name, where):
    """With NaN in all padding."""
    layout = LAYOUTS[where]
    device = mapped((2, 4), EVERY.index((name, where)), layout.core_shape)
    x = np.random.default_rng(0).standard_normal((3, 5, 7)).astype(np.float32)
    found = gl.on_grid(FUNCTIONS[name])(poisoned(x, layout, device))
    expected = np.asarray(FUNCTIONS[name](x), found.dtype)
    assert_same(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("system", SYSTEMS)
def test_goes_round(system):
    assert_goes_round(SYSTEMS[system]((7, 5), "float32", grid=(2, 2), row_alignment=16))
