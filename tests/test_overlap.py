"""Times with overlap: what a machine does at the same time, and when parts of programs run."""

import dataclasses
from itertools import permutations
from math import prod

import jax
import jax.numpy as jnp
import pytest
import tiers
from hypothesis import given
from hypothesis import strategies as st

import gridlayout as gl
from gridlayout.ops.decisions.decision import Step
from gridlayout.ops.planning.equation import Equation
from gridlayout.ops.programs.stages import stages
from gridlayout.ops.programs.timing import Stage, Times, scheduled
from gridlayout.sharding.collectives import Collective

RESOURCES = ("links", "memory", "compute")
TOY = gl.Chip("toy", (1, 1))


def shaped(*shape, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(shape, dtype)


def machine(*overlap, bandwidth=1e9):
    return gl.Machine(TOY, (4,), gl.Links(bandwidth), rates=gl.Rates(1e12, 1e10), overlap=overlap)


# -- any dependencies ------------------------------------------------------------------------------

SECONDS = st.sampled_from([0.0, 1e-6, 2e-6, 3e-6, 7e-6])


@st.composite
def programs(draw):
    """Equations with what they send, and stages that wait for any earlier ones."""
    equations, staged = [], []
    for n in range(draw(st.integers(1, 8))):
        units, memory = draw(SECONDS), draw(SECONDS)
        sent = [
            Collective("permute", ("x",), 4, draw(st.integers(0, 5000)), 4)
            for _ in range(draw(st.integers(0, 2)))
        ]
        movement = machine().seconds(sent)
        compute = max(units, memory) + draw(st.sampled_from([0.0, 0.0, 1e-6]))
        how = {"collectives": tuple(sent), "units": units, "memory": memory}
        equations.append(Equation(f"e:{n}", "", "", compute, movement, **how))
        for at in (*range(len(sent)), None):
            earlier = (
                st.sets(st.integers(0, len(staged) - 1), max_size=3) if staged else st.just(())
            )
            after = draw(st.one_of(st.none(), earlier) if draw(st.booleans()) else earlier)
            after = None if after is None else tuple(sorted(after))
            staged.append((n, Stage(at, 1.0, after=after)))
    return equations, staged


def ends(equations, staged, device):
    return [run.end for run in scheduled(staged, Times(equations, device))]


def least(equations, staged, device):
    """What no schedule is shorter than: the longest chain, and what each lane has to do."""
    times, chain, last = Times(equations, device), [], 0.0
    for n, stage in staged:
        start = last if stage.after is None else max((chain[k] for k in stage.after), default=0.0)
        chain.append(start + times.seconds(n, stage))
        last = max(last, chain[-1])
    busy = dict.fromkeys(device.lanes.values(), 0.0)
    for n, stage in staged:
        for lane, seconds in times.busy(n, stage).items():
            busy[lane] += seconds
    return max(last, *busy.values())


@given(programs(), st.sets(st.sampled_from(RESOURCES)))
def test_no_schedule_is_shorter_than_its_chains_and_lanes_nor_longer_than_the_sum(program, overlap):
    equations, staged = program
    whole = sum(each.seconds for each in equations)
    device = machine(*overlap)
    found = max(ends(equations, staged, device))
    assert least(equations, staged, device) <= found * (1 + 1e-9)
    assert found <= whole * (1 + 1e-9)
    assert max(ends(equations, staged, machine())) == pytest.approx(whole)


@given(programs(), st.sets(st.sampled_from(RESOURCES)), st.floats(1, 10))
def test_nothing_ends_later_with_faster_links(program, overlap, times):
    equations, staged = program
    fast = machine(*overlap, bandwidth=times * 1e9)
    faster = [
        dataclasses.replace(each, movement=fast.seconds(each.collectives)) for each in equations
    ]
    slow = ends(equations, staged, machine(*overlap))
    for a, b in zip(ends(faster, staged, fast), slow, strict=True):
        assert a <= b + 1e-15


@given(programs(), st.sets(st.sampled_from(RESOURCES)))
def test_a_lane_does_one_thing_at_a_time_and_what_is_needed_comes_first(program, overlap):
    equations, staged = program
    device = machine(*overlap)
    times = Times(equations, device)
    runs = scheduled(staged, times)
    until = dict.fromkeys(device.lanes.values(), 0.0)
    for (n, stage), run in zip(staged, runs, strict=True):
        needed = range(len(runs)) if stage.after is None else stage.after
        assert all(
            runs[k].end <= run.start for k in needed if runs[k] is not run and k < runs.index(run)
        )
        if run.seconds:
            for lane, seconds in times.busy(n, stage).items():
                assert until[lane] <= run.start
                until[lane] = run.start + seconds


def test_time_is_linear_in_the_stages():
    equation = Equation("e:0", "", "", 1e-6, 0.0, units=1e-6)
    staged = [(0, Stage(None, 1.0, after=(k - 1,) if k else ())) for k in range(200_000)]
    assert max(ends([equation], staged, machine("links"))) == pytest.approx(0.2)


# -- programs --------------------------------------------------------------------------------------


def step(params, x, y):
    def loss(p):
        return jnp.mean((jax.nn.relu(x @ p["up"]) @ p["down"] - y) ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


PARAMS = {"up": shaped(1024, 4096), "down": shaped(4096, 1024)}
ARGS = (PARAMS, shaped(2**16, 1024), shaped(2**16, 1024))


def looped(x, w):
    return jax.lax.scan(lambda c, v: (jnp.tanh(c @ v), c.sum()), x, w)


def mixed(x, w):
    h = jax.nn.softmax(x @ w[0], axis=0)
    return h.sum(0), jnp.cumsum(h @ w[1], axis=0), (x * 2)[::3]


LOOP_ARGS = (shaped(512, 512), shaped(6, 512, 512))
PROGRAMS = {"a step": (step, ARGS), "a loop": (looped, LOOP_ARGS), "mixed": (mixed, LOOP_ARGS)}
MACHINES = ("v5e 4x4", "h100", "wormhole 2x4")


# With few of them, each program and each machine once.
PAIRS = [(name, MACHINES[(k + n) % 3]) for n in range(3) for k, name in enumerate(PROGRAMS)]


@pytest.mark.parametrize(("name", "where"), PAIRS if tiers.ALL else PAIRS[:3])
def test_programs_are_between_their_longest_chain_and_the_sum(name, where):
    fn, args = PROGRAMS[name]
    found = gl.simulate(fn, *args, machine=where)
    assert found.machine.overlap == ("links",)
    assert least(found.equations, found.staged, found.machine) <= found.overlapped * (1 + 1e-9)
    assert found.overlapped <= found.time
    compute, movement = (
        sum(getattr(each, what) for each in found.equations) for what in ("compute", "movement")
    )
    assert max(compute, movement) <= found.overlapped * (1 + 1e-9)
    assert found.overlapped == pytest.approx(max(e.start + e.seconds for e in found.events))
    if tiers.ALL or where == MACHINES[0]:
        alone = gl.simulate(fn, *args, machine=gl.Machine(where, overlap=()))
        assert alone.overlapped == alone.time == found.time
        assert "overlap" not in str(alone)


def test_stages_wait_for_what_makes_their_operands(monkeypatch):
    """Each stage starts after the ends of the steps whose registers its step reads."""
    import gridlayout.ops.planning.simulation as module

    kept = []

    def stages_kept(program, rows, names, operands, times):
        kept.append((program, stages(program, rows, names, operands, times), times))
        return kept[-1][1]

    monkeypatch.setattr(module, "stages", stages_kept)
    for fn, args in (PROGRAMS["a step"], PROGRAMS["mixed"]):
        gl.simulate(fn, *args, machine="v5e 4x4")
        program, placed, times = kept.pop()
        runs = scheduled([(each.equation, each.stage) for each in placed], times)
        by_step = {}
        for each, run in zip(placed, runs, strict=True):
            by_step.setdefault(each.step, []).append(run)
        parts = program.parts or [[(0, each)] for each in program.steps]
        writer, checked = {}, 0
        for n, some in enumerate(parts):
            for step in (step for _, step in some):
                assert isinstance(step, Step)
                for made in {writer[k] for k in step.reads if isinstance(k, int) and k in writer}:
                    for run in (run for run in by_step.get(n, ()) if run.seconds):
                        if made != n:
                            assert all(x.end <= run.start + 1e-15 for x in by_step.get(made, ()))
                            checked += 1
            for step in (step for _, step in some):
                writer |= dict.fromkeys(step.writes, n)
        assert checked > 5


def test_a_gather_runs_beside_a_product_that_does_not_need_it():
    x = gl.GridLayout((8192, 1024), "bfloat16", grid=(16, 1))
    split = gl.GridLayout((1024, 1024), "bfloat16", grid=(16, 1))
    both = gl.simulate(lambda x, a, b: (x @ a) @ b, x, split, split, machine="v5e 4x4")
    gathers = [e for e in both.events if e.kind == "all-gather"]
    first = next(e for e in both.events if e.name == "dot_general:0")
    assert len(gathers) == 2
    assert gathers[1].start < first.start + first.seconds
    assert both.overlapped < both.time
    one = gl.simulate(lambda x, a: x @ a, x, split, machine="v5e 4x4")
    assert one.overlapped == one.time  # the product needs what is gathered


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_report_has_the_times_of_the_simulation(name):
    fn, args = PROGRAMS[name]
    mesh = jax.sharding.AbstractMesh((4, 4), ("x", "y"))
    device = gl.DeviceGrid(mesh, machine=gl.Machine("v5e 4x4"))
    args = jax.tree.map(lambda x: gl.GridLayout(x.shape, x.dtype, grid=(4, 4)[: x.ndim]), args)
    simulation = gl.simulate(fn, *args, machine=device.machine)
    report = gl.on_grid(fn, device).report(*args)
    assert report.seconds == pytest.approx(simulation.time)
    assert report.overlapped == pytest.approx(simulation.overlapped)
    for row, each in zip(report.rows, simulation.equations, strict=True):
        assert (row.compute, row.movement) == (each.compute, each.movement)
    assert ("with overlap" in str(report)) == ("with overlap" in str(simulation))


@pytest.mark.parametrize(("columns", "is_sent_longer"), [(4096, True), (32768, False)])
def test_a_ring_takes_the_longer_of_both_in_each_round(columns, is_sent_longer):
    shapes = (65536, 4096), (4096, columns)
    x, y = (gl.GridLayout(shape, "bfloat16", grid=(4, 4)) for shape in shapes)
    found = gl.simulate(jnp.matmul, x, y, machine="v5e 4x4", algorithm="ring")
    (product,) = found.equations
    sent = [found.machine.once(each) for each in product.collectives]
    assert [each.count for each in product.collectives] == [1, 3]
    gathered, message, computed = *sent, product.compute / 4
    assert (message > computed) == is_sent_longer
    assert found.time == pytest.approx(gathered + 3 * message + 4 * computed)
    assert found.overlapped == pytest.approx(gathered + computed + 3 * max(message, computed))


def test_a_loop_runs_alone():
    """Each iteration waits for the one before it, and so does what follows the loop."""
    found = gl.simulate(looped, *LOOP_ARGS, machine="v5e 4x4")
    waits = [k for k, (_, stage) in enumerate(found.staged) if stage.after is None]
    assert waits
    runs = [run for _, _, run in found._runs]
    for k in waits:
        before, later = runs[:k], runs[k:]
        assert max((x.end for x in before), default=0) <= min(x.start for x in later) + 1e-15


def test_memory_beside_computing_hides_more_and_has_a_track():
    links = gl.Machine("v5e 4x4")
    both = gl.Machine("v5e 4x4", overlap=("links", "memory"))

    def apart(x, w):
        return x @ w, jnp.tanh(x) * 2

    args = shaped(8192, 4096), shaped(4096, 4096)
    one, two = (gl.simulate(apart, *args, machine=each) for each in (links, both))
    assert two.time == one.time
    assert two.overlapped < one.overlapped
    assert {e.track for e in two.events} >= {"memory", "compute"}
    assert "memory" in two.timeline().description


def test_texts_and_drawings_have_both_figures(tmp_path):
    plan = gl.plan(step, *ARGS, machine="v5e 4x4")
    line = next(line for line in str(plan).splitlines() if line.startswith("time "))
    both = [f"{seconds * 1e3:.2f} ms" for seconds in (plan.time, plan.overlapped)]
    assert line.startswith(f"time {both[0]} ({both[1]} with overlap) on TPU v5e")
    assert plan.overlapped == plan.simulation.overlapped < plan.time
    assert f"{both[0]} ({both[1]} with overlap)" in plan.timeline().svg
    plan.save(tmp_path / "plan.json")
    again = gl.load_plan(tmp_path / "plan.json")
    assert again.overlapped == plan.overlapped
    assert again.simulation.events == plan.simulation.events


# -- plans -----------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("where", ["v5e 4x4", "h100"])
@pytest.mark.parametrize(
    ("rows", "width", "hidden"), [(65536, 1024, 4096), (8192, 4096, 16384), (2048, 8192, 8192)]
)
def test_plans_are_chosen_by_the_time_with_overlap(rows, width, hidden, where):
    """No plan of the default, of sums, or of fixed layouts takes less time with overlap."""
    params = {"up": shaped(width, hidden), "down": shaped(hidden, width)}
    args = params, shaped(rows, width), shaped(rows, width)
    plan = gl.plan(step, *args, machine=where, overlap=True)
    in_sequence = gl.plan(step, *args, machine=gl.Machine(where, overlap=()))
    assert in_sequence.overlapped == in_sequence.time <= plan.time
    assert plan.bound <= in_sequence.time <= 2 * plan.overlapped
    others = [gl.simulate(step, *args, plan=in_sequence, machine=where)]
    others.append(gl.simulate(step, *args, machine=where))
    devices = prod(plan.simulation.mesh.values())
    for grids in tiers.few(permutations(((devices, 1), (1, devices))), 1):
        names = zip(("up", "down"), grids, strict=True)
        fixed = {
            f"params/{name}": gl.GridLayout(params[name].shape, "bfloat16", grid=cores)
            for name, cores in names
        }
        others.append(gl.plan(step, *args, machine=where, fixed=fixed, overlap=True))
    for each in others:
        assert plan.overlapped <= each.overlapped * (1 + 1e-9)
    assert plan.overlapped < in_sequence.time
    # Without being asked for, plans take the least time in sequence.
    assert gl.plan(step, *args, machine=where).time == in_sequence.time


def test_without_time_left_the_plan_is_the_one_in_sequence():
    plan = gl.plan(step, *ARGS, machine="v5e 4x4", seconds=0)
    assert "with overlap" not in plan.how
    assert plan.overlapped < plan.time
