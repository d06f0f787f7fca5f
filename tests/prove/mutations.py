"""Small faults in the library, each with a test that finds it.

A fault is put into a copy of the tree, never into the tree itself. Its test must pass there without
the fault and fail with it. Tests run in forks of one process, which has imported JAX already.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from prove.mutations_table import MUTATIONS
from prove.outcome import Outcome
from prove.state import ROOT

SECONDS = 600  # of a test, on a machine that is busy with other things
NOT_COPIED = shutil.ignore_patterns(".*", "build", "dist", "__pycache__", "*.egg-info", "shared")
PASSED, FAILED, CRASHED = 0, 1, 99  # the first two are pytest's exit codes


def run(part, start, count):
    """The faults of these rows of the table."""
    outcome = Outcome()
    with copied() as tree:
        passes = cache(lambda test: code_of(tree, test) == PASSED)
        for k, mutation in list(enumerate(MUTATIONS))[start : start + count]:
            if (problem := survives(mutation, tree, passes)) is None:
                outcome.cases += 1
                outcome.judged["its test"] += 1
            else:
                repeat = f"python -m tests.prove mutations --seed {k}"
                outcome.failures.append({"what": f"{mutation}: {problem}", "repeat": repeat})
    return outcome


def survives(mutation, tree, passes):
    """Why a fault is not found by its test, or None if it is."""
    path = tree / mutation.path
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        return f"the text is there {text.count(mutation.old)} times"
    if not passes(mutation.test):
        return f"{mutation.test} does not pass without the fault"
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        code = code_of(tree, mutation.test)
    finally:
        path.write_text(text, encoding="utf-8")
    return None if code == FAILED else f"{mutation.test} ends with code {code}, and does not fail"


@contextmanager
def copied():
    """A copy of the tree in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="gridlayout-mutations-") as folder:
        tree = Path(folder, "tree")
        shutil.copytree(ROOT, tree, symlinks=True, ignore=NOT_COPIED)
        yield tree


def code_of(tree, test):
    """The exit code of a test in a tree; -1 if it takes too long."""
    import jax
    import jax.numpy  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401

    assert "gridlayout" not in sys.modules, "a fork would have the library from this tree"
    child = os.fork()
    if child == 0:
        code = CRASHED
        try:
            code = _in_child(tree, test)
        finally:  # whatever happens, the child does not go on as its parent would
            os._exit(code)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def _in_child(tree, test):
    import pytest

    os.chdir(tree)
    mine = {str(ROOT), str(ROOT / "tests"), ""}
    sys.path[:] = [str(tree), str(tree / "tests"), *(p for p in sys.path if p not in mine)]
    sys.dont_write_bytecode = True
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    node, _, words = test.partition(" -k ")
    options = ["-q", "-n0", "-x", "-p", "no:cacheprovider", f"--rootdir={tree}"]
    options += ["-c", str(tree / "pyproject.toml"), *(["-k", words] if words else [])]
    return int(pytest.main([*options, node]))
