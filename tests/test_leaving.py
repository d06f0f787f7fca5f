"""Processes that lose each other end with an error of the library, and no other one."""

import random
import re
import signal

import pytest
import tiers
from processes import run_together
from tiers import few

from gridlayout.sharding.processes.calls import State, gone
from gridlayout.sharding.processes.watch import _Progress

# -- who is gone, and who goes on ------------------------------------------------------------------

HERE = State(4, True, what="f", beat=9)


def test_those_that_ended_or_do_not_answer_are_gone():
    gave_up = HERE._replace(ended="it waits", gave_up=True)
    silent = HERE._replace(silent=7.0)
    assert gone({1: HERE, 2: HERE}) == {}
    assert gone({1: HERE, 2: silent}) == {2: "is in its call 4, f; it has not answered for 7 s"}
    assert list(gone({1: gave_up, 2: silent})) == [2]
    assert list(gone({1: gave_up, 2: HERE})) == [1]


class Clock:
    """A time that tests set."""

    def __init__(self, monkeypatch):
        self.now, self.used = 0.0, 0.0
        watch = "gridlayout.sharding.processes.watch"
        monkeypatch.setattr(f"{watch}.monotonic", lambda: self.now)
        monkeypatch.setattr(f"{watch}.process_time", lambda: self.used)

    def run(self, progress, seconds, states, own=HERE, computes=0.0):
        """What is missing at the end of so many seconds, of which a share is computed."""
        found = ""
        for _ in range(seconds):
            self.now, self.used = self.now + 1, self.used + computes
            found = progress.missing(own, states, 8)
        return found


def test_a_program_ends_if_no_process_goes_on(monkeypatch):
    clock = Clock(monkeypatch)
    progress = _Progress(on_host=True)
    assert clock.run(progress, 8, {1: HERE}) == ""
    assert "no process went on for" in clock.run(progress, 3, {1: HERE})
    # A call that begins or ends, and a process that computes, start the time anew.
    assert clock.run(progress, 8, {1: HERE._replace(inside=False)}) == ""
    assert clock.run(progress, 40, {1: HERE}, computes=0.2) == ""
    assert "with it is process 1, which is in its call 4" in clock.run(progress, 12, {1: HERE})


def test_whether_accelerators_compute_is_unknown(monkeypatch):
    clock = Clock(monkeypatch)
    progress = _Progress(on_host=False)
    assert clock.run(progress, 100, {1: HERE, 2: HERE}) == ""
    # But a process that has the result, or does not answer, shows that this one can't go on.
    assert clock.run(progress, 12, {1: HERE, 2: HERE._replace(inside=False)})
    assert clock.run(progress, 12, {1: HERE, 2: HERE._replace(silent=9.0)})


# -- real processes --------------------------------------------------------------------------------

START = """
import signal, threading, time

os.environ["GRIDLAYOUT_AGREEMENT_SECONDS"] = LIMIT
device = gl.DeviceGrid((COUNT,))
layout = gl.GridLayout((8, 8), grid=(8, 1))
x = gl.put(np.ones((8, 8), np.float32), layout, device)
total = gl.on_grid(lambda x: jnp.sum(x @ x.T))
assert float(total(x)) == 512
"""


def run(program, processes, limit="4", **options):
    """How processes end that all run a program, in which they lose each other."""
    known = f"LIMIT = {limit!r}\n{START}"
    found = run_together(known + program, count=processes, devices=1, **options)
    words = "\n".join(f"{each.code}: {each.out[-500:]} {each.err[-2000:]}" for each in found)
    return found, words


COUNTS = few([2, 4], 1)

ONCE_MORE = """
if RANK == 0:
    total(x)
"""


@pytest.mark.all_cases
@pytest.mark.parametrize("processes", COUNTS)
def test_a_call_that_one_process_makes_once_more(processes):
    found, words = run(ONCE_MORE, processes)
    assert [each.code for each in found] == [1] * processes, words
    for each in found:
        assert re.search(r"LayoutError: .*has ended", each.err), words


def ended_by_themselves(found, killed, words):
    for rank, each in enumerate(found):
        if rank == killed:
            assert each.code == -signal.SIGKILL, words
            continue
        assert each.code == 1, words
        assert "LayoutError" in each.err, words


KILLED = """
def end():
    os.kill(os.getpid(), signal.SIGKILL)


if RANK == KILLED:
    threading.Timer(SECONDS, end).start()
for _ in range(100_000):
    float(total(x))
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("killed", [0, 1])
@pytest.mark.parametrize("processes", COUNTS)
def test_a_killed_process_ends_the_others_with_an_error(processes, killed):
    seconds = random.Random(processes + killed).random()
    found, words = run(f"KILLED, SECONDS = {killed}, {seconds}\n{KILLED}", processes, heartbeat=8)
    ended_by_themselves(found, killed, words)


# It is stopped for longer than JAX's heartbeat allows, and goes on when the others have ended.
STOPPED = """
import subprocess

if RANK == 1:
    own = os.getpid()
    subprocess.Popen(["sh", "-c", f"sleep 1; kill -STOP {own}; sleep 25; kill -CONT {own}"])
for _ in range(100_000):
    float(total(x))
