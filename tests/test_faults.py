"""One process is killed, fails, is late or interrupted: the others get an error, and none hangs."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import tiers
from processes import run_alone, run_together
from tiers import few

from gridlayout.sharding.processes.calls import Call, Calls, State, absent

ROOT = Path(__file__).parent.parent

# -- what processes make of what others say --------------------------------------------------------

DONE, INSIDE = State(4, False, False, "f", "aa"), State(4, True, False, "f", "aa")
ASKS = State(4, True, True, "f", "aa")
BEFORE = State(3, False, False, "g", "bb")


@pytest.mark.parametrize(
    ("own", "other", "now", "late"),
    [
        # Who is in the call or has been in it is waited for, however long its program takes.
        (INSIDE, INSIDE, "", ""),
        (INSIDE, DONE, "", ""),
        (INSIDE, State(7, True, False, "h", "cc"), "", ""),
        (INSIDE, BEFORE, "", "is in no call: its last was call 3, g"),
        (INSIDE, BEFORE._replace(inside=True), "", "is in its call 3, g"),
        (INSIDE, State(), "", "has made no call"),
        # It is in another one of this number.
        (INSIDE, INSIDE._replace(what="h", digests="cc"), "is in h instead", "is in h instead"),
        (INSIDE, ASKS._replace(digests="cc"), "is in f instead", "is in f instead"),
        (ASKS, INSIDE._replace(digests="cc"), "is in f instead", "is in f instead"),
        # Those that ask find out so, and those that do not are waited for.
        (ASKS, ASKS._replace(digests="cc"), "", ""),
        (ASKS, INSIDE, "", "is in its call 4, f"),
        (ASKS, State(7, True, False, "h", "cc"), "", "is in its call 7, h"),
        # It has ended, or failed, and this one has not.
        (INSIDE, DONE._replace(ended="E: no"), "", ""),
        (INSIDE, BEFORE._replace(ended="E: no"), *["has ended (E: no) after its call 3, g"] * 2),
        (ASKS, DONE._replace(ended="E: no"), *["has ended (E: no) after its call 4, f"] * 2),
        (INSIDE, DONE._replace(failed=[[4, "E: no"]]), *["failed in its call 4: E: no"] * 2),
        (INSIDE, BEFORE._replace(failed=[[3, "E: no"]]), *["failed in its call 3: E: no"] * 2),
        (INSIDE._replace(failed=[[2, "E: no"]]), DONE._replace(failed=[[2, "E: no"]]), "", ""),
    ],
)
def test_who_will_not_come(own, other, now, late):
    for expected, is_late in ((now, False), (late, True)):
        found = absent(own, {2: State.parsed(other.text)}, is_late)
        assert list(found) == ([2] if expected else [])
        assert found.get(2, "").startswith(expected)


def test_a_patient_call_waits_for_who_is_in_it():
    assert absent(ASKS, {1: INSIDE}, True, is_patient=True) == {}
    assert list(absent(ASKS, {1: BEFORE, 2: INSIDE}, True, is_patient=True)) == [1]


def test_those_that_gave_up_are_named_only_if_nobody_else_is():
    gave_up = INSIDE._replace(ended="it waits", gave_up=True)
    asks = ASKS._replace(number=5)
    assert list(absent(asks, {1: gave_up, 2: BEFORE}, is_late=True)) == [2]
    assert list(absent(asks, {1: gave_up, 2: BEFORE}, is_late=False)) == [1]


def test_calls_are_counted_but_not_when_they_are_interrupted():
    calls = Calls()
    first = calls.begin("f")
    assert isinstance(first, Call)
    assert calls.begin("inner") is None
    assert (calls.state.number, calls.state.inside) == (1, True)
    calls.end(first, KeyboardInterrupt(), is_made=False)
    assert (calls.state.number, calls.state.inside, calls.state.failed) == (0, False, [])
    again = calls.begin("f")
    calls.end(again, ValueError("no"))
    assert calls.state == State(1, False, False, "f", "", [(1, "ValueError: no")], "")


# -- one of several real processes -----------------------------------------------------------------

# Every process does this first; then one is where the others do not expect it.
WARM = """
import signal, sys, time
from pathlib import Path

os.environ["GRIDLAYOUT_AGREEMENT_SECONDS"] = "4"
device = gl.DeviceGrid((COUNT,))
rows, columns = gl.GridLayout((8, 8), grid=(8, 1)), gl.GridLayout((8, 8), grid=(1, 8))
if RANK == 1 and MODE == "late":
    time.sleep(3600)
x = gl.put(np.ones((8, 8), np.float32), rows, device)


def total(x):
    return jnp.sum(x @ x.T)


total = gl.on_grid(total)
assert float(total(x)) == 512
print("warm", time.monotonic(), flush=True)
if RANK == 1:
    if MODE == "fails":
        raise RuntimeError("the disk is full")
    if MODE == "never":
        time.sleep(3600)
    if MODE == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
