"""Threads of one process may call anything: what one of them gets does not depend on the others.

Each thread draws calls at random, of functions that all share and of its own, with the caches
emptied and limited meanwhile.
"""

import random
import subprocess
import sys
import time
import traceback
from threading import Barrier, Event, Thread

import jax
import jax.numpy as jnp
import numpy as np
import tiers
from processes import ROOT

import gridlayout as gl

COUNT = len(jax.devices())
DEVICE = gl.DeviceGrid((2, COUNT // 2) if COUNT % 2 == 0 else (COUNT,))
OTHER = gl.DeviceGrid((max(COUNT // 2, 1),))
SHAPES = ((5, 7), (12, 9), (33, 20), (16, 16))
GRIDS = ((1, 1), (2, 4), (3, 2), (4, 4), (2, 3))
TILES = (None, (2, 2), (8, 8), (4, 16))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# Functions that all threads lift and call, and what NumPy says of them.
SHARED = {
    "tanh": (gl.on_grid(lambda x: jnp.tanh(x).sum(axis=1)), lambda x: np.tanh(x).sum(axis=1)),
    "product": (gl.on_grid(lambda x: x @ x.T), lambda x: x @ x.T),
    "softmax": (gl.on_grid(jax.nn.softmax), softmax),
    "sort": (gl.on_grid(lambda x: jnp.sort(x, axis=0)), lambda x: np.sort(x, axis=0)),
}


class Calls:
    """The calls of one thread, drawn from a seed."""

    def __init__(self, seed):
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.held = []  # functions that stay, as in a service

    def layout(self, shape):
        rng = self.rng
        return gl.GridLayout(shape, grid=rng.choice(GRIDS), tile=rng.choice(TILES))

    def drawn(self):
        a = self.numbers.normal(size=self.rng.choice(SHAPES)).astype("f4")
        return a, gl.put(a, self.layout(a.shape), DEVICE)

    def shared(self):
        (lifted, plain), (a, x) = SHARED[self.rng.choice(list(SHARED))], self.drawn()
        close(lifted(x), plain(a))

    def own(self):
        c, (a, x) = self.rng.random(), self.drawn()
        self.held.append(gl.on_grid(lambda x: jnp.sin(x) * c + x.max()))
        close(self.held[-1](x), np.sin(a) * c + a.max())

    def lifts(self):
        for c in range(50):
            self.held.append(gl.on_grid(lambda x, c=c: x + c))

    def relayout(self):
        a, x = self.drawn()
        where = self.rng.choice((DEVICE, OTHER))
        close(gl.relayout(x, self.layout(a.shape), where), a)

    def operators(self):
        (a, x), b = self.drawn(), np.float32(self.rng.random())
        close(x * 3 + x - b, a * 3 + a - b)
        close(x[1:3], a[1:3])

    def gradient(self):
        a, x = self.drawn()
        lifted, _ = SHARED["tanh"]
        close(jax.grad(lambda x: lifted(x).sum())(x), 1 - np.tanh(a) ** 2)

    def jitted(self):
        a, x = self.drawn()
        close(jax.jit(lambda x: SHARED["softmax"][0](x) * 2)(x), softmax(a) * 2)

    def planned(self):
        a, x = self.drawn()

        def fn(x):
            return jnp.tanh(x @ x.T).sum()

        close(gl.on_grid(fn, policy=gl.plan(fn, x, seconds=1))(x), np.tanh(a @ a.T).sum())

    def described(self):
        _, x = self.drawn()
        assert str(SHARED["softmax"][0].report(x))
        assert gl.parse(str(x.layout)) == x.layout
        assert x.layout.draw().svg

    def caches(self):
        what = self.rng.randrange(3)
        if what == 0:
            gl.caches.clear()
        elif what == 1:
            gl.caches.limit(self.rng.choice((1 << 20, 8 << 20, 1 << 30)))
        assert gl.caches.nbytes() >= 0

    def any(self):
        kinds = [name for name in vars(Calls) if not name.startswith("_")]
        getattr(self, self.rng.choice([k for k in kinds if k not in ("any", "layout", "drawn")]))()


def close(found, wanted):
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-3, atol=1e-3)


def test_eight_threads_call_everything():
    errors, ended = [], time.monotonic() + (60 if tiers.ALL else 4)

    def work(seed):
        calls = Calls(seed)
        try:
            while time.monotonic() < ended and not errors:
                calls.any()
        except Exception:
            errors.append(f"thread {seed}\n{traceback.format_exc()}")

    before = gl.caches.limit()
    threads = [Thread(target=work, args=(seed,), daemon=True) for seed in range(8)]
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join(300)
    finally:
        gl.caches.limit(before)
    assert not errors, errors[0]
    assert not any(each.is_alive() for each in threads)


def test_the_caches_are_listed_while_functions_are_lifted():
    """A set of caches that one thread goes through while another adds to it."""
    stop, held = Event(), []

    def lift():
        while not stop.is_set():
            held.append(gl.on_grid(lambda x: x))
            del held[:-100]

    other = Thread(target=lift)
    other.start()
    try:
        for _ in range(1000):
            gl.caches.nbytes()
    finally:
        stop.set()
        other.join()


def test_equal_functions_are_shared_by_threads():
    """Bound methods are equal and short-lived: one that lives is always found."""

    class Model:
        def __call__(self, x):
            return x + 1

    model, start, errors = Model(), Barrier(8), []
    x = gl.put(np.zeros((4, 5), "f4"), gl.GridLayout((4, 5), grid=(2, 1)), DEVICE)

    def work():
        start.wait()
        try:
            for _ in range(50):
                assert np.asarray(gl.on_grid(model.__call__)(x)).sum() == 20
        except Exception as error:
            errors.append(error)

    threads = [Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors, errors


FIRST = """
import threading
import gridlayout as gl
gl.emulate_devices(2)
import numpy as np
device, found = gl.DeviceGrid((2,)), []

def lift():
    gl.on_grid

def add():
    x = gl.put(np.ones((4, 5), np.float32), gl.GridLayout((4, 5), grid=(2, 1)), device)
    found.append(float(gl.numpy.sum(x + x)))

threads = [threading.Thread(target=fn) for fn in (lift, add, add, lift)]
for each in threads:
    each.start()
for each in threads:
    each.join()
assert found == [40, 40], found
"""


def test_the_first_use_is_in_several_threads_at_once():
    """One imports the floor that gives arrays their operators, while others use these."""
    subprocess.run([sys.executable, "-c", FIRST], check=True, cwd=ROOT, timeout=240)
