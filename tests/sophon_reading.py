"""The judge of Sophon's tests, and tensors of every kind to judge.

`Reading` is the document's arithmetic element by element; it shares no code with the library.
"""

from dataclasses import dataclass

from hypothesis import strategies as st
from laid_out import indices

from gridlayout.sophon import Chip, local, matrix, system

# The chip of the document's figures.
TOY = Chip(npus=4, npu_bytes=1024, alignment=128)


@dataclass(frozen=True)
class Reading:
    """The document read with loops: where the element (n, c, h, w) of a tensor is."""

    npus: int
    npu_bytes: int
    strides: tuple[int, ...]
    start: int = 0
    bits: int = 32
    lanes: int = 1
    width: int | None = None

    def place(self, index):
        """The NPU, and the bit counted from the start of its memory."""
        if self.width is not None:  # "Matrix Layout"
            r, m = index
            index = (r, m // self.width, 0, m % self.width)
        n, c, h, w = index
        first, offset = divmod(self.start, self.npu_bytes)
        npu, slot = first, 0
        for _ in range(c):  # one channel after another, one NPU after another
            npu += 1
            if npu == self.npus:
                npu, slot = 0, slot + 1
        n_stride, c_stride, h_stride, w_stride = self.strides
        word = n // self.lanes * n_stride + slot * c_stride + h * h_stride + w * w_stride
        return npu, offset * 8 + (word * self.lanes + n % self.lanes) * self.bits

    def holders(self, shape):
        found = {}
        for index in indices(shape):
            found.setdefault(self.place(index), []).append(index)
        return found


def reading(layout):
    return Reading(
        npus=layout.chip.npus,
        npu_bytes=layout.chip.npu_bytes,
        strides=layout.strides,
        start=layout.start,
        bits=4 if layout.dtype.name == "int4" else layout.dtype.itemsize * 8,
        lanes=layout.lanes,
        width=layout.view_shape[3] if layout.ndim == 2 else None,
    )


def place(layout, index):
    """The NPU and the byte that the library gives."""
    where = layout.locate(index)
    return where.core[0], where.byte


def occupied(layout):
    """Every byte that holds an element or a dummy of one: (NPU, byte) and an index, or None."""
    read = reading(layout)
    full = (layout.view_shape[0] * layout.lanes, *layout.shape[1:])
    found = {}
    for index in indices(full):
        npu, bit = read.place(index)
        for byte in range(bit // 8, (bit + read.bits - 1) // 8 + 1):
            found.setdefault((npu, byte), []).append(index if index[0] < layout.shape[0] else None)
    return found


# --- any tensor ---

MODES = [("int8", "4N"), ("uint8", "4N"), ("int16", "2N"), ("uint16", "2N"), ("float32", "2IC")]
PLAIN = ["float32", "float16", "bfloat16", "int8", "int32", "int4", "bool", "complex64"]


@st.composite
def chips(draw):
    alignment = draw(st.sampled_from([16, 32, 64, 128]))
    banks, name = (
        draw(st.sampled_from([None, 4, 8])),
        draw(st.sampled_from([None, "toy", "BM1684"])),
    )
    return Chip(draw(st.integers(1, 5)), 2048, alignment, banks, name)


@st.composite
def locals_(draw, chip=None, sources=True):
    """A tensor in local memory: named layouts, and strides that nest, interleave or are 0."""
    chip = draw(chips()) if chip is None else chip
    shape = tuple(draw(st.integers(1, n)) for n in (5, 7, 3, 4))
    dtype, storage = draw(
        st.one_of(st.tuples(st.sampled_from(PLAIN), st.none()), st.sampled_from(MODES))
    )
    lanes = {"4N": 4, None: 1}.get(storage, 2)
    oob = draw(st.sampled_from([None, 0, 1]))
    first = draw(st.integers(0, chip.npus - 1))
    arguments = {"storage": storage, "chip": chip, "oob": oob}
    kind = draw(st.sampled_from(["aligned", "compact", "line_aligned", "nested", "free"]))
    step = 4 if kind == "compact" else 8 if kind in ("nested", "free") else chip.alignment
    arguments["start"] = first * chip.npu_bytes + draw(st.integers(0, 3)) * step
    if kind == "nested":
        extents = [-(-shape[0] // lanes), -(-(first + shape[1]) // chip.npus), *shape[2:]]
        strides, span = [0] * 4, 1
        for d in draw(st.permutations(range(4))):
            strides[d] = span + draw(st.integers(0, 2))
            span += strides[d] * (extents[d] - 1)
        arguments["strides"] = tuple(strides)
    elif kind == "free":
        least = 0 if sources else 1
        arguments["strides"] = tuple(draw(st.integers(least, 9)) for _ in range(4))
    else:
        arguments["layout"] = kind
    return local(shape, dtype, **arguments)


@st.composite
def matrices(draw, chip=None):
    chip = draw(chips()) if chip is None else chip
    rows, cols = draw(st.integers(1, 4)), draw(st.integers(1, 40))
    start = draw(st.integers(0, chip.npus - 1)) * chip.npu_bytes
    start += draw(st.integers(0, 2)) * chip.alignment
    dtype = draw(st.sampled_from(PLAIN))
    strides = draw(st.one_of(st.none(), st.none(), st.tuples(*[st.integers(0, 9)] * 4)))
    return matrix(rows, cols, draw(st.integers(1, cols)), dtype, start, chip, strides=strides)


@st.composite
def systems(draw):
    shape = tuple(draw(st.integers(1, n)) for n in (5, 4, 3, 4))
    dtype, storage = draw(
        st.one_of(st.tuples(st.sampled_from(PLAIN), st.none()), st.sampled_from(MODES))
    )
    any_strides = st.tuples(*[st.integers(0, 30)] * 4)
    strides = draw(st.one_of(st.none(), any_strides))
    return system(shape, dtype, strides, storage, oob=draw(st.sampled_from([None, 1])))
