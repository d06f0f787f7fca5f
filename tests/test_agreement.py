"""Processes that differ are told, each of them; real ones, on the loopback interface."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import CASES, run_together

import gridlayout as gl
from gridlayout.sharding.processes import agreement, messages
from gridlayout.sharding.processes.elements import Elements
from gridlayout.sharding.processes.group import Group, seconds_to_wait
from gridlayout.sharding.processes.jaxprs import common_text

# Each case is tried by both processes; what they were told is printed, and compared here.
DIFFERING = """
from gridlayout.sharding.processes import elements
from gridlayout.sharding.processes.group import Group

exchanges, exchanged = [], Group.exchanged
Group.exchanged = lambda *args: exchanges.append(args) or exchanged(*args)
device = gl.DeviceGrid((2, 2))
a = np.arange(35, dtype=np.float32).reshape(5, 7)
small, large, plain = (
    gl.GridLayout((5, 7), grid=(3, 2), tile=(2, 2)),
    gl.GridLayout((5, 7), grid=(3, 2), tile=(4, 2)),
    gl.GridLayout((5, 7), grid=(2, 2)),
)

def one(*ways):
    return ways[RANK]


x = gl.put(a, small, device)
changed = a.copy()
changed[2, 6] += RANK
case("data", lambda: gl.put(changed, small, device))
case("data, unchecked", lambda: gl.put(changed, small, device, check=False))
bits = np.array([1.0, np.nan], np.float32)
bits.view(np.uint32)[1] += RANK
case("bits", lambda: gl.put(bits, gl.GridLayout((2,), grid=(2,)), device))
case("array", lambda: gl.put(jnp.asarray(changed), small, device))
much = np.zeros(elements.MOST_BYTES + 1, np.int8)
much[-1] = RANK
most = gl.GridLayout(much.shape, "int8", grid=(4,))
case("much data", lambda: gl.put(much, most, device))
case("much data, unchecked", lambda: gl.put(much, most, device, check=False))
case("much data, checked", lambda: gl.put(much, most, device, check=True))
case("tile", lambda: gl.put(a, one(small, large), device))
turned = gl.GridLayout((5, 7), linear="(d0, d1) -> (d1, d0)", grid=(2, 3))
case("map", lambda: gl.put(a, one(gl.GridLayout((5, 7), grid=(2, 3)), turned), device))
case("oob", lambda: gl.put(a, one(small, small.with_oob(0)), device))
case("mesh", lambda: gl.put(a, small, one(device, gl.DeviceGrid((4, 1)))))
folded = gl.DeviceGrid((2, 2), core_map="(d0, d1) -> (d1, d0, 0)")
case("core map", lambda: gl.put(a, plain, one(device, folded)))
numbers = one([[0, 1], [2, 3]], [[0, 2], [1, 3]])
mesh = jax.sharding.Mesh(np.array(jax.devices())[np.array(numbers)], ("x", "y"))
case("devices", lambda: gl.put(a, small, gl.DeviceGrid(mesh)))
case("shape on one", lambda: gl.put(one(a, a[1:]), small, device))
case("shape on both", lambda: gl.put(a[1:], small, device))
filled = np.full(small.physical_shape, RANK, np.float32)
case("physical", lambda: gl.from_physical(filled, small, device))
case("target", lambda: gl.relayout(x, one(plain, large)))
case("function", lambda: gl.on_grid(one(jnp.sin, jnp.cos))(x))
scale, table = 3.0 + RANK, np.full(7, RANK, np.float32)
case("number inside", lambda: gl.on_grid(lambda x: x * scale)(x))
case("array inside", lambda: gl.on_grid(lambda x: x * table)(x))
case("algorithm", lambda: gl.on_grid(lambda x: x @ x.T, algorithm=one("gathered", "ring"))(x))
case("tracing on one", lambda: gl.on_grid(lambda x: x @ one(x, x.T))(x))
case("operator", lambda: one(lambda: x * x, lambda: x - x)())
case("kernel", lambda: gl.map_shards(lambda s: s * (2 + RANK), x, out=small))
case("out", lambda: gl.map_shards(lambda s: s, x, out=one(small, [small])))
case("calls", lambda: one(lambda: gl.put(a, large, device), lambda: x + x)())

