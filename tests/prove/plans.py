"""What is planned and lowered for a call depends on its arguments alone.

Random programs with their derivatives, on meshes of devices and on one without. Each is planned
with caches that are full, empty, or too small for one program, after other programs, and by a
process that hashes texts in another way. The report and the lowered program are always the same.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from difflib import unified_diff
from hashlib import sha256

import jax
import numpy as np
from jax.sharding import AbstractMesh

import gridlayout as gl
from prove import devices, programs
from prove.outcome import Outcome
from prove.state import ROOT

LIMITS = (1 << 30, 1 << 20, 1)  # of the caches, in bytes
ABSTRACT = "abstract_64"
OTHERS = 10_000  # the first seed of programs that are planned in between
LINES = 20  # of a difference that is shown
MAIN = "import sys; sys.path.insert(0, 'tests'); from prove.plans import main; main(*sys.argv[1:])"


@dataclass(frozen=True)
class Call:
    """A call: what returns its function, a new one each time, and its operands without data."""

    function: object
    operands: list

    def said(self):
        """What is planned and lowered for it, as texts."""
        lifted = gl.on_grid(self.function())
        report = lifted.report(*self.operands)
        found = {"report": f"{report}\n{report.rows!r}\n{report.program.results!r}"}
        if not self.operands[0].device.is_abstract:
            found["program"] = lifted.lower(*self.operands).as_text()
        return found


def differences(call, limits=LIMITS):
    """The differences between the texts of a call at first and with caches of several sizes."""
    before, first = gl.caches.limit(), None
    try:
        for limit in limits:
            gl.caches.clear()
            gl.caches.limit(limit)
            for caches in ("empty", "full"):
                now = call.said()
                first = first or now
                if now != first:
                    yield f"{caches} caches of {limit:,} bytes: {_difference(first, now)}"
    finally:
        gl.caches.limit(before)


def _difference(first, now):
    """The first lines of the first text that differs."""
    name = next(name for name in first if first[name] != now[name])
    lines = (text[name].splitlines() for text in (first, now))
    some = list(unified_diff(*lines, "first", "now", lineterm="", n=0))[:LINES]
    return "\n".join([name, *(line[:300] for line in some)])


def drawn(part, seed):
    """A random call, inside of whose function are its derivatives, or outside of it."""
    from machines import FAST, with_latency

    from prove.programs_random import drawn as random_program

    rng = np.random.default_rng([seed, part.devices])
    program = random_program(rng)
    (arrays, layouts), device = programs.placed(program, rng, part.devices)
    if part.name == ABSTRACT:
        shapes = programs.MESHES[64]
        shape = shapes[rng.integers(len(shapes))]
        device = gl.DeviceGrid(AbstractMesh(shape, tuple("xyz"[: len(shape)])))
    if machine := (None, FAST, with_latency(1e-4))[seed % 3]:
        device = gl.DeviceGrid(device.mesh, machine=machine)
    floats = tuple(k for k, x in enumerate(program.operands) if programs.is_float(x))
    outs = jax.eval_shape(program.function, *program.operands)
    weights = [np.float32(rng.uniform(0.5, 1.5)) if programs.is_float(x) else None for x in outs]

    def function():
        return programs.everything(program.function, floats, weights)

    structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
    operands = [gl.put(x, y, device) for x, y in zip(structs, layouts, strict=True)]
    return Call(function, operands), program.source


def run(part, start, count):
    """The calls of the seeds from `start` on, planned here and in another process."""
    outcome, seeds = Outcome(), range(start, start + count)
    there = elsewhere(part, seeds)
    for seed in seeds:
        call, source = drawn(part, seed)
        found = list(differences(call))
        if digest(call.said()) != there[str(seed)]:
            found.append("another process plans or lowers something else")
        if found:
            repeat = f"python -m tests.prove plans --part {part.name} --seed {seed}"
            outcome.failures.append({"what": "\n".join([source, *found]), "repeat": repeat})
            continue
        outcome.cases += 1
        outcome.judged.update({"itself, with other caches": 1, "another process": 1})
    return outcome


def elsewhere(part, seeds):
    """Digests of what another process says of the calls: in another order, after other programs."""
    words = [part.name, str(part.devices), str(seeds.start), str(len(seeds))]
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"the other process failed: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(name, count, start, length):
    """Print the digests of calls by their seeds, as JSON."""
    from prove.claims import CLAIMS

    devices.emulate(int(count))
    part = replace(CLAIMS["plans"].part(name), devices=int(count))
    gl.caches.limit(LIMITS[1])
    found = {}
    for seed in reversed(range(int(start), int(start) + int(length))):
        drawn(part, OTHERS + seed)[0].said()
        found[seed] = digest(drawn(part, seed)[0].said())
    print(json.dumps(found))


def digest(said):
    """A digest of the texts."""
    return sha256("\n".join(said.values()).encode()).hexdigest()
