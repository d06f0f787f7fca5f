"""`gl.scaling`: what is simulated on more and more devices, its table and its drawing."""

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise, product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiers import few

import gridlayout as gl
from gridlayout.draw.chart import Chart, Curve, Point
from gridlayout.draw.curves import curves
from gridlayout.errors import LayoutError
from gridlayout.ops.planning.meshes import Meshes, nearest
from gridlayout.ops.planning.scaled import WAYS

COMPILED = sorted((Path(__file__).parent / "dumps").rglob("*.ttnn.mlir"))[0]
SVG = "{http://www.w3.org/2000/svg}"


def shaped(*shape, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype)


def mlp(x, up, down):
    return jax.nn.relu(x @ up) @ down


SQUARE = shaped(512, 512), shaped(512, 512)
LAYERS = shaped(4096, 256), shaped(256, 1024), shaped(1024, 256)


@pytest.fixture(scope="module")
def product_on_tpus():
    return gl.scaling(jnp.matmul, *SQUARE, machine="v5e 16x16")


# -- numbers ---------------------------------------------------------------------------------------


def test_every_time_is_that_of_simulate(product_on_tpus):
    found = product_on_tpus
    assert tuple(found.times) == gl.ALGORITHMS
    assert found.devices == (1, 2, 4, 8, 16, 32, 64, 128, 256)
    machine = gl.Machine("v5e 16x16")
    for name, (k, mesh) in product(gl.ALGORITHMS, enumerate(found.meshes)):
        if (name, found.devices[k]) in found.gaps:
            assert found.times[name][k] is None
            with pytest.raises(LayoutError, match="needs"):
                gl.simulate(jnp.matmul, *SQUARE, machine=machine.on(mesh), algorithm=name)
            continue
        there = gl.simulate(jnp.matmul, *SQUARE, machine=machine.on(mesh), algorithm=name)
        assert found.times[name][k] == there.time
        assert found.received[name][k] == sum(there.links.values())
        used = {equation.how for equation in there.equations}
        assert used == {name if found.devices[k] > 1 else "gathered"}


def test_default_and_planned_are_those_of_simulate_and_plan():
    found = gl.scaling(mlp, *LAYERS, machine="v5e 4x4", devices=(1, 4, 16))
    assert [*found.times] == ["default", "planned"]
    machine = gl.Machine("v5e 4x4")
    for k, mesh in enumerate(((1, 1), (2, 2), (4, 4))):
        assert found.meshes[k] == mesh
        there = machine.on(mesh)
        assert found.times["default"][k] == gl.simulate(mlp, *LAYERS, machine=there).time
        assert found.times["planned"][k] == gl.plan(mlp, *LAYERS, machine=there).time
    assert not any(found.bound)  # which is known of products alone


def test_speed_ups_are_over_the_fastest_way_on_the_fewest_devices(product_on_tpus):
    found = product_on_tpus
    for name, times in found.times.items():
        assert found.speed_ups[name][0] == found.efficiencies[name][0] == 1
        for k, count in enumerate(found.devices):
            if times[k] is not None:
                assert found.speed_ups[name][k] == pytest.approx(times[0] / times[k])
                assert found.efficiencies[name][k] == pytest.approx(times[0] / times[k] / count)
    assert found.ideal == pytest.approx([found.ideal[0] / count for count in found.devices])
    late = gl.scaling(
        jnp.matmul, *SQUARE, machine="v5e 16x16", devices=(8, 32), ways=["ring", "3d"]
    )
    base = min(late.times["ring"][0], late.times["3d"][0])
    assert late.speed_ups["ring"][1] == pytest.approx(base / late.times["ring"][1])
    assert late.efficiencies["ring"][1] == pytest.approx(base / late.times["ring"][1] / 4)


def test_what_grows_with_the_devices_is_weak_scaling():
    def rows(n):
        return shaped(1024 * n, 256), *LAYERS[1:]

    found = gl.scaling(mlp, rows, machine="v5e 4x4", weak=True)
    for k, count in enumerate(found.devices):
        machine = gl.Machine("v5e 4x4").on(found.meshes[k])
        time = gl.simulate(mlp, *rows(count), machine=machine).time
        assert found.times["default"][k] == time
        assert found.efficiencies["default"][k] == pytest.approx(found.times["default"][0] / time)
        assert found.speed_ups["default"][k] == pytest.approx(
            count * found.times["default"][0] / time
        )
    assert set(found.ideal) == {found.ideal[0]}
    assert found.lines[0].startswith("weak scaling of mlp, devices of TPU v5e")


