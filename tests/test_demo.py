"""The demo: a whole training step on the grid, in a process of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiers

from gridlayout.__main__ import main

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
    done = run("demo", "--full", *([] if tiers.ALL else ["--steps", "80"]))
    assert done.returncode == 0, done.stderr[-2000:]
    answer, _, tables = done.stdout.partition(" s in total\n")
    check_answer(answer + " s in total")
    # All 14 arrays are on the 4x4 grid, in 32x32 tiles; results that are smaller in smaller ones.
    layouts = [line for line in tables.splitlines() if "#ttcore.metal_layout" in line]
    assert len(layouts) >= 18
    assert sum("<4x4>" in line and "tile<32x32" in line for line in layouts) >= 14
    assert all("<4x4>" in line or "<16>" in line for line in layouts)
    for word in ("data.images", "weights.w1", "activations.hidden", "gradient.w2", "optimizer"):
        assert word in tables
    assert " 0 fallbacks" in tables
    assert "100%" in done.stderr  # the progress bar
    shares = [int(found) for found in re.findall(r"(\d+)% \d\d:\d\d", done.stderr)]
    assert shares == sorted(shares)
    # It moves while JAX starts and compiles.
    assert len({share for share in shares if share < 20}) > 3


def check_answer(text: str) -> None:
    lines = text.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert float(text.split("test accuracy ")[1].split("%")[0]) >= 95
    assert float(text.split("plain JAX: ")[1].split(" apart")[0]) <= 1e-3
    assert " 0 fallbacks" in text
    # The worst is a vector of 10 in 16 tiles.
    assert "float32[10]: 99.9%, 64.0 KiB for 40 B" in text
    assert re.search(r"better +grid .*: [\d.]+ KiB, \d+ times less", text)
    _, moves = text.split("The largest of ")
    rows = re.findall(r"^  \w+ +[\d,]+ B by [a-z-]+ over ", moves, re.MULTILINE)
    assert len(rows) == 5
    pattern = r"([\d,]+) steps per second on the grid, ([\d,]+) in plain JAX: [\d.]+ times (\w+)"
    grid, plain, word = re.search(pattern, text).groups()
    slower = int(grid.replace(",", "")) <= int(plain.replace(",", ""))
    assert word == ("slower" if slower else "faster")
    assert re.search(r"waits for \d+ collectives", text)


def test_something_is_on_the_screen_before_jax_starts() -> None:
    pytest.importorskip("tqdm")
    program = (
        "import sys; from gridlayout.__main__ import main; import gridlayout.demo.run as run; "
        "run.run = lambda steps, full: 'jax' in sys.modules or 'sklearn' in sys.modules; "
        "sys.exit(main(['demo']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gridlayout demo: ")
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.skipif(not tiers.ALL, reason="a whole training; with --all-cases")
def test_demo_that_has_not_learned_says_so() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("optax")
    # What it fails for does not depend on how well it is compiled.
    done = run("demo", "--steps", "1", JAX_DISABLE_MOST_OPTIMIZATIONS="1")
    assert done.returncode == 1
    assert "FAILED" in done.stdout
    assert "steps per second" not in done.stdout  # the only step compiles


@pytest.mark.parametrize(("accuracy", "apart"), [(0.949, 0.0), (0.99, 2e-3)])
def test_what_is_wanted_of_the_demo(accuracy, apart, monkeypatch, capsys) -> None:
    for needed in ("sklearn", "optax", "tqdm"):
        pytest.importorskip(needed)
    from gridlayout.__main__ import main
    from gridlayout.demo import answer, training

    found = SimpleNamespace(
        accuracy=accuracy, grid=SimpleNamespace(loss=0.5 + apart), plain=SimpleNamespace(loss=0.5)
    )
    monkeypatch.setattr(training, "measure", lambda steps, progress: found)
    monkeypatch.setattr(answer, "lines", lambda found: [])
    assert main(["demo"]) == 1
    assert "FAILED" in capsys.readouterr().out
    found.accuracy, found.grid.loss = 0.95, 0.5009
    assert main(["demo"]) == 0


@pytest.mark.parametrize(
    ("record", "command"),
    [
        (None, "pip install 'gridlayout[demo]'"),
        ({"url": "file:///a.whl", "archive_info": {}}, "pip install 'gridlayout[demo]'"),
        ({"url": ROOT.as_uri(), "dir_info": {}}, f"pip install '.[demo]' in {ROOT}"),
    ],
)
def test_what_the_demo_needs_is_installed_from_where_the_package_was(
    record, command, monkeypatch, capsys
):
    text = None if record is None else json.dumps(record)
    found = SimpleNamespace(read_text=lambda name: text)
    monkeypatch.setattr("gridlayout.__main__.distribution", lambda name: found)
    monkeypatch.setitem(sys.modules, "gridlayout.demo.run", None)  # as where optax is missing
    assert main(["demo"]) == 1
    assert capsys.readouterr().err.endswith(f"the demo needs its extra: {command}\n")


def test_bad_arguments() -> None:
    assert run("demo", "--steps", "0").returncode == 2
    assert run("dance").returncode == 2
