"""What the document says of MegEngine's formats beside their order: what they are made for."""

import warnings

import pytest

import gridlayout as gl
from gridlayout import megengine

SHAPE = (2, 64, 3, 3)
# "NCHW4可以针对int8数据类型，利用CUDA的dp4a模块", "NCHW32和NCHW64分别针对int8和int4数据类型"; CHWN4
# "为了更好的适配cuda的dp4a和tensorcore", where dp4a multiplies four 8-bit integers.
MADE_FOR = {
    "NCHW4": {"int8", "uint8"},
    "NCHW32": {"int8", "uint8"},
    "NCHW64": {"int4", "uint4"},
    "CHWN4": {"int8", "uint8"},
}
DTYPES = ("int4", "uint4", "int8", "uint8", "int32", "float16", "float32")


@pytest.mark.parametrize("name", megengine.FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_format_says_for_which_types_it_is_made_and_warns_of_others(name, dtype):
    kinds = MADE_FOR.get(name, set())
    assert set(megengine.MADE_FOR.get(name, ())) == kinds
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        shape = (8, *SHAPE[1:]) if name in ("NCHW4_WEIGHT", "NCHW88_CONV_DENSE_WEIGHT") else SHAPE
        layout = megengine.format(shape, name, dtype)
    assert set(layout.made_for) == kinds
    assert len(found) == (1 if kinds and dtype not in kinds else 0)
    for warning in found:
        assert warning.category is gl.LayoutWarning
        assert warning.filename == __file__
        text = str(warning.message)
        assert text.startswith(f"format {name} is made for ")
        assert f"not {dtype}" in text
        # The way out is one, for this type.
        for other in text.partition(": take ")[2].split(" or "):
            assert dtype in MADE_FOR.get(other, {dtype})


def test_a_layouts_text_warns_too_and_a_copy_of_another_type_does_not():
    with pytest.warns(gl.LayoutWarning, match="NCHW64 is made for int4 and uint4, not int8"):
        layout = gl.parse("megengine.format((2, 64, 3, 3), 'NCHW64', 'int8')")
    assert layout.with_dtype("float32").made_for == ("int4", "uint4")


def offsets(name, indices):
    layout = megengine.format(SHAPE, name, "int8")
    return [layout.locate(index).offset for index in indices]


def side_by_side(found):
    return found == list(range(found[0], found[0] + len(found)))


def test_what_lies_side_by_side():
    """NCHW "同一个通道的像素值连续排布"; NHWC "不同通道中的同一位置元素顺序存储"."""
    pixels = [(1, 5, h, w) for h in range(3) for w in range(3)]
    channels = [(1, c, 2, 1) for c in range(64)]
    assert side_by_side(offsets("NCHW", pixels))
    assert side_by_side(offsets("NHWC", channels))
    assert not side_by_side(offsets("NCHW", channels))
    assert not side_by_side(offsets("NHWC", pixels))
    # NCHWX: X channels of a pixel; CHWN4: four, then those of the next image.
    assert side_by_side(offsets("NCHW32", channels[32:]))
    assert side_by_side(offsets("CHWN4", [(n, c, 2, 1) for n in range(2) for c in range(4)]))


@pytest.mark.parametrize(("name", "dtype"), [("NCHW32", "int8"), ("NCHW64", "int4")])
def test_both_tensor_core_formats_lay_32_bytes_side_by_side(name, dtype):
    layout = megengine.format(SHAPE, name, dtype)
    assert layout.blocks[-1] * layout.stored_bits == 32 * 8
    assert layout.nbytes == 1152 * layout.stored_bits // 8
