"""Every notebook runs from a fresh kernel, and prints what it was saved with."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path) -> None:
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    mark = "<end of cell>"
    program = "".join(f"{''.join(cell['source'])}\nprint({mark!r}, end='')\n" for cell in cells)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    saved = ["".join(text for out in cell["outputs"] for text in out["text"]) for cell in cells]
    assert run.stdout.split(mark)[:-1] == saved
