"""`python -m gridlayout`: the commands that come with the package."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gridlayout.errors import LayoutError
from gridlayout.layouts.memory import CHIPS

# Shorter files are read before anyone could wonder.
_SHOWN_FROM = 16 << 20


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and give the exit code: 0 when it did what it says, 1 when it did not,
    such as for an empty dump.

    2 for arguments that make no sense: an unknown option, a dump that can't be read.
    """
    parser = argparse.ArgumentParser(prog="python -m gridlayout", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="train a classifier on a virtual 4x4 core grid")
    demo.add_argument("--steps", type=int, default=200, help="training steps (default: 200)")
    demo.add_argument("--full", action="store_true", help="also print every layout and primitive")
    _add_explain(commands.add_parser("explain", help="what the layouts in a compiler dump cost"))
    _add_compare(commands.add_parser("compare", help="dumps of one function, side by side"))
    gallery = commands.add_parser("gallery", help="write a page of the documents' figures")
    gallery.add_argument("path", help="the HTML file to write")
    options = parser.parse_args(argv)
    if options.command == "explain":
        return _explain(options)
    if options.command == "compare":
        return _compare(options)
    if options.command == "gallery":
        return _gallery(options.path)
    if options.steps < 1:
        parser.error(f"--steps {options.steps}: at least one step is needed")
    return _demo(options.steps, options.full)


def _demo(steps: int, full: bool) -> int:
    try:
        from gridlayout.demo import INTRODUCTION
        from gridlayout.demo.run import run

        print(INTRODUCTION, flush=True)  # before JAX starts, which takes seconds
        return run(steps, full)
    except (LayoutError, ModuleNotFoundError) as error:
        print(f"python -m gridlayout demo: {error}", file=sys.stderr)
        if isinstance(error, ModuleNotFoundError):
            print(f"the demo needs its extra: {_install_extra()}", file=sys.stderr)
        return 1


def _install_extra() -> str:
    """Return the command that installs what the demo needs: from the folder that was installed."""
    stated = json.loads(distribution("gridlayout").read_text("direct_url.json") or "{}")
    folder = unquote(urlsplit(stated.get("url", "")).path)
    if "dir_info" not in stated or not Path(folder, "pyproject.toml").exists():
        return "pip install 'gridlayout[demo]'"
    return f"pip install '.[demo]' in {folder}"


def _add_explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="FILE|TEXT",
        help="a dump: tt-mlir IR or HLO; - for standard input; what is no file is taken as a text, "
        "such as 'f32[3,5]{1,0:T(8,128)}'",
    )
    _add_form(parser)
    parser.add_argument(
        "--plan",
        action="store_true",
        help="look for layouts that waste less, on more cores where they do not fit",
    )
    _add_choice(parser)
    parser.add_argument("--limit", type=int, default=50, help="rows of a table (default: 50)")


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources",
        metavar="FILE",
        nargs="+",
        help="two dumps or more of one function, such as one at several levels of optimization; - "
        "for standard input",
    )
    _add_form(parser)
    _add_choice(parser)


def _add_form(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--html", action="store_true", help="print a page of HTML")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    """Which pass, function and chip are meant."""
    parser.add_argument(
        "--pass",
        dest="pass_name",
        metavar="PASS",
        help="of a dump of several passes the one meant: its number, or a part of its title "
        "(default: the last)",
    )
    parser.add_argument("--function", help="the function meant (default: all)")
    parser.add_argument(
        "--chip",
        choices=CHIPS,
        help="whose memory is meant (default: the dump's own, else wormhole)",
    )


def _explain(options: argparse.Namespace) -> int:
    # Other commands are on the screen sooner without it.
    from gridlayout.dump.explanation import explain
    from gridlayout.dump.pages.table import text_of, with_flags

    try:
        found = explain(
            sys.stdin.buffer if options.source == "-" else options.source,
            chip=CHIPS.get(options.chip),
            limit=options.limit,
            plan=options.plan,
            progress=_progress(options.source),
            pass_name=_pass(options.pass_name),
            function=options.function,
        )
    except LayoutError as error:
        print(f"python -m gridlayout explain: {with_flags(str(error))}", file=sys.stderr)
        return 2
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    if options.json:
        code = _print(found.to_json())
    else:
        code = _print(found.to_html() if options.html else text_of(found, colour, flags=True))
    return 1 if found.kind == "empty" else code


def _compare(options: argparse.Namespace) -> int:
    from gridlayout.dump.compare import compare
    from gridlayout.dump.pages.table import with_flags

    try:
        sources = [sys.stdin.buffer if name == "-" else name for name in options.sources]
        if options.sources.count("-") > 1:
            raise LayoutError("standard input is one dump: give - once")
        found = compare(
            *sources,
            chip=CHIPS.get(options.chip),
            pass_name=_pass(options.pass_name),
            function=options.function,
        )
    except LayoutError as error:
        print(f"python -m gridlayout compare: {with_flags(str(error))}", file=sys.stderr)
        return 2
    if options.json:
        return _print(found.to_json())
    return _print(found.to_html() if options.html else str(found))


def _pass(text: str | None) -> str | int | None:
    return int(text) if text and text.isdecimal() and len(text) < 10 else text


def _print(text: str) -> int:
    """Print in UTF-8, whatever the locale; a reader that goes away (`| head`) is no error."""
    try:
        sys.stdout.buffer.write(text.rstrip("\n").encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _progress(source: str) -> Callable[[int], None] | None:
    """A counter on standard error, for large files and a person who waits."""
    try:
        total = os.path.getsize(source)
    except (OSError, ValueError):
        total = 0
    if not sys.stderr.isatty() or (total < _SHOWN_FROM and source != "-"):
        return None
    done, shown = 0, 0.0

    def add(count: int) -> None:
        nonlocal done, shown
        done += count
        if time.monotonic() - shown > 0.2 or done == total:
            shown = time.monotonic()
            of = f" of {total >> 20}" if total else ""
            end = "\r\x1b[K" if done == total else ""
            print(f"\rread {done >> 20}{of} MiB{end}", end="", file=sys.stderr, flush=True)

    return add


def _gallery(path: str) -> int:
    from gridlayout.gallery import write_gallery

    try:
        print(f"{write_gallery(path)} figures are in {path}")
    except OSError as error:
        print(f"python -m gridlayout gallery: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