def test_arguments_may_be_laid_out_for_each_number_of_devices():
    def laid(n):
        return gl.GridLayout((4096, 256), "bfloat16", grid=(n, 1)), *LAYERS[1:]

    found = gl.scaling(mlp, laid, machine="v5e 4x4", ways=("default",))
    times = found.times["default"]
    for k, n in enumerate(found.devices):
        machine = gl.Machine("v5e 4x4").on(found.meshes[k])
        assert times[k] == gl.simulate(mlp, *laid(n), machine=machine).time
    assert times != gl.scaling(mlp, *LAYERS, machine="v5e 4x4").times["default"]
    assert found.ideal[-1] == pytest.approx(found.ideal[0] / 16)  # strong scaling all the same


def test_what_can_not_run_is_a_gap_and_said(product_on_tpus):
    found = product_on_tpus
    cannon = dict(zip(found.devices, found.times["cannon"], strict=True))
    assert [n for n, time in cannon.items() if time is None] == [2, 8, 32, 128]
    (line,) = (line for line in found.lines if line.startswith("cannon can't run"))
    assert line.startswith("cannon can't run on 2, 8, 32, 128: on 2, algorithm 'cannon' needs as")
    row = next(line for line in found.lines if line.split()[:2] == ["8", "2x4"])
    assert row.split().count("-") == 1
    many = gl.scaling(
        jnp.matmul, *SQUARE, machine="v5e 4x4", devices=range(1, 30), ways=["gathered", "cannon"]
    )
    assert "28, 30" not in str(many)
    assert "and 12 more numbers: on 2," in str(many)


def test_plans_without_room_are_gaps():
    chip = gl.Chip("small", (1, 1), {"dram": 2**22})
    rates = gl.Rates(flops=1e12, memory=1e11)
    machine = gl.Machine(chip, mesh=(16,), links=gl.Links(1e9), rates=rates)
    found = gl.scaling(mlp, *LAYERS, machine=machine)
    assert found.times["planned"][0] is None
    assert "does not fit" in found.gaps["planned", 1]
    assert found.times["planned"][-1] is not None
    assert found.fastest[0] == "default"
    assert found.fastest[-1] == "planned"
    # What is only simulated has a time, and a mark that says so.
    assert not found.simulations["default"][0].fits
    assert " !" in next(line for line in found.lines if line.split()[:2] == ["1", "1"])
    assert "more is held than a device has room for" in found.draw().svg


DIMS = [(512, 512, 512), (64, 8192, 64), (8192, 64, 64), (4096, 64, 4096), (30, 50, 70), (3, 5, 2)]
MACHINES = ["v5e 4x4", "v5e 16x16", "v5p 4x4x4", "h100", "n300"]


BOUNDED = [
    (*dims, machine)
    for k, dims in enumerate(DIMS)
    for machine in few(MACHINES[k % 5 :] + MACHINES[: k % 5], 2)
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("m", "k", "n", "machine"), BOUNDED)
def test_no_algorithm_takes_less_than_the_bound(machine, m, k, n):
    args = shaped(m, k), shaped(k, n)
    found = gl.scaling(jnp.matmul, *args, machine=machine, devices=(1, 2, 4, 8))
    for times in found.times.values():
        for time, bound in zip(times, found.bound, strict=True):
            assert time is None or bound is None or time >= bound * (1 - 1e-9)
    assert found.bound[0] > 0
    if m * n > 10_000:
        assert all(found.bound)


def test_the_bound_is_of_one_product_of_two_arrays():
    x, w = shaped(8, 64, 64), shaped(8, 64, 64)
    known = {"devices": (4,), "machine": "v5e 4x4", "ways": ("default",)}
    assert not any(gl.scaling(jnp.matmul, x, w, **known).bound)  # a batch
    assert not any(gl.scaling(lambda x: x @ x, SQUARE[0], **known).bound)
    assert not any(gl.scaling(lambda x, w: jnp.tanh(x @ w), *SQUARE, **known).bound)
    copies = gl.GridLayout((512, 512), "bfloat16", grid=(1, 1))
    assert not any(gl.scaling(jnp.matmul, SQUARE[0], copies, **known).bound)
    (bound,) = gl.scaling(lambda x, w: jnp.einsum("ij,kj->ik", x, w), *SQUARE, **known).bound
    assert bound > 0


# -- meshes ----------------------------------------------------------------------------------------


