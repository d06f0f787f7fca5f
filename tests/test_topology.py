"""Links that differ by axis and between hosts: what collectives take, and what is chosen by it."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh
from processes import run_together
from tiers import few

import gridlayout as gl
from gridlayout.ops.choose.division import Units
from gridlayout.sharding.collectives import Collective
from gridlayout.sharding.machines.chips import BETWEEN_NODES, KINDS, Figure
from gridlayout.sharding.machines.default_machine import default_machine
from gridlayout.sharding.machines.topology import hosts_along, hosts_of

CHIP = gl.Chip("toy", (1, 1), {"dram": 16 << 30})
RATES = gl.Rates(2e13, 1e11)
W, SLOW = 10e9, 1e9
FAST_LINKS, SLOW_LINKS = gl.Links(W, latency=1e-6), gl.Links(SLOW, latency=1e-6)
NAMES = "hosts", "devices"


def apart(between=SLOW_LINKS, within=FAST_LINKS, mesh=(2, 4)):
    return gl.Machine(CHIP, mesh, dict(zip(NAMES, (between, within), strict=True)), rates=RATES)


def grid_of(machine):
    return gl.DeviceGrid(AbstractMesh(machine.mesh, machine.axis_names), machine=machine)


def shapes(*sizes):
    return [jax.ShapeDtypeStruct(size, "bfloat16") for size in sizes]


def mlp(x, up, down):
    return jax.nn.relu(x @ up) @ down


def step(params, x, y):
    def loss(p):
        return jnp.mean((mlp(x, p["up"], p["down"]) - y) ** 2)

    grads = jax.grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def step_args(rows, width, hidden):
    up, down, x = shapes((width, hidden), (hidden, width), (rows, width))
    return {"up": up, "down": down}, x, x


# -- formulas --------------------------------------------------------------------------------------

V, A = 8 << 20, 1e-6
# Of V bytes whole, over 2 hosts of 4 devices: a gather first between hosts, of an eighth each; an
# all-reduce twice that; of an all-to-all a half crosses, of the V / 8 that a device has.
TAKEN = [
    ("all_gather", V * 7 // 8, V / 8 / SLOW + V * 3 / 4 / W + 4 * A),
    ("reduce_scatter", V * 7 // 8, V / 8 / SLOW + V * 3 / 4 / W + 4 * A),
    ("all_reduce", V * 7 // 4, 2 * (V / 8 / SLOW + V * 3 / 4 / W + 4 * A)),
    ("all_to_all", V // 64 * 7, V / 8 / 2 / SLOW + 4 * A),
    ("permute", V // 8, V / 8 / SLOW + 2 * A),
]


@pytest.mark.parametrize(("kind", "received", "seconds"), TAKEN)
def test_few_bytes_go_between_hosts(kind, received, seconds):
    for machine, axes in [
        (apart(), NAMES),
        (gl.Machine(CHIP, (8,), FAST_LINKS, hosts=(2,), host_links=SLOW_LINKS), ("x",)),
    ]:
        one = Collective(kind, axes, 8, received, 8)
        assert machine.once(one) == pytest.approx(seconds, rel=1e-6)
        along = machine.received_along(one)
        assert sum(along.values()) == received
    between = along["x between hosts"]
    assert between == pytest.approx({"all_to_all": V / 16, "all_reduce": V / 4}.get(kind, V / 8))


def test_parts_of_an_axis_have_their_own_links():
    machine = gl.Machine(CHIP, (8,), FAST_LINKS, hosts={"x": 2}, host_links=SLOW_LINKS)
    far, near = (Collective("permute", (axis,), 2, V, 8) for axis in ("x0", "x2"))
    assert machine.once(far) == pytest.approx(V / SLOW + A)
    assert machine.once(near) == pytest.approx(V / W + A)
    assert [machine.crosses((axis,)) for axis in ("x0", "x1", "x2", "x")] == [1, 0, 0, 1]
    assert machine.received_along(far) == {"x between hosts": V}
    units = Units.apart(grid_of(machine), least=1)
    assert units.axes == (("x0",), ("x1", "x2"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mesh", [(2, 4), (4, 2), (3, 5), (2, 2, 2, 3)])
def test_more_bandwidth_never_takes_longer(kind, mesh):
    rng = np.random.default_rng(0)
    names = tuple("xyzw"[: len(mesh)])
    one = Collective(kind, names, int(np.prod(mesh)), 1 << 20, 8)
    for _ in range(20):
        rates = rng.choice([1e9, 2e9, 8e9, 10e9], len(mesh))
        times = []
        for factor in (0.9, 1.0, 1.1, 2.0):
            rates[0] *= factor
            links = [gl.Links(rate, latency=1e-6, wrap=bool(k % 2)) for k, rate in enumerate(rates)]
            times.append(gl.Machine(CHIP, mesh, links).once(one))
            rates[0] /= factor
        assert all(a >= b * (1 - 1e-12) for a, b in pairwise(times))


def test_figures_between_hosts_are_those_that_were_measured_there():
    figures = [Figure("all_gather", 2, 1e-5, 1e9), Figure("all_gather", 2, 1e-3, 1e8, 0.0, True)]
    machine = gl.Machine(CHIP, (2, 2), figures=figures, links=FAST_LINKS, hosts=(2, 1))
    far, near = (Collective("all_gather", (axis,), 2, 10**6, 4) for axis in "xy")
    assert (machine.once(far), machine.once(near)) == pytest.approx((1.1e-2, 1.01e-3))


# -- what is chosen --------------------------------------------------------------------------------


def links_used(plan):
    return {axis for each in plan.simulation.equations for c in each.collectives for axis in c.axes}


def test_sums_of_a_planned_mlp_stay_within_hosts():
    args = shapes((64, 1024), (1024, 4096), (4096, 1024))
    slow, equal = (gl.plan(mlp, *args, machine=apart(links)) for links in (SLOW_LINKS, FAST_LINKS))
    assert slow.layouts["up"].grid == (1, 4)
    assert set(slow.simulation.links) == links_used(slow) == {"devices"}
    assert equal.layouts["up"].grid == (1, 8)
    assert links_used(equal) == set(NAMES)
    assert equal.time < slow.time


def test_a_planned_mlp_is_data_parallel_over_hosts():
    chip = gl.Chip("small", (1, 1), {"dram": 700 << 20})  # the weights are of 1 GiB
    args = shapes((1024, 8192), (8192, 32768), (32768, 8192))
    slow, equal = (
        gl.plan(
            mlp,
            *args,
            machine=gl.Machine(chip, (2, 4), {"hosts": links, "devices": FAST_LINKS}, rates=RATES),
        )
        for links in (SLOW_LINKS, FAST_LINKS)
    )
    assert [slow.layouts[name].grid for name in ("x", "up", "down")] == [(2, 1), (1, 4), (4, 1)]
    (row,) = [each for each in slow.simulation.equations if each.collectives]
    assert (row.name, row.collectives[0].axes) == ("dot_general:1", ("devices",))
    # With equal links fewer bytes are summed, over the hosts.
    assert links_used(equal) == {"hosts"}
    assert equal.time < slow.time


@pytest.fixture(scope="module", name="slow")
def fixture_slow():
    """A planned step on hosts with slow links between them."""
    return gl.plan(step, *step_args(65536, 1024, 1024), machine=apart())


def test_a_planned_step_sends_little_between_hosts(slow):
    args = step_args(65536, 1024, 1024)
    equal = gl.plan(step, *args, machine=apart(FAST_LINKS))
    sent, same = slow.simulation.links, equal.simulation.links
    assert 0 < sent["hosts"] * 5 < sent["devices"]
    assert same["hosts"] == same["devices"]
    assert slow.time == pytest.approx(gl.simulate(step, *args, plan=slow).time)


@pytest.mark.few(1)
@pytest.mark.parametrize("fn", [mlp, step])
def test_more_bandwidth_never_makes_a_plan_slower(fn):
    args = shapes((256, 512), (512, 2048), (2048, 512)) if fn is mlp else step_args(256, 512, 2048)
    times = [
        gl.plan(fn, *args, machine=apart(gl.Links(rate, latency=1e-6))).time
        for rate in few((2e8, 1e9, 3e9, 10e9, 40e9), 3)
    ]
    assert all(a >= b * (1 - 1e-9) for a, b in pairwise(times))


def test_programs_without_a_plan_choose_by_links_too():
    sizes, grids = [(256, 1024), (1024, 4096), (4096, 1024)], [(8, 1), (1, 1), (1, 1)]
    layouts = [gl.GridLayout(s, "bfloat16", g) for s, g in zip(sizes, grids, strict=True)]
    for links, expected in ((SLOW_LINKS, {"devices"}), (FAST_LINKS, set(NAMES))):
        report = gl.on_grid(mlp, grid_of(apart(links))).report(*layouts)
        assert {a for row in report.rows for c in row.collectives for a in c.axes} == expected


def test_without_latency_links_that_differ_decide_too():
    fast, slow = gl.Links(W), gl.Links(SLOW)
    assert apart(fast, fast).bytes_decide
    assert not apart(slow, fast).bytes_decide
    assert not apart().bytes_decide


def test_a_product_goes_by_the_links():
    layouts = [gl.GridLayout((1024, 1024), "float32", grid=(2, 4))] * 2
    reports = [
        gl.on_grid(jnp.matmul, grid_of(apart(links))).report(*layouts)
        for links in (gl.Links(1e8, latency=1e-6), gl.Links(40e9, latency=1e-6))
    ]
    assert reports[0].rows[0].seconds > reports[1].rows[0].seconds

    def between(report):
        machine = grid_of(apart()).machine
        sent = (machine.received_along(c) for row in report.rows for c in row.collectives)
        return sum(each.get("hosts", 0) for each in sent)

    assert between(reports[0]) <= between(reports[1])


def test_a_move_within_hosts_is_priced_by_their_links():
    machine = apart()
    device = grid_of(machine)
    rows = gl.GridLayout((64, 60), "float32", grid=(2, 4))
    # Uneven columns change cores of the same rows: every piece stays within its host.
    plan = gl.relayout_plan(rows, rows.replace(grid=(2, 3)), device)
    assert plan.collectives
    assert {axis for each in plan.collectives for axis in each.axes} <= {
        *("devices", "devices0", "devices1")
    }
    assert plan.seconds == pytest.approx(machine.seconds(plan.collectives))
    everywhere = gl.relayout_plan(rows, rows.replace(grid=(4, 2)), device)
    assert any("hosts" in each.axes for each in everywhere.collectives)


def test_reports_tell_the_slow_links(slow):
    args = step_args(65536, 1024, 1024)
    lines = slow.simulation.lines
    (sent,) = [line for line in lines if line.startswith("a device receives along links")]
    assert "B at 10 GB/s" in sent
    assert "B at 1 GB/s" in sent
    one = gl.Machine(CHIP, (8,), FAST_LINKS, rates=RATES, hosts=(2,), host_links=SLOW_LINKS)
    lines = gl.plan(step, *args, machine=one).simulation.lines
    (sent,) = [line for line in lines if line.startswith("a device receives along links")]
    assert "x between hosts" in sent
    assert "B at 1 GB/s" in sent


# -- machines with hosts ---------------------------------------------------------------------------


def test_hosts_are_kept_in_files_and_in_other_meshes(tmp_path):
    machine = gl.Machine("v5e 4x4", (4, 8), hosts=(4, 2), host_links=SLOW_LINKS)
    machine.save(tmp_path / "machine.json")
    again = gl.Machine.load(tmp_path / "machine.json")
    assert (again, again.hosts, again.host_links) == (machine, (4, 2), SLOW_LINKS)
    assert repr(again) == "Machine(TPU v5e, mesh=(4, 8), hosts=(4, 2))"
    # A host has 4 devices, the last axes' first.
    meshes = [(4, 8), (8, 8), (2, 2), (8, 2), (16,)]
    assert [machine.on(mesh).hosts for mesh in meshes] == [(4, 2), (8, 2), (), (4, 1), (4,)]
    assert machine.on(None).host_links is None
    assert machine.named(("data", "model")).crosses(("model0",))


def test_cores_of_chips_of_hosts():
    machine = gl.Machine("wormhole 2x4", hosts=(2, 1), host_links=SLOW_LINKS).by_core
    assert (machine.mesh, machine.hosts) == ((2, 4, 8, 8), (2, 1, 1, 1))
    assert [machine.crosses((axis,)) for axis in machine.axis_names] == [1, 0, 0, 0]
    every = Collective("all_gather", machine.axis_names, 512, 511 << 10, 512)
    assert set(machine.received_along(every)) == {"x", "y", "r", "c"}


def test_links_and_hosts_are_those_of_the_axes_of_their_names(tmp_path):
    hosts, devices = SLOW_LINKS, FAST_LINKS
    stated = gl.Machine(CHIP, (2, 4), {"hosts": hosts, "devices": devices}, rates=RATES)
    stated.save(tmp_path / "machine.json")
    for machine in (stated, gl.Machine.load(tmp_path / "machine.json")):
        device = gl.DeviceGrid(AbstractMesh((4, 2), ("devices", "hosts")), machine=machine)
        assert (device.machine.mesh, device.machine.links) == ((4, 2), (devices, hosts))
        for axis, n in (("hosts", 2), ("devices", 4)):
            one = Collective("all_gather", (axis,), n, V, 8)
            assert device.machine.once(one) == stated.once(one)
        assert device[:, 0].machine.links == (devices,)
    counts = dict(hosts={"hosts": 2}, host_links=SLOW_LINKS, axes=NAMES)
    machine = gl.Machine(CHIP, (4, 4), FAST_LINKS, **counts)
    device = gl.DeviceGrid(AbstractMesh((4, 4), NAMES[::-1]), machine=machine)
    assert device.machine.hosts == (1, 2)
    for other in (stated, machine):
        with pytest.raises(gl.LayoutError, match=r"'hosts', 'devices'.*'x', 'y'.*same names"):
            gl.DeviceGrid(AbstractMesh(other.mesh, ("x", "y")), machine=other)
    # Axes that the user did not name are those of the same position.
    gl.Machine(CHIP, (2, 4), [hosts, devices]).save(tmp_path / "machine.json")
    machine = gl.Machine.load(tmp_path / "machine.json")
    for names in (("y", "x"), ("data", "model")):
        device = gl.DeviceGrid(AbstractMesh((2, 4), names), machine=machine)
        assert (device.machine.axis_names, device.machine.links) == (names, (hosts, devices))


def test_axes_are_named_by_their_links():
    machine = apart()
    assert machine.axis_names == NAMES
    assert gl.Machine(CHIP, (2, 4), {"y": SLOW_LINKS, "x": FAST_LINKS}, axes=("x", "y")).links == (
        *(FAST_LINKS, SLOW_LINKS),
    )


REFUSED = {
    "hosts without a mesh": (dict(hosts=(2,), host_links=SLOW_LINKS, mesh=None), "mesh="),
    "no links between hosts": (dict(hosts=(2, 1)), "host_links"),
    "links between no hosts": (dict(host_links=SLOW_LINKS), "hosts="),
    "hosts that do not divide": (dict(hosts=(1, 3), host_links=SLOW_LINKS), "divides 4"),
    "too many hosts": (dict(hosts=(1, 1, 2), host_links=SLOW_LINKS), "each axis"),
    "hosts of another axis": (dict(hosts={"z": 2}, host_links=SLOW_LINKS), "'z'"),
    "more hosts than devices": (
        dict(chip="n150", hosts=(2,), host_links=SLOW_LINKS, mesh=None),
        "2 hosts .*more than its 1 devices: give mesh=",
    ),
    "hosts of no mesh": (
        dict(chip="n150", hosts=(2, 2), host_links=SLOW_LINKS, mesh=None),
        "mesh= with 2 axes",
    ),
    "links between one host": (dict(hosts=(1, 1), host_links=SLOW_LINKS), "leave out host_links"),
    "links of one axis": (dict(links={"h": SLOW_LINKS}), "links name 1 of the 2 axes"),
    "links of no mesh": (
        dict(chip="n150", mesh=None, links={"a": SLOW_LINKS, "b": SLOW_LINKS}),
        r"\(1,\) devices has 2 links.* mesh= with 2 axes",
    ),
    "one name twice": (dict(axes=("x", "x")), "different names"),
    "no hosts at all": (dict(hosts=(0, 1), host_links=SLOW_LINKS), "at least one"),
    "a bandwidth as links": (dict(hosts=(2, 1), host_links=1e9), "gl.Links"),
    "links of another axis": (dict(links={"x": SLOW_LINKS, "z": SLOW_LINKS}, axes="xy"), "'z'"),
    "links that are none": (dict(links={"x": SLOW_LINKS, "y": 1e9}), "gl.Links"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_hosts_are_refused(name):
    given, words = REFUSED[name]
    with pytest.raises(gl.LayoutError, match=words):
        gl.Machine(**{"chip": CHIP, "mesh": (2, 4), "links": FAST_LINKS, "rates": RATES, **given})


# -- hosts of devices ------------------------------------------------------------------------------


class Device:
    def __init__(self, process, platform="cpu", **more):
        self.process_index, self.platform = process, platform
        vars(self).update(more)


def test_hosts_are_found_along_axes():
    rows = np.repeat(np.arange(2), 4)
    assert hosts_along(rows.reshape(2, 4), (2, 4)) == (2, 1)
    assert hosts_along(rows.reshape(4, 2).T, (2, 4)) == (1, 2)
    assert hosts_along(rows, (8,)) == (2,)
    assert hosts_along(rows.reshape(2, 2, 2), (2, 2, 2)) == (2, 1, 1)
    assert hosts_along(np.zeros((2, 4)), (2, 4)) == ()
    assert hosts_along(np.array([0, 1, 1, 1]), (4,)) == (4,)


def test_hosts_are_processes_of_cpus_and_slices_of_others():
    def of(platform, **more):
        devices = [Device(k // 2, platform, **more) for k in range(4)]
        return hosts_of(np.array(devices), (4,))

    assert of("cpu", slice_index=0) == (2,)
    assert of("tpu", slice_index=0) == ()
    assert of("gpu") == (2,)
    slices = [Device(k, "tpu", slice_index=k // 2) for k in range(4)]
    assert hosts_of(np.array(slices), (2, 2)) == (2, 1)


def test_machines_of_devices_of_several_hosts():
    gpu = default_machine("gpu", "NVIDIA H100 80GB HBM3", (2, 8), ("x", "y"), (2, 1))
    assert (gpu.hosts, gpu.host_links) == ((2, 1), BETWEEN_NODES)
    cpu = default_machine("cpu", "cpu", (2, 4), ("a", "b"), (2, 1))
    for kind in KINDS:
        far, near = (Collective(kind, (axis,), 2, 10**6, 8) for axis in ("a", "b0"))
        assert cpu.once(far) > 1.5 * cpu.once(near)
    assert default_machine("cpu", "cpu", (2, 4), ("a", "b")).hosts == ()


MEASURED = """
from gridlayout.sharding.machines import measure

measure.ROUNDS, measure.LARGE, measure.TIMES, measure.PASS = 1, 1 << 12, 2, 1 << 12
measure.PRODUCT, measure.LARGEST, measure.REPEATED = 64, 128, 8
device = gl.DeviceGrid((2, 2))
print("default", device.machine.hosts, device.machine.axis_names)
machine = gl.Machine.measure(device)
print("measured", machine.hosts, hash(machine))
print({(each.group_size, each.between_hosts) for each in machine.figures} == {
    (2, False), (2, True), (4, True)
})
again = gl.DeviceGrid(device.mesh, machine=machine)
x = gl.put(np.ones((5, 7), np.float32), gl.GridLayout((5, 7), grid=(3, 2)), again)
print(float(gl.numpy.sum(x @ x.T)))
"""


@pytest.mark.all_cases
def test_processes_are_hosts():
    every = run_together(MEASURED, 2, 2)
    assert [each.code for each in every] == [0, 0], "\n".join(each.err[-2000:] for each in every)
    lines, others = (each.out.splitlines() for each in every)
    assert lines == others
    assert lines[0] == "default (2, 1) ('x', 'y')"
    assert lines[1].startswith("measured (2, 1)")
    assert lines[2:] == ["True", "175.0"]
