"""The demo: a training on the grid beside GSPMD's, in a process of its own, and the page of it."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from gridlayout.commands import demo as command
from gridlayout.demo import network, run

ROOT = Path(__file__).parent.parent


def demo(*arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "gridlayout", "demo", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """What the demo of a few steps printed, and its page."""
    path = tmp_path_factory.mktemp("demo") / "page.html"
    found = demo("--steps", "20", "-o", str(path))
    assert found.returncode == 0, found.stderr[-2000:]
    return found.stdout, path.read_text("utf-8"), path


def test_the_demo_learns_the_same_as_gspmd(done):
    text, _, path = done
    lines = text.splitlines()
    assert lines[0].startswith("gridlayout demo: ")
    assert len(lines) <= 25
    assert max(len(line) for line in lines if line != str(path)) <= 80
    assert str(path) in lines
    losses = [
        float(word.replace(",", ""))
        for row in re.findall(r"loss ([\d.,]+) to ([\d.,]+)", text)
        for word in row
    ]
    first, last, *others = losses
    assert [first, last] == pytest.approx(others, rel=1e-3)
    assert last < first / 4
    ratio = re.search(r"takes ([\d.]+) times GSPMD's time", text)
    assert float(ratio[1]) > 0
    plan, bound = re.search(r"([\d.]+) ms a step as planned; .* under ([\d.]+) ms", text).groups()
    assert float(bound) <= float(plan)


def test_the_page_shows_layouts_program_and_plan(done):
    text, page, _ = done
    for words in (
        *("All arrays", "The training step as a program", "plan of train_step", "weights/0"),
        *("(1009, 63)", "1009,250", "TPU v5e", "float32[63, 250]: physical memory"),
    ):
        assert words in page, words
    measured = re.search(r"^  gridlayout .*$", text, re.MULTILINE)[0]
    assert measured in page
    pictures = re.findall(r"<svg\b.*?</svg>", page, re.DOTALL)
    assert len(pictures) >= 5
    for picture in pictures:
        ElementTree.fromstring(picture)
    # It needs nothing from elsewhere.
    assert not re.findall(r"(?:src|href)=\"(?!#)", page)


def test_zeros_around_the_arrays_change_nothing():
    weights, x, y = network.arrays()
    assert all(n % 4 for array in (x, y, *weights) for n in array.shape)

    def padded(array):
        return np.pad(array, [(0, -n % 4) for n in array.shape])

    new, loss = network.train_step(weights, x, y)
    other, same = network.train_step([padded(w) for w in weights], padded(x), padded(y))
    assert float(same) == pytest.approx(float(loss), rel=1e-5)
    for a, b, w in zip(new, other, weights, strict=True):
        assert np.abs(np.asarray(a) - w).max() > 0
        np.testing.assert_allclose(padded(a), b, atol=1e-6)


def test_something_is_on_the_screen_before_jax_starts():
    program = (
        "import sys; from gridlayout.__main__ import main; "
        "sys.modules['gridlayout.demo.run'] = None; "
        "code = main(['demo']) if 'jax' not in sys.modules else 1; "
        "print('jax' in sys.modules, code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    # The import of the rest failed, as it was made to, after the introduction.
    assert done.stdout.startswith("gridlayout demo: ")
    assert "ModuleNotFoundError" in done.stderr


def test_the_demo_fails_if_the_losses_differ(monkeypatch, tmp_path, capsys):
    trained = [SimpleNamespace(losses=[1.0], median=1e-3, first_call=1.0) for _ in range(2)]
    plan = SimpleNamespace(time=1e-3, bound=1e-3, device=SimpleNamespace(size=16))
    for each in trained:
        each.run = lambda: None
    monkeypatch.setattr(run, "on_the_grid", lambda: trained[0])
    monkeypatch.setattr(run, "by_gspmd", lambda: trained[1])
    monkeypatch.setattr(run.gl, "emulate_devices", lambda count: None)
    monkeypatch.setattr(run.gl, "plan", lambda *args, machine: plan)
    monkeypatch.setattr(run.gl, "simulate", lambda *args, machine: plan)
    monkeypatch.setattr(run, "page", lambda *args: "")
    path = str(tmp_path / "page.html")
    for loss, code in ((1.0, 0), (1.0009, 0), (1.002, 1)):
        trained[0].losses[:] = [loss]
        assert run.run(1, path) == code
        assert ("FAILED" in capsys.readouterr().out) == bool(code)


def test_one_step_has_no_time():
    grid = run.Training(lambda w, x, y: (w, 2.0), (1, 2, 3))
    grid.run()
    assert grid.median is None
    assert not [line for line in run._measured(grid, grid, 0.0) if "a step" in line]


@pytest.mark.few(1)
@pytest.mark.parametrize("arguments", [("--steps", "0"), ("--steps", "many"), ("--full",)])
def test_bad_arguments(arguments):
    found = demo(*arguments)
    assert found.returncode == 2
    assert "Traceback" not in found.stderr


def test_a_page_that_can_not_be_written_is_no_traceback(monkeypatch, capsys):
    def fails(steps, path):
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(run, "run", fails)
    options = SimpleNamespace(steps=1, output="/no/such/page.html")
    assert command._demo(options) == 1
    assert "gridlayout demo: [Errno 2] No such file" in capsys.readouterr().err
