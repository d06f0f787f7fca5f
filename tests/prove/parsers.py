"""Every reader of text and files, given what nobody wrote: a result, or a `LayoutError`.

atheris (libFuzzer) finds inputs that reach new code, from the texts of `seeds`. Where it is not
installed, the same texts are changed at random, which reaches less. Each input has limits of time
and memory. The inputs that fail are kept in `build/prove/parsers`. First, each reader is given two
texts of each kind of `growing_texts`: what it does must be in proportion to the length.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

from prove.outcome import Outcome
from prove.state import ROOT

SECONDS = 45  # of a reader, at most
SECONDS_OF_ONE = 20  # of one input, on a machine that is busy with other things
MEGABYTES = 3072  # of the process
KEPT = ROOT / "build" / "prove" / "parsers"


def run(part, start, count):
    """So many inputs of a reader, or as many as it reads in the time."""
    from prove.growth import excess
    from prove.parsers_read import GROWING, READERS, seeds

    outcome = Outcome()
    for text_of in GROWING.get(part.name, ()) if start == 0 else ():
        outcome.cases += 1
        outcome.judged["cost by length"] += 1
        if why := excess(lambda given: READERS[part.name](given.encode()), text_of):
            outcome.failures.append({"what": f"{part.name}, {text_of.__name__}: {why}"})
    folder = KEPT / part.name
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for k, data in enumerate(seeds(part.name)):
        (corpus / f"seed{k}").write_bytes(data)
    guided = find_spec("atheris") is not None
    if not guided:
        outcome.missing["atheris"] = "ModuleNotFoundError"
    words = ["prove.parsers_fuzz", part.name, str(count), str(start), str(folder)]
    paths = f"{ROOT}{os.pathsep}{ROOT / 'tests'}"
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        errors="replace",
    )
    said = done.stdout + done.stderr
    found = re.findall(r"(?:number_of_executed_units:|read) +(\d+)", said)
    if done.returncode != 0 or not found:
        what = f"{part.name}: code {done.returncode}\n{said[-4000:]}"
        outcome.failures.append({"what": what})
        return outcome
    outcome.cases += int(found[-1])
    outcome.judged["atheris" if guided else "own mutations"] += int(found[-1])
    return outcome
