"""Proposals of `explain(..., plan=True)`: machines place them, and they hold fewer pages."""

import re
from itertools import product
from math import prod

import jax
import numpy as np
import pytest
import tiers
from jax.sharding import AbstractMesh

import gridlayout as gl
from gridlayout.dump.plan import propose
from gridlayout.layouts.folding import per_device
from gridlayout.ops.planning.traced import traced_for
from gridlayout.tenstorrent.metal_layout import grid_multiple_alignments
from gridlayout.tenstorrent.ttnn_document import TtnnDocument
from gridlayout.tenstorrent.ttnn_layout import TtnnLayout

MACHINES = ["n150", "p150", "p150 10x13"]
SYSTEMS = ["document", "ttnn", "metal", "ttnn_document"]


def cores_of(machine):
    """A device grid of which every core of a chip is a device."""
    core = machine.by_core
    return gl.DeviceGrid(AbstractMesh(core.mesh, core.axis_names[: len(core.mesh)]), machine=core)


def random_layout(rng, system):
    """A layout as dumps have: of any rank, in tiles or rows, in L1 or DRAM, also on many cores."""
    rank = int(rng.integers(1 + (system == "metal"), 4))
    shape = tuple(int(n) for n in rng.integers(1, (3000, 900, 90)[rank - 1], rank))
    grid = tuple(int(n) for n in rng.integers(1, 12, 2))
    tile = (32, 32) if rng.random() < 0.6 else None
    dtype = str(rng.choice(["float32", "bfloat16", "int8"]))
    space = str(rng.choice(["l1", "l1", "dram"]))
    if system == "document":
        return gl.GridLayout(shape, dtype, grid, tile, memory_space=space)
    if system == "ttnn":
        grid = (grid[0], 1) if space == "dram" else grid  # no blocks are there
        return gl.tenstorrent.ttnn(shape, dtype, grid, tile, buffer_type=space)
    if system == "ttnn_document":
        return gl.tenstorrent.ttnn_document(shape, dtype, grid=grid, tile=tile, memory_space=space)
    alignments = grid_multiple_alignments(shape, grid, tile)
    return gl.tenstorrent.metal(shape, dtype, alignments, grid=grid, tile=tile, memory_space=space)