# All is well after each of them, and what was agreed on is not asked again.
np.testing.assert_array_equal(np.asarray(x), a)
scaled = gl.on_grid(lambda x: x * 2)
kernel = lambda shard: gl.cores.psum(shard, 0)
for again in (False, True):
    before = len(exchanges)
    moved = gl.relayout(x, plain)
    np.testing.assert_array_equal(np.asarray(moved), a)
    np.testing.assert_array_equal(np.asarray(scaled(moved)), a * 2)
    gl.map_shards(kernel, moved, out=plain)
    gl.put(a, small, device, check=False)
    assert (len(exchanges) == before) == again
before = len(exchanges)
gl.put(a, small, device)
assert len(exchanges) == before + 1
# A program of the user's own is JAX's affair.
jitted = jax.jit(lambda x: gl.relayout(scaled(x), large))(x)
assert len(exchanges) == before + 1
np.testing.assert_array_equal(np.asarray(jitted), a * 2)

# A device grid of one process has none to agree with, and the other process no part of it.
own = gl.DeviceGrid(jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",)))
before = len(exchanges)
part = gl.put(a + RANK, small, own)
assert len(exchanges) == before
assert len(part.storage.addressable_shards) == one(2, 0)

# Both agreed on these before, so nobody asks: they are told when they next do.
gl.put(a, plain, device)
one(lambda: gl.put(a, small, device, check=False), lambda: gl.put(a, plain, device, check=False))()
case("before", lambda: gl.put(a, large, device))
shifted = gl.on_grid(lambda x: x + 1)
for _ in range(3):
    scaled(moved)
    shifted(moved)
gl.put(a, small, device)
for _ in range(2):
    scaled(moved)
one(scaled, shifted)(moved)
case("functions before", lambda: gl.put(a, large, device))
print(json.dumps(told), flush=True)
"""


@pytest.fixture(scope="module")
def told():
    """What each of two processes was told, case by case."""
    found = []
    for ended in run_together(CASES + DIFFERING, count=2, devices=2):
        assert ended.code == 0, ended.out[-2000:] + ended.err[-3000:]
        found.append(json.loads(ended.out.splitlines()[-1]))
    return found


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("data", ["gl.put", "process 0: data[2, 6] = 20.0", "process 1: data[2, 6] = 21.0"]),
        ("bits", ["data[1] = nan (bytes 0000c07f)", "data[1] = nan (bytes 0100c07f)"]),
        ("array", ["process 0: data[2, 6] = 20.0", "process 1: data[2, 6] = 21.0"]),
        ("much data", ["data[16777216] = 0", "data[16777216] = 1"]),
        ("much data, checked", ["data[16777216] = 0", "data[16777216] = 1"]),
        ("tile", ["process 0: layout: GridLayout", "tile=(2, 2)", "tile=(4, 2)"]),
        ("map", ["linear='(d0, d1) -> (d1, d0)'"]),
        ("oob", ["process 1: layout: ", "oob='zero'"]),
        ("mesh", ["process 0: on DeviceGrid(x=2, y=2", "process 1: on DeviceGrid(x=4, y=1"]),
        ("core map", ["core_map='(d0, d1) -> (d1, d0, 0)'"]),
        ("devices", ["process 0: devices 0 1 ", "process 1: devices 0 2"]),
        ("physical", ["gl.from_physical", "process 1: data[0, 0, 0, 0, 0, 0] = 1.0"]),
        ("target", ["gl.relayout", "process 0: to: GridLayout((5, 7), 'float32', grid=(2, 2))"]),
        ("function", ["process 0: on_grid(sin); process 1: on_grid(cos)"]),
        ("number inside", ["mul a 3.0:f32[]", "mul a 4.0:f32[]"]),
        ("array inside", ["process 0: constant float32[7] of digest"]),
        ("algorithm", ["algorithm gathered", "algorithm ring"]),
        ("operator", ["process 0: on_grid(multiply); process 1: on_grid(subtract)"]),
        ("kernel", ["gl.map_shards", "2.0:f32[]", "3.0:f32[]"]),
        ("calls", ["process 0: gl.put; process 1: on_grid(add)"]),
        ("before", ["earlier call 2: gl.put", "grid=(2, 2)"]),
        ("functions before", ["process 0: earlier call 4: on_grid(<lambda>)", "process 1: "]),
    ],
)
def test_all_processes_are_told_the_first_difference(told, name, words):
    zero, one = (each[name] for each in told)
    # Each says which call of its own it was, and all the rest alike.
    assert zero.split(": the processes differ")[1] == one.split(": the processes differ")[1]
    for word in words:
        assert word in zero


@pytest.mark.parametrize("name", ["data, unchecked", "much data, unchecked"])
def test_what_is_not_compared(told, name):
    assert [each[name] for each in told] == ["nothing", "nothing"]


def test_an_error_in_one_process_is_told_to_the_others(told):
    zero, one = (each["shape on one"] for each in told)
    assert one.startswith("the array has shape (4, 7)")
    assert zero.startswith("gl.put failed elsewhere")
    assert one in zero
    zero, one = (each["tracing on one"] for each in told)
    assert zero.startswith("TypeError: dot_general")
    assert one.startswith("on_grid(<lambda>) failed elsewhere")
    zero, one = (each["out"] for each in told)
    assert zero.startswith("gl.map_shards failed elsewhere")
    assert one.startswith("map_shards: the function returns")
    assert all(each["shape on both"].startswith("the array has shape") for each in told)


# The other process is busy with something else for longer than this one waits.
ALONE = """
import time
from pathlib import Path

device = gl.DeviceGrid((2, 2))
a, other = np.ones((5, 7), np.float32), gl.GridLayout((5, 7), grid=(2, 2))
layout = gl.GridLayout((5, 7), grid=(3, 2), tile=(2, 2))
x = gl.put(a, layout, device)
done = Path(os.environ["DONE"])
os.environ["GRIDLAYOUT_AGREEMENT_SECONDS"] = "3"
if RANK == 1:
    began = time.monotonic()
    for target in (other, other, gl.GridLayout((5, 6))):
        try:
            gl.relayout(x, target)
        except gl.LayoutError as error:
            print(error, flush=True)
    assert time.monotonic() - began < 60
    done.touch()
else:
    gl.put(a, layout, device, check=False)
    while not done.exists():
        time.sleep(0.1)
os._exit(0)  # JAX would wait for the other process
"""


def test_a_process_that_is_left_alone_says_so(tmp_path):
    zero, one = run_together(ALONE, count=2, devices=2, DONE=str(tmp_path / "done"))
    assert (zero.code, one.code) == (0, 0), zero.err[-2000:] + one.err[-2000:]
    first, second, third = one.out.splitlines()[-3:]
    assert "gl.relayout: process 1 asked process 0" in first
    assert "none within 3 seconds" in first
    assert "lost each other in gl.relayout" in second
    assert "relayout keeps shape and dtype" in third


# One process does what both agreed on before, in which it needs the other's data.
ELSEWHERE = """
device = gl.DeviceGrid((4,))
rows, columns = gl.GridLayout((8, 8), grid=(8, 1)), gl.GridLayout((8, 8), grid=(1, 8))
x = gl.put(np.ones((8, 8), np.float32), rows, device)
gl.relayout(x, columns).block_until_ready()
if str(RANK) == os.environ["ASKS"]:
    columns = gl.GridLayout((8, 8), grid=(1, 4))
os.environ["GRIDLAYOUT_AGREEMENT_SECONDS"] = "3"
gl.relayout(x, columns).block_until_ready()
print("went on", flush=True)
"""


@pytest.mark.all_cases
@pytest.mark.parametrize("asks", [0, 1])
def test_no_process_waits_for_ever(asks):
    found = run_together(ELSEWHERE, count=2, devices=2, ASKS=str(asks))
    assert f"gl.relayout: process {asks} asked process {1 - asks}" in found[asks].err
    assert found[asks].code == 1
    # JAX ends the other, whose program can't go on.
    assert found[1 - asks].code != 0
    assert not any("went on" in each.out for each in found)


# The first two processes have the device grid between them; the third calls what they call.
LEFT_OUT = """
import json

device = gl.DeviceGrid((2, 2))
assert device.processes == (0, 1)
a = np.arange(35, dtype=np.float32).reshape(5, 7)
layout, other = gl.GridLayout((5, 7), grid=(3, 2), tile=(2, 2)), gl.GridLayout((5, 7), grid=(2, 2))
x = gl.put(a, layout, device)
moved = gl.relayout(x, other)
again = gl.put(jnp.asarray(a), other, device)
total = gl.numpy.sum(moved * 2)
doubled = gl.map_shards(lambda shard: shard * 2, x, out=layout)
given = gl.from_physical(np.zeros(other.physical_shape, np.float32), other, device)
assert len({repr(y) for y in (x, doubled)}) == 1
assert all(
    len(y.storage.addressable_shards) == (0 if RANK == 2 else 2)
    for y in (x, moved, again, doubled, given)
)
if RANK < 2:
    np.testing.assert_array_equal(np.asarray(moved), a)
    np.testing.assert_array_equal(np.asarray(doubled), a * 2)
    assert float(total) == a.sum() * 2
    message = ""
else:
    try:
        np.asarray(x)
    except gl.LayoutError as error:
        message = str(error)
try:
    gl.put(a + RANK, layout, device)
    print(json.dumps([message, "nothing"]), flush=True)
except gl.LayoutError as error:
    print(json.dumps([message, str(error)]), flush=True)
"""


def test_a_process_without_devices_of_the_mesh():
    found = run_together(LEFT_OUT, count=3, devices=2)
    assert [each.code for each in found] == [0] * 3, "".join(each.err[-2000:] for each in found)
    outside, told = zip(*(json.loads(each.out.splitlines()[-1]) for each in found), strict=True)
    assert "process 2 has no part of GridArray(float32[5,7], grid 3x2" in outside[2]
    assert "those of processes 0, 1" in outside[2]
    assert "process 0: data[0, 0] = 0.0 (bytes 00000000); process 1: data[0, 0] = 1.0" in told[0]
    assert told[0] == told[1]
    assert told[2] == "nothing"


# -- the search for the first difference, between threads ------------------------------------------


class Threads:
    """So many groups of one program, which hear each other in memory."""

    def __init__(self, count):
        self.barrier, self.said = threading.Barrier(count), [None] * count
        self.groups = [self.group(rank) for rank in range(count)]

    def group(self, rank):
        def exchanged(what, message, seconds):
            self.said[rank] = message
            self.barrier.wait(30)
            heard = [messages.Message.unpacked(m.packed().tobytes()) for m in self.said]
            self.barrier.wait(30)
            return heard

        group = Group(range(len(self.said)), table=None)
        group.exchanged = exchanged
        return group

    def run(self, fn):
        """What each was told by `fn` of its rank and group, or None."""

        def one(rank):
            try:
                fn(rank, self.groups[rank])
            except gl.LayoutError as error:
                return str(error)

        with ThreadPoolExecutor(len(self.groups)) as pool:
            return list(pool.map(one, range(len(self.groups))))

    def agree(self, texts, data=None):
        def one(rank, group):
            text = messages.Lines(texts[rank])
            given = None if data is None else Elements(data[rank])
            group.agree("call", text.prefix(None), lambda: text, given)
            group.close(None, text.prefix(None), None)

        return self.run(one)


texts = st.lists(st.sampled_from(["a", "b", "", "é" * 900]), max_size=6)


@given(st.lists(texts, min_size=2, max_size=4))
def test_the_first_line_that_differs_is_named(texts):
    threads = Threads(len(texts))
    told = threads.agree(texts)
    if all(text == texts[0] for text in texts):
        assert told == [None] * len(texts)
        assert [len(group.agreed) for group in threads.groups] == [1] * len(texts)
        return
    lines = [[*messages.Lines(text).lines, "data compared: none", "no more"] for text in texts]
    first = next(k for k in range(99) if len({tuple(text[: k + 1]) for text in lines}) > 1)
    assert len(set(told)) == 1
    for rank, text in enumerate(lines):
        shown = text[first].encode()[:941].decode(errors="replace")
        assert f": {shown}" in told[0], (rank, shown)
    assert not any(group.agreed for group in threads.groups)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.data())
def test_the_first_element_that_differs_is_named(values, draw):
    other = list(values)
    at = draw.draw(st.integers(0, len(values) - 1))
    other[at] += 5
    told = Threads(2).agree([["same"]] * 2, [np.array(values, np.int8), np.array(other, np.int8)])
    for rank, number in enumerate((values[at], other[at])):
        assert f"process {rank}: data[{at}] = {number} (bytes 0{number})" in told[0]
    assert told[0] == told[1]


def test_calls_beyond_those_that_are_listed_differ_too():
    threads = Threads(2)
    assert threads.agree([["a"], ["a"]]) == threads.agree([["b"], ["b"]]) == [None, None]
    assert threads.agree([["a"], ["b"]]) == [None, None]  # both agreed on before: nobody asks
    for _ in range(100):
        threads.agree([["a"], ["a"]])
    told = threads.agree([["c"], ["c"]])
    assert "process 0: 102 earlier calls, " in told[0]
    assert told[0] == told[1]
    assert threads.agree([["c"], ["c"]]) == [None, None]


def test_a_failure_is_told_and_does_no_harm():
    threads = Threads(3)

    def fails(rank, group):
        if rank:
            text = messages.Lines(["a"])
            group.agree("call", text.prefix(None), lambda: text)
        else:
            group.report("call", "ValueError: too bad")

    told = threads.run(fails)
    assert told[0] is None
    assert "failed elsewhere, so it is not done here: process 0: ValueError: too bad" in told[1]
    assert told[1] == told[2]
    assert threads.agree([["a"]] * 3) == [None] * 3


# -- one process -----------------------------------------------------------------------------------


def test_one_process_says_nothing():
    device = gl.DeviceGrid((2, 2))
    call = agreement.joint_call("gl.put", device)
    assert call is agreement.joint_call("gl.relayout", device)
    with call:
        call.agree(0, pytest.fail, data=pytest.fail)


def test_a_device_grid_without_devices_is_of_no_process():
    import jax

    assert gl.DeviceGrid(jax.sharding.AbstractMesh((2,), ("x",))).processes == ()
    assert gl.DeviceGrid((2,)).processes == (0,)


@pytest.mark.parametrize("check", [1, "yes", np.zeros(2)])
def test_check_is_a_flag(check):
    layout = gl.GridLayout((2,), "int32", grid=(2,))
    with pytest.raises(gl.LayoutError, match=r"check .* must be True or False"):
        gl.put([1, 2], layout, gl.DeviceGrid((2,)), check=check)
    assert gl.put([1, 2], layout, gl.DeviceGrid((2,)), check=True).shape == (2,)


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "inf", "nan"])
def test_seconds_are_a_number_above_0(monkeypatch, seconds):
    monkeypatch.setenv("GRIDLAYOUT_AGREEMENT_SECONDS", seconds)
    with pytest.raises(gl.LayoutError, match="GRIDLAYOUT_AGREEMENT_SECONDS"):
        seconds_to_wait()


@pytest.mark.parametrize("first", ["{'b', 'a'} at 0x7f12", "{'a', 'b'} at 0xffff0"])
def test_text_says_the_same_in_every_process(first):
    assert common_text(first) == "{'a', 'b'} at 0x..."


def test_other_bytes_are_no_message():
    message = messages.Message(1, b"t" * 32, b"d" * 32, 7, "é" * 800)
    packed = message.packed().tobytes()
    assert len(packed) == 1024
    found = messages.Message.unpacked(packed)
    assert found[:4] == message[:4]
    assert message.words.startswith(found.words.rstrip("\N{REPLACEMENT CHARACTER}"))
    assert messages.Message.unpacked(bytes(1024)) is None


def test_words_that_are_no_unicode_are_sent():
    message = messages.Message(messages.FAILED, words="no file \udc80")
    found = messages.Message.unpacked(message.packed().tobytes())
    assert found._replace(words="") == message._replace(text=bytes(32), data=bytes(32), words="")
    assert found.words == "no file ?"
