"""What ends the search of a plan early: an interrupt, and the time; what is then known is true."""

import itertools
import subprocess
import sys
import time
from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
import tiers

import gridlayout as gl
from benchmarks.experts import prefill, training
from gridlayout.errors import LayoutError
from gridlayout.ops.choose.copies import Copies
from gridlayout.ops.choose.counts import number_of_ways
from gridlayout.ops.choose.mixtures import mixtures
from gridlayout.ops.planning import clock, making, on_devices, priced, solved
from gridlayout.ops.planning.spaces import Spaces, room_in_l1
from gridlayout.ops.planning.traced import traced_for
from gridlayout.ops.solver import forests, integer, neighbourhoods, search, solve
from gridlayout.ops.solver.solve import Unsolved
from gridlayout.ops.solver.terms import Expired
from gridlayout.sharding.limits import LIMITS

CLOCKS = (clock, solve, search, integer, forests, neighbourhoods)
CLOSE = 1e-9


def shaped(*shape):
    return jax.ShapeDtypeStruct(shape, "float32")


def mlp(x, up, down):
    return jax.nn.relu(x @ up) @ down


def step(params, x, y):
    def loss(params):
        return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"] - y) ** 2)

    return jax.tree.map(lambda w, g: w - 0.1 * g, params, jax.grad(loss)(params))


def small(mebibytes):
    """Eight chips of so little memory."""
    chip = gl.Chip("small", (1, 1), {"dram": int(mebibytes * 2**20)})
    links = gl.Links(45e9, latency=1e-6, wrap=True)
    return gl.Machine(chip, mesh=(8,), links=links, rates=gl.Rates(flops=200e12, memory=800e9))


PARAMS = {"up": shaped(512, 2048), "down": shaped(2048, 512)}
STEP = (step, PARAMS, shaped(1024, 512), shaped(1024, 512))
MLP = (mlp, shaped(8192, 512), shaped(512, 2048), shaped(2048, 512))
TALL = (mlp, shaped(8, 1024), shaped(1024, 4096), shaped(4096, 1024))
# A program and a machine: devices with room for anything, with less than the default needs, cores.
CASES = {"v5e": (STEP, "v5e 4x4"), "small": (TALL, small(4.5)), "n150": (MLP, "n150")}


def planned(name, **options):
    args, machine = CASES[name]
    return gl.plan(*args, machine=machine, **options)


class Whole(dict):
    """The plans that a search makes to which nothing happens, and how often it reads the clock."""

    def __missing__(self, name):
        with pytest.MonkeyPatch.context() as patch:
            looks = reading(patch, time.monotonic)
            self[name] = planned(name), next(looks)
        return self[name]


@pytest.fixture(scope="module")
def whole():
    return Whole()


def reading(patch, now, broken=()):
    """Count how often the clock is read, each time `now()`; raise interrupts at some of these."""
    looks = itertools.count(1)

    def read():
        at = next(looks)
        if at in broken:
            raise KeyboardInterrupt
        return now()

    for module in CLOCKS:
        patch.setattr(module, "monotonic", read)
    return looks


def assert_true(plan, best):
    """A plan that fits, whose bound no plan is below, and whose gap is what that says."""
    assert 0 <= plan.bound <= best.time * (1 + CLOSE)
    assert plan.bound <= plan.time
    assert plan.time == pytest.approx(sum(each.seconds for each in plan.simulation.equations))
    if not plan.device.machine.has_cores:
        assert plan.peak_bytes <= plan.device.machine.device_capacity
    assert plan.gap == pytest.approx(plan.time / plan.bound - 1 if plan.bound else float("inf"))
    assert ("gap unknown" in str(plan)) == (plan.bound == 0)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CASES)