def test_a_mesh_is_the_nearest_to_a_square():
    assert [nearest(n, 2) for n in (1, 8, 32, 7, 36)] == [(1, 1), (2, 4), (4, 8), (1, 7), (6, 6)]
    for count, rank in product(range(1, 50), (1, 2, 3)):
        sizes = nearest(count, rank)
        assert math.prod(sizes) == count
        assert all(a <= b for a, b in pairwise(sizes))
    machine = gl.Machine("v5e 4x4", mesh=(8, 2))
    assert [Meshes(machine).of(n).mesh for n in (8, 16, 32)] == [(2, 4), (8, 2), (4, 8)]
    found = gl.scaling(jnp.matmul, *SQUARE, machine=machine, devices=[(1, 4), 8, (4, 4)])
    assert found.meshes == ((1, 4), (2, 4), (4, 4))


def test_cores_are_counted_on_chips_of_several():
    found = gl.scaling(jnp.matmul, *SQUARE, machine="n300", ways=["gathered", "ring"])
    assert found.counted == "cores"
    assert found.devices == (1, 2, 4, 8, 16, 32, 64, 128)
    assert found.meshes[-3:] == ((4, 8), (8, 8), (1, 2, 8, 8))
    whole = gl.simulate(jnp.matmul, *SQUARE, machine="n300", algorithm="ring")
    assert found.times["ring"][-1] == whole.time
    chip = gl.simulate(jnp.matmul, *SQUARE, machine="n150", algorithm="ring")
    assert found.times["ring"][-2] == chip.time
    assert Meshes(gl.Machine("n150").by_core).of(8).mesh == (2, 4)
    assert Meshes(gl.Machine("wormhole 4x8").by_core).of(256).mesh == (2, 2, 8, 8)
    assert Meshes(gl.Machine("n150")).of((2, 8, 8)).axis_names == ("x", "r", "c")


def test_one_number_of_devices_is_enough():
    shape = jax.ShapeDtypeStruct((64, 64), "float32")
    one, listed = (
        gl.scaling(jnp.exp, shape, machine="v5e 4x4", devices=devices) for devices in (8, (8,))
    )
    assert str(one) == str(listed)


# -- refused ---------------------------------------------------------------------------------------

