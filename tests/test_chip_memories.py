"""A chip may name its memories: nothing else changes, and results print its names.

Each answer about a chip of own names is compared with that about its twin, the same chip with the
names l1 and dram.
"""

import pickle
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gridlayout as gl

ROOM = {"l1": 1 << 17, "dram": 1 << 28}
TWIN = gl.Chip("mine", (2, 3), ROOM, banks=4)
MINE = gl.Chip(
    "mine", (2, 3), {"hbm": ROOM["dram"], "scratchpad": ROOM["l1"]}, banks=4, shared="hbm"
)
RATES = gl.Rates(1e12, 1e11, noc=1e11, hop=1e-7)
LINKS = gl.Links(1e10, latency=1e-6)
SHAPES = [jax.ShapeDtypeStruct(s, "float32") for s in ((250, 130), (130, 90))]


def words(text):
    """A text of the twin in the words of the chip of own names."""
    text = re.sub(r"\b(l1|L1)\b", "scratchpad", str(text))
    return re.sub(r"\b(dram|DRAM)\b", "hbm", text)


def squeezed(text):
    """A text without the spaces that align it."""
    return re.sub(r"[ ─-]+", " ", str(text))


def machines(mesh=(1, 2)):
    return [gl.Machine(chip, mesh=mesh, links=LINKS, rates=RATES) for chip in (TWIN, MINE)]


def fn(x, w):
    return jax.nn.softmax(jnp.tanh(x @ w), axis=-1)


@pytest.mark.parametrize("space", ["l1", "dram", "system"])
@pytest.mark.parametrize("grid", [(2, 3), (1, 5), (7, 3)])
def test_fits_and_what_prints_them(space, grid):
    layout = gl.GridLayout((253, 631), grid=grid, tile=(32, 32), memory_space=space)
    twin, mine = layout.fits(TWIN), layout.fits(MINE)
    assert (mine.needed, mine.capacity, mine.free, bool(mine)) == (
        *(twin.needed, twin.capacity, twin.free, bool(twin)),
    )
    assert mine.space == twin.space == space
    assert mine.memory == words(twin.memory)
    assert str(mine) == words(twin)
    assert layout.is_placed(MINE) == layout.is_placed(TWIN)
    summaries = [str(layout.summary(chip)) for chip in (TWIN, MINE)]
    room = [line for text in summaries for line in text.splitlines() if "mine" in line]
    assert room[1] == words(room[0])


def test_explain_summary_and_slices():
    layout = gl.GridLayout((4000, 640), grid=(2, 3), tile=(32, 32))
    explained = [gl.explain(str(layout), chip=chip) for chip in (TWIN, MINE)]
    fits = [[f.fit for f in each.findings] for each in explained]
    assert [str(f) for f in fits[1]] == [words(f) for f in fits[0]]
    assert "scratchpad" in str(explained[1])
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 3), ("x", "y")))
    tree = {"w": gl.put(jax.ShapeDtypeStruct((400, 64), "float32"), device)}
    found = [gl.summary(tree, chip) for chip in (TWIN, MINE)]
    assert squeezed(found[1]) == squeezed(words(found[0]))
    pieces = [gl.slices(layout, chip).pieces for chip in (TWIN, MINE)]
    assert pieces[0] == pieces[1]
    assert len(pieces[0]) > 1


@pytest.mark.parametrize(("own", "space"), [("scratchpad", "l1"), ("hbm", "dram")])
def test_layouts_use_the_names_of_a_chip(own, space, tmp_path):
    twin = gl.GridLayout((253, 631), grid=(2, 3), tile=(32, 32), memory_space=space)
    layout = twin.replace(memory_space=own)
    assert layout != twin
    assert layout.on_chip(MINE) == twin
    assert str(layout.fits(MINE)) == str(twin.fits(MINE))
    assert layout.can_be_on(MINE) == twin.can_be_on(MINE)
    assert [line.split()[0] for line in str(layout.summary(MINE)).splitlines()][-1] == "fits"
    for text in (str(layout), repr(layout)):
        assert gl.parse(text) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout
    gl.save_bytes(np.zeros((253, 631), np.float32), layout, tmp_path / "x.bin")
    assert gl.open_bytes(tmp_path / "x.bin").layout == layout
    assert gl.convert(layout.on_chip(MINE), to="ttnn_document").layout.memory_space == space
    with pytest.raises(gl.LayoutError, match=f"'{own}' is not one of system, mmio, dram, l1"):
        gl.convert(layout, to="ttnn_document")
    printed = lambda chip: str(layout.summary(chip))  # noqa: E731
    for ask in (layout.fits, printed, layout.can_be_on, layout.is_placed):
        with pytest.raises(gl.LayoutError, match=f"'{own}' is not one of those of Wormhole"):
            ask("wormhole")


