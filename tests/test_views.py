"""Views of a strided buffer, none of which copies, against NumPy's views of the same memory.

"对于一些改变形状的 Tensor 操作，我们可以通过修改步幅来避免实际进行内存的拷贝": changed strides in
place of a copy.
"""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridlayout as gl
from gridlayout.megengine import contiguous, strided


def memory(layout):
    """A buffer for a layout, and NumPy's view of it."""
    buffer = np.arange(layout.buffer_size, dtype=layout.dtype)
    size = layout.dtype.itemsize
    steps = [size * s for s in layout.strides]
    return buffer, np.lib.stride_tricks.as_strided(buffer[layout.start :], layout.shape, steps)


def assert_is(view, expected, buffer):
    """The view has the shape, the place and the strides of NumPy's, in the same buffer."""
    assert view.shape == (expected.shape or (1,))
    assert view.buffer_size == buffer.size
    np.testing.assert_array_equal(
        gl.from_bytes(buffer.tobytes(), view), expected.reshape(view.shape)
    )
    if not expected.size:
        return
    size = view.dtype.itemsize
    address = expected.__array_interface__["data"][0] - buffer.__array_interface__["data"][0]
    assert view.locate((0,) * view.ndim).byte == view.start * size == address
    for n, ours, theirs in zip(expected.shape, view.strides_bytes, expected.strides, strict=False):
        assert n == 1 or ours == theirs


@st.composite
def layouts(draw):
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    each = st.integers(-6, 12)
    strides = draw(st.lists(each, min_size=len(shape), max_size=len(shape)))
    layout = strided(shape, strides, "int16")
    more = draw(st.integers(0, 2))
    return strided(
        *(shape, strides, "int16"), start=layout.start + more, size=layout.buffer_size + 2 * more
    )


def cuts(draw, shape):
    found = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        bound = st.none() | st.integers(-n, n)
        step = st.none() | st.sampled_from([1, 2, 3, -1, -2])
        one = st.integers(-n, n - 1)
        part = st.builds(slice, bound, bound, step)
        found.append(draw(one | part if n else part))
    return (*found, ...)  # so that one element alone is a view too


@given(layouts(), st.data())
def test_slices_are_numpys(layout, data):
    buffer, array = memory(layout)
    taken = cuts(data.draw, layout.shape)
    view = layout.slice(*taken[:-1])
    assert_is(view, array[taken], buffer)
    # A view of a view is one of the buffer.
    again = cuts(data.draw, view.shape)
    assert_is(view.slice(*again[:-1]), array[taken].reshape(view.shape)[again], buffer)


@given(layouts(), st.data())
def test_flips_are_numpys(layout, data):
    buffer, array = memory(layout)
    dims = data.draw(st.sets(st.integers(0, layout.ndim - 1)))
    assert_is(layout.flip(*dims), np.flip(array, tuple(dims) or None), buffer)
    assert layout.flip(*dims).flip(*dims) == layout


@given(layouts())
def test_the_other_views_are_numpys(layout):
    buffer, array = memory(layout)
    order = tuple(reversed(range(layout.ndim)))
    assert_is(layout.dimshuffle(order), array.transpose(order), buffer)
    wider = (2, *layout.shape)
    assert_is(layout.broadcast(wider), np.broadcast_to(array, wider), buffer)
    reshaped = layout.try_reshape((1, *layout.shape))
    assert_is(reshaped, array.reshape(1, *layout.shape), buffer)


def test_views_run_on_devices_as_views():
    x = contiguous((4, 6), "float32")
    buffer, array = memory(x)
    device = gl.DeviceGrid((len(jax.devices()),))
    laid = gl.from_physical(buffer, x.slice(slice(1, 3)).flip(1), device)
    np.testing.assert_array_equal(np.asarray(laid), array[1:3, ::-1])
    for path in ("program", "gather"):
        np.testing.assert_array_equal(gl.unpack(buffer, laid.layout, path=path), array[1:3, ::-1])
    np.testing.assert_array_equal(gl.from_bytes(buffer.tobytes(), laid.layout), array[1:3, ::-1])


