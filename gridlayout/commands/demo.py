"""`demo`: a training step on a grid of cores, and a page of what was done."""

from __future__ import annotations

import argparse

from gridlayout.commands import Commands
from gridlayout.commands.terminal import refused
from gridlayout.errors import LayoutError


def add_demo(commands: Commands) -> None:
    """Add `demo`."""
    parser = commands.add_parser("demo", help="train a network on a grid of cores; show all of it")
    parser.add_argument("--steps", type=int, default=60, help="training steps (default: 60)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="gridlayout-demo.html",
        help="the page to write (default: gridlayout-demo.html)",
    )
    parser.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> int:
    from gridlayout.demo import INTRODUCTION

    try:
        if options.steps < 1:
            raise LayoutError(f"--steps {options.steps}: at least one step is needed")
        print(INTRODUCTION, flush=True)  # before JAX starts, which takes seconds
        from gridlayout.demo.run import run

        return run(options.steps, options.output)
    except (LayoutError, OSError) as error:
        return refused("demo", error)