def test_an_interrupt_at_any_time_gives_a_plan(name, whole, monkeypatch):
    best, count = whole[name]
    bounds, parts, first = [], *((8, (2, 3, 4)) if tiers.ALL else (2, (2,)))
    for at in sorted({*first, *range(5, count, max(count // parts, 1)), count - 1}):
        with monkeypatch.context() as patch:
            reading(patch, time.monotonic, {at})
            plan = planned(name)
        assert_true(plan, best)
        bounds.append(plan.bound)
    assert min(bounds) < best.bound  # the first ones came before any search


def test_an_interrupt_by_progress_gives_the_plan_that_it_was_told_of(whole):
    told = []

    def interrupt(*known):
        told.append(known)
        raise KeyboardInterrupt

    for name in ("small", "n150"):
        told.clear()
        plan = planned(name, progress=interrupt)
        assert len(told) == 1  # also where there are several searches
        assert_true(plan, whole[name][0])


@pytest.mark.parametrize("name", CASES)
def test_a_second_interrupt_is_raised(name, monkeypatch):
    calls = []

    def interrupt(*_, **__):
        calls.append(None)
        raise KeyboardInterrupt

    where = (solved, "made_plan") if name == "n150" else (on_devices, "default_plan")
    monkeypatch.setattr(*where, interrupt)
    with pytest.raises(KeyboardInterrupt):
        planned(name)
    assert len(calls) == 2


def test_an_interrupt_while_it_is_priced_keeps_the_plan(whole, monkeypatch):
    made, calls = priced.made_plan, []

    def interrupt_once(*args):
        calls.append(None)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return made(*args)

    monkeypatch.setattr(solved, "made_plan", interrupt_once)
    plan = planned("v5e")
    assert (plan.time, plan.layouts) == (whole["v5e"][0].time, whole["v5e"][0].layouts)
    assert len(calls) == 2


def test_an_interrupt_while_a_function_is_traced_is_raised():
    def fn(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gl.plan(fn, shaped(8, 8), machine="v5e 4x4")


# -- the time --------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CASES)
def test_less_time_gives_a_plan_whose_bound_is_true(name, whole, monkeypatch):
    best = whole[name][0]
    hows = []
    for seconds in (0, 0.003, 0.03, 0.1, 1):
        with monkeypatch.context() as patch:
            ticks = itertools.count()
            reading(patch, lambda: next(ticks) * 1e-3)  # noqa: B023
            plan = planned(name, seconds=seconds)
        assert_true(plan, best)
        hows.append((plan.how, plan.bound))
    assert len(set(hows)) > 1


def test_no_more_time_is_taken_than_the_best_plan_without_a_search_needs(monkeypatch):
    """The default is cut short, and one plan is made: it is no worse than any mixture."""
    ended, made = [], []

    def default(*args):
        try:
            return first(*args)
        except Expired:
            ended.append(None)
            raise

    first, price = on_devices.default_plan, solved.made_plan
    monkeypatch.setattr(on_devices, "default_plan", default)
    monkeypatch.setattr(solved, "made_plan", lambda *args: made.append(None) or price(*args))
    strategies = traced_for(STEP[0], STEP[1:], gl.Machine("v5e 4x4"), None).strategies(None)
    best = mixtures(strategies, strategies.problem, expired)[0]
    strategies.refined(best)
    for looks in (4, 20):  # at the clock, before the time is over
        ended.clear()
        made.clear()
        with monkeypatch.context() as patch:
            ticks = itertools.count()
            reading(patch, lambda: float(next(ticks) >= looks))  # noqa: B023
            plan = planned("v5e", seconds=0.5)
        assert (len(ended), len(made)) == (1, 1)
        assert plan.time <= strategies.problem.cost(best) * (1 + CLOSE)


def test_the_default_is_made_in_the_end_where_it_was_cut_short(whole, monkeypatch):
    """No plan that the time does not end is slower."""
    default, calls = on_devices.default_plan, []

    def cut_once(*args):
        calls.append(None)
        if len(calls) == 1:
            raise Expired
        return replace(default(*args), simulation=free)

    free = replace(whole["v5e"][0].simulation, equations=(), staged=())
    monkeypatch.setattr(on_devices, "default_plan", cut_once)
    assert planned("v5e").how == "as by default"


def test_highs_is_not_waited_for_longer_than_its_time(monkeypatch):
    released, ended = Event(), []

    def milp(*_, **__):
        released.wait(60)
        ended.append(None)
        return SimpleNamespace(mip_dual_bound=None, status=1, message="", x=None)

    monkeypatch.setattr("scipy.optimize.milp", milp)
    monkeypatch.setattr(integer, "LATE", 0.0)
    plan = planned("v5e", seconds=3)
    assert not ended
    released.set()
    assert plan.time >= plan.bound > 0


def test_a_process_ends_after_the_solver_that_it_left_behind():
    """HiGHS has threads of its own: a process that ends while they run aborts."""
    program = (
        "from time import monotonic, sleep\n"
        "from gridlayout.ops.solver.integer import _waited\n"
        "def call(): sleep(0.5); print('ended', flush=True)\n"
        "print(_waited(call, lambda: None, monotonic()), flush=True)\n"
    )
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (made.returncode, made.stdout.split()) == (0, ["None", "ended"])


def test_what_can_not_fit_is_refused_and_what_may_fit_is_not_called_too_large(monkeypatch):
    args, _ = CASES["small"]
    monkeypatch.setattr(making, "_larger", lambda *_: "")  # which takes long
    with pytest.raises(LayoutError, match=r"mlp does not fit: at .* holds at least"):
        gl.plan(*args, machine=small(4))
    monkeypatch.setattr(search, "quick", lambda model: iter(()))
    with pytest.raises(Unsolved, match=r"no plan that fits the memory was found in 0 seconds"):
        gl.plan(*args, machine=small(4.05), seconds=0)


def test_values_that_are_put_in_dram_at_once_leave_room_for_the_others():
    traced = traced_for(*MLP[:1], MLP[1:], "n150", None)
    free = traced.strategies(None)
    found = solve.solve(free.problem)
    places, choices = free.places(found.choices), free.choices(found.choices)
    over = clock.Clock(60.0)
    over.interrupt()
    room = room_in_l1(traced.device.machine)
    for ended in (None, over):  # with the arguments where they are nothing has room
        with pytest.raises(LayoutError, match=r"are too few at .*: up: 4,194,304 B"):
            Spaces.of(free, places, choices, clock=ended)
    at_once = Spaces.of(free, places, choices, fixed=False, clock=over)
    best = Spaces.of(free, places, choices, fixed=False)
    assert at_once.dram
    assert max(nbytes for _, nbytes in at_once.held) <= room
    assert sum(best.streamed.values()) <= sum(at_once.streamed.values()) * (1 + CLOSE)


def expired():
    raise Expired


def test_a_mixture_that_fits_is_known_when_the_time_is_over():
    """For a training step whose default, in data parallel, does not fit."""
    model = training("scan", 8, 32, 16, 64, 96, 80, 3, scan=True)
    traced = traced_for(model.fn, model.args, gl.Machine("v5e 4x4"), None)
    free = traced.strategies(None)
    for room in (None, 1 << 21, 1 << 20):
        strategies = free.limited(room)
        made = mixtures(strategies, strategies.problem, expired)
        assert 1 <= len(made) <= 5
        assert strategies.problem.excess(made[0]) <= 0
        assert strategies.problem.cost(made[0]) < float("inf")
    chip = gl.Chip("small", (1, 1), {"dram": 1 << 20})
    rates, links = gl.Rates(flops=2e14, memory=8e11), gl.Links(4.5e10, latency=1e-6, wrap=True)
    machine = gl.Machine(chip, mesh=(4, 4), links=links, rates=rates)
    plan = gl.plan(model.fn, *model.args, machine=machine, seconds=0)
    assert plan.how != "as by default"
    assert plan.peak_bytes <= 1 << 20


def test_a_large_program_is_not_divided_in_too_many_ways_to_list():
    model = prefill("prefill", 256, 64, 16, 128, 256, 512, 2)
    traced = traced_for(model.fn, model.args, gl.Machine("v5p 4x4x4").on((256, 16)), None)
    graph = traced.inlined(None)
    assert graph.is_large
    assert number_of_ways(graph, traced.units(graph), all_ways=True) <= LIMITS.all_ways


def test_choices_whose_search_was_ended_are_not_called_too_large(monkeypatch):
    """A part of the time may end before the time does."""

    def ended(*_):
        calls.append(None)
        if len(calls) > 1:
            raise Unsolved
        return first(*_)

    calls, first = [], on_devices.solved
    monkeypatch.setattr(on_devices, "solved", ended)
    monkeypatch.setattr(on_devices, "made_for", lambda *_: too_large)
    too_large = SimpleNamespace(
        peak_bytes=1 << 40, time=1.0, simulation=SimpleNamespace(held_in=[], held=[])
    )
    monkeypatch.setattr(on_devices._Tries, "learn", lambda *_: True)
    args, _ = CASES["small"]
    with pytest.raises(LayoutError, match="no plan that fits the memory was found in 60 seconds"):
        gl.plan(*args, machine=small(4.07))


def test_no_choices_fit_where_copies_have_no_room():
    """The weights have room, but no copies of parts of them; no program is made to see it."""
    (fn, *args), _ = CASES["small"]
    for mebibytes, fits in ((4.05, False), (4.07, True)):
        machine = small(mebibytes)
        strategies = traced_for(fn, tuple(args), machine, None).strategies(None)
        problem = strategies.limited(machine.device_capacity).problem
        assert (solve.solve(problem) is not None) == fits


class Found(NamedTuple):
    """A plan as `_Tries` compares it."""

    peak_bytes: int
    time: float
    bound: float = 1.0

    @property
    def gap(self):
        return self.time / self.bound - 1


class Listed(on_devices._Tries):
    """Tries that find the first of some plans that fits, because its price is the least."""

    def __init__(self, plans, room, spent=0.0):
        over = SimpleNamespace(spent=spent, seconds=60.0, left=60.0 - spent)
        graph = SimpleNamespace(graph=SimpleNamespace(is_large=False))
        super().__init__(None, graph, float("inf"), over, None, room)
        self.plans, self.rooms = plans, []

    def go_on(self):
        self.rooms.append(self.room)
        made = next((each for each in self.plans if each.peak_bytes <= self.room), None)
        if made is not None:
            self.least = min(made.peak_bytes, self.least)
            if self.best is None or made.time < self.best[2].time:
                self.best = None, None, made


@pytest.mark.parametrize(
    ("plans", "room", "spent", "rooms", "time"),
    [
        ([(90, 3.0), (80, 4.0), (70, 2.0), (60, 5.0)], 100, 0, [100, 89, 79, 69, 59], 2.0),
        ([(90, 3.0), (80, 1.005), (70, 1.0)], 100, 0, [100, 89], 1.005),  # close to the bound
        ([(40, 3.0), (30, 2.0)], 100, 0, [100], 3.0),  # there is room for two of it
        ([(90, 3.0), (80, 2.0)], 100, 16, [100], 3.0),  # late
        ([(90 - 2 * k, 9.0 - k) for k in range(9)], 100, 0, [100, *range(89, 78, -2)], 3.0),
    ],
)
def test_plans_in_less_room_than_all_that_fit_are_tried(plans, room, spent, rooms, time):
    tries = Listed([Found(*each) for each in plans], room, spent)
    tries.go_on()
    tries.with_less_room()
    assert (tries.rooms, tries.best[2].time) == (rooms, time)


def test_limits_that_do_not_bind_cost_nothing(monkeypatch):
    """The best choices without limits are the result where their program fits."""
    free = gl.plan(*TALL, machine=small(1 << 20))
    mebibytes = free.peak_bytes / 2**20
    machine = small(mebibytes)
    limited = traced_for(TALL[0], TALL[1:], machine, None).strategies(None)
    assert limited.limited(machine.device_capacity).problem.rows
    searched, first = [], on_devices.solved

    def recorded(strategies, *args):
        searched.append(strategies.capacity)
        return first(strategies, *args)

    monkeypatch.setattr(on_devices, "solved", recorded)
    plan = gl.plan(*TALL, machine=machine)
    assert (plan.time, plan.peak_bytes, plan.bound) == (free.time, free.peak_bytes, free.bound)
    assert set(searched) == {None}


def test_nothing_is_divided_where_messages_take_longer_than_they_save():
    """More devices are never slower than one, even without a search."""
    model = training("experts", 2, 12, 8, 16, 24, 40, 1, experts=4)
    links, rates = gl.Links(4.5e10, latency=1e-3, wrap=True), gl.Rates(flops=2e14, memory=8e11)
    chip = gl.Chip("t", (1, 1), {"dram": 1 << 40})
    times = []
    for mesh in ((1,), (2, 4)):
        machine = gl.Machine(chip, mesh=mesh, links=links, rates=rates)
        times.append(gl.plan(model.fn, *model.args, machine=machine, seconds=0).time)
    assert times[1] <= times[0] * (1 + CLOSE)


def test_copies_are_listed_only_where_they_may_not_fit(monkeypatch):
    """Most programs have room for copies of all operands, in whatever division they are read."""
    listed = []
    monkeypatch.setattr(Copies, "at", lambda self, n: listed.append(n))
    strategies = traced_for(STEP[0], STEP[1:], small(1 << 20), None).strategies(None)
    assert not strategies.limited(1 << 40).problem.rows
    assert not listed


def test_no_node_copies_more_than_is_taken_for_granted():
    strategies = traced_for(STEP[0], STEP[1:], small(1 << 20), None).strategies(None)
    copies = strategies.limited(1.0).room._copies_of
    pairs = [(copies.at(n).most, copies.most(n)) for n in range(len(strategies.graph.nodes))]
    assert any(most for most, _ in pairs)
    assert all(most <= granted for most, granted in pairs)
