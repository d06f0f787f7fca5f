"""Every script in examples/ runs as a user runs it: a process of its own, warnings errors."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tiers

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"

# script: what its output has to have, as regular expressions of whole lines.
PRINTED = {
    "embeddings.py": [
        r"gather .* by all-reduce over y \(4 devices\)",
        r"a table of 640,384 B; a device receives 3\d,\d{3} B a step",
        r"step 4  loss 0\.5\d+",
        r"equal to plain JAX: losses and the table",
    ],
    "heat.py": [
        r"iterations .* 8 iterations per halo exchange .*",
        r"GridArray\(float32\[509,515\], grid 2x4, on 2x4 devices\), 0\.\d+% of it padding",
        r"equal to plain JAX",
    ],
    "kernel.py": [
        r"GridArray\(float32\[50,37\], grid 4x2, on 2x2 devices\)",
        r"hottest, as every core knows it: \[[0-9.]+\]",
        r"equal to plain JAX",
    ],
    "plan_chip.py": [
        r"plan of mlp: .*, bound .*, gap 0\.0% \(.*\)",
        r"dot_general:0, with everything else as planned, the program takes:",
        r"with x on 8x8 cores",
        r"x: .*grid=\(64, 1\).* -> .*grid=\(8, 8\).*",
    ],
    "run_dump.py": [
        r"most waste: %0 on line 10, 175,280 bytes of padding",
        r"%2 +l1 +on 35 cores",
        r"equal to jax\.nn\.softmax",
        r" *14  %2\[7x130x70\] l1 height_sharded 35x1 = softmax\(%1\) .*",
    ],
    "train_flax.py": [
        r"step 9  loss on the grid 1\.29.*  plain Flax 1\.29.*",
        r"12 arrays on cores: .*",
        r"equal to plain Flax: losses and all parameters",
    ],
}


def run(name, *arguments, cwd):
    """The script's exit code and output; it finds this checkout, from a folder that is not it."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-2000:]
    return done.returncode, done.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize("name", PRINTED)
def test_examples_run_and_print(name, tmp_path):
    code, out = run(name, cwd=tmp_path)
    assert code == 0
    for line in PRINTED[name]:
        assert re.search(f"^{line}$", out, re.MULTILINE), f"no line {line!r} in:\n{out}"
    assert not list(tmp_path.iterdir()), "the example left a file behind"


# `supervisor.py` is run by test_faults.py.
@pytest.mark.skipif(not tiers.ALL, reason="three trainings; with --all-cases")
def test_a_killed_training_goes_on_with_the_same_losses(tmp_path):
    def losses(out):
        return dict(re.findall(r"^step (\d+)  loss (.*)$", out, re.MULTILINE))

    steps = ["--steps", 12, "--every", 4]
    code, whole = run("restart.py", tmp_path / "whole", *steps, cwd=tmp_path)
    assert code == 0
    assert list(losses(whole)) == [str(step) for step in range(12)]

    code, killed = run("restart.py", tmp_path / "killed", *steps, "--kill-at", 9, cwd=tmp_path)
    assert code == -signal.SIGKILL
    code, again = run("restart.py", tmp_path / "killed", *steps, cwd=tmp_path)
    assert code == 0
    assert again.startswith("restarted after step 7\n")
    assert list(losses(again)) == ["8", "9", "10", "11"]
    # `repr` of a float has all its bits.
    assert losses(killed) | losses(again) == losses(whole)
    assert losses(killed)["9"] == losses(again)["9"]


def test_every_example_is_run_listed_and_short():
    scripts = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert scripts == sorted([*PRINTED, "restart.py", "supervisor.py"])
    page = (EXAMPLES / "README.md").read_text()
    assert re.findall(r"^\* \[`(.*?)`\]\(\1\): ", page, re.MULTILINE) == scripts
    shown = (ROOT / "docs" / "examples.md").read_text()
    assert re.findall(r"^```{literalinclude} \.\./examples/(.*)$", shown, re.MULTILINE) == scripts
    for name in scripts:
        lines = (EXAMPLES / name).read_text().splitlines()
        assert len(lines) < 120
        assert f"python examples/{name}" in "\n".join(lines[:8])
