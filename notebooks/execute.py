"""Runs the notebooks: `python notebooks/execute.py` writes each `.ipynb` anew from its `.py`.

The `.py` files, in jupytext's percent format, are what is edited. Each is run in a kernel of its
own, in which warnings are errors; the `.ipynb` beside it is the same cells with their outputs.
Drawings are stored as HTML and as SVG, for what shows notebooks without HTML.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
SOURCES = sorted(HERE.glob("[0-9][0-9]_*.py"))
# What a kernel does first, without leaving a name: it finds this checkout, and takes no warning
# that comes from a cell, from here or from JAX. Its own machinery may warn.
_FIRST = [
    f"__import__('sys').path.insert(0, {str(HERE.parent)!r})",
    "__import__('warnings').filterwarnings('error', module='__main__|gridlayout|jax')",
]
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def executed(source: Path) -> nbformat.NotebookNode:
    """The notebook of a `.py` file, with the outputs of a fresh kernel."""
    notebook = jupytext.read(source)
    notebook.metadata = nbformat.from_dict(_METADATA)
    for k, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{k}", nbformat.from_dict({})
    client = NotebookClient(
        notebook,
        timeout=300,  # seconds a cell: what takes longer hangs
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=[f"--IPKernelApp.exec_lines={_FIRST}", "--log-level=CRITICAL"],
        resources={"metadata": {"path": str(HERE)}},
    )
    client.execute()
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        # Its bytes depend on the fonts here, and on whether there is a renderer.
        output.get("data", {}).pop("image/png", None)
    # The kernel wrote the version of its Python there.
    notebook.metadata = nbformat.from_dict(_METADATA)
    return notebook


def main(names: list[str]) -> None:
    """Write the `.ipynb` of the named notebooks, by default of all."""
    for source in SOURCES:
        if not names or source.stem in names:
            nbformat.write(executed(source), source.with_suffix(".ipynb"))


if __name__ == "__main__":
    main(sys.argv[1:])
