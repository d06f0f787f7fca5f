"""Five systems, one model: every layout of one tensor becomes every other, bit for bit."""

import itertools

import jax
import numpy as np
import pytest
from devices import mapped
from laid_out import indices, packed
from tiers import few

import gridlayout as gl
from gridlayout.layouts.program import pack_host, run_host
from gridlayout.layouts.route import find_route

# Formats are moved as any type here, also those that they are not made for.
pytestmark = pytest.mark.filterwarnings("ignore:format .* is made for:gridlayout.LayoutWarning")
NCHW, MATRIX = (3, 6, 4, 5), (7, 40)


def four_dims(dtype):
    """Layouts of a 4-D tensor, by name."""
    chip, toy = gl.sophon.BM1684X, gl.sophon.Chip(npus=4, npu_bytes=1 << 16, alignment=128)
    formats = ["NCHW", "NHWC", "NCHW4", "NCHW8", "NCHW32", "NCHW64", "CHWN4", "NHWCD4"]
    element = {"float32": "f32", "int8": "s8"}[dtype]
    found = {
        "document": gl.GridLayout(NCHW, dtype, (2, 4)),
        "document, tiled": gl.GridLayout(NCHW, dtype, (3, 2), (4, 4)),
        "document, faces": gl.GridLayout(NCHW, dtype, (2, 2), (8, 4), face=(4, 2)),
        "document, rank 3": gl.GridLayout(NCHW, dtype, (2, 3, 2), collapse=[(1, -1)]),
        "document, bumped": gl.GridLayout(
            NCHW, dtype, (2, 4), linear="(d0, d1, d2, d3) -> (d0 * 32 + d1 * 5 + d2, d3)"
        ),
        "document, used twice": gl.GridLayout(
            NCHW, dtype, (2, 4), linear="(d0, d1, d2, d3) -> (d0 * 24 + d1 * 4 + d2, d2 + d3)"
        ),
        "metal_layout": gl.tenstorrent.metal(NCHW, dtype, grid=(1, 1), tile=(32, 32)),
        "ttnn_layout": gl.tenstorrent.ttnn(NCHW, dtype, grid=(2, 1), tile=(32, 32)),
        "ttnn, document": gl.tenstorrent.ttnn_document(
            NCHW, dtype, (256, 32, 8, 1), shard_shape=(30, 5), grid=(5, 2), tile=(4, 2)
        ),
        "xla": gl.parse(f"{element}[3,6,4,5]{{3,2,1,0}}"),
        "xla, transposed": gl.parse(f"{element}[3,6,4,5]{{0,2,3,1}}"),
        "xla, tiled": gl.parse(f"{element}[3,6,4,5]{{3,2,1,0:T(2,4)}}"),
        "xla, tiled twice": gl.parse(f"{element}[3,6,4,5]{{1,3,2,0:T(4,8)(2,1)}}"),
        "xla, combined": gl.parse(f"{element}[3,6,4,5]{{3,2,1,0:T(*,4,*,3)}}"),
        "local, aligned": gl.sophon.local(NCHW, dtype, "aligned", chip=toy),
        "local, compact": gl.sophon.local(NCHW, dtype, "compact", chip=chip),
        "local, from NPU 3": gl.sophon.local(NCHW, dtype, "compact", start=3 << 16, chip=toy),
        "local, strides": gl.sophon.local(NCHW, dtype, strides=(300, 70, 16, 2), chip=toy),
        "system": gl.sophon.system(NCHW, dtype),
        "system, strides": gl.sophon.system(NCHW, dtype, strides=(1, 80, 15, 3)),
        "strided": gl.megengine.strided(NCHW, (1, 3, -18, 80), dtype),
        "mli": gl.mli.tensor(NCHW, "HWCN", dtype),
        "mli, mem_stride": gl.mli.tensor(NCHW, "HWCN", dtype, mem_stride=(200, 32, 6, 1)),
    }
    found |= {name: gl.megengine.format(NCHW, name, dtype) for name in formats}
    if dtype == "int8":
        found["local, 4N"] = gl.sophon.local(NCHW, dtype, "aligned", storage="4N", chip=toy)
    return found