"""


@pytest.mark.parametrize("processes", [2, 4] if tiers.ALL else [])
def test_a_stopped_process_ends_all_with_an_error(processes):
    found, words = run(STOPPED, processes, limit="60", heartbeat=10)
    ended_by_themselves(found, None, words)


# All are in one program, in which the first of them waits for something else.
STUCK = """
def wait(x):
    time.sleep(3600)
    return x


def stuck(x):
    return jnp.sum(jax.pure_callback(wait, jax.ShapeDtypeStruct(x.shape, x.dtype), x) @ x.T)


print("goes on", float(gl.on_grid(stuck)(x)), flush=True)
"""


@pytest.mark.parametrize("processes", COUNTS)
def test_a_program_that_stands_still_ends(processes):
    found, words = run(STUCK, processes, limit="4")
    assert [each.code for each in found] == [1] * processes, words
    for each in found:
        assert "goes on" not in each.out
        assert "LayoutError" in each.err, words
    assert any("no process went on for" in each.err for each in found), words


# A program that computes for longer than the limit.
LONG = """
import hashlib


def work(x):
    until = time.thread_time() + COMPUTED
    while time.thread_time() < until:
        hashlib.sha256(bytes(1 << 20))
    return x


def long(x):
    return jnp.sum(jax.pure_callback(work, jax.ShapeDtypeStruct(x.shape, x.dtype), x) @ x.T)


print("result", float(gl.on_grid(long)(x)), flush=True)
"""


@pytest.mark.all_cases
def test_a_long_program_that_computes_does_not_end():
    found, words = run(f"COMPUTED = 10\n{LONG}", 2, limit="3")
    assert [each.code for each in found] == [0, 0], words
    assert all("result 512.0" in each.out for each in found), words


# One process has forgotten a program, and now plans another one for the same call.
ANEW = """
def policy(shape, dtype, template, device):
    return gl.GridLayout(shape, dtype, grid=grid)


grid = (8, 1)
squared = gl.on_grid(lambda x: (x @ x.T) @ x, policy=policy)
assert np.asarray(squared(x)).sum() == 8 * 8 * 64
if RANK == 1:
    grid = (1, 8)
    gl.caches.clear()
np.asarray(squared(x))
print("went on", flush=True)
"""


@pytest.mark.all_cases
@pytest.mark.parametrize("processes", COUNTS)
def test_a_program_that_one_process_plans_anew_otherwise(processes):
    found, words = run(ANEW, processes)
    assert [each.code for each in found] == [1] * processes, words
    for each in found:
        assert "went on" not in each.out
        assert "LayoutError" in each.err, words
    assert any("in another program of it" in each.err for each in found), words


# -- caches and work of one process alone ----------------------------------------------------------

# All train together. In between, each one caches, drops and computes what it likes.
ROUNDS = """
import gc, random

own, common = random.Random(RANK), np.random.default_rng(0)
device = gl.DeviceGrid((2, 2))
here = np.array(jax.local_devices()).reshape(-1, 1)
mine = gl.DeviceGrid(jax.sharding.Mesh(here, ("x", "y")))
layouts = [
    gl.GridLayout((13, 9), grid=(3, 2)),
    gl.GridLayout((13, 9), grid=(2, 3), tile=(2, 2)),
]


def loss(w, x):
    return jnp.sum(jnp.tanh(x @ w) ** 2)


def step(w, x):
    value, slope = jax.value_and_grad(loss)(w, x)
    return w - 0.01 * slope, value


def alone(number):
    layout = gl.GridLayout((4 + number, 5), grid=(2, 1))
    e = gl.put(np.ones(layout.shape, np.float32), layout, mine)
    float(gl.on_grid(lambda e: jnp.tanh(e @ e.T).sum())(e))


def disturb(number):
    kind = own.randrange(6)
    if kind == 0:
        gl.caches.limit(own.choice([1, 1 << 20, 2_000_000, 8 << 20, 1 << 30]))
    elif kind == 1:
        gl.caches.clear()
    elif kind == 2:
        gc.collect()
    elif kind == 3 and RANK == 0:
        alone(number)
    elif kind == 4 and RANK == 0:
        jax.clear_caches()


lifted = gl.on_grid(step)
weights = common.normal(size=(9, 4)).astype(np.float32)
w, plain = gl.put(weights, gl.GridLayout((9, 4), grid=(2, 2)), device), jnp.asarray(weights)
losses = []
for number in range(NUMBER):
    disturb(number)
    data = common.normal(size=(13, 9)).astype(np.float32)
    x = gl.put(data, layouts[number % 2], device)
    disturb(number)
    x = gl.relayout(x, layouts[number // 2 % 2])
    disturb(number)
    w, value = lifted(w, x)
    plain, expected = step(plain, jnp.asarray(data))
    np.testing.assert_allclose(float(value), float(expected), rtol=1e-3)
    losses.append(float(value))
np.testing.assert_allclose(np.asarray(w), plain, rtol=1e-3, atol=1e-4)
print("losses", losses, flush=True)
"""


@pytest.mark.parametrize("rounds", [30 if tiers.ALL else 2])
def test_processes_whose_caches_differ_compute_the_same(rounds):
    found = run_together(f"NUMBER = {rounds}\n{ROUNDS}", 2, 2, GRIDLAYOUT_AGREEMENT_SECONDS="60")
    for each in found:
        assert each.code == 0, each.out[-500:] + each.err[-3000:]
    zero, one = (re.search("losses (.*)", each.out)[1] for each in found)
    assert zero == one