# -- row-major and column-major --------------------------------------------------------------------


def test_row_and_column_major():
    """ "又可以分为行主序和列主序两种风格": the nine elements a11 ... a33 of the figure."""
    names = np.array([[f"a{r}{c}" for c in (1, 2, 3)] for r in (1, 2, 3)])
    for order, numpy_order in (("row_major", "C"), ("column_major", "F")):
        layout = contiguous((3, 3), "int32", order)
        held = [None] * 9
        for (r, c), name in np.ndenumerate(names):
            held[layout.locate((r, c)).offset] = name
        assert held == names.ravel(numpy_order).tolist()
        assert layout.strides_bytes == np.zeros((3, 3), np.int32, numpy_order).strides
    assert contiguous((3, 3), "int32") == contiguous((3, 3), "int32", "row_major")


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple))
def test_column_major_is_numpys(shape):
    layout = contiguous(shape, "float32", "column_major")
    expected = np.zeros(shape, np.float32, "F")
    assert layout.nbytes == expected.nbytes
    for n, ours, theirs in zip(shape, layout.strides_bytes, expected.strides, strict=True):
        assert n == 1 or ours == theirs
    x = np.arange(layout.size, dtype=np.float32).reshape(shape)
    assert gl.to_bytes(x, layout).tobytes() == x.tobytes("F")
    assert gl.parse(str(layout)) == layout


def test_columns_of_four_bits_begin_at_whole_bytes():
    assert contiguous((3, 2), "int4", "column_major").strides == (1, 4)


# -- refusals --------------------------------------------------------------------------------------

X = contiguous((4, 6), "int8")
FOUR_BITS = contiguous((4, 6), "int4")
REFUSED = {
    "too many": (lambda: X.slice(0, 0, 0), "3 cuts of 2 dims"),
    "index outside": (lambda: X.slice(4), "index 4 is outside dim 0, of extent 4"),
    "index far below": (lambda: X.slice(0, -7), "index -7 is outside dim 1"),
    "bound outside": (lambda: X.slice(slice(0, 5)), r"dim 0 must be in \[-4, 4\]"),
    "bound far below": (lambda: X.slice(slice(-5, None)), r"must be in \[-4, 4\]"),
    "step 0": (lambda: X.slice(slice(None, None, 0)), "a nonzero step"),
    "true": (lambda: X.slice(True), "must hold whole numbers"),
    "true bound": (lambda: X.slice(slice(True, None)), "must hold whole numbers"),
    "float": (lambda: X.slice(1.0), "must be a slice or a whole number"),
    "none": (lambda: X.slice(None), "index None is outside"),
    "text": (lambda: X.slice("1:2"), "must be a slice or a whole number"),
    "float bound": (lambda: X.slice(slice(0.0, None)), "must be a slice or a whole number"),
    "half a byte": (
        lambda: FOUR_BITS.slice(slice(None), slice(1, None)),
        "start 1 of int4 elements must be a multiple of 2",
    ),
    "backward in bytes": (lambda: FOUR_BITS.flip(1), "start 5 of int4|strides of int4 must be"),
    "dim outside": (lambda: X.flip(2), r"dims \(2,\) must be distinct dims from 0 to 1"),
    "dim twice": (lambda: X.flip(0, 0), "must be distinct dims"),
    "no dim": (lambda: X.flip(None), "whole numbers"),
    "order": (lambda: contiguous((2,), "int8", "F"), "order 'F' is not one of row_major, column_m"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    make, words = REFUSED[name]
    with pytest.raises(gl.LayoutError, match=words):
        make()


def test_rows_of_four_bits_can_be_cut():
    view = FOUR_BITS.slice(slice(1, 3), slice(2, None))
    assert (view.shape, view.strides, view.start) == ((2, 4), (6, 1), 8)
    x = (np.arange(24) % 16 - 8).astype("int4").reshape(4, 6)
    held = gl.to_bytes(x, FOUR_BITS)
    np.testing.assert_array_equal(gl.from_bytes(held, view), x[1:3, 2:])
