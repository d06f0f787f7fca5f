"""`gl.Machine`: what it says of collectives and products, what it refuses, and its files."""

import itertools
import json

import jax
import numpy as np
import pytest
import tiers
from jax.sharding import AbstractMesh
from machines import measured

import gridlayout as gl
from gridlayout.ops.choose.division import Units
from gridlayout.ops.decisions.flops import transposed
from gridlayout.ops.decisions.op import Op
from gridlayout.ops.primitives.table import record_of
from gridlayout.ops.programs.passes import computing, passed_bytes
from gridlayout.sharding.collectives import Collective, Collectives
from gridlayout.sharding.machines.chips import BOARDS, Figure
from gridlayout.sharding.machines.default_machine import FAST, default_machine, emulated
from gridlayout.sharding.machines.measure import _hidden_in, _per_repetition

LINKS = gl.Links(10e9, latency=1e-6)
CHIP = gl.Chip("toy", (2, 2))
RATES = gl.Rates(1e12, 1e11)


def collective(kind, n, received, axes=("x",)):
    return Collective(kind, axes, n, received, n)


# -- formulas --------------------------------------------------------------------------------------


# The scaling book's, of V bytes on N devices in a row or a ring: all-gather and reduce-scatter take
# V (N - 1) / N over one link or two, an all-reduce twice that, an all-to-all N / 4 of what a device
# has over the middle; then the hops.
V, N, W, A = 8_000_000, 8, 10e9, 1e-6
HELD = V // N
FORMULAS = [
    ("all_gather", HELD * (N - 1), False, (N - 1) * A + HELD * (N - 1) / W),
    ("all_gather", HELD * (N - 1), True, N // 2 * A + HELD * (N - 1) / 2 / W),
    ("reduce_scatter", HELD * (N - 1), True, N // 2 * A + HELD * (N - 1) / 2 / W),
    ("all_reduce", 2 * HELD * (N - 1), True, 2 * (N // 2) * A + HELD * (N - 1) / W),
    ("all_to_all", HELD // N * (N - 1), True, N // 2 * A + HELD * N / 8 / W),
    ("all_to_all", HELD // N * (N - 1), False, (N - 1) * A + HELD * N / 4 / W),
    ("permute", HELD, True, A + HELD / W),
]


@pytest.mark.parametrize(("kind", "received", "wrap", "seconds"), FORMULAS)
def test_rings_and_lines(kind, received, wrap, seconds):
    machine = gl.Machine(CHIP, mesh=(N,), links=gl.Links(W, latency=A, wrap=wrap), rates=RATES)
    assert machine.once(collective(kind, N, received)) == pytest.approx(seconds)


def test_reductions_and_pairs_have_figures_of_their_own():
    added, pair = 2e-6, 4e9
    links = gl.Links(W, latency=A, reduce_latency=added, pair_bandwidth=pair)
    machine = gl.Machine(CHIP, mesh=(N,), links=links, rates=RATES)
    plain = gl.Machine(CHIP, mesh=(N,), links=gl.Links(W, latency=A), rates=RATES)
    for kind, times in [("all_gather", 0), ("reduce_scatter", 1), ("all_reduce", 1)]:
        one = collective(kind, N, HELD)
        assert machine.once(one) == pytest.approx(plain.once(one) + times * (N - 1) * added)
    two = gl.Machine(CHIP, mesh=(2,), links=links).once(collective("all_gather", 2, HELD))
    assert two == pytest.approx(A + HELD / pair)


def test_several_axes_share_what_is_sent():
    machine = gl.Machine(CHIP, mesh=(4, 4), links=gl.Links(W, wrap=True), rates=RATES)
    one, two = (
        collective("all_gather", n, 15 * 10**6, axes) for n, axes in [(16, "x"), (16, "xy")]
    )
    assert machine.once(two) == pytest.approx(machine.once(one) / 2)


def test_pieces_go_along_every_axis():
    """The scaling book: of a torus, an all-to-all takes V max(sizes) / (4 N W), both ways round."""
    machine = gl.Machine(CHIP, mesh=(4, 8), links=gl.Links(W, wrap=True), rates=RATES)
    held = 32 * 10**6
    exchanged = collective("all_to_all", 32, held // 32 * 31, ("x", "y"))
    assert machine.once(exchanged) == pytest.approx(held * 8 / 4 / 2 / W)
    both, one = (collective("permute", n, held, axes) for n, axes in [(32, "xy"), (4, "x")])
    assert machine.once(both) == machine.once(one) == pytest.approx(held / W)


def test_axes_have_links_of_their_own():
    fast, slow = gl.Links(100e9), gl.Links(1e9)
    machine = gl.Machine(CHIP, mesh=(2, 4), links=(fast, slow), rates=RATES)
    x, y = (machine.once(collective("permute", 2, 10**6, (axis,))) for axis in ("x", "y1"))
    assert (x, y) == pytest.approx((1e-5, 1e-3))

    named = gl.DeviceGrid(AbstractMesh((2, 4), ("data", "model")), machine=machine).machine
    a, b = (named.once(collective("permute", 2, 10**6, (axis,))) for axis in ("data", "model1"))
    assert (a, b) == pytest.approx((1e-5, 1e-3))


def test_without_rates_computing_takes_no_time():
    machine = gl.Machine(CHIP, mesh=(4,), links=LINKS)
    sent = collective("permute", 4, 10**6)
    assert machine.seconds([sent], 10**9, 10**9) == pytest.approx(1.01e-4)
    assert gl.Machine("wormhole", (2,), LINKS).rates == gl.Machine("n150").rates


def test_seconds_add_up():
    machine = gl.Machine(CHIP, mesh=(4,), links=LINKS, rates=RATES)
    sent = [collective("permute", 4, 10**6).times(3)]
    assert machine.seconds(sent, 10**9, 10**8) == pytest.approx(3 * 1.01e-4 + 1e-3 + 1e-3)
    assert machine.seconds() == 0


def test_published_gathers_of_wormhole_are_met():
    """4.47 + 1.91 (N - 1) us + (N - 1) shard / 11.8 GB/s, within a fifth for megabytes."""
    machine = gl.Machine("n150", mesh=(8,))
    for shard in (1 << 20, 1 << 24):
        published = 4.47e-6 + 1.91e-6 * 7 + 7 * shard / 11.8e9
        assert machine.once(collective("all_gather", 8, 7 * shard)) == pytest.approx(
            published, rel=0.2
        )


def test_figures_are_between_those_of_neighbours():
    figures = [Figure("all_gather", n, n * 1e-5, n * 1e9) for n in (2, 8)]
    machine = gl.Machine(CHIP, links=LINKS, rates=RATES, figures=figures)
    for n, between in ((2, 2), (5, 5), (8, 8), (64, 8)):
        found = machine.once(collective("all_gather", n, 10**6))
        assert found == pytest.approx(between * 1e-5 + 1e6 / (between * 1e9))


# -- ready ones ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOARDS)
def test_ready_machines_have_a_source_for_every_figure(name):
    board, machine = BOARDS[name], gl.Machine(name)
    assert (machine.chip, machine.mesh, machine.links) == (board.chip, board.mesh, board.links)
    known = [key for key, value in vars(board.rates).items() if value and key != "sources"]
    assert set(known) == set(board.rates.sources)
    assert board.links_source
    assert board.overlap_source
    assert machine.overlap == machine.by_core.overlap == machine.on((2, 3)).overlap == ("links",)
    sent = [collective("all_gather", 2, 10**6, machine.axis_names[:1])]
    assert 0 < machine.seconds(sent, 10**9, 10**6) < 1
    described = gl.DeviceGrid(AbstractMesh(board.mesh, machine.axis_names), machine=machine)
    assert described.machine is machine


def test_emulated_devices_share_the_cores():
    eight, sixteen = emulated(8), emulated(16)
    gather = collective("all_gather", 8, 10**6)
    assert sixteen.rates.flops * 2 == pytest.approx(eight.rates.flops)
    assert sixteen.once(gather) > eight.once(gather)
    assert eight.has_latency
    assert not FAST.has_latency
    assert gl.DeviceGrid((len(jax.devices()),)).machine == emulated(len(jax.devices()))
    assert gl.DeviceGrid(AbstractMesh((4,), ("x",))).machine is FAST


def test_a_collective_waits_for_devices_that_compute_longer():
    gather, machine = collective("all_gather", 8, 0), emulated(8)
    assert machine.after(0) is machine
    little, much, more = (machine.after(work).once(gather) for work in (1e-4, 1e-2, 1.0))
    assert machine.once(gather) < little < much == more
    # A wait is shared by those that go together, and each group has its own.
    both = Collective("all_gather", ("x",), 8, 0, 8, together=2)
    assert machine.after(1.0).once(both) == pytest.approx(more / 2)
    pair = collective("all_gather", 2, 0)
    assert machine.after(1.0).once(pair) - machine.once(pair) < more - machine.once(gather)
    linked = gl.Machine("v5e 4x4")
    assert linked.after(1.0) is linked


def test_a_cpu_packs_the_operands_of_products():
    cpu, chip = emulated(8), gl.Machine("v5e 4x4")
    flops, nbytes = 2 * 256**3, 3 * 4 * 256**2
    apart = cpu.seconds(flops=flops), cpu.seconds(nbytes=nbytes)
    taken = cpu.computing(flops, nbytes)
    assert sum(taken.values()) == pytest.approx(sum(apart) + cpu.rates.start)
    assert sum(chip.computing(flops, nbytes).values()) == max(
        chip.seconds(flops=flops), chip.seconds(nbytes=nbytes)
    )
    turned = cpu.computing(flops, nbytes, transposed=nbytes / 3)
    more = sum(turned.values()) - sum(taken.values())
    assert more == pytest.approx(nbytes / 3 / cpu.rates.transposed)
    assert chip.computing(flops, nbytes, transposed=nbytes / 3) == chip.computing(flops, nbytes)
    # A product with a vector starts no kernel.
    vector = computing(record_of("dot_general"), 2 * 256**2, [4 * 256, 4 * 256**2], [4 * 256], cpu)
    assert sum(vector.values()) == cpu.seconds(nbytes=4 * (256**2 + 2 * 256))


# Dims of the operands of products, by letters, and which operand is transposed first: to pack it
# (1), or always (2), where batch dims (those of capital letters) are not before the others.
TRANSPOSED = {
    ("ij", "jk"): (0, 0),
    ("ji", "jk"): (1, 0),
    ("ij", "kj"): (0, 1),
    ("ji", "kj"): (1, 1),
    ("Bij", "Bjk"): (0, 0),
    ("Bij", "Bkj"): (0, 1),
    ("iBj", "Bjk"): (2, 0),
    ("BHk", "BlHk"): (0, 2),
    ("HBk", "HBlk"): (0, 1),
    ("i", "i"): (0, 0),
}


@pytest.mark.parametrize("dims", TRANSPOSED)
def test_operands_that_are_transposed(dims):
    left, right = dims
    both = [c for c in left if c in right]
    pairs = [[c for c in both if c.isupper() == upper] for upper in (False, True)]
    numbers = tuple(tuple(tuple(map(each.index, some)) for each in dims) for some in pairs)
    arrays = [np.ones([2 + "BHijkl".index(c) for c in each]) for each in dims]
    jaxpr = jax.make_jaxpr(lambda x, y: jax.lax.dot_general(x, y, numbers))(*arrays)
    assert transposed(Op.of(jaxpr.eqns[0])) == TRANSPOSED[dims]


def test_parts_along_a_later_dim_are_copied():
    device, machine = gl.DeviceGrid(AbstractMesh((8,), ("x",))), emulated(8)
    nbytes, axes = 1 << 20, device.fine.axis_names
    for made in (Collectives.all_gather, Collectives.reduce_scatter):
        first, later = (made(Collectives(device), axes, nbytes, d).found for d in (0, 1))
        assert first == later
        copied = nbytes * (8 if made is Collectives.all_gather else 1)
        more = machine.seconds(later) - machine.seconds(first)
        assert more == pytest.approx(machine.seconds(nbytes=2 * copied))
        assert FAST.seconds(later) == FAST.seconds(first)
    (both,) = Collectives(device).all_to_all(axes, nbytes, (1, 1)).found
    assert both.copied_bytes == 2 * nbytes


def test_parts_of_replicated_operands_are_copied_for_a_product():
    cpu = emulated(8)
    assert cpu.slicing(1 << 20) == cpu.seconds(nbytes=2 << 20)
    assert gl.Machine("v5e 4x4").slicing(1 << 20) == 0
    device = gl.DeviceGrid(AbstractMesh((2, 4), ("x", "y")), machine=cpu)
    units = Units.apart(device, least=2)
    part = units.move(((), ()), ((0,), (1,)), 8 << 20)
    assert part.seconds == pytest.approx(cpu.slicing(1 << 20))
    assert part.alone == 0


def test_updates_in_place_pass_over_what_is_new():
    ins, outs = [1 << 20, 64, 4, 4], [1 << 20]
    assert passed_bytes(record_of("dynamic_update_slice"), ins, outs, emulated(8)) == 2 * 64
    core = gl.Machine("n150").by_core
    assert passed_bytes(record_of("dynamic_update_slice"), ins, outs, core) == 1 << 20


def test_devices_are_known_by_their_kind():
    assert default_machine("tpu", "TPU v5 lite", (16,), ("x",)).chip.name == "TPU v5e"
    assert default_machine("gpu", "NVIDIA H100 80GB HBM3", (8,), ("x",)).chip.name == "H100"
    assert default_machine("gpu", "another", (8,), ("x",)) is FAST


# -- measured and kept -----------------------------------------------------------------------------


@pytest.mark.parametrize("each", [2e-3, 40e-6, 3e-6])
def test_repetitions_take_longer_than_calls_vary(each):
    # The call of a program takes 60 us, 5 us more or less.
    noise = itertools.cycle([5e-6, -5e-6])
    found = _per_repetition(lambda times: 60e-6 + next(noise) + times * each, 4)
    assert found == pytest.approx(each, rel=0.2)


@pytest.mark.parametrize(
    ("both", "hidden"),
    [(max, 1), (lambda sent, made: sent + made, 0), (lambda a, b: max(a, b) + min(a, b) / 4, 0.75)],
)
def test_what_products_hide_is_measured(both, hidden):
    noise = itertools.cycle([0.0, 1e-6, -1e-6, 2e-6, 0.0])
    seconds = {"transfer": 3e-4, "product": 1e-4}

    def program(sends, products):
        sent, made = sends * seconds["transfer"], products * seconds["product"]
        return lambda: 1e-3 + both(sent, made) + next(noise)

    for each in ("transfer", "product"):
        seconds[each] *= 2
        assert _hidden_in(program) == pytest.approx(hidden, abs=0.02)


def test_a_machine_is_measured_kept_and_used(tmp_path):
    count = len(jax.devices())
    device = gl.DeviceGrid((2, 2) if tiers.ALL and count >= 4 else (min(count, 2),))
    machine = measured(device)
    kinds = {each.kind for each in machine.figures}
    assert count == 1 or len(kinds) == 5
    assert all(each.bandwidth > 0 and each.wait >= 0 for each in machine.figures)
    assert machine.rates.packs == (jax.default_backend() == "cpu")
    assert machine.rates.start > 0
    machine = gl.Machine.of_record(machine.record | {"overlap": ["memory"]})
    assert machine.overlap == ("memory",)
    machine.save(tmp_path / "machine.json")
    again = gl.Machine.load(tmp_path / "machine.json")
    assert again == machine
    assert hash(again) == hash(machine)
    assert json.loads((tmp_path / "machine.json").read_text())["mesh"] == list(device.shape)
    other = gl.DeviceGrid(device.mesh, machine=again)
    assert other != device
    array = np.arange(35, dtype="f4").reshape(5, 7)
    x = gl.put(array, gl.GridLayout((5, 7), grid=(2, 2)), other)
    np.testing.assert_array_equal(np.asarray(x + x), 2 * array)


# -- refused ---------------------------------------------------------------------------------------

NAN = float("nan")
REFUSED = {
    "bandwidth of nothing": (lambda: gl.Links(0), "bandwidth"),
    "negative bandwidth": (lambda: gl.Links(-1e9), "bandwidth"),
    "bandwidth that is no number": (lambda: gl.Links(NAN), "bandwidth"),
    "a text": (lambda: gl.Links("fast"), "bandwidth"),
    "negative latency": (lambda: gl.Links(1e9, latency=-1), "latency"),
    "infinite latency": (lambda: gl.Links(1e9, latency=float("inf")), "latency"),
    "negative latency of reductions": (
        lambda: gl.Links(1e9, reduce_latency=-1),
        "reduce_latency",
    ),
    "negative bandwidth of a pair": (lambda: gl.Links(1e9, pair_bandwidth=-1), "pair_bandwidth"),
    "a number for a ring": (lambda: gl.Links(1e9, wrap=1), "wrap"),
    "rates of another kind": (lambda: gl.Machine(CHIP, (2,), LINKS, rates=1e9), "gl.Rates"),
    "too few names": (lambda: gl.Machine(CHIP, (2, 2), LINKS, rates=RATES, axes=["x"]), "axes"),
    "flops of nothing": (lambda: gl.Rates(0, 1e9), "flops"),
    "no flops of a type": (lambda: gl.Rates(1e9, 1e9, flops_by_dtype={"int8": 0}), "of int8"),
    "flops of types in a list": (lambda: gl.Rates(1e9, 1e9, flops_by_dtype=[1]), "a dict"),
    "packing that is no truth": (lambda: gl.Rates(1e9, 1e9, packs=1), "packs"),
    "a negative wait": (lambda: Figure("all_gather", 2, 0.0, 1e9, -1.0), "wait"),
    "an unknown chip": (lambda: gl.Machine("n151"), "n150"),
    "no chip": (lambda: gl.Machine(3, (2,), LINKS, rates=RATES), "gl.Chip"),
    "no links": (lambda: gl.Machine(CHIP, (2, 2), rates=RATES), "links"),
    "too many links": (lambda: gl.Machine(CHIP, (2, 2), [LINKS] * 3, rates=RATES), "links"),
    "links of another kind": (lambda: gl.Machine(CHIP, (2,), 3e9, rates=RATES), "gl.Links"),
    "an empty mesh": (lambda: gl.Machine(CHIP, (0,), LINKS, rates=RATES), "mesh"),
    "another mesh": (
        lambda: gl.DeviceGrid(AbstractMesh((2, 2), ("x", "y")), machine=gl.Machine("n300")),
        r"mesh=\(2, 2\)",
    ),
    "no machine": (lambda: gl.DeviceGrid(AbstractMesh((2,), ("x",)), machine="n300"), "gl.Machine"),
    "nothing to measure": (
        lambda: gl.Machine.measure(gl.DeviceGrid(AbstractMesh((2,), ("x",)))),
        "devices",
    ),
    "an overlap that is one text": (lambda: gl.Machine(CHIP, overlap="links"), r"\('links',\)"),
    "overlap of nothing known": (lambda: gl.Machine(CHIP, overlap=["dram"]), "links, memory"),
    "no file": (lambda: gl.Machine.load("/nowhere.json"), "gl.Machine.save"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_machines_are_refused(name):
    make, words = REFUSED[name]
    with pytest.raises(gl.LayoutError, match=words):
        make()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "gridlayout machine"}', "\0"])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "machine.json"
    path.write_text(text)
    with pytest.raises(gl.LayoutError, match="machine"):
        gl.Machine.load(path)


def test_a_machine_without_links_is_refused_for_several_devices():
    machine = gl.Machine("wormhole")
    assert gl.DeviceGrid((1,), machine=machine).machine is machine
    words = r"Machine\(Wormhole.*\) has no links, but a mesh of \(2, 4\).*links=gl\.Links"
    with pytest.raises(gl.LayoutError, match=words):
        gl.DeviceGrid((2, 4), machine=machine)


def test_a_machine_without_links_sends_in_no_time():
    machine = gl.Machine(CHIP)
    assert (machine.any_seconds(1000), machine.bytes_seconds(1000)) == (0.0, 0.0)


def test_a_saved_machine_of_another_mesh_is_refused(tmp_path):
    gl.Machine("n300").save(tmp_path / "m.json")
    machine = gl.Machine.load(tmp_path / "m.json")
    with pytest.raises(gl.LayoutError, match="measure"):
        gl.DeviceGrid(AbstractMesh((2, 4), ("x", "y")), machine=machine)


PLAN = gl.plan(lambda x: x + 1, np.ones((4, 4), np.float32), machine="n300")
WORK = {
    "negative": (lambda m: m.seconds([], -1e12), "flops -1.* must be a finite number"),
    "not finite": (lambda m: m.seconds([], 1, NAN), "nbytes nan must be a finite number"),
    "numbers": (lambda m: m.seconds([3]), "3 is no collective"),
    "a plan": (lambda m: m.seconds(PLAN), "must be a sequence of collectives"),
    "bytes of a number": (lambda m: m.received_along(3), "3 is no collective"),
    "another axis": (
        lambda m: m.seconds([collective("all_gather", 4, 10**6, ("z",))]),
        "axis 'z' of a collective .* give one of x, y",
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_impossible_work_has_no_time(name):
    call, words = WORK[name]
    with pytest.raises(gl.LayoutError, match=words):
        call(gl.Machine(CHIP, (2, 4), [LINKS, LINKS], rates=RATES))


def test_a_file_of_a_newer_version_says_so(tmp_path):
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(gl.Machine("n300").record | {"version": 5}))
    with pytest.raises(gl.LayoutError, match=r"by a newer gridlayout, in version 5 .*: update"):
        gl.Machine.load(path)
