"""Every notebook is a pair of one source, and a fresh kernel shows what it was saved with."""

from pathlib import Path

import jupytext
import nbformat
import pytest
import tiers
from execute import HERE, SOURCES, executed


def pairs():
    return [pytest.param(source, id=source.stem) for source in SOURCES]


def shown(notebook):
    """What each code cell shows, as (kind, text) by media type; execution counts left out."""
    return [
        [
            (out.name, {"text": out.text})
            if out.output_type == "stream"
            else (out.output_type, dict(out.get("data", {})))
            for out in cell.outputs
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_every_notebook_is_a_pair():
    assert [source.stem[:2] for source in SOURCES] == [f"{k:02}" for k in range(1, 8)]
    assert sorted(HERE.glob("*.ipynb")) == [source.with_suffix(".ipynb") for source in SOURCES]


@pytest.mark.parametrize("source", pairs())
def test_both_files_hold_the_same_cells(source: Path):
    script, notebook = jupytext.read(source), nbformat.read(source.with_suffix(".ipynb"), 4)
    nbformat.validate(notebook)
    assert [(c.cell_type, c.source) for c in script.cells] == [
        (c.cell_type, c.source) for c in notebook.cells
    ]


# The last one plans for half a minute.
@pytest.mark.parametrize("source", pairs() if tiers.ALL else tiers.few(pairs()[:-1], 1))
def test_a_fresh_kernel_shows_what_is_saved(source: Path):
    found = shown(executed(source))  # raises where a cell does
    saved = shown(nbformat.read(source.with_suffix(".ipynb"), 4))
    assert found == saved
    kinds = {kind for cell in saved for kind, _ in cell}
    assert kinds <= {"stdout", "execute_result", "display_data"}  # no warning, no error
    assert any("text/html" in data for cell in saved for _, data in cell)
    assert not any("image/png" in data for cell in saved for _, data in cell)


@pytest.mark.parametrize("source", pairs())
def test_drawings_are_stored_without_html_too(source: Path):
    outputs = shown(nbformat.read(source.with_suffix(".ipynb"), 4))
    drawn = [data for cell in outputs for _, data in cell if "<svg" in data.get("text/html", "")]
    assert drawn
    for data in drawn:
        svg = data["image/svg+xml"]
        assert svg.startswith("<svg ")
        assert "var(" not in svg  # programs other than browsers show it
