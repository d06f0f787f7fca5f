"""Random layouts of every system, each with the document's own reading of where elements are.

The strategies and readings are those of the systems' tests. A reading gives, for a logical index,
the coordinates of its core and the position in the buffer of that core. It shares no code with the
library.
"""

from math import prod

import random_layouts
import sophon_reading
import test_megengine
import test_mli
import test_tenstorrent_metal
import test_tenstorrent_tensor_layout
import test_tenstorrent_ttnn
import test_tenstorrent_ttnn_document
import test_xla
from hypothesis import strategies as st

import gridlayout as gl


def flat(index, extents):
    """The position of an index in an array of these extents, row-major."""
    position = 0
    for i, n in zip(index, extents, strict=True):
        position = position * n + i
    return position


def split(place, layout):
    """A reading that gives physical indices, as one that gives cores and positions."""

    def found(index):
        physical = place(index)
        core, local = physical[: layout.core_rank], physical[layout.core_rank :]
        return tuple(core), flat(local, layout.local_shape)

    return found


@st.composite
def document(draw):
    """The document model: collapse intervals, linear maps, tiles, faces, stated shards."""
    brute, arguments = draw(random_layouts.cases())
    layout = gl.GridLayout(**arguments)
    return layout, lambda index: (brute.physical(index)[: len(brute.grid)], brute.offset(index))


@st.composite
def even(draw):
    """The document model without padding: what einops and CuTe can express, too."""
    rank = draw(st.integers(1, 4))
    digits = [[draw(st.sampled_from([1, 2, 3])) for _ in range(3)] for _ in range(rank)]
    shape = tuple(map(prod, digits))
    grid, _, tile = zip(*digits, strict=True)
    tiled = draw(st.integers(0, rank))
    layout = gl.GridLayout(
        shape, "int32", grid, tile[rank - tiled :] or None, [], oob=draw(st.sampled_from([None, 7]))
    )

    def place(index):
        cores, tiles, inner = [], [], []
        for i, (g, n, t) in zip(index, digits, strict=True):
            core, rest = divmod(i, n * t)
            cores.append(core)
            tiles.append(rest)
            inner.append(0)
            if len(cores) > rank - tiled:
                tiles[-1], inner[-1] = divmod(rest, t)
            assert core < g
        return (*cores, *tiles, *inner[rank - tiled :])

    return layout, split(place, layout)


@st.composite
def xla(draw):
    """XLA's tiled layouts, of any type and width; the document's formula gives one number."""
    layout, order = draw(test_xla.tiled())
    dtype, bits = draw(st.sampled_from(sorted(random_layouts.BITS.items())))
    least = 1 if dtype == "bool" else bits
    width = draw(
        st.sampled_from([n for n in (0, 1, 2, 4, 8, 16, 32, 64, 128) if n == 0 or n >= least])
    )
    layout = gl.xla.layout(
        layout.shape, dtype, layout.minor_to_major, layout.tiles, element_bits=width
    )

    def place(index):
        return (), test_xla.linear_index(index, layout.shape, order, layout.tiles)[0]

    return layout, place


@st.composite
def metal(draw):
    """Today's `metal_layout`, with alignments of each dim."""
    arguments, place = draw(test_tenstorrent_metal.cases())
    layout = gl.tenstorrent.metal(**arguments)
    return layout, split(place, layout)


@st.composite
def ttnn(draw):
    """Today's `ttnn_layout`, which pads to tiles before it collapses."""
    shape, grid, tile = draw(test_tenstorrent_ttnn.cases())
    layout = gl.tenstorrent.ttnn(shape, "int32", grid, tile)
    return layout, split(
        lambda index: test_tenstorrent_ttnn.place(index, shape, grid, tile), layout
    )


@st.composite
def ttnn_document(draw):
    """TTNN as tt-mlir's document has it: strides, a plane, shards."""
    shape, arguments, shard = draw(test_tenstorrent_ttnn_document.cases())
    layout = gl.tenstorrent.ttnn_document(shape, "int32", **arguments)
    place = test_tenstorrent_ttnn_document.place
    return layout, split(lambda index: place(index, layout.stride, shard, layout.tile), layout)


@st.composite
def tt_metal(draw):
    """Buffers of tt-metal: pages, interleaved or sharded over cores in several ways."""
    shape, page, shard, cores, options = draw(test_tenstorrent_tensor_layout.cases())
    layout = gl.tenstorrent.tensor_layout(shape, "float32", page, shard, cores, **options)
    place = test_tenstorrent_tensor_layout.place
    return layout, lambda index: place(index, shape, page, shard, layout.cores, options)


@st.composite
def sophon(draw):
    """Tensors and matrices in the local memory of Sophon's NPUs."""
    locals_, matrices = sophon_reading.locals_(), sophon_reading.matrices()
    layout = draw(st.one_of(locals_, locals_, matrices))
    read = sophon_reading.reading(layout)

    def place(index):
        npu, bit = read.place(index)
        position, rest = divmod(bit - 8 * layout.offset, read.bits)
        assert rest == 0
        return (npu,), position

    return layout, place


@st.composite
def sophon_system(draw):
    """Tensors in Sophon's system memory, with lanes."""
    layout = draw(sophon_reading.systems())

    def place(index):
        strides, lanes = layout.strides, layout.lanes
        word = index[0] // lanes * strides[0]
        word += sum(i * s for i, s in zip(index[1:], strides[1:], strict=True))
        return (), word * lanes + index[0] % lanes

    return layout, place


@st.composite
def megengine(draw):
    """MegEngine's formats."""
    layout = draw(test_megengine.formats())

    def place(index):
        return (), test_megengine.place(layout.format, layout.shape, index, layout.channel_groups)

    return layout, place


@st.composite
def strided(draw):
    """MegEngine's strided views: nested, overlapping, backwards, standing still."""
    layout = draw(test_megengine.views())
    place = test_megengine.strided_place
    return layout, lambda index: ((), layout.start + place(layout.strides, index))


@st.composite
def mli(draw):
    """Tensors of embARC's MLI, with memory strides."""
    layout = draw(test_mli.tensors(least_rank=0))
    return layout, lambda index: ((), layout.start + test_mli.place(layout.mem_stride, index))


SYSTEMS = {
    strategy.__name__: strategy
    for strategy in (
        *(document, even, xla, metal, ttnn, ttnn_document, tt_metal),
        *(sophon, sophon_system, megengine, strided, mli),
    )
}
