"""`make prove` in small: each claim on a few cases, the table, and a run that goes on."""

import json
import subprocess
import sys
from dataclasses import replace

import jax
import numpy as np
import pytest
from prove import layouts, maps, mutations, page, primitives, programs, running
from prove.claims import CLAIMS, Claim, Part
from prove.mutations_table import MUTATIONS, Mutation
from prove.outcome import Outcome
from prove.parsers_read import READERS, SEEDS, seeds
from prove.state import ROOT, State

# Formats are moved as any type here, also those that they are not made for.
pytestmark = pytest.mark.filterwarnings("ignore:.*:gridlayout.LayoutWarning")
FEW = Claim("maps", "maps are what they are", "maps", (Part("random", 20, 10, 1.0),))


@pytest.mark.parametrize("part", CLAIMS["maps"].parts, ids=lambda part: part.name)
def test_maps(part):
    outcome = maps.run(part, 3, 2)
    assert not outcome.failures
    assert outcome.cases == 2
    assert outcome.judged["isl (islpy)"] == outcome.judged["MLIR (jaxlib)"] == 2


@pytest.mark.parametrize("name", ["document", "even", "xla", "sophon"])
def test_layouts(name):
    outcome = layouts.run(CLAIMS["layouts"].part(name), 3, 3)
    assert not outcome.failures
    assert outcome.cases == 3
    assert outcome.judged["the document's reading"] == outcome.judged["the gather"] == 3
    assert outcome.judged["MLIR (jaxlib)"] == 3


def test_a_layout_that_is_elsewhere_is_told(monkeypatch):
    monkeypatch.setattr(layouts, "pack_host", lambda x, layout: np.zeros(layout.physical_shape))
    (failure,) = layouts.run(CLAIMS["layouts"].part("mli"), 0, 1).failures
    assert "layout: mli.tensor(" in failure["what"]


def test_programs_and_harnesses():
    devices = max(n for n in programs.MESHES if n <= len(jax.devices()))
    part = replace(CLAIMS["programs"].parts[0], devices=devices)
    assert programs.run(part, 1, 1).cases == 1
    found = primitives.run(CLAIMS["primitives"].parts[0], 0, 1)
    assert (found.cases, found.failures) == (1, [])


def test_the_command_repeats_a_case(tmp_path):
    words = "-m tests.prove maps --part random --seed 3 --count 2 --result"
    result = tmp_path / "result.json"
    subprocess.run([sys.executable, *words.split(), str(result)], cwd=ROOT, check=True)
    assert Outcome.of(json.loads(result.read_text())).cases == 2


def test_a_run_is_resumed_and_its_table_counts_what_ran(tmp_path, monkeypatch):
    started = []

    class Done(running.Running):
        def __post_init__(self):
            started.append(self.chunk.span)

        def ended(self):
            return True

        def outcome(self):
            if len(started) == 2:
                return Outcome(failures=[{"what": "no such map", "repeat": self.chunk.command}])
            return Outcome(10, {"brute force": 10}, {"TVM (IndexMap)": "no"}, {"hard": 1})

    monkeypatch.setattr(running, "Running", Done)
    said, path = [], tmp_path / "state.json"
    assert running.run([FEW], State(path), 1, say=said.append)
    assert started == [(0, 10), (10, 10)]
    text, failed = page.written([FEW], State(path))
    assert failed == 1
    assert "python -m tests.prove maps --part random --seed 10 --count 10" in "".join(said)
    # What failed is run again; what did not, is not.
    assert running.run([FEW], State(path), 1, say=said.append)
    assert started[2:] == [(10, 10)]
    text, failed = page.written([FEW], State(path))
    assert failed == 0
    assert "| maps are what they are | 20 maps | brute force: 20; TVM (IndexMap): not" in text
    assert "Not all cases have been run." not in text
    # Other sources: nothing that ran before counts.
    state = State(path)
    state.digests["maps"] = "other"
    text, _ = page.written([FEW], state)
    assert "| 0 maps so far, of 20 |" in text
    assert "Not all cases have been run." in text


def test_a_process_that_crashes_or_hangs_is_a_disagreement(tmp_path):
    claim = Claim("maps", "", "maps", (Part("random", 1, 1, 1.0),), limit=0.01)
    late = running.Running(running.Chunk(claim, claim.parts[0], (0, 1)), tmp_path)
    while not late.ended():
        pass
    (failure,) = late.outcome().failures
    assert "not done within" in failure["what"]
    assert failure["repeat"] == "python -m tests.prove maps --part random --seed 0 --count 1"


def test_parts_are_cut_into_chunks():
    assert Part("", 25, 10, 1.0).chunks == [(0, 10), (10, 10), (20, 5)]
    assert Part("", 25, 10, 1.0).scaled(0.1).chunks == [(0, 3)]
    assert sum(part.count for part in CLAIMS["layouts"].parts) == 20_000
    assert sum(part.count for part in CLAIMS["maps"].parts) == 20_000
    assert sum(part.count for part in CLAIMS["programs"].parts) == 2_000


def test_every_fault_can_be_put_in_and_has_a_test():
    assert len(MUTATIONS) >= 60
    for mutation in MUTATIONS:
        assert (ROOT / mutation.path).read_text().count(mutation.old) == 1, str(mutation)
        assert mutation.new != mutation.old
        path, _, name = mutation.test.partition(" -k ")[0].partition("::")
        name = name.partition("[")[0]
        assert f"def {name}(" in (ROOT / path).read_text(), mutation.test


def test_a_fault_that_no_test_finds_is_told(tmp_path):
    path = tmp_path / "ops.py"
    path.write_text("a = 1\n")
    fault = Mutation("ops.py", "a = 1", "a = 2", "test_a")
    assert "is there 0 times" in mutations.survives(fault._replace(old="b"), tmp_path, None)
    assert "does not pass" in mutations.survives(fault, tmp_path, lambda test: False)


def test_readers_are_those_of_the_claim():
    assert {part.name for part in CLAIMS["parsers"].parts} == set(READERS) == set(SEEDS)
    for name in ("affine_map", "layout_document", "layout_xla", "safetensors", "checkpoint"):
        for data in seeds(name):
            READERS[name](data)