if MODE == "caught":
    calls = 0
    while True:
        try:
            if RANK == 1 and calls == 3:
                raise RuntimeError("one bad batch")
            total(x).block_until_ready()
        except RuntimeError:
            pass
        calls += 1
        if calls == 6:
            break
    gl.relayout(x, columns)
float(total(x))
print("went on", flush=True)
"""


def run_mode(mode, processes, **options):
    """How processes end of which the second does what the mode says; the rest in a program."""
    program = f"MODE = {mode!r}\n{WARM}"
    return run_together(program, count=processes, devices=1, **options)


COUNTS = few([2, 4], 1)


@pytest.mark.parametrize("processes", COUNTS)
def test_an_exception_in_one_process_ends_the_others(processes):
    found = run_mode("fails", processes)
    assert "RuntimeError: the disk is full" in found[1].err
    for each in found[:1] + found[2:]:
        assert each.code != 0
        assert "call 3, on_grid(total), waits for process 1, which has ended" in each.err
        assert "(RuntimeError: the disk is full) after its call 2, on_grid(total)" in each.err


@pytest.mark.all_cases
@pytest.mark.parametrize("processes", COUNTS)
def test_a_process_that_starts_late_is_named(processes):
    found = run_mode("late", processes)
    for each in found[:1] + found[2:]:
        assert each.code != 0
        assert re.search(
            r"LayoutError: gl\.put: process \d asked process.* \(none within 4 seconds: "
            "process 1, which has made no call",
            each.err,
        )


@pytest.mark.parametrize("processes", few([4, 2], 1) if tiers.ALL else [])
def test_a_call_that_one_process_never_makes_ends_the_others(processes):
    found = run_mode("never", processes)
    for each in found[:1] + found[2:]:
        assert each.code == 1
        # Some learn it from one that gave up before them.
        assert "call 3, on_grid(total), waits for process 1, which is in no call" in each.err


@pytest.mark.parametrize("processes", [2, 4] if tiers.ALL else [])
def test_a_call_that_one_process_leaves_out_is_found(processes):
    found = run_mode("caught", processes)
    assert all(each.code != 0 for each in found)
    assert any("LayoutError" in each.err and "process 1" in each.err for each in found)


@pytest.mark.parametrize("processes", [2, 4] if tiers.ALL else [])
def test_a_killed_process_ends_the_others_within_the_heartbeat(processes):
    began = time.monotonic()
    found = run_mode("killed", processes, heartbeat=8)
    warm = float(re.search(r"warm (\S+)", found[0].out)[1])
    assert began < warm
    assert time.monotonic() - warm < 8 + 5
    assert found[1].code == -signal.SIGKILL
    for each in found[:1] + found[2:]:
        assert each.code not in (0, None)
        assert "went on" not in each.out


# -- Ctrl-C ----------------------------------------------------------------------------------------

# The first process is interrupted while it waits for the other's answer, and makes the call again.
INTERRUPTED = """
import signal, threading, time

device = gl.DeviceGrid((COUNT,))
rows, columns = gl.GridLayout((8, 8), grid=(8, 1)), gl.GridLayout((8, 8), grid=(1, 8))
a = np.arange(64, dtype=np.float32).reshape(8, 8)
x = gl.put(a, rows, device)
double = gl.on_grid(lambda x: x.T * 2)
np.testing.assert_array_equal(np.asarray(double(x)), a.T * 2)
for number in range(NUMBER):
    target = gl.GridLayout((8, 8), grid=(1, 8), tile=(number + 1, 1))
    if RANK == 0:
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            gl.relayout(x, target)
            raise AssertionError("not interrupted")
        except KeyboardInterrupt:
            pass
    else:
        time.sleep(2)
    np.testing.assert_array_equal(np.asarray(gl.relayout(x, target)), a)
    np.testing.assert_array_equal(np.asarray(double(x)), a.T * 2)
assert float(gl.on_grid(jnp.sum)(x)) == a.sum()
print("fine", flush=True)
"""


def test_an_interrupt_while_processes_agree():
    times = 3 if tiers.ALL else 1
    for ended in run_together(f"NUMBER = {times}\n{INTERRUPTED}", count=2, devices=1):
        assert ended.code == 0, ended.err[-3000:]
        assert "fine" in ended.out


# A session in which the first call of many shapes is interrupted somewhere, and made again.
SESSION = """
import os, random, signal, threading, time
import gridlayout as gl
gl.emulate_devices(4)
import jax
import jax.numpy as jnp
import numpy as np

device, chosen = gl.DeviceGrid((2, 2)), random.Random(SEED)


def loss(x):
    return jnp.mean(jnp.exp(-x @ x.T / 9))


def work(rows):
    a = np.arange(rows * 7, dtype=np.float32).reshape(rows, 7) / rows
    if KIND == "plan":
        plan = gl.plan(loss, a, machine=device.machine.on((2, 2)))
        return [plan.run(a)], [loss(a)]
    x = gl.put(a, gl.GridLayout(a.shape, grid=(3, 2), tile=(2, 2)), device)
    y = gl.relayout(x, gl.GridLayout(a.shape, grid=(2, 4)))
    doubled = gl.map_shards(lambda shard: shard * 2, y, out=y.layout)
    slope = lifted.setdefault(rows, gl.on_grid(jax.grad(loss)))(x)
    return [x, y, doubled, (x + y) @ x.T, slope], [a, a, a * 2, 2 * a @ a.T, jax.grad(loss)(a)]