REFUSED = {
    "no devices": ({"devices": ()}, r"devices has 0 counts: give from 1 to"),
    "zero": ({"devices": (1, 0)}, r"a number in devices 0 must be from 1 to"),
    "negative": ({"devices": (-4,)}, r"a number in devices -4 must be"),
    "a float": ({"devices": (1, 2.5)}, r"a number in devices 2.5 is not an integer"),
    "no sequence": ({"devices": 8.0}, r"devices 8.0 must be a sequence of counts"),
    "twice": ({"devices": (1, 4, (2, 2))}, r"has 4 twice: give each number once"),
    "an empty mesh": ({"devices": ((),)}, r"a mesh in devices"),
    "many": ({"devices": range(1, 5000)}, r"devices has 4,999 counts: give from 1 to 1,024"),
    "no machine": ({"machine": None}, r"machine None must be a gl.Machine, or the name"),
    "another name": ({"machine": "tpu"}, r"machine 'tpu' is unknown: give one of n150"),
    "another way": ({"ways": ("fast",)}, r"way 'fast' is not one of gathered, ring"),
    "no way": ({"ways": ()}, r"ways has no name: give some of gathered"),
    "a way twice": ({"ways": ("ring", "ring")}, r"has a name twice"),
    "no growth": ({"weak": True}, r"weak scaling of matmul needs arguments that grow"),
    "no truth": ({"weak": 3}, r"weak 3 must be True or False"),
    "progress": ({"progress": 3}, r"progress 3 must be a function of \(done, of how many"),
    "seconds": ({"seconds": -1}, r"seconds -1 must be a finite number"),
    "cores": ({"machine": "n150", "devices": (11,)}, r"11 cores are no rectangle on a chip of 8 x"),
    "wide": (
        {"machine": "n150", "devices": ((9, 1),)},
        r"\(9, 1\) is no mesh of cores: its last",
    ),
    "runs nowhere": ({"devices": (2,), "ways": ("cannon",)}, r"matmul runs in none of the ways: a"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_impossible_is_refused(name):
    given, message = REFUSED[name]
    with pytest.raises(LayoutError, match=message):
        gl.scaling(jnp.matmul, *SQUARE, **{"machine": "v5e 4x4", **given})


def test_functions_and_arguments_that_do_not_fit_are_refused():
    def scaled(fn, *args, **more):
        with pytest.raises(LayoutError) as raised:
            gl.scaling(fn, *args, machine="v5e 4x4", **more)
        return str(raised.value)

    assert "matmul can't be traced on these arguments: TypeError" in scaled(
        jnp.matmul, shaped(3, 4), shaped(5, 6)
    )
    assert "ways ['ring'] are algorithms of matrix products, and tanh has none" in scaled(
        jnp.tanh, SQUARE[0], ways=("ring",)
    )
    assert "for 1 devices: ZeroDivisionError" in scaled(mlp, lambda n: 1 / 0)
    assert "it must give the tuple of the arguments of mlp" in scaled(mlp, lambda n: LAYERS[0])
    assert "fn must be a function, not int 3" in scaled(3, *SQUARE)
    x = gl.put(np.ones((4, 4), np.float32), gl.GridLayout((4, 4)), gl.DeviceGrid((1,)))
    assert "an argument is on 1 devices" in scaled(lambda x: x["x"] @ x["x"], {"x": x})
    program = gl.tenstorrent.load(COMPILED.read_text())
    assert "a compiled program is for the cores that it was compiled for" in scaled(program)
    with pytest.raises(LayoutError, match="a compiled program states how products run"):
        gl.simulate(program, machine="n150", algorithm="ring")
    plan = gl.plan(jnp.matmul, *SQUARE, machine="v5e 4x4")
    with pytest.raises(LayoutError, match="leave out plan=, or algorithm='ring'"):
        gl.simulate(jnp.matmul, *SQUARE, plan=plan, algorithm="ring")
    with pytest.raises(LayoutError, match="algorithm 'fast' is not one of gathered"):
        gl.simulate(jnp.matmul, *SQUARE, machine="v5e 4x4", algorithm="fast")


def test_algorithms_are_of_all_products_of_a_function():
    def layers(x, w):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, w)[0]

    args = shaped(512, 256), shaped(4, 256, 256)
    found = gl.scaling(layers, *args, machine="v5e 4x4", ways=("gathered", "summa", "default"))
    assert found.times["gathered"][-1] < found.times["summa"][-1]


def test_progress_is_told_of_every_simulation():
    told = []
    gl.scaling(
        *(mlp, *LAYERS),
        **{"machine": "v5e 4x4", "devices": (1, 4), "progress": lambda *now: told.append(now)},
    )
    assert [(done, every) for done, every, _ in told] == [(k, 4) for k in (1, 2, 3, 4)]
    assert all(a[2] <= b[2] for a, b in pairwise(told))


# -- shown -----------------------------------------------------------------------------------------


def marks(drawing):
    """(fill, hover) of every mark."""
    root = ET.fromstring(drawing.svg)
    groups = [g for g in root.iter(f"{SVG}g") if g.get("class") == "marks"]
    return [
        [
            (e.get("class"), e.find(f"{SVG}title").text)
            for e in g
            if e.find(f"{SVG}title") is not None
        ]
        for g in groups
    ]


def test_the_drawing_has_a_mark_for_every_time(product_on_tpus):
    drawing = product_on_tpus.draw()
    times, shares = marks(drawing)
    known = sum(t is not None for row in product_on_tpus.times.values() for t in row)
    # Ways that lie on each other all along have their marks once, and say so.
    assert sum(hover.count(" received") for _, hover in times) == known
    assert sum(hover.count(" received") for _, hover in shares) == known
    said = [hover for _, hover in times if hover.startswith("ring on 16 devices (4x4)")]
    time = product_on_tpus.times["ring"][product_on_tpus.devices.index(16)]
    assert f"{time * 1e6:.2f} us, speed-up " in said[0]
    for name in (*gl.ALGORITHMS, "ideal", "lower bound"):
        assert name in drawing.svg
    assert product_on_tpus._repr_html_() == drawing.svg
    assert drawing.title == "strong scaling of matmul"
    assert "prefers-color-scheme: dark" in drawing.svg


def test_the_table_has_what_the_drawing_has(product_on_tpus):
    text = str(product_on_tpus)
    assert text == "\n".join(product_on_tpus.lines)
    for words in ("time (* the fastest)", "speed-up over 1 device, and efficiency", "16x16"):
        assert words in text
    row = next(line for line in product_on_tpus.lines if line.split()[:2] == ["256", "16x16"])
    assert row.count("*") == 1
    best = product_on_tpus.fastest[-1]
    assert repr(product_on_tpus).startswith(
        "Scaling(strong scaling of matmul, 1 to 256 devices of "
    )
    assert f"fastest on 256: {best} " in repr(product_on_tpus)
    assert set(WAYS) > set(product_on_tpus.times)


def test_what_takes_no_time_is_said():
    found = gl.scaling(lambda x: x, SQUARE[0], machine="v5e 4x4", devices=(1, 2))
    assert found.times["default"] == (0, 0)
    assert found.speed_ups["default"] == (None, None)
    assert "Times of 0 s have no place on a logarithmic axis" in found.draw().svg


def test_names_are_escaped():
    def odd(x):
        return x + 1

    odd.__name__ = "<b>&\x00</b>"
    drawing = gl.scaling(odd, SQUARE[0], machine="v5e 4x4", devices=(1, 4)).draw()
    ET.fromstring(drawing.svg)
    assert "<b>" not in drawing.svg


def lines_of(*values, guides=()):
    points = [Point(2**k, value) for k, value in enumerate(values)]
    return curves("t", "", [Chart("time", [Curve("a", points)], guides)])


def places(drawing):
    """(x, y) of each circle in the first group of marks."""
    root = ET.fromstring(drawing.svg)
    (group, *_) = (g for g in root.iter(f"{SVG}g") if g.get("class") == "marks")
    return [(float(e.get("cx")), float(e.get("cy"))) for e in group]


def test_halves_are_a_straight_line():
    (x0, y0), (x1, y1), (x2, y2) = places(lines_of(8e-6, 4e-6, 2e-6))
    assert x2 - x1 == pytest.approx(x1 - x0, abs=0.2)
    assert y2 - y1 == pytest.approx(y1 - y0, abs=0.2)
    assert y0 < y1


def test_gaps_are_dots_and_curves_on_each_other_are_one():
    whole, gap = lines_of(8e-6, 4e-6, 2e-6), lines_of(8e-6, None, 2e-6)
    assert 'stroke-dasharray="0.1 5"' in gap.svg
    assert 'stroke-dasharray="0.1 5"' not in whole.svg
    alike = [Curve(name, [Point(1, 1e-6), Point(2, 2e-6)]) for name in ("a", "b")]
    drawing = curves("t", "", [Chart("time", alike)])
    assert ">a, b<" in drawing.svg
    assert len(places(drawing)) == 2


def test_curves_of_equal_points_with_other_gaps_are_apart():
    a = Curve("a", [Point(1, None, "a1"), Point(2, 1.0, "a2"), Point(4, 2.0, "a4")])
    b = Curve("b", [Point(2, 1.0, "b2"), Point(4, 2.0, "b4")])
    gap = Curve("c", [Point(2, 1.0, "c2"), Point(3, None, "c3"), Point(4, 2.0, "c4")])
    drawing = curves("t", "", [Chart("time", [a, gap, b])])
    assert ">a, b<" in drawing.svg
    assert ">c<" in drawing.svg
    assert marks(drawing) == [[("c6", "a2\nb2"), ("c6", "a4\nb4"), ("c5", "c2"), ("c5", "c4")]]


@pytest.mark.parametrize("value", [5e-324, 1e-308, 1e-9, 1e9, 1e308, 1.7e308])
def test_times_of_any_magnitude_have_an_axis(value):
    assert len(places(lines_of(value, value))) == 2


def test_open_marks_are_paper():
    points = [Point(1, 1e-6, "one", True), Point(2, 2e-6, "two")]
    drawing = curves("t", "", [Chart("time", [Curve("a", points)])])
    assert marks(drawing) == [[("paper", "one"), ("c6", "two")]]


def test_names_do_not_overlap():
    many = [Curve(f"way {k}", [Point(1, 1e-6), Point(2, 1e-6 * (1 + k / 99))]) for k in range(12)]
    drawing = curves("t", "", [Chart("time", many)])
    root = ET.fromstring(drawing.svg)
    found = [e for e in root.iter(f"{SVG}text") if re.match(r"way \d+$", e.text or "")]
    ys = sorted(float(e.get("y")) for e in found)
    assert len(ys) == 12
    assert min(b - a for a, b in pairwise(ys)) >= 15.9


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "3", 1j], ids=repr)
def test_values_that_are_no_amounts_are_refused(bad):
    with pytest.raises(LayoutError, match="is not a finite number >= 0"):
        lines_of(1.0, bad)
    with pytest.raises(LayoutError, match="a count of 'a'"):
        curves("t", "", [Chart("time", [Curve("a", [Point(bad, 1.0)])])])
    with pytest.raises(LayoutError, match="a count of 'a' is 0: it must be above 0"):
        curves("t", "", [Chart("time", [Curve("a", [Point(0, 1.0)])])])
