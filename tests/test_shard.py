"""Shards that are stated: the document's, which need not be the ceil-division by the grid."""

import numpy as np
import pytest
from laid_out import assert_goes_round

import gridlayout as gl

BUMPED = "(d0, d1, d2) -> (d0 * 32 + d1, d2)"


def bumped(**more):
    return gl.GridLayout((12, 12, 16), grid=(4, 1), linear=BUMPED, **more)


def test_whole_steps_of_the_stride_on_each_core():
    """Padding: "bump the stride up to 32 ... enabling each batch to fall on a tile boundary".

    By ceil-division of the 364 rows a core has 91, so that batches are cut; of the 12 * 32 rows
    that the strides span it has 96, three batches.
    """
    assert bumped().shard_shape == (91, 16)
    layout = bumped(shard_shape=(96, 16))
    assert (layout.shard_shape, layout.stated_shard) == ((96, 16), (96, None))
    assert layout.collapsed_shape == (364, 16)
    assert layout.physical_shape == (4, 1, 96, 16)
    assert [layout.locate((d0, 11, 0)).core[0] for d0 in range(12)] == sorted([0, 1, 2, 3] * 3)
    assert bumped().locate((2, 11, 0)).core != bumped().locate((3, 0, 0)).core
    assert bumped().locate((11, 0, 0)).core == (3, 0)
    tiled = layout.replace(tile=(32, 32))
    assert tiled.tile_counts == bumped(tile=(32, 32)).tile_counts == (3, 1)
    for d0 in range(12):  # each batch begins a tile
        assert tiled.locate((d0, 0, 0)).local[0] == d0 % 3
        assert tiled.locate((d0, 0, 0)).local[2] == 0


def test_identity_and_text():
    layout, plain = bumped(shard_shape=(96, None)), bumped()
    assert layout != plain
    assert (
        layout == bumped(shard_shape=[96, 16]) == eval(repr(layout), {"GridLayout": gl.GridLayout})
    )
    assert hash(layout) == hash(bumped(shard_shape=(np.int64(96), 16)))
    assert plain == bumped(shard_shape=(91, 16)) == layout.replace(shard_shape=None)
    assert layout.replace(oob=0).shard_shape == layout.with_dtype("int8").shard_shape == (96, 16)
    assert not layout.same_physical(plain)
    # The memref states it; where whole tiles do not, a word after it does.
    assert "memref<96x16xf32" in str(layout)
    tiled = layout.replace(tile=(32, 32))
    assert "memref<3x1x!ttcore.tile<32x32, f32>, #ttcore.memory_space<l1>>, shard = 96x16>>" in str(
        tiled
    )
    more = layout.replace(tile=(32, 32), shard_shape=(128, 16))
    assert "shard =" not in str(more)
    for each in (layout, plain, tiled, more, tiled.replace(shard_shape=(129, 17))):
        assert gl.parse(str(each)) == each


@pytest.mark.parametrize(
    ("memref", "shard"),
    [("96x16xf32", (96, 16)), ("91x99xf32", (91, 99)), ("5x2x!ttcore.tile<32x32, f32>", (160, 64))],
)
def test_a_larger_memref_states_the_shard(memref, shard):
    """ "`memref`: a memref that describes the physical footprint allocation of the shard"."""
    text = str(bumped()).replace("91x16xf32", memref)
    layout = gl.parse(text)
    assert layout.shard_shape == shard
    assert str(layout) == text


def test_whole_cores_may_hold_nothing():
    layout = gl.GridLayout((53, 63), grid=(3, 2), shard_shape=(32, 40), oob=0)
    held = np.prod(layout.local_shape) - layout.padding_per_core()
    assert held.tolist() == [[32 * 40, 32 * 23], [21 * 40, 21 * 23], [0, 0]]
    assert layout.padding_along(0).tolist() == [0, 11, 32]
    assert_goes_round(layout)
    assert_goes_round(layout.replace(tile=(32, 32)))


BAD = [
    ((90, 16), r"4 cores of 90 do not hold the 364 .* give 91 or more, or None"),
    ((96,), "has 1 dims, but the grid"),
    ((96, -1), ">= 0"),
    ((96, True), "whole numbers"),
    ((96, 16.0), "whole numbers"),
    (96, "has 1 dims, but the grid"),
    ((2**63, 16), r"over 2\*\*62"),
    ((2**61, 2**10), "more than 2"),
]


@pytest.mark.parametrize(("shard", "rule"), BAD)
def test_refusals(shard, rule):
    with pytest.raises(gl.LayoutError, match=rule):
        bumped(shard_shape=shard)


def test_of_a_tensor_without_elements():
    layout = gl.GridLayout((0, 3), grid=(2, 1), shard_shape=(4, 3))
    assert layout.physical_shape == (2, 1, 4, 3)
    assert gl.parse(str(layout)) == layout
    assert layout.padding_share == 1.0