@pytest.mark.parametrize("bad", ["L1", "my pad", "", "9", None, 3, "a" * 65])
def test_a_memory_is_a_word_that_is_no_other_spelling_of_a_known_one(bad):
    with pytest.raises(gl.LayoutError, match=r"memory_space .* system, mmio, dram, l1, nor a word"):
        gl.GridLayout((3, 5), memory_space=bad)


def test_arrays_on_devices_are_in_the_memory_that_the_chip_names():
    count = len(jax.devices())
    chip = gl.Chip("mine", (1, 1), {"scratchpad": 2**20, "hbm": 2**30}, shared="hbm")
    machine = gl.Machine(chip, mesh=(count,), links=LINKS, rates=RATES)
    device, x = gl.DeviceGrid(count, machine=machine), np.arange(35, dtype=np.float32).reshape(5, 7)
    near = gl.GridLayout((5, 7), grid=(5, 1), memory_space="scratchpad")
    a, b = gl.put(x, near, device), gl.put(x, near.replace(memory_space="l1"), device)
    far = gl.relayout(a, near.replace(memory_space="hbm"))
    assert (a.layout, far.layout.memory_space) == (b.layout, "dram")
    np.testing.assert_array_equal(np.asarray(a + b), 2 * x)  # they are in one memory
    with pytest.raises(gl.LayoutError, match="memory spaces dram and l1"):
        a + far
    moved = gl.relayout_plan(a, near.replace(memory_space="hbm"))
    assert [str(each.axes) for each in moved.collectives] == ["('l1', 'dram')"]
    for other in (near.replace(memory_space="sram"), near):
        where = device if other is not near else gl.DeviceGrid(count)
        with pytest.raises(gl.LayoutError, match=f"'{other.memory_space}' is not one of those"):
            gl.put(x, other, where)


@pytest.mark.parametrize("space", [None, "l1", "dram"])
def test_plans_choose_the_same(space):
    twin, mine = machines()
    own = None if space is None else MINE.called(space)
    plans = [
        gl.plan(fn, *SHAPES, machine=twin, memory_space=space, seconds=2),
        gl.plan(fn, *SHAPES, machine=mine, memory_space=own, seconds=2),
    ]
    assert plans[0].time == plans[1].time
    assert plans[0].layouts == plans[1].layouts
    assert plans[0].peak_bytes == plans[1].peak_bytes
    assert plans[0].simulation.capacity == plans[1].simulation.capacity == ROOM["l1"]
    names = [[name for name, *_ in gl.compare(plan, plan).measures] for plan in plans]
    assert names[1] == [words(name) for name in names[0]]
    assert "scratchpad peak of one core" in names[1]
    drawn = [plan.simulation.memory().svg for plan in plans]
    assert words(drawn[0]) == words(drawn[1])


def test_refusals_of_plans_print_the_names():
    with pytest.raises(
        gl.LayoutError, match=r"'sram' is not one of those of .*mine, scratchpad, hbm"
    ):
        gl.plan(fn, *SHAPES, machine=machines()[1], memory_space="sram")
    small = gl.Chip("small", (2, 3), {"scratchpad": 4096, "hbm": 1 << 16}, shared="hbm")
    machine = gl.Machine(small, mesh=(1, 2), links=LINKS, rates=RATES)
    with pytest.raises(gl.LayoutError, match=r"scratchpad|hbm") as refused:
        gl.plan(fn, *SHAPES, machine=machine, memory_space="hbm")
    assert not re.search(r"\bL1\b|\bDRAM\b", str(refused.value))


