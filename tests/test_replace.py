"""`layout.replace` of every system: the constructor's own names, and what follows from them."""

import pytest

import gridlayout as gl
from gridlayout.tenstorrent.chip_layout import ChipLayout

ttnn, sophon = gl.tenstorrent.ttnn, gl.sophon
LAYOUTS = {
    "document": gl.GridLayout((53, 63), grid=(3, 2), tile=(32, 32)),
    "ttnn": ttnn((53, 63), grid=(3, 2), tile=(32, 32)),
    "ttnn by height": ttnn((53, 63), grid=(3, 1), row_alignment=16, buffer_type="dram"),
    "ttnn workers": ttnn((96, 96), grid=(2, 2), tile=(32, 32), memory_layout="interleaved"),
    "ttnn ranges": ttnn((64, 64), grid=(2, 1), core_ranges=[((3, 3), (3, 4))]),
    "chips": ChipLayout((1, 2), ttnn((53, 63), grid=(2, 1), tile=(32, 32))),
    "metal": gl.tenstorrent.metal((53, 63), grid=(2, 2), tile=(32, 32)),
    "metal aligned": gl.tenstorrent.metal((53, 63), dim_alignments=(96, 32), grid=(3, 1)),
    "tt-metal": gl.tenstorrent.tensor_layout((64, 64), cores=4),
    "ttnn document": gl.tenstorrent.ttnn_document((53, 63), grid=(3, 2)),
    "xla": gl.parse("f32[3,4]{1,0:T(2,128)}"),
    "xla with fields": gl.parse("f32[3,4]{0,1:T(2,128)L(512)S(5)}"),
    "megengine": gl.megengine.format((1, 4, 3, 3), "NCHW4", "int8", groups=2),
    "megengine aligned": gl.megengine.format((1, 4, 3, 3), "NHWC", "int4", align=8),
    "strided": gl.megengine.strided((3, 4), (5, 1), "int8", start=2, size=40),
    "mli": gl.mli.tensor((3, 4, 5), "HWC", "int8", mem_stride=(40, 6, 1), capacity=200),
    "sophon": sophon.local((1, 4, 3, 3), "int8"),
    "sophon compact": sophon.local((1, 4, 3, 3), "int8", layout="compact", start=64),
    "sophon 4N": sophon.local((4, 4, 3, 3), "int8", storage="4N"),
    "sophon lanes": sophon.system((4, 4, 3, 3), "float32", lanes=2),
    "sophon strides": sophon.local((1, 4, 3, 3), "int8", strides=(100, 20, 4, 1)),
    "sophon matrix": sophon.matrix(3, 4, 2, "int8"),
    "sophon system": sophon.system((1, 4, 3, 3), "int8", strides=(100, 20, 4, 1), start=64),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_are_made_again_of_their_own_arguments(name):
    layout = LAYOUTS[name]
    assert layout.replace() == layout
    assert repr(layout.replace()) == repr(layout)
    filled = layout.replace(oob=0)
    assert (filled.oob, filled.with_oob(None)) == (0, layout)
    assert type(filled) is type(layout)
    with pytest.raises(
        gl.LayoutError, match=r"replace: 'obb' is not an argument of \w+.*did you mean"
    ):
        layout.replace(obb=0)


def test_arguments_that_follow_from_others_follow_them():
    assert LAYOUTS["ttnn"].replace(grid=(1, 2)).memory_layout == "width_sharded"
    assert LAYOUTS["ttnn workers"].replace(grid=(1, 3)).workers == (1, 3)
    assert LAYOUTS["ttnn document"].replace(grid=(2, 2)).shard_shape == (27, 32)
    assert LAYOUTS["ttnn document"].replace(shape=(64, 64)).stride == (64, 1)
    pages = gl.tenstorrent.tensor_layout((64, 64), "float32")
    assert pages.replace(shard_shape=(32, 32), cores=4).memory_layout != "interleaved"
    assert pages.replace(tile=(16, 16)).alignment == (16, 16)
    assert pages.replace(page="row_major").tile is None
    assert LAYOUTS["metal"].replace(tile=(16, 16)).dim_alignments == (16, 16)
    assert LAYOUTS["xla"].replace(shape=(2, 3, 4)).minor_to_major == (2, 1, 0)
    assert LAYOUTS["xla with fields"].replace(tiles=()).minor_to_major == (0, 1)
    assert LAYOUTS["megengine"].replace(name="NCHW32").physical_shape[-1] == 32
    assert LAYOUTS["sophon"].replace(layout="compact") == sophon.local(
        (1, 4, 3, 3), "int8", layout="compact"
    )
    assert LAYOUTS["sophon"].replace(strides=(100, 20, 4, 1)) == LAYOUTS["sophon strides"]
    assert LAYOUTS["sophon strides"].replace(layout="aligned") == LAYOUTS["sophon"]
    assert LAYOUTS["sophon matrix"].replace(cols=6).shape == (3, 6)
    assert LAYOUTS["sophon 4N"].replace(lanes=2, dtype="float32").lanes == 2
    assert gl.mli.tensor((3, 4), "HW", "int8").replace(shape=(2, 5)).mem_stride == (5, 1)
    assert LAYOUTS["document"].replace(collapse=[(0, 2)], grid=(4,), tile=None).grid == (4,)
    with pytest.raises(gl.LayoutError, match="NCHWX"):
        LAYOUTS["megengine"].replace(name="NCHWX")
