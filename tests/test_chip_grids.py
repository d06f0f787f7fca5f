"""Device grids of three and four axes: chips along one or two, rows and columns of cores."""

import jax
import pytest
import tiers
from chip_grids import LAYOUTS, MAPPED, MAPS, MESHES, check_computed, check_map, device_of
from processes import run_alone

import gridlayout as gl

COUNT = len(jax.devices())
needs_eight = pytest.mark.skipif(COUNT < 8, reason="meshes of eight devices")

CASES = [
    (mesh, name, list(LAYOUTS)[(k + 3 + m) % len(LAYOUTS)])
    for m, mesh in enumerate(MESHES[8])
    for k, name in enumerate(LAYOUTS)
]


@pytest.mark.few(2)
@needs_eight
@pytest.mark.parametrize(("mesh", "name", "other"), tiers.few(CASES, 5))
def test_arrays_are_as_numpys(mesh, name, other):
    check_computed(LAYOUTS[name], LAYOUTS[other], device_of(mesh))


@pytest.mark.few(1)
@needs_eight
@pytest.mark.parametrize("mesh", [mesh for mesh in MAPS if mesh in MESHES[8]])
def test_maps_place_cores_on_chips(mesh):
    for text, grid in zip(MAPS[mesh], MAPPED[mesh], strict=True):
        check_map(mesh, text, grid)


def test_a_grid_of_rank_two_is_folded_over_chips_and_cores():
    mesh = jax.sharding.AbstractMesh((2, 2, 4, 4), ("chip_x", "chip_y", "row", "column"))
    device = gl.DeviceGrid(mesh)
    for grid in [(8, 8), (64, 1), (16, 16), (2, 32), (5, 7)]:
        placement = device.placement(grid)
        assert device.describe(gl.GridLayout((64, 64), grid=grid)).cores.shape == device.shape
        assert max(placement.per_device) <= 2
    stated = "(d0, d1) -> (d0 floordiv 4, d1 floordiv 4, d0 mod 4, d1 mod 4)"
    chips = gl.DeviceGrid(mesh, core_map=stated)
    assert str(chips.core_map((8, 8))) == stated
    assert tuple(chips.core_map((8, 8))(5, 3)) == (1, 0, 1, 3)
    described = chips.describe(gl.GridLayout((53, 63), "float32", grid=(8, 8)))
    assert described.cores.tolist() == [[[[1] * 4] * 4] * 2] * 2
    assert described.elements.sum() == 53 * 63
    assert "<svg" in described._repr_html_()


MORE = """
import sys

sys.path.insert(0, "tests")

import gridlayout as gl

gl.emulate_devices({devices})

import chip_grids

chip_grids.check_all({devices}, {count})
print("right")
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("devices", tiers.few([12, 64, 16], 2))
def test_more_devices_than_eight(devices):
    count = len(LAYOUTS) if tiers.ALL and devices < 64 else 1
    ended = run_alone(MORE.format(devices=devices, count=count), seconds=580)
    assert ended.code == 0, ended.err[-3000:]
    assert ended.out.endswith("right\n")
