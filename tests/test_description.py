"""What devices hold of a layout, against every element's place."""

from math import prod

import numpy as np
import pytest
from jax.sharding import AbstractMesh

import gridlayout as gl


def device(*mesh):
    return gl.DeviceGrid(AbstractMesh(mesh, tuple("xyzw"[: len(mesh)])))


LAYOUTS = {
    "uneven": gl.GridLayout((53, 63), "float32", grid=(3, 2), tile=(8, 8)),
    "more cores than devices": gl.GridLayout((40, 30), "bfloat16", grid=(10, 3)),
    "collapsed": gl.GridLayout((4, 5, 7), "int8", grid=(3, 2), collapse=[(0, 2)]),
    "one core": gl.GridLayout((6, 5), "float32", grid=(1, 1)),
    "a vector": gl.GridLayout((37,), "int4", grid=(5,)),
    "a number": gl.GridLayout((), "float32", grid=(1, 1)),
    "nothing": gl.GridLayout((0, 4), "float32", grid=(2, 2)),
    "a map": gl.GridLayout((6, 8), "float32", grid=(4, 3), linear="(d0, d1) -> (d1, d0)"),
    "three dims": gl.GridLayout((6, 8, 10), "float32", grid=(3, 2, 2), collapse=[]),
    "xla": gl.parse("f32[30,50]{1,0:T(8,128)}"),
}


@pytest.mark.few(20)
@pytest.mark.parametrize("mesh", [(1,), (4,), (2, 4), (3, 2), (2, 2, 2), (4, 4, 4)])
@pytest.mark.parametrize("name", LAYOUTS)
def test_devices_hold_what_the_core_map_says(name, mesh):
    layout, grid = LAYOUTS[name], device(*mesh)
    placement, core_map = grid.placement(layout.core_shape), grid.core_map(layout.core_shape)
    free = prod(mesh) // prod(
        s // p for s, p in zip(placement.slots, placement.per_device, strict=True)
    )
    found = grid.describe(layout)
    elements = np.zeros(mesh, np.int64)
    for index in np.ndindex(*layout.shape):
        core = layout.locate(index).core
        elements[core_map(*core)[: len(mesh)]] += 1
    assert sorted(found.elements.ravel().tolist()) == sorted(elements.ravel().tolist()) or free > 1
    assert found.elements.sum() == free * layout.size
    assert found.cores.sum() == free * prod(layout.core_shape)
    assert (found.cores + found.idle == prod(placement.per_device)).all()
    held = [int(found.elements[at]) for at in np.ndindex(*mesh) if elements[at]]
    assert held == [int(n) for n in elements.ravel() if n]
    assert found.nbytes * prod(mesh) * 8 >= layout.size * layout.stored_bits
    assert found.copies == (free if layout.size else 0)
    assert found.imbalance >= 1
    assert str(found).count("\n") == (4 + prod(mesh) if prod(mesh) <= 16 else 3)


def test_storage_is_what_arrays_have_on_each_device():
    mesh = gl.DeviceGrid((1,))
    layout = gl.GridLayout((53, 63), "float32", grid=(3, 2), tile=(32, 32))
    x = gl.put(np.ones((53, 63), "f4"), layout, mesh)
    found = mesh.describe(layout)
    assert found.nbytes == x.storage.addressable_shards[0].data.nbytes
    assert (found.cores.tolist(), found.imbalance) == ([6], 1.0)


def test_it_is_drawn():
    found = device(2, 4).describe(LAYOUTS["uneven"])
    assert found.draw().svg in found._repr_html_()
    assert str(found) in found._repr_html_()


def test_many_devices_are_described_in_words():
    found = device(64, 64).describe(gl.GridLayout((1000, 1000), "float32", grid=(100, 90)))
    assert "4,096 devices" in str(found)
    assert found.elements.sum() == 10**6 * found.copies


def test_what_is_no_layout_is_refused():
    with pytest.raises(gl.LayoutError, match=r"must be a gl\.Layout"):
        device(2).describe("f32[3]")
