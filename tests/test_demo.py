"""The demo: a whole training step on the grid, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gridlayout", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        timeout=300,
    )


def test_demo_learns_and_agrees_with_plain_jax() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("optax")
    done = run("demo")
    assert done.returncode == 0, done.stderr[-2000:]
    out = done.stdout
    accuracy = float(out.split("test accuracy ")[1].split("%")[0])
    assert accuracy >= 95
    apart = float(out.split("plain JAX: ")[1].split(" apart")[0])
    assert apart <= 1e-3
    assert " 0 fallbacks" in out
    # Every tensor is on the 4x4 grid, in 32x32 tiles.
    layouts = [line for line in out.splitlines() if "#ttcore.metal_layout" in line]
    assert len(layouts) >= 18
    assert all("<4x4>" in line and "tile<32x32" in line for line in layouts)
    for word in ("data.images", "weights.w1", "activations.hidden", "gradient.w2", "optimizer"):
        assert word in out
    assert "100%" in done.stderr  # the progress bar


def test_demo_that_has_not_learned_says_so() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("optax")
    # What it fails for does not depend on how well it is compiled.
    done = run("demo", "--steps", "1", JAX_DISABLE_MOST_OPTIMIZATIONS="1")
    assert done.returncode == 1
    assert "FAILED" in done.stdout


def test_bad_arguments() -> None:
    assert run("demo", "--steps", "0").returncode == 2
    assert run("dance").returncode == 2
