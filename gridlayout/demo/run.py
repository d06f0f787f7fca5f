"""Runs the demo."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from time import perf_counter

import gridlayout as gl
from gridlayout.demo import network
from gridlayout.demo.training import Training, by_gspmd, on_the_grid
from gridlayout.tables.html import framed, heading, html_page, paragraph, plain_table
from gridlayout.tables.words import duration

MACHINE = "v5e 4x4"
LARGE = (65521, (1021, 4093, 4093, 1000))  # rows and widths of the network that is planned
_APART = 1e-3  # the most by which the losses may differ, as a share


def run(steps: int, path: str) -> int:
    """Train, write the page, and print the results; return 0 if the losses agree, else 1.

    steps: the number of training steps. path: of the page.
    """
    start = perf_counter()
    gl.emulate_devices(8)
    grid, other = on_the_grid(), by_gspmd()
    for _ in range(steps):
        grid.run()
        other.run()
    apart = abs(grid.losses[-1] / other.losses[-1] - 1)
    measured = list(_measured(grid, other, apart))
    print("\n".join(measured), flush=True)
    plan = gl.plan(network.train_step, *network.shapes(*LARGE), machine=MACHINE)
    default = gl.simulate(network.train_step, *network.shapes(*LARGE), machine=MACHINE)
    planned = list(_planned(plan, default))
    print("\n".join(planned), flush=True)
    file = Path(path)
    file.write_text(page(grid, [*measured, *planned], plan), encoding="utf-8")
    print(f"\nSee the layouts, the program, the timeline and the plan:\n{file.resolve()}")
    print(f"({perf_counter() - start:.0f} s)")
    if apart <= _APART:
        return 0
    print(f"FAILED: the losses differ by {apart:.1%}, and may by {_APART:.1%}")
    return 1


def _measured(grid: Training, other: Training, apart: float) -> Iterator[str]:
    yield f"{len(grid.losses)} steps, by turns on the grid and by GSPMD (jax.jit with shardings):"
    for name, each in (("gridlayout", grid), ("GSPMD", other)):
        step = "" if each.median is None else f"{duration(each.median)} a step, "
        yield (
            f"  {name:<11} {step}first call {duration(each.first_call)}, "
            f"loss {each.losses[0]:,.1f} to {each.losses[-1]:,.1f}"
        )
    yield f"  the losses differ by {apart:.1e} of their value" if apart else "  equal losses"
    if grid.median is not None and other.median is not None:
        yield f"  a step on the grid takes {grid.median / other.median:.2f} times GSPMD's time"
    yield "Both have the same blocks on the same devices. JAX refuses uneven blocks, so"
    yield "GSPMD's arrays are padded by hand. Emulated devices share this computer's cores."


def _planned(plan: gl.results.Plan, default: gl.results.Simulation) -> Iterator[str]:
    rows, widths = LARGE
    yield ""
    yield f"A plan for {plan.device.size} chips ({MACHINE}), made without them: such a network in"
    yield f"bfloat16, {rows:,} rows, widths {', '.join(map(str, widths))}. By the chip's figures:"
    yield f"  {duration(plan.time)} a step as planned; no plan takes under {duration(plan.bound)}"
    yield f"  {duration(default.time)} a step in the layouts that gl.put chooses by default"


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