lifted = {}
began = time.monotonic()
work(4)
took, interrupted = time.monotonic() - began, 0
for rows in range(5, 5 + 10 * CASES):
    if rows >= 5 + CASES and (interrupted or KIND == "plan"):
        break  # else all interrupts came too late
    timer = threading.Timer(chosen.random() * took, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        work(rows)
        timer.join()
        time.sleep(0.1)
    except KeyboardInterrupt:
        interrupted += 1
    for _ in range(2):
        for found, expected in zip(*work(rows), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-4)
print("interrupted", interrupted, flush=True)
"""


@pytest.mark.parametrize("kind", few(["calls", "plan"], 1))
def test_an_interrupted_session_goes_on(kind):
    cases = 20 if tiers.ALL else 3
    ended = run_alone(f"KIND, SEED, CASES = {kind!r}, 0, {cases}\n{SESSION}")
    assert ended.code == 0, ended.err[-3000:]
    # `gl.plan` takes an interrupt of its search as the end of the time, and gives what it found.
    assert kind == "plan" or int(re.search(r"interrupted (\d+)", ended.out)[1]) > 0


# -- a training under the supervisor ---------------------------------------------------------------


class Supervised:
    """`examples/supervisor.py` over `examples/restart.py`, and what it prints."""

    def __init__(self, folder, processes, steps, every):
        scripts = [str(ROOT / "examples" / name) for name in ("supervisor.py", "restart.py")]
        given = [*scripts[:1], "--processes", *map(str, processes), "--grace", "0.2", "--"]
        given += [scripts[1], str(folder), "--steps", str(steps), "--every", str(every)]
        self.process = subprocess.Popen(
            [sys.executable, *given],
            env={**os.environ, "PYTHONPATH": str(ROOT), "NPROC": "8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines, self.pids, self.come = [], {}, threading.Condition()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()  # which ends its workers
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            with self.come:
                if found := re.match(r"supervisor: process (\d+) of \d+ is pid (\d+)", line):
                    self.pids[int(found[1])] = int(found[2])
                self.lines.append(line.rstrip("\n"))
                self.come.notify_all()

    def wait_for(self, pattern, times=1, seconds=400):
        """Until so many lines match."""
        with self.come:
            assert self.come.wait_for(
                lambda: sum(bool(re.match(pattern, line)) for line in self.lines) >= times, seconds
            ), "\n".join(self.lines[-60:])

    def kill(self, number):
        os.kill(self.pids[number], signal.SIGKILL)

    def losses(self):
        """By step, the losses as text: of each start one, if it came to the step."""
        found = {}
        for line in self.lines:
            if step := re.match(r"step (\d+)  loss (.*)", line):
                found.setdefault(int(step[1]), []).append(step[2])
        return found

    def end(self, seconds=600):
        """The losses of a training that ends well."""
        code = self.process.wait(seconds)
        self.reader.join()
        assert code == 0, "\n".join(self.lines[-60:])
        return self.losses()


@pytest.mark.all_cases
def test_a_supervised_training_restarts_on_fewer_processes(tmp_path):
    with Supervised(tmp_path, [2, 1], steps=9, every=3) as run:
        run.wait_for("step 4 ")
        run.kill(1)
        losses = run.end()
    assert "supervisor: process 1: killed by SIGKILL" in run.lines
    assert "restarted after step 2" in run.lines or "restarted after step 5" in run.lines
    assert list(losses) == list(range(9))
    for of_step in losses.values():
        assert float(of_step[-1]) == pytest.approx(float(of_step[0]), rel=1e-5)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    with Supervised(tmp_path_factory.mktemp("whole"), [4], steps=24, every=4) as run:
        losses = run.end()
    assert all(len(of_step) == 1 for of_step in losses.values())
    return losses


@pytest.mark.parametrize("seed", range(4) if tiers.ALL else [])
@pytest.mark.parametrize("processes", [[4], [4, 3]], ids=json.dumps)
def test_one_of_four_is_killed_at_random_points(tmp_path, uninterrupted, processes, seed):
    chosen = random.Random(seed)
    with Supervised(tmp_path, processes, steps=24, every=4) as run:
        for kill in range(2):
            run.wait_for(f"step {chosen.randrange(2, 10) + 11 * kill} ")
            time.sleep(chosen.random() * 0.3)
            run.kill(chosen.randrange(processes[min(kill, len(processes) - 1)]))
            run.wait_for("supervisor: process .* killed by SIGKILL", kill + 1)
        losses = run.end()
    assert sorted(losses) == list(range(24))
    for step, (whole,) in uninterrupted.items():
        for loss in losses[step]:
            if processes == [4]:
                assert loss == whole
            assert float(loss) == pytest.approx(float(whole), rel=1e-4)
