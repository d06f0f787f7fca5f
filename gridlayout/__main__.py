"""`python -m gridlayout`: the commands that come with the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gridlayout.errors import LayoutError


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and give the exit code: 0 when it did what it says, 1 when it did not."""
    parser = argparse.ArgumentParser(prog="python -m gridlayout", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="train a classifier on a virtual 4x4 core grid")
    demo.add_argument("--steps", type=int, default=200, help="training steps (default: 200)")
    gallery = commands.add_parser("gallery", help="write a page of the documents' figures")
    gallery.add_argument("path", help="the HTML file to write")
    options = parser.parse_args(argv)
    if options.command == "gallery":
        return _gallery(options.path)
    if options.steps < 1:
        parser.error(f"--steps {options.steps}: at least one step is needed")
    try:
        from gridlayout.demo import run

        return run(options.steps)
    except (LayoutError, ModuleNotFoundError) as error:
        print(f"python -m gridlayout {options.command}: {error}", file=sys.stderr)
        if isinstance(error, ModuleNotFoundError):
            print("the demo needs its extra: pip install 'gridlayout[demo]'", file=sys.stderr)
        return 1


def _gallery(path: str) -> int:
    from gridlayout.draw.gallery import write_gallery

    try:
        print(f"{write_gallery(path)} figures are in {path}")
    except OSError as error:
        print(f"python -m gridlayout gallery: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