def two_dims(dtype):
    toy = gl.sophon.Chip(npus=4, npu_bytes=1 << 16, alignment=128)
    return {
        "document": gl.GridLayout(MATRIX, dtype, (3, 2)),
        "document, tiled": gl.GridLayout(MATRIX, dtype, (2, 4), (4, 8)),
        "metal_layout": gl.tenstorrent.metal(MATRIX, dtype, grid=(1, 2), tile=(32, 32)),
        "ttnn_layout": gl.tenstorrent.ttnn(MATRIX, dtype, grid=(1, 2), tile=(32, 32)),
        "tt-metal": gl.tenstorrent.tensor_layout(
            MATRIX, dtype, page="tile", shard_shape=(32, 32), cores=2
        ),
        "xla": gl.parse("f32[7,40]{0,1:T(8,128)}"),
        "matrix": gl.sophon.matrix(*MATRIX, 15, dtype, chip=toy),
        "matrix, from NPU 2": gl.sophon.matrix(*MATRIX, 10, dtype, start=2 << 16, chip=toy),
        "strided": gl.megengine.strided(MATRIX, (-50, 1), dtype),
        "mli": gl.mli.tensor(MATRIX, "HW", dtype),
    }


TABLES = {
    "float32 NCHW": lambda: four_dims("float32"),
    "int8 NCHW": lambda: four_dims("int8"),
    "float32 matrix": lambda: two_dims("float32"),
}


def example(layout):
    """Values whose bits say where they are from; as float32, NaNs and -0.0 among them."""
    words = np.arange(1, 1 + layout.size, dtype=np.uint64) * 2654435761
    kind = np.dtype(f"uint{layout.dtype.itemsize * 8}")
    return words.astype(kind).reshape(layout.shape).view(layout.dtype)


def bits(array):
    return np.asarray(array).view(f"uint{np.asarray(array).dtype.itemsize * 8}")


@pytest.mark.parametrize("table", TABLES)
def test_repr_and_str_are_read_back(table):
    for layout in TABLES[table]().values():
        for oob in (None, 0, -7, "inf", float("nan")):
            if oob == oob or layout.dtype.kind == "f":
                given = layout.with_oob(oob)
                assert gl.parse(repr(given)) == gl.parse(str(given)) == given


@pytest.mark.parametrize("table", TABLES)
def test_elements_lie_where_they_are_said_to(table):
    layouts = TABLES[table]()
    for name, layout in layouts.items():
        x = example(layout)
        expected = packed(bits(x), layout, 0)
        np.testing.assert_array_equal(bits(pack_host(x, layout)), expected, err_msg=name)
        for index in itertools.islice(indices(layout.shape), 0, None, 7):
            where = layout.locate(index)
            assert layout.logical_index((*where.core, *where.local)) == index
        assert gl.parse(str(layout)) == layout, name
        if name not in few(layouts, 4):
            continue
        np.testing.assert_array_equal(bits(gl.pack(x, layout)), expected, err_msg=name)
        np.testing.assert_array_equal(bits(gl.pack(x, layout, path="gather")), expected)
        # Poisoned padding is never read.
        physical = np.where(layout.padding_mask(), ~np.zeros_like(expected), expected)
        found = gl.unpack(physical.view(layout.dtype), layout)
        np.testing.assert_array_equal(bits(found), bits(x), err_msg=name)


@pytest.mark.parametrize("table", TABLES)
def test_all_pairs(table):
    layouts = TABLES[table]()
    for (one, a), (two, b) in itertools.product(layouts.items(), repeat=2):
        x = example(a)
        physical = np.where(a.padding_mask(), ~np.zeros((), bits(x).dtype), bits(pack_host(x, a)))
        route = find_route(a, b)
        assert (route is None) == (a.is_scatter or b.is_scatter), (one, two)
        if route is None:
            continue
        found = run_host(physical, route.moves({}), np.zeros((), physical.dtype))
        expected = bits(pack_host(x, b))
        real = ~b.padding_mask()
        np.testing.assert_array_equal(found[real], expected[real], err_msg=f"{one} -> {two}")


