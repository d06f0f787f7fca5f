"""`python -m gridlayout`: the commands that come with the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import gridlayout
from gridlayout.commands.demo import add_demo
from gridlayout.commands.dumps import add_compare, add_explain
from gridlayout.commands.layouts import add_convert, add_draw, add_explore, add_gallery
from gridlayout.commands.plans import add_plan
from gridlayout.commands.terminal import NAME, REFUSED


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and give the exit code: 0 when it did what it says, 1 when it did not,
    such as for a dump without layouts.

    2 for arguments that make no sense: an unknown option, a text that can't be read.
    """
    parser = argparse.ArgumentParser(prog=NAME, description="Layouts of tensors on grids of cores.")
    parser.add_argument("--version", action="version", version=f"{NAME} {gridlayout.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    add_demo(commands)
    add_explain(commands)
    add_compare(commands)
    add_plan(commands)
    add_draw(commands)
    add_convert(commands)
    add_explore(commands)
    add_gallery(commands)
    options, unknown = parser.parse_known_args(argv)
    if unknown:  # with the usage of the command that they were given to
        own = commands.choices.get(options.command, parser)
        own.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.command is None:
        parser.print_help(sys.stderr)
        return REFUSED
    code: int = options.run(options)
    return code


if __name__ == "__main__":
    sys.exit(main())