def pages(layout):
    """Bytes of a page, and how many of them each core's buffer is made of, by its array."""
    buffers = np.empty(layout.physical_shape, np.bool_).reshape(layout.num_cores, -1)
    size = layout.dtype.itemsize
    if layout.tile is None and isinstance(layout, TtnnLayout):
        columns = layout.physical_shape[-1] * size
        unit = {"l1": 16, "dram": 64}[layout.memory]
        rows = buffers.shape[1] // max(layout.physical_shape[-1], 1)
        return -(-columns // unit) * unit, np.full(layout.num_cores, rows)
    page = prod(layout.tile or (32, 32))
    return page * size, np.array([-(-each.size // page) for each in buffers])


def held(layout, chip):
    """Bytes of pages in the fullest core, or bank of DRAM, and in all."""
    page, counts = pages(layout)
    if layout.memory != "dram":
        return page * counts.max(), page * counts.sum()
    banks = np.zeros(chip.banks, int)
    if isinstance(layout, (gl.GridLayout, TtnnDocument)):  # pages are dealt
        np.add.at(banks, np.arange(counts.sum()) % chip.banks, 1)
    else:  # shards are
        np.add.at(banks, np.arange(len(counts)) % chip.banks, counts)
    return page * banks.max(), page * counts.sum()


def assert_better(new, old, chip):
    """It holds fewer bytes, by pages; no more in any way, unless the old one had no room."""
    (most, every), (was, in_all) = held(new, chip), held(old, chip)
    assert most <= was
    if old.fits(chip).free >= 0:
        assert every <= in_all
    assert (most, every) != (was, in_all)
    if old.memory == "dram":
        assert most < was


@pytest.mark.few(4)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.filterwarnings("ignore::gridlayout.LayoutWarning")
def test_proposals_are_placed_and_hold_fewer_pages(system, name):
    machine = gl.Machine(name)
    rng, device, chip = np.random.default_rng(11), cores_of(machine), machine.chip
    made = spread = 0
    for _ in range(90 if tiers.ALL else 70):
        layout = random_layout(rng, system)
        found = propose(layout, chip)
        if found is None:
            continue
        made += 1
        new = found.layout
        assert (new.shape, new.dtype, new.memory) == (layout.shape, layout.dtype, layout.memory)
        new.check_invertible()
        assert machine.places(new)
        assert new.fits(chip)
        assert new.fits(chip).unusable_tile is None
        if new.memory == "l1":
            assert prod(device.placement(new.core_shape).per_device) == 1
        assert_better(new, layout, chip)
        spread += new.num_cores > layout.num_cores
        page, counts = pages(new)
        was, before = pages(layout)
        assert found.saved_per_core == was * before.max() - page * counts.max()
        assert found.saved_bytes == was * before.sum() - page * counts.sum()
    assert made > 20


def test_proposals_of_a_dump_are_those():
    rng = np.random.default_rng(5)
    layouts = [random_layout(rng, "metal") for _ in range(30)]
    lines = [f"%{k} = d2m.empty() : {layout}" for k, layout in enumerate(layouts)]
    chip = gl.Machine("n150").chip
    found = gl.explain(lines, plan=True, chip=chip)
    proposals = [each.proposal for each in found.findings if each.proposal]
    assert len(proposals) > 3
    expected = {propose(layout, chip) for layout in layouts} - {None}
    assert set(proposals) == expected
    assert all(gl.Machine("n150").places(gl.parse(str(each))) for each in proposals)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", MACHINES[:2])
def test_a_plan_takes_what_is_proposed(name):
    machine, rng, taken = gl.Machine(name), np.random.default_rng(3), 0
    for _ in range(12):
        shape = tuple(int(n) for n in rng.integers(1, 500, 2))
        grid = tuple(int(n) for n in rng.integers(1, 12, 2))
        found = propose(gl.GridLayout(shape, grid=grid, tile=(32, 32)), machine.chip)
        if found is not None:
            x = jax.ShapeDtypeStruct(shape, "float32")
            plan = gl.plan(lambda x: 2 * x, x, machine=name, fixed={"x": found.layout})
            assert plan.layouts["x"] == found.layout
            taken += 1
    assert taken > 3


@pytest.mark.parametrize("name", MACHINES[:2])
def test_a_machine_places_what_a_plan_offers(name):
    machine, rng, offered = gl.Machine(name), np.random.default_rng(4), 0
    for _ in range(12):
        rank = int(rng.integers(1, 4))
        shape = tuple(int(n) for n in rng.integers(1, (3000, 300, 40)[rank - 1], rank))
        x = jax.ShapeDtypeStruct(shape, "float32")
        traced = traced_for(lambda x: 2 * x, (x,), name, None)
        for idle in (False, True):
            units = traced.units(traced.inlined(None), idle)
            for place in traced.places(units, 0):
                layout = traced.layout(units, 0, place)
                assert machine.places(layout) == bool(layout.fits(machine.chip))
                assert layout.is_placed(machine.chip)
                offered += 1
    assert offered > 100


# -- what was proposed once, and must not be -------------------------------------------------------

BLACKHOLE = gl.Machine("p150 10x13").chip
METAL = gl.tenstorrent.metal
WORMHOLE = gl.Machine("n150").chip
NOTHING = {
    # The fullest of 12 banks has two shards of four tiles, and of 11x2 shards of four two again.
    "banks": METAL((329, 236), "int8", (96, 256), grid=(3, 8), tile=(32, 32), memory_space="dram"),
    # 174 MB have no room on 64 cores however they are divided.
    "no room": gl.tenstorrent.ttnn_document((127, 102, 54, 62)),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_saves_nothing_or_has_no_place_is_not_proposed(name):
    assert propose(NOTHING[name], WORMHOLE) is None


def test_fewer_bytes_of_as_many_pages_are_not_proposed():
    # Of 107 columns on each of ten cores, or 27 on forty, a page of 32x32 each: cores count alone.
    rows = gl.tenstorrent.ttnn_document((1067,), "int8", grid=(4, 10))
    found = propose(rows, WORMHOLE)
    assert (found.layout.grid, found.saved_per_core, found.saved_bytes) == ((1, 2), 0, 38 * 1024)
    # Rows of 5 elements of two bytes take 16, and so do rows of 3, of which there are more.
    rows = gl.tenstorrent.ttnn((62, 33, 159, 18), "bfloat16", (6, 4))
    found = propose(rows, gl.Chip("large", (8, 8), {"l1": 1 << 30}))
    assert found.layout.grid != (4, 6)
    assert_better(found.layout, rows, gl.Chip("large", (8, 8), {"l1": 1 << 30}))


def test_tiles_that_a_chip_does_not_compute_with_are_not_proposed():
    layout = gl.GridLayout((40, 17), grid=(2, 1), tile=(32, 32))
    any_tile = propose(layout, gl.Chip("any", (8, 8), {"l1": 1 << 20}))
    assert any_tile.layout.tile != (32, 32)
    found = propose(layout, gl.Chip("large", (8, 8), {"l1": 1 << 20}, ((32, 32),)))
    assert found is None or found.layout.tile == (32, 32)


def test_grids_that_fold_on_cores_are_not_proposed():
    layout = METAL((184, 120, 176), "float32", (352, 32, 32), grid=(11, 1), tile=(32, 32))
    assert BLACKHOLE.places((6, 20))  # which is a rectangle of 10x12
    assert per_device((6, 20), BLACKHOLE.grid) == (1, 2)
    found = propose(layout, BLACKHOLE)
    assert prod(per_device(found.layout.core_shape, BLACKHOLE.grid)) == 1


# -- the rule --------------------------------------------------------------------------------------


def folded(grid, mesh):
    """The fewest cores on one device, over every way to deal the prime factors of a mesh."""
    factors = [p for size in mesh for p in primes(size)]
    best = prod(grid)
    for dims in product(range(len(grid) + 1), repeat=len(factors)):
        along = [prod(p for p, d in zip(factors, dims, strict=True) if d == k) for k in
                 range(len(grid))]  # fmt: skip
        best = min(best, prod(-(-g // n) for g, n in zip(grid, along, strict=True)))
    return best


def primes(size):
    return next(([p, *primes(size // p)] for p in range(2, size + 1) if size % p == 0), [])


def test_large_meshes_and_chips_take_no_longer():
    prime = 2**31 - 1
    layout = gl.GridLayout((4,), grid=(4,))
    assert layout.can_be_on(gl.Chip("one column", (prime, 1), {"l1": 1024}))
    assert layout.can_be_on(gl.Chip("square", (prime, prime), {"l1": 1024}))
    assert not layout.can_be_on(gl.Chip("small", (prime, 1), {"l1": 3}))


def test_cores_on_a_device_are_the_fewest():
    rng = np.random.default_rng(0)
    for mesh in ((8, 8), (10, 11), (10, 13), (2, 4)):
        device = gl.DeviceGrid(AbstractMesh(mesh, ("r", "c")))
        for _ in range(25):
            grid = tuple(int(n) for n in rng.integers(1, 24, rng.integers(1, 4)))
            found = per_device(grid, mesh)
            assert prod(found) == folded(grid, mesh)
            assert found == device.placement(grid).per_device


def test_layouts_on_machines_are_layouts():
    with pytest.raises(gl.LayoutError, match=re.escape("layout (8, 8) must be a gl.Layout")):
        gl.Machine("n150").places((8, 8))
