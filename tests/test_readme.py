"""The README's example runs and prints what the README says it prints."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_example_prints_what_is_shown() -> None:
    text = README.read_text()
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"prints\n\n```\n(.*?)```", text, re.DOTALL)
    assert program
    assert shown
    # A process of its own: the example starts JAX itself.
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program[1]],
        capture_output=True,
        text=True,
        check=False,
        cwd=README.parent,
        env={**os.environ, "PYTHONPATH": str(README.parent)},
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout == shown[1]


def test_example_is_about_twenty_lines() -> None:
    program = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert program
    lines = [line for line in program[1].splitlines() if line.strip()]
    assert 15 <= len(lines) <= 22


def test_explain_prints_what_is_shown() -> None:
    shown = re.search(
        r"\$ python -m (gridlayout explain [^\n]*)\n(.*?)```", README.read_text(), re.DOTALL
    )
    assert shown
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", *shlex.split(shown[1])],
        capture_output=True,
        text=True,
        check=False,
        cwd=README.parent,
        env={**os.environ, "PYTHONPATH": str(README.parent)},
        timeout=60,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout == shown[2]