@pytest.mark.parametrize("table", TABLES)
def test_on_devices(table):
    count = len(jax.devices())
    mesh = (2, count // 2) if count % 2 == 0 else (count,)
    layouts = list(TABLES[table]().items())
    for number, (k, (one, a)) in enumerate(few(list(enumerate(layouts)), 4)):
        x = example(a)
        for stride in few((1, 7), 1):
            two, b = layouts[(k + stride) % len(layouts)]
            laid = gl.put(x, a, mapped(mesh, number, a.core_shape, b.core_shape))
            found = gl.relayout(laid, b)
            assert found.layout == b
            np.testing.assert_array_equal(bits(found), bits(x), err_msg=f"{one} -> {two}")
            physical = np.asarray(found.physical)
            real = ~b.padding_mask()
            np.testing.assert_array_equal(
                bits(physical)[real], bits(pack_host(x, b))[real], err_msg=f"{one} -> {two}"
            )
            plan = gl.relayout_plan(laid, b)
            assert plan.moved + plan.stays >= x.nbytes


# Elements of the nested blocks, the outer first; every other layout of the tables has none.
BLOCKS = {
    **{"document, tiled": (16,), "document, faces": (32, 8), "tt-metal": (1024, 256)},
    "ttnn, document": (8,),
    **dict.fromkeys(["metal_layout", "ttnn_layout"], (1024,)),
    **{"xla, tiled": (8,), "xla, tiled twice": (32, 2), "xla, combined": (12,)},
    **{"local, 4N": (4,), "NCHW4": (4,), "NCHW8": (8,), "NCHW32": (32,), "NCHW64": (64,)},
    **{"CHWN4": (4,), "NHWCD4": (4,)},
}


@pytest.mark.parametrize("table", ["float32 NCHW", "int8 NCHW"])
def test_layouts_say_what_they_are_made_of(table):
    for name, layout in TABLES[table]().items():
        assert layout.blocks == BLOCKS.get(name, ()), name
        is_grid = name.startswith("document")
        if name == "ttnn, document":  # it is a GridLayout in other terms
            assert layout.as_grid.same_physical(layout)
            assert layout.grouped is layout.as_grid
        else:
            assert layout.as_grid is (layout if is_grid else None)
            assert layout.grouped is (layout if is_grid and not layout.is_scatter else None)
        index = tuple(n - 1 for n in layout.shape)
        assert layout.core_map(*index) == layout.locate(index).core


def test_blocks_of_matrices():
    found = {name: layout.blocks for name, layout in two_dims("float32").items()}
    assert {name: blocks for name, blocks in found.items() if blocks} == {
        **{"document, tiled": (32,), "metal_layout": (1024,), "ttnn_layout": (1024,)},
        **{"tt-metal": (1024, 256), "xla": (1024,)},
    }


def test_memories():
    found = {name: layout.memory for name, layout in two_dims("float32").items()}
    assert {name for name, memory in found.items() if memory == "l1"} == {
        *("document", "document, tiled", "metal_layout", "ttnn_layout"),
    }
    assert found["xla"] == "memory 0"
    assert found["matrix"] is None
    host = gl.tenstorrent.ttnn(MATRIX, buffer_type="system_memory")
    assert (host.memory, host.is_interleaved) == ("system", True)


def test_traffic_is_what_both_layouts_locate():
    layouts = list(two_dims("float32").values())
    for a, b in itertools.pairwise([*layouts, layouts[0]]):
        expected = {}
        for index in indices(MATRIX):
            pair = (*a.locate(index).core, *b.locate(index).core)
            expected[pair] = expected.get(pair, 0) + 1
        found = a.traffic(b)
        pairs = np.concatenate([found.before, found.after], axis=1).tolist()
        assert dict(zip(map(tuple, pairs), found.counts.tolist(), strict=True)) == expected


def test_traffic_between_more_pairs_of_cores_than_an_int64_numbers():
    diagonal = gl.GridLayout((65536,), grid=(65536, 65536), linear="(d0) -> (d0, d0)")
    found = diagonal.traffic(diagonal)
    each = np.arange(65536)[:, None] + np.zeros((1, 2), int)
    np.testing.assert_array_equal(found.before, each)
    np.testing.assert_array_equal(found.after, each)
    assert (found.counts == 1).all()


@pytest.mark.parametrize("to", [None, np.zeros(MATRIX), gl.GridLayout((40, 7))])
def test_traffic_goes_to_a_layout_of_the_same_shape(to):
    with pytest.raises(gl.LayoutError, match=r"must be a layout of the shape \(7, 40\)"):
        gl.GridLayout(MATRIX).traffic(to)