@pytest.mark.parametrize("chip_grid", [(1, 1), (4, 4)])
def test_one_name_is_the_memory_of_each_core(chip_grid):
    chip = gl.Chip("mine", chip_grid, {"scratchpad": 2**20})
    machine = gl.Machine(chip, mesh=(2, 3), links=LINKS, rates=RATES)
    simulation = gl.simulate(fn, *SHAPES, machine=machine)
    assert simulation.capacity == 2**20
    assert simulation.fits
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 3), ("x", "y")), machine=machine)
    report = gl.on_grid(fn, device).report(*SHAPES)
    assert "dot_general" in [row.primitive for row in report.rows]
    assert "mine" in str(simulation)
    for drawing in (simulation.timeline(), simulation.memory()):
        assert drawing.svg.startswith("<svg")
    layout = gl.GridLayout((100, 100), grid=(1, 1))
    assert "of 1048576 B scratchpad on each core" in str(layout.fits(chip))


def test_kernels_run_on_devices_of_such_a_machine():
    count = len(jax.devices())
    chip = gl.Chip("mine", (1, 1), {"scratchpad": 2**20})
    machine = gl.Machine(chip, mesh=(count,), links=LINKS, rates=RATES)
    device = gl.DeviceGrid((count,), machine=machine)
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    layout = gl.GridLayout((5, 7), grid=(5, 1), oob=0)
    laid = gl.put(x, layout, device)
    kernel = lambda shard: shard * 2 + gl.cores.psum(shard.sum(), 0)  # noqa: E731
    found = gl.map_shards(kernel, laid, out=layout)
    np.testing.assert_allclose(np.asarray(found), x * 2 + x.sum())
    np.testing.assert_allclose(np.asarray(gl.on_grid(jnp.tanh)(laid)), np.tanh(x), rtol=1e-5)


def test_machines_are_saved_and_pickled_with_their_names(tmp_path):
    machine = machines()[1]
    machine.save(tmp_path / "machine.json")
    loaded = gl.Machine.load(tmp_path / "machine.json")
    assert loaded == machine
    assert loaded.chip.shared == "hbm"
    assert pickle.loads(pickle.dumps(MINE)) == MINE
    machines()[0].save(tmp_path / "twin.json")
    assert "shared" not in (tmp_path / "twin.json").read_text()


# The names of a chip's memories, what it states, and how many bytes l1 and dram are.
NAMED = {
    "both": (("l1", "dram"), None, (1, 2)),
    "of each core": (("scratchpad",), None, (1, None)),
    "shared": (("hbm",), "hbm", (None, 1)),
    "beside l1": (("l1", "hbm"), None, (1, 2)),
    "beside dram": (("dram", "scratchpad"), None, (2, 1)),
    "stated": (("a", "b"), "a", (2, 1)),
    "stated, the other": (("a", "b"), "b", (1, 2)),
    "dram, stated": (("a", "dram"), "dram", (1, 2)),
    "with the host's": (("system", "a"), None, (2, None)),
}


@pytest.mark.parametrize("case", NAMED)
def test_what_layouts_call_each_memory(case):
    names, shared, expected = NAMED[case]
    chip = gl.Chip("toy", (2, 3), {name: k for k, name in enumerate(names, 1)}, shared=shared)
    assert (chip.room("l1"), chip.room("dram")) == expected
    for space in ("l1", "dram"):
        if chip.room(space) is not None:
            assert chip.space_of(chip.called(space)) == space


REFUSED = {
    "unclear": ({"a": 1, "b": 1}, None, "a and b: state the one that all cores share, shared='b'"),
    "three": ({"a": 1, "b": 1, "c": 1}, "a", "memories a, b, c are too many"),
    "three, known": ({"l1": 1, "dram": 1, "a": 1}, None, "memories l1, dram, a are too many"),
    "two shared": ({"dram": 1, "hbm": 1}, "hbm", "memories dram, hbm are too many"),
    "not there": ({"a": 1}, "b", "shared 'b' is no memory that all cores share: name one of a"),
    "of a core": ({"l1": 1, "a": 1}, "l1", "shared 'l1' is no memory .*: name one of a"),
    "no bytes": ({}, "a", "shared 'a' is no .*: state its bytes in capacity"),
    "no word": ({"": 1}, None, "name '' of a memory"),
    "no text": ({3: 1}, None, "name 3 of a memory"),
    "a number": ({"a": 1}, 5, "shared 5 is no memory"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_memories_that_are_not_clear_are_refused(case):
    capacity, shared, says = REFUSED[case]
    with pytest.raises(gl.LayoutError, match=says):
        gl.Chip("toy", (2, 3), capacity, shared=shared)
