"""The page that the demo leaves: what notebooks show of the same objects, under headings."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import gridlayout as gl
from gridlayout.demo.training import Training
from gridlayout.tables.html import framed, heading, html_page, paragraph, plain_table


def page(grid: Training, lines: list[str], plan: gl.results.Plan) -> str:
    """Return the HTML of the page. lines: what the demo has printed."""
    return html_page("gridlayout: demo", framed([*_layouts(grid, lines), *_plan(plan)]))


def _layouts(grid: Training, lines: list[str]) -> Iterator[str]:
    weights, x, y = grid.start
    layout = weights[0].layout
    yield '<p class="title">A network on a grid of cores</p>'
    yield f"<pre>{escape(chr(10).join(lines))}</pre>"
    yield heading("The layout of the first weights")
    yield layout._repr_html_()
    yield paragraph("The same on each core, in tiles. Hatched positions are padding.")
    yield layout.draw("physical").svg
    yield heading("All arrays")
    yield gl.summary({"weights": weights, "x": x, "y": y})._repr_html_()
    yield heading("The training step as a program")
    yield paragraph("Each card is a step. What devices receive for it is orange.")
    yield gl.on_grid(grid.step).report(weights, x, y)._repr_html_()


def _plan(plan: gl.results.Plan) -> Iterator[str]:
    yield heading("A plan of a large network for real chips")
    yield f"<pre>{escape(str(plan).partition(chr(10) + 'equation ')[0])}</pre>"
    yield paragraph("What one chip computes, sends and holds over time, by the machine's figures:")
    yield plan.timeline().svg
    yield plan.memory().svg
    yield heading("The equations of the plan")
    yield plan.simulation.table.html
    commands = [
        ("python -m gridlayout explore", "opens a page on which a layout can be changed"),
        ("python -m gridlayout explain FILE", "shows what the layouts in a compiler's dump waste"),
    ]
    yield heading("Next")
    yield plain_table(("command", "what it does"), commands)
